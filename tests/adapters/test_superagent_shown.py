"""What the reader of the old HTTP API was shown of a run that waits, and is neither told again nor lost after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters._superagent_sessions import Session
from agui_pipeline.adapters._superagent_shown import Shown, both
from agui_pipeline.adapters.superagent import MemorySessions
from agui_pipeline.adapters.testing import run_asgi
from agui_pipeline.translators import Diagnostic, decode_event
from tests.adapters.superagent import ENVELOPED, STREAM, answer, app, asks, enveloped, get, interrupt, kinds, said, say
from tests.adapters.superagent import run as whole

pytestmark = pytest.mark.anyio

YES: dict[str, Any] = {"input": {"confirm": True}}
USER = {"id": "u", "role": "user", "content": "go"}


def assistant(id: str, content: str | None = None, *calls: str) -> dict[str, Any]:
    made = [{"id": call, "type": "function", "function": {"name": "book", "arguments": "{}"}} for call in calls]
    return {"id": id, "role": "assistant", "content": content, **({"toolCalls": made} if made else {})}


def tool(call: str, content: str = "booked") -> dict[str, Any]:
    return {"id": f"r-{call}", "role": "tool", "toolCallId": call, "content": content}


def snapshot(*messages: Any) -> dict[str, Any]:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def call(id: str = "c", **more: Any) -> list[dict[str, Any]]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "book", **more},
        {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": '{"q":1}'},
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]


def result(id: str = "c") -> dict[str, Any]:
    return {"type": "TOOL_CALL_RESULT", "toolCallId": id, "messageId": f"r-{id}", "content": "booked"}


def streamed(id: str, text: str) -> list[dict[str, Any]]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text},
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


class Remembers:
    """An agent that remembers by thread, and repeats the call that it goes on with: its runs are given, in order.

    A run is its events, with a True behind them where it ends with an interrupt.
    """

    def __init__(self, *runs: list[Any]) -> None:
        self.runs = list(runs)

    async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
        *events, waits = self.runs.pop(0)
        for event in whole(input, *events, ends=asks(interrupt()) if waits is True else None):
            yield event
        if isinstance(waits, Exception):
            raise waits


async def stored(store: MemorySessions, key: str = "s") -> Session:
    data = await store.get(key)
    assert data is not None
    return Session.decode(data)


# In a stream.


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ([snapshot(USER)], [snapshot(USER, assistant("a", "Ulm"))], "Ulm"),
        ([snapshot(USER, assistant("a", "hm"))], [snapshot(USER, assistant("a", "hm"), assistant("b", "Ulm"))], "Ulm"),
        # What was streamed behind the snapshot, or without one, was shown as well.
        (
            [snapshot(USER), *streamed("a", "hm")],
            [snapshot(USER, assistant("a", "hm"), assistant("b", "Ulm"))],
            "Ulm",
        ),
        (
            call(parentMessageId="a"),
            [snapshot(USER, assistant("a", None, "c"), tool("c"), assistant("b", "Ulm"))],
            "Ulm",
        ),
        # A snapshot that has nothing of it may be anyone's history.
        ([snapshot(USER)], [snapshot({**USER, "id": "other"}, assistant("a", "Ulm"))], ""),
    ],
)
@pytest.mark.parametrize("history", [False, True])
async def test_an_answer_that_only_a_snapshot_has_is_told_after_a_resume(
    first: Any, second: Any, text: str, history: bool
) -> None:
    served = app(Remembers([*first, True], [*second, None]), history=history, on_diagnostic=lambda _: None)
    await say(served, "go")
    assert said(await answer(served, **YES)) == text


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("history", [False, True])
async def test_a_call_that_goes_on_is_told_once(history: bool, updates: bool) -> None:
    seen: list[Diagnostic] = []
    # It waits twice: the second time without a word of the call.
    agent = Remembers([*call(), *call("d"), result("d"), True], [True], [*call(), result(), *call("e"), None])
    served = app(agent, history=history, tool_call_updates=updates, on_diagnostic=seen.append)
    assert kinds(await say(served, "go"))[-2:] == ["interrupt", "done"]
    assert kinds(await answer(served, **YES)) == ["interrupt", "done"]
    told = [(kind, data["id"]) for kind, data in enveloped(await answer(served, **YES)) if kind != "done"]
    update = [("tool_call", "c")] if updates else []
    assert told == [*update, ("tool_result", "c"), ("tool_call", "e")]
    assert {diagnostic.code for diagnostic in seen} <= {"superagent.unanswered"}


@pytest.mark.parametrize(
    "first",
    [
        [*call(), result(), True],  # it has its result
        [*call(), snapshot(USER, assistant("a", None, "c"), tool("c")), True],
        [*call(), None],  # nobody goes on with it
        [*call(), OSError("cut")],
    ],
)
async def test_a_call_that_does_not_go_on_may_be_made_again(first: Any) -> None:
    served = app(Remembers(first, [*call(), result(), None]), history=False, on_diagnostic=lambda _: None)
    await run_asgi(served, path=STREAM, body={"session_id": "s", "message": "go"}, headers=ENVELOPED)
    assert kinds(await say(served, "again")) == ["tool_call", "tool_result", "done"]


async def test_a_result_that_has_the_id_of_its_call_is_not_told_again() -> None:
    messages = [USER, assistant("a", None, "c"), {**tool("c"), "id": "c"}]
    agent = Remembers(
        [*call(), result(), snapshot(*messages), True], [snapshot(*messages, assistant("b", "Ulm")), None]
    )
    served = app(agent, history=False, on_diagnostic=lambda _: None)
    await say(served, "go")
    assert kinds(await answer(served, headers=ENVELOPED, **YES)) == ["text", "done"]


async def test_a_message_in_place_of_an_answer_goes_on_as_well() -> None:
    agent = Remembers([*call(), snapshot(USER, assistant("a", None, "c")), True], [*call(), result(), None])
    served = app(agent, history=False, on_diagnostic=lambda _: None)
    await say(served, "go")
    assert kinds(await say(served, "never mind")) == ["tool_result", "done"]


async def test_a_look_tells_what_is_new_since_the_last_one() -> None:
    shown = snapshot(USER, assistant("a", "hm"))
    more = snapshot(USER, assistant("a", "hm"), assistant("b", "Ulm"))
    served = app(Remembers([shown, None], [more, None]), history=False, on_diagnostic=lambda _: None)
    await say(served, "go")
    response = await get(served, ENVELOPED, session="s")
    assert said(response) == "Ulm"


async def test_a_run_that_could_not_start_leaves_what_was_shown() -> None:
    class Fails(Remembers):
        async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
            if len(self.runs) == 1 and not self.failed:
                self.failed = True
                raise OSError("no model")
            async for event in super().run(input):
                yield event

        failed = False

    agent = Fails([*call(), snapshot(USER), True], [*call(), result(), snapshot(USER, assistant("b", "Ulm")), None])
    served = app(agent, history=False, on_diagnostic=lambda _: None)
    await say(served, "go")
    with pytest.raises(OSError, match="no model"):
        await answer(served, **YES)
    assert kinds(await answer(served, headers=ENVELOPED, **YES)) == ["tool_result", "text", "done"]


# In a session.


def follow(*events: Any, messages: Any = (), calls: Any = ()) -> tuple[list[str], list[str]]:
    shown = Shown(messages, calls)
    for event in events:
        shown.take(decode_event(event))
    return shown.messages, shown.calls


@pytest.mark.parametrize(
    ("events", "messages", "calls"),
    [
        ([], ["old"], ["open"]),
        ([snapshot()], [], ["open"]),
        ([snapshot(USER, assistant("a"))], ["a"], ["open"]),
        ([snapshot(USER), *streamed("a", "x"), *streamed("b", "y")], ["u", "a", "b"], ["open"]),
        ([*streamed("a", "x"), snapshot(USER)], ["u"], ["open"]),
        ([{"type": "TEXT_MESSAGE_CHUNK", "messageId": "a", "delta": "x"}] * 3, ["old", "a"], ["open"]),
        ([{"type": "TEXT_MESSAGE_CHUNK", "delta": "x"}], ["old"], ["open"]),
        (call(parentMessageId="a"), ["old", "a"], ["open", "c"]),
        ([{"type": "TOOL_CALL_CHUNK", "toolCallId": "c"}, {"type": "TOOL_CALL_CHUNK"}], ["old"], ["open", "c"]),
        ([*call(), result(), result("open"), result("?")], ["old"], []),
        ([*call(), snapshot(USER, tool("c"), tool("open"))], ["u"], []),
        # Ids that are none, or too long: then nobody can say what is new.
        ([snapshot(USER, {"role": "assistant", "content": "x"})], [], ["open"]),
        ([*streamed("a" * 129, "x")], [], ["open"]),
        ([*streamed("a" * 129, "x"), *streamed("a" * 128, "y")], ["a" * 128], ["open"]),
        (call("c" * 129), ["old"], ["open"]),
        ([{"type": "MESSAGES_SNAPSHOT", "messages": [7, None]}, {"type": "OF_NEXT_YEAR"}], [], ["open"]),
        ([{"type": "TOOL_CALL_RESULT", "toolCallId": ["c"]}, {"type": "TOOL_CALL_START"}], ["old"], ["open"]),
    ],
)
def test_what_is_known_to_be_shown(events: Any, messages: list[str], calls: list[str]) -> None:
    assert follow(*events, messages=["old"], calls=["open"]) == (messages, calls)


def test_of_much_the_last_is_known() -> None:
    events = [event for number in range(1000) for event in [*streamed(f"m{number}", "x"), *call(f"c{number}")]]
    messages, calls = follow(*events)
    assert (messages, calls) == ([f"m{number}" for number in range(950, 1000)], [f"c{n}" for n in range(950, 1000)])
    assert both(messages, ["m999", "n"]) == [*messages[1:], "n"]


@pytest.mark.parametrize("history", [False, True])
async def test_a_session_remembers_what_was_shown(history: bool) -> None:
    store = MemorySessions()
    odd = "\ud83d"  # half a character is no reason to lose a session
    served = app(
        Remembers([snapshot(USER), *call(), *streamed(odd, "x"), True], [result(), None]),
        store=store,
        history=history,
        on_diagnostic=lambda _: None,
    )
    await say(served, "go")
    session = await stored(store)
    assert (len(session.shown), session.shown[0], session.calls) == (2, "u", ["c"])
    await answer(served, **YES)
    assert (await stored(store)).calls == []


async def test_a_session_of_before_has_shown_nothing() -> None:
    session = Session.decode(b'{"messages":[],"interrupts":[{"id":"i"}]}')
    assert (session.shown, session.calls) == ((), ())
    store = MemorySessions()
    await store.swap("s", None, b'{"interrupts":[{"id":"i","reason":"r"}],"dialect":"superagent"}')
    served = app(Remembers([*call(), result(), None]), store=store, history=False)
    assert kinds(await answer(served, **YES)) == ["tool_call", "tool_result", "done"]


class Elsewhere(MemorySessions):
    """A store in which another process changes the session, once, before this one stores what `when` says."""

    def __init__(self, theirs: Session, when: Callable[[Session], bool]) -> None:
        super().__init__()
        self.theirs: Session | None = theirs
        self.when = when

    async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:
        if self.theirs is not None and self.when(Session.decode(new)):
            theirs, self.theirs = self.theirs, None
            await super().swap(key, await self.get(key), theirs.encode())
        return await super().swap(key, old, new)


@pytest.mark.parametrize(
    ("waits", "calls"),
    [
        (True, ["c"]),  # the interrupt is ours, and so is the call that waits for it
        (None, ["theirs"]),
    ],
)
async def test_what_another_process_showed_is_known_as_well(waits: Any, calls: list[str]) -> None:
    theirs = Session(interrupts=[{"id": "x"}], shown=["m"], calls=["theirs"], claim="another")
    store = Elsewhere(theirs, lambda new: bool(new.shown))
    served = app(Remembers([*call(), snapshot(USER), waits]), store=store, history=False)
    await say(served, "go")
    session = await stored(store)
    assert (session.shown, session.calls) == (["m", "u"], calls)
    assert [one["id"] for one in session.interrupts] == (["i"] if waits else ["x"])
