"""Published versions of `@ag-ui/client`, each driven by drive.mjs: many runs in one process, what it shows of each.

Knows npm's aliases of the versions and how to start Node. Does not know what any endpoint sends.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e import harness
from tests.e2e.harness import missing

HERE: Final = Path(__file__).parent
MANIFEST: Final[dict[str, Any]] = json.loads((HERE / "package.json").read_text())
VERSIONS: Final = tuple(name.removeprefix("client-") for name in MANIFEST["dependencies"])
"""The versions that are driven, oldest first."""


@dataclass(frozen=True)
class Shown:
    """What a client has at the end of a run.

    Attributes:
        error: Why `runAgent` rejected; None if it did not.
        messages: Its conversation.
        state: Its state.
        interrupts: What it waits for answers to, where it knows interrupts.
        events: What it decoded, before it judged it.
        warnings: What it complained of and went on.
    """

    error: str | None
    messages: list[dict[str, Any]]
    state: Any
    interrupts: list[dict[str, Any]]
    events: list[dict[str, Any]]
    warnings: list[str]


def install() -> None:
    """See to it that Node and every version of package.json are there: skip, or fail, or install, as tests/e2e does."""
    if shutil.which("node") is None:
        missing("Node")
    if all(installed(version) for version in VERSIONS):
        return
    if not harness.REQUIRED:  # an ordinary test run fetches nothing
        missing("the older clients (npm install in tests/e2e/old_clients)")
    npm = shutil.which("npm") or missing("npm")
    command = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.fail(f"npm install failed in {HERE.name}:\n{done.stdout}{done.stderr}", pytrace=False)


def installed(version: str) -> bool:
    """Whether a version is there."""
    manifest = HERE / "node_modules" / f"client-{version}" / "package.json"
    return manifest.is_file() and json.loads(manifest.read_text())["version"] == version


def drive(version: str, cases: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Shown]:
    """Let a version run each of some endpoints once.

    Args:
        version: One of `VERSIONS`.
        cases: The address and the (partial) RunAgentInput of each.
    """
    given = json.dumps([{"url": url, "input": input} for url, input in cases])
    command = ["node", str(HERE / "drive.mjs"), f"client-{version}"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60 + len(cases), check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(cases), f"{version} gave up after {len(lines)} of {len(cases)}: {done.stderr}"
    return [Shown(**line) for line in lines]
