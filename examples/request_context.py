"""Who asks, and what follows from it: a bearer token, a chain per tenant, a cap on the runs of each user.

    uvicorn examples.request_context:app

    curl -N localhost:8000/agent -H 'authorization: Bearer ada-token' -H 'content-type: application/json' \
         -d '{"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hi"}]}'

Everything that can be refused is refused before the stream starts, as plain HTTP: 401 with ``WWW-Authenticate`` for a
wrong token, 403 for a tenant without an agent, 429 with ``Retry-After`` for one run too many. Once a stream has begun,
its status is 200 for good, and a client can only be told by an event.

From the outside in, a request meets

1. `RequireUser`: the token's owner becomes ``scope["user"]``, which Starlette calls ``request.user``;
2. `CapRuns`: counts that user's requests from here until the application has returned;
3. `AGUIMiddleware`, which asks `chain_of` for the chain of that user's tenant;
4. the endpoint that exists already.

They are the middleware of one route. No rule about paths decides who is asked for a token: what the router sends to
the endpoint has met them.

Knows Starlette. The tokens and tenants stand in for a database and an identity provider.
"""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ag_ui.core import RunAgentInput
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_pipeline.adapters.starlette import AGUIMiddleware, current_request
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Source, TrustMiddleware
from agui_pipeline.translators import Event, replace

RUNS_A_USER: Final = 2
RETRY_AFTER: Final = 5
"""Seconds that a client is told to wait: about as long as a run takes."""


@dataclass(frozen=True)
class User:
    """Whom a token belongs to."""

    name: str
    tenant: str


TOKENS: Final[Mapping[str, User]] = {
    "ada-token": User("ada", "engines"),
    "bob-token": User("bob", "bakery"),
    "eve-token": User("eve", "nowhere"),
}


# Before the stream: plain ASGI, so that nothing is between the stream and its client.


class RequireUser:
    """Answers 401 unless a request has the bearer token of a user, who is ``scope["user"]`` from then on."""

    def __init__(self, app: ASGIApp, tokens: Mapping[str, User] = TOKENS) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = [value for key, value in scope["headers"] if key == b"authorization"]
        user = self._user(given[0].decode("latin-1")) if len(given) == 1 else None
        if user is None:
            # RFC 6750: a request without a token is told of no error, only of the scheme.
            challenge = 'Bearer realm="agent"' + (', error="invalid_token"' if given else "")
            refusal = {"code": "unauthorized", "message": "a valid bearer token is needed"}
            await JSONResponse(refusal, 401, {"www-authenticate": challenge})(scope, receive, send)
            return
        await self._app({**scope, "user": user}, receive, send)

    def _user(self, value: str) -> User | None:
        scheme, _, token = value.partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = None
        for known, user in self._tokens.items():  # all of them, so that the time taken tells nothing of a token
            if hmac.compare_digest(known.encode(), token.strip().encode()):
                found = user
        return found


class CapRuns:
    """Answers 429 where a user has `most` runs already. Needs ``scope["user"]``.

    A run counts until the application has returned, in whatever way: finished, failed, or cancelled since its client
    left. With ``on_disconnect="detach"`` that is when the agent is done, not when the client is gone.

    The counts are this process's. With several workers, put them where all of them can see them.
    """

    def __init__(self, app: ASGIApp, most: int = RUNS_A_USER, retry_after: int = RETRY_AFTER) -> None:
        self._app = app
        self._most = most
        self._retry_after = retry_after
        self.running: Counter[User] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        user: User = scope["user"]
        if self.running[user] >= self._most:
            refusal = {"code": "too_many_runs", "message": f"at most {self._most} runs at once"}
            await JSONResponse(refusal, 429, {"retry-after": str(self._retry_after)})(scope, receive, send)
            return
        self.running[user] += 1  # no `await` since the look: no other request can come between
        try:
            await self._app(scope, receive, send)
        finally:
            self.running[user] -= 1
            if not self.running[user]:
                del self.running[user]  # one who has left takes no memory


# A chain per tenant. It is asked for once a request, before the stream.


async def signed(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
    """Say to whom an answer was given: the request is known in every stage."""
    user: User = current_request().user
    async for event in next(input):
        yield replace(event, metadata={"for": user.name}) if event.type == "RUN_STARTED" else event


# Stages hold no state of a run: one object serves all requests.
CHAINS: Final[Mapping[str, Sequence[Any]]] = {
    "engines": [signed, GuardMiddleware(), TrustMiddleware()],
    "bakery": [EventThrottleMiddleware(interval=0.1), signed, GuardMiddleware(), TrustMiddleware()],
}


def chain_of(request: Request, _body: Any) -> Sequence[Any]:
    """Return the chain of the user's tenant; what it raises is the answer."""
    chain = CHAINS.get(request.user.tenant)
    if chain is None:
        raise HTTPException(403, f"the tenant {request.user.tenant!r} has no agent")
    return chain


# What exists already. It has never heard of agui_pipeline, but may ask it for the request.


async def agent(input: RunAgentInput) -> AsyncIterator[Mapping[str, Any]]:
    """Greet the user."""
    run = {"threadId": input.thread_id, "runId": input.run_id}
    yield {"type": "RUN_STARTED", **run}
    yield {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    request = current_request()
    language = request.headers.get("accept-language", "en")
    for word in ("Hallo, " if language.startswith("de") else "Hello, ", request.user.name, "!"):
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": word}
    yield {"type": "TEXT_MESSAGE_END", "messageId": "m"}
    yield {"type": "RUN_FINISHED", **run}


def build_app(run: Any = agent, *, on_disconnect: str = "cancel") -> Starlette:
    """Return the application.

    Args:
        run: The agent, ``(RunAgentInput) -> async iterator`` of events.
        on_disconnect: As in `AGUIMiddleware`.
    """

    async def endpoint(request: Request) -> Response:
        input = RunAgentInput.model_validate_json(await request.body())

        async def frames() -> AsyncIterator[str]:
            async for event in run(input):
                yield f"data: {json.dumps(event)}\n\n"

        return StreamingResponse(frames(), media_type="text/event-stream")

    checks = [
        Middleware(RequireUser),
        Middleware(CapRuns),
        Middleware(AGUIMiddleware, middleware=chain_of, on_disconnect=on_disconnect),
    ]
    return Starlette(routes=[Route("/agent", endpoint, methods=["POST"], middleware=checks)])


app = build_app()
