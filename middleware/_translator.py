"""Middleware whose whole work is a sans-IO translator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import ClassVar, Literal, TypeAlias

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._options import check_callable
from agui_pipeline.middleware._types import Middleware, Source
from agui_pipeline.translators import DiagnosticSink, Event, TimedTranslator, Translator

StrangeFrames: TypeAlias = Literal["pass", "drop", "refuse"]


class TranslatorMiddleware(ABC):
    """The base of middleware that needs no `await`: configuration here, the state of a run in a translator.

    Neighbours in a `Pipeline` are driven together, with one timer and at most one extra task between them. An
    instance holds no state of a run, so one object serves any number of runs at once.

    Args:
        on_diagnostic: Gets each `Diagnostic`. Default: logged at WARNING, once a code and run, without content.

    Example:
        >>> from agui_pipeline.translators import Translator, replace
        >>> class Numbering(Translator):  # the state of one run
        ...     count = 0
        ...     def feed(self, event):
        ...         self.count += 1
        ...         return (replace(event, metadata={"number": self.count}),)
        >>> class NumberingMiddleware(TranslatorMiddleware):
        ...     def translator(self, input):
        ...         return Numbering()
    """

    protects: ClassVar[bool] = False
    """Whether it must see every request: adapters then refuse a body that they cannot read, which else passes by."""

    strange_frames: StrangeFrames = "pass"
    """What becomes of an SSE frame of a wrapped app whose data is no event, which no stage sees: ``"refuse"`` fails the
    run. The strictest stage of a chain decides."""

    def __init__(self, *, on_diagnostic: DiagnosticSink | None = None) -> None:
        check_callable("on_diagnostic", on_diagnostic, "(Diagnostic) -> None", optional=True)
        self.on_diagnostic = on_diagnostic

    @property
    def leaves_agui(self) -> bool:
        """Whether what it gives is no AG-UI any more but `SSEFrame`s of another dialect: it must be the last stage."""
        return False

    def fails_in_band(self, input: RunAgentInput | None) -> bool:  # noqa: ARG002 - the default is the same for all
        """Whether the client that sent an input (None: one that cannot be read) looks at no HTTP status.

        Adapters then tell it of failures by a stream with RUN_ERROR, whatever the status would have been: such a client
        takes the body of an error for a run in which nothing happened.
        """
        return False

    @abstractmethod
    def translator(self, input: RunAgentInput) -> Translator | TimedTranslator:
        """Return a new translator for one run.

        Args:
            input: The run's input as it comes from the client's side, before this stage's own `prepare`.
        """

    def prepare(self, input: RunAgentInput) -> RunAgentInput:
        """Return the input that the stages nearer to the source and the source itself shall see. Default: the same.

        Called after `translator`, once a run. Never mutate the input: ``input.model_copy(update=…)``.
        """
        return input

    def admit(self, input: RunAgentInput) -> None:  # noqa: B027 - the default admits every input
        """Raise DecodeError or LimitError where `prepare` would refuse the input; report nothing else.

        Adapters ask before they answer, so that a client gets an HTTP error and no broken stream.
        """

    def __call__(self, input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        """Run this stage alone around `next`, as any middleware."""
        from agui_pipeline.middleware._pipeline import Pipeline  # noqa: PLC0415 - a pipeline is made of these

        return Pipeline(next, self)(input)


Stage: TypeAlias = Middleware | TranslatorMiddleware
"""What a chain is made of; ``chain: list[Stage] = [...]`` for type checkers."""
