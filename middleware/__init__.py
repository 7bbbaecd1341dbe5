"""Middleware: time, order and cancellation around the sans-IO translators."""

from agui_pipeline.middleware._pipeline import Pipeline
from agui_pipeline.middleware._source import as_source
from agui_pipeline.middleware._translator import Stage, TranslatorMiddleware
from agui_pipeline.middleware._types import Middleware, Source
from agui_pipeline.middleware.a2ui import (
    A2UIContext,
    A2UILimits,
    A2UIMiddleware,
    CatalogAliases,
    MemorySurfaceStore,
    SurfaceRegistry,
    SurfaceStore,
)
from agui_pipeline.middleware.actions import (
    A2UIActionMiddleware,
    ActionRecording,
    ActionRecordings,
    ActionStore,
    CapabilityStore,
    ClientCapabilities,
)
from agui_pipeline.middleware.guard import GuardMiddleware
from agui_pipeline.middleware.legacy import LegacyDowngradeMiddleware, PendingInterrupts, PendingStore
from agui_pipeline.middleware.pass_through import PassThroughMiddleware
from agui_pipeline.middleware.planner import A2UIPlannerMiddleware
from agui_pipeline.middleware.strip import StripMiddleware
from agui_pipeline.middleware.throttle import EventThrottleMiddleware
from agui_pipeline.middleware.trust import IssuedCall, IssuedCalls, IssuedStore, TrustLimits, TrustMiddleware
from agui_pipeline.middleware.upgrade import UpgradeMiddleware
from agui_pipeline.translators.a2ui_client import (
    A2UICapabilities,
    A2UIClientMessage,
    client_capabilities,
    parse_client_message,
)

__all__ = [
    "A2UIActionMiddleware",
    "A2UICapabilities",
    "A2UIClientMessage",
    "A2UIContext",
    "A2UILimits",
    "A2UIMiddleware",
    "A2UIPlannerMiddleware",
    "ActionRecording",
    "ActionRecordings",
    "ActionStore",
    "CapabilityStore",
    "CatalogAliases",
    "ClientCapabilities",
    "EventThrottleMiddleware",
    "GuardMiddleware",
    "IssuedCall",
    "IssuedCalls",
    "IssuedStore",
    "LegacyDowngradeMiddleware",
    "MemorySurfaceStore",
    "Middleware",
    "PassThroughMiddleware",
    "PendingInterrupts",
    "PendingStore",
    "Pipeline",
    "Source",
    "Stage",
    "StripMiddleware",
    "SurfaceRegistry",
    "SurfaceStore",
    "TranslatorMiddleware",
    "TrustLimits",
    "TrustMiddleware",
    "UpgradeMiddleware",
    "as_source",
    "client_capabilities",
    "parse_client_message",
]
