"""Stages that hold events for a while: exact times, one timer, and a source that is read ahead, but not far."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters.testing import ScriptedAgent, collect, pause
from agui_pipeline.middleware import Pipeline, Source
from agui_pipeline.translators import AnyEvent, Event, TimedTranslator
from tests.clocks import BACKENDS, spend
from tests.middleware.kit import (
    CHAINS,
    HOLD,
    INPUT,
    Held,
    OopsError,
    Prompt,
    Same,
    Stage,
    custom,
    customs,
    in_asyncio,
    passing,
    tidy,
    values,
)

pytestmark = pytest.mark.anyio

AHEAD = 64
"""How far a pump reads ahead of the reader (enough for a burst, few enough to stop a source)."""


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


async def timed(pipeline: Pipeline, steps: float = 1) -> list[tuple[float, Any]]:
    """Read a run; return when each event came, counted from the start in units of `steps` seconds, and its value."""
    start = anyio.current_time()
    async with tidy():
        return [(round((anyio.current_time() - start) / steps, 6), event.value) async for event in pipeline(INPUT)]


@pytest.mark.parametrize(
    "chain",
    [
        [Stage(Held)],
        [Stage(Same), Stage(Held), Stage(Same)],
        [passing, Stage(Held)],
        [Stage(Held), passing],
        [passing, Stage(Held), passing, Stage(Same)],
    ],
)
async def test_what_is_held_goes_out_when_its_time_is_over_though_the_source_is_silent(chain: list[Any]) -> None:
    agent = ScriptedAgent([custom(1), pause(0.01), custom(2), pause(1), custom(3), pause(1)])
    assert await timed(Pipeline(agent, *chain)) == [(0.05, 1), (0.05, 2), (1.06, 3)]


async def test_holding_stages_add_up_fused_and_apart() -> None:
    agent = ScriptedAgent([custom(1), pause(0.01), custom(2), pause(1), custom(3), pause(1)])
    first, second = Stage(lambda: Held(0.05)), Stage(lambda: Held(0.02))
    expected = [(0.07, 1), (0.07, 2), (1.08, 3)]
    assert await timed(Pipeline(agent, first, second)) == expected
    assert await timed(Pipeline(agent, first, passing, second)) == expected
    assert await timed(Pipeline(Pipeline(agent, first), second)) == expected


async def test_the_earliest_deadline_of_a_fused_chain_counts() -> None:
    agent = ScriptedAgent([custom(1), pause(10)])
    for seconds in ((1, 2, 3), (3, 2, 1), (2, 3, 1)):
        assert await timed(Pipeline(agent, *[Stage(partial(Held, each)) for each in seconds])) == [(6, 1)]


async def test_the_end_of_the_source_does_not_wait_for_the_time_to_be_over() -> None:
    for chain in ([Stage(Held)], [Stage(Held), Stage(Held)], [Stage(Held), passing, Stage(Held)]):
        agent = ScriptedAgent([custom(1), pause(0.01), custom(2)])
        assert await timed(Pipeline(agent, *chain)) == [(0.01, 1), (0.01, 2)]


async def test_an_error_of_the_source_does_not_wait_for_the_time_to_be_over() -> None:
    agent = ScriptedAgent([custom(1), pause(0.01), OopsError()])
    start = anyio.current_time()
    result = await collect(Pipeline(agent, Stage(Held)), INPUT, catch=True)
    assert anyio.current_time() - start == pytest.approx(0.01)
    assert values(result.events) == [1]


async def test_a_stage_that_holds_nothing_costs_no_time() -> None:
    agent = ScriptedAgent([custom(1), pause(3), custom(2)])
    for chain in ([Stage(Prompt)], [passing, Stage(Prompt), passing], [Stage(Same)]):
        assert await timed(Pipeline(agent, *chain)) == [(0, 1), (3, 2)]


async def test_a_source_that_is_always_ready_does_not_starve_the_timer() -> None:
    """Its events come every 0.001 s, each of them before the timer could be looked at."""

    async def busy(_input: RunAgentInput) -> AsyncIterator[Any]:
        for number in range(200):
            await anyio.sleep(0.001)
            yield custom(number)

    came = await timed(Pipeline(busy, Stage(Held)))
    assert [value for _, value in came] == [*range(200)]
    assert all(0 <= time - 0.001 * (value + 1) <= HOLD + 1e-6 for time, value in came)


async def test_a_source_that_never_waits_does_not_starve_the_timer() -> None:
    """It computes for 0.001 s an event, and gives up the event loop only where it is too far ahead."""

    async def busy(_input: RunAgentInput) -> AsyncIterator[Any]:
        for number in range(1000):
            spend(0.001)
            yield custom(number)

    came = await timed(Pipeline(busy, Stage(Held)))
    assert [value for _, value in came] == [*range(1000)]
    assert max(time - 0.001 * (value + 1) for time, value in came) <= HOLD + 2 * AHEAD * 0.001


async def test_a_reader_that_is_always_behind_does_not_starve_the_timer() -> None:
    """There is always something to read, so the driver never waits; time passes while the reader works."""
    agent = ScriptedAgent(customs(300))
    got: list[float] = []
    async with tidy():
        async for event in Pipeline(agent, Stage(EveryTenth))(INPUT):
            got.append(event.value)
            await anyio.sleep(0.01)
    assert got == [*range(10, 301, 10)]


class EveryTenth(Prompt):
    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:  # noqa: ARG002
        return (event,) if event.value % 10 == 0 else ()


class Notes(TimedTranslator):
    """Holds the last event, and notes at which times it was asked for what."""

    def __init__(self, calls: list[tuple[str, float]], seconds: float) -> None:
        self._calls = calls
        self._seconds = seconds
        self._held: list[AnyEvent] = []
        self._until: float | None = None

    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:
        self._calls.append(("feed", now))
        out, self._held = self._held, [event]
        self._until = now + self._seconds
        return out

    def deadline(self) -> float | None:
        return self._until

    def expire(self, now: float) -> Iterable[AnyEvent]:
        self._calls.append(("expire", now))
        self._until = None
        out, self._held = self._held, []
        return out


async def test_times_are_those_of_the_loops_clock_and_expire_is_never_early() -> None:
    calls: list[tuple[str, float]] = []
    start = anyio.current_time()
    # The deadline moves with each event: timers that were set for an earlier one fire in vain.
    agent = ScriptedAgent([item for n in range(5) for item in (custom(n), pause(0.6))] + [pause(10)])
    assert [value for _, value in await timed(Pipeline(agent, Stage(lambda: Notes(calls, 1))))] == [0, 1, 2, 3, 4]
    assert [(what, round(when - start, 6)) for what, when in calls] == [
        ("feed", 0),
        ("feed", 0.6),
        ("feed", 1.2),
        ("feed", 1.8),
        ("feed", 2.4),
        ("expire", 3.4),
    ]


class Late(Notes):
    """Holds the first event long and the next ones for a short time: the deadline moves to an earlier time."""

    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:
        out = super().feed(event, now)
        self._seconds = 0.1
        return out


async def test_a_deadline_may_move_to_an_earlier_time() -> None:
    agent = ScriptedAgent([custom(1), pause(0.5), custom(2), pause(100)])
    assert await timed(Pipeline(agent, Stage(lambda: Late([], 10)))) == [(0.5, 1), (0.6, 2)]


async def test_one_timer_at_a_time() -> None:
    if not in_asyncio():
        pytest.skip("trio's deadlines belong to scopes, which are left before the next is entered")
    loop: Any = asyncio.get_running_loop()

    def timers(_input: RunAgentInput) -> Any:
        counts.append(len([timer for timer in loop._scheduled if not timer.cancelled()]))
        return custom(len(counts))

    counts: list[int] = []
    agent = ScriptedAgent([item for _ in range(50) for item in (pause(0), pause(0), timers)])
    async with tidy():
        await collect(Pipeline(agent, Stage(lambda: Held(10)), Stage(lambda: Held(20)), Stage(Held)), INPUT)
    assert set(counts) <= {0, 1}
    assert 1 in counts


async def test_no_timer_while_nothing_is_held() -> None:
    if not in_asyncio():
        pytest.skip("trio's deadlines belong to scopes, which are left before the next is entered")
    loop: Any = asyncio.get_running_loop()
    agent = ScriptedAgent([custom(1), pause(math.inf)])
    async with tidy(), Pipeline(agent, Stage(Held)).open(INPUT) as events:
        await anext(events)
        waits = asyncio.ensure_future(anext(events))
        await asyncio.sleep(HOLD)
        timers = [timer for timer in loop._scheduled if not timer.cancelled() and timer.when() < math.inf]
        assert timers == []  # but the agent's own, for its pause
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits


# Reading ahead.


@pytest.mark.parametrize("after", [[], [passing], [Stage(Same)], [passing, Stage(Same), passing]])
async def test_a_reader_that_stops_reading_stops_the_source(after: list[Any]) -> None:
    agent = ScriptedAgent(customs(1000))
    async with tidy(), Pipeline(agent, Stage(Prompt), *after).open(INPUT) as events:
        for read in range(1, 300):
            await anext(events)
            await anyio.sleep(1)
            assert read <= len(agent.sent) <= read + AHEAD
        assert len(agent.sent) > 300  # it does read ahead


UNTIMED = {name: chain for name, chain in CHAINS.items() if "timed" not in name and "pump" not in name}


@pytest.mark.parametrize("chain", UNTIMED.values(), ids=UNTIMED.keys())
async def test_a_chain_that_holds_nothing_for_a_time_reads_nothing_ahead(chain: Callable[[Any], Pipeline]) -> None:
    agent = ScriptedAgent(customs(10))
    async with tidy(), chain(agent).open(INPUT) as events:
        for read in range(1, 10):
            assert (await anext(events)).value == read
            await anyio.sleep(1)
            assert len(agent.sent) == read


async def test_the_source_runs_in_one_task_from_its_opening_to_its_end() -> None:
    tasks: list[int] = []

    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        try:
            for event in customs(3):
                tasks.append(anyio.get_current_task().id)
                yield event
                await anyio.sleep(1)
        finally:
            tasks.append(anyio.get_current_task().id)

    for name, chain in CHAINS.items():
        tasks.clear()
        async with tidy(), chain(source).open(INPUT) as events:
            await anext(events)
            await anext(events)
        assert len(set(tasks)) == 1, name
        tasks.clear()
        await collect(chain(source), INPUT)
        assert len(set(tasks)) == 1, name


async def test_a_scope_around_the_sources_events_survives_a_pump() -> None:
    """Its task is its own, so a scope that it holds over a `yield` ends nobody else's."""

    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        with anyio.move_on_after(1):
            for event in customs(100):
                yield event
                await anyio.sleep(0.3)
        yield custom("over")

    result = await collect(Pipeline(source, Stage(Prompt)), INPUT)
    assert values(result.events) == [1, 2, 3, 4, "over"]


async def test_a_function_stage_behind_a_pump_is_not_read_by_it() -> None:
    seen: list[Any] = []

    async def notes(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input):
            seen.append(event.value)
            yield event

    agent = ScriptedAgent(customs(20))
    async with tidy(), Pipeline(agent, Stage(Prompt), notes).open(INPUT) as events:
        await anext(events)
        await anyio.sleep(1)
        assert seen == [1]
        assert len(agent.sent) == 20
