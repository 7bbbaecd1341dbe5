"""Middleware: time, order and cancellation around the sans-IO translators."""

from agui_pipeline.middleware._pipeline import Pipeline
from agui_pipeline.middleware._source import as_source
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.middleware._types import Middleware, Source
from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.middleware.pass_through import PassThroughMiddleware
from agui_pipeline.middleware.throttle import EventThrottleMiddleware

__all__ = [
    "A2UIMiddleware",
    "EventThrottleMiddleware",
    "Middleware",
    "PassThroughMiddleware",
    "Pipeline",
    "Source",
    "TranslatorMiddleware",
    "as_source",
]
