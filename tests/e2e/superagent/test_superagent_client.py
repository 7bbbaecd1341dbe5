"""An old agent behind `HttpAgent`, served to the official client: the run, the question, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from agui_pipeline.adapters.http import HttpAgent
from agui_pipeline.adapters.starlette import agent_app
from agui_pipeline.adapters.superagent import old_agent, routes
from tests.e2e.harness import OracleResult, serve
from tests.e2e.superagent.agent import AFTER, ARGUMENTS, FENCED, QUESTION, RESULT, TEXT, THOUGHT, agent

DIALECTS = ("superagent", "superagent-flat", "superagent-compatible")


@pytest.fixture(scope="module")
def front() -> Iterator[str]:
    """A server that speaks AG-UI, a path a dialect, with the old API of another server behind it."""
    with serve(Starlette(routes=routes({"research-agent": agent, "other-agent": agent}))) as back:
        url = f"{back}/api/v1/chat/stream"
        mounts = [
            Mount(f"/{dialect}", agent_app(HttpAgent(url, dialect=old_agent(dialect, agent_id="research-agent"))))
            for dialect in DIALECTS
        ]
        with serve(Starlette(routes=mounts)) as base:
            yield base


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_official_client_runs_an_old_agent(front: str, oracle: Callable[..., OracleResult], dialect: str) -> None:
    thread = {"threadId": f"thread-{dialect}"}
    first = oracle(f"{front}/{dialect}/", {**thread, "runId": "r1"})
    assert (first.code, first.error, first.warnings) == (0, None, ())
    assert first.text == TEXT + FENCED + AFTER
    assert first.types.count("TOOL_CALL_START") == first.types.count("TOOL_CALL_RESULT") == 1
    roles = [message["role"] for message in first.messages]
    assert roles[:2] == ["user", "reasoning"]
    assert first.messages[1]["content"] == THOUGHT
    call = next(message["toolCalls"][0] for message in first.messages if message.get("toolCalls"))
    assert call["function"]["name"] == "web_search"
    assert call["function"]["arguments"].replace(" ", "") == ARGUMENTS
    assert next(message["content"] for message in first.messages if message["role"] == "tool") == RESULT
    outcome = first.events[-1]["outcome"]
    (interrupt,) = outcome["interrupts"]
    assert (outcome["type"], interrupt["message"]) == ("interrupt", QUESTION)

    (name,) = interrupt["responseSchema"]["properties"]
    payload = {name: "yes" if name == "answer" else True}
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": payload}]
    last = oracle(f"{front}/{dialect}/", {**thread, "runId": "r2", "messages": list(first.messages), "resume": resume})
    assert (last.code, last.error) == (0, None)
    assert last.text == "Deleted, 1 question(s)."
    assert last.events[-1].get("outcome", {"type": "success"})["type"] == "success"
