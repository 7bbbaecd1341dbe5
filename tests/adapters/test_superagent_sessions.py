"""Sessions of the old HTTP API: what is remembered of a run, for how long, and what its agent gets of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from ag_ui.core import RunAgentInput
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.adapters._superagent_sessions import Session, SessionLimits, Turns, answered
from agui_pipeline.adapters.starlette import current_request
from agui_pipeline.adapters.superagent import MemorySessions, SessionStore
from agui_pipeline.adapters.testing import run_asgi
from agui_pipeline.translators import ConfigurationError, Diagnostic
from tests.adapters.superagent import (
    ENVELOPED,
    STREAM,
    Agent,
    answer,
    app,
    asks,
    enveloped,
    get,
    interrupt,
    kinds,
    post,
    refused,
    run,
    said,
    say,
    text,
)

pytestmark = pytest.mark.anyio


def spoken(input: RunAgentInput) -> list[tuple[str, Any]]:
    return [(message.role, message.content) for message in input.messages]


async def test_the_history_is_sent_whole() -> None:
    agent = Agent()
    served = app(agent)
    await say(served, "one")
    await say(served, "two", headers={})  # whatever the dialect
    await get(served, session="s", message="three")
    assert spoken(agent.last) == [
        ("user", "one"),
        ("assistant", "you said one"),
        ("user", "two"),
        ("assistant", "you said two"),
        ("user", "three"),
    ]
    ids = [message.id for message in agent.last.messages]
    assert len(set(ids)) == len(ids)
    await say(served, "four", session="other")
    assert spoken(agent.last) == [("user", "four")]


async def test_without_history_only_the_message_is_sent() -> None:
    agent = Agent()
    store = MemorySessions()
    served = app(agent, history=False, store=store)
    await say(served, "one")
    await say(served, "ask")
    assert spoken(agent.last) == [("user", "ask")]
    await answer(served, input={"confirm": True})
    assert spoken(agent.last) == []
    assert agent.last.resume is not None
    data = await store.get("s")
    assert data is not None
    assert (Session.decode(data).messages, Session.decode(data).state) == ([], {})


async def test_a_message_without_a_session_is_a_conversation_of_its_own() -> None:
    agent, store = Agent(), MemorySessions()
    served = app(agent, store=store)
    for _ in range(2):
        assert said(await post(served, STREAM, {"message": "hello"}, ENVELOPED)) == "you said hello"
        assert spoken(agent.last) == [("user", "hello")]
    assert agent.inputs[0].thread_id != agent.inputs[1].thread_id
    assert len(store) == 0


class Scripted:
    """An agent whose runs are given, one after another."""

    def __init__(self, *runs: Any) -> None:
        self.runs = list(runs)
        self.inputs: list[RunAgentInput] = []

    async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
        self.inputs.append(input)
        for event in self.runs.pop(0)(input):
            if isinstance(event, Exception):
                raise event
            yield event


def call(id: str = "c", result: str | None = "4") -> list[dict[str, Any]]:
    events = [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "add", "parentMessageId": f"m-{id}"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": '{"a":'},
        {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "2}"},
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]
    if result is not None:
        events.append({"type": "TOOL_CALL_RESULT", "toolCallId": id, "messageId": f"r-{id}", "content": result})
    return events


async def test_tool_calls_results_reasoning_and_state_are_remembered_activities_are_not() -> None:
    agent = Scripted(
        lambda it: run(
            it,
            {"type": "REASONING_MESSAGE_START", "messageId": "think", "role": "reasoning"},
            {"type": "REASONING_MESSAGE_CONTENT", "messageId": "think", "delta": "hm"},
            {"type": "REASONING_MESSAGE_END", "messageId": "think"},
            *call(),
            {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
            {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]},
            {
                "type": "ACTIVITY_SNAPSHOT",
                "messageId": "act",
                "activityType": "x",
                "content": {"current": 1, "total": 2},
            },
            *text(it, "done"),
        ),
        run,
    )
    served = app(agent)
    await say(served, "go")
    await say(served, "again")
    messages: list[Any] = agent.inputs[-1].messages
    assert [message.role for message in messages] == ["user", "reasoning", "assistant", "tool", "assistant", "user"]
    assert messages[2].tool_calls[0].function.arguments == '{"a":2}'
    assert messages[3].content == "4"
    assert agent.inputs[-1].state == {"n": 2}


async def test_deltas_of_interleaved_messages_stay_apart() -> None:
    def content(id: str, delta: str, **more: Any) -> dict[str, Any]:
        return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta, **more}

    agent = Scripted(
        lambda it: run(
            it,
            {"type": "TEXT_MESSAGE_START", "messageId": "a"},
            {"type": "TEXT_MESSAGE_START", "messageId": "b"},
            content("a", "1"),
            content("a", "2"),
            content("b", "3"),
            content("a", "4"),
            content("a", "5", metadata={"k": 1}),
            content("a", "6"),
            {"type": "TEXT_MESSAGE_END", "messageId": "a"},
            {"type": "TEXT_MESSAGE_END", "messageId": "b"},
        ),
        run,
    )
    served = app(agent)
    await say(served, "go")
    await say(served, "on")
    assert spoken(agent.inputs[-1])[1:3] == [("assistant", "12456"), ("assistant", "3")]


async def test_a_snapshot_of_the_messages_is_the_history() -> None:
    snapshot = [{"id": "x", "role": "user", "content": "short"}, {"id": "y", "role": "assistant", "content": "version"}]
    agent = Scripted(lambda it: run(it, {"type": "MESSAGES_SNAPSHOT", "messages": snapshot}), run)
    served = app(agent)
    await say(served, "a long story")
    await say(served, "go on")
    assert spoken(agent.inputs[-1]) == [("user", "short"), ("assistant", "version"), ("user", "go on")]


@pytest.mark.parametrize(
    "message",
    [
        {"id": "x", "role": "robot", "content": "?"},
        {"id": "x", "role": "user", "content": 7},
        {"id": "x", "role": "assistant", "toolCalls": [7]},
    ],
)
async def test_a_message_that_no_agent_would_take_does_not_end_the_session(message: Any) -> None:
    seen: list[Diagnostic] = []
    fine = {"id": "y", "role": "user", "content": "fine"}
    agent = Scripted(lambda it: run(it, {"type": "MESSAGES_SNAPSHOT", "messages": [message, fine]}), run)
    served = app(agent, on_diagnostic=seen.append)
    await say(served, "go")
    await say(served, "on")
    assert spoken(agent.inputs[-1]) == [("user", "fine"), ("user", "on")]
    assert {diagnostic.code for diagnostic in seen} & {"superagent.unreadable", "superagent.unanswered"}


async def test_calls_that_nobody_answered_do_not_reach_the_next_run() -> None:
    agent = Scripted(lambda it: run(it, *call("c1"), *call("c2", None)), run)
    seen: list[Diagnostic] = []
    served = app(agent, on_diagnostic=seen.append)
    await say(served, "go")
    await say(served, "on")
    assert [message.role for message in agent.inputs[-1].messages] == ["user", "assistant", "tool", "user"]
    assert "superagent.unanswered" in [diagnostic.code for diagnostic in seen]


async def test_what_the_chain_hides_is_not_remembered() -> None:
    async def censor(input: Any, next: Any) -> Any:
        async for event in next(input):
            if event.type != "TEXT_MESSAGE_CONTENT" or "secret" not in event.delta:
                yield event

    agent = Scripted(lambda it: run(it, *text(it, "the secret", "is out")), run)
    served = app(agent, censor)
    assert said(await say(served, "go")) == "is out"
    await say(served, "on")
    assert spoken(agent.inputs[-1])[1] == ("assistant", "is out")


@pytest.mark.parametrize("place", range(8))
async def test_what_was_seen_of_a_run_that_breaks_off_is_remembered(place: int) -> None:
    def broken(input: Any) -> Any:
        events = run(input, *text(input, "a", "b", "c"))
        return [*events[:place], OSError("gone"), *events[place:]]

    agent = Scripted(broken, run)
    served = app(agent, on_diagnostic=lambda _: None)
    response = await run_asgi(served, path=STREAM, body={"session_id": "s", "message": "go"}, headers=ENVELOPED)
    assert isinstance(response.exception, OSError)
    assert response.complete
    assert kinds(response)[-1] == "done"
    assert [kind for kind, _ in enveloped(response)].count("done") == 1
    await say(served, "on")
    heard = "abc"[: max(0, place - 2)]
    expected = [("user", "go"), *([("assistant", heard)] if place >= 2 else []), ("user", "on")]
    # A run that fails before its first event changes nothing.
    assert spoken(agent.inputs[-1]) == (expected if place else [("user", "on")])


@pytest.mark.parametrize("count", range(5))
async def test_a_client_that_leaves_ends_the_agent_and_what_it_saw_is_remembered(count: int) -> None:
    closed = []

    class Slow:
        inputs: list[Any] = []  # noqa: RUF012

        async def run(self, input: Any) -> Any:
            Slow.inputs.append(input)
            try:
                for event in run(input, *text(input, "a", "b", "c")):
                    yield event
                    await anyio.lowlevel.checkpoint()
                    if len(Slow.inputs) == 1 and event["type"] == "TEXT_MESSAGE_END":
                        await anyio.sleep_forever()
            finally:
                closed.append(True)

    Slow.inputs = []
    served = app(Slow())
    response = await run_asgi(
        served,
        path=STREAM,
        body={"session_id": "s", "message": "go"},
        headers=ENVELOPED,
        disconnect_after=lambda response: (
            len(response.frames) >= count and (count > 0 or response.status is not None)
            if count < 4
            else len(response.frames) >= 3
        ),
    )
    assert response.disconnected
    if Slow.inputs:
        assert closed == [True]
    assert said(await say(served, "on")) == "abc"
    history = spoken(Slow.inputs[-1])
    assert history[-1] == ("user", "on")
    assert all("abc".startswith(content) for role, content in history if role == "assistant")
    if count >= 1:
        assert history[0] == ("user", "go")
        assert len(history[1][1]) >= min(count, 3)


async def test_sessions_expire() -> None:
    now = [0.0]
    agent = Agent()
    served = app(agent, store=MemorySessions(expires=60, clock=lambda: now[0]))
    await say(served, "ask")
    now[0] = 59
    await say(served, "ask")  # which counts as use
    now[0] = 118
    assert len(agent.last.messages) == 3
    assert said(await answer(served, input={"confirm": True})).startswith("resumed")
    now[0] = 178
    assert refused(await answer(served, input={"confirm": True})) == (404, "unknown_session")
    await say(served, "who am I?")
    assert spoken(agent.last) == [("user", "who am I?")]


async def test_the_oldest_messages_are_forgotten_first() -> None:
    seen: list[Diagnostic] = []
    agent = Agent()
    served = app(agent, max_messages=5, on_diagnostic=seen.append)
    for number in range(6):
        await say(served, str(number))
    assert spoken(agent.last) == [
        ("user", "3"),
        ("assistant", "you said 3"),
        ("user", "4"),
        ("assistant", "you said 4"),
        ("user", "5"),
    ]
    assert {diagnostic.code for diagnostic in seen} == {"superagent.history-cut"}


async def test_a_run_without_end_does_not_fill_the_memory() -> None:
    agent = Scripted(lambda it: run(it, *text(it, *["x" * 1000] * 200), ends=asks(interrupt())), run)
    store = MemorySessions()
    served = app(agent, store=store, max_session=20_000, on_diagnostic=lambda _: None)
    response = await say(served, "go")
    assert len(said(response)) == 200_000
    assert len(await store.get("s") or b"") <= 20_000
    assert kinds(response)[-2:] == ["interrupt", "done"]
    await answer(served, input={"confirm": True})  # that is not forgotten
    assert agent.inputs[-1].resume is not None


async def test_several_users_do_not_share_sessions() -> None:
    agent = Agent()
    served = app(agent, key=lambda asked: f"{current_request().headers['user']}/{asked.thread_id}")
    await say(served, "ask", headers={**ENVELOPED, "user": "ada"})
    assert refused(await answer(served, headers={"user": "bob"}, input={"confirm": True})) == (404, "unknown_session")
    await say(served, "hello", headers={**ENVELOPED, "user": "bob"})
    assert spoken(agent.last) == [("user", "hello")]
    assert (await answer(served, headers={"user": "ada"}, input={"confirm": True})).status == 200


# The store.


async def test_the_store_swaps_only_what_is_there() -> None:
    store: SessionStore = MemorySessions()
    assert isinstance(store, SessionStore)
    assert await store.get("k") is None
    assert not await store.swap("k", b"1", b"2")
    assert await store.swap("k", None, b"1")
    assert not await store.swap("k", None, b"2")
    assert not await store.swap("k", b"2", b"3")
    assert await store.swap("k", b"1", b"2")
    assert await store.get("k") == b"2"


async def test_the_store_forgets_what_was_used_least_recently() -> None:
    store = MemorySessions(max_sessions=3)
    for key in "abc":
        await store.swap(key, None, b"1")
    await store.get("a")
    await store.swap("d", None, b"1")
    assert [await store.get(key) for key in "abcd"] == [b"1", None, b"1", b"1"]
    store = MemorySessions(max_bytes=10)
    for key in "abc":
        await store.swap(key, None, b"1234")
    assert [await store.get(key) for key in "abc"] == [None, b"1234", b"1234"]
    await store.swap("d", None, b"x" * 11)  # too large for all
    assert len(store) == 0


@pytest.mark.parametrize("options", [{"max_sessions": 0}, {"max_bytes": 0}, {"expires": -1}, {"clock": 0}])
async def test_the_stores_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        MemorySessions(**options)


async def test_what_a_later_version_stored_can_be_read() -> None:
    session = Session(messages=[{"id": "1", "role": "user", "content": "hi"}], dialect="superagent")
    later = session.encode()[:-1] + b',"colour":"red"}'
    for data in (session.encode(), later):
        assert Session.decode(data).encode() == session.encode()


class Elsewhere(MemorySessions):
    """A store that another process uses, too: it changes a session whenever this one wants to store it."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:
        if self.times and Session.decode(new).messages:
            self.times -= 1
            stored = await self.get(key)
            session = Session() if stored is None else Session.decode(stored)
            other = {"id": f"other-{self.times}", "role": "user", "content": "from elsewhere"}
            await super().swap(key, stored, Session(messages=[*session.messages, other]).encode())
        return await super().swap(key, old, new)


async def test_what_another_process_adds_meanwhile_is_kept() -> None:
    agent = Agent()
    served = app(agent, store=Elsewhere(2))
    await say(served, "one")
    await say(served, "two")
    assert sorted(spoken(agent.last)) == sorted(
        [
            ("user", "from elsewhere"),
            ("user", "from elsewhere"),
            ("user", "one"),
            ("assistant", "you said one"),
            ("user", "two"),
        ]
    )


async def test_a_session_that_cannot_be_stored_is_a_diagnostic() -> None:
    seen: list[Diagnostic] = []
    served = app(Agent(), store=Elsewhere(1000), on_diagnostic=seen.append)
    assert kinds(await say(served, "one")) == ["text", "done"]
    assert "superagent.session-lost" in {diagnostic.code for diagnostic in seen}


async def test_a_store_that_fails_fails_the_request() -> None:
    class Broken(MemorySessions):
        async def get(self, key: str, /) -> bytes | None:
            raise OSError(key)

    served = app(Agent(), store=Broken())
    for _ in range(2):  # the turn is given back
        response = await run_asgi(served, path=STREAM, body={"session_id": "s", "message": "hi"})
        assert isinstance(response.exception, OSError)
        assert response.status == 500

    class ReadOnly(MemorySessions):
        async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:  # noqa: ARG002 - as the base has it
            raise OSError(key)

    served = app(Agent(), store=ReadOnly())
    for _ in range(2):
        response = await run_asgi(served, path=STREAM, body={"session_id": "s", "message": "hi"}, headers=ENVELOPED)
        assert isinstance(response.exception, OSError)
        assert kinds(response) == ["text", "error", "done"]


# Limits.

ROLES = ("user", "assistant", "tool", "system")


@given(st.lists(st.tuples(st.sampled_from(ROLES), st.integers(0, 60))), st.integers(1, 10), st.integers(1, 2000))
def test_a_session_within_its_limits(shape: list[tuple[str, int]], messages: int, size: int) -> None:
    session = Session(
        messages=[{"id": str(n), "role": role, "content": "x" * length} for n, (role, length) in enumerate(shape)],
        state={"k": "v"},
    )
    seen: list[Diagnostic] = []
    kept = SessionLimits(messages, size).apply(session, seen.append)
    fits = len(session.messages) <= messages and len(session.encode()) <= size
    assert (kept is session, seen == []) == (fits, fits)
    assert len(kept.messages) <= messages
    assert len(kept.encode()) <= max(size, len(Session().encode()))
    # What is kept of the conversation is its end, and begins with the user.
    told = [message for message in kept.messages if message["role"] != "system"]
    if told and not fits:
        assert told[0]["role"] == "user"
        assert list(kept.messages)[-1] == session.messages[-1]


def test_unanswered_calls() -> None:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{"}} for id in ("a", "b")]
    history: list[dict[str, Any]] = [
        {"id": "1", "role": "user", "content": "go"},
        {"id": "2", "role": "assistant", "toolCalls": calls},
        {"id": "3", "role": "tool", "toolCallId": "a", "content": "ok"},
        {"id": "4", "role": "assistant", "content": "wait", "toolCalls": calls[1:]},
        {"id": "5", "role": "assistant", "toolCalls": calls[1:]},
    ]
    assert answered(history, lambda _: None) == [
        history[0],
        {"id": "2", "role": "assistant", "toolCalls": calls[:1]},
        history[2],
        {"id": "4", "role": "assistant", "content": "wait"},
    ]


# Turns.


async def test_turns_are_given_in_order() -> None:
    turns, order = Turns(), []

    async def visit(name: str) -> None:
        assert await turns.take("k", 10)
        order.append(name)
        await anyio.lowlevel.checkpoint()
        turns.give_back("k")

    assert await turns.take("k", 0)
    assert not await turns.take("k", 0)
    assert await turns.take("other", 0)
    async with anyio.create_task_group() as group:
        for name in "abc":
            group.start_soon(visit, name)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
        turns.give_back("k")
    assert order == ["a", "b", "c"]
    assert await turns.take("k", 0)


async def test_a_turn_that_does_not_come_in_time_or_is_not_wanted_any_more() -> None:
    turns = Turns()
    assert await turns.take("k", 0)
    assert not await turns.take("k", 0.001)
    with anyio.move_on_after(0.001):
        await turns.take("k", 10)
    # One that is given at the moment in which it is not wanted any more goes on to the next.
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def impatient() -> None:
                if await turns.take("k", 10):
                    turns.give_back("k")

            group.start_soon(impatient)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            turns.give_back("k")
            scope.cancel()
    assert await turns.take("k", 0)
    turns.give_back("k")
