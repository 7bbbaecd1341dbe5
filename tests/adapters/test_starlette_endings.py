"""However a wrapped run ends, the client sees a legal, ended stream or the server's error, and the server the cause."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters.starlette import agent_app
from agui_pipeline.adapters.testing import ASGIResponse, run_asgi
from agui_pipeline.middleware import EventThrottleMiddleware, Source
from agui_pipeline.translators import Diagnostic, Event, SourceError
from tests.adapters.apps import (
    BODY,
    CHAINS,
    FRAMES,
    POSITIONS,
    RUN,
    SSE,
    STREAM,
    TYPES,
    Call,
    Scripted,
    ask,
    sleep,
    tidied,
    types,
    wait,
    wrapped,
)
from tests.adapters.apps import Source as Agent
from tests.clocks import BACKENDS
from tests.middleware.kit import Held, OopsError, Raises, Same, Stage, in_asyncio, tidy

pytestmark = pytest.mark.anyio

each_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())

AT_WORK = [sleep(0.01)]
"""What keeps an app busy for a while: all that was given before is out by then."""


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


@pytest.fixture
def asyncio_only(anyio_backend: Any) -> None:
    if anyio_backend[0] != "asyncio":
        pytest.skip("a cancellation is an exception that anyone may raise on asyncio only")


async def served(app: Any, **options: Any) -> ASGIResponse:
    """Post an input, and see that nothing is left of the request."""
    async with tidy():
        response = await run_asgi(app, body=BODY, **options)
        await tidied()
    return response


def assert_failed(response: ASGIResponse, position: int, code: str = "source_error") -> None:
    """See that the events up to a position came, and a RUN_ERROR unless the run was over."""
    assert response.status == 200
    assert response.complete
    over = position == len(RUN)
    assert types(response) == TYPES[:position] + ([] if over else ["RUN_ERROR"])
    if not over:
        error = response.events[-1]
        assert error.code == code
        assert "secret" not in response.text


# The app fails.


@each_chain
async def test_an_app_that_raises_before_its_response_is_answered_by_the_server(chain: Any) -> None:
    error = OopsError("secret")
    for script in ([error], [error, *FRAMES]):
        app = Scripted(script)
        response = await served(wrapped(app, *chain))
        assert response.exception is error
        assert response.status is None


@each_chain
async def test_an_app_that_raises_in_its_response(chain: Any) -> None:
    error = OopsError("secret")
    for position in POSITIONS:
        for pause in ([], AT_WORK):
            app = Scripted(["start", *FRAMES[:position], *pause, error])
            response = await served(wrapped(app, *chain))
            assert response.exception is error
            assert_failed(response, position)
            assert app.call.cleaned


@each_chain
async def test_an_app_that_returns_before_its_response_is_complete(chain: Any) -> None:
    for position in POSITIONS:
        response = await served(wrapped(Scripted(["start", *FRAMES[:position], "stop"]), *chain))
        assert isinstance(response.exception, SourceError)
        assert "returned before it had completed" in str(response.exception)
        assert_failed(response, position, "source_ended")


@each_chain
async def test_an_app_that_returns_without_a_response_is_left_to_the_server(chain: Any) -> None:
    response = await served(wrapped(Scripted(["stop"]), *chain))
    assert (response.status, response.exception) == (None, None)


async def test_an_app_that_returns_while_the_chain_waits_for_its_start() -> None:
    async def early(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        events = next(input)
        yield RUN[0]
        async for event in events:
            yield event

    diagnostics: list[Diagnostic] = []
    for script in (["stop"], [OopsError("before the start")]):
        app = Scripted([sleep(0.01), *script])
        response = await served(wrapped(app, early, on_diagnostic=diagnostics.append))
        assert response.status is None
        assert response.exception is (script[0] if script != ["stop"] else None)
        assert [diagnostic.code for diagnostic in diagnostics] == ["asgi.dropped"]
        diagnostics.clear()


@each_chain
async def test_what_an_app_raises_behind_its_response_reaches_the_server(chain: Any) -> None:
    error = OopsError("in a background task")

    async def complete(_call: Call, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        await anyio.sleep(1)
        raise error

    response = await served(wrapped(Scripted([*FRAMES, complete]), *chain))
    assert response.exception is error
    assert types(response) == TYPES
    assert response.complete


async def test_a_cut_off_last_frame_is_still_read() -> None:
    response = await ask(wrapped(Scripted([*FRAMES[:-1], FRAMES[-1].rstrip()]), Stage(Same)))
    assert response.body == STREAM


async def test_what_comes_behind_the_end_of_a_response_is_ignored() -> None:
    async def twice(_call: Call, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": FRAMES[-1], "more_body": False})
        await send({"type": "http.response.body", "body": FRAMES[-1], "more_body": False})

    response = await served(wrapped(Scripted([*FRAMES[:-1], twice], ends=False), Stage(Same)))
    assert (response.body, response.exception) == (STREAM, None)


@pytest.mark.usefixtures("asyncio_only")
@each_chain
async def test_an_app_that_raises_a_cancellation_of_its_own(chain: Any, caplog: pytest.LogCaptureFixture) -> None:
    for position in POSITIONS:
        own = asyncio.CancelledError("own")
        response = await served(wrapped(Scripted(["start", *FRAMES[:position], own]), *chain))
        assert response.exception is None  # raised, it would read as the request's own
        assert_failed(response, position, "cancelled")
        (record,) = caplog.records
        assert record.levelno == logging.ERROR
        assert record.exc_info is not None
        assert record.exc_info[1] is own
        caplog.clear()


@pytest.mark.usefixtures("asyncio_only")
async def test_a_cancellation_of_its_own_before_the_response_is_left_to_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    response = await served(wrapped(Scripted([asyncio.CancelledError("own")])))
    assert (response.status, response.exception) == (None, None)
    assert len(caplog.records) == 1


@each_chain
async def test_nested_wrapping_ends_a_failed_run_once(chain: Any) -> None:
    error = OopsError("secret")
    for position in (0, 3, len(RUN)):
        app = Scripted(["start", *FRAMES[:position], error])
        response = await served(wrapped(wrapped(app, *chain), *chain))
        assert response.exception is error
        assert_failed(response, position)


# An agent fails.


@each_chain
async def test_an_agent_that_raises(chain: Any) -> None:
    error = OopsError("secret")
    for position in POSITIONS:
        for pause in ([], [lambda: anyio.sleep(0.1)]):
            agent = Agent([*RUN[:position], *pause, error])
            response = await served(agent_app(agent, *chain))
            assert response.exception is error
            assert_failed(response, position)
            assert agent.cleaned


@pytest.mark.usefixtures("asyncio_only")
async def test_an_agent_that_raises_a_cancellation_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    for position in POSITIONS:
        response = await served(agent_app(Agent([*RUN[:position], asyncio.CancelledError("own")])))
        assert response.exception is None
        assert_failed(response, position, "cancelled")
    assert len(caplog.records) == len(POSITIONS)


async def test_an_agent_that_yields_what_is_no_event() -> None:
    response = await served(agent_app([*RUN[:3], 5]))
    assert isinstance(response.exception, SourceError)
    assert_failed(response, 3)


async def test_an_agent_that_stops_without_a_terminal_event_is_not_given_one() -> None:
    response = await ask(agent_app(RUN[:3]))
    assert types(response) == TYPES[:3]


# A stage fails.


def raising(position: int, error: Exception) -> dict[str, Any]:
    async def function(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        count = 0
        async for event in next(input):
            count += 1
            if count == position:
                raise error
            yield event
        if count < position:
            raise error

    def at_once(_input: RunAgentInput, _next: Source) -> AsyncIterator[Event]:
        raise error

    at = position if position <= len(RUN) else None
    stage = Stage(lambda: Raises(error, at))
    chains: dict[str, Any] = {
        "fused": [stage],
        "function": [function],
        "function, timed": [function, Stage(Held)],
        "timed, function": [Stage(Held), function],
        "timed, fused": [Stage(Held), stage],
    }
    return chains if position else {"when called": [at_once]}


@pytest.mark.parametrize("position", [*POSITIONS, len(RUN) + 1])
async def test_a_stage_that_raises(position: int) -> None:
    error = OopsError("secret")
    for name, chain in raising(position, error).items():
        app = Scripted([*FRAMES, *AT_WORK])
        response = await served(wrapped(app, *chain))
        assert response.exception is error, name
        if position == 0:
            assert response.status is None
            assert app.calls == []
        else:
            assert_failed(response, position - 1)
            assert app.call.cleaned

        agent = Agent([*RUN, lambda: anyio.sleep(0.01)])
        response = await served(agent_app(agent, *chain))
        assert response.exception is error, name
        assert_failed(response, max(position - 1, 0))
        assert agent.sent in (0, len(RUN))


async def test_a_stage_that_raises_before_the_app_has_answered_ends_the_app() -> None:
    error = OopsError("of a stage")

    async def eager(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        events = next(input)
        await anyio.sleep(0.01)
        try:
            yield RUN[0]
            async for event in events:
                yield event
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)  # meanwhile the app may start: too late

    for script, headers in (([wait], SSE), ([sleep(0.015), *FRAMES, wait], SSE), ([sleep(0.015), b"text", wait], [])):
        app = Scripted(script, headers=headers)
        response = await served(wrapped(app, eager, Stage(lambda: Raises(error, 1))))
        assert response.exception is error
        assert response.status is None
        assert app.call.cleaned
        assert app.call.cancelled == 1


async def test_a_stage_and_the_app_fail_both(caplog: pytest.LogCaptureFixture) -> None:
    of_stage, of_app = OopsError("of a stage"), OopsError("of the app, while it was cancelled")

    async def stubborn(_call: Call, _receive: Any, _send: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise of_app

    response = await served(wrapped(Scripted([*FRAMES[:2], stubborn]), Stage(lambda: Raises(of_stage, 2))))
    assert response.exception is of_stage
    assert_failed(response, 1)
    assert [record.exc_info and record.exc_info[1] for record in caplog.records] == [of_app]


async def test_an_error_that_a_stage_turns_into_another_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    cause = OopsError("of the app")

    async def translating(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        try:
            async for event in next(input):
                yield event
        except OopsError as exc:
            raise ValueError("of a stage") from exc

    response = await served(wrapped(Scripted([b"", cause]), translating))
    assert isinstance(response.exception, ValueError)
    assert response.exception.__cause__ is cause
    assert caplog.records == []


async def test_an_error_that_a_stage_answers_still_reaches_the_server() -> None:
    error = OopsError("of the app")

    async def consoling(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        try:
            async for event in next(input):
                yield event
        except OopsError:
            yield RUN[-1]

    response = await served(wrapped(Scripted([FRAMES[0], error]), consoling))
    assert response.exception is error
    assert types(response) == [TYPES[0], TYPES[-1]]


async def test_an_error_of_a_cleanup_and_one_of_the_app_are_both_told(caplog: pytest.LogCaptureFixture) -> None:
    of_cleanup, of_app = OopsError("of a cleanup"), OopsError("of the app, while it was cancelled")

    async def clumsy(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        try:
            async for event in next(input):
                yield event
        finally:
            raise of_cleanup

    async def stubborn(_call: Call, _receive: Any, _send: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise of_app

    response = await served(wrapped(Scripted([*FRAMES, stubborn]), clumsy, first(2)))
    assert response.exception is of_cleanup
    assert types(response) == TYPES[:2]
    assert [record.exc_info and record.exc_info[1] for record in caplog.records] == [of_app]


async def test_what_stages_hold_is_delivered_before_the_error() -> None:
    error = OopsError("of the app")
    app = wrapped(Scripted([*FRAMES[:4], error]), EventThrottleMiddleware(interval=5))
    response = await served(app)
    assert response.exception is error
    assert types(response) == [*TYPES[:3], "TEXT_MESSAGE_CONTENT", "RUN_ERROR"]


# Chains with a will of their own.


async def test_a_chain_that_never_calls_the_app() -> None:
    async def cached(_input: RunAgentInput, _next: Source) -> AsyncIterator[Any]:
        for event in RUN:
            yield event

    app = Scripted()
    response = await served(wrapped(app, cached))
    assert (response.status, types(response), response.complete) == (200, TYPES, True)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert app.calls == []


async def test_a_chain_that_gives_nothing_and_calls_nothing_is_an_error() -> None:
    async def silent(_input: RunAgentInput, _next: Source) -> AsyncIterator[Any]:
        return
        yield

    response = await served(wrapped(Scripted(), silent))
    assert response.status is None
    assert "without an event and without calling its source" in str(response.exception)


async def test_a_chain_that_swallows_everything_gives_an_empty_stream() -> None:
    async def swallowing(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        async for _event in next(input):
            pass
        return
        yield

    response = await ask(wrapped(Scripted([sleep(1), *FRAMES]), swallowing))
    assert (response.status, response.body, response.complete) == (200, b"", True)


def first(count: int, *, close: bool = False) -> Callable[[RunAgentInput, Source], AsyncIterator[Event]]:
    async def some(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        left = count
        events: Any = next(input)
        if left:
            async for event in events:
                yield event
                left -= 1
                if not left:
                    break
        if close:
            await events.aclose()
            yield {"type": "CUSTOM", "name": "closed", "value": None}

    return some


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("script", [[*FRAMES, wait], FRAMES * 100], ids=["waiting", "busy"])
async def test_a_chain_that_ends_early_ends_the_app(count: int, script: list[Any]) -> None:
    chains: list[list[Any]] = [[first(count)], [first(count), Stage(Held)], [Stage(Same), first(count)]]
    if script[-1] is wait:
        chains.append([Stage(Held), first(count)])
    for chain in chains:
        app = Scripted(script)
        response = await served(wrapped(app, *chain))
        assert response.exception is None
        assert (types(response), response.complete) == (TYPES[:count], True)
        for call in app.calls:  # none where it was ended before it began
            assert call.cleaned
            assert call.cancelled == 1 or call.sent < len(script) - (script[-1] is wait)
        assert app.calls or count == 0

        agent = Agent([*RUN, anyio.sleep_forever] if script[-1] is wait else RUN * 100)
        response = await served(agent_app(agent, *chain))
        assert response.exception is None
        assert (types(response), response.complete) == (TYPES[:count], True)
        assert agent.cleaned or agent.sent == 0


async def test_a_stage_may_close_the_app_before_it_goes_on() -> None:
    app = Scripted([*FRAMES, wait])
    cleaned: list[bool] = []

    async def closing(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        async with aclosing(next(input)) as events:  # type: ignore[type-var]
            async for event in events:
                yield event
                break
        cleaned.append(app.call.cleaned)
        yield RUN[-1]

    response = await ask(wrapped(app, closing))
    assert types(response) == [TYPES[0], TYPES[-1]]
    assert cleaned == [True]
    assert app.call.cancelled == 1


async def test_a_stage_that_closes_a_complete_app_does_not_cut_its_background_work() -> None:
    async def behind(_call: Call, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": FRAMES[-1], "more_body": False})
        await anyio.sleep(1)

    app = Scripted([*FRAMES[:-1], behind], ends=False)
    response = await ask(wrapped(app, first(len(RUN), close=True)))
    assert types(response) == [*TYPES, "CUSTOM"]
    assert app.call.cancelled == 0


async def test_a_chain_may_call_the_app_again() -> None:
    scripts: Iterator[list[Any]] = iter([[FRAMES[0], OopsError("the first time")], FRAMES])
    apps: list[Scripted] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        apps.append(Scripted(next(scripts)))
        scope["path"] = "changed by the app"
        await apps[-1](scope, receive, send)

    async def stubborn(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        try:
            async for event in next(input):
                yield event
        except OopsError:
            async for event in next(input):
                if event.type != "RUN_STARTED":
                    yield event

    response = await served(wrapped(app, stubborn), path="/agent")
    assert isinstance(response.exception, OopsError)  # the server's log has the first failure
    assert (response.body, response.complete) == (STREAM, True)
    assert [one.call.body for one in apps] == [BODY, BODY]


@pytest.mark.parametrize("how", ["answers", "raises", "returns", "stops", "never starts"])
async def test_an_app_that_fails_when_the_chain_has_begun_the_response(how: str) -> None:
    """The chain emits before it calls its source: what the app says by itself then is an error of the source."""

    async def greeting(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        yield RUN[0]
        async for event in next(input):
            yield event

    error = OopsError("secret")
    scripts: dict[str, list[Any]] = {
        "answers": [b'{"detail":"no"}'],
        "raises": [b'{"det', error],
        "stops": [b"x", "stop"],
        "returns": ["start", "stop"],
        "never starts": ["stop"],
    }
    app = Scripted(scripts[how], status=422, headers=[(b"content-type", b"application/json")])
    response = await served(wrapped(app, greeting))
    assert response.status == 200
    assert types(response) == ["RUN_STARTED", "RUN_ERROR"]
    assert response.complete
    assert "secret" not in response.text
    if how == "answers":
        assert isinstance(response.exception, SourceError)
        assert (response.exception.status, response.exception.body) == (422, '{"detail":"no"}')
    elif how == "raises":
        assert response.exception is error
    else:
        assert isinstance(response.exception, SourceError)
        assert f"before it had {'started' if how == 'never starts' else 'completed'}" in str(response.exception)


async def test_an_answer_that_comes_too_late_is_reported_with_what_the_app_raised_then() -> None:
    error = OopsError("of the app, after its 500")

    async def greeting(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        yield RUN[0]
        async for event in next(input):
            yield event

    async def complete(_call: Call, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"x" * 5000, "more_body": False})
        raise error

    response = await served(wrapped(Scripted(["start", complete], status=500, headers=[]), greeting))
    assert isinstance(response.exception, SourceError)
    assert response.exception.status == 500
    assert response.exception.body == "x" * 2048
    assert response.exception.__cause__ is error


async def test_a_plain_answer_of_the_app_wins_over_a_chain_that_waits_for_it() -> None:
    diagnostics: list[Diagnostic] = []

    async def eager(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        events = next(input)
        yield RUN[0]
        async for event in events:
            yield event

    app = Scripted([sleep(1), b'{"detail":"no"}'], status=422, headers=[(b"content-type", b"application/json")])
    response = await ask(wrapped(app, eager, on_diagnostic=diagnostics.append))
    assert (response.status, response.json()) == (422, {"detail": "no"})
    assert [diagnostic.code for diagnostic in diagnostics] == ["asgi.dropped"]


async def test_a_chain_that_swallows_its_cancellation_cannot_spoil_a_plain_answer() -> None:
    async def deaf(input: RunAgentInput, next: Source) -> AsyncIterator[Any]:
        events = next(input)
        try:
            async for event in events:
                yield event
        except asyncio.CancelledError:  # the defect that this is about
            yield RUN[-1]

    app = Scripted([sleep(1), b"plain", sleep(1), b" text"], headers=[])
    if not in_asyncio():
        pytest.skip("trio does not let anyone swallow a cancellation")
    response = await ask(wrapped(app, deaf))
    assert response.chunks == [b"plain", b" text"]


async def test_an_outer_cancellation_ends_the_app_whatever_it_does() -> None:
    """A server that shuts down, a timeout around the app: also while a plain answer or a background task runs."""

    async def background(_call: Call, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        await anyio.sleep_forever()

    for script, headers in (
        ([*FRAMES, wait], SSE),
        ([*FRAMES, background], SSE),
        ([b"plain", wait], []),
        ([b"plain", background], []),
    ):
        for chain in CHAINS.values():
            app = Scripted(script, headers=headers)
            async with tidy():
                with anyio.move_on_after(1) as scope:
                    await run_asgi(wrapped(app, *chain), body=BODY)
                await tidied()
            assert scope.cancelled_caught
            assert (app.call.cancelled, app.call.cleaned) == (1, True)
