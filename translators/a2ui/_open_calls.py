"""The tool calls of a run that carry A2UI, while they are open.

Knows how arguments are collected from events of both kinds (START/ARGS/END, chunks). Does not know what they hold
(`_tools.py`), nor what ends a stream of chunks (`_lanes.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from io import StringIO
from typing import Final

from agui_pipeline.translators._events import Event
from agui_pipeline.translators.a2ui._lanes import subagent_of

MAX_CALL_MESSAGES: Final = 8
"""Arguments may be as long as this many of the longest messages."""


class ToolCall:
    """One call while it is open.

    Attributes:
        id: Its id.
        subagent_run_id: Whose it is; None for the parent agent.
        max_chars: How long its arguments may be.
        size: How long they are, held or not.
        over: Whether they are too long, and forgotten.
    """

    __slots__ = ("_text", "id", "max_chars", "over", "size", "subagent_run_id")

    def __init__(self, id: str, subagent_run_id: str | None, max_chars: int) -> None:
        self.id = id
        self.subagent_run_id = subagent_run_id
        self.over = False
        self.max_chars = max_chars
        self._text = StringIO()
        self.size = 0

    def add(self, delta: object) -> None:
        """Take the next piece of the arguments."""
        if not isinstance(delta, str):
            return
        self.size += len(delta)
        if self.size <= self.max_chars:
            self._text.write(delta)
        elif not self.over:
            self.over = True
            self._text = StringIO()

    @property
    def arguments(self) -> str:
        """What came so far."""
        return self._text.getvalue()


class OpenCalls:
    """The open calls of the tools that carry A2UI.

    Args:
        tools: The names of the tools.
        max_chars: The longest message.
    """

    def __init__(self, tools: Collection[str], max_chars: int) -> None:
        self._tools: Final = tools
        self._max_chars: Final = MAX_CALL_MESSAGES * max_chars
        self._calls: dict[str, ToolCall] = {}

    def take(self, event: Event, call_id: str | None, *, opens: bool) -> None:
        """Take an event of a call; `opens`: it may be the first."""
        if call_id is None:
            return
        call = self._calls.get(call_id)
        if call is None:
            name = getattr(event, "tool_call_name", None)
            if not (opens and isinstance(name, str) and name in self._tools):
                return
            call = self._calls[call_id] = ToolCall(call_id, subagent_of(event), self._max_chars)
        call.add(getattr(event, "delta", None))

    def end(self, call_id: str | None) -> ToolCall | None:
        """End a call; None where it is none of these."""
        return None if call_id is None else self._calls.pop(call_id, None)

    def end_all(self) -> list[ToolCall]:
        """End all, the oldest first."""
        calls = list(self._calls.values())
        self._calls.clear()
        return calls
