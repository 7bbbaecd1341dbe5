"""A Pydantic AI agent behind our chain: in an endpoint of one's own, or as a source.

    pip install agui-pipeline 'pydantic-ai-slim[ag-ui]' uvicorn
    uvicorn examples.pydantic_ai_agent:app

    curl -N localhost:8000/agent -H 'content-type: application/json' \
         -d '{"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "What time is it?"}],
              "state": {}, "tools": [], "context": [], "forwardedProps": {}}'

- ``/agent`` keeps Pydantic AI's request handling and response: what it says about bad requests stays as it is.
- ``/source`` gives all of that to us: heartbeats, what old clients leave out filled in, 400 with the path.

The model is Pydantic AI's TestModel, which calls every tool once and answers with what they said; give `Agent` yours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator

from ag_ui.core import BaseEvent, RunAgentInput
from pydantic import ValidationError
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agui_pipeline.adapters.starlette import agent_endpoint
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Pipeline, Stage

agent = Agent(TestModel())

# The first stage is nearest the agent, the last nearest the client.
CHAIN: list[Stage] = [EventThrottleMiddleware(interval=0.1), GuardMiddleware()]


@agent.tool_plain
def time_of_day() -> str:
    """Return the time of day."""
    return "five o'clock"


async def endpoint(request: Request) -> Response:
    """Serve the agent with Pydantic AI's own adapter, and a chain between the two."""
    try:
        adapter = await AGUIAdapter.from_request(request, agent=agent)
    except ValidationError as exc:
        return Response(exc.json(include_url=False), 422, media_type="application/json")

    def run(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
        # With the input of the chain, which a stage may have changed; not with that of the request.
        return dataclasses.replace(adapter, run_input=input).run_stream()

    # Events of a pipeline need not be models, as its parameter says; Pydantic AI's encoder takes either kind.
    return adapter.streaming_response(Pipeline(run, *CHAIN)(adapter.run_input))  # type: ignore[arg-type]


def source(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
    """Run the agent: a source, for `Pipeline`, `agent_app` and the like."""
    return AGUIAdapter(agent, run_input=input).run_stream()


app = Starlette(
    routes=[
        Route("/agent", endpoint, methods=["POST"]),
        Route("/source", agent_endpoint(source, *CHAIN), methods=["POST"]),
    ]
)
