"""A run that goes on, as those who join it see it: what it gave so far, and the news.

Knows how much of a run is held, and who waits for more. Does not know which request it answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable

import anyio

from agui_pipeline.middleware._recordings import ActionRecording
from agui_pipeline.middleware._refusals import CUT, run_error
from agui_pipeline.translators import AnyEvent, decode_event, encode_event
from agui_pipeline.translators._a2ui_client_carriers import unheard


class LiveRun:
    """The events of one run, within a bound. One task writes; any number follow, and none of them keeps it waiting.

    They are held from the first one on as long as the bound allows: only so long can the run be joined and recorded.

    Args:
        digest: Of the request that it answers.
        limit: Bytes of JSON that are held.

    Attributes:
        recording: What answers the request in its place, where it was answered before.
    """

    __slots__ = ("_after", "_ended", "_events", "_first", "_limit", "_news", "_size", "digest", "recording")

    def __init__(self, digest: str, limit: int) -> None:
        self.digest = digest
        self.recording: ActionRecording | None = None
        self._limit = limit
        self._events: deque[bytes] = deque()
        self._first = 0  # the number of the first event that is held
        self._size = 0
        self._ended = False
        self._after: AnyEvent | None = None
        self._news: anyio.Event | None = None

    @property
    def whole(self) -> bool:
        """Whether every event is held."""
        return self._first == 0

    def recorded(self) -> ActionRecording:
        """Return the events so far as a recording."""
        return ActionRecording(self.digest, tuple(self._events))

    def add(self, event: AnyEvent) -> None:
        """Take the next event."""
        data = encode_event(event, unheard)
        self._events.append(data)
        self._size += len(data)
        while self._size > self._limit:
            self._size -= len(self._events.popleft())
            self._first += 1
        self._tell()

    def end(self, after: AnyEvent | None = None) -> None:
        """End the run. Only the first call counts.

        Args:
            after: What those who follow are told after its last event, where it was cut or refused.
        """
        if not self._ended:
            self._ended = True
            self._after = after
            self._tell()

    async def follow(self, cut: Callable[[], None]) -> AsyncGenerator[AnyEvent, None]:
        """Give the events so far, then each as it comes. Who falls behind what is held gets RUN_ERROR.

        Args:
            cut: Called before the last event where that is not the run's own.
        """
        number = 0
        while True:
            while number < self._first + len(self._events):
                if number < self._first:
                    cut()
                    yield run_error(CUT, "this reader was too slow for the run that it joined: send the request again")
                    return
                data = self._events[number - self._first]
                number += 1
                yield decode_event(data)
            if self._ended:
                break
            if self._news is None:
                self._news = anyio.Event()
            await self._news.wait()
        if self._after is not None:
            cut()
            yield self._after

    def _tell(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None
