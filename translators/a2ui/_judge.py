"""The verdict on each record of a run: a message, or not, and why; with its diagnostic.

Knows the limits and what was counted so far. Does not know what becomes of a record that is no message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from agui_pipeline.translators._a2ui_sdk import CatalogValidator
from agui_pipeline.translators._scan_items import BrokenRecord
from agui_pipeline.translators.a2ui._catalogs import catalog_named_by
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._envelope import (
    CREATES,
    VERSIONS,
    Envelope,
    read_envelope,
    surface_of,
    unchecked_envelope,
)
from agui_pipeline.translators.a2ui._limits import A2UILimits, Excess, component_excess, value_excess
from agui_pipeline.translators.a2ui._reader import Refusal, surface_in

_MAX_SURFACES: Final = 1024
"""Surfaces in one run whose messages are counted: each count takes memory."""


class Judge:
    """Decides on the records of one run. Must be asked exactly once about each, in order: it counts.

    Args:
        limits: The limits. They hold for every JSON value, whether it is checked otherwise or not.
        validates: Whether a message must be one; else every JSON value counts as one.
        report: The diagnostics of the run.
        versions: The versions that go on.
        mixes: Whether a surface's messages of different generations are reported here: nobody follows surfaces.
        validator: Checks messages against catalogs; None where nobody does.
        catalog_of: Finds the catalog of a surface that an earlier run created, as the agent names it.

    Attributes:
        dropped_chars: Of the text between records that was dropped.
    """

    def __init__(
        self,
        limits: A2UILimits,
        report: Reporter,
        *,
        validates: bool,
        versions: Collection[str] = VERSIONS,
        mixes: bool = False,
        validator: CatalogValidator | None = None,
        catalog_of: Callable[[str], str | None] | None = None,
    ) -> None:
        self._limits = limits
        self._report = report
        self._validates = validates
        self._versions = versions
        self._mixes = mixes
        self._validator = validator
        self._catalog_of = catalog_of
        self.dropped_chars = 0
        self._counts: dict[str, int] = {}
        self._generations: dict[str, str] = {}
        self._catalogs: dict[str, str | None] = {}

    def restart(self) -> None:
        """Forget what was counted: another run begins."""
        self.dropped_chars = 0
        self._counts.clear()
        self._generations.clear()
        self._catalogs.clear()

    def __call__(self, value: Any, text: str, message_id: str | None) -> Envelope | Refusal:
        """Decide on one record.

        Args:
            value: Its decoded JSON.
            text: Its text, trimmed.
            message_id: The text message it stands in.
        """
        size = len(text)
        excess = value_excess(self._limits, value, text)
        if excess is not None:
            return self._over(excess, surface_of(value), message_id)
        if not self._validates:
            return unchecked_envelope(value, size)
        envelope = read_envelope(value, size)
        if isinstance(envelope, str):
            detail = {"reason": envelope, "surface_id": surface_of(value), "size": size}
            message = f"JSON that is no A2UI message: {envelope}"
            self._report("a2ui.invalid", message, message_id=message_id, detail=detail)
            return Refusal(envelope)
        if envelope.version not in self._versions:
            return self._version(envelope, message_id)
        components = envelope.body.get("components")
        if isinstance(components, list):
            excess = component_excess(self._limits, components)
        if excess is None and envelope.surface_id is not None:
            excess = self._count(envelope.surface_id)
        if excess is not None:
            return self._over(excess, envelope.surface_id, message_id)
        if self._mixes and envelope.surface_id is not None:
            self._compare(envelope, envelope.surface_id, message_id)
        return envelope if self._validator is None else self._validated(envelope, self._validator, message_id)

    def _version(self, envelope: Envelope, message_id: str | None) -> Refusal:
        reason = (
            f"a message of {envelope.version}; these go on: {', '.join(sorted(self._versions))}. Mostly the prompt "
            "asks for another version than is sent: see `version` of A2UIPlannerMiddleware"
        )
        detail = {"version": envelope.version, "surface_id": envelope.surface_id}
        self._report("a2ui.version", reason, message_id=message_id, detail=detail)
        return Refusal(f"a message of {envelope.version}, which does not go on")

    def _compare(self, envelope: Envelope, surface_id: str, message_id: str | None) -> None:
        """Report a message of another generation than those before it. They are as many as `_counts`."""
        if envelope.kind in CREATES:
            self._generations[surface_id] = envelope.generation
            return
        known = self._generations.setdefault(surface_id, envelope.generation)
        if known != envelope.generation:
            reason = f"{envelope.kind} of {envelope.version} for a surface of {known}"
            detail = {"surface_id": surface_id, "version": envelope.version, "surface": known}
            self._report("a2ui.version-mix", reason, message_id=message_id, detail=detail)

    def _validated(self, envelope: Envelope, validator: CatalogValidator, message_id: str | None) -> Envelope | Refusal:
        surface_id = envelope.surface_id
        known: dict[str, str] = {}
        if surface_id is not None and envelope.kind not in CREATES:
            catalog_id = self._catalog(surface_id)
            if catalog_id is not None:
                known[surface_id] = catalog_id
        problem = validator.check(envelope.generation, [envelope.message], known)
        if problem is None:
            if surface_id is not None and envelope.kind in CREATES:
                self._catalogs[surface_id] = catalog_named_by(envelope.kind, envelope.body)
            elif surface_id is not None and envelope.kind == "deleteSurface":
                self._catalogs[surface_id] = None
            return envelope
        reason = f"{envelope.kind} is not valid by its catalog: {problem.codes}"
        detail = {"reason": problem.codes, "errors": list(problem.errors), "surface_id": surface_id}
        self._report("a2ui.catalog", reason, message_id=message_id, detail=detail)
        return Refusal(reason)

    def _count(self, surface_id: str) -> Excess | None:
        count = self._counts.get(surface_id, 0) + 1
        limit = self._limits.max_surface_messages
        if count > limit:
            return Excess("max_surface_messages", limit, count)
        if count == 1 and len(self._counts) >= _MAX_SURFACES:
            return Excess("surfaces", _MAX_SURFACES, _MAX_SURFACES + 1)
        self._counts[surface_id] = count
        return None

    def _catalog(self, surface_id: str) -> str | None:
        """Return the catalog of a surface, None where nobody knows it. What this run said counts first."""
        if surface_id in self._catalogs:
            return self._catalogs[surface_id]
        return None if self._catalog_of is None else self._catalog_of(surface_id)

    def _over(self, excess: Excess, surface_id: str | None, message_id: str | None) -> Refusal:
        detail = {"limit": excess.limit, "maximum": excess.maximum, "size": excess.size, "surface_id": surface_id}
        if excess.limit == "forbidden_key":
            code, reason = "a2ui.forbidden-key", "a key that reaches a prototype in JavaScript"
            message = f"a record with {reason}"
        else:
            code, reason = "a2ui.limit", f"{excess.limit} is {excess.maximum}, this has {excess.size}"
            message = f"a record over a limit: {reason}"
        self._report(code, message, message_id=message_id, detail=detail)
        return Refusal(reason, over_limit=True)

    def dropped(self, size: int) -> None:
        """Count characters of text that was dropped; reported at the end of the run."""
        self.dropped_chars += size

    def broken(self, broken: BrokenRecord, message_id: str | None) -> None:
        """Report what began as a record and is none."""
        surface_id = surface_in(broken.prefix)
        limits = self._limits
        if broken.reason == "size":
            self._over(Excess("max_message_bytes", limits.max_message_bytes, broken.size), surface_id, message_id)
        elif broken.reason == "depth":
            self._over(Excess("max_depth", limits.max_depth, limits.max_depth + 1), surface_id, message_id)
        else:
            message = f"what began as a JSON object is none ({broken.reason}, after {broken.size} characters)"
            detail = {"reason": broken.reason, "size": broken.size, "surface_id": surface_id}
            self._report("a2ui.broken", message, message_id=message_id, detail=detail)
