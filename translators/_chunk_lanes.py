"""Which text message, tool call or reasoning message a chunk belongs to.

Knows the client's rule (AG-UI 1.0): one pending stream a lane, a lane being a subagent run or the parent; what closes
a lane; that a continuation may carry nothing but its `delta`. Does not make events of it, and does not check that the
fields of a chunk agree with those of the chunk that opened its stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from agui_pipeline.translators._errors import SequenceError
from agui_pipeline.translators.lifecycle import CLOSES_ALL_LANES, CLOSES_OWN_LANE, CLOSES_SUBAGENTS_LANE

CHUNK_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "TEXT_MESSAGE_CHUNK": ("text", "messageId"),
    "TOOL_CALL_CHUNK": ("tool call", "toolCallId"),
    "REASONING_MESSAGE_CHUNK": ("reasoning", "messageId"),
}
"""Kind of stream and name of its id by the type of a chunk."""


class Pending(NamedTuple):
    """A stream that chunks have opened.

    Attributes:
        kind: ``"text"``, ``"tool call"`` or ``"reasoning"``.
        id: The id of the message or the tool call.
        owner: The ``subagentRunId`` of its lane, None for the parent's.
    """

    kind: str
    id: str
    owner: str | None


class ChunkStep(NamedTuple):
    """What a chunk means.

    Attributes:
        stream: The stream it belongs to.
        opens: Whether it is the first of that stream.
        closes: The stream that was pending in its lane and ends before this chunk, None for none.
    """

    stream: Pending
    opens: bool
    closes: Pending | None


class ChunkLanes:
    """One run's pending chunk streams. Events are JSON objects with wire names.

    Example:
        >>> lanes = ChunkLanes()
        >>> lanes.chunk({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "a"})
        ChunkStep(stream=Pending(kind='text', id='m', owner=None), opens=True, closes=None)
        >>> lanes.chunk({"type": "TEXT_MESSAGE_CHUNK", "delta": "b"})
        ChunkStep(stream=Pending(kind='text', id='m', owner=None), opens=False, closes=None)
        >>> lanes.other({"type": "CUSTOM", "name": "n", "value": 1})
        [Pending(kind='text', id='m', owner=None)]
    """

    __slots__ = ("_lanes",)

    def __init__(self) -> None:
        self._lanes: dict[str | None, Pending] = {}

    def chunk(self, event: Mapping[str, Any]) -> ChunkStep:
        """Take a chunk.

        Raises:
            SequenceError: The chunk continues nothing, or could continue several streams; the official client throws.
        """
        kind, id_name = CHUNK_TYPES[event["type"]]
        id = event.get(id_name)
        lane = self._lane_of(event, kind, id)
        pending = self._lanes.get(lane)
        if pending is not None and pending.kind == kind and id in (None, pending.id):
            return ChunkStep(pending, opens=False, closes=None)
        if id is None:
            raise SequenceError(f"a {event['type']} without {id_name} continues nothing: no {kind} is open in its lane")
        opened = self._lanes[lane] = Pending(kind, id, lane)
        return ChunkStep(opened, opens=True, closes=pending)

    def other(self, event: Mapping[str, Any]) -> list[Pending]:
        """Take an event that is no chunk; return the streams that it closes. Unknown types close nothing."""
        name = event["type"]
        if name in CLOSES_ALL_LANES:
            closed = list(self._lanes.values())
            self._lanes.clear()
            return closed
        owner = event.get("subagentRunId")
        if name in CLOSES_OWN_LANE or (name in CLOSES_SUBAGENTS_LANE and owner is not None):
            pending = self._lanes.pop(owner, None)
            return [] if pending is None else [pending]
        return []

    def _lane_of(self, event: Mapping[str, Any], kind: str, id: str | None) -> str | None:
        tag: str | None = event.get("subagentRunId")
        if id is not None:
            for owner, pending in self._lanes.items():
                if pending.kind == kind and pending.id == id:
                    return owner
            return tag
        if tag is not None:
            return tag
        parents = self._lanes.get(None)
        if parents is not None and parents.kind == kind:
            return None
        candidates = [owner for owner, pending in self._lanes.items() if pending.kind == kind]
        if len(candidates) > 1:
            raise SequenceError(
                f"a {event['type']} without id and subagentRunId could continue {len(candidates)} open streams"
            )
        return candidates[0] if candidates else None
