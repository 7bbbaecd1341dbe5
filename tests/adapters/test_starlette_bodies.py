"""Request bodies: what becomes of each kind, around an app and at an agent's endpoint."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from starlette.types import Message

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.adapters.testing import ScriptedAgent, run_asgi
from agui_pipeline.middleware import Source
from agui_pipeline.translators import Diagnostic
from tests.adapters.apps import BODY, FRAMES, INPUT, RUN, STREAM, TYPES, Scripted, ask, pieces, types, wrapped
from tests.middleware.kit import Same, Stage

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}
LIMIT = 2000


async def forbidden(_input: Any, _next: Source) -> Any:
    raise AssertionError("this request must not meet the chain")
    yield


NO_INPUT: dict[str, tuple[Any, dict[str, str], int, str]] = {
    "empty": (b"", JSON, 400, "wanted a JSON object"),
    "not JSON": (b"{no json", JSON, 400, "got no JSON"),
    "not UTF-8": (b'{"a":"\xff"}', JSON, 400, "got no JSON"),
    "NaN": (b'{"messages":[],"state":NaN}', JSON, 400, "got no JSON"),
    "an array": (b"[1]", JSON, 400, "wanted a JSON object"),
    "no messages": (b'{"threadId":"t"}', JSON, 400, "messages: missing; wanted a list"),
    "a wrong role": (b'{"messages":[{"role":"bot","content":""}]}', JSON, 400, "messages[0].role: wanted"),
    "a wrong type": (b'{"messages":[],"threadId":5}', JSON, 400, "threadId: wanted"),
    "too deep": (b'{"messages":[],"state":' + b"[" * 300 + b"]" * 300 + b"}", JSON, 400, "levels of nesting"),
    "deeper than any parser": (b"[" * 1900, JSON, 400, "got no JSON"),
    "text": (BODY, {"content-type": "text/plain"}, 415, "content-type 'text/plain'"),
    "a form": (b"a=b", {"content-type": "application/x-www-form-urlencoded"}, 415, "a RunAgentInput is"),
    "compressed": (gzip.compress(BODY), {**JSON, "content-encoding": "gzip"}, 415, "content-encoding 'gzip'"),
    "too large": (BODY + b" " * LIMIT, JSON, 413, "larger than the limit of 2000 bytes"),
    "too large, undeclared": ([BODY, b" " * LIMIT, b" "], {**JSON, "content-length": "x"}, 413, "limit of 2000 bytes"),
}

each_body = pytest.mark.parametrize(("body", "headers", "status", "message"), NO_INPUT.values(), ids=NO_INPUT.keys())


@each_body
async def test_an_endpoint_refuses_what_is_no_input(body: Any, headers: Any, status: int, message: str) -> None:
    agent = ScriptedAgent(RUN)
    response = await ask(agent_app(agent, max_body=LIMIT), body, headers=headers)
    assert response.status == status
    assert response.headers["content-type"] == "application/json"
    refusal = response.json()
    assert set(refusal) == {"code", "message"}
    assert message in refusal["message"]
    assert agent.inputs == []


@each_body
async def test_a_strict_wrapping_refuses_what_is_no_input(body: Any, headers: Any, status: int, message: str) -> None:
    app = Scripted()
    strict = wrapped(app, forbidden, max_body=LIMIT, on_unparsable="reject")
    response = await ask(strict, body, headers=headers)
    assert response.status == status
    assert message in response.json()["message"]
    assert app.calls == []


@each_body
async def test_any_other_wrapping_lets_it_pass_untouched(body: Any, headers: Any, status: int, message: str) -> None:  # noqa: ARG001
    diagnostics: list[Diagnostic] = []
    parts = pieces(body, 100) if isinstance(body, bytes) else body
    for served in (Scripted(), Scripted([b"text"], headers=[(b"content-type", b"text/plain")])):
        bare = await ask(served, parts, headers=headers)
        app = wrapped(served, forbidden, max_body=LIMIT, on_diagnostic=diagnostics.append)
        response = await ask(app, parts, headers=headers)
        assert (response.status, response.headers.raw, response.chunks) == (
            bare.status,
            bare.headers.raw,
            bare.chunks,
        )
        first, second = served.calls
        assert second.messages == first.messages
        assert second.scope == first.scope
    (diagnostic,) = diagnostics  # for the event stream; that another answer passed is nothing to tell
    assert diagnostic.code == "asgi.bypass"
    assert message in diagnostic.detail["error"]
    assert "its request is no RunAgentInput" in diagnostic.message  # it is logged, and quotes nothing
    assert diagnostic.detail["error"] not in diagnostic.message
    assert diagnostic.detail["reason"] in {
        "invalid_input",
        "body_too_large",
        "unsupported_encoding",
        "unsupported_media_type",
    }


async def test_a_body_that_its_headers_rule_out_is_not_read() -> None:
    """An upload may be larger than memory, and an app may answer before it has come."""

    async def receive() -> Message:
        raise AssertionError("nobody asked for the body")

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    for headers in (
        [(b"content-type", b"multipart/form-data")],
        [(b"content-type", b"application/json"), (b"content-encoding", b"br")],
        [(b"content-type", b"application/json"), (b"content-length", b"99999999999999999999999")],
        [(b"content-type", b"application/json"), (b"Content-Length", b"10485761")],
    ):
        scope: Any = {"type": "http", "method": "POST", "path": "/", "headers": headers}
        await AGUIMiddleware(app)(scope, receive, send)
        assert sent.pop(0)["status"] == 202
        sent.clear()
        await agent_app(RUN)(scope, receive, send)
        assert sent[0]["status"] in (413, 415)
        sent.clear()


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON; charset=utf-8", "application/vnd.ag-ui+json", "text/json", None],
)
async def test_json_by_any_name_is_read(content_type: str | None) -> None:
    headers = [] if content_type is None else [("content-type", content_type)]
    request: list[Message] = [{"type": "http.request", "body": BODY, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        return request.pop() if request else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers]
    await agent_app(RUN, on_disconnect="detach")(
        {"type": "http", "method": "POST", "path": "/", "headers": raw}, receive, send
    )
    assert sent[0]["status"] == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "OPTIONS", "DELETE"])
async def test_an_endpoint_is_run_by_post(method: str) -> None:
    agent = ScriptedAgent(RUN)
    response = await ask(agent_app(agent), BODY, method=method)
    assert (response.status, response.headers["allow"]) == (405, "POST")
    assert agent.inputs == []


async def test_the_largest_body_that_may_be_read_is_read() -> None:
    app = Scripted()
    served = wrapped(app, max_body=len(BODY), on_unparsable="reject")
    for body in (BODY, pieces(BODY, 10), [*pieces(BODY, 10), b""]):
        assert (await ask(served, body, headers={"content-length": str(len(BODY))})).body == STREAM
    assert (await ask(wrapped(app, max_body=len(BODY) - 1, on_unparsable="reject"))).status == 413


# What the app gets.


async def test_a_body_that_lacks_nothing_arrives_as_it_was() -> None:
    for chain in ([], [Stage(Same)]):
        for body in (BODY, pieces(BODY, 7), [BODY, b""]):
            bare, app = Scripted(), Scripted()
            await ask(bare, body)
            await ask(wrapped(app, *chain), body)
            assert app.call.body == bare.call.body == BODY
            assert app.call.scope["headers"] == bare.call.scope["headers"]


async def test_what_a_body_lacks_is_filled_in_for_chain_and_app() -> None:
    """As the clients of tRPC-Agent-Go send it."""
    body = {"messages": [{"role": "user", "content": "hi"}], "threadId": "t", "runId": "r"}
    diagnostics: list[Diagnostic] = []
    met: list[RunAgentInput] = []

    async def noting(input: RunAgentInput, next: Source) -> Any:
        met.append(input)
        async for event in next(input):
            yield event

    app = Scripted()
    headers = [("content-type", "application/json"), ("content-length", "77"), ("transfer-encoding", "x"), ("x-y", "z")]
    await ask(wrapped(app, noting, on_diagnostic=diagnostics.append), json.dumps(body), headers=headers)
    sent = json.loads(app.call.body)
    (given,) = met
    assert given.messages[0].id
    assert RunAgentInput.model_validate(sent) == given
    assert sent["tools"] == sent["context"] == []
    assert [(name, value) for name, value in app.call.scope["headers"] if name not in (b"host", b"accept")] == [
        (b"content-type", b"application/json"),
        (b"x-y", b"z"),
        (b"content-length", str(len(app.call.body)).encode()),
    ]
    assert {one.code for one in diagnostics} == {"input.id", "input.filled"}
    diagnostics.clear()
    await ask(agent_app(RUN, on_diagnostic=diagnostics.append), json.dumps(body), headers=headers[:1])
    assert {one.code for one in diagnostics} == {"input.id", "input.filled"}


async def test_unknown_fields_survive_being_filled_in() -> None:
    app = Scripted()
    body = {**INPUT, "x-vendor": {"a": [1, None]}}
    del body["tools"]
    await ask(wrapped(app), body)
    assert json.loads(app.call.body) == {**body, "tools": []}


# A client that leaves with its body half sent.


@pytest.mark.parametrize("parts", [[], [b""], [BODY[:50]], [BODY[:50], BODY[50:]]])
async def test_a_body_that_breaks_off_runs_nothing(parts: list[bytes]) -> None:
    agent = ScriptedAgent(RUN)
    app = Scripted()
    for served in (wrapped(app), wrapped(app, on_unparsable="reject"), agent_app(agent)):
        response = await run_asgi(served, body=parts, body_complete=False, headers=JSON)
        assert (response.exception, response.status) == (None, None)
    assert app.calls == []
    assert agent.inputs == []


async def test_a_body_that_breaks_off_past_the_limit_is_the_apps_own() -> None:
    app = Scripted()
    parts = [BODY, b" " * LIMIT, b" " * LIMIT]
    response = await run_asgi(wrapped(app, max_body=LIMIT), body=parts, body_complete=False)
    assert response.exception is None
    assert [message["type"] for message in app.call.messages] == ["http.request"] * 3 + ["http.disconnect"]


async def test_pings_before_the_answer_do_not_keep_a_request_from_its_events() -> None:
    response = await ask(wrapped(Scripted([b": ping\n\n", *FRAMES])))
    assert types(response) == TYPES
