"""Older clients, in a pipeline and behind an endpoint, on both event loops."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput, RunStartedEvent, StateSnapshotEvent, TextMessageStartEvent
from anyio.lowlevel import checkpoint
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.adapters.testing import ScriptedAgent, collect, pause, run_asgi
from agui_pipeline.middleware import (
    EventThrottleMiddleware,
    GuardMiddleware,
    Pipeline,
    TrustMiddleware,
    UpgradeMiddleware,
)
from agui_pipeline.middleware.legacy import LegacyDowngradeMiddleware, PendingInterrupts
from agui_pipeline.translators import ConfigurationError, Diagnostic, SSEFrame, encode_event, parse_input, run_input
from agui_pipeline.translators._events import loads
from tests.middleware.kit import OopsError, tidy
from tests.translators.agui_versions.old_client import OldClient

pytestmark = pytest.mark.anyio

RUN = {"threadId": "t", "runId": "r"}
START = {"type": "RUN_STARTED", **RUN}
FINISH = {"type": "RUN_FINISHED", **RUN}
TEXT = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
SUBAGENT = {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}
SUBAGENT_END = {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}
INTERRUPT = {"id": "i", "reason": "approval"}
ASKS = {**FINISH, "outcome": {"type": "interrupt", "interrupts": [INTERRUPT]}}


def quiet(level: str = "0.0.36", **options: Any) -> LegacyDowngradeMiddleware:
    return LegacyDowngradeMiddleware(f"ag-ui/{level}", on_diagnostic=lambda _: None, **options)


def sent_by(**fields: Any) -> RunAgentInput:
    """Return what a client before 1.0 sends."""
    return parse_input({**RUN, "messages": [], "tools": [], "context": [], "state": {}, **fields})


OLD = sent_by()


async def through(source: Any, stage: LegacyDowngradeMiddleware, input: RunAgentInput = OLD) -> list[str]:
    return (await collect(Pipeline(source, stage), input, catch=True)).types


async def test_an_old_client_gets_what_it_knows() -> None:
    agent = [START, SUBAGENT, TEXT, SUBAGENT_END, {**TEXT, "type": "TEXT_MESSAGE_END"}, FINISH]
    types = await through(agent, quiet())
    assert types == ["RUN_STARTED", "CUSTOM", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "CUSTOM", "RUN_FINISHED"]


@pytest.mark.parametrize(
    ("version", "force", "untouched"),
    [
        ("1.0", False, True),
        ("1.7.2", False, True),
        ("1", False, True),
        ("2", False, True),
        ("1.0", True, False),
        ("0.9", False, False),
        ("", False, False),
        (" 1.0", False, False),
        ("new", False, False),
        (None, False, False),
    ],
)
async def test_a_client_that_declares_1_0_is_left_alone(version: str | None, force: bool, untouched: bool) -> None:
    declared = {} if version is None else {"protocolVersion": version}
    types = await through([START, SUBAGENT, SUBAGENT_END, FINISH], quiet(force=force), sent_by(**declared))
    assert ("SUBAGENT_STARTED" in types) == untouched
    command = sent_by(**declared, forwardedProps={"command": {"resume": "yes", "interruptEvent": INTERRUPT}})
    assert (quiet(force=force).prepare(command) is command) == untouched


async def test_models_and_views_are_downgraded_alike() -> None:
    models = [
        RunStartedEvent(thread_id="t", run_id="r"),
        TextMessageStartEvent(message_id="m", role="user"),
        StateSnapshotEvent(snapshot={}),
    ]
    views = [loads(encode_event(event)) for event in models]
    results = [(await collect(Pipeline(source, quiet()), OLD)).events for source in (models, views)]
    assert [[loads(encode_event(event)) for event in events] for events in results] == [
        [
            START,
            TEXT,
            {"type": "TEXT_MESSAGE_END", "messageId": "m"},
            {"type": "STATE_SNAPSHOT", "snapshot": {}},
        ]
    ] * 2


async def test_losses_are_said_once_a_run_by_name() -> None:
    said: list[Diagnostic] = []
    stage = LegacyDowngradeMiddleware("ag-ui/0.0.58", on_diagnostic=said.append)
    for _ in range(2):
        await through([START, *[SUBAGENT, SUBAGENT_END] * 50, FINISH], stage)
    assert [(one.code, one.event_type, one.detail["count"]) for one in said] == [
        ("legacy.subagent", "SUBAGENT_STARTED", 50),
        ("legacy.subagent", "SUBAGENT_FINISHED", 50),
    ] * 2


@pytest.mark.parametrize("guarded", [False, True])
async def test_a_source_that_raises_is_ended_in_the_old_order(guarded: bool) -> None:
    chain = [*([GuardMiddleware(on_diagnostic=lambda _: None)] if guarded else []), quiet()]
    agent = ScriptedAgent([START, TEXT, {"type": "STATE_SNAPSHOT", "snapshot": 1}, OopsError()])
    async with tidy():
        result = await collect(Pipeline(agent, *chain), OLD, catch=True)
    ended = ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "STATE_SNAPSHOT"]
    assert result.types == [*ended, *(["RUN_ERROR"] if guarded else [])]
    assert isinstance(result.exception, OopsError) != guarded


async def test_when_the_reader_leaves_nothing_is_added_or_said() -> None:
    said: list[Diagnostic] = []
    agent = ScriptedAgent([START, SUBAGENT, pause(float("inf"))])
    async with tidy():
        stage = LegacyDowngradeMiddleware("ag-ui/0.0.40", on_diagnostic=said.append)
        async with Pipeline(agent, stage).open(OLD) as events:
            async for event in events:
                if event.type == "CUSTOM":
                    break
        assert agent.running == 0
    assert said == []


async def test_one_object_serves_many_runs_at_once() -> None:
    stage = quiet()
    results: list[list[str]] = []

    async def one() -> None:
        items = [START, TEXT, SUBAGENT, {**TEXT, "type": "TEXT_MESSAGE_END"}, FINISH]
        results.append(await through(ScriptedAgent([each for item in items for each in (item, pause(0))]), stage))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)
    assert results == [["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "CUSTOM", "RUN_FINISHED"]] * 5


# Answers.


def answers(input: RunAgentInput) -> list[tuple[str, Any]]:
    return [(entry.interrupt_id, entry.payload) for entry in input.resume or ()]


async def test_an_answer_finds_its_question_by_the_echo_of_the_event() -> None:
    agent = ScriptedAgent([START, ASKS])
    asked = await collect(Pipeline(agent, quiet("0.0.53")), OLD)
    (event,) = [event for event in asked.events if event.type == "CUSTOM"]
    assert isinstance(event.value, str)
    assert asked.outcome == "success"
    other_server = quiet("0.0.53")
    command = {"resume": "yes", "interruptEvent": event.value}
    await through(agent, other_server, sent_by(forwardedProps={"command": command}))
    assert answers(agent.inputs[-1]) == [("i", "yes")]
    assert agent.inputs[-1].forwarded_props == {}


async def test_an_answer_without_an_echo_finds_its_question_in_its_thread() -> None:
    agent, stage = ScriptedAgent([START, ASKS]), quiet("0.0.36")
    await through(agent, stage)
    for thread, wanted in (("other", []), ("t", [("i", "yes")])):
        await through(agent, stage, sent_by(threadId=thread, forwardedProps={"command": {"resume": "yes"}}))
        assert answers(agent.inputs[-1]) == wanted


async def test_an_answer_counts_once_unless_the_run_asks_again() -> None:
    pending = PendingInterrupts()
    stage = quiet("0.0.36", pending=pending)
    command = sent_by(forwardedProps={"command": {"resume": "yes"}})
    await through([START, ASKS], stage)
    assert pending.open("t") == (INTERRUPT,)
    await through([START, {"type": "RUN_ERROR", "message": "no"}], stage, command)
    assert pending.open("t") == ()
    await through([START, ASKS], stage, command)
    assert pending.open("t") == (INTERRUPT,)
    await through([START, FINISH], stage)
    assert pending.open("t") == ()


@pytest.mark.parametrize("echoes", [False, True])
async def test_an_old_agent_and_an_old_client_understand_each_other(echoes: bool) -> None:
    asks = {"type": "CUSTOM", "name": "on_interrupt", "value": "May I?"}
    agent = ScriptedAgent([START, {"type": "THINKING_START"}, asks, {"type": "THINKING_END"}, FINISH])
    chain = [UpgradeMiddleware(on_diagnostic=lambda _: None), quiet("0.0.44")]
    asked = await collect(Pipeline(agent, *chain), OLD)
    assert asked.types == ["RUN_STARTED", "THINKING_START", "CUSTOM", "THINKING_END", "RUN_FINISHED"]
    assert (asked.events[2].value, asked.outcome) == ("May I?", "success")
    command = {"resume": "yes"} | ({"interruptEvent": "May I?"} if echoes else {})
    await collect(Pipeline(agent, *chain), sent_by(forwardedProps={"command": command}))
    assert agent.inputs[-1].forwarded_props == {"command": {"resume": "yes"}}


async def test_an_answer_uses_up_what_it_answers_whatever_other_runs_of_the_thread_leave_meanwhile() -> None:
    pending = PendingInterrupts()
    stage = quiet("0.0.36", pending=pending)
    await through([START, ASKS], stage)
    other = {"id": "j", "reason": "approval"}
    asks_other = {**FINISH, "outcome": {"type": "interrupt", "interrupts": [INTERRUPT, other]}}

    async def late(_input: RunAgentInput) -> AsyncIterator[Any]:
        await through([START, asks_other], stage)
        yield START
        assert pending.open("t") == (other,)
        yield FINISH

    await collect(Pipeline(late, stage), sent_by(forwardedProps={"command": {"resume": "yes"}}))


async def test_a_bare_answer_twice_is_one_answer() -> None:
    agent, stage = ScriptedAgent([START, ASKS]), quiet("0.0.36")
    await through(agent, stage)
    command = sent_by(forwardedProps={"command": {"resume": "yes"}})
    done = ScriptedAgent([START, FINISH])
    for wanted in ([("i", "yes")], []):
        await through(done, stage, command)
        assert answers(done.inputs[-1]) == wanted


async def test_a_run_that_was_refused_answers_nothing() -> None:
    pending = PendingInterrupts()
    stage = quiet("0.0.36", pending=pending)
    await through([START, ASKS], stage)
    command = sent_by(forwardedProps={"command": {"resume": "yes"}})
    for refused in (
        Pipeline(ScriptedAgent([OopsError()]), stage),
        Pipeline([{"type": "RUN_ERROR", "message": "no"}], stage),
        Pipeline([START], TrustMiddleware(roles=(), on_violation="reject"), stage),
    ):
        bad = command.model_copy(update={"messages": run_input("hi").messages})
        await collect(refused, bad, catch=True)
        assert pending.open("t") == (INTERRUPT,)


async def test_structured_interrupts_are_kept_and_their_answers_are_the_clients_own() -> None:
    agent, stage = ScriptedAgent([START, ASKS]), quiet("0.0.54", interrupts="structured")
    assert (await collect(Pipeline(agent, stage), OLD)).interrupts == [INTERRUPT]
    resume = [{"interruptId": "i", "status": "cancelled"}]
    await through(agent, stage, sent_by(resume=resume, forwardedProps={"command": {"resume": "yes"}}))
    assert answers(agent.inputs[-1]) == [("i", None)]


async def test_the_key_separates_users() -> None:
    pending = PendingInterrupts(key=lambda given: f"{dict(given.forwarded_props or {}).get('user')}/{given.thread_id}")
    agent, stage = ScriptedAgent([START, ASKS]), quiet("0.0.36", pending=pending)
    await through(agent, stage, sent_by(forwardedProps={"user": "a"}))
    for user, wanted in (("b", []), ("a", [("i", 1)])):
        await through(agent, stage, sent_by(forwardedProps={"user": user, "command": {"resume": 1}}))
        assert answers(agent.inputs[-1]) == wanted


# Endpoints.


def body(**fields: Any) -> bytes:
    return json.dumps(
        {**RUN, "messages": [], "tools": [], "context": [], "forwardedProps": {}, "state": {}, **fields}
    ).encode()


@pytest.mark.parametrize("patch", [30, 36, 40, 44, 53, 58])
@pytest.mark.parametrize(
    ("script", "fails"),
    [
        ([START, TEXT, SUBAGENT, OopsError()], True),
        ([OopsError()], True),
        ([START, FINISH, OopsError()], False),
        ([START, SUBAGENT, SUBAGENT_END, FINISH], False),
    ],
)
async def test_an_endpoint_fails_in_the_stream(patch: int, script: list[Any], fails: bool) -> None:
    app = agent_app(ScriptedAgent(script), quiet(f"0.0.{patch}"))
    response = await run_asgi(app, body=body())
    assert response.status == 200
    client = OldClient(patch)
    client.read(response.body)
    assert client.error == ("The agent failed." if fails else None)


async def test_around_an_endpoint_frames_are_put_right_and_strange_ones_left_out() -> None:
    async def endpoint(_request: Any) -> StreamingResponse:
        async def stream() -> AsyncIterator[bytes]:
            yield b'data:{"type":"RUN_STARTED",\r\ndata: "threadId":"t","runId":"r"}\r\n\r\n'
            yield b'event: x\nid: 7\ndata: {"type":"STATE_SNAPSHOT","snapshot":null}\n\n'
            yield b'data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n\ndata: [DONE]\n\n'

        return StreamingResponse(stream(), media_type="text/event-stream")

    app = AGUIMiddleware(
        Starlette(routes=[Route("/", endpoint, methods=["POST"])]),
        middleware=[quiet("0.0.30")],
        on_diagnostic=lambda _: None,
    )
    response = await run_asgi(app, body=body())
    assert response.body == (
        b'data: {"type":"RUN_STARTED", "threadId":"t","runId":"r"}\n\n'
        b'data: {"type":"STATE_SNAPSHOT","snapshot":null}\n\n'
        b'data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n\n'
    )


# Options.


@pytest.mark.parametrize(
    ("dialect", "options", "words"),
    [
        ("ag-ui/0.0.29", {}, "'ag-ui/0.0.29' is older than any level"),
        ("a2ui", {}, "dialect='a2ui': must be 'ag-ui/<version of @ag-ui/client>', or one of 'superagent'"),
        (None, {}, "dialect=None: must be"),
        (["superagent"], {}, "dialect=['superagent']: must be"),
        ("ag-ui/0.0.40", {"interrupts": "both"}, "interrupts='both': must be one of 'custom', 'structured'"),
        ("ag-ui/0.0.40", {"interrupts": "structured"}, "interrupts='structured' with 'ag-ui/0.0.40'"),
        ("ag-ui/0.0.40", {"force": 1}, "force=1: must be one of False, True"),
        ("ag-ui/0.0.40", {"pending": {}}, "pending={}: must be None"),
        ("ag-ui/0.0.40", {"pending": PendingInterrupts}, "pending=<class"),
        ("ag-ui/0.0.40", {"tool_call_updates": True}, "tool_call_updates=True: the dialect 'ag-ui/0.0.40' has no use"),
        ("ag-ui/0.0.40", {"agent_id": "a"}, "agent_id='a': the dialect"),
        ("ag-ui/0.0.40", {"shown": ["m"]}, "shown=['m']: the dialect 'ag-ui/0.0.40' has no use"),
        ("superagent", {"shown": "m"}, "shown='m': must be a list, tuple or set of ids"),
        ("superagent", {"shown": None}, "shown=None: must be a list, tuple or set of ids"),
        ("superagent", {"shown": [7]}, "shown=[7]: must be a list, tuple or set of ids"),
        ("ag-ui/0.0.40", {"clock": 1}, "clock=1: must be a callable"),
        ("superagent", {"interrupts": "structured"}, "interrupts=True: the dialect 'superagent'"),
        ("ag-ui/0.0.40", {"on_diagnostic": "log"}, "on_diagnostic='log': must be None or a callable"),
    ],
)
async def test_options_are_checked_at_construction(dialect: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        LegacyDowngradeMiddleware(dialect, **options)
    assert str(raised.value).startswith(words)


async def test_only_other_protocols_leave_ag_ui() -> None:
    assert not quiet().leaves_agui
    assert LegacyDowngradeMiddleware("superagent").leaves_agui
    Pipeline([], quiet(), GuardMiddleware())
    with pytest.raises(ConfigurationError):
        Pipeline([], LegacyDowngradeMiddleware("superagent"), GuardMiddleware())


@pytest.mark.parametrize("dialect", ["superagent", "superagent-flat", "superagent-compatible"])
@pytest.mark.parametrize("fails", [False, True])
async def test_other_protocols_are_frames_of_their_own(dialect: str, fails: bool) -> None:
    stage = LegacyDowngradeMiddleware(dialect, agent_id="a", clock=lambda: 1.0, on_diagnostic=lambda _: None)
    content = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi"}
    agent = ScriptedAgent([START, TEXT, content, *([OopsError()] if fails else [FINISH])])
    given = run_input("hi")  # which declares 1.0: nothing to another protocol
    result = await collect(Pipeline(agent, stage), given, catch=True)
    assert all(isinstance(frame, SSEFrame) for frame in result.events)
    assert "hi" in result.events[0].data
    assert "done" in (result.events[-1].data or "").lower()
    assert isinstance(result.exception, OopsError) == fails
    assert agent.inputs == [given]


async def test_what_is_new_in_a_snapshot_is_known_by_the_runs_input() -> None:
    given = run_input("hi")
    asked = {"id": given.messages[0].id, "role": "user", "content": "hi"}
    shown = {"type": "MESSAGES_SNAPSHOT", "messages": [asked, {"id": "a", "role": "assistant", "content": "hello"}]}
    stage = LegacyDowngradeMiddleware("superagent-flat", on_diagnostic=lambda _: None)
    result = await collect(Pipeline([START, shown, FINISH], stage), given)
    assert [loads((frame.data or "").encode())["type"] for frame in result.events] == ["text", "done"]


async def test_and_by_what_the_reader_was_shown_before() -> None:
    known, new = ({"id": id, "role": "assistant", "content": id} for id in ("known", "new"))
    shown = {"type": "MESSAGES_SNAPSHOT", "messages": [known, new]}
    stage = LegacyDowngradeMiddleware("superagent-flat", shown=["known"], on_diagnostic=lambda _: None)
    for _ in range(2):  # which is no state of a run
        result = await collect(Pipeline([START, shown, FINISH], stage), run_input())
        said = [loads((frame.data or "").encode()) for frame in result.events]
        assert [frame.get("content") for frame in said] == ["new", None]


async def test_two_runs_of_another_protocol_at_once_keep_apart() -> None:
    async def agent(input: RunAgentInput) -> AsyncIterator[Any]:
        yield START
        for letter in str(input.messages[0].content):
            await checkpoint()
            yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": letter}
        yield FINISH

    pipeline = Pipeline(agent, LegacyDowngradeMiddleware("superagent", on_diagnostic=lambda _: None))
    wholes: dict[str, str] = {}

    async def visit(text: str) -> None:
        *_, last, _done = (await collect(pipeline, run_input(text))).events
        wholes[text] = loads((last.data or "").encode())["data"]["content"]

    async with anyio.create_task_group() as visits:
        for text in ("hello", "world"):
            visits.start_soon(visit, text)
    assert wholes == {"hello": "hello", "world": "world"}


# With other stages, at every place where it may end.

CONTENT = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a"}
CALL = {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"}
THOUGHT = {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"}
BUSY: list[Any] = [
    START,
    SUBAGENT,
    TEXT,
    CONTENT,
    CALL,
    CONTENT,
    THOUGHT,
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "hm"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
    {"type": "OF_NEXT_YEAR", "n": None},
    {"type": "TOOL_CALL_END", "toolCallId": "c"},
    {"type": "REASONING_MESSAGE_END", "messageId": "r"},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "P", "content": {}},
    {**TEXT, "type": "TEXT_MESSAGE_END"},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "n", "delta": "b"},
    SUBAGENT_END,
    FINISH,
]
"""A run in which nearly everything is open at once."""
CHAIN_PATCHES = (30, 36, 44, 58)


def full_chain(patch: int) -> list[Any]:
    guard = GuardMiddleware(on_diagnostic=lambda _: None)
    return [EventThrottleMiddleware(interval=10), guard, quiet(f"0.0.{patch}")]


def endpoint_of(agent: Any, chain: list[Any], *, wrapped: bool) -> Any:
    """Return an app of a chain: around an agent, or around an endpoint that has none."""
    if not wrapped:
        return agent_app(agent, *chain)
    return AGUIMiddleware(agent_app(agent), middleware=chain, on_diagnostic=lambda _: None)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("patch", CHAIN_PATCHES)
async def test_a_source_may_fail_at_any_event_of_a_chain(patch: int, wrapped: bool) -> None:
    for place in range(len(BUSY)):
        app = endpoint_of(ScriptedAgent([*BUSY[:place], OopsError()]), full_chain(patch), wrapped=wrapped)
        response = await run_asgi(app, body=body())
        client = OldClient(patch)
        client.read(response.body)
        assert client.error is not None, place
        sent = [event.type for event in response.events]
        assert sent[-1] == "RUN_ERROR"
        if patch <= 36 or not wrapped:  # later clients take the error of another agent while something is open
            for kind in ("TEXT_MESSAGE", "TOOL_CALL"):
                assert sent.count(f"{kind}_START") == sent.count(f"{kind}_END"), place


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("patch", CHAIN_PATCHES)
async def test_a_client_may_leave_at_any_event_of_a_chain(patch: int, wrapped: bool) -> None:
    whole = await run_asgi(endpoint_of(ScriptedAgent(BUSY), full_chain(patch), wrapped=wrapped), body=body())
    for place in range(len(whole.events)):  # before RUN_FINISHED, which waits for the end of the stream up to 0.0.36
        agent = ScriptedAgent([*BUSY, pause(float("inf"))])
        async with tidy():
            app = endpoint_of(agent, full_chain(patch), wrapped=wrapped)
            response = await run_asgi(app, body=body(), disconnect_after=place)
        assert (len(response.events) >= place, response.exception) == (True, None)
        assert agent.running == 0
