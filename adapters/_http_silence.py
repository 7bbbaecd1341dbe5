"""A limit to silence: waiting for the next thing, at most for so long at a stretch.

Knows clocks; does not know what is waited for. It exists for its price on asyncio: one timer a stream, which looks at
how long the present wait has lasted, in place of one a wait, costs a tenth of anyio's `move_on_after` in a burst.
"""

from __future__ import annotations

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from agui_pipeline.middleware._channel import in_trio
from agui_pipeline.middleware._task import interruptible

_T = TypeVar("_T")


class ImpatienceError(Exception):
    """A wait took too long, and was cancelled."""


def open_patience(seconds: float | None) -> Patience:
    """Return a patience of so many seconds for the running event loop; None: without an end."""
    if seconds is None:
        return _Endless()
    return _TrioPatience(seconds) if in_trio() else _AsyncioPatience(seconds)


class Patience(ABC):
    """Waits, one thing after another."""

    @abstractmethod
    async def wait(self, step: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `step()` gives.

        Raises:
            ImpatienceError: It took too long.
        """

    def close(self) -> None:  # noqa: B027 - most have none
        """Drop the timer."""


class _Endless(Patience):
    async def wait(self, step: Callable[[], Awaitable[_T]]) -> _T:
        return await step()


class _TrioPatience(Patience):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def wait(self, step: Callable[[], Awaitable[_T]]) -> _T:
        with anyio.move_on_after(self._seconds):
            return await step()
        raise ImpatienceError


class _AsyncioPatience(Patience):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._block = interruptible()
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, step: Callable[[], Awaitable[_T]]) -> _T:
        self._since = self._loop.time()
        if self._timer is None:
            self._set(self._since + self._seconds)
        with self._block:
            return await step()
        raise ImpatienceError

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, moment: float) -> None:
        # In no run's context: a timer keeps its context, and this one may outlive what is in it.
        self._timer = self._loop.call_at(moment, self._look, context=contextvars.Context())

    def _look(self) -> None:
        """End the present wait, where it has lasted too long; where nobody waits, the next wait sets the timer."""
        self._timer = None
        due = self._since + self._seconds
        if due > self._loop.time():
            self._set(due)
        else:
            self._block.interrupt()
