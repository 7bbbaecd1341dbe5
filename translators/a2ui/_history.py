"""The text of messages in a MESSAGES_SNAPSHOT, as a client was shown it: without the A2UI messages in it.

An agent's history holds what its model wrote. Sent on as it is, a snapshot at the end of a run would turn a bubble of
prose back into JSON. Knows messages of both kinds (models, JSON objects); does not know streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from agui_pipeline.translators._events import AnyEvent, Event, replace
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._envelope import Envelope
from agui_pipeline.translators.a2ui._judge import Judge
from agui_pipeline.translators.a2ui._reader import Reader, ReaderFactory
from agui_pipeline.translators.a2ui._repairs import Repairs
from agui_pipeline.translators.a2ui._settings import A2UISettings


def without_records(event: Event, settings: A2UISettings) -> tuple[AnyEvent, int]:
    """Leave the A2UI messages out of the assistant's text in a snapshot.

    Args:
        event: A MESSAGES_SNAPSHOT.
        settings: How they were read when they were streamed.

    Returns:
        The event, itself where there was none, and how many there were.
    """
    messages = getattr(event, "messages", None)
    if not isinstance(messages, list):
        return event, 0
    new_reader = _quiet_readers(settings)
    count = 0
    changed: list[Any] = []
    for message in messages:
        text = _text_of(message)
        if text is None:
            changed.append(message)
            continue
        reader = new_reader()
        pieces = [*reader.read(reader.scan(text)), *reader.flush()]
        found = sum(isinstance(piece, Envelope) for piece in pieces)
        count += found
        prose = "".join(piece for piece in pieces if isinstance(piece, str))
        changed.append(_with_text(message, prose) if found else message)
    return (replace(event, messages=changed) if count else event), count


def _quiet_readers(settings: A2UISettings) -> Callable[[], Reader]:
    """Return what makes the readers of a history.

    They report nothing: what they read was reported on when it was streamed. Nor do they ask catalogs again: a history
    may be long.
    """
    nobody = Reporter(lambda _diagnostic: None)
    validates = settings.validate != "off"
    judge = Judge(settings.limits, nobody, validates=validates, versions=settings.versions)
    make = ReaderFactory(
        framing=settings.framing,
        on_invalid="text",
        max_chars=settings.limits.max_message_bytes,
        max_depth=settings.limits.max_depth,
        judge=judge,
        on_broken=judge.broken,
        on_dropped=judge.dropped,
        repairs=Repairs(settings.repairer, settings.limits, nobody, validates=validates),
    )

    def new_reader() -> Reader:
        judge.restart()
        return make(None)

    return new_reader


def _text_of(message: Any) -> str | None:
    """Return an assistant message's text where it may hold a record."""
    if isinstance(message, Mapping):
        role, content = message.get("role"), message.get("content")
    else:
        role, content = getattr(message, "role", None), getattr(message, "content", None)
    return content if role == "assistant" and isinstance(content, str) and "{" in content else None


def _with_text(message: Any, text: str) -> Any:
    if isinstance(message, BaseModel):
        return message.model_copy(update={"content": text})
    return {**message, "content": text}
