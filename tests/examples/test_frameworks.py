"""The examples whose frameworks have an environment of their own, which `.ci/frameworks` makes to run this file in."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

from agui_pipeline.adapters.testing import assert_valid_stream, collect, run_asgi
from tests.e2e.harness import install_client, run_oracle, serve

pytestmark = [
    pytest.mark.anyio,
    # What the frameworks say of themselves: experimental here, deprecated there.
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
]

CASES = [
    ("agent_framework", "agent_framework_ag_ui", "The framework agrees."),
    ("adk", "ag_ui_adk", "ADK agrees, too."),
]
BODY: dict[str, Any] = {
    "threadId": "t",
    "runId": "r",
    "messages": [{"id": "1", "role": "user", "content": "hello"}],
    "state": {},
    "tools": [],
    "context": [],
    "forwardedProps": {},
}


@pytest.fixture(scope="module", params=[pytest.param(("asyncio", {}), id="asyncio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Both frameworks run on asyncio only."""
    return request.param


@pytest.fixture(params=CASES, ids=[case[0] for case in CASES])
def example(request: pytest.FixtureRequest) -> tuple[Any, str]:
    """The example's module, and what its agent says."""
    folder, package, text = request.param
    if os.environ.get("AGUI_FRAMEWORK") not in (None, folder):
        pytest.skip("another framework's environment")
    if os.environ.get("AGUI_FRAMEWORK") is None:
        pytest.importorskip(package, reason=f"{package} is not installed; .ci/frameworks runs this")
    return importlib.import_module(f"examples.{folder}.server"), text


@pytest.mark.parametrize("path", ["/source", "/around"])
async def test_it_answers(example: tuple[Any, str], path: str) -> None:
    module, text = example
    app = module.build_app()
    for turn in ("r1", "r2"):
        messages = [{"id": f"user-{turn}", "role": "user", "content": "hello"}]
        response = await run_asgi(app, path=path, body={**BODY, "threadId": path, "runId": turn, "messages": messages})
        assert response.status == 200
        assert_valid_stream(response.events)
        result = await collect(list(response.events))
        assert (result.text, result.outcome) == (text, "success")
        assert response.events[0].run_id == turn
        assert b"\r" not in response.body


@pytest.mark.e2e
@pytest.mark.parametrize("path", ["/source", "/around"])
def test_the_official_client_accepts_it(example: tuple[Any, str], path: str) -> None:
    module, text = example
    install_client()
    with serve(module.build_app()) as base:  # on a thread of its own: ADK's sessions outlive an app
        result = run_oracle(base + path, {**BODY, "threadId": f"client{path}"})
    assert (result.code, result.error, result.text) == (0, None, text)


@pytest.mark.parametrize("path", ["/source", "/around"])
async def test_a_client_may_leave(example: tuple[Any, str], path: str) -> None:
    module, _ = example
    response = await run_asgi(module.build_app(), path=path, body=BODY, disconnect_after=1)
    assert response.exception is None
