"""The old HTTP API where something fails: the store at any call, the agent or the client at any event."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters import _superagent_run
from agui_pipeline.adapters.superagent import MemorySessions
from agui_pipeline.adapters.testing import ASGIResponse, run_asgi
from agui_pipeline.translators import ConfigurationError, Diagnostic, replace
from tests.adapters.superagent import (
    ENVELOPED,
    RESUME,
    STREAM,
    Agent,
    answer,
    app,
    asks,
    enveloped,
    get,
    interrupt,
    kinds,
    refused,
    run,
    said,
    say,
    text,
)

pytestmark = pytest.mark.anyio

YES: dict[str, Any] = {"input": {"confirm": True}}
EVENTS = range(7)
"""Everywhere in a run of six events: before its first, between two, behind its last."""


class StoreError(Exception):
    """What a store raises that is out of order."""


class Faulty(MemorySessions):
    """A store of which one call fails, or hangs.

    Attributes:
        calls: The calls so far; set back by tests.
        faulty: The number of the call that fails, 0 for none.
        late: Whether it fails behind its work: as where only the news of it was lost.
        hangs: Whether it never returns in place of failing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.faulty = 0
        self.late = False
        self.hangs = False

    async def _fail(self, *, late: bool) -> None:
        self.calls += not late
        if self.calls == self.faulty and late == self.late:
            if self.hangs:
                await anyio.sleep_forever()
            raise StoreError

    async def get(self, key: str, /) -> bytes | None:
        await self._fail(late=False)
        data = await super().get(key)
        await self._fail(late=True)
        return data

    async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:
        await self._fail(late=False)
        stored = await super().swap(key, old, new)
        await self._fail(late=True)
        return stored


async def request(served: Any, action: str) -> ASGIResponse:
    if action == "look":
        return await run_asgi(served, method="GET", path=f"{STREAM}?session=s")
    message = action == "message"
    body = {"session_id": "s", **({"message": "never mind"} if message else YES)}
    return await run_asgi(served, path=STREAM if message else RESUME, body=body, headers=ENVELOPED)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("faulty", range(1, 5))
@pytest.mark.parametrize("questions", [1, 2])
@pytest.mark.parametrize("action", ["answer", "message", "look"])
async def test_a_store_that_fails_starts_nothing_twice_and_loses_no_question(
    action: str, questions: int, faulty: int, late: bool
) -> None:
    agent, store = Agent(*(interrupt(f"i{number}") for number in range(questions))), Faulty()
    served = app(agent, store=store, on_diagnostic=lambda _: None, patience=0)
    await say(served, "ask")
    store.calls, store.faulty, store.late = 0, faulty, late
    response = await request(served, action)
    failed = store.calls >= faulty
    assert isinstance(response.exception, StoreError) == failed
    if failed:  # an error in place of a stream, or in it
        assert response.status == 500 or kinds(response)[-2:] == ["error", "done"]
    started = len(agent.inputs) - 1
    store.faulty = 0
    # The session is free, and waits for as many answers as before, unless the agent has run.
    left = 0 if started else questions - (action == "answer" and not failed)
    for _ in range(left):
        assert (await answer(served, **YES)).status == 200
    assert len(agent.inputs) - 1 == (started or left > 0)
    assert refused(await answer(served, **YES)) == (409, "nothing_to_resume")
    if left:
        resume = agent.last.resume or ()
        assert [entry.interrupt_id for entry in resume] == [f"i{number}" for number in range(questions)]


class Refusing(Agent):
    """Fails before its first event, but for the first run."""

    async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
        if len(self.inputs) == 1:
            self.inputs.append(input)
            raise OSError("no model")
        async for event in super().run(input):
            yield event


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_question_that_cannot_be_given_back_leaves_the_session_free(
    hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_superagent_run, "_PATIENCE", 0.01)
    seen: list[Diagnostic] = []
    store, agent = Faulty(), Refusing()
    served = app(agent, store=store, patience=0, on_diagnostic=seen.append)
    await say(served, "ask")
    store.calls, store.faulty, store.hangs = 0, 3, hangs
    response = await request(served, "answer")
    assert [kind for kind, _ in enveloped(response)] == ["error", "done"]
    assert isinstance(response.exception, OSError if hangs else StoreError)
    assert ("superagent.session-lost" in {diagnostic.code for diagnostic in seen}) == hangs
    assert said(await say(served, "hello")) == "you said hello"


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_client_that_leaves_while_the_store_is_out_of_order(
    hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_superagent_run, "_PATIENCE", 0.01)
    seen: list[Diagnostic] = []
    store = Faulty()

    async def slow(input: Any, next: Any) -> Any:
        async for event in next(input):
            yield event
            if event.type == "TEXT_MESSAGE_CONTENT" and store.faulty:
                await anyio.sleep_forever()

    served = app(Agent(), slow, store=store, patience=0, on_diagnostic=seen.append)
    store.faulty, store.hangs = 2, hangs
    body = {"session_id": "s", "message": "hello"}
    response = await run_asgi(
        served, path=STREAM, body=body, headers=ENVELOPED, disconnect_after=lambda response: len(response.frames) == 1
    )
    assert response.disconnected
    assert response.exception is None
    assert [diagnostic.code for diagnostic in seen] == ["superagent.session-lost"]
    store.faulty = 0
    assert said(await say(served, "hello")) == "you said hello"


async def test_what_ended_a_run_is_not_hidden_by_a_store_that_fails() -> None:
    async def failing(input: Any) -> AsyncIterator[Any]:
        yield run(input)[0]
        raise OSError("no model")

    store = Faulty()
    served = app(failing, store=store, on_diagnostic=lambda _: None)
    store.faulty = 2
    response = await request(served, "message")
    assert isinstance(response.exception, OSError)
    assert kinds(response) == ["error", "done"]


class Asking:
    """Asks in its first run; the second run, which the answer starts, breaks off at an event."""

    def __init__(self, breaks: int, *, hangs: bool) -> None:
        self.inputs: list[RunAgentInput] = []
        self.breaks = breaks
        self.hangs = hangs
        self.reached = anyio.Event()

    async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
        self.inputs.append(input)
        if len(self.inputs) == 1:
            for asking in run(input, ends=asks(interrupt())):
                yield asking
            return
        script: list[Any] = [*run(input, *text(input, "a", "b")), None]
        for place, event in enumerate(script):
            if len(self.inputs) == 2 and place == self.breaks:
                if self.hangs:
                    self.reached.set()
                    await anyio.sleep_forever()
                raise OSError("no model")
            if event is not None:
                yield event


@pytest.mark.parametrize("place", EVENTS)
async def test_an_answer_whose_run_fails_at_any_event(place: int) -> None:
    agent = Asking(place, hangs=False)
    served = app(agent, on_diagnostic=lambda _: None, patience=0)
    await say(served, "go")
    response = await request(served, "answer")
    assert isinstance(response.exception, OSError)
    ended = place == EVENTS[-1]
    assert kinds(response)[-2:] == ["text" if ended else "error", "done"]
    again = await answer(served, headers=ENVELOPED, **YES)
    if place == 0:  # it never began
        assert said(again) == "ab"
    else:
        assert refused(again) == (409, "nothing_to_resume")
        assert said(await say(served, "and now?")) == "ab"
    assert len(agent.inputs) == 3


@pytest.mark.parametrize("place", EVENTS)
async def test_an_answer_whose_client_leaves_at_any_event(place: int) -> None:
    agent = Asking(place, hangs=True)
    served = app(agent, on_diagnostic=lambda _: None, patience=0)
    await say(served, "go")
    async with anyio.create_task_group() as group:
        clients: list[ASGIResponse] = []

        async def leave() -> None:
            await agent.reached.wait()
            clients[0].disconnect()

        def meet(response: ASGIResponse) -> bool:
            clients.append(response)
            return False

        group.start_soon(leave)
        response = await run_asgi(
            served, path=RESUME, body={"session_id": "s", **YES}, headers=ENVELOPED, disconnect_after=meet
        )
    assert response.disconnected
    again = await answer(served, headers=ENVELOPED, **YES)
    if place == 0:
        assert said(again) == "ab"
    else:
        assert refused(again) == (409, "nothing_to_resume")
        assert said(await say(served, "and now?")) == "ab"
    assert len(agent.inputs) == 3


@pytest.mark.parametrize("count", range(1, 6))
async def test_an_agent_that_just_stops_is_told_as_an_error_and_what_it_said_is_remembered(count: int) -> None:
    inputs: list[RunAgentInput] = []

    async def stopping(input: RunAgentInput) -> AsyncIterator[Any]:
        inputs.append(input)
        for event in run(input, *text(input, "a", "b"))[:count]:
            yield event

    served = app(stopping, on_diagnostic=lambda _: None)
    response = await say(served, "go")
    assert enveloped(response)[-2][1]["code"] == "source_ended"
    assert kinds(response)[-2:] == ["error", "done"]
    await say(served, "on")
    assert [message.content for message in inputs[-1].messages] == ["go", *(["ab"[: count - 2]] * (count > 1)), "on"]


async def test_a_session_that_expires_in_the_middle_of_its_run() -> None:
    now = [0.0]
    agent = Agent()

    async def long(input: Any, next: Any) -> Any:
        async for event in next(input):
            yield event
            if event.type == "TEXT_MESSAGE_CONTENT":
                now[0] += 1000

    store = MemorySessions(expires=60, clock=lambda: now[0])
    served = app(agent, long, store=store)
    await say(served, "one")
    await say(served, "ask")
    assert said(await answer(served, **YES)).startswith("resumed")
    # Each run has stored its session anew, with what it began with.
    assert [message.content for message in agent.last.messages] == ["one", "you said one", "ask", "hm"]


async def test_a_message_to_another_process_while_the_answer_runs() -> None:
    agent, store = Agent(), MemorySessions()
    one, two = (app(agent, store=store) for _ in range(2))
    await say(one, "ask")
    seen: list[ASGIResponse] = []

    async def read(_response: ASGIResponse) -> None:
        if not seen:
            seen.append(await say(two, "never mind"))

    response = await run_asgi(one, path=RESUME, body={"session_id": "s", **YES}, reader=read)
    assert said(response).startswith("resumed")
    assert said(seen[0]) == "you said never mind"
    assert agent.last.resume is None  # there was nothing left to give up
    await say(two, "and?")
    assert sorted(str(message.content) for message in agent.last.messages) == sorted(
        ["ask", "hm", 'resumed with [{"confirm": true}]', "never mind", "you said never mind", "and?"]
    )


@pytest.mark.parametrize("key", [lambda _: None, lambda asked: (asked.thread_id,), lambda _: b"s"])
async def test_a_key_that_is_none_does_not_let_strangers_share_a_session(key: Any) -> None:
    agent = Agent()
    served = app(agent, key=key)
    response = await run_asgi(served, path=STREAM, body={"session_id": "s", "message": "hello"})
    assert (response.status, agent.inputs) == (500, [])
    assert isinstance(response.exception, ConfigurationError)
    assert "must return a str" in str(response.exception)


async def test_a_stream_without_a_run_needs_no_second_look_at_the_store() -> None:
    store = Faulty()
    served = app(Agent(), store=store)
    await get(served, session="s", message="ask")
    store.calls = 0
    await get(served, session="s")
    assert store.calls == 1  # the dialect is the same: nothing is to be stored


# Two processes, and what each thinks that the store has.


async def test_a_claim_that_failed_does_not_give_back_what_another_process_has_claimed() -> None:
    agent, store = Agent(), MemorySessions()
    one = app(agent, store=store)
    await say(one, "ask")
    asked = await store.get("s")
    seen: list[ASGIResponse] = []

    class Late(MemorySessions):
        """The same store as another process sees it: it has read before the first one claimed, and fails to claim."""

        failed = False

        async def get(self, _key: str, /) -> bytes | None:
            return asked

        async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:
            if not self.failed:
                self.failed = True
                raise StoreError
            return await store.swap(key, old, new)

    two = app(agent, store=Late(), on_diagnostic=lambda _: None)

    async def read(_response: ASGIResponse) -> None:
        if not seen:
            seen.append(await request(two, "answer"))
            seen.append(await answer(app(agent, store=store), **YES))

    response = await run_asgi(one, path=RESUME, body={"session_id": "s", **YES}, reader=read)
    assert said(response).startswith("resumed")
    assert isinstance(seen[0].exception, StoreError)
    assert refused(seen[1]) == (409, "nothing_to_resume")
    assert len(agent.inputs) == 2


async def test_what_comes_behind_a_question_does_not_open_it_again() -> None:
    runs: list[RunAgentInput] = []

    async def trailing(input: RunAgentInput) -> AsyncIterator[Any]:
        runs.append(input)
        if input.resume:
            for event in run(input, *text(input, "fine")):
                yield event
            return
        for event in run(input, ends=asks(interrupt())):
            yield event
        yield {"type": "STATE_SNAPSHOT", "snapshot": {"late": True}}

    served = app(trailing, on_diagnostic=lambda _: None)
    answered: list[ASGIResponse] = []

    async def read(response: ASGIResponse) -> None:
        if not answered and b"event: interrupt" in response.body:
            answered.append(await answer(served, **YES))

    body = {"session_id": "s", "message": "go"}
    await run_asgi(served, path=STREAM, body=body, headers=ENVELOPED, reader=read)
    assert said(answered[0]) == "fine"
    assert refused(await answer(served, **YES)) == (409, "nothing_to_resume")
    assert len(runs) == 2


async def test_a_run_that_asks_nothing_leaves_the_question_of_another_process() -> None:
    agent, store = Agent(), MemorySessions()
    one, two = (app(agent, store=store) for _ in range(2))
    seen: list[ASGIResponse] = []

    async def read(_response: ASGIResponse) -> None:
        if not seen:
            seen.append(await say(two, "ask"))

    await run_asgi(one, path=STREAM, body={"session_id": "s", "message": "hello"}, headers=ENVELOPED, reader=read)
    assert kinds(seen[0]) == ["text", "interrupt", "done"]
    assert said(await answer(one, **YES)).startswith("resumed")


class Chaos(MemorySessions):
    """A store that takes its time, and fails now and then, before or behind its work."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.chance = chance
        self.calm = False

    async def _strike(self) -> None:
        for _ in range(0 if self.calm else self.chance.randrange(3)):
            await anyio.lowlevel.checkpoint()
        if not self.calm and self.chance.random() < 0.1:
            raise StoreError

    async def get(self, key: str, /) -> bytes | None:
        await self._strike()
        data = await super().get(key)
        await self._strike()
        return data

    async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:
        await self._strike()
        stored = await super().swap(key, old, new)
        await self._strike()
        return stored


@pytest.mark.parametrize("seed", range(40))
async def test_whatever_goes_wrong_no_question_is_answered_twice_and_no_session_is_stuck(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    begun: list[RunAgentInput] = []
    calm = [False]

    async def moody(input: Any, next: Any) -> Any:
        number = 0
        async for event in next(input):
            if not calm[0] and chance.random() < 0.05:
                raise OSError("no model")
            if number == 1:
                begun.append(input)
            number += 1
            yield event

    agent, store = Agent(), Chaos(chance)
    workers = [app(agent, _new_questions, moody, store=store, on_diagnostic=lambda _: None, patience=0) for _ in "12"]

    async def act() -> None:
        action = chance.choice(["ask", "hello", "answer", "answer", "answer"])
        body = {"session_id": "s", **({"answer": "yes"} if action == "answer" else {"message": action})}
        size = chance.choice([10_000, 10_000, chance.randrange(300)])
        response = await run_asgi(
            chance.choice(workers),
            path=RESUME if action == "answer" else STREAM,
            body=body,
            headers=ENVELOPED,
            disconnect_after=lambda response: len(response.body) > size,
        )
        assert isinstance(response.exception, StoreError | OSError | None)
        if response.status == 200 and not response.disconnected:
            assert [kind for kind, _ in enveloped(response)].count("done") == 1

    for _ in range(6):
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(act)
    resolved = [entry.interrupt_id for input in begun for entry in input.resume or ()]
    assert sorted(resolved) == sorted(set(resolved))
    calm[0] = store.calm = True
    for worker in workers:
        assert said(await say(worker, "hello")) == "you said hello"


async def _new_questions(input: Any, next: Any) -> AsyncIterator[Any]:
    """Give the interrupts of each run ids of their own."""
    async for event in next(input):
        outcome = event.outcome if event.type == "RUN_FINISHED" else None
        if outcome and outcome["type"] == "interrupt":
            yield replace(event, outcome={**outcome, "interrupts": [interrupt(f"i-{input.run_id}")]})
        else:
            yield event
