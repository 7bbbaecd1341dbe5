"""The throttle as a middleware: its options, and that a run's state is the run's."""

from __future__ import annotations

import inspect
import math
from collections.abc import AsyncIterator
from fractions import Fraction
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput, TextMessageContentEvent

from agui_pipeline.adapters.testing import collect
from agui_pipeline.middleware import EventThrottleMiddleware, Pipeline
from agui_pipeline.translators import AnyEvent, ConfigurationError, Diagnostic
from agui_pipeline.translators._input import run_input
from agui_pipeline.translators._throttle import ThrottleTranslator
from tests.clocks import BACKENDS

INPUT = run_input("hello", thread_id="thread", run_id="run")


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


def text(delta: str) -> Any:
    return TextMessageContentEvent(message_id="m", delta=delta)


# Options


@pytest.mark.parametrize(
    "interval", [-0.1, -1, 16, 50, math.nan, math.inf, 10**400, "0.05", "", None, True, [1], 1j, Fraction(1, 2)]
)
def test_an_interval_that_is_no_number_of_seconds_or_is_meant_as_milliseconds_is_refused(interval: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^interval=.*must be a number of seconds, 0 to 10$"):
        EventThrottleMiddleware(interval=interval)


@pytest.mark.parametrize("min_chars", [-1, 1.5, 3.0, math.nan, "5", None, True, [1]])
def test_a_number_of_characters_that_is_no_whole_number_is_refused(min_chars: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^min_chars=.*whole number of characters"):
        EventThrottleMiddleware(min_chars=min_chars)


@pytest.mark.parametrize("sink", ["log", 5, True])
def test_a_sink_that_is_not_callable_is_refused(sink: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^on_diagnostic="):
        EventThrottleMiddleware(on_diagnostic=sink)


@pytest.mark.parametrize(
    "options", [{}, {"interval": 0}, {"interval": 0.0}, {"interval": 10}, {"min_chars": 0}, {"min_chars": 10**9}]
)
def test_every_number_in_range_is_taken(options: dict[str, Any]) -> None:
    assert isinstance(EventThrottleMiddleware(**options).translator(INPUT), ThrottleTranslator)


def test_options_are_keywords_with_the_documented_defaults() -> None:
    parameters = inspect.signature(EventThrottleMiddleware).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "interval": 0.05,
        "min_chars": 0,
        "on_diagnostic": None,
    }
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())


def test_the_options_reach_the_translator() -> None:
    stage = EventThrottleMiddleware(interval=3, min_chars=4)
    translator = stage.translator(INPUT)
    assert list(translator.feed(text("a"), 0.0)) == [text("a")]
    assert list(translator.feed(text("abc"), 1.0)) == []
    assert translator.deadline() == 3.0
    assert list(translator.feed(text("d"), 2.0)) == [text("abcd")]
    assert stage.prepare(INPUT) is INPUT


def test_each_run_has_a_translator_of_its_own() -> None:
    stage = EventThrottleMiddleware(interval=1)
    first, second = stage.translator(INPUT), stage.translator(INPUT)
    assert list(first.feed(text("a"), 0.0)) == [text("a")]
    assert list(first.feed(text("b"), 0.0)) == []
    assert list(second.feed(text("c"), 0.0)) == [text("c")]
    assert list(second.flush()) == []


# In a pipeline


async def timed(source: Any, *middleware: Any) -> list[tuple[float, str]]:
    """Run a pipeline; return when each event arrived and what it said."""
    start = anyio.current_time()
    async with Pipeline(source, *middleware).open(INPUT) as events:
        return [(round(anyio.current_time() - start, 3), event.delta) async for event in events]


async def slow(input: RunAgentInput) -> AsyncIterator[AnyEvent]:  # noqa: ARG001
    for delta in "abcd":
        yield text(delta)
        await anyio.sleep(0.03)
    await anyio.sleep(10)
    yield text("e")
    yield text("f")


@pytest.mark.anyio
async def test_the_first_token_pays_nothing_and_held_text_does_not_wait_for_the_next() -> None:
    assert await timed(slow, EventThrottleMiddleware(interval=0.05)) == [
        (0.0, "a"),
        (0.05, "b"),
        (0.1, "cd"),
        (10.12, "e"),
        (10.12, "f"),
    ]


@pytest.mark.anyio
async def test_one_object_serves_runs_at_once() -> None:
    stage = EventThrottleMiddleware(interval=0.05)
    results: list[list[tuple[float, str]]] = []

    async def run() -> None:
        results.append(await timed(slow, stage))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(run)
    assert ["".join(delta for _, delta in seen) for seen in results] == ["abcdef"] * 3
    assert results[0] == results[1] == results[2]


@pytest.mark.anyio
async def test_what_is_held_is_delivered_before_the_error_of_the_source() -> None:
    async def failing(input: RunAgentInput) -> AsyncIterator[AnyEvent]:  # noqa: ARG001
        for delta in ("par", "ti", "al"):
            yield text(delta)
        raise RuntimeError("boom")

    result = await collect(Pipeline(failing, EventThrottleMiddleware(interval=0.2)), INPUT, catch=True)
    assert [event.delta for event in result.events] == ["par", "tial"]
    assert str(result.exception) == "boom"


@pytest.mark.anyio
async def test_it_has_nothing_to_report() -> None:
    seen: list[Diagnostic] = []
    await timed(slow, EventThrottleMiddleware(on_diagnostic=seen.append))
    assert seen == []
