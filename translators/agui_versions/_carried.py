"""What a snapshot of messages leaves out and 1.0 keeps: activities and reasoning, which old clients would forget."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from agui_pipeline.translators._client_view import ClientView
from agui_pipeline.translators._events import AnyEvent, replace
from agui_pipeline.translators.agui_versions._rule import Rule, Setting, made, text_field, wire


class Carried(Rule):
    """Puts the messages of a role that the client has into each snapshot that lacks them.

    Args:
        setting: The run's.
        role: ``"activity"`` or ``"reasoning"``.
    """

    def __init__(self, setting: Setting, role: str) -> None:
        self._losses = setting.losses
        self._role = role
        self._view = ClientView(setting.messages, on_diagnostic=lambda _: None)
        self._deltas: dict[str, list[str]] = {}

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        if event.type == "REASONING_MESSAGE_CONTENT":
            # Joined when they are wanted: one by one they would be copied again with every delta.
            id, delta = text_field(event, "message_id", "messageId"), text_field(event, "delta", "delta")
            if id is not None and delta is not None:
                self._deltas.setdefault(id, []).append(delta)
            return (event,)
        if event.type != "MESSAGES_SNAPSHOT":
            self._view.apply(event)
            return (event,)
        for id, deltas in self._deltas.items():
            self._view.apply(made("REASONING_MESSAGE_CONTENT", messageId=id, delta="".join(deltas)))
        self._deltas.clear()
        self._view.apply(event)
        if self._role == "activity":
            self._losses.note("legacy.forgotten", event.type)
        snapshot = wire(event, self._losses)
        given = snapshot.messages if isinstance(snapshot.messages, list) else []
        known = {
            message["id"]: message
            for message in given
            if isinstance(message, dict) and isinstance(message.get("id"), str)
        }
        # Copies, as the view goes on changing its own; one an id, though an agent's message and call may share theirs.
        kept = {
            message["id"]: known.get(message["id"]) or copy.deepcopy(message)
            for message in self._view.messages
            if isinstance(message["id"], str) and (message["id"] in known or message["role"] == self._role)
        }
        return (event,) if len(kept) == len(known) else (replace(snapshot, messages=list(kept.values())),)
