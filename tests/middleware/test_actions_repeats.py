"""Requests that are sent again: replayed, refused, joined, run again; and what a run that is cut leaves behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.middleware import Pipeline, SurfaceRegistry
from agui_pipeline.middleware._recent_requests import RecentRequests
from agui_pipeline.middleware._request import request
from agui_pipeline.middleware.actions import (
    A2UIActionMiddleware,
    ActionRecording,
    ActionRecordings,
)
from agui_pipeline.translators import DecodeError, Diagnostic, LimitError, run_input
from tests.middleware.kit import OopsError, StopError, tidy

pytestmark = pytest.mark.anyio

ACTION = {"name": "book", "surfaceId": "s", "sourceComponentId": "submit", "context": {"n": "1"}}


def click(
    request_id: str | None = "q", *, thread: str = "t", run: str = "r", name: str = "book", **fields: Any
) -> RunAgentInput:
    envelope = {"requestId": request_id, "clientMessage": {"version": "v0.9", "action": {**ACTION, "name": name}}}
    return run_input(thread_id=thread, run_id=run, forwarded_props={"a2ui": {**envelope, **fields}})


def started(input: RunAgentInput) -> dict[str, Any]:
    return {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}


def finished(input: RunAgentInput, **fields: Any) -> dict[str, Any]:
    return {"type": "RUN_FINISHED", "threadId": input.thread_id, "runId": input.run_id, **fields}


def custom(value: Any) -> dict[str, Any]:
    return {"type": "CUSTOM", "name": "n", "value": value}


class Booking:
    """Books something a run: what must happen once. Between its events it waits where a test says so.

    Attributes:
        runs: How many were started.
        running: How many have not ended.
    """

    def __init__(self, ending: Callable[[RunAgentInput], Any] = finished, *, size: int = 0, count: int = 1) -> None:
        self.runs = 0
        self.running = 0
        self.gate: anyio.Event | None = None
        self._ending = ending
        self._size = size
        self._count = count

    async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
        self.runs += 1
        self.running += 1
        number = self.runs
        try:
            yield started(input)
            yield custom(f"booking {number}")
            if self.gate is not None:
                await self.gate.wait()
            for index in range(self._count):
                yield custom(f"{index} " + "x" * self._size)
            ending = self._ending(input)
            if isinstance(ending, BaseException):
                raise ending
            for event in ending if isinstance(ending, list) else [ending]:
                yield event
        finally:
            self.running -= 1


def shown(event: Any) -> str:
    kind = str.__str__(event.type)
    if kind == "CUSTOM":
        value = event.value if event.name == "n" else next(state["status"] for state in event.value["states"].values())
        return str(value).split(" x")[0].strip()
    if kind == "RUN_ERROR":
        return f"RUN_ERROR {event.code}"
    return f"{kind} {event.run_id}"


async def answer(pipeline: Pipeline, input: RunAgentInput) -> list[str]:
    async with pipeline.open(input) as events:
        return [shown(event) async for event in events]


class Sink:
    def __init__(self) -> None:
        self.codes: list[str] = []

    def __call__(self, diagnostic: Diagnostic) -> None:
        self.codes.append(diagnostic.code)


FIRST = ["RUN_STARTED r", "booking 1", "0", "RUN_FINISHED r"]


# One after the other.


async def test_a_repeat_gets_the_recorded_stream_as_it_was_and_nothing_runs() -> None:
    agent, sink = Booking(), Sink()
    pipeline = Pipeline(agent, A2UIActionMiddleware(on_diagnostic=sink))
    async with tidy():
        assert await answer(pipeline, click()) == FIRST
        assert await answer(pipeline, click(run="another")) == FIRST
    assert (agent.runs, agent.running, sink.codes) == (1, 0, ["actions.repeated"])


@pytest.mark.parametrize(
    "other", [click("p"), click(thread="u"), click(None), click("")], ids=["request", "thread", "none", "empty"]
)
async def test_another_request_runs(other: RunAgentInput) -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    await answer(pipeline, click())
    assert (await answer(pipeline, other))[1] == "booking 2"


async def test_the_thread_is_what_key_says() -> None:
    agent = Booking()
    user = {"name": "nobody"}
    pipeline = Pipeline(agent, A2UIActionMiddleware(key=lambda run: f"{user['name']}/{run.thread_id}"))
    for name in ("ann", "ben", "ann"):
        user["name"] = name
        await answer(pipeline, click())
    assert agent.runs == 2


async def test_a_request_without_an_id_runs_each_time() -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    assert [(await answer(pipeline, click(None)))[1] for _ in range(2)] == ["booking 1", "booking 2"]


async def test_a_run_about_something_else_runs_each_time() -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    for _ in range(2):
        await answer(pipeline, run_input("hi", thread_id="t", forwarded_props={"a2ui": {"requestId": "q"}}))
    assert agent.runs == 2


async def test_an_error_of_the_client_is_told_once_too() -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    envelope = {"requestId": "q", "clientMessage": {"error": {"message": "no"}}}
    for _ in range(2):
        await answer(pipeline, run_input(thread_id="t", run_id="r", forwarded_props={"a2ui": envelope}))
    assert agent.runs == 1


@pytest.mark.parametrize("fields", [{"name": "cancel"}, {"clientDataModel": {"surfaces": {"s": {}}}}])
async def test_another_message_under_the_same_id_is_refused(fields: dict[str, Any]) -> None:
    agent, sink = Booking(), Sink()
    pipeline = Pipeline(agent, A2UIActionMiddleware(on_diagnostic=sink))
    await answer(pipeline, click())
    assert await answer(pipeline, click(**fields)) == ["RUN_ERROR a2ui_request_conflict"]
    assert await answer(pipeline, click()) == FIRST
    assert (agent.runs, sink.codes) == (1, ["actions.conflict", "actions.repeated"])


INTERRUPT = {"outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "r"}]}}


@pytest.mark.parametrize("fields", [{}, {"outcome": {"type": "success"}}, INTERRUPT], ids=["plain", "success", "asks"])
async def test_a_run_that_finished_is_recorded(fields: dict[str, Any]) -> None:
    agent = Booking(lambda run: finished(run, **fields))
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    first = [await answer(pipeline, click()) for _ in range(2)]
    assert first[0] == first[1]
    assert agent.runs == 1


ERROR = {"type": "RUN_ERROR", "message": "no", "code": "agent"}
NOT_FINISHED: dict[str, Callable[[RunAgentInput], Any]] = {
    "RUN_ERROR": lambda _: ERROR,
    "cancelled": lambda run: finished(run, outcome={"type": "cancelled"}),
    "an outcome of the future": lambda run: finished(run, outcome={"type": "later"}),
    "no terminal": lambda _: [],
    "it raised": lambda _: OopsError(),
    "its own cancellation": lambda _: asyncio.CancelledError(),
    "RUN_ERROR behind RUN_FINISHED": lambda run: [finished(run), ERROR],
}


@pytest.mark.parametrize("ending", NOT_FINISHED.values(), ids=NOT_FINISHED.keys())
async def test_a_run_that_did_not_finish_is_not_recorded_so_that_its_retry_runs(ending: Any) -> None:
    agent = Booking(ending)
    store = ActionRecordings()
    pipeline = Pipeline(agent, A2UIActionMiddleware(store=store, action_states=True))
    async with tidy():
        for number in (1, 2):
            try:
                events = await answer(pipeline, click())
                assert f"booking {number}" in events
            except (OopsError, asyncio.CancelledError):
                pass
    assert (agent.runs, agent.running, len(store)) == (2, 0, 0)


@pytest.mark.parametrize("count", range(1, 5))
async def test_a_client_that_leaves_before_the_terminal_cuts_the_run(count: int) -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    async with tidy():
        async with pipeline.open(click()) as events:
            for _ in range(count):
                await anext(events)
        assert agent.running == 0
        again = await answer(pipeline, click())
    # With the terminal the run had finished, whether its client still listened or not.
    assert (agent.runs, again[1]) == ((1, "booking 1") if count == 4 else (2, "booking 2"))


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("error", [OopsError(), StopError(), GeneratorExit()], ids=["exception", "base", "exit"])
async def test_a_source_may_raise_at_any_event(at: int, error: BaseException) -> None:
    agent = Booking()

    async def fails(input: RunAgentInput) -> AsyncIterator[Any]:
        count = 0
        async with aclosing(agent.run(input)) as events:  # type: ignore[type-var]
            async for event in events:
                if agent.runs == 1 and count == at:
                    raise error
                count += 1
                yield event

    pipeline = Pipeline(fails, A2UIActionMiddleware(action_states=True, on_diagnostic=lambda _: None))
    async with tidy():
        with pytest.raises(type(error)) as raised:
            await answer(pipeline, click())
        assert raised.value is error
        assert (await answer(pipeline, click()))[2] == "booking 2"
    assert (agent.runs, agent.running) == (2, 0)


@pytest.mark.parametrize("count", range(4))
async def test_a_client_may_leave_a_replay_at_any_event(count: int) -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    await answer(pipeline, click())
    async with tidy(), pipeline.open(click()) as events:
        for _ in range(count):
            await anext(events)
    assert await answer(pipeline, click()) == FIRST
    assert agent.runs == 1


@pytest.mark.parametrize("count", range(1, 7))
async def test_nobody_hears_that_an_action_succeeded_which_its_retry_would_do_again(count: int) -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware(action_states=True))
    async with tidy(), pipeline.open(click()) as events:
        heard = [shown(await anext(events)) for _ in range(count)]
    assert heard == ["RUN_STARTED r", "pending", "booking 1", "0", "succeeded", "RUN_FINISHED r"][:count]
    again = await answer(pipeline, click())
    assert again[2] == ("booking 1" if "succeeded" in heard else "booking 2")
    assert again[-2:] == ["succeeded", "RUN_FINISHED r"]


async def test_a_run_that_is_cancelled_is_not_recorded() -> None:
    agent = Booking()
    agent.gate = anyio.Event()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    async with tidy():
        with anyio.move_on_after(0.01):
            await answer(pipeline, click())
        assert agent.running == 0
        agent.gate.set()
        assert (await answer(pipeline, click()))[1] == "booking 2"


async def test_a_source_that_raises_behind_its_terminal_has_finished() -> None:
    class Late(Booking):
        async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
            async for event in super().run(input):
                yield event
            raise OopsError

    agent = Late()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    with pytest.raises(OopsError):
        await answer(pipeline, click())
    assert await answer(pipeline, click()) == FIRST


async def test_a_stream_of_two_runs_is_recorded_whole() -> None:
    second = {"type": "RUN_STARTED", "threadId": "t", "runId": "2"}
    agent = Booking(lambda run: [finished(run), second, custom("more"), {**second, "type": "RUN_FINISHED"}])
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    first = await answer(pipeline, click())
    assert first == [*FIRST, "RUN_STARTED 2", "more", "RUN_FINISHED 2"]
    assert await answer(pipeline, click()) == first
    assert agent.runs == 1


async def test_what_is_too_large_is_not_recorded_and_said_to_be() -> None:
    agent, sink = Booking(size=2000), Sink()
    pipeline = Pipeline(agent, A2UIActionMiddleware(max_recording_bytes=1000, on_diagnostic=sink))
    assert await answer(pipeline, click()) == FIRST
    assert sink.codes == ["actions.not-recorded"]
    assert (await answer(pipeline, click()))[1] == "booking 2"


async def test_what_the_store_refuses_is_not_recorded_and_said_to_be() -> None:
    agent, sink = Booking(size=2000), Sink()
    pipeline = Pipeline(agent, A2UIActionMiddleware(store=ActionRecordings(max_bytes=1000), on_diagnostic=sink))
    await answer(pipeline, click())
    assert sink.codes == ["actions.not-recorded"]


async def test_a_recording_expires() -> None:
    now = [0.0]
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware(store=ActionRecordings(expires=60, clock=lambda: now[0])))
    for _ in range(2):
        await answer(pipeline, click())
        now[0] += 59
    assert agent.runs == 1
    await answer(pipeline, click())
    assert agent.runs == 2


class Shared:
    """A store as one that several processes share: it takes its time, and may fail."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], ActionRecording] = {}
        self.broken = False
        self.gate: anyio.Event | None = None

    async def get(self, key: str, request_id: str, /) -> ActionRecording | None:
        await anyio.lowlevel.checkpoint()
        if self.gate is not None:
            await self.gate.wait()
        return self.kept.get((key, request_id))

    async def put(self, key: str, request_id: str, recording: ActionRecording, /) -> bool:
        await anyio.lowlevel.checkpoint()
        if self.broken:
            raise OopsError
        self.kept[key, request_id] = recording
        return True

    async def delete(self, key: str, request_id: str, /) -> None:
        self.kept.pop((key, request_id), None)


async def test_a_store_may_be_shared() -> None:
    store, agents = Shared(), [Booking(), Booking()]
    for agent in agents:
        assert await answer(Pipeline(agent, A2UIActionMiddleware(store=store)), click()) == FIRST
    assert [agent.runs for agent in agents] == [1, 0]
    (recording,) = store.kept.values()
    assert [type(event) for event in recording.events] == [bytes] * 4


async def test_a_store_that_fails_does_not_spoil_a_run_that_has_finished(caplog: pytest.LogCaptureFixture) -> None:
    store, sink = Shared(), Sink()
    store.broken = True
    pipeline = Pipeline(Booking(), A2UIActionMiddleware(store=store, on_diagnostic=sink))
    with caplog.at_level(logging.ERROR, "agui_pipeline"):
        assert await answer(pipeline, click()) == FIRST
    assert sink.codes == ["actions.not-recorded"]
    assert ["the store of recordings failed" in record.getMessage() for record in caplog.records] == [True]


class Deletes(SurfaceRegistry):
    """A registry with a surface that is there until a test says otherwise."""

    there = True

    def surfaces(self, thread: str) -> tuple[str, ...]:  # noqa: ARG002
        return ("s",) if self.there else ()


async def test_a_repeat_is_answered_though_the_answer_deleted_the_surface() -> None:
    agent, registry = Booking(), Deletes()
    pipeline = Pipeline(agent, A2UIActionMiddleware(registry=registry, unknown_surfaces="refuse"))
    assert await answer(pipeline, click()) == FIRST
    registry.there = False
    pipeline.admit(click())
    assert await answer(pipeline, click()) == FIRST
    assert await answer(pipeline, click("new")) == ["RUN_ERROR a2ui_surface_unknown"]
    assert await answer(pipeline, click("new")) == ["RUN_ERROR a2ui_surface_unknown"]
    assert agent.runs == 1


# The header.


class Request:
    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.mark.parametrize(
    ("header", "body", "runs"),
    [("h", None, 1), ("h", "", 1), ("", None, 2), (None, None, 2)],
)
async def test_the_header_counts_where_the_body_has_no_id(header: str | None, body: str | None, runs: int) -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    token = request.set(Request(**({} if header is None else {"idempotency_key": header})))
    try:
        for _ in range(2):
            await answer(pipeline, click(body))
    finally:
        request.reset(token)
    assert agent.runs == runs


async def test_the_body_goes_before_the_header() -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    for header in ("1", "2"):
        token = request.set(Request(idempotency_key=header))
        await answer(pipeline, click())
        request.reset(token)
    assert agent.runs == 1


async def test_a_header_that_is_too_long_is_refused() -> None:
    pipeline = Pipeline(Booking(), A2UIActionMiddleware())
    token = request.set(Request(idempotency_key="h" * 257))
    assert await answer(pipeline, click(None)) == ["RUN_ERROR a2ui_action_invalid"]
    with pytest.raises(LimitError, match="Idempotency-Key is longer than 256"):
        A2UIActionMiddleware().admit(click(None))
    request.reset(token)


# Without an id.


class Now:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def tap(at: str = "1", *, thread: str = "t", run: str = "r", **fields: Any) -> RunAgentInput:
    """Return an action as CopilotKit sends it: without an id, with the time."""
    action = {**ACTION, "timestamp": at, **fields}
    return run_input(thread_id=thread, run_id=run, forwarded_props={"a2uiAction": {"userAction": action}})


def without_id(at: str, **fields: Any) -> RunAgentInput:
    """Return an action in an envelope that has no id."""
    message = {"version": "v0.9", "action": {**ACTION, "timestamp": at}}
    return run_input(thread_id="t", run_id="r", forwarded_props={"a2ui": {"clientMessage": message, **fields}})


@pytest.mark.parametrize("make", [tap, without_id])
async def test_a_double_click_without_an_id_runs_once_as_long_as_it_counts_as_one(make: Any) -> None:
    now, agent, sink = Now(), Booking(), Sink()
    pipeline = Pipeline(agent, A2UIActionMiddleware(same_within=1, clock=now, on_diagnostic=sink))
    assert await answer(pipeline, make("1")) == FIRST
    for _ in range(2):
        now.time += 0.375
        assert await answer(pipeline, make("2")) == FIRST
    assert sink.codes == ["actions.repeated"] * 2
    now.time += 0.25  # a repeat does not make the next one a repeat for longer
    assert (await answer(pipeline, make("3")))[1] == "booking 2"
    now.time += 0.875
    assert (await answer(pipeline, make("4")))[1] == "booking 2"
    assert agent.runs == 2


@pytest.mark.parametrize(
    "other",
    [tap(thread="u"), tap(name="cancel"), tap(context={"n": "2"}), tap(surfaceId="z"), click(), without_id("1")],
    ids=["thread", "name", "context", "surface", "id", "carrier"],
)
async def test_another_action_is_none(other: RunAgentInput) -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware(same_within=60, clock=Now()))
    await answer(pipeline, tap())
    await answer(pipeline, other)
    assert agent.runs == 2


async def test_nor_is_one_with_other_data() -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware(same_within=60, clock=Now()))
    for number in (1, 2, 2):
        await answer(pipeline, without_id("1", clientDataModel={"surfaces": {"s": {"n": number}}}))
    assert agent.runs == 2


async def test_an_id_goes_before_likeness() -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware(same_within=60, clock=Now()))
    for id in ("p", "q", None, None):
        await answer(pipeline, click(id))
    assert agent.runs == 3


@pytest.mark.parametrize(
    ("while_running", "expected"),
    [("refuse", ["RUN_ERROR a2ui_request_running"]), ("join", FIRST)],
)
async def test_a_double_click_while_the_first_is_answered(while_running: Any, expected: list[str]) -> None:
    now, agent = Now(), Booking()
    agent.gate = anyio.Event()
    stage = A2UIActionMiddleware(same_within=1, clock=now, while_running=while_running)
    pipeline = Pipeline(agent, stage)
    answers: dict[str, list[str]] = {}

    async def send(at: str) -> None:
        answers[at] = await answer(pipeline, tap(at))

    async with tidy(), anyio.create_task_group() as group:
        for at in ("1", "2"):
            group.start_soon(send, at)
            await anyio.wait_all_tasks_blocked()
        if while_running == "refuse":
            with pytest.raises(DecodeError, match="is being answered already"):
                stage.admit(tap("3"))
        else:
            stage.admit(tap("3"))
        now.time += 1
        stage.admit(tap("4"))
        agent.gate.set()
    assert answers == {"1": FIRST, "2": expected}
    assert agent.runs == 1


async def test_a_click_that_came_too_late_for_that_runs_beside_the_first() -> None:
    now, agent = Now(), Booking()
    agent.gate = anyio.Event()
    pipeline = Pipeline(agent, A2UIActionMiddleware(same_within=1, clock=now))
    async with tidy(), pipeline.open(tap()) as events:
        await anext(events)
        now.time += 1
        async with pipeline.open(tap()) as others:
            await anext(others)
            agent.gate.set()
            rest = [[shown(event) async for event in stream] for stream in (events, others)]
    assert rest == [["booking 1", *FIRST[2:]], ["booking 2", *FIRST[2:]]]


async def test_the_retry_of_one_that_was_cut_runs_and_is_a_first_click_itself() -> None:
    now, agent = Now(), Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware(same_within=1, clock=now))
    async with tidy():
        async with pipeline.open(tap()) as events:
            await anext(events)
        for _ in range(2):
            now.time += 0.75
            assert (await answer(pipeline, tap()))[1] == "booking 2"
    assert agent.runs == 2


async def test_a_double_click_is_answered_though_the_answer_deleted_the_surface() -> None:
    now, agent, registry = Now(), Booking(), Deletes()
    stage = A2UIActionMiddleware(same_within=1, clock=now, registry=registry, unknown_surfaces="refuse")
    pipeline = Pipeline(agent, stage)
    await answer(pipeline, tap())
    registry.there = False
    stage.admit(tap())
    assert await answer(pipeline, tap()) == FIRST
    now.time += 1
    with pytest.raises(DecodeError, match="no such surface"):
        stage.admit(tap())


async def test_recent_requests_are_forgotten_in_time_and_within_a_bound() -> None:
    now = Now()
    recent = RecentRequests(1, now)
    ids = [recent.came("t" * 1000, str(number)) for number in range(5000)]
    assert len(recent) == 4096
    assert len(set(ids)) == 5000
    assert (recent.id_of("t" * 1000, "4999"), recent.id_of("t" * 1000, "0")) == (ids[-1], "")
    now.time += 1
    assert recent.id_of("another", "1") == ""
    assert len(recent) == 0


# At the same time.


async def test_a_repeat_of_what_is_running_is_refused() -> None:
    agent, sink = Booking(), Sink()
    agent.gate = anyio.Event()
    stage = A2UIActionMiddleware(on_diagnostic=sink)
    pipeline = Pipeline(agent, stage)
    async with tidy(), pipeline.open(click()) as events:
        first = [shown(await anext(events)) for _ in range(2)]
        assert await answer(pipeline, click()) == ["RUN_ERROR a2ui_request_running"]
        with pytest.raises(DecodeError, match="is being answered already") as refused:
            stage.admit(click())
        assert refused.value.status == 409  # type: ignore[attr-defined]
        with pytest.raises(DecodeError, match="another request had this request id") as refused:
            stage.admit(click(name="cancel"))
        assert refused.value.status == 422  # type: ignore[attr-defined]
        stage.admit(click("other"))
        agent.gate.set()
        first += [shown(event) async for event in events]
    assert first == FIRST
    assert await answer(pipeline, click()) == FIRST
    assert agent.runs == 1
    assert sink.codes == ["actions.running", "actions.running", "actions.conflict", "actions.repeated"]


async def test_once_the_terminal_is_out_a_repeat_is_replayed_though_the_source_still_cleans_up() -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware())
    async with pipeline.open(click()) as events:
        for _ in FIRST:
            await anext(events)
        assert agent.running == 1
        assert await answer(pipeline, click()) == FIRST


async def test_a_repeat_joins_what_is_running() -> None:
    agent, sink = Booking(count=3), Sink()
    agent.gate = anyio.Event()
    stage = A2UIActionMiddleware(while_running="join", on_diagnostic=sink, action_states=True)
    pipeline = Pipeline(agent, stage)
    answers: dict[int, list[str]] = {}

    async def send(number: int) -> None:
        answers[number] = await answer(pipeline, click(run="r" if number == 0 else "another"))

    async with tidy(), anyio.create_task_group() as group:
        group.start_soon(send, 0)
        await anyio.wait_all_tasks_blocked()
        stage.admit(click())
        with pytest.raises(DecodeError):
            stage.admit(click(name="cancel"))
        for number in (1, 2):
            group.start_soon(send, number)
        await anyio.wait_all_tasks_blocked()
        agent.gate.set()
    assert answers[0] == ["RUN_STARTED r", "pending", "booking 1", "0", "1", "2", "succeeded", "RUN_FINISHED r"]
    assert answers[1] == answers[2] == answers[0]
    assert agent.runs == 1
    assert sorted(sink.codes) == ["actions.conflict", "actions.joined", "actions.joined"]


async def test_who_joins_gets_what_was_recorded_elsewhere() -> None:
    store = Shared()
    await answer(Pipeline(Booking(), A2UIActionMiddleware(store=store)), click())
    store.gate = anyio.Event()
    agent, sink = Booking(), Sink()
    pipeline = Pipeline(agent, A2UIActionMiddleware(store=store, while_running="join", on_diagnostic=sink))
    answers: list[list[str]] = []

    async def send() -> None:
        answers.append(await answer(pipeline, click()))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        store.gate.set()
    assert (answers, agent.runs) == ([FIRST] * 3, 0)


async def joined(pipeline: Pipeline, answers: list[list[str]]) -> None:
    answers.append(await answer(pipeline, click()))


async def test_who_joined_a_run_that_is_cut_hears_of_it() -> None:
    agent, sink = Booking(), Sink()
    agent.gate = anyio.Event()
    pipeline = Pipeline(agent, A2UIActionMiddleware(while_running="join", action_states=True, on_diagnostic=sink))
    answers: list[list[str]] = []
    async with tidy(), anyio.create_task_group() as group, pipeline.open(click()) as events:
        for _ in range(3):
            await anext(events)
        group.start_soon(joined, pipeline, answers)
        await anyio.wait_all_tasks_blocked()
    assert answers == [["RUN_STARTED r", "pending", "booking 1", "failed", "RUN_ERROR a2ui_request_cut"]]
    assert sink.codes == ["actions.joined", "actions.cut"]
    agent.gate.set()
    assert "booking 2" in await answer(pipeline, click())


@pytest.mark.parametrize("count", range(1, 8))
async def test_wherever_a_run_is_cancelled_those_who_joined_hear_how_it_went(count: int) -> None:
    agent = Booking(count=2)
    stage = A2UIActionMiddleware(while_running="join", action_states=True, on_diagnostic=lambda _: None)
    pipeline = Pipeline(agent, stage)
    answers: list[list[str]] = []
    reached, scope = anyio.Event(), anyio.CancelScope()

    async def lead() -> None:
        with scope:
            async with pipeline.open(click()) as events:
                for _ in range(count):
                    await anext(events)
                reached.set()
                await anyio.sleep_forever()

    async with tidy(), anyio.create_task_group() as group:
        group.start_soon(lead)
        await reached.wait()
        for _ in range(2):
            group.start_soon(joined, pipeline, answers)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
    whole = ["RUN_STARTED r", "pending", "booking 1", "0", "1", "succeeded", "RUN_FINISHED r"]
    cut = [*whole[: max(count, 2)], "failed", "RUN_ERROR a2ui_request_cut"]
    assert answers == [whole if count > 5 else cut] * 2
    assert agent.running == 0


async def test_a_store_that_fails_to_say_what_it_knows_starts_nothing() -> None:
    class Silent(Shared):
        async def get(self, key: str, request_id: str, /) -> ActionRecording | None:
            await super().get(key, request_id)
            raise OopsError

    agent, sink, store = Booking(), Sink(), Silent()
    store.gate = anyio.Event()
    pipeline = Pipeline(agent, A2UIActionMiddleware(while_running="join", store=store, on_diagnostic=sink))
    answers: list[list[str]] = []

    async def lead() -> None:
        with pytest.raises(OopsError):
            await answer(pipeline, click())

    async with tidy(), anyio.create_task_group() as group:
        group.start_soon(lead)
        await anyio.wait_all_tasks_blocked()
        for _ in range(2):
            group.start_soon(joined, pipeline, answers)
        await anyio.wait_all_tasks_blocked()
        store.gate.set()
    assert (answers, agent.runs) == ([["RUN_ERROR a2ui_request_cut"]] * 2, 0)
    assert sink.codes == ["actions.joined", "actions.joined", "actions.cut", "actions.cut"]


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        (lambda _: OopsError(), ["failed", "RUN_ERROR a2ui_request_cut"]),
        (lambda _: ERROR, ["failed", "RUN_ERROR agent"]),
        (lambda _: [], ["failed"]),
    ],
    ids=["it raised", "RUN_ERROR", "no terminal"],
)
async def test_who_joined_a_run_that_fails_hears_the_same(ending: Any, last: list[str]) -> None:
    agent = Booking(ending)
    agent.gate = anyio.Event()
    pipeline = Pipeline(agent, A2UIActionMiddleware(while_running="join", action_states=True))
    answers: list[list[str]] = []

    async def lead() -> None:
        try:
            await answer(pipeline, click())
        except OopsError:
            answers.append(["raised"])

    async with tidy(), anyio.create_task_group() as group:
        group.start_soon(lead)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(joined, pipeline, answers)
        await anyio.wait_all_tasks_blocked()
        agent.gate.set()
    assert ["RUN_STARTED r", "pending", "booking 1", "0", *last] in answers


async def test_who_joined_hears_of_a_refusal_too() -> None:
    store = Shared()
    store.gate = anyio.Event()
    options: Any = {"registry": SurfaceRegistry(), "unknown_surfaces": "refuse", "while_running": "join"}
    pipeline = Pipeline(Booking(), A2UIActionMiddleware(store=store, **options))
    answers: list[list[str]] = []
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(joined, pipeline, answers)
        await anyio.wait_all_tasks_blocked()
        store.gate.set()
    assert answers == [["RUN_ERROR a2ui_surface_unknown"]] * 2


async def test_who_joins_may_leave_and_nobody_minds() -> None:
    agent = Booking()
    agent.gate = anyio.Event()
    pipeline = Pipeline(agent, A2UIActionMiddleware(while_running="join"))
    async with tidy(), pipeline.open(click()) as events:
        first = [shown(await anext(events)) for _ in range(2)]
        async with pipeline.open(click()) as others:
            await anext(others)
        with anyio.move_on_after(0.01):
            await answer(pipeline, click())
        agent.gate.set()
        assert first + [shown(event) async for event in events] == FIRST


async def test_a_slow_reader_that_joined_keeps_nobody_waiting() -> None:
    agent, sink = Booking(count=30, size=100), Sink()
    agent.gate = anyio.Event()
    stage = A2UIActionMiddleware(while_running="join", max_recording_bytes=1000, on_diagnostic=sink)
    pipeline = Pipeline(agent, stage)
    async with tidy(), pipeline.open(click()) as events:
        first = [shown(await anext(events)) for _ in range(2)]
        async with pipeline.open(click()) as slow:
            assert shown(await anext(slow)) == "RUN_STARTED r"
            agent.gate.set()
            async for event in events:
                first.append(shown(event))
                if event.type == "CUSTOM" and event.value.startswith("20 "):
                    # Too late to join as well: the beginning is gone.
                    assert await answer(pipeline, click()) == ["RUN_ERROR a2ui_request_running"]
            rest = [shown(event) async for event in slow]
    assert first == ["RUN_STARTED r", "booking 1", *map(str, range(30)), "RUN_FINISHED r"]
    assert rest == ["RUN_ERROR a2ui_request_cut"]
    assert sink.codes == ["actions.joined", "actions.running", "actions.not-recorded", "actions.cut"]


async def test_who_keeps_up_follows_a_run_however_large_it_is() -> None:
    agent = Booking(count=30, size=100)
    agent.gate = anyio.Event()
    pipeline = Pipeline(agent, A2UIActionMiddleware(while_running="join", max_recording_bytes=1000))
    async with tidy(), pipeline.open(click()) as events, pipeline.open(click()) as others:
        for _ in range(2):
            await anext(events)
        both: list[list[str]] = [[], []]
        agent.gate.set()
        for _ in range(2):
            await anext(others)
        async for event in events:
            both[0].append(shown(event))
            both[1].append(shown(await anext(others)))
        assert both[0] == both[1] == [*map(str, range(30)), "RUN_FINISHED r"]
        assert [event async for event in others] == []


async def test_a_run_that_nobody_began_to_read_is_no_run() -> None:
    agent = Booking()
    stage = A2UIActionMiddleware()
    unread = stage(click(), agent.run)
    assert await answer(Pipeline(agent, stage), click()) == FIRST
    async with aclosing(unread):  # type: ignore[type-var]
        assert [shown(event) async for event in unread] == FIRST
    assert agent.runs == 1


async def test_runs_of_different_requests_do_not_meet() -> None:
    agent = Booking()
    pipeline = Pipeline(agent, A2UIActionMiddleware(while_running="join"))
    answers: dict[str, list[str]] = {}

    async def send(id: str) -> None:
        answers[id] = await answer(pipeline, click(id, run=id))

    async with tidy(), anyio.create_task_group() as group:
        for id in "abcdefgh":
            group.start_soon(send, id)
    assert {id: events[-1] for id, events in answers.items()} == {id: f"RUN_FINISHED {id}" for id in "abcdefgh"}
    assert agent.runs == 8
