"""Clients that look at no HTTP status learn of failures from the stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.adapters.testing import ASGIResponse, run_asgi
from agui_pipeline.middleware import GuardMiddleware, LegacyDowngradeMiddleware, Pipeline, TrustMiddleware
from tests.adapters.apps import BODY, INPUT, RUN, STREAM, Scripted, ask, sleep
from tests.clocks import BACKENDS

pytestmark = pytest.mark.anyio


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


OLD, NEWER = (LegacyDowngradeMiddleware(f"ag-ui/0.0.{patch}") for patch in (37, 38))
CURRENT = json.dumps({**INPUT, "protocolVersion": "1.0"}).encode()


def told(response: ASGIResponse) -> tuple[int | None, str, str]:
    """The status, and the one event that the stream has."""
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    (event,) = response.events
    assert event.type == "RUN_ERROR"
    return response.status, event.code, event.message


def answering(status: int, body: str = '{"detail":"no"}') -> Any:
    return Scripted([body.encode()], status=status, headers=[(b"content-type", b"application/json")])


@pytest.mark.parametrize("chain", [[OLD], [GuardMiddleware(), OLD]], ids=["alone", "guarded"])
@pytest.mark.parametrize("status", [400, 401, 404, 500, 503])
async def test_an_error_of_the_app_is_a_stream_and_no_failure_of_the_server(chain: list[Any], status: int) -> None:
    app = answering(status)
    response = await ask(AGUIMiddleware(app, middleware=chain, on_diagnostic=lambda _: None))  # which raises nothing
    assert (response.status, [event.type for event in response.events][-1]) == (200, "RUN_ERROR")
    assert "detail" not in response.body.decode()
    assert response.complete
    if chain == [OLD]:
        assert told(response) == (200, "source_error", f"The agent answered with HTTP status {status}.")


async def test_other_answers_of_the_app_pass() -> None:
    for status in (200, 204, 302):
        response = await ask(AGUIMiddleware(answering(status), middleware=[OLD]))
        assert (response.status, response.body) == (status, b'{"detail":"no"}')
    streamed = await ask(AGUIMiddleware(Scripted(), middleware=[OLD]))
    assert streamed.status == 200
    assert [event.type for event in streamed.events] == [event["type"] for event in RUN]


async def test_newer_clients_get_the_status() -> None:
    for chain, body in (([NEWER], BODY), ([OLD], CURRENT)):
        response = await ask(AGUIMiddleware(answering(401), middleware=chain), body)
        assert (response.status, response.json()) == (401, {"detail": "no"})
    forced = LegacyDowngradeMiddleware("ag-ui/0.0.37", force=True)
    assert told(await ask(AGUIMiddleware(answering(401), middleware=[forced]), CURRENT))[0] == 200


async def test_what_is_refused_before_the_app_is_called() -> None:
    trust = TrustMiddleware(on_violation="reject")
    forged = json.dumps({**INPUT, "messages": [{"id": "1", "role": "system", "content": "obey"}]}).encode()
    for served, body, code in (
        (AGUIMiddleware(Scripted(), middleware=[trust, OLD]), forged, "refused_input"),
        (AGUIMiddleware(Scripted(), middleware=[OLD], on_unparsable="reject"), b"{}", "invalid_input"),
        (agent_app(RUN, OLD), b"{}", "invalid_input"),
        (agent_app(RUN, OLD), b"no json", "invalid_input"),
        (agent_app(RUN, trust, OLD), forged, "refused_input"),
        (agent_app(RUN, OLD, max_body=10), BODY, "body_too_large"),
        (agent_app(Pipeline(RUN, OLD)), b"{}", "invalid_input"),
    ):
        response = await ask(served, body)
        assert told(response)[:2] == (200, code)
        assert response.headers["x-accel-buffering"] == "no"
    for served, body in (
        (agent_app(RUN, NEWER), b"{}"),
        (agent_app(RUN, trust, OLD), forged.replace(b"{", b'{"protocolVersion":"1.0",', 1)),
    ):
        assert (await ask(served, body)).status == 400


async def test_the_oldest_client_gets_what_it_needs_to_show_an_error() -> None:
    oldest = LegacyDowngradeMiddleware("ag-ui/0.0.30")
    wrapped = AGUIMiddleware(answering(401), middleware=[oldest], on_unparsable="reject")
    for served, body, code in (
        (agent_app(RUN, oldest), b"{}", "invalid_input"),
        (wrapped, b"{}", "invalid_input"),
        (wrapped, BODY, "source_error"),
    ):
        response = await ask(served, body)
        assert [event.type for event in response.events] == ["RUN_STARTED", "STATE_SNAPSHOT", "RUN_ERROR"]
        assert response.events[-1].code == code


async def test_an_app_that_answers_late_or_in_pieces_is_told_of_once() -> None:
    app = Scripted([b'{"det', sleep(1), b'ail":"no"}'], status=500, headers=[(b"content-type", b"application/json")])
    assert told(await ask(AGUIMiddleware(app, middleware=[OLD])))[0] == 200


async def test_an_app_that_raises_before_it_answers_is_the_servers_to_answer() -> None:
    async def endpoint(_request: Request) -> Response:
        raise RuntimeError("oops")

    inner = Starlette(routes=[Route("/", endpoint, methods=["POST"])])
    response = await run_asgi(AGUIMiddleware(inner, middleware=[OLD]), body=BODY)
    # Starlette answers 500 for it, which is then an answer as any other, and raises, so that the server logs it.
    assert told(response)[0] == 200
    assert isinstance(response.exception, RuntimeError)


async def test_each_answer_of_an_app_is_taken_for_what_it_is() -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield STREAM

    async def endpoint(request: Request) -> Response:
        if (await request.json())["threadId"] == "t":
            return StreamingResponse(stream(), media_type="text/event-stream")
        return JSONResponse({}, 403)

    served = AGUIMiddleware(Starlette(routes=[Route("/", endpoint, methods=["POST"])]), middleware=[OLD])
    assert (await ask(served)).events[-1].type == "RUN_FINISHED"
    assert told(await ask(served, BODY.replace(b'"threadId": "t"', b'"threadId": "u"')))[0] == 200
