"""An ASGI server and its client in one call: what `agui_pipeline.adapters.testing.run_asgi` does.

Knows what real servers do with `receive` and `send`, and when the client leaves. Does not open sockets, and does not
know what the app is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import anyio
import orjson
from pydantic import BaseModel
from starlette.datastructures import Headers

from agui_pipeline.translators import ConfigurationError, DecodeError, SSEDecoder, SSEFrame, WireEvent
from agui_pipeline.translators._sse import decode_frame

ASGIMessage: TypeAlias = MutableMapping[str, Any]
ASGIApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[ASGIMessage]], Callable[[ASGIMessage], Awaitable[None]]],
    Awaitable[None],
]

_OSERROR_SINCE: Final = (2, 4)
"""The version of the HTTP spec from which on `send` raises OSError once the client has left."""


class ASGIResponse:
    """What a client got from an ASGI app, as far as it has come.

    Attributes:
        status: The HTTP status; None while the app has not started its response.
        headers: The response's headers.
        chunks: The body, one item an ``http.response.body`` message that was not empty, as the app cut it.
        times: When each of `chunks` came, in seconds on the event loop's clock.
        frames: The SSE frames of the body, comments included, where it is ``text/event-stream``.
        events: The events in those frames; frames whose data is no event are left out.
        complete: Whether the app ended its response.
        disconnected: Whether the client has left.
        ignored: Messages that the app sent after the client had left.
        exception: What the app raised, None when it returned.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: Headers = Headers()
        self.chunks: list[bytes] = []
        self.times: list[float] = []
        self.frames: list[SSEFrame] = []
        self.events: list[WireEvent] = []
        self.complete = False
        self.disconnected = False
        self.ignored: list[ASGIMessage] = []
        self.exception: Exception | None = None
        self._over = anyio.Event()  # what a receive() waits for: the client left, or the response is complete
        self._reading: anyio.CancelScope | None = None
        self._sse: SSEDecoder | None = None

    @property
    def body(self) -> bytes:
        """All that was received of the body."""
        return b"".join(self.chunks)

    @property
    def text(self) -> str:
        """The body as UTF-8 text."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)

    def disconnect(self) -> None:
        """Let the client leave now. For a `reader`, and for other tasks."""
        self.disconnected = True
        self._over.set()
        if self._reading is not None:
            self._reading.cancel()

    def _leave_if(self, leaves: Callable[[ASGIResponse], bool]) -> None:
        if not (self.complete or self.disconnected) and leaves(self):
            self.disconnect()

    def __repr__(self) -> str:
        state = "disconnected" if self.disconnected else "complete" if self.complete else "incomplete"
        return f"<ASGIResponse {self.status} {state}, {len(self.chunks)} chunks, {len(self.events)} events>"

    # The server's side.

    def _start(self, message: ASGIMessage) -> None:
        if self.status is not None:
            raise RuntimeError("the app sent a second http.response.start")
        headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
        self.status = int(message["status"])
        self.headers = Headers(raw=headers)
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            self._sse = SSEDecoder()

    def _extend(self, message: ASGIMessage, *, head: bool) -> None:
        if self.status is None:
            raise RuntimeError("the app sent http.response.body before http.response.start")
        if self.complete:
            raise RuntimeError("the app sent http.response.body after it had completed its response")
        data = message.get("body", b"")
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"the body of http.response.body must be bytes; got {type(data).__name__}")
        data = bytes(data)
        last = not message.get("more_body", False)
        if data:
            self.chunks.append(data)
            self.times.append(anyio.current_time())
        if self._sse is not None:
            self._take(self._sse.feed(data))
        if last:
            if self._sse is not None:
                self._take(self._sse.flush())
            self.complete = True
            self._over.set()
        self._check_length(last=last, head=head)

    def _check_length(self, *, last: bool, head: bool) -> None:
        """As servers do: a body that is longer or shorter than announced breaks the connection."""
        announced = self.headers.get("content-length")
        if announced is None or head:
            return
        got = sum(map(len, self.chunks))
        if got > int(announced) or (last and got < int(announced)):
            raise RuntimeError(f"the app announced content-length {announced} and sent {got} bytes")

    def _take(self, frames: Iterable[SSEFrame]) -> None:
        for frame in frames:
            self.frames.append(frame)
            if frame.data is not None:
                with contextlib.suppress(DecodeError):
                    self.events.append(decode_frame(frame))


async def run_asgi(  # noqa: PLR0913 - one keyword-only option a thing that clients and servers differ in
    app: ASGIApp,
    *,
    method: str = "POST",
    path: str = "/",
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    body: Any = b"",
    body_complete: bool = True,
    disconnect_after: int | Callable[[ASGIResponse], bool] | None = None,
    read_delay: float = 0,
    reader: Callable[[ASGIResponse], Awaitable[None]] | None = None,
    spec_version: str = "2.3",
    scope: Mapping[str, Any] | None = None,
    timeout: float = 30,  # noqa: ASYNC109 - an app that never returns must fail a test, not hang it
) -> ASGIResponse:
    r"""Send one request to an ASGI app, in process, and read its response as it streams.

    `receive` gives the request's body, then waits until the client leaves or the response is complete, and gives
    ``http.disconnect``, as servers do. A `send` after the client has left has no effect before version 2.4 of the
    ASGI HTTP spec, and raises OSError from then on.

    The app runs in the calling task, on asyncio or trio. Nothing here suspends unless an option says so, as a server
    whose socket takes everything.

    Args:
        app: The app.
        method: The HTTP method.
        path: The path, with a query if there is one.
        headers: The request's headers. ``host``, ``accept: text/event-stream`` and, with a body, ``content-type:
            application/json`` and ``content-length`` are added where missing.
        body: Bytes or text; or a list or tuple of them, one ``http.request`` message each; or anything else, which is
            sent as JSON (a mapping, a `RunAgentInput`).
        body_complete: False: the client leaves after those parts of the body, in the middle of it.
        disconnect_after: When the client leaves: after so many events (0: at once, before the app has answered); or
            when a function of the response says so, which is asked after each message. Bytes:
            ``lambda response: len(response.body) >= 100``; messages: ``lambda response: len(response.chunks) >= 3``.
        read_delay: Seconds that the client takes to read one chunk; `send` waits for it.
        reader: Awaited by each `send` of a part of the body, which does not return before: a client that reads
            slowly, or stops reading. It may call `ASGIResponse.disconnect`.
        spec_version: The version of the ASGI HTTP spec that the server announces. (uvicorn: 2.3)
        scope: Entries to add to the connection scope, such as ``root_path``.
        timeout: Seconds until an app that has not returned is cancelled.

    Returns:
        The response. What the app raised is its `exception`; check it.

    Raises:
        TimeoutError: The app did not return in time; says how far it has come.
        ConfigurationError: An option has a value that it cannot have.

    Example:
        >>> import asyncio
        >>> async def app(scope, receive, send):
        ...     request = await receive()
        ...     await send({"type": "http.response.start", "status": 200, "headers": []})
        ...     await send({"type": "http.response.body", "body": request["body"]})
        >>> response = asyncio.run(run_asgi(app, body={"a": 1}))
        >>> response.status, response.json(), response.exception
        (200, {'a': 1}, None)
    """
    leaves = _leaving(disconnect_after)
    response = ASGIResponse()
    parts = _parts(body)
    upload = iter(parts)
    left = len(parts)
    raises = tuple(map(int, spec_version.split("."))) >= _OSERROR_SINCE
    if disconnect_after == 0:
        response.disconnect()

    async def receive() -> ASGIMessage:
        nonlocal left
        if left:
            left -= 1
            return {"type": "http.request", "body": next(upload), "more_body": left > 0 or not body_complete}
        if not body_complete:
            response.disconnect()
        await response._over.wait()  # noqa: SLF001 - the two halves of one server
        return {"type": "http.disconnect"}

    async def send(message: ASGIMessage) -> None:
        if response.disconnected:
            response.ignored.append(message)
            if raises:
                raise OSError("the client has left")
            return
        if message["type"] == "http.response.start":
            response._start(message)  # noqa: SLF001
        elif message["type"] == "http.response.body":
            response._extend(message, head=method == "HEAD")  # noqa: SLF001
            await _read(response, read_delay, reader)
        else:
            raise ConfigurationError(f"run_asgi does not offer the extension of a message {message['type']!r}")
        response._leave_if(leaves)  # noqa: SLF001

    connection = _scope(method, path, headers, parts, as_json=_is_json(body), spec_version=spec_version)
    with anyio.move_on_after(timeout) as patience:
        try:
            await app({**connection, **(scope or {})}, receive, send)
        except Exception as exc:  # noqa: BLE001 - a server logs it; here the caller looks at it
            response.exception = exc
    if patience.cancelled_caught:
        raise TimeoutError(f"the app did not return within {timeout:g} s: {response!r}")
    return response


async def _read(response: ASGIResponse, delay: float, reader: Callable[[ASGIResponse], Awaitable[None]] | None) -> None:
    """Take the time that the client takes; a client that leaves ends the wait."""
    if not delay and reader is None:
        return
    with anyio.CancelScope() as reading:
        response._reading = reading  # noqa: SLF001
        try:
            if delay:
                await anyio.sleep(delay)
            if reader is not None:
                await reader(response)
        finally:
            response._reading = None  # noqa: SLF001


def _leaving(when: Any) -> Callable[[ASGIResponse], bool]:
    """Return whether a client leaves, as a function of what it has got."""
    if when is None:
        return lambda _response: False
    if callable(when):
        return when  # type: ignore[no-any-return]
    if isinstance(when, bool) or not isinstance(when, int) or when < 0:
        raise ConfigurationError(
            f"disconnect_after={when!r}: must be None, a number of events, or a callable (ASGIResponse) -> bool"
        )
    return lambda response: len(response.events) >= when


def _is_json(body: Any) -> bool:
    return not isinstance(body, bytes | bytearray | str | list | tuple)


def _parts(body: Any) -> list[bytes]:
    """Return the request's body as the parts that `receive` gives."""
    if isinstance(body, list | tuple):
        return [part.encode() if isinstance(part, str) else bytes(part) for part in body] or [b""]
    if isinstance(body, str):
        return [body.encode()]
    if isinstance(body, bytes | bytearray):
        return [bytes(body)]
    if isinstance(body, BaseModel):
        return [body.model_dump_json(by_alias=True, exclude_none=True).encode()]
    return [orjson.dumps(body)]


def _scope(
    method: str,
    path: str,
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    parts: list[bytes],
    *,
    as_json: bool,
    spec_version: str,
) -> dict[str, Any]:
    given = list(headers.items() if isinstance(headers, Mapping) else headers)
    names = {name.lower() for name, _ in given}
    defaults = {"host": "testserver", "accept": "text/event-stream"}
    size = sum(map(len, parts))
    if size or as_json:
        defaults |= {"content-type": "application/json", "content-length": str(size)}
    given += [(name, value) for name, value in defaults.items() if name not in names]
    bare, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": spec_version},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(bare),
        "raw_path": bare.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in given],
        "client": ("127.0.0.1", 50000),
        "server": ("testserver", 80),
        "state": {},
        "extensions": {},
    }
