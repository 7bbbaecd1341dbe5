"""Taking off what frameworks send along for their own debugging. Does not know what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._events import AnyEvent, Event, replace

DIAGNOSTICS: Final = {
    "strip.raw": "RAW events were dropped, as configured",
    "strip.raw-event": "events were sent without the rawEvent that they carried, as configured",
}
"""The diagnostics of this stage, by code."""


class StripTranslator(Translator):
    """One run's strip. See `agui_pipeline.middleware.StripMiddleware`.

    Args:
        sink: Gets diagnostics.
        raw_events: Whether RAW events go.
        raw_event_field: Whether the field ``rawEvent`` goes.
        keep: Says of a source whether its RAW events stay all the same.
    """

    def __init__(
        self, sink: DiagnosticSink, *, raw_events: bool, raw_event_field: bool, keep: Callable[[str], bool]
    ) -> None:
        self._sink = sink
        self._raw_events = raw_events
        self._raw_event_field = raw_event_field
        self._keep = keep
        self._counts = {"strip.raw": 0, "strip.raw-event": 0}

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        if self._raw_events and event.type == "RAW" and not self._keep(_source_of(event)):
            self._counts["strip.raw"] += 1
            return ()
        # Every event of the protocol has the field; one of somebody's own class need not.
        if self._raw_event_field and getattr(event, "raw_event", None) is not None:
            self._counts["strip.raw-event"] += 1
            return (replace(event, raw_event=None),)
        return (event,)

    def flush(self) -> Iterable[AnyEvent]:
        for code, count in self._counts.items():
            if count:
                self._sink(Diagnostic(code, f"{count} {DIAGNOSTICS[code]}", detail={"count": count}))
                self._counts[code] = 0
        return ()


def _source_of(event: Event) -> str:
    source = event.source
    return source if isinstance(source, str) else ""
