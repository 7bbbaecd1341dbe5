"""The frames of an answer, and its end: complete, cut, silent or too large.

Knows what an end means to a run. Does not know what frames mean (an `Exchange` does).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agui_pipeline.adapters._http_body import Body, CutError, SilenceError
from agui_pipeline.adapters._http_exchange import Exchange
from agui_pipeline.translators import (
    AnyEvent,
    Diagnostic,
    DiagnosticSink,
    LimitError,
    SourceError,
    SSEDecoder,
    SSEFrame,
)

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "http.cut": "the remote agent's stream ended before its run did",
    "http.idle": "the remote agent's stream was given up for its silence",
    "http.limit": "the remote agent's stream was given up for its size",
}
"""The diagnostics of endings, by code."""


async def next_frames(body: Body, decoder: SSEDecoder) -> tuple[list[SSEFrame], SourceError | LimitError | None, bool]:
    """Wait for bytes; return the frames in them, what went wrong behind those, and whether there is more."""
    error: SourceError | LimitError | None = None
    try:
        if data := await body.read():
            return decoder.feed(data), None, True
    except LimitError as exc:
        return [], exc, False  # what stands behind a frame that is missing is not for the reader
    except SourceError as exc:
        error = exc
    frames: list[SSEFrame] = []
    try:
        while some := decoder.flush():  # also half a frame: whether that is an event, its reader knows
            frames += some
    except LimitError as exc:
        error = error or exc
    return frames, error, False


def ending(
    exchange: Exchange, error: SourceError | LimitError | None, sink: DiagnosticSink, *, status: int, given: bool
) -> Sequence[AnyEvent]:
    """Return the last events of a run whose stream is over.

    Args:
        exchange: The run, which has had every frame.
        error: What ended the stream; None where it ended by itself.
        sink: Gets the reason, where one is not raised.
        status: The status of the answer, for an error that is raised.
        given: Whether an event was given.

    Raises:
        SourceError: The run is not complete, and nothing of it was given.
        LimitError: The same.
    """
    if exchange.complete:
        if error is not None:
            code, text = _reason(error)[0], "the remote agent's stream broke off behind the end of its run"
            sink(Diagnostic(code, text, detail={"exception": error}))
        return tuple(exchange.flush())
    if error is None:
        error = CutError("the remote agent's stream ended before its run did")
    if not given:
        if isinstance(error, SourceError):
            error.status = status
        raise error
    name, code = _reason(error)
    sink(Diagnostic(name, DIAGNOSTICS[name], detail={"exception": error}))
    return tuple(exchange.fail(error, code))


def _reason(error: SourceError | LimitError) -> tuple[str, str]:
    """Return the codes of an error: of its diagnostic, and of its RUN_ERROR."""
    if isinstance(error, SilenceError):
        return "http.idle", "source_timeout"
    return ("http.limit", "source_limit") if isinstance(error, LimitError) else ("http.cut", "source_ended")
