"""Frames of an old agent to meanings.

Knows how each dialect spells a frame (by the tables of `_dialects.py`) and which kinds of values its fields have. Does
not know what came before: pieces are not compared with wholes here, nor results with calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._errors import DecodeError
from agui_pipeline.translators._events import loads
from agui_pipeline.translators.superagent._dialects import (
    COMPATIBLE,
    DONE_TOKEN,
    ENVELOPED,
    FLAT,
    INCREMENTAL,
    MEANINGS,
    WITH_WHOLE,
)
from agui_pipeline.translators.superagent._meanings import RAW, Code, Done, Meaning, Text, Thinking, ToolResult

_LATEST: Final = 2**53


class Parsed(NamedTuple):
    """What a frame means, and the time in milliseconds that it carries, None for none."""

    meaning: Meaning
    timestamp: int | None = None


def parse(data: str, dialect: str) -> Parsed:
    """Return what the data of a frame means.

    Raises:
        DecodeError: It is no frame of the dialect; says why, without its text.
    """
    return _PARSERS[dialect](data)


def _enveloped(data: str) -> Parsed:
    envelope = _object_of(data)
    kind = _kind_of(envelope)
    fields = envelope.get("data")
    if fields is None and kind == Done.kind:
        fields = {}
    if not isinstance(fields, Mapping):
        raise DecodeError(f"the data of a {kind} must be an object; got {type(fields).__name__}")
    time = envelope.get("timestamp")
    known = type(time) is int and abs(time) < _LATEST
    return Parsed(_meaning(kind, WITH_WHOLE[kind], fields), time if known else None)


def _flat(data: str) -> Parsed:
    fields = _object_of(data)
    kind = _kind_of(fields)
    return Parsed(_meaning(kind, INCREMENTAL[kind], fields))


def _compatible(data: str) -> Parsed:
    if data.strip() == DONE_TOKEN:
        return Parsed(Done())
    if data.lstrip()[:1] == "{":
        try:
            fields = _object_of(data)
            if fields.keys() <= {"type", "data", "timestamp"}:
                return _enveloped(data)
        except DecodeError:
            pass  # text may look like anything
    return Parsed(Text(data))


_PARSERS: Final[Mapping[str, Callable[[str], Parsed]]] = {
    ENVELOPED: _enveloped,
    FLAT: _flat,
    COMPATIBLE: _compatible,
}


def _object_of(data: str) -> Mapping[str, Any]:
    try:
        value = loads(data.encode(errors="surrogatepass"))
    except ValueError:
        raise DecodeError("the data of a frame must be a JSON object; got something that is not JSON") from None
    if not isinstance(value, dict):
        raise DecodeError(f"the data of a frame must be a JSON object; got {type(value).__name__}")
    return value


def _kind_of(fields: Mapping[str, Any]) -> str:
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in MEANINGS:
        raise DecodeError(f"the type of a frame must be one of {', '.join(MEANINGS)}; got something else")
    return kind


def _meaning(kind: str, spelled: Mapping[str, str], fields: Mapping[str, Any]) -> Meaning:
    values: dict[str, Any] = {}
    for name, attribute in spelled.items():
        value = fields.get(name)
        if value is None and attribute in _OPTIONAL:
            continue
        read, wanted = _READERS.get(attribute, _STRING)
        found = read(value)
        if found is None:
            raise DecodeError(f"{kind}.{name} must be {wanted}; got {type(value).__name__}")
        values[attribute] = found
    if kind in _PIECES:
        if "delta" not in values and "whole" not in values:
            raise DecodeError(f"a {kind} must have one of {', '.join(spelled)}; got none")
        values.setdefault("delta", None)
    elif kind == ToolResult.kind:
        values["text"] = values.pop("output", values.get("text", values.get("error", "")))
        values["is_error"] = values.get("is_error", bool(values.get("error")))
    elif kind == "tool_call":
        values.setdefault("arguments", {})
    elif kind == "error":
        values.setdefault("code", "error")
    return MEANINGS[kind](**values)


_PIECES: Final = (Text.kind, Thinking.kind, Code.kind)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode_json(value).decode()


def _error(value: Any) -> str:
    return "" if value is False else _text(value)


def _number(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if good else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _arguments(value: Any) -> Mapping[str, Any] | None:
    return {RAW: value} if isinstance(value, str) else value if isinstance(value, Mapping) else None


def _status(value: Any) -> str | None:
    return value if value in ("calling", "success", "error") else None


def _fields(value: Any) -> list[Mapping[str, Any]] | None:
    if not isinstance(value, list):
        return None
    good = all(isinstance(field, Mapping) and isinstance(field.get("name"), str) for field in value)
    return value if good else None


def _usage(value: Any) -> Mapping[str, int] | None:
    if not isinstance(value, Mapping):
        return None
    counts = {name: value.get(name) for name in ("prompt_tokens", "completion_tokens")}
    return {name: count for name, count in counts.items() if type(count) is int and 0 <= count < _LATEST}


_STRING: Final[tuple[Callable[[Any], Any], str]] = (_string, "a string")
_READERS: Final[Mapping[str, tuple[Callable[[Any], Any], str]]] = {
    "arguments": (_arguments, "an object"),
    "code": (_text, "a string"),
    "current": (_number, "a number"),
    "error": (_error, "a string"),
    "fields": (_fields, "a list of fields with names"),
    "is_error": (_flag, "a boolean"),
    "output": (_text, "a JSON value"),
    "status": (_status, "calling, success or error"),
    "text": (_text, "a string"),
    "total": (_number, "a number"),
    "usage": (_usage, "an object"),
}
"""How the attributes that are not just strings are read, and what they must be."""
_OPTIONAL: Final = frozenset(
    {"agent", "arguments", "code", "delta", "error", "fields", "is_error", "language", "output", "reason", "status"}
    | {"text", "total", "usage", "whole"}
)
"""What a frame may leave out, or have as null: a program's empty value."""
