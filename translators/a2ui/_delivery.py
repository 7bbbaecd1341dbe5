"""From what a reader found to events: carriers, surfaces that exist already, prose, and the end of the run.

Knows how each piece of a message goes on. Does not know which events bring text (`_translator.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ag_ui.core import RunErrorEvent

from agui_pipeline.translators._events import AnyEvent, Event
from agui_pipeline.translators.a2ui._activity import ActivityCarrier, FollowingCarrier, deletion_of
from agui_pipeline.translators.a2ui._carriers import A2UIContext, Carrier, CustomCarrier, FunctionCarrier, RawCarrier
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._envelope import Envelope, unchecked_envelope
from agui_pipeline.translators.a2ui._messages import Output, TextMessage
from agui_pipeline.translators.a2ui._open_calls import ToolCall
from agui_pipeline.translators.a2ui._reader import Failure, Loose, Piece
from agui_pipeline.translators.a2ui._run_surfaces import RunSurfaces
from agui_pipeline.translators.a2ui._settings import A2UISettings

ERROR_CODE: Final = "a2ui_invalid"
"""The `code` of the RUN_ERROR that ``on_invalid="error"`` makes."""


class Delivery:
    """Makes the events of one run.

    Attributes:
        failed: Whether a RUN_ERROR was made: by the protocol nothing but a new run may follow it.
        run_id: The run, for carriers.
    """

    def __init__(
        self,
        settings: A2UISettings,
        out: Output,
        report: Reporter,
        surfaces: RunSurfaces | None,
        *,
        thread_id: str,
        run_id: str,
    ) -> None:
        self._out = out
        self._reused = settings.reused
        self._aliases = settings.aliases
        self._report = report
        self._surfaces = surfaces
        self._thread_id = thread_id
        self.run_id = run_id
        self.failed = False
        self._raw = RawCarrier(settings.source)
        self._carry = self._carrier(settings)

    def _carrier(self, settings: A2UISettings) -> Carrier:
        carrier: Carrier
        if settings.carrier == "raw":
            carrier = self._raw
        elif settings.carrier == "custom":
            carrier = CustomCarrier(settings.custom_name)
        elif settings.carrier == "activity":
            if self._surfaces is None:
                raise TypeError("the activity carrier needs a registry")
            return ActivityCarrier(self._surfaces, self._raw, self._report)
        else:
            carrier = FunctionCarrier(settings.carrier)
        return carrier if self._surfaces is None else FollowingCarrier(self._surfaces, carrier)

    def pieces(self, message: TextMessage, pieces: Iterable[Piece], event: Event | None) -> None:
        """Send the pieces of a message on, up to one that ends the run.

        Args:
            message: The message they stand in.
            pieces: What its reader found.
            event: The event that completed them; None at the end of the stream.
        """
        for piece in pieces:
            if isinstance(piece, str):
                message.prose(piece, self._out)
                continue
            message.carried()
            self._piece(piece, message, event)
            if self.failed:
                return

    def call_pieces(self, call: ToolCall, pieces: Iterable[Piece], event: Event | None) -> None:
        """Send the pieces of a tool call's arguments on, up to one that ends the run; see `pieces`."""
        for piece in pieces:
            if not isinstance(piece, str):
                self._piece(piece, call, event)
            if self.failed:
                return

    def _piece(self, piece: Envelope | Loose | Failure, origin: TextMessage | ToolCall, event: Event | None) -> None:
        if isinstance(piece, Envelope):
            self._deliver(piece, origin, event)
        elif isinstance(piece, Loose):
            loose = unchecked_envelope(piece.value)
            self._out.extend(self._raw(loose, self._context(loose, origin, event)))
        else:
            self._out.add(self._failure(piece, event))
            self.failed = True

    def _deliver(self, envelope: Envelope, message: TextMessage | ToolCall, event: Event | None) -> None:
        if self._aliases:
            message_for_client = self._aliases.outgoing(envelope.kind, envelope.message)
            if message_for_client is not envelope.message:
                envelope = replace(envelope, message=message_for_client)
        known = None if self._surfaces is None else self._surfaces.recreated(envelope)
        if known is not None and envelope.surface_id is not None:
            text = f"createSurface for a surface that exists (reused={self._reused!r})"
            detail = {"surface_id": envelope.surface_id}
            self._report("a2ui.surface-reused", text, message_id=message.id, detail=detail)
            if self._reused == "drop":
                return
            if self._reused == "recreate":
                deletion = deletion_of(known, envelope.surface_id)
                self._out.extend(self._carry(deletion, self._context(deletion, message, event)))
        self._out.extend(self._carry(envelope, self._context(envelope, message, event)))

    def _context(self, envelope: Envelope, origin: TextMessage | ToolCall, event: Event | None) -> A2UIContext:
        called = isinstance(origin, ToolCall)
        return A2UIContext(
            kind=envelope.kind,
            version=envelope.version,
            surface_id=envelope.surface_id,
            message_id=None if called else origin.id,
            thread_id=self._thread_id,
            run_id=self.run_id,
            subagent_run_id=origin.subagent_run_id,
            timestamp=_timestamp(event),
            tool_call_id=origin.id if called else None,
        )

    def _failure(self, failure: Failure, event: Event | None) -> AnyEvent:
        return RunErrorEvent(
            message=f"The agent's answer is not valid A2UI: {failure.reason}.",
            code=ERROR_CODE,
            timestamp=_timestamp(event),
        )


def _timestamp(event: Event | None) -> int | None:
    """Return an event's timestamp if a client takes it: fractions of a millisecond are fatal there."""
    timestamp = getattr(event, "timestamp", None)
    return timestamp if type(timestamp) is int else None
