"""Endpoints that never heard of agui_pipeline, as people write them with five different tools.

Each maker takes the assistant's text, in deltas, and returns an ASGI app that streams a whole run with it from POST
/agent. Each has its own way to frame, cut and surround the same events: that is what they are for.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ag_ui.core import (
    EventType,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from ag_ui.encoder import EventEncoder
from fastapi import FastAPI
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.e2e.harness import missing

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["MAKERS", "Maker", "in_deltas"]

Maker: TypeAlias = Callable[[Sequence[str]], "ASGIApp"]
PATH = "/agent"


def in_deltas(text: str, size: int = 7) -> list[str]:
    """Cut a text into deltas of ``size`` characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def starlette_app(deltas: Sequence[str]) -> ASGIApp:
    """A StreamingResponse with frames written by hand: defaults spelled out, spaces in the JSON, non-ASCII escaped."""

    async def endpoint(request: Request) -> StreamingResponse:
        body = await request.json()

        async def frames() -> AsyncIterator[str]:
            for event in run_of_dicts(body["threadId"], body["runId"], deltas):
                yield f"data: {json.dumps(event)}\n\n"

        return StreamingResponse(frames(), media_type="text/event-stream")

    return Starlette(routes=[Route(PATH, endpoint, methods=["POST"])])


def fastapi_app(deltas: Sequence[str]) -> ASGIApp:
    """FastAPI with the SDK's models on both sides, as the AG-UI documentation shows it."""
    app = FastAPI()

    @app.post(PATH)
    async def endpoint(input_data: RunAgentInput, request: Request) -> StreamingResponse:
        encoder = EventEncoder(accept=request.headers.get("accept", ""))

        async def frames() -> AsyncIterator[str]:
            for event in run_of_models(input_data, deltas):
                yield encoder.encode(event)

        return StreamingResponse(frames(), media_type=encoder.get_content_type())

    return app


def langgraph_app(deltas: Sequence[str]) -> ASGIApp:
    """A LangGraph graph behind ``add_langgraph_fastapi_endpoint``, its model a script."""
    try:
        from ag_ui_langgraph import (  # type: ignore[import-untyped]
            LangGraphAgent,
            add_langgraph_fastapi_endpoint,
        )
    except ImportError:
        missing("ag-ui-langgraph")
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langgraph.checkpoint.memory import MemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    class ScriptedModel(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content="".join(deltas)))])

        async def _astream(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
            for delta in deltas:
                yield ChatGenerationChunk(message=AIMessageChunk(content=delta))

    model = ScriptedModel()

    async def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    app = FastAPI()
    agent = LangGraphAgent(name="scripted", graph=graph.compile(checkpointer=MemorySaver()))
    add_langgraph_fastapi_endpoint(app, agent, PATH)
    return app


def sse_starlette_app(deltas: Sequence[str]) -> ASGIApp:
    """An EventSourceResponse: CRLF line ends, which the official client cannot read."""

    async def endpoint(request: Request) -> EventSourceResponse:
        body = await request.json()

        async def frames() -> AsyncIterator[dict[str, str]]:
            for event in run_of_dicts(body["threadId"], body["runId"], deltas):
                yield {"data": json.dumps(event, ensure_ascii=False)}

        return EventSourceResponse(frames())

    return Starlette(routes=[Route(PATH, endpoint, methods=["POST"])])


def cut_bytes_app(deltas: Sequence[str]) -> ASGIApp:
    """Plain ASGI: bytes, bytearrays and memoryviews of five bytes, cut inside frames and UTF-8 characters."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).json()
        frames = [
            f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
            for event in run_of_dicts(body["threadId"], body["runId"], deltas)
        ]
        data = "".join(frames).encode()
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        kinds = (bytes, memoryview, bytearray)
        for number, start in enumerate(range(0, len(data), 5)):
            piece = kinds[number % len(kinds)](data[start : start + 5])
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return app


MAKERS: dict[str, Maker] = {
    "starlette": starlette_app,
    "fastapi": fastapi_app,
    "langgraph": langgraph_app,
    "sse-starlette": sse_starlette_app,
    "cut-bytes": cut_bytes_app,
}


def run_of_models(input: RunAgentInput, deltas: Sequence[str]) -> list[BaseEvent]:
    """A run with a step, some state and one message."""
    return [
        RunStartedEvent(type=EventType.RUN_STARTED, thread_id=input.thread_id, run_id=input.run_id),
        StepStartedEvent(type=EventType.STEP_STARTED, step_name="answer"),
        StateSnapshotEvent(type=EventType.STATE_SNAPSHOT, snapshot={"asked": 1, "note": None}),
        TextMessageStartEvent(type=EventType.TEXT_MESSAGE_START, message_id="m1", role="assistant"),
        *(
            TextMessageContentEvent(type=EventType.TEXT_MESSAGE_CONTENT, message_id="m1", delta=delta)
            for delta in deltas
        ),
        TextMessageEndEvent(type=EventType.TEXT_MESSAGE_END, message_id="m1"),
        StepFinishedEvent(type=EventType.STEP_FINISHED, step_name="answer"),
        RunFinishedEvent(type=EventType.RUN_FINISHED, thread_id=input.thread_id, run_id=input.run_id),
    ]


def run_of_dicts(thread_id: str, run_id: str, deltas: Sequence[str]) -> list[dict[str, Any]]:
    """The same run as JSON, by hand."""
    ids = {"threadId": thread_id, "runId": run_id}
    return [
        {"type": "RUN_STARTED", **ids},
        {"type": "STEP_STARTED", "stepName": "answer"},
        {"type": "STATE_SNAPSHOT", "snapshot": {"asked": 1, "note": None}},
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": delta} for delta in deltas),
        {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
        {"type": "STEP_FINISHED", "stepName": "answer"},
        {"type": "RUN_FINISHED", **ids},
    ]
