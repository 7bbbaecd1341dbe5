"""Composable async middleware for AG-UI event streams.

Three rooms, one direction: `agui_pipeline.adapters` (the outside world) on top of `agui_pipeline.middleware` (time,
order, cancellation) on top of `agui_pipeline.translators` (what bytes and events mean). The names most programs need
are here, too, each imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agui_pipeline.adapters.http import HttpAgent as HttpAgent
    from agui_pipeline.adapters.langgraph import LangGraphSource as LangGraphSource
    from agui_pipeline.adapters.langgraph import wrap_agent as wrap_agent
    from agui_pipeline.adapters.starlette import AGUIMiddleware as AGUIMiddleware
    from agui_pipeline.adapters.starlette import agent_app as agent_app
    from agui_pipeline.adapters.starlette import agent_endpoint as agent_endpoint
    from agui_pipeline.adapters.starlette import current_request as current_request
    from agui_pipeline.middleware import A2UIActionMiddleware as A2UIActionMiddleware
    from agui_pipeline.middleware import A2UIClientMessage as A2UIClientMessage
    from agui_pipeline.middleware import A2UIContext as A2UIContext
    from agui_pipeline.middleware import A2UILimits as A2UILimits
    from agui_pipeline.middleware import A2UIMiddleware as A2UIMiddleware
    from agui_pipeline.middleware import A2UIPlannerMiddleware as A2UIPlannerMiddleware
    from agui_pipeline.middleware import ClientCapabilities as ClientCapabilities
    from agui_pipeline.middleware import EventThrottleMiddleware as EventThrottleMiddleware
    from agui_pipeline.middleware import GuardMiddleware as GuardMiddleware
    from agui_pipeline.middleware import IssuedCalls as IssuedCalls
    from agui_pipeline.middleware import LegacyDowngradeMiddleware as LegacyDowngradeMiddleware
    from agui_pipeline.middleware import Middleware as Middleware
    from agui_pipeline.middleware import PassThroughMiddleware as PassThroughMiddleware
    from agui_pipeline.middleware import PendingInterrupts as PendingInterrupts
    from agui_pipeline.middleware import Pipeline as Pipeline
    from agui_pipeline.middleware import Source as Source
    from agui_pipeline.middleware import Stage as Stage
    from agui_pipeline.middleware import StripMiddleware as StripMiddleware
    from agui_pipeline.middleware import SurfaceRegistry as SurfaceRegistry
    from agui_pipeline.middleware import TranslatorMiddleware as TranslatorMiddleware
    from agui_pipeline.middleware import TrustLimits as TrustLimits
    from agui_pipeline.middleware import TrustMiddleware as TrustMiddleware
    from agui_pipeline.middleware import UpgradeMiddleware as UpgradeMiddleware
    from agui_pipeline.middleware import as_source as as_source
    from agui_pipeline.middleware import client_capabilities as client_capabilities
    from agui_pipeline.middleware import parse_client_message as parse_client_message
    from agui_pipeline.translators import AGUIPipelineError as AGUIPipelineError
    from agui_pipeline.translators import AnyEvent as AnyEvent
    from agui_pipeline.translators import ConfigurationError as ConfigurationError
    from agui_pipeline.translators import DecodeError as DecodeError
    from agui_pipeline.translators import Diagnostic as Diagnostic
    from agui_pipeline.translators import Event as Event
    from agui_pipeline.translators import LimitError as LimitError
    from agui_pipeline.translators import SequenceError as SequenceError
    from agui_pipeline.translators import SourceError as SourceError
    from agui_pipeline.translators import TimedTranslator as TimedTranslator
    from agui_pipeline.translators import Translator as Translator
    from agui_pipeline.translators import WireEvent as WireEvent
    from agui_pipeline.translators import decode_event as decode_event
    from agui_pipeline.translators import encode_event as encode_event
    from agui_pipeline.translators import encode_sse as encode_sse
    from agui_pipeline.translators import parse_input as parse_input
    from agui_pipeline.translators import replace as replace
    from agui_pipeline.translators import run_input as run_input
    from agui_pipeline.translators import typed as typed

_HOMES = {
    "adapters.http": ("HttpAgent",),
    "adapters.langgraph": ("LangGraphSource", "wrap_agent"),
    "adapters.starlette": ("AGUIMiddleware", "agent_app", "agent_endpoint", "current_request"),
    "middleware": (
        "A2UIActionMiddleware",
        "A2UIClientMessage",
        "A2UIContext",
        "A2UILimits",
        "A2UIMiddleware",
        "A2UIPlannerMiddleware",
        "ClientCapabilities",
        "EventThrottleMiddleware",
        "GuardMiddleware",
        "IssuedCalls",
        "LegacyDowngradeMiddleware",
        "Middleware",
        "PassThroughMiddleware",
        "PendingInterrupts",
        "Pipeline",
        "Source",
        "Stage",
        "StripMiddleware",
        "SurfaceRegistry",
        "TranslatorMiddleware",
        "TrustLimits",
        "TrustMiddleware",
        "UpgradeMiddleware",
        "as_source",
        "client_capabilities",
        "parse_client_message",
    ),
    "translators": (
        "AGUIPipelineError",
        "AnyEvent",
        "ConfigurationError",
        "DecodeError",
        "Diagnostic",
        "Event",
        "LimitError",
        "SequenceError",
        "SourceError",
        "TimedTranslator",
        "Translator",
        "WireEvent",
        "decode_event",
        "encode_event",
        "encode_sse",
        "parse_input",
        "replace",
        "run_input",
        "typed",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]  # noqa: PLE0604 - names, one by one, above

try:
    __version__ = version("agui-pipeline")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
