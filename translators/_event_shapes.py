"""What the fields of each event may hold: the schema that `@ag-ui/client` 1.0 enforces, as a table.

The client drops unknown types, strips unknown fields and unknown members of a union, and gives up on a known field
whose value is malformed. This module knows the last kind, and which of it has one possible reading. Looks at wire
events only: a model was validated when it was made. Does not know about the order of events (`lifecycle.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agui_pipeline.translators._events import WireEvent, decode_event
from agui_pipeline.translators._shape_checks import (
    Anything,
    Check,
    Choice,
    Context,
    Dropped,
    Field,
    Flag,
    JSONObject,
    Many,
    Media,
    Misfit,
    Name,
    Pointer,
    Removed,
    Sentence,
    Shape,
    Tagged,
    Text,
    TextOr,
    Timestamp,
    Whole,
)

# The table. `_must`: a required field; `_may`: an optional one; `_may_null`: one whose null is read as absent, too.


def _must(check: Check, *, null: bool = False, empty: Any = None) -> Field:
    if empty is not None and not callable(empty):
        return Field(check, null=null, empty=lambda _event, _context: empty)
    return Field(check, null=null, empty=empty)


def _may(check: Check) -> Field:
    return Field(check, required=False)


def _may_null(check: Check) -> Field:
    return Field(check, required=False, null=True)


_TEXT: Final = Text()
_JSON: Final = Anything()
_OPEN: Final = JSONObject()
_ID: Final = Name(Dropped)
_REFERENCE: Final = Name()
_OWNER: Final = Name(Removed)

_EVENT: Final = {"timestamp": _may(Timestamp()), "rawEvent": _may_null(_JSON), "metadata": _may(_OPEN)}
_OWNED: Final = _EVENT | {"subagentRunId": _may(_OWNER)}
_SUBAGENT: Final = _EVENT | {"subagentRunId": _must(_ID)}
_ROLE: Final = _may(Choice("developer", "system", "assistant", "user"))

_SOURCE: Final = Tagged(
    "type",
    {
        "data": Shape({"value": _must(_TEXT), "mimeType": _must(_TEXT)}),
        "url": Shape({"value": _must(_TEXT), "mimeType": _may(_TEXT)}),
        "file": Shape({"value": _must(_TEXT), "provider": _may(_TEXT), "mimeType": _may(_TEXT)}),
    },
)


def _content(media_metadata: Callable[[Check], Field]) -> TextOr:
    """Return the check of message content. Only inside of messages is a null as metadata of a media part tolerated."""
    media = Media({"id": _may(_TEXT), "source": _must(_SOURCE), "metadata": media_metadata(_JSON)})
    text = Shape({"id": _may(_TEXT), "text": _must(_TEXT), "metadata": _may(_JSON)})
    shapes: Mapping[str, Shape] = {"text": text} | dict.fromkeys(("image", "audio", "video", "document"), media)
    return TextOr(Many(Tagged("type", shapes)))


_MESSAGE: Final = {
    "id": _must(_REFERENCE),
    "subagentRunId": _may(_OWNER),
    "encryptedValue": _may(_TEXT),
    "metadata": _may(_OPEN),
}
_NAMED: Final = _MESSAGE | {"name": _may(_TEXT)}
_CALL: Final = Shape(
    {
        "id": _must(_REFERENCE),
        "type": _must(Choice("function")),
        "function": _must(Shape({"name": _must(_TEXT), "arguments": _must(_TEXT)})),
        "encryptedValue": _may(_TEXT),
        "metadata": _may(_OPEN),
    }
)
_CONTENT: Final = _content(_may_null)
MESSAGES: Final[Mapping[str, Shape]] = {
    "developer": Shape(_NAMED | {"content": _must(_TEXT)}),
    "system": Shape(_NAMED | {"content": _must(_TEXT)}),
    "assistant": Shape(_NAMED | {"content": _may(_TEXT), "toolCalls": _may(Many(_CALL))}),
    "user": Shape(_NAMED | {"content": _must(_CONTENT)}),
    "tool": Shape(_MESSAGE | {"content": _must(_CONTENT), "toolCallId": _must(_REFERENCE), "error": _may(_TEXT)}),
    "activity": Shape(
        {name: field for name, field in _MESSAGE.items() if name != "encryptedValue"}
        | {"activityType": _must(_TEXT), "content": _must(_OPEN)}
    ),
    "reasoning": Shape(_MESSAGE | {"content": _must(_TEXT)}),
}
"""The shape of a message by its role. Messages of other roles are stripped by the client."""
_MESSAGES: Final = _must(Many(Tagged("role", MESSAGES)))

_PATH: Final = {"path": _must(Pointer())}
_VALUE: Final = _PATH | {"value": _must(_JSON, null=True)}
_FROM: Final = _PATH | {"from": _must(Pointer())}
_PATCH: Final = _must(
    Many(
        Tagged(
            "op",
            {
                "add": Shape(_VALUE),
                "remove": Shape(_PATH),
                "replace": Shape(_VALUE),
                "move": Shape(_FROM),
                "copy": Shape(_FROM),
                "test": Shape(_VALUE),
            },
        )
    )
)

_TOOL: Final = Shape(
    {"name": _must(_TEXT), "description": _must(_TEXT), "parameters": _may_null(_JSON), "metadata": _may(_OPEN)}
)
_RESUME: Final = Shape(
    {
        "interruptId": _must(_TEXT),
        "status": _must(Choice("resolved", "cancelled")),
        "payload": _may_null(_JSON),
        "metadata": _may(_OPEN),
    }
)
_INPUT: Final = Shape(
    {
        "threadId": _must(_TEXT),
        "runId": _must(_TEXT),
        "protocolVersion": _may(_TEXT),
        "parentRunId": _may(_TEXT),
        "state": _may_null(_JSON),
        "messages": _MESSAGES,
        "tools": _may(Many(_TOOL)),
        "context": _may(Many(Shape({"description": _must(_TEXT), "value": _must(_TEXT)}))),
        "forwardedProps": _may_null(_JSON),
        "resume": _may(Many(_RESUME)),
    }
)

_INTERRUPT: Final = Shape(
    {
        "id": _must(_REFERENCE),
        "reason": _must(_TEXT),
        "message": _may(_TEXT),
        "toolCallId": _may(_REFERENCE),
        "responseSchema": _may(_OPEN),
        "expiresAt": _may(_TEXT),
        "metadata": _may(_OPEN),
        "subagentRunId": _may(_OWNER),
    }
)
_OUTCOME: Final = Tagged(
    "type",
    {
        "success": Shape({"pendingToolCallIds": _may(Many(_REFERENCE))}),
        "interrupt": Shape({"interrupts": _must(Many(_INTERRUPT, least=1))}),
        "cancelled": Shape({}),
    },
)
_SUBAGENT_OUTCOME: Final = Tagged(
    "type", {"success": Shape({}), "suspended": Shape({"interruptIds": _may(Many(_REFERENCE))})}
)
_COUNTS: Final = (
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "reasoningTokens",
    "cachedInputTokens",
    "cacheWriteInputTokens",
)
_USAGE: Final = _may(
    Many(Shape({"provider": _may(_TEXT), "model": _may(_TEXT)} | dict.fromkeys(_COUNTS, _may(Whole()))))
)

FAILED: Final = "The agent failed."
"""What a RUN_ERROR says that says nothing."""


def _of_run(name: str) -> Field:
    return _must(_REFERENCE, empty=lambda _event, context: context[name])


def _result_id(event: Mapping[str, Any], _context: Context) -> str:
    return f"{event.get('toolCallId')}-result"  # nothing else in the stream refers to it


_MESSAGE_ID: Final = {"messageId": _must(_ID)}
_CALL_ID: Final = {"toolCallId": _must(_ID)}
_DELTA: Final = {"delta": _must(_TEXT, empty="")}
_RUN: Final = _EVENT | {"threadId": _of_run("threadId"), "runId": _of_run("runId")}

EVENTS: Final[Mapping[str, Shape]] = {
    name: Shape(fields)
    for name, fields in {
        "TEXT_MESSAGE_START": _OWNED | _MESSAGE_ID | {"role": _ROLE, "name": _may(_TEXT)},
        "TEXT_MESSAGE_CONTENT": _OWNED | _MESSAGE_ID | _DELTA,
        "TEXT_MESSAGE_END": _OWNED | _MESSAGE_ID,
        "TEXT_MESSAGE_CHUNK": _OWNED
        | {"messageId": _may(_ID), "role": _ROLE, "delta": _may(_TEXT), "name": _may(_TEXT)},
        "TOOL_CALL_START": _OWNED | _CALL_ID | {"toolCallName": _must(_TEXT), "parentMessageId": _may_null(_REFERENCE)},
        "TOOL_CALL_ARGS": _OWNED | _CALL_ID | _DELTA,
        "TOOL_CALL_END": _OWNED | _CALL_ID,
        "TOOL_CALL_CHUNK": _OWNED
        | {
            "toolCallId": _may(_ID),
            "toolCallName": _may(_TEXT),
            "parentMessageId": _may_null(_REFERENCE),
            "delta": _may(_TEXT),
        },
        "TOOL_CALL_RESULT": _OWNED
        | _CALL_ID
        | {
            "messageId": _must(_ID, empty=_result_id),
            "content": _must(_content(_may), empty=""),
            "role": _may(Choice("tool")),
        },
        "STATE_SNAPSHOT": _OWNED | {"snapshot": _must(_JSON, null=True)},
        "STATE_DELTA": _OWNED | {"delta": _PATCH},
        "MESSAGES_SNAPSHOT": _EVENT | {"messages": _MESSAGES},
        "ACTIVITY_SNAPSHOT": _OWNED
        | _MESSAGE_ID
        | {"activityType": _must(_TEXT), "content": _must(_OPEN), "replace": _may(Flag())},
        "ACTIVITY_DELTA": _OWNED | _MESSAGE_ID | {"activityType": _must(_TEXT), "patch": _PATCH},
        # Encoders that leave out every None leave these out, too.
        "RAW": _OWNED | {"event": _must(_JSON, null=True, empty=lambda *_: None), "source": _may(_TEXT)},
        "CUSTOM": _OWNED | {"name": _must(_TEXT), "value": _must(_JSON, null=True, empty=lambda *_: None)},
        "RUN_STARTED": _RUN | {"protocolVersion": _may(_TEXT), "parentRunId": _may(_TEXT), "input": _may(_INPUT)},
        "RUN_FINISHED": _RUN | {"result": _may_null(_JSON), "outcome": _may_null(_OUTCOME), "usage": _USAGE},
        "RUN_ERROR": _EVENT | {"message": _must(Sentence(FAILED), empty=FAILED), "code": _may(_TEXT), "usage": _USAGE},
        "STEP_STARTED": _OWNED | {"stepName": _must(_ID)},
        "STEP_FINISHED": _OWNED | {"stepName": _must(_ID)},
        "REASONING_START": _OWNED | _MESSAGE_ID,
        "REASONING_MESSAGE_START": _OWNED | _MESSAGE_ID | {"role": _must(Choice("reasoning"), empty="reasoning")},
        "REASONING_MESSAGE_CONTENT": _OWNED | _MESSAGE_ID | _DELTA,
        "REASONING_MESSAGE_END": _OWNED | _MESSAGE_ID,
        "REASONING_MESSAGE_CHUNK": _OWNED | {"messageId": _may(_ID), "delta": _may(_TEXT)},
        "REASONING_END": _OWNED | _MESSAGE_ID,
        "REASONING_ENCRYPTED_VALUE": _OWNED
        | {
            "subtype": _must(Choice("tool-call", "message")),
            "entityId": _must(_ID),
            "encryptedValue": _must(_TEXT),
        },
        "SUBAGENT_STARTED": _SUBAGENT
        | {
            "name": _must(_TEXT),
            "description": _may(_TEXT),
            "parentSubagentRunId": _may(_OWNER),
            "parentToolCallId": _may(_REFERENCE),
            "parentMessageId": _may(_REFERENCE),
        },
        "SUBAGENT_FINISHED": _SUBAGENT | {"result": _may_null(_JSON), "outcome": _may(_SUBAGENT_OUTCOME)},
        "SUBAGENT_ERROR": _SUBAGENT | {"message": _must(Sentence(FAILED), empty=FAILED), "code": _may(_TEXT)},
        # Retired in 1.0. The client makes REASONING_* of them, with ids and roles of its own.
        "THINKING_START": _OWNED,
        "THINKING_TEXT_MESSAGE_START": _OWNED,
        "THINKING_TEXT_MESSAGE_CONTENT": _OWNED | _DELTA,
        "THINKING_TEXT_MESSAGE_END": _OWNED,
        "THINKING_END": _OWNED,
    }.items()
}
"""The shape of each event type. Any other type is dropped by the client, whatever it holds."""


def misfits(event: WireEvent, context: Context) -> Sequence[Misfit]:
    """Return the fields of an event that the client refuses, in no particular order.

    Args:
        event: An event of any type; of a type that the client does not know, nothing is refused.
        context: What `threadId` and `runId` are where they are missing.
    """
    shape = EVENTS.get(event.type)
    if shape is None:
        return ()
    found: list[Misfit] = []
    shape.look_into(event._data, (), found, context)  # noqa: SLF001 - a view of a view, for nothing
    return found


def mended(event: WireEvent, found: Sequence[Misfit]) -> WireEvent | None:
    """Return a copy of an event with every misfit fixed; None where one of them takes the event along.

    Args:
        event: The event.
        found: Its misfits, each with a fix.
    """
    data = dict(event.data)
    copies: dict[tuple[str | int, ...], Any] = {(): data}  # each container once, however much of it does not fit
    for misfit in found:
        if misfit.fix is Dropped:
            return None
        target: Any = data
        for depth, part in enumerate(misfit.path[:-1], start=1):
            path = misfit.path[:depth]
            if path not in copies:
                value: Any = target[part]
                copies[path] = target[part] = list(value) if isinstance(value, list | tuple) else dict(value)
            target = copies[path]
        if isinstance(misfit.fix, tuple):
            target[misfit.path[-1]] = misfit.fix[0]
        else:
            del target[misfit.path[-1]]
    return decode_event(data)
