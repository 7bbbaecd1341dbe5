"""The examples of generators: the async one as it is, the synchronous one in its threads."""

from __future__ import annotations

import contextvars
import math
import threading
from collections.abc import Generator
from typing import Any

import anyio
import pytest

from agui_pipeline.adapters.testing import assert_valid_stream, collect, run_asgi
from agui_pipeline.middleware import EventThrottleMiddleware, Pipeline, as_source
from agui_pipeline.translators import ConfigurationError, run_input
from examples import async_generator, sync_generator
from examples.sync_generator import in_thread

pytestmark = pytest.mark.anyio

INPUT = run_input("hi", thread_id="t", run_id="r")
STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


@pytest.mark.parametrize(
    ("example", "text"), [(async_generator, "That makes 42."), (sync_generator, "Slow and steady.")]
)
async def test_its_app_answers(example: Any, text: str) -> None:
    response = await run_asgi(example.app, path="/", body={"messages": [{"role": "user", "content": "hi"}]})
    assert response.status == 200
    assert_valid_stream(response.events)
    assert (await collect(list(response.events))).text == text


async def test_the_async_generator_counts_in_the_shared_state() -> None:
    first = await collect(async_generator.agent, run_input("hi", state={"kept": True}))
    second = await collect(async_generator.agent, run_input("hi", state=first.state))
    assert second.state == {"kept": True, "answers": 2}
    assert (await collect(async_generator.agent, run_input("hi", state=[1]))).state == {"answers": 1}


def test_a_synchronous_generator_alone_is_no_source() -> None:
    with pytest.raises(ConfigurationError, match="synchronous generator function"):
        as_source(sync_generator.agent)


class Agent:
    """A synchronous generator that counts its steps."""

    def __init__(self, count: int = 1000) -> None:
        self.count = count
        self.steps = 0
        self.closed = 0
        self.threads: set[int] = set()

    def __call__(self, _input: Any) -> Generator[dict[str, Any], None, None]:
        try:
            yield STARTED
            for number in range(self.count):
                self.steps += 1
                self.threads.add(threading.get_ident())
                yield {"type": "CUSTOM", "name": "n", "value": number}
            yield FINISHED
        finally:
            self.closed += 1


async def test_all_of_its_events_come_from_other_threads() -> None:
    agent = Agent(20)
    result = await collect(in_thread(agent), INPUT)
    assert [event.value for event in result.events[1:-1]] == list(range(20))
    assert agent.closed == 1
    assert threading.get_ident() not in agent.threads


async def test_it_goes_on_only_when_it_is_asked() -> None:
    agent = Agent()
    async with Pipeline(in_thread(agent)).open(INPUT) as events:
        for _ in range(5):
            await anext(events)
            await anyio.sleep(0.001)
        assert agent.steps == 4
        assert agent.closed == 0
    assert (agent.steps, agent.closed) == (4, 1)


@pytest.mark.parametrize("chain", [(), (EventThrottleMiddleware(),)], ids=["bare", "timed"])
@pytest.mark.parametrize("after", [0, 1, 2, 5])
async def test_a_client_that_leaves_closes_it(after: int, chain: Any) -> None:
    from agui_pipeline.adapters.starlette import agent_app

    agent = Agent(10**6)
    app = agent_app(in_thread(agent), *chain)
    await run_asgi(app, path="/", body={"messages": []}, disconnect_after=after)
    assert agent.closed == 1 or agent.steps == 0
    assert agent.steps < 10**6


@pytest.mark.parametrize("chain", [(), (EventThrottleMiddleware(),)], ids=["bare", "timed"])
async def test_one_that_thinks_when_its_reader_is_cancelled_is_closed_when_it_has_thought(chain: Any) -> None:
    thinking, thought = threading.Event(), threading.Event()
    closed: list[bool] = []

    def agent(_input: Any) -> Generator[dict[str, Any], None, None]:
        try:
            yield STARTED
            thinking.set()
            closed.append(not thought.wait(5))
            yield FINISHED
        finally:
            closed.append(True)

    async with anyio.create_task_group() as group:
        group.start_soon(collect, Pipeline(in_thread(agent), *chain), INPUT)
        with anyio.fail_after(5):
            while not thinking.is_set():  # noqa: ASYNC110 - a thread sets it
                await anyio.sleep(0.001)
        group.cancel_scope.cancel()
        threading.Timer(0.05, thought.set).start()
    assert closed == [False, True]


class OopsError(Exception):
    pass


async def test_what_it_raises_comes_out() -> None:
    def agent(_input: Any) -> Generator[dict[str, Any], None, None]:
        yield STARTED
        raise OopsError

    result = await collect(in_thread(agent), INPUT, catch=True)
    assert isinstance(result.exception, OopsError)
    assert result.types == ["RUN_STARTED"]


async def test_it_keeps_its_context_and_its_limit() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")
    seen: list[str] = []

    def agent(_input: Any) -> Generator[dict[str, Any], None, None]:
        seen.append(name.get())
        name.set("the agent's")
        yield STARTED
        seen.append(name.get())
        yield FINISHED

    name.set("the request's")
    limiter = anyio.CapacityLimiter(1)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(collect, in_thread(agent, limiter), INPUT)
    assert sorted(seen) == ["the agent's"] * 3 + ["the request's"] * 3
    assert name.get() == "the request's"
    assert limiter.borrowed_tokens == 0
    assert math.isfinite(limiter.total_tokens)
