"""Fixtures of the end-to-end tests: the official client and a browser, each skipped (or failed) without its tool."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.harness import HERE, install_client, missing, run_oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from tests.e2e.harness import OracleResult


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is marked ``e2e``."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("e2e")


@pytest.fixture(scope="session")
def oracle() -> Callable[..., OracleResult]:
    """The official client, installed if it must be: ``oracle(url, body)`` is one run."""
    install_client()
    return run_oracle


@pytest.fixture(scope="session")
def renderer_pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages of the A2UI renderers (renderers/), bundled."""
    install_client()
    outdir = tmp_path_factory.mktemp("renderers")
    build = ["node", str(HERE / "renderers" / "build.mjs"), str(outdir)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return outdir


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, of module scope: Playwright's event loop would break async tests that come after it."""
    executable = shutil.which("chromium") or missing("chromium")
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        missing("playwright")
    expect.set_options(timeout=15_000)  # milliseconds: the machine may be busy
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable)
        yield running
        running.close()
