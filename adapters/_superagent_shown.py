"""What the reader of a session was shown in a run that goes on later, by ids: the next input may not say it.

Knows events and what is bounded; does not know sessions, nor how a dialect tells anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agui_pipeline.translators._owners import field_of

_MOST: Final = 50
"""Ids of each kind; then the oldest are forgotten."""
_LONGEST: Final = 128
"""Characters of an id that is remembered."""


class Shown:
    """Follows a run.

    Args:
        messages: The ids that the runs before left.
        calls: Likewise.
    """

    __slots__ = ("_calls", "_messages")

    def __init__(self, messages: Iterable[str], calls: Iterable[str]) -> None:
        self._messages = dict.fromkeys(messages)
        self._calls = dict.fromkeys(calls)

    @property
    def messages(self) -> list[str]:
        """The ids of the last message of the last snapshot, and of those made since: behind them stand news."""
        return list(self._messages)

    @property
    def calls(self) -> list[str]:
        """The ids of the tool calls that have no result yet."""
        return list(self._calls)

    def take(self, event: Any) -> None:
        """Take an event that the reader gets."""
        name = event.type
        if name == "MESSAGES_SNAPSHOT":
            self._snapshot(field_of(event, "messages", "messages"))
        elif name in ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CHUNK"):
            self._behind(field_of(event, "message_id", "messageId"))
        elif name in ("TOOL_CALL_START", "TOOL_CALL_CHUNK"):
            self._behind(field_of(event, "parent_message_id", "parentMessageId"))
            _add(self._calls, field_of(event, "tool_call_id", "toolCallId"))
        elif name == "TOOL_CALL_RESULT":
            self._settle(field_of(event, "tool_call_id", "toolCallId"))

    def _snapshot(self, messages: Any) -> None:
        self._messages.clear()
        last = None  # but for results, whose message may have the id of its call: that is no call that waits
        for message in messages if isinstance(messages, list | tuple) else ():
            if field_of(message, "role", "role") == "tool":
                self._settle(field_of(message, "tool_call_id", "toolCallId"))
            else:
                last = message
        self._behind(field_of(last, "id", "id"))

    def _behind(self, id: Any) -> None:
        """Take a message behind all that are known. With an id that is too long, nobody can say where news begin."""
        if id is not None and not _add(self._messages, id):
            self._messages.clear()

    def _settle(self, id: Any) -> None:
        if isinstance(id, str):
            self._calls.pop(id, None)


def _add(ids: dict[str, None], id: Any) -> bool:
    """Add an id; returns whether it is one that can be remembered."""
    if not isinstance(id, str) or not 0 < len(id) <= _LONGEST:
        return False
    ids.setdefault(id)
    if len(ids) > _MOST:
        del ids[next(iter(ids))]
    return True


def both(theirs: Iterable[str], ours: Iterable[str]) -> list[str]:
    """Return what was shown in either of two runs that did not know of each other: the last in a snapshot counts."""
    return list(dict.fromkeys((*theirs, *ours)))[-_MOST:]
