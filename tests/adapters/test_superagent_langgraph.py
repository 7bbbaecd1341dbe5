"""The old HTTP API in front of LangGraph graphs, which remember by thread."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.adapters.langgraph import LangGraphSource
from agui_pipeline.middleware import GuardMiddleware
from agui_pipeline.translators import Diagnostic
from tests.adapters.superagent import answer, app, enveloped, kinds, said, say
from tests.e2e.harness import needs

needs("ag_ui_langgraph", "ag-ui-langgraph")

from langchain_core.messages import AIMessage  # noqa: E402
from langgraph.graph import MessagesState  # noqa: E402
from langgraph.types import interrupt  # noqa: E402

from tests.adapters.graphs import ANSWER, assistant, in_a_node  # noqa: E402

pytestmark = [
    pytest.mark.anyio,
    # ag-ui-langgraph calls what LangGraph has deprecated.
    pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning"),
]

CITY = {"type": "object", "properties": {"city": {"type": "string", "title": "City"}}, "required": ["city"]}


@pytest.fixture(scope="module", params=[pytest.param(("asyncio", {}), id="asyncio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """LangGraph runs on asyncio only."""
    return request.param


def ask(state: MessagesState) -> dict[str, Any]:
    """A node that does not stream. First with the fields of a schema, then without one."""
    place = interrupt({"message": "Which city?", "responseSchema": CITY})
    if not interrupt(f"Book a room in {place['city']}?")["confirm"]:
        return {"messages": [AIMessage("Then not.")]}
    return {"messages": [("assistant", f"Booked in {place['city']}, after {len(state['messages'])} messages.")]}


def asked(response: Any) -> list[Any]:
    return [data for kind, data in enveloped(response) if kind == "interrupt"]


@pytest.mark.parametrize("history", [False, True])
async def test_what_a_node_says_without_streaming_is_told_after_its_questions(history: bool) -> None:
    served = app(LangGraphSource(in_a_node(ask)), GuardMiddleware(), history=history, on_diagnostic=lambda _: None)
    for confirm, answered in ((True, "Booked in Ulm, after 1 messages."), (False, "Then not.")):
        (city,) = asked(await say(served, "a room, please"))
        assert city == {
            "reason": "Which city?",
            "fields": [{"name": "city", "type": "text", "label": "City", "required": True}],
        }
        (sure,) = asked(await answer(served, input={"city": "Ulm"}))
        assert sure["reason"] == "Book a room in Ulm?"
        assert [field["name"] for field in sure["fields"]] == ["confirm"]
        assert said(await answer(served, input={"confirm": confirm})) == answered


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("history", [False, True])
async def test_a_tool_that_asks_is_called_once(history: bool, updates: bool) -> None:
    seen: list[Diagnostic] = []
    served = app(
        LangGraphSource(assistant("book")),
        GuardMiddleware(),
        history=history,
        tool_call_updates=updates,
        on_diagnostic=seen.append,
    )
    first = enveloped(await say(served, "find trains"))
    (called,) = [data for kind, data in first if kind == "tool_call"]
    assert (called["name"], called["arguments"], called["status"]) == ("book", {"query": "trains"}, "calling")

    response = await answer(served, answer="yes")
    told = [(kind, data) for kind, data in enveloped(response) if kind.startswith("tool_")]
    outcome = [("tool_call", {**called, "status": "success"})] if updates else []
    booked = {"id": called["id"], "name": "book", "result": "booked trains: yes", "is_error": False}
    assert told == [*outcome, ("tool_result", booked)]
    assert said(response) == f"booked trains: yes: {ANSWER}"
    assert kinds(response)[-1] == "done"
    assert "superagent.call-again" not in {diagnostic.code for diagnostic in seen}
