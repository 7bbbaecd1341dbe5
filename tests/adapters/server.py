"""A real uvicorn on loopback, in a thread of its own, and clients that read as much as they like."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import httpx
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_pipeline.translators import SSEDecoder, WireEvent
from agui_pipeline.translators._sse import decode_frame
from tests.adapters.apps import BODY

PATIENCE = 10.0
"""Seconds until what should have happened is taken not to happen."""


class Server:
    """Serves whatever app a test puts in.

    Attributes:
        app: The app.
        client: A client for whole answers.
        errors: What uvicorn has logged at ERROR: its message and the exception, if there is one.
    """

    def __init__(self) -> None:
        self.app: ASGIApp | None = None
        self.errors: list[tuple[str, BaseException | None]] = []
        self._loop: Any = None
        self._server = uvicorn.Server(
            uvicorn.Config(self._serve, interface="asgi3", lifespan="off", log_config=None, loop="asyncio")
        )
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None
        await self.app(scope, receive, send)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        logger = logging.getLogger("uvicorn.error")
        handler = _Handler(self.errors)
        logger.addHandler(handler)
        level = logger.level
        logger.setLevel(logging.ERROR)
        self._thread.start()
        until(lambda: self._server.started)
        try:
            yield self
        finally:
            self.client.close()
            self._server.should_exit = True
            self._thread.join(PATIENCE)
            logger.removeHandler(handler)
            logger.setLevel(level)
            self._socket.close()

    def tasks(self) -> list[str]:
        """The tasks of the server's event loop, but for the server's own."""
        found: list[str] = []
        done = threading.Event()

        def look() -> None:
            gc.collect()
            found.extend(
                task.get_name()
                for task in asyncio.all_tasks(loop)
                # sse-starlette keeps one task an event loop for good.
                if not any(name in repr(task.get_coro()) for name in ("Server.", "_shutdown_watcher"))
            )
            done.set()

        loop = self._server.servers[0].get_loop()
        loop.call_soon_threadsafe(look)
        assert done.wait(PATIENCE)
        return found

    def post(self, body: bytes = BODY, **options: Any) -> httpx.Response:
        # Of a connection of its own: uvicorn closes one whose app raised, also behind a complete response.
        headers = {"content-type": "application/json", "connection": "close", **options.pop("headers", {})}
        return self.client.post("/", content=body, headers=headers, **options)


class _Handler(logging.Handler):
    def __init__(self, errors: list[tuple[str, BaseException | None]]) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        self._errors.append((record.getMessage().strip(), record.exc_info[1] if record.exc_info else None))


def until(condition: Callable[[], Any]) -> None:
    """Wait for another thread."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.002)


class Listening(Protocol):
    """Whatever listens on a port of this machine."""

    port: int


class Client:
    """A client on a bare socket, which leaves when it likes: nicely, or with a reset, as a client that crashed."""

    def __init__(
        self, server: Listening, body: bytes = BODY, *, announced: int | None = None, headers: str = ""
    ) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        length = len(body) if announced is None else announced
        headers += f"host: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
        head = f"POST / HTTP/1.1\r\n{headers}\r\n"
        self._socket.sendall(head.encode() + body)
        self._received = b""

    def events(self, count: int) -> list[WireEvent]:
        """Read until so many events have come."""
        while True:
            found = list(self._decoded())
            if len(found) >= count:
                return found
            data = self._socket.recv(4096)
            assert data, f"the server has closed the connection: {self._received!r}"
            self._received += data

    def _decoded(self) -> Iterator[WireEvent]:
        _, _, chunked = self._received.partition(b"\r\n\r\n")
        decoder = SSEDecoder()
        while chunked:
            size, _, rest = chunked.partition(b"\r\n")
            if len(rest) < int(size, 16) + 2 or not int(size, 16):
                break
            for one in decoder.feed(rest[: int(size, 16)]):
                if one.data is not None:
                    yield decode_frame(one)
            chunked = rest[int(size, 16) + 2 :]

    def leave(self, *, reset: bool = False) -> None:
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._socket.close()
