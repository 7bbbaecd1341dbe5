"""Catalog ids that this library must know without the SDK: the basic catalogs, and what a catalog given is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agui_pipeline.translators._errors import ConfigurationError

_SPECIFICATION: Final = "https://a2ui.org/specification"
BASIC_CATALOGS: Final[Mapping[str, str]] = {
    "v0.8": f"{_SPECIFICATION}/v0_8/standard_catalog_definition.json",
    "v0.9": f"{_SPECIFICATION}/v0_9/catalogs/basic/catalog.json",
    "v0.9.1": f"{_SPECIFICATION}/v0_9/catalogs/basic/catalog.json",
    "v1.0": f"{_SPECIFICATION}/v1_0/catalogs/basic/catalog.json",
}
"""The id of the specification's basic catalog, by version."""


def catalog_named_by(kind: str | None, body: Mapping[str, Any]) -> str | None:
    """Return the catalog that a message creates a surface with. In v0.8 one that names none means the basic one."""
    found = body.get("catalogId")
    if isinstance(found, str):
        return found
    return BASIC_CATALOGS["v0.8"] if kind == "beginRendering" else None


def catalog_ids(catalogs: Sequence[Any]) -> tuple[str, ...]:
    """Return the ids of catalogs: documents (``catalogId``, else ``$id``) or objects with a `catalog_id`.

    Raises:
        ConfigurationError: One is neither.
    """
    return tuple(_id_of(at, catalog) for at, catalog in enumerate(catalogs))


def _id_of(at: int, catalog: Any) -> str:
    if isinstance(catalog, Mapping):
        found = catalog.get("catalogId") or catalog.get("$id")
    else:
        found = getattr(catalog, "catalog_id", None)
    if not isinstance(found, str) or not found:
        raise ConfigurationError(
            f"catalogs[{at}] is {type(catalog).__name__}: must be a catalog document with a catalogId (or $id), "
            "or a catalog of the A2UI SDK"
        )
    return found


def tool_catalog(catalogs: Sequence[Any]) -> str:
    """Return the catalog of a surface that a tool call names none for: the first of v0.9, else the basic one."""
    for id_, catalog in zip(catalog_ids(catalogs), catalogs, strict=True):
        given = (
            catalog.get("protocolVersion")
            if isinstance(catalog, Mapping)
            else getattr(catalog, "protocol_version", None)
        )
        if str(given or "0.9").removeprefix("v").startswith("0.9"):
            return id_
    return BASIC_CATALOGS["v0.9"]
