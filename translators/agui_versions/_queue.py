"""One at a time: parts that interleave, made to follow each other. Knows nothing of what the parts are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._events import AnyEvent

MAX_HELD: Final = 20_000
"""Events that are held while another part is open; a large one counts for more: at most some 80 MB a run."""
_UNIT: Final = 4096
"""Bytes that an event may have more to count for one more."""


class _Bucket:
    """What waits for its turn: a part, or an event that belongs to none."""

    __slots__ = ("closed", "events", "key", "weight")

    def __init__(self, key: Hashable = None, *, closed: bool) -> None:
        self.key = key
        self.events: list[AnyEvent] = []
        self.closed = closed
        self.weight = 0


class OneAtATime:
    """Gives the events of parts such that no two are open at once; what comes between waits.

    Everything keeps its order but for one thing: the events of a part stand together, at the place of its start.

    Args:
        end_of: Makes the end of a part from its start.
        splits: Whether a part may be ended and started again, told by its start.
        on_full: Called with the start of a part that had to end early, as too much was held.
        limit: Events that may be held, large ones counted for more.
    """

    __slots__ = ("_buckets", "_cut", "_end_of", "_entries", "_held", "_key", "_limit", "_on_full", "_splits", "_start")

    def __init__(
        self,
        end_of: Callable[[AnyEvent], AnyEvent],
        *,
        splits: Callable[[AnyEvent], bool] = lambda _: True,
        on_full: Callable[[AnyEvent], None] = lambda _: None,
        limit: int = MAX_HELD,
    ) -> None:
        self._end_of = end_of
        self._splits = splits
        self._on_full = on_full
        self._limit = limit
        # The part that is open, by its key and its start; what waits, in order; those parts of it that are still open.
        self._key: Hashable = None
        self._start: AnyEvent | None = None
        self._entries: deque[_Bucket] = deque()
        self._buckets: dict[Hashable, _Bucket] = {}
        self._held = 0
        # Parts that were ended early, with the start that opens them again; None where nothing may.
        self._cut: dict[Hashable, AnyEvent | None] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing is open and nothing waits."""
        return self._start is None

    def start(self, key: Hashable, event: AnyEvent) -> list[AnyEvent]:
        """Take the start of a part."""
        if self._start is None:
            self._key, self._start = key, event
            return [event]
        if key == self._key or key in self._buckets:
            return self.other(event)  # a second start, which no client takes
        bucket = self._buckets[key] = _Bucket(key, closed=False)
        self._entries.append(bucket)
        return self._hold(bucket, event)

    def more(self, key: Hashable, event: AnyEvent) -> list[AnyEvent]:
        """Take content of a part."""
        if self._start is not None and key == self._key:
            return [event]
        bucket = self._buckets.get(key)
        if bucket is not None:
            return self._hold(bucket, event)
        if key in self._cut:
            start = self._cut[key]
            if start is None:
                return []
            del self._cut[key]
            return self.start(key, start) + self.more(key, event)
        return self.other(event)

    def end(self, key: Hashable, event: AnyEvent) -> list[AnyEvent]:
        """Take the end of a part."""
        if self._start is not None and key == self._key:
            self._start = None
            return [event, *self._advance()]
        bucket = self._buckets.pop(key, None)
        if bucket is not None:
            bucket.closed = True
            return self._hold(bucket, event)
        if key in self._cut:
            del self._cut[key]
            return []
        return self.other(event)

    def other(self, event: AnyEvent) -> list[AnyEvent]:
        """Take an event that belongs to no part."""
        if self._start is None:
            return [event]
        bucket = _Bucket(closed=True)
        self._entries.append(bucket)
        return self._hold(bucket, event)

    def drain(self) -> list[AnyEvent]:
        """Give everything, with what is open ended."""
        out: list[AnyEvent] = []
        while self._start is not None:
            out.append(self._end_of(self._start))
            self._start = None
            out += self._advance()
        self._cut.clear()
        return out

    def _advance(self) -> list[AnyEvent]:
        out: list[AnyEvent] = []
        while self._entries and self._start is None:
            bucket = self._entries.popleft()
            self._held -= bucket.weight
            out += bucket.events
            if not bucket.closed:
                del self._buckets[bucket.key]
                self._key, self._start = bucket.key, bucket.events[0]
        return out

    def _hold(self, bucket: _Bucket, event: AnyEvent) -> list[AnyEvent]:
        weight = 1 + len(encode_event(event, lambda _: None)) // _UNIT
        bucket.events.append(event)
        bucket.weight += weight
        self._held += weight
        if self._held <= self._limit or self._start is None:
            return []
        start = self._start
        self._on_full(start)
        self._cut[self._key] = start if self._splits(start) else None
        self._start = None
        return [self._end_of(start), *self._advance()]
