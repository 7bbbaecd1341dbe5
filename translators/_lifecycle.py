"""One stream on its way through the tables of `lifecycle.py`, as `@ag-ui/client` 1.0 sees it.

Knows what is open, which chunks are pending in which lane, and the state of the run. Says what is wrong with an event
and what makes it legal; does not do it (`_guard.py`), and does not look at fields that say nothing about order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from agui_pipeline.translators._events import AnyEvent, WireEvent
from agui_pipeline.translators._lanes import ChunkStream, Lanes
from agui_pipeline.translators._owners import ACTIVITY, Owners, field_of, name_of, owner_of, untagged
from agui_pipeline.translators._shape_checks import LARGEST
from agui_pipeline.translators.lifecycle import (
    ACTIVE,
    BEFORE,
    CLOSED,
    FAILED,
    FINISHED,
    OPEN,
    OVER,
    OWN,
    PARTS,
    REASONING,
    ROWS,
    RUN,
    STEP,
    SUBAGENT,
    TEXT,
    TOOL,
    Repair,
    Row,
    State,
    Violation,
)

_CONTENT: Final = {
    "TEXT_MESSAGE_CONTENT": (TEXT, "messageId", "message_id"),
    "TOOL_CALL_ARGS": (TOOL, "toolCallId", "tool_call_id"),
    "REASONING_MESSAGE_CONTENT": (REASONING, "messageId", "message_id"),
}
_CHUNKS: Final = {
    "TEXT_MESSAGE_CHUNK": (TEXT, "messageId", "message_id"),
    "TOOL_CALL_CHUNK": (TOOL, "toolCallId", "tool_call_id"),
    "REASONING_MESSAGE_CHUNK": (REASONING, "messageId", "message_id"),
}
_SAID: Final = {TEXT: ("role", "name"), TOOL: ("tool_call_name", "parent_message_id"), REASONING: ()}
"""What later chunks of a stream must not contradict."""
_ALL_SAID: Final = tuple(name for names in _SAID.values() for name in names)
_ONLY_ONE: Final = ""
"""The id of what has none."""
_NO_FIELDS: Final[Mapping[str, Any]] = {}


class Part(NamedTuple):
    """Something open.

    Attributes:
        kind: A key of `PARTS`.
        id: Its id; the name of a step; the `subagentRunId` of a subagent.
        tag: The tag of what opened it. (A snapshot may have given it to somebody else since.)
        order: Grows with every part that is opened.
    """

    kind: str
    id: str
    tag: str | None
    order: int


class Lifecycle:
    """The state of one stream.

    Attributes:
        run: The state of the run.
        lanes: The pending streams of chunks. To be read only.

    Example:
        >>> from agui_pipeline.translators import decode_event
        >>> life = Lifecycle()
        >>> life.step(decode_event({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}))
        >>> life.step(decode_event({"type": "TEXT_MESSAGE_END", "messageId": "m"})).rule
        'not-open'
    """

    def __init__(self) -> None:
        self.run: State = BEFORE
        self.lanes = Lanes()
        self._open: dict[str, dict[Any, Part]] = {kind: {} for kind in PARTS}
        self._owners = Owners()
        self._over: set[str] = set()
        self._order = 0

    def continues(self, event: AnyEvent) -> bool:
        """Whether an event is nothing but the next piece of something open: most are, and need no closer look.

        False says nothing: `step` has the answer then.
        """
        found = _CONTENT.get(event.type)
        if found is None or self.lanes:
            return False
        kind, wire_name, name = found
        id, tag = _plain(event, wire_name, name)
        return id in self._open[kind] and (tag is None or tag == self._owners.get(kind, id))

    def goes_on(self, event: AnyEvent) -> ChunkStream | None:
        """Return the stream of its own lane that a chunk is nothing but the next piece of. None says nothing."""
        found = _CHUNKS.get(event.type)
        if found is None:
            return None
        kind, wire_name, name = found
        id, tag = _plain(event, wire_name, name, or_none=True)
        stream = self.lanes.get(tag)
        return stream if stream is not None and stream.kind is kind and id in (None, stream.id) else None

    def step(self, event: AnyEvent) -> Violation | None:
        """Take the next event.

        Args:
            event: Any event. One of a type that is not in `ROWS` changes nothing.

        Returns:
            None where the client accepts it here; else what is wrong, and nothing has changed.
        """
        row = ROWS.get(event.type)
        if row is None:
            return None
        cell = RUN[self.run][row.run]
        if type(cell) is Repair:
            rule = {BEFORE: "not-started", ACTIVE: "run-active"}.get(self.run, "after-terminal")
            return Violation(rule, cell, f"the stream is {self.run}")
        tag = owner_of(event)
        if row.kind is not None:
            return (self._chunk if row.chunk else self._part)(row, row.kind, event, tag)
        special = self._SPECIAL.get(row.type)
        violation = None if special is None else special(self, event, tag)
        if violation is None:
            for lane in self.lanes.closed_by(row, tag) if self.lanes else ():
                self._close_lane(lane)
        return violation

    def open_parts(self) -> list[Part]:
        """Return what must be closed before RUN_FINISHED, in the order of opening.

        Without what chunks have opened: RUN_FINISHED closes that.
        """
        pending = {stream[:2] for stream in self.lanes.values()}
        parts = [part for of_kind in self._open.values() for part in of_kind.values() if part[:2] not in pending]
        return sorted(parts, key=lambda part: part.order)

    # Parts.

    def _part(self, row: Row, kind: str, event: AnyEvent, tag: str | None) -> Violation | None:
        id = field_of(event, row.id, row.wire_id) if row.id else _ONLY_ONE
        if not isinstance(id, str):
            return _nameless(kind)
        key: Any = (tag, id) if kind is STEP else id
        # What the event closes is closed before the client looks at it.
        closing = self.lanes.get(tag) if self.lanes and row.lane is OWN else None
        state = self._state(kind, key, closing)
        cell = row.cells[state]
        if type(cell) is Repair:
            return self._forbidden(row, id, tag, state, cell)
        violation = self._check_owner(row, kind, id, event, tag)
        if violation is not None:
            return violation
        if row.ends and self.lanes and any(s is not closing and s[:2] == (kind, id) for s in self.lanes.values()):
            # The lane would end it a second time.
            return Violation("chunk-end", Repair.DROP, f"chunks of another lane are writing the {kind}")
        if closing is not None:
            self._close_lane(tag)
        if row.opens:
            self._add(kind, key, id, tag, field_of(event, "parent_message_id", "parentMessageId"))
        elif row.ends:
            del self._open[kind][key]
            if cell is OVER:
                self._over.add(id)
        return None

    def _state(self, kind: str, key: Any, closing: ChunkStream | None) -> State:
        if key in self._open[kind]:
            return CLOSED if closing is not None and closing[:2] == (kind, key) else OPEN
        return OVER if kind is SUBAGENT and key in self._over else CLOSED

    def _forbidden(self, row: Row, id: str, tag: str | None, state: State, repair: Repair) -> Violation:
        if row.kind is STEP and row.ends:
            holders = [owner for owner, name in self._open[STEP] if name == id]
            if len(holders) == 1:
                words = f"the open step of that name is {name_of(holders[0])}, the event {name_of(tag)}"
                return Violation("step-owner", Repair.CHANGE, words, {"subagent_run_id": holders[0]})
            if holders:
                return Violation("step-owner", Repair.DROP, f"{len(holders)} others have an open step of that name")
        rule = "subagent-over" if state is OVER and row.opens else "already-open" if state is OPEN else "not-open"
        return Violation(rule, repair, f"the {row.kind} is {state}")

    def _check_owner(self, row: Row, kind: str, id: str, event: AnyEvent, tag: str | None) -> Violation | None:
        if self._owners.keeps(kind):
            if row.opens:
                parent = field_of(event, "parent_message_id", "parentMessageId")
                return self._owners.check_opening(kind, id, tag, parent)
            return self._owners.check(kind, id, tag)
        if kind is SUBAGENT:
            parent = field_of(event, "parent_subagent_run_id", "parentSubagentRunId") if row.opens else None
            if isinstance(parent, str) and parent not in self._open[SUBAGENT] and parent not in self._over:
                words = "no subagent of that id was started"
                return Violation("subagent-parent", Repair.CHANGE, words, {"parent_subagent_run_id": None})
        elif kind is not STEP and not row.opens:  # thinking, whose owner does not outlive it
            part = self._open[kind][id]
            if tag is not None and tag != part.tag:
                return untagged(kind, part.tag)
        return None

    def _add(self, kind: str, key: Any, id: str, tag: str | None, parent: Any) -> None:
        if self._owners.keeps(kind):
            self._owners.open(kind, id, tag, parent)
        self._order += 1
        self._open[kind][key] = Part(kind, id, tag, self._order)

    # Chunks.

    def _chunk(self, row: Row, kind: str, event: AnyEvent, tag: str | None) -> Violation | None:
        id = field_of(event, row.id, row.wire_id)
        if id is not None and not isinstance(id, str):
            return _nameless(kind)
        lane, stream, only = self.lanes.find(kind, id, tag)
        if stream is None:
            said = {name: getattr(event, name, None) for name in _SAID[kind]}
            if id is not None and not (kind is TOOL and said["tool_call_name"] is None):
                return self._open_stream(row, kind, id, tag, lane, said)
            words = f"no {kind} is pending" if only else f"more than one {kind} is pending"
            return Violation("chunk-id", Repair.DROP, words)
        if tag is not None and tag != lane:
            return untagged(kind, lane)
        wrong = [name for name, value in stream.said.items() if getattr(event, name, None) not in (None, value)]
        if wrong:
            words = f"it differs from the first chunk in {', '.join(wrong)}"
            return Violation("chunk-conflict", Repair.CHANGE, words, dict.fromkeys(wrong))
        return None

    def _open_stream(
        self, row: Row, kind: str, id: str, tag: str | None, lane: str | None, said: dict[str, Any]
    ) -> Violation | None:
        closing = self.lanes.get(lane)
        state = self._state(kind, id, closing)
        cell = row.cells[state]
        if type(cell) is Repair:
            return Violation("already-open", cell, f"the {kind} is {state}")
        parent = said.get("parent_message_id")
        violation = self._owners.check_opening(kind, id, tag, parent)
        if violation is not None:
            return violation
        if closing is not None:
            self._close_lane(lane)
        self._add(kind, id, id, tag, parent)
        if kind is TEXT and said["role"] is None:
            said["role"] = "assistant"
        self.lanes[lane] = ChunkStream(kind, id, tag, said)
        return None

    def _close_lane(self, lane: str | None) -> None:
        stream = self.lanes.pop(lane)
        del self._open[stream.kind][stream.id]

    # Events that no part sees. What they return is a violation; lanes are closed by `step`.

    def _enter(self, run: State) -> None:
        self.run = run
        self.lanes.clear()
        for parts in self._open.values():
            parts.clear()
        self._owners = Owners()
        self._over.clear()

    def _run_started(self, event: AnyEvent, _tag: str | None) -> None:
        self._enter(ACTIVE)
        given = field_of(event, "input", "input")
        if given is not None:
            self._owners.seed(field_of(given, "messages", "messages"), restate=False)

    def _run_finished(self, _event: AnyEvent, _tag: str | None) -> Violation | None:
        left = self.open_parts()
        if left:
            counts = ", ".join(f"{count} of kind {kind}" for kind, count in Counter(part.kind for part in left).items())
            return Violation("left-open", Repair.CLOSE_ALL, f"still open: {counts}")
        self._enter(FINISHED)
        return None

    def _run_error(self, _event: AnyEvent, _tag: str | None) -> None:
        self._enter(FAILED)

    def _tool_result(self, event: AnyEvent, tag: str | None) -> Violation | None:
        id = field_of(event, "message_id", "messageId")
        if not isinstance(id, str) or not isinstance(field_of(event, "tool_call_id", "toolCallId"), str):
            return _nameless(TOOL)
        for lane, stream in self.lanes.items():
            if stream[:2] == (TEXT, id) and lane != tag and stream.tag is not None:
                # It would take the message over, and the lane's own end for it would contradict the new owner.
                words = "chunks of another lane are writing the message of that id"
                return Violation("result-id", Repair.CHANGE, words, {"subagent_run_id": stream.tag})
        self._owners.set(TEXT, id, tag)
        return None

    def _messages_snapshot(self, event: AnyEvent, _tag: str | None) -> None:
        self._owners.seed(field_of(event, "messages", "messages"), restate=True)

    def _activity_snapshot(self, event: AnyEvent, tag: str | None) -> Violation | None:
        id = field_of(event, "message_id", "messageId")
        if not isinstance(id, str):
            return _nameless(ACTIVITY)
        # One that leaves a known activity as it is leaves it to its owner, too.
        if not self._owners.known(ACTIVITY, id) or field_of(event, "replace", "replace") is not False:
            self._owners.set(ACTIVITY, id, tag)
        return None

    def _activity_delta(self, event: AnyEvent, tag: str | None) -> Violation | None:
        id = field_of(event, "message_id", "messageId")
        return self._owners.check(ACTIVITY, id, tag) if isinstance(id, str) else _nameless(ACTIVITY)

    def _encrypted_value(self, event: AnyEvent, tag: str | None) -> Violation | None:
        id = field_of(event, "entity_id", "entityId")
        subtype = field_of(event, "subtype", "subtype")
        return self._owners.check_encrypted(subtype, id, tag) if isinstance(id, str) else _nameless("message")

    _SPECIAL: ClassVar = {
        "RUN_STARTED": _run_started,
        "RUN_FINISHED": _run_finished,
        "RUN_ERROR": _run_error,
        "TOOL_CALL_RESULT": _tool_result,
        "MESSAGES_SNAPSHOT": _messages_snapshot,
        "ACTIVITY_SNAPSHOT": _activity_snapshot,
        "ACTIVITY_DELTA": _activity_delta,
        "REASONING_ENCRYPTED_VALUE": _encrypted_value,
    }


def _nameless(kind: str) -> Violation:
    return Violation("no-id", Repair.DROP, f"no {kind} is named")


_ODD: Final = (object(), None)
"""The id of an event that needs a closer look: no part has it."""


def _plain(event: AnyEvent, wire_name: str, name: str, *, or_none: bool = False) -> tuple[Any, Any]:
    """Return the id and the tag of a piece of content that has nothing odd about it, else `_ODD`.

    Args:
        event: A CONTENT, ARGS or CHUNK event.
        wire_name: The name of its id on the wire.
        name: The attribute.
        or_none: Whether the id may be absent.
    """
    if type(event) is WireEvent:
        fields: Mapping[str, Any] = event._data  # noqa: SLF001 - a property each costs more than all of this
        id = fields.get(wire_name)
        tag = fields.get("subagentRunId")
        known = 2 + (id is not None) + (tag is not None)
        if len(fields) != known:  # what frameworks like to add
            timestamp = fields.get("timestamp")
            known += ("rawEvent" in fields) + (type(timestamp) is int and -LARGEST <= timestamp <= LARGEST)
            if len(fields) != known:
                return _ODD
    else:
        fields = getattr(event, "__dict__", _NO_FIELDS)
        id = fields.get(name)
        tag = fields.get("subagent_run_id")
        if fields.get("metadata") is not None or fields.get("timestamp") is not None:
            return _ODD
        if getattr(event, "__pydantic_extra__", None):  # the tag, to an SDK that does not know it
            return _ODD
        if or_none and any(fields.get(said) is not None for said in _ALL_SAID):
            return _ODD
    if type(fields.get("delta")) is not str or not (type(id) is str or (or_none and id is None)):
        return _ODD
    return id, tag if tag is None or type(tag) is str else _ODD
