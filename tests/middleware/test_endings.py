"""However a run ends, nothing of it stays behind: chains of every kind, ended at every event, in every way."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters.testing import Pause, ScriptedAgent, collect, pause
from agui_pipeline.middleware import Middleware, Pipeline, Source
from agui_pipeline.translators import Event
from tests.clocks import BACKENDS, JumpingLoop
from tests.middleware.kit import (
    CHAINS,
    HOLD,
    INPUT,
    Held,
    Kept,
    OopsError,
    Raises,
    Same,
    Stage,
    StopError,
    custom,
    customs,
    passing,
    tidy,
    values,
)

pytestmark = pytest.mark.anyio

COUNT = 3
POSITIONS = range(COUNT + 1)
LONG = 100.0
"""Seconds that no chain here holds anything for."""

PUMPED = {name for name in CHAINS if "timed" in name or "pump" in name}

Chain = Callable[[Any], Pipeline]

each_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


def on_asyncio_only(test: Any) -> Any:
    """Cancelling a task natively is asyncio's."""
    backend = pytest.param(BACKENDS["asyncio"](), id="asyncio")
    return pytest.mark.usefixtures("anyio_backend")(pytest.mark.parametrize("anyio_backend", [backend])(test))


def waiting(position: int) -> list[Any]:
    """A script that falls silent after some events."""
    return [*customs(position), pause(math.inf)]


def ready(position: int) -> list[Any]:
    """A script with more events than a pump reads ahead."""
    return customs(position + 200)


async def read_all(events: AsyncIterator[Any], into: list[Any]) -> None:
    async for event in events:
        into.append(event)  # noqa: PERF401 - what was read before an exception counts, too


SCRIPTS = [(script, position) for script in (waiting, ready) for position in POSITIONS]


# The reader leaves.


@each_chain
async def test_break_closes_the_source(chain: Chain) -> None:
    for script, position in SCRIPTS:
        agent = ScriptedAgent(script(position))
        got: list[Any] = []
        async with tidy():
            async with chain(agent).open(INPUT) as events:
                while len(got) < position:
                    got.append(await anext(events))
            assert agent.running == 0
        assert values(got) == [*range(1, position + 1)]
        assert agent.started == (position > 0)


async def read_and_raise(pipeline: Pipeline, position: int, error: Exception) -> None:
    async with pipeline.open(INPUT) as events:
        for _ in range(position):
            await anext(events)
        raise error


@each_chain
async def test_an_error_of_the_reader_leaves_as_itself(chain: Chain) -> None:
    for script, position in SCRIPTS:
        agent = ScriptedAgent(script(position))
        error = OopsError("of the reader")
        async with tidy():
            with pytest.raises(OopsError) as caught:
                await read_and_raise(chain(agent), position, error)
            assert caught.value is error
            assert agent.running == 0


@each_chain
async def test_a_cancelled_scope_ends_a_wait_for_the_source(chain: Chain) -> None:
    for position in POSITIONS:
        agent = ScriptedAgent(waiting(position))
        got: list[Any] = []
        async with tidy():
            with anyio.move_on_after(LONG) as scope:
                async with chain(agent).open(INPUT) as events:
                    await read_all(events, got)
            assert scope.cancelled_caught
            assert agent.running == 0
        assert values(got) == [*range(1, position + 1)]
        assert agent.started == 1


@each_chain
async def test_a_cancelled_scope_ends_the_readers_own_wait(chain: Chain) -> None:
    for script, position in SCRIPTS:
        agent = ScriptedAgent(script(position))
        async with tidy():
            with anyio.move_on_after(LONG) as scope:
                async with chain(agent).open(INPUT) as events:
                    for _ in range(position):
                        await anext(events)
                    await anyio.sleep_forever()
            assert scope.cancelled_caught
            assert agent.running == 0


@each_chain
@on_asyncio_only
async def test_a_cancelled_task_ends_promptly(chain: Chain) -> None:
    for script, position in SCRIPTS:
        agent = ScriptedAgent([pause(1), *script(position)])
        got: list[Any] = []

        async def read(agent: ScriptedAgent = agent, got: list[Any] = got, position: int = position) -> None:
            async with chain(agent).open(INPUT) as events:
                async for event in events:
                    got.append(event)
                    if len(got) == position:
                        await asyncio.sleep(1000)

        async with tidy():
            task = asyncio.create_task(read())
            await asyncio.sleep(LONG if position else 0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert agent.running == 0
        assert values(got) == [*range(1, position + 1)]


@each_chain
async def test_nothing_is_delivered_after_a_cancellation(chain: Chain) -> None:
    for position in POSITIONS:
        agent = ScriptedAgent([*customs(position), pause(LONG), *customs(COUNT)])
        got: list[Any] = []
        async with tidy():
            with anyio.move_on_after(LONG / 2):
                await read_all(chain(agent)(INPUT), got)
            assert agent.running == 0
            await anyio.sleep(LONG)
        assert len(got) == position


async def test_what_is_held_is_not_delivered_after_a_cancellation() -> None:
    agent = ScriptedAgent(waiting(COUNT))
    got: list[Any] = []
    async with tidy():
        with anyio.move_on_after(HOLD / 2):
            await read_all(Pipeline(agent, Stage(Held))(INPUT), got)
    assert got == []
    assert len(agent.sent) == COUNT


@each_chain
async def test_a_run_that_nobody_reads_opens_nothing(chain: Chain) -> None:
    agent = ScriptedAgent(ready(0))
    async with tidy():
        run = chain(agent)(INPUT)
        await run.aclose()
        async with chain(agent).open(INPUT):
            pass
        assert (agent.inputs, agent.started) == ([], 0)


@each_chain
@on_asyncio_only
async def test_a_dropped_run_ends_its_source(chain: Chain) -> None:
    for script in (waiting, ready):
        agent = ScriptedAgent(script(1))
        async with tidy():
            run = chain(agent)(INPUT)
            await anext(run)
            del run
            gc.collect(1)
            await asyncio.sleep(1)
            assert (agent.started, agent.running) == (1, 0)


@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.usefixtures("anyio_backend")
@each_chain
async def test_a_dropped_run_ends_its_source_with_trios_own_warning(chain: Chain) -> None:
    agent = ScriptedAgent(ready(1))
    runs = [chain(agent)(INPUT)]
    await anext(runs[0])

    async def drop() -> None:
        runs.clear()
        gc.collect(1)
        await anyio.sleep(0.01)

    with pytest.warns(ResourceWarning, match="garbage collected before it had been exhausted"):
        await drop()
    assert (agent.started, agent.running) == (1, 0)


@pytest.mark.parametrize("name", CHAINS)
@on_asyncio_only
async def test_a_second_cancellation_does_not_leave_the_source_behind(name: str) -> None:
    """In a chain with a pump it does not even cut the source's cleanup short."""
    cleaned = False

    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        nonlocal cleaned
        try:
            yield custom(1)
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(10)
            cleaned = True

    async with tidy():
        task = asyncio.create_task(collect(CHAINS[name](source), INPUT))
        await asyncio.sleep(LONG)
        task.cancel()
        await asyncio.sleep(1)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert cleaned == (name in PUMPED)


# The source ends, in its own way.


@each_chain
@pytest.mark.parametrize("before", [(), (pause(0),), (pause(1),)], ids=["at once", "a turn later", "a second later"])
async def test_an_error_of_the_source_leaves_as_itself_after_what_is_held(
    chain: Chain, before: tuple[Any, ...]
) -> None:
    for position in POSITIONS:
        error = OopsError("of the source")
        agent = ScriptedAgent([*customs(position), *before, error])
        async with tidy():
            result = await collect(chain(agent), INPUT, catch=True)
            assert result.exception is error
            assert values(result.events) == [*range(1, position + 1)]
            assert agent.running == 0


@each_chain
async def test_an_exception_that_is_no_error_leaves_as_itself(chain: Chain) -> None:
    for position in POSITIONS:
        error = StopError()
        agent = ScriptedAgent([*customs(position), pause(1), error])
        async with tidy():
            with pytest.raises(StopError) as caught:
                await collect(chain(agent), INPUT)
            assert caught.value is error
            assert agent.running == 0


@each_chain
@on_asyncio_only
async def test_a_source_that_cancels_itself_does_not_read_as_a_clean_end(chain: Chain) -> None:
    for position in POSITIONS:
        error = asyncio.CancelledError("of the source")
        agent = ScriptedAgent([*customs(position), error])
        got: list[Any] = []
        async with tidy():
            with pytest.raises(asyncio.CancelledError) as caught:
                await read_all(chain(agent)(INPUT), got)
            assert caught.value is error
            assert agent.running == 0
        assert values(got) == [*range(1, position + 1)]


@each_chain
async def test_a_cancel_scope_inside_the_source_is_its_own_affair(chain: Chain) -> None:
    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        yield custom(1)
        with anyio.move_on_after(1):
            await anyio.sleep_forever()
        yield custom(2)
        with contextlib.suppress(TimeoutError), anyio.fail_after(1):
            await anyio.sleep_forever()
        yield custom(3)

    async with tidy():
        result = await collect(chain(source), INPUT)
    assert values(result.events) == [1, 2, 3]


@each_chain
@on_asyncio_only
async def test_a_source_that_swallows_a_cancellation_is_stopped_at_its_next_event(chain: Chain) -> None:
    closed = False
    got: list[Any] = []

    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        nonlocal closed
        try:
            yield custom(1)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)
            for event in customs(1000):
                yield event
        finally:
            closed = True

    async with tidy():
        async with chain(source).open(INPUT) as events:
            got.append(await anext(events))
        assert closed
    assert values(got) == [1]


def cleaning(script: list[Any], cleanup: Callable[[], Awaitable[None]]) -> Source:
    """Return a source that yields some events, falls silent, and has something to do at its end."""

    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        try:
            for item in script:
                if not isinstance(item, Pause):
                    yield item
            await anyio.sleep_forever()
        finally:
            await cleanup()

    return source


async def leave(events: AsyncIterator[Any], way: str) -> None:
    """Read an event, then leave by one of the ways."""
    await anext(events)
    if way == "error":
        raise OopsError("of the reader")
    if way == "cancel":
        await anyio.sleep_forever()


each_way = pytest.mark.parametrize("way", ["break", "error", "cancel"])


@each_chain
@each_way
async def test_the_sources_cleanup_has_run_before_open_exits(chain: Chain, way: str) -> None:
    """Also where it awaits; shielded, since on trio and in anyio's scopes a cancellation goes on."""
    done: list[str] = []

    async def cleanup() -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(10)
            done.append(way)

    for script in (waiting, ready):
        async with tidy():
            with contextlib.suppress(OopsError), anyio.move_on_after(LONG):
                async with chain(cleaning(script(COUNT), cleanup)).open(INPUT) as events:
                    await leave(events, way)
            assert done.pop() == way


@each_chain
@each_way
@on_asyncio_only
async def test_a_plain_finally_may_await_on_asyncio(chain: Chain, way: str) -> None:
    done: list[str] = []

    async def cleanup() -> None:
        await asyncio.sleep(10)
        done.append(way)

    async def read(source: Source) -> None:
        async with chain(source).open(INPUT) as events:
            await leave(events, way)

    for script in (waiting, ready):
        async with tidy():
            task = asyncio.create_task(read(cleaning(script(COUNT), cleanup)))
            await asyncio.sleep(LONG)
            task.cancel()
            with contextlib.suppress(OopsError, asyncio.CancelledError):
                await task
            assert done.pop() == way


@each_chain
@each_way
async def test_an_error_of_the_sources_cleanup_leaves_as_itself(chain: Chain, way: str) -> None:
    """It takes the place of what the run is left by, as in any `finally`."""
    error = OopsError("of the cleanup")

    async def cleanup() -> None:
        raise error

    for script in (waiting, ready):
        async with tidy():
            with pytest.raises(OopsError) as caught, anyio.move_on_after(LONG):
                async with chain(cleaning(script(COUNT), cleanup)).open(INPUT) as events:
                    await leave(events, way)
            assert caught.value is error


@each_chain
async def test_an_error_of_the_sources_cleanup_delivers_nothing_after_a_cancellation(chain: Chain) -> None:
    got: list[Any] = []

    async def cleanup() -> None:
        raise OopsError

    async with tidy():
        with pytest.raises(OopsError), anyio.move_on_after(HOLD / 2):
            await read_all(chain(cleaning(customs(COUNT), cleanup))(INPUT), got)
    assert len(got) in (0, COUNT)  # none where they were held


async def test_an_error_of_the_sources_cleanup_does_not_let_an_untimed_stage_deliver_after_a_cancellation() -> None:
    got: list[Any] = []

    async def cleanup() -> None:
        raise OopsError

    async with tidy():
        with pytest.raises(OopsError), anyio.move_on_after(1):
            await read_all(Pipeline(cleaning(customs(COUNT), cleanup), Stage(Kept))(INPUT), got)
    assert got == []


async def test_a_task_group_in_the_source_ends_with_the_run() -> None:
    """On trio such a source gives groups of cancellations and errors; a pump must not let them end the event loop."""

    async def fails_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise OopsError

    async def source(_input: RunAgentInput) -> AsyncIterator[Any]:
        async with anyio.create_task_group() as group:
            group.start_soon(fails_when_cancelled)
            yield custom(1)
            await anyio.sleep_forever()

    async def read() -> None:
        async with Pipeline(source, Stage(Held)).open(INPUT) as events:
            await anext(events)

    async with tidy():
        with pytest.raises(BaseExceptionGroup) as caught:
            await read()
    assert caught.group_contains(OopsError)


# A stage ends the run.


def raising_stage(error: Exception, position: int) -> Stage:
    """Return a stage that raises at an event; 0 is the end of the source."""
    return Stage(lambda: Raises(error, position or None))


def raising_function(error: Exception, position: int) -> Middleware:
    async def raises(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        left = position
        async for event in next(input):
            left -= 1
            if left == 0:
                raise error
            yield event
        raise error

    return raises


@pytest.mark.parametrize(
    "chain",
    [
        Pipeline,
        lambda source, stage: Pipeline(source, stage, Stage(Held)),
        lambda source, stage: Pipeline(source, stage, Stage(Kept)),
        lambda source, stage: Pipeline(source, Stage(Same), stage, Stage(Same)),
        lambda source, stage: Pipeline(source, passing, stage, passing, Stage(Held)),
        lambda source, stage: Pipeline(source, passing, stage, Stage(Kept), passing, Stage(Held)),
        lambda source, stage: Pipeline(Pipeline(source, stage, Stage(Held)), passing, Stage(Kept)),
    ],
    ids=["alone", "held", "kept", "fused", "pumped", "kept and held", "nested"],
)
@pytest.mark.parametrize("sans_io", [True, False], ids=["sans-IO", "function"])
@pytest.mark.parametrize("silent", [True, False], ids=["silent source", "ready source"])
async def test_an_error_of_a_stage_is_as_one_of_the_source_to_those_after_it(
    chain: Callable[[Any, Any], Pipeline], *, sans_io: bool, silent: bool
) -> None:
    """What came before it is delivered, then it leaves as itself; position 0 is an error at the end of the source."""
    for position in POSITIONS:
        error = OopsError("of a stage")
        agent = ScriptedAgent([*customs(position), pause(math.inf)] if silent and position else customs(COUNT))

        stage = raising_stage(error, position) if sans_io else raising_function(error, position)
        async with tidy():
            result = await collect(chain(agent, stage), INPUT, catch=True)
            assert result.exception is error
            assert values(result.events) == [*range(1, position or COUNT + 1)]
            assert agent.running == 0


async def test_a_stage_before_the_one_that_raises_is_ended_and_not_flushed() -> None:
    """It may hold events, but they belong behind the error."""
    for position in POSITIONS:
        error = OopsError()
        agent = ScriptedAgent(customs(COUNT))
        raising = raising_stage(error, position)
        async with tidy():
            result = await collect(Pipeline(agent, Stage(Kept), raising), INPUT, catch=True)
        assert result.exception is error
        assert values(result.events) == [*range(1, position or COUNT + 1)]


# The event loop ends, and what else a pump must hand on.


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("script", [waiting, ready])
def test_a_run_left_open_when_asyncio_run_returns_is_closed(
    name: str, script: Callable[[int], list[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    agent = ScriptedAgent([*script(COUNT), pause(math.inf)])

    async def read() -> None:
        async with CHAINS[name](agent).open(INPUT) as events:
            await leave(events, "cancel")

    async def main() -> None:
        tasks.append(asyncio.create_task(read()))
        await asyncio.sleep(LONG)
        assert agent.running == 1

    tasks: list[asyncio.Task[None]] = []
    with caplog.at_level(logging.DEBUG, "asyncio"), asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(main())
    gc.collect(1)
    assert agent.running == 0
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("name", CHAINS)
def test_a_run_that_no_task_reads_when_asyncio_run_returns_is_closed(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = ScriptedAgent(ready(COUNT))
    runs: list[Any] = []

    async def main() -> None:
        runs.append(CHAINS[name](agent)(INPUT))
        await anext(runs[0])

    with caplog.at_level(logging.DEBUG, "asyncio"), asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(main())
    gc.collect(1)
    assert agent.running == 0
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


variable = contextvars.ContextVar("variable", default="unset")


@each_chain
async def test_the_source_sees_the_readers_context_variables(chain: Chain) -> None:
    agent = ScriptedAgent([lambda _input: custom(variable.get())])
    token = variable.set("of the reader")
    try:
        async with tidy():
            result = await collect(chain(agent), INPUT)
    finally:
        variable.reset(token)
    assert values(result.events) == ["of the reader"]


@each_chain
async def test_runs_that_overlap_are_ended_apart(chain: Chain) -> None:
    agent = ScriptedAgent(waiting(COUNT))
    pipeline = chain(agent)
    async with tidy():
        async with pipeline.open(INPUT) as first:
            await anext(first)
            async with pipeline.open(INPUT) as second:
                await anext(second)
                assert agent.running == 2
            assert agent.running == 1
            assert (await anext(first)).value == 2
        assert agent.running == 0
