"""A LangGraph graph behind our chain, in three ways: as a source, as a wrapped agent, and as a wrapped endpoint.

    pip install 'agui-pipeline[langgraph]' langgraph fastapi uvicorn
    uvicorn examples.langgraph_agent:app

    curl -N localhost:8000/source -H 'content-type: application/json' \
         -d '{"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "Write to Ada"}]}'

The graph drafts a letter, asks whether to send it (LangGraph's `interrupt`), and goes on with the answer. The client is
told of the question in RUN_FINISHED: ``"outcome": {"type": "interrupt", "interrupts": [{"id": …}]}``. It answers with
a run on the same thread, ``"resume": [{"interruptId": …, "status": "resolved", "payload": "yes"}]``.

Which way?

- ``/source``: for a graph that has no endpoint yet.
- ``/wrapped``: for an agent that ag-ui-langgraph's own endpoint serves: its line changes, nothing else.
- ``/around``: for an app that shall not be touched. The agent then decides itself about RAW events and interrupts.

The model is a script; put yours in its place.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint  # type: ignore[import-untyped]
from fastapi import FastAPI
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt
from starlette.routing import Route

from agui_pipeline.adapters.langgraph import LangGraphSource, wrap_agent
from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_endpoint
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Stage

LETTER: Final = "Dear Ada, the engine works. Yours, Charles"


def build_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the graph. ag-ui-langgraph needs one with a checkpointer: there the threads are."""
    model = GenericFakeChatModel(messages=itertools.cycle([LETTER]))

    async def draft(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def send(state: MessagesState) -> dict[str, Any]:  # noqa: ARG001 - LangGraph's name
        answer = interrupt({"message": "Send it?", "reason": "approval"})
        return {"messages": [AIMessage("It is sent." if answer == "yes" else "It is not sent.")]}

    graph = StateGraph(MessagesState)
    graph.add_node("draft", draft)
    graph.add_node("send", send)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "send")
    graph.add_edge("send", END)
    return graph.compile(checkpointer=InMemorySaver())


def build_app() -> FastAPI:
    """Return an app with the three endpoints, each with a graph of its own."""
    # The first stage is nearest the agent, the last nearest the client. One chain may serve all of them.
    chain: list[Stage] = [EventThrottleMiddleware(interval=0.1), GuardMiddleware()]
    app = FastAPI()

    app.router.routes.append(Route("/source", agent_endpoint(LangGraphSource(build_graph()), *chain), methods=["POST"]))

    # An agent's own settings stay: without emit_interrupt_outcome it tells of interrupts in LangGraph's older way.
    agent = LangGraphAgent(name="letters", graph=build_graph(), emit_interrupt_outcome=True)
    add_langgraph_fastapi_endpoint(app, wrap_agent(agent, *chain), "/wrapped")

    quiet = LangGraphAgent(name="letters", graph=build_graph(), emit_interrupt_outcome=True, emit_raw_events=False)
    add_langgraph_fastapi_endpoint(app, quiet, "/around")
    app.add_middleware(AGUIMiddleware, middleware=chain, paths=["/around"])
    return app


app = build_app()
