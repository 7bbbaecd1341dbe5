"""A wrapped ASGI app as a producer of events: what it sends, decoded; what it receives, replayed.

Knows ASGI's messages; does not know about chains or clients.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import anyio
from ag_ui.core import RunAgentInput
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Scope

from agui_pipeline.adapters._asgi_body import Body, single, with_body
from agui_pipeline.adapters._asgi_producer import AnsweredError, Producer, Steps, StoppedError, disconnected
from agui_pipeline.adapters._asgi_stream import STREAM_HEADERS, Stream
from agui_pipeline.middleware._channel import Channel
from agui_pipeline.translators import DecodeError, Diagnostic, LimitError, SourceError, SSEDecoder, SSEFrame, WireEvent
from agui_pipeline.translators._input import encode_input
from agui_pipeline.translators._sse import decode_frame

_logger = logging.getLogger("agui_pipeline")

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "asgi.bypass": "an event stream passed to the client without meeting the chain",
    "asgi.dropped": "what the chain gave before the app answered was dropped: the answer is no event stream",
    "asgi.frame": "a frame of the app holds no AG-UI event; it passes as it is, without meeting the chain",
    "asgi.frame-dropped": "a frame of the app holds no AG-UI event; it was left out, as the chain guards its client",
    "asgi.frame-limit": "a frame of the app is larger than the decoder's limit and was dropped",
}
"""The diagnostics of wrapping and serving, by code."""

_EXCERPT: Final = 2048
"""Bytes of an unwanted answer's body that go into the error."""

# Ways of sending that would pass by the decoder.
_EXTENSIONS: Final = frozenset({"http.response.pathsend", "http.response.zerocopysend", "http.response.trailers"})

_OURS: Final = frozenset({"asgi", "extensions", "headers"})
"""What the inner scope says differently; all else that an app writes into its scope is for those around it, too."""


class AppCall(Producer):
    """One call of the wrapped app.

    Args:
        app: The wrapped app.
        scope: The request's scope, as it came.
        pristine: A copy of it that no app has written to: the chain may call the app more than once.
        body: The request's body, as it came.
        parsed: The input that the body was read as; the app gets the body itself as long as the chain hands on this
            very object.
        stream: The stream that this call writes.
    """

    def __init__(
        self,
        app: ASGIApp,
        scope: Scope,
        pristine: Scope,
        body: Body,
        parsed: RunAgentInput | None,
        stream: Stream,
        *,
        in_band: bool,
    ) -> None:
        super().__init__()
        self._app = app
        self._scope = scope
        self._pristine = pristine
        self._inner: dict[str, Any] = {}
        self._body = body
        self._parsed = parsed
        self._stream = stream
        self._in_band = in_band  # whether the client looks at no status
        self._decoder = SSEDecoder()
        self._began = False  # whether the app started its response
        self._decode = False
        self._refused: tuple[int, bytearray] | None = None
        self._refusal: SourceError | None = None
        self._turned_away = False  # whether a send of the app was refused
        self._one: anyio.Lock | None = None
        self._channel: Channel
        self._steps: Steps  # of the app

    async def produce(self, input: RunAgentInput, channel: Channel) -> None:
        """Call the app; what it streams goes into the channel, any other answer to the client as it is."""
        self._channel = channel
        data = self._body.data if input is self._parsed else encode_input(input)
        self._inner = self._inner_scope(data)
        pending = [single(data)]

        async def receive() -> Message:
            return pending.pop() if pending else await disconnected(self.gone)

        try:
            self._steps = Steps(self._app(self._inner, receive, self._send))
            await self._steps
        except (OSError, ClientDisconnect) as exc:
            if not self._turned_away:
                self._failed()
                raise
            _logger.debug("the app ended with %r after its client had left", exc)
        except BaseException as exc:
            if self._refusal is not None and not isinstance(self._refusal, AnsweredError):
                raise self._refusal from exc
            self._failed()
            raise
        finally:
            self._publish()
        stream = self._stream
        if self.stopped:
            return
        if not stream.decided.is_set():
            stream.step_aside()  # it has answered nothing: the server says so
        elif self._refusal is not None:
            raise self._refusal
        elif not (self.complete or stream.aside):
            raise StoppedError(
                f"the app returned before it had {'completed' if self._began else 'started'} its response"
            )

    def _failed(self) -> None:
        if not (self.stopped or self._stream.decided.is_set()):
            self._stream.step_aside()  # nothing was sent: the server answers, with its 500

    def _inner_scope(self, data: bytes) -> dict[str, Any]:
        scope = dict(self._pristine)
        # We own receive(), and send() raises OSError once the client is gone: below 2.4 Starlette would listen itself.
        scope["asgi"] = {**scope.get("asgi", {}), "spec_version": "2.4"}
        if data is not self._body.data:
            scope["headers"] = with_body(scope.get("headers", ()), data)
        if scope.get("extensions"):
            scope["extensions"] = {key: value for key, value in scope["extensions"].items() if key not in _EXTENSIONS}
        return scope

    def _publish(self) -> None:
        """Let those around see what the app wrote into its scope: routers note the route there, tracers read it."""
        self._scope.update((key, value) for key, value in self._inner.items() if key not in _OURS)

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            await self._start(message)
        elif kind != "http.response.body":
            if not self._decode:
                await self._pass_on(message)
        elif self._decode:
            await self._feed(message.get("body", b""), more=message.get("more_body", False))
        elif self._refused is not None:
            await self._refuse(message)
        else:
            await self._pass_on(message)
            self.complete = not message.get("more_body", False)

    async def _pass_on(self, message: Message) -> None:
        try:
            await self._stream.pass_on(message)
        except OSError:
            self._turned_away = True
            raise

    async def _start(self, message: Message) -> None:
        self._began = True
        self._publish()
        headers = [(bytes(key).lower(), bytes(value)) for key, value in message.get("headers", ())]
        values = dict(headers)
        if not is_event_stream(values.get(b"content-type", b"")):
            await self._not_ours(message)
        elif values.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            self._bypass("content-encoding", "the app's event stream is compressed; it passed untouched")
            await self._not_ours(message)
        else:
            self._decode = True
            await self._stream.start({**message, "headers": stream_headers(headers), "trailers": False})

    async def _not_ours(self, message: Message) -> None:
        status = message["status"]
        if self._in_band and status >= HTTPStatus.BAD_REQUEST and self._stream.open:
            self._refused = (status, bytearray())
            await self._stream.start({**message, "status": 200, "headers": list(STREAM_HEADERS), "trailers": False})
        elif self._stream.open:
            self._stream.step_aside()
            await self._pass_on(message)
        else:
            self._refused = (status, bytearray())  # too late for its own answer: an error of the source

    async def _refuse(self, message: Message) -> None:
        assert self._refused is not None  # noqa: S101 - set where this is called
        status, body = self._refused
        body += bytes(message.get("body", b""))[: _EXCERPT - len(body)]
        if not message.get("more_body", False):
            text = body.decode(errors="replace")
            kind = AnsweredError if self._in_band else SourceError
            self._refusal = kind(f"the app answered {status}, and no event stream", status=status, body=text)
            self.complete = True
            self._channel.end(self._refusal)

    async def _feed(self, data: bytes, *, more: bool) -> None:
        if self.stopped:
            self._turned_away = True
            raise OSError("nobody reads this response any more")  # for an app that outlived its cancellation
        if self.complete or self._refusal is not None:
            return
        channel = self._channel
        one = self._decoder.feed_event(data)
        events = self._events(self._frames(data)) if one is None else (one,)
        if more and events:
            chain = channel.direct(self._steps.number) if self._stream.fused else None
            if chain is not None:
                await self._stream.feed(channel, chain, events)
                return
        channel.items.extend(events)
        if not more:
            channel.items.extend(self._events(self._last_frames()))
            self.complete = True
            channel.end()
            return
        channel.wake()
        if len(channel.items) >= channel.limit:
            if self._one is None:
                self._one = anyio.Lock()
            async with self._one:  # an app may send from several tasks; a channel has one writer
                if len(channel.items) >= channel.limit:
                    await channel.room()

    def _frames(self, data: bytes) -> list[SSEFrame]:
        try:
            return self._decoder.feed(data)
        except LimitError as exc:
            self._too_large(exc)
            return self._frames(b"")

    def _last_frames(self) -> list[SSEFrame]:
        try:
            return self._decoder.flush()
        except LimitError as exc:
            self._too_large(exc)
            return self._last_frames()

    def _events(self, frames: list[SSEFrame]) -> list[WireEvent | SSEFrame]:
        """Decode frames; one that is no event stays a frame, where the chain lets such pass."""
        items: list[WireEvent | SSEFrame] = []
        for frame in frames:
            if frame.data is None:
                items.append(frame)
                continue
            try:
                items.append(decode_frame(frame))
            except DecodeError as exc:
                if not self._strange(frame, exc, items):
                    break
        return items

    def _strange(self, frame: SSEFrame, exc: DecodeError, items: list[WireEvent | SSEFrame]) -> bool:
        """Do what the chain wants with a frame that is no event; returns whether the stream goes on."""
        wanted = self._stream.strange_frames
        if wanted == "refuse":
            self._refusal = SourceError(f"the app sent a frame that holds no AG-UI event: {exc}")
            self._channel.end(self._refusal)
            return False
        code = "asgi.frame" if wanted == "pass" else "asgi.frame-dropped"
        self._stream.sink(Diagnostic(code, DIAGNOSTICS[code], detail={"error": str(exc)}))
        if wanted == "pass":
            items.append(frame)
        return True

    def _too_large(self, exc: LimitError) -> None:
        self._stream.sink(Diagnostic("asgi.frame-limit", f"a frame of the app was dropped: {exc}"))

    def _bypass(self, reason: str, message: str) -> None:
        self._stream.sink(Diagnostic("asgi.bypass", message, detail={"reason": reason}))


def is_event_stream(content_type: bytes) -> bool:
    """Whether a response with this content type is an event stream."""
    return content_type.split(b";", 1)[0].strip().lower() == b"text/event-stream"


_DIRECTIVES: Final = (b"no-cache", b"no-transform")


def stream_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return response headers for a stream that was changed, and that no proxy may hold back or change."""
    kept = [
        (key, value) for key, value in headers if key not in (b"content-length", b"cache-control", b"x-accel-buffering")
    ]
    said = [part.strip() for key, value in headers if key == b"cache-control" for part in value.split(b",")]
    directives = [part for part in said if part] + [part for part in _DIRECTIVES if part not in said]
    return [*kept, (b"cache-control", b", ".join(directives)), STREAM_HEADERS[2]]
