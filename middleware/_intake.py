"""From what sources yield to events: models and views as they are, mappings, JSON and SSE text decoded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ag_ui.core import BaseEvent

from agui_pipeline.translators import AnyEvent, DecodeError, SourceError, SSEDecoder, SSEFrame, WireEvent, decode_event
from agui_pipeline.translators._events import EVENT_CLASSES
from agui_pipeline.translators._sse import decode_frame

EVENT_TYPES: Final[set[type]] = {WireEvent, *EVENT_CLASSES.values()}
"""Classes whose instances are taken as they are. A set, since `isinstance` with pydantic's models costs 0.3 µs."""

_BOM: Final = b"\xef\xbb\xbf"
_FIELDS: Final = (b"data", b"event", b"id", b"retry", _BOM)
_FIELD_END: Final = re.compile(rb"[:\r\n]")
_EXCERPT: Final = 40


class Intake:
    """Turns the items of one run's source that are no events yet into events. Cut SSE text is put together again."""

    __slots__ = ("_sse",)

    def __init__(self) -> None:
        self._sse: SSEDecoder | None = None

    def take(self, item: Any) -> Iterable[AnyEvent]:
        """Give the events in an item whose class is not in `EVENT_TYPES`.

        Raises:
            SourceError: It is no event, or one of those in it is none: raised after the events before it, while the
                result is iterated.
        """
        if isinstance(item, BaseEvent):
            EVENT_TYPES.add(type(item))
            return (item,)
        if isinstance(item, str | bytes | bytearray | memoryview):
            return self._text(item.encode(errors="surrogatepass") if isinstance(item, str) else bytes(item))
        try:
            if isinstance(item, Mapping):
                return (decode_event(item),)
            if isinstance(item, SSEFrame):
                return () if item.data is None else (decode_frame(item),)
        except DecodeError as exc:
            raise SourceError(f"a source yielded what is no event: {exc}") from exc
        if isinstance(getattr(item, "type", None), str) and not isinstance(item, type):
            return (item,)
        raise SourceError(
            "a source must yield events (ag_ui.core models, mappings, JSON or SSE text); "
            f"got {type(item).__name__}" + (": is it awaited?" if hasattr(item, "__await__") else "")
        )

    def _text(self, data: bytes) -> Iterator[AnyEvent]:
        if self._sse is None:
            start = data.removeprefix(_BOM).lstrip()
            if not start:  # says nothing yet of what is to come
                return
            if start[:1] == b"{":
                yield from _decoded(data)
                return
            if not _begins_sse(start):
                raise SourceError(
                    "a source yielded text that is neither a JSON event nor SSE: "
                    f"{start[:_EXCERPT].decode(errors='replace')!r}"
                )
            self._sse = SSEDecoder()
        for frame in self._sse.feed(data):
            if frame.data is not None:
                yield from _decoded(frame)

    def flush(self) -> Iterator[AnyEvent]:
        """Give the event in SSE text that ended without a blank line.

        Raises:
            SourceError: What is left is no event.
        """
        if self._sse is not None:
            for frame in self._sse.flush():
                if frame.data is not None:
                    yield from _decoded(frame, "a source ended in the middle of an event")


def _begins_sse(start: bytes) -> bool:
    """Whether text may be the start of an event stream, cut anywhere.

    Asked because readers skip lines that they do not know: a source that yields bare text, such as a model's tokens,
    would give a run without events and without an error.
    """
    name, *rest = _FIELD_END.split(start, 1)
    return name in (b"", *_FIELDS) if rest else any(field.startswith(name) for field in _FIELDS)


def _decoded(item: bytes | SSEFrame, problem: str = "a source yielded what is no event") -> Iterator[AnyEvent]:
    try:
        event = decode_frame(item) if isinstance(item, SSEFrame) else decode_event(item)
    except DecodeError as exc:
        raise SourceError(f"{problem}: {exc}") from exc
    yield event
