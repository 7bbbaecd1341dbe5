"""Events: what flows. Models of `ag_ui.core` from in-process agents, `WireEvent` views from the wire.

Knows how an event is read, decoded, copied with changes and validated. Does not know how it is encoded
(`_encode.py`) or framed (`_sse.py`), and validates nothing unless asked (`typed`).
"""

from __future__ import annotations

import json
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

SHARED: Final[Mapping[str, str]] = {name: name for name in EVENT_CLASSES}
"""One string object a known type, however many events of it there are."""

KEEPS_NULL: Final = frozenset(
    {("RAW", "event"), ("CUSTOM", "value"), ("STATE_SNAPSHOT", "snapshot"), ("ACTIVITY_SNAPSHOT", "content")}
)
"""Where None is a value of its own, not the absence of a field."""

# orjson turns an integer past 64 bits into a float. Where no value is a float, or may hold one, there was none; else
# look for a number of so many digits. (Finding a run by `translate` is ten times as fast as a regular expression.)
_EXACT: Final = frozenset({str, int, bool, type(None)})
_DIGITS_TO_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_BIG_INTEGER: Final = b"0" * 19


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
        if name.startswith("_") and (name in self.__slots__ or name not in self._data):
            # What Python and its tools ask every object for. (A slot comes here only before `__init__` has run.)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._data.get(wire_name(name, self._data))

    def model_dump(self, *, by_alias: bool = True, **_options: Any) -> dict[str, Any]:
        """Return a copy of the JSON object, for code that expects a model. Keys are wire names, whatever `by_alias`."""
        del by_alias
        return cast("dict[str, Any]", loads(self._bytes()))

    def model_dump_json(self, *, by_alias: bool = True, **_options: Any) -> str:
        """Return the JSON text, for encoders that expect a model. Keys are wire names, whatever `by_alias`.

        One line, as a model's is: what was received pretty-printed gets spaces for its line ends.
        """
        del by_alias
        return self._bytes().translate(_ONE_LINE).decode()

    def _bytes(self) -> bytes:
        from agui_pipeline.translators._encode import encode_event  # noqa: PLC0415 - encoding builds on events

        return encode_event(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WireEvent):
            return NotImplemented
        return self._data == other._data

    def __repr__(self) -> str:
        try:
            fields = ", ".join(f"{key}={value!r}" for key, value in self._data.items() if key != "type")
        except RecursionError:  # logs and tracebacks must show what is nested deeper than Python goes
            fields = "…"
        return f"WireEvent({self.type}{', ' if fields else ''}{fields})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # Copying decodes again: exact, and no deeper recursion than decoding has.
        return (decode_event, (self._data if self._raw is None else self._raw,))


_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")


def _read_only(_self: WireEvent, _value: object) -> None:
    raise AttributeError("events are read-only: use replace(event, field=value)")


def _field(alias: str) -> property:
    return property(lambda self: self._data.get(alias), _read_only, doc=f'The field ``"{alias}"``, None where absent.')


for _name, _alias in ALIASES.items():
    if not hasattr(WireEvent, _name):  # no later field may hide `data`
        setattr(WireEvent, _name, _field(_alias))


def wire_name(name: str, data: Mapping[str, Any]) -> str:
    """Return the key that an attribute means: its camelCase name; an unknown field may be there in snake_case, too."""
    alias = ALIASES.get(name)
    if alias is not None:
        return alias
    first, *others = name.split("_")
    alias = first + "".join(part[:1].upper() + part[1:] for part in others) if first else name
    return name if name in data and alias not in data else alias


def loads(data: bytes) -> Any:
    """Decode JSON: orjson, and where that refuses or rounds what JSON allows, the standard library without NaN.

    Raises:
        ValueError: The data is not JSON; the message says where.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        # orjson refuses lone surrogates in escapes, and 1e400. Anything else fails again, and its error is better.
        try:
            return _loads_slowly(data)
        except (ValueError, RecursionError):
            raise ValueError(str(exc)) from None
    if type(value) is dict and _EXACT.issuperset(map(type, value.values())):
        return value
    if _BIG_INTEGER in data.translate(_DIGITS_TO_ZEROS):
        try:
            return _loads_slowly(data)
        except RecursionError:
            return value  # nested deeper than the standard library reads: rounded is better than refused
    return value


def _loads_slowly(data: bytes) -> Any:
    return json.loads(data.decode(), parse_constant=_no_constant, parse_int=_integer)


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # past Python's own limit of 4300 digits
        return float(digits)


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
    elif isinstance(data, bytes | bytearray | memoryview):
        raw = bytes(data)
    else:
        raise DecodeError(f"an event must be a JSON object, as bytes, text or a mapping; got {type(data).__name__}")
    try:
        value = loads(raw)
    except ValueError as error:
        got = f"{_excerpt(raw)}, which is not JSON ({error})"
        raise DecodeError(f"an event must be a JSON object; got {got}") from None
    if type(value) is not dict:
        raise DecodeError(f"an event must be a JSON object; got {_excerpt(raw)}")
    return _checked(value, raw)


def _checked(value: dict[str, Any], raw: bytes | None) -> WireEvent:
    name = value.get("type")
    if not isinstance(name, str):
        got = f"whose type is of {type(name).__name__}" if "type" in value else "without one"
        raise DecodeError(f'an event needs a string "type"; got an object {got}')
    if type(name) is not str:  # a member of the SDK's enum, in a mapping
        name = str.__str__(name)
        value["type"] = name
    return WireEvent(SHARED.get(name, name), value, raw)


_EXCERPT: Final = 40


def _excerpt(raw: bytes) -> str:
    text = raw[: _EXCERPT + 1].decode(errors="replace")
    return repr(text[:_EXCERPT] + "…" if len(text) > _EXCERPT else text)


def replace(event: _E, /, **fields: Any) -> _E:
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
        return cast("_E", _replaced(dict(event._data), fields))  # noqa: SLF001 - this module owns the class
    if not isinstance(event, BaseEvent):
        raise TypeError(f"replace() copies events; got {type(event).__name__}")
    if fields.get("type", event.type) != event.type:
        from agui_pipeline.translators._encode import encode_event  # noqa: PLC0415 - encoding builds on events

        return cast("_E", _replaced(loads(encode_event(event)), fields))
    cls = type(event)
    copy: _E = cls.__new__(cls)
    names = _names_of(cls)
    values = dict(event.__dict__)
    extra = dict(event.__pydantic_extra__ or {})
    changed = set(event.__pydantic_fields_set__)
    for name, value in fields.items():
        own = names.get(name)
        if own is not None:
            values[own] = value
            changed.add(own)
            continue
        alias = wire_name(name, extra)
        key = alias if name not in extra and (alias in extra or name in ALIASES) else name
        if value is None:
            extra.pop(key, None)
        else:
            extra[key] = value
    private = event.__pydantic_private__
    object.__setattr__(copy, "__dict__", values)
    object.__setattr__(copy, "__pydantic_extra__", extra if extra or event.__pydantic_extra__ is not None else None)
    object.__setattr__(copy, "__pydantic_fields_set__", changed)
    object.__setattr__(copy, "__pydantic_private__", private and dict(private))
    return copy


def _replaced(data: dict[str, Any], fields: Mapping[str, Any]) -> WireEvent:
    name = fields.get("type", data["type"])
    for key, value in fields.items():
        alias = wire_name(key, data)
        if value is None and (name, alias) not in KEEPS_NULL:
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
    if event.type not in EVENT_CLASSES:
        raise DecodeError(f"type: {event.type[:_EXCERPT]!r} is no event type of the installed ag-ui-protocol")
    try:
        return _union().validate_python(event._data)  # noqa: SLF001 - this module owns the class
    except ValidationError as exc:
        raise DecodeError(f"{event.type} is not valid: {first_error(exc)}") from None


def first_error(exc: ValidationError) -> str:
    """Name the place and the problem of a validation error's first line, without its input."""
    error = exc.errors(include_url=False, include_input=False)[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    return f"{where}: {error['msg']}" if where else str(error["msg"])
