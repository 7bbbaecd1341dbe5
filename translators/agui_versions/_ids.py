"""Ids that old clients take for those of other messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agui_pipeline.translators._events import AnyEvent, replace
from agui_pipeline.translators._owners import Owners, field_of, owner_of
from agui_pipeline.translators.agui_versions._messages import READS_INPUT
from agui_pipeline.translators.agui_versions._rule import Rule, Setting, text_field
from agui_pipeline.translators.agui_versions._version import Version
from agui_pipeline.translators.lifecycle import TEXT

_FINDS_TEXTS: Final = Version(0, 0, 44)
"""The first version to which a text's id that it knows is that text."""
_KEEPS_ACTIVITIES: Final = Version(0, 0, 46)
"""The first version whose activities outlive a snapshot of messages."""
_KEEPS_REASONING: Final = Version(0, 0, 50)


class Known(dict[str, Any]):
    """The ids and roles of the messages that a client has, in its order.

    Attributes:
        last: The id of the last one, where that is sure.
        owners: Whose each is: later clients hold events of the same id to it, and a level serves them, too.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self._version = setting.version
        self._kept = tuple(
            role
            for role, first in (("activity", _KEEPS_ACTIVITIES), ("reasoning", _KEEPS_REASONING))
            if setting.version >= first
        )
        self.owners = Owners()
        self.owners.seed(setting.messages, restate=False)
        self._take(setting.messages)
        # Clients that have activities do not send them: the last message that was sent need not be their last.
        self.last: str | None = next(reversed(self), None) if setting.version < READS_INPUT else None

    def put(self, id: Any, role: Any) -> None:
        """Take note of a message that the client appends, unless it has it."""
        if isinstance(id, str) and id not in self:
            self[id] = role
            self.last = id

    def see(self, event: AnyEvent) -> None:
        """Take note of what an event puts into the client's messages. Not for tool calls."""
        match event.type:
            case "TEXT_MESSAGE_START":
                self._put_owned(event, field_of(event, "role", "role") or "assistant")
            case "TOOL_CALL_RESULT":
                self._put_owned(event, "tool")
            case "ACTIVITY_SNAPSHOT":
                self.put(_message_id(event), "activity")
            case "REASONING_MESSAGE_START":
                self.put(_message_id(event), "reasoning")
            case "THINKING_TEXT_MESSAGE_START":
                self.last = None  # 0.0.45, which may read this level, makes a message of it, with an id of its own
            case "RUN_STARTED" if self._version >= READS_INPUT:
                self._take(field_of(field_of(event, "input", "input"), "messages", "messages"))
            case "MESSAGES_SNAPSHOT":
                self._snapshot(field_of(event, "messages", "messages"))
            case _:
                pass

    def _put_owned(self, event: AnyEvent, role: Any) -> None:
        id = _message_id(event)
        self.put(id, role)
        if id is not None:
            self.owners.open(TEXT, id, owner_of(event), None)

    def _take(self, messages: Any) -> None:
        for message in messages if isinstance(messages, list | tuple) else ():
            self.put(field_of(message, "id", "id"), field_of(message, "role", "role"))

    def _snapshot(self, messages: Any) -> None:
        self.owners.seed(messages, restate=True)
        before = dict(self)
        self.clear()
        self._take(messages)
        after = dict(self)
        if self._kept:  # such clients change their list in place
            self.clear()
            self.update({id: role for id, role in before.items() if id in after or role in self._kept})
            self.update(after)
        self.last = next(reversed(self), None)


class TextIds(Rule):
    """Gives a text another id where the client would make a second message of the same."""

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._known = Known(setting)
        self._now: dict[Any, str] = {}
        self._numbers: dict[str, int] = {}

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        known = self._known
        if event.type == "TOOL_CALL_START":
            parent = text_field(event, "parent_message_id", "parentMessageId")
            if parent in self._now:
                event = replace(event, parent_message_id=self._now[parent])
            known.put(text_field(event, "parent_message_id", "parentMessageId"), "assistant")
            known.put(_call_id(event), "assistant")  # its message where it has no parent, or loses it
        elif event.type in ("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"):
            id = _message_id(event)
            if id in self._now:
                event = replace(event, message_id=self._now[id])
        elif event.type == "TEXT_MESSAGE_START":
            event = self._started(event)
            known.see(event)
        else:
            known.see(event)
        return (event,)

    def _started(self, event: AnyEvent) -> AnyEvent:
        id = _message_id(event)
        self._now.pop(id, None)
        if id is None or id not in self._known:
            return event
        # Never the same one twice, though a snapshot makes the client forget it: newer ones remember whose it was.
        number = self._numbers.get(id, 1) + 1
        while f"{id}~{number}" in self._known:
            number += 1
        self._numbers[id] = number
        self._losses.note("legacy.text-id", event.type)
        self._now[id] = f"{id}~{number}"
        owner = owner_of(event) or self._known.owners.get(TEXT, id)
        return replace(event, message_id=self._now[id], subagent_run_id=owner)


class Parents(Rule):
    """Takes away a tool call's parent where the client would make a second message of it."""

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._known = Known(setting)

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        known = self._known
        if event.type != "TOOL_CALL_START":
            known.see(event)
            return (event,)
        parent = text_field(event, "parent_message_id", "parentMessageId")
        if parent is not None and parent in known and (parent != known.last or known[parent] != "assistant"):
            self._losses.note("legacy.parent", event.type)
            owner = owner_of(event) or known.owners.get(TEXT, parent)
            event, parent = replace(event, parent_message_id=None, subagent_run_id=owner), None
        known.put(parent or _call_id(event), "assistant")
        return (event,)


def _message_id(event: AnyEvent) -> str | None:
    return text_field(event, "message_id", "messageId")


def _call_id(event: AnyEvent) -> str | None:
    return text_field(event, "tool_call_id", "toolCallId")
