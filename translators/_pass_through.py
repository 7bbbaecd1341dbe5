"""Letting a hook decide which events pass. Does not know what the events mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._events import AnyEvent, Event

_RUN: Final = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"})
_TEXT: Final = frozenset({"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TEXT_MESSAGE_CHUNK"})

DIAGNOSTICS: Final = {
    "pass-through.dropped": "events of a type that the hook did not accept were dropped, as configured",
}
"""The diagnostics of this stage, by code."""


class PassThroughTranslator(Translator):
    """One run's pass-through. See `agui_pipeline.middleware.PassThroughMiddleware`."""

    def __init__(self, hook: Callable[[Event], bool], sink: DiagnosticSink, *, everything: bool = False) -> None:
        self._hook = hook
        self._sink = sink
        self._always = _RUN if everything else _RUN | _TEXT
        self._dropped: dict[str, int] = {}

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        if event.type in self._always or self._hook(event):
            return (event,)
        name = str.__str__(event.type)
        self._dropped[name] = self._dropped.get(name, 0) + 1
        return ()

    def flush(self) -> Iterable[AnyEvent]:
        for name, count in self._dropped.items():
            message = f"{count} {name} events did not pass the hook"
            self._sink(Diagnostic("pass-through.dropped", message, event_type=name, detail={"count": count}))
        self._dropped.clear()
        return ()
