"""A real server in a process of its own, and a client that does as little as one can."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_BODY = (
    b'{"threadId":"t","runId":"r","state":{},"messages":[{"id":"u","role":"user","content":"hi"}],'
    b'"tools":[],"context":[],"forwardedProps":{}}'
)


class Server:
    """A uvicorn on loopback that serves `benchmarks.endpoint_app`."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str) -> Any:
        """GET a JSON answer."""
        with self.connect() as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            return json.loads(_drain(connection).split(b"\r\n\r\n", 1)[1])

    def post(self, path: str) -> int:
        """Run a stream to its end; returns the bytes received."""
        with self.open(path) as connection:
            return len(_drain(connection))

    @contextmanager
    def open(self, path: str) -> Iterator[socket.socket]:
        """Start a stream."""
        with self.connect() as connection:
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
            connection.sendall(head.encode() + f"content-length: {len(_BODY)}\r\n\r\n".encode() + _BODY)
            yield connection

    def connect(self) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self._port))

    def cpu(self) -> float:
        """Return the CPU seconds that the server has used."""
        return float(self.get("/cpu")["cpu"])

    def rss(self) -> int:
        """Return the server's resident size in bytes."""
        return int(self.get("/cpu")["rss"])


def _drain(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


@contextmanager
def serving() -> Iterator[Server]:
    """Start the server, and end it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "benchmarks.endpoint_app:app", "--port", str(port)]
    process = subprocess.Popen([*command, "--log-level", "error", "--backlog", "4096"], cwd=ROOT)  # noqa: S603
    try:
        server = Server(port)
        for _ in range(200):
            try:
                server.cpu()
                break
            except OSError:
                time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait(10)
