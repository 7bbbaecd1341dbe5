"""Real LangGraph graphs, with tools, interrupts and a checkpointer; only their model is a script.

Importing this needs ag-ui-langgraph; a test module asks for it first (`pytest.importorskip`).
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict  # of which pydantic wants this one before Python 3.12

WORDS = [f"word{number} " for number in range(50)]
ANSWER = "".join(WORDS)


class OopsError(Exception):
    """What a node or a model of these tests raises."""


class ScriptedModel(BaseChatModel):
    """Asks for a tool where a user spoke last, and answers in `WORDS` where a tool did."""

    tool: str = "look_up"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _chunks(self, messages: Sequence[BaseMessage]) -> list[AIMessageChunk]:
        if isinstance(messages[-1], ToolMessage):
            return [
                AIMessageChunk(content=f"{messages[-1].content}: "),
                *(AIMessageChunk(content=word) for word in WORDS),
            ]
        pieces = ["", '{"query": "', "trains", '"}']  # the first of a call has its name, the others its arguments
        call = f"call-{len(messages)}"
        return [
            AIMessageChunk(content="I look it up."),
            *(
                AIMessageChunk(
                    content="",
                    tool_call_chunks=[
                        {
                            "name": None if index else self.tool,
                            "args": piece,
                            "id": None if index else call,
                            "index": 0,
                            "type": "tool_call_chunk",
                        }
                    ],
                )
                for index, piece in enumerate(pieces)
            ),
        ]

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        whole = self._chunks(messages)
        message = sum(whole[1:], whole[0])
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(content=message.content, tool_calls=message.tool_calls))]
        )

    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            await asyncio.sleep(0)
            yield ChatGenerationChunk(message=chunk)


@tool
def look_up(query: str) -> str:
    """Look something up."""
    return f"about {query}"


@tool
def book(query: str) -> str:
    """Book something, if the user agrees."""
    answer = interrupt({"message": f"Book {query}?", "reason": "approval", "responseSchema": {"type": "string"}})
    return f"booked {query}: {answer}"


def assistant(tool_name: str = "look_up") -> CompiledStateGraph[Any, Any, Any, Any]:
    """A model that calls a tool and then answers. With the tool ``book`` it asks before."""
    model = ScriptedModel(tool=tool_name)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def more(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode([look_up, book]))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", more)
    graph.add_edge("tools", "think")
    return graph.compile(checkpointer=InMemorySaver())


class Answers(TypedDict):
    """A state that collects."""

    messages: Annotated[list[Any], operator.add]
    answers: Annotated[list[Any], operator.add]


def questions(*asked: str) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Several nodes at once, each of which asks its own question."""

    async def ask(state: Any) -> dict[str, Any]:
        return {"answers": [f"{state['question']}={interrupt(state['question'])}"]}

    graph = StateGraph(Answers)
    graph.add_node("ask", ask)
    graph.add_conditional_edges(START, lambda _: [Send("ask", {"question": question}) for question in asked], ["ask"])
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=InMemorySaver())


def in_a_node(node: Callable[..., Any], state: type[Any] = MessagesState) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A graph of one node, called ``work``."""
    graph = StateGraph(state)
    graph.add_node("work", node)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph.compile(checkpointer=InMemorySaver(serde=JsonPlusSerializer(pickle_fallback=True)))


def failing_model() -> CompiledStateGraph[Any, Any, Any, Any]:
    """A model that fails in the middle of its answer."""

    class Failing(ScriptedModel):
        async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
            yield ChatGenerationChunk(message=AIMessageChunk(content="half an "))
            raise OopsError("the key sk-123 is wrong")

    async def work(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await Failing().ainvoke(state["messages"])]}

    return in_a_node(work)
