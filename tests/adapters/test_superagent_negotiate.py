"""Which dialect a request is answered in, and old bodies around an AG-UI endpoint that has never heard of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import Request

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.adapters.superagent import Negotiated, negotiate
from agui_pipeline.adapters.testing import run_asgi
from agui_pipeline.middleware import EventThrottleMiddleware, TrustMiddleware
from agui_pipeline.translators import ConfigurationError, run_input
from tests.adapters.apps import BODY, SSE, STREAM, pieces
from tests.adapters.superagent import ENVELOPED, Agent, enveloped, kinds, post, said, tokens

pytestmark = pytest.mark.anyio

OLD = {"agent_id": "a", "session_id": "s", "message": "hello"}
AGUI = {"threadId": "t", "runId": "r", "messages": []}
RESUME = {"session_id": "s", "input": {"confirm": True}}
ANSWER = {"session_id": "s", "answer": "yes"}


def request(method: str = "POST", query: str = "", **headers: str) -> Request:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "headers": named, "query_string": query.encode()})


@pytest.mark.parametrize(
    ("asked", "body", "default", "dialect"),
    [
        # The opt-in wins over everything.
        (request(x_a2ui="true"), OLD, None, "superagent"),
        (request(x_a2ui="True "), OLD, "superagent-flat", "superagent"),
        (request(x_a2ui="1"), RESUME, "superagent-flat", "superagent"),
        (request(query="a2ui=true"), OLD, None, "superagent"),
        (request(x_a2ui="true"), ANSWER, None, "superagent"),
        (request(x_a2ui="true"), AGUI, None, "superagent"),
        (request("GET", "session=s&a2ui=true"), {}, None, "superagent"),
        (request(x_a2ui="flat"), OLD, None, "superagent-flat"),
        (request(query="a2ui=flat"), OLD, None, "superagent-flat"),
        # What does not say yes says nothing.
        (request(x_a2ui="false"), OLD, None, "superagent-compatible"),
        (request(x_a2ui=""), OLD, None, "superagent-compatible"),
        (request(x_a2ui="no", query="a2ui=0"), OLD, None, "superagent-compatible"),
        # An EventSource.
        (request("GET", "session=s"), b"", None, "superagent-flat"),
        (request("GET", "session=s"), b"", "superagent", "superagent-flat"),
        # AG-UI.
        (request(), AGUI, None, None),
        (request(), AGUI, "superagent", None),
        (request(), {**AGUI, "message": "hello", "session_id": "s"}, "superagent", None),
        # Old bodies.
        (request(), OLD, None, "superagent-compatible"),
        (request(), {"message": "hello"}, None, "superagent-compatible"),
        (request(), OLD, "superagent-flat", "superagent-flat"),
        (request(), RESUME, None, "superagent-compatible"),
        (request(), RESUME, "superagent", "superagent"),
        (request(), ANSWER, None, "superagent-flat"),
        (request(), ANSWER, "superagent", "superagent"),
        # Nothing that is known.
        (request(), b"no json", "superagent", None),
        (request(), [1], "superagent", None),
        (request(), None, "superagent", None),
        (request(), {"prompt": "hello"}, "superagent", None),
    ],
)
def test_the_dialect_that_is_asked_for(asked: Request, body: Any, default: str | None, dialect: str | None) -> None:
    found = negotiate(asked, body, default)
    assert found.dialect == dialect
    assert [getattr(stage, "dialect", None) for stage in found] == ([] if dialect is None else [dialect])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (OLD, ("s", "hello", {"agent_id": "a"})),
        ({"message": "hello"}, (None, "hello", {})),
        ({"session_id": "s", "message": "", "model": "m"}, ("s", "", {"model": "m"})),
    ],
)
def test_an_old_body_as_an_input(body: Any, said: Any) -> None:
    found = [negotiate(request(), body).input for _ in range(2)]
    assert None not in found
    thread, message, props = said
    for input in found:
        assert input is not None
        assert thread in (None, input.thread_id)
        assert [(one.role, one.content) for one in input.messages] == [("user", message)]
        assert input.forwarded_props == props
    assert len({input.run_id for input in found if input is not None}) == 2


@pytest.mark.parametrize(
    "body",
    [
        AGUI,
        RESUME,
        ANSWER,
        b"no json",
        {"message": 7, "session_id": "s"},
        {"message": "hello", "session_id": 7},
        {"message": "hello", "deep": json.loads("[" * 250 + "]" * 250)},
    ],
)
def test_what_is_none_has_no_input(body: Any) -> None:
    assert negotiate(request(), body).input is None


def test_other_stages_come_before() -> None:
    throttle = EventThrottleMiddleware()
    found = negotiate(request(), OLD)
    behind = found.behind(throttle)
    assert isinstance(behind, Negotiated)
    assert behind == [throttle, *found]
    assert (behind.dialect, behind.input) == (found.dialect, found.input)


def test_the_default_is_checked() -> None:
    with pytest.raises(ConfigurationError):
        negotiate(request(), OLD, "superagent-2")


# Around an endpoint.


def wrapped(agent: Agent, **options: Any) -> AGUIMiddleware:
    return AGUIMiddleware(agent_app(agent), middleware=negotiate, **options)


async def test_one_endpoint_for_old_and_new_front_ends() -> None:
    agent = Agent()
    served = wrapped(agent)
    assert said(await post(served, "/", OLD, ENVELOPED)) == "you said hello"
    assert (agent.last.thread_id, agent.last.forwarded_props) == ("s", {"agent_id": "a"})
    assert tokens(await post(served, "/", OLD)) == ["you said ", "hello", "[DONE]"]
    assert kinds(await post(served, "/?a2ui=true", OLD)) == ["text", "done"]
    new = await post(served, "/", run_input("hi", thread_id="t", run_id="r"))
    assert [event.type for event in new.events][-1] == "RUN_FINISHED"
    assert (agent.last.thread_id, agent.last.run_id) == ("t", "r")


@pytest.mark.parametrize("behind", [False, True])
async def test_an_agui_request_passes_byte_for_byte(behind: bool) -> None:
    """Whatever stands in front of the dialect: there is none."""
    bodies: list[bytes] = []

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - ASGI
        bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": SSE})
        for part in pieces(STREAM, 7):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    def chain(request: Request, body: Any) -> Negotiated:
        return negotiate(request, body).behind(*([EventThrottleMiddleware()] if behind else []))

    response = await post(AGUIMiddleware(endpoint, middleware=chain), "/", BODY)
    assert bodies == [BODY]
    # (A throttle may merge what comes at once.)
    assert response.body == STREAM if not behind else [event.type for event in response.events][-1] == "RUN_FINISHED"


async def test_its_own_stages_see_the_old_body_as_an_input() -> None:
    agent, seen = Agent(), []

    async def watching(input: Any, next: Any) -> Any:
        seen.append((input.thread_id, input.messages[-1].content))
        async for event in next(input):
            yield event

    def chain(request: Request, body: Any) -> Negotiated:
        return negotiate(request, body).behind(watching, TrustMiddleware(on_diagnostic=lambda _: None))

    served = AGUIMiddleware(agent_app(agent), middleware=chain, on_unparsable="reject")
    assert said(await post(served, "/", OLD, ENVELOPED)) == "you said hello"
    assert seen == [("s", "hello")]


async def test_an_answer_is_not_understood_there() -> None:
    agent = Agent()
    response = await run_asgi(wrapped(agent, on_unparsable="reject"), body=RESUME)
    assert (response.status, agent.inputs) == (400, [])


async def test_an_app_that_fails_is_ended_in_the_dialect() -> None:
    async def failing(input: Any) -> Any:
        yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
        raise OSError("no model")

    response = await run_asgi(AGUIMiddleware(agent_app(failing), middleware=negotiate), body=OLD, headers=ENVELOPED)
    assert [kind for kind, _ in enveloped(response)] == ["error", "done"]
    assert b"no model" not in response.body
