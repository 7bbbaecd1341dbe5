"""Without the debugging copies that frameworks send along."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import translate

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._options import check_choice
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.translators import ConfigurationError, DiagnosticSink
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._strip import StripTranslator

__all__ = ["StripMiddleware"]


class StripMiddleware(TranslatorMiddleware):
    """Leaves out RAW events, and the copies of a framework's own events that others carry as ``rawEvent``.

    LangGraph sends one of each for nearly every token: nine tenths of a stream, and between two RAW events no throttle
    can merge anything. Put it behind `UpgradeMiddleware`, which reads a `rawEvent`, and before the throttle.

    Events that pass unchanged are the same objects, in the same order.

    Args:
        raw_events: True leaves RAW events out.
        raw_event_field: True takes the field ``rawEvent`` off every event.
        keep_sources: RAW events whose ``source`` matches one of these patterns (``*`` any text, ``?`` a character)
            stay: A2UI travels in them.
        on_diagnostic: Gets each `Diagnostic` (codes ``strip.*``, with a count, at the end of a run). Default: the log.

    Raises:
        ConfigurationError: An option has a value it cannot have, or both are False and nothing is left to do.

    Example:
        >>> from agui_pipeline.middleware import EventThrottleMiddleware
        >>> chain = [StripMiddleware(), EventThrottleMiddleware()]
    """

    def __init__(
        self,
        *,
        raw_events: bool = True,
        raw_event_field: bool = True,
        keep_sources: Collection[str] = ("a2ui/*",),
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        super().__init__(on_diagnostic=on_diagnostic)
        check_choice("raw_events", raw_events, (True, False))
        check_choice("raw_event_field", raw_event_field, (True, False))
        if not (raw_events or raw_event_field):
            raise ConfigurationError("raw_events=False, raw_event_field=False: then there is nothing to strip")
        patterns: object = keep_sources
        if isinstance(patterns, str) or not isinstance(patterns, Collection):
            raise ConfigurationError(f"keep_sources={keep_sources!r}: must be a collection of patterns")
        if not all(isinstance(pattern, str) for pattern in patterns):
            raise ConfigurationError(f"keep_sources={keep_sources!r}: must be patterns, as strings")
        self._raw_events = raw_events
        self._raw_event_field = raw_event_field
        self._keep = re.compile("|".join(map(translate, keep_sources)) or r"(?!)")

    def translator(self, input: RunAgentInput) -> StripTranslator:  # noqa: ARG002 - the same for every run
        """Return a translator for one run."""
        return StripTranslator(
            run_sink(self.on_diagnostic),
            raw_events=self._raw_events,
            raw_event_field=self._raw_event_field,
            keep=lambda source: self._keep.match(source) is not None,
        )
