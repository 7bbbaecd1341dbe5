"""Answers to interrupts over the old HTTP API: each starts one run, with what the agent asked for."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from agui_pipeline.adapters._superagent_answers import resume_entry
from agui_pipeline.adapters.superagent import MemorySessions
from agui_pipeline.adapters.testing import ASGIResponse, run_asgi
from agui_pipeline.middleware import TrustMiddleware
from agui_pipeline.translators import DecodeError
from tests.adapters.superagent import (
    CONFIRM,
    ENVELOPED,
    RESUME,
    STREAM,
    Agent,
    answer,
    app,
    asks,
    enveloped,
    flat,
    get,
    interrupt,
    kinds,
    post,
    refused,
    run,
    said,
    say,
    text,
    tokens,
)

pytestmark = pytest.mark.anyio

YES: dict[str, Any] = {"input": {"confirm": True}}


async def test_an_answer_goes_on_with_the_run() -> None:
    agent = Agent(interrupt("i1", responseSchema=CONFIRM))
    served = app(agent)
    response = await say(served, "ask")
    assert enveloped(response)[-2:] == [
        (
            "interrupt",
            {
                "reason": "Go on?",
                "fields": [{"name": "confirm", "type": "confirm", "label": "confirm", "required": True}],
            },
        ),
        ("done", None),
    ]
    assert said(await answer(served, **YES)) == 'resumed with [{"confirm": true}]'
    assert agent.last.resume is not None
    (entry,) = agent.last.resume
    assert (entry.interrupt_id, str(entry.status)) == ("i1", "resolved")
    assert agent.last.thread_id == "s"
    assert [(message.role, message.content) for message in agent.last.messages] == [
        ("user", "ask"),
        ("assistant", "hm"),
    ]
    await say(served, "and now?")  # what the resumed run said is remembered, too
    assert [message.content for message in agent.last.messages][2:] == ['resumed with [{"confirm": true}]', "and now?"]


@pytest.mark.parametrize(
    ("start", "read"),
    [
        ({"headers": ENVELOPED}, enveloped),
        ({"headers": {}}, tokens),
        ({"get": True}, flat),
    ],
)
@pytest.mark.parametrize("body", [YES, {"answer": "yes"}, {"answer": True}])
async def test_an_answer_is_answered_in_the_dialect_of_the_question(start: Any, read: Any, body: Any) -> None:
    agent = Agent(interrupt(responseSchema=CONFIRM))
    served = app(agent)
    if start.get("get"):
        await get(served, session="s", message="ask")
    else:
        await say(served, "ask", headers=start["headers"])
    frames = read(await answer(served, **body))
    assert "resumed with" in str(frames)
    last = frames[-1]
    assert last in (("done", None), "[DONE]") or last["type"] == "done"
    assert agent.last.resume[0].payload == {"confirm": True}  # type: ignore[index]


async def test_its_own_opt_in_wins() -> None:
    served = app(Agent())
    await get(served, session="s", message="ask")
    assert said(await answer(served, headers=ENVELOPED, **YES)).startswith("resumed")


async def test_several_interrupts_are_answered_in_order() -> None:
    timezone = {"type": "object", "properties": {"timezone": {"type": "string"}}}
    agent = Agent(interrupt("i1", "Sure?", responseSchema=CONFIRM), interrupt("i2", "Where?", responseSchema=timezone))
    served = app(agent)
    asked = enveloped(await say(served, "ask"))
    assert [data["reason"] for kind, data in asked if kind == "interrupt"] == ["Sure?", "Where?"]
    # The first answer is kept; what is still open is asked again, and nothing is run.
    left = enveloped(await answer(served, **YES))
    assert [(kind, (data or {}).get("reason")) for kind, data in left] == [("interrupt", "Where?"), ("done", None)]
    assert len(agent.inputs) == 1
    assert said(await answer(served, answer="Europe/Berlin")).startswith("resumed")
    assert [(entry.interrupt_id, entry.payload) for entry in agent.last.resume or ()] == [
        ("i1", {"confirm": True}),
        ("i2", {"timezone": "Europe/Berlin"}),
    ]
    assert refused(await answer(served, **YES)) == (409, "nothing_to_resume")


async def test_the_second_of_two_equal_answers_is_refused() -> None:
    agent = Agent()
    served = app(agent)
    await say(served, "ask")
    assert (await answer(served, **YES)).status == 200
    assert refused(await answer(served, **YES)) == (409, "nothing_to_resume")
    assert len(agent.inputs) == 2


async def test_however_often_an_answer_arrives_at_once_it_starts_one_run() -> None:
    agent = Agent()
    served = app(agent)
    await say(served, "ask")
    responses: list[ASGIResponse] = []

    async def click() -> None:
        responses.append(await answer(served, **YES))

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(click)
    assert sorted(response.status or 0 for response in responses) == [200] + 9 * [409]
    assert len(agent.inputs) == 2


class Shared(MemorySessions):
    """A store that takes a turn of the loop, as a shared one does."""

    async def get(self, key: str, /) -> bytes | None:
        await anyio.lowlevel.checkpoint()
        return await super().get(key)

    async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:
        await anyio.lowlevel.checkpoint()
        return await super().swap(key, old, new)


async def test_nor_in_several_processes() -> None:
    agent, store = Agent(), Shared()
    workers = [app(agent, store=store) for _ in range(5)]
    await say(workers[0], "ask")
    responses: list[ASGIResponse] = []

    async def click(served: Any) -> None:
        responses.append(await answer(served, **YES))

    async with anyio.create_task_group() as group:
        for served in workers:
            group.start_soon(click, served)
    assert sorted(response.status or 0 for response in responses) == [200] + 4 * [409]
    assert len(agent.inputs) == 2
    assert said(await say(workers[3], "and?")) == "you said and?"
    assert len(agent.last.messages) == 4


async def test_a_client_may_answer_as_soon_as_it_sees_the_question() -> None:
    served = app(Agent())
    answered: list[ASGIResponse] = []

    async def read(response: ASGIResponse) -> None:
        if not answered and b"event: interrupt" in response.body:
            answered.append(await answer(served, **YES))

    await post(served, STREAM, {"session_id": "s", "message": "ask"}, ENVELOPED, reader=read)
    assert said(answered[0]).startswith("resumed")


async def test_an_answer_during_a_run_is_refused() -> None:
    agent = Agent()

    async def slow(input: Any, next: Any) -> Any:
        async for event in next(input):
            yield event
            if event.type == "TEXT_MESSAGE_CONTENT" and len(agent.inputs) == 2:
                await anyio.sleep(0.05)

    served = app(agent, slow)
    await say(served, "ask")
    seen: list[ASGIResponse] = []

    async def read(_response: ASGIResponse) -> None:
        if not seen:
            seen.append(await answer(served, **YES))

    await post(served, RESUME, {"session_id": "s", **YES}, reader=read)
    assert refused(seen[0]) == (409, "session_busy")


async def test_a_message_gives_the_question_up() -> None:
    agent = Agent(interrupt("i1"), interrupt("i2"))
    served = app(agent)
    await say(served, "ask")
    await say(served, "never mind")
    assert [(entry.interrupt_id, str(entry.status)) for entry in agent.last.resume or ()] == [
        ("i1", "cancelled"),
        ("i2", "cancelled"),
    ]
    assert [message.content for message in agent.last.messages] == ["ask", "hm", "never mind"]
    assert refused(await answer(served, **YES)) == (409, "nothing_to_resume")


class Failing:
    """Asks; then fails as a script says."""

    def __init__(self, *events: Any) -> None:
        self.events = events
        self.inputs: list[Any] = []

    async def run(self, input: Any) -> Any:
        self.inputs.append(input)
        if len(self.inputs) == 1:
            for event in run(input, ends=asks(interrupt())):
                yield event
            return
        for event in self.events if len(self.inputs) == 2 else run(input, *text(input, "at last")):
            if isinstance(event, Exception):
                raise event
            yield event


@pytest.mark.parametrize(
    ("events", "given_back"),
    [
        ((OSError("no model"),), True),
        (({"type": "RUN_ERROR", "message": "no model"},), True),
        (({"type": "RUN_STARTED", "threadId": "s", "runId": "r"}, OSError("cut")), False),
        (({"type": "RUN_STARTED", "threadId": "s", "runId": "r"}, {"type": "RUN_ERROR", "message": "cut"}), False),
    ],
)
@pytest.mark.parametrize("message", [False, True])
async def test_a_run_that_could_not_start_leaves_the_question_open(
    events: Any, message: bool, given_back: bool
) -> None:
    agent = Failing(*events)
    served = app(agent, on_diagnostic=lambda _: None)
    await say(served, "go")
    body = {"session_id": "s", **({"message": "never mind"} if message else YES)}
    response = await run_asgi(served, path=STREAM if message else RESUME, body=body, headers=ENVELOPED)
    assert [kind for kind, _ in enveloped(response)][-2:] == ["error", "done"]
    again = await answer(served, **YES)
    if given_back:
        assert said(again) == "at last"
    else:
        assert refused(again) == (409, "nothing_to_resume")


async def test_an_input_that_the_chain_refuses_leaves_the_question_open() -> None:
    agent = Agent()
    refusing = [False]

    class Sometimes(TrustMiddleware):
        def admit(self, input: Any) -> None:  # noqa: ARG002 - as the base has it
            if refusing[0]:
                raise DecodeError("not now")

    served = app(agent, Sometimes(on_diagnostic=lambda _: None))
    await say(served, "ask")
    refusing[0] = True
    assert refused(await answer(served, **YES)) == (400, "refused_input")
    refusing[0] = False
    assert said(await answer(served, **YES)).startswith("resumed")


async def test_a_client_that_leaves_before_the_run_starts_leaves_the_question_open() -> None:
    agent = Agent()
    waiting = anyio.Event()

    async def slow(input: Any, next: Any) -> Any:
        if len(agent.inputs) == 1 and not waiting.is_set():
            waiting.set()
            await anyio.sleep_forever()
        async for event in next(input):
            yield event

    served = app(agent, slow)
    await say(served, "ask")
    response = await run_asgi(
        served, path=RESUME, body={"session_id": "s", **YES}, disconnect_after=lambda response: response.status == 200
    )
    assert response.disconnected
    assert said(await answer(served, **YES)).startswith("resumed")


@pytest.mark.parametrize("again", [False, True])
async def test_only_another_run_takes_the_question_back(again: bool) -> None:
    async def clumsy(input: Any) -> Any:
        if input.resume:
            events = run(input, *text(input, "fine"))
        else:
            events = [
                *run(input, ends=asks(interrupt())),
                {"type": "RUN_ERROR", "message": "too late"},
                *(run(input, *text(input, "once more")) if again else ()),
            ]
        for event in events:
            yield event

    served = app(clumsy, on_diagnostic=lambda _: None)
    assert kinds(await say(served, "go")) == ["interrupt", "error", *(["text"] if again else []), "done"]
    response = await answer(served, **YES)
    if again:
        assert refused(response) == (409, "nothing_to_resume")
        await say(served, "what was that?")
    else:
        assert said(response) == "fine"


@pytest.mark.parametrize("history", [True, False])
async def test_an_agent_of_before_1_0_gets_its_answers_where_it_looks_for_them(history: bool) -> None:
    inputs: list[Any] = []

    async def old(input: Any) -> Any:
        inputs.append(input)
        command = input.forwarded_props.get("command")
        if command is not None:
            events = run(input, *text(input, f"got {json.dumps(command['resume'])}"))
        else:
            events = run(input, {"type": "CUSTOM", "name": "on_interrupt", "value": '"Delete it?"'})
        for event in events:
            yield event

    served = app(old, history=history)
    asked = enveloped(await say(served, "go"))
    assert [data["reason"] for kind, data in asked if kind == "interrupt"] == ["Delete it?"]
    assert said(await answer(served, **YES)) == 'got {"confirm": true}'
    assert refused(await answer(served, **YES)) == (409, "nothing_to_resume")
    await say(served, "go")
    await say(served, "never mind")  # it is asked again, and knows nothing of an answer
    assert inputs[-1].resume is None
    assert said(await answer(served, **YES)) == 'got {"confirm": true}'


# Looking again.


async def test_a_look_without_a_message_shows_what_is_open() -> None:
    agent = Agent()
    served = app(agent)
    await say(served, "ask")
    for _ in range(2):
        frames = flat(await get(served, session="s"))
        assert [frame["type"] for frame in frames] == ["interrupt", "done"]
        assert frames[0]["prompt"] == "Go on?"
    assert len(agent.inputs) == 1
    assert said(await answer(served, headers=ENVELOPED, answer="yes")).startswith("resumed")


async def test_the_answer_expects_the_dialect_in_which_it_was_asked_last() -> None:
    served = app(Agent())
    await say(served, "ask")
    await get(served, session="s")
    assert flat(await answer(served, answer="yes"))[0]["content"] == "resumed with "


async def test_else_it_runs_the_agent_with_what_there_is() -> None:
    agent = Agent()
    served = app(agent)
    assert flat(await get(served, session="s"))[1]["content"] == "nothing"
    assert agent.last.messages == []
    await say(served, "hello")
    assert len(agent.last.messages) == 2


async def test_a_stream_that_broke_off_is_not_run_again() -> None:
    agent = Agent()
    served = app(agent)
    first = await get(served, session="s", message="ask")
    (id,) = [frame.id for frame in first.frames if frame.id is not None]
    again = await get(served, {"last-event-id": id}, session="s", message="ask")
    assert [frame["type"] for frame in flat(again)] == ["interrupt", "done"]
    await answer(served, **YES)
    again = await get(served, {"last-event-id": id}, session="s", message="ask")
    assert [frame["type"] for frame in flat(again)] == ["done"]
    assert len(agent.inputs) == 2


# Two at once.


async def test_messages_of_a_session_wait_for_each_other() -> None:
    agent = Agent()
    served = app(agent)
    responses: dict[str, ASGIResponse] = {}

    async def send(message: str) -> None:
        responses[message] = await say(served, message)

    async with anyio.create_task_group() as group:
        for message in ("one", "two", "three"):
            group.start_soon(send, message)
    assert [said(responses[message]) for message in responses] == [f"you said {message}" for message in responses]
    assert sorted(len(input.messages) for input in agent.inputs) == [1, 3, 5]


async def test_but_not_for_ever() -> None:
    agent = Agent()
    served = app(agent, patience=0.01)
    seen: list[ASGIResponse] = []

    async def read(_response: ASGIResponse) -> None:
        if not seen:
            seen.append(await say(served, "me, too"))

    await post(served, STREAM, {"session_id": "s", "message": "slowly"}, ENVELOPED, reader=read)
    assert refused(seen[0]) == (409, "session_busy")
    assert len(agent.inputs) == 1
    assert said(await say(served, "now")) == "you said now"


async def test_a_run_that_goes_on_without_its_client_keeps_the_session_busy() -> None:
    agent, go_on = Agent(), anyio.Event()

    async def slow(input: Any, next: Any) -> Any:
        async for event in next(input):
            if event.type == "TEXT_MESSAGE_END" and len(agent.inputs) == 1:
                await go_on.wait()
            yield event

    served = app(agent, slow, on_disconnect="detach", patience=0)
    async with anyio.create_task_group() as group:

        async def leave() -> None:
            body = {"session_id": "s", "message": "ask"}
            await run_asgi(
                served, path=STREAM, body=body, headers=ENVELOPED, disconnect_after=lambda one: len(one.frames) == 1
            )

        group.start_soon(leave)
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        assert refused(await say(served, "hello?")) == (409, "session_busy")
        go_on.set()
    # The question was remembered, though nobody saw it.
    assert kinds(await answer(served, headers=ENVELOPED, **YES)) == ["text", "done"]


async def test_runs_of_different_sessions_do_not_meet() -> None:
    agent = Agent()
    served = app(agent)
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(say, served, "ask", f"s{number}")
    assert {len(input.messages) for input in agent.inputs} == {1}
    for number in range(20):
        assert said(await answer(served, f"s{number}", **YES)).startswith("resumed")


# Answers.

FORM = {
    "type": "object",
    "properties": {
        "go": {"type": "boolean"},
        "count": {"type": "integer"},
        "size": {"enum": ["small", "large", 3]},
        "note": {"type": ["string", "null"]},
        "any": {},
    },
    "required": ["go"],
}


MODEL = {
    "$defs": {"Zone": {"enum": ["utc", "cet"], "type": "string"}},
    "properties": {
        "zone": {"$ref": "#/$defs/Zone"},
        "count": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "sure": {"type": "boolean"},
    },
    "required": ["zone", "sure"],
    "type": "object",
}


@pytest.mark.parametrize(
    ("schema", "given", "payload"),
    [
        (None, {"input": {"confirm": True}}, {"confirm": True}),
        (None, {"input": {"confirm": "no", "why": "not sure"}}, {"confirm": False, "why": "not sure"}),
        (None, {"answer": True}, {"confirm": True}),
        (None, {"answer": "是"}, {"confirm": True}),
        (None, {"answer": "Europe/Berlin"}, {"confirm": "Europe/Berlin"}),
        ({"type": "object"}, {"answer": "No"}, {"confirm": False}),
        ({}, {"input": {"confirm": False}}, {"confirm": False}),
        (CONFIRM, {"answer": "true"}, {"confirm": True}),
        (CONFIRM, {"answer": "0"}, {"confirm": False}),
        ({"type": "string"}, {"answer": "Berlin"}, "Berlin"),
        ({"type": "string"}, {"answer": 7}, "7"),
        ({"type": "string"}, {"answer": True}, "true"),
        ({"type": "string"}, {"input": {"answer": "Berlin"}}, "Berlin"),
        ({"type": "boolean"}, {"answer": "yes"}, True),
        ({"type": "number"}, {"answer": "1.5"}, 1.5),
        ({"type": "integer"}, {"answer": "12"}, 12),
        ({"type": "integer"}, {"answer": 12.0}, 12),
        ({"enum": ["a", 2]}, {"answer": "2"}, 2),
        ({"enum": ["a", 2, "2"]}, {"answer": "2"}, "2"),
        ({"enum": ["a", 2, "2"]}, {"answer": 2}, 2),
        (FORM, {"input": {"go": "yes", "count": "3", "size": "3"}}, {"go": True, "count": 3, "size": 3}),
        (FORM, {"input": {"go": True, "note": None, "any": [1]}}, {"go": True, "note": None, "any": [1]}),
        (FORM, {"answer": "yes"}, {"go": True}),  # the only required one
        ({"enum": [1, 2.5, True, None]}, {"answer": "true"}, True),  # as a browser shows them
        ({"enum": [1, 2.5, True, None]}, {"answer": "null"}, None),
        ({"enum": [1, 2.5, True, None]}, {"answer": "2.5"}, 2.5),
        ({"enum": [1.0, "1"]}, {"answer": 1}, 1.0),  # JavaScript has one kind of numbers
        ({"enum": [[1], {"x": 2}]}, {"answer": '{"x":2}'}, {"x": 2}),
        ({"type": "array"}, {"input": {"answer": [1]}}, [1]),
        ({"type": "array"}, {"answer": " [1, 2] "}, [1, 2]),
        (
            {"properties": {"size": {"type": "object", "properties": {"w": {"type": "integer"}}}}},
            {"input": {"size": '{"w":3}'}},
            {"size": {"w": 3}},
        ),
        # As pydantic writes optional fields and enumerations.
        (MODEL, {"input": {"zone": "utc", "count": "3", "sure": "no"}}, {"zone": "utc", "count": 3, "sure": False}),
        ({"$ref": "#/$defs/Form", "$defs": {"Form": CONFIRM}}, {"answer": "yes"}, {"confirm": True}),
        ({"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}}, {"answer": "7"}, 7),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, {"answer": "1.5"}, 1.5),
        # What is no schema, or says nothing that a form knows, lets everything pass.
        ({"properties": {"a": 7}}, {"answer": "x"}, {"a": "x"}),
        ({"properties": {"a": {"type": {}}}}, {"answer": "x"}, {"a": "x"}),
        ({"properties": {"a": {"type": ["string", "integer"]}}}, {"answer": "x"}, {"a": "x"}),
        ({"properties": [1]}, {"answer": "yes"}, {"confirm": True}),
        ({"$ref": "#"}, {"answer": "yes"}, {"confirm": True}),
        (
            {"type": "object", "properties": {"zone": {"type": "string"}}},
            {"answer": "Europe/Berlin"},
            {"zone": "Europe/Berlin"},
        ),
    ],
)
def test_an_answer_is_what_the_schema_describes(schema: Any, given: Any, payload: Any) -> None:
    asked = interrupt("i7", **({} if schema is None else {"responseSchema": schema}))
    entry = resume_entry(asked, given)
    assert entry == {"interruptId": "i7", "status": "resolved", "payload": payload}
    assert str(entry["payload"]) == str(payload)  # True is not 1


@pytest.mark.parametrize(
    ("schema", "given", "where"),
    [
        (None, {"input": {}}, "input.confirm"),
        (None, {"input": {"confirm": None}}, "input.confirm"),
        (CONFIRM, {"input": {"other": True}}, "input.confirm"),
        (CONFIRM, {"answer": "perhaps"}, "answer"),
        (CONFIRM, {"answer": 2}, "answer"),
        ({"type": "string"}, {"input": {"a": "1", "b": "2"}}, "input.answer"),
        ({"type": "number"}, {"answer": "many"}, "answer"),
        ({"type": "number"}, {"answer": True}, "answer"),
        ({"type": "integer"}, {"answer": 1.5}, "answer"),
        ({"type": "integer"}, {"answer": "9" * 5000}, "answer"),
        ({"enum": ["a", "b"]}, {"answer": "c"}, "answer"),
        ({"enum": [1, 2]}, {"answer": True}, "answer"),
        ({"enum": ["1"]}, {"answer": 1}, "answer"),
        ({"type": "number"}, {"answer": "1e400"}, "answer"),
        ({"type": "array"}, {"answer": "a, b"}, "answer: wanted a list"),
        ({"type": "array"}, {"answer": "{}"}, "answer: wanted a list"),
        ({"type": "object", "properties": {"a": {"type": "object"}}}, {"answer": 7}, "answer: wanted an object"),
        (MODEL, {"input": {"zone": "pst", "sure": True}}, "input.zone: wanted one of utc, cet"),
        (MODEL, {"input": {"zone": "utc", "sure": True, "count": "few"}}, "input.count"),
        (MODEL, {"answer": "utc"}, "answer: the interrupt has 3 fields"),
        (FORM | {"required": ["go", "size"]}, {"answer": "yes"}, "answer: the interrupt has 5 fields"),
        (FORM, {"input": {"go": True, "size": "medium"}}, "input.size"),
        (FORM, {"input": {"go": True, "note": {"x": 1}}}, "input.note"),
        (
            {"type": "object", "properties": {"a": {}, "b": {}}},
            {"answer": "x"},
            "answer: the interrupt has 2 fields",
        ),
    ],
)
def test_what_it_does_not_describe_is_refused(schema: Any, given: Any, where: str) -> None:
    asked = interrupt(**({} if schema is None else {"responseSchema": schema}))
    with pytest.raises(DecodeError) as caught:
        resume_entry(asked, given)
    assert str(caught.value).startswith(where)
