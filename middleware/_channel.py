"""A bounded queue between two tasks whose reader can also be woken by a deadline, on asyncio and on trio.

Knows about tasks, timers and clocks; does not know what the items are. It exists because a stage that holds events
needs "the next item or this moment, whichever comes first" without cancelling a pending ``__anext__`` (which would
end the source), and at the price of one bare future a wait: anyio's events and cancel scopes cost several times that.

One writer task, one reader task.
"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ag_ui.core import RunAgentInput

from agui_pipeline.translators import SSEFrame

if TYPE_CHECKING:
    import trio

    from agui_pipeline.middleware._chain import Chain


def in_trio() -> bool:
    """Whether the calling task is one of trio's."""
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


def open_channel(limit: int) -> Channel:
    """Return a channel for the running event loop that holds `limit` items before its writer waits."""
    return _TrioChannel(limit) if in_trio() else _AsyncioChannel(limit)


class Channel(ABC, AsyncIterator[Any]):
    """The queue.

    Attributes:
        items: What is ready. The reader takes from the left, then calls `took`.
        ended: Whether nothing more will be written.
        error: Why it ended, None for a plain end.
        before_wait: Awaited by `wait` before it parks the reader, when nothing is ready.
        aside: Takes, in their place, items that are no events and that no stage shall see.
        chain: What its reader feeds with each item, where that is all it does with them.
    """

    __slots__ = ("aside", "before_wait", "chain", "ended", "error", "items", "limit")

    def __init__(self, limit: int) -> None:
        self.items: deque[Any] = deque()
        self.limit = limit
        self.ended = False
        self.error: BaseException | None = None
        self.before_wait: Callable[[], Awaitable[None]] | None = None
        self.aside: Callable[[SSEFrame], None] | None = None
        self.chain: Chain | None = None

    @abstractmethod
    def time(self) -> float:
        """The loop's clock, in seconds."""

    @abstractmethod
    def wake(self) -> None:
        """Wake the reader, if it waits."""

    @abstractmethod
    def took(self) -> None:
        """Tell the writer that there may be room again."""

    @abstractmethod
    async def room(self) -> None:
        """Wait until fewer than `limit` items are ready, or until `release`."""

    @abstractmethod
    def release(self) -> bool:
        """Let a writer that waits for room go on; returns whether one did."""

    @abstractmethod
    async def park(self, deadline: float | None) -> None:
        """Wait for `wake`, or until `deadline` on this clock; may return early."""

    def direct(self, step: int) -> Chain | None:
        """Return the chain where the writer may feed it itself; it then calls `fed`.

        That is where its reader waits for the next item and does nothing else with it. A token that comes alone then
        costs no switch to the reader's task. Once a step of the writer, which is what it does without a wait: what
        comes behind it in the same one is better read, and sent, together.

        Args:
            step: The number of the writer's step.
        """
        del step
        return None

    def fed(self, deadline: float | None) -> None:
        """Take the news that the chain was fed by the writer: its deadline may be another, and it may have ended."""

    @abstractmethod
    def close(self) -> None:
        """Drop the timer. The reader calls this when it is done."""

    def push(self, item: Any) -> None:
        """Add an item. The writer then awaits `room` where ``len(items) >= limit``."""
        self.items.append(item)
        self.wake()

    def end(self, error: BaseException | None = None) -> None:
        """Say that nothing more will be written, and why. Only the first call counts."""
        if not self.ended:
            self.ended = True
            self.error = error
            self.wake()

    async def wait(self, deadline: float | None = None) -> None:
        """Return once something is ready, the channel has ended, or `deadline` may have passed."""
        if self.before_wait is not None:
            await self.before_wait()
        if not self.items and not self.ended:
            await self.park(deadline)

    async def __anext__(self) -> Any:
        while True:
            while not self.items:
                if self.ended:
                    if self.error is not None:
                        raise self.error
                    raise StopAsyncIteration
                await self.wait()
            item = self.items.popleft()
            self.took()
            if self.aside is None or type(item) is not SSEFrame:
                return item
            self.aside(item)


class _AsyncioChannel(Channel):
    __slots__ = ("_loop", "_reader", "_step", "_timer", "_writer")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._loop = asyncio.get_running_loop()
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._step = -1  # the writer's step in which it fed the chain itself

    def time(self) -> float:
        return self._loop.time()

    def wake(self) -> None:
        reader = self._reader
        if reader is not None and not reader.done():
            reader.set_result(None)

    def took(self) -> None:
        writer = self._writer
        if writer is not None and len(self.items) < self.limit and not writer.done():
            writer.set_result(None)

    async def room(self) -> None:
        self._writer = self._loop.create_future()
        try:
            await self._writer
        finally:
            self._writer = None

    def release(self) -> bool:
        if self._writer is None:
            return False
        if not self._writer.done():
            self._writer.set_result(None)
        return True

    async def park(self, deadline: float | None) -> None:
        if deadline is not None:
            self._arm(deadline)
        self._reader = self._loop.create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _arm(self, deadline: float) -> None:
        timer = self._timer
        # One that fires earlier is left alone: waking once too early is cheaper than a new timer an event.
        if timer is None or timer.when() > deadline:
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(deadline, self._ring)

    def direct(self, step: int) -> Chain | None:
        reader = self._reader
        if step == self._step or self.items or reader is None or reader.done():
            return None
        self._step = step
        return self.chain

    def fed(self, deadline: float | None) -> None:
        if self.chain is None or self.chain.ended:
            self.wake()
        elif deadline is not None:
            self._arm(deadline)

    def _ring(self) -> None:
        self._timer = None
        self.wake()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _TrioChannel(Channel):
    __slots__ = ("_reader", "_trio", "_writer")

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._trio = sys.modules["trio"]
        self._reader: trio.Event | None = None
        self._writer: trio.Event | None = None

    def time(self) -> float:
        now: float = self._trio.current_time()
        return now

    def wake(self) -> None:
        if self._reader is not None:
            self._reader.set()

    def took(self) -> None:
        if self._writer is not None and len(self.items) < self.limit:
            self._writer.set()

    async def room(self) -> None:
        self._writer = self._trio.Event()
        try:
            await self._writer.wait()
        finally:
            self._writer = None

    def release(self) -> bool:
        if self._writer is None:
            return False
        self._writer.set()
        return True

    async def park(self, deadline: float | None) -> None:
        self._reader = self._trio.Event()
        try:
            if deadline is None:
                await self._reader.wait()
            else:
                with self._trio.CancelScope(deadline=deadline):
                    await self._reader.wait()
        finally:
            self._reader = None

    def close(self) -> None:
        pass


@runtime_checkable
class ChannelSource(Protocol):
    """A source whose run is a channel that somebody else writes: drivers read it directly, without a pump."""

    def channel(self, input: RunAgentInput) -> Channel:
        """Start a run and return its channel, of events only."""
        ...

    def __call__(self, input: RunAgentInput) -> Channel:
        """Do the same."""
        ...
