"""Front ends of Superagent's old API, served by an agent that has never heard of them.

    uvicorn examples.superagent_api:app

    curl -N localhost:8000/api/v1/chat/stream -H 'content-type: application/json' -H 'x-a2ui: true' \
         -d '{"agent_id": "librarian", "session_id": "s", "message": "delete the old files"}'
    curl -N localhost:8000/api/v1/chat/resume -H 'content-type: application/json' \
         -d '{"agent_id": "librarian", "session_id": "s", "input": {"confirm": true}}'

The first answer ends in an ``interrupt`` frame with one field, the second goes on with the run: in the same dialect,
which the session remembers. Without ``x-a2ui`` the frames are raw tokens up to ``[DONE]``; an `EventSource` on
``/api/v1/chat/stream?session=s&message=…`` gets unnamed JSON frames. `/agent` serves AG-UI front ends *and* old ones
by one chain, without sessions: the agent behind it must remember its threads itself.

Knows Starlette. The agent is a stand-in: it says what it would do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from ag_ui.core import RunAgentInput
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.routing import Mount

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.adapters.superagent import MemorySessions, Negotiated, negotiate, routes
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware

CONFIRM: Final = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Delete them?"}},
    "required": ["confirm"],
}


async def librarian(input: RunAgentInput) -> AsyncIterator[dict[str, Any]]:
    """Look for old files; delete them once somebody said so."""
    run = {"threadId": input.thread_id, "runId": input.run_id}
    yield {"type": "RUN_STARTED", **run}
    answers = [entry.payload for entry in input.resume or () if entry.status == "resolved"]
    if answers:
        agreed = isinstance(answers[0], dict) and answers[0].get("confirm") is True
        yield _says(input, "Deleted." if agreed else "I leave them where they are.")
    elif not input.messages or "delete" not in str(input.messages[-1].content):
        yield _says(input, f"I heard {len(input.messages)} messages, and no order.")
    else:
        call = f"call-{input.run_id}"
        yield {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "find_files"}
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": '{"older_than": "2020-01-01"}'}
        yield {"type": "TOOL_CALL_END", "toolCallId": call}
        yield {"type": "TOOL_CALL_RESULT", "toolCallId": call, "messageId": f"{call}-r", "content": "a.txt, b.txt"}
        yield _says(input, "I have found two.")
        interrupt = {
            "id": f"confirm-{input.run_id}",
            "reason": "confirmation",
            "message": "a.txt and b.txt would go.",
            "responseSchema": CONFIRM,
        }
        yield {"type": "RUN_FINISHED", **run, "outcome": {"type": "interrupt", "interrupts": [interrupt]}}
        return
    yield {"type": "RUN_FINISHED", **run}


def _says(input: RunAgentInput, text: str) -> dict[str, Any]:
    return {"type": "TEXT_MESSAGE_CHUNK", "messageId": f"m-{input.run_id}", "role": "assistant", "delta": text}


def chain_of(request: Request, body: Any) -> Negotiated:
    """Return the chain for AG-UI front ends, with the old dialect at its end where one is asked for."""
    return negotiate(request, body).behind(EventThrottleMiddleware(), GuardMiddleware())


def build_app() -> Starlette:
    """Return the application: the old API, and AG-UI at ``/agent``."""
    old = routes(
        {"librarian": librarian},
        EventThrottleMiddleware(),
        GuardMiddleware(),
        store=MemorySessions(max_sessions=1000, expires=3600),
    )
    new = Mount("/agent", AGUIMiddleware(agent_app(librarian), middleware=chain_of))
    pages = Middleware(
        CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST"], allow_headers=["content-type", "x-a2ui"]
    )
    return Starlette(routes=[*old, new], middleware=[pages])


app = build_app()
