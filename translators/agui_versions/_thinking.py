"""Reasoning for clients that knew it as THINKING_*: without ids, one span and one message at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agui_pipeline.translators._events import AnyEvent, replace
from agui_pipeline.translators.agui_versions._queue import OneAtATime
from agui_pipeline.translators.agui_versions._rule import BOUNDS, Rule, Setting, made, text_field

_NO_ID: Final = ""
"""The id of what an agent itself sends as THINKING_*."""


def _end_of(_start: AnyEvent) -> AnyEvent:
    return made("THINKING_TEXT_MESSAGE_END")


class Thinking(Rule):
    """Makes THINKING_* of REASONING_*: messages follow each other, spans that overlap are one."""

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._spans: set[str] = set()
        self._shown = False
        self._messages = OneAtATime(_end_of, on_full=lambda _: setting.losses.note("legacy.queue"))

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        name = event.type
        if name in BOUNDS:
            return (*self._close(), event)
        if name.startswith("REASONING"):
            self._losses.note("legacy.thinking", name)
        id = _key(event)
        match name.removeprefix("REASONING_").removeprefix("THINKING_").removeprefix("TEXT_"):
            case "START":
                self._spans.add(id)
                return self._show(event)
            case "END":
                self._spans.discard(id)
                return self._settle()
            case "MESSAGE_START":
                started = self._messages.start(id, _as(event, "THINKING_TEXT_MESSAGE_START"))
                return (*self._show(None), *started)
            case "MESSAGE_CONTENT":
                return self._messages.more(id, _as(event, "THINKING_TEXT_MESSAGE_CONTENT"))
            case _:
                return (*self._messages.end(id, _as(event, "THINKING_TEXT_MESSAGE_END")), *self._settle())

    def end(self, *, failed: bool) -> Iterable[AnyEvent]:  # noqa: ARG002 - the same for every end
        return self._close()

    def _show(self, span: AnyEvent | None) -> list[AnyEvent]:
        if self._shown:
            return []
        self._shown = True
        return [made("THINKING_START") if span is None else _as(span, "THINKING_START")]

    def _settle(self) -> list[AnyEvent]:
        if not self._shown or self._spans or not self._messages.idle:
            return []
        self._shown = False
        return [made("THINKING_END")]

    def _close(self) -> list[AnyEvent]:
        out = self._messages.drain()
        self._spans.clear()
        return out + self._settle()


def _key(event: AnyEvent) -> str:
    return text_field(event, "message_id", "messageId") or _NO_ID


def _as(event: AnyEvent, name: str) -> AnyEvent:
    return event if event.type == name else replace(event, type=name, message_id=None, role=None)
