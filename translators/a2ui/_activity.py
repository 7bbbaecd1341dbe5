"""Following surfaces through a run, and the carrier that needs it: cumulative ACTIVITY_SNAPSHOTs.

Knows what one run has said about the surfaces of its thread, when a client has something new to see, and what a
snapshot must hold for the renderers that read it (`Surface.operations`). Does not know text or scanners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

from ag_ui.core import ActivitySnapshotEvent

from agui_pipeline.translators._events import AnyEvent
from agui_pipeline.translators.a2ui._carriers import A2UIContext, Carrier, attributed
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._envelope import CREATES, FALLBACK_VERSION, SURFACE_KINDS, Envelope, version_of
from agui_pipeline.translators.a2ui._surface import MAX_SURFACE_SIZE, Surface
from agui_pipeline.translators.a2ui._surfaces import ThreadSurfaces

ACTIVITY_TYPE: Final = "a2ui-surface"
OPERATIONS_KEY: Final = "a2ui_operations"

Change: TypeAlias = Literal["changed", "same", "deleted", "refused"]
"""What a message did to its surface; `refused`: nothing, and a diagnostic says why."""


class RunSurfaces:
    """What one run says about the surfaces of its thread."""

    def __init__(self, surfaces: Callable[[], ThreadSurfaces], report: Reporter) -> None:
        self._find: Final = surfaces
        self._thread: ThreadSurfaces | None = None
        self._report = report
        self.run: object = object()
        """Marks data and snapshots as this run's."""
        self._touched: dict[str, Surface] = {}
        # The first surface that each text message created: further ones get longer activity ids.
        self._firsts: dict[str, str] = {}

    @property
    def thread(self) -> ThreadSurfaces:
        """The surfaces of the thread, looked up when the first message comes: most runs have none."""
        if self._thread is None:
            self._thread = self._find()
        return self._thread

    def recreated(self, envelope: Envelope) -> Surface | None:
        """Return the surface that a createSurface creates a second time, None where it does not."""
        if envelope.kind != "createSurface" or envelope.surface_id is None:
            return None
        surface = self.thread.get(envelope.surface_id)
        return None if surface is None or surface.create is None else surface

    def follow(self, envelope: Envelope, context: A2UIContext) -> tuple[Surface, Change]:
        """Take one message about a surface; say what it did to which."""
        surface_id = envelope.surface_id or ""
        flat = envelope.version != FALLBACK_VERSION
        if envelope.kind == "deleteSurface":
            return self._delete(surface_id, context)
        surface, forgotten = self.thread.open(surface_id, flat=flat)
        if forgotten is not None:
            message = "the registry's max_surfaces was passed: a thread's least recently used surface was forgotten"
            self._report(
                "a2ui.surface-forgotten", message, message_id=context.message_id, detail={"surface_id": forgotten}
            )
        self._touched[surface_id] = surface
        creates = envelope.kind in CREATES
        if flat != surface.flat and not creates:
            message = f"a message of {envelope.version} for a surface of another A2UI generation"
            self._report("a2ui.version-mix", message, message_id=context.message_id, detail={"surface_id": surface_id})
            return surface, "refused"
        if surface.size + envelope.size > MAX_SURFACE_SIZE and envelope.kind != "createSurface":
            message = f"a surface may come to {MAX_SURFACE_SIZE} characters of JSON: a message past that is forgotten"
            detail = {
                "limit": "surface_size",
                "maximum": MAX_SURFACE_SIZE,
                "size": surface.size + envelope.size,
                "surface_id": surface_id,
            }
            self._report("a2ui.limit", message, message_id=context.message_id, detail=detail)
            return surface, "refused"
        changed, lost = self.thread.apply(surface, envelope, self.run)
        if lost:
            message = f"the registry's max_messages was passed: a surface's {lost} oldest data messages were forgotten"
            self._report(
                "a2ui.surface-forgotten", message, message_id=context.message_id, detail={"surface_id": surface_id}
            )
        if creates and surface.activity_id is None:
            surface.activity_id = self._activity_id(surface_id, context.message_id)
        return surface, "changed" if changed else "same"

    def _delete(self, surface_id: str, context: A2UIContext) -> tuple[Surface, Change]:
        self._touched.pop(surface_id, None)
        surface = self.thread.get(surface_id)
        if surface is None:
            message = "a surface was deleted that this thread does not know"
            self._report(
                "a2ui.surface-unknown", message, message_id=context.message_id, detail={"surface_id": surface_id}
            )
            return Surface(flat=False), "refused"
        self.thread.remove(surface_id)
        return surface, "deleted"

    def _activity_id(self, surface_id: str, message_id: str | None) -> str:
        first = True if message_id is None else self._firsts.setdefault(message_id, surface_id) == surface_id
        return self.thread.new_activity_id(surface_id, message_id, first=first)

    def finish(self) -> None:
        """End the run: report the surfaces that it updated and nobody could show."""
        for surface_id, surface in self._touched.items():
            if not surface.complete:
                lacks = "components" if surface.create is not None else "a createSurface or beginRendering"
                message = f"a surface was updated and never shown: nothing brought {lacks}"
                self._report("a2ui.surface-incomplete", message, detail={"surface_id": surface_id, "lacks": lacks})
        self._touched.clear()
        self._firsts.clear()
        self._thread = None
        self.run = object()


class FollowingCarrier:
    """Another carrier, with the registry looking on."""

    def __init__(self, surfaces: RunSurfaces, carrier: Carrier) -> None:
        self._surfaces = surfaces
        self._carrier = carrier

    def __call__(self, envelope: Envelope, context: A2UIContext) -> Iterable[AnyEvent]:
        if envelope.kind in SURFACE_KINDS:
            self._surfaces.follow(envelope, context)
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
        surface.shown_in = run
        return surface.snapshot(run)


def deletion_of(surface: Surface, surface_id: str) -> Envelope:
    """Return the message that deletes a surface, to stand before its creation anew."""
    message = surface.deletion(surface_id)
    return Envelope("deleteSurface", version_of(message), surface_id, message)
