"""A remote agent as a source: an AG-UI endpoint, or one of an older dialect, over httpx.

Knows its options, its clients, and the course of a run. How a request is sent is in `_http_request.py`, how an answer
is read in `_http_body.py`, how it ends in `_http_stream.py`, what its frames mean in `_http_exchange.py`.
"""

from __future__ import annotations

import inspect
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, cast

import anyio
import httpx
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters._http_body import Body
from agui_pipeline.adapters._http_exchange import AGUIExchange, Exchange, ExchangeFactory
from agui_pipeline.adapters._http_request import Asker, Headers, header_fields, nowhere, shown
from agui_pipeline.adapters._http_stream import ending, next_frames
from agui_pipeline.middleware._options import check_callable, check_choice, check_count, check_number
from agui_pipeline.middleware._request import request_header
from agui_pipeline.translators import (
    AnyEvent,
    ConfigurationError,
    DiagnosticSink,
    Event,
    LimitError,
    SourceError,
    SSEDecoder,
)
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._sse import MAX_FRAME_BYTES

__all__ = ["HttpAgent"]

MAX_BYTES: Final = 1024 * 1024 * 1024
"""The default limit of one run's answer, in bytes: more than a run has to say, less than for ever."""

HeadersFor: TypeAlias = Callable[[RunAgentInput], "Mapping[str, str] | Awaitable[Mapping[str, str]]"]

_NOT_FORWARDED: Final = frozenset(
    {"accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host"}
    | {"keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""The headers that describe one connection or one body, and are wrong on any other."""

_BASE_HEADERS: Final[Headers] = {
    "accept": b"text/event-stream",
    "accept-encoding": b"gzip",
    "content-type": b"application/json",
}


class HttpAgent:
    """A remote AG-UI endpoint as a source: each run is one POST, its answer an event stream.

    Guarantees:
        - An event that nobody changes leaves as the bytes that came. A frame that is no event is left out, each with a
          diagnostic, and the stream goes on.
        - Any failure before the first event is raised, as `SourceError`: an HTTP error, an answer that is no event
          stream, no answer. After the first event every failure is a RUN_ERROR, behind all that arrived, and a
          diagnostic; so is a stream that ends without a terminal event. Behind a terminal event it is a
          diagnostic only.
        - When the reader leaves, the connection is closed before the iterator's ``aclose()`` returns.
        - Nothing of a run is kept: any number of runs may go on at once, on any event loop.
        - No header value, user name or query of an address stands in an error or a diagnostic's message.

    Outside of ``async with``, and without `client`, each run has a connection of its own. ``async with HttpAgent(…)``
    keeps connections for the next run, and closes them at its end. A `client` is used as it is and never closed.
    Cookies that answers set are not kept, except by a `client`.

    Args:
        url: The address of the endpoint; may be relative where `client` has a base URL.
        client: An `httpx.AsyncClient`, or an `httpx2.AsyncClient`: its proxies, certificates, authentication and
            connect, write and pool timeouts hold. Its read timeout and its redirect setting do not. Default: one of
            our own, which takes proxies and certificates from the environment, as httpx does.
        headers: Headers for each request: a mapping, or a callable ``(input) -> mapping``, also async, called for
            each attempt.
        forward: Names of headers to take over from the request that is being served (`agent_app`, `AGUIMiddleware`),
            where it has them: ``("authorization",)``. `headers` win over these.
        idle_timeout: Seconds without a single byte (comments count) after which the run is given up; also the time to
            wait for an answer. None: none.
        retries: How many times a request is sent again that got no answer, or 502, 503, 504, or 429 with a
            ``retry-after`` of at most 30 seconds. Only before the first byte of a stream. A POST that failed may have
            had its effect, hence 0.
        follow_redirects: Whether 307 and 308 are followed, five at most. To another origin no header goes along that
            was configured or forwarded; from https to http none is followed.
        dialect: What the endpoint speaks, if not AG-UI: ``"superagent"``, ``"superagent-flat"``,
            ``"superagent-compatible"``.
        max_bytes: Decompressed bytes of one answer. None: no limit.
        max_frame_bytes: Bytes of one frame.
        sleep: Waits for some seconds, between attempts.
        on_diagnostic: Gets each `Diagnostic` (codes ``http.*``). Default: the log.

    Raises:
        ConfigurationError: An option has a value it cannot have.

    Example:
        >>> import asyncio
        >>> import httpx
        >>> from agui_pipeline.adapters.testing import collect
        >>> def endpoint(request):  # stands for the network
        ...     stream = 'data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}' + chr(10) * 2
        ...     return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=stream)
        >>> client = httpx.AsyncClient(transport=httpx.MockTransport(endpoint))
        >>> agent = HttpAgent("https://agents.example/run", client=client, headers={"x-api-key": "secret"})
        >>> asyncio.run(collect(agent)).types
        ['RUN_FINISHED']
    """

    def __init__(  # noqa: PLR0913 - each is an option
        self,
        url: str,
        *,
        client: Any = None,
        headers: Mapping[str, str] | HeadersFor | None = None,
        forward: Sequence[str] = (),
        idle_timeout: float | None = 120,
        retries: int = 0,
        follow_redirects: bool = False,
        dialect: str | ExchangeFactory | None = None,
        max_bytes: int | None = MAX_BYTES,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        _check_client(client)
        self._url = _checked_url(url, relative=client is not None)
        self._client = client
        self._own: httpx.AsyncClient | None = None
        self._headers: HeadersFor | None = None
        self._fixed: Headers = {}
        if callable(headers):
            self._headers = headers
        elif headers is not None:
            self._fixed = header_fields(headers, "headers")
        self._forward = _checked_names(forward)
        if idle_timeout is not None:
            check_number("idle_timeout", idle_timeout, unit="None or a number of seconds")
            if idle_timeout == 0:
                raise ConfigurationError("idle_timeout=0: must be None (no limit) or more than 0 seconds")
        check_count("retries", retries)
        check_choice("follow_redirects", follow_redirects, (False, True))
        if max_bytes is not None:
            check_count("max_bytes", max_bytes, least=1, unit="None or a number of bytes")
        check_count("max_frame_bytes", max_frame_bytes, least=1, unit="a number of bytes")
        if not callable(sleep):
            raise ConfigurationError(f"sleep={sleep!r}: must be an async function (seconds)")
        check_callable("on_diagnostic", on_diagnostic, "(diagnostic)", optional=True)
        self._exchange = _exchange_for(dialect)
        if client is None and url.startswith("https:"):
            _tls()  # here, and not while other runs wait
        self._idle_timeout = idle_timeout
        self._retries = retries
        self._follow_redirects = follow_redirects
        self._max_bytes = max_bytes
        self._max_frame_bytes = max_frame_bytes
        self._sleep = sleep
        self._on_diagnostic = on_diagnostic

    def __repr__(self) -> str:
        return f"HttpAgent({shown(httpx.URL(self._url))!r})"

    async def __aenter__(self) -> Self:
        if self._client is None:
            if self._own is not None:
                raise RuntimeError("this HttpAgent is open already: one `async with` at a time")
            self._own = _new_client()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what ``async with`` opened, the connections of runs that go on included. A given client stays open."""
        client, self._own = self._own, None
        if client is not None:
            await _close(client)

    def __call__(self, input: RunAgentInput) -> AsyncGenerator[Event, None]:
        """Start a run: an async generator of its events. Nothing is sent before the first is asked for."""
        return cast("AsyncGenerator[Event, None]", self._run(input))

    run = __call__

    async def _run(self, input: RunAgentInput) -> AsyncGenerator[AnyEvent, None]:
        sink = run_sink(self._on_diagnostic)
        exchange = self._exchange(input, sink)
        client = self._client or self._own
        single = None if client else _new_client()
        body: Body | None = None
        try:
            body = await self._ask(client or single, input, exchange, sink)
            decoder = SSEDecoder(self._max_frame_bytes)
            given = False
            more = True
            error: SourceError | LimitError | None = None
            while more:
                frames, error, more = await next_frames(body, decoder)
                for frame in frames:
                    for event in exchange.feed(frame):
                        given = True
                        yield event
            for event in ending(exchange, error, sink, status=body.status, given=given):
                yield event
        finally:
            try:
                if body is not None:
                    await body.aclose()
            finally:
                if single is not None:
                    await _close(single)

    async def _ask(self, client: Any, input: RunAgentInput, exchange: Exchange, sink: DiagnosticSink) -> Body:
        call = exchange.call(self._url)
        own = header_fields(call.headers, "the dialect's headers")

        async def headers() -> Headers:
            found = ((name, request_header(name)) for name in self._forward)
            forwarded = header_fields({name: value for name, value in found if value is not None}, "the request")
            return {**_BASE_HEADERS, **own, **forwarded, **await self._configured(input)}

        asker = Asker(
            client,
            headers=headers,
            idle_timeout=self._idle_timeout,
            max_bytes=self._max_bytes,
            retries=self._retries,
            follow_redirects=self._follow_redirects,
            sleep=self._sleep,
            sink=sink,
        )
        return await asker.ask(call)

    async def _configured(self, input: RunAgentInput) -> Headers:
        if self._headers is None:
            return self._fixed
        made = self._headers(input)
        return header_fields(await made if inspect.isawaitable(made) else made, "what headers(input) returned")


def _check_client(client: Any) -> None:
    wanted = "must be an httpx.AsyncClient (or of httpx2)"
    if client is None:
        return
    if inspect.isclass(client) or not (hasattr(client, "build_request") and hasattr(client, "send")):
        raise ConfigurationError(f"client is {client!r}: {wanted}")
    if not hasattr(client, "aclose"):  # and not what `send` is: tracing wraps that
        raise ConfigurationError(f"client is a {type(client).__name__}, which is not async: {wanted}")


def _checked_url(url: object, *, relative: bool) -> str:
    if not isinstance(url, str):
        raise ConfigurationError(f"url is {type(url).__name__}: must be a str")
    try:
        parsed = httpx.URL(url)
        host = parsed.host
    except (httpx.InvalidURL, UnicodeError) as exc:  # the latter of a host
        raise ConfigurationError(f"url is no address ({exc})") from None
    if relative and parsed.is_relative_url:
        return url
    if parsed.scheme not in ("http", "https") or not host:
        got = f"{parsed.scheme}: address" if parsed.scheme else "relative one"
        raise ConfigurationError(f"url must be an http(s) address, such as 'https://agents.example/run'; got a {got}")
    if nowhere(parsed):
        raise ConfigurationError(
            "url is no address (a part of its host is empty or too long, or there is no such port)"
        )
    return url


def _checked_names(names: object) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ConfigurationError(f"forward={names!r}: must be a sequence of header names, such as ('authorization',)")
    for name in names:
        header_fields({name: ""}, "forward")
        if name.lower() in _NOT_FORWARDED:
            raise ConfigurationError(f"forward: {name!r} describes the connection or the body it came with")
    return tuple(names)


def _exchange_for(dialect: str | ExchangeFactory | None) -> ExchangeFactory:
    if dialect is None:
        return AGUIExchange
    if isinstance(dialect, str):
        from agui_pipeline.adapters._http_dialects import exchange_for  # noqa: PLC0415 - only who asks for it pays

        return exchange_for(dialect)
    check_callable("dialect", dialect, "(input, sink), or the name of a dialect")
    return dialect


@cache
def _tls() -> ssl.SSLContext:
    """One for all: to read the certificates takes longer than to connect."""
    return httpx.create_ssl_context()


def _new_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(
        verify=_tls(),
        # Streams are long: a pool with an end would let the next run wait for one of them.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        # Many users share a client: one must not get the session of another.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


async def _close(client: httpx.AsyncClient) -> None:
    with anyio.CancelScope(shield=True):
        await client.aclose()
