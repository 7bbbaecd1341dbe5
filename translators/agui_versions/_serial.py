"""One thing at a time: while a text or a tool call is open, the oldest clients take nothing else but RAW."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agui_pipeline.translators._events import AnyEvent
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.agui_versions._queue import OneAtATime
from agui_pipeline.translators.agui_versions._rule import BOUNDS, Rule, Setting, made, text_field

_KINDS: Final = {
    "TEXT_MESSAGE_START": ("message_id", "messageId"),
    "TEXT_MESSAGE_CONTENT": ("message_id", "messageId"),
    "TEXT_MESSAGE_END": ("message_id", "messageId"),
    "TOOL_CALL_START": ("tool_call_id", "toolCallId"),
    "TOOL_CALL_ARGS": ("tool_call_id", "toolCallId"),
    "TOOL_CALL_END": ("tool_call_id", "toolCallId"),
}


def _end_of(start: AnyEvent) -> AnyEvent:
    name, wire_name = _KINDS[start.type]
    return made(start.type.replace("_START", "_END"), **{wire_name: field_of(start, name, wire_name)})


class Serialised(Rule):
    """Lets texts and tool calls follow each other, and what comes between follow them."""

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._parts = OneAtATime(
            _end_of,
            splits=lambda start: start.type == "TEXT_MESSAGE_START",  # half of a call's arguments are none
            on_full=lambda start: setting.losses.note("legacy.queue", start.type),
        )

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        name = event.type
        if name == "RAW":
            return (event,)
        if name in BOUNDS:
            return (*self._parts.drain(), event)
        names = _KINDS.get(name)
        if names is None:
            out = self._parts.other(event)
        else:
            key = (names, text_field(event, *names))
            if name.endswith("_START"):
                out = self._parts.start(key, event)
            elif name.endswith("_END"):
                out = self._parts.end(key, event)
            else:
                out = self._parts.more(key, event)
        if not out:
            self._losses.note("legacy.order", name)
        return out

    def end(self, *, failed: bool) -> Iterable[AnyEvent]:  # noqa: ARG002 - the same for every end
        return self._parts.drain()
