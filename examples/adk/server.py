"""A Google ADK agent behind our chain: as a source, and around the endpoint that ag-ui-adk makes.

    pip install . -r examples/adk/requirements.txt
    uvicorn examples.adk.server:app

    curl -N localhost:8000/source -H 'content-type: application/json' \
         -d '{"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hello"}]}'

It has an environment of its own for its size, and since ag-ui-adk wants ``ag-ui-protocol>=1``. Where a run fails it
sends the exception's text to the client, in a RUN_ERROR of its own; a stage may change that.

The model is a script; put the name of yours in its place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ag_ui_adk import ADKAgent, add_adk_fastapi_endpoint  # type: ignore[import-not-found] # see requirements.txt
from fastapi import FastAPI
from google.adk.agents import LlmAgent  # type: ignore[import-not-found] # see requirements.txt
from google.adk.models import BaseLlm, LlmRequest, LlmResponse  # type: ignore[import-not-found]
from google.genai import types  # type: ignore[import-not-found]
from starlette.routing import Route

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_endpoint
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Stage

# The first stage is nearest the agent, the last nearest the client.
CHAIN: list[Stage] = [EventThrottleMiddleware(interval=0.1), GuardMiddleware()]


class ScriptedModel(BaseLlm):  # type: ignore[misc] # not installed where types are checked
    """A model that always says the same, word by word."""

    async def generate_content_async(self, _request: LlmRequest, stream: bool = False) -> AsyncIterator[Any]:
        """Give the pieces, then, as ADK wants it, the whole."""
        words = ["ADK ", "agrees, ", "too."]
        for word in words if stream else ():
            yield LlmResponse(content=_said(word), partial=True)
        yield LlmResponse(content=_said("".join(words)), partial=False, turn_complete=True)


def _said(text: str) -> Any:
    return types.Content(role="model", parts=[types.Part(text=text)])


def build_agent() -> Any:
    """Return the agent: an object with ``run(input)``, and so a source as it is."""
    agent = LlmAgent(name="scripted", model=ScriptedModel(model="scripted"), instruction="Agree.")
    return ADKAgent(adk_agent=agent, app_name="example", user_id="user", use_in_memory_services=True)


def build_app() -> FastAPI:
    """Return an app with both endpoints."""
    app = FastAPI()
    app.router.routes.append(Route("/source", agent_endpoint(build_agent(), *CHAIN), methods=["POST"]))
    add_adk_fastapi_endpoint(app, build_agent(), path="/around")
    app.add_middleware(AGUIMiddleware, middleware=CHAIN, paths=["/around"])
    return app


app = build_app()
