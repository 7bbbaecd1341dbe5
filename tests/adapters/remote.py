"""A remote agent on a bare socket: it answers byte by byte what a test says, and sees when its client leaves."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.adapters.server import PATIENCE, until

SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@dataclass
class Asked:
    """One request, and what became of its connection."""

    connection: int
    line: str
    headers: Mapping[str, str]
    body: bytes
    sent: int = 0
    left: threading.Event = field(default_factory=threading.Event)


class Socket:
    """What a script answers with."""

    def __init__(self, connection: socket.socket, asked: Asked) -> None:
        self._connection = connection
        self._asked = asked

    def send(self, *parts: bytes) -> None:
        """Send bytes as they are, each part apart."""
        for part in parts:
            self._connection.sendall(part)
            self._asked.sent += len(part)

    def stream(self, *chunks: bytes, head: bytes = SSE_HEAD) -> None:
        """Send the head of a chunked answer and some chunks, not its end."""
        self.send(head + b"transfer-encoding: chunked\r\n\r\n", *map(chunked, chunks))

    def end(self) -> None:
        """End a chunked answer."""
        self.send(b"0\r\n\r\n")

    def stall(self) -> None:
        """Wait until the client leaves."""
        with contextlib.suppress(ConnectionError):
            while self._connection.recv(4096):
                pass
        self._asked.left.set()

    def flood(self, part: bytes) -> None:
        """Send the same for ever, until the client leaves."""
        with contextlib.suppress(OSError):
            while True:
                self.send(part)
        self._asked.left.set()

    def reset(self) -> None:
        """Break the connection, as a machine that crashed."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._connection.close()


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


Script: TypeAlias = Callable[[Socket], object]


class Remote:
    """A server whose answers are scripts, one a request (the last one for all that follow).

    Attributes:
        asked: The requests, in order.
    """

    def __init__(self, scripts: Sequence[Script]) -> None:
        self.asked: list[Asked] = []
        self._scripts: queue.SimpleQueue[Script] = queue.SimpleQueue()
        for script in scripts:
            self._scripts.put(script)
        self._last = scripts[-1]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/run"

    @property
    def left(self) -> bool:
        """Whether the client of the last request has left."""
        return bool(self.asked) and self.asked[-1].left.wait(PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.settimeout(PATIENCE)
            self._connections.append(connection)
            self._start(self._serve, connection, len(self._connections))

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, contextlib.suppress(OSError):
            while (asked := _read(connection, number)) is not None:
                self.asked.append(asked)
                script = self._last if self._scripts.empty() else self._scripts.get()
                script(Socket(connection, asked))
                if connection.fileno() < 0:
                    return

    @contextlib.contextmanager
    def running(self) -> Iterator[Remote]:
        self._start(self._accept)
        try:
            yield self
        finally:
            # A thread that waits in accept() or recv() is not woken by close() alone.
            for one in (self._listener, *self._connections):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
            for thread in self._threads:
                thread.join(PATIENCE)
            until(lambda: not any(thread.is_alive() for thread in self._threads))


def remote(*scripts: Script) -> contextlib.AbstractContextManager[Remote]:
    """Serve scripts while the block runs."""
    return Remote(scripts).running()


def _read(connection: socket.socket, number: int) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in fields)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    return Asked(number, line, headers, body)
