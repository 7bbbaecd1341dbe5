"""Events and plain values to JSON.

Knows what the SDK's encoder would have said and says the same, several times faster: one generated dict builder a
model class, then orjson. Does not know about framing (`_sse.py`). Nothing here raises: what JSON cannot say is
repaired, and each repair is a diagnostic.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import orjson
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink, run_sink
from agui_pipeline.translators._events import AnyEvent, WireEvent

_MAX_DEPTH: Final = 200
"""Levels of nesting that are kept. orjson stops at 254; a browser's or an older JSON reader may stop earlier."""
_MAX_TEXT: Final = 200
"""Characters kept of the `str()` of an object that JSON has no form for."""

# Datetimes and dataclasses are left to pydantic, which spells them as the SDK's encoder does (``Z``, by alias).
_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def encode_event(event: AnyEvent, on_diagnostic: DiagnosticSink | None = None) -> bytes:
    """Encode an event as compact JSON: the same meaning as the SDK's `EventEncoder`, several times faster.

    Wire names in camelCase; optional fields without a value left out; nulls that mean something kept (required
    fields, and everything inside payloads). U+2028 and U+2029 are escaped. A `WireEvent` that nobody replaced gives
    the bytes it was received as.

    Args:
        event: An event of either kind.
        on_diagnostic: Gets a `Diagnostic` a repair (codes ``encode.*``). Default: the log.

    Returns:
        UTF-8 JSON, one object. Never raises: NaN and infinities become null, a lone surrogate U+FFFD, an object that
        JSON has no form for its ``str()`` cut to 200 characters, what is nested deeper than 200 levels ``"…"``.

    Example:
        >>> from ag_ui.core import CustomEvent
        >>> encode_event(CustomEvent(name="n", value={"k": None}))
        b'{"type":"CUSTOM","name":"n","value":{"k":null}}'
    """
    if isinstance(event, WireEvent):
        raw = event._raw  # noqa: SLF001 - the slots are shared with this module
        if raw is None:
            raw = event._raw = encode_json(event._data, on_diagnostic, event.type)  # noqa: SLF001
        return raw
    build = _builders.get(type(event)) or _builder(type(event))
    try:
        value = build(event)
    except Exception:  # noqa: BLE001 - a subclass's own serializer may raise anything; never ours
        value = dict(vars(event)) if hasattr(event, "__dict__") else {"type": str(event.type)}
    return encode_json(value, on_diagnostic, str.__str__(event.type))


def encode_json(value: Any, on_diagnostic: DiagnosticSink | None = None, event_type: str | None = None) -> bytes:
    """Encode any value as compact JSON, with the repairs of `encode_event`."""
    try:
        data = orjson.dumps(value, _default, _OPTIONS)
    except Exception:  # noqa: BLE001 - orjson, or the str() or serializer of somebody's object
        return _encode_slowly(value, on_diagnostic, event_type)
    if b"null" in data and _has_nan(value):
        return _encode_slowly(value, on_diagnostic, event_type)
    if b"\xe2\x80\xa8" in data or b"\xe2\x80\xa9" in data:
        # Legal JSON, but line ends to JavaScript's older parsers and to line readers such as httpx's.
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return data


def jsonable(event: AnyEvent) -> dict[str, Any]:
    """Return an event as a new dict with wire names; payloads are shared, not copied."""
    if isinstance(event, WireEvent):
        return dict(event._data)  # noqa: SLF001 - the slots are shared with this module
    build = _builders.get(type(event)) or _builder(type(event))
    return build(event)


_Builder = Callable[[Any], dict[str, Any]]
_builders: dict[type, _Builder] = {}


def _builder(cls: type) -> _Builder:
    """Make, and remember, the function that turns an instance of a class into a dict with wire names."""
    if not issubclass(cls, BaseModel):
        build: _Builder = _foreign
    elif _serializes_itself(cls):
        build = _dump
    else:
        build = _generated(cls)
    _builders[cls] = build
    return build


def _foreign(event: Any) -> dict[str, Any]:
    """Encode an event that is neither kind but has attributes, such as a test's stand-in."""
    fields = {name: value for name, value in vars(event).items() if not name.startswith("_")}
    return {"type": str.__str__(event.type)} | fields


def _dump(event: BaseModel) -> dict[str, Any]:
    return event.model_dump(mode="python", by_alias=True)


def _serializes_itself(cls: type[BaseModel]) -> bool:
    """Whether a class says how it is serialized, beyond what the SDK's own base does."""
    decorators = cls.__pydantic_decorators__
    own = {
        name
        for group in (decorators.field_serializers, decorators.model_serializers, decorators.computed_fields)
        for name in group
    }
    return bool(own - {"_omit_fields_without_value"}) or any(
        field.exclude or any(hasattr(item, "when_used") for item in field.metadata)
        for field in cls.model_fields.values()
    )


def _generated(cls: type[BaseModel]) -> _Builder:
    """Generate the builder's source: straight-line code is what makes encoding a model cheap."""
    lines = ["def build(event):", " fields = event.__dict__", " out = {}"]
    for name, field in cls.model_fields.items():
        if name == "type" and isinstance(field.default, str):
            # One plain string for all: orjson takes an enum's member only after asking Python for its value.
            lines[2] = f" out = {{'type': {str.__str__(field.default)!r}}}"
            continue
        alias = field.serialization_alias or field.alias or name
        lines.append(f" value = fields[{name!r}]")
        optional = not field.is_required() and field.default is None
        lines.append(f" {'if value is not None: ' if optional else ''}out[{alias!r}] = value")
    lines += [
        " extra = event.__pydantic_extra__",
        " if extra: out.update(extra)",
        " return out",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)  # noqa: S102 - the names are those of a model's fields
    build: _Builder = namespace["build"]
    return build


def _default(value: Any) -> Any:
    """Give orjson something it knows: nested models as the SDK would, everything else as pydantic would."""
    if isinstance(value, BaseModel):
        return (_builders.get(type(value)) or _builder(type(value)))(value)
    return to_jsonable_python(value, by_alias=True)


_strict: Final = json.JSONEncoder(allow_nan=False, check_circular=False, default=_default)


def _has_nan(value: Any) -> bool:
    """Whether one of the nulls was a float that JSON has no form for (orjson says null and no more)."""
    try:
        _strict.encode(value)
    except (ValueError, RecursionError):
        return True
    except Exception:  # noqa: BLE001 - keys or objects that json knows less of than orjson: look the slow way
        return True
    return False


def _encode_slowly(value: Any, on_diagnostic: DiagnosticSink | None, event_type: str | None) -> bytes:
    repairs: dict[str, int] = {}
    plain = _plain(value, 0, partial(_count, repairs))
    try:
        data = orjson.dumps(plain)
    except Exception:  # noqa: BLE001 - an integer past 64 bits
        data = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if repairs:
        sink = run_sink(on_diagnostic)
        for code, count in repairs.items():
            sink(Diagnostic(code, f"{_MESSAGES[code]} ({count} times)", event_type=event_type, detail={"count": count}))
    return data


_MESSAGES: Final[Mapping[str, str]] = {
    "encode.nan": "NaN or an infinity was sent as null: JSON has no form for it",
    "encode.surrogate": "a lone surrogate was sent as U+FFFD: UTF-8 has no form for it",
    "encode.object": f"an object that JSON has no form for was sent as its str(), cut to {_MAX_TEXT} characters",
    "encode.depth": f'what was nested deeper than {_MAX_DEPTH} levels was sent as "…"',
    "encode.key": "two keys of an object had the same text; the later value was sent",
}
"""The diagnostics of encoding, by code."""


def _count(repairs: dict[str, int], code: str) -> None:
    repairs[code] = repairs.get(code, 0) + 1


def _plain(value: Any, depth: int, repair: Callable[[str], None]) -> Any:  # noqa: C901, PLR0911 - one case a kind of value
    """Return a value made of dicts, lists, strings and numbers that JSON has a form for."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(str.__str__(value), repair)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        repair("encode.nan")
        return None
    if depth >= _MAX_DEPTH:
        repair("encode.depth")
        return "…"
    try:
        if isinstance(value, BaseModel):
            return _plain((_builders.get(type(value)) or _builder(type(value)))(value), depth, repair)
        if isinstance(value, Mapping):
            return _object(value.items(), depth, repair)
        if isinstance(value, (list, tuple, set, frozenset)):
            return [_plain(item, depth + 1, repair) for item in value]
        other = to_jsonable_python(value, by_alias=True)
    except Exception:  # noqa: BLE001 - any object, with any code of its own
        repair("encode.object")
        return _text(_str(value), repair)
    return _plain(other, depth + 1, repair)


def _object(items: Iterable[tuple[Any, Any]], depth: int, repair: Callable[[str], None]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in items:
        name = _key(key, repair)
        if name in out:
            repair("encode.key")
        out[name] = _plain(item, depth + 1, repair)
    return out


def _key(key: Any, repair: Callable[[str], None]) -> str:
    """Spell a key as pydantic does (``None``, ``true``, ``1``), else as `str`."""
    if isinstance(key, str):
        return _text(str.__str__(key), repair)
    try:
        return _text(next(iter(to_jsonable_python({key: None}, by_alias=True))), repair)
    except Exception:  # noqa: BLE001 - any object, with any code of its own
        repair("encode.object")
        return _text(_str(key), repair)


def _text(text: str, repair: Callable[[str], None]) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16 two halves that stand together become the character they mean.
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if "\ufffd" in joined:
            repair("encode.surrogate")
        return joined
    return text


def _str(value: Any) -> str:
    try:
        return str(value)[:_MAX_TEXT]
    except Exception:  # noqa: BLE001 - any object, with any code of its own
        return f"<{type(value).__name__}>"
