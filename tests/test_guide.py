"""The guide's Python blocks run as written, and its chains are chains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agui_pipeline import AGUIMiddleware, Pipeline, run_input

DOCS = Path(__file__).parent.parent / "docs"
BLOCKS = re.findall(r"```python\n(.*?)```", (DOCS / "guide.md").read_text(encoding="utf-8"), re.DOTALL)
SURFACE = '{"version":"v0.9","deleteSurface":{"surfaceId":"s"}}'

pytestmark = pytest.mark.anyio


def names_of(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile(block, "guide.md", "exec"), names)  # noqa: S102 - our own text
    return names


@pytest.mark.parametrize("block", BLOCKS)
async def test_block_runs(block: str) -> None:
    names = names_of(block)
    chain = names.get("chain")
    if chain is None:
        assert isinstance(names["wrap"](lambda *_: None), AGUIMiddleware)
        return
    source = [
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": SURFACE},
        {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "a secret"},
        {"type": "RAW", "event": 1},
    ]
    async with Pipeline(source, *chain).open(run_input("hi")) as events:
        seen = [event async for event in events]
    assert "".join(str(event) for event in seen).count("secret") <= ("redact" not in block)
    assert seen


def test_the_carrier_of_ones_own_is_used() -> None:
    (block,) = [block for block in BLOCKS if "as_state" in block]
    assert names_of(block)["chain"]


def test_links_between_the_documents_lead_somewhere() -> None:
    for path in (*DOCS.glob("*.md"), DOCS.parent / "README.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
