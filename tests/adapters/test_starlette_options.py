"""A wrong option is refused when it is given: the message names it, its value and what it may be."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app, agent_endpoint
from agui_pipeline.adapters.testing import run_asgi
from agui_pipeline.middleware import A2UIMiddleware, EventThrottleMiddleware, PassThroughMiddleware, Pipeline
from agui_pipeline.translators import ConfigurationError, run_input
from tests.adapters.apps import RUN
from tests.middleware.kit import passing


async def app(_scope: Any, _receive: Any, _send: Any) -> None:
    raise AssertionError


SHARED: list[tuple[str, Any, str]] = [
    ("heartbeat", -1, "0 or None for none"),
    ("heartbeat", "15", "a number of seconds"),
    ("heartbeat", True, "a number of seconds"),
    ("heartbeat", float("nan"), "a number of seconds"),
    ("heartbeat", float("inf"), "a number of seconds"),
    ("on_disconnect", "stop", "'cancel', 'detach'"),
    ("on_disconnect", None, "'cancel', 'detach'"),
    ("max_body", 0, "a whole number of bytes"),
    ("max_body", -5, "a whole number of bytes"),
    ("max_body", 1.5, "a whole number of bytes"),
    ("max_body", "10 MiB", "a whole number of bytes"),
    ("max_body", None, "a whole number of bytes"),
    ("on_diagnostic", 5, "(Diagnostic) -> None"),
]

WRAPPING: list[tuple[str, Any, str]] = [
    ("on_unparsable", "drop", "'pass', 'reject'"),
    ("on_unparsable", True, "'pass', 'reject'"),
    ("paths", "/agent", "a sequence of strings"),
    ("paths", b"/agent", "a sequence of strings"),
    ("paths", 5, "a sequence of strings"),
    ("paths", ["agent"], "start with '/'"),
    ("paths", [""], "start with '/'"),
    ("paths", ["/a", 5], "a sequence of strings"),
    ("paths", [b"/a"], "a sequence of strings"),
    ("middleware", None, "a sequence of middleware, or a callable (request, body) -> sequence"),
    ("middleware", "a2ui", "a sequence of middleware"),
    ("middleware", 5, "a sequence of middleware"),
    ("middleware", A2UIMiddleware(), "a single stage: put it in a list"),
    ("middleware", passing, "a single stage: put it in a list"),
    ("middleware", A2UIMiddleware, "is a class"),
    ("middleware", lambda _request: [], "(request, body) -> sequence"),
    ("middleware", Pipeline(RUN), "(request, body) -> sequence"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), [*SHARED, *WRAPPING])
def test_wrapping_refuses_a_wrong_option(name: str, value: Any, wanted: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        AGUIMiddleware(app, **{name: value})
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)
    assert wanted in str(caught.value)


@pytest.mark.parametrize(("name", "value", "wanted"), SHARED)
def test_serving_refuses_a_wrong_option(name: str, value: Any, wanted: str) -> None:
    for make in (agent_endpoint, agent_app):
        with pytest.raises(ConfigurationError) as caught:
            make(RUN, **{name: value})
        assert name in str(caught.value)
        assert repr(value) in str(caught.value)
        assert wanted in str(caught.value)


@pytest.mark.parametrize("stage", [5, "a2ui", A2UIMiddleware, None, lambda _input: None])
def test_a_stage_that_is_none_is_refused(stage: Any) -> None:
    for make in (lambda: AGUIMiddleware(app, middleware=[stage]), lambda: agent_app(RUN, stage)):
        with pytest.raises(ConfigurationError, match="middleware"):
            make()


@pytest.mark.parametrize("source", [5, "text", None, iter(RUN)])
def test_a_source_that_is_none_is_refused(source: Any) -> None:
    with pytest.raises(ConfigurationError, match="source"):
        agent_app(source)


def test_options_are_keywords() -> None:
    with pytest.raises(TypeError):
        AGUIMiddleware(app, [EventThrottleMiddleware()])  # type: ignore[call-arg]


@pytest.mark.anyio
async def test_the_adapters_sink_is_that_of_stages_without_one_and_no_longer_than_a_request() -> None:
    seen: list[str] = []
    source = [*RUN, {"type": "CUSTOM", "name": "n", "value": 1}]
    app = agent_endpoint(
        source, PassThroughMiddleware(lambda _event: False), on_diagnostic=lambda one: seen.append(one.code)
    )
    body = {"threadId": "t", "runId": "r", "messages": []}

    await run_asgi(app, body=body)
    assert "pass-through.dropped" in seen

    seen.clear()
    async with Pipeline(source, PassThroughMiddleware(lambda _event: False)).open(run_input("hi")) as events:
        assert [event async for event in events]
    assert seen == []
