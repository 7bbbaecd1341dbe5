"""Fixtures of the end-to-end tests: the official client and a browser, each skipped (or failed) without its tool."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.harness import install_client, missing, run_oracle

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, of module scope: Playwright's event loop would break async tests that come after it."""
    executable = shutil.which("chromium") or missing("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable)
        yield running
        running.close()
