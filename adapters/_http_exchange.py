"""One run's conversation with a remote endpoint: what is asked, and what the frames of the answer mean.

Knows what a remote AG-UI endpoint is sent and what it may answer; an older dialect brings an `Exchange` of its own
(`adapters/_http_dialects.py`). Does not know about connections, time, status codes or bytes: `HttpAgent` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from ag_ui.core import RunAgentInput, RunErrorEvent

from agui_pipeline.translators import (
    AGUIPipelineError,
    AnyEvent,
    DecodeError,
    Diagnostic,
    DiagnosticSink,
    SSEFrame,
)
from agui_pipeline.translators._compat import PROTOCOL_VERSION
from agui_pipeline.translators._input import encode_input
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators._sse import decode_frame

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "http.frame": "a frame of the remote agent is no AG-UI event and was left out",
    "http.error-frame": "the remote agent sent a frame named error in place of a RUN_ERROR",
}
"""The diagnostics of reading a remote agent's frames, by code."""

_TERMINAL: Final = frozenset({"RUN_FINISHED", "RUN_ERROR"})


@dataclass(frozen=True)
class Call:
    """What a run asks of the remote endpoint. Sent again as it is where a request is repeated.

    Attributes:
        url: Where to: the address that the agent was given, or one made of it.
        body: The request's body.
        method: The request's method.
        headers: What the dialect itself needs; ``accept`` and ``content-type`` need not be in it. The headers that the
            user configured are laid over these.
    """

    url: str
    body: bytes
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)


class Exchange(Protocol):
    """One run in one dialect: made for it, used once, never shared.

    Whoever drives it calls `call` once, then `feed` once a frame, in order (the last one may lack its blank line;
    keep-alives have no data), then at most one of `flush` and `fail`. It is sans-IO: it neither awaits nor looks at a
    clock.
    """

    @property
    def complete(self) -> bool:
        """Whether what was fed so far is whole runs: an end of the stream at this place loses nothing."""
        ...

    def call(self, url: str) -> Call:
        """Return what to send to start this run at the endpoint `url`."""
        ...

    def feed(self, frame: SSEFrame) -> Iterable[AnyEvent]:
        """Take one frame; give the events that it means."""
        ...

    def flush(self) -> Iterable[AnyEvent]:
        """Take the end of the answer, where it is `complete`; give what is held."""
        ...

    def fail(self, exc: AGUIPipelineError, code: str) -> Iterable[AnyEvent]:
        """Take an end where the answer is not `complete`; give what is held, and a RUN_ERROR.

        Only called where at least one event was given: before that, `exc` is raised.

        Args:
            exc: What went wrong; its message may be shown to clients.
            code: The code for the RUN_ERROR: ``source_ended``, ``source_timeout`` or ``source_limit``.
        """
        ...


ExchangeFactory: TypeAlias = Callable[[RunAgentInput, DiagnosticSink], Exchange]
"""Called once a run: the run's input and where its diagnostics go."""


class AGUIExchange:
    """A run at an AG-UI endpoint: the input in camelCase out, events in.

    Events pass as they came. A frame that holds no event is left out with a diagnostic, and the stream goes on: what a
    `[DONE]` means is said by RUN_FINISHED already. A frame *named* ``error`` without an event is how some frameworks
    report a failure in the middle of a stream; it is told apart in the RUN_ERROR that ends such a run.
    """

    __slots__ = ("_input", "_open", "_reported", "_sink")

    def __init__(self, input: RunAgentInput, sink: DiagnosticSink) -> None:
        self._input = input
        self._sink = sink
        self._open = True
        self._reported = False

    @property
    def complete(self) -> bool:
        """Whether every run of the stream has had its terminal event, the first one included."""
        return not self._open

    def call(self, url: str) -> Call:
        """Return the input, which declares a `protocolVersion`: the input's own, else this library's."""
        body = encode_input(self._input, self._sink)
        if field_of(self._input, "protocol_version", "protocolVersion") is None:
            # Before the first field: no model of an SDK before 1.0 can hold it.
            body = b'{"protocolVersion":"%b",%b' % (PROTOCOL_VERSION.encode(), body[1:])
        return Call(url, body)

    def feed(self, frame: SSEFrame) -> Iterable[AnyEvent]:
        """Give the event of a frame, if it has one."""
        if frame.data is None:
            return ()
        try:
            event = decode_frame(frame)
        except DecodeError as exc:
            self._strange(frame, exc)
            return ()
        if event.type in _TERMINAL:
            self._open = False
        elif event.type == "RUN_STARTED":  # one stream may carry several runs
            self._open = True
        return (event,)

    def flush(self) -> Iterable[AnyEvent]:
        """Give nothing: nothing is held."""
        return ()

    def fail(self, exc: AGUIPipelineError, code: str) -> Iterable[AnyEvent]:
        """Give the RUN_ERROR."""
        if self._reported:
            return (RunErrorEvent(message="the remote agent failed in the middle of the run", code="source_error"),)
        return (RunErrorEvent(message=str(exc), code=code),)

    def _strange(self, frame: SSEFrame, exc: DecodeError) -> None:
        named_error = frame.event == "error"
        self._reported = self._reported or named_error
        code = "http.error-frame" if named_error else "http.frame"
        self._sink(Diagnostic(code, DIAGNOSTICS[code], detail={"error": str(exc), "event": frame.event}))
