"""Merging bursts of events, at most one flush an interval.

Knows which events may be joined without a client seeing anything but fewer events, and when what is held is due.
Does not know about timers (the driver asks `deadline`) or clocks (the driver passes `now`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel

from agui_pipeline.translators._base import TimedTranslator
from agui_pipeline.translators._events import AnyEvent, Event, WireEvent, replace


class _Kind(NamedTuple):
    """How events of a type join: which fields say that two belong together, and what becomes of the value."""

    ids: tuple[str, ...]
    """Attributes that must agree."""
    value: str
    """The field that is joined: attribute and wire name are the same word."""
    join: Literal["text", "patch", "last"]
    id_may_be_absent: bool = False
    """A chunk without an id goes on with the stream that the chunk before it belongs to."""


_KINDS: Final[Mapping[str, _Kind]] = {
    "TEXT_MESSAGE_CONTENT": _Kind(("message_id",), "delta", "text"),
    "TEXT_MESSAGE_CHUNK": _Kind(("message_id",), "delta", "text", id_may_be_absent=True),
    "TOOL_CALL_ARGS": _Kind(("tool_call_id",), "delta", "text"),
    "TOOL_CALL_CHUNK": _Kind(("tool_call_id",), "delta", "text", id_may_be_absent=True),
    "REASONING_MESSAGE_CONTENT": _Kind(("message_id",), "delta", "text"),
    "REASONING_MESSAGE_CHUNK": _Kind(("message_id",), "delta", "text", id_may_be_absent=True),
    "STATE_SNAPSHOT": _Kind((), "snapshot", "last"),
    "STATE_DELTA": _Kind((), "delta", "patch"),
    "ACTIVITY_SNAPSHOT": _Kind(("message_id", "activity_type"), "content", "last"),
    "ACTIVITY_DELTA": _Kind(("message_id", "activity_type"), "patch", "patch"),
}
"""Everything that can merge. Any other type, known or not, flushes and passes at once."""

_ALIASES: Final = {"message_id": "messageId", "tool_call_id": "toolCallId", "activity_type": "activityType"}


class ThrottleTranslator(TimedTranslator):
    """One run's throttle. See `agui_pipeline.middleware.EventThrottleMiddleware` for what it promises.

    Args:
        interval: Seconds between two flushes.
        min_chars: Held characters of text that flush before the interval ends; 0 = never.
    """

    def __init__(self, interval: float, min_chars: int = 0) -> None:
        self._interval = interval
        self._min_chars = min_chars
        self._open_until = float("-inf")  # the window in which merged events are held
        self._held: list[_Held] = []
        self._chars = 0
        self._halved = False  # all that is held is the first half of a character

    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:
        kind = _KINDS.get(event.type)
        if kind is None or not _joinable(kind, event):
            if not self._held:
                return (event,)
            out = self._flush(now)
            out.append(event)
            return out
        held = self._held
        if not held and now >= self._open_until and not _ends_halved(kind, event):
            self._open_until = now + self._interval
            return (event,)
        self._halved = False
        if not held or not held[-1].take(kind, event):
            held.append(_Held(kind, event))
        if kind.join == "text":
            self._chars += len(getattr(event, kind.value) or "")
        if now >= self._open_until or 0 < self._min_chars <= self._chars:
            return self._flush(now, wait_for_other_half=True)
        return ()

    def deadline(self) -> float | None:
        return self._open_until if self._held and not self._halved else None

    def expire(self, now: float) -> Iterable[AnyEvent]:
        return self._flush(now, wait_for_other_half=True)

    def flush(self) -> Iterable[AnyEvent]:
        return self._flush(self._open_until)

    def _flush(self, now: float, *, wait_for_other_half: bool = False) -> list[AnyEvent]:
        held = self._held
        rest = held[-1].split() if wait_for_other_half and held else None
        out = [item.event() for item in held if not item.empty]
        self._held = [] if rest is None else [rest]
        self._halved = rest is not None
        self._chars = 0
        if out:
            self._open_until = now + self._interval
        return out


class _Held:
    """Adjacent events that are one for the client."""

    __slots__ = ("_count", "_first", "_kind", "_rest", "_values", "empty")

    def __init__(self, kind: _Kind, event: AnyEvent) -> None:
        self._kind = kind
        self._first = event
        self._values: list[Any] = [getattr(event, kind.value)]
        self._rest = _rest(kind, event)
        self._count = 1
        self.empty = False

    def take(self, kind: _Kind, event: Event) -> bool:
        """Join an event; False where the two must stay two."""
        if kind is not self._kind:
            return False
        first = self._first
        for name in kind.ids:
            mine = getattr(event, name)
            if mine != getattr(first, name) and not (kind.id_may_be_absent and mine is None):
                return False
        rest = _merged(self._rest, _rest(kind, event))
        if rest is None:
            return False
        if kind.join == "last":
            if event.type == "ACTIVITY_SNAPSHOT" and event.replace is False:
                return False  # leaves a known activity as it is: the one before it still counts
            self._first = event
            self._values.clear()
        elif kind.join == "patch" and (_tests(self._values[-1]) or _tests(getattr(event, kind.value))):
            return False  # a test that fails skips its own patch only
        self._values.append(getattr(event, kind.value))
        self._rest = rest
        self._count += 1
        return True

    def event(self) -> AnyEvent:
        """Return what the client gets: the event itself where it stayed alone."""
        if self._count == 1:
            return self._first
        fields = {name: value for name, value in self._rest.items() if name in _LAST_WINS}
        if self._kind.join != "last":
            fields[self._kind.value] = self._joined()
        return replace(self._first, **fields)

    def _joined(self) -> Any:
        if self._kind.join == "patch":
            return [operation for patch in self._values for operation in patch]
        parts = [part for part in self._values if part is not None]
        return _whole("".join(parts)) if parts else None

    def split(self) -> _Held | None:
        """Take off a high surrogate at the end, to be held for its other half; None where there is none."""
        last = self._values[-1]
        if self._kind.join != "text" or not last or not _is_high(last[-1]):
            return None
        half = replace(self._first, metadata=None, raw_event=None, **{self._kind.value: last[-1]})
        self._values[-1] = last[:-1]
        self._count += 1  # no longer the event that came
        self.empty = not any(self._values)
        return _Held(self._kind, half)


_LAST_WINS: Final = frozenset({"metadata", "rawEvent", "timestamp"})


def _merged(held: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Join all that is neither id nor value; None where joining would lose something."""
    if not new:
        return held
    out = dict(held)
    for name, value in new.items():
        if name == "metadata":
            out[name] = {**held.get(name, {}), **value} if isinstance(value, Mapping) else value
        elif name == "rawEvent":
            if name in held:
                return None  # two originals: both are kept
            out[name] = value
        elif name == "timestamp":
            out[name] = value
        elif name not in held or held[name] != value:
            return None
    return out


def _rest(kind: _Kind, event: AnyEvent) -> Mapping[str, Any]:
    """Return the fields that are neither type, id nor value, by wire name, where they have a value."""
    if isinstance(event, WireEvent):
        data = event.data
        if len(data) <= 2 + len(kind.ids):  # type, value and ids: the common case
            return _NOTHING
        known = {"type", kind.value, *(_ALIASES[name] for name in kind.ids)}
        return {name: value for name, value in data.items() if name not in known and value is not None}
    if not isinstance(event, BaseModel):
        return _NOTHING
    fields = event.__dict__
    out = {alias: fields[name] for name, alias in _others(type(event), kind) if fields[name] is not None}
    extra = event.__pydantic_extra__
    return out | extra if extra else out


_NOTHING: Final[Mapping[str, Any]] = {}


@cache
def _others(cls: type[BaseModel], kind: _Kind) -> Sequence[tuple[str, str]]:
    known = {"type", kind.value, *kind.ids}
    return [(name, info.alias or name) for name, info in cls.model_fields.items() if name not in known]


def _joinable(kind: _Kind, event: Event) -> bool:
    """Whether the value is what its type says; what is malformed passes at once, as it came."""
    value = getattr(event, kind.value, None)
    if kind.join == "text":
        return isinstance(value, str) or (value is None and kind.id_may_be_absent)
    return kind.join == "last" or isinstance(value, list)


def _tests(patch: Iterable[Any]) -> bool:
    return any((item.get("op") if isinstance(item, Mapping) else getattr(item, "op", None)) == "test" for item in patch)


def _is_high(char: str) -> bool:
    return "\ud800" <= char <= "\udbff"


def _ends_halved(kind: _Kind, event: Event) -> bool:
    if kind.join != "text":
        return False
    text = getattr(event, kind.value)
    return bool(text) and _is_high(text[-1])


def _whole(text: str) -> str:
    """Join halves of characters that now stand together."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text
