"""Asking a remote endpoint: headers, redirects, repeated attempts, and what counts as an answer.

Knows HTTP by way of a client of httpx (or httpx2: nothing but the names they share is used). Does not know what the
body of an answer means. No header value, query or user name of an address ever stands in an error.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import anyio

from agui_pipeline.adapters._http_body import ENCODINGS, Body, SilenceError, is_http_error
from agui_pipeline.adapters._http_exchange import Call
from agui_pipeline.translators import ConfigurationError, Diagnostic, DiagnosticSink, SourceError

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "http.retry": "a request to the remote agent failed and is sent again",
}
"""The diagnostics of asking, by code."""

_FIRST_DELAY: Final = 0.5
_LONGEST_DELAY: Final = 30.0
_MOST_REDIRECTS: Final = 5
_TRANSIENT: Final = frozenset({502, 503, 504})
_TOO_MANY: Final = 429

_NOBODYS_SECRET: Final = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"}
    | {"user-agent"}
)
"""The headers that follow a redirect to another origin: those that say nothing about the caller."""

_PORTS: Final = {"http": 80, "https": 443}
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN: Final = re.compile("[\0\n\v\f\r]")
_PORTS_THERE_ARE: Final = range(1, 65536)
_UNREADABLE: Final = frozenset({"InvalidURL", "IDNAError"})
"""What httpx raises at a `location` that it cannot read, whether it is to follow it or not; neither is an HTTPError."""

Headers = Mapping[str, bytes]


class UnansweredError(SourceError):
    """A request that may be sent again.

    Attributes:
        after: Seconds that the server wants to be left alone, None where it did not say.
    """

    after: float | None = None


def header_fields(headers: object, what: str) -> dict[str, bytes]:
    """Return headers as they are sent, names in lower case.

    Args:
        headers: A mapping of names to values.
        what: Where they come from, for the error.

    Raises:
        ConfigurationError: They are no headers; names the field and never its value.
    """
    if not isinstance(headers, Mapping):
        raise ConfigurationError(f"{what} must be a mapping of names to values; got {type(headers).__name__}")
    fields: dict[str, bytes] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ConfigurationError(f"{what}: {name!r} is no name of a header")
        if not isinstance(value, str):
            raise ConfigurationError(f"{what}: the value of {name!r} must be a str; got {type(value).__name__}")
        try:
            data = value.strip().encode("latin-1")
        except UnicodeEncodeError:
            data = b"\n"
        if _FORBIDDEN.search(data.decode("latin-1")):
            raise ConfigurationError(f"{what}: the value of {name!r} holds what a header cannot hold")
        fields[name.lower()] = data
    return fields


def shown(url: Any) -> str:
    """Return an address without what may be secret in it."""
    origin = f"{url.scheme}://{url.netloc.decode('ascii')}" if url.scheme else ""
    return f"{origin}{url.path}"


def nowhere(url: Any) -> bool:
    """Whether an address is one that asyncio and trio raise errors of their own at, each another one."""
    try:
        url.raw_host.decode("ascii").encode("idna")  # as they do before they look it up: labels have a length
    except UnicodeError:
        return True
    return url.port is not None and url.port not in _PORTS_THERE_ARE


class Asker:
    """Sends one run's request until it is answered by an event stream.

    Args:
        client: The client that sends.
        headers: Returns the headers of one attempt.
        idle_timeout: Seconds without an answer that are too many; None: none are.
        max_bytes: The limit of the answer's body.
        retries: How many attempts may follow the first.
        follow_redirects: Whether an answer may send the request elsewhere.
        sleep: Waits for some seconds.
        sink: Gets diagnostics.
    """

    def __init__(
        self,
        client: Any,
        *,
        headers: Callable[[], Awaitable[Headers]],
        idle_timeout: float | None,
        max_bytes: int | None,
        retries: int,
        follow_redirects: bool,
        sleep: Callable[[float], Awaitable[None]],
        sink: DiagnosticSink,
    ) -> None:
        self._client = client
        self._headers = headers
        self._idle_timeout = idle_timeout
        self._max_bytes = max_bytes
        self._retries = retries
        self._follow_redirects = follow_redirects
        self._sleep = sleep
        self._sink = sink

    async def ask(self, call: Call) -> Body:
        """Return the body of the answer, an event stream.

        Raises:
            SourceError: There was no answer, or another one; after the last attempt.
        """
        attempt = 0
        while True:
            try:
                return await self._attempt(call)
            except UnansweredError as exc:
                delay = max(_FIRST_DELAY * 2**attempt, exc.after or 0)
                if attempt == self._retries or (exc.after or 0) > _LONGEST_DELAY:
                    raise
                attempt += 1
                text = f"{DIAGNOSTICS['http.retry']} (attempt {attempt + 1} of {self._retries + 1})"
                detail = {"status": exc.status, "delay": min(delay, _LONGEST_DELAY), "exception": exc}
                self._sink(Diagnostic("http.retry", text, detail=detail))
            await self._sleep(min(delay, _LONGEST_DELAY))

    async def _attempt(self, call: Call) -> Body:
        body, response = await self._answer(call)
        try:
            await self._judge(response, body)
        except BaseException:
            await body.aclose()
            raise
        return body

    async def _answer(self, call: Call) -> tuple[Body, Any]:
        """Return the answer at the end of all redirects that may be followed."""
        base = self._client.timeout
        request = self._client.build_request(
            call.method,
            call.url,
            content=call.body,
            headers=await self._headers(),
            # No limit to a read: a healthy stream may be silent for longer, and `Body` has a clock of its own.
            timeout=(base.connect, None, base.write, base.pool),
        )
        once: dict[str, Any] = {}
        for _ in range(_MOST_REDIRECTS + 1):
            response = await self._send(request, once)
            body = Body(response, idle_timeout=self._idle_timeout, max_bytes=self._max_bytes)
            if not (self._follow_redirects and response.next_request is not None):
                return body, response
            await body.aclose()
            request = _redirected(request, response.next_request, response.status_code, call.headers)
            once = {"auth": None}  # the client's own, sent with the first request
        raise SourceError(f"{shown(request.url)}: the remote agent has redirected more than {_MOST_REDIRECTS} times")

    async def _send(self, request: Any, options: Mapping[str, Any]) -> Any:
        where = shown(request.url)
        with anyio.move_on_after(self._idle_timeout):
            try:
                return await self._client.send(request, stream=True, follow_redirects=False, **options)
            except Exception as exc:
                if type(exc).__name__ in _UNREADABLE:
                    raise SourceError(f"{where}: the remote agent has redirected to what is no address") from exc
                if not is_http_error(exc):
                    raise
                if is_http_error(exc, "HTTPStatusError"):  # a hook of the client's has refused the answer
                    raise _refusal(getattr(exc, "response"), None) from exc  # noqa: B009 - of either library
                # What was never sent right would not be the second time.
                lasting = any(is_http_error(exc, name) for name in ("UnsupportedProtocol", "LocalProtocolError"))
                again = is_http_error(exc, "TransportError") and not lasting
                kind = UnansweredError if again else SourceError
                raise kind(f"{where}: the remote agent did not answer ({type(exc).__name__})") from exc
        raise SilenceError(f"{where}: the remote agent did not answer within {self._idle_timeout:g} seconds")

    async def _judge(self, response: Any, body: Body) -> None:
        """Let a response pass that is an event stream."""
        status = int(response.status_code)
        where = shown(response.request.url)
        media_type = str(response.headers.get("content-type", "")).split(";", 1)[0].strip().lower()
        if not 200 <= status < 300:  # noqa: PLR2004 - the statuses of success
            raise _refusal(response, await body.excerpt())
        if media_type != "text/event-stream":
            got = repr(media_type[:80]) if media_type else "without a content type"
            text = f"{where}: the remote agent must answer with text/event-stream; it has answered {status}, {got}"
            raise SourceError(text, status=status, body=await body.excerpt())
        if body.encoding not in ENCODINGS:
            text = f"{where}: the remote agent has compressed its stream ({body.encoding[:40]!r}): only gzip is read"
            raise SourceError(text, status=status)


def _refusal(response: Any, body: str | None) -> SourceError:
    """Return the error that an answer with an HTTP error is."""
    status = int(response.status_code)
    after = _seconds(response.headers.get("retry-after"))
    again = status in _TRANSIENT or (status == _TOO_MANY and after is not None)
    hint = " (a redirect: give the new address, or follow_redirects=True)" if response.has_redirect_location else ""
    text = f"{shown(response.request.url)}: the remote agent has answered {status}{hint}"
    error = (UnansweredError if again else SourceError)(text, status=status, body=body)
    if isinstance(error, UnansweredError):
        error.after = after
    return error


def _redirected(request: Any, target: Any, status: int, own: Iterable[str]) -> Any:
    """Return the request that a redirect asks for, without what the new place must not know.

    Raises:
        SourceError: It is no request for a run any more, or would go out unencrypted.
    """
    if target.method != request.method:
        raise SourceError(
            f"{shown(request.url)}: the remote agent has answered {status}, a redirect that turns"
            f" {request.method} into {target.method}; a run needs 307 or 308",
            status=status,
        )
    if nowhere(target.url):
        text = f"{shown(request.url)}: the remote agent has answered {status}, a redirect to what is no address"
        raise SourceError(text, status=status)
    if request.url.scheme == "https" and target.url.scheme != "https":
        text = f"{shown(request.url)}: the remote agent has answered {status}, a redirect to an unencrypted address"
        raise SourceError(text, status=status)
    if not _same_place(request.url, target.url):
        # The client itself takes `authorization` off; a key in a header of one's own is as secret.
        kept = _NOBODYS_SECRET | {name.lower() for name in own}
        for name in set(target.headers) - kept:
            del target.headers[name]
    return target


def _same_place(url: Any, target: Any) -> bool:
    """Whether two addresses are of one origin, or of one host that wants to be asked by https."""
    ports = tuple(one.port or _PORTS.get(one.scheme) for one in (url, target))
    same = url.scheme == target.scheme and ports[0] == ports[1]
    return bool(url.host == target.host and (same or ports == (80, 443)))


def _seconds(retry_after: str | None) -> float | None:
    """Return the time that a `retry-after` names; None for a date, and for nothing."""
    text = (retry_after or "").strip()
    return float(text[:9]) if text.isascii() and text.isdigit() else None
