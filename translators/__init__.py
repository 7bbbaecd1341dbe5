"""Sans-IO state machines: what the bytes and events of AG-UI mean.

No `async`, no sockets; time and ids are passed in.
"""

from agui_pipeline.translators._base import TimedTranslator, Translator
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._errors import (
    AGUIPipelineError,
    ConfigurationError,
    DecodeError,
    LimitError,
    SequenceError,
    SourceError,
)
from agui_pipeline.translators._events import AnyEvent, Event, WireEvent, decode_event, replace, typed
from agui_pipeline.translators._input import parse_input, run_input
from agui_pipeline.translators._scanner import JSONScanner
from agui_pipeline.translators._sse import SSEDecoder, SSEFrame, encode_sse

__all__ = [
    "AGUIPipelineError",
    "AnyEvent",
    "ConfigurationError",
    "DecodeError",
    "Diagnostic",
    "DiagnosticSink",
    "Event",
    "JSONScanner",
    "LimitError",
    "SSEDecoder",
    "SSEFrame",
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
]
