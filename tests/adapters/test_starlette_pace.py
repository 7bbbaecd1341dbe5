"""When things are sent: at once, together where they are ready together, as fast as the client reads; heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters._asgi_writer import KEEP_ALIVE, heartbeats
from agui_pipeline.adapters.starlette import agent_app
from agui_pipeline.adapters.testing import ASGIResponse, run_asgi
from agui_pipeline.middleware import EventThrottleMiddleware, Source
from agui_pipeline.translators import Event
from tests.adapters.apps import (
    BODY,
    FRAMES,
    RUN,
    STREAM,
    TYPES,
    Scripted,
    ask,
    frame,
    sleep,
    tidied,
    types,
    wrapped,
)
from tests.adapters.apps import Source as Agent
from tests.clocks import BACKENDS
from tests.middleware.kit import Aside, Same, Stage, customs, passing, tidy

pytestmark = pytest.mark.anyio

CHAINS: dict[str, list[Any]] = {
    "none": [],
    "fused": [Stage(Same)],
    "function": [passing],
    "throttle": [EventThrottleMiddleware()],
    "function, throttle": [passing, EventThrottleMiddleware()],
    "throttle, function": [EventThrottleMiddleware(), passing],
    "fused, aside": [Stage(Same), Aside()],
}
"""Chains of every kind that hold nothing of these runs, or not for long."""

each_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
AHEAD = 256 + 64 + 64 + 2
"""Events that may be under way: in the app's channel, in a pump's, in the writer, and between them."""


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


def timed(response: ASGIResponse) -> list[tuple[float, bytes]]:
    """What came when, counted from the first."""
    return [
        (round(time - response.times[0], 3), chunk) for time, chunk in zip(response.times, response.chunks, strict=True)
    ]


# Batches.


async def test_frames_that_are_ready_together_travel_together() -> None:
    for chain in ([], [Stage(Same)], [EventThrottleMiddleware()], [Aside()], [Stage(Same), Aside(), Stage(Same)]):
        response = await ask(wrapped(Scripted(), *chain))
        assert len(response.chunks) <= 2
        response = await ask(agent_app(RUN, *chain))
        assert len(response.chunks) <= 2
        assert types(response) == TYPES


async def test_a_batch_is_bounded_in_frames_and_in_bytes() -> None:
    response = await ask(agent_app(customs(200)))
    assert max(chunk.count(b"\n\n") for chunk in response.chunks) == 64
    response = await ask(agent_app([{"type": "CUSTOM", "name": "n", "value": "x" * 40_000}] * 6))
    assert max(map(len, response.chunks)) < 64 * 1024 + 41_000


@each_chain
async def test_nothing_ready_waits_for_what_is_not(chain: Any) -> None:
    script = [part for one in FRAMES for part in (one, sleep(1))]
    response = await ask(wrapped(Scripted(script), *chain))
    assert timed(response) == [(float(second), one) for second, one in enumerate(FRAMES)]

    agent = Agent([part for one in RUN for part in (one, lambda: anyio.sleep(1))])
    response = await ask(agent_app(agent, *chain))
    assert [time for time, _ in timed(response)] == list(range(len(RUN)))


async def test_the_start_of_the_response_goes_out_at_once() -> None:
    def noting(app: Any, started: list[float]) -> Any:
        async def noted(scope: Any, receive: Any, send: Any) -> None:
            async def sent(message: Any) -> None:
                if message["type"] == "http.response.start":
                    started.append(anyio.current_time())
                await send(message)

            await app(scope, receive, sent)

        return noted

    for app in (
        wrapped(Scripted(["start", sleep(5), *FRAMES]), passing),
        agent_app(Agent([lambda: anyio.sleep(5), *RUN]), passing),
    ):
        started: list[float] = []
        before = anyio.current_time()
        await ask(noting(app, started))
        assert started == [pytest.approx(before, abs=1e-6)]


async def test_a_function_stage_that_sleeps_keeps_nothing_waiting() -> None:
    async def slow(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input):
            yield event
            await anyio.sleep(1)

    for chain in ([slow], [slow, Stage(Same)], [Stage(Same), slow], [slow, EventThrottleMiddleware(interval=0.01)]):
        response = await ask(wrapped(Scripted(), *chain))
        assert [time for time, _ in timed(response)] == list(range(len(RUN)))
        assert response.body == STREAM


async def test_a_frame_that_is_no_event_is_not_kept_waiting_either() -> None:
    for chain in CHAINS.values():
        app = Scripted([FRAMES[0], sleep(1), b": ping\n\n", sleep(1), FRAMES[1], sleep(1), b": ping\n\n", sleep(1)])
        response = await ask(wrapped(app, *chain))
        assert timed(response) == [(0, FRAMES[0]), (1, b": ping\n\n"), (2, FRAMES[1]), (3, b": ping\n\n")]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("chain", "alone"),
    [([], True), ([Stage(Same)], True), ([passing], False), ([Stage(Same), passing], False)],
    ids=["none", "fused", "function", "fused, function"],
)
async def test_a_token_that_comes_alone_is_sent_by_the_app_and_those_behind_it_together(
    chain: list[Any], alone: bool
) -> None:
    at_send: list[int] = []
    received: list[bytes] = []

    async def reader(response: ASGIResponse) -> None:
        received[:] = response.chunks

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for turn in (FRAMES[:1], FRAMES[1:3], FRAMES[3:4]):
            await anyio.sleep(0.01)
            for each in turn:
                await send({"type": "http.response.body", "body": each, "more_body": True})
                at_send.append(len(received))
        await send({"type": "http.response.body", "body": b"".join(FRAMES[4:])})

    response = await run_asgi(wrapped(app, *chain), body=BODY, reader=reader)

    assert response.body == STREAM
    if alone:
        # The first of a turn is out when send() returns; the next waits for the turn to end.
        assert at_send == [1, 2, 2, 4]
    else:
        assert at_send == [0, 1, 1, 3]


# Backpressure.


@each_chain
async def test_a_client_that_reads_slowly_slows_the_app(chain: Any) -> None:
    many = customs(5000)
    under_way: list[int] = []

    def stuck(sent: Callable[[], int]) -> Any:
        async def reader(response: ASGIResponse) -> None:
            if response.events:
                await anyio.sleep(10)
                under_way.append(sent() - len(response.events))
                response.disconnect()

        return reader

    app = Scripted(map(frame, many))
    agent = Agent(many)
    for served, reader in (
        (wrapped(app, *chain), stuck(lambda: app.call.sent)),
        (agent_app(agent, *chain), stuck(lambda: agent.sent)),
    ):
        async with tidy():
            await run_asgi(served, body=BODY, reader=reader)
            await tidied()
        # One less than nothing: the app still waits in the very send that the client has read.
        assert -1 <= under_way.pop() <= AHEAD


async def test_every_event_reaches_a_client_that_reads_slowly() -> None:
    many = customs(1000)
    for chain in CHAINS.values():
        app = Scripted(map(frame, many))
        response = await ask(wrapped(app, *chain), read_delay=0.001)
        assert [event.value for event in response.events] == list(range(1, 1001))


async def test_an_app_may_send_from_several_tasks() -> None:
    """As those do that ping beside their stream; both wait for the same slow client."""

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})

        async def stream(name: str) -> None:
            for number in range(300):
                event = frame({"type": "CUSTOM", "name": name, "value": number})
                await send({"type": "http.response.body", "body": event, "more_body": True})

        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(stream, name)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    response = await ask(wrapped(app), read_delay=0.01)
    for name in "abc":
        assert [event.value for event in response.events if event.name == name] == list(range(300))


# Heartbeats.


@each_chain
async def test_an_idle_stream_is_kept_alive(chain: Any) -> None:
    for app in (
        wrapped(Scripted(["start", sleep(3.5), *FRAMES[:3], sleep(2.5), *FRAMES[3:]]), *chain, heartbeat=1),
        agent_app(Agent([lambda: anyio.sleep(3.5), *RUN[:3], lambda: anyio.sleep(2.5), *RUN[3:]]), *chain, heartbeat=1),
    ):
        async with tidy():
            response = await ask(app)
            await tidied()
        assert types(response) == TYPES
        kept = [time for time, chunk in timed(response) if chunk == KEEP_ALIVE]
        assert response.body.count(KEEP_ALIVE) == len(kept)  # by themselves, never inside a message of events
        assert len(kept) == 5
        assert all(1 <= round(kept[at] - kept[at - 1], 2) <= 1.1 for at in (1, 2, 4))  # never early, hardly late


async def test_a_busy_stream_gets_no_heartbeats() -> None:
    script = [part for one in FRAMES for part in (one, sleep(0.9))]
    response = await ask(wrapped(Scripted(script), heartbeat=1))
    assert response.body == STREAM


async def test_heartbeats_stay_at_the_boundaries_of_frames() -> None:
    """The app cuts its frames anywhere, and waits there."""
    script = [part for at in range(0, len(STREAM), 50) for part in (STREAM[at : at + 50], sleep(2))]
    response = await ask(wrapped(Scripted(script), heartbeat=0.7))
    assert KEEP_ALIVE in response.body
    assert response.body.replace(KEEP_ALIVE, b"") == STREAM
    assert all(chunk.endswith(b"\n\n") for chunk in response.chunks)


async def test_a_client_that_is_busy_reading_gets_no_heartbeat() -> None:
    async def reader(response: ASGIResponse) -> None:
        if len(response.chunks) == 1:
            await anyio.sleep(10)

    response = await ask(wrapped(Scripted([FRAMES[0], sleep(0.5), *FRAMES[1:]]), heartbeat=1), reader=reader)
    assert response.body == STREAM


async def test_heartbeats_can_be_turned_off() -> None:
    for off in (0, None, 0.0):
        response = await ask(wrapped(Scripted(["start", sleep(1000), *FRAMES]), heartbeat=off), timeout=2000)
        assert response.body == STREAM


async def test_the_default_heartbeat_comes_after_15_seconds() -> None:
    response = await ask(wrapped(Scripted([FRAMES[0], sleep(40), *FRAMES[1:]])), timeout=50)
    assert [time for time, chunk in timed(response) if chunk == KEEP_ALIVE] == [15, pytest.approx(30, rel=0.1)]


async def test_another_answer_gets_no_heartbeats() -> None:
    response = await ask(wrapped(Scripted([b"plain", sleep(10), b" text"], headers=[]), heartbeat=1))
    assert response.chunks == [b"plain", b" text"]


async def test_all_streams_of_a_loop_share_one_timer() -> None:
    """Each keeps its own time, also where one with a shorter interval comes later."""
    responses: dict[float, ASGIResponse] = {}

    async def one(interval: float, delay: float) -> None:
        await anyio.sleep(delay)
        app = wrapped(Scripted([FRAMES[0], sleep(19.9), *FRAMES[1:]]), heartbeat=interval)
        responses[interval] = await ask(app)

    async with tidy():
        async with anyio.create_task_group() as group:
            for interval, delay in ((10, 0), (3, 1), (7, 0.5)):
                group.start_soon(one, interval, delay)
            await anyio.sleep(2)
            beats = heartbeats()
            assert len(beats._streams) == 3
        await tidied()
        assert heartbeats() is beats
        assert len(beats._streams) == 0
    for every, response in responses.items():
        kept = [time for time, chunk in timed(response) if chunk == KEEP_ALIVE]
        assert len(kept) in (int(19.9 // (every * 1.1)), int(19.9 // every))
        for number, time in enumerate(kept, 1):
            assert number * every <= time <= number * every * 1.1 + 0.01


async def test_a_stream_that_begins_when_another_has_just_ended_is_kept_alive() -> None:
    for _ in range(3):
        response = await ask(wrapped(Scripted([FRAMES[0], sleep(2.5), *FRAMES[1:]]), heartbeat=1))
        assert response.body.count(KEEP_ALIVE) == 2


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_app_may_be_anything_that_can_be_awaited() -> None:
    calls: list[str] = []

    class Slow:
        def __init__(self, app: Any, *args: Any) -> None:
            self._task = app(*args)

        def __await__(self) -> Any:
            calls.append("awaited")
            return asyncio.ensure_future(self._task).__await__()

    script = [part for one in FRAMES for part in (one, sleep(0.1))]
    response = await ask(wrapped(lambda *args: Slow(Scripted(script), *args), Stage(Same)))
    assert response.body == STREAM
    assert calls == ["awaited"]
