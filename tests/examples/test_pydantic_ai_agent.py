"""The Pydantic AI example: both ways give the same run, and the stages meet the agent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agui_pipeline.adapters.testing import assert_valid_stream, collect, run_asgi
from agui_pipeline.middleware import Pipeline
from agui_pipeline.translators import run_input
from tests.e2e.harness import needs

needs("pydantic_ai.ui.ag_ui", "pydantic-ai-slim[ag-ui]")

from examples.pydantic_ai_agent import app, source  # noqa: E402

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=[pytest.param(("asyncio", {}), id="asyncio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Pydantic AI starts its runs in asyncio's tasks."""
    return request.param


PATHS = ["/agent", "/source"]
BODY: dict[str, Any] = {
    "threadId": "t",
    "runId": "r",
    "messages": [{"id": "1", "role": "user", "content": "What time is it?"}],
    "state": {},
    "tools": [],
    "context": [],
    "forwardedProps": {},
}
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("path", PATHS)
async def test_it_calls_its_tool_and_answers(path: str) -> None:
    response = await run_asgi(app, path=path, body=BODY, headers=JSON)

    assert response.status == 200
    assert_valid_stream(response.events)
    result = await collect(list(response.events))
    assert result.outcome == "success"
    assert [message.role for message in result.messages] == ["assistant", "tool", "assistant"]
    assert result.messages[1].content == "five o'clock"
    assert "five o'clock" in result.text


@pytest.mark.parametrize(("path", "status"), [("/agent", 422), ("/source", 400)])
async def test_what_is_no_input_is_refused(path: str, status: int) -> None:
    response = await run_asgi(app, path=path, body={"messages": "none"}, headers=JSON)
    assert response.status == status


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("after", [1, 3])
async def test_a_client_may_leave(path: str, after: int) -> None:
    response = await run_asgi(app, path=path, body=BODY, headers=JSON, disconnect_after=after)
    assert response.exception is None


async def test_the_documentations_block_answers() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```py\n(.*?)```", docs, re.DOTALL) if "pydantic_ai" in block]
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block, "sources.md", "exec"), names)  # noqa: S102 - our own text
    response = await run_asgi(names["app"], path="/agent", body=BODY, headers=JSON)
    assert_valid_stream(response.events)


async def test_the_agent_gets_the_input_that_a_stage_made() -> None:
    async def asks_twice(input: Any, next: Any) -> Any:
        messages = [*input.messages, *run_input("And in words?").messages]
        async for event in next(input.model_copy(update={"messages": messages, "run_id": "changed"})):
            yield event

    result = await collect(Pipeline(source, asks_twice), run_input("What time is it?", run_id="r"))
    assert result.events[0].run_id == "changed"
