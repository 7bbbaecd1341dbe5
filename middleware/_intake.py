"""From what sources yield to events: models and views as they are, mappings, JSON and SSE text decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ag_ui.core import BaseEvent

from agui_pipeline.translators import AnyEvent, DecodeError, SourceError, SSEDecoder, SSEFrame, WireEvent, decode_event
from agui_pipeline.translators._events import EVENT_CLASSES
from agui_pipeline.translators._sse import decode_frame

EVENT_TYPES: Final[set[type]] = {WireEvent, *EVENT_CLASSES.values()}
"""Classes whose instances are taken as they are. A set, since `isinstance` with pydantic's models costs 0.3 µs."""


class Intake:
    """Turns the items of one run's source that are no events yet into events. Cut SSE text is put together again."""

    __slots__ = ("_sse",)

    def __init__(self) -> None:
        self._sse: SSEDecoder | None = None

    def take(self, item: Any) -> Sequence[AnyEvent]:
        """Return the events in an item whose class is not in `EVENT_TYPES`.

        Raises:
            SourceError: It is no event; says what it is.
        """
        if isinstance(item, BaseEvent):
            EVENT_TYPES.add(type(item))
            return (item,)
        try:
            if isinstance(item, Mapping):
                return (decode_event(item),)
            if isinstance(item, SSEFrame):
                return () if item.data is None else (decode_frame(item),)
            if isinstance(item, str | bytes | bytearray | memoryview):
                return self._text(item.encode(errors="replace") if isinstance(item, str) else bytes(item))
        except DecodeError as exc:
            raise SourceError(f"a source yielded what is no event: {exc}") from exc
        if isinstance(getattr(item, "type", None), str) and not isinstance(item, type):
            return (item,)
        raise SourceError(
            "a source must yield events (ag_ui.core models, mappings, JSON or SSE text); "
            f"got {type(item).__name__}" + (": is it awaited?" if hasattr(item, "__await__") else "")
        )

    def _text(self, data: bytes) -> Sequence[AnyEvent]:
        if self._sse is None:
            if data.lstrip()[:1] == b"{":
                return (decode_event(data),)
            self._sse = SSEDecoder()
        return self._decoded(self._sse.feed(data))

    def flush(self) -> Sequence[AnyEvent]:
        """Return the event in SSE text that ended without a blank line.

        Raises:
            SourceError: What is left is no event.
        """
        if self._sse is None:
            return ()
        try:
            return self._decoded(self._sse.flush())
        except DecodeError as exc:
            raise SourceError(f"a source ended in the middle of an event: {exc}") from exc

    def _decoded(self, frames: Sequence[SSEFrame]) -> Sequence[AnyEvent]:
        return [decode_frame(frame) for frame in frames if frame.data is not None]
