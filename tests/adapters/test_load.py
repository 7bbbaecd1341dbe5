"""Many clients at once, a third of whom leave when they like: every whole stream is legal, and nothing grows.

In each run of the suite for three seconds; marked `slow`, 500 streams for twenty.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app, current_request
from agui_pipeline.adapters.testing import assert_valid_stream, run_asgi
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Source, TrustMiddleware
from agui_pipeline.translators import Event, SSEDecoder, WireEvent, decode_event, run_input
from tests.adapters.apps import BODY, frame
from tests.adapters.server import Server, until

PAUSE = 0.03
"""Seconds between two bursts of an agent."""
LEAVE = 1 / 3
"""How many clients leave before the end."""
PATIENCE = 60.0
"""Seconds for one stream, on a machine that has other things to do as well."""


async def run(_input: RunAgentInput) -> AsyncIterator[dict[str, Any]]:
    """Say forty words in ten bursts; now and then stop, raise, or say what is illegal: the guard's daily work."""
    chance = random.random()  # noqa: S311
    yield {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    yield {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    for burst in range(10):
        for word in range(4):
            yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": f"{burst}.{word} "}
        await asyncio.sleep(PAUSE)
        if chance < 0.05 and burst == 5:
            return
        if chance > 0.95:
            yield {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    yield {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


async def passing(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
    async for event in next(input):
        yield event


async def endpoint(request: Request) -> Response:
    await request.body()

    async def frames() -> AsyncIterator[bytes]:
        async for event in run(None):  # type: ignore[arg-type]
            yield frame(event)

    return StreamingResponse(frames(), media_type="text/event-stream")


def build() -> ASGIApp:
    def chain(*more: Any) -> list[Any]:
        guard = GuardMiddleware(on_diagnostic=lambda _: None)
        trust = TrustMiddleware(on_diagnostic=lambda _: None)
        return [EventThrottleMiddleware(interval=0.02), *more, guard, trust]

    app = Starlette(
        routes=[
            Mount("/served", agent_app(run, *chain(), heartbeat=0.01)),
            Mount("/detached", agent_app(run, *chain(), on_disconnect="detach")),
            Route("/wrapped", endpoint, methods=["POST"]),
            Route("/function", endpoint, methods=["POST"]),
        ]
    )
    inner = AGUIMiddleware(app, middleware=chain(), paths=["/wrapped"], heartbeat=0.01)
    return AGUIMiddleware(inner, middleware=chain(passing), paths=["/function"])


PATHS = ("/served/", "/detached/", "/wrapped", "/function")


@dataclass
class Seen:
    """What all clients together have seen."""

    whole: int = 0
    left: int = 0
    endings: Counter[str] = field(default_factory=Counter)


async def clients(server: Server, count: int, seconds: float, chance: random.Random) -> Seen:
    """Keep so many streams open for so long."""
    seen = Seen()
    end = time.monotonic() + seconds

    async def one() -> None:
        while time.monotonic() < end:
            async with asyncio.timeout(PATIENCE):
                await visit(server, chance, seen)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())
    return seen


async def visit(server: Server, chance: random.Random, seen: Seen) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    transport = writer.transport
    try:
        head = f"POST {chance.choice(PATHS)} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        head += f"connection: close\r\ncontent-length: {len(BODY)}\r\n\r\n"
        if chance.random() < LEAVE / 10:  # with the body half-sent
            writer.write(head.encode() + BODY[:20])
            await writer.drain()
            seen.left += 1
            return
        writer.write(head.encode() + BODY)
        if chance.random() < LEAVE:
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * 15 * PAUSE):
                    await reader.read()
            seen.left += 1
            if chance.random() < 0.5:
                transport.abort()
            return
        data = await reader.read()
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    events = events_of(data)
    assert_valid_stream(events)
    seen.whole += 1
    seen.endings[events[-1].type] += 1


def events_of(data: bytes) -> list[WireEvent]:
    head, _, chunked = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    body = b""
    while True:
        size, _, rest = chunked.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            break
        body += rest[:length]
        chunked = rest[length + 2 :]
    frames = SSEDecoder().feed(body)
    return [decode_event(one.data) for one in frames if one.data is not None]


# What may not grow.


def sockets() -> int:
    """Return how many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def objects() -> Counter[str]:
    """Return how many objects of this library, and tasks, there are."""
    gc.collect()
    counted = (type(item) for item in gc.get_objects())
    return Counter(
        kind.__name__
        for kind in counted
        if kind.__module__.startswith("agui_pipeline.")
        or kind is asyncio.Task
        or kind.__module__.startswith("asyncio.")
    )


def memory() -> int:
    """Return the bytes that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts in /proc")


def under_load(server: Server, count: int, seconds: float) -> tuple[Seen, int]:
    """Put a server under load; check that it has no more of anything afterwards than before.

    Returns:
        What the clients have seen, and by how many bytes the process grew.
    """
    chance = random.Random(4)  # noqa: S311
    server.app = build()
    asyncio.run(clients(server, count, min(1.0, seconds / 4), chance))  # what is made once is made now
    settle(server)
    before = objects(), sockets(), memory()
    seen = asyncio.run(clients(server, count, seconds, chance))
    settle(server)
    after = objects(), sockets(), memory()
    grown = after[0] - before[0]
    assert not grown, f"left over: {grown}"
    assert after[1] == before[1]
    assert server.errors == []
    return seen, after[2] - before[2]


def settle(server: Server) -> None:
    until(lambda: server.tasks() == [])  # detached runs end by themselves
    until(lambda: not server._server.server_state.connections)


# The one timer of all heartbeats is set by some request, and outlives it.

serving: ContextVar[str] = ContextVar("serving")


@pytest.mark.anyio
async def test_a_heartbeat_keeps_no_request_that_is_over_and_is_sent_in_the_context_of_its_own() -> None:
    first_began, second = anyio.Event(), anyio.Event()
    over: list[weakref.ref[Any]] = []
    sent_in: dict[str, set[str]] = {"first": set(), "second": set()}

    async def source(input: RunAgentInput) -> AsyncIterator[Any]:
        yield {"type": "RUN_STARTED", "threadId": "t", "runId": input.run_id}
        if input.run_id == "first":
            over.append(weakref.ref(current_request()))
            first_began.set()
            await second.wait()
            await anyio.sleep(0.1)
            return
        second.set()
        await anyio.sleep_forever()

    inner = agent_app(source, heartbeat=0.02)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        name = dict(scope["headers"])[b"x-name"].decode()
        token = serving.set(name)

        async def noting(message: Any) -> None:
            if message.get("body", b"").startswith(b": keep-alive"):
                sent_in[name].add(serving.get("nobody"))
            await send(message)

        try:
            await inner(scope, receive, noting)
        finally:
            serving.reset(token)

    async def ask(name: str) -> None:
        body = run_input("hi", run_id=name).model_dump_json(by_alias=True)
        headers = {"content-type": "application/json", "x-name": name}
        await run_asgi(app, body=body, headers=headers)

    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as first:
            first.start_soon(ask, "first")
            await first_began.wait()  # it has set the timer
            group.start_soon(ask, "second")
        await anyio.sleep(0.1)
        gc.collect()
        kept = [reference() for reference in over]
        group.cancel_scope.cancel()
    assert kept == [None]
    assert sent_in == {"first": {"first"}, "second": {"second"}}


@linux
def test_a_short_load_leaves_nothing_behind(server: Server) -> None:
    seen, _ = under_load(server, 60, 2.0)
    assert seen.whole > 20
    assert seen.left > 10


@linux
@pytest.mark.slow
def test_a_long_load_leaves_nothing_behind_and_takes_no_memory(server: Server) -> None:
    seen, grown = under_load(server, 500, 20.0)
    assert seen.whole > 500
    assert seen.left > 200
    assert set(seen.endings) == {"RUN_FINISHED", "RUN_ERROR"}
    assert grown < 16 * 1024 * 1024, f"{grown} bytes more for {seen.whole + seen.left} streams"
