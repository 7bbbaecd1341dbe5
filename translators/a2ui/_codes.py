"""The diagnostics that A2UI translation makes, by code, and the one place that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "a2ui.invalid": "valid JSON that is no A2UI message; went where on_invalid says",
    "a2ui.version": "a message of a version that `versions` does not allow; went where on_invalid says",
    "a2ui.catalog": 'a message that is not valid by its catalog (validate="full"); went where on_invalid says',
    "a2ui.repaired": "an A2UI message that was no JSON was repaired and goes on as one",
    "a2ui.broken": "what began as a JSON object and is none; its text went where on_invalid says",
    "a2ui.limit": "a record over a limit; its text went where on_invalid says",
    "a2ui.forbidden-key": "a record with a key that reaches a prototype in JavaScript; its text went likewise",
    "a2ui.prose-dropped": 'text between the messages of a run was dropped, as on_invalid="drop" configures',
    "a2ui.pass-through-unset": "events that are no text were dropped because pass_through is not set; once a run",
    "a2ui.dropped": "events of a type that pass_through does not accept were dropped, as configured",
    "a2ui.after-error": 'events after the RUN_ERROR that on_invalid="error" made were dropped',
    "a2ui.sequence": "a text event in an order that AG-UI forbids; read as well as it can be",
    "a2ui.malformed": "a text event whose messageId or delta is no string; what could not be read was dropped",
    "a2ui.raw-event": "rawEvent copies of text events whose text went on with another event were left out",
    "a2ui.snapshot-text": "A2UI messages in the text of a MESSAGES_SNAPSHOT were left out, as they were when streamed",
    "a2ui.surface-reused": "a createSurface for a surface that exists; treated as `reused` says",
    "a2ui.surface-incomplete": "a surface was updated and never shown: it lacks a create message or components",
    "a2ui.surface-unknown": "an update or a deleteSurface for a surface that nobody knows; once a surface and run",
    "a2ui.surface-invalid": 'a surface is not valid as a whole at the end of a run (validate="full"); it was shown',
    "a2ui.surface-forgotten": "the registry forgot a surface, or its oldest data, to stay within its bounds",
    "a2ui.version-mix": "a message of another A2UI generation than its surface; no activity shows it, deletions apart",
    "a2ui.no-surface": "a message about no surface cannot travel in a surface's activity; it went as RAW",
}
"""What each code means."""


class Reporter:
    """Makes the diagnostics of one run."""

    __slots__ = ("_sink",)

    def __init__(self, sink: DiagnosticSink) -> None:
        self._sink = sink

    def __call__(
        self,
        code: str,
        message: str,
        *,
        event_type: str | None = None,
        message_id: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Report one thing. `message` must hold nothing of the stream: it is logged."""
        self._sink(Diagnostic(code, message, event_type=event_type, message_id=message_id, detail=detail or {}))
