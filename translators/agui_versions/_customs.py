"""Events that a client does not know, as CUSTOM events: their name is the type, their value the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from agui_pipeline.translators._events import AnyEvent
from agui_pipeline.translators.agui_versions._rule import BOUNDS, Rule, Setting, as_custom
from agui_pipeline.translators.lifecycle import ROWS

SUBAGENT: Final = frozenset({"SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"})
ACTIVITY: Final = frozenset({"ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"})
ENCRYPTED: Final = frozenset({"REASONING_ENCRYPTED_VALUE"})
REASONING: Final = frozenset(
    {
        *("REASONING_START", "REASONING_END", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"),
        "REASONING_MESSAGE_END",
    }
)
THINKING: Final = frozenset(
    {
        *("THINKING_START", "THINKING_END", "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_CONTENT"),
        "THINKING_TEXT_MESSAGE_END",
    }
)


def custom(code: str) -> Callable[[AnyEvent, Setting], Iterable[AnyEvent]]:
    """Return the rule that makes CUSTOM events, and counts them under a code."""

    def to_custom(event: AnyEvent, setting: Setting) -> Iterable[AnyEvent]:
        setting.losses.note(code, event.type)
        return (as_custom(event, setting.losses),)

    return to_custom


class Unknown(Rule):
    """Makes CUSTOM events of types that no version of the protocol has; outside of a run it leaves them out.

    To 1.0 such an event is nothing, wherever it comes.
    """

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._running = False

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        if event.type in ROWS:
            if event.type in BOUNDS:
                self._running = event.type == "RUN_STARTED"
            return (event,)
        self._losses.note("legacy.unknown-type", event.type)
        return (as_custom(event, self._losses),) if self._running else ()
