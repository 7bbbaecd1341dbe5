"""What every test shares: the two event loops, and how hard hypothesis looks."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

# No deadline: a shared machine stalls now and then, which says nothing about the code.
settings.register_profile("dev", deadline=None, print_blob=True, max_examples=50)
# The same examples each time: a pipeline must not fail on a change that did not cause it.
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(
    scope="module",
    params=[pytest.param(("asyncio", {}), id="asyncio"), pytest.param(("trio", {}), id="trio")],
)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Run each async test (``pytestmark = pytest.mark.anyio``) on both event loops."""
    return request.param


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how to run what was skipped for want of a tool: a count alone looks like something that is broken."""
    reasons = [report.longrepr[2] for report in terminalreporter.getreports("skipped") if report.longrepr]
    wanting = sum("to run it: " in reason for reason in reasons)
    if wanting:
        terminalreporter.write_line(
            f"{wanting} of the skipped tests want Node packages, a browser or a framework: `make e2e` installs those"
            " and runs them (needs Node.js 18 or later and Debian's chromium)"
        )
