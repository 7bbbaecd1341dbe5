"""The example of request contexts: who is let in, who gets which chain, and when a slot is given back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette

from agui_pipeline.adapters.testing import ASGIResponse, ScriptedAgent, assert_valid_stream, pause, run_asgi
from agui_pipeline.translators import run_input
from examples import request_context
from examples.request_context import RUNS_A_USER, agent, build_app

pytestmark = pytest.mark.anyio

BODY = run_input("hi").model_dump_json(by_alias=True)
ADA = {"authorization": "Bearer ada-token"}
BOB = {"authorization": "Bearer bob-token"}
EVE = {"authorization": "Bearer eve-token"}


class OopsError(Exception):
    pass


async def ask(app: Any, headers: dict[str, str], body: Any = BODY, **options: Any) -> ASGIResponse:
    json = {"content-type": "application/json"}
    return await run_asgi(app, path="/agent", headers={**json, **headers}, body=body, **options)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for another task."""
    with anyio.fail_after(5):
        while not condition():  # noqa: ASYNC110 - nothing to be told by
            await anyio.sleep(0.001)


def running(app: Starlette) -> int:
    """Return how many runs the cap counts."""
    found: Any = app.routes[0].app  # type: ignore[attr-defined]
    while not isinstance(found, request_context.CapRuns):
        found = found._app
    return sum(found.running.values())


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ({}, 'Bearer realm="agent"'),
        ({"authorization": "Bearer"}, 'Bearer realm="agent", error="invalid_token"'),
        ({"authorization": "Bearer ada"}, 'Bearer realm="agent", error="invalid_token"'),
        ({"authorization": "Basic ada-token"}, 'Bearer realm="agent", error="invalid_token"'),
        ({"authorization": "ada-token"}, 'Bearer realm="agent", error="invalid_token"'),
        ({"authorization": "Bearer ädä-töken"}, 'Bearer realm="agent", error="invalid_token"'),
    ],
)
async def test_without_a_token_there_is_no_stream(headers: dict[str, str], challenge: str) -> None:
    ran = ScriptedAgent()
    for body in (BODY, b"no json", b""):
        response = await ask(build_app(ran), headers, body)
        assert response.status == 401
        assert response.headers["content-type"] == "application/json"
        assert response.headers["www-authenticate"] == challenge
        assert response.json()["code"] == "unauthorized"
    assert ran.inputs == []


async def test_two_tokens_are_none() -> None:
    response = await run_asgi(
        build_app(), path="/agent", headers=[("authorization", "Bearer x"), ("authorization", "Bearer ada-token")]
    )
    assert response.status == 401


async def test_a_user_is_known_to_agent_and_chain() -> None:
    app = build_app()
    for headers, name in ((ADA, "ada"), (BOB, "bob")):
        response = await ask(app, {**headers, "accept-language": "de"})
        assert response.status == 200
        assert_valid_stream(response.events)
        assert response.events[0].metadata == {"for": name}
        assert "".join(event.delta or "" for event in response.events) == f"Hallo, {name}!"
    bob = [event.type for event in response.events]
    assert bob.count("TEXT_MESSAGE_CONTENT") < 3, "the bakery's chain merges what comes at once"
    assert running(app) == 0


async def test_a_tenant_without_an_agent_is_refused_and_keeps_no_slot() -> None:
    app = build_app()
    for _ in range(RUNS_A_USER + 1):
        response = await ask(app, EVE)
        assert (response.status, response.json()["code"]) == (403, "refused")
    assert running(app) == 0


async def test_what_no_chain_can_read_is_refused_and_keeps_no_slot() -> None:
    app = build_app()
    for _ in range(RUNS_A_USER + 1):
        assert (await ask(app, ADA, b"no json")).status == 400
    assert running(app) == 0


async def test_one_run_too_many_waits_its_turn() -> None:
    hanging = ScriptedAgent([{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, pause(math.inf)])
    app = build_app(hanging)
    async with anyio.create_task_group() as group:
        for _ in range(RUNS_A_USER):
            group.start_soon(ask, app, ADA)
        await until(lambda: hanging.running == RUNS_A_USER)
        response = await ask(app, ADA)
        assert (response.status, response.headers["retry-after"]) == (429, "5")
        assert response.headers["content-type"] == "application/json"
        assert response.json()["code"] == "too_many_runs"
        assert len(hanging.inputs) == RUNS_A_USER
        # Others are not kept waiting.
        assert (await ask(app, BOB, disconnect_after=1)).status == 200
        group.cancel_scope.cancel()
    assert running(app) == 0


STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ENDINGS: dict[str, tuple[list[Any], dict[str, Any], type[Exception] | None]] = {
    "it finishes": ([STARTED, FINISHED], {}, None),
    "it raises": ([STARTED, OopsError()], {}, OopsError),
    "it stops": ([STARTED], {}, None),
    "its client leaves": ([STARTED, pause(math.inf)], {"disconnect_after": 1}, None),
    "its client leaves half-way through the body": (
        [STARTED, FINISHED],
        {"body_complete": False, "disconnect_after": 0},
        None,
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_slot_is_given_back_however_a_run_ends(ending: str) -> None:
    script, options, raised = ENDINGS[ending]
    app = build_app(ScriptedAgent(script))
    for _ in range(2 * RUNS_A_USER):
        response = await ask(app, ADA, **options)
        assert response.status in (200, None)
        assert raised is None or isinstance(response.exception, raised)
        assert running(app) == 0


async def test_a_detached_run_keeps_its_slot_until_it_is_done() -> None:
    done = anyio.Event()
    app = build_app(ScriptedAgent([STARTED, lambda _: done.wait(), FINISHED]), on_disconnect="detach")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: ask(app, ADA, disconnect_after=1))
        await until(lambda: running(app) == 1)
        await anyio.sleep(0.02)
        assert running(app) == 1
        done.set()
    assert running(app) == 0


async def test_a_scope_that_is_no_request_passes() -> None:
    seen: list[str] = []

    async def inner(scope: Any, *_: Any) -> None:
        seen.append(scope["type"])

    for make in (request_context.RequireUser, request_context.CapRuns):
        await make(inner)({"type": "websocket"}, None, None)  # type: ignore[arg-type]
    assert seen == ["websocket", "websocket"]


async def test_the_agent_greets_in_english_too() -> None:
    response = await ask(build_app(agent), ADA)
    assert "".join(event.delta or "" for event in response.events) == "Hello, ada!"
