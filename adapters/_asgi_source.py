"""A source as a producer of events, and one request whose answer is its run.

Knows what `agent_endpoint` and other servers of sources share. Does not know how a request's body became an input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ag_ui.core import RunAgentInput
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from agui_pipeline.adapters._asgi_body import Body, Refusal
from agui_pipeline.adapters._asgi_producer import Producer
from agui_pipeline.adapters._asgi_stream import STREAM_HEADERS, Stream
from agui_pipeline.middleware import Pipeline
from agui_pipeline.middleware._channel import Channel
from agui_pipeline.middleware._intake import EVENT_TYPES, Intake
from agui_pipeline.middleware._options import check_callable, check_choice, check_count, check_number
from agui_pipeline.middleware._request import request
from agui_pipeline.middleware._segment import Segment, raise_closing
from agui_pipeline.middleware._source import async_iterator
from agui_pipeline.translators import DecodeError, DiagnosticSink, LimitError
from agui_pipeline.translators._diagnostics import default_sink
from agui_pipeline.translators._input import ParsedInput

MAX_BODY: Final = 10 * 1024 * 1024
"""The default limit of a request body, in bytes."""


class Options:
    """The options that wrapping and serving share, checked."""

    def __init__(
        self, heartbeat: float | None, on_disconnect: str, max_body: int, on_diagnostic: DiagnosticSink | None
    ) -> None:
        self.heartbeat = 0.0 if heartbeat is None else heartbeat
        check_number("heartbeat", self.heartbeat, unit="a number of seconds (0 or None for none)")
        check_choice("on_disconnect", on_disconnect, ("cancel", "detach"))
        self.detach = on_disconnect == "detach"
        check_count("max_body", max_body, least=1, unit="a whole number of bytes")
        self.max_body = max_body
        check_callable("on_diagnostic", on_diagnostic, "(Diagnostic) -> None", optional=True)
        self.on_diagnostic = on_diagnostic


def admitted(pipeline: Pipeline, parsed: ParsedInput | Refusal, sink: DiagnosticSink) -> ParsedInput | Refusal:
    """Ask the chain whether it would start a run with the input."""
    if isinstance(parsed, Refusal):
        return parsed
    token = default_sink.set(sink)
    try:
        pipeline.admit(parsed.input)
    except LimitError as exc:
        return Refusal(413, getattr(exc, "code", "refused_input"), str(exc))
    except DecodeError as exc:
        return Refusal(getattr(exc, "status", 400), getattr(exc, "code", "refused_input"), str(exc))
    finally:
        default_sink.reset(token)
    return parsed


class _SourceCall(Producer):
    """One call of a source."""

    def __init__(self, source: Callable[[RunAgentInput], Any]) -> None:
        super().__init__()
        self._source = source

    async def produce(self, input: RunAgentInput, channel: Channel) -> None:
        segment = Segment()
        intake = Intake()
        error: BaseException | None = None
        try:
            iterator = async_iterator(self._source(input), "the source")
            segment.fill(segment.reserve(), iterator)
            async for item in iterator:
                if type(item) in EVENT_TYPES:
                    channel.push(item)
                else:
                    for event in intake.take(item):
                        channel.push(event)
                if len(channel.items) >= channel.limit and not self.stopped:
                    await channel.room()
                if self.stopped:  # a source may swallow the cancellation and go on
                    return
            for event in intake.flush():
                channel.push(event)
        except BaseException as exc:
            error = exc
            raise
        finally:
            self.complete = True  # what is left is cleanup: a client that leaves must not cut it short
            raise_closing(await segment.close(), error)


async def serve_source(
    pipeline: Pipeline,
    input: RunAgentInput,
    body: Body,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    options: Options,
    sink: DiagnosticSink,
) -> None:
    """Answer a request with a run of a pipeline: the response starts at once, and every failure is an event.

    Args:
        pipeline: The source and the chain around it.
        input: The run's input, which the chain has admitted.
        body: The request's body, which was read.
        scope: The request's scope.
        receive: The server's `receive`.
        send: The server's `send`.
        options: How to serve.
        sink: Gets diagnostics.

    Raises:
        Exception: What the source or a stage raised, unwrapped, after the stream was ended properly.
    """
    stream = Stream(
        pipeline,
        send,
        receive,
        make=lambda _stream: _SourceCall(pipeline.source),
        heartbeat=options.heartbeat,
        detach=options.detach,
        sink=sink,
    )
    token = request.set(Request(scope, body.replay(stream.receive)))
    try:
        start = {"type": "http.response.start", "status": 200, "headers": list(STREAM_HEADERS)}
        await stream.run(input, start)
    finally:
        request.reset(token)
