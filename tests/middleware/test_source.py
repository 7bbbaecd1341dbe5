"""What may be asked for a run's events, what is refused, and what its items may be."""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from typing import Any

import anyio
import pytest
from ag_ui.core import CustomEvent, RunAgentInput
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from agui_pipeline.adapters.testing import ScriptedAgent, collect
from agui_pipeline.middleware import Pipeline, as_source
from agui_pipeline.middleware._intake import Intake
from agui_pipeline.translators import (
    ConfigurationError,
    DecodeError,
    LimitError,
    SourceError,
    SSEDecoder,
    SSEFrame,
    decode_event,
    encode_event,
    encode_sse,
)
from tests.middleware.kit import INPUT, Held, Kept, Same, Stage, custom, customs, passing, tidy, values

pytestmark = pytest.mark.anyio


async def generator_function(_input: RunAgentInput) -> AsyncIterator[Any]:
    for event in customs(2):
        yield event


class Iterating:
    """An async iterator that is no generator and cannot be closed."""

    def __init__(self) -> None:
        self._left = customs(2)

    def __aiter__(self) -> Iterating:
        return self

    async def __anext__(self) -> Any:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop(0)


class Agent:
    def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
        return generator_function(input)

    async def method(self, _input: RunAgentInput) -> AsyncIterator[Any]:
        for event in customs(2):
            yield event

    def __call__(self) -> None:
        raise AssertionError("run() goes first")


class CallableAgent:
    def __call__(self, input: RunAgentInput, *, options: Any = None) -> AsyncIterator[Any]:  # noqa: ARG002
        return generator_function(input)


def with_prefix(_prefix: str, input: RunAgentInput) -> AsyncIterator[Any]:
    return generator_function(input)


ACCEPTED: dict[str, Any] = {
    "async generator function": generator_function,
    "bound method": Agent().method,
    "lambda": lambda _input: generator_function(_input),  # noqa: PLW0108
    "partial": functools.partial(with_prefix, "x"),
    "function returning an iterator": lambda _input: Iterating(),
    "object with run": Agent(),
    "callable object": CallableAgent(),
    "list": customs(2),
    "tuple": tuple(customs(2)),
    "pipeline": Pipeline(customs(2)),
    "pipeline as a function": Pipeline(customs(2)).run,
    "as_source": as_source(customs(2)),
    "scripted agent": ScriptedAgent(customs(2)),
}


@pytest.mark.parametrize("source", ACCEPTED.values(), ids=ACCEPTED.keys())
async def test_a_source_can_be_run_any_number_of_times(source: Any) -> None:
    for run in (as_source(source), Pipeline(source), Pipeline(source, passing), Pipeline(source, Stage(Held))):
        for _ in range(2):
            assert values([event async for event in run(INPUT)]) == [1, 2]


def test_a_replayed_list_is_copied() -> None:
    events = customs(1)
    source = Pipeline(events)
    events.clear()
    assert values(anyio.run(collect, source).events) == [1]


async def coroutine_function(_input: RunAgentInput) -> None: ...


def sync_generator_function(_input: RunAgentInput) -> Iterator[Any]:
    yield custom(1)


async def no_argument() -> AsyncIterator[Any]:
    yield custom(1)


async def two_arguments(_input: RunAgentInput, _more: Any) -> AsyncIterator[Any]:
    yield custom(1)


class CoroutineAgent:
    async def run(self, _input: RunAgentInput) -> None: ...


class CoroutineCallable:
    async def __call__(self, _input: RunAgentInput) -> None: ...


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "text": (lambda: "data: {}", r"source is str; .*one item may be SSE text: \[text\]"),
    "bytes": (lambda: b"{}", "source is bytes; "),
    "async generator": (lambda: generator_function(INPUT), "one-shot async_generator, good for one run only"),
    "async iterator": (Iterating, "one-shot Iterating, good for one run only"),
    "generator": (lambda: iter(customs(1)), "one-shot list_iterator"),
    "class": (lambda: Agent, "source=Agent is a class: give an instance"),
    "coroutine function": (lambda: coroutine_function, "coroutine_function is a coroutine function without yield"),
    "coroutine run": (CoroutineAgent, "CoroutineAgent is a coroutine function without yield"),
    "coroutine call": (CoroutineCallable, "CoroutineCallable is a coroutine function without yield"),
    "ASGI app": (Starlette, "source Starlette is an ASGI app: put AGUIMiddleware around it"),
    "generator function": (lambda: sync_generator_function, "sync_generator_function is a synchronous generator"),
    "no argument": (lambda: no_argument, "no_argument must take one argument, the RunAgentInput"),
    "two arguments": (lambda: two_arguments, "two_arguments must take one argument, the RunAgentInput"),
    "None": (lambda: None, "source is NoneType; a source is an async generator function"),
    "number": (lambda: 5, "source is int"),
    "dict": (lambda: custom(1), "source is dict"),
}


@pytest.mark.parametrize(("make", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_source_is_refused_at_construction(make: Callable[[], Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        as_source(make())
    with pytest.raises(ConfigurationError, match=problem):
        Pipeline(make(), passing)


def test_a_coroutine_is_refused() -> None:
    coroutine = coroutine_function(INPUT)
    with pytest.raises(ConfigurationError, match="one-shot coroutine"):
        as_source(coroutine)
    coroutine.close()


@pytest.mark.parametrize("returned", [None, [], 5])
async def test_a_source_that_returns_no_iterator_raises_from_the_run(returned: Any) -> None:
    def source(_input: RunAgentInput) -> Any:
        return returned

    for run in (as_source(source), Pipeline(source), Pipeline(source, Stage(Same)), Pipeline(source, Stage(Held))):
        async with tidy():
            with pytest.raises(SourceError, match=r"source .*must return an async iterator; it returned"):
                await collect(run, INPUT)


async def test_a_source_that_returns_a_coroutine_does_not_leave_it_unawaited() -> None:
    with pytest.raises(SourceError, match="it returned coroutine"):
        await collect(Pipeline(lambda _input: coroutine_function(_input)), INPUT)  # noqa: PLW0108


# Items.

WIRE = decode_event(json.dumps(custom("ü")))
JSON = json.dumps(custom("ü"), ensure_ascii=False)
SSE = encode_sse(WIRE)

ITEMS: dict[str, Any] = {
    "model": CustomEvent(name="n", value="ü"),
    "view": WIRE,
    "dict": custom("ü"),
    "text": JSON,
    "bytes": JSON.encode(),
    "bytearray": bytearray(JSON.encode()),
    "memoryview": memoryview(JSON.encode()),
    "SSE text": SSE.decode(),
    "SSE bytes": SSE,
    "SSE, CRLF": SSE.replace(b"\n", b"\r\n"),
    "SSE, byte order mark": b"\xef\xbb\xbf" + SSE,
    "SSE, named": b"event: message\nid: 7\n" + SSE,
    "SSE, comments": b": hello\n\n" + SSE + b": bye\n\n",
    "SSE, unterminated": SSE.rstrip(),
    "SSE frame": SSEFrame(data=JSON),
}

CHAINS: dict[str, Callable[[Any], Pipeline]] = {
    "bare": Pipeline,
    "function": lambda source: Pipeline(source, passing),
    "fused": lambda source: Pipeline(source, Stage(Same)),
    "timed": lambda source: Pipeline(source, Stage(Held)),
}
each_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS.keys())
@each_chain
async def test_items_of_every_kind_become_events(chain: Callable[[Any], Pipeline], item: Any) -> None:
    result = await collect(chain([item]), INPUT)
    assert [(event.type, event.value) for event in result.events] == [("CUSTOM", "ü")]
    for event in result.events:
        assert json.loads(encode_event(event)) == custom("ü")


@each_chain
async def test_events_are_passed_on_as_the_same_objects(chain: Callable[[Any], Pipeline]) -> None:
    given_events = [ITEMS["model"], WIRE]
    result = await collect(chain(given_events), INPUT)
    assert [id(event) for event in result.events] == [id(event) for event in given_events]


async def test_an_object_with_a_type_is_an_event() -> None:
    class Own:
        type = "CUSTOM"
        value = 7

    own = Own()
    assert (await collect(Pipeline([own], passing), INPUT)).events == [own]


STREAM = b": hi\n\nevent: x\r\ndata: " + JSON.encode() + b"\r\n\r\n" + SSE + b"\ndata: " + b'{"type":"X"}'


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_sse_text_may_be_cut_anywhere(cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(STREAM)})
    intake = Intake()
    events = [event for start, end in pairwise(places) for event in intake.take(STREAM[start:end])]
    events += intake.flush()
    assert [event.type for event in events] == ["CUSTOM", "CUSTOM", "X"]


@each_chain
async def test_blank_text_before_json_does_not_make_it_an_event_stream(chain: Callable[[Any], Pipeline]) -> None:
    result = await collect(chain(["", "\n", JSON, b"", JSON]), INPUT)
    assert values(result.events) == ["ü", "ü"]


async def awaitable() -> None: ...


BAD: dict[str, tuple[Any, str]] = {
    "None": (None, "got NoneType"),
    "number": (5, "got int"),
    "list": ([custom(1)], "got list"),
    "object without a type": ({"value": 1}, 'needs a string "type"; got an object without one'),
    "object with a wrong type": ({"type": 5}, 'needs a string "type"; got an object whose type is'),
    "class of an event": (CustomEvent, "got ModelMetaclass"),
    "JSON array": ("[]", r"neither a JSON event nor SSE: '\[\]'"),
    "JSON without a type": ('{"a":1}', 'needs a string "type"'),
    "broken JSON": ('{"type":"CUSTOM"', "not JSON"),
    "a model's tokens": ("Hello", "neither a JSON event nor SSE: 'Hello'"),
    "tokens that begin as a field does": ("identity", "neither a JSON event nor SSE: 'identity'"),
}


@pytest.mark.parametrize(("item", "problem"), BAD.values(), ids=BAD.keys())
@each_chain
async def test_an_item_that_is_no_event_ends_the_run_after_what_is_held(
    chain: Callable[[Any], Pipeline], item: Any, problem: str
) -> None:
    agent = ScriptedAgent([*customs(2), item, *customs(1)])
    async with tidy():
        result = await collect(chain(agent), INPUT, catch=True)
        assert agent.running == 0
    assert isinstance(result.exception, SourceError)
    assert result.exception.status is None
    with pytest.raises(SourceError, match=problem):
        raise result.exception
    assert values(result.events) == [1, 2]


@each_chain
async def test_a_coroutine_that_was_not_awaited_is_named_as_such(chain: Callable[[Any], Pipeline]) -> None:
    coroutine = awaitable()
    with pytest.raises(SourceError, match="got coroutine: is it awaited"):
        await collect(chain([coroutine]), INPUT)
    coroutine.close()


BAD_STREAMS: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"data: [DONE]\n\n", "what is no event"),
    "no object": (b"data: 5\n\n", "what is no event"),
    "no type": (b'data: {"a":1}\n\n', "what is no event"),
    "cut off": (b'data: {"type":"CUS', "ended in the middle of an event"),
}


@pytest.mark.parametrize(("bad", "problem"), BAD_STREAMS.values(), ids=BAD_STREAMS.keys())
@each_chain
async def test_events_before_a_bad_frame_in_the_same_text_are_delivered(
    chain: Callable[[Any], Pipeline], bad: bytes, problem: str
) -> None:
    result = await collect(chain([SSE + SSE + bad]), INPUT, catch=True)
    assert values(result.events) == ["ü", "ü"]
    assert isinstance(result.exception, SourceError)
    assert problem in str(result.exception)
    assert isinstance(result.exception.__cause__, DecodeError)


async def test_a_frame_over_the_limit_leaves_as_itself_after_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agui_pipeline.middleware._intake.SSEDecoder", lambda: SSEDecoder(max_frame_bytes=100))
    result = await collect(Pipeline([SSE, b"data: " + b"x" * 200 + b"\n\n"], Stage(Kept)), INPUT, catch=True)
    assert isinstance(result.exception, LimitError)
    assert values(result.events) == ["ü"]
