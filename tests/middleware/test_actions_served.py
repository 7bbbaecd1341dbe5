"""Repeated requests at a real server: a client that leaves, and sends its request again."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters.starlette import agent_endpoint
from agui_pipeline.middleware import GuardMiddleware
from agui_pipeline.middleware.actions import A2UIActionMiddleware
from agui_pipeline.translators import SSEDecoder
from tests.adapters.server import Client, Server, until

BODY = json.dumps(
    {
        "threadId": "t",
        "runId": "r",
        "messages": [],
        "forwardedProps": {
            "a2ui": {
                "requestId": "q",
                "clientMessage": {"version": "v0.9", "action": {"name": "book", "surfaceId": "s"}},
            }
        },
    }
).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


class Booking:
    """Books once a run, and finishes when it is let.

    Attributes:
        runs: How many were started.
        running: How many have not ended.
        go: Lets them finish.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.running = 0
        self.go = threading.Event()

    async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
        self.runs += 1
        self.running += 1
        try:
            yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
            yield {"type": "CUSTOM", "name": "booking", "value": self.runs}
            while not self.go.is_set():  # noqa: ASYNC110 - set in the test's thread
                await anyio.sleep(0.002)
            yield {"type": "RUN_FINISHED", "threadId": input.thread_id, "runId": input.run_id}
        finally:
            self.running -= 1


def bookings(content: bytes) -> list[Any]:
    frames = [json.loads(frame.data) for frame in SSEDecoder().feed(content) if frame.data]
    return [*(event["value"] for event in frames if event["type"] == "CUSTOM"), frames[-1]["type"]]


@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_leaves_cuts_its_run_and_its_retry_runs(server: Server, reset: bool) -> None:
    agent = Booking()
    server.app = agent_endpoint(agent, A2UIActionMiddleware(), GuardMiddleware())
    client = Client(server, BODY)
    client.events(2)
    client.leave(reset=reset)
    until(lambda: agent.running == 0)
    agent.go.set()
    assert bookings(server.post(BODY).content) == [2, "RUN_FINISHED"]
    assert bookings(server.post(BODY).content) == [2, "RUN_FINISHED"]
    assert agent.runs == 2


def test_a_run_that_finishes_unread_is_there_for_the_retry(server: Server) -> None:
    agent = Booking()
    server.app = agent_endpoint(agent, A2UIActionMiddleware(), on_disconnect="detach")
    client = Client(server, BODY)
    client.events(2)
    client.leave()
    response = server.post(BODY)
    assert (response.status_code, response.json()["code"]) == (409, "a2ui_request_running")
    agent.go.set()
    until(lambda: agent.running == 0)
    assert bookings(server.post(BODY).content) == [1, "RUN_FINISHED"]
    assert agent.runs == 1


def test_a_second_click_joins_the_first(server: Server) -> None:
    agent = Booking()
    server.app = agent_endpoint(agent, A2UIActionMiddleware(while_running="join"))
    first, second = Client(server, BODY), Client(server, BODY)
    for client in (first, second):
        assert [event.type for event in client.events(2)] == ["RUN_STARTED", "CUSTOM"]
    agent.go.set()
    for client in (first, second):
        assert client.events(3)[-1].type == "RUN_FINISHED"
        client.leave()
    assert agent.runs == 1
    until(lambda: server.tasks() == [])


@pytest.mark.parametrize(("on_disconnect", "last"), [("cancel", "a2ui_request_cut"), ("detach", "RUN_FINISHED")])
def test_who_joined_is_cut_with_a_first_client_that_leaves_unless_its_run_goes_on(
    server: Server, on_disconnect: str, last: str
) -> None:
    agent = Booking()
    server.app = agent_endpoint(agent, A2UIActionMiddleware(while_running="join"), on_disconnect=on_disconnect)
    first, second = Client(server, BODY), Client(server, BODY)
    for client in (first, second):
        client.events(2)
    first.leave()
    if on_disconnect == "cancel":
        until(lambda: agent.running == 0)
    agent.go.set()
    (*_, event) = second.events(3)
    assert (event.code or event.type) == last
    second.leave()
    until(lambda: server.tasks() == [])
    assert agent.runs == 1


def test_a_running_request_known_by_its_header_alone_is_refused_before_the_stream(server: Server) -> None:
    body = BODY.replace(b'"requestId": "q", ', b"")
    assert body != BODY
    agent = Booking()
    server.app = agent_endpoint(agent, A2UIActionMiddleware())
    client = Client(server, body, headers="idempotency-key: k\r\n")
    client.events(2)
    again = server.post(body, headers={"idempotency-key": "k"})
    assert (again.status_code, again.json()["code"]) == (409, "a2ui_request_running")
    agent.go.set()
    assert client.events(3)[-1].type == "RUN_FINISHED"
    client.leave()
    assert agent.runs == 1
