"""What the fields of each event may hold: the schema that `@ag-ui/client` 1.0 enforces, and what a misfit surely means.

The client drops unknown types, strips unknown fields and unknown members of a union, and gives up on a known field
whose value is malformed. This module knows the last kind. Some of it has one possible reading (a null on an optional
field is an absent one), which is offered as a `Misfit.fix`; the rest has not. Looks at wire events only: a model was
validated when it was made. Does not know about the order of events (`lifecycle.py`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agui_pipeline.translators._events import WireEvent, decode_event

_LARGEST: Final = 2**53 - 1
"""The largest integer that JavaScript tells from its neighbour."""


class Removed:
    """A fix: the field goes."""


class Dropped:
    """A fix: the whole event goes, since what it is about has no name."""


class Misfit(NamedTuple):
    """A field whose value the client refuses.

    Attributes:
        path: Keys and indices that lead to it.
        got: What is there, in words without content.
        wanted: What must be there.
        fix: Where there is only one reading: `Removed`, `Dropped`, or a one-tuple with the value; else None.
    """

    path: tuple[str | int, ...]
    got: str
    wanted: str
    fix: type[Removed | Dropped] | tuple[Any] | None = None

    def __str__(self) -> str:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).lstrip(".")
        return f"{where} must be {self.wanted}; got {self.got}"


Context = Mapping[str, Any]
"""What the stream around the event says: values for `threadId` and `runId`, by wire name."""


class _Check(ABC):
    """What a value must be.

    Only JSON's own types are judged: other objects, in events of in-process agents, are the encoder's business.
    """

    wanted: str

    def is_nameless(self, value: Any) -> bool:  # noqa: ARG002 - most checks are of no names
        """Whether a value stands where a name should, and names nothing: as good as absent."""
        return False

    @abstractmethod
    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        """Append what is wrong with a value."""

    def _misfit(self, value: Any, path: tuple[str | int, ...], fix: Any = None) -> Misfit:
        return Misfit(path, _word(value), self.wanted, fix)


class _Text(_Check):
    wanted = "a string"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if type(value) is not str and _foreign(value, str):
            found.append(self._misfit(value, path))


class _Sentence(_Check):
    """Text for people, which a fixed sentence can stand in for."""

    wanted = "a string"

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, str):
            found.append(self._misfit(value, path, (self._instead,)))


class _Name(_Check):
    """An id. A whole number has exactly one spelling; anything else that is no string names nothing."""

    wanted = "a string"

    def __init__(self, otherwise: type[Removed | Dropped] | None = None) -> None:
        self._otherwise = otherwise

    def is_nameless(self, value: Any) -> bool:
        return type(value) is not int and _foreign(value, str)

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if type(value) is not str and _foreign(value, str):
            fix = (str(value),) if type(value) is int else self._otherwise
            found.append(self._misfit(value, path, fix))


class _Choice(_Check):
    def __init__(self, *values: str) -> None:
        self._values = frozenset(values)
        self.wanted = " or ".join(repr(value) for value in values)
        self._fix = (values[0],) if len(values) == 1 else None

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, str) or (isinstance(value, str) and value not in self._values):
            found.append(self._misfit(value, path, self._fix))


class _Whole(_Check):
    wanted = f"a whole number from 0 to {_LARGEST}"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if not _is_whole(value) or value < 0:
            found.append(self._misfit(value, path))


class _Timestamp(_Check):
    """Informative only: a fraction goes, and so does what is no number at all."""

    wanted = "a whole number of at most 53 bits"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if not _is_whole(value):
            number = isinstance(value, float) and -_LARGEST <= value <= _LARGEST
            found.append(self._misfit(value, path, (int(value),) if number else Removed))


class _Flag(_Check):
    wanted = "true or false"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, bool):
            found.append(self._misfit(value, path))


class _Anything(_Check):
    wanted = "a value"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        """Any JSON value is one; whether null is, the field says."""


class _Object(_Check):
    """An object that the protocol does not look into."""

    wanted = "an object"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, Mapping):
            found.append(self._misfit(value, path))


class _Pointer(_Check):
    wanted = "a JSON pointer"
    _SYNTAX: Final = re.compile(r"(?:/(?:[^/~]|~[01])*)*")

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, str) or (isinstance(value, str) and not self._SYNTAX.fullmatch(value)):
            found.append(self._misfit(value, path))


class _Many(_Check):
    def __init__(self, item: _Check, *, least: int = 0) -> None:
        self._item = item
        self._least = least
        self.wanted = f"an array of {least} or more" if least else "an array"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, (list, tuple)):
            found.append(self._misfit(value, path))
        elif isinstance(value, list | tuple):
            if len(value) < self._least:
                found.append(self._misfit(value, path))
            for index, item in enumerate(value):
                self._item.look(item, (*path, index), found)


class _TextOr(_Check):
    def __init__(self, parts: _Check) -> None:
        self._parts = parts
        self.wanted = "a string or an array"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, (str, list, tuple)):
            found.append(self._misfit(value, path))
        elif not isinstance(value, str):
            self._parts.look(value, path, found)


class _Field(NamedTuple):
    """A field of an object."""

    check: _Check
    required: bool = True
    null: bool = False
    """Whether null is legal: as data, or as one of the old spellings that the client still reads as absent."""
    empty: Callable[[Mapping[str, Any], Context], Any] | None = None
    """What absence and null mean, where the field is required and they can mean only one thing."""


class _Shape(_Check):
    """An object whose fields the protocol describes. Fields that it does not are stripped by the client."""

    wanted = "an object"

    def __init__(self, fields: Mapping[str, _Field]) -> None:
        self.fields = fields
        self._required = tuple(name for name, field in fields.items() if field.required)

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, Mapping):
            found.append(self._misfit(value, path))
        elif isinstance(value, Mapping):
            self.look_into(value, path, found, {})

    def look_into(
        self, value: Mapping[str, Any], path: tuple[str | int, ...], found: list[Misfit], context: Context
    ) -> None:
        fields = self.fields
        for name, item in value.items():
            field = fields.get(name)
            if field is None:
                continue
            if item is not None:
                if field.empty is not None and type(item) is not str and field.check.is_nameless(item):
                    self._absent(name, _word(item), value, path, found, context)
                else:
                    field.check.look(item, (*path, name), found)
            elif not field.null:
                self._absent(name, "null", value, path, found, context)
        for name in self._required:
            if name not in value:
                self._absent(name, "nothing", value, path, found, context)

    def _absent(
        self,
        name: str,
        got: str,
        value: Mapping[str, Any],
        path: tuple[str | int, ...],
        found: list[Misfit],
        context: Context,
    ) -> None:
        field = self.fields[name]
        fix: Any = None
        if not field.required:
            fix = Removed
        elif field.empty is not None:
            fix = (field.empty(value, context),)
        elif isinstance(field.check, _Name):
            fix = field.check._otherwise  # noqa: SLF001 - this module owns the class
        found.append(Misfit((*path, name), got, field.check.wanted, fix))


class _Media(_Shape):
    """A media part, which the client strips as a whole where it does not know the kind of source."""

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        source = value.get("source") if isinstance(value, Mapping) else None
        if not isinstance(source, Mapping) or source.get("type") in ("data", "url", "file"):
            super().look(value, path, found)


class _Tagged(_Check):
    """One of several shapes, told apart by one field. A shape that the client does not know, it strips."""

    wanted = "an object"

    def __init__(self, tag: str, shapes: Mapping[str, _Check]) -> None:
        self._tag = tag
        self._shapes = shapes

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, Mapping):
            found.append(self._misfit(value, path))
        elif isinstance(value, Mapping):
            tag = value.get(self._tag)
            shape = self._shapes.get(tag) if isinstance(tag, str) else None
            if shape is not None:
                shape.look(value, path, found)


_NATIVE: Final = (str, int, float, list, tuple, Mapping, type(None))


def _foreign(value: Any, wanted: type | tuple[type, ...]) -> bool:
    """Whether a value is one of JSON's, but not of the wanted type."""
    return not isinstance(value, wanted) and isinstance(value, _NATIVE)


def _is_whole(value: Any) -> bool:
    # JSON has one kind of number: 1.0 is whole.
    if type(value) is int:
        return -_LARGEST <= value <= _LARGEST
    if type(value) is float:
        return value.is_integer() and -_LARGEST <= value <= _LARGEST
    return not isinstance(value, _NATIVE)


def _word(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "another string"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, Mapping):
        return "an object"
    return "an array" if value else "an empty array"


# The table. `_must`: a required field; `_may`: an optional one; `_may_null`: one whose null is read as absent, too.


def _must(check: _Check, *, null: bool = False, empty: Any = None) -> _Field:
    if empty is not None and not callable(empty):
        return _Field(check, null=null, empty=lambda _event, _context: empty)
    return _Field(check, null=null, empty=empty)


def _may(check: _Check) -> _Field:
    return _Field(check, required=False)


def _may_null(check: _Check) -> _Field:
    return _Field(check, required=False, null=True)


_TEXT: Final = _Text()
_JSON: Final = _Anything()
_OPEN: Final = _Object()
_ID: Final = _Name(Dropped)
_REFERENCE: Final = _Name()
_OWNER: Final = _Name(Removed)

_EVENT: Final = {"timestamp": _may(_Timestamp()), "rawEvent": _may_null(_JSON), "metadata": _may(_OPEN)}
_OWNED: Final = _EVENT | {"subagentRunId": _may(_OWNER)}
_SUBAGENT: Final = _EVENT | {"subagentRunId": _must(_ID)}
_ROLE: Final = _may(_Choice("developer", "system", "assistant", "user"))

_SOURCE: Final = _Tagged(
    "type",
    {
        "data": _Shape({"value": _must(_TEXT), "mimeType": _must(_TEXT)}),
        "url": _Shape({"value": _must(_TEXT), "mimeType": _may(_TEXT)}),
        "file": _Shape({"value": _must(_TEXT), "provider": _may(_TEXT), "mimeType": _may(_TEXT)}),
    },
)


def _content(media_metadata: Callable[[_Check], _Field]) -> _TextOr:
    """Return the check of message content. Only inside of messages is a null as metadata of a media part tolerated."""
    media = _Media({"id": _may(_TEXT), "source": _must(_SOURCE), "metadata": media_metadata(_JSON)})
    text = _Shape({"id": _may(_TEXT), "text": _must(_TEXT), "metadata": _may(_JSON)})
    shapes: Mapping[str, _Shape] = {"text": text} | dict.fromkeys(("image", "audio", "video", "document"), media)
    return _TextOr(_Many(_Tagged("type", shapes)))


_MESSAGE: Final = {
    "id": _must(_REFERENCE),
    "subagentRunId": _may(_OWNER),
    "encryptedValue": _may(_TEXT),
    "metadata": _may(_OPEN),
}
_NAMED: Final = _MESSAGE | {"name": _may(_TEXT)}
_CALL: Final = _Shape(
    {
        "id": _must(_REFERENCE),
        "type": _must(_Choice("function")),
        "function": _must(_Shape({"name": _must(_TEXT), "arguments": _must(_TEXT)})),
        "encryptedValue": _may(_TEXT),
        "metadata": _may(_OPEN),
    }
)
_CONTENT: Final = _content(_may_null)
MESSAGES: Final[Mapping[str, _Shape]] = {
    "developer": _Shape(_NAMED | {"content": _must(_TEXT)}),
    "system": _Shape(_NAMED | {"content": _must(_TEXT)}),
    "assistant": _Shape(_NAMED | {"content": _may(_TEXT), "toolCalls": _may(_Many(_CALL))}),
    "user": _Shape(_NAMED | {"content": _must(_CONTENT)}),
    "tool": _Shape(_MESSAGE | {"content": _must(_CONTENT), "toolCallId": _must(_REFERENCE), "error": _may(_TEXT)}),
    "activity": _Shape(
        {name: field for name, field in _MESSAGE.items() if name != "encryptedValue"}
        | {"activityType": _must(_TEXT), "content": _must(_OPEN)}
    ),
    "reasoning": _Shape(_MESSAGE | {"content": _must(_TEXT)}),
}
"""The shape of a message by its role. Messages of other roles are stripped by the client."""
_MESSAGES: Final = _must(_Many(_Tagged("role", MESSAGES)))

_PATH: Final = {"path": _must(_Pointer())}
_VALUE: Final = _PATH | {"value": _must(_JSON, null=True)}
_FROM: Final = _PATH | {"from": _must(_Pointer())}
_PATCH: Final = _must(
    _Many(
        _Tagged(
            "op",
            {
                "add": _Shape(_VALUE),
                "remove": _Shape(_PATH),
                "replace": _Shape(_VALUE),
                "move": _Shape(_FROM),
                "copy": _Shape(_FROM),
                "test": _Shape(_VALUE),
            },
        )
    )
)

_TOOL: Final = _Shape(
    {"name": _must(_TEXT), "description": _must(_TEXT), "parameters": _may_null(_JSON), "metadata": _may(_OPEN)}
)
_RESUME: Final = _Shape(
    {
        "interruptId": _must(_TEXT),
        "status": _must(_Choice("resolved", "cancelled")),
        "payload": _may_null(_JSON),
        "metadata": _may(_OPEN),
    }
)
_INPUT: Final = _Shape(
    {
        "threadId": _must(_TEXT),
        "runId": _must(_TEXT),
        "protocolVersion": _may(_TEXT),
        "parentRunId": _may(_TEXT),
        "state": _may_null(_JSON),
        "messages": _MESSAGES,
        "tools": _may(_Many(_TOOL)),
        "context": _may(_Many(_Shape({"description": _must(_TEXT), "value": _must(_TEXT)}))),
        "forwardedProps": _may_null(_JSON),
        "resume": _may(_Many(_RESUME)),
    }
)

_INTERRUPT: Final = _Shape(
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
_OUTCOME: Final = _Tagged(
    "type",
    {
        "success": _Shape({"pendingToolCallIds": _may(_Many(_REFERENCE))}),
        "interrupt": _Shape({"interrupts": _must(_Many(_INTERRUPT, least=1))}),
        "cancelled": _Shape({}),
    },
)
_SUBAGENT_OUTCOME: Final = _Tagged(
    "type", {"success": _Shape({}), "suspended": _Shape({"interruptIds": _may(_Many(_REFERENCE))})}
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
    _Many(_Shape({"provider": _may(_TEXT), "model": _may(_TEXT)} | dict.fromkeys(_COUNTS, _may(_Whole()))))
)

FAILED: Final = "The agent failed."
"""What a RUN_ERROR says that says nothing."""


def _of_run(name: str) -> _Field:
    return _must(_REFERENCE, empty=lambda _event, context: context[name])


def _result_id(event: Mapping[str, Any], _context: Context) -> str:
    return f"{event.get('toolCallId')}-result"  # nothing else in the stream refers to it


_MESSAGE_ID: Final = {"messageId": _must(_ID)}
_CALL_ID: Final = {"toolCallId": _must(_ID)}
_DELTA: Final = {"delta": _must(_TEXT, empty="")}
_RUN: Final = _EVENT | {"threadId": _of_run("threadId"), "runId": _of_run("runId")}

EVENTS: Final[Mapping[str, _Shape]] = {
    name: _Shape(fields)
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
            "role": _may(_Choice("tool")),
        },
        "STATE_SNAPSHOT": _OWNED | {"snapshot": _must(_JSON, null=True)},
        "STATE_DELTA": _OWNED | {"delta": _PATCH},
        "MESSAGES_SNAPSHOT": _EVENT | {"messages": _MESSAGES},
        "ACTIVITY_SNAPSHOT": _OWNED
        | _MESSAGE_ID
        | {"activityType": _must(_TEXT), "content": _must(_OPEN), "replace": _may(_Flag())},
        "ACTIVITY_DELTA": _OWNED | _MESSAGE_ID | {"activityType": _must(_TEXT), "patch": _PATCH},
        # Encoders that leave out every None leave these out, too.
        "RAW": _OWNED | {"event": _must(_JSON, null=True, empty=lambda *_: None), "source": _may(_TEXT)},
        "CUSTOM": _OWNED | {"name": _must(_TEXT), "value": _must(_JSON, null=True, empty=lambda *_: None)},
        "RUN_STARTED": _RUN | {"protocolVersion": _may(_TEXT), "parentRunId": _may(_TEXT), "input": _may(_INPUT)},
        "RUN_FINISHED": _RUN | {"result": _may_null(_JSON), "outcome": _may_null(_OUTCOME), "usage": _USAGE},
        "RUN_ERROR": _EVENT | {"message": _must(_Sentence(FAILED), empty=FAILED), "code": _may(_TEXT), "usage": _USAGE},
        "STEP_STARTED": _OWNED | {"stepName": _must(_ID)},
        "STEP_FINISHED": _OWNED | {"stepName": _must(_ID)},
        "REASONING_START": _OWNED | _MESSAGE_ID,
        "REASONING_MESSAGE_START": _OWNED | _MESSAGE_ID | {"role": _must(_Choice("reasoning"), empty="reasoning")},
        "REASONING_MESSAGE_CONTENT": _OWNED | _MESSAGE_ID | _DELTA,
        "REASONING_MESSAGE_END": _OWNED | _MESSAGE_ID,
        "REASONING_MESSAGE_CHUNK": _OWNED | {"messageId": _may(_ID), "delta": _may(_TEXT)},
        "REASONING_END": _OWNED | _MESSAGE_ID,
        "REASONING_ENCRYPTED_VALUE": _OWNED
        | {
            "subtype": _must(_Choice("tool-call", "message")),
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
        "SUBAGENT_ERROR": _SUBAGENT | {"message": _must(_Sentence(FAILED), empty=FAILED), "code": _may(_TEXT)},
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
    shape.look_into(event.data, (), found, context)
    return found


def mended(event: WireEvent, found: Sequence[Misfit]) -> WireEvent | None:
    """Return a copy of an event with every misfit fixed; None where one of them takes the event along.

    Args:
        event: The event.
        found: Its misfits, each with a fix.
    """
    data = dict(event.data)
    for misfit in found:
        if misfit.fix is Dropped:
            return None
        target: Any = data
        for part in misfit.path[:-1]:
            # Copied along the path, each time anew: rare, and events are never mutated.
            target[part] = list(target[part]) if isinstance(target[part], list | tuple) else dict(target[part])
            target = target[part]
        if isinstance(misfit.fix, tuple):
            target[misfit.path[-1]] = misfit.fix[0]
        else:
            del target[misfit.path[-1]]
    return decode_event(data)
