"""Middleware: time, order and cancellation around the sans-IO translators."""

from agui_pipeline.middleware._pipeline import Pipeline
from agui_pipeline.middleware._source import as_source
from agui_pipeline.middleware._translator import Stage, TranslatorMiddleware
from agui_pipeline.middleware._types import Middleware, Source
from agui_pipeline.middleware.a2ui import A2UIContext, A2UILimits, A2UIMiddleware, SurfaceRegistry
from agui_pipeline.middleware.guard import GuardMiddleware
from agui_pipeline.middleware.pass_through import PassThroughMiddleware
from agui_pipeline.middleware.throttle import EventThrottleMiddleware
from agui_pipeline.middleware.trust import IssuedCall, IssuedCalls, IssuedStore, TrustLimits, TrustMiddleware

__all__ = [
    "A2UIContext",
    "A2UILimits",
    "A2UIMiddleware",
    "EventThrottleMiddleware",
    "GuardMiddleware",
    "IssuedCall",
    "IssuedCalls",
    "IssuedStore",
    "Middleware",
    "PassThroughMiddleware",
    "Pipeline",
    "Source",
    "Stage",
    "SurfaceRegistry",
    "TranslatorMiddleware",
    "TrustLimits",
    "TrustMiddleware",
    "as_source",
]
