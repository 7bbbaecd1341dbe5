"""What the tests of the adapters share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.adapters.server import Server, until


@pytest.fixture(scope="session", autouse=True)
def _no_garbage() -> None:
    """Leave out what is imported by now when a test looks for garbage: that makes each look ten times faster."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def the_server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


@pytest.fixture
def server(the_server: Server) -> Iterator[Server]:
    """The server, which has nothing to log, and no task left behind, that a test did not look for."""
    the_server.errors.clear()
    yield the_server
    until(lambda: the_server.tasks() == [])
    assert the_server.errors == []
