"""Events and plain values to JSON.

Knows what the SDK's encoder would have said and says the same, several times faster: one generated dict builder a
model class, then orjson. Does not know about framing (`_sse.py`). Nothing here raises: what JSON cannot say is
repaired, and each repair is a diagnostic.

One difference to the SDK is on purpose: a nested instance of a subclass (of a message, say) is sent with the fields
that the subclass adds, where pydantic sends the declared class's only.
"""

from __future__ import annotations

import dataclasses
import json
import marshal
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, get_args

import orjson
from ag_ui.core.types import ConfiguredBaseModel
from pydantic import BaseModel, RootModel
from pydantic_core import to_jsonable_python

from agui_pipeline.translators._compat import HAS_OMISSION
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink, run_sink
from agui_pipeline.translators._events import KEEPS_NULL, AnyEvent, WireEvent, wire_name

_MAX_DEPTH: Final = 200
"""Levels of objects and arrays that are kept, the event's own included. Many a JSON reader stops not much later."""
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
    build = _builders.get(type(event))
    if build is None:
        if isinstance(event, WireEvent):
            raw = event._raw  # noqa: SLF001 - the slots are shared with this module
            if raw is None:
                raw = event._raw = encode_json(event._data, on_diagnostic, event.type)  # noqa: SLF001
            return raw
        build = _builder(type(event))
    try:
        value, flat = build(event)
        data = orjson.dumps(value, _default, _OPTIONS)
    except Exception:  # noqa: BLE001 - orjson, a field that is not there, or somebody's own serializer
        return _encode_slowly(_opened(event), on_diagnostic, _type_of(event))
    # Flat: nothing but strings, so neither null nor nesting to look for.
    if not flat and _needs_repair(data, event if build is _dump else value):
        return _encode_slowly(_opened(event), on_diagnostic, _type_of(event))
    return data if data.isascii() else _escaped(data)


def encode_json(value: Any, on_diagnostic: DiagnosticSink | None = None, event_type: str | None = None) -> bytes:
    """Encode any value as compact JSON, with the repairs of `encode_event`."""
    try:
        data = orjson.dumps(value, _default, _OPTIONS)
    except Exception:  # noqa: BLE001 - orjson, or the serializer of somebody's object
        return _encode_slowly(value, on_diagnostic, event_type)
    return _encode_slowly(value, on_diagnostic, event_type) if _needs_repair(data, value) else _escaped(data)


def _escaped(data: bytes) -> bytes:
    """Escape U+2028 and U+2029: legal JSON, but line ends to older JavaScript and to line readers such as httpx's."""
    if b"\xe2" in data:
        return data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return data


_SHALLOW: Final = 2 * _MAX_DEPTH
"""Bytes that cannot nest too deep: each level takes two brackets. Only larger events pay for a closer look."""


def _needs_repair(data: bytes, value: Any) -> bool:
    """Whether orjson let something pass that needs a diagnostic: a NaN (it says null), or nesting past the limit."""
    if data.rfind(b"null") >= 0 and _has_nan(value):  # on large data `rfind` is twice as fast as `in`
        return True
    return len(data) > _SHALLOW and data.count(b"{") + data.count(b"[") > _MAX_DEPTH and _too_deep(value)


_MARSHALLED_NAN: Final = re.compile(rb"g.{6}[\xf0-\xff][\x7f\xff]", re.DOTALL)
"""A float that is none, as `marshal` writes floats: a tag, then IEEE 754, little-endian, whose exponent is all ones."""


def _has_nan(value: Any) -> bool:
    """Whether one of the floats in what orjson took was NaN or an infinity."""
    try:
        if _MARSHALLED_NAN.search(marshal.dumps(value, 2)) is None:
            return False
    except ValueError:  # it holds more than JSON's own types
        pass
    return _looked_has_nan(value)  # in text the same bytes mean nothing


def _looked_has_nan(value: Any) -> bool:
    found: list[Any] = [(value,)]
    for item in found:  # which grows meanwhile
        for child in item.values() if type(item) is dict else item:
            kind = type(child)
            if kind in _WITHOUT_FLOATS:
                continue
            if kind is dict or kind is list:
                found.append(child)
            elif kind is float:
                if not math.isfinite(child):
                    return True
            elif _object_has_nan(child):
                return True
    return False


def _object_has_nan(value: Any) -> bool:
    found: list[Any] = [(value,)]
    seen: set[int] = set()  # a model may hold what it does not send, such as its parent
    for item in found:  # which grows meanwhile
        for child in item:
            if isinstance(child, float):
                if not math.isfinite(child):
                    return True
            elif type(child) not in _WITHOUT_FLOATS and id(child) not in seen:
                seen.add(id(child))
                try:
                    found.append(_children(child))
                except Exception:  # noqa: BLE001 - somebody's object or serializer: look the slow way
                    return True
    return False


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, BaseModel):  # as it is: in what pydantic makes of it NaN may be None already
        return (*vars(value).values(), *(value.__pydantic_extra__ or {}).values())
    if isinstance(value, (str, int)):
        return ()
    if isinstance(value, (list, tuple)):
        return value
    return (value.value if isinstance(value, Enum) else _default(value),)


_WITHOUT_FLOATS: Final = frozenset({str, int, bool, type(None)})


def _orjson_levels() -> int:
    value: list[Any] = []
    levels = 0
    try:
        while True:
            orjson.dumps(value)
            levels, value = levels + 1, [value]
    except orjson.JSONEncodeError:
        return levels


_SPARE_LEVELS: Final = _orjson_levels() - _MAX_DEPTH


def _too_deep(value: Any) -> bool:
    for _ in range(_SPARE_LEVELS):
        value = [value]  # what is left of orjson's own limit is then ours
    try:
        orjson.dumps(value, _default, _OPTIONS)
    except Exception:  # noqa: BLE001 - the limit; anything else is for the slow path, too
        return True
    return False


_Builder = Callable[[Any], tuple[dict[str, Any], bool]]
_builders: Final[dict[type, _Builder]] = {}


def _builder(cls: type) -> _Builder:
    """Return what turns an instance of a class into a dict with wire names. The SDK's classes are remembered.

    It also says whether all values are strings.
    """
    if not issubclass(cls, BaseModel):
        return _foreign
    if not issubclass(cls, ConfiguredBaseModel):
        return _dump
    _builders[cls] = _dump if _serializes_itself(cls) else _generated(cls)
    return _builders[cls]


def _foreign(event: Any) -> tuple[dict[str, Any], bool]:
    """Read an event that is no model: whatever has a `type` and attributes."""
    names = [field.name for field in dataclasses.fields(event)] if dataclasses.is_dataclass(event) else vars(event)
    out = {"type": event.type}
    for name in names:
        value = getattr(event, name)
        alias = wire_name(name, {})
        if not name.startswith("_") and (value is not None or (event.type, alias) in KEEPS_NULL):
            out[alias] = value
    return out, False


def _dump(event: BaseModel) -> tuple[dict[str, Any], bool]:
    """Let pydantic decide, as the SDK's encoder does."""
    return event.model_dump(mode="json", by_alias=True, exclude_none=not HAS_OMISSION, warnings=False), False


def _serializes_itself(cls: type[BaseModel]) -> bool:
    """Whether a class says how it is serialized, beyond what the SDK's own base does."""
    decorators = cls.__pydantic_decorators__
    own = {
        name
        for group in (decorators.field_serializers, decorators.model_serializers, decorators.computed_fields)
        for name in group
    }
    return (
        bool(own - {"_omit_fields_without_value"})
        or any(key == "json_encoders" or key.startswith("ser_json") for key in cls.model_config)
        or any(
            field.exclude or any(hasattr(part, "when_used") for part in (*field.metadata, *_parts(field.annotation)))
            for field in cls.model_fields.values()
        )
    )


def _parts(annotation: Any) -> Iterator[Any]:
    for part in get_args(annotation):
        yield part
        yield from _parts(part)


def _generated(cls: type[BaseModel]) -> _Builder:
    """Generate the builder's source: straight-line code is what makes encoding a model cheap."""
    lines = ["def build(event):", " fields = event.__dict__", " out = {}", " flat = True"]
    namespace: dict[str, Any] = {}
    for name, field in cls.model_fields.items():
        if name == "type" and isinstance(field.default, str):
            # One plain string for all: orjson takes an enum's member only after asking Python for its value.
            namespace |= {"usual": field.default, "plain": str.__str__(field.default)}
            lines += [" value = fields['type']", " out['type'] = plain if value is usual else value"]
            continue
        put = f"out[{(field.serialization_alias or field.alias or name)!r}] = value"
        lines += [f" value = fields[{name!r}]", f" if type(value) is str: {put}"]
        optional = not field.is_required() and field.default is None
        lines += [f" elif value is not None: {put}; flat = False" if optional else f" else: {put}; flat = False"]
    lines += [
        " extra = event.__pydantic_extra__",
        " if extra: out.update(extra); flat = False",
        " return out, flat",
    ]
    exec("\n".join(lines), namespace)  # noqa: S102 - the names are those of a model's fields
    build: _Builder = namespace["build"]
    return build


def _default(value: Any) -> Any:
    """Give orjson something it knows: the SDK's nested models as events are, everything else as pydantic would."""
    build = _builders.get(type(value))
    if build is None and isinstance(value, ConfiguredBaseModel):
        build = _builder(type(value))
    return to_jsonable_python(value, by_alias=True) if build is None else build(value)[0]


def _type_of(event: Any) -> str | None:
    try:
        return str.__str__(event.type)
    except Exception:  # noqa: BLE001 - any object, with any code of its own
        return None


def _opened(event: Any) -> Any:
    """Return an event as something that `_Repairs` can open."""
    if isinstance(event, BaseModel):
        return event
    try:
        return _foreign(event)[0]
    except Exception:  # noqa: BLE001 - any object, with any code of its own
        return event


def _fields(value: Any) -> Any:
    """Open an object that pydantic would not, one level: a field that JSON has no form for shall not cost the others.

    Raises:
        TypeError: It has no fields.
    """
    if isinstance(value, RootModel):
        return value.root
    if isinstance(value, BaseModel):
        omits = isinstance(value, ConfiguredBaseModel)
        own = vars(value)
        out = {
            field.serialization_alias or field.alias or name: own[name]
            for name, field in type(value).model_fields.items()
            if name in own
            and not field.exclude
            and not (omits and own[name] is None and field.default is None and not field.is_required())
        }
        return out | (value.__pydantic_extra__ or {})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError


def _encode_slowly(value: Any, on_diagnostic: DiagnosticSink | None, event_type: str | None) -> bytes:
    repairs = _Repairs()
    plain = repairs.plain(value, 0)
    try:
        data = orjson.dumps(plain)
    except orjson.JSONEncodeError:  # an integer past 64 bits
        data = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if repairs.counts:
        sink = run_sink(on_diagnostic)
        for code, count in repairs.counts.items():
            sink(
                Diagnostic(code, f"{DIAGNOSTICS[code]} ({count} times)", event_type=event_type, detail={"count": count})
            )
    return _escaped(data)


DIAGNOSTICS: Final[Mapping[str, str]] = {
    "encode.nan": "NaN or an infinity was sent as null: JSON has no form for it",
    "encode.surrogate": "a lone surrogate was sent as U+FFFD: UTF-8 has no form for it",
    "encode.object": f"an object that JSON has no form for was sent as its str(), cut to {_MAX_TEXT} characters",
    "encode.depth": f'what was nested deeper than {_MAX_DEPTH} levels, or in itself, was sent as "…"',
    "encode.key": "two keys of an object had the same text; the later value was sent",
}
"""The diagnostics of encoding, by code."""


class _Repairs:
    """Makes values plain: dicts, lists, strings and numbers that JSON has a form for. Never raises."""

    __slots__ = ("_open", "counts")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """How many repairs there were, by code."""
        self._open: set[int] = set()  # what is being opened: an object found in itself would never end

    def plain(self, value: Any, depth: int) -> Any:  # noqa: PLR0911 - one a kind of value
        """Return the plain form of a value that stands in so many objects and arrays."""
        if value is None or value is True or value is False:
            return value
        try:
            if isinstance(value, str):
                return self._text(str.__str__(value))
            if isinstance(value, int):
                return self._integer(int.__int__(value))
            if isinstance(value, float):
                return self._float(float.__float__(value))
            if id(value) in self._open:
                return self._cut()
            self._open.add(id(value))
            try:
                return self._opened(value, depth)
            finally:
                self._open.discard(id(value))
        except RecursionError:
            return self._cut()
        except Exception:  # noqa: BLE001 - any object, with any code of its own
            return self._described(value)

    def _opened(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            if depth >= _MAX_DEPTH:
                return self._cut()
            out: dict[str, Any] = {}
            for key, item in value.items():
                name = self._key(key)
                if name in out:
                    self._count("encode.key")
                out[name] = self.plain(item, depth + 1)
            return out
        if isinstance(value, list | tuple | set | frozenset | deque):
            return self._cut() if depth >= _MAX_DEPTH else [self.plain(item, depth + 1) for item in value]
        try:
            simpler = _default(value)
            if isinstance(value, BaseModel) and _looked_has_nan(value) and not _looked_has_nan(simpler):
                self._count("encode.nan")  # pydantic has made it None
        except Exception:  # noqa: BLE001 - any object, with any code of its own
            simpler = _fields(value)
        return self.plain(simpler, depth)

    def _key(self, key: Any) -> str:
        """Spell a key as pydantic does (``None``, ``true``, ``1``), else as `str`."""
        try:
            if isinstance(key, str):
                return self._text(str.__str__(key))
            return self._text(next(iter(to_jsonable_python({key: None}, by_alias=True))))
        except Exception:  # noqa: BLE001 - any object, with any code of its own
            return self._described(key)

    def _text(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            # Through UTF-16 two halves that stand together become the character they mean.
            joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if joined.count("\ufffd") > text.count("\ufffd"):
                self._count("encode.surrogate")
            return joined
        return text

    def _integer(self, number: int) -> int:
        int.__repr__(number)  # raises past Python's limit of 4300 digits, as writing it would
        return number

    def _float(self, number: float) -> float | None:
        if math.isfinite(number):
            return number
        self._count("encode.nan")
        return None

    def _cut(self) -> str:
        self._count("encode.depth")
        return "…"

    def _described(self, value: Any) -> str:
        self._count("encode.object")
        try:
            return self._text(str(value)[:_MAX_TEXT])
        except Exception:  # noqa: BLE001 - any object, with any code of its own
            return f"<{type(value).__name__}>"

    def _count(self, code: str) -> None:
        self.counts[code] = self.counts.get(code, 0) + 1
