"""How far a user's action has come, told to the client that shows a button: CUSTOM ``a2ui.action_state``.

Knows the states and where in a stream they may stand. A state is told after RUN_STARTED, before the first chunk, and
before the terminal event, which closes every stream of chunks anyway: a CUSTOM in the midst of one would break it.
Does not know what the action was for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from ag_ui.core import CustomEvent, EventType

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._events import AnyEvent, Event
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.a2ui_client import A2UIClientMessage

NAME: Final = "a2ui.action_state"
"""The name of the CUSTOM event, ours and an agent's own."""

Status: TypeAlias = Literal["pending", "succeeded", "failed", "cancelled"]


def outcome_of(event: AnyEvent) -> str:
    """Return what a terminal event says: success, interrupt, cancelled, error, or a word of a later protocol."""
    if event.type == "RUN_ERROR":
        return "cancelled" if field_of(event, "code", "code") == "cancelled" else "error"
    kind = field_of(field_of(event, "outcome", "outcome"), "type", "type")
    return str(kind) if isinstance(kind, str) else "success"


class ActionStates(Translator):
    """Tells the state of one action in the stream that answers it.

    - ``pending`` behind RUN_STARTED, with the surface's other controls off;
    - before the terminal event what that means: ``succeeded``, ``cancelled``, or ``failed``, which may be retried;
      still ``pending``, controls on, where the run waits for an answer (an interrupt);
    - ``failed`` where the stream ends without a terminal event, or in an exception.

    An event of the agent's own for this component passes, and stands: of a run that succeeds it is the last word.

    Args:
        message: The action.
    """

    def __init__(self, message: A2UIClientMessage) -> None:
        self._message = message
        self._open = False  # told that it is pending, and not yet what came of it
        self._over = False
        self._agents: str | None = None

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        """Take one event; give it, with a state behind or before it where there is one to tell."""
        name = event.type
        if self._over:
            return (event,)
        if name == "RUN_STARTED" and not self._open:
            self._open = True
            return (event, self._state("pending", disabled=True))
        if name in ("RUN_FINISHED", "RUN_ERROR"):
            state = self._last(outcome_of(event))
            self._over = True
            return (*state, event)
        if name == "CUSTOM" and field_of(event, "name", "name") == NAME:
            self._agents = self._own(field_of(event, "value", "value")) or self._agents
        return (event,)

    def flush(self) -> Sequence[AnyEvent]:
        """End without a terminal event: whatever was started, it did not succeed as far as anybody knows."""
        return self._last("error")

    def fail(self, exc: BaseException) -> tuple[Sequence[AnyEvent], BaseException | None]:
        """End in an exception."""
        return self._last("cancelled" if isinstance(exc, asyncio.CancelledError) else "error"), exc

    def _last(self, outcome: str) -> Sequence[AnyEvent]:
        if not self._open:
            return ()
        self._open = False
        if self._agents in ("succeeded", "failed", "cancelled") or (self._agents is not None and outcome == "success"):
            return ()
        if outcome == "interrupt":
            return (self._state("pending"),)
        if outcome == "cancelled":
            return (self._state("cancelled"),)
        # An outcome of a future protocol is no success that anybody here knows of.
        return (self._state("succeeded") if outcome == "success" else self._state("failed", retryable=True),)

    def _own(self, value: object) -> str | None:
        """Return the status that an agent's own event gives to this action's component."""
        if not isinstance(value, Mapping) or value.get("surfaceId") != self._message.surface_id:
            return None
        states = value.get("states")
        state = states.get(self._message.source_component_id) if isinstance(states, Mapping) else None
        status = state.get("status") if isinstance(state, Mapping) else None
        return status if isinstance(status, str) else None

    def _state(self, status: Status, *, disabled: bool = False, retryable: bool = False) -> CustomEvent:
        state: dict[str, Any] = {"status": status, **({"retryable": True} if retryable else {})}
        component = self._message.source_component_id
        value = {
            "surfaceId": self._message.surface_id,
            "interactionDisabled": disabled,
            "states": {} if component is None else {component: state},
        }
        return CustomEvent(type=EventType.CUSTOM, name=NAME, value=value)
