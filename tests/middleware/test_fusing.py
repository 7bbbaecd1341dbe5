"""Fusing is an optimisation: neighbours that share a driver give what they give when each has its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import anyio
import pytest
import trio
import trio.testing
from ag_ui.core import RunAgentInput
from hypothesis import assume, given
from hypothesis import strategies as st

from agui_pipeline.adapters.testing import Collected, ScriptedAgent, collect, pause
from agui_pipeline.middleware import Pipeline, TranslatorMiddleware
from agui_pipeline.middleware._segment import Segment
from agui_pipeline.translators import AnyEvent, Event, TimedTranslator, Translator, replace
from tests.clocks import JumpingLoop
from tests.middleware.kit import INPUT, Aside, Held, Kept, OopsError, Prompt, Same, Stage, customs, passing, values


@dataclass(frozen=True)
class Oddity:
    """What a translator of the family does."""

    name: str
    times: int = 1
    holds: int = 0
    hold_seconds: float | None = None
    raises_at: int | None = None
    at_end: str = "gives"
    on_error: str = "gives"


class _Odd:
    def __init__(self, oddity: Oddity) -> None:
        self._oddity = oddity
        self._held: list[AnyEvent] = []
        self._count = 0

    def _hold(self, event: Event) -> None:
        oddity = self._oddity
        self._count += 1
        if self._count == oddity.raises_at:
            raise OopsError(f"{oddity.name} at {self._count}")
        self._held += [replace(event, value=f"{event.value}{oddity.name}")] * oddity.times

    def _let_go(self, count: int) -> list[AnyEvent]:
        count = max(count, 0)
        out, self._held = self._held[:count], self._held[count:]
        return out

    def flush(self) -> Iterable[AnyEvent]:
        yield from self._let_go(1)  # what a generator gave before it raised counts
        if self._oddity.at_end == "raises":
            raise OopsError(f"{self._oddity.name} at the end")
        if self._oddity.at_end == "gives":
            yield from self._let_go(len(self._held))

    def fail(self, exc: BaseException) -> tuple[Sequence[AnyEvent], BaseException | None]:
        held = self._let_go(len(self._held))
        match self._oddity.on_error:
            case "swallows":
                return held, None
            case "replaces":
                return held, OopsError(f"{self._oddity.name} for {exc}")
            case "raises":
                raise OopsError(f"{self._oddity.name} failed on {exc}")
            case _:
                return held, exc


class Odd(_Odd, Translator):
    def feed(self, event: Event) -> Iterable[AnyEvent]:
        self._hold(event)
        return self._let_go(len(self._held) - self._oddity.holds)


class OddTimed(_Odd, TimedTranslator):
    """Holds for a time, instead."""

    _until: float | None = None

    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:
        out = [] if self._until is None or now < self._until else self.expire(now)
        self._hold(event)
        if self._until is None and self._held:
            assert self._oddity.hold_seconds is not None
            self._until = now + self._oddity.hold_seconds
        return out

    def deadline(self) -> float | None:
        return self._until

    def expire(self, now: float) -> list[AnyEvent]:  # noqa: ARG002
        self._until = None
        return self._let_go(len(self._held))


def stage(oddity: Oddity) -> Stage:
    return Stage(partial(Odd if oddity.hold_seconds is None else OddTimed, oddity))


def oddities(*, timed: bool) -> st.SearchStrategy[list[Oddity]]:
    one = st.builds(
        Oddity,
        name=st.just("?"),
        times=st.sampled_from([1, 1, 1, 0, 2]),
        holds=st.integers(0, 3),
        # No two sums of these are equal, so no two things happen at one moment.
        hold_seconds=st.sampled_from([None, 0.05, 0.0307, 0.1103] if timed else [None]),
        raises_at=st.sampled_from([None, None, None, 1, 2, 5]),
        at_end=st.sampled_from(["gives", "gives", "keeps", "raises"]),
        on_error=st.sampled_from(["gives", "swallows", "replaces", "raises"]),
    )
    return st.lists(one, min_size=1, max_size=4).map(
        lambda chain: [Oddity(**{**vars(oddity), "name": name}) for oddity, name in zip(chain, "abcd", strict=False)]
    )


def scripts(*, timed: bool) -> st.SearchStrategy[list[Any]]:
    waits = st.sampled_from([0, 0.011, 0.2]) if timed else st.just(0)
    return st.builds(
        lambda gaps, fails: [
            *(item for gap, event in zip(gaps, customs(len(gaps)), strict=True) for item in (pause(gap), event)),
            *([OopsError("source")] if fails else []),
        ],
        st.lists(waits, max_size=8),
        st.booleans(),
    )


def outcome(result: Collected) -> tuple[list[Any], str]:
    return values(result.events), repr(result.exception)


def asyncio_run(pipeline: Pipeline, script: list[Any]) -> tuple[list[Any], str]:
    agent = ScriptedAgent(script)
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        result = runner.run(collect(pipeline.around(agent), INPUT, catch=True))
    assert agent.running == 0
    return outcome(result)


def trio_run(pipeline: Pipeline, script: list[Any]) -> tuple[list[Any], str]:
    agent = ScriptedAgent(script)
    clock = trio.testing.MockClock(autojump_threshold=0)
    result = trio.run(partial(collect, pipeline.around(agent), INPUT, catch=True), clock=clock)
    assert agent.running == 0
    return outcome(result)


def arrangements(chain: list[Oddity]) -> list[Pipeline]:
    """Return the same stages: all fused, all apart, in pairs."""
    stages: list[TranslatorMiddleware] = [stage(oddity) for oddity in chain]
    apart = [item for each in stages for item in (each, passing)]
    pairs = [item for n, each in enumerate(stages) for item in ((each, passing) if n % 2 else (each,))]
    return [Pipeline([], *stages), Pipeline([], *apart), Pipeline([], passing, *pairs)]


@given(chain=oddities(timed=False), script=scripts(timed=False))
def test_fused_and_apart_agree(chain: list[Oddity], script: list[Any]) -> None:
    results = [asyncio_run(pipeline, script) for pipeline in arrangements(chain)]
    # With a pump before them, or on the other event loop, too.
    results.append(asyncio_run(Pipeline([], Stage(Prompt), *map(stage, chain), Stage(Prompt)), script))
    results.append(trio_run(arrangements(chain)[0], script))
    assert all(first == second for first, second in pairwise(results)), results


@given(chain=oddities(timed=True), script=scripts(timed=True))
def test_fused_and_apart_agree_with_timers(chain: list[Oddity], script: list[Any]) -> None:
    # A stage that fails ends those before it where they are, and whether one of them has ended by itself by then, and
    # raised, depends on how far a pump has read ahead.
    last = max((place for place, oddity in enumerate(chain) if oddity.raises_at is not None), default=0)
    assume(all(oddity.at_end != "raises" for oddity in chain[:last]))
    results = [run(pipeline, script) for pipeline in arrangements(chain) for run in (asyncio_run, trio_run)]
    assert all(first == second for first, second in pairwise(results)), results


@given(
    chain=st.lists(st.sampled_from([Same, Kept, Held, Prompt, Aside, passing]), max_size=6),
    count=st.integers(0, 150),
    fails=st.booleans(),
)
def test_stages_that_only_hold_lose_and_reorder_nothing(chain: list[Any], count: int, *, fails: bool) -> None:
    stages = [item if item is passing else Aside() if item is Aside else Stage(item) for item in chain]
    script = [*customs(count), *([OopsError("source")] if fails else [])]
    expected = ([*range(1, count + 1)], "OopsError('source')" if fails else "None")
    assert asyncio_run(Pipeline([], *stages), script) == expected


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_mixed_chain_is_the_same_on_each_event_loop(backend: str) -> None:
    pipeline = Pipeline(customs(100), Stage(Held), passing, Stage(Kept), Stage(Held))
    result = anyio.run(collect, pipeline, INPUT, backend=backend)
    assert values(result.events) == [*range(1, 101)]


# Async stages that stand aside.


@pytest.mark.anyio
async def test_neighbours_of_a_stage_that_stands_aside_share_one_driver() -> None:
    seen: list[RunAgentInput] = []

    def stand_aside(input: RunAgentInput) -> RunAgentInput:
        seen.append(input)
        return input.model_copy(update={"run_id": "changed"})

    aside = Aside(stand_aside)
    prepared = Stage(Same, lambda run: run.model_copy(update={"thread_id": "prepared"}))
    given: list[tuple[str, str]] = []

    async def agent(input: RunAgentInput) -> Any:
        given.append((input.thread_id, input.run_id))
        yield customs(1)[0]

    pipeline = Pipeline(agent, Stage(Same), aside, prepared)
    segment = Segment()
    events, _ = pipeline.start(INPUT, segment)
    assert [event.value async for event in events] == [1]
    assert len(segment._places) == 2  # the driver and the source
    await segment.close()
    # It is asked with the input as the stages behind it changed it, and those before it get what it hands on.
    assert [(input.thread_id, input.run_id) for input in seen] == [("prepared", "run")]
    assert (given, aside.calls) == ([("prepared", "changed")], 0)


@pytest.mark.anyio
async def test_a_stage_that_does_not_stand_aside_is_called() -> None:
    aside = Aside(lambda _input: None)
    result = await collect(Pipeline(customs(3), Stage(Same), aside, Stage(Same)), INPUT)
    assert (values(result.events), aside.calls) == ([1, 2, 3], 1)


@pytest.mark.anyio
async def test_it_may_stand_aside_in_one_run_and_not_in_another() -> None:
    aside = Aside(lambda run: None if run.run_id == "needed" else run)
    pipeline = Pipeline(customs(3), Stage(Kept), aside, Stage(Held))
    for run_id, calls in (("run", 0), ("needed", 1), ("run", 1)):
        result = await collect(pipeline, INPUT.model_copy(update={"run_id": run_id}))
        assert (values(result.events), aside.calls) == ([1, 2, 3], calls)


@pytest.mark.anyio
@pytest.mark.parametrize("after", [(), (Stage(Same),), (passing,), (Stage(Held), passing)])
async def test_what_it_raises_when_asked_is_to_those_behind_it_a_source_that_raises(after: Any) -> None:
    def fails(_input: RunAgentInput) -> None:
        raise OopsError("asked")

    for aside, error in ((Aside(fails), OopsError), (Aside(lambda _: "run"), TypeError)):
        agent = ScriptedAgent(customs(1))
        result = await collect(Pipeline(agent, Stage(Same), aside, *after), INPUT, catch=True)
        assert isinstance(result.exception, error)
        assert (result.events, aside.calls, agent.running) == ([], 0, 0)
    swallows = stage(Oddity(name="a", on_error="swallows"))
    result = await collect(Pipeline(customs(1), Aside(fails), swallows), INPUT, catch=True)
    assert (result.events, result.exception) == ([], None)
