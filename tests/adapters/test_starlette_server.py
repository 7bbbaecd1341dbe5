"""Over a real uvicorn: what its clients see, what it logs, and what is left when they leave."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from ag_ui.core import RunAgentInput
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app, current_request
from agui_pipeline.middleware import EventThrottleMiddleware, Source
from agui_pipeline.translators import Event, SourceError
from tests.adapters.apps import (
    BODY,
    FRAMES,
    INPUT,
    POSITIONS,
    RUN,
    STREAM,
    TYPES,
    Scripted,
    frame,
    sleep,
    wait,
    wrapped,
)
from tests.adapters.apps import Source as Agent
from tests.adapters.server import Client, Server, until
from tests.middleware.kit import OopsError, Same, Stage, customs, passing

CHAINS: dict[str, list[Any]] = {
    "none": [],
    "fused": [Stage(Same)],
    "function": [passing],
    "throttle": [EventThrottleMiddleware(interval=0.001)],
    "function, throttle": [passing, EventThrottleMiddleware(interval=0.001)],
}

each_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())


def logged(server: Server) -> BaseException | None:
    """Return the one thing that uvicorn has logged."""
    until(lambda: server.errors)
    ((message, error),) = server.errors
    assert message.startswith("Exception in ASGI application")
    server.errors.clear()
    return error


def seen(response: httpx.Response) -> list[str]:
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    return [json.loads(line[6:])["type"] for line in response.text.split("\n") if line.startswith("data: ")]


@each_chain
def test_a_run_arrives_byte_for_byte(server: Server, chain: list[Any]) -> None:
    for app in (wrapped(Scripted(), *chain), wrapped(wrapped(Scripted(), *chain), *chain)):
        server.app = app
        response = server.post()
        assert response.content == STREAM
        assert "content-length" not in response.headers
    server.app = agent_app(RUN, *chain)
    assert seen(server.post()) == TYPES


@each_chain
def test_a_failing_run_ends_legally_and_is_logged_once(server: Server, chain: list[Any]) -> None:
    for position in POSITIONS:
        error = OopsError("secret")
        for app in (
            wrapped(Scripted(["start", *FRAMES[:position], error]), *chain),
            agent_app(Agent([*RUN[:position], error]), *chain),
        ):
            server.app = app
            response = server.post()
            assert seen(response) == TYPES[:position] + (["RUN_ERROR"] if position < len(RUN) else [])
            assert "secret" not in response.text
            assert logged(server) is error


def test_a_failure_before_the_response_is_a_500(server: Server) -> None:
    for app, error in (
        (Scripted([OopsError("of the app")]), OopsError),
        (Scripted([asyncio.CancelledError("own")]), None),
        (Scripted(["stop"]), None),
    ):
        server.app = wrapped(app, passing)
        assert server.post().status_code == 500
        if error is not None:
            assert isinstance(logged(server), error)
        else:
            ((message, _),) = server.errors
            assert message == "ASGI callable returned without starting response."
            server.errors.clear()


def test_an_app_that_returns_early_is_logged_once(server: Server) -> None:
    server.app = wrapped(Scripted([*FRAMES[:2], "stop"]), passing)
    assert seen(server.post()) == [*TYPES[:2], "RUN_ERROR"]
    assert isinstance(logged(server), SourceError)


def test_refusals_are_plain_http(server: Server) -> None:
    server.app = agent_app(RUN, max_body=1000)
    assert server.post(b"{}").status_code == 400
    assert server.post(b" " * 1001).status_code == 413
    assert server.post(headers={"content-type": "text/plain"}).status_code == 415
    assert server.client.get("/").status_code == 405

    def upload() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    response = server.client.post("/", content=upload(), headers={"content-type": "application/json"})
    assert response.status_code == 413


def test_an_answer_without_events_is_not_touched(server: Server) -> None:
    server.app = wrapped(Scripted([b'{"a":', b"1}"], status=422, headers=[(b"content-length", b"7")]), passing)
    response = server.post()
    assert (response.status_code, response.content, response.headers["content-length"]) == (422, b'{"a":1}', "7")


# Clients that leave.


@each_chain
@pytest.mark.parametrize("reset", [False, True], ids=["close", "reset"])
def test_a_client_that_leaves_ends_the_run(server: Server, chain: list[Any], *, reset: bool) -> None:
    for position in POSITIONS[1:]:
        app = Scripted([*FRAMES[:position], wait])
        run_and_leave(server, wrapped(app, *chain), position, reset=reset)
        until(partial(cleaned, app))
        assert app.call.cancelled == 1

        agent = Agent([*RUN[:position], lambda: asyncio.sleep(1000)])
        run_and_leave(server, agent_app(agent, *chain), position, reset=reset)
        until(partial(cleaned, agent))
        assert agent.cancelled == 1


@each_chain
def test_a_detached_run_goes_on(server: Server, chain: list[Any]) -> None:
    app = Scripted([*FRAMES[:2], sleep(0.05), *FRAMES[2:]])
    run_and_leave(server, wrapped(app, *chain, on_disconnect="detach"), 2)
    until(lambda: app.call.cleaned)
    assert (app.call.cancelled, app.call.sent) == (0, len(RUN))

    agent = Agent([*RUN[:2], lambda: asyncio.sleep(0.05), *RUN[2:]])
    run_and_leave(server, agent_app(agent, *chain, on_disconnect="detach"), 2)
    until(lambda: agent.cleaned)
    assert (agent.cancelled, agent.sent) == (0, len(RUN))


def cleaned(run: Any) -> bool:
    return bool(run.call.cleaned if isinstance(run, Scripted) else run.cleaned)


def run_and_leave(server: Server, app: Any, position: int, *, reset: bool = False) -> None:
    server.app = app
    client = Client(server)
    assert [event.type for event in client.events(position)] == TYPES[:position]
    client.leave(reset=reset)


def test_a_client_that_leaves_before_the_app_answers_ends_it(server: Server) -> None:
    app = Scripted([wait])
    server.app = wrapped(app, passing)
    client = Client(server)
    until(lambda: app.calls)
    client.leave()
    until(lambda: app.call.cleaned)
    assert app.call.cancelled == 1


def test_a_client_that_leaves_with_its_body_half_sent_runs_nothing(server: Server) -> None:
    app = Scripted()
    server.app = wrapped(app, passing)
    client = Client(server, BODY[:20], announced=len(BODY))
    until(lambda: server.tasks() != [])
    client.leave()
    until(lambda: server.tasks() == [])
    assert app.calls == []


@pytest.mark.parametrize("chain", [[], [passing, EventThrottleMiddleware()]], ids=["none", "function, throttle"])
def test_a_client_that_stops_reading_stops_the_run(server: Server, chain: list[Any]) -> None:
    big = [event | {"value": "x" * 20_000} for event in customs(1000)]
    app = Scripted(map(frame, big))
    agent = Agent(big)
    runs: list[tuple[Any, Callable[[], Any]]] = [
        (wrapped(app, *chain), lambda: app.call),
        (agent_app(agent, *chain), lambda: agent),
    ]
    for served, run in runs:
        server.app = served
        client = Client(server)
        client.events(1)
        stuck = steady(run)
        assert stuck < len(big)
        client.leave(reset=True)
        until(partial(cleaned, run()))
        assert run().sent == stuck


def steady(run: Callable[[], Any]) -> int:
    """Return how much was sent once that has stopped: the buffers of the machine are full then."""
    while True:
        before: int = run().sent
        time.sleep(0.1)
        if run().sent == before > 0:
            return before


@pytest.mark.parametrize("mode", ["cancel", "detach"])
@pytest.mark.parametrize("framework", ["starlette", "sse-starlette"])
def test_the_streams_of_frameworks_end_with_their_client(server: Server, framework: str, mode: str) -> None:
    ended: list[str] = []

    async def endpoint(request: Request) -> Any:
        await request.body()

        async def frames() -> AsyncIterator[Any]:
            try:
                for one in FRAMES:
                    yield one if framework == "starlette" else {"data": one[6:-2].decode()}
                    await asyncio.sleep(0.03)
            finally:
                ended.append("frames")

        if framework == "starlette":
            return StreamingResponse(frames(), media_type="text/event-stream")
        return EventSourceResponse(frames())

    server.app = wrapped(Starlette(routes=[Route("/", endpoint, methods=["POST"])]), passing, on_disconnect=mode)
    client = Client(server)
    assert [event.type for event in client.events(2)] == TYPES[:2]
    client.leave()
    until(lambda: ended)


def test_an_endless_plain_answer_ends_with_its_client(server: Server) -> None:
    ended: list[str] = []

    async def endpoint(request: Request) -> StreamingResponse:
        await request.body()

        async def lines() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"{}\n"
                    await asyncio.sleep(0.01)
            finally:
                ended.append("lines")

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    for mode in ("cancel", "detach"):
        server.app = wrapped(Starlette(routes=[Route("/", endpoint, methods=["POST"])]), on_disconnect=mode)
        with server.client.stream("POST", "/", content=BODY, headers={"content-type": "application/json"}) as response:
            next(response.iter_bytes())
        until(lambda: ended)
        ended.clear()


# Around it.


def test_heartbeats_come_and_stop(server: Server) -> None:
    server.app = wrapped(Scripted([FRAMES[0], sleep(0.16), *FRAMES[1:]]), passing, heartbeat=0.05)
    for _ in range(2):
        response = server.post()
        assert 2 <= response.text.count(": keep-alive\n\n") <= 3
        assert response.text.replace(": keep-alive\n\n", "").encode() == STREAM


def test_several_runs_on_one_connection(server: Server) -> None:
    server.app = wrapped(Scripted(), passing)
    for _ in range(3):
        assert server.post(headers={"connection": "keep-alive"}).content == STREAM


def test_middleware_of_starlette_around_and_inside(server: Server) -> None:
    class Header(BaseHTTPMiddleware):
        async def dispatch(self, request: Request, call_next: Any) -> Any:
            response = await call_next(request)
            response.headers["x-dispatched"] = "yes"
            return response

    users: list[str] = []

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        users.append(current_request().headers["x-user"])
        async for event in next(input):
            yield event

    async def endpoint(request: Request) -> StreamingResponse:
        assert await request.json() == INPUT

        async def frames() -> AsyncIterator[bytes]:
            for one in FRAMES:
                yield one

        return StreamingResponse(frames(), media_type="text/event-stream")

    for order in ((Header, AGUIMiddleware), (AGUIMiddleware, Header)):
        app = Starlette(routes=[Route("/", endpoint, methods=["POST"])])
        for middleware in order:
            app.add_middleware(middleware, **({"middleware": [stage]} if middleware is AGUIMiddleware else {}))
        server.app = app
        response = server.post(headers={"x-user": "ada"})
        assert (response.content, response.headers["x-dispatched"]) == (STREAM, "yes")
    assert users == ["ada", "ada"]
