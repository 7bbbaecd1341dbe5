"""Starlette, FastAPI and any other ASGI framework: around an endpoint that exists, or serving a source.

Pure ASGI: nothing here buffers a stream, and background tasks of the wrapped app still run.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias, cast

from ag_ui.core import RunAgentInput, RunErrorEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agui_pipeline.adapters._asgi_app import AppCall, is_event_stream
from agui_pipeline.adapters._asgi_body import Body, Refusal, check_headers, json_error, parse_body, read_body
from agui_pipeline.adapters._asgi_source import MAX_BODY, Options, admitted, serve_source
from agui_pipeline.adapters._asgi_stream import STREAM_HEADERS, Stream
from agui_pipeline.middleware import Middleware, Pipeline, TranslatorMiddleware
from agui_pipeline.middleware._options import check_choice
from agui_pipeline.middleware._request import request as _request
from agui_pipeline.translators import ConfigurationError, Diagnostic, DiagnosticSink, encode_sse, run_input
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._events import loads
from agui_pipeline.translators._input import ParsedInput

__all__ = ["AGUIMiddleware", "agent_app", "agent_endpoint", "current_request"]

Stages: TypeAlias = Sequence[Middleware | TranslatorMiddleware]
StagesFor: TypeAlias = Callable[[Request, Any], Stages | Awaitable[Stages]]
Paths: TypeAlias = Sequence[str] | Callable[[Scope], bool] | None


def current_request() -> Request:
    """Return the HTTP request that the running chain or agent serves: its headers, user and state.

    A context variable: set in `AGUIMiddleware` and `agent_endpoint`, also in the tasks that they start. The body has
    been read; `RunAgentInput` is what it said.

    Raises:
        LookupError: Called outside a request.
    """
    try:
        return cast("Request", _request.get())  # only this module sets it
    except LookupError:
        raise LookupError("current_request() was called outside a request that agui_pipeline serves") from None


class AGUIMiddleware:
    """Puts a chain around AG-UI endpoints of an existing ASGI app, without a change to it.

    Only ``text/event-stream`` answers to POST requests with a RunAgentInput on matching paths are touched; every other
    request, scope and answer passes byte for byte. What a body lacks (message ids, ``tools``, ``context``, ``state``)
    is filled in for the chain and for the app.

    Order: as in a `Pipeline`, the reverse of Starlette's list: the first stage is nearest the app, the last nearest the
    client.

    Guarantees:
        - The app's status and headers go out as soon as it sends them; events that nobody changed, byte for byte.
        - A frame that is no event (a comment, ``[DONE]``) passes with its line ends made LF; it does not meet the
          chain and may overtake what a stage holds. With a `GuardMiddleware` in the chain, one that has data is left
          out: the official client would give up on it.
        - If the app raises, or stops in the middle of its answer, what stages hold is delivered, a RUN_ERROR ends the
          stream (unless a terminal event did), and the exception goes on to the server. Before the answer began, the
          server answers.
        - A slow client slows the app: at most 256 events wait.

    Args:
        app: The wrapped ASGI app.
        middleware: The chain; or a callable, also async, ``(request, body) -> chain`` (body: the decoded JSON, else
            bytes, as far as they were read) called once a request, also for one whose body is no RunAgentInput. It
            may raise Starlette's HTTPException: that is the answer. Where the sequence it returns has an attribute
            ``input`` (a RunAgentInput, or None), that is what the request asks for, whatever its body looks like, and
            the app gets it in place of the body (`agui_pipeline.adapters.superagent.negotiate` returns such a one).
        paths: Which paths: None = all; exact strings, where a trailing ``*`` matches any rest; or ``(scope) -> bool``.
            Paths are those that Starlette's router sees (without a mount's prefix).
        heartbeat: Seconds of silence after which a comment is sent; 0 or None for none.
        on_disconnect: ``"cancel"`` ends the app when the client leaves, ``"detach"`` lets it finish, unread.
        max_body: Bytes of a request body that are read. A larger one passes to the app untouched.
        on_unparsable: What becomes of a body that is no RunAgentInput: ``"pass"`` hands it to the app untouched,
            ``"reject"`` answers 400, 413 or 415.
        on_diagnostic: Gets each `Diagnostic` of this adapter (codes ``asgi.*``, and ``input.*`` for what was filled
            in). Default: the log.

    Raises:
        ConfigurationError: An option has a value it cannot have, or a stage is none.

    Example:
        >>> from starlette.applications import Starlette
        >>> from agui_pipeline.middleware import EventThrottleMiddleware
        >>> app = Starlette()
        >>> app.add_middleware(AGUIMiddleware, middleware=[EventThrottleMiddleware()], paths=["/agent"])
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        middleware: Stages | StagesFor = (),
        paths: Paths = None,
        heartbeat: float | None = 15.0,
        on_disconnect: str = "cancel",
        max_body: int = MAX_BODY,
        on_unparsable: str = "pass",
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        self.app = app
        self._options = Options(heartbeat, on_disconnect, max_body, on_diagnostic)
        check_choice("on_unparsable", on_unparsable, ("pass", "reject"))
        self._reject = on_unparsable == "reject"
        self._matches = _matcher(paths)
        self._stages_for: StagesFor | None = None
        self._pipeline: Pipeline | None = None
        if callable(middleware):
            self._stages_for = _checked(middleware)
        else:
            self._pipeline = Pipeline([], *_sequence(middleware))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI call."""
        if scope["type"] != "http" or scope["method"] in ("HEAD", "OPTIONS") or not self._matches(scope):
            await self.app(scope, receive, send)
            return
        options = self._options
        sink = run_sink(options.on_diagnostic)
        if not self._meets_chain(scope["method"]):
            await self.app(scope, receive, _observed(send, sink, "method", f"it answers a {scope['method']}"))
            return
        body, parsed = await _read(scope, receive, options.max_body)
        if body.disconnected:
            return
        rest = _Rest(receive)
        request = Request(scope, body.tee(rest))
        token = _request.set(request)
        try:
            try:
                # Also where its chain will not be used: it may check who asks, and no body may slip past that.
                pipeline, upgraded = (self._pipeline, None) if self._pipeline else await self._made(request, body)
            except HTTPException as exc:
                await _http_error(exc)(scope, receive, send)
                return
            read = parsed if upgraded is None else ParsedInput(upgraded, ())
            parsed = admitted(pipeline, read, sink)
            if isinstance(parsed, Refusal):
                # What a stage refuses is refused; only what nobody could read may pass by the chain.
                if self._reject or pipeline.protects or not isinstance(read, Refusal):
                    await _refusal(pipeline, read, parsed)(scope, receive, send)
                    return
                observed = _observed(
                    send, sink, parsed.code, "its request is no RunAgentInput; see on_unparsable", parsed.message
                )
                await self.app(scope, body.replay(receive), observed)
                return
            for repair in parsed.repairs:
                sink(repair)
            pristine = dict(scope)
            given = None if parsed.changed or upgraded is not None else parsed.input
            in_band = pipeline.in_band(parsed.input) is not None
            stream = Stream(
                pipeline,
                send,
                receive,
                make=lambda stream: AppCall(self.app, scope, pristine, body, given, stream, in_band=in_band),
                heartbeat=options.heartbeat,
                detach=options.detach,
                sink=sink,
            )
            rest.receive = stream.receive
            await stream.run(parsed.input)
        finally:
            _request.reset(token)

    def _meets_chain(self, method: str) -> bool:
        """Whether a method's body is read as an input: POST, and what else has one where a stage must see it all."""
        protected = self._pipeline is None or self._pipeline.protects
        return method == "POST" or (protected and method in ("PUT", "PATCH"))

    async def _made(self, request: Request, body: Body) -> tuple[Pipeline, RunAgentInput | None]:
        """Return the chain for one request, and the input that its body stands for where it is none itself."""
        assert self._stages_for is not None  # noqa: S101 - one of the two was set
        try:
            data = loads(body.data)
        except ValueError:
            data = body.data
        stages = self._stages_for(request, data)
        if inspect.isawaitable(stages):
            stages = await stages
        return Pipeline([], *_sequence(stages)), getattr(stages, "input", None)


class _Rest:
    """What comes after a request's body: the server's own messages, until a stream owns them."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive

    async def __call__(self) -> Message:
        return await self.receive()


async def _read(scope: Scope, receive: Receive, limit: int) -> tuple[Body, ParsedInput | Refusal]:
    """Read the body and parse it; a body that its headers rule out is not read."""
    refusal = check_headers(scope)
    if refusal is not None:
        return Body(), refusal
    body = await read_body(scope, receive, limit)
    return body, parse_body(body, limit)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


_WANTED = "a sequence of middleware, or a callable (request, body) -> sequence"


def _sequence(middleware: Stages) -> Stages:
    if not _is_sequence(middleware):
        hint = " is a single stage: put it in a list; must be " if callable(middleware) else ": must be "
        raise ConfigurationError(f"middleware={middleware!r}{hint}{_WANTED}")
    return middleware


def _checked(middleware: Any) -> StagesFor:
    """Check a callable that makes chains: a lone stage is callable, too, and would fail at the first request only."""
    if isinstance(middleware, TranslatorMiddleware) or inspect.isasyncgenfunction(middleware):
        raise ConfigurationError(f"middleware={middleware!r} is a single stage: put it in a list; must be {_WANTED}")
    if inspect.isclass(middleware):
        raise ConfigurationError(f"middleware={middleware!r} is a class; must be {_WANTED}")
    try:
        signature = inspect.signature(middleware)
    except (TypeError, ValueError):  # built in C: nothing to look at
        return cast("StagesFor", middleware)
    try:
        signature.bind(None, None)
    except TypeError as exc:
        raise ConfigurationError(f"middleware={middleware!r}: must be {_WANTED} ({exc})") from None
    return cast("StagesFor", middleware)


def _matcher(paths: Paths) -> Callable[[Scope], bool]:
    if paths is None:
        return lambda _scope: True
    if callable(paths):
        return paths
    every: tuple[Any, ...] | None = tuple(paths) if _is_sequence(paths) else None
    if every is None or not all(isinstance(path, str) and path[:1] in ("/", "*") for path in every):
        wanted = "None (all), a sequence of strings that start with '/', or a callable (scope) -> bool"
        raise ConfigurationError(f"paths={paths!r}: must be {wanted}")
    if any("{" in path or "*" in path[:-1] for path in every):
        wanted = "exact, or end with one '*', which stands for any rest; for patterns give a callable (scope) -> bool"
        raise ConfigurationError(f"paths={paths!r}: each must be {wanted}")
    exact = frozenset(path for path in every if not path.endswith("*"))
    prefixes = tuple(path[:-1] for path in every if path.endswith("*"))

    def matches(scope: Scope) -> bool:
        path = route_path(scope)
        return path in exact or path.startswith(prefixes)

    return matches


def route_path(scope: Scope) -> str:
    """Return the path that Starlette's router sees: without the prefix of the mounts around it."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(root + "/")):
        return path[len(root) :] or "/"
    return path


def _observed(send: Send, sink: DiagnosticSink, reason: str, why: str, error: str | None = None) -> Send:
    """Return a `send` that reports an event stream which passes by the chain."""
    # Beside the message, which is logged: the error may quote the request.
    detail = {"reason": reason} if error is None else {"reason": reason, "error": error}

    async def observed(message: Message) -> None:
        if message["type"] == "http.response.start":
            for key, value in message.get("headers", ()):
                if key.lower() == b"content-type" and is_event_stream(value):
                    text = f"an event stream passed without meeting the middleware: {why} ({reason})"
                    sink(Diagnostic("asgi.bypass", text, detail=detail))
        await send(message)

    return observed


def _refusal(pipeline: Pipeline, read: ParsedInput | Refusal, refusal: Refusal) -> Response:
    """Return the answer to a request that is refused: of its status, or as a stream where the client looks at none."""
    input = None if isinstance(read, Refusal) else read.input
    stage = pipeline.in_band(input)
    if stage is None:
        return JSONResponse(json_error(refusal), refusal.status)
    error: Any = RunErrorEvent(message=refusal.message, code=refusal.code)
    # It has no clock, as all that speak to these clients; and what cannot be read declares no version.
    told: Any = stage.translator(run_input(protocol_version=None) if input is None else input)
    stream = b"".join(map(encode_sse, (*told.feed(error), *told.flush())))
    return Response(stream, headers={key.decode(): value.decode() for key, value in STREAM_HEADERS})


def _http_error(exc: HTTPException) -> Response:
    if exc.status_code in (204, 304):  # these have no body
        return Response(status_code=exc.status_code, headers=exc.headers)
    return JSONResponse({"code": "refused", "message": exc.detail}, exc.status_code, headers=dict(exc.headers or {}))


class AgentEndpoint:
    """An ASGI app that serves one agent at one place. Made by `agent_endpoint`."""

    def __init__(self, pipeline: Pipeline, options: Options) -> None:
        self._pipeline = pipeline
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI call."""
        if scope["type"] != "http":
            raise RuntimeError(f"an agent endpoint serves HTTP; got a {scope['type']} scope")
        if scope["method"] != "POST":
            refusal = Refusal(405, "method_not_allowed", f"{scope['method']}: an agent is run by POST")
            await JSONResponse(json_error(refusal), 405, headers={"allow": "POST"})(scope, receive, send)
            return
        options = self._options
        body, parsed = await _read(scope, receive, options.max_body)
        if body.disconnected:
            return
        sink = run_sink(options.on_diagnostic)
        token = _request.set(Request(scope, body.replay(receive)))  # a stage may look at it before it admits a run
        try:
            read, parsed = parsed, admitted(self._pipeline, parsed, sink)
        finally:
            _request.reset(token)
        if isinstance(parsed, Refusal):
            await _refusal(self._pipeline, read, parsed)(scope, receive, send)
            return
        for repair in parsed.repairs:
            sink(repair)
        await serve_source(self._pipeline, parsed.input, body, scope, receive, send, options=options, sink=sink)


def agent_endpoint(
    source: Any,
    *middleware: Middleware | TranslatorMiddleware,
    heartbeat: float | None = 15.0,
    on_disconnect: str = "cancel",
    max_body: int = MAX_BODY,
    on_diagnostic: DiagnosticSink | None = None,
) -> AgentEndpoint:
    """Return an ASGI app that serves a source, for a `Route`, a `Mount` or a server.

    Bad input is refused before the stream: 400 with the JSON path and what was wanted, 405, 413, 415; the body is
    ``{"code", "message"}``. Then the response starts at once, and every failure is an event.

    Args:
        source: Whatever `agui_pipeline.middleware.as_source` takes.
        *middleware: The chain, nearest the source first.
        heartbeat: As in `AGUIMiddleware`.
        on_disconnect: As in `AGUIMiddleware`.
        max_body: As in `AGUIMiddleware`; a larger body is refused with 413.
        on_diagnostic: As in `AGUIMiddleware`.

    Raises:
        ConfigurationError: The source or a stage is none, or an option has a value it cannot have.

    Example:
        >>> from starlette.applications import Starlette
        >>> from starlette.routing import Route
        >>> async def agent(input):
        ...     yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
        ...     yield {"type": "RUN_FINISHED", "threadId": input.thread_id, "runId": input.run_id}
        >>> app = Starlette(routes=[Route("/agent", agent_endpoint(agent))])
    """
    options = Options(heartbeat, on_disconnect, max_body, on_diagnostic)
    return AgentEndpoint(Pipeline(source, *middleware), options)


def agent_app(
    source: Any,
    *middleware: Middleware | TranslatorMiddleware,
    path: str = "/",
    heartbeat: float | None = 15.0,
    on_disconnect: str = "cancel",
    max_body: int = MAX_BODY,
    on_diagnostic: DiagnosticSink | None = None,
) -> Starlette:
    """Return a Starlette application that serves a source at `path`; everything else as in `agent_endpoint`.

    Example:
        >>> async def agent(input):
        ...     yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
        ...     yield {"type": "RUN_FINISHED", "threadId": input.thread_id, "runId": input.run_id}
        >>> app = agent_app(agent)  # uvicorn module:app
    """
    if not path.startswith("/"):
        raise ConfigurationError(f"path={path!r}: must start with '/'")
    endpoint = agent_endpoint(
        source,
        *middleware,
        heartbeat=heartbeat,
        on_disconnect=on_disconnect,
        max_body=max_body,
        on_diagnostic=on_diagnostic,
    )
    return Starlette(routes=[Route(path, endpoint)])
