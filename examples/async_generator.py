"""An agent that is an async generator function: the shortest way to a source.

    uvicorn examples.async_generator:app

    curl -N localhost:8000/ -H 'content-type: application/json' \
         -d '{"messages": [{"role": "user", "content": "6 times 7"}]}'

It is called once a run with the RunAgentInput, and yields events: models of `ag_ui.core`, mappings, JSON, or SSE text.
When the client leaves, the generator is closed where it stands, and its `finally` runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters.starlette import agent_app
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware


async def agent(input: RunAgentInput) -> AsyncIterator[dict[str, Any]]:
    """Answer, word by word, and keep count in the shared state."""
    yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
    state = input.state if isinstance(input.state, dict) else {}
    yield {"type": "STATE_SNAPSHOT", "snapshot": {**state, "answers": state.get("answers", 0) + 1}}
    # In chunks there is no START and no END to forget: the first one names the message.
    for word in ("That ", "makes ", "42."):
        await anyio.sleep(0.01)  # a model would be asked here
        yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": "answer", "role": "assistant", "delta": word}
    yield {"type": "RUN_FINISHED", "threadId": input.thread_id, "runId": input.run_id}


# The first stage is nearest the agent, the last nearest the client.
app = agent_app(agent, EventThrottleMiddleware(), GuardMiddleware())
