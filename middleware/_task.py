"""Detached tasks, and interrupting the current one, on asyncio and on trio.

A task group cannot be open where a generator yields, and it wraps errors. What it would guarantee is done by hand:
whoever starts a task here always calls `join`. Cancellation is asked for once (asyncio): a level-triggered scope would
also cut the awaits in a plain ``finally: await release()``. (On trio it is level-triggered, as everywhere there.)
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import anyio

from agui_pipeline.middleware._channel import in_trio


def spawn(run: Callable[[], Awaitable[None]], name: str) -> Child:
    """Start a task with a copy of the current context.

    Args:
        run: What the task does. It must not raise, except for the cancellation that `Child.cancel` caused.
        name: For debuggers.
    """
    return (_TrioChild if in_trio() else _AsyncioChild)(run, name)


def is_trio_cancellation(exc: BaseException | None) -> bool:
    """Whether an exception is trio's `Cancelled`, or a group that holds one. Its scope must see it."""
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    if isinstance(exc, BaseExceptionGroup):
        return exc.subgroup(trio.Cancelled) is not None
    return isinstance(exc, trio.Cancelled)


class Child(ABC):
    """A task that whoever started it cancels and joins."""

    cancelled = False
    """Whether `cancel` was called."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether it has ended."""

    @abstractmethod
    def cancel(self) -> None:
        """Ask it once to end; no effect on one that has ended."""

    @abstractmethod
    async def wait(self) -> None:
        """Wait for its end, or until the waiting task is cancelled."""

    @abstractmethod
    async def join(self) -> None:
        """Wait for its end. Not cut short by a cancellation, which is raised afterwards."""


class _AsyncioChild(Child):
    def __init__(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        async def task() -> None:
            await run()

        self._task = asyncio.get_running_loop().create_task(task(), name=name)

    @property
    def done(self) -> bool:
        return self._task.done()

    def cancel(self) -> None:
        if not self.cancelled:
            self.cancelled = True
            self._task.cancel()

    async def wait(self) -> None:
        if not self._task.done():
            await asyncio.wait([self._task])

    async def join(self) -> None:
        task = self._task
        cancelled: BaseException | None = None
        while not task.done():
            try:
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([task])
            except asyncio.CancelledError as exc:
                cancelled = exc
        if not task.cancelled():
            task.result()  # a defect of ours would show here
        if cancelled is not None:
            raise cancelled


class _TrioChild(Child):
    def __init__(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        self._trio = sys.modules["trio"]
        self._scope = self._trio.CancelScope()
        self._done = self._trio.Event()
        self._error: Exception | None = None
        self._run = run
        # System tasks start in an empty context: hand ours on, or context variables are lost.
        self._trio.lowlevel.spawn_system_task(self._supervise, name=name, context=contextvars.copy_context())

    async def _supervise(self) -> None:
        try:
            with self._scope:
                await self._run()
        except Exception as exc:  # noqa: BLE001 - `join` raises it; from a system task it would end all of trio
            self._error = exc
        finally:
            self._done.set()

    @property
    def done(self) -> bool:
        return bool(self._done.is_set())

    def cancel(self) -> None:
        self.cancelled = True
        self._scope.cancel()

    async def wait(self) -> None:
        await self._done.wait()

    async def join(self) -> None:
        with self._trio.CancelScope(shield=True):
            await self._done.wait()
        if self._error is not None:
            raise self._error


def interruptible() -> Interruptible:
    """Return a context manager whose block another task can end. For coroutines, never across a `yield`."""
    return _TrioInterruptible() if in_trio() else _AsyncioInterruptible()


class Interruptible(ABC):
    """A block of the current task that `interrupt` ends, from another task.

    Attributes:
        interrupted: Whether `interrupt` was called while the block ran. A block whose code may swallow a cancellation
            looks at it.
    """

    def __init__(self) -> None:
        self.interrupted = False

    @abstractmethod
    def __enter__(self) -> Self:
        """Begin the block."""

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """End the block; the cancellation that `interrupt` caused stops here."""

    @abstractmethod
    def interrupt(self) -> None:
        """Cancel what the block waits for, once. No effect before the block has begun, and when it is over."""


class _AsyncioInterruptible(Interruptible):
    def __init__(self) -> None:
        super().__init__()
        self._task: asyncio.Task[Any] | None = None
        self._before = 0
        self._asked = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in tasks
        self._task = task
        self._before = task.cancelling()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        # As asyncio.timeout does: ours only, if nobody else cancelled the task meanwhile.
        if not self._asked or task is None:
            return False
        return task.uncancel() <= self._before and isinstance(exc, asyncio.CancelledError)

    def interrupt(self) -> None:
        task = self._task
        if task is None or self.interrupted:
            return
        self.interrupted = True
        # Somebody else's cancellation ends the block as well; a second one would cut the cleanup that the first began.
        if task.cancelling() <= self._before:
            self._asked = True
            task.cancel()


class _TrioInterruptible(Interruptible):
    def __init__(self) -> None:
        super().__init__()
        self._scope = sys.modules["trio"].CancelScope()
        self._open = False

    def __enter__(self) -> Self:
        self._open = True
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._open = False
        return bool(self._scope.__exit__(kind, exc, trace))

    def interrupt(self) -> None:
        if self._open and not self.interrupted:
            self.interrupted = True
            self._scope.cancel()
