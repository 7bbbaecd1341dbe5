"""The README's snippets, run as written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agui_pipeline.adapters.testing import collect, run_asgi
from tests.e2e.harness import needs

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
OUTPUTS = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
BODY = {"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "world"}]}

pytestmark = pytest.mark.anyio


def snippet(part: str) -> str:
    (found,) = [str(text) for text in SNIPPETS if part in text]
    return found


def app_of(code: str) -> Any:
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - our own text
    return names["app"]


async def test_around_an_endpoint() -> None:
    app = app_of(snippet("add_middleware"))

    response = await run_asgi(app, path="/agent", body=BODY)

    assert [event.type for event in response.events] == ["RUN_STARTED", "RAW", "RUN_FINISHED"]
    assert response.events[1].event == {"deleteSurface": {"surfaceId": "s"}}
    assert '{"type":"RAW","event":{"deleteSurface":{"surfaceId":"s"}},"source":"a2ui/v0.8"}' in README
    assert '{"type":"RAW","event":{"deleteSurface":{"surfaceId":"s"}},"source":"a2ui/v0.8"}' in response.body.decode()


async def test_one_stream_for_a_chat() -> None:
    app = app_of(snippet("A2UIMiddleware.chat(), EventThrottleMiddleware(), Guard"))
    tools = [{"name": "show_map", "description": "of the front end", "parameters": {}}]

    response = await run_asgi(app, path="/chat", body={**BODY, "tools": tools})
    result = await collect(list(response.events))

    assert [event.value["version"] for event in response.events if event.type == "CUSTOM"] == ["v0.9", "v0.9"]
    assert result.text.strip() == "Here is the weather."
    assert [
        call.function.name for message in result.messages for call in getattr(message, "tool_calls", None) or ()
    ] == ["show_map"]
    assert response.events[-1].type == "RUN_FINISHED"


async def test_serving_a_source() -> None:
    app = app_of(snippet('messages"}'))

    response = await run_asgi(app, path="/agent", body=BODY)

    assert [event.type for event in response.events][::3] == ["RUN_STARTED", "RUN_FINISHED"]
    assert "".join(event.delta for event in response.events if event.delta) == "Hello 1 messages"


def test_in_a_script() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", snippet("asyncio.run")], check=True, capture_output=True, text=True
    )
    assert done.stdout in OUTPUTS


@pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # as LangGraph
async def test_inside_langgraphs_endpoint() -> None:
    needs("ag_ui_langgraph", "ag-ui-langgraph")
    message = {"id": "1", "role": "user", "content": "hi"}
    rest: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    app = app_of(snippet("wrap_agent"))

    response = await run_asgi(app, path="/agent", body={**BODY, "messages": [message], **rest})

    assert (await collect(list(response.events))).messages[-1].content == "Hello."
    assert not any(event.type == "RAW" for event in response.events)


def test_every_snippet_is_run_here() -> None:
    assert len(SNIPPETS) == 5
