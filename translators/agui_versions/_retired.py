"""THINKING_* of older agents, for clients that know REASONING_*: what 1.0 makes of them itself."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from agui_pipeline.translators._events import AnyEvent
from agui_pipeline.translators._upgrade_thinking import Thinking
from agui_pipeline.translators.agui_versions._rule import BOUNDS, Rule, Setting, made


class Retired(Rule):
    """Makes REASONING_* of THINKING_*, with ids of the run."""

    def __init__(self, setting: Setting) -> None:
        numbers = count(1)
        self._thinking = Thinking(lambda: f"{setting.run_id}-thinking-{next(numbers)}", lambda *_: None)

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        if event.type in BOUNDS:
            return (*self._thinking.close(event), event)
        return self._thinking.take(event)

    def end(self, *, failed: bool) -> Iterable[AnyEvent]:  # noqa: ARG002 - the same for every end
        return self._thinking.close(made("THINKING_END"))
