"""Between other middleware and on other servers: Starlette's own inside and outside, uvicorn and hypercorn.

BaseHTTPMiddleware is in `test_starlette_server.py`, lifespan and websockets without a server in
`test_starlette_untouched.py`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import httpx
import pytest
from hypercorn.asyncio import serve
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.adapters.testing import assert_valid_stream
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware
from agui_pipeline.translators import Diagnostic, Event, SSEDecoder, WireEvent, decode_event, replace
from tests.adapters.apps import BODY, FRAMES, RUN, TYPES
from tests.adapters.apps import Source as Agent
from tests.adapters.server import PATIENCE, Client, Server, until
from tests.middleware.kit import OopsError

ORIGIN = "https://chat.example"
OURS = Middleware(
    AGUIMiddleware,
    middleware=[EventThrottleMiddleware(interval=0.001), GuardMiddleware(on_diagnostic=lambda _: None)],
)


async def shout(input: Any, next: Any) -> AsyncIterator[Event]:
    async for event in next(input):
        yield replace(event, delta=event.delta.upper()) if event.delta else event


SHOUTING = Middleware(AGUIMiddleware, middleware=[shout])


class App:
    """An application without this library: a stream, and a few other answers.

    Args:
        middleware: What is around its routes, the outermost first.
        error: What the stream raises after its first three events.
    """

    def __init__(self, *middleware: Middleware, error: Exception | None = None) -> None:
        self.started = 0
        self.stopped = 0
        self.background = 0
        self.ended = 0
        self._error = error
        handlers: dict[Any, Any] = {KeyError: self.on_key_error}
        routes = [
            Route("/", self.stream, methods=["POST"]),
            Route("/missing", self.missing, methods=["POST"]),
            Route("/known", self.known, methods=["POST"]),
            Route("/json", self.json, methods=["POST"]),
            WebSocketRoute("/ws", self.websocket),
        ]
        self.app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=self.lifespan)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[dict[str, Any]]:
        self.started += 1
        yield {"from_lifespan": "yes"}
        self.stopped += 1

    async def stream(self, request: Request) -> Response:
        await request.json()

        async def frames() -> AsyncIterator[bytes]:
            try:
                for place, one in enumerate(FRAMES):
                    if place == 3 and self._error is not None:
                        raise self._error
                    yield one
                    await asyncio.sleep(0.001)
            finally:
                self.ended += 1

        return StreamingResponse(
            frames(), media_type="text/event-stream", background=BackgroundTask(self.in_background)
        )

    async def in_background(self) -> None:
        self.background += 1

    async def missing(self, _request: Request) -> Response:
        raise HTTPException(404, "no such agent", headers={"x-why": "missing"})

    async def known(self, _request: Request) -> Response:
        raise KeyError("known")

    async def on_key_error(self, _request: Request, _exc: Exception) -> Response:
        return JSONResponse({"handled": True}, 409)

    async def json(self, _request: Request) -> Response:
        return JSONResponse({"text": "x" * 2000})

    async def websocket(self, socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(await socket.receive_text())
        await socket.close()


def events_of(response: httpx.Response) -> list[WireEvent]:
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    frames = SSEDecoder().feed(response.content)
    events = [decode_event(one.data) for one in frames if one.data is not None]
    assert_valid_stream(events)
    return events


class Pass(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-passed"] = "yes"
        return response


AROUND = {
    "gzip": Middleware(GZipMiddleware, minimum_size=1),
    "CORS": Middleware(CORSMiddleware, allow_origins=[ORIGIN], allow_methods=["POST"], allow_credentials=True),
    "trusted host": Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "x"]),
    "BaseHTTPMiddleware": Middleware(Pass),
}
ALL = list(AROUND.values())

each_neighbour = pytest.mark.parametrize("neighbour", AROUND)
each_order = pytest.mark.parametrize("order", ["outside", "inside", "both"])


def stack(order: str, *neighbours: Middleware) -> list[Middleware]:
    return {
        "outside": [*neighbours, OURS],
        "inside": [OURS, *neighbours],
        "both": [*neighbours, OURS, *neighbours],
    }[order]


@each_order
@each_neighbour
def test_a_run_passes_whole(server: Server, neighbour: str, order: str) -> None:
    app = App(*stack(order, AROUND[neighbour]))
    server.app = app.app
    response = server.post(headers={"origin": ORIGIN, "accept-encoding": "identity, gzip"})
    assert [event.type for event in events_of(response)] == TYPES
    if neighbour == "CORS":
        assert response.headers["access-control-allow-origin"] == ORIGIN
    if neighbour == "BaseHTTPMiddleware":
        assert response.headers["x-passed"] == "yes"
    until(lambda: app.background)
    assert (app.ended, app.background) == (1, 1)


@each_order
@each_neighbour
def test_a_failure_in_the_stream_is_an_ended_stream_and_one_traceback(
    server: Server, neighbour: str, order: str
) -> None:
    error = OopsError("secret")
    server.app = App(*stack(order, AROUND[neighbour]), error=error).app
    response = server.post(headers={"accept-encoding": "identity"})
    events = events_of(response)
    assert [event.type for event in events][:3] == TYPES[:3]
    assert events[-1].type == "RUN_ERROR"
    assert "secret" not in response.text
    until(lambda: server.errors)
    ((_, logged),) = server.errors
    assert logged is error
    server.errors.clear()


@each_order
@each_neighbour
def test_a_client_that_leaves_ends_the_run(server: Server, neighbour: str, order: str) -> None:
    app = App(*stack(order, AROUND[neighbour]))
    server.app = app.app
    client = Client(server)
    client.events(1)
    client.leave()
    until(lambda: app.ended)


@each_order
def test_other_answers_pass_all_of_them(server: Server, order: str) -> None:
    server.app = App(*stack(order, *ALL)).app

    def post(path: str) -> httpx.Response:
        headers = {"content-type": "application/json", "origin": ORIGIN}
        return server.client.post(path, content=BODY, headers=headers)

    missing = post("/missing")
    assert (missing.status_code, missing.headers["x-why"], missing.text) == (404, "missing", "no such agent")
    assert (post("/known").status_code, post("/known").json()) == (409, {"handled": True})
    answer = post("/json")
    assert (answer.json(), answer.headers["content-encoding"]) == ({"text": "x" * 2000}, "gzip")
    assert post("/nowhere").status_code == 404


@each_order
def test_a_preflight_is_answered_by_the_cors_middleware(server: Server, order: str) -> None:
    server.app = App(*stack(order, AROUND["CORS"])).app
    asked = {"origin": ORIGIN, "access-control-request-method": "POST"}
    response = server.client.options("/", headers=asked)
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, ORIGIN)
    stranger = server.client.options("/", headers={**asked, "origin": "https://evil.example"})
    assert stranger.status_code == 400


def test_a_refusal_has_the_headers_that_a_browser_needs_to_read_it(server: Server) -> None:
    strict = Middleware(AGUIMiddleware, on_unparsable="reject")
    server.app = App(AROUND["CORS"], strict).app
    response = server.post(b"no json", headers={"origin": ORIGIN})
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (400, ORIGIN)


def test_a_failure_before_the_stream_is_handled_by_the_exception_middleware(server: Server) -> None:
    error = OopsError("secret")

    async def fails(_request: Request) -> Response:
        raise error

    async def told(_request: Request, _exc: Exception) -> Response:
        return JSONResponse({"told": True}, 503)

    for handlers, status in (({OopsError: told}, 503), ({Exception: told}, 503), ({}, 500)):
        routes = [Route("/", fails, methods=["POST"])]
        server.app = Starlette(routes=routes, middleware=[OURS], exception_handlers=handlers)
        assert server.post().status_code == status
        if handlers.get(OopsError) is None:  # ServerErrorMiddleware answers, and lets the server know
            until(lambda: server.errors)
            ((_, logged),) = server.errors
            assert logged is error
            server.errors.clear()


# Compression.


def test_a_stream_that_is_compressed_inside_passes_as_it_is(server: Server) -> None:
    # Starlette's own leaves event streams alone; others do not.
    found: list[Diagnostic] = []

    async def compressed(request: Request) -> Response:
        await request.body()
        data = gzip.compress(b"".join(FRAMES))
        return Response(data, media_type="text/event-stream", headers={"content-encoding": "gzip"})

    app = Starlette(routes=[Route("/", compressed, methods=["POST"])])
    server.app = AGUIMiddleware(app, middleware=[shout], on_diagnostic=found.append)
    assert server.post().content == b"".join(FRAMES)
    assert [item.code for item in found] == ["asgi.bypass"]


@pytest.mark.parametrize("outside", [True, False])
def test_starlettes_compression_leaves_a_stream_alone(server: Server, *, outside: bool) -> None:
    order = [AROUND["gzip"], SHOUTING] if outside else [SHOUTING, AROUND["gzip"]]
    server.app = App(*order).app
    response = server.post(headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in response.headers
    assert "".join(event.delta or "" for event in events_of(response)) == "GRÜSSE, 世界"


def test_events_are_not_kept_back_by_any_of_them(server: Server) -> None:
    for order in ("outside", "inside", "both"):
        hang = asyncio.Event()

        async def stream(request: Request, hang: asyncio.Event = hang) -> Response:
            await request.body()

            async def frames() -> AsyncIterator[bytes]:
                for one in FRAMES[:2]:
                    yield one
                await hang.wait()

            return StreamingResponse(frames(), media_type="text/event-stream")

        routes = [Route("/", stream, methods=["POST"])]
        server.app = Starlette(routes=routes, middleware=stack(order, *ALL[:2], *ALL[3:]))
        client = Client(server)
        assert [event.type for event in client.events(2)] == TYPES[:2]
        client.leave()
        until(lambda: server.tasks() == [])


# Hypercorn.


class Hypercorn:
    """Hypercorn on loopback, in a thread of its own, over HTTP/1.1 and with the application's lifespan."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._config = Config()
        self._config.errorlog = logging.getLogger("hypercorn.error")
        self._config.graceful_timeout = 1
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self._config.bind = [f"fd://{listening.detach()}"]  # which closes it
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(serve(self._app, self._config, shutdown_trigger=self._stop.wait))
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def post(self, **headers: str) -> httpx.Response:
        with httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE, trust_env=False) as client:
            return client.post("/", content=BODY, headers={"content-type": "application/json", **headers})


@pytest.mark.parametrize("order", [[OURS], stack("both", *ALL)], ids=["alone", "among all others"])
def test_hypercorn_serves_a_wrapped_app_and_its_lifespan(order: list[Middleware]) -> None:
    app = App(*order)
    with Hypercorn(app.app) as server:
        for _ in range(3):
            assert [event.type for event in events_of(server.post())] == TYPES
        assert (app.started, app.stopped, app.background) == (1, 0, 3)
    assert (app.started, app.stopped) == (1, 1)


def test_hypercorn_serves_an_agent() -> None:
    with Hypercorn(agent_app(RUN, GuardMiddleware())) as server:
        response = server.post()
        assert [event.type for event in events_of(response)] == TYPES
        assert response.headers["cache-control"] == "no-cache, no-transform"


def test_on_hypercorn_a_failure_is_an_ended_stream_and_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    error = OopsError("secret")
    for app in (App(OURS, error=error).app, agent_app(Agent([*RUN[:3], error]), GuardMiddleware())):
        caplog.clear()
        with Hypercorn(app) as server:
            events = events_of(server.post())
        assert [event.type for event in events][-1] == "RUN_ERROR"
        assert "secret" not in json.dumps([dict(event.data) for event in events])
        told = [record.exc_info for record in caplog.records if record.exc_info]
        assert [info[1] for info in told] == [error]


def test_on_hypercorn_a_client_that_leaves_ends_the_run() -> None:
    agent = Agent([*RUN[:2], lambda: asyncio.sleep(1000)])
    app = App(OURS)
    for served, ended in ((agent_app(agent, GuardMiddleware()), lambda: agent.cleaned), (app.app, lambda: app.ended)):
        with Hypercorn(served) as server:
            client = Client(server)
            client.events(1)
            client.leave()
            until(ended)


# What is neither a request nor an answer.


def test_a_websocket_beside_a_wrapped_endpoint_works_on_a_server() -> None:
    # By hand: the handshake, one masked frame, its echo.
    app = App(OURS)
    with Hypercorn(app.app) as server, socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
        lines = (
            "GET /ws HTTP/1.1",
            "host: x",
            "upgrade: websocket",
            "connection: upgrade",
            "sec-websocket-version: 13",
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
        )
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += client.recv(4096)
        assert answer.startswith(b"HTTP/1.1 101 ")
        client.sendall(b"\x81\x82\x00\x00\x00\x00hi")
        echo = answer.partition(b"\r\n\r\n")[2]
        while len(echo) < 4:
            echo += client.recv(4096)
        assert echo[:4] == b"\x81\x02hi"
