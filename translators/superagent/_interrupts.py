"""Interrupts and forms: what an AG-UI interrupt asks for, as the fields that the enveloped dialect shows, and back.

Knows JSON schema as far as a form of text, confirm and select fields goes. Does not know who answers, or when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agui_pipeline.translators._owners import field_of

ANSWER: Final = "answer"
"""The name of the one field of an interrupt whose response is a single value: the payload is that field's value."""

CONFIRM: Final[Mapping[str, Any]] = {"name": "confirm", "type": "confirm", "label": "Confirm", "required": True}
"""The field of an interrupt that says nothing about its response."""

NEEDS_INPUT: Final = "need_user_input"
"""The reason of an interrupt that has none, as flat agents call it."""


def interrupt_fields(interrupt: Any) -> list[dict[str, Any]]:
    """Return the form fields of an interrupt, in the enveloped dialect's shape.

    Args:
        interrupt: An interrupt of a RUN_FINISHED: a model or a mapping with wire names.

    Returns:
        One ``{"name", "type", "label", "required"}`` a property of its response schema, ``options`` with a select. A
        schema of a single value gives one field named ``"answer"``; no schema gives one required confirm.

    Example:
        >>> interrupt_fields({"id": "i", "reason": "r", "responseSchema": {"properties": {"ok": {"type": "boolean"}}}})
        [{'name': 'ok', 'type': 'confirm', 'label': 'ok', 'required': False}]
    """
    schema = field_of(interrupt, "response_schema", "responseSchema")
    if not isinstance(schema, Mapping):
        return [dict(CONFIRM)]
    root, schema = schema, resolved(schema, schema)
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        required = schema.get("required")
        needed = required if isinstance(required, list | tuple) else ()
        return [_field(str(name), resolved(value, root), required=name in needed) for name, value in properties.items()]
    if _types(schema) - {"object", "null"} or _options(schema) is not None:
        return [_field(ANSWER, schema, required=True)]
    return [dict(CONFIRM)]


def response_schema(fields: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the response schema that form fields mean: the way back of `interrupt_fields`."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in fields:
        name = field["name"]
        property_: dict[str, Any] = {"type": "boolean" if field.get("type") == "confirm" else "string"}
        options = field.get("options")
        if field.get("type") == "select" and isinstance(options, list | tuple):
            property_ = {"enum": list(options)}
            if all(isinstance(option, str) for option in options):
                property_["type"] = "string"
        label = field.get("label")
        if isinstance(label, str) and label != name:
            property_["title"] = label
        properties[name] = property_
        if field.get("required") is True:
            required.append(name)
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _field(name: str, schema: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    options = _options(schema)
    kind = "confirm" if "boolean" in _types(schema) else "text" if options is None else "select"
    label = schema.get("title")
    field = {"name": name, "type": kind, "label": label if isinstance(label, str) else name, "required": required}
    return field | {"options": list(options)} if kind == "select" and options is not None else field


_FARTHEST: Final = 8
"""Steps from a property to what describes it; a schema can lead in a circle."""


def resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what describes a value: behind a reference within the schema, or the alternative to null.

    Programs write such for enumerations and for what may be missing. What stands beside it, such as a title, wins.
    """
    about: dict[str, Any] = {}
    for _ in range(_FARTHEST):
        if not isinstance(schema, Mapping):
            break
        about = {**schema, **about}
        reference, alternatives = schema.get("$ref"), schema.get("anyOf")
        others = [one for one in alternatives if one != _NULL] if isinstance(alternatives, list | tuple) else []
        if isinstance(reference, str) and reference.startswith("#/"):
            schema = root
            for step in reference[2:].split("/"):
                schema = schema.get(step) if isinstance(schema, Mapping) else None
        elif len(others) == 1:
            schema = others[0]
        else:
            break
    return about


_NULL: Final = {"type": "null"}


def _types(schema: Mapping[str, Any]) -> set[str]:
    found = schema.get("type")
    return {name for name in (found if isinstance(found, list | tuple) else (found,)) if isinstance(name, str)}


def _options(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    options = schema.get("enum")
    return options if isinstance(options, list | tuple) and options else None
