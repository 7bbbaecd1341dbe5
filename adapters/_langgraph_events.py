"""What goes out of a LangGraph agent's run: events as views over JSON, and an end that a client may see.

Knows what ag-ui-langgraph leaves open, and tells, where a run fails. Does not know where the events come from.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agui_pipeline.translators import Diagnostic, DiagnosticSink, WireEvent, decode_event, encode_event, replace
from agui_pipeline.translators._compat import PROTOCOL_VERSION
from agui_pipeline.translators._event_shapes import FAILED
from agui_pipeline.translators._lifecycle import Lifecycle, Part
from agui_pipeline.translators.lifecycle import ENDERS, ROWS, SUBAGENT

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "langgraph.error-text": "what an error says was kept from the client; see expose_errors",
    "langgraph.left-open": "a run failed and left something open; it was closed before RUN_ERROR",
}
"""The diagnostics of this adapter, by code. Of a state with objects in it, those of encoding (``encode.*``) tell."""

_logger = logging.getLogger("agui_pipeline")


class Outgoing:
    """The events of one run on their way out.

    Attributes:
        over: Whether a RUN_ERROR went out: nothing may follow.
    """

    def __init__(self, sink: DiagnosticSink, *, expose_errors: bool) -> None:
        self.over = False
        self._sink = sink
        self._expose_errors = expose_errors
        self._life = Lifecycle()

    def take(self, event: Any) -> Iterator[WireEvent]:
        """Give what goes out for an event of the agent."""
        sent = view(event, self._sink)
        if sent.type == "RUN_STARTED" and sent.protocol_version is None:
            sent = replace(sent, protocol_version=PROTOCOL_VERSION)
        elif sent.type == "SUBAGENT_ERROR":
            sent = self._told(sent)
        elif sent.type == "RUN_ERROR":
            sent = self._told(sent)
            yield from self._closing()
            self.over = True
        self._life.step(sent)
        yield sent

    def _closing(self) -> Iterator[WireEvent]:
        parts = self._life.open_parts()
        if parts:
            kinds = ", ".join(sorted({part.kind for part in parts}))
            text = f"{DIAGNOSTICS['langgraph.left-open']} ({kinds})"
            self._sink(Diagnostic("langgraph.left-open", text, event_type="RUN_ERROR", detail={"count": len(parts)}))
        for part in reversed(parts):
            yield _end_of(part)

    def _told(self, error: WireEvent) -> WireEvent:
        """Return an error that says no more to the client than it may know."""
        code = error.code or "source_error"
        if self._expose_errors:
            return replace(error, code=code)
        # ag-ui-langgraph logs the exceptions that it catches, and not the errors that a graph reports in its stream.
        _logger.error("the LangGraph agent's run failed: %s", error.message)
        self._sink(
            Diagnostic(
                "langgraph.error-text",
                DIAGNOSTICS["langgraph.error-text"],
                event_type=error.type,
                detail={"error": error.message},
            )
        )
        return replace(error, message=FAILED, code=code, raw_event=None)


def view(event: Any, sink: DiagnosticSink) -> WireEvent:
    """Return an event as the JSON that any encoder can encode."""
    return decode_event(encode_event(event, sink))


def _end_of(part: Part) -> WireEvent:
    """Return the event that closes what is open."""
    failed = {"message": FAILED, "code": "source_error"} if part.kind == SUBAGENT else {}
    row = ROWS["SUBAGENT_ERROR" if failed else ENDERS[part.kind]]
    owner = {} if part.tag is None else {"subagentRunId": part.tag}
    named = {row.wire_id: part.id} if row.wire_id else {}
    return decode_event({"type": row.type, **owner, **named, **failed})
