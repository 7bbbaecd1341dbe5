"""The Python blocks of docs/a2ui.md run as written, and its tables name what the code has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from agui_pipeline import A2UIMiddleware, A2UIPlannerMiddleware, Pipeline, run_input
from agui_pipeline.adapters.testing import run_asgi
from agui_pipeline.translators.a2ui import DIAGNOSTICS, VERSIONS

PAGE = (Path(__file__).parent.parent / "docs" / "a2ui.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
DELETION = '{"version":"v0.9","deleteSurface":{"surfaceId":"s"}}'

pytestmark = pytest.mark.anyio


def run_block(part: str) -> dict[str, Any]:
    """Run the one block that has some text in it; return its names."""
    (block,) = [block for block in BLOCKS if part in block]
    names: dict[str, Any] = {"__name__": "a2ui"}
    exec(compile(block, "a2ui.md", "exec"), names)  # noqa: S102 - our own text
    return names


@pytest.mark.parametrize(("part", "extra"), [("GAUGES", "a2ui"), ("COPILOTKIT", None), ("FileLike", None)])
async def test_a_chain_is_one(part: str, extra: str | None) -> None:
    if extra is not None:
        pytest.importorskip(extra)
    source = [{"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": DELETION}]
    async with Pipeline(source, *run_block(part)["chain"]).open(run_input("hi")) as events:
        assert [event.type async for event in events] == (["CUSTOM"] if part == "GAUGES" else [])


async def test_a_chat_is_one_stream() -> None:
    app = run_block("weather_card")["app"]
    tool = {"name": "weather_card", "description": "", "parameters": {}}
    body = {"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    response = await run_asgi(app, path="/chat", body=body)
    assert [event.type for event in response.events] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_CHUNK",
        "CUSTOM",
        "CUSTOM",
        "TEXT_MESSAGE_CHUNK",
        "TOOL_CALL_CHUNK",
        "RUN_FINISHED",
    ]


async def test_a_slip_is_repaired() -> None:
    pytest.importorskip("json_repair")
    names = run_block("repaired")
    assert await names["repaired"]() == names["expected"]


async def test_a_store_keeps_surfaces() -> None:
    names = run_block("FileLike")
    form = (
        '{"version":"v0.9","createSurface":{"surfaceId":"s","catalogId":"c","sendDataModel":true}}\n'
        '{"version":"v0.9","updateComponents":{"surfaceId":"s","components":[{"id":"root","component":"Text"}]}}\n'
    )
    for delta in (form, '{"version":"v0.9","updateDataModel":{"surfaceId":"s","path":"/a","value":1}}'):
        source = [{"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": delta}]
        async with Pipeline(source, *names["chain"]).open(run_input("hi", thread_id="t")) as events:
            assert [event.type async for event in events] == ["ACTIVITY_SNAPSHOT"]
    assert len(names["registry"].messages_for("t", "s")) == 3
    assert names["registry"].sends_data_model("t", "s")


@pytest.mark.parametrize("part", ["unknown_surfaces", "planner.text", "parse_client_message"])
async def test_what_comes_back_and_what_a_model_is_told(part: str) -> None:
    chain = run_block(part).get("chain", [])
    async with Pipeline([], *chain).open(run_input("hi")) as events:
        # A guard says that a source of nothing has ended.
        assert [event.type async for event in events][-1:] in ([], ["RUN_ERROR"])


def test_the_block_that_needs_the_extra_runs_with_it() -> None:
    pytest.importorskip("a2ui")
    (block,) = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "a2ui.md", "exec"), {"__name__": "a2ui"})  # noqa: S102 - our own text


def test_the_page_names_every_option_version_and_its_codes() -> None:
    for stage in (A2UIMiddleware, A2UIPlannerMiddleware):
        for name in inspect.signature(stage).parameters:
            assert f"`{name}`" in PAGE, name
    assert all(version in PAGE for version in VERSIONS)
    for code in re.findall(r"`(a2ui\.[a-z-]+)`", PAGE):
        assert code in DIAGNOSTICS or code == "a2ui.md", code
