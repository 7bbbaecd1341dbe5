"""Carriers that follow surfaces: the registry looking on, and cumulative ACTIVITY_SNAPSHOTs.

Knows when a client has something new to see, and what a snapshot must hold for the renderers that read it
(`Surface.operations`). Does not know what messages do to surfaces (`_run_surfaces.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ag_ui.core import ActivitySnapshotEvent

from agui_pipeline.translators._events import AnyEvent
from agui_pipeline.translators.a2ui._carriers import A2UIContext, Carrier, attributed
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._envelope import SURFACE_KINDS, Envelope, version_of
from agui_pipeline.translators.a2ui._run_surfaces import Change, RunSurfaces
from agui_pipeline.translators.a2ui._surface import Surface

ACTIVITY_TYPE: Final = "a2ui-surface"
OPERATIONS_KEY: Final = "a2ui_operations"


class FollowingCarrier:
    """Another carrier, with the registry looking on."""

    def __init__(self, surfaces: RunSurfaces, carrier: Carrier) -> None:
        self._surfaces = surfaces
        self._carrier = carrier

    def __call__(self, envelope: Envelope, context: A2UIContext) -> Iterable[AnyEvent]:
        if envelope.kind in SURFACE_KINDS:
            self._surfaces.follow(envelope, context)
            self._surfaces.commit(envelope)
        return self._carrier(envelope, context)


class ActivityCarrier:
    """ACTIVITY_SNAPSHOTs that each hold the whole surface, as the official middleware sends them.

    One activity a surface, whose message id stays; nothing before the surface can be shown; nothing when a message
    changes nothing. A deleted surface's last snapshot holds the deleteSurface alone: every renderer applies that to
    what it shows, and what was deleted does not stay in the client's history.

    Args:
        surfaces: The surfaces of the run.
        fallback: Carries what is about no surface (v1.0 function calls).
        report: The diagnostics of the run.
    """

    def __init__(self, surfaces: RunSurfaces, fallback: Carrier, report: Reporter) -> None:
        self._surfaces = surfaces
        self._fallback = fallback
        self._report = report

    def __call__(self, envelope: Envelope, context: A2UIContext) -> Iterable[AnyEvent]:
        if envelope.surface_id is None or envelope.kind not in SURFACE_KINDS:
            message = f"{envelope.kind} is no part of a surface's activity"
            self._report("a2ui.no-surface", message, message_id=context.message_id)
            return self._fallback(envelope, context)
        surface, change = self._surfaces.follow(envelope, context)
        operations = self._operations(surface, change, envelope.surface_id)
        self._surfaces.commit(envelope)
        if operations is None or surface.activity_id is None:
            return ()
        event = ActivitySnapshotEvent(
            message_id=surface.activity_id,
            activity_type=ACTIVITY_TYPE,
            content={OPERATIONS_KEY: operations},
            replace=True,
            timestamp=context.timestamp,
        )
        return (attributed(event, context.subagent_run_id),)

    def _operations(self, surface: Surface, change: Change, surface_id: str) -> list[dict[str, Any]] | None:
        """Return what a snapshot must hold; None where a client has nothing new to see."""
        run = self._surfaces.run
        if change == "deleted":
            return None if surface.shown_in is None else [surface.deletion(surface_id)]
        if change == "refused" or not surface.complete:
            return None
        if change == "same" and surface.shown_in is run:  # what a run repeats of an earlier one is shown again, once
            return None
        return self._surfaces.thread.show(surface_id, surface, run)


def deletion_of(surface: Surface, surface_id: str) -> Envelope:
    """Return the message that deletes a surface, to stand before its creation anew."""
    message = surface.deletion(surface_id)
    return Envelope("deleteSurface", version_of(message), surface_id, message)
