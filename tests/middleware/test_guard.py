"""The guard in a pipeline: every kind of source comes out ended and legal, on both event loops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters.testing import ScriptedAgent, collect, pause
from agui_pipeline.middleware import EventThrottleMiddleware, Pipeline
from agui_pipeline.middleware.guard import GuardMiddleware
from agui_pipeline.translators import ConfigurationError, Diagnostic, SequenceError, decode_event, encode_event
from agui_pipeline.translators._guard import ENDINGS
from agui_pipeline.translators._input import run_input
from agui_pipeline.translators._verifier import assert_valid_stream
from tests.clocks import BACKENDS
from tests.middleware.kit import CHAINS, INPUT, OopsError, in_asyncio, passing, tidy

pytestmark = pytest.mark.anyio

START = {"type": "RUN_STARTED", "threadId": "thread", "runId": "run"}
OPEN = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
CONTENT = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi"}
FINISH = {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"}
GARBAGE = 5

ENDED = ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_ERROR"]


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


def quiet(**options: Any) -> GuardMiddleware:
    return GuardMiddleware(on_diagnostic=lambda _: None, **options)


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "agui_pipeline")
    return caplog


def errors(log: pytest.LogCaptureFixture) -> list[BaseException | None]:
    return [record.exc_info[1] for record in log.records if record.exc_info]


# The fault matrix: how a source fails, and where.

FAULTS: dict[str, tuple[list[Any], str]] = {
    "raises": ([OopsError("secret")], "source_error"),
    "stops": ([], "source_ended"),
    "yields garbage": ([GARBAGE], "source_error"),
    "yields broken JSON": (["{"], "source_error"),
}
WHERE = {"before the start": 0, "after the start": 1, "in a message": 3}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("chain", ["fused", "function, timed", "two pumps", "nested"])
async def test_a_source_that_fails_comes_out_ended(
    fault: str, where: str, chain: str, log: pytest.LogCaptureFixture
) -> None:
    items, code = FAULTS[fault]
    count = WHERE[where]
    script = [START, OPEN, CONTENT][:count] + items
    agent = ScriptedAgent(script)
    async with tidy():
        result = await collect(Pipeline(CHAINS[chain](agent), quiet()), INPUT)
    assert result.types == [*ENDED[: max(count, 1)], *(["TEXT_MESSAGE_END"] if count > 1 else []), "RUN_ERROR"]
    assert result.error is not None
    assert (result.error.code, result.error.message) == (code, ENDINGS[code])
    assert_valid_stream(result.events)
    assert agent.running == 0
    assert len(errors(log)) == (code == "source_error"), "the log has the traceback once"


@pytest.mark.parametrize("fault", ["raises", "yields garbage"])
async def test_a_fault_after_the_end_reaches_the_reader(fault: str, log: pytest.LogCaptureFixture) -> None:
    script = [START, FINISH, *FAULTS[fault][0]]
    result = await collect(Pipeline(ScriptedAgent(script), quiet()), INPUT, catch=True)
    assert result.types == ["RUN_STARTED", "RUN_FINISHED"]
    assert result.exception is not None
    assert errors(log) == []


async def test_a_stage_that_fails_is_a_source_that_fails(log: pytest.LogCaptureFixture) -> None:
    error = OopsError("secret")

    async def failing(input: RunAgentInput, next: Callable[[RunAgentInput], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        async for event in next(input):
            yield event
            if event.type == "TEXT_MESSAGE_CONTENT":
                raise error

    pipeline = Pipeline([START, OPEN, CONTENT, FINISH], failing, EventThrottleMiddleware(), quiet(), passing)
    result = await collect(pipeline, INPUT)
    assert result.types == ENDED
    assert errors(log) == [error]


async def test_what_is_held_comes_before_the_ending() -> None:
    agent = ScriptedAgent([START, OPEN, CONTENT, CONTENT, OopsError()])
    result = await collect(Pipeline(agent, EventThrottleMiddleware(interval=10), quiet()), INPUT)
    assert result.text == "hihi"
    assert result.types[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]


async def test_a_source_that_is_cancelled_from_inside_ends_so(log: pytest.LogCaptureFixture) -> None:
    if not in_asyncio():
        pytest.skip("on trio nobody but a scope can cancel")
    cancelled = asyncio.CancelledError()
    for chain in ("fused", "function", "timed"):
        log.clear()
        agent = ScriptedAgent([START, OPEN, CONTENT, cancelled])
        result = await collect(Pipeline(CHAINS[chain](agent), quiet()), INPUT)
        assert result.types == ENDED
        assert result.error is not None
        assert (result.error.code, result.error.message) == ("cancelled", "The run was cancelled.")
        assert errors(log) == [cancelled]


async def test_when_the_reader_leaves_nothing_is_added_and_nothing_is_said(log: pytest.LogCaptureFixture) -> None:
    agent = ScriptedAgent([START, OPEN, CONTENT, pause(float("inf"))])
    said: list[Diagnostic] = []
    guard = GuardMiddleware(on_diagnostic=said.append)
    async with tidy():
        async with Pipeline(agent, guard).open(INPUT) as events:
            async for event in events:
                if event.type == "TEXT_MESSAGE_CONTENT":
                    break
        assert agent.running == 0
        seen = []
        with anyio.move_on_after(60):
            async with Pipeline(agent, guard).open(INPUT) as events:
                async for event in events:
                    seen.append(event.type)  # noqa: PERF401 - what was read before the cancellation counts
        assert seen == ENDED[:3]
        assert agent.running == 0
    assert said == []
    assert log.records == []


async def test_one_guard_serves_many_runs_at_once() -> None:
    guard = quiet()
    results: dict[str, list[str]] = {}

    async def one(name: str, script: list[Any]) -> None:
        result = await collect(
            Pipeline(ScriptedAgent([item for each in script for item in (each, pause(0))]), guard), INPUT
        )
        results[name] = result.types

    async with anyio.create_task_group() as group:
        group.start_soon(one, "stops", [START, OPEN, CONTENT])
        group.start_soon(one, "no start", [OPEN, CONTENT, FINISH])
        group.start_soon(one, "no end", [START, CONTENT, FINISH])
    assert results == {
        "stops": ENDED,
        "no start": [*ENDED[:4], "RUN_FINISHED"],
        "no end": [*ENDED[:4], "RUN_FINISHED"],
    }


async def test_the_supplied_start_is_the_inputs(log: pytest.LogCaptureFixture) -> None:
    given = run_input(thread_id="thread", run_id="run", protocolVersion="1.0")
    result = await collect(Pipeline([FINISH], GuardMiddleware()), given)
    assert decode_event(encode_event(result.events[0])).data == {**START, "protocolVersion": "1.0"}
    assert [record.getMessage().split(":")[0] for record in log.records] == ["guard.not-started"]


async def test_exposed_errors_say_what_was_raised() -> None:
    result = await collect(Pipeline(ScriptedAgent([START, OopsError("the model is gone")]), quiet(expose_errors=True)))
    assert result.error is not None
    assert result.error.message == "the model is gone"


async def test_mode_raise_raises_where_the_reader_is() -> None:
    result = await collect(Pipeline([START, CONTENT, FINISH], quiet(mode="raise")), INPUT, catch=True)
    assert result.types == ["RUN_STARTED"]
    assert isinstance(result.exception, SequenceError)
    assert "TEXT_MESSAGE_CONTENT ('m')" in str(result.exception)


async def test_mode_report_leaves_errors_and_endings_alone() -> None:
    said: list[Diagnostic] = []
    pipeline = Pipeline(ScriptedAgent([OPEN, OopsError()]), GuardMiddleware(mode="report", on_diagnostic=said.append))
    result = await collect(pipeline, INPUT, catch=True)
    assert result.types == ["TEXT_MESSAGE_START"]
    assert isinstance(result.exception, OopsError)
    assert [diagnostic.code for diagnostic in said] == ["guard.not-started", "guard.source-error"]


async def test_a_flood_of_repairs_is_one_line_in_the_log(log: pytest.LogCaptureFixture) -> None:
    end = {"type": "TEXT_MESSAGE_END", "messageId": "secret"}
    await collect(Pipeline([START, *[end] * 50, FINISH], GuardMiddleware()), INPUT)
    (record,) = log.records
    assert record.levelname == "WARNING"
    assert "secret" not in record.getMessage()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "fix"}, "mode='fix': must be one of 'repair', 'raise', 'report'"),
        ({"expose_errors": 1}, "expose_errors=1: must be one of False, True"),
        ({"on_diagnostic": "log"}, "on_diagnostic='log': must be None or a callable"),
    ],
)
async def test_options_are_checked_at_construction(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        GuardMiddleware(**options)
    assert str(raised.value).startswith(words)
