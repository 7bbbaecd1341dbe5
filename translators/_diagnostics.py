"""Diagnostics: what a stage says when it repaired, dropped, lost or downgraded something.

Knows the shape of a diagnostic and the default sink; does not know which stage makes which (docs/diagnostics.md
lists the codes).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

_logger = logging.getLogger("agui_pipeline")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that a stage changed, left out or could not do.

    Attributes:
        code: What happened, stable and documented, such as ``"a2ui.limit"``.
        message: One sentence for people. Holds no content of the stream: the default sink logs it.
        event_type: The type of the event concerned, where there is one.
        message_id: The message, tool call or activity concerned, where there is one.
        detail: Figures and names for programs. May hold content, so the default sink does not log it.
    """

    code: str
    message: str
    event_type: str | None = None
    message_id: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


DiagnosticSink = Callable[[Diagnostic], None]


default_sink: Final[ContextVar[DiagnosticSink | None]] = ContextVar("agui_pipeline.default_sink", default=None)
"""The sink of stages that have none of their own, where an adapter was given one."""

QUIET: Final = frozenset(
    {
        # What clients may leave out, or send twice.
        *("input.filled", "input.id", "actions.repeated", "actions.joined"),
        # What was asked for, or is said in another way without loss.
        *("pass-through.dropped", "strip.raw", "strip.raw-event", "langgraph.left-open"),
        *("legacy.interrupt", "legacy.resume", "upgrade.thinking", "upgrade.binary", "upgrade.null", "upgrade.shape"),
        *("upgrade.interrupt", "upgrade.resume"),
    }
)
"""Worth knowing, no reason to warn: logged at INFO."""


def run_sink(on_diagnostic: DiagnosticSink | None) -> DiagnosticSink:
    """Return the sink for one run: the caller's own, else the adapter's, else a fresh one that logs each code once.

    Args:
        on_diagnostic: The ``on_diagnostic`` option of a stage.

    Returns:
        A callable to hand each `Diagnostic` of this run. Call this once a run: the default sink remembers which
        codes it has logged.
    """
    if on_diagnostic is None:
        on_diagnostic = default_sink.get()
    return _LogOnce() if on_diagnostic is None else on_diagnostic


class _LogOnce:
    """Logs each code once, without `detail`: a flood of repairs must not become a flood of log lines."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, diagnostic: Diagnostic) -> None:
        if diagnostic.code in self._seen:
            return
        self._seen.add(diagnostic.code)
        level = logging.INFO if diagnostic.code in QUIET else logging.WARNING
        _logger.log(level, "%s: %s", diagnostic.code, diagnostic.message)
