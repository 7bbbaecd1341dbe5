"""The example of the old API: both curl lines, an EventSource, and both kinds of front ends at one endpoint."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agui_pipeline.adapters.testing import ASGIResponse, run_asgi
from agui_pipeline.translators import run_input
from examples.superagent_api import build_app

pytestmark = pytest.mark.anyio

API = "/api/v1/chat"
ORDER = {"agent_id": "librarian", "session_id": "s", "message": "delete the old files"}


async def ask(app: Any, path: str, **options: Any) -> ASGIResponse:
    response = await run_asgi(app, path=path, **options)
    assert (response.status, response.exception) == (200, None)
    return response


def data(response: ASGIResponse) -> list[Any]:
    return [json.loads(frame.data) for frame in response.frames if frame.data is not None]


@pytest.mark.parametrize(("confirm", "end"), [(True, "Deleted."), (False, "I leave them where they are.")])
async def test_the_question_and_its_answer(confirm: bool, end: str) -> None:
    app = build_app()
    first = data(await ask(app, f"{API}/stream", body=ORDER, headers={"x-a2ui": "true"}))
    assert [frame["type"] for frame in first] == ["tool_call", "tool_result", "text", "interrupt", "done"]
    assert first[0]["data"]["arguments"] == {"older_than": "2020-01-01"}
    (field,) = first[3]["data"]["fields"]
    assert (field["name"], field["type"], field["label"]) == ("confirm", "confirm", "Delete them?")
    answer = {"agent_id": "librarian", "session_id": "s", "input": {"confirm": confirm}}
    last = data(await ask(app, f"{API}/resume", body=answer))
    assert [(frame["type"], (frame["data"] or {}).get("delta")) for frame in last] == [("text", end), ("done", None)]


async def test_an_event_source() -> None:
    response = await ask(build_app(), f"{API}/stream?session=s&message=hello", method="GET")
    assert [(frame["type"], frame.get("content")) for frame in data(response)] == [
        ("text", "I heard 1 messages, and no order."),
        ("done", None),
    ]


async def test_tokens() -> None:
    response = await ask(build_app(), f"{API}/stream", body={**ORDER, "message": "hello"})
    assert [frame.data for frame in response.frames] == ["I heard 1 messages, and no order.", "[DONE]"]


async def test_both_kinds_of_front_ends_at_one_endpoint() -> None:
    app = build_app()
    new = await ask(app, "/agent/", body=run_input("delete the old files"))
    assert new.events[-1].outcome["type"] == "interrupt"
    old = await ask(app, "/agent/", body=ORDER, headers={"x-a2ui": "true"})
    assert [frame["type"] for frame in data(old)] == ["tool_call", "tool_result", "text", "interrupt", "done"]


async def test_a_page_from_elsewhere_may_ask() -> None:
    headers = {
        "origin": "https://front.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,x-a2ui",
    }
    response = await ask(build_app(), f"{API}/stream", method="OPTIONS", headers=headers)
    assert "x-a2ui" in response.headers["access-control-allow-headers"]
