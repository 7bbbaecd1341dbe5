"""Events of AG-UI 1.0 by short names, for runs that are to be read. Knows no version of any client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Wire: TypeAlias = dict[str, Any]

IDS: Final[Wire] = {"threadId": "t", "runId": "r"}
STARTED: Final[Wire] = {"type": "RUN_STARTED", **IDS}
FINISHED: Final[Wire] = {"type": "RUN_FINISHED", **IDS}


def run(
    *events: Wire, started: Mapping[str, Any] | None = None, finished: Mapping[str, Any] | None = None
) -> list[Wire]:
    """Return a whole stream around some events."""
    return [STARTED | (dict(started) if started else {}), *events, FINISHED | (dict(finished) if finished else {})]


def start(id: str, **fields: Any) -> Wire:
    return {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant", **fields}


def say(id: str, delta: str, **fields: Any) -> Wire:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta, **fields}


def end(id: str, **fields: Any) -> Wire:
    return {"type": "TEXT_MESSAGE_END", "messageId": id, **fields}


def text(id: str, *deltas: str, **fields: Any) -> list[Wire]:
    return [start(id, **fields), *(say(id, delta) for delta in deltas), end(id)]


def call(id: str, name: str = "search", **fields: Any) -> Wire:
    return {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, **fields}


def args(id: str, delta: str, **fields: Any) -> Wire:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta, **fields}


def called(id: str, **fields: Any) -> Wire:
    return {"type": "TOOL_CALL_END", "toolCallId": id, **fields}


def result(id: str, content: Any = "found", **fields: Any) -> Wire:
    return {"type": "TOOL_CALL_RESULT", "messageId": f"{id}-result", "toolCallId": id, "content": content, **fields}


def span(name: str, id: str, **fields: Any) -> Wire:
    return {"type": f"REASONING_{name}", "messageId": id, **fields}


def reasoning(id: str, *deltas: str, **fields: Any) -> list[Wire]:
    return [
        span("MESSAGE_START", id, role="reasoning", **fields),
        *(span("MESSAGE_CONTENT", id, delta=delta) for delta in deltas),
        span("MESSAGE_END", id),
    ]


def state(snapshot: Any) -> Wire:
    return {"type": "STATE_SNAPSHOT", "snapshot": snapshot}


def delta(op: str, path: str, **fields: Any) -> Wire:
    return {"type": "STATE_DELTA", "delta": [{"op": op, "path": path, **fields}]}


def activity(id: str, content: Any, **fields: Any) -> Wire:
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "plan", "content": content, **fields}


def subagent(what: str, id: str, **fields: Any) -> Wire:
    return {"type": f"SUBAGENT_{what}", "subagentRunId": id, **fields}


def step(name: str, of: str) -> Wire:
    return {"type": f"STEP_{name}", "stepName": of}


def custom(value: Any = 1, name: str = "note", **fields: Any) -> Wire:
    return {"type": "CUSTOM", "name": name, "value": value, **fields}


def raw(value: Any = 1) -> Wire:
    return {"type": "RAW", "event": value, "source": "model"}


def snapshot(*messages: Wire) -> Wire:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def chunk(kind: str, **fields: Any) -> Wire:
    return {"type": f"{kind}_CHUNK", **fields}


HI: Final[Wire] = {"id": "u", "role": "user", "content": "hi"}
HELLO: Final[Wire] = {"id": "a", "role": "assistant", "content": "hello"}
CALL: Final[Wire] = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
CALLS: Final[Wire] = {"id": "b", "role": "assistant", "content": "", "toolCalls": [CALL]}
WORDS: Final[Wire] = {"type": "text", "text": "see"}
IMAGE: Final[Wire] = {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}}
LINK: Final[Wire] = {"type": "document", "source": {"type": "url", "value": "https://x/a", "mimeType": "text/plain"}}
FILE: Final[Wire] = {"type": "audio", "source": {"type": "file", "value": "f1", "mimeType": "audio/wav"}}
PLAN: Final[Wire] = {"id": "plan", "role": "activity", "activityType": "plan", "content": {"step": 1}}
THOUGHT: Final[Wire] = {"id": "thought", "role": "reasoning", "content": "hm"}
PARTS: Final = [WORDS, IMAGE]

INTERRUPTS: Final[list[Wire]] = [
    {"id": "i1", "reason": "confirm", "message": "Delete it?", "toolCallId": "c", "metadata": {"k": 1}},
    {"id": "i2", "reason": "input", "responseSchema": {"type": "string"}, "expiresAt": "2030-01-01T00:00:00Z"},
]
