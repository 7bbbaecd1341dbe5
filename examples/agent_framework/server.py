"""A Microsoft Agent Framework agent behind our chain: as a source, and around the endpoint that the framework makes.

    pip install . -r examples/agent_framework/requirements.txt
    uvicorn examples.agent_framework.server:app

    curl -N localhost:8000/source -H 'content-type: application/json' \
         -d '{"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hello"}]}'

It has an environment of its own: agent-framework-ag-ui wants ``ag-ui-protocol<0.2``, on which this library runs, too,
but not next to an agent that wants 1.x. Where both must be served from one place, serve this one alone and put
`agui_pipeline.adapters.http.HttpAgent` in front of it.

The model is a script; put a chat client of yours in its place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ag_ui.core import BaseEvent, RunAgentInput
from agent_framework import (  # type: ignore[import-not-found] # see requirements.txt
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Message,
    ResponseStream,
)
from agent_framework_ag_ui import (  # type: ignore[import-not-found] # see requirements.txt
    AgentFrameworkAgent,
    add_agent_framework_fastapi_endpoint,
)
from fastapi import FastAPI
from starlette.routing import Route

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_endpoint
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Stage

# The first stage is nearest the agent, the last nearest the client.
CHAIN: list[Stage] = [EventThrottleMiddleware(interval=0.1), GuardMiddleware()]


class ScriptedClient(BaseChatClient):  # type: ignore[misc] # not installed where types are checked
    """A model that always says the same, word by word."""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:  # noqa: ARG002
        words = ["The ", "framework ", "agrees."]
        if not stream:
            return self._whole("".join(words))

        async def updates() -> AsyncIterator[Any]:
            for word in words:
                yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(word)])

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    async def _whole(self, text: str) -> Any:
        return ChatResponse(messages=[Message(role="assistant", contents=[text])])


def build_agent() -> Any:
    """Return the agent."""
    return Agent(ScriptedClient(), name="scripted", instructions="Agree.")


def source(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    """Run the agent. It takes the input as JSON, and keeps nothing of a run."""
    events: AsyncIterator[BaseEvent] = AgentFrameworkAgent(build_agent()).run(
        input.model_dump(mode="json", by_alias=True, exclude_none=True)
    )
    return events


def build_app() -> FastAPI:
    """Return an app with both endpoints."""
    app = FastAPI()
    app.router.routes.append(Route("/source", agent_endpoint(source, *CHAIN), methods=["POST"]))
    add_agent_framework_fastapi_endpoint(app, build_agent(), "/around", single_user=True)
    app.add_middleware(AGUIMiddleware, middleware=CHAIN, paths=["/around"])
    return app


app = build_app()
