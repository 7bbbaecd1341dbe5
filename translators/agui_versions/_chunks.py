"""Chunks: old clients know one pending stream at most, not one a subagent.

Expanded they are also safe from the CUSTOM events that other rules put between them, which would close their stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agui_pipeline.translators._chunk_lanes import CHUNK_TYPES, ChunkLanes, Pending
from agui_pipeline.translators._errors import SequenceError
from agui_pipeline.translators._events import AnyEvent, WireEvent, decode_event
from agui_pipeline.translators._owners import owner_of
from agui_pipeline.translators.agui_versions._rule import Rule, Setting, made, wire

_NAMES: Final = {
    "text": ("TEXT_MESSAGE", "CONTENT", "messageId"),
    "tool call": ("TOOL_CALL", "ARGS", "toolCallId"),
    "reasoning": ("REASONING_MESSAGE", "CONTENT", "messageId"),
}
_ONLY_AT_START: Final = ("role", "name", "toolCallName", "parentMessageId")
_NAMED: Final = ("messageId", "toolCallId", "subagentRunId")
_ONLY_AT_CONTENT: Final = ("delta",)


class ExpandedChunks(Rule):
    """Makes starts, contents and ends of the chunks of each lane."""

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._lanes = ChunkLanes()
        self._pending = 0

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        if event.type in CHUNK_TYPES:
            return self._chunk(wire(event, self._losses))
        if not self._pending:
            return (event,)
        closed = self._lanes.other({"type": event.type, "subagentRunId": owner_of(event)})
        return (*self._ends(closed), event)

    def end(self, *, failed: bool) -> Iterable[AnyEvent]:  # noqa: ARG002 - the same for every end
        return self._ends(self._lanes.other({"type": "RUN_FINISHED"}))

    def _chunk(self, chunk: WireEvent) -> list[AnyEvent]:
        try:
            if any(not isinstance(chunk.data.get(name, ""), str) for name in _NAMED):
                raise SequenceError("what it belongs to is named by no text")
            stream, opens, closed = self._lanes.chunk(chunk.data)
        except SequenceError:
            self._losses.note("legacy.chunk", chunk.type)
            return []
        out = self._ends([] if closed is None else [closed])
        prefix, content, id_name = _NAMES[stream.kind]
        if opens:
            self._pending += 1
            fields = _without(chunk, _ONLY_AT_CONTENT) | {"type": f"{prefix}_START", id_name: stream.id}
            if stream.kind == "reasoning":
                fields["role"] = "reasoning"
            elif stream.kind == "tool call":
                fields.setdefault("toolCallName", "")
            out.append(decode_event(fields))
        if chunk.delta is not None:
            fields = _without(chunk, _ONLY_AT_START) | {"type": f"{prefix}_{content}", id_name: stream.id}
            out.append(decode_event(fields))
        return out

    def _ends(self, closed: Iterable[Pending]) -> list[AnyEvent]:
        out: list[AnyEvent] = []
        for stream in closed:
            self._pending -= 1
            prefix, _, id_name = _NAMES[stream.kind]
            out.append(made(f"{prefix}_END", **{id_name: stream.id, "subagentRunId": stream.owner}))
        return out


def _without(chunk: WireEvent, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in chunk.data.items() if name not in names}
