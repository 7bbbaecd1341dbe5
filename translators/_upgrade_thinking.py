"""Thinking as agents before 1.0 tell it, as the reasoning of 1.0.

Knows that THINKING_* events name nothing: there is one span and one message at a time, and what an event belongs to is
what was opened last. Does not know about any other event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agui_pipeline.translators._events import AnyEvent, decode_event, replace
from agui_pipeline.translators._owners import field_of, owner_of

TYPES: Final[Mapping[str, str]] = {
    "THINKING_START": "REASONING_START",
    "THINKING_TEXT_MESSAGE_START": "REASONING_MESSAGE_START",
    "THINKING_TEXT_MESSAGE_CONTENT": "REASONING_MESSAGE_CONTENT",
    "THINKING_TEXT_MESSAGE_END": "REASONING_MESSAGE_END",
    "THINKING_END": "REASONING_END",
}
"""What each retired type became."""


class _Open(NamedTuple):
    """A span or a message that is open."""

    id: str
    tag: str | None
    """The `subagentRunId` of what opened it."""


class Thinking:
    """The thinking of one run.

    Args:
        new_id: Makes the id of a span or a message.
        note: Is told what was converted, ``("thinking", words, event)``, and what had to be put right on the way,
            ``("thinking-order", words, event)``.
    """

    def __init__(self, new_id: Callable[[], str], note: Callable[[str, str, AnyEvent], None]) -> None:
        self._new_id = new_id
        self._note = note
        self._span: _Open | None = None
        self._message: _Open | None = None

    def take(self, event: AnyEvent) -> Sequence[AnyEvent]:
        """Return the reasoning that an event of a type in `TYPES` means."""
        match str.__str__(event.type):
            case "THINKING_START":
                return self._start_span(event)
            case "THINKING_TEXT_MESSAGE_START":
                return self._start_message(event)
            case "THINKING_TEXT_MESSAGE_CONTENT":
                return self._content(event)
            case "THINKING_TEXT_MESSAGE_END":
                return self._end_message(event)
            case _:
                return self._end_span(event)

    def close(self, event: AnyEvent) -> list[AnyEvent]:
        """Return the ends of what is open before an event that ends the run: the client refuses that with either."""
        return [*self._close_message(event), *self._close_span(event)]

    def forget(self) -> None:
        """Start afresh, with another run of the same stream."""
        self._span = self._message = None

    def _start_span(self, event: AnyEvent) -> Sequence[AnyEvent]:
        closing = self.close(event)
        self._span = _Open(self._new_id(), owner_of(event))
        title = field_of(event, "title", "title")
        changes: dict[str, Any] = {}
        if title is not None:
            # The new event has no such field, and the client strips what it does not know.
            metadata = field_of(event, "metadata", "metadata")
            changes = {
                "title": None,
                "metadata": {**(metadata if isinstance(metadata, Mapping) else {}), "title": title},
            }
        self._note("thinking", "a span", event)
        return [*closing, _renamed(event, self._span.id, **changes)]

    def _start_message(self, event: AnyEvent) -> Sequence[AnyEvent]:
        closing = self._close_message(event)
        self._message = _Open(self._new_id(), owner_of(event))
        self._note("thinking", "a message", event)
        return [*closing, _renamed(event, self._message.id, role="reasoning")]

    def _content(self, event: AnyEvent) -> Sequence[AnyEvent]:
        opening: list[AnyEvent] = []
        if self._message is None:
            self._note("thinking-order", "text without a start got one", event)
            self._message = _Open(self._new_id(), owner_of(event))
            opening.append(_made("REASONING_MESSAGE_START", self._message, role="reasoning"))
        return [*opening, _renamed(event, self._message.id)]

    def _end_message(self, event: AnyEvent) -> Sequence[AnyEvent]:
        ended, self._message = self._message, None
        if ended is None:
            self._note("thinking-order", "the end of a message that is not open was left out", event)
            return ()
        return (_renamed(event, ended.id),)

    def _end_span(self, event: AnyEvent) -> Sequence[AnyEvent]:
        closing = self._close_message(event)
        ended, self._span = self._span, None
        if ended is None:
            self._note("thinking-order", "the end of a span that is not open was left out", event)
            return closing
        return [*closing, _renamed(event, ended.id)]

    def _close_message(self, event: AnyEvent) -> list[AnyEvent]:
        left, self._message = self._message, None
        if left is None:
            return []
        self._note("thinking-order", "a message that was still open was ended", event)
        return [_made("REASONING_MESSAGE_END", left)]

    def _close_span(self, event: AnyEvent) -> list[AnyEvent]:
        left, self._span = self._span, None
        if left is None:
            return []
        self._note("thinking-order", "a span that was still open was ended", event)
        return [_made("REASONING_END", left)]


def _renamed(event: AnyEvent, id: str, **changes: Any) -> AnyEvent:
    return replace(event, type=TYPES[str.__str__(event.type)], message_id=id, **changes)


def _made(name: str, part: _Open, **fields: Any) -> AnyEvent:
    tag = {} if part.tag is None else {"subagentRunId": part.tag}
    return decode_event({"type": name, "messageId": part.id, **fields, **tag})
