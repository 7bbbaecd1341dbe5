"""The old HTTP API of Superagent on top of any source: its clients keep working.

`routes` serves that API, `negotiate` says which of its dialects a request asks for. Knows requests, and what is
answered before a stream; agents, sessions, answers and dialects have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ag_ui.core import RunAgentInput
from starlette.routing import BaseRoute, Route

from agui_pipeline.adapters._asgi_source import MAX_BODY, Options
from agui_pipeline.adapters._http_dialects import exchange_for
from agui_pipeline.adapters._http_exchange import ExchangeFactory
from agui_pipeline.adapters._superagent_agents import Agents
from agui_pipeline.adapters._superagent_api import Api, Sessions
from agui_pipeline.adapters._superagent_negotiate import Negotiated, negotiate
from agui_pipeline.adapters._superagent_sessions import MemorySessions, Session, SessionLimits, SessionStore
from agui_pipeline.middleware import Middleware, TranslatorMiddleware
from agui_pipeline.middleware._options import check_callable, check_choice, check_count, check_number, check_store
from agui_pipeline.translators import ConfigurationError, DiagnosticSink
from agui_pipeline.translators._keys import by_thread
from agui_pipeline.translators.superagent import DIALECTS

__all__ = ["MemorySessions", "Negotiated", "Session", "SessionStore", "negotiate", "old_agent", "routes"]

PREFIX: Final = "/api/v1/chat"
"""Where the old API is."""


def old_agent(dialect: str, *, agent_id: str | None = None) -> ExchangeFactory:
    """Return the `dialect` of an `HttpAgent` whose endpoint serves several agents.

    ``HttpAgent(url, dialect="superagent")`` is enough where it serves one, or where front ends say which
    (``forwardedProps.agent_id``).

    Args:
        dialect: ``"superagent"``, ``"superagent-flat"`` or ``"superagent-compatible"``.
        agent_id: Which agent is asked. Default: what the front end says, if it does.

    Raises:
        ConfigurationError: There is no such dialect.

    Example:
        >>> from agui_pipeline.adapters.http import HttpAgent
        >>> HttpAgent(
        ...     "https://agents.example/api/v1/chat/stream",
        ...     dialect=old_agent("superagent", agent_id="research-agent"),
        ... )
        HttpAgent('https://agents.example/api/v1/chat/stream')
    """
    return exchange_for(dialect, agent_id=agent_id)


def routes(  # noqa: PLR0913 - the options of an API
    source: Any,
    *middleware: Middleware | TranslatorMiddleware,
    prefix: str = PREFIX,
    default_dialect: str | None = None,
    tool_call_updates: bool = False,
    history: bool = True,
    store: SessionStore | None = None,
    key: Callable[[RunAgentInput], str] = by_thread,
    max_messages: int = 1000,
    max_session: int = 1024 * 1024,
    patience: float = 5.0,
    heartbeat: float | None = 15.0,
    on_disconnect: str = "cancel",
    max_body: int = MAX_BODY,
    on_diagnostic: DiagnosticSink | None = None,
) -> list[BaseRoute]:
    """Return the routes of the old HTTP API, for a Starlette or FastAPI application, around a source.

    - ``POST {prefix}/stream`` with ``{"agent_id", "session_id", "message"}``;
    - ``POST {prefix}/resume`` with ``{"agent_id", "session_id", "input"}`` or ``{"session_id", "answer"}``;
    - ``GET {prefix}/stream?session=…``, for an `EventSource`, with an optional `message` and `agent_id`: without a
      message it shows the interrupts that are open, or runs the agent with what the session holds. One that connects
      again, because its stream broke off, starts no second run.

    The answer is a stream in the dialect that `negotiate` finds; that of a resume without its own opt-in, the dialect
    of the stream that was interrupted. An AG-UI body is served as AG-UI, without a session.

    A session is what an AG-UI client would keep: messages and state, folded from the events that leave the chain, and
    open interrupts. The agent gets it as an AG-UI client would send it.

    - One run a session at a time: a message waits up to `patience` seconds for the one before it, then gets 409; an
      answer does not wait.
    - What a client has seen of a run is remembered, also where the client left or the run failed in the middle. A run
      that fails before its first event changes nothing.
    - An answer is for the first interrupt that has none. Until each has one, the stream shows those that are left; then
      the run goes on, with all answers in `RunAgentInput.resume`: what AG-UI clients must do. However often an answer
      arrives, it starts one run. A message cancels the open interrupts.
    - What cannot be served is refused before the stream, with ``{"code", "message"}``: 400 ``invalid_request``, 404
      ``unknown_agent`` or ``unknown_session``, 405, 409 ``nothing_to_resume`` or ``session_busy``, 413, 415.

    Args:
        source: Whatever `as_source` takes, which then serves every `agent_id`; a mapping of sources by agent id; or a
            resolver ``(agent_id) -> source | None``, recognised by being a coroutine function or by its parameter's
            name.
        *middleware: The chain, nearest the source first. The dialect comes behind it.
        prefix: The path in front of ``/stream`` and ``/resume``.
        default_dialect: The dialect of messages that do not opt in. Default: compatible.
        tool_call_updates: As in `LegacyDowngradeMiddleware`.
        history: Whether messages and state are remembered and sent whole. False for agents that remember by thread:
            they get the new message only.
        store: Where sessions are kept. Default: a `MemorySessions`.
        key: The session in the store: ``(input) -> str``. Default: the session id, which clients choose. Where several
            users share a server, put the user in (`current_request` tells who asks). Called before the run, with an
            input that has the new message only.
        max_messages: Messages that a session may hold; then the oldest are forgotten.
        max_session: Bytes, as JSON, that it may hold; likewise.
        patience: Seconds that a message waits for a run of its session.
        heartbeat: As in `AGUIMiddleware`.
        on_disconnect: As in `AGUIMiddleware`.
        max_body: As in `agent_endpoint`.
        on_diagnostic: Gets each `Diagnostic` of this adapter (codes ``superagent.*``) and of stages that have no sink
            of their own. Default: the log.

    Raises:
        ConfigurationError: The source or a stage is none, or an option has a value it cannot have.

    Example:
        >>> from starlette.applications import Starlette
        >>> async def agent(input):
        ...     yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
        ...     yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": f"{len(input.messages)} messages"}
        ...     yield {"type": "RUN_FINISHED", "threadId": input.thread_id, "runId": input.run_id}
        >>> app = Starlette(routes=routes({"counting-agent": agent}))
    """
    if not prefix.startswith("/"):
        raise ConfigurationError(f"prefix={prefix!r}: must start with '/'")
    if default_dialect is not None:
        check_choice("default_dialect", default_dialect, tuple(DIALECTS))
    check_choice("tool_call_updates", tool_call_updates, (False, True))
    check_choice("history", history, (False, True))
    check_callable("key", key, "(RunAgentInput) -> str")
    check_count("max_messages", max_messages, least=1)
    check_count("max_session", max_session, least=1, unit="a whole number of bytes")
    check_number("patience", patience, unit="a number of seconds")
    check_store("store", store, SessionStore, "a MemorySessions, or another SessionStore")
    api = Api(
        Agents(source, middleware),
        middleware,
        Sessions(
            MemorySessions() if store is None else store,
            key,
            SessionLimits(max_messages, max_session),
            patience,
            history,
        ),
        Options(heartbeat, on_disconnect, max_body, on_diagnostic),
        default_dialect=default_dialect,
        tool_call_updates=tool_call_updates,
    )
    base = prefix.rstrip("/")
    return [Route(f"{base}/stream", api.stream()), Route(f"{base}/resume", api.resume())]
