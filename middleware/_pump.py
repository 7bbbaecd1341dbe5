"""Reading a source in a task of its own, so that waiting for it and waiting for a timer can be one wait.

Knows how a source is ended without harm; does not know what the items are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from agui_pipeline.middleware._channel import open_channel
from agui_pipeline.middleware._segment import Segment
from agui_pipeline.middleware._task import is_trio_cancellation, spawn

_LIMIT: Final = 64
"""Items read ahead. Enough to make a burst cost two task switches, few enough to stop a source for a slow reader."""


class Pump:
    """A task that reads a source into `channel` until it ends or `stop` is called.

    Args:
        open_source: Opens the source in the segment it is given; called in the new task.
    """

    def __init__(self, open_source: Callable[[Segment], AsyncIterator[Any]]) -> None:
        self.channel = open_channel(_LIMIT)
        self._open = open_source
        self._stopping = False
        self._closing = False
        self._close_error: BaseException | None = None
        self._child = spawn(self._run, "agui_pipeline.pump")

    async def stop(self) -> BaseException | None:
        """End the task, wait until what it opened is closed, and return what closing raised.

        A source that waits is cancelled; one that is suspended at a `yield`, or has ended, is not. Cannot be cancelled
        itself: a cancellation that arrives meanwhile is raised after the task has ended.
        """
        if not self._child.done:
            self._stopping = True
            if not self.channel.release() and not self._closing:
                self._child.cancel()
        try:
            await self._child.join()
        except BaseExceptionGroup as exc:
            self._close_error = exc  # of the source's own task group, without trio's cancellations
        finally:
            self.channel.close()
        closing = self._close_error
        return None if isinstance(closing, asyncio.CancelledError) or is_trio_cancellation(closing) else closing

    async def _run(self) -> None:
        segment = Segment()
        error: BaseException | None = None
        try:
            await self._read(segment)
        except asyncio.CancelledError as exc:
            if self._stopping:
                raise
            error = exc  # the source's own doing: unless the reader raises it, it would read as a clean end
        except BaseException as exc:
            if is_trio_cancellation(exc):
                raise  # belongs to its scope
            if self._stopping:
                self._close_error = exc  # nobody reads any more; this is how the source took being stopped
            else:
                error = exc  # the reader raises it
        finally:
            self._closing = True
            closing = await segment.close()
            if self._close_error is None:
                self._close_error = closing
            # Only now: a reader that sees the end may count on the source being closed.
            self.channel.end(closing if error is None else error)

    async def _read(self, segment: Segment) -> None:
        channel = self.channel
        async for item in self._open(segment):
            if self._stopping:  # a source may swallow the cancellation and go on
                return
            channel.push(item)
            if len(channel.items) >= channel.limit:
                await channel.room()
                if self._stopping:
                    return
