"""Merging bursts of events, at most one flush an interval.

Knows which events may be joined without a client seeing anything but fewer events, and when what is held is due.
Does not know about timers (the driver asks `deadline`) or clocks (the driver passes `now`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

from ag_ui.core import BaseEvent
from pydantic import BaseModel

from agui_pipeline.translators._base import TimedTranslator
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._events import ALIASES, EVENT_CLASSES, AnyEvent, Event, WireEvent, replace


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """How events of a type join: which fields say that two belong together, and what becomes of the value."""

    ids: tuple[str, ...]
    """Attributes that must agree."""
    value: str
    """The field that is joined: attribute and wire name are the same word."""
    join: Literal["text", "patch", "last"]
    chunk: bool = False
    """Whether all fields but the value may be absent: it then goes on with what the chunk before it opened."""
    wire_id: str = field(init=False)
    """The wire name of the first of `ids`, empty where there is none."""
    own: frozenset[str] = field(init=False)
    """The wire names of the fields that `take` looks at one by one; all others are the rest."""

    def __post_init__(self) -> None:
        # `replace` belongs to an ACTIVITY_SNAPSHOT, and only there has a meaning.
        more = ("replace",) if self.value == "content" else ()
        object.__setattr__(self, "wire_id", ALIASES[self.ids[0]] if self.ids else "")
        object.__setattr__(self, "own", frozenset({"type", self.value, *(ALIASES[name] for name in self.ids), *more}))


_KINDS: Final[Mapping[str, _Kind]] = {
    "TEXT_MESSAGE_CONTENT": _Kind(("message_id",), "delta", "text"),
    "TEXT_MESSAGE_CHUNK": _Kind(("message_id",), "delta", "text", chunk=True),
    "TOOL_CALL_ARGS": _Kind(("tool_call_id",), "delta", "text"),
    "TOOL_CALL_CHUNK": _Kind(("tool_call_id",), "delta", "text", chunk=True),
    "REASONING_MESSAGE_CONTENT": _Kind(("message_id",), "delta", "text"),
    "REASONING_MESSAGE_CHUNK": _Kind(("message_id",), "delta", "text", chunk=True),
    "STATE_SNAPSHOT": _Kind((), "snapshot", "last"),
    "STATE_DELTA": _Kind((), "delta", "patch"),
    "ACTIVITY_SNAPSHOT": _Kind(("message_id", "activity_type"), "content", "last"),
    "ACTIVITY_DELTA": _Kind(("message_id", "activity_type"), "patch", "patch"),
}
"""Everything that can merge. Any other type, known or not, flushes and passes at once."""


_PLAIN: Final = 3
"""Fields of an event that is nothing but a delta: type, id, value."""

_MANY: Final = 10
"""RAW events that have flushed what was held, from which on they are a flood."""

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "throttle.raw": "RAW events between the others keep them from merging: put StripMiddleware before the throttle",
    "throttle.raw-event": "events that each carry a rawEvent are not merged: put StripMiddleware before the throttle",
}
"""The diagnostics of this stage, by code."""


class ThrottleTranslator(TimedTranslator):
    """One run's throttle. See `agui_pipeline.middleware.EventThrottleMiddleware` for what it promises.

    Args:
        interval: Seconds between two flushes.
        min_chars: Held characters of text that flush before the interval ends; 0 = never.
        sink: Gets the diagnostics of what keeps events from merging (codes ``throttle.*``, each once a run).
    """

    def __init__(self, interval: float, min_chars: int = 0, sink: DiagnosticSink | None = None) -> None:
        self._sink = sink
        self._cut_short = 0  # how often a RAW event has flushed what was held
        self._originals = False  # whether events that carry a rawEvent were told of
        self._interval = interval
        self._min_chars = min_chars
        self._open_until = float("-inf")  # the window in which merged events are held
        self._held: list[_Held] = []
        self._chars = 0
        self._halved = False  # all that is held is the first half of a character

    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:
        kind = _KINDS.get(event.type)
        held = self._held
        if held and type(event) is WireEvent and not self._halved:
            size = held[-1].take_plain(kind, event)
            if size >= 0:
                self._chars += size
                return self._due(now)
        if kind is None or not _joinable(kind, event):
            if not held:
                return (event,)
            if event.type == "RAW":
                self._cut_short += 1
                if self._cut_short == _MANY:
                    self._say("throttle.raw", event.type)
            out = self._flush(now)
            out.append(event)
            return out
        if not held and now >= self._open_until and not _ends_halved(kind, event):
            self._open_until = now + self._interval
            return (event,)
        self._halved = False
        if not held or not held[-1].take(kind, event):
            if held and not self._originals and held[-1].both_keep_originals(kind, event):
                self._originals = True
                self._say("throttle.raw-event", event.type)
            held.append(_Held(kind, event))
        if kind.join == "text":
            self._chars += len(getattr(event, kind.value) or "")
        return self._due(now)

    def _say(self, code: str, event_type: str) -> None:
        if self._sink is not None:
            self._sink(Diagnostic(code, DIAGNOSTICS[code], event_type=event_type))

    def _due(self, now: float) -> Iterable[AnyEvent]:
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
        out = [item.event() for item in held if item is not rest]
        self._held = [] if rest is None else [rest]
        self._halved = rest is not None
        self._chars = 0
        if out:
            self._open_until = now + self._interval
        return out


class _Held:
    """Adjacent events that are one for the client."""

    __slots__ = ("_alone", "_first", "_id", "_kind", "_plain", "_rest", "_values")

    def __init__(self, kind: _Kind, event: AnyEvent) -> None:
        self._kind = kind
        self._first = event
        self._values: list[Any] = [getattr(event, kind.value)]
        self._rest = _rest(kind, event)
        self._alone = True  # whether `_first` is all there is to send
        # What `take_plain` compares: the kind, where this is nothing but a delta, and its id.
        plain = type(event) is WireEvent and kind.join == "text" and len(event._data) == _PLAIN  # noqa: SLF001
        self._plain = kind if plain else None
        self._id = getattr(event, kind.ids[0]) if plain else None

    def take_plain(self, kind: _Kind | None, event: WireEvent) -> int:
        """Join an event of the wire that has a type, the same id, a text, and nothing else: nearly all have.

        Returns:
            The characters joined; -1 where `take` must look.
        """
        if kind is not None and kind is self._plain:
            data = event._data  # noqa: SLF001 - a property a field is what makes the other way cost more
            text = data.get("delta")
            if len(data) == _PLAIN and type(text) is str and data.get(kind.wire_id, _NOTHING) == self._id:
                self._values.append(text)
                self._alone = False
                return len(text)
        return -1

    def take(self, kind: _Kind, event: Event) -> bool:
        """Join an event; False where the two must stay two."""
        if kind is not self._kind:
            return False
        first = self._first
        for name in kind.ids:
            mine = getattr(event, name)
            if mine != getattr(first, name) and not (kind.chunk and mine is None):
                return False
        value = getattr(event, kind.value)
        if kind.join == "patch" and (_tests(self._values[-1]) or _tests(value)):
            return False  # a test that fails skips its own patch only
        if kind.value == "content" and event.replace is not None and event.replace is not True:
            return False  # leaves a known activity as it is: the one before it still counts
        new = _rest(kind, event)
        rest = _merged(kind, self._rest, new)
        if rest is None:
            return False
        self._rest = rest
        self._plain = None
        if kind.join == "last":
            self._first = event
            self._alone = rest is new or rest == new
        else:
            self._values.append(value)
            self._alone = False
        return True

    def both_keep_originals(self, kind: _Kind, event: Event) -> bool:
        """Whether an event that was not joined carries a `rawEvent`, as the one before it does."""
        return kind is self._kind and "rawEvent" in self._rest and "rawEvent" in _rest(kind, event)

    def event(self) -> AnyEvent:
        """Return what the client gets: the event itself where nothing was joined to it."""
        if self._alone:
            return self._first
        fields = {name: value for name, value in self._rest.items() if name in _MERGED}
        if self._kind.join == "patch":
            fields[self._kind.value] = [operation for patch in self._values for operation in patch]
        elif self._kind.join == "text":
            fields[self._kind.value] = self._text()
        return replace(self._first, **fields)

    def _text(self) -> str | None:
        parts = [part for part in self._values if part is not None]
        return _whole("".join(parts)) if parts else None

    def split(self) -> _Held | None:
        """Take off what must wait: a high surrogate at the end, whose other half is in the next delta.

        Returns:
            None where there is none; itself where there is nothing else.
        """
        text = self._text() if self._kind.join == "text" else None
        if not text or not _is_high(text[-1]):
            return None
        if len(text) == 1:
            return self
        half = replace(self._first, metadata=None, raw_event=None, **{self._kind.value: text[-1]})
        self._values = [text[:-1]]
        self._alone = False
        return _Held(self._kind, half)


_MERGED: Final = frozenset({"metadata", "rawEvent", "timestamp"})
"""Fields that two events may both bring, or one of them only."""
_OPENING: Final = frozenset({"role", "name", "toolCallName", "parentMessageId"})
"""Fields of the chunk that opens a stream; those that continue it need not say them again."""


def _merged(kind: _Kind, held: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Join all that is neither id nor value; None where joining would lose something."""
    if not held:
        return new if new.keys() <= _MERGED else None
    if "rawEvent" in held and "rawEvent" in new:
        return None  # two originals: both are kept
    out = {**held, **new}
    for name in out:
        if (name in held) != (name in new):
            if name not in _MERGED and not (kind.chunk and name in _OPENING and name in held):
                return None
        elif name == "metadata":
            if not (isinstance(held[name], Mapping) and isinstance(new[name], Mapping)):
                return None
            out[name] = {**held[name], **new[name]}
        elif name != "timestamp" and held[name] != new[name]:
            return None
    return out


def _rest(kind: _Kind, event: AnyEvent) -> Mapping[str, Any]:
    """Return the fields that are neither type, id nor value, by wire name, where they have a value."""
    if isinstance(event, WireEvent):
        data = event.data
        if data.keys() <= kind.own:  # the common case
            return _NOTHING
        rest = {name: value for name, value in data.items() if name not in kind.own}
        for name in _MERGED & rest.keys():
            if rest[name] is None:
                del rest[name]
        return rest
    fields = event.__dict__
    out = {alias: fields[name] for name, alias in _others(type(event), kind) if fields[name] is not None}
    extra = event.__pydantic_extra__
    return out | extra if extra else out


_NOTHING: Final[Mapping[str, Any]] = {}


@cache
def _others(cls: type[BaseEvent], kind: _Kind) -> Sequence[tuple[str, str]]:
    aliases = [(name, info.alias or name) for name, info in cls.model_fields.items()]
    return [(name, alias) for name, alias in aliases if alias not in kind.own]


def _joinable(kind: _Kind, event: AnyEvent) -> bool:
    """Whether the value is what its type says; what is malformed passes at once, as it came."""
    if not (isinstance(event, WireEvent) or type(event) in _MODELS or isinstance(event, BaseEvent)):
        return False  # neither kind: nothing is known of its other fields
    value = getattr(event, kind.value, None)
    if kind.join == "text":
        return isinstance(value, str) or (value is None and kind.chunk)
    if kind.join == "patch":
        return isinstance(value, list) and all(isinstance(item, Mapping | BaseModel) for item in value)
    if kind.value == "snapshot":
        return value is not None or not isinstance(event, WireEvent) or "snapshot" in event.data
    return isinstance(value, Mapping)


_MODELS: Final = frozenset(EVENT_CLASSES.values())
"""Looked up first: `isinstance` with a class of pydantic's is several times slower."""


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
