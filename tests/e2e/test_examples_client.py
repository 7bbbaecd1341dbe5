"""The examples of sources at the official client: over HTTP, and over the WebSocket of the one that has it."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples import websocket_endpoint
from tests.e2e.harness import OracleResult, missing, serve

# ag-ui-langgraph calls what LangGraph has deprecated; inside a server thread that must not end the run.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning")

ASK = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hello"}]}
CASES = [
    ("async_generator", "/", "That makes 42."),
    ("sync_generator", "/", "Slow and steady."),
    ("langgraph_agent", "/source", "Dear Ada, the engine works. Yours, Charles"),
    ("langgraph_agent", "/wrapped", "Dear Ada, the engine works. Yours, Charles"),
    ("langgraph_agent", "/around", "Dear Ada, the engine works. Yours, Charles"),
    ("pydantic_ai_agent", "/agent", '{"time_of_day":"five o\'clock"}'),
    ("pydantic_ai_agent", "/source", '{"time_of_day":"five o\'clock"}'),
]


@pytest.mark.parametrize(("name", "path", "text"), CASES)
def test_an_example_is_accepted(oracle: Callable[..., OracleResult], name: str, path: str, text: str) -> None:
    try:
        example: Any = importlib.import_module(f"examples.{name}")
    except ImportError as exc:
        missing(f"{exc.name}, which examples/{name}.py needs,")
    with serve(example.app) as base:
        result = oracle(base + path, ASK)
    assert (result.code, result.error, result.warnings) == (0, None, ())
    assert result.text == text


def test_the_websocket_is_accepted(oracle: Callable[..., OracleResult]) -> None:  # noqa: ARG001 - installs the client
    script = Path(__file__).parent / "websocket_client.mjs"
    with serve(websocket_endpoint.app, ws="wsproto") as base:
        done = subprocess.run(
            ["node", "--experimental-websocket", str(script), base.replace("http", "ws") + "/agent"],
            input=json.dumps(ASK),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    if "bad option" in done.stderr:
        pytest.skip("this Node has no WebSocket: it came with 20.10")
    result = json.loads(done.stdout)
    assert (result["code"], result["error"]) == (1000, None), done.stderr
    assert result["messages"][-1]["content"] == "That makes 42."
    assert result["state"] == {"answers": 1}
