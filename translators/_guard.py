"""Making any stream legal and ended.

Knows how to repair what `_lifecycle.py` and `_event_shapes.py` find wrong, where only one repair is possible, and how
to end a run whose source raised or just stopped. Every event that goes out has been through the tables. Does not know
about time or tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from ag_ui.core import BaseEvent
from pydantic import ValidationError

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._errors import SequenceError
from agui_pipeline.translators._event_shapes import FAILED as AGENT_FAILED
from agui_pipeline.translators._event_shapes import mended, misfits
from agui_pipeline.translators._events import EVENT_CLASSES, AnyEvent, Event, WireEvent, decode_event, replace
from agui_pipeline.translators._lanes import MeantStreams
from agui_pipeline.translators._lifecycle import Lifecycle
from agui_pipeline.translators._owners import field_of, owner_of
from agui_pipeline.translators._reporting import log_stopped
from agui_pipeline.translators.lifecycle import (
    ACTIVE,
    BEFORE,
    ENDERS,
    OPENERS,
    REASONING,
    ROWS,
    RULES,
    SUBAGENT,
    TEXT,
    TOOL,
    Repair,
    Row,
    Violation,
)

Mode: TypeAlias = Literal["repair", "raise", "report"]

DIAGNOSTICS: Final[Mapping[str, str]] = {f"guard.{rule}": text for rule, text in RULES.items()} | {
    "guard.malformed": "a field must hold what the protocol says",
    "guard.nested-run": "the end of a run that started inside of another one was left out, as its start was",
    "guard.pending-tool-calls": "pendingToolCallIds named calls that the client was never told of; they were taken out",
    "guard.source-ended": "a run must end with RUN_FINISHED or RUN_ERROR",
    "guard.source-error": "the source raised before its run was complete",
    "guard.cancelled": "the source was cancelled from inside before its run was complete",
}
"""The diagnostics of this stage, by code."""

ENDINGS: Final[Mapping[str, str]] = {
    "source_error": AGENT_FAILED,
    "source_ended": "The agent stopped before its run was complete.",
    "cancelled": "The run was cancelled.",
}
"""The message of a RUN_ERROR that this stage makes, by its code."""

_MAX_MESSAGE: Final = 1000
"""Characters of an exception's text that are sent where it may be: it can hold a whole HTTP answer."""
_SHOWN: Final = 3
"""Malformed fields of one event that a diagnostic names."""
_PATIENCE: Final = 16
"""Repairs of one event. Two or three are the most that any has needed."""


class GuardTranslator(Translator):
    """One run's guard. See `agui_pipeline.middleware.GuardMiddleware` for what it promises.

    Args:
        thread_id: The run's thread, for a RUN_STARTED that is missing.
        run_id: Its id, likewise.
        protocol_version: The version that the input declared, likewise; None for none.
        sink: Gets diagnostics.
        mode: What to do about what is wrong.
        expose_errors: Whether a RUN_ERROR says what the source raised.
    """

    def __init__(
        self,
        thread_id: str,
        run_id: str,
        protocol_version: str | None,
        sink: DiagnosticSink,
        *,
        mode: Mode = "repair",
        expose_errors: bool = False,
    ) -> None:
        self._thread_id = thread_id
        self._run_id = run_id
        self._version = protocol_version
        self._sink = sink
        self._mode = mode
        self._expose_errors = expose_errors
        self._life = Lifecycle()
        self._run: Mapping[str, Any] = {"threadId": thread_id, "runId": run_id}
        self._nested: set[str] = set()
        self._openers: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._lost_calls: set[str] = set()
        self._meant = MeantStreams()

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        if self._life.continues(event):
            return (event,)
        stream = self._life.goes_on(event)
        if stream is not None and self._meant.holds(stream):
            return (event,)
        out: list[AnyEvent] = []
        self._take(event, out)
        return out if self._mode == "repair" else (event,)

    def flush(self) -> Iterable[AnyEvent]:
        if self._ended():
            return ()
        self._note("source-ended", "the source ended without RUN_FINISHED or RUN_ERROR")
        return self._ending("source_ended", ENDINGS["source_ended"]) if self._mode == "repair" else ()

    def fail(self, exc: BaseException) -> tuple[Sequence[AnyEvent], BaseException | None]:
        # A cancellation that arrives here is the source's own: when the reader leaves, nothing is called.
        code = "source_error" if isinstance(exc, Exception) else "cancelled"
        if self._mode == "raise" or self._ended():
            return (), exc
        self._report_exception(code, exc)
        if self._mode == "report":
            return (), exc
        return self._ending(code, _text_of(exc) if self._expose_errors else ENDINGS[code]), None

    # One event of the source.

    def _take(self, event: AnyEvent, out: list[AnyEvent]) -> None:
        row = ROWS.get(event.type)
        if row is None:
            if event.type:
                out.append(event)  # the client drops it, and so it is never out of order
            else:
                self._note("malformed", "the type of an event must not be empty", event, Repair.DROP)
            return
        if row.type == "RUN_STARTED" and self._life.run is not ACTIVE:
            self._meant = MeantStreams()
        elif row.type == "RUN_FINISHED" and self._is_nested(event):
            self._note("nested-run", "the run that it ends started inside of another one", event, Repair.DROP)
            return
        shaped = self._shaped(event)
        if shaped is None:
            return
        if row.chunk:
            if not self._ended():
                shaped = self._as_meant(row, shaped)
        elif self._meant.pending:
            self._meant.close(row, owner_of(event))
        if row.type == "RUN_FINISHED" and self._lost_calls:
            shaped = self._without_lost_calls(shaped)
        self._put(shaped, out)

    def _shaped(self, event: AnyEvent) -> AnyEvent | None:
        """Return an event whose fields are what they must be, as far as that is certain; None for none."""
        if isinstance(event, WireEvent):
            view = event
        elif HAS_PROTOCOL_VERSION and not getattr(event, "__pydantic_extra__", None):
            return event  # a model, validated when it was made
        else:
            view = decode_event(encode_event(event))  # an older SDK does not validate all that 1.0 demands
        found = misfits(view, self._run)
        if not found:
            return event
        repaired: AnyEvent | None = event
        repair: Repair | None = None
        if all(misfit.fix is not None for misfit in found):
            repaired = mended(view, found)
            repair = Repair.DROP if repaired is None else Repair.CHANGE
        words = "; ".join(str(misfit) for misfit in found[:_SHOWN])
        if len(found) > _SHOWN:
            words += f"; and {len(found) - _SHOWN} more"
        self._note("malformed", words, event, repair)
        return repaired

    def _put(self, event: AnyEvent, out: list[AnyEvent], *, ours: bool = False) -> None:
        """Let an event go out, with every repair that it needs before. One of ours needs some, too, but no report."""
        for _ in range(_PATIENCE):
            violation = self._life.step(event)
            if violation is None:
                out.append(event)
                row = ROWS.get(event.type)
                if row is not None and (row.opens or row.run is row.type):
                    self._remember(row, event)
                return
            if not ours:
                words = f"{violation.state}: {RULES[violation.rule]}"
                self._note(violation.rule, words, event, violation.repair)
            repaired = self._repaired(violation, event, out)
            if repaired is None:
                break
            event = repaired
        self._lose(event)

    def _repaired(self, violation: Violation, event: AnyEvent, out: list[AnyEvent]) -> AnyEvent | None:
        """Do what makes an event legal; None where that is to leave it out."""
        match violation.repair:
            case Repair.CHANGE:
                return changed(event, violation.changes)
            case Repair.START_RUN:
                self._put(self._run_started(), out, ours=True)
            case Repair.CLOSE_ALL:
                self._close_all(out, _fates(event))
            case Repair.CLOSE_FIRST:
                kind, id = _part_of(event)
                self._put(_made(ENDERS[kind], _named(kind, id, owner_of(event))), out, ours=True)
            case Repair.OPEN_FIRST:
                kind, id = _part_of(event)
                said = {**_UNTOLD.get(kind, _NOTHING), **self._openers.get((kind, id), _NOTHING)}
                if kind == TOOL and not said:
                    return None  # it needs a name, which nobody can invent
                # With the event's own tag: another one would close the chunks of another lane.
                self._put(_made(OPENERS[kind], {**_named(kind, id, owner_of(event)), **said}), out, ours=True)
            case Repair.DROP:
                return None
        return event

    def _remember(self, row: Row, event: AnyEvent) -> None:
        """Keep what a repair of a later event may need."""
        if row.type == "RUN_STARTED":
            self._run = {
                "threadId": field_of(event, "thread_id", "threadId"),
                "runId": field_of(event, "run_id", "runId"),
            }
            self._nested.clear()
            self._openers.clear()
            self._lost_calls.clear()
        elif row.kind in _SAID:
            kind, id = _part_of(event)
            if row.chunk and (id is None or (kind, id) in self._openers):
                return  # it goes on with what another one opened
            values = ((name, field_of(event, attribute, name)) for attribute, name in _SAID[kind])
            self._openers[kind, id] = {name: value for name, value in values if value is not None}

    def _lose(self, event: AnyEvent) -> None:
        """Take note of what is left out and was about something that others may mention."""
        row = ROWS[event.type]
        if row.type == "RUN_STARTED" and self._life.run is ACTIVE:
            run_id = field_of(event, "run_id", "runId")
            if isinstance(run_id, str) and run_id != self._run["runId"]:
                self._nested.add(run_id)
        elif row.kind == TOOL:
            _, id = _part_of(event)
            if isinstance(id, str):
                self._lost_calls.add(id)

    def _is_nested(self, event: AnyEvent) -> bool:
        run_id = field_of(event, "run_id", "runId") if self._nested else None
        return isinstance(run_id, str) and run_id in self._nested

    def _without_lost_calls(self, event: AnyEvent) -> AnyEvent:
        """Take calls that never reached the client out of those that it is asked to answer."""
        outcome = field_of(event, "outcome", "outcome")
        pending = field_of(outcome, "pending_tool_call_ids", "pendingToolCallIds") if outcome is not None else None
        if not isinstance(pending, list | tuple):
            return event
        lost = {id for id in self._lost_calls if (TOOL, id) not in self._openers}
        left = [id for id in pending if not isinstance(id, str) or id not in lost]
        if len(left) == len(pending):
            return event
        self._note("pending-tool-calls", f"{len(pending) - len(left)} of {len(pending)} were taken out", event)
        if isinstance(outcome, Mapping):
            return replace(event, outcome={**outcome, "pendingToolCallIds": left})
        own = "pending_tool_call_ids" in type(outcome).model_fields  # an older SDK keeps it under its wire name
        changes = {"pending_tool_call_ids" if own else "pendingToolCallIds": left}
        return replace(event, outcome=outcome.model_copy(update=changes))

    def _as_meant(self, row: Row, event: AnyEvent) -> AnyEvent:
        """Name the stream that a chunk means, where the client would read something else into it."""
        kind, id = _part_of(event)
        tag = owner_of(event)
        meant = self._meant.chunk(kind, id, tag)
        if meant is None:
            return event
        _, stream, _ = self._life.lanes.find(kind, id, tag)
        changes: dict[str, Any] = {}
        if id is None and (stream is None or stream.id != meant):
            self._note("chunk-id", f"its stream was closed meanwhile: {RULES['chunk-id']}", event)
            changes[row.id] = meant
        if kind == TOOL and stream is None and field_of(event, "tool_call_name", "toolCallName") is None:
            name = self._openers.get((TOOL, meant), _NOTHING).get("toolCallName")
            if name is not None:
                if not changes:
                    self._note("chunk-id", f"its stream was closed meanwhile: {RULES['chunk-id']}", event)
                changes["tool_call_name"] = name
        return changed(event, changes) if changes else event

    # Endings.

    def _ended(self) -> bool:
        return self._life.run not in (BEFORE, ACTIVE)

    def _ending(self, code: str, message: str) -> list[AnyEvent]:
        out: list[AnyEvent] = []
        if self._life.run is BEFORE:
            self._put(self._run_started(), out, ours=True)
        failed = ("SUBAGENT_ERROR", {"message": ENDINGS[code], "code": code})
        self._close_all(out, lambda _subagent: failed)
        self._put(_made("RUN_ERROR", {"message": message, "code": code}), out, ours=True)
        return out

    def _close_all(self, out: list[AnyEvent], fate: Callable[[str], tuple[str, Mapping[str, Any]]]) -> None:
        """Close what is open, in reverse order of opening.

        Args:
            out: Gets the events.
            fate: How a subagent ended: the type and the fields of its last event.
        """
        for part in reversed(self._life.open_parts()):
            name, fields = fate(part.id) if part.kind == SUBAGENT else (ENDERS[part.kind], _NOTHING)
            self._put(_made(name, {**_named(part.kind, part.id, part.tag), **fields}), out, ours=True)

    def _run_started(self) -> AnyEvent:
        return _made(
            "RUN_STARTED",
            {"threadId": self._thread_id, "runId": self._run_id}
            | ({} if self._version is None else {"protocolVersion": self._version}),
        )

    # Saying what happened.

    def _note(
        self, code: str, words: str, event: AnyEvent | None = None, repair: Repair | None = Repair.CHANGE
    ) -> None:
        """Report what is wrong, or raise it in mode ``"raise"``.

        Args:
            code: The diagnostic's, without the stage.
            words: What is wrong. No id and no content: the log gets it.
            event: The event concerned; None for the end of the source.
            repair: What is done about it; None where nothing is certain, and the event passes.
        """
        name = None if event is None else str.__str__(event.type)
        id = None if event is None else _id_of(event)
        if self._mode == "raise":
            what = "the end of the source" if name is None else name if id is None else f"{name} ({id!r})"
            raise SequenceError(f"{what}: {words} (guard.{code})")
        text = words if name is None else f"{name}: {words}"
        detail = {"repair": None if repair is None else str(repair)}
        self._sink(Diagnostic(f"guard.{code}", text, event_type=name, message_id=id, detail=detail))

    def _report_exception(self, code: str, exc: BaseException) -> None:
        """Report what the source raised; where it goes no further, the log gets its traceback."""
        name = f"guard.{code.replace('_', '-')}"
        words = DIAGNOSTICS[name]
        if self._mode == "repair":
            log_stopped(name, words, exc)
        self._sink(Diagnostic(name, words, detail={"exception": exc}))


_NOTHING: Final[Mapping[str, Any]] = {}
_SAID: Final = {
    TEXT: (("role", "role"), ("name", "name")),
    TOOL: (("tool_call_name", "toolCallName"), ("parent_message_id", "parentMessageId")),
}
"""What an opener says beside the id, by attribute and wire name."""
_UNTOLD: Final = {TEXT: {"role": "assistant"}, REASONING: {"role": "reasoning"}}
"""What to open a part with where its own opener did not say it. (Older clients want a role.)"""


def _part_of(event: AnyEvent) -> tuple[str, Any]:
    row = ROWS[event.type]
    assert row.kind is not None  # noqa: S101 - asked only of events about parts
    return row.kind, field_of(event, row.id, row.wire_id) if row.id else ""


def _named(kind: str, id: str, tag: str | None) -> dict[str, Any]:
    """Return the fields that name a part, by wire name."""
    fields = {} if tag is None else {"subagentRunId": tag}
    name = ROWS[OPENERS[kind]].wire_id
    return {name: id, **fields} if name else fields


def _made(type: str, fields: Mapping[str, Any]) -> AnyEvent:
    """Make an event: the SDK's model where it has one."""
    data = {"type": type, **fields}
    model = EVENT_CLASSES.get(type)
    try:
        return decode_event(data) if model is None else model.model_validate(data)
    except ValidationError:  # an id with half a character in it, which is legal JSON
        return decode_event(data)


def changed(event: AnyEvent, changes: Mapping[str, Any]) -> AnyEvent:
    """Return a changed copy of an event, also of one that is neither a model nor a view."""
    if not isinstance(event, WireEvent | BaseEvent):
        event = decode_event(encode_event(event))
    return replace(event, **changes)


def _fates(finished: AnyEvent) -> Callable[[str], tuple[str, Mapping[str, Any]]]:
    """Return how the subagents have ended that a RUN_FINISHED leaves open, as far as its outcome says."""
    outcome = field_of(finished, "outcome", "outcome")
    kind = None if outcome is None else field_of(outcome, "type", "type")
    if kind == "cancelled":
        cancelled = ("SUBAGENT_ERROR", {"message": ENDINGS["cancelled"], "code": "cancelled"})
        return lambda _subagent: cancelled
    interrupts = field_of(outcome, "interrupts", "interrupts") if kind == "interrupt" else None
    if not isinstance(interrupts, list | tuple):
        interrupts = ()

    def fate(subagent: str) -> tuple[str, Mapping[str, Any]]:
        ids = [field_of(interrupt, "id", "id") for interrupt in interrupts if owner_of(interrupt) == subagent]
        return "SUBAGENT_FINISHED", {"outcome": {"type": "suspended", "interruptIds": ids}} if ids else _NOTHING

    return fate


def _id_of(event: AnyEvent) -> str | None:
    row = ROWS.get(event.type)
    name, wire_name = (row.id, row.wire_id) if row is not None and row.id else ("message_id", "messageId")
    id = field_of(event, name, wire_name)
    return id if isinstance(id, str) else None


def _text_of(exc: BaseException) -> str:
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001 - somebody's own __str__
        text = ""
    return text[:_MAX_MESSAGE] or type(exc).__name__
