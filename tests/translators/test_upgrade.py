"""Old agents' events in, 1.0's events out: tables of what older agents send, and what a 1.0 client must get of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from ag_ui import core
from ag_ui.core import CustomEvent, RunFinishedEvent, StateSnapshotEvent, TextMessageContentEvent
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import Diagnostic, decode_event, encode_event
from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION
from agui_pipeline.translators._input import run_input
from agui_pipeline.translators._upgrade import UpgradeTranslator
from agui_pipeline.translators._upgrade_interrupts import CANCELLED, with_command
from agui_pipeline.translators._verifier import problems_of
from tests.event_samples import SAMPLES, stream_of
from tests.streams import make_stream, seeded

JSON = dict[str, Any]
START: JSON = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISH: JSON = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ERROR: JSON = {"type": "RUN_ERROR", "message": "m"}


def upgraded(events: Iterable[Any], **options: Any) -> tuple[list[JSON], list[Diagnostic]]:
    """Return the events that one run becomes, as JSON, and what was said about it."""
    said: list[Diagnostic] = []
    translator = UpgradeTranslator("t", "r", said.append, **options)
    out = [
        new for event in events for new in translator.feed(decode_event(event) if isinstance(event, dict) else event)
    ]
    return [json.loads(encode_event(event)) for event in [*out, *translator.flush()]], said


def codes(said: Iterable[Diagnostic]) -> list[str]:
    return [diagnostic.code.removeprefix("upgrade.") for diagnostic in said]


def thinking(name: str, **fields: Any) -> JSON:
    return {"type": f"THINKING_{name}", **fields}


def reasoning(name: str, number: int, **fields: Any) -> JSON:
    return {"type": f"REASONING_{name}", "messageId": f"r-reasoning-{number}", **fields}


SPAN, END = thinking("START"), thinking("END")
OPEN, CLOSE = thinking("TEXT_MESSAGE_START"), thinking("TEXT_MESSAGE_END")
TEXT: JSON = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}


def hm(delta: str = "hm", **fields: Any) -> JSON:
    return thinking("TEXT_MESSAGE_CONTENT", delta=delta, **fields)


THINKING: dict[str, tuple[list[JSON], list[JSON]]] = {
    "one message in a span": (
        [SPAN, OPEN, hm("h"), hm("m"), CLOSE, END],
        [
            reasoning("START", 1),
            reasoning("MESSAGE_START", 2, role="reasoning"),
            reasoning("MESSAGE_CONTENT", 2, delta="h"),
            reasoning("MESSAGE_CONTENT", 2, delta="m"),
            reasoning("MESSAGE_END", 2),
            reasoning("END", 1),
        ],
    ),
    "two messages, each its own id": (
        [SPAN, OPEN, CLOSE, OPEN, CLOSE, END],
        [
            reasoning("START", 1),
            reasoning("MESSAGE_START", 2, role="reasoning"),
            reasoning("MESSAGE_END", 2),
            reasoning("MESSAGE_START", 3, role="reasoning"),
            reasoning("MESSAGE_END", 3),
            reasoning("END", 1),
        ],
    ),
    "a message outside of a span": (
        [OPEN, hm(), CLOSE],
        [
            reasoning("MESSAGE_START", 1, role="reasoning"),
            reasoning("MESSAGE_CONTENT", 1, delta="hm"),
            reasoning("MESSAGE_END", 1),
        ],
    ),
    "the title, which has no field any more": (
        [thinking("START", title="Plan", metadata={"k": 1}), END],
        [reasoning("START", 1, metadata={"k": 1, "title": "Plan"}), reasoning("END", 1)],
    ),
    "what else an event holds": (
        [thinking("START", timestamp=5, rawEvent={"a": None}, x=1), thinking("END", timestamp=6)],
        [reasoning("START", 1, timestamp=5, rawEvent={"a": None}, x=1), reasoning("END", 1, timestamp=6)],
    ),
    "text in between": (
        [OPEN, TEXT, hm(), CLOSE],
        [
            reasoning("MESSAGE_START", 1, role="reasoning"),
            TEXT,
            reasoning("MESSAGE_CONTENT", 1, delta="hm"),
            reasoning("MESSAGE_END", 1),
        ],
    ),
}


@pytest.mark.parametrize("case", list(THINKING))
def test_thinking_becomes_reasoning(case: str) -> None:
    events, wanted = THINKING[case]
    out, said = upgraded([START, *events])
    assert out[1:] == wanted
    assert codes(said) == ["thinking"] * len({(event["type"]) for event in events} & {SPAN["type"], OPEN["type"]})


DISORDER: dict[str, tuple[list[JSON], list[JSON]]] = {
    "text without a start": (
        [hm(), CLOSE],
        [
            reasoning("MESSAGE_START", 1, role="reasoning"),
            reasoning("MESSAGE_CONTENT", 1, delta="hm"),
            reasoning("MESSAGE_END", 1),
        ],
    ),
    "ends of nothing": ([CLOSE, END], []),
    "a message ended by its span": (
        [SPAN, OPEN, END],
        [
            reasoning("START", 1),
            reasoning("MESSAGE_START", 2, role="reasoning"),
            reasoning("MESSAGE_END", 2),
            reasoning("END", 1),
        ],
    ),
    "a second start of either": (
        [SPAN, OPEN, OPEN, SPAN, END],
        [
            reasoning("START", 1),
            reasoning("MESSAGE_START", 2, role="reasoning"),
            reasoning("MESSAGE_END", 2),
            reasoning("MESSAGE_START", 3, role="reasoning"),
            reasoning("MESSAGE_END", 3),
            reasoning("END", 1),
            reasoning("START", 4),
            reasoning("END", 4),
        ],
    ),
    "open at the end of the run": (
        [SPAN, OPEN, FINISH],
        [
            reasoning("START", 1),
            reasoning("MESSAGE_START", 2, role="reasoning"),
            reasoning("MESSAGE_END", 2),
            reasoning("END", 1),
            FINISH,
        ],
    ),
    "open at an error": ([SPAN, ERROR], [reasoning("START", 1), reasoning("END", 1), ERROR]),
    "closed with the tag of what opened it": (
        [thinking("START", subagentRunId="s"), FINISH],
        [reasoning("START", 1, subagentRunId="s"), reasoning("END", 1, subagentRunId="s"), FINISH],
    ),
}


@pytest.mark.parametrize("case", list(DISORDER))
def test_thinking_out_of_order_is_put_right(case: str) -> None:
    events, wanted = DISORDER[case]
    out, said = upgraded([START, *events])
    assert out[1:] == wanted
    assert "thinking-order" in codes(said)


@given(st.lists(st.sampled_from([SPAN, OPEN, hm(), CLOSE, END]), max_size=12), st.sampled_from([FINISH, ERROR]))
def test_any_thinking_makes_a_legal_stream_that_holds_its_text(events: list[JSON], terminal: JSON) -> None:
    out, _ = upgraded([START, *events, terminal])
    assert not list(problems_of([decode_event(event) for event in out]))
    assert sum(event["type"] == "REASONING_MESSAGE_CONTENT" for event in out) == events.count(hm())


def test_a_second_run_in_a_stream_starts_afresh() -> None:
    out, _ = upgraded([START, SPAN, OPEN, START, hm(), FINISH])
    assert [event["messageId"] for event in out if "messageId" in event] == [
        f"r-reasoning-{n}" for n in (1, 2, 3, 3, 3)
    ]


def test_ids_come_from_whoever_is_asked_for_them() -> None:
    ids = iter("abc")
    out, _ = upgraded([SPAN, OPEN, CLOSE, END], new_id=lambda: next(ids))
    assert [event["messageId"] for event in out] == ["a", "b", "b", "a"]


@pytest.mark.skipif(HAS_PROTOCOL_VERSION, reason="1.x has no models of what it retired")
def test_models_of_retired_events_are_read_too() -> None:
    made: Any = core
    out, _ = upgraded([made.ThinkingStartEvent(title="T"), made.ThinkingEndEvent()])
    assert out == [reasoning("START", 1, metadata={"title": "T"}), reasoning("END", 1)]


# Parts.

PNG: JSON = {"type": "binary", "mimeType": "image/png"}
IMAGE: JSON = {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}}
HI: JSON = {"type": "text", "text": "hi"}
PARTS: dict[str, tuple[list[Any], list[Any]]] = {
    "data": ([HI, PNG | {"data": "AA=="}], [HI, IMAGE]),
    "url and a name": (
        [PNG | {"mimeType": "application/pdf", "url": "https://x/a", "filename": "a.pdf", "id": None}],
        [
            {
                "type": "document",
                "source": {"type": "url", "value": "https://x/a", "mimeType": "application/pdf"},
                "metadata": {"filename": "a.pdf"},
            }
        ],
    ),
    "an id, which the client would lose": (
        [PNG | {"mimeType": "audio/wav", "id": "f1", "data": ""}],
        [{"type": "audio", "source": {"type": "file", "value": "f1", "mimeType": "audio/wav"}}],
    ),
    "a mirror of a part of 1.0": ([PNG | {"data": "AA=="}, IMAGE], [IMAGE]),
    "a mirror whose name the other lacks": (
        [PNG | {"data": "AA==", "filename": "a"}, IMAGE],
        [IMAGE | {"metadata": {"filename": "a"}}, IMAGE],
    ),
    "a mirror whose metadata is none": ([PNG | {"data": "AA==", "metadata": "no"}, IMAGE], [IMAGE]),
    "the same twice, on purpose": ([PNG | {"data": "AA=="}] * 2, [IMAGE] * 2),
}


@pytest.mark.parametrize("case", list(PARTS))
@pytest.mark.parametrize("where", ["a snapshot", "the echoed input"])
def test_binary_parts_become_media(case: str, where: str) -> None:
    content, wanted = PARTS[case]

    def event(parts: list[Any]) -> JSON:
        messages = [{"id": "u", "role": "user", "content": parts}, {"id": "a", "role": "assistant", "content": "x"}]
        if where == "a snapshot":
            return {"type": "MESSAGES_SNAPSHOT", "messages": messages}
        return START | {"input": {"threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": []}}

    out, said = upgraded([event(content)])
    assert out == [event(wanted)]
    assert codes(said) == ["binary"]


@pytest.mark.parametrize(
    "part", [PNG, {"type": "binary", "data": "x"}, PNG | {"url": 5}, PNG | {"mimeType": 5, "id": "x"}]
)
def test_a_binary_part_that_says_too_little_stays(part: JSON) -> None:
    event = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "u", "role": "user", "content": [part]}]}
    out, said = upgraded([event])
    assert out == [event]
    assert codes(said) == ["binary-lost"]


@pytest.mark.skipif(HAS_PROTOCOL_VERSION, reason="1.x has no model of the part that it retired")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_models_of_binary_parts_are_read_too() -> None:
    made: Any = core
    part = made.BinaryInputContent(mime_type="image/png", data="AA==")
    message = made.UserMessage(id="u", content=[part])
    (out,), said = upgraded([made.MessagesSnapshotEvent(messages=[message])])
    assert out["messages"][0]["content"] == [IMAGE]
    assert codes(said) == ["binary"]


# Fields.

FIELDS: list[tuple[JSON, JSON, str]] = [
    (TEXT | {"name": None}, TEXT, "null"),
    (TEXT | {"role": None, "timestamp": None}, TEXT | {"role": None}, "null"),
    ({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": None}, {}, "null"),
    ({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "parentMessageId": None}, {}, "null"),
    (FINISH | {"outcome": None}, {}, "null"),
    (TEXT | {"timestamp": 1700000000.5}, TEXT | {"timestamp": 1700000000}, "shape"),
    ({"type": "REASONING_MESSAGE_START", "messageId": "m"}, {"role": "reasoning"}, "shape"),
    ({"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "assistant"}, {"role": "reasoning"}, "shape"),
    ({"type": "CUSTOM", "name": "n"}, {"value": None}, "shape"),
    (
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [{"id": "a", "role": "assistant", "content": None, "toolCalls": None}],
        },
        {"messages": [{"id": "a", "role": "assistant"}]},
        "null",
    ),
]


@pytest.mark.parametrize(("event", "changes", "code"), FIELDS)
def test_a_field_is_put_as_1_0_has_it(event: JSON, changes: JSON, code: str) -> None:
    wanted = {name: value for name, value in (event | changes).items() if value is not None or name == "value"}
    out, said = upgraded([event, event])
    assert out == [wanted, wanted]
    assert set(codes(said)) == {code}
    assert len(said) == len({diagnostic.message for diagnostic in said}), "once a field, not once an event"


DATA: list[JSON] = [
    {"type": "RAW", "event": None},
    {"type": "CUSTOM", "name": "n", "value": None},
    {"type": "STATE_SNAPSHOT", "snapshot": None},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": None}]},
    FINISH | {"result": None},
    TEXT | {"rawEvent": None, "metadata": {"k": None}},
    {"type": "OF_THE_FUTURE", "messageId": None, "timestamp": 1.5},
    {"type": "TOOL_CALL_ARGS", "toolCallId": 5, "delta": "x"},  # a mistake, not an age: the guard's business
    {"type": "STATE_SNAPSHOT", "snapshot": {"role": None}, "subagentRunId": 5},
]


@pytest.mark.parametrize("event", DATA)
def test_what_is_data_or_not_old_passes_as_the_same_object(event: JSON) -> None:
    decoded = decode_event(event)
    said: list[Diagnostic] = []
    (out,) = UpgradeTranslator("t", "r", said.append).feed(decoded)
    assert out is decoded
    assert not said


def test_every_event_of_1_0_passes_as_the_same_object() -> None:
    for before, event in SAMPLES:
        if event["type"].startswith("THINKING"):
            continue
        said: list[Diagnostic] = []
        translator = UpgradeTranslator("t", "r", said.append)
        for item in stream_of(before, event):
            if not item["type"].startswith("THINKING"):
                decoded = decode_event(item)
                assert list(translator.feed(decoded)) == [decoded], item
        assert not said, event


@pytest.mark.parametrize(
    "event", [TextMessageContentEvent(message_id="m", delta="x"), StateSnapshotEvent(snapshot=None)]
)
def test_models_pass_as_they_are(event: Any) -> None:
    (out,) = UpgradeTranslator("t", "r", lambda _: None).feed(event)
    assert out is event


def test_any_stream_is_survived_and_upgraded_twice_is_upgraded_once() -> None:
    for seed in range(300):
        stream = make_stream(seeded(seed))
        once, _ = upgraded(stream)
        twice, said = upgraded(once)
        assert twice == once
        assert not said, seed


# Interrupts.


def on_interrupt(value: Any, **fields: Any) -> JSON:
    return {"type": "CUSTOM", "name": "on_interrupt", "value": value, **fields}


def _raw(value: Any) -> JSON:
    return {"metadata": {"langgraph": {"raw": value}}}


LANGGRAPH = "langgraph:interrupt"
INTERRUPTS: dict[str, tuple[JSON, JSON]] = {
    "plain words": (
        on_interrupt("Delete it?"),
        {"id": "r-interrupt-1", "reason": LANGGRAPH, "message": "Delete it?", **_raw("Delete it?")},
    ),
    "words in JSON": (
        on_interrupt('"Delete it?"'),
        {"id": "r-interrupt-1", "reason": LANGGRAPH, "message": "Delete it?", **_raw("Delete it?")},
    ),
    "an object in JSON, LangGraph's own id": (
        on_interrupt('{"question":"q","message":"m","tool_call_id":"c"}', rawEvent={"id": "lg", "value": 1}),
        {"id": "lg", "reason": LANGGRAPH, "message": "m", "toolCallId": "c"}
        | _raw({"question": "q", "message": "m", "tool_call_id": "c"}),
    ),
    "an object as it is, an id in it": (
        on_interrupt({"id": "i", "response_schema": {"type": "string"}, "message": 5}, subagentRunId="s"),
        {"id": "i", "reason": LANGGRAPH, "responseSchema": {"type": "string"}, "subagentRunId": "s"}
        | _raw({"id": "i", "response_schema": {"type": "string"}, "message": 5}),
    ),
    "an interrupt of 1.0": (
        on_interrupt(
            json.dumps({"id": "i", "reason": "r", "metadata": {"k": 1}, "subagentRunId": "s", "expiresAt": 5})
        ),
        {"id": "i", "reason": "r", "metadata": {"k": 1}, "subagentRunId": "s"},
    ),
    "nothing": (on_interrupt(None), {"id": "r-interrupt-1", "reason": LANGGRAPH, **_raw(None)}),
    "a number": (on_interrupt("12"), {"id": "r-interrupt-1", "reason": LANGGRAPH, **_raw(12)}),
}


@pytest.mark.parametrize("case", list(INTERRUPTS))
def test_an_on_interrupt_becomes_the_outcome(case: str) -> None:
    event, wanted = INTERRUPTS[case]
    out, said = upgraded([START, event, FINISH])
    assert out == [START, event, FINISH | {"outcome": {"type": "interrupt", "interrupts": [wanted]}}]
    assert codes(said) == ["interrupt"]
    if "subagentRunId" not in event:  # of a subagent that never started
        assert not list(problems_of([decode_event(item) for item in out]))


def test_several_interrupts_become_one_outcome_and_one_told_twice_is_one() -> None:
    first, second = on_interrupt("a"), on_interrupt("b", rawEvent={"id": "lg"})
    out, _ = upgraded([START, first, second, second, FINISH], keep_custom=False)
    assert [event["type"] for event in out] == ["RUN_STARTED", "RUN_FINISHED"]
    assert [interrupt["id"] for interrupt in out[-1]["outcome"]["interrupts"]] == ["r-interrupt-1", "lg"]


@pytest.mark.parametrize(
    "events",
    [
        [on_interrupt("a"), FINISH | {"outcome": {"type": "success"}}],
        [on_interrupt("a"), ERROR, START, FINISH],
        [on_interrupt("a"), START, FINISH],
        [{"type": "CUSTOM", "name": "on_interrupted", "value": "a"}, FINISH],
    ],
)
def test_an_outcome_is_not_made_up(events: Sequence[JSON]) -> None:
    out, said = upgraded([START, *events])
    assert out == [START, *events]
    assert not said


def test_an_in_process_agents_interrupt_is_an_object() -> None:
    event: Any = CustomEvent(name="on_interrupt", value="q", raw_event=SimpleNamespace(id="lg", value="q"))
    translator = UpgradeTranslator("t", "r", lambda _: None, keep_custom=False)
    assert list(translator.feed(event)) == []
    finished: Any = RunFinishedEvent(thread_id="t", run_id="r")
    (finish,) = translator.feed(finished)
    outcome = json.loads(encode_event(finish))["outcome"]
    assert (outcome["type"], outcome["interrupts"][0]["id"]) == ("interrupt", "lg")


# Answers.

RESOLVED: JSON = {"interruptId": "a", "status": "resolved"}
CALLED_OFF: JSON = {"interruptId": "b", "status": "cancelled"}
NO = {CANCELLED: True, "interrupt_id": "b"}
ANSWERS: list[tuple[list[JSON], Any, list[str]]] = [
    ([RESOLVED | {"payload": {"ok": False}}], {"ok": False}, ["resume"]),
    ([RESOLVED | {"payload": False}], False, ["resume"]),
    ([RESOLVED], True, ["resume"]),
    ([CALLED_OFF], NO, ["resume-cancelled", "resume"]),
    ([RESOLVED | {"payload": 1}, CALLED_OFF], {"a": 1, "b": NO}, ["resume-cancelled", "resume"]),
]


@pytest.mark.parametrize(("resume", "wanted", "notes"), ANSWERS)
@pytest.mark.parametrize("props", [{}, {"k": 1, "command": {"update": 2}}])
def test_an_answer_is_said_in_the_old_way_too(resume: Any, wanted: Any, notes: list[str], props: JSON) -> None:
    said: list[str] = []
    given = run_input(resume=resume, forwarded_props=props)
    out = with_command(given, lambda code, _: said.append(code))
    assert out.forwarded_props == props | {"command": {**props.get("command", {}), "resume": wanted}}
    assert given.forwarded_props == props, "the client's own is left alone"
    assert getattr(out, "resume", None) == getattr(given, "resume", None)
    assert said == notes


@pytest.mark.parametrize(
    ("made", "resume", "wanted", "stays"),
    [
        (["a"], [RESOLVED], True, False),
        (["a"], [RESOLVED | {"payload": 1}], 1, False),
        (["a", "c"], [RESOLVED | {"payload": 1}], {"a": 1}, False),  # the other one is still open
        (["a", "b"], [RESOLVED | {"payload": 1}, CALLED_OFF], {"a": 1, "b": NO}, False),
        (["c"], [RESOLVED | {"payload": 1}], 1, True),  # somebody else's
        (["a"], [RESOLVED | {"payload": 1}, CALLED_OFF], {"a": 1, "b": NO}, True),
        ([], [RESOLVED | {"payload": 1}], 1, True),
    ],
)
def test_an_answer_to_what_was_made_here_is_said_in_the_old_way_only(
    made: list[str], resume: Any, wanted: Any, stays: bool
) -> None:
    given = run_input(resume=resume)
    out = with_command(given, lambda *_: None, [{"id": id} for id in made])
    assert out.forwarded_props == {"command": {"resume": wanted}}
    assert (getattr(out, "resume", None) == getattr(given, "resume", None)) is stays
    assert getattr(given, "resume", None)


@pytest.mark.parametrize("props", [{"command": {"resume": "own"}}, {"command": {"resume": False}}])
def test_a_clients_own_old_answer_stays(props: JSON) -> None:
    given = run_input(resume=[RESOLVED], forwarded_props=props)
    assert with_command(given, lambda *_: None) is given
    assert with_command(run_input("hi"), lambda *_: pytest.fail("there is no answer")).forwarded_props == {}


@pytest.mark.parametrize("props", ["text", [1], {"command": "text"}])
def test_an_answer_without_a_place_is_reported(props: Any) -> None:
    said: list[str] = []
    given = run_input(resume=[RESOLVED], forwarded_props=props)
    assert with_command(given, lambda code, _: said.append(code)) is given
    assert said == ["resume-lost"]
