"""Throttling: fewer, larger events at a steady pace."""

from __future__ import annotations

from typing import Final

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._options import check_count, check_number
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.translators import DiagnosticSink
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._throttle import ThrottleTranslator

_LONGEST: Final = 10.0
"""Seconds: more is meant as milliseconds, as `setTimeout` counts."""


class EventThrottleMiddleware(TranslatorMiddleware):
    """Merges bursts of deltas and snapshots, and sends them at most once an interval.

    The first event after a pause goes out at once, so the first token pays nothing; what follows within `interval`
    is held and merged, and goes out when the interval is over, whether or not another event has come.

    Merged are only *adjacent* events of one type, one id and one ``subagentRunId``: deltas of text, tool call
    arguments and reasoning (also as chunks) concatenate; STATE_DELTA and ACTIVITY_DELTA patches concatenate; of
    STATE_SNAPSHOTs the last stays; an ACTIVITY_SNAPSHOT takes the place of the one before it where it does so on the
    client (not with ``replace: false``). ``metadata`` merges key by key, the last write wins; two events that both
    carry a ``rawEvent`` stay two, and so do two that differ in any other field (a chunk that goes on need not repeat
    what the one before it opened with), and patches of which one has a ``test`` operation: it may fail alone.

    Guarantees:
        - Any other event, known type or not, RAW and MESSAGES_SNAPSHOT included, first flushes what is held and then
          passes at once: nothing crosses anything. (A flood of RAW events therefore defeats any throttle: put
          `StripMiddleware` before it.)
        - Nothing is lost: at the end of the source and on its error, what is held is delivered first.
        - Nothing is held longer than `interval`, except the first half of a character that was cut in two.

    Args:
        interval: Seconds between two flushes, 10 at most; 0 merges nothing but halves of characters.
        min_chars: Held characters that flush before the interval ends; 0 = never.
        on_diagnostic: Gets each `Diagnostic` (once a run: ``throttle.raw-event``, where events cannot merge because
            each carries a ``rawEvent``; ``throttle.raw``, where RAW events stand between them). Default: the log.

    Raises:
        ConfigurationError: An option is not a number in its range.
    """

    def __init__(
        self, *, interval: float = 0.05, min_chars: int = 0, on_diagnostic: DiagnosticSink | None = None
    ) -> None:
        super().__init__(on_diagnostic=on_diagnostic)
        check_number("interval", interval, most=_LONGEST, unit="a number of seconds")
        check_count("min_chars", min_chars, unit="a whole number of characters (0 = never)")
        self._interval = float(interval)
        self._min_chars = min_chars

    def translator(self, input: RunAgentInput) -> ThrottleTranslator:  # noqa: ARG002 - the same for every run
        """Return a throttle for one run."""
        return ThrottleTranslator(self._interval, self._min_chars, run_sink(self.on_diagnostic))
