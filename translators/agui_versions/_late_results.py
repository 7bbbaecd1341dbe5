"""Tool results that nothing follows: 0.0.30 tells its application of a message when the next one changes.

Knows what that client has after a stream of one part at a time, which this must be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agui_pipeline.translators._client_view import ClientView
from agui_pipeline.translators._events import AnyEvent, replace
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.agui_versions._rule import TERMINALS, Rule, Setting, made

_TELLS: Final = frozenset({"TEXT_MESSAGE_START", "TOOL_CALL_START", "MESSAGES_SNAPSHOT"})
_DELTAS: Final = frozenset({"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS"})
_ROLES: Final = ("developer", "system", "user", "assistant", "tool")

TYPES: Final = _TELLS | _DELTAS | TERMINALS | {"TOOL_CALL_RESULT"}
"""What changes the client's messages, and what ends the run."""


class LateResults(Rule):
    """Puts a snapshot of the client's own messages behind results that would be forgotten."""

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._view = ClientView(setting.messages, on_diagnostic=lambda _: None)
        self._late = False
        # Joined when the part is over: one by one they would be copied again with every delta.
        self._open: AnyEvent | None = None
        self._deltas: list[str] = []

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        name = event.type
        if name in _DELTAS:
            self._open = event
            self._deltas.append(str(field_of(event, "delta", "delta")))
            return (event,)
        self._take_open()
        if name in TERMINALS:
            return (*self.end(failed=True), event)
        self._late = name == "TOOL_CALL_RESULT"
        self._view.apply(event)
        return (event,)

    def end(self, *, failed: bool) -> Iterable[AnyEvent]:  # noqa: ARG002 - the same for every end
        self._take_open()
        late, self._late = self._late, False
        if not late:
            return ()
        if not all(map(_is_plain, self._view.messages)):  # a later client's, which needs no snapshot, and has more
            self._losses.note("legacy.late-result", "TOOL_CALL_RESULT")
            return ()
        return (made("MESSAGES_SNAPSHOT", messages=self._view.messages),)

    def _take_open(self) -> None:
        if self._open is not None:
            self._view.apply(replace(self._open, delta="".join(self._deltas)))
            self._open = None
            self._deltas.clear()


def _is_plain(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return message["role"] in _ROLES and (isinstance(content, str) or (content is None and "toolCalls" in message))
