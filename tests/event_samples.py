"""One complete event of each type, every field that AG-UI 1.0 describes in it, and what may stand in its place."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

Wire: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]

_EVENT: Final[Wire] = {"timestamp": 1, "rawEvent": {"a": 1}, "metadata": {"k": None}}
_OWNED: Final[Wire] = _EVENT | {"subagentRunId": "s"}

_PARTS: Final[list[Wire]] = [
    {"type": "text", "text": "t", "id": "p", "metadata": 1},
    {"type": "image", "id": "p", "source": {"type": "url", "value": "v", "mimeType": "m"}, "metadata": 1},
    {"type": "audio", "source": {"type": "data", "value": "v", "mimeType": "m"}},
    {"type": "document", "source": {"type": "file", "value": "v", "provider": "p", "mimeType": "m"}},
    {"type": "video", "source": {"type": "of the future"}, "id": "x"},
]
_CALL: Final[Wire] = {
    "id": "c",
    "type": "function",
    "function": {"name": "n", "arguments": ""},
    "encryptedValue": "e",
    "metadata": {},
}
_MESSAGES: Final[list[Wire]] = [
    {"id": "1", "role": "developer", "content": "c", "name": "n", "encryptedValue": "e", "metadata": {}},
    {"id": "2", "role": "user", "name": "n", "content": _PARTS},
    {"id": "3", "role": "assistant", "content": "c", "toolCalls": [_CALL]},
    {"id": "4", "role": "tool", "content": "c", "toolCallId": "c", "error": "e", "encryptedValue": "e"},
    {"id": "5", "role": "activity", "activityType": "A", "content": {}, "metadata": {}},
    {"id": "6", "role": "reasoning", "content": "c", "encryptedValue": "v", "subagentRunId": "s"},
    {"id": 7, "role": "of the future"},
]
_PATCH: Final[list[Wire]] = [
    {"op": "add", "path": "/a~0b", "value": 1},
    {"op": "remove", "path": ""},
    {"op": "replace", "path": "/a", "value": None},
    {"op": "move", "from": "/a", "path": "/b"},
    {"op": "copy", "from": "/a", "path": "/b"},
    {"op": "test", "path": "/a", "value": 1},
    {"op": "of the future", "path": 1},
]
_USAGE: Final[list[Wire]] = [
    {"provider": "p", "model": "m", "inputTokens": 1, "outputTokens": 0, "totalTokens": 1}
    | {"reasoningTokens": 1, "cachedInputTokens": 1, "cacheWriteInputTokens": 1}
]
_INTERRUPT: Final[Wire] = {
    "id": "i",
    "reason": "r",
    "message": "m",
    "toolCallId": "c",
    "responseSchema": {},
    "expiresAt": "e",
    "metadata": {},
    "subagentRunId": "s",
}
_INPUT: Final[Wire] = {
    "threadId": "t",
    "runId": "r",
    "protocolVersion": "1.0",
    "parentRunId": "p",
    "state": {},
    "messages": _MESSAGES,
    "tools": [{"name": "n", "description": "d", "parameters": {}, "metadata": {}}],
    "context": [{"description": "d", "value": "v"}],
    "forwardedProps": {},
    "resume": [{"interruptId": "i", "status": "resolved", "payload": 1, "metadata": {}}],
}
_RUN: Final[Wire] = {"threadId": "t", "runId": "r"}
RUN_STARTED: Final[Wire] = {"type": "RUN_STARTED", **_RUN}
RUN_ERROR: Final[Wire] = {"type": "RUN_ERROR", "message": "m"}

_TEXT: Final[Wire] = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
_TOOL: Final[Wire] = {"type": "TOOL_CALL_START", "toolCallId": "m", "toolCallName": "f"}
_SPAN: Final[Wire] = {"type": "REASONING_START", "messageId": "m"}
_REASONING: Final[Wire] = {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning"}
_STEP: Final[Wire] = {"type": "STEP_STARTED", "stepName": "x"}
_SUBAGENT: Final[Wire] = {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}
_THINKING: Final[Wire] = {"type": "THINKING_TEXT_MESSAGE_START"}

_PARENTS: Final[Wire] = {"parentSubagentRunId": "s", "parentToolCallId": "c", "parentMessageId": "m"}

SAMPLES: Final[Sequence[tuple[Sequence[Wire], Wire]]] = [
    ((), {**_TEXT, "role": "user", "name": "n"} | _OWNED),
    ((_TEXT,), {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "d"} | _EVENT),
    ((_TEXT,), {"type": "TEXT_MESSAGE_END", "messageId": "m"} | _EVENT),
    ((), {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "user", "name": "n", "delta": "d"} | _OWNED),
    ((), {**_TOOL, "parentMessageId": "p"} | _OWNED),
    ((_TOOL,), {"type": "TOOL_CALL_ARGS", "toolCallId": "m", "delta": "d"} | _EVENT),
    ((_TOOL,), {"type": "TOOL_CALL_END", "toolCallId": "m"} | _EVENT),
    ((), {**_TOOL, "type": "TOOL_CALL_CHUNK", "parentMessageId": "p", "delta": "d"} | _OWNED),
    ((), {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": _PARTS, "role": "tool"} | _OWNED),
    ((), {"type": "STATE_SNAPSHOT", "snapshot": {}} | _OWNED),
    ((), {"type": "STATE_DELTA", "delta": _PATCH} | _OWNED),
    ((), {"type": "MESSAGES_SNAPSHOT", "messages": _MESSAGES} | _EVENT),
    ((), {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "A", "content": {}, "replace": True} | _OWNED),
    ((), {"type": "ACTIVITY_DELTA", "messageId": "m", "activityType": "A", "patch": _PATCH[:2]} | _OWNED),
    ((), {"type": "RAW", "event": 1, "source": "s"} | _OWNED),
    ((), {"type": "CUSTOM", "name": "n", "value": 1} | _OWNED),
    ((), _STEP | _OWNED),
    ((_STEP,), {"type": "STEP_FINISHED", "stepName": "x"} | _EVENT),
    ((), _SPAN | _OWNED),
    ((_SPAN,), {"type": "REASONING_END", "messageId": "m"} | _EVENT),
    ((), _REASONING | _OWNED),
    ((_REASONING,), {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": "d"} | _EVENT),
    ((_REASONING,), {"type": "REASONING_MESSAGE_END", "messageId": "m"} | _EVENT),
    ((), {"type": "REASONING_MESSAGE_CHUNK", "messageId": "m", "delta": "d"} | _OWNED),
    (
        (),
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "v"} | _OWNED,
    ),
    ((_SUBAGENT,), {**_SUBAGENT, "subagentRunId": "u", "description": "d", **_PARENTS} | _EVENT),
    (
        (_SUBAGENT,),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "result": 1}
        | {"outcome": {"type": "suspended", "interruptIds": ["i"]}}
        | _EVENT,
    ),
    ((_SUBAGENT,), {"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "m", "code": "c"} | _EVENT),
    ((), {"type": "THINKING_START", "title": "t"} | _OWNED),
    ((), _THINKING | _OWNED),
    ((_THINKING,), {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "d"} | _EVENT),
    ((_THINKING,), {"type": "THINKING_TEXT_MESSAGE_END"} | _EVENT),
    (({"type": "THINKING_START"},), {"type": "THINKING_END"} | _EVENT),
    ((), {**RUN_STARTED, "protocolVersion": "1.0", "parentRunId": "p", "input": _INPUT} | _EVENT),
    (
        (),
        {"type": "RUN_FINISHED", **_RUN, "result": 1, "usage": _USAGE}
        | {"outcome": {"type": "success", "pendingToolCallIds": ["c"]}}
        | _EVENT,
    ),
    ((), {"type": "RUN_FINISHED", **_RUN, "outcome": {"type": "interrupt", "interrupts": [_INTERRUPT]}}),
    ((), {"type": "RUN_FINISHED", **_RUN, "outcome": {"type": "cancelled"}}),
    ((), {**RUN_ERROR, "code": "c", "usage": _USAGE} | _EVENT),
]
"""Events that hold every field, each with the events that must come before it in its run."""

MISSING: Final = "missing"
VALUES: Final[Sequence[Any]] = (
    *(MISSING, None, 5, 1.0, 1.5, -1, 2**60, True, "x", "", "assistant"),
    *([], {}, [1], ["a"], {"type": "odd"}),
)
"""What may stand in a field instead."""


def stream_of(before: Sequence[Wire], event: Wire) -> list[Wire]:
    """Return a complete stream around an event."""
    start = [] if event["type"] == "RUN_STARTED" else [RUN_STARTED]
    end = [] if event["type"] in ("RUN_FINISHED", "RUN_ERROR") else [RUN_ERROR]
    return [*start, *before, event, *end]


def variants(event: Wire, values: Sequence[Any] = VALUES) -> Iterator[tuple[Path, Any, Wire]]:
    """Give an event with each of its fields, nested ones too, replaced by each of some values."""
    for path in _paths(event, ()):
        if path != ("type",):
            for value in values:
                yield path, value, _put(event, path, value)


def _paths(value: Any, path: Path) -> Iterator[Path]:
    items: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, Mapping) and path[-1:] not in (("rawEvent",), ("metadata",)):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    for name, item in items:
        yield (*path, name)
        yield from _paths(item, (*path, name))


def _put(event: Wire, path: Path, value: Any) -> Wire:
    changed = copy.deepcopy(event)
    target: Any = changed
    for name in path[:-1]:
        target = target[name]
    if value is MISSING:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return changed
