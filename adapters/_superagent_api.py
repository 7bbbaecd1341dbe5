"""The handlers of the old HTTP API: from a request to a refusal or a stream.

Knows ASGI, and in which order things are done: read, refuse, take the session's turn, plan, run, give the turn back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ag_ui.core import RunAgentInput
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from agui_pipeline.adapters._asgi_body import Body, Refusal, check_headers, json_error, parse_body, read_body
from agui_pipeline.adapters._asgi_source import Options, admitted, serve_source
from agui_pipeline.adapters._superagent_agents import Agents
from agui_pipeline.adapters._superagent_negotiate import Negotiated, agent_of, is_agui, negotiate
from agui_pipeline.adapters._superagent_plan import Plan, asked_input, busy, plan_answer, plan_message
from agui_pipeline.adapters._superagent_requests import Asked, RefusedError, chat, read_body_object, resume, watch
from agui_pipeline.adapters._superagent_run import Visit
from agui_pipeline.adapters._superagent_sessions import MemorySessions, Session, SessionLimits, SessionStore, Turns
from agui_pipeline.middleware import Middleware, Pipeline, TranslatorMiddleware
from agui_pipeline.middleware._request import request as current
from agui_pipeline.translators import ConfigurationError, DiagnosticSink
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._input import ParsedInput


@dataclass(frozen=True, slots=True)
class Sessions:
    """How sessions are kept."""

    store: SessionStore
    key: Callable[[RunAgentInput], str]
    limits: SessionLimits
    patience: float
    history: bool


@dataclass(frozen=True, slots=True)
class _Call:
    """One ASGI call, with its body read."""

    scope: Scope
    receive: Receive
    send: Send
    body: Body
    request: Request
    sink: DiagnosticSink


class Api:
    """The API around some agents.

    Args:
        agents: The agents.
        middleware: The chain.
        sessions: How sessions are kept.
        options: How streams are served.
        default_dialect: The dialect of messages that do not opt in.
        tool_call_updates: As in `LegacyDowngradeMiddleware`.
    """

    def __init__(
        self,
        agents: Agents,
        middleware: tuple[Middleware | TranslatorMiddleware, ...],
        sessions: Sessions,
        options: Options,
        *,
        default_dialect: str | None,
        tool_call_updates: bool,
    ) -> None:
        self._agents = agents
        self._middleware = middleware
        self._sessions = sessions
        self._options = options
        self._default_dialect = default_dialect
        self._tool_call_updates = tool_call_updates
        self._turns = Turns()
        self._nowhere = MemorySessions(max_sessions=1)  # for what nobody can come back to

    def stream(self) -> Endpoint:
        """Return the app of the stream's path."""
        return Endpoint(self, {"POST": self._chat, "GET": self._watch})

    def resume(self) -> Endpoint:
        """Return the app of the resume's path."""
        return Endpoint(self, {"POST": self._resume})

    async def open(self, scope: Scope, receive: Receive, send: Send) -> _Call | None:
        """Read a request; None where its client left meanwhile.

        Raises:
            RefusedError: Its headers rule its body out.
        """
        if scope["method"] == "GET":
            body = Body(complete=True)
        else:
            refusal = check_headers(scope)
            if refusal is not None:
                raise RefusedError(refusal.status, refusal.code, refusal.message)
            body = await read_body(scope, receive, self._options.max_body)
            if body.disconnected:
                return None
        request = Request(scope, body.replay(receive))
        return _Call(scope, receive, send, body, request, run_sink(self._options.on_diagnostic))

    async def _chat(self, call: _Call) -> None:
        data = read_body_object(call.body, self._options.max_body)
        if is_agui(data):
            await self._serve_agui(call, data)
            return
        await self._serve_message(call, chat(data), data)

    async def _watch(self, call: _Call) -> None:
        asked = watch(call.request)
        again = "last-event-id" in call.request.headers
        await self._serve_message(replace(call, send=_identified(call.send)), asked, {}, again=again)

    async def _resume(self, call: _Call) -> None:
        data = read_body_object(call.body, self._options.max_body)
        asked = resume(data)
        visit = await self._visit(call, asked, patience=0)
        try:
            plan = await plan_answer(asked, visit, self._agents, history=self._sessions.history, sink=call.sink)
            await self._serve(call, plan, visit, data, visit.session.dialect or self._default_dialect)
        finally:
            await visit.close()

    async def _serve_message(self, call: _Call, asked: Asked, data: Mapping[str, Any], *, again: bool = False) -> None:
        visit = await self._visit(call, asked, patience=self._sessions.patience)
        try:
            plan = await plan_message(
                asked, visit, self._agents, history=self._sessions.history, again=again, sink=call.sink
            )
            await self._serve(call, plan, visit, data, self._default_dialect)
        finally:
            await visit.close()

    async def _serve_agui(self, call: _Call, data: Mapping[str, Any]) -> None:
        """Serve an AG-UI front end: it remembers its thread by itself."""
        _, source = await self._agents.find(agent_of(data))
        pipeline = Pipeline(source, *self._middleware, *self._negotiated(call, data))
        await self._stream(call, pipeline, parse_body(call.body, self._options.max_body))

    def _negotiated(
        self, call: _Call, data: Mapping[str, Any], default: str | None = None, session: Session | None = None
    ) -> Negotiated:
        shown = () if session is None else (*session.shown, *session.calls)
        return negotiate(call.request, data, default, tool_call_updates=self._tool_call_updates, shown=shown)

    async def _visit(self, call: _Call, asked: Asked, patience: float) -> Visit:
        """Take a session's turn."""
        sessions = self._sessions
        input = asked_input(asked)
        store: SessionStore = self._nowhere
        key = input.thread_id
        if asked.session_id is not None:
            store, key = sessions.store, sessions.key(input)
            if not isinstance(key, str):  # else all whose key is None would share a session
                raise ConfigurationError(f"key={sessions.key!r}: must return a str, got {key!r:.100}")
        visit = Visit(key, store, self._turns, sessions.limits, call.sink)
        if not await visit.open(patience):
            raise busy()
        return visit

    async def _serve(self, call: _Call, plan: Plan, visit: Visit, data: Mapping[str, Any], default: str | None) -> None:
        named = data if plan.agent_id is None else {**data, "agent_id": plan.agent_id}
        negotiated = self._negotiated(call, named, default, plan.session)
        if plan.session is None:
            await visit.spoken(negotiated.dialect)
            pipeline = Pipeline(plan.source, *negotiated)
        else:
            session = replace(plan.session, dialect=negotiated.dialect)
            recorder = visit.recorder(session, history=self._sessions.history)
            pipeline = Pipeline(plan.source, *self._middleware, recorder, *negotiated)
        await self._stream(call, pipeline, ParsedInput(plan.input, ()))

    async def _stream(self, call: _Call, pipeline: Pipeline, parsed: ParsedInput | Refusal) -> None:
        parsed = admitted(pipeline, parsed, call.sink)
        if isinstance(parsed, Refusal):
            raise RefusedError(parsed.status, parsed.code, parsed.message)
        for repair in parsed.repairs:
            call.sink(repair)
        await serve_source(
            pipeline,
            parsed.input,
            call.body,
            call.scope,
            call.receive,
            call.send,
            options=self._options,
            sink=call.sink,
        )


class Endpoint:
    """An ASGI app for one path: finds the method's handler, and answers refusals.

    Args:
        api: The API.
        handlers: The handlers by method.
    """

    def __init__(self, api: Api, handlers: Mapping[str, Callable[[_Call], Awaitable[None]]]) -> None:
        self._api = api
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI call."""
        allowed = ", ".join(self._handlers)
        handler = self._handlers.get(scope["method"])
        if handler is None:
            refusal = Refusal(405, "method_not_allowed", f"{scope['method']}: wanted {allowed}")
            await JSONResponse(json_error(refusal), 405, {"allow": allowed})(scope, receive, send)
            return
        try:
            call = await self._api.open(scope, receive, send)
            if call is None:
                return
            token = current.set(call.request)  # resolvers and keys may ask for it, too
            try:
                await handler(call)
            finally:
                current.reset(token)
        except RefusedError as exc:
            await JSONResponse(json_error(exc.refusal), exc.refusal.status)(scope, receive, send)


def _identified(send: Send) -> Send:
    """Return a `send` whose stream has an id: an `EventSource` that lost it says so when it connects again.

    In a frame without data, which no `onmessage` sees.
    """

    async def identified(message: Message) -> None:
        await send(message)
        if message["type"] == "http.response.start" and message["status"] == 200:  # noqa: PLR2004 - else no stream
            await send({"type": "http.response.body", "body": b"id: 1\n\n", "more_body": True})

    return identified
