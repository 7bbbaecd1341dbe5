"""Text messages as the client will see them: prose going on in the form it came in, and all that goes on, in order.

Knows START/CONTENT/END and chunks. Does not know A2UI: what of a message's text is prose is told to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agui_pipeline.translators._events import AnyEvent, Event, replace
from agui_pipeline.translators.a2ui._lanes import CHUNK_TYPES, Lanes, restated, stream_id
from agui_pipeline.translators.a2ui._reader import Reader


class Output:
    """What goes on to the client, in order.

    It follows the client's chunk streams: where an event of ours, or the absence of one of the source's, makes the
    client take a chunk for another stream's than it is, the chunk gets the fields that say whose it is.
    """

    __slots__ = ("_lanes", "events")

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        """What was added since the last `take`."""
        self._lanes = Lanes()

    def add(self, event: AnyEvent) -> None:
        """Add an event that needs no context."""
        if self._lanes.streams or event.type in CHUNK_TYPES:
            self._lanes.take(event)
        self.events.append(event)

    def add_chunk(self, chunk: AnyEvent, opener: AnyEvent | None, lane: str | None) -> None:
        """Add a chunk that continues, or opens, the stream of `opener` on `lane`."""
        _, stream = self._lanes.continued_by(chunk)
        if stream is None or stream.id != stream_id(opener, chunk.type):
            chunk = restated(chunk, opener, lane)
            self._lanes.take(chunk)
        self.events.append(chunk)

    def extend(self, events: Iterable[AnyEvent]) -> None:
        """Add events that need no context."""
        for event in events:
            self.add(event)

    def take(self) -> Iterable[AnyEvent]:
        """Return what was added since the last time."""
        events = self.events
        if not events:
            return ()
        self.events = []
        return events


class TextMessage:
    """One text message while it is open.

    Attributes:
        id: Its id; None where the source gave none.
        subagent_run_id: Whose it is; None for the parent agent.
        reader: Reads its text; None for a message whose role is not the assistant's, which passes as it is.
        chunked: Whether it came as TEXT_MESSAGE_CHUNK.
        lost_raw_events: How many rawEvent copies could not go on with the text they came with.
    """

    __slots__ = (
        "_excused",
        "_last",
        "_last_is_used",
        "_metadata",
        "_opener",
        "_raw_events",
        "_started",
        "chunked",
        "id",
        "lost_raw_events",
        "reader",
        "subagent_run_id",
    )

    def __init__(
        self, id: str | None, subagent_run_id: str | None, reader: Reader | None, opener: Event | None, *, chunked: bool
    ) -> None:
        self.id = id
        self.subagent_run_id = subagent_run_id
        self.reader = reader
        self.chunked = chunked
        self.lost_raw_events = 0
        self._opener = opener
        self._started = False  # whether any of its text, and so its START, has gone on
        # The latest event with text, and whether a copy of it has gone on, with its metadata and rawEvent.
        self._last: Event | None = None
        self._last_is_used = False
        # Of events before that, whose text is still held or was no prose.
        self._metadata: dict[str, Any] | None = None
        self._raw_events = 0
        self._excused: Event | None = None  # whose rawEvent went with a carrier event's text

    def take(self, event: Event) -> None:
        """Remember an event whose text was read: prose goes on as a copy of it."""
        if self._last is not None and not self._last_is_used:
            self._keep(self._last)
        self._last = event
        self._last_is_used = False

    def take_prose(self, event: Event, out: Output) -> bool:
        """Take an event all of whose text is prose, and send it on as it is; False if there is more to send with it."""
        if not self._started or not self._last_is_used or self._metadata is not None or self._raw_events:
            return False
        self._last = event
        self.send(event, out)
        return True

    def carried(self) -> None:
        """Note that the text so far has gone into a carrier event: its rawEvent copies stood at no prose."""
        self._raw_events = 0
        self._excused = self._last

    def _keep(self, event: Event) -> None:
        metadata = getattr(event, "metadata", None)
        if isinstance(metadata, dict):
            self._metadata = {**(self._metadata or {}), **metadata}
        if event is not self._excused and getattr(event, "raw_event", None) is not None:
            self._raw_events += 1

    def prose(self, text: str, out: Output) -> None:
        """Send a piece of its text on: as the latest event itself, where that is all its text, else as a copy."""
        last = self._last
        if last is None:  # no text without an event that brought it
            return
        if not self._started:
            self._started = True
            if self._opener is not None and not self.chunked:
                out.add(self._opener)
        fields: dict[str, Any] = {}
        if text != last.delta:
            fields["delta"] = text
        if self._last_is_used:
            # One copy of an event carries these; more would double what a client merges or logs.
            fields["metadata"] = fields["raw_event"] = None
        if self._metadata is not None:
            own = None if self._last_is_used else getattr(last, "metadata", None)
            fields["metadata"] = {**self._metadata, **own} if isinstance(own, dict) else self._metadata
            self._metadata = None
        self._last_is_used = True
        self.lost_raw_events += self._raw_events
        self._raw_events = 0
        self.send(replace(last, **fields) if fields else last, out)

    def empty(self, event: Event, out: Output) -> None:
        """Send an event without text on once the message has begun, for what else it says; else keep that."""
        if self._started:
            self.send(event, out)
        else:
            self._keep(event)

    def end(self, event: Event | None, out: Output) -> None:
        """Send on what ends the message at the client if it began there, with metadata that is left over.

        Args:
            event: Its END; None where a chunk stream ends, which has none.
            out: Where to.
        """
        last = self._last
        if last is not None and not self._last_is_used:
            self._keep(last)
            self._last_is_used = True
        if not self._started:
            return
        if event is not None:
            if self._metadata is not None:
                own = getattr(event, "metadata", None)
                event = replace(event, metadata={**self._metadata, **(own if isinstance(own, dict) else {})})
            out.add(event)
        elif last is not None and self._metadata is not None:
            self.send(replace(last, delta=None, raw_event=None, metadata=self._metadata), out)

    def send(self, event: AnyEvent, out: Output) -> None:
        """Send an event with text of this message on as it is."""
        if event.type in CHUNK_TYPES:
            out.add_chunk(event, self._opener, self.subagent_run_id)
        else:
            out.add(event)
