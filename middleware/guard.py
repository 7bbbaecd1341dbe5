"""The guard: streams that the official client accepts, whatever the source did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._options import check_choice
from agui_pipeline.middleware._translator import StrangeFrames, TranslatorMiddleware
from agui_pipeline.translators import DiagnosticSink
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._guard import GuardTranslator, Mode
from agui_pipeline.translators._owners import field_of

_STRANGE_FRAMES: Final[Mapping[Mode, StrangeFrames]] = {"repair": "drop", "raise": "refuse", "report": "pass"}


class GuardMiddleware(TranslatorMiddleware):
    """Makes any stream one that `@ag-ui/client` 1.0 accepts, and that is ended.

    What the client would give up on is repaired where only one repair is possible: what is open is closed before
    RUN_FINISHED, in reverse order of opening; content of what is closed opens it again; a second START, an END of
    nothing, and whatever follows a terminal event are left out; a missing RUN_STARTED is supplied; tags, ids and
    chunks that contradict what was said before are put right; malformed fields with one possible meaning get it. The
    tables are in `agui_pipeline.translators.lifecycle`. What has no certain repair passes as it is. Each of both is a
    `Diagnostic`.

    A source that raises, or that stops without a terminal event, ends in RUN_ERROR, with what is open closed before:
    code ``source_error``, ``source_ended``, or ``cancelled`` where the source was cancelled from inside. The exception
    goes to the log with its traceback (ERROR) and no further. Raised after a terminal event it changes nothing, and
    goes on to the reader.

    Guarantees:
        - A stream that the client accepts passes unchanged: the same objects, in the same order.
        - Nothing is held: what an event causes goes out before the next one is taken.
        - One stream may hold several runs, and any type of event: unknown ones pass.
        - When the reader leaves, nothing is added.
        - Around an ASGI app, frames whose data is no event (``[DONE]``, broken JSON) are left out, each with a
          diagnostic (``asgi.frame-dropped``); mode ``"raise"`` fails the run. Comments pass.

    Put it behind whatever changes events, and before a `LegacyDowngradeMiddleware`.

    Args:
        mode: ``"repair"``; ``"raise"`` raises `SequenceError` instead, naming the event, its state and the rule, and
            leaves errors of the source as they are; ``"report"`` makes the diagnostics and changes nothing, endings
            included.
        expose_errors: Whether a RUN_ERROR carries the exception's text (at most 1000 characters). Clients see it.
        on_diagnostic: Gets each `Diagnostic` (codes ``guard.*``); that of an exception holds it as
            ``detail["exception"]``. Default: the log.

    Raises:
        ConfigurationError: An option has a value that it cannot have.

    Example:
        >>> import asyncio
        >>> from agui_pipeline.adapters.testing import collect
        >>> from agui_pipeline.middleware import Pipeline
        >>> agent = [
        ...     {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        ...     {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
        ... ]
        >>> result = asyncio.run(collect(Pipeline(agent, GuardMiddleware(on_diagnostic=lambda diagnostic: None))))
        >>> result.types
        ['RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_END', 'RUN_FINISHED']
    """

    def __init__(
        self,
        *,
        mode: Mode = "repair",
        expose_errors: bool = False,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        super().__init__(on_diagnostic=on_diagnostic)
        check_choice("mode", mode, ("repair", "raise", "report"))
        check_choice("expose_errors", expose_errors, (False, True))
        self._mode: Mode = mode
        # The client gives up on such a frame, and the translator never meets it: the adapter does what `mode` says.
        self.strange_frames = _STRANGE_FRAMES[mode]
        self._expose_errors = expose_errors

    def translator(self, input: RunAgentInput) -> GuardTranslator:
        """Return a guard for one run."""
        return GuardTranslator(
            input.thread_id,
            input.run_id,
            field_of(input, "protocol_version", "protocolVersion"),
            run_sink(self.on_diagnostic),
            mode=self._mode,
            expose_errors=self._expose_errors,
        )
