"""The LangGraph example: the same answers in all three ways."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.adapters.testing import assert_valid_stream, collect, run_asgi
from tests.e2e.harness import needs

needs("ag_ui_langgraph", "ag-ui-langgraph")

from examples.langgraph_agent import LETTER, build_app  # noqa: E402

pytestmark = [
    pytest.mark.anyio,
    # ag-ui-langgraph calls what LangGraph has deprecated.
    pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning"),
]

ASK: dict[str, Any] = {
    "threadId": "t",
    "runId": "r1",
    "messages": [{"id": "1", "role": "user", "content": "Write to Ada"}],
    "state": {},
    "tools": [],
    "context": [],
    "forwardedProps": {},
}


@pytest.fixture(scope="module", params=[pytest.param(("asyncio", {}), id="asyncio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """LangGraph runs on asyncio only."""
    return request.param


@pytest.mark.parametrize("path", ["/source", "/wrapped", "/around"])
@pytest.mark.parametrize(("answer", "end"), [("yes", "It is sent."), ("no", "It is not sent.")])
async def test_it_writes_asks_and_sends(path: str, answer: str, end: str) -> None:
    app = build_app()

    asked = await run_asgi(app, path=path, body=ASK)

    assert_valid_stream(asked.events)
    assert len(asked.body) < 4000
    result = await collect(list(asked.events))
    assert (result.text, result.outcome) == (LETTER, "interrupt")
    (interrupt,) = result.interrupts
    assert interrupt.message == "Send it?"

    resume = [{"interruptId": interrupt.id, "status": "resolved", "payload": answer}]
    messages = [dict(message) for message in result.messages]
    answered = await run_asgi(app, path=path, body={**ASK, "runId": "r2", "messages": messages, "resume": resume})

    assert_valid_stream(answered.events)
    result = await collect(list(answered.events))
    assert (result.messages[-1].content, result.outcome) == (end, "success")
