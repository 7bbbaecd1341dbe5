"""Steps: old clients tell them apart by their name alone, and 0.0.30 does not tell them apart at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agui_pipeline.translators._events import AnyEvent
from agui_pipeline.translators._owners import owner_of
from agui_pipeline.translators.agui_versions._rule import BOUNDS, Rule, Setting, as_custom, text_field


class Steps(Rule):
    """Makes CUSTOM events of a step that starts while the client takes another one for the same.

    Args:
        setting: The run's.
        same: Returns what the client tells a step by, from its name.
    """

    def __init__(self, setting: Setting, same: Callable[[Any], Any]) -> None:
        self._losses = setting.losses
        self._same = same
        self._open: dict[Any, tuple[Any, Any]] = {}
        self._customs: set[tuple[Any, Any]] = set()

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        if event.type in BOUNDS:
            self._open.clear()
            self._customs.clear()
            return (event,)
        name = text_field(event, "step_name", "stepName")
        step, key = (owner_of(event), name), self._same(name)
        if event.type == "STEP_STARTED":
            if key not in self._open:
                self._open[key] = step
                return (event,)
            self._customs.add(step)
        elif step in self._customs:
            self._customs.discard(step)
        else:
            self._open.pop(key, None)
            return (event,)
        self._losses.note("legacy.step", event.type)
        return (as_custom(event, self._losses),)
