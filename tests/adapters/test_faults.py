"""Every fault at every place of a run, over a real uvicorn: what the client sees, what the log has, what leaks.

The chain is a guard, around an application of Starlette, around a source, and twice around each. The order of a
stream is judged by `assert_valid_stream`; the official client itself is asked in `tests/e2e`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import httpx
import pytest
from ag_ui.core import RunAgentInput
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.adapters.testing import assert_valid_stream
from agui_pipeline.middleware import GuardMiddleware, PassThroughMiddleware, Pipeline, Source
from agui_pipeline.translators import Event, SourceError, Translator, decode_event
from tests.adapters.apps import Scripted, frame
from tests.adapters.server import Client, Server, until
from tests.middleware.kit import OopsError, Stage

SECRET = "hunter2-of-the-database"  # noqa: S105 - what an exception says, and no client may read

RUN: list[dict[str, Any]] = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "STEP_STARTED", "stepName": "plan"},
    {"type": "REASONING_START", "messageId": "e"},
    {"type": "REASONING_MESSAGE_START", "messageId": "e", "role": "reasoning"},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "e", "delta": "hm"},
    {"type": "REASONING_MESSAGE_END", "messageId": "e"},
    {"type": "REASONING_MESSAGE_CHUNK", "messageId": "e2", "delta": "hm"},
    {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "e", "encryptedValue": "x"},
    {"type": "REASONING_END", "messageId": "e"},
    {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"},
    {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"},
    {"type": "SUBAGENT_STARTED", "subagentRunId": "u", "name": "n"},
    {"type": "SUBAGENT_ERROR", "subagentRunId": "u", "message": "m"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Grüße"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"},
    {"type": "TOOL_CALL_END", "toolCallId": "c"},
    {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "42"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
    {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]},
    {"type": "MESSAGES_SNAPSHOT", "messages": []},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "A", "content": {}},
    {"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "A", "patch": []},
    {"type": "RAW", "event": 1},
    {"type": "CUSTOM", "name": "n", "value": 1},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m2", "delta": "世"},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "c2", "toolCallName": "f", "delta": "{}"},
    {"type": "STEP_FINISHED", "stepName": "plan"},
    {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
]
"""A run with an event of each type of the protocol, but RUN_ERROR."""

TYPES = [event["type"] for event in RUN]
PLACES = range(len(RUN) + 1)
BEFORE = -1
"""The place of a fault before the app answers."""

STOP = "stop"


class Run:
    """One agent's run with a fault in it.

    Args:
        place: The fault is before the event of this index; `BEFORE`: before the app answers.
        fault: An exception is raised, `STOP` ends the run, a function is awaited, all else is sent.
    """

    def __init__(self, place: int, fault: Any) -> None:
        self.place = place
        self.fault = fault
        self.began = False
        self.cleaned = False

    async def items(self, encode: Callable[[Any], Any]) -> AsyncIterator[Any]:
        self.began = True
        try:
            for index, event in enumerate([*RUN, None]):
                if index == self.place:
                    if isinstance(self.fault, BaseException):
                        raise self.fault
                    if self.fault == STOP:
                        return
                    if callable(self.fault):
                        await self.fault()
                    else:
                        yield self.fault
                if event is not None:
                    yield encode(event)
        finally:
            self.cleaned = True

    def app(self) -> Starlette:
        """Return an application as people write them, without this library."""

        async def endpoint(request: Request) -> Response:
            await request.json()
            if self.place == BEFORE:
                self.began = True
                try:
                    if isinstance(self.fault, BaseException):
                        raise self.fault
                    if callable(self.fault):
                        await self.fault()
                    return cast("Response", self.fault)  # it is none, and Starlette will fail to call it
                finally:
                    self.cleaned = True
            return StreamingResponse(self.items(frame), media_type="text/event-stream")

        return Starlette(routes=[Route("/", endpoint, methods=["POST"])])

    def source(self) -> Source:
        def source(_input: RunAgentInput) -> AsyncIterator[Any]:
            return self.items(lambda event: event)

        return source


class Kind(NamedTuple):
    """A way to put the guard around a run."""

    serve: Callable[[Run], ASGIApp]
    wraps: bool
    twice: bool = False

    @property
    def places(self) -> list[int]:
        """Everywhere; twice around, where each loop of a server takes twice as long, every fourth place and the end."""
        return [*PLACES[:-2:4], *PLACES[-2:]] if self.twice else list(PLACES)


def guard() -> GuardMiddleware:
    return GuardMiddleware(on_diagnostic=lambda _: None)


def wrapped(app: ASGIApp) -> ASGIApp:
    return AGUIMiddleware(app, middleware=[guard()], on_diagnostic=lambda _: None)


KINDS: dict[str, Kind] = {
    "wrapped": Kind(lambda run: wrapped(run.app()), wraps=True),
    "wrapped twice": Kind(lambda run: wrapped(wrapped(run.app())), wraps=True, twice=True),
    "served": Kind(lambda run: agent_app(run.source(), guard()), wraps=False),
    "served and wrapped": Kind(lambda run: wrapped(agent_app(run.source(), guard())), wraps=False, twice=True),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@pytest.fixture(scope="module")
def the_server() -> Iterator[Server]:
    with Server().running() as server:
        yield server


class Log(logging.Handler):
    """What the server's log has at ERROR, of uvicorn and of this library together."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def exceptions(self) -> list[BaseException | None]:
        return [record.exc_info[1] if record.exc_info else None for record in self.records]


@pytest.fixture
def log() -> Iterator[Log]:
    handler = Log()
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "agui_pipeline")]
    for logger in loggers:
        logger.addHandler(handler)
    yield handler
    for logger in loggers:
        logger.removeHandler(handler)


def events_of(response: httpx.Response) -> list[Event]:
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert SECRET not in response.text
    blocks = response.text.split("\n\n")
    assert blocks.pop() == "", "a frame is cut off"
    return [decode_event(json.loads(block[6:])) for block in blocks if block.startswith("data: ")]


def ended(response: httpx.Response, code: str | None) -> list[str]:
    """Check that an answer is a legal stream with this ending; return the types of the events."""
    events = events_of(response)
    assert_valid_stream(events)
    last = events[-1]
    assert (last.type, last.code) == (("RUN_FINISHED", None) if code is None else ("RUN_ERROR", code))
    assert [event.type for event in events].count(last.type) == 1
    return [event.type for event in events]


def settled(server: Server) -> None:
    """Wait for all that a test began: only then has the log all of it."""
    until(lambda: server.tasks() == [])


@each_kind
def test_a_run_that_raises_is_an_ended_stream_and_one_traceback(the_server: Server, log: Log, kind: Kind) -> None:
    errors: list[BaseException] = []
    for place in kind.places:
        errors.append(OopsError(SECRET))
        the_server.app = kind.serve(Run(place, errors[-1]))
        types = ended(the_server.post(), None if place == len(RUN) else "source_error")
        assert types[:place] == TYPES[:place]
    settled(the_server)
    assert log.exceptions() == errors


@each_kind
def test_a_run_that_cancels_itself_is_an_ended_stream_and_one_traceback(
    the_server: Server, log: Log, kind: Kind
) -> None:
    errors: list[BaseException] = []
    for place in kind.places:
        errors.append(asyncio.CancelledError(SECRET))
        the_server.app = kind.serve(Run(place, errors[-1]))
        types = ended(the_server.post(), None if place == len(RUN) else "cancelled")
        assert types[:place] == TYPES[:place]
    settled(the_server)
    assert log.exceptions() == errors


@each_kind
def test_a_run_that_stops_is_an_ended_stream(the_server: Server, log: Log, kind: Kind) -> None:
    for place in kind.places:
        the_server.app = kind.serve(Run(place, STOP))
        types = ended(the_server.post(), None if place == len(RUN) else "source_ended")
        assert types[:place] == TYPES[:place]
    settled(the_server)
    assert log.records == []  # nothing was raised


class _Opaque:
    def __repr__(self) -> str:
        return SECRET


FRAMES_OF_GARBAGE: dict[str, bytes] = {
    "cut JSON": b'data: {"type": "hunter2-of-the-database\n\n',
    "[DONE]": b"data: [DONE]\n\n",
    "no data": b"data:\n\n",
    "NaN": b"data: NaN\n\n",
    "an array": b"data: []\n\n",
    "no type": b'data: {"hunter2-of-the-database": 1}\n\n',
    "type is no text": b'data: {"type": 5}\n\n',
    "not UTF-8": b"data: \xff\xfe\x00\n\n",
    "another dialect": b"event: error\ndata: hunter2-of-the-database\n\n",
    "a line of no field": b"every client skips this\n\n",
}
ITEMS_OF_GARBAGE: dict[str, Any] = {
    "an object": _Opaque(),
    "a number": 5,
    "None": None,
    "prose": SECRET,
    "bytes": b"\xff\xfe\x00",
    "cut JSON": '{"type": "hunter2-of-the-database',
    "no type": {SECRET: 1},
    "type is no text": {"type": 5},
    "a frame without an event": 'data: {"hunter2-of-the-database": 1}\n\n',
    "a list": [{"type": "RUN_STARTED"}],
}


@each_kind
def test_garbage_never_reaches_the_client(the_server: Server, log: Log, kind: Kind) -> None:
    garbage = list((FRAMES_OF_GARBAGE if kind.wraps else ITEMS_OF_GARBAGE).values())
    bad = 0
    for place in kind.places:
        the_server.app = kind.serve(Run(place, garbage[place % len(garbage)]))
        response = the_server.post()
        if kind.wraps:  # the stream goes on behind a frame that is no event
            assert ended(response, None) == TYPES
        else:
            types = ended(response, None if place == len(RUN) else "source_error")
            assert types[:place] == TYPES[:place]
            bad += 1
    settled(the_server)
    assert len(log.records) == bad
    assert all(isinstance(error, SourceError) for error in log.exceptions())


@pytest.mark.parametrize("mode", ["raise", "report"])
def test_other_modes_of_the_guard_fail_at_garbage_or_let_it_pass(the_server: Server, log: Log, mode: Any) -> None:
    for place in (5, len(RUN)):
        for garbage in FRAMES_OF_GARBAGE.values():
            if garbage == FRAMES_OF_GARBAGE["a line of no field"]:
                continue
            chain = [GuardMiddleware(mode=mode, on_diagnostic=lambda _: None)]
            run = Run(place, garbage)
            the_server.app = AGUIMiddleware(run.app(), middleware=chain, on_diagnostic=lambda _: None)
            response = the_server.post()
            if mode == "raise":
                assert ended(response, None if place == len(RUN) else "source_error")[:place] == TYPES[:place]
                settled(the_server)
                assert [type(error) for error in log.exceptions()] == [SourceError]
                log.records.clear()
            else:
                assert garbage in response.content
            until(partial(getattr, run, "cleaned"))
    settled(the_server)
    assert log.records == []


def test_a_run_that_does_not_end_behind_garbage_is_ended(the_server: Server, log: Log) -> None:
    async def hang(_call: Any, _receive: Any, _send: Any) -> None:
        await asyncio.sleep(1000)

    app = Scripted([frame(RUN[0]), b"data: [DONE]\n\n", frame(RUN[1]), hang])
    the_server.app = AGUIMiddleware(app, middleware=[GuardMiddleware(mode="raise")])
    assert ended(the_server.post(), "source_error") == ["RUN_STARTED", "RUN_ERROR"]
    settled(the_server)
    assert (app.call.cancelled, [type(error) for error in log.exceptions()]) == (1, [SourceError])


@each_kind
def test_a_run_that_hangs_ends_with_its_client(the_server: Server, log: Log, kind: Kind) -> None:
    for place in kind.places:
        run = Run(place, partial(asyncio.sleep, 1000))
        the_server.app = kind.serve(run)
        client = Client(the_server)
        events = client.events(place)
        assert [event.type for event in events] == TYPES[:place]
        assert_valid_stream(events, complete=place == len(RUN))
        until(partial(getattr, run, "began"))
        client.leave(reset=place % 2 == 1)
        until(partial(getattr, run, "cleaned"))
    settled(the_server)
    assert log.records == []


@pytest.mark.parametrize("name", ["wrapped", "wrapped twice"])
def test_a_fault_before_the_app_answers_is_a_proper_http_error(the_server: Server, log: Log, name: str) -> None:
    error = OopsError(SECRET)
    for fault in (error, None, {"no": "response"}, "stop"):
        log.records.clear()
        the_server.app = KINDS[name].serve(Run(BEFORE, fault))
        response = the_server.post()
        assert response.status_code == 500
        assert response.headers["content-type"].startswith("text/plain")
        assert SECRET not in response.text
        settled(the_server)
        (found,) = log.exceptions()
        assert found is error if fault is error else isinstance(found, TypeError)

    log.records.clear()
    run = Run(BEFORE, partial(asyncio.sleep, 1000))
    the_server.app = KINDS[name].serve(run)
    client = Client(the_server)
    until(lambda: run.began)
    client.leave()
    until(lambda: run.cleaned)
    settled(the_server)
    assert log.records == []


# Stages that fail.


class _Failing(Translator):
    def __init__(self, error: Exception) -> None:
        self._error = error

    def feed(self, event: Event) -> Any:
        if event.type == "TOOL_CALL_ARGS":
            raise self._error
        return (event,)


def failing_stages(error: Exception) -> dict[str, Any]:
    async def function(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input):
            if event.type == "TOOL_CALL_ARGS":
                raise error
            yield event

    def hook(event: Event) -> bool:
        if event.type == "TOOL_CALL_ARGS":
            raise error
        return True

    return {
        "a function": function,
        "a translator": Stage(lambda: _Failing(error)),
        "a user's hook": PassThroughMiddleware(hook),
    }


@pytest.mark.parametrize("stage", failing_stages(OopsError()))
@pytest.mark.parametrize("place", ["before the guard", "behind the guard"])
def test_a_stage_that_raises_is_an_ended_stream_and_one_traceback(
    the_server: Server, log: Log, stage: str, place: str
) -> None:
    # Before the guard, the guard has stopped the exception, and tells; behind it, it reaches the server, which tells.
    at = TYPES.index("TOOL_CALL_ARGS")
    for wraps in (True, False):
        for twice in (True, False):
            error = OopsError(SECRET)
            failing = failing_stages(error)[stage]
            chain = [failing, guard()] if place == "before the guard" else [guard(), failing]
            run = Run(BEFORE - 1, STOP)  # nowhere
            app: ASGIApp = AGUIMiddleware(run.app(), middleware=chain) if wraps else agent_app(run.source(), *chain)
            the_server.app = wrapped(app) if twice else app
            response = the_server.post()
            assert ended(response, "source_error")[:at] == TYPES[:at]
            settled(the_server)
            assert log.exceptions() == [error]
            assert log.records[0].name == ("agui_pipeline" if place == "before the guard" else "uvicorn.error")
            assert run.cleaned
            log.records.clear()


def test_what_a_pipeline_in_the_agent_stops_is_told_by_its_guard_alone(the_server: Server, log: Log) -> None:
    error = OopsError(SECRET)
    the_server.app = agent_app(Pipeline(Run(5, error).source(), guard()), guard())
    assert ended(the_server.post(), "source_error")[:5] == TYPES[:5]
    settled(the_server)
    assert log.exceptions() == [error]


def test_a_slow_fault_reaches_a_client_that_waits(the_server: Server, log: Log) -> None:
    error = OopsError(SECRET)

    async def late() -> None:
        await asyncio.sleep(0.1)
        raise error

    the_server.app = wrapped(Run(3, late).app())
    assert ended(the_server.post(), "source_error")[:3] == TYPES[:3]
    settled(the_server)
    assert log.exceptions() == [error]
