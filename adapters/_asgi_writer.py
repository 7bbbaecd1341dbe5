"""Writing an event stream to one ASGI `send`: whole frames, one body message at a time, comments when it is idle.

Knows ASGI's response messages and time; does not know what the frames mean.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import sys
import weakref
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
from starlette.types import Message, Send

from agui_pipeline.middleware._channel import in_trio
from agui_pipeline.middleware._task import Child, spawn

if TYPE_CHECKING:
    import trio

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
        finished: Whether the end of the response was sent.
        last: When something was last sent, on the loop's clock.
    """

    __slots__ = (
        "__weakref__",
        "_beat",
        "_busy",
        "_context",
        "_frames",
        "_free",
        "_on_gone",
        "_send",
        "_size",
        "_time",
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
        self._beat: Child | None = None
        self._context = contextvars.copy_context()
        self.started = False
        self.finished = False
        self.discard = False
        self.last = 0.0
        self._time: Callable[[], float] = (
            sys.modules["trio"].current_time if in_trio() else asyncio.get_running_loop().time
        )

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

    def deliver(self, frames: Sequence[bytes]) -> Awaitable[None]:
        """Collect frames and `flush`: in one step where there is one, and nothing waits."""
        if len(frames) == 1 and not (self._frames or self._busy):
            return self._deliver({"type": "http.response.body", "body": frames[0], "more_body": True})
        for frame in frames:
            self.add(frame)
        return self.flush()

    async def finish(self) -> None:
        """Send what was collected and the end of the response."""
        await self.flush()
        while self._busy:
            await self._until_free()
        self.finished = True
        await self._deliver({"type": "http.response.body", "body": b"", "more_body": False})

    def beat_from_outside(self) -> None:
        """Do as `beat`, in this stream's own context: what wraps `send` may ask whose request it serves."""
        self._context.run(self.beat)

    def beat(self) -> None:
        """Send what was collected, else a comment, from a task of its own."""
        if not (self._busy or self.finished or self.discard) and (self._beat is None or self._beat.done):
            self._beat = spawn(self._keep_alive, "agui_pipeline.heartbeat")

    async def settle(self) -> None:
        """End the task of a `beat`, if there is one: a send that never returns must not outlive its stream."""
        if self._beat is not None:
            self._beat.cancel()
            await self._beat.join()

    async def _keep_alive(self) -> None:
        with suppress(Exception):  # the stream's own next write meets the same failure, and reports it
            if not (self._busy or self._frames or self.finished):
                await self._deliver({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
            await self.flush()

    @property
    def pending(self) -> bool:
        """Whether something was collected and not sent."""
        return bool(self._frames)

    async def _deliver(self, message: Message) -> None:
        if self.discard:
            return
        self._busy = True
        try:
            await self._send(message)
        except OSError:  # what servers raise since ASGI 2.4 when the client has left
            self.discard = True
            self._on_gone()
            await anyio.lowlevel.checkpoint()  # what that cancels may be this task: here, and not where it would hang
        finally:
            self._busy = False
            self.last = self._time()
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
        self._next = math.inf  # when to look again
        self._timer: asyncio.TimerHandle | None = None
        self._running = False  # trio's task
        self._sleep: trio.CancelScope | None = None

    def add(self, writer: Writer, interval: float) -> None:
        """Send a comment whenever nothing was sent for `interval` seconds."""
        writer.last = _now()
        self._streams[writer] = interval
        if writer.last + interval < self._next:
            self._set(writer.last + interval)

    def remove(self, writer: Writer) -> None:
        """Forget a stream; with the last one the timer goes."""
        if self._streams.pop(writer, None) is not None and not self._streams:
            self._set(math.inf)

    def _set(self, moment: float) -> None:
        """Look again at a moment of the loop's clock; infinity: no more."""
        self._next = moment
        if not in_trio():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if moment < math.inf:
                # In no request's context: a timer keeps its context, and this one would keep a request that is over.
                nobody = contextvars.Context()
                self._timer = asyncio.get_running_loop().call_at(moment, self._fire, context=nobody)
        elif self._sleep is not None:
            self._sleep.deadline = moment if self._streams else -math.inf
        elif not self._running:
            self._running = True
            sys.modules["trio"].lowlevel.spawn_system_task(self._run_trio, name="agui_pipeline.heartbeats")

    async def _run_trio(self) -> None:
        trio = sys.modules["trio"]
        try:
            while self._streams:
                with trio.CancelScope(deadline=self._next) as self._sleep:
                    await trio.sleep_forever()
                self._sleep = None
                if self._next <= trio.current_time():
                    self._fire()
        finally:
            self._running = False

    def _fire(self) -> None:
        """Look at every stream, and set the timer for the one that is due next."""
        now = _now()
        soonest = math.inf
        for writer, interval in self._streams.items():
            due = writer.last + interval
            if due <= now:
                writer.beat_from_outside()
                due = now + interval
            soonest = min(soonest, max(due, now + interval / 10))
        self._set(soonest)


_loops: weakref.WeakKeyDictionary[Any, Heartbeats] = weakref.WeakKeyDictionary()


def heartbeats() -> Heartbeats:
    """Return the heartbeats of the running event loop."""
    loop = sys.modules["trio"].lowlevel.current_root_task() if in_trio() else asyncio.get_running_loop()
    found = _loops.get(loop)
    if found is None:
        found = _loops[loop] = Heartbeats()
    return found
