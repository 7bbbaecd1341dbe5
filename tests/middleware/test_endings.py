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

from agui_pipeline.adapters.testing import ScriptedAgent, collect, pause
from agui_pipeline.middleware import Pipeline, Source
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
    in_asyncio,
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


@pytest.fixture
def asyncio_only(anyio_backend: Any) -> None:
    if anyio_backend[0] != "asyncio":
        pytest.skip("cancelling a task natively is asyncio's")


def waiting(position: int) -> list[Any]:
    """A script that falls silent after some events."""
    return [*customs(position), pause(math.inf)]


def ready(position: int) -> list[Any]:
    """A script with more events than a pump reads ahead."""
    return customs(position + 100)


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


@each_chain
async def test_an_error_of_the_reader_leaves_as_itself(chain: Chain) -> None:
    for script, position in SCRIPTS:
        agent = ScriptedAgent(script(position))
        error = OopsError("of the reader")
        async with tidy():
            with pytest.raises(OopsError) as caught:
                async with chain(agent).open(INPUT) as events:
                    for _ in range(position):
                        await anext(events)
                    raise error
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
                    async for event in events:
                        got.append(event)
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
@pytest.mark.usefixtures("asyncio_only")
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
                async for event in chain(agent)(INPUT):
                    got.append(event)
            assert agent.running == 0
            await anyio.sleep(LONG)
        assert len(got) == position


async def test_what_is_held_is_not_delivered_after_a_cancellation() -> None:
    agent = ScriptedAgent(waiting(COUNT))
    got: list[Any] = []
    async with tidy():
        with anyio.move_on_after(HOLD / 2):
            async for event in Pipeline(agent, Stage(Held))(INPUT):
                got.append(event)
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
@pytest.mark.usefixtures("asyncio_only")
async def test_a_dropped_run_ends_its_source(chain: Chain) -> None:
    for script in (waiting, ready):
        agent = ScriptedAgent(script(1))
        async with tidy():
            run = chain(agent)(INPUT)
            await anext(run)
            del run
            gc.collect()
            await asyncio.sleep(1)
            assert (agent.started, agent.running) == (1, 0)


@pytest.mark.parametrize("anyio_backend", ["trio"])
@each_chain
async def test_a_dropped_run_ends_its_source_with_trios_own_warning(chain: Chain, anyio_backend: str) -> None:
    agent = ScriptedAgent(ready(1))
    run = chain(agent)(INPUT)
    await anext(run)
    with pytest.warns(ResourceWarning, match="garbage collected before it had been exhausted"):
        del run
        gc.collect()
        await anyio.sleep(0.01)
    assert (agent.started, agent.running) == (1, 0)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.usefixtures("asyncio_only")
async def test_a_second_cancellation_does_not_leave_the_source_behind(name: str) -> None:
    """In a chain with a pump it does not even cut the source's cleanup short."""
    cleaned = False

    async def source(input: RunAgentInput) -> AsyncIterator[Any]:
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
@pytest.mark.usefixtures("asyncio_only")
async def test_a_source_that_cancels_itself_does_not_read_as_a_clean_end(chain: Chain) -> None:
    for position in POSITIONS:
        error = asyncio.CancelledError("of the source")
        agent = ScriptedAgent([*customs(position), error])
        got: list[Any] = []
        async with tidy():
            with pytest.raises(asyncio.CancelledError) as caught:
                async for event in chain(agent)(INPUT):
                    got.append(event)
            assert caught.value is error
            assert agent.running == 0
        assert values(got) == [*range(1, position + 1)]


@each_chain
async def test_a_cancel_scope_inside_the_source_is_its_own_affair(chain: Chain) -> None:
    async def source(input: RunAgentInput) -> AsyncIterator[Any]:
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
@pytest.mark.usefixtures("asyncio_only")
async def test_a_source_that_swallows_a_cancellation_is_stopped_at_its_next_event(chain: Chain) -> None:
    closed = False
    got: list[Any] = []

    async def source(input: RunAgentInput) -> AsyncIterator[Any]:
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


@each_chain
@pytest.mark.parametrize("way", ["break", "error", "cancel"])
async def test_the_sources_cleanup_has_run_before_open_exits(chain: Chain, way: str) -> None:
    """Also where it awaits; shielded on trio, whose cancellations go on until their scope is left."""
    for script in (waiting, ready):
        agent = ScriptedAgent(script(COUNT))
        cleaned: list[str] = []

        async def source(input: RunAgentInput) -> AsyncIterator[Any]:
            async with contextlib.aclosing(agent(input)) as events:
                try:
                    async for event in events:
                        yield event
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.sleep(10)
                        cleaned.append(way)

        async with tidy():
            with contextlib.suppress(OopsError), anyio.move_on_after(LONG):
                async with chain(source).open(INPUT) as events:
                    await anext(events)
                    if way == "error":
                        raise OopsError
                    if way == "cancel":
                        await anyio.sleep_forever()
            assert cleaned == [way]
            assert agent.running == 0


@each_chain
@pytest.mark.parametrize("way", ["break", "error", "cancel"])
@pytest.mark.usefixtures("asyncio_only")
async def test_a_plain_finally_may_await_on_asyncio(chain: Chain, way: str) -> None:
    for script in (waiting, ready):
        agent = ScriptedAgent(script(COUNT))
        cleaned: list[str] = []

        async def source(input: RunAgentInput) -> AsyncIterator[Any]:
            try:
                async for event in agent(input):
                    yield event
            finally:
                await asyncio.sleep(10)
                cleaned.append(way)

        async def read() -> None:
            async with chain(source).open(INPUT) as events:
                await anext(events)
                if way == "error":
                    raise OopsError
                if way == "cancel":
                    await asyncio.sleep(1000)

        async with tidy():
            task = asyncio.create_task(read())
            await asyncio.sleep(LONG)
            task.cancel()
            with contextlib.suppress(OopsError, asyncio.CancelledError):
                await task
            assert cleaned == [way]


@each_chain
async def test_an_error_of_the_sources_cleanup_leaves_as_itself(chain: Chain) -> None:
    for script in (waiting, ready):
        agent = ScriptedAgent(script(COUNT))
        error = OopsError("of the cleanup")

        async def source(input: RunAgentInput) -> AsyncIterator[Any]:
            try:
                async for event in agent(input):
                    yield event
            finally:
                raise error

        async with tidy():
            with pytest.raises(OopsError) as caught:
                async with chain(source).open(INPUT) as events:
                    await anext(events)
            assert caught.value is error


@each_chain
async def test_an_error_of_the_sources_cleanup_delivers_nothing_after_a_cancellation(chain: Chain) -> None:
    got: list[Any] = []

    async def source(input: RunAgentInput) -> AsyncIterator[Any]:
        try:
            for event in customs(COUNT):
                yield event
            await anyio.sleep_forever()
        finally:
            raise OopsError

    async with tidy():
        with contextlib.suppress(OopsError), anyio.move_on_after(HOLD / 2):
            async for event in chain(source)(INPUT):
                got.append(event)
        before = len(got)
        await anyio.sleep(1)
    assert len(got) == before
    assert before in (0, COUNT)  # 0 where they were held


async def test_an_error_of_the_sources_cleanup_does_not_let_an_untimed_stage_deliver_after_a_cancellation() -> None:
    got: list[Any] = []

    async def source(input: RunAgentInput) -> AsyncIterator[Any]:
        try:
            yield custom(1)
            await anyio.sleep_forever()
        finally:
            raise OopsError

    async with tidy():
        with contextlib.suppress(OopsError), anyio.move_on_after(1):
            async for event in Pipeline(source, Stage(Kept))(INPUT):
                got.append(event)
    assert got == []


async def test_a_task_group_in_the_source_ends_with_the_run() -> None:
    """On trio such a source gives groups of cancellations and errors; a pump must not let them end the event loop."""

    async def fails_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise OopsError

    async def source(input: RunAgentInput) -> AsyncIterator[Any]:
        async with anyio.create_task_group() as group:
            group.start_soon(fails_when_cancelled)
            yield custom(1)
            await anyio.sleep_forever()

    async with tidy():
        with pytest.raises(BaseExceptionGroup) as caught:
            async with Pipeline(source, Stage(Held)).open(INPUT) as events:
                await anext(events)
    assert caught.group_contains(OopsError)


# A stage ends the run.


@pytest.mark.parametrize(
    "chain",
    [
        lambda source, stage: Pipeline(source, stage),
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

        async def raises(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
            count = 0
            async for event in next(input):
                count += 1
                if count == position:
                    raise error
                yield event
            raise error

        stage = Stage(lambda: Raises(error, position or None)) if sans_io else raises
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
        raising = Stage(lambda: Raises(error, position or None))
        async with tidy():
            result = await collect(Pipeline(agent, Stage(Kept), raising), INPUT, catch=True)
        assert result.exception is error
        assert values(result.events) == [*range(1, position or COUNT + 1)]
