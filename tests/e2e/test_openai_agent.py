"""The agent on chat completions at the official client: a surface, an action on it, a refused key."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from examples.openai_agent import OpenAIAgent, build_app, open_client
from tests.e2e.harness import OracleResult, serve
from tests.examples.test_openai_agent import ACTION, ASKED, BOOKED, CREATED, FORM, KEY, says

pytestmark = pytest.mark.skipif(find_spec("a2ui") is None, reason="needs the extra a2ui")

QUESTION = {"id": "u", "role": "user", "content": "A form to book a table"}


class Endpoint:
    """A chat completions endpoint whose model writes a form, and answers an action in it.

    Attributes:
        prompts: What it was asked.
        refuses: Whether it takes no key.
    """

    def __init__(self) -> None:
        self.prompts: list[Any] = []
        self.refuses = False
        self.app = Starlette(routes=[Route("/v1/chat/completions", self._answer, methods=["POST"])])

    async def _answer(self, request: Request) -> Response:
        if self.refuses or request.headers["authorization"] != f"Bearer {KEY}":
            return JSONResponse({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401)
        messages = (await request.json())["messages"]
        self.prompts.append(messages)
        acted = '"action"' in messages[-1]["content"]
        content = says(BOOKED) if acted else says(CREATED, FORM, ASKED)
        parts = [content[place : place + 100] for place in range(0, len(content), 100)]
        return StreamingResponse(iter(parts), media_type="text/event-stream")


def test_the_client_takes_what_it_says(oracle: Callable[..., OracleResult]) -> None:
    endpoint = Endpoint()
    with contextlib.ExitStack() as stack:
        client = open_client(KEY, stack.enter_context(serve(endpoint.app)) + "/v1")
        client.headers["connection"] = "close"  # its event loop is the server's: nothing here could close it
        url = stack.enter_context(serve(build_app(OpenAIAgent(client, "m")))) + "/agent"
        first = oracle(url, {"threadId": "t", "runId": "1", "messages": [QUESTION]})
        props = {"a2ui": {"requestId": "q", "clientMessage": ACTION}}
        body = {"threadId": "t", "runId": "2", "messages": list(first.messages), "forwardedProps": props}
        second = oracle(url, body)
        endpoint.refuses = True
        third = oracle(url, {"threadId": "u", "runId": "3", "messages": [QUESTION]})

    assert (first.code, first.error, first.warnings) == (0, None, ())
    assert first.a2ui == [CREATED, FORM, ASKED]
    assert [message["role"] for message in first.messages] == ["user", "activity"]
    assert (second.code, second.error, second.warnings) == (0, None, ())
    assert second.a2ui == [CREATED, FORM, BOOKED]
    activities = [message["id"] for message in second.messages if message["role"] == "activity"]
    assert len(activities) == 1  # it shows in the surface that there was
    assert json.loads(endpoint.prompts[1][-1]["content"]) == ACTION
    assert (third.code, third.events[-1]["code"]) == (3, "key_refused")
    assert "sk-" not in str(third.events)
