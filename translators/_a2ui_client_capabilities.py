"""Which A2UI versions and catalogs a client says it can render.

Knows the two shapes (flat in v0.8, by version later) and the names of versions. Does not know for how long a client's
word holds: it comes with any request of a thread, also with the first one, before there is a surface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._a2ui_client_carriers import LIMITS, Extract, envelopes, kind_of, plain
from agui_pipeline.translators._errors import DecodeError
from agui_pipeline.translators.a2ui._aliases import CatalogAliases
from agui_pipeline.translators.a2ui._limits import A2UILimits

_FLAT: Final = ("supportedCatalogIds", "inlineCatalogs")
_SAME_CATALOGS: Final[Mapping[str, str]] = {"v0.9.1": "v0.9"}
"""Versions whose catalogs are another's. Agentdown sends the key v0.9.1, which the specification does not have."""
_NO_ALIASES: Final = CatalogAliases({})


@dataclass(frozen=True, slots=True)
class A2UICapabilities:
    """What a client says that it can render.

    Attributes:
        catalogs: The ids of the catalogs that it supports, by A2UI version (``"v0.8"``, ``"v0.9"``, ``"v1.0"``), in its
            own order. A key ``"v0.9.1"`` counts as ``"v0.9"``.
        inline_catalogs: The catalogs that it sent along, by version; JSON as it came.

    Example:
        >>> capabilities = A2UICapabilities({"v0.9": ("basic",)})
        >>> capabilities.supported("v0.9.1"), capabilities.supported("v0.8")
        (('basic',), ())
    """

    catalogs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inline_catalogs: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that it named, in its order."""
        return tuple(self.catalogs)

    def supported(self, version: str) -> tuple[str, ...]:
        """Return the catalogs that it supports in a version; empty where it named none."""
        return self.catalogs.get(_SAME_CATALOGS.get(version, version), ())

    def inline(self, version: str) -> tuple[Mapping[str, Any], ...]:
        """Return the catalogs that it sent along for a version."""
        return self.inline_catalogs.get(_SAME_CATALOGS.get(version, version), ())


def client_capabilities(
    input: RunAgentInput,
    *,
    extract: Extract | None = None,
    catalog_aliases: Mapping[str, str] | CatalogAliases = _NO_ALIASES,
    limits: A2UILimits = LIMITS,
) -> A2UICapabilities | None:
    """Read what the client says that it can render, from ``forwardedProps.a2ui.clientCapabilities``.

    They may come with an action or without one: Agentdown sends them from the first plain request on.

    Args:
        input: The run's input.
        extract: ``(input) -> mapping or None``, asked first: an object with ``clientCapabilities``.
        catalog_aliases: The client's catalog ids by the agent's, as of `A2UIMiddleware`: the ids that are returned
            are the agent's.
        limits: What they may be.

    Returns:
        The capabilities; None where the client says nothing.

    Raises:
        DecodeError: They are there and are none; says where, as a JSON path.
        LimitError: They are over a limit.

    Example:
        >>> from agui_pipeline.translators import run_input
        >>> props = {"a2ui": {"clientCapabilities": {"v0.9.1": {"supportedCatalogIds": ["basic"]}}}}
        >>> client_capabilities(run_input("a form, please", forwarded_props=props)).supported("v0.9")
        ('basic',)
    """
    aliases = catalog_aliases if isinstance(catalog_aliases, CatalogAliases) else CatalogAliases(catalog_aliases)
    for envelope in envelopes(input, extract):
        value = envelope.get("clientCapabilities")
        if value is not None:
            path = envelope.at("clientCapabilities")
            return _read(plain(value, path, limits), path, aliases)
    return None


def _read(value: Any, path: str, aliases: CatalogAliases) -> A2UICapabilities:
    if not isinstance(value, dict):
        raise DecodeError(f"{path}: wanted an object, got {kind_of(value)}")
    catalogs: dict[str, tuple[str, ...]] = {}
    inline: dict[str, tuple[Mapping[str, Any], ...]] = {}
    entries = [("v0.8", value, path)] if any(name in value for name in _FLAT) else []
    entries += [(name, item, f"{path}.{name}") for name, item in value.items() if name not in _FLAT]
    for name, item, place in entries:
        version = _SAME_CATALOGS.get(name, name)
        if not isinstance(item, dict):
            raise DecodeError(f"{place}: wanted an object with supportedCatalogIds, got {kind_of(item)}")
        ids = aliases.supported(_list(item, "supportedCatalogIds", str, place))
        catalogs[version] = tuple(dict.fromkeys((*catalogs.get(version, ()), *ids)))
        found = _list(item, "inlineCatalogs", dict, place)
        if found:
            inline[version] = (*inline.get(version, ()), *found)
    return A2UICapabilities(catalogs, inline)


def _list(entry: dict[str, Any], name: str, type_: type, path: str) -> list[Any]:
    value = entry.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise DecodeError(f"{path}.{name}: wanted a list, got {kind_of(value)}")
    for index, item in enumerate(value):
        if not isinstance(item, type_):
            wanted = "a string" if type_ is str else "an object"
            raise DecodeError(f"{path}.{name}[{index}]: wanted {wanted}, got {kind_of(item)}")
    return value
