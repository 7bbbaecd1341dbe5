"""The pending streams of chunks: which one a chunk goes on with, in the client's eyes and in its producer's.

Knows the lanes of AG-UI 1.0. Does not know which parts are open otherwise, or what the chunks hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from agui_pipeline.translators.lifecycle import ALL, OWN, Row

_NO_FIELDS: Final[Mapping[str, Any]] = {}


class ChunkStream(NamedTuple):
    """A part that chunks are writing.

    Attributes:
        kind: A key of `PARTS`.
        id: The part's id.
        tag: The tag of its first chunk.
        said: The values that later chunks must not contradict, by attribute.
    """

    kind: str
    id: str
    tag: str | None
    said: Mapping[str, Any] = _NO_FIELDS


class Lanes(dict[str | None, ChunkStream]):
    """The pending streams of chunks, by lane: a `subagentRunId`, or None for the parent's lane."""

    def find(self, kind: str, id: str | None, tag: str | None) -> tuple[str | None, ChunkStream | None, bool]:
        """Find where a chunk belongs.

        Returns:
            Its lane, the stream that it goes on with (None: it opens one there, if it has an id), and whether that
            is the only choice.
        """
        if id is not None:
            for lane, stream in self.items():
                if stream.kind == kind and stream.id == id:
                    return lane, stream, True
            return tag, None, True
        if tag is None and not self._holds(None, kind):
            candidates = [lane for lane, stream in self.items() if stream.kind == kind]
            if len(candidates) > 1:
                return None, None, False
            tag = candidates[0] if candidates else None
        return tag, self[tag] if self._holds(tag, kind) else None, True

    def _holds(self, lane: str | None, kind: str) -> bool:
        stream = self.get(lane)
        return stream is not None and stream.kind == kind

    def closed_by(self, row: Row, tag: str | None) -> Sequence[str | None]:
        """Return the lanes that an event (no chunk) closes."""
        if row.lane is ALL:
            return tuple(self)
        return (tag,) if row.lane is OWN and tag in self else ()


class MeantStreams:
    """Which stream a chunk without an id goes on with, as its producer sees it.

    The producer knows its own events only: not the ends that are put between them, nor the tags that are taken off.
    It also goes on with what an event of its own has closed in the client's eyes, such as a CUSTOM.
    """

    __slots__ = ("_lanes", "_last")

    def __init__(self) -> None:
        self._lanes = Lanes()
        self._last: dict[str | None, dict[str, str]] = {}

    @property
    def pending(self) -> bool:
        """Whether `close` has anything to do."""
        return bool(self._lanes)

    def close(self, row: Row, tag: str | None) -> None:
        """Take an event that is no chunk."""
        for lane in self._lanes.closed_by(row, tag):
            del self._lanes[lane]

    def holds(self, stream: ChunkStream) -> bool:
        """Whether the producer, too, has a stream pending in its lane."""
        mine = self._lanes.get(stream.tag)
        return mine is not None and mine.kind is stream.kind and mine.id == stream.id

    def chunk(self, kind: str, id: str | None, tag: str | None) -> str | None:
        """Take a chunk; return the id of its stream, None where nobody can tell."""
        if id is not None and not isinstance(id, str):
            return None
        lane, stream, only = self._lanes.find(kind, id, tag)
        if stream is not None:
            return stream.id
        if id is None:
            lane, id = self._before(kind, tag) if only else (tag, None)
            if id is None:
                return None
        self._lanes[lane] = ChunkStream(kind, id, lane)
        self._last.setdefault(lane, {})[kind] = id
        return id

    def _before(self, kind: str, tag: str | None) -> tuple[str | None, str | None]:
        """Find the last stream of a lane; for an untagged chunk, the only last one there is."""
        own = self._last.get(tag, {}).get(kind)
        if own is not None or tag is not None:
            return tag, own
        others = [(lane, ids[kind]) for lane, ids in self._last.items() if kind in ids]
        return others[0] if len(others) == 1 else (tag, None)
