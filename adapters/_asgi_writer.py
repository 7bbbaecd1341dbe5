"""Writing an event stream to one ASGI `send`: whole frames, one body message at a time, comments when it is idle.

Knows ASGI's response messages and time; does not know what the frames mean.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import anyio
from starlette.types import Message, Send

from agui_pipeline.middleware._channel import in_trio

KEEP_ALIVE: Final = b": keep-alive\n\n"
_MOST_FRAMES: Final = 64
_MOST_BYTES: Final = 64 * 1024


class Writer:
    """Collects frames and sends them joined.

    Args:
        send: The server's `send`.
        on_gone: Called when `send` says that the client has left (OSError).

    Attributes:
        started: Whether the response's start was sent.
        discard: Whether the client has left: what is written from now on goes nowhere.
        last: When something was last sent, on the loop's clock.
    """

    __slots__ = (
        "__weakref__",
        "_busy",
        "_frames",
        "_free",
        "_on_gone",
        "_send",
        "_size",
        "discard",
        "finished",
        "last",
        "started",
    )

    def __init__(self, send: Send, on_gone: Callable[[], None]) -> None:
        self._send = send
        self._on_gone = on_gone
        self._frames: list[bytes] = []
        self._size = 0
        self._busy = False
        self._free: anyio.Event | None = None
        self.started = False
        self.finished = False
        self.discard = False
        self.last = 0.0

    async def start(self, message: Message) -> None:
        """Send the start of the response."""
        self.started = True
        await self._deliver(message)

    def add(self, frame: bytes) -> bool:
        """Collect a frame; returns whether it is time to `flush`."""
        self._frames.append(frame)
        self._size += len(frame)
        return len(self._frames) >= _MOST_FRAMES or self._size >= _MOST_BYTES

    async def flush(self) -> None:
        """Send what was collected. Returns when it has been taken, so a slow client slows its source."""
        while self._frames:
            if self._busy:
                await self._until_free()
                continue
            data = self._frames[0] if len(self._frames) == 1 else b"".join(self._frames)
            self._frames.clear()
            self._size = 0
            await self._deliver({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        """Send what was collected and the end of the response."""
        await self.flush()
        while self._busy:
            await self._until_free()
        self.finished = True
        await self._deliver({"type": "http.response.body", "body": b"", "more_body": False})

    async def keep_alive(self) -> None:
        """Send a comment, unless something is being sent or collected: it then proves as much."""
        if not (self._busy or self._frames or self.finished or self.discard):
            await self._deliver({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

    @property
    def idle(self) -> bool:
        """Whether nothing is being sent."""
        return not self._busy

    async def _deliver(self, message: Message) -> None:
        if self.discard:
            return
        self._busy = True
        try:
            await self._send(message)
        except OSError:  # what servers raise since ASGI 2.4 when the client has left
            self.discard = True
            self._on_gone()
        finally:
            self._busy = False
            self.last = _now()
            if self._free is not None:
                self._free.set()
                self._free = None

    async def _until_free(self) -> None:
        if self._free is None:
            self._free = anyio.Event()
        await self._free.wait()


def _now() -> float:
    return float(sys.modules["trio"].current_time()) if in_trio() else asyncio.get_running_loop().time()


class Heartbeats:
    """Keeps idle streams of one event loop alive, with one timer for all of them."""

    def __init__(self) -> None:
        self._streams: dict[Writer, float] = {}
        self._stop: Callable[[], Any] | None = None  # ends what waits for the next beat
        self._tasks: set[Any] = set()

    def add(self, writer: Writer, interval: float) -> None:
        """Send a comment whenever nothing was sent for `interval` seconds."""
        writer.last = _now()
        self._streams[writer] = interval
        if self._stop is None:
            if in_trio():
                trio = sys.modules["trio"]
                scope = trio.CancelScope()
                self._stop = scope.cancel
                trio.lowlevel.spawn_system_task(self._run_trio, scope, name="agui_pipeline.heartbeats")
            else:
                self._arm(interval)

    def remove(self, writer: Writer) -> None:
        """Forget a stream; with the last one the timer goes."""
        self._streams.pop(writer, None)
        if not self._streams and self._stop is not None:
            self._stop()
            self._stop = None

    def _due(self) -> tuple[list[Writer], float]:
        """Return the streams that are due, and in how many seconds to look again."""
        now = _now()
        due: list[Writer] = []
        wait = float("inf")
        for writer, interval in self._streams.items():
            left = writer.last + interval - now
            if left <= 0:
                if writer.idle:
                    due.append(writer)
                left = interval
            wait = min(wait, max(left, interval / 10))
        return due, wait

    def _arm(self, seconds: float) -> None:
        self._stop = asyncio.get_running_loop().call_later(seconds, self._tick).cancel

    def _tick(self) -> None:
        due, wait = self._due()
        for writer in due:
            task = asyncio.get_running_loop().create_task(_beat(writer))
            self._tasks.add(task)  # the loop keeps weak references only
            task.add_done_callback(self._tasks.discard)
        self._arm(wait)

    async def _run_trio(self, scope: Any) -> None:
        trio = sys.modules["trio"]
        with scope:
            while True:
                due, wait = self._due()
                for writer in due:
                    trio.lowlevel.spawn_system_task(_beat, writer, name="agui_pipeline.heartbeat")
                await trio.sleep(wait)


async def _beat(writer: Writer) -> None:
    with suppress(Exception):  # the stream's own next write meets the same failure, and reports it
        await writer.keep_alive()


_loops: weakref.WeakKeyDictionary[Any, Heartbeats] = weakref.WeakKeyDictionary()


def heartbeats() -> Heartbeats:
    """Return the heartbeats of the running event loop."""
    loop = sys.modules["trio"].lowlevel.current_root_task() if in_trio() else asyncio.get_running_loop()
    found = _loops.get(loop)
    if found is None:
        found = _loops[loop] = Heartbeats()
    return found
