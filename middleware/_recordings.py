"""What was answered to a client's request, for when it is sent again.

Knows sizes, ages and the order of forgetting. Does not know when a run is recorded, or replayed (`_repeats.py`).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agui_pipeline.middleware._options import check_callable, check_count, check_number
from agui_pipeline.translators._keys import short_key


@dataclass(frozen=True, slots=True)
class ActionRecording:
    """The stream that answered a request. Made of a string and bytes, so that it is easily stored.

    Attributes:
        digest: Of the request's client message: another message under the same request id is another request.
        events: The events as JSON, in order, the terminal event last.
    """

    digest: str
    events: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Bytes of JSON."""
        return sum(map(len, self.events))


@runtime_checkable
class ActionStore(Protocol):
    """Where `A2UIActionMiddleware` keeps what it answered. Several processes may share one.

    A key is one thread of one user, as the middleware's `key` says; both it and the request id are the client's words.
    Forgetting is allowed: what a store does not know runs again.
    """

    async def get(self, key: str, request_id: str, /) -> ActionRecording | None:
        """Return what was answered to a request, None where that is not known."""
        ...

    async def put(self, key: str, request_id: str, recording: ActionRecording, /) -> bool:
        """Keep what was answered to a request; return whether it is kept."""
        ...

    async def delete(self, key: str, request_id: str, /) -> None:
        """Forget a request, if it is known."""
        ...


class ActionRecordings:
    """An `ActionStore` in the memory of one process, bounded in every direction.

    The oldest is forgotten first. Not for use by several operating-system threads at once.

    Args:
        max_recordings: Requests remembered.
        max_bytes: Bytes of JSON remembered over all of them.
        expires: Seconds until one is forgotten.
        clock: Gives the time in seconds; only differences mean something.

    Raises:
        ConfigurationError: A bound is no number of at least 1, or `clock` is not callable.
    """

    def __init__(
        self,
        *,
        max_recordings: int = 1024,
        max_bytes: int = 64 * 1024 * 1024,
        expires: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_count("max_recordings", max_recordings, least=1)
        check_count("max_bytes", max_bytes, least=1, unit="a whole number of bytes")
        check_number("expires", expires, least=1, unit="a number of seconds")
        check_callable("clock", clock, "() -> float")
        self._max_recordings = max_recordings
        self._max_bytes = max_bytes
        self._expires = expires
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, ActionRecording]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        self._forget_expired()
        return len(self._kept)

    async def get(self, key: str, request_id: str, /) -> ActionRecording | None:
        """Return what was answered to a request."""
        self._forget_expired()
        known = self._kept.get((short_key(key), request_id))
        return None if known is None else known[1]

    async def put(self, key: str, request_id: str, recording: ActionRecording, /) -> bool:
        """Keep what was answered to a request, unless it alone is over `max_bytes`."""
        await self.delete(key, request_id)
        if recording.size > self._max_bytes:
            return False
        self._forget_expired()
        self._kept[short_key(key), request_id] = self._clock(), recording
        self._size += recording.size
        while len(self._kept) > self._max_recordings or self._size > self._max_bytes:
            self._forget_oldest()
        return True

    async def delete(self, key: str, request_id: str, /) -> None:
        """Forget a request."""
        known = self._kept.pop((short_key(key), request_id), None)
        self._size -= 0 if known is None else known[1].size

    def _forget_expired(self) -> None:
        due = self._clock() - self._expires
        while self._kept and next(iter(self._kept.values()))[0] <= due:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        self._size -= self._kept.popitem(last=False)[1][1].size
