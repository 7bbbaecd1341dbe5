"""The order of events that `@ag-ui/client` 1.0 accepts, as tables, and which repair of a wrong one is certain.

All that can be said in a table is here; `_lifecycle.py` walks a stream through it, with the few rules that relate
more than one cell. Does not know what the fields of an event may hold (`_event_shapes.py`), and repairs nothing
(`_guard.py`).

Theory
======

A stream is not one state machine but many small ones, side by side:

1. *The run* (`RUN`). Every event of the protocol sees it: most are legal in a run only. A stream may carry several
   runs, one after the other; each starts with everything below forgotten.

2. *The parts of a run* (`PARTS`): text messages, tool calls, spans and messages of reasoning, steps, subagents. Each
   is a machine of its own, found by its kind and its id: a tool call and a message may share an id, a span of
   reasoning and the message inside it often do. Only its own events see it. Text, tool calls and reasoning interleave
   freely. A part that was closed may be opened again, except a subagent. A step is found by its name and its owner.

3. *The lanes of chunks* (`LANES`). Chunks open and close parts, too, without saying so. Each owner has a lane, and a
   lane holds at most one stream of chunks: the part it is writing. A chunk with an id goes on with that part wherever
   it is pending, else it opens it in its own lane, closing what the lane held. A chunk without an id goes on with
   what is pending. Other events close the stream of their own lane, or of all lanes, and only then are looked at: so
   TEXT_MESSAGE_END for a message that chunks have opened is one too many.

4. *Owners*. An event may be tagged with a `subagentRunId`; without one it is the parent's. What a part's first event
   says holds for the rest of the run, also after the part was closed. A later event may leave the tag out, but not
   contradict it. Owners are kept apart for messages, tool calls, activities and reasoning; MESSAGES_SNAPSHOT restates
   them. A tool call is its parent message's owner's.

RUN_FINISHED couples them: nothing may be open then. RUN_ERROR does not care.

Each cell of the tables is either the state that follows or, where the client would give up, the `Repair` that makes a
legal stream of it without inventing anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias


class State(StrEnum):
    """A state of the run, or of a part of it."""

    BEFORE = "before the first run"
    ACTIVE = "in a run"
    FINISHED = "after RUN_FINISHED"
    FAILED = "after RUN_ERROR"

    CLOSED = "not open"
    OPEN = "open"
    OVER = "over"


class Repair(StrEnum):
    """What makes a legal stream of an event that its state forbids."""

    DROP = "leave it out"
    START_RUN = "put RUN_STARTED before it"
    OPEN_FIRST = "open the part before it"
    CLOSE_FIRST = "close the part before it"
    CLOSE_ALL = "close what is open before it"
    CHANGE = "change a field of it"


BEFORE, ACTIVE, FINISHED, FAILED = State.BEFORE, State.ACTIVE, State.FINISHED, State.FAILED
CLOSED, OPEN, OVER = State.CLOSED, State.OPEN, State.OVER
DROP, START_RUN, OPEN_FIRST, CLOSE_FIRST = Repair.DROP, Repair.START_RUN, Repair.OPEN_FIRST, Repair.CLOSE_FIRST

Cells: TypeAlias = Mapping[str, State | Repair]

ANY_OTHER: Final = "any other"

RUN: Final[Mapping[State, Cells]] = {
    BEFORE: {"RUN_STARTED": ACTIVE, "RUN_FINISHED": START_RUN, "RUN_ERROR": FAILED, ANY_OTHER: START_RUN},
    ACTIVE: {"RUN_STARTED": DROP, "RUN_FINISHED": FINISHED, "RUN_ERROR": FAILED, ANY_OTHER: ACTIVE},
    FINISHED: {"RUN_STARTED": ACTIVE, "RUN_FINISHED": DROP, "RUN_ERROR": FAILED, ANY_OTHER: DROP},
    FAILED: {"RUN_STARTED": ACTIVE, "RUN_FINISHED": DROP, "RUN_ERROR": DROP, ANY_OTHER: DROP},
}
"""The run. With something open, RUN_FINISHED in a run is `Repair.CLOSE_ALL` instead."""

TEXT, TOOL, SPAN, REASONING = "text message", "tool call", "reasoning span", "reasoning message"
THOUGHT, THINKING = "thinking span", "thinking message"
STEP, SUBAGENT = "step", "subagent"

PARTS: Final[Mapping[str, Mapping[State, Cells]]] = {
    TEXT: {
        CLOSED: {
            "TEXT_MESSAGE_START": OPEN,
            "TEXT_MESSAGE_CONTENT": OPEN_FIRST,
            "TEXT_MESSAGE_END": DROP,
            "TEXT_MESSAGE_CHUNK": OPEN,
        },
        OPEN: {
            "TEXT_MESSAGE_START": DROP,
            "TEXT_MESSAGE_CONTENT": OPEN,
            "TEXT_MESSAGE_END": CLOSED,
            "TEXT_MESSAGE_CHUNK": CLOSE_FIRST,
        },
    },
    TOOL: {
        CLOSED: {
            "TOOL_CALL_START": OPEN,
            "TOOL_CALL_ARGS": OPEN_FIRST,
            "TOOL_CALL_END": DROP,
            "TOOL_CALL_CHUNK": OPEN,
        },
        OPEN: {
            "TOOL_CALL_START": DROP,
            "TOOL_CALL_ARGS": OPEN,
            "TOOL_CALL_END": CLOSED,
            "TOOL_CALL_CHUNK": CLOSE_FIRST,
        },
    },
    SPAN: {
        CLOSED: {"REASONING_START": OPEN, "REASONING_END": DROP},
        OPEN: {"REASONING_START": DROP, "REASONING_END": CLOSED},
    },
    REASONING: {
        CLOSED: {
            "REASONING_MESSAGE_START": OPEN,
            "REASONING_MESSAGE_CONTENT": OPEN_FIRST,
            "REASONING_MESSAGE_END": DROP,
            "REASONING_MESSAGE_CHUNK": OPEN,
        },
        OPEN: {
            "REASONING_MESSAGE_START": DROP,
            "REASONING_MESSAGE_CONTENT": OPEN,
            "REASONING_MESSAGE_END": CLOSED,
            "REASONING_MESSAGE_CHUNK": CLOSE_FIRST,
        },
    },
    # Retired in 1.0; the client makes reasoning of them. They carry no id: there is one of each.
    THOUGHT: {
        CLOSED: {"THINKING_START": OPEN, "THINKING_END": DROP},
        OPEN: {"THINKING_START": DROP, "THINKING_END": CLOSED},
    },
    THINKING: {
        CLOSED: {
            "THINKING_TEXT_MESSAGE_START": OPEN,
            "THINKING_TEXT_MESSAGE_CONTENT": OPEN_FIRST,
            "THINKING_TEXT_MESSAGE_END": DROP,
        },
        OPEN: {
            "THINKING_TEXT_MESSAGE_START": DROP,
            "THINKING_TEXT_MESSAGE_CONTENT": OPEN,
            "THINKING_TEXT_MESSAGE_END": CLOSED,
        },
    },
    STEP: {
        CLOSED: {"STEP_STARTED": OPEN, "STEP_FINISHED": DROP},
        OPEN: {"STEP_STARTED": DROP, "STEP_FINISHED": CLOSED},
    },
    SUBAGENT: {
        CLOSED: {"SUBAGENT_STARTED": OPEN, "SUBAGENT_FINISHED": DROP, "SUBAGENT_ERROR": DROP},
        OPEN: {"SUBAGENT_STARTED": DROP, "SUBAGENT_FINISHED": OVER, "SUBAGENT_ERROR": OVER},
        OVER: {"SUBAGENT_STARTED": DROP, "SUBAGENT_FINISHED": DROP, "SUBAGENT_ERROR": DROP},
    },
}
"""The parts of a run: state by kind, state and event.

STEP_FINISHED for a step that is not open, but is open for exactly one other owner, is `Repair.CHANGE` (of the tag).
TOOL_CALL_ARGS and the first TOOL_CALL_CHUNK of a call whose name nobody said are `Repair.DROP`."""

OWN, ALL = "its own", "all"

LANES: Final[Mapping[str, str]] = {
    "TEXT_MESSAGE_START": OWN,
    "TEXT_MESSAGE_CONTENT": OWN,
    "TEXT_MESSAGE_END": OWN,
    "TOOL_CALL_START": OWN,
    "TOOL_CALL_ARGS": OWN,
    "TOOL_CALL_END": OWN,
    "TOOL_CALL_RESULT": OWN,
    "STATE_SNAPSHOT": OWN,
    "STATE_DELTA": OWN,
    "CUSTOM": OWN,
    "STEP_STARTED": OWN,
    "STEP_FINISHED": OWN,
    "REASONING_START": OWN,
    "REASONING_MESSAGE_START": OWN,
    "REASONING_MESSAGE_CONTENT": OWN,
    "REASONING_MESSAGE_END": OWN,
    "REASONING_END": OWN,
    "THINKING_START": OWN,
    "THINKING_TEXT_MESSAGE_START": OWN,
    "THINKING_TEXT_MESSAGE_CONTENT": OWN,
    "THINKING_TEXT_MESSAGE_END": OWN,
    "THINKING_END": OWN,
    "SUBAGENT_FINISHED": OWN,
    "SUBAGENT_ERROR": OWN,
    "RUN_STARTED": ALL,
    "RUN_FINISHED": ALL,
    "RUN_ERROR": ALL,
    "MESSAGES_SNAPSHOT": ALL,
}
"""Whose streams of chunks an event closes. Not named: RAW, ACTIVITY_*, REASONING_ENCRYPTED_VALUE, SUBAGENT_STARTED,
and the chunks themselves, which close the stream of the lane that they open another one in."""

CLOSES_SUBAGENTS_LANE: Final = frozenset({"SUBAGENT_FINISHED", "SUBAGENT_ERROR"})
CLOSES_OWN_LANE: Final = frozenset(name for name, whose in LANES.items() if whose == OWN) - CLOSES_SUBAGENTS_LANE
CLOSES_ALL_LANES: Final = frozenset(name for name, whose in LANES.items() if whose == ALL)

RULES: Final[Mapping[str, str]] = {
    "not-started": "the first event of a stream must be RUN_STARTED (or RUN_ERROR)",
    "run-active": "a run cannot start while another one is active",
    "after-terminal": "after RUN_FINISHED only RUN_ERROR or RUN_STARTED may follow, after RUN_ERROR only RUN_STARTED",
    "already-open": "what is open cannot be opened again before it is closed",
    "not-open": "content and ends must name something that is open",
    "left-open": "RUN_FINISHED needs all messages, tool calls, reasoning, steps and subagents closed",
    "no-id": "the event must name what it is about",
    "owner": "a subagentRunId must not contradict the one that what the event names was opened with",
    "step-owner": "a step must be finished by whoever started it",
    "call-parent": "a tool call belongs to the owner of its parent message",
    "subagent-over": "a subagentRunId stands for one invocation and cannot be used for another one",
    "subagent-parent": "the parent of a subagent must have been started in the same run",
    "chunk-id": "a chunk without an id must have a stream to go on with, and only one; the first chunk of a tool call "
    "must carry its name",
    "chunk-conflict": "a chunk must not contradict what the first chunk of its stream said",
    "chunk-end": "a stream of chunks ends by itself; an explicit end for it is one too many",
    "result-id": "a TOOL_CALL_RESULT must not take the id of a message that chunks are still writing",
}
"""What the client enforces about order, by the code of the rule."""


class Violation(NamedTuple):
    """An event that comes where the client refuses it.

    Attributes:
        rule: A key of `RULES`.
        repair: What makes it legal.
        state: What the event met, in words; no ids.
        changes: For `Repair.CHANGE`: the fields to `replace`.
    """

    rule: str
    repair: Repair
    state: str
    changes: Mapping[str, Any] = {}


class Row(NamedTuple):
    """What the tables say about one event type, ready to be used."""

    type: str
    run: str
    """Its column in `RUN`."""
    lane: str | None
    """Its entry in `LANES`."""
    kind: str | None
    """The kind of part that sees it."""
    id: str
    """The attribute that finds the part; empty where there is one part only."""
    wire_id: str
    """Its name on the wire."""
    cells: Mapping[State, State | Repair]
    """Its column in `PARTS`."""
    chunk: bool
    """Whether it opens and goes on with a part in one."""
    opens: bool
    ends: bool


_MESSAGE_ID: Final = ("message_id", "messageId")
_IDS: Final = {
    TEXT: _MESSAGE_ID,
    TOOL: ("tool_call_id", "toolCallId"),
    SPAN: _MESSAGE_ID,
    REASONING: _MESSAGE_ID,
    STEP: ("step_name", "stepName"),
    SUBAGENT: ("subagent_run_id", "subagentRunId"),
    THOUGHT: ("", ""),
    THINKING: ("", ""),
}
_OTHERS: Final = (
    *("TOOL_CALL_RESULT", "STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "ACTIVITY_SNAPSHOT"),
    *("ACTIVITY_DELTA", "RAW", "CUSTOM", "REASONING_ENCRYPTED_VALUE", "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"),
)
"""The event types that no part sees."""


def _rows() -> dict[str, Row]:
    rows = {
        name: Row(name, name if name in RUN[BEFORE] else ANY_OTHER, LANES.get(name), None, "", "", {}, *(False,) * 3)
        for name in _OTHERS
    }
    for kind, states in PARTS.items():
        for name, cell in states[CLOSED].items():
            cells = {state: row[name] for state, row in states.items()}
            chunk, opens, ends = name.endswith("_CHUNK"), cell is OPEN, cells[OPEN] in (CLOSED, OVER)
            rows[name] = Row(name, ANY_OTHER, LANES.get(name), kind, *_IDS[kind], cells, chunk, opens, ends)
    return rows


ROWS: Final[Mapping[str, Row]] = _rows()
"""The tables by event type. A type that is not here is unknown to the client, which drops it whatever it says."""

OPENERS: Final = {row.kind: name for name, row in ROWS.items() if row.kind and row.opens and not row.chunk}
"""The event type that opens a part, by kind."""
ENDERS: Final = {row.kind: name for name, row in ROWS.items() if row.kind and row.ends and row.type != "SUBAGENT_ERROR"}
"""The event type that closes a part as a success, by kind."""


def markdown() -> str:
    """Return the tables as a page of the documentation."""
    lines = ["### The run", "", *_table("the stream is", RUN)]
    for kind, states in PARTS.items():
        lines += ["", f"### A {kind}", "", *_table("it is", states)]
    lines += ["", "### Chunks", "", "| event | closes the streams of chunks of |", "| --- | --- |"]
    lines += [f"| `{name}` | {'its own lane' if lane is OWN else 'all lanes'} |" for name, lane in LANES.items()]
    lines += ["", "### Rules", "", "| rule | |", "| --- | --- |"]
    lines += [f"| `{rule}` | {text} |" for rule, text in RULES.items()]
    return "\n".join(lines) + "\n"


def _table(corner: str, states: Mapping[State, Cells]) -> list[str]:
    names = list(next(iter(states.values())))
    lines = [
        f"| {corner} | " + " | ".join(name if name is ANY_OTHER else f"`{name}`" for name in names) + " |",
        "| --- |" + " --- |" * len(names),
    ]
    for state, cells in states.items():
        words = (f"*{cell}*" if isinstance(cell, Repair) else str(cell) for cell in cells.values())
        lines.append(f"| {state} | " + " | ".join(words) + " |")
    return lines
