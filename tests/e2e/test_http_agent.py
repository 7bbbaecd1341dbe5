"""The official client in front of an agent that is fetched from elsewhere: it sees what it would see there, or more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agui_pipeline.adapters.http import HttpAgent
from agui_pipeline.adapters.starlette import agent_app
from agui_pipeline.middleware import A2UIMiddleware, EventThrottleMiddleware, GuardMiddleware
from tests.e2e.apps import MAKERS, PATH, in_deltas
from tests.e2e.harness import OracleResult, serve

# ag-ui-langgraph calls what LangGraph has deprecated; inside a server thread that must not end the run.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning")

Oracle = Callable[..., OracleResult]

TEXT = "Rechnen wir: 計算, and \u2028 some more.\n" * 5
BODY = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "Hallo"}]}


@pytest.mark.parametrize("name", list(MAKERS))
def test_every_kind_of_endpoint_can_be_remote(oracle: Oracle, name: str) -> None:
    with (
        serve(MAKERS[name](in_deltas(TEXT))) as there,
        serve(agent_app(HttpAgent(there + PATH), path=PATH)) as here,
    ):
        bare = oracle(there + PATH, BODY)
        result = oracle(here + PATH, BODY)
    assert (result.code, result.error, result.text) == (0, None, TEXT)
    assert (result.types[0], result.types[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    if name == "sse-starlette":
        assert bare.code == 1, "CRLF became legible to the client: what we know of it is out of date"
    else:
        assert (result.types, result.text) == (bare.types, bare.text)


def test_a_chain_works_on_a_remote_agent(oracle: Oracle) -> None:
    surface = '{"version":"v0.9","deleteSurface":{"surfaceId":"s"}}\n'
    chain = [A2UIMiddleware.chat(), EventThrottleMiddleware(), GuardMiddleware()]
    with (
        serve(MAKERS["fastapi"](in_deltas(TEXT + surface))) as there,
        serve(agent_app(HttpAgent(there + PATH), *chain, path=PATH)) as here,
    ):
        result = oracle(here + PATH, BODY)
    assert (result.code, result.error, result.text) == (0, None, TEXT)
    assert result.a2ui == [{"version": "v0.9", "deleteSurface": {"surfaceId": "s"}}]


async def breaking(input: Any) -> Any:
    yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
    yield {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hel"}


@pytest.mark.parametrize("guard", [[], [GuardMiddleware()]])
def test_a_run_that_breaks_off_there_is_an_error_here(oracle: Oracle, guard: list[Any]) -> None:
    with serve(agent_app(breaking)) as there, serve(agent_app(HttpAgent(there), *guard)) as here:
        bare = oracle(there, BODY)
        result = oracle(here, BODY)
    assert bare.code == 4, "the client must not notice by itself"
    assert (result.code, result.types[-1], result.text) == (3, "RUN_ERROR", "Hel")
    assert result.events[-1]["code"] == "source_ended"


def test_a_remote_agent_that_is_not_there_is_an_error_here(oracle: Oracle) -> None:
    with (
        serve(agent_app(breaking, path="/other")) as there,
        serve(agent_app(HttpAgent(there), GuardMiddleware())) as here,
    ):
        result = oracle(here, BODY)
    assert (result.code, result.types) == (3, ["RUN_STARTED", "RUN_ERROR"])
