"""Following surfaces through a run: what its messages do to those of the thread, and what is wrong with that.

Knows what one run has said about the surfaces of its thread. Does not know text, scanners, or what a client is sent
(`_activity.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from agui_pipeline.translators._a2ui_sdk import MAX_CALLS, UNREACHABLE, CatalogValidator
from agui_pipeline.translators.a2ui._carriers import A2UIContext
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._envelope import CREATES, Envelope
from agui_pipeline.translators.a2ui._settings import A2UISettings
from agui_pipeline.translators.a2ui._surface import MAX_SURFACE_SIZE, Surface
from agui_pipeline.translators.a2ui._surfaces import ThreadSurfaces

MAX_UNKNOWN: Final = 256
"""Surfaces nobody knows that are reported in one run."""

MAX_CHECKED_COMPONENTS: Final = 1024
MAX_CHECKED_SIZE: Final = 262144
"""What is validated as a whole at the end of one run, over all its surfaces: the event loop waits for it. So it is with
function calls (`MAX_CALLS`). A surface that would be too much is left out."""

Change: TypeAlias = Literal["changed", "same", "deleted", "refused"]
"""What a message did to its surface; `refused`: nothing, and a diagnostic says why."""


class RunSurfaces:
    """What one run says about the surfaces of its thread.

    Args:
        surfaces: Finds those of the thread.
        settings: The validator and the aliases.
        report: The diagnostics of the run.
    """

    def __init__(self, surfaces: Callable[[], ThreadSurfaces], settings: A2UISettings, report: Reporter) -> None:
        self._aliases = settings.aliases
        self._validator = settings.validator
        self._find: Final = surfaces
        self._thread: ThreadSurfaces | None = None
        self._report = report
        self.run: object = object()
        """Marks data and snapshots as this run's."""
        self._touched: dict[str, Surface] = {}
        self._unknowns: set[str] = set()
        # The first surface that each text message created: further ones get longer activity ids.
        self._firsts: dict[str, str] = {}

    @property
    def thread(self) -> ThreadSurfaces:
        """The surfaces of the thread, looked up when the first message comes: most runs have none."""
        if self._thread is None:
            self._thread = self._find()
        return self._thread

    def exists(self, surface_id: str) -> bool:
        """Say whether a surface has been created."""
        surface = self.thread.get(surface_id)
        return surface is not None and surface.create is not None

    def catalog_of(self, surface_id: str) -> str | None:
        """Return the catalog of a surface that has been created, as the agent names it; None where unknown."""
        surface = self.thread.get(surface_id)
        catalog_id = None if surface is None else surface.catalog_id
        if catalog_id is None or surface is None:
            return None
        known = self._aliases.supported((catalog_id,))
        validator = self._validator
        if validator is None:
            return known[0]
        return next((id_ for id_ in known if validator.knows(surface.generation, id_)), known[0])

    def recreated(self, envelope: Envelope) -> Surface | None:
        """Return the surface that a createSurface creates a second time, None where it does not."""
        if envelope.kind != "createSurface" or envelope.surface_id is None:
            return None
        surface = self.thread.get(envelope.surface_id)
        return None if surface is None or surface.create is None else surface

    def follow(self, envelope: Envelope, context: A2UIContext) -> tuple[Surface, Change]:
        """Take one message about a surface; say what it did to which."""
        surface_id = envelope.surface_id or ""
        generation = envelope.generation
        if envelope.kind == "deleteSurface":
            return self._delete(envelope, surface_id, context)
        surface, forgotten = self.thread.open(surface_id, generation=generation)
        if forgotten is not None:
            message = "the registry's max_surfaces was passed: a thread's least recently changed surface was forgotten"
            self._report(
                "a2ui.surface-forgotten", message, message_id=context.message_id, detail={"surface_id": forgotten}
            )
        self._touched[surface_id] = surface
        creates = envelope.kind in CREATES
        if generation != surface.generation and not creates:
            self._mixed(envelope, surface, context)
            return surface, "refused"
        if surface.create is None and surface.flat and not creates:
            self._unknown(envelope, surface_id, context)
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
            self._name_activity(surface_id, surface, context.message_id or context.tool_call_id)
        return surface, "changed" if changed else "same"

    def _delete(self, envelope: Envelope, surface_id: str, context: A2UIContext) -> tuple[Surface, Change]:
        self._touched.pop(surface_id, None)
        surface = self.thread.get(surface_id)
        if surface is None:
            self._unknown(envelope, surface_id, context)
            return Surface(envelope.generation), "refused"
        if envelope.generation != surface.generation:
            self._mixed(envelope, surface, context)
        self.thread.remove(surface_id)
        return surface, "deleted"

    def _mixed(self, envelope: Envelope, surface: Surface, context: A2UIContext) -> None:
        message = f"{envelope.kind} of {envelope.version} for a surface of {surface.generation}"
        detail = {"surface_id": envelope.surface_id, "version": envelope.version, "surface": surface.generation}
        self._report("a2ui.version-mix", message, message_id=context.message_id, detail=detail)

    def _unknown(self, envelope: Envelope, surface_id: str, context: A2UIContext) -> None:
        """Report a message about what this thread does not know, once a surface and run."""
        if surface_id in self._unknowns or len(self._unknowns) >= MAX_UNKNOWN:
            return
        self._unknowns.add(surface_id)
        message = f"{envelope.kind} for a surface that this thread does not know"
        detail = {"surface_id": surface_id, "kind": envelope.kind}
        self._report("a2ui.surface-unknown", message, message_id=context.message_id, detail=detail)

    def _name_activity(self, surface_id: str, surface: Surface, message_id: str | None) -> None:
        first = True if message_id is None else self._firsts.setdefault(message_id, surface_id) == surface_id
        self.thread.name_activity(surface_id, surface, message_id, first=first)

    def commit(self, envelope: Envelope) -> None:
        """Keep what a message did to its surface for later runs."""
        if envelope.kind != "deleteSurface":
            self.thread.commit(envelope.surface_id or "")

    def finish(self) -> None:
        """End the run: report the surfaces that it updated and nobody could show."""
        room = 1.0
        for surface_id, surface in self._touched.items():
            if not surface.complete and surface_id not in self._unknowns:
                lacks = "components" if surface.create is not None else "a createSurface or beginRendering"
                message = f"a surface was updated and never shown: nothing brought {lacks}"
                self._report("a2ui.surface-incomplete", message, detail={"surface_id": surface_id, "lacks": lacks})
            elif surface.complete and self._validator is not None:
                cost = self._cost(surface)
                if cost <= room:
                    room -= cost
                    self._check(surface_id, surface, self._validator)
        self._touched.clear()
        self._unknowns.clear()
        self._firsts.clear()
        self._thread = None
        self.run = object()

    @staticmethod
    def _cost(surface: Surface) -> float:
        """Say how much of what a run may take it takes to validate a surface as a whole."""
        operations = surface.operations()[:2]
        components = operations[1]["updateComponents" if surface.flat else "surfaceUpdate"]["components"]
        size = max(surface.size / MAX_CHECKED_SIZE, len(components) / MAX_CHECKED_COMPONENTS)
        return size if size > 1 else max(size, CatalogValidator.calls_in(operations) / MAX_CALLS)

    def _check(self, surface_id: str, surface: Surface, validator: CatalogValidator) -> None:
        """Report what is wrong with a surface as a whole: references, cycles, root."""
        create, update = surface.operations()[:2]
        kind = "createSurface" if surface.flat else "beginRendering"
        catalog_id = self.catalog_of(surface_id)
        if catalog_id is not None:
            create = {**create, kind: {**create[kind], "catalogId": catalog_id}}
        problem = validator.check(surface.generation, [create, update], {})
        if problem is not None and problem.codes != UNREACHABLE:  # an update may have put another in its place
            message = f"a surface is not valid as a whole: {problem.codes}"
            detail = {"reason": problem.codes, "errors": list(problem.errors), "surface_id": surface_id}
            self._report("a2ui.surface-invalid", message, detail=detail)
