"""The pass-through hook: a predicate decides what a client sees."""

from __future__ import annotations

from collections.abc import Callable

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._options import check_callable
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.translators import DiagnosticSink, Event
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._pass_through import PassThroughTranslator


class PassThroughMiddleware(TranslatorMiddleware):
    """Lets pass what a hook accepts, and always RUN_STARTED, RUN_FINISHED, RUN_ERROR and text messages.

    Events that pass are the same objects, in the same order. Those that do not are counted: one `Diagnostic` a type
    at the end of the run.

    Args:
        hook: ``(event) -> bool``. Called once an event, in order. What it raises ends the run as an error of the
            source would.
        everything: True asks the hook about text messages, too.
        on_diagnostic: Gets each `Diagnostic` (code ``pass-through.dropped``, with a count). Default: the log.

    Raises:
        ConfigurationError: The hook is not callable.

    Example:
        >>> chain = [PassThroughMiddleware(lambda event: event.type != "RAW")]
    """

    def __init__(
        self,
        hook: Callable[[Event], bool],
        *,
        everything: bool = False,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        super().__init__(on_diagnostic=on_diagnostic)
        check_callable("hook", hook, "(event) -> bool")
        self._hook = hook
        self._everything = bool(everything)

    def translator(self, input: RunAgentInput) -> PassThroughTranslator:  # noqa: ARG002 - the same for every run
        """Return a translator for one run."""
        return PassThroughTranslator(self._hook, run_sink(self.on_diagnostic), everything=self._everything)
