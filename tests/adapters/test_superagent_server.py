"""The old HTTP API behind a real server: streams that stream, clients that stop and ask again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

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
