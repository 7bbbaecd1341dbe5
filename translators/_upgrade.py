"""Events of agents before 1.0, as 1.0 has them.

Knows what was renamed, retired or spelt otherwise, and what the official 1.0 client makes of it by itself. Says the
same in the same order: what an old agent gets wrong is `_guard.py`'s business, except where that is part of how the
old events work. Thinking and interrupts have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION
from agui_pipeline.translators._content_parts import media_of, place_of
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._event_shapes import mended, misfits
from agui_pipeline.translators._events import AnyEvent, Event, WireEvent, decode_event, replace
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators._shape_checks import Dropped, Misfit, Removed
from agui_pipeline.translators._upgrade_interrupts import CUSTOM_NAME, Interrupts
from agui_pipeline.translators._upgrade_thinking import TYPES as THINKING
from agui_pipeline.translators._upgrade_thinking import Thinking

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "upgrade.thinking": "thinking, of before 1.0, became reasoning",
    "upgrade.thinking-order": "thinking was opened or closed where 1.0 does not allow it, and put right",
    "upgrade.binary": "binary parts, of before 1.0, became media parts",
    "upgrade.binary-lost": "a binary part says neither what nor where its bytes are; the client will not show it",
    "upgrade.null": "null in a field that 1.0 wants left out; it was left out",
    "upgrade.shape": "a field as agents before 1.0 leave it out or spell it; it was put as 1.0 has it",
    "upgrade.interrupt": "on_interrupt events, of before 1.0, became the outcome of the run",
    "upgrade.result-parts": "agents before 1.0 refuse tool results made of parts: they got their text, or their JSON",
    "upgrade.resume": "the client's answer to interrupts was put where agents before 1.0 look for it",
    "upgrade.resume-cancelled": "the client cancelled an interrupt, and agents before 1.0 may not understand that",
    "upgrade.resume-lost": "the client's answer to interrupts has no place where agents before 1.0 look for it",
}
"""The diagnostics of this stage, by code."""

_LEGAL_NULLS: Final[Mapping[str, str]] = {
    "TOOL_CALL_START": "parentMessageId",
    "TOOL_CALL_CHUNK": "parentMessageId",
    "RUN_FINISHED": "outcome",
}
"""Nulls that the 1.0 client still reads as absent, with a warning. Others that it takes are data."""


class UpgradeTranslator(Translator):
    """One run's upgrade. See `agui_pipeline.middleware.UpgradeMiddleware` for what it promises.

    Args:
        thread_id: The run's thread, for a RUN_STARTED or RUN_FINISHED without one.
        run_id: Its id, likewise.
        sink: Gets diagnostics.
        new_id: Makes the ids of reasoning and of interrupts. None: made of the run's id and a number.
        keep_custom: Whether ``on_interrupt`` events go on beside the outcome.
        on_interrupts: Is told, at each RUN_FINISHED, which interrupts an outcome was made of here; mostly of none.
    """

    def __init__(
        self,
        thread_id: str,
        run_id: str,
        sink: DiagnosticSink,
        *,
        new_id: Callable[[], str] | None = None,
        keep_custom: bool = True,
        on_interrupts: Callable[[Sequence[Mapping[str, Any]]], None] = lambda _: None,
    ) -> None:
        self._run: Mapping[str, Any] = {"threadId": thread_id, "runId": run_id}
        self._sink = sink
        self._keep_custom = keep_custom
        self._on_interrupts = on_interrupts
        self._noted: set[tuple[str, str, str]] = set()
        self._thinking = Thinking(new_id or _numbered(run_id, "reasoning"), self._note)
        self._interrupts = Interrupts(new_id or _numbered(run_id, "interrupt"))

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        if type(event) is WireEvent and event.type in _DELTAS:
            data = event._data  # noqa: SLF001 - nearly all events are these, and nothing in them ever changed
            if len(data) == _PLAIN and type(data.get("delta")) is str:
                return (event,)
        shaped = self._shaped(event)
        name = shaped.type
        if name in THINKING:
            return self._thinking.take(shaped)
        match name:
            case "CUSTOM" if field_of(shaped, "name", "name") == CUSTOM_NAME:
                self._interrupts.take(shaped)
                return (shaped,) if self._keep_custom else ()
            case "RUN_STARTED":
                self._run = {key: field_of(shaped, *names) for key, names in _RUN_IDS.items()}
                self._thinking.forget()
                self._interrupts.forget()
            case "RUN_FINISHED":
                return [*self._thinking.close(shaped), self._with_outcome(shaped)]
            case "RUN_ERROR":
                self._interrupts.forget()
                return [*self._thinking.close(shaped), shaped]
        return (shaped,)

    # Shapes.

    def _shaped(self, event: Event) -> AnyEvent:
        """Return an event with the parts and the fields that 1.0 has; the same object where it has them."""
        view: WireEvent
        if type(event) is WireEvent:
            view = event
        elif HAS_PROTOCOL_VERSION or event.type not in _WITH_MESSAGES:
            return event  # a model, validated when it was made
        else:
            view = decode_event(encode_event(event, self._sink))  # an older SDK has a model of the old part
        upgraded = self._with_media(view) if view.type in _WITH_MESSAGES else view
        legal = _LEGAL_NULLS.get(view.type)
        if legal is not None and legal in upgraded.data and upgraded.data[legal] is None:
            self._note("null", legal, event)
            upgraded = decode_event({key: value for key, value in upgraded.data.items() if key != legal})
        found = [misfit for misfit in misfits(upgraded, self._run) if _is_old(misfit)]
        if found:
            for misfit in found:
                self._note("null" if misfit.fix is Removed else "shape", _field(misfit), event)
            upgraded = mended(upgraded, found) or upgraded
        return event if upgraded is view else upgraded

    def _with_media(self, event: WireEvent) -> WireEvent:
        """Return an event with messages whose binary parts are media parts."""
        if event.type == "MESSAGES_SNAPSHOT":
            messages = self._upgraded(event.messages, event)
            return event if messages is event.messages else replace(event, messages=messages)
        given = event.input
        if not isinstance(given, Mapping):
            return event
        messages = self._upgraded(given.get("messages"), event)
        return event if messages is given.get("messages") else replace(event, input={**given, "messages": messages})

    def _upgraded(self, messages: Any, event: WireEvent) -> Any:
        if not isinstance(messages, list):
            return messages
        upgraded = [self._message(message, event) for message in messages]
        return messages if all(new is old for new, old in zip(upgraded, messages, strict=True)) else upgraded

    def _message(self, message: Any, event: WireEvent) -> Any:
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, list) or not any(_is_binary(part) for part in content):
            return message
        parts: list[Any] = []
        for part in content:
            media = _media(part) if _is_binary(part) else part
            if media is None:
                self._note("binary-lost", "", event)
                parts.append(part)
            elif media is part or not _mirrored(media, content):
                parts.append(media)
        if parts == content:
            return message
        self._note("binary", "", event)
        return {**message, "content": parts}

    # Interrupts.

    def _with_outcome(self, event: AnyEvent) -> AnyEvent:
        outcome = self._interrupts.outcome()
        if outcome is None or field_of(event, "outcome", "outcome") is not None:
            self._on_interrupts(())
            return event
        self._on_interrupts(outcome["interrupts"])
        self._note("interrupt", f"{len(outcome['interrupts'])} interrupts", event)
        return replace(event, outcome=outcome)

    def _note(self, code: str, words: str, event: AnyEvent) -> None:
        """Say what was done: once a run for each field of each type, since an encoder writes a null in every event."""
        name = str.__str__(event.type)
        key = (code, name, words)
        if key in self._noted:
            return
        self._noted.add(key)
        code = f"upgrade.{code}"
        message = f"{DIAGNOSTICS[code]} ({name}{': ' if words else ''}{words})"
        self._sink(Diagnostic(code, message, event_type=name))


_DELTAS: Final = frozenset({"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"})
_PLAIN: Final = 3
"""Fields of an event that is nothing but a delta: type, id, value."""
_WITH_MESSAGES: Final = frozenset({"MESSAGES_SNAPSHOT", "RUN_STARTED"})
_RUN_IDS: Final = {"threadId": ("thread_id", "threadId"), "runId": ("run_id", "runId")}


def _numbered(run_id: str, what: str) -> Callable[[], str]:
    """Return a maker of ids that are the same each time a run is told, and no other run's."""
    count = 0

    def new_id() -> str:
        nonlocal count
        count += 1
        return f"{run_id}-{what}-{count}"

    return new_id


def _is_old(misfit: Misfit) -> bool:
    """Whether it is how agents before 1.0 put things, rather than a mistake."""
    if misfit.fix is None or misfit.fix is Dropped:
        return False
    return misfit.got in ("null", "nothing") or misfit.path in (("timestamp",), ("role",))


def _field(misfit: Misfit) -> str:
    """Name a field of a type, wherever in a list it is."""
    return ".".join("[]" if isinstance(part, int) else part for part in misfit.path)


def _is_binary(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "binary"


def _media(binary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the media part; None where the binary part does not say enough for one."""
    said = {name: value for name, value in binary.items() if value is not None and value != ""}
    place = place_of(said)
    if place is None or not isinstance(said.get("mimeType"), str) or not isinstance(said[place], str):
        return None
    return media_of(said, place)


def _mirrored(media: Mapping[str, Any], content: Sequence[Any]) -> bool:
    """Whether a message says the same in both ways, for readers of either age: then the client shows it once."""
    metadata = media.get("metadata")
    filename = metadata.get("filename") if isinstance(metadata, Mapping) else None
    for part in content:
        if isinstance(part, Mapping) and part.get("type") == media["type"] and part.get("source") == media["source"]:
            metadata = part.get("metadata")
            if filename is None or (isinstance(metadata, Mapping) and metadata.get("filename") == filename):
                return True
    return False
