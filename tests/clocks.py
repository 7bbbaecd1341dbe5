"""Event loops whose clock jumps: nobody waits, and the times at which things happen are exact."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable
from typing import Any

import sniffio
import trio
import trio.testing


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for `timeout` seconds it says that they have passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if timeout is None and not ready:
            raise AssertionError("deadlock: every task waits, and no timer is set")
        if timeout and not ready:
            # At least the smallest step: a rounded sum may end just before the time that was asked for.
            self.now = max(self.now + timeout, math.nextafter(self.now, math.inf))
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """asyncio's counterpart of trio's autojumping clock."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def jump(self, seconds: float) -> None:
        self._jumping.now += seconds


def spend(seconds: float) -> None:
    """Let time pass without waiting: what computing does."""
    clock: Any = (
        asyncio.get_running_loop() if sniffio.current_async_library() == "asyncio" else trio.lowlevel.current_clock()
    )
    clock.jump(seconds)


BACKENDS: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
    "asyncio": lambda: ("asyncio", {"loop_factory": JumpingLoop}),
    "trio": lambda: ("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}),
}
"""Makers of `anyio_backend` values. A clock serves one test, so a fixture makes its own each time."""
