"""The old HTTP API behind a real server: streams that stream, clients that stop and ask again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from agui_pipeline.adapters.starlette import AGUIMiddleware
from agui_pipeline.adapters.superagent import MemorySessions, negotiate
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, TrustMiddleware
from agui_pipeline.translators import SSEDecoder
from tests.adapters.server import PATIENCE, Server, until
from tests.adapters.superagent import ENVELOPED, RESUME, STREAM, Agent, app, run, text


class Talking:
    """Says a word and falls silent, the first time; counts its ends."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []
        self.ended = 0

    async def run(self, input: Any) -> AsyncIterator[Any]:
        self.inputs.append(input)
        try:
            for event in run(input, *text(input, "one ", "two")):
                yield event
                if event["type"] == "TEXT_MESSAGE_CONTENT" and len(self.inputs) == 1:
                    await asyncio.Event().wait()
        finally:
            self.ended += 1


def body(message: str) -> dict[str, Any]:
    return {"session_id": "s", "message": message}


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_stop_then_ask_again(server: Server, method: str) -> None:
    agent = Talking()
    server.app = app(agent)
    asked: dict[str, Any] = {"json": body("first"), "headers": ENVELOPED}
    if method == "GET":
        asked = {"params": {"session": "s", "message": "first"}}
    with httpx.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
        with client.stream(method, STREAM, **asked) as response:
            for line in response.iter_lines():
                if "one " in line:
                    break  # it came while the agent goes on
        again = client.post(STREAM, json=body("second"), headers=ENVELOPED)
    assert again.text.count("event: done") == 1
    assert [(message.role, message.content) for message in agent.inputs[-1].messages] == [
        ("user", "first"),
        ("assistant", "one "),
        ("user", "second"),
    ]
    until(lambda: agent.ended == 2)


def test_a_question_is_answered_over_one_connection(server: Server) -> None:
    server.app = app(Agent())
    first = server.client.post(STREAM, json=body("ask"), headers=ENVELOPED)
    assert first.text.index("event: interrupt") < first.text.index("event: done")
    last = server.client.post(RESUME, json={"session_id": "s", "input": {"confirm": True}})
    assert "resumed with" in last.text
    twice = server.client.post(RESUME, json={"session_id": "s", "input": {"confirm": True}})
    assert (twice.status_code, twice.json()["code"]) == (409, "nothing_to_resume")


def frames(response: httpx.Response) -> list[tuple[str, Any]]:
    """What the enveloped frames of an answer say."""
    assert response.status_code == 200
    found = [frame for frame in SSEDecoder().feed(response.content) if frame.data is not None]
    return [(frame.event or "", json.loads(frame.data or "")["data"]) for frame in found]


def test_many_clicks_at_once_start_one_run(server: Server) -> None:
    agent, store = Agent(), MemorySessions()
    workers = [app(agent, store=store) for _ in range(2)]
    turn = iter(range(1_000_000))

    async def balanced(scope: Any, receive: Any, send: Any) -> None:
        await workers[next(turn) % 2](scope, receive, send)

    server.app = balanced
    server.client.post(STREAM, json=body("ask"), headers=ENVELOPED)

    def click(_: int) -> tuple[int, str]:
        with httpx.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
            response = client.post(RESUME, json={"session_id": "s", "answer": "yes"})
        return response.status_code, "" if response.status_code == 200 else response.json()["code"]

    with ThreadPoolExecutor(8) as pool:
        answers = sorted(pool.map(click, range(16)))
    assert answers[0] == (200, "")
    assert set(answers[1:]) <= {(409, "nothing_to_resume"), (409, "session_busy")}
    assert len(agent.inputs) == 2


LANGGRAPH = pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning")


@LANGGRAPH
@pytest.mark.parametrize("history", [True, False])
def test_a_langgraph_agent_behind_an_old_front_end(server: Server, history: bool) -> None:
    pytest.importorskip("ag_ui_langgraph")
    from fastapi import FastAPI

    from agui_pipeline.adapters.langgraph import LangGraphSource
    from agui_pipeline.adapters.superagent import routes
    from tests.adapters.graphs import ANSWER, assistant

    agents = {"travel": LangGraphSource(assistant("book"))}
    served = FastAPI(routes=routes(agents, GuardMiddleware(), history=history, on_diagnostic=lambda _: None))
    server.app = served
    asked = frames(server.client.post(STREAM, json={**body("find trains"), "agent_id": "travel"}, headers=ENVELOPED))
    calls = [data for kind, data in asked if kind == "tool_call"]
    assert [(call["name"], call["arguments"]) for call in calls] == [("book", {"query": "trains"})]
    assert asked[-2] == (
        "interrupt",
        {
            "reason": "Book trains?",
            "fields": [{"name": "answer", "type": "text", "label": "answer", "required": True}],
        },
    )
    resumed = frames(server.client.post(RESUME, json={"session_id": "s", "input": {"answer": "two seats"}}))
    assert [data["result"] for kind, data in resumed if kind == "tool_result"] == ["booked trains: two seats"]
    assert "".join(data["delta"] for kind, data in resumed if kind == "text").endswith(ANSWER)
    assert resumed[-1] == ("done", None)


@LANGGRAPH
def test_a_fastapi_endpoint_of_langgraph_serves_old_front_ends_too(server: Server) -> None:
    pytest.importorskip("ag_ui_langgraph")
    from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint  # type: ignore[import-untyped]
    from fastapi import FastAPI

    from tests.adapters.graphs import ANSWER, assistant

    def chain(request: Any, body: Any) -> Any:
        stages = (EventThrottleMiddleware(), GuardMiddleware(), TrustMiddleware(on_diagnostic=lambda _: None))
        return negotiate(request, body).behind(*stages)

    endpoint = FastAPI()
    add_langgraph_fastapi_endpoint(endpoint, LangGraphAgent(name="travel", graph=assistant()), "/agent")
    server.app = AGUIMiddleware(endpoint, middleware=chain, on_diagnostic=lambda _: None)
    for path, headers in (("/agent", ENVELOPED), ("/agent?a2ui=true", {})):
        asked = {"session_id": f"s {path}", "message": "find"}
        told = frames(server.client.post(path, json=asked, headers=headers))
        assert [data["name"] for kind, data in told if kind == "tool_call"] == ["look_up"]
        assert "".join(data["delta"] for kind, data in told if kind == "text").endswith(ANSWER)
        assert told[-1] == ("done", None)
    raw = server.client.post("/agent", json={"session_id": "tokens", "message": "find"}).text
    assert raw.endswith("data: [DONE]\n\n")
    new = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "find"}]}
    agui = server.client.post("/agent", json=new)
    assert agui.headers["content-type"].startswith("text/event-stream")
    assert b'"RUN_FINISHED"' in agui.content
    assert b"event:" not in agui.content
    # What is neither is refused before the app, as a stage of the chain must see all that reaches it.
    refused = server.client.post("/agent", json={"session_id": "s", "message": 7})
    assert refused.status_code == 400
    assert set(refused.json()) == {"code", "message"}
