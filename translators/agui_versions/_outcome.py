"""How a run ended: interrupts and other outcomes, for clients that do not know outcomes, or not all.

CUSTOM `on_interrupt` with a text, and no outcome, is what clients of every age understand; those that know the outcome
as well show the CUSTOM event only, and then wait for an answer that nobody can give (observed with CopilotKit 1.60).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._events import AnyEvent, replace
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.agui_versions._rule import JSONObject, Rule, Setting, made, wire

INTERRUPT: Final = "on_interrupt"
"""The name of the CUSTOM event that is an interrupt; its value is a text, the interrupt as JSON."""
OUTCOME: Final = "RUN_FINISHED"
"""The name of the CUSTOM event that holds an outcome that the client does not know: ``{"outcome": …}``."""


class Outcomes(Rule):
    """Puts interrupts into CUSTOM events, and leaves no outcome that the client gives up on."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._told = False  # whether the agent itself has sent an interrupt as CUSTOM

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        if event.type == "RUN_STARTED":
            self._told = False
        elif event.type == "CUSTOM":
            self._told = self._told or field_of(event, "name", "name") == INTERRUPT
        else:
            return self._finished(event)
        return (event,)

    def _finished(self, event: AnyEvent) -> Iterable[AnyEvent]:
        view = event if field_of(event, "outcome", "outcome") is None else wire(event, self._setting.losses)
        outcome: Any = field_of(view, "outcome", "outcome")
        interrupts = outcome.get("interrupts") if isinstance(outcome, dict) else None
        if isinstance(interrupts, list) and outcome.get("type") == "interrupt":
            interrupts = [interrupt for interrupt in interrupts if isinstance(interrupt, dict)]
            self._setting.on_interrupts(interrupts)
            return self._interrupted(event, view, outcome, interrupts)
        self._setting.on_interrupts(())
        if outcome is None or outcome == _SUCCESS:
            return (event,)
        if isinstance(outcome, dict) and outcome.get("type") == "success":
            self._setting.losses.note("legacy.pending-calls", event.type)
            return (replace(view, outcome=_SUCCESS),)
        self._setting.losses.note("legacy.outcome", event.type)
        return (made("CUSTOM", name=OUTCOME, value={"outcome": outcome}), replace(view, outcome=None))

    def _interrupted(
        self, event: AnyEvent, view: AnyEvent, outcome: JSONObject, interrupts: list[JSONObject]
    ) -> Iterable[AnyEvent]:
        if self._setting.structured:
            bare = {"type": "interrupt", "interrupts": interrupts}
            return (event,) if outcome == bare else (replace(view, outcome=bare),)
        self._setting.losses.note("legacy.interrupt", event.type)
        customs = () if self._told else tuple(map(_custom, interrupts))
        return (*customs, replace(view, outcome=None))


_SUCCESS: Final = {"type": "success"}


def _custom(interrupt: JSONObject) -> AnyEvent:
    return made("CUSTOM", name=INTERRUPT, value=encode_json(interrupt, lambda _: None).decode())
