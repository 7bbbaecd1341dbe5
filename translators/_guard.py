"""Making any stream legal and ended.

Knows how to repair what `_lifecycle.py` and `_event_shapes.py` find wrong, where only one repair is possible, and how
to end a run whose source raised or just stopped. Every event that goes out has been through the tables. Does not know
about time or tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from ag_ui.core import BaseEvent
from pydantic import ValidationError

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._errors import SequenceError
from agui_pipeline.translators._event_shapes import FAILED as AGENT_FAILED
from agui_pipeline.translators._event_shapes import mended, misfits
from agui_pipeline.translators._events import EVENT_CLASSES, AnyEvent, Event, WireEvent, decode_event, replace
from agui_pipeline.translators._lifecycle import ChunkStream, Lanes, Lifecycle
from agui_pipeline.translators._owners import field_of, owner_of
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
    THINKING,
    TOOL,
    Repair,
    Row,
    Violation,
)

_logger = logging.getLogger("agui_pipeline")

Mode: TypeAlias = Literal["repair", "raise", "report"]

DIAGNOSTICS: Final[Mapping[str, str]] = {f"guard.{rule}": text for rule, text in RULES.items()} | {
    "guard.malformed": "a field must hold what the protocol says",
    "guard.nested-run": "the end of a run that started inside of another one was left out, as its start was",
    "guard.pending-tool-calls": "pendingToolCallIds named calls that the client was never told of; they were taken out",
    "guard.source-ended": "a run must end with RUN_FINISHED or RUN_ERROR",
    "guard.source-error": "the source raised; the run was ended with RUN_ERROR",
    "guard.cancelled": "the source was cancelled from inside; the run was ended with RUN_ERROR",
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
        self._meant = _MeantStreams()

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        if self._life.continues(event):
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
        if self._mode != "repair" or self._ended():
            return (), exc
        # A cancellation that arrives here is the source's own: when the reader leaves, nothing is called.
        code = "source_error" if isinstance(exc, Exception) else "cancelled"
        self._swallow(code, exc)
        return self._ending(code, _text_of(exc) if self._expose_errors else ENDINGS[code]), None

    # One event of the source.

    def _take(self, event: AnyEvent, out: list[AnyEvent]) -> None:
        row = ROWS.get(event.type)
        if row is None:
            if event.type:
                out.append(event)  # the client drops it, and so it is never out of order
            else:
                self._note("malformed", "the type of an event must not be empty", event)
            return
        if row.type == "RUN_FINISHED" and self._is_nested(event):
            self._note("nested-run", "the run that it ends started inside of another one", event)
            return
        shaped = self._shaped(event)
        if shaped is None:
            return
        if self._life.run is ACTIVE:
            shaped = self._as_meant(row, shaped)
        if row.type == "RUN_FINISHED" and self._lost_calls:
            shaped = self._without_lost_calls(shaped)
        self._put(shaped, out)

    def _shaped(self, event: AnyEvent) -> AnyEvent | None:
        """Return an event whose fields are what they must be, as far as that is certain; None for none."""
        if not isinstance(event, WireEvent):
            return event  # a model, validated when it was made
        found = misfits(event, self._run)
        if not found:
            return event
        hopeless = [misfit for misfit in found if misfit.fix is None]
        words = "; ".join(str(misfit) for misfit in found)
        self._note("malformed", f"{'cannot be repaired: ' if hopeless else ''}{words}", event, repaired=not hopeless)
        return event if hopeless else mended(event, found)

    def _put(self, event: AnyEvent, out: list[AnyEvent]) -> None:
        """Let an event go out, with every repair that it needs before."""
        for _ in range(_PATIENCE):
            violation = self._life.step(event)
            if violation is None:
                self._remember(event)
                out.append(event)
                return
            rule = violation.rule
            self._note(rule, f"{violation.state}: {RULES[rule]}", event, repair=str(violation.repair))
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
                self._put(self._run_started(), out)
            case Repair.CLOSE_ALL:
                self._close_all(out, _fates(event))
            case Repair.CLOSE_FIRST:
                kind, id = _part_of(event)
                self._put(_made(ENDERS[kind], _named(kind, id, owner_of(event))), out)
            case Repair.OPEN_FIRST:
                kind, id = _part_of(event)
                said = self._openers.get((kind, id), _UNTOLD.get(kind))
                if said is None:
                    return None
                # With the event's own tag: another one would close the chunks of another lane.
                self._put(_made(OPENERS[kind], {**_named(kind, id, owner_of(event)), **said}), out)
            case Repair.DROP:
                return None
        return event

    def _remember(self, event: AnyEvent) -> None:
        """Keep what a repair of a later event may need."""
        row = ROWS.get(event.type)
        if row is None:
            return
        if row.type == "RUN_STARTED":
            self._run = {
                "threadId": field_of(event, "thread_id", "threadId"),
                "runId": field_of(event, "run_id", "runId"),
            }
            self._nested.clear()
            self._openers.clear()
            self._lost_calls.clear()
            self._meant = _MeantStreams()
        elif row.opens and row.kind in _SAID:
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
        left = [id for id in pending if id not in self._lost_calls or (TOOL, id) in self._openers]
        if len(left) == len(pending):
            return event
        self._note("pending-tool-calls", f"{len(pending) - len(left)} of {len(pending)} were taken out", event)
        if isinstance(outcome, Mapping):
            return replace(event, outcome={**outcome, "pendingToolCallIds": left})
        return replace(event, outcome=outcome.model_copy(update={"pending_tool_call_ids": left}))

    def _as_meant(self, row: Row, event: AnyEvent) -> AnyEvent:
        """Name the stream that a chunk means, where the client would read something else into it."""
        if not row.chunk:
            self._meant.close(row, owner_of(event))
            return event
        kind, id = _part_of(event)
        tag = owner_of(event)
        meant = self._meant.chunk(kind, id, tag)
        if meant is None:
            return event
        _, stream, _ = self._life.lanes.find(kind, id, tag)
        changes: dict[str, Any] = {}
        if id is None and (stream is None or stream.id != meant):
            self._note("chunk-id", "the stream that it goes on with was closed meanwhile; it was named", event)
            changes[row.id] = meant
        if kind == TOOL and stream is None and field_of(event, "tool_call_name", "toolCallName") is None:
            name = self._openers.get((TOOL, meant), _NOTHING).get("toolCallName")
            if name is not None:
                if not changes:
                    self._note("chunk-id", "the name of the call was said before; it was said again", event)
                changes["tool_call_name"] = name
        return changed(event, changes) if changes else event

    # Endings.

    def _ended(self) -> bool:
        return self._life.run not in (BEFORE, ACTIVE)

    def _ending(self, code: str, message: str) -> list[AnyEvent]:
        out: list[AnyEvent] = []
        if self._life.run is BEFORE:
            self._put(self._run_started(), out)
        failed = ("SUBAGENT_ERROR", {"message": ENDINGS[code], "code": code})
        self._close_all(out, lambda _subagent: failed)
        self._put(_made("RUN_ERROR", {"message": message, "code": code}), out)
        return out

    def _close_all(self, out: list[AnyEvent], fate: Callable[[str], tuple[str, Mapping[str, Any]]]) -> None:
        """Close what is open, in reverse order of opening.

        Args:
            out: Gets the events.
            fate: How a subagent ended: the type and the fields of its last event.
        """
        for part in reversed(self._life.open_parts()):
            name, fields = fate(part.id) if part.kind == SUBAGENT else (ENDERS[part.kind], _NOTHING)
            self._put(_made(name, {**_named(part.kind, part.id, part.tag), **fields}), out)

    def _run_started(self) -> AnyEvent:
        return _made(
            "RUN_STARTED",
            {"threadId": self._thread_id, "runId": self._run_id}
            | ({} if self._version is None else {"protocolVersion": self._version}),
        )

    # Saying what happened.

    def _note(self, code: str, words: str, event: AnyEvent | None = None, **detail: Any) -> None:
        """Report, or raise in mode ``"raise"``. No id and no content in the message: the log gets it."""
        name = None if event is None else str.__str__(event.type)
        id = None if event is None else _id_of(event)
        if self._mode == "raise":
            what = "the end of the source" if name is None else name if id is None else f"{name} ({id!r})"
            raise SequenceError(f"{what}: {words} (guard.{code})")
        text = words if name is None else f"{name}: {words}"
        self._sink(Diagnostic(f"guard.{code}", text, event_type=name, message_id=id, detail=detail))

    def _swallow(self, code: str, exc: BaseException) -> None:
        """Report an exception that goes no further, with its traceback in the log: nobody after this stage sees it."""
        name = code.replace("_", "-")
        words = DIAGNOSTICS[f"guard.{name}"]
        _logger.error("guard.%s: %s", name, words, exc_info=exc)
        self._sink(Diagnostic(f"guard.{name}", words, detail={"exception": exc}))


class _MeantStreams:
    """Which stream a chunk without an id goes on with, as its producer sees it.

    The producer knows its own events only: not the ends that are put between them, nor the tags that are taken off.
    It also goes on with what an event of its own has closed in the client's eyes, such as a CUSTOM.
    """

    __slots__ = ("_lanes", "_last")

    def __init__(self) -> None:
        self._lanes = Lanes()
        self._last: dict[str | None, dict[str, str]] = {}

    def close(self, row: Row, tag: str | None) -> None:
        """Take an event that is no chunk."""
        if self._lanes:
            for lane in self._lanes.closed_by(row, tag):
                del self._lanes[lane]

    def chunk(self, kind: str, id: str | None, tag: str | None) -> str | None:
        """Take a chunk; return the id of its stream, None where nobody can tell."""
        if id is not None and not isinstance(id, str):
            return None
        lane, stream, only = self._lanes.find(kind, id, tag)
        if stream is not None:
            return stream.id
        if id is None:
            lane, id = self._before(kind, tag) if only else (tag, None)
            if id is None:
                return None
        self._lanes[lane] = ChunkStream(kind, id, lane)
        self._last.setdefault(lane, {})[kind] = id
        return id

    def _before(self, kind: str, tag: str | None) -> tuple[str | None, str | None]:
        """Find the last stream of a lane; for an untagged chunk, the only last one there is."""
        own = self._last.get(tag, {}).get(kind)
        if own is not None or tag is not None:
            return tag, own
        others = [(lane, ids[kind]) for lane, ids in self._last.items() if kind in ids]
        return others[0] if len(others) == 1 else (tag, None)


_NOTHING: Final[Mapping[str, Any]] = {}
_SAID: Final = {
    TEXT: (("role", "role"), ("name", "name")),
    TOOL: (("tool_call_name", "toolCallName"), ("parent_message_id", "parentMessageId")),
}
"""What an opener says beside the id, by attribute and wire name."""
_UNTOLD: Final[Mapping[str, Mapping[str, Any]]] = {
    TEXT: {"role": "assistant"},
    REASONING: {"role": "reasoning"},
    THINKING: _NOTHING,
}
"""What to open a part with of which nothing was said. A tool call needs a name, which nobody can invent."""


def _part_of(event: AnyEvent) -> tuple[str, Any]:
    row = ROWS[event.type]
    assert row.kind is not None  # noqa: S101 - asked only of events about parts
    return row.kind, getattr(event, row.id, None) if row.id else ""


def _named(kind: str, id: str, tag: str | None) -> dict[str, Any]:
    """Return the fields that name a part, by wire name."""
    fields = {} if tag is None else {"subagentRunId": tag}
    name = _ID_NAMES.get(ROWS[OPENERS[kind]].id)
    return fields if name is None else {name: id, **fields}


_ID_NAMES: Final = {
    "message_id": "messageId",
    "tool_call_id": "toolCallId",
    "step_name": "stepName",
    "subagent_run_id": "subagentRunId",
}


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
    interrupts = field_of(outcome, "interrupts", "interrupts") if kind == "interrupt" else ()

    def fate(subagent: str) -> tuple[str, Mapping[str, Any]]:
        ids = [field_of(interrupt, "id", "id") for interrupt in interrupts or () if owner_of(interrupt) == subagent]
        return "SUBAGENT_FINISHED", {"outcome": {"type": "suspended", "interruptIds": ids}} if ids else _NOTHING

    return fate


def _id_of(event: AnyEvent) -> str | None:
    row = ROWS.get(event.type)
    id = getattr(event, row.id if row is not None and row.id else "message_id", None)
    return id if isinstance(id, str) else None


def _text_of(exc: BaseException) -> str:
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001 - somebody's own __str__
        text = ""
    return text[:_MAX_MESSAGE] or type(exc).__name__
