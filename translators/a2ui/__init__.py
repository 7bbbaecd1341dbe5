"""A2UI (Agent to UI) in text: what a message is, what carries it, and which surfaces there are. Sans-IO."""

from agui_pipeline.translators.a2ui._aliases import CatalogAliases
from agui_pipeline.translators.a2ui._carriers import A2UIContext, CarrierFunction
from agui_pipeline.translators.a2ui._catalogs import BASIC_CATALOGS, catalog_ids, tool_catalog
from agui_pipeline.translators.a2ui._codes import DIAGNOSTICS
from agui_pipeline.translators.a2ui._delivery import ERROR_CODE
from agui_pipeline.translators.a2ui._envelope import VERSIONS, Envelope, generation_of, read_envelope
from agui_pipeline.translators.a2ui._limits import A2UILimits
from agui_pipeline.translators.a2ui._settings import A2UISettings
from agui_pipeline.translators.a2ui._store import MemorySurfaceStore, SurfaceStore
from agui_pipeline.translators.a2ui._surfaces import SurfaceRegistry
from agui_pipeline.translators.a2ui._translator import A2UITranslator

__all__ = [
    "BASIC_CATALOGS",
    "DIAGNOSTICS",
    "ERROR_CODE",
    "VERSIONS",
    "A2UIContext",
    "A2UILimits",
    "A2UISettings",
    "A2UITranslator",
    "CarrierFunction",
    "CatalogAliases",
    "Envelope",
    "MemorySurfaceStore",
    "SurfaceRegistry",
    "SurfaceStore",
    "catalog_ids",
    "generation_of",
    "read_envelope",
    "tool_catalog",
]
