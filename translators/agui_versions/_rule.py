"""What a rule of a downgrade is, and what it is given. Does not know any of them.

A rule takes one event and gives the events that go on in its place, for a client that could not take the first. It
works on one run's stream only, and holds no more than its own concern needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._events import AnyEvent, WireEvent, decode_event
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.agui_versions._version import Version

JSONObject: TypeAlias = dict[str, Any]

TERMINALS: Final = frozenset({"RUN_FINISHED", "RUN_ERROR"})
BOUNDS: Final = TERMINALS | {"RUN_STARTED"}

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "legacy.subagent": "the client does not know subagents: their events are CUSTOM, and what they say is shown as the "
    "agent's own",
    "legacy.activity": "the client does not know activities: they are CUSTOM, and it shows none",
    "legacy.reasoning": "the client does not know reasoning: it is CUSTOM, and it shows none",
    "legacy.thinking": "the client knows reasoning as THINKING_* only: it shows one at a time, and keeps no message",
    "legacy.unknown-type": "the client gives up on types that it does not know: they are CUSTOM",
    "legacy.chunk": "a chunk that continues nothing was left out",
    "legacy.role": "the client knows no text but an assistant's: another role was left out",
    "legacy.result-parts": "the client knows no tool results made of parts: it has their text, or their JSON",
    "legacy.message-parts": "the client does not know these content parts of a message: it has their text, or a binary "
    "part",
    "legacy.message": "the client does not know messages of this role: they were left out of a snapshot or an input",
    "legacy.interrupt": "the client does not know interrupts: they are CUSTOM on_interrupt, without an outcome",
    "legacy.outcome": "the client does not know this outcome: it was left out, and reads as success",
    "legacy.pending-calls": "the client does not know pendingToolCallIds: they were left out",
    "legacy.order": "the client takes one message or tool call at a time: what came in between was given later",
    "legacy.queue": "too much came in between: a message went on as another one, or the rest of a tool call was lost",
    "legacy.step": "the client takes one step (of a name) at a time: others inside of it are CUSTOM",
    "legacy.runs": "the client takes one run a stream: further ones were joined to the first",
    "legacy.after-error": "the client takes nothing after RUN_ERROR: what followed was left out",
    "legacy.text-id": "the client makes two messages of an id that is used again: the second has another id",
    "legacy.parent": "the client would double a parent message that is not its last: the call has a message of its own",
    "legacy.late-result": "the client forgets a tool result that no message follows",
    "legacy.forgotten": "the client forgets the activities of earlier runs when it gets a snapshot of messages",
}
"""The diagnostics of downgrades, by code: what an old client will not see."""


class Losses:
    """Counts what an old client will not see, and says it once a kind and run.

    Args:
        sink: Gets the diagnostics.
        level: The level, to be named in them.

    Attributes:
        sink: The same, for what is no loss of the client's.
    """

    __slots__ = ("_counts", "_level", "sink")

    def __init__(self, sink: DiagnosticSink, level: str) -> None:
        self.sink = sink
        self._level = level
        self._counts: dict[tuple[str, str | None], int] = {}

    def note(self, code: str, event_type: str | None = None) -> None:
        """Count one loss.

        Args:
            code: A key of `DIAGNOSTICS`.
            event_type: The type of the event concerned, where there is one.
        """
        key = (code, event_type if event_type is None else _short(event_type))
        if key not in self._counts and len(self._counts) >= _MAX_KINDS:
            key = (code, None)
        self._counts[key] = self._counts.get(key, 0) + 1

    def tell(self) -> None:
        """Make a diagnostic of each kind that was counted."""
        counts, self._counts = self._counts, {}
        for (code, event_type), count in counts.items():
            what = f"{count} {event_type}" if event_type else f"{count} times"
            message = f"{DIAGNOSTICS[code]} ({what}, {self._level})"
            self.sink(Diagnostic(code, message, event_type=event_type, detail={"count": count, "level": self._level}))


_MAX_KINDS: Final = 100
"""Kinds that are counted apart: an agent may invent a type an event."""
_MAX_TYPE: Final = 60


def _short(event_type: str) -> str:
    name = str.__str__(event_type)
    return name if len(name) <= _MAX_TYPE else name[:_MAX_TYPE] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the rules of one run are given.

    Attributes:
        version: The client's.
        losses: Counts what the client will not see.
        thread_id: The run's thread.
        run_id: Its id.
        messages: Those that the client sent: models or JSON objects.
        state: The state that it sent.
        structured: Whether interrupts keep their outcome, where the client knows it.
        on_interrupts: Gets the interrupts that each finished run left open, as JSON objects.
    """

    version: Version
    losses: Losses
    thread_id: str
    run_id: str
    messages: Sequence[Any] = ()
    state: Any = None
    structured: bool = False
    on_interrupts: Callable[[Sequence[JSONObject]], None] = lambda _: None


class Rule:
    """A rule that remembers something of its run."""

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        """Take one event; give those that go on in its place. ``(event,)`` leaves it alone."""
        return (event,)

    def end(self, *, failed: bool) -> Iterable[AnyEvent]:  # noqa: ARG002 - the default holds nothing
        """Give what is held, at the end of the source.

        Args:
            failed: Whether it raised, so that a RUN_ERROR may follow.
        """
        return ()


class Plain(Rule):
    """A rule without memory, made of a function of the event and the setting."""

    def __init__(self, function: Callable[[AnyEvent, Setting], Iterable[AnyEvent]], setting: Setting) -> None:
        self._function = function
        self._setting = setting

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        return self._function(event, self._setting)


def wire(event: AnyEvent, losses: Losses) -> WireEvent:
    """Return an event as it stands on the wire."""
    return event if isinstance(event, WireEvent) else decode_event(encode_event(event, losses.sink))


def text_field(event: AnyEvent, name: str, wire_name: str) -> str | None:
    """Return a field that is a text, such as an id; None for anything else: a list, say, cannot be looked up."""
    value = field_of(event, name, wire_name)
    return value if isinstance(value, str) else None


def made(name: str, /, **fields: Any) -> WireEvent:
    """Make an event of wire names; fields that are None are left out."""
    return decode_event({"type": name, **{key: value for key, value in fields.items() if value is not None}})


def as_custom(event: AnyEvent, losses: Losses) -> WireEvent:
    """Return the CUSTOM event that says the same: its name is the type, its value the rest."""
    data = dict(wire(event, losses).data)
    return decode_event({"type": "CUSTOM", "name": data.pop("type"), "value": data})
