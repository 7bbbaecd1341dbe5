"""Each rule: what goes in, what comes out, in its span and outside of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import ActivitySnapshotEvent

from agui_pipeline.translators import Diagnostic, decode_event, encode_event, encode_sse
from agui_pipeline.translators._events import loads
from agui_pipeline.translators.agui_versions import RULES, Downgrade
from agui_pipeline.translators.agui_versions._version import FIRST, LAST, Version
from tests.translators.agui_versions.judge import INPUT, framed, ignore
from tests.translators.agui_versions.old_schemas import Wire
from tests.translators.agui_versions.samples import (
    ERROR,
    FILE,
    FINISH,
    IMAGE,
    INTERRUPT,
    RUN,
    START,
    STATE,
    STREAMS,
    SUBAGENT,
    TEXT_PART,
    activity,
    call,
    chunk,
    message,
    reasoning,
    result,
    run,
    snapshot,
    step,
    text,
    woven,
)


def through(
    stream: Sequence[Wire], version: Version | str, said: list[Diagnostic] | None = None, **options: Any
) -> list[Wire]:
    """Return a stream at a level."""
    downgrade = Downgrade(f"ag-ui/{version}", INPUT, ignore if said is None else said.append, **options)
    out: list[Any] = []
    for event in stream:
        out += downgrade.feed(decode_event(event))
    out += downgrade.flush()
    return [loads(encode_event(event)) for event in out]


def custom(event: Wire) -> Wire:
    return {"type": "CUSTOM", "name": event["type"], "value": {k: v for k, v in event.items() if k != "type"}}


def lone(*events: Wire) -> list[Wire]:
    """Return a run that shows something, so that 0.0.30 needs no more."""
    return [START, STATE, *events, FINISH]


def outcome(**fields: Any) -> list[Wire]:
    return [START, STATE, {**FINISH, "outcome": fields}]


def think(*kinds: str, delta: str = "") -> list[Wire]:
    return [{"type": f"THINKING_{kind}"} | ({"delta": delta} if kind.endswith("CONTENT") else {}) for kind in kinds]


def named(name: str, *, value: Any) -> Wire:
    return {"type": "CUSTOM", "name": name, "value": value}


UNKNOWN: Wire = {"type": "OF_THE_FUTURE", "n": 1}
REASONED = [
    {"type": "REASONING_START", "messageId": "r"},
    *reasoning("r", "hm"),
    {"type": "REASONING_END", "messageId": "r"},
]
ENCRYPTED: Wire = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "x"}
THOUGHT = [
    *think("START", "TEXT_MESSAGE_START"),
    *think("TEXT_MESSAGE_CONTENT", delta="hm"),
    *think("TEXT_MESSAGE_END", "END"),
]
USER = {"role": "user"}
BINARY_FILE = {"type": "binary", "mimeType": "application/octet-stream", "id": "file-1", "filename": "a"}
BINARY_IMAGE = {"type": "binary", "mimeType": "image/png", "url": "https://x/y"}
WITH_INPUT: Wire = {**START, "input": {**RUN, "messages": []}}

CASES: dict[str, tuple[list[Wire], list[Wire]]] = {
    "nulls": (
        lone(
            {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": None}, call("c")[1]
        ),
        lone({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"}, call("c")[1]),
    ),
    "chunks": (
        lone(chunk("a", messageId="m", role="assistant"), chunk("b"), {"type": "RAW", "event": 1}, chunk("c")),
        lone(*text("m", "a", "b")[:-1], {"type": "RAW", "event": 1}, *text("m", "c")[1:]),
    ),
    "subagents": (lone(SUBAGENT), lone(custom(SUBAGENT))),
    "activities": (lone(activity()), lone(custom(activity()))),
    "reasoning": (lone(*REASONED), lone(*map(custom, REASONED))),
    "thinking": (lone(*REASONED), lone(*THOUGHT)),
    "encrypted reasoning": (lone(ENCRYPTED), lone(custom(ENCRYPTED))),
    "retired thinking": (
        lone(*THOUGHT),
        lone(
            {"type": "REASONING_START", "messageId": "r-thinking-1"},
            *reasoning("r-thinking-2", "hm"),
            {"type": "REASONING_END", "messageId": "r-thinking-1"},
        ),
    ),
    "unknown types": (lone(UNKNOWN), lone(custom(UNKNOWN))),
    "empty deltas": (lone(*text("m", "", "a")), lone(*text("m", "a"))),
    "text role": (lone(*text("m", "a", role="user")), lone(*text("m", "a"))),
    "tool results": (lone(result("c", [TEXT_PART, TEXT_PART]), *text("m")), lone(result("c", "looklook"), *text("m"))),
    "unknown messages": (run(snapshot(message("a"), message("b", role="oracle"))), run(snapshot(message("a")))),
    "tool messages": (
        run(snapshot(message("t", [TEXT_PART], "tool", toolCallId="c"))),
        run(snapshot(message("t", "look", "tool", toolCallId="c"))),
    ),
    "files": (run(snapshot(message("u", [FILE], **USER))), run(snapshot(message("u", [BINARY_FILE], **USER)))),
    "media": (run(snapshot(message("u", [IMAGE], **USER))), run(snapshot(message("u", [BINARY_IMAGE], **USER)))),
    "user messages": (
        run(snapshot(message("u", [TEXT_PART, IMAGE, TEXT_PART], **USER))),
        run(snapshot(message("u", "looklook", **USER))),
    ),
    "reasoning messages": (
        run(snapshot(message("a"), message("r", role="reasoning"))),
        run(snapshot(message("a"))),
    ),
    "activity messages": (
        run(snapshot(message("a"), {"id": "p", "role": "activity", "activityType": "P", "content": {}})),
        run(snapshot(message("a"))),
    ),
    "input": (
        [WITH_INPUT, STATE, FINISH],
        [{**START, "input": {**RUN, "messages": [], "tools": [], "context": []}}, STATE, FINISH],
    ),
    "outcomes": (
        outcome(type="interrupt", interrupts=[INTERRUPT]),
        [START, STATE, named("on_interrupt", value='{"id":"i","reason":"approval","message":"May I?"}'), FINISH],
    ),
    "one at a time": (
        lone(*woven(text("m", "a"), call("c", "{}")), {"type": "RAW", "event": 1}),
        lone(*text("m", "a"), *call("c", "{}"), {"type": "RAW", "event": 1}),
    ),
    "nested steps": (
        lone(*step("a", *step("b"))),
        lone(*step("a", *map(custom, step("b")))),
    ),
    "steps of a name": (
        lone(*step("a", *step("a", subagentRunId="s"), *step("b"))),
        lone(*step("a", *map(custom, step("a", subagentRunId="s")), *step("b"))),
    ),
    "end at error": ([START, STATE, ERROR, START, ERROR], [START, STATE, ERROR]),
    "one run": ([*lone(), *lone()], [START, STATE, STATE, FINISH]),
    "text ids": (
        lone(*text("m", "a"), *text("m", "b"), *text("m", "c"), *call("d", parentMessageId="m")),
        lone(*text("m", "a"), *text("m~2", "b"), *text("m~3", "c"), *call("d", parentMessageId="m~3")),
    ),
    "parents": (
        lone(*text("m", "a"), *text("n", "b"), *call("c", parentMessageId="m"), *call("d", parentMessageId="c")),
        lone(*text("m", "a"), *text("n", "b"), *call("c"), *call("d", parentMessageId="c")),
    ),
    "carried activities": (
        lone(*text("m", "a"), activity(), snapshot(message("m"), message("n"))),
        lone(
            *text("m", "a"),
            activity(),
            snapshot(
                message("m"),
                {"id": "act", "role": "activity", "activityType": "PLAN", "content": {"n": 1}},
                message("n"),
            ),
        ),
    ),
    "carried reasoning": (
        lone(*reasoning("r", "h", "m"), *text("m", "a"), snapshot(message("m"))),
        lone(*reasoning("r", "h", "m"), *text("m", "a"), snapshot(message("r", "hm", "reasoning"), message("m"))),
    ),
    "late results": (
        run(*call("c", "{", "}"), result("c")),
        run(
            *call("c", "{", "}"),
            result("c"),
            snapshot(
                message("u", "hello", "user"),
                {"id": "c", "role": "assistant"}
                | {"toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"id": "c-result", "toolCallId": "c", "role": "tool", "content": "done"},
            ),
        ),
    ),
    "something shown": (run(), [START, {"type": "STATE_SNAPSHOT", "snapshot": {"before": True}}, FINISH]),
}
"""A stream before and after each rule, all by itself."""

PUBLISHED = [Version(0, 0, patch) for patch in range(FIRST.patch, LAST.patch + 1)] + [Version(1, 0, 0)]


def alone(rule: str, version: Version) -> tuple[str, ...]:
    return tuple(row.name for row in RULES if row.name != rule and row.first <= version <= row.last)


def test_every_rule_has_a_case() -> None:
    assert {row.name for row in RULES} - {"framing"} == set(CASES)


@pytest.mark.parametrize("rule", CASES)
def test_what_a_rule_does_from_its_first_to_its_last_version_and_nowhere_else(rule: str) -> None:
    before, after = CASES[rule]
    assert before != after
    (row,) = [row for row in RULES if row.name == rule]
    for version in PUBLISHED:
        wanted = after if row.first <= version <= row.last else before
        assert through(before, version, without=alone(rule, version)) == wanted, str(version)


LOSSES: list[tuple[list[Wire], str, dict[tuple[str, str | None], int]]] = [
    (lone(SUBAGENT, SUBAGENT), "0.0.58", {("legacy.subagent", "SUBAGENT_STARTED"): 2}),
    (lone(activity()), "0.0.40", {("legacy.activity", "ACTIVITY_SNAPSHOT"): 1}),
    (lone(REASONED[0]), "0.0.36", {("legacy.reasoning", "REASONING_START"): 1}),
    (lone(REASONED[0]), "0.0.44", {("legacy.thinking", "REASONING_START"): 1}),
    (lone(UNKNOWN), "0.0.59", {("legacy.unknown-type", "OF_THE_FUTURE"): 1}),
    (lone(chunk("a")), "0.0.59", {("legacy.chunk", "TEXT_MESSAGE_CHUNK"): 1}),
    (lone(*text("m", role="user")), "0.0.36", {("legacy.role", "TEXT_MESSAGE_START"): 1}),
    (lone(result("c", [IMAGE])), "0.0.59", {("legacy.result-parts", "TOOL_CALL_RESULT"): 1}),
    (run(snapshot(message("u", [IMAGE], **USER))), "0.0.48", {("legacy.message-parts", "MESSAGES_SNAPSHOT"): 1}),
    (run(snapshot(message("u", role="oracle"))), "0.0.59", {("legacy.message", None): 1}),
    (outcome(type="interrupt", interrupts=[INTERRUPT]), "0.0.59", {("legacy.interrupt", "RUN_FINISHED"): 1}),
    (outcome(type="cancelled"), "0.0.59", {("legacy.outcome", "RUN_FINISHED"): 1}),
    (outcome(type="success", pendingToolCallIds=[]), "0.0.59", {("legacy.pending-calls", "RUN_FINISHED"): 1}),
    (lone(text("m")[0], STATE, STATE, text("m")[1]), "0.0.36", {("legacy.order", "STATE_SNAPSHOT"): 2}),
    (
        lone(*step("a", *step("b"))),
        "0.0.30",
        {("legacy.step", "STEP_STARTED"): 1, ("legacy.step", "STEP_FINISHED"): 1},
    ),
    ([*lone(), *lone()], "0.0.36", {("legacy.runs", "RUN_STARTED"): 1}),
    ([START, ERROR, START], "0.0.58", {("legacy.after-error", "RUN_STARTED"): 1}),
    (lone(*text("m"), *text("m")), "0.0.43", {("legacy.text-id", "TEXT_MESSAGE_START"): 1}),
    (
        lone(*text("m"), *text("n"), *call("c", parentMessageId="m")),
        "0.0.51",
        {("legacy.parent", "TOOL_CALL_START"): 1},
    ),
    (run(snapshot(message("m"))), "0.0.45", {("legacy.forgotten", "MESSAGES_SNAPSHOT"): 1}),
    (lone(*text("m", "a"), *call("c", "{}"), result("c"), *text("n", "b")), "0.0.44", {}),
    (lone(*text("m", ""), {"type": "RAW", "event": None}), "0.0.36", {}),
]


@pytest.mark.parametrize(("stream", "version", "losses"), LOSSES)
def test_each_loss_is_said_once_with_its_count(
    stream: list[Wire], version: str, losses: dict[tuple[str, str | None], int]
) -> None:
    said: list[Diagnostic] = []
    through(stream, version, said)
    assert {(one.code, one.event_type): one.detail["count"] for one in said} == losses
    assert all(one.detail["level"] == f"ag-ui/{version}" in one.message for one in said)


def test_types_that_an_agent_invents_are_not_counted_apart_for_ever() -> None:
    said: list[Diagnostic] = []
    through(lone(*({"type": f"TYPE_{number}" + "x" * 1000} for number in range(1000))), "0.0.59", said)
    assert len(said) <= 101
    assert sum(one.detail["count"] for one in said) == 1000
    assert all(len(one.message) < 300 for one in said)


def test_untouched_events_leave_as_the_same_objects() -> None:
    stream = [decode_event(event) for event in run(*text("m", "a"), *call("c", "{}"), STATE)]
    for version in PUBLISHED:
        downgrade = Downgrade(f"ag-ui/{version}", INPUT, ignore)
        out = [one for event in stream for one in downgrade.feed(event)] + list(downgrade.flush())
        assert len(out) == len(stream)
        assert all(one is event for one, event in zip(out, stream, strict=True)), str(version)


DATA: list[Wire] = [
    {"type": "CUSTOM", "name": "n", "value": None},
    {"type": "CUSTOM", "name": "n", "value": {"a": None}},
    {"type": "RAW", "event": None},
    {"type": "STATE_SNAPSHOT", "snapshot": None},
    {"type": "STATE_SNAPSHOT", "snapshot": {"a": None}},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": None}]},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "P", "content": {"a": None}},
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "rawEvent": None, "metadata": {"a": None}},
    {**FINISH, "result": None},
    {**START, "input": {"state": None, "forwardedProps": None, "tools": [{"name": "f", "parameters": None}]}},
    {**START, "input": {"state": {"a": None}, "resume": [{"interruptId": "i", "status": "resolved", "payload": None}]}},
    snapshot({"id": "p", "role": "activity", "activityType": "P", "content": {"a": None}}),
]
"""Events whose nulls mean something."""


@pytest.mark.parametrize("event", DATA)
def test_a_null_that_is_data_stays(event: Wire) -> None:
    assert through([event], LAST, without=alone("nulls", LAST)) == [event]


ODD: list[Any] = [None, 0, "", [], ["a"], {}, {"a": None}, [{"id": [], "role": []}], [{"id": {}, "role": "tool"}]]


@pytest.mark.parametrize("version", ["0.0.30", "0.0.37", "0.0.43", "0.0.45", "0.0.49", "0.0.59"])
def test_no_value_of_any_field_makes_a_rule_raise(version: str) -> None:
    every = {(event["type"], *sorted(event)): event for stream in STREAMS.values() for event in stream}
    for event in every.values():
        for name in {*event, "role"} - {"type"}:
            for odd in ODD:
                through([START, {**event, name: odd}, snapshot(message("m")), {**result("c"), "role": odd}], version)


def test_a_thought_that_shares_its_id_with_a_call_is_carried_once() -> None:
    stream = run(*reasoning("a", "hm"), *call("a", "{}"), snapshot(message("a", "hm", "reasoning")), snapshot())
    assert through(stream, "0.0.45") == [*stream[:-2], snapshot(message("a", "hm", "reasoning")), FINISH]


def test_what_json_has_no_form_for_is_said_to_whoever_listens() -> None:
    said: list[Diagnostic] = []
    event: Any = ActivitySnapshotEvent(message_id="p", activity_type="P", content={"a": object()})
    list(Downgrade("ag-ui/0.0.40", INPUT, said.append).feed(event))
    assert [one.code for one in said] == ["encode.object"]


def test_a_call_behind_a_thought_is_no_part_of_a_message_that_is_not_the_last_to_later_clients() -> None:
    stream = run(*text("m", "a"), *REASONED, *call("c", "{}", parentMessageId="m"))
    for version in ("0.0.37", "0.0.44"):  # 0.0.45, which reads these, makes a message of a thought
        (start,) = [event for event in through(stream, version) if event["type"] == "TOOL_CALL_START"]
        assert "parentMessageId" not in start
    direct = run(*REASONED, *text("m", "a"), *call("c", "{}", parentMessageId="m"))
    assert call("c", parentMessageId="m")[0] in through(direct, "0.0.44")


def test_an_interrupt_keeps_its_outcome_where_asked_and_known() -> None:
    interrupt = {"type": "interrupt", "interrupts": [INTERRUPT]}
    assert through(outcome(**interrupt), "0.0.54", interrupts="structured") == outcome(**interrupt)
    odd = outcome(**interrupt, more=1)  # a field that 1.0 strips and these give up on
    assert through(odd, "0.0.59", interrupts="structured") == outcome(**interrupt)


def test_an_interrupt_that_the_agent_itself_told_in_the_old_way_is_not_told_twice() -> None:
    told = named("on_interrupt", value="May I?")
    stream = [START, STATE, told, {**FINISH, "outcome": {"type": "interrupt", "interrupts": [INTERRUPT]}}]
    assert through(stream, "0.0.53") == [START, STATE, told, FINISH]
    again = [*stream, *outcome(type="interrupt", interrupts=[INTERRUPT])]
    assert [event["type"] for event in through(again, "0.0.53")].count("CUSTOM") == 2


@pytest.mark.parametrize("lost", [{"type": "cancelled"}, {"type": "moot", "why": [1]}])
def test_an_outcome_that_is_not_known_is_named_in_a_custom_event(lost: Wire) -> None:
    after = [START, STATE, named("RUN_FINISHED", value={"outcome": lost}), FINISH]
    assert through(outcome(**lost), "0.0.59") == after


def test_what_one_run_left_open_is_told() -> None:
    left: list[Any] = []
    interrupt = {"type": "interrupt", "interrupts": [INTERRUPT]}
    through([*lone(), *outcome(**interrupt)], "0.0.59", on_interrupts=left.append)
    through(outcome(type="success"), "1.0.0", on_interrupts=left.append)
    assert [list(one) for one in left] == [[], [INTERRUPT]]


def test_spans_of_reasoning_that_overlap_are_one_and_messages_follow_each_other() -> None:
    stream = lone(
        {"type": "REASONING_START", "messageId": "a"},
        {"type": "REASONING_START", "messageId": "b"},
        *woven(reasoning("a", "1", "2"), reasoning("b", "3"), text("m", "x")),
        {"type": "REASONING_END", "messageId": "b"},
        {"type": "REASONING_END", "messageId": "a"},
    )
    out = [(e["type"].removeprefix("THINKING_"), e.get("delta")) for e in through(stream, "0.0.44")[2:-1]]
    assert [one for one in out if not one[0].startswith("TEXT_MESSAGE") or one[1] in ("1", "2", "3")] == [
        ("START", None),
        ("TEXT_MESSAGE_CONTENT", "1"),
        ("TEXT_MESSAGE_CONTENT", "2"),
        ("TEXT_MESSAGE_CONTENT", "3"),
        ("END", None),
    ]


@pytest.mark.parametrize("ending", [ERROR, FINISH])
def test_what_waits_comes_before_the_end_and_is_ended(ending: Wire) -> None:
    stream = [START, *text("m", "a")[:2], *call("c", "{}")[:2], STATE, ending]
    assert through(stream, "0.0.36") == [START, *text("m", "a"), *call("c", "{}"), STATE, ending]


@pytest.mark.parametrize("version", ["0.0.30", "0.0.36", "0.0.44", "0.0.58"])
def test_a_failure_is_passed_on_behind_what_is_open(version: str) -> None:
    error = ValueError()
    downgrade = Downgrade(f"ag-ui/{version}", INPUT, ignore)
    for event in (START, *text("m", "a")[:2], STATE):
        list(downgrade.feed(decode_event(event)))
    events, raised = downgrade.fail(error)
    assert raised is error
    left = [event.type for event in events]
    assert left == (["TEXT_MESSAGE_END", "STATE_SNAPSHOT"] if version in ("0.0.30", "0.0.36") else [])


def test_a_failure_before_the_start_shows_0_0_30_something() -> None:
    events, _ = Downgrade("ag-ui/0.0.30", INPUT, ignore).fail(ValueError())
    assert [event.type for event in events] == ["RUN_STARTED", "STATE_SNAPSHOT"]
    assert Downgrade("ag-ui/0.0.33", INPUT, ignore).fail(ValueError())[0] == []


def test_the_end_of_a_run_waits_for_the_end_of_the_stream_where_another_may_follow() -> None:
    downgrade = Downgrade("ag-ui/0.0.36", INPUT, ignore)
    assert list(downgrade.feed(decode_event(FINISH))) == []
    (finished,) = downgrade.flush()
    assert finished.type == "RUN_FINISHED"
    after = Downgrade("ag-ui/0.0.37", INPUT, ignore).feed(decode_event(FINISH))
    assert [event.type for event in after] == ["RUN_FINISHED"]


def test_a_result_for_a_later_client_is_not_snapshot_over_its_history() -> None:
    said: list[Diagnostic] = []
    history = snapshot(message("u", [TEXT_PART], **USER))
    stream = [START, {**history, "messages": [*history["messages"], message("x", role="user")]}, result("c"), FINISH]
    out = through(stream, "0.0.30", said)
    assert [event["type"] for event in out] == ["RUN_STARTED", *["MESSAGES_SNAPSHOT", "TOOL_CALL_RESULT"], *_LATE]
    downgrade = Downgrade("ag-ui/0.0.30", _with_parts(), said.append)
    late = [one.type for event in run(result("c")) for one in downgrade.feed(decode_event(event))]
    late += [one.type for one in downgrade.flush()]
    assert late == ["RUN_STARTED", "TOOL_CALL_RESULT", "STATE_SNAPSHOT", "RUN_FINISHED"]
    assert "legacy.late-result" in {one.code for one in said}


_LATE = ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]


def _with_parts() -> Any:
    from agui_pipeline.translators import run_input

    return run_input(messages=[message("u", [TEXT_PART], **USER)])


@pytest.mark.parametrize(
    "frame",
    [
        b'data:{"type":"CUSTOM","name":"n","value":1}\n\n',
        b'id: 1\ndata: {"type":"CUSTOM","name":"n","value":1}\n\n',
        b'data: {"type":"CUSTOM",\ndata: "name":"n","value":1}\n\n',
        b': hi\r\ndata: {"type":"CUSTOM","name":"n","value":1}\r\n\r\n',
        b'data: {"type":"CUSTOM","name":"n","value":1}\n\n',
    ],
)
def test_every_event_is_one_line_of_data(frame: bytes) -> None:
    from agui_pipeline.translators import SSEDecoder
    from agui_pipeline.translators._sse import decode_frame

    (decoded,) = SSEDecoder().feed(frame)
    (event,) = Downgrade("ag-ui/0.0.42", INPUT, ignore).feed(decode_frame(decoded))
    sent = encode_sse(event)
    assert sent.startswith(b"data: {")
    assert sent.count(b"\n") == 2
    assert b"\r" not in sent
    assert json.loads(sent[6:]) == {"type": "CUSTOM", "name": "n", "value": 1}


def test_frames_are_decoded_as_they_come() -> None:
    assert encode_sse(framed(STATE)).startswith(b": hello\nid: 1\ndata:{")
