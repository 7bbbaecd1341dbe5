"""What a client of the old API answers to an interrupt, as an entry of `RunAgentInput.resume`.

Knows response schemas as far as a form can show them. Does not know which interrupt is answered, nor dialects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from agui_pipeline.translators import DecodeError
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._events import loads
from agui_pipeline.translators.superagent._interrupts import ANSWER, CONFIRM, interrupt_fields, resolved

_YES: Final = frozenset({"true", "yes", "y", "1", "ok", "是", "确认"})
_NO: Final = frozenset({"false", "no", "n", "0", "cancel", "否", "取消"})
_CONFIRM: Final = "confirm"
"""The type of the field of an interrupt that says nothing about its response: a yes or no where it is one."""
_MISSING: Final = object()


def resume_entry(interrupt: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to an interrupt.

    The payload is what the response schema describes: an object of the fields' values, or the value itself where the
    schema is of a string, a number or a boolean. Without a schema it is an object with `confirm`. What forms and
    prompts send as text is read as the schema's type.

    Args:
        interrupt: The interrupt, as JSON.
        given: The body: `input`, an object of field values, or `answer`, the value of the only field.

    Raises:
        DecodeError: The answer is none to this interrupt; says which field and what was wanted.
    """
    schema = interrupt.get("responseSchema")
    root: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    about = resolved(root, root)
    fields = interrupt_fields(interrupt)
    named = about.get("properties")
    if isinstance(named, Mapping) and named:
        properties = {name: resolved(value, root) for name, value in named.items()}
    else:
        properties = {fields[0]["name"]: {"type": _CONFIRM} if fields[0]["name"] == CONFIRM["name"] else about}
    required = [field["name"] for field in fields if field["required"]]
    if "answer" in given:
        name = _only(list(properties), required)
        payload = {name: _read(given["answer"], properties[name], "answer")}
    else:
        payload = _filled(properties, required, given["input"])
    single = fields[0]["name"] == ANSWER and properties[ANSWER] is about
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload[ANSWER] if single else payload}


def _filled(properties: Mapping[str, Any], required: list[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a form; those of fields that the schema does not name as they are."""
    for name in required:
        if values.get(name) is None:
            raise DecodeError(f"input.{name}: missing, and the interrupt needs it")
    return {
        name: _read(value, properties[name], f"input.{name}") if name in properties and value is not None else value
        for name, value in values.items()
    }


def _only(names: list[str], required: list[str]) -> str:
    for some in (names, required):
        if len(some) == 1:
            return some[0]
    raise DecodeError(f"answer: the interrupt has {len(names)} fields; send input, an object of their values")


def _kind(schema: Mapping[str, Any]) -> str | None:
    """Return a schema's one type, null aside; None where it has none or several."""
    kinds = schema.get("type")
    named = [kind for kind in (kinds if isinstance(kinds, list | tuple) else (kinds,)) if kind != "null"]
    return named[0] if len(named) == 1 and isinstance(named[0], str) else None


def _read(value: Any, schema: Mapping[str, Any], path: str) -> Any:
    """Return a field's value as its schema's type."""
    options = schema.get("enum")
    if isinstance(options, list | tuple) and options:
        return _option(value, options, path)
    kind = _kind(schema)
    reader = _READERS.get(kind or "")
    if reader is None:
        return value
    read = reader(value)
    if read is _MISSING:
        raise DecodeError(f"{path}: wanted {_WANTED[kind or '']}")
    return read


def _option(value: Any, options: list[Any] | tuple[Any, ...], path: str) -> Any:
    given = _text(value)
    for option in options:
        if isinstance(option, str) == isinstance(value, str) and _text(option) == given:
            return option
    for option in options:  # a form sends the text of what it shows
        if isinstance(value, str) and _text(option) == given:
            return option
    raise DecodeError(f"{path}: wanted one of {', '.join(map(_text, options[:10]))}")


def _text(value: Any) -> str:
    """Return how a form in a browser shows a value, where 1.0 is 1."""
    if isinstance(value, str):
        return value
    whole = isinstance(value, float) and value.is_integer()
    return encode_json(int(value) if whole else value).decode()


def _boolean(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    return True if text in _YES else False if text in _NO else _MISSING


def _confirmed(value: Any) -> Any:
    read = _boolean(value)
    return value if read is _MISSING else read


def _json(value: Any) -> Any:
    """Return what JSON in a text field says; what is no text as it is."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value.strip().encode(errors="replace"))
    except ValueError:
        return _MISSING


def _number(value: Any) -> Any:
    number = _json(value)
    fits = isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < math.inf
    return number if fits else _MISSING


def _integer(value: Any) -> Any:
    number = _number(value)
    if isinstance(number, float):
        return int(number) if number.is_integer() else _MISSING
    return number


def _string(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else _MISSING


def _object(value: Any) -> Any:
    found = _json(value)
    return found if isinstance(found, Mapping) else _MISSING


def _list(value: Any) -> Any:
    found = _json(value)
    return found if isinstance(found, list) else _MISSING


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    _CONFIRM: _confirmed,
    "boolean": _boolean,
    "number": _number,
    "integer": _integer,
    "string": _string,
    "object": _object,
    "array": _list,
}
_WANTED: Final[Mapping[str, str]] = {
    "boolean": "a boolean",
    "number": "a number",
    "integer": "a whole number",
    "string": "a string",
    "object": "an object, or its JSON",
    "array": "a list, or its JSON",
}
