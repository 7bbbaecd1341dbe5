"""Chunk streams and what ends them, as the official client expands chunks (@ag-ui/client 1.0.0).

Knows which stream a chunk continues and which streams an event closes. Does not know text. The translator keeps two
of these: one for what the source sends, one for what the client has been sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agui_pipeline.translators._compat import HAS_SUBAGENTS
from agui_pipeline.translators._events import AnyEvent, replace
from agui_pipeline.translators.lifecycle import CLOSES_ALL_LANES, CLOSES_OWN_LANE, CLOSES_SUBAGENTS_LANE

if TYPE_CHECKING:
    from agui_pipeline.translators.a2ui._messages import TextMessage

StreamKind: TypeAlias = Literal["text", "tool", "reasoning"]

# Which chunks continue which kind of stream; the field of its id, and what else only its first chunk need say.
_CHUNKS: Final[dict[str, tuple[StreamKind, str, tuple[str, ...]]]] = {
    "TEXT_MESSAGE_CHUNK": ("text", "message_id", ("role", "name")),
    "TOOL_CALL_CHUNK": ("tool", "tool_call_id", ("tool_call_name", "parent_message_id")),
    "REASONING_MESSAGE_CHUNK": ("reasoning", "message_id", ()),
}
CHUNK_TYPES: Final = frozenset(_CHUNKS)


@dataclass(slots=True)
class Stream:
    """One chunk stream.

    Attributes:
        kind: Of what.
        id: The id that its first chunk gave; None where that gave none, which no client accepts.
        opener: Its first chunk.
        message: Its message, where it is one of text at the source.
    """

    kind: StreamKind
    id: str | None
    opener: AnyEvent
    message: TextMessage | None = None


class Lanes:
    """The open chunk streams, at most one a lane. A lane is a subagent's, or (None) the parent agent's.

    Attributes:
        streams: By lane. Only for looking whether there are any: most runs have none, and then nothing need be asked.
    """

    __slots__ = ("streams",)

    def __init__(self) -> None:
        self.streams: dict[str | None, Stream] = {}

    def continued_by(self, event: AnyEvent) -> tuple[str | None, Stream | None]:
        """Say where a chunk belongs.

        Returns:
            Its lane, and the stream that it continues there; None where it opens one.
        """
        kind = _CHUNKS[event.type][0]
        id_ = stream_id(event, event.type)
        lane = subagent_of(event)
        stream = self.streams.get(lane)
        if stream is not None and stream.kind == kind and (id_ is None or id_ == stream.id):
            return lane, stream
        # Not where the event says, or it says nothing: then an id finds its lane, or the only stream is meant.
        if id_ is not None:
            for other, stream in self.streams.items():
                if stream.id == id_ and stream.kind == kind:
                    return other, stream
        elif lane is None:
            found = [(other, stream) for other, stream in self.streams.items() if stream.kind == kind]
            if len(found) == 1:
                return found[0]
        return lane, None

    def open(self, lane: str | None, stream: Stream) -> Sequence[Stream]:
        """Open a stream on a lane; return the one that this closes, if any."""
        closed = self.streams.pop(lane, None)
        self.streams[lane] = stream
        return () if closed is None else (closed,)

    def take(self, event: AnyEvent) -> Sequence[Stream]:
        """Take any event; return the streams that it closes. It opens its own stream if it is a chunk that does."""
        name = event.type
        if name in _CHUNKS:
            lane, stream = self.continued_by(event)
            if stream is not None:
                return ()
            return self.open(lane, Stream(_CHUNKS[name][0], stream_id(event, name), event))
        if not self.streams:
            return ()
        subagent = subagent_of(event)
        if name in CLOSES_OWN_LANE or (name in CLOSES_SUBAGENTS_LANE and subagent is not None):
            closed = self.streams.pop(subagent, None)
            return () if closed is None else (closed,)
        return self.close_all() if name in CLOSES_ALL_LANES else ()

    def close_all(self) -> Sequence[Stream]:
        """Close every lane; return the streams that were open, the oldest first."""
        closed = tuple(self.streams.values())
        self.streams.clear()
        return closed


def stream_id(event: AnyEvent | None, chunk_type: str) -> str | None:
    """Return the id of what an event says it is of, where chunks of a type continue that."""
    value = getattr(event, _CHUNKS[chunk_type][1], None)
    return value if isinstance(value, str) else None


def restated(chunk: AnyEvent, opener: AnyEvent | None, lane: str | None) -> AnyEvent:
    """Return a chunk with all that it lacks to open its stream anew.

    Args:
        chunk: One that continues a stream.
        opener: What opened that: its first chunk, or a START.
        lane: The stream's.
    """
    _, id_field, fields = _CHUNKS[chunk.type]
    own = {field: getattr(opener, field, None) for field in (id_field, *fields)} | {"subagent_run_id": lane}
    lacking = {
        field: value for field, value in own.items() if value is not None and getattr(chunk, field, None) is None
    }
    return replace(chunk, **lacking) if lacking else chunk


def subagent_of(event: AnyEvent) -> str | None:
    """Return whose event it is; None for the parent agent."""
    owner = getattr(event, "subagent_run_id", None)
    if owner is None and not HAS_SUBAGENTS:  # a model that does not know the field keeps it under its wire name
        owner = getattr(event, "subagentRunId", None)
    return owner if isinstance(owner, str) else None
