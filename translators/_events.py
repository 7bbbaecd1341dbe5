"""Events: what flows. Models of `ag_ui.core` from in-process agents, `WireEvent` views from the wire.

Knows how an event is read, decoded, copied with changes and validated. Does not know how it is encoded
(`_encode.py`) or framed (`_sse.py`), and validates nothing unless asked (`typed`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import ag_ui.core as _core
import orjson
from ag_ui.core import BaseEvent
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from agui_pipeline.translators._errors import DecodeError


@runtime_checkable
class Event(Protocol):
    """Anything with a string `type` and its fields as snake_case attributes.

    Compare `type` with plain strings: ``event.type == "CUSTOM"`` holds for both kinds of event. A field that a
    `WireEvent` does not carry reads as None; one that a model's class does not have raises AttributeError, as ever.
    """

    @property
    def type(self) -> str:
        """The event type, such as ``"TEXT_MESSAGE_CONTENT"``; may be one that no version of the SDK knows."""
        ...

    def __getattr__(self, name: str, /) -> Any: ...


AnyEvent: TypeAlias = Event | BaseEvent
"""What stages and translators may yield. (Type checkers do not see pydantic's models as `Event`.)"""

_E = TypeVar("_E", bound=AnyEvent)


def _event_classes() -> dict[str, type[BaseEvent]]:
    """Map each event type that the installed SDK has to its model."""
    found: dict[str, type[BaseEvent]] = {}
    for value in vars(_core).values():
        if isinstance(value, type) and issubclass(value, BaseEvent) and value is not BaseEvent:
            default = value.model_fields["type"].default
            if isinstance(default, str):
                found[str.__str__(default)] = value
    return found


EVENT_CLASSES: Final[Mapping[str, type[BaseEvent]]] = MappingProxyType(_event_classes())
"""The installed SDK's model of each event type."""

# Fields that exist on the wire but not in every supported SDK: 1.x's, read on 0.1.x too; retired ones.
_MORE_FIELDS: Final = (
    "metadata",
    "subagent_run_id",
    "parent_subagent_run_id",
    "parent_tool_call_id",
    "protocol_version",
    "usage",
    "description",
    "title",
)

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {name: to_camel(name) for name in _MORE_FIELDS}
    | {
        name: field.alias or name
        for model in EVENT_CLASSES.values()
        for name, field in model.model_fields.items()
        if name != "type"
    }
)
"""Wire name of every known event field by its snake_case name."""

# Types whose payload is text: their numbers need no second look after orjson.
_TEXTUAL: Final = frozenset(
    f"{group}_{part}"
    for group in ("TEXT_MESSAGE", "TOOL_CALL", "REASONING_MESSAGE", "THINKING_TEXT_MESSAGE", "REASONING", "STEP", "RUN")
    for part in ("START", "STARTED", "CONTENT", "ARGS", "CHUNK", "END")
) - {"RUN_STARTED"}
_SHARED: Final[dict[str, str]] = {name: name for name in (*_TEXTUAL, *EVENT_CLASSES)}

_KEEPS_NULL: Final = frozenset(
    {("RAW", "event"), ("CUSTOM", "value"), ("STATE_SNAPSHOT", "snapshot"), ("ACTIVITY_SNAPSHOT", "content")}
)
"""Where None is a value of its own, not the absence of a field."""

# An integer that orjson would turn into a float: more digits than 64 bits hold.
_BIG_INTEGER: Final = re.compile(rb"(?<![\d.])\d{19}")


class WireEvent:
    """A view over one event that came over a wire, made by `decode_event`.

    Fields are attributes in snake_case: ``event.message_id`` reads ``"messageId"``; an absent field reads as None.
    Nothing is validated and nothing is lost: unknown types and fields are there, and an event nobody replaced is
    sent again byte for byte. Read-only, the values it gives included: to change one, `replace` it.
    """

    __slots__ = ("_data", "_raw", "_sse", "type")
    __hash__ = None  # type: ignore[assignment] # as the SDK's models

    type: str
    """The event type, as a plain string."""

    # Also the slots of _encode.py and _sse.py: the JSON as received, the decoded object, the SSE frame as received.
    _raw: bytes | None
    _data: dict[str, Any]
    _sse: bytes | None

    def __init__(self, type: str, data: dict[str, Any], raw: bytes | None) -> None:
        """Keep what `decode_event` made; not for other callers."""
        self.type = type
        self._data = data
        self._raw = raw
        self._sse = None

    @property
    def data(self) -> Mapping[str, Any]:
        """The decoded JSON object, by wire names. Read-only: a change would not be sent."""
        return MappingProxyType(self._data)

    def __getattr__(self, name: str) -> Any:
        # Only names that no known event has come here; the known ones are properties, eight times as fast.
        if name.startswith("__"):
            raise AttributeError(name)
        data = self._data
        value = data.get(to_camel(name)) if "_" in name else data.get(name)
        return data.get(name) if value is None else value

    def model_dump(self, *, by_alias: bool = True, **_options: Any) -> dict[str, Any]:
        """Return a copy of the JSON object, for code that expects a model. Keys are wire names, whatever `by_alias`."""
        del by_alias
        return cast("dict[str, Any]", loads(self._bytes()))

    def model_dump_json(self, *, by_alias: bool = True, **_options: Any) -> str:
        """Return the JSON text, for encoders that expect a model. Keys are wire names, whatever `by_alias`."""
        del by_alias
        return self._bytes().decode()

    def _bytes(self) -> bytes:
        from agui_pipeline.translators._encode import encode_event  # noqa: PLC0415 - encoding builds on events

        return encode_event(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WireEvent):
            return NotImplemented
        return self._data == other._data

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={value!r}" for key, value in self._data.items() if key != "type")
        return f"WireEvent({self.type}{', ' if fields else ''}{fields})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (_restore, (self._data, self._raw))


def _restore(data: dict[str, Any], raw: bytes | None) -> WireEvent:
    return WireEvent(str(data["type"]), data, raw)


def _field(alias: str) -> property:
    return property(lambda self: self._data.get(alias), doc=f'The field ``"{alias}"``, None where absent.')


for _name, _alias in ALIASES.items():
    setattr(WireEvent, _name, _field(_alias))


def loads(data: bytes) -> Any:
    """Decode JSON: orjson, and where that refuses or rounds what JSON allows, the standard library without NaN.

    Raises:
        ValueError: The data is not JSON; the message says where.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        # orjson refuses lone surrogates in escapes, and 1e400. Anything else fails again, and its error is better.
        return _loads_slowly(data, exc)
    if _BIG_INTEGER.search(data) is not None:
        return _loads_slowly(data, None)
    return value


def _loads_slowly(data: bytes, refusal: ValueError | None) -> Any:
    try:
        return json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise ValueError(str(refusal or exc)) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def decode_event(data: bytes | bytearray | memoryview | str | Mapping[str, Any]) -> WireEvent:
    """Decode one event as it stands on the wire.

    Args:
        data: A JSON object, as UTF-8 bytes or text, or already decoded. A mapping is copied (its top level).

    Returns:
        A view that keeps the original bytes, so that an untouched event is sent again byte for byte.

    Raises:
        DecodeError: Not JSON, no object, or no string `type`; says what was got.

    Example:
        >>> event = decode_event(b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hi"}')
        >>> event.type, event.message_id, event.delta, event.role
        ('TEXT_MESSAGE_CONTENT', 'm', 'hi', None)
    """
    raw: bytes
    if type(data) is bytes:
        raw = data
    elif isinstance(data, Mapping):
        return _checked(dict(data), None)
    elif isinstance(data, str):
        raw = data.encode(errors="surrogatepass")
    else:
        raw = bytes(data)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as exc:
        try:
            value = _loads_slowly(raw, exc)
        except ValueError as error:
            got = f"{_excerpt(raw)}, which is not JSON ({error})"
            raise DecodeError(f"an event must be a JSON object; got {got}") from None
    if type(value) is not dict:
        raise DecodeError(f"an event must be a JSON object; got {_excerpt(raw)}")
    event = _checked(value, raw)
    if event.type not in _TEXTUAL and _BIG_INTEGER.search(raw) is not None:
        event._data = _loads_slowly(raw, None)  # noqa: SLF001 - this module owns the class
    return event


def _checked(value: dict[str, Any], raw: bytes | None) -> WireEvent:
    name = value.get("type")
    if not isinstance(name, str):
        got = "without one" if name is None else f"whose type is {name!r}"[:80]
        raise DecodeError(f'an event needs a string "type"; got an object {got}')
    if type(name) is not str:  # a member of the SDK's enum, in a mapping
        name = str.__str__(name)
        value["type"] = name
    return WireEvent(_SHARED.get(name, name), value, raw)


_EXCERPT: Final = 40


def _excerpt(raw: bytes) -> str:
    text = raw[: _EXCERPT + 1].decode(errors="replace")
    return repr(text[:_EXCERPT] + "…" if len(text) > _EXCERPT else text)


def replace(event: _E, **fields: Any) -> _E:
    """Return a copy of an event with some fields changed. The input is left as it is.

    Args:
        event: An event of either kind.
        **fields: New values by snake_case (or wire) name; unknown names become extra fields. On a `WireEvent`, None
            removes the field, except where null is a value: ``RAW.event``, ``CUSTOM.value``,
            ``STATE_SNAPSHOT.snapshot``, ``ACTIVITY_SNAPSHOT.content``. On a model, None is set, and encoding leaves
            it out where it is optional. Values are not validated. A model that is given another `type` becomes a
            `WireEvent`.

    Returns:
        The same kind of event.

    Example:
        >>> replace(decode_event('{"type":"CUSTOM","name":"n","value":1}'), value=None)
        WireEvent(CUSTOM, name='n', value=None)
    """
    if isinstance(event, WireEvent):
        raw = event._raw  # noqa: SLF001 - this module owns the class
        exact = raw is None or event.type not in _TEXTUAL or _BIG_INTEGER.search(raw) is None
        data = dict(event._data if exact else loads(cast("bytes", raw)))  # noqa: SLF001 - this module owns the class
        return cast("_E", _replaced(data, fields))
    if not isinstance(event, BaseEvent):
        raise TypeError(f"replace() copies events; got {type(event).__name__}")
    if fields.get("type", event.type) != event.type:
        from agui_pipeline.translators._encode import jsonable  # noqa: PLC0415 - encoding builds on events

        return cast("_E", _replaced(jsonable(event), fields))
    cls = type(event)
    copy: _E = cls.__new__(cls)
    names = _names_of(cls)
    values = dict(event.__dict__)
    extra = dict(event.__pydantic_extra__ or {})
    for name, value in fields.items():
        own = names.get(name)
        if own is not None:
            values[own] = value
        elif value is None:
            extra.pop(ALIASES.get(name, name), None)
        else:
            extra[ALIASES.get(name, name)] = value
    object.__setattr__(copy, "__dict__", values)
    object.__setattr__(copy, "__pydantic_extra__", extra)
    object.__setattr__(copy, "__pydantic_fields_set__", event.__pydantic_fields_set__ | values.keys() & fields.keys())
    object.__setattr__(copy, "__pydantic_private__", getattr(event, "__pydantic_private__", None))
    return copy


def _replaced(data: dict[str, Any], fields: Mapping[str, Any]) -> WireEvent:
    name = fields.get("type", data["type"])
    for key, value in fields.items():
        alias = ALIASES.get(key) or (to_camel(key) if "_" in key else key)
        if value is None and (name, alias) not in _KEEPS_NULL:
            data.pop(alias, None)
        else:
            data[alias] = value
    return _checked(data, None)


@cache
def _names_of(cls: type[BaseModel]) -> Mapping[str, str]:
    """Map both spellings of each field of a model to its attribute."""
    names: dict[str, str] = {}
    for name, info in cls.model_fields.items():
        names[name] = name
        if info.alias is not None:
            names[info.alias] = name
    return names


@cache
def _union() -> TypeAdapter[BaseEvent]:
    return TypeAdapter(_core.Event)


def typed(event: AnyEvent) -> BaseEvent:
    """Return the validated `ag_ui.core` model of an event.

    Args:
        event: An event of either kind. A model is returned as it is.

    Raises:
        DecodeError: The SDK's union refuses it: an unknown type, or a field that is missing or wrong; says which.
    """
    if isinstance(event, BaseEvent):
        return event
    if not isinstance(event, WireEvent):
        raise DecodeError(f"typed() takes an event; got {type(event).__name__}")
    try:
        return _union().validate_python(event._data)  # noqa: SLF001 - this module owns the class
    except ValidationError as exc:
        raise DecodeError(f"{event.type} is not valid: {first_error(exc)}") from None


def first_error(exc: ValidationError) -> str:
    """Name the place and the problem of a validation error's first line, without its input."""
    error = exc.errors(include_url=False, include_input=False)[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    return f"{where}: {error['msg']}" if where else str(error["msg"])
