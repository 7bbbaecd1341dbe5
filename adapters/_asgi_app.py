"""A wrapped ASGI app as a producer of events: what it sends, decoded; what it receives, replayed.

Knows ASGI's messages; does not know about chains or clients.
"""

from __future__ import annotations

from typing import Final

from ag_ui.core import RunAgentInput
from starlette.types import ASGIApp, Message, Scope

from agui_pipeline.adapters._asgi_body import Body, single, with_body
from agui_pipeline.adapters._asgi_stream import STREAM_HEADERS, Producer, StoppedError, Stream
from agui_pipeline.middleware._channel import Channel
from agui_pipeline.translators import DecodeError, Diagnostic, LimitError, SourceError, SSEDecoder, SSEFrame
from agui_pipeline.translators._input import encode_input
from agui_pipeline.translators._sse import decode_frame

_EXCERPT: Final = 2048
"""Bytes of an unwanted answer's body that go into the error."""

# Ways of sending that would pass by the decoder.
_EXTENSIONS: Final = frozenset({"http.response.pathsend", "http.response.zerocopysend", "http.response.trailers"})


class AppCall(Producer):
    """One call of the wrapped app.

    Args:
        app: The wrapped app.
        scope: The request's scope, as it came.
        body: The request's body, as it came.
        parsed: The input that the body was read as; the app gets the body itself as long as the chain hands on this
            very object.
        stream: The stream that this call writes.
    """

    def __init__(self, app: ASGIApp, scope: Scope, body: Body, parsed: RunAgentInput | None, stream: Stream) -> None:
        super().__init__()
        self._app = app
        self._scope = scope
        self._body = body
        self._parsed = parsed
        self._stream = stream
        self._decoder = SSEDecoder()
        self._decode = False
        self._refused: tuple[int, bytearray] | None = None
        self._channel: Channel

    async def produce(self, input: RunAgentInput, channel: Channel) -> None:
        """Call the app; what it streams goes into the channel, any other answer to the client as it is."""
        self._channel = channel
        data = self._body.data if input is self._parsed else encode_input(input)
        pending = [single(data)]

        async def receive() -> Message:
            if pending:
                return pending.pop()
            await self._stream.gone.wait()
            return {"type": "http.disconnect"}

        try:
            await self._app(self._inner_scope(data), receive, self._send)
        except BaseException:
            if not self._stream.decided.is_set():
                self._stream.step_aside()  # nothing was sent: the server answers, with its 500
            raise
        if not self._stream.decided.is_set():
            self._stream.step_aside()
        elif self._decode and not self.complete:
            raise StoppedError("the app returned before it had completed its response")

    def _inner_scope(self, data: bytes) -> Scope:
        scope = dict(self._scope)
        # We own receive(), and send() raises OSError once the client is gone: below 2.4 Starlette would listen itself.
        scope["asgi"] = {**scope.get("asgi", {}), "spec_version": "2.4"}
        if data is not self._body.data:
            scope["headers"] = with_body(scope.get("headers", ()), data)
        if scope.get("extensions"):
            scope["extensions"] = {key: value for key, value in scope["extensions"].items() if key not in _EXTENSIONS}
        return scope

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            await self._start(message)
        elif kind != "http.response.body":
            if not self._decode:
                await self._stream.send(message)
        elif self._decode:
            await self._feed(message.get("body", b""), more=message.get("more_body", False))
        elif self._refused is not None:
            await self._refuse(message)
        else:
            await self._stream.send(message)
            self.complete = not message.get("more_body", False)

    async def _start(self, message: Message) -> None:
        headers = [(bytes(key).lower(), bytes(value)) for key, value in message.get("headers", ())]
        values = dict(headers)
        if not values.get(b"content-type", b"").strip().lower().startswith(b"text/event-stream"):
            await self._not_ours(message)
        elif values.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            self._bypass("content-encoding", "the app's event stream is compressed; it passed untouched")
            await self._not_ours(message)
        else:
            self._decode = True
            await self._stream.start({**message, "headers": stream_headers(headers)})

    async def _not_ours(self, message: Message) -> None:
        if self._stream.writer.started:
            self._refused = (message["status"], bytearray())  # too late for its own answer: an error of the source
        else:
            self._stream.step_aside()
            await self._stream.send(message)

    async def _refuse(self, message: Message) -> None:
        assert self._refused is not None  # noqa: S101 - set where this is called
        status, body = self._refused
        body += bytes(message.get("body", b""))[: _EXCERPT - len(body)]
        if not message.get("more_body", False):
            text = body.decode(errors="replace")
            self._decode = self.complete = True
            raise SourceError(f"the app answered {status}, and no event stream", status=status, body=text)

    async def _feed(self, data: bytes, *, more: bool) -> None:
        if self.complete:
            return
        if self._stream.writer.discard and self._stream.gone.is_set():
            raise OSError("the client has left")  # for an app that outlived its cancellation
        self._take(self._frames(data))
        if not more:
            self._take(self._last_frames())
            self.complete = True
            self._channel.end()
            return
        channel = self._channel
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

    def _take(self, frames: list[SSEFrame]) -> None:
        channel = self._channel
        for frame in frames:
            if frame.data is None:
                channel.push(frame)
                continue
            try:
                channel.push(decode_frame(frame))
            except DecodeError as exc:
                self._stream.sink(
                    Diagnostic(
                        "asgi.frame",
                        "a frame of the app holds no AG-UI event; it passes as it is, without meeting the middleware",
                        detail={"error": str(exc)},
                    )
                )
                channel.push(frame)

    def _too_large(self, exc: LimitError) -> None:
        self._stream.sink(Diagnostic("asgi.frame-limit", f"a frame of the app was dropped: {exc}"))

    def _bypass(self, reason: str, message: str) -> None:
        self._stream.sink(Diagnostic("asgi.bypass", message, detail={"reason": reason}))


_DIRECTIVES: Final = (b"no-cache", b"no-transform")


def stream_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return response headers for a stream that was changed, and that no proxy may hold back or change."""
    kept = [
        (key, value) for key, value in headers if key not in (b"content-length", b"cache-control", b"x-accel-buffering")
    ]
    said = [part.strip() for key, value in headers if key == b"cache-control" for part in value.split(b",")]
    directives = [part for part in said if part] + [part for part in _DIRECTIVES if part not in said]
    return [*kept, (b"cache-control", b", ".join(directives)), STREAM_HEADERS[2]]
