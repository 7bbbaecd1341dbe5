"""Whether a stream is one that the official client accepts, with answers that a person can act on.

The rules are the guard's own (`lifecycle.py`, `_event_shapes.py`); `adapters/testing.py` ships this to users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from agui_pipeline.translators._diagnostics import Diagnostic
from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._errors import DecodeError
from agui_pipeline.translators._events import AnyEvent, WireEvent, decode_event
from agui_pipeline.translators._guard import GuardTranslator
from agui_pipeline.translators._sse import SSEFrame

_SHOWN: Final = 5
"""Problems that a message names: those after the first often follow from it."""
_BEFORE: Final = 6
"""Events before the first problem that a message shows."""


class Problem(NamedTuple):
    """Something that the client would refuse.

    Attributes:
        place: The index of the event in the stream; the number of events for the end of the stream.
        diagnostic: What is wrong with it.
    """

    place: int
    diagnostic: Diagnostic


def problems_of(events: Iterable[Any], *, complete: bool = True) -> list[Problem]:
    """Return what the official client would refuse in a stream, in order. See `assert_valid_stream`."""
    found: list[Problem] = []
    index = 0
    guard = GuardTranslator("", "", None, lambda diagnostic: found.append(Problem(index, diagnostic)), mode="report")
    for event in _wire(events):
        for _ in guard.feed(event):
            pass
        index += 1
    if complete:
        for _ in guard.flush():
            pass
    return found


def assert_valid_stream(events: Iterable[Any], *, complete: bool = True) -> None:
    """Assert that a stream is one that `@ag-ui/client` 1.0 accepts.

    Checked are the order of events, per run and per owner, and the fields that the protocol describes, as they stand
    on the wire. Not checked, as the client does not: whether ids match the input, whether a tool result belongs to a
    call, whether arguments are JSON, whether patches apply. Unknown event types and fields are fine: the client drops
    them. The problems after the first one are those that are left when it is repaired.

    Args:
        events: What a source or a pipeline gave: models, views, mappings, JSON text or SSE frames.
        complete: Whether the stream must end with RUN_FINISHED or RUN_ERROR. (The client takes a truncated stream for
            a finished one; people should not.)

    Raises:
        AssertionError: Names each event that the client would refuse, why, and what came before.
        DecodeError: An item is no event.

    Example:
        >>> assert_valid_stream(  # doctest: +ELLIPSIS
        ...     [
        ...         {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        ...         {"type": "STEP_STARTED", "stepName": "plan"},
        ...         {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
        ...     ]
        ... )
        Traceback (most recent call last):
            ...
        AssertionError: @ag-ui/client 1.0 would refuse this stream:
          event 2: RUN_FINISHED: still open: 1 of kind step: ... closed (guard.left-open)
        The events up to there:
             0 RUN_STARTED
             1 STEP_STARTED ('plan')
          -> 2 RUN_FINISHED
    """
    stream = list(_wire(events))
    found = problems_of(stream, complete=complete)
    if found:
        raise AssertionError(_report(stream, found))


def _wire(events: Iterable[Any]) -> Iterable[WireEvent]:
    """Give events as they stand on the wire: what a model's encoder leaves out, the client does not see."""
    for item in events:
        if isinstance(item, WireEvent):
            yield item
        elif isinstance(item, SSEFrame):
            if item.data is not None:
                yield decode_event(item.data)
        elif isinstance(item, Mapping | str | bytes):
            yield decode_event(item)
        elif isinstance(getattr(item, "type", None), str):
            yield decode_event(encode_event(item))
        else:
            raise DecodeError(f"a stream is made of events; got {type(item).__name__}")


def _report(stream: list[WireEvent], found: list[Problem]) -> str:
    lines = ["@ag-ui/client 1.0 would refuse this stream:"]
    for index, diagnostic in found[:_SHOWN]:
        place = f"event {index}" if index < len(stream) else "at its end"
        name = f"{diagnostic.event_type}{_quoted(diagnostic.message_id)}: " if diagnostic.event_type else ""
        words = diagnostic.message.removeprefix(f"{diagnostic.event_type}: ")
        lines.append(f"  {place}: {name}{words} ({diagnostic.code})")
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    first = min(found[0].place, len(stream) - 1)
    lines.append("The events up to there:")
    start = max(0, first - _BEFORE)
    if start:
        lines.append("     …")
    for index in range(start, first + 1):
        event = stream[index]
        arrow = "->" if index == found[0].place else "  "
        lines.append(f"  {arrow} {index} {event.type}{_quoted(_id_in(event))}")
    return "\n".join(lines)


def _id_in(event: AnyEvent) -> object:
    data = event.data if isinstance(event, WireEvent) else {}
    names = ("messageId", "toolCallId", "stepName", "entityId", "subagentRunId")
    return next((data[name] for name in names if data.get(name) is not None), None)


def _quoted(id: object) -> str:
    return "" if id is None else f" ({id!r})"
