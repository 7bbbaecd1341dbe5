"""LangGraph through our chain, three ways, at the official client: what it makes of it, interrupts, and the bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp

from agui_pipeline.adapters.langgraph import LangGraphSource, wrap_agent
from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware
from tests.e2e.harness import OracleResult, missing, run_oracle, serve

try:
    from ag_ui_langgraph import (  # type: ignore[import-untyped]
        LangGraphAgent,
        add_langgraph_fastapi_endpoint,
    )

    from tests.adapters import graphs
except ImportError:
    graphs = None  # type: ignore[assignment]

# ag-ui-langgraph calls what LangGraph has deprecated; inside a server thread that must not end the run.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning")

PATH = "/agent"
CHAIN = [EventThrottleMiddleware(), GuardMiddleware()]
ASK = {"threadId": "t", "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": "Find trains"}]}


@pytest.fixture(autouse=True)
def _tools(oracle: Any) -> None:  # noqa: ARG001 - skips in time
    if graphs is None:
        missing("ag-ui-langgraph")


def endpoint(agent: Any) -> FastAPI:
    app = FastAPI()
    add_langgraph_fastapi_endpoint(app, agent, PATH)
    return app


def agent(graph: Any, **options: Any) -> Any:
    return LangGraphAgent(name="assistant", graph=graph, emit_interrupt_outcome=True, **options)


WAYS: dict[str, Callable[[Any], ASGIApp]] = {
    "a source": lambda graph: agent_app(LangGraphSource(graph), *CHAIN, path=PATH),
    "an agent in a source": lambda graph: agent_app(LangGraphSource(agent(graph)), *CHAIN, path=PATH),
    "a wrapped agent": lambda graph: endpoint(wrap_agent(agent(graph), *CHAIN)),
    "a wrapped endpoint": lambda graph: AGUIMiddleware(
        endpoint(agent(graph, emit_raw_events=False)), middleware=CHAIN, paths=[PATH]
    ),
    "a wrapped endpoint of a wrapped agent": lambda graph: AGUIMiddleware(
        endpoint(wrap_agent(agent(graph))), middleware=CHAIN, paths=[PATH]
    ),
}


def anonymous(value: Any, names: dict[str, str] | None = None) -> Any:
    """Return a value whose random ids are numbered, in the order in which they come."""
    names = {} if names is None else names
    if isinstance(value, Mapping):
        return {key: anonymous(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [anonymous(item, names) for item in value]
    if isinstance(value, str) and re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", value):
        return names.setdefault(value, f"id-{len(names)}")
    return value


def accepted(result: OracleResult) -> OracleResult:
    assert (result.code, result.error, result.warnings) == (0, None, ())
    return result


def size(base: str) -> int:
    answer = httpx.post(base + PATH, json={**ASK, "state": {}, "tools": [], "context": [], "forwardedProps": {}})
    assert answer.status_code == 200
    return len(answer.content)


@pytest.fixture(scope="module")
def bare() -> tuple[OracleResult, int]:
    """What the client has of the bare endpoint, and the bytes of an answer."""
    if graphs is None:
        missing("ag-ui-langgraph")
    with serve(endpoint(LangGraphAgent(name="assistant", graph=graphs.assistant()))) as base:
        result = run_oracle(base + PATH, ASK)
    with serve(endpoint(LangGraphAgent(name="assistant", graph=graphs.assistant()))) as base:
        return accepted(result), size(base)


@pytest.mark.parametrize("way", WAYS)
def test_the_answer_is_that_of_the_bare_endpoint_in_a_tenth_of_its_bytes(
    bare: tuple[OracleResult, int], way: str
) -> None:
    expected, bytes_of_bare = bare
    with serve(WAYS[way](graphs.assistant())) as base:
        result = accepted(run_oracle(base + PATH, ASK))
    with serve(WAYS[way](graphs.assistant())) as base:
        sent = size(base)
    assert result.text.endswith("about trains: " + graphs.ANSWER)
    assert result.text == expected.text
    assert anonymous(result.messages) == anonymous(expected.messages)
    assert anonymous(result.state) == anonymous(expected.state)
    assert sent <= 0.1 * bytes_of_bare


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_is_asked_answered_and_finished(way: str) -> None:
    with serve(WAYS[way](graphs.assistant("book"))) as base:
        asked = accepted(run_oracle(base + PATH, ASK))
        outcome = asked.events[-1]["outcome"]
        (interrupt,) = outcome["interrupts"]
        assert (outcome["type"], interrupt["message"]) == ("interrupt", "Book trains?")

        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": "yes"}]
        again = {**ASK, "runId": "r2", "messages": list(asked.messages), "resume": resume}
        answered = accepted(run_oracle(base + PATH, again))

    assert answered.types[-1] == "RUN_FINISHED"
    assert answered.events[-1].get("outcome", {"type": "success"})["type"] == "success"
    assert answered.text == "booked trains: yes: " + graphs.ANSWER


@pytest.mark.parametrize("way", WAYS)
def test_a_failing_run_ends_in_one_error(way: str) -> None:
    with serve(WAYS[way](graphs.failing_model())) as base:
        result = run_oracle(base + PATH, ASK)
    assert (result.code, result.error, result.warnings) == (3, None, ())
    assert result.types.count("RUN_ERROR") == 1
    assert result.types[-1] == "RUN_ERROR"
    assert result.text == "half an "
    if way != "a wrapped endpoint":  # there the RUN_ERROR is the agent's own, and passes
        assert result.types[-3:-1] == ["TEXT_MESSAGE_END", "STEP_FINISHED"]
        assert "sk-123" not in str(result.events)
