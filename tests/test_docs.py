"""The docs' generated parts are current, their Python blocks run, and every diagnostic code is in the table."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "guide.md"]
BLOCKS = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))
]


def test_generated_parts_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout}: run python docs/generate.py"


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs(block: str) -> None:
    exec(compile(block, "docs", "exec"), {"__name__": "docs"})  # noqa: S102 - our own text


def test_every_code_that_the_source_makes_is_in_the_table() -> None:
    table = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    made = {
        code
        for room in ("translators", "middleware", "adapters")
        for path in (ROOT / room).rglob("*.py")
        for code in re.findall(r'Diagnostic\(\s*"([a-z0-9.-]+)"', path.read_text(encoding="utf-8"))
    }
    assert made
    assert sorted(code for code in made if f"`{code}`" not in table) == []
