"""The official @ag-ui/client 1.0.0 accepts the demo and every kind of wrapped endpoint, and warns of nothing new."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.middleware import A2UIMiddleware, EventThrottleMiddleware
from examples.calculator.agent import calculator
from examples.calculator.server import build_app
from examples.calculator.surfaces import ACTION, Version, answer, form
from tests.e2e.apps import MAKERS, PATH, in_deltas
from tests.e2e.harness import OracleResult, run_oracle, serve

# ag-ui-langgraph calls what LangGraph has deprecated; inside a server thread that must not end the run.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning")

Oracle = Callable[..., OracleResult]

MESSAGES = form("v0.8", "calculator")
TEXT = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in MESSAGES)
BODY = {"messages": [{"id": "1", "role": "user", "content": "Rechnen wir: 計算"}], "state": {"asked": 0}}

ALL: dict[str, Any] = {"pass_through": "all"}
CUSTOM: dict[str, Any] = {"carrier": "custom", "versions": ["v0.8"]}
CHAINS: dict[str, Callable[[], Sequence[Any]]] = {
    "raw": lambda: [A2UIMiddleware()],
    "custom": lambda: [A2UIMiddleware(**CUSTOM)],
    "activity": lambda: [A2UIMiddleware(carrier="activity")],
    "throttle": lambda: [EventThrottleMiddleware()],
    "raw and all else, throttle": lambda: [A2UIMiddleware(**ALL), EventThrottleMiddleware()],
    "custom and all else, throttle": lambda: [A2UIMiddleware(**CUSTOM, **ALL), EventThrottleMiddleware()],
    "activity and all else, throttle": lambda: [A2UIMiddleware(carrier="activity", **ALL), EventThrottleMiddleware()],
}


@pytest.fixture(scope="module", params=list(MAKERS))
def maker(request: pytest.FixtureRequest, oracle: Oracle) -> tuple[str, Counter[str]]:  # noqa: ARG001 - skips in time
    """The name of a kind of endpoint, and what the client warns of at the bare one."""
    with serve(MAKERS[request.param](in_deltas(TEXT))) as base:
        bare = run_oracle(base + PATH, BODY)
    if request.param == "sse-starlette":
        assert bare.code == 1, "CRLF became legible to the client: what we know of it is out of date"
        return request.param, Counter()
    assert (bare.code, bare.error) == (0, None)
    assert bare.text == TEXT
    return request.param, Counter(bare.warnings)


@pytest.mark.parametrize("chain", list(CHAINS))
def test_a_wrapped_endpoint_is_accepted(maker: tuple[str, Counter[str]], chain: str) -> None:
    name, known_warnings = maker
    app = AGUIMiddleware(MAKERS[name](in_deltas(TEXT)), middleware=CHAINS[chain](), paths=[PATH])
    with serve(app) as base:
        result = run_oracle(base + PATH, BODY)
    assert (result.code, result.error) == (0, None)
    assert not Counter(result.warnings) - known_warnings
    assert (result.types[0], result.types[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert result.text == (TEXT if chain == "throttle" else "")
    assert by_text(result.a2ui) == ([] if chain == "throttle" else by_text(MESSAGES))
    others = {"STEP_STARTED", "STATE_SNAPSHOT", "STEP_FINISHED"}
    assert others & set(result.types) == (set() if chain in ("raw", "custom", "activity") else others)


def by_text(messages: Sequence[Any]) -> list[str]:
    """Messages in an order of their own: an activity shows its components before its data."""
    return sorted(json.dumps(message) for message in messages)


@pytest.mark.parametrize("name", list(MAKERS))
def test_mounted_twice_it_still_works(oracle: Oracle, name: str) -> None:
    inner = AGUIMiddleware(MAKERS[name](in_deltas(TEXT)), middleware=[A2UIMiddleware(carrier="activity")])
    with serve(AGUIMiddleware(inner, middleware=[EventThrottleMiddleware()])) as base:
        result = oracle(base + PATH, BODY)
    assert (result.code, result.error) == (0, None)
    assert by_text(result.a2ui) == by_text(MESSAGES)


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    with serve(build_app(pause=0)) as base:
        yield base


@pytest.mark.parametrize(
    ("path", "version"), [("/agent", "v0.8"), ("/a2ui", "v0.8"), ("/a2ui-activity", "v0.8"), ("/a2ui-custom", "v0.9.1")]
)
def test_the_demos_endpoints_are_accepted_and_compute(demo: str, oracle: Oracle, path: str, version: Version) -> None:
    thread = {"threadId": f"thread-of-{path}"}
    asked = oracle(demo + path, {**thread, "runId": "r1"})
    context = {"operation": ["multiply"], "a": "12", "b": "7"}
    user_action = {"name": ACTION, "surfaceId": "calculator", "sourceComponentId": "submit-button", "context": context}
    props = {"a2uiAction": {"userAction": user_action}}
    acted = oracle(demo + path, {**thread, "runId": "r2", "messages": list(asked.messages), "forwardedProps": props})
    for result in (asked, acted):
        assert (result.code, result.error, result.warnings) == (0, None, ())
    expected = [form(version, "calculator"), answer(version, "calculator", "84")]
    for result, messages in zip((asked, acted), expected, strict=True):
        found = [json.loads(line) for line in result.text.splitlines()] if path == "/agent" else result.a2ui
        assert all(message in found for message in messages)
    if path == "/a2ui-activity":
        activities = [message for message in acted.messages if message["role"] == "activity"]
        assert len(activities) == 1, "the answer belongs into the form that is there, not into a second one"


def test_a_source_served_by_agent_app_is_accepted(oracle: Oracle) -> None:
    app = agent_app(calculator("v0.8", pause=0), A2UIMiddleware(), EventThrottleMiddleware(), path="/run")
    with serve(app) as base:
        result = oracle(base + "/run")
    assert (result.code, result.error, result.warnings) == (0, None, ())
    assert result.a2ui == MESSAGES
