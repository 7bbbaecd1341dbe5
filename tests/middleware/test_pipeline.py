"""Chains: order, inputs, state of a run, openings that fail, and what a stage may do with its source."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any

import anyio
import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_pipeline.adapters.testing import ScriptedAgent, collect, pause
from agui_pipeline.middleware import Middleware, Pipeline, Source, TranslatorMiddleware
from agui_pipeline.middleware._segment import Segment
from agui_pipeline.translators import (
    AnyEvent,
    ConfigurationError,
    Event,
    SourceError,
    SSEFrame,
    TimedTranslator,
    Translator,
    encode_sse,
    replace,
    run_input,
)
from tests.clocks import BACKENDS
from tests.middleware.kit import (
    CHAINS,
    INPUT,
    Held,
    Kept,
    OopsError,
    Prompt,
    Raises,
    Same,
    Stage,
    custom,
    customs,
    passing,
    tidy,
    values,
)

pytestmark = pytest.mark.anyio

each_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


# Order.


class Appends(Translator):
    def __init__(self, mark: str) -> None:
        self._mark = mark

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        return (replace(event, value=event.value + self._mark),)


class AppendsTimed(TimedTranslator):
    def __init__(self, mark: str) -> None:
        self._mark = mark

    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:  # noqa: ARG002
        return (replace(event, value=event.value + self._mark),)


def appends(mark: str) -> Middleware:
    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input.model_copy(update={"thread_id": input.thread_id + mark})):
            yield replace(event, value=event.value + mark)

    return stage


def sans_io(mark: str, translator: Callable[[str], Translator | TimedTranslator] = Appends) -> Stage:
    def prepare(input: RunAgentInput) -> RunAgentInput:
        return input.model_copy(update={"thread_id": input.thread_id + mark})

    return Stage(lambda: translator(mark), prepare)


MIXES: dict[str, Callable[[str], Any]] = {
    "functions": appends,
    "fused": sans_io,
    "timed": lambda mark: sans_io(mark, AppendsTimed),
    "mixed": lambda mark: appends(mark) if mark in "ac" else sans_io(mark, AppendsTimed if mark == "d" else Appends),
}


@pytest.mark.parametrize("make", MIXES.values(), ids=MIXES.keys())
async def test_events_meet_the_stages_in_order_and_inputs_the_other_way(make: Callable[[str], Any]) -> None:
    agent = ScriptedAgent([custom("")])
    chain = [make(mark) for mark in "abcd"]
    result = await collect(Pipeline(agent, *chain), run_input(thread_id="t"))
    assert values(result.events) == ["abcd"]
    assert [input.thread_id for input in agent.inputs] == ["tdcba"]
    nested = Pipeline(Pipeline(Pipeline(agent, *chain[:1]), *chain[1:3]), *chain[3:])
    assert values((await collect(nested, run_input(thread_id="t"))).events) == ["abcd"]
    assert agent.inputs[1].thread_id == "tdcba"


async def test_the_readers_input_is_not_changed_and_arrives_as_the_same_object() -> None:
    agent = ScriptedAgent(customs(1))
    before = INPUT.model_copy(deep=True)
    for chain in CHAINS.values():
        await collect(chain(agent), INPUT)
    assert all(input is INPUT for input in agent.inputs)
    assert before == INPUT


async def test_a_translator_is_made_with_the_input_before_its_own_prepare() -> None:
    seen: list[tuple[str, str]] = []

    class Notes(TranslatorMiddleware):
        def __init__(self, mark: str) -> None:
            super().__init__()
            self._mark = mark

        def translator(self, input: RunAgentInput) -> Translator:
            seen.append((self._mark, input.thread_id))
            return Same()

        def prepare(self, input: RunAgentInput) -> RunAgentInput:
            return input.model_copy(update={"thread_id": input.thread_id + self._mark})

    await collect(Pipeline(customs(1), Notes("a"), passing, Notes("b"), Notes("c")), run_input(thread_id="t"))
    assert seen == [("c", "t"), ("b", "tc"), ("a", "tcb")]


@each_chain
async def test_events_leave_in_the_order_in_which_they_came(chain: Callable[[Any], Pipeline]) -> None:
    agent = ScriptedAgent([item for event in customs(200) for item in (event, pause(0.001))])
    async with tidy():
        result = await collect(chain(agent), INPUT)
    assert values(result.events) == [*range(1, 201)]
    assert (agent.started, agent.running) == (1, 0)


@each_chain
async def test_nothing_runs_before_the_first_event_is_asked_for(chain: Callable[[Any], Pipeline]) -> None:
    agent = ScriptedAgent(customs(1))
    async with chain(agent).open(INPUT) as events:
        await anyio.sleep(1)
        assert agent.inputs == []
        assert (await anext(events)).value == 1


@each_chain
async def test_an_empty_run_ends(chain: Callable[[Any], Pipeline]) -> None:
    async with tidy():
        assert (await collect(chain([]), INPUT)).events == []


# State is per run.


@each_chain
async def test_runs_through_one_object_do_not_mix(chain: Callable[[Any], Pipeline]) -> None:
    def script(input: RunAgentInput) -> list[Any]:
        return [item for n in range(30) for item in (pause(0.01), custom(f"{input.thread_id} {n}"))]

    agent = ScriptedAgent([script])
    pipeline = chain(agent)
    results: dict[str, list[Any]] = {}

    async def read(thread: str) -> None:
        results[thread] = values((await collect(pipeline, run_input(thread_id=thread))).events)

    async with tidy(), anyio.create_task_group() as group:
        for thread in "abc":
            group.start_soon(read, thread)
    assert results == {thread: [f"{thread} {n}" for n in range(30)] for thread in "abc"}


async def test_a_sans_io_stage_makes_a_translator_a_run() -> None:
    made: list[Kept] = []

    def make() -> Kept:
        made.append(Kept())
        return made[-1]

    pipeline = Pipeline(customs(2), Stage(make))
    for _ in range(2):
        assert values((await collect(pipeline, INPUT)).events) == [1, 2]
    assert len(made) == 2


async def test_a_sans_io_stage_is_a_middleware_that_a_function_can_call() -> None:
    inner = Stage(Kept)

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in inner(input, next):
            yield event

    async with tidy():
        agent = ScriptedAgent(customs(2))
        assert values((await collect(Pipeline(agent, stage), INPUT)).events) == [1, 2]
        assert agent.running == 0


# What is no middleware.


async def coroutine_stage(_input: RunAgentInput, _next: Source) -> None: ...


async def one_argument(_input: RunAgentInput) -> AsyncIterator[Any]:
    yield custom(1)


class CoroutineStage:
    async def __call__(self, _input: RunAgentInput, _next: Source) -> None: ...


REFUSED: dict[str, tuple[Any, str]] = {
    "class": (Stage, r"middleware Stage is a class: give an instance, Stage\(\)"),
    "None": (None, r"middleware is NoneType; a middleware is an async generator function \(input, next\)"),
    "list": ([passing], "middleware is list"),
    "coroutine function": (coroutine_stage, "coroutine_stage is a coroutine function without yield"),
    "coroutine call": (CoroutineStage(), "CoroutineStage is a coroutine function without yield"),
    "one argument": (one_argument, r"one_argument must take two arguments, \(input, next\)"),
}


@pytest.mark.parametrize(("stage", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_middleware_is_refused_at_construction(stage: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Pipeline(customs(1), passing, stage)


def test_a_sink_that_is_no_callable_is_refused() -> None:
    class Own(TranslatorMiddleware):
        def translator(self, input: RunAgentInput) -> Translator:  # noqa: ARG002
            return Same()

    with pytest.raises(ConfigurationError, match="on_diagnostic=5: must be None or a callable"):
        Own(on_diagnostic=5)  # type: ignore[arg-type]


async def test_a_stage_that_returns_no_iterator_raises_from_the_run() -> None:
    def stage(_input: RunAgentInput, _next: Source) -> Any:
        return [custom(1)]

    for pipeline in (Pipeline([], stage), Pipeline([], stage, Stage(Same)), Pipeline([], stage, Stage(Held))):
        async with tidy():
            with pytest.raises(SourceError, match=r"middleware .*must return an async iterator; it returned list"):
                await collect(pipeline, INPUT)


# Openings that fail: to the stages after it, whatever raises while it is opened is a source that raises.


class Rescues(Translator):
    """Gives an event for an error, as a guard does."""

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        return (event,)

    def fail(self, exc: BaseException) -> tuple[list[AnyEvent], None]:
        return [CustomEvent(name="n", value=repr(exc))], None


class RescuesTimed(Prompt):
    def fail(self, exc: BaseException) -> tuple[list[AnyEvent], None]:
        return [CustomEvent(name="n", value=repr(exc))], None


def failing_source(_input: RunAgentInput) -> Any:
    raise OopsError


def failing_function(_input: RunAgentInput, _next: Source) -> Any:
    raise OopsError


def failing_make() -> Any:
    raise OopsError


def failing_prepare(_input: RunAgentInput) -> Any:
    raise OopsError


FAILING: dict[str, tuple[Any, list[Any]]] = {
    "source": (failing_source, []),
    "source of a function stage": (failing_source, [passing]),
    "source of a sans-IO stage": (failing_source, [Stage(Same)]),
    "source of a timed stage": (failing_source, [Stage(Held)]),
    "function stage": ([], [failing_function]),
    "function stage between": ([], [Stage(Same), failing_function, passing]),
    "translator": ([], [Stage(failing_make)]),
    "translator between": ([], [Stage(Same), Stage(failing_make), Stage(Same)]),
    "prepare": ([], [Stage(Same, failing_prepare)]),
    "prepare of a timed stage": ([], [Stage(Held, failing_prepare), passing]),
}


@pytest.mark.parametrize(("source", "chain"), FAILING.values(), ids=FAILING.keys())
async def test_what_fails_while_it_is_opened_leaves_as_itself(source: Any, chain: list[Any]) -> None:
    async with tidy():
        with pytest.raises(OopsError):
            await collect(Pipeline(source, *chain), INPUT)


@pytest.mark.parametrize(("source", "chain"), FAILING.values(), ids=FAILING.keys())
@pytest.mark.parametrize("make", [Rescues, RescuesTimed])
@pytest.mark.parametrize("between", [[], [passing]], ids=["fused", "apart"])
async def test_what_fails_while_it_is_opened_reaches_the_stages_after_it(
    source: Any, chain: list[Any], make: Any, between: list[Any]
) -> None:
    async with tidy():
        result = await collect(Pipeline(source, *chain, *between, Stage(make)), INPUT)
    assert values(result.events) == ["OopsError()"]


@pytest.mark.parametrize("make", [Rescues, RescuesTimed])
@each_chain
async def test_an_error_that_a_stage_deals_with_is_a_plain_end_to_those_after_it(
    chain: Callable[[Any], Pipeline], make: Any
) -> None:
    agent = ScriptedAgent([*customs(2), OopsError()])
    async with tidy():
        result = await collect(Pipeline(chain(agent), Stage(make), Stage(Kept), passing, Stage(Held)), INPUT)
        assert agent.running == 0
    assert values(result.events) == [1, 2, "OopsError()"]


async def test_an_error_of_closing_that_a_stage_dealt_with_is_not_raised() -> None:
    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        try:
            for event in customs(3):
                yield event
        finally:
            raise OopsError

    async def first(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input):
            yield event
            return

    async with tidy():
        result = await collect(Pipeline(source, first, Stage(RescuesTimed)), INPUT)
    assert values(result.events) == [1, "OopsError()"]


class FailsWhileFailing(Kept):
    def fail(self, exc: BaseException) -> Any:
        raise OopsError("second") from exc


class Replaces(Kept):
    def fail(self, exc: BaseException) -> Any:
        second = OopsError("second")
        second.__cause__ = exc
        return self.flush(), second


@pytest.mark.parametrize(("make", "events"), [(FailsWhileFailing, []), (Replaces, [1, 2])])
@pytest.mark.parametrize("after", [[], [Stage(Kept)], [Stage(Held)], [passing, Stage(Kept)]])
async def test_a_stage_may_put_its_own_error_in_the_place_of_another(
    make: Any, events: list[Any], after: list[Any]
) -> None:
    error = OopsError("first")
    agent = ScriptedAgent([*customs(2), error])
    result = await collect(Pipeline(agent, Stage(make), *after), INPUT, catch=True)
    assert values(result.events) == events
    assert repr(result.exception) == "OopsError('second')"
    assert result.exception is not None
    assert result.exception.__cause__ is error


class Counts(Translator):
    """Says what it was asked for, as text."""

    def __init__(self, calls: list[str], fails_at: int) -> None:
        self._calls = calls
        self._left = fails_at

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        self._calls.append(f"feed {event.value}")
        self._left -= 1
        if self._left == 0:
            raise OopsError
        return (event,)

    def flush(self) -> Iterable[AnyEvent]:
        self._calls.append("flush")
        return ()

    def fail(self, exc: BaseException) -> tuple[list[AnyEvent], BaseException]:
        self._calls.append(f"fail {exc!r}")
        return [], exc


@pytest.mark.parametrize("one_item", [True, False], ids=["one text", "items"])
@pytest.mark.parametrize("timed", [True, False])
async def test_a_stage_that_raised_is_asked_for_nothing_more(*, one_item: bool, timed: bool) -> None:
    """Even where one item of the source held several events, or the error came in the last of them."""
    calls: list[str] = []
    after: list[str] = []
    text = b"".join(encode_sse(CustomEvent(name="n", value=value)) for value in (1, 2, 3, 4))
    source = [text] if one_item else customs(4)
    chain = [Stage(lambda: Counts(calls, 2)), Stage(lambda: Counts(after, 0)), *([Stage(Prompt)] if timed else [])]
    result = await collect(Pipeline(source, *chain), INPUT, catch=True)
    assert calls == ["feed 1", "feed 2"]
    assert after == ["feed 1", "fail OopsError()"]
    assert values(result.events) == [1]
    assert isinstance(result.exception, OopsError)


async def test_an_error_in_an_event_that_only_the_end_of_the_text_completed_ends_the_stage_once() -> None:
    calls: list[str] = []
    text = encode_sse(CustomEvent(name="n", value=1)) + encode_sse(CustomEvent(name="n", value=2)).rstrip()
    result = await collect(Pipeline([text], Stage(lambda: Counts(calls, 2))), INPUT, catch=True)
    assert calls == ["feed 1", "feed 2"]
    assert isinstance(result.exception, OopsError)


@pytest.mark.parametrize("timed", [True, False])
async def test_a_stage_is_flushed_once_or_failed_once(*, timed: bool) -> None:
    for script, end in ((customs(2), "flush"), ([*customs(2), OopsError()], "fail OopsError()")):
        calls: list[str] = []
        chain = [Stage(partial(Counts, calls, 0)), *([Stage(Held)] if timed else [])]
        await collect(Pipeline(ScriptedAgent(script), *chain), INPUT, catch=True)
        assert calls == ["feed 1", "feed 2", end]


# What a function stage may do with its source.


def eager(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
    """Open the source while being opened: a plain function that hands on what it was given."""
    return next(input)


SEVERAL: dict[str, list[Any]] = {
    "next to the source": [],
    "behind a function": [passing],
    "behind an eager function": [eager],
    "behind eager functions": [eager, eager, passing],
    "behind a sans-IO stage": [Stage(Same)],
    "behind a timed stage": [Stage(Held)],
}


@pytest.mark.parametrize("before", SEVERAL.values(), ids=SEVERAL.keys())
@pytest.mark.parametrize("after", [[], [passing], [passing, passing], [Stage(Held)]])
async def test_a_stage_may_call_its_source_many_times(before: list[Any], after: list[Any]) -> None:
    """As one does that tries again; every run of the source is closed at the end of the whole run."""
    agent = ScriptedAgent(customs(2))

    async def retries(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        for _ in range(100):
            async for event in next(input):
                yield event
                break
        async for event in next(input):
            yield event

    async with tidy():
        result = await collect(Pipeline(agent, *before, retries, *after), INPUT)
        assert (agent.started, agent.running) == (101, 0)
    assert values(result.events) == [1] * 100 + [1, 2]


async def test_attempts_that_are_over_are_not_kept() -> None:
    segment = Segment()

    async def attempt() -> AsyncIterator[int]:
        yield 1

    kept = [attempt() for _ in range(5)]
    for iterator in kept:
        segment.fill(segment.reserve(), iterator)
    for _ in range(1000):
        iterator = attempt()
        segment.fill(segment.reserve(), iterator)
        assert [item async for item in iterator] == [1]
    assert len(segment._places) < 100
    assert kept == [place.iterator for place in segment._places][: len(kept)]
    assert await segment.close() is None


@pytest.mark.parametrize("before", SEVERAL.values(), ids=SEVERAL.keys())
async def test_a_stage_may_stop_before_its_source_does(before: list[Any]) -> None:
    async def two(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        left = 2
        async for event in next(input):
            yield event
            left -= 1
            if left == 0:
                return

    agent = ScriptedAgent([*customs(2), pause(1000), *customs(1000)])
    start = anyio.current_time()
    async with tidy():
        result = await collect(Pipeline(agent, *before, two, Stage(Kept)), INPUT)
        assert agent.running == 0
    assert values(result.events) == [1, 2]
    assert anyio.current_time() - start < 1


async def test_a_stage_need_not_call_its_source() -> None:
    async def cached(_input: RunAgentInput, _next: Source) -> AsyncIterator[Any]:
        yield CustomEvent(name="n", value="cached")

    agent = ScriptedAgent(customs(1))
    result = await collect(Pipeline(agent, Stage(Held), cached, Stage(Same)), INPUT)
    assert values(result.events) == ["cached"]
    assert agent.inputs == []


async def test_a_stage_may_deal_with_an_error_of_its_source_and_go_on() -> None:
    async def falls_back(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        try:
            async for event in next(input):
                yield event
        except OopsError:
            yield replace(event, value="fallback")

    agent = ScriptedAgent([*customs(1), OopsError()])
    for before in SEVERAL.values():
        async with tidy():
            result = await collect(Pipeline(agent, *before, falls_back, Stage(Held)), INPUT)
        assert values(result.events) == [1, "fallback"]


async def test_closing_goes_from_the_reader_to_the_source() -> None:
    closed: list[str] = []

    def notes(mark: str) -> Middleware:
        async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
            try:
                async for event in next(input):
                    yield event
            finally:
                closed.append(mark)

        return stage

    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        try:
            yield custom(1)
            yield custom(2)
        finally:
            closed.append("source")

    async with Pipeline(source, notes("a"), Stage(Same), notes("b"), notes("c")).open(INPUT) as events:
        await anext(events)
    assert closed == ["c", "b", "a", "source"]


async def test_a_stage_that_fails_to_close_does_not_keep_the_others_from_closing() -> None:
    error = OopsError("of a stage")
    agent = ScriptedAgent([*customs(2), pause(math.inf)])

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        try:
            async for event in next(input):
                yield event
        finally:
            raise error

    async def read(pipeline: Pipeline) -> None:
        async with pipeline.open(INPUT) as events:
            await anext(events)

    for chain in ([stage], [Stage(Same), stage, passing], [stage, Stage(Prompt)]):
        async with tidy():
            with pytest.raises(OopsError) as caught:
                await read(Pipeline(agent, *chain))
            assert caught.value is error
            assert agent.running == 0


async def test_a_function_stage_may_work_in_its_own_time() -> None:
    async def slow(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input):
            await anyio.sleep(1)
            yield event

    start = anyio.current_time()
    result = await collect(Pipeline(customs(3), slow, Stage(Held)), INPUT)
    assert values(result.events) == [1, 2, 3]
    assert anyio.current_time() - start == pytest.approx(3)


async def test_what_a_reader_throws_in_is_no_error_of_the_source() -> None:
    error = OopsError("thrown in")
    calls: list[str] = []
    for chain in ([Stage(lambda: Counts(calls, 0))], [Stage(lambda: Counts(calls, 0)), Stage(Prompt)]):
        calls.clear()
        agent = ScriptedAgent(customs(3))
        run = Pipeline(agent, *chain)(INPUT)
        await anext(run)
        with pytest.raises(OopsError) as caught:
            await run.athrow(error)
        assert caught.value is error
        assert not any(call.startswith(("fail", "flush")) for call in calls)
        assert agent.running == 0


def test_a_pipeline_works_on_an_event_loop_that_another_library_runs() -> None:
    """The loop is looked up at each run, so one object serves several loops, one after the other."""
    pipeline = Pipeline(customs(2), Stage(Held))
    assert values(asyncio.run(collect(pipeline, INPUT)).events) == [1, 2]
    assert values(anyio.run(collect, pipeline, INPUT, backend="trio").events) == [1, 2]
    assert values(asyncio.run(collect(pipeline, INPUT)).events) == [1, 2]


async def test_an_error_at_the_end_is_seen_by_the_stages_after_it_only() -> None:
    error = OopsError()
    for place in range(3):
        stages = [Stage(Kept) for _ in range(3)]
        stages.insert(place, Stage(lambda: Raises(error, None)))
        result = await collect(Pipeline(customs(2), *stages), INPUT, catch=True)
        assert result.exception is error
        assert values(result.events) == [1, 2]


# Pipelines of pipelines, and dialects that are no AG-UI.


@each_chain
async def test_a_pipeline_around_a_pipeline_is_one_longer_chain(chain: Callable[[Any], Pipeline]) -> None:
    inner = Pipeline(chain([custom("1"), custom("2")]), Stage(lambda: AppendsTimed("a")))
    for outer in (Pipeline(inner, appends("b")), Pipeline(Pipeline(inner), Stage(lambda: Appends("b")))):
        result = await collect(outer, INPUT)
        assert values(result.events) == ["1ab", "2ab"]


def framed(event: Event) -> SSEFrame:
    return SSEFrame("text", str(event.value), None, None, b"")


class Frames(Translator):
    """The end of AG-UI: gives frames."""

    def feed(self, event: Event) -> Iterable[Any]:
        return (framed(event),)


class Leaving(Stage):
    leaves_agui = True


async def test_frames_of_another_dialect_leave_a_pipeline_that_is_a_source() -> None:
    result = [item async for item in Pipeline(Pipeline(customs(2), Leaving(Frames)))(INPUT)]
    assert [(item.event, item.data) for item in result] == [("text", "1"), ("text", "2")]


def test_nothing_comes_after_a_stage_that_leaves_agui() -> None:
    wanted = "comes after Leaving, whose output is no AG-UI any more: put that one last"
    for after in (passing, Stage(Same)):
        with pytest.raises(ConfigurationError, match=wanted):
            Pipeline([], Leaving(Frames), after)
        with pytest.raises(ConfigurationError, match=wanted):
            Pipeline(Pipeline([], Leaving(Frames)), after)


async def test_function_stages_that_are_objects_may_refuse_and_protect_too() -> None:
    class Doorkeeper:
        protects = True

        def admit(self, input: RunAgentInput) -> None:
            if input.thread_id == "no":
                raise SourceError("not this one")

        def __call__(self, input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
            return next(input)

    pipeline = Pipeline(customs(1), Stage(Same), Doorkeeper())
    assert pipeline.protects
    pipeline.admit(INPUT)
    with pytest.raises(SourceError, match="not this one"):
        pipeline.admit(INPUT.model_copy(update={"thread_id": "no"}))
