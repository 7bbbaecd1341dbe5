"""What becomes of each event in each dialect, of each ending, and what is said about what is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest
from ag_ui import core
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import ConfigurationError, SSEDecoder, decode_event, encode_event, encode_sse, run_input
from agui_pipeline.translators._events import EVENT_CLASSES
from agui_pipeline.translators._guard import GuardTranslator
from agui_pipeline.translators.superagent import COMPATIBLE, ENVELOPED, FLAT, downgrade
from agui_pipeline.translators.superagent._reading import READS
from tests.event_samples import SAMPLES, VALUES, stream_of, variants
from tests.streams import make_stream
from tests.translators.superagent.kit import (
    DIALECTS,
    FINISH,
    READERS,
    START,
    Down,
    Wire,
    call,
    cuts,
    delta_of,
    interrupted,
    joined,
    message,
    result,
    text,
    thought,
)
from tests.translators.superagent.scenario import EVENTS as SCENARIO

ALL = pytest.mark.parametrize("dialect", DIALECTS)


def run(dialect: str, *events: Wire, **options: Any) -> Down:
    """A stream of one run."""
    return Down(dialect, [START, *events, FINISH], **options)


# Text, code and reasoning.


def test_text_brings_the_message_so_far() -> None:
    down = run(ENVELOPED, *message("Hel", "", "lo"), *message("Bye", id="m2"), text(".", "m2"))
    assert down.of("text") == [
        {"content": "Hel", "delta": "Hel"},
        {"content": "Hello", "delta": "lo"},
        {"content": "Bye", "delta": "Bye"},
        {"content": "Bye.", "delta": "."},
    ]


def test_code_brings_the_block_so_far_and_text_goes_on_without_it() -> None:
    down = run(ENVELOPED, *message("a\n```py\nx\n", "y\n```\nb\n", "```\nz\n```"))
    assert [(kind, data) for kind, data in down.said if kind != "done"] == [
        ("text", {"content": "a\n", "delta": "a\n"}),
        ("code_block", {"language": "py", "code": "x\n", "delta": "x\n"}),
        ("code_block", {"language": "py", "code": "x\ny\n", "delta": "y\n"}),
        ("text", {"content": "a\nb\n", "delta": "b\n"}),
        ("code_block", {"language": "", "code": "z\n", "delta": "z\n"}),
    ]


@pytest.mark.parametrize("dialect", [ENVELOPED, FLAT])
def test_code_is_told_from_text_wherever_the_pieces_are_cut(dialect: str) -> None:
    source = "See:\n ```py\n x = '`'\n```\r\nand\n````\n```\n````\nDone ```"
    text_, code = "See:\nand\nDone ```", "x = '`'\n```\n"
    for pieces in cuts(source):
        down = run(dialect, *message(*pieces))
        assert (joined(dialect, down, "text"), joined(dialect, down, "code_block")) == (text_, code)
        kinds = [kind for kind, _ in groupby(kind for kind, _ in down.said)]
        assert kinds == ["text", "code_block", "text", "code_block", "text", "done"]
        if dialect == ENVELOPED:
            assert down.of("text")[-1]["content"] == text_
            assert down.of("code_block")[-1] == {"language": "", "code": "```\n"} | {
                "delta": down.of("code_block")[-1]["delta"]
            }


def test_reasoning_brings_the_reasoning_so_far() -> None:
    assert run(ENVELOPED, *thought("a", "b", "```\nc")).of("thinking")[1:] == [
        {"content": "ab", "delta": "b"},
        {"content": "ab```\nc", "delta": "```\nc"},
    ]


def test_reasoning_of_before_1_0_is_reasoning() -> None:
    event = {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "a"}
    assert run(FLAT, {"type": "THINKING_TEXT_MESSAGE_START"}, event).of("thinking") == [{"content": "a"}]


@ALL
def test_messages_that_interleave_keep_their_own_text_and_code(dialect: str) -> None:
    events = [text("a\n```py\n", "1"), text("b\n``", "2"), text("x\n", "1"), text("`js\ny\n", "2"), text("```\n", "1")]
    down = run(dialect, *events)
    if dialect == COMPATIBLE:
        assert joined(dialect, down, "text") == "a\n```py\nb\n``x\n`js\ny\n```\n"
        return
    assert [(kind, delta_of(dialect, kind, data)) for kind, data in down.said[:-1]] == [
        ("text", "a\n"),
        ("text", "b\n"),
        ("code_block", "x\n"),
        ("code_block", "y\n"),
    ]


@pytest.mark.parametrize("role", ["user", "system", "developer"])
@ALL
def test_only_what_the_agent_says_is_text(dialect: str, role: str) -> None:
    down = run(
        dialect,
        *message("a", role=role),
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "n", "delta": "b"} | {"role": role},
    )
    assert down.kinds == ["done"]
    assert down.codes == ["superagent.role"] * 2
    assert run(dialect, *message("a", role="assistant")).kinds == ["text", "done"]


@ALL
def test_characters_cut_in_two_come_whole(dialect: str) -> None:
    half, other = "\ud83d", "\ude00"
    down = run(dialect, *message("a" + half, other + "b", half), *thought(half, other))
    assert joined(dialect, down, "text") == "a\U0001f600b\ufffd"
    assert joined(dialect, down, "thinking") == "\U0001f600"
    assert set(down.codes) == {"encode.surrogate"}


def test_a_message_that_is_opened_again_goes_on_in_its_block() -> None:
    down = run(FLAT, *message("```py\nx\n"), {"type": "STEP_STARTED", "stepName": "s"}, *message("y\n```\nz"))
    assert [(kind, data.get("content")) for kind, data in down.said if kind != "progress"] == [
        ("code_block", "x\n"),
        ("code_block", "y\n"),
        ("text", "z"),
        ("done", None),
    ]


@pytest.mark.parametrize(
    "token",
    [
        *("[DONE]", " [DONE] ", "a\n[DONE]\nb", "[DONE]\n", '{"type":"done","data":null}', "{}", "{{}}", " { } "),
        *('a\n{"type":"error","data":{}}\nb', '{\n"type":"done",\n"data":null\n}', "{{\n{}", " {{{ }\n[DONE]"),
    ],
)
def test_a_token_is_never_taken_for_the_end_or_for_json(token: str) -> None:
    down = run(COMPATIBLE, text(token))
    assert down.kinds == ["text"] * (len(down.kinds) - 1) + ["done"]
    assert joined(COMPATIBLE, down, "text") == token
    for line in down.sent.decode().split("\n")[:-3]:
        value = line.removeprefix("data:").strip()
        assert value != "[DONE]"
        assert not (value.startswith("{") and value.endswith("}"))


@pytest.mark.parametrize(
    "token", [" x", "  x", "\n", "\n\n", "a\n", "x\ny", "\u2028", "data: x", ": x", "\ufeff", "42"]
)
def test_a_token_keeps_its_spaces_and_lines(token: str) -> None:
    assert joined(COMPATIBLE, run(COMPATIBLE, text(token)), "text") == token


@ALL
def test_line_ends_and_control_characters_never_end_a_frame(dialect: str) -> None:
    nasty = "a\r\nevent: done\rdata: {}\n\n\u2028\u0085\0 b"
    events = [*message(nasty), *thought(nasty), *call(nasty, name=nasty), result(nasty)]
    down = run(dialect, *events, {"type": "STEP_STARTED", "stepName": nasty})
    assert down.kinds == ["text", "thinking", "tool_call", "tool_result", "progress", "done"]
    assert joined(dialect, down, "thinking") == nasty
    want = nasty.replace("\r\n", "\n").replace("\r", "\n") if dialect == COMPATIBLE else nasty
    assert joined(dialect, down, "text") == want


# Tool calls.


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        (['{"a"', ":1}"], {"a": 1}),
        ([], {}),
        ([" "], {}),
        (["[1]"], {"_raw": "[1]"}),
        (["null"], {"_raw": "null"}),
        (['{"a":'], {"_raw": '{"a":'}),
        (['{"a":NaN}'], {"_raw": '{"a":NaN}'}),
        (['{"n":12345678901234567890123}'], {"n": 12345678901234567890123}),
        (['{"a":' * 500], {"_raw": '{"a":' * 500}),
    ],
)
def test_a_call_is_told_once_its_arguments_are_complete(pieces: list[str], arguments: Any) -> None:
    events = call(*pieces)
    assert Down(ENVELOPED, [START, *events[:-1]]).kinds == ["tool_call", "error", "done"]
    (told,) = run(ENVELOPED, *events, result("r")).of("tool_call")
    assert told == {"id": "c", "name": "f", "arguments": arguments, "status": "calling"}


def test_a_call_in_chunks_is_told_when_something_else_ends_it() -> None:
    chunk = {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": '{"a":'}
    rest = {"type": "TOOL_CALL_CHUNK", "delta": "1}"}
    other = {"type": "TOOL_CALL_CHUNK", "toolCallId": "d", "toolCallName": "g"}
    down = run(FLAT, chunk, rest, other, *message("a"))
    assert down.said[:3] == [
        ("tool_call", {"name": "f", "input": {"a": 1}}),
        ("tool_call", {"name": "g", "input": {}}),
        ("text", {"content": "a"}),
    ]


def test_a_result_before_the_end_of_its_call_comes_behind_the_call() -> None:
    start, args, end = call('{"a":1}')
    down = run(ENVELOPED, start, args, result("r"), {**args, "delta": "late"}, end)
    assert down.kinds == ["tool_call", "tool_result", "done"]
    assert down.of("tool_call")[0]["arguments"] == {"a": 1}
    assert down.codes == ["superagent.late-arguments"]


def test_a_call_is_told_once_however_often_it_is_made() -> None:
    down = run(ENVELOPED, *call("{}"), *call("{}"), *call("{}", id="d"))
    assert [told["id"] for told in down.of("tool_call")] == ["c", "d"]
    assert down.codes == ["superagent.call-again", "superagent.late-arguments"]


@pytest.mark.parametrize("failed", [True, False])
def test_updates_tell_the_outcome_of_a_call_before_its_result(failed: bool) -> None:
    events = [*call('{"a":1}'), result("r", metadata={"is_error": failed})]
    for dialect in (ENVELOPED, COMPATIBLE):
        down = run(dialect, *events, tool_call_updates=True)
        assert down.kinds == ["tool_call", "tool_call", "tool_result", "done"]
        status = "error" if failed else "success"
        assert down.of("tool_call")[1] == {"id": "c", "name": "f", "arguments": {"a": 1}, "status": status}
    assert run(FLAT, *events, tool_call_updates=True).kinds == ["tool_call", "tool_result", "done"]


PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
IMAGE = {"type": "image", "source": {"type": "url", "value": "u"}}


@pytest.mark.parametrize(
    ("content", "as_text", "as_output"),
    [
        ("plain", "plain", "plain"),
        ('{"a": 1}', '{"a": 1}', {"a": 1}),
        (' [1, "x"]', ' [1, "x"]', [1, "x"]),
        ("{broken", "{broken", "{broken"),
        ("42", "42", "42"),
        ("null", "null", "null"),
        ("", "", ""),
        (PARTS, "ab", "ab"),
        ([*PARTS[:1], IMAGE], json.dumps([*PARTS[:1], IMAGE], separators=(",", ":")), [*PARTS[:1], IMAGE]),
    ],
)
def test_a_result_is_text_or_any_json(content: Any, as_text: str, as_output: Any) -> None:
    (told,) = run(ENVELOPED, *call(), result(content)).of("tool_result")
    assert told == {"id": "c", "name": "f", "result": as_text, "is_error": False}
    (told,) = run(FLAT, *call(), result(content)).of("tool_result")
    assert told == {"name": "f", "output": as_output}


def snapshot(*messages: Wire) -> Wire:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


CALLED = {"id": "1", "role": "assistant", "toolCalls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}
FAILED = {"id": "2", "role": "tool", "toolCallId": "c", "content": "no", "error": "broke"}


@pytest.mark.parametrize(
    ("events", "is_error", "error"),
    [
        ([*call(), result("r")], False, None),
        ([*call(), result("r", metadata={"is_error": True})], True, "r"),
        ([*call(), result("r", metadata={"is_error": False}), snapshot(FAILED)], False, None),
        ([snapshot(CALLED, FAILED), result("r")], True, "broke"),
        ([snapshot(CALLED, FAILED), result("r", metadata={"is_error": False})], False, None),
        ([*call(), snapshot(CALLED, FAILED)], True, "broke"),
        ([*call(), snapshot(CALLED, FAILED), result("no")], True, "broke"),
        ([*call()[:1], snapshot(FAILED)], True, "broke"),
        ([{**START, "input": {"messages": [CALLED]}}, result("r")], False, None),
    ],
)
def test_whether_a_result_is_an_error_and_whose_it_is(events: list[Wire], is_error: bool, error: Any) -> None:
    (told,) = run(ENVELOPED, *events).of("tool_result")
    assert (told["id"], told["name"], told["is_error"]) == ("c", "f", is_error)
    (told,) = run(FLAT, *events).of("tool_result")
    assert (told["name"], told.get("error")) == ("f", error)


def test_an_error_that_is_known_too_late_is_said_to_be() -> None:
    down = run(ENVELOPED, *call(), result("r"), snapshot(CALLED, FAILED))
    assert down.codes == ["superagent.late-error"]


def test_results_of_the_history_are_not_told_again() -> None:
    assert run(ENVELOPED, snapshot(CALLED, FAILED)).kinds == ["done"]


# What only a snapshot has.

ASKED = {"id": "u", "role": "user", "content": "hello"}
ANSWERED = {"id": "m", "role": "assistant", "content": "a\n```py\nx\n```\n"}
WITH_ASKED = run_input(messages=[ASKED])


@pytest.mark.parametrize("last", [FINISH, {"type": "RUN_ERROR", "message": "m"}, None])
def test_an_answer_that_was_not_streamed_is_told_at_the_end_of_the_run(last: Wire | None) -> None:
    shown = [
        START,
        *call(),
        snapshot(ASKED),
        snapshot({"id": "0", "role": "assistant", "content": "old"}, ASKED, ANSWERED),
    ]
    down = Down(ENVELOPED, [*shown, result("r"), *([last] if last else [])], input=WITH_ASKED)
    assert down.of("text") == [{"content": "a\n", "delta": "a\n"}]
    assert down.of("code_block") == [{"language": "py", "code": "x\n", "delta": "x\n"}]
    assert down.kinds[:4] == ["tool_call", "tool_result", "text", "code_block"]
    assert "superagent.lost" not in down.codes
    events = [{**START, "input": {"messages": [ASKED]}}, *shown[1:], FINISH]
    assert joined(FLAT, Down(FLAT, events), "text") == "a\n"


@pytest.mark.parametrize(
    ("streamed", "shown", "text_", "lost"),
    [
        ([*message("a")], [ASKED, {**ANSWERED, "content": "a"}], "a", False),
        ([*message("a ", id="other")], [ASKED, {**ANSWERED, "content": "a"}], "a ", False),
        ([], [ASKED, ANSWERED | {"content": "a"}, ANSWERED | {"id": "n", "content": "b"}], "ab", False),
        ([], [ANSWERED], "", True),
        ([], [ANSWERED, ASKED], "", False),
        ([*message(id="m")], [ANSWERED | {"content": ""}], "", False),
        ([], [ASKED, ANSWERED | {"content": [{"type": "text"}]}], "", True),
        ([*call()], [ASKED, CALLED], "", False),
        ([], [ASKED, CALLED], "", True),
        ([], [ASKED, CALLED | {"content": "a"}], "a", True),
        ([], [ASKED, {"id": "v", "role": "user", "content": "a"}, 5, None, {}], "", False),
        ([], "odd", "", False),
    ],
)
def test_of_a_snapshot_only_what_is_new_is_told_and_only_what_is_lost_is_said(
    streamed: list[Wire], shown: Any, text_: str, lost: bool
) -> None:
    events = [*streamed, {"type": "MESSAGES_SNAPSHOT", "messages": shown}]
    down = run(COMPATIBLE, *events, input=WITH_ASKED)
    assert joined(COMPATIBLE, down, "text") == text_
    assert [(loss.code, loss.event_type) for loss in down.diagnostics] == (
        [("superagent.lost", "MESSAGES_SNAPSHOT")] if lost else []
    )


def test_what_one_run_told_is_no_news_in_the_next() -> None:
    first = [START, *message("a", id="m"), FINISH]
    shown = snapshot(
        ASKED, {**ANSWERED, "content": "a"}, {"id": "v", "role": "user"}, ANSWERED | {"id": "n", "content": "b"}
    )
    down = Down(FLAT, [*first, START, shown, FINISH, START, shown, FINISH], input=WITH_ASKED)
    assert joined(FLAT, down, "text") == "ab"
    assert down.codes == []


def test_the_tool_of_a_call_of_another_run_is_known_from_the_input() -> None:
    down = run(FLAT, result("r"), input=run_input(messages=[CALLED]))
    assert down.of("tool_result") == [{"name": "f", "output": "r"}]


# A run that goes on: what its reader was shown before.

UNSTREAMED = snapshot(ASKED, ANSWERED, {"id": "n", "role": "assistant", "content": "Ulm it is"})
RESUMED = run_input(resume=[{"interruptId": "i", "status": "resolved", "payload": {"city": "Ulm"}}])


@pytest.mark.parametrize(
    ("shown", "text_", "lost"),
    [
        ((), "", True),
        (["elsewhere"], "", True),
        ([ANSWERED["id"]], "Ulm it is", False),
        ([ASKED["id"], ANSWERED["id"], "elsewhere"], "Ulm it is", False),
        (["n"], "", False),
    ],
)
def test_what_stands_behind_what_was_shown_is_new(shown: Any, text_: str, lost: bool) -> None:
    down = run(COMPATIBLE, UNSTREAMED, input=RESUMED, shown=shown)
    assert joined(COMPATIBLE, down, "text") == text_
    assert down.codes == (["superagent.lost"] if lost else [])


@pytest.mark.parametrize("updates", [False, True])
@ALL
def test_a_call_that_was_shown_is_not_told_again_but_its_result_is(dialect: str, updates: bool) -> None:
    events = [*call('{"a":', "1}"), result("r"), *call(id="d", name="g")]
    down = run(dialect, *events, shown={"c"}, tool_call_updates=updates)
    expected = ["tool_result", "tool_call", "done"]
    if updates and dialect != FLAT:
        expected.insert(0, "tool_call")
        assert down.of("tool_call")[0] == {"id": "c", "name": "f", "arguments": {"a": 1}, "status": "success"}
    assert down.kinds == expected
    assert down.of("tool_result")[0]["name"] == "f"
    assert down.codes == []


@pytest.mark.parametrize(
    ("events", "told", "codes"),
    [
        (call(), [], []),  # and it waits again
        (call()[:1], [], []),
        ([{"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": "{}"}], [], []),
        ([*call(), *call()], [], ["superagent.call-again"]),
        ([result("r")], ["tool_result"], []),  # not said again which call it was
        ([snapshot(CALLED, FAILED)], ["tool_result"], []),
        ([*call(), snapshot(CALLED, FAILED), result("no")], ["tool_result"], []),
        ([*call(), result("r"), FINISH, START, *call()], ["tool_result", "tool_call"], []),  # of another run
    ],
)
def test_whatever_is_said_of_a_call_that_was_shown(events: list[Wire], told: list[str], codes: list[str]) -> None:
    down = run(ENVELOPED, *events, shown=["c"])
    assert down.kinds == [*told, "done"]
    assert down.codes == codes


# Progress and agents.


def activity(content: Any, id: str = "a", **more: Any) -> Wire:
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "work", "content": content, **more}


def patch(*operations: Wire) -> Wire:
    return {"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "work", "patch": list(operations)}


def put(path: str, value: Any) -> Wire:
    return {"op": "replace", "path": path, "value": value}


def test_steps_are_counted() -> None:
    events = [{"type": "STEP_STARTED", "stepName": name} for name in ("a", "b")]
    assert run(ENVELOPED, *events, agent_id="main").of("progress") == [
        {"agent_name": "main", "step": "a", "total": 0, "current": 1},
        {"agent_name": "main", "step": "b", "total": 0, "current": 2},
    ]
    assert run(FLAT, *events).of("progress")[1] == {"step": 2, "total": 0, "label": "b"}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([activity({"current": 1, "total": 3, "step": "x"})], [("x", 1, 3)]),
        ([activity({"current": 1, "total": 3, "label": "x"})], [("x", 1, 3)]),
        ([activity({"current": 0.5, "total": 1})], [("work", 0.5, 1)]),
        ([activity({"current": True, "total": 3})], []),
        ([activity({"current": "1", "total": 3})], []),
        ([activity({"current": 1})], []),
        ([activity([1])], []),
        ([activity({"current": 1, "total": 3}), patch(put("/current", 2))], [("work", 1, 3), ("work", 2, 3)]),
        ([activity({"current": 1, "total": 3}), patch(put("/other/deep", 2))], [("work", 1, 3)]),
        ([activity({"current": 1, "total": 3}), activity({"current": 1, "total": 3, "more": 1})], [("work", 1, 3)]),
        ([activity({}), patch({"op": "add", "path": "", "value": {"current": 1, "total": 2}})], [("work", 1, 2)]),
        ([patch(put("/current", 2))], []),
        (
            [
                activity({"current": 1, "total": 3}),
                activity({"current": 9, "total": 9}, replace=False),
                patch(put("/current", 2)),
            ],
            [("work", 1, 3), ("work", 2, 3)],
        ),
    ],
)
def test_an_activity_with_numbers_is_progress(events: list[Wire], expected: list[Any]) -> None:
    told = run(ENVELOPED, *events).of("progress")
    assert [(data["step"], data["current"], data["total"]) for data in told] == expected


def test_a_patch_that_does_not_apply_ends_the_progress_until_the_next_snapshot() -> None:
    down = run(
        ENVELOPED,
        activity({"current": 1, "total": 3}),
        patch(put("/nowhere", 1), put("/current", 2)),
        patch(put("/current", 2)),
        activity({"current": 3, "total": 3}),
    )
    assert [data["current"] for data in down.of("progress")] == [1, 3]
    assert down.codes == ["superagent.patch"]


def test_patches_never_change_the_events() -> None:
    content, value = {"current": 1, "total": 3, "a": {}}, {"b": 1}
    events = [activity(content), patch(put("/a", value)), patch(put("/a/b", 2), put("/current", 2))]
    before = json.dumps(events)
    assert len(run(ENVELOPED, *events).of("progress")) == 2
    assert json.dumps(events) == before


def subagent(part: str, id: str = "s", **more: Any) -> Wire:
    return {"type": f"SUBAGENT_{part}", "subagentRunId": id, **more}


def test_control_goes_to_a_subagent_and_back() -> None:
    down = run(
        ENVELOPED,
        subagent("STARTED", name="a", description="because"),
        subagent("STARTED", "t", name="b", parentSubagentRunId="s"),
        {"type": "STEP_STARTED", "stepName": "x", "subagentRunId": "t"},
        subagent("FINISHED", "t"),
        subagent("ERROR", message="oh", code="E"),
        agent_id="main",
    )
    assert down.said[:-1] == [
        ("agent_switch", {"from_agent": "main", "to_agent": "a", "reason": "because"}),
        ("agent_switch", {"from_agent": "a", "to_agent": "b", "reason": ""}),
        ("progress", {"agent_name": "b", "step": "x", "total": 0, "current": 1}),
        ("agent_switch", {"from_agent": "b", "to_agent": "a", "reason": ""}),
        ("error", {"code": "E", "message": "oh"}),
        ("agent_switch", {"from_agent": "a", "to_agent": "main", "reason": "oh"}),
    ]


# Interrupts.

CONFIRM = {"name": "confirm", "type": "confirm", "label": "Confirm", "required": True}


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        (None, [CONFIRM]),
        ({}, [CONFIRM]),
        ({"type": "object", "properties": {}}, [CONFIRM]),
        ({"properties": {"a": True}}, [{"name": "a", "type": "text", "label": "a", "required": False}]),
        (
            {"properties": {"a": {"type": "string", "title": "A"}}, "required": ["a"]},
            [{"name": "a", "type": "text", "label": "A", "required": True}],
        ),
        (
            {"properties": {"a": {"type": ["boolean", "null"]}}},
            [{"name": "a", "type": "confirm", "label": "a", "required": False}],
        ),
        (
            {"properties": {"a": {"enum": ["x", 2]}, "b": {"type": "integer"}}, "required": "a"},
            [
                {"name": "a", "type": "select", "label": "a", "required": False, "options": ["x", 2]},
                {"name": "b", "type": "text", "label": "b", "required": False},
            ],
        ),
        (
            {
                "properties": {
                    "a": {"$ref": "#/$defs/A", "title": "Which?"},
                    "b": {"anyOf": [{"type": "boolean", "title": "B"}, {"type": "null"}]},
                    "c": {"$ref": "#/$defs/C"},
                    "d": {"$ref": "#/nowhere/D"},
                },
                "$defs": {"A": {"enum": ["x"], "title": "A"}, "C": {"$ref": "#/$defs/C"}},
            },
            [
                {"name": "a", "type": "select", "label": "Which?", "required": False, "options": ["x"]},
                {"name": "b", "type": "confirm", "label": "B", "required": False},
                {"name": "c", "type": "text", "label": "c", "required": False},
                {"name": "d", "type": "text", "label": "d", "required": False},
            ],
        ),
        ({"type": "boolean"}, [{"name": "answer", "type": "confirm", "label": "answer", "required": True}]),
        (
            {"enum": ["x"], "title": "T"},
            [{"name": "answer", "type": "select", "label": "T", "required": True, "options": ["x"]}],
        ),
    ],
)
def test_the_fields_are_those_of_the_response_schema(schema: Any, fields: Any) -> None:
    interrupt = {"id": "i", "reason": "r"} | ({} if schema is None else {"responseSchema": schema})
    down = Down(ENVELOPED, [START, interrupted(interrupt)])
    assert down.said == [("interrupt", {"reason": "r", "fields": fields}), ("done", None)]


def test_several_interrupts_are_told_one_by_one() -> None:
    end = interrupted({"id": "1", "reason": "r", "message": "One?"}, {"id": "2", "reason": ""})
    assert [data["reason"] for data in Down(ENVELOPED, [START, end]).of("interrupt")] == ["One?", ""]
    assert Down(FLAT, [START, end]).of("interrupt") == [
        {"reason": "r", "prompt": "One?"},
        {"reason": "need_user_input", "prompt": ""},
    ]


def test_an_interrupt_of_the_older_convention_is_one() -> None:
    custom = {"type": "CUSTOM", "name": "on_interrupt", "value": '{"message":"Sure?"}'}
    down = run(ENVELOPED, custom)
    assert down.said == [("interrupt", {"reason": "Sure?", "fields": [CONFIRM]}), ("done", None)]
    assert down.codes == []
    told = interrupted({"id": "1", "reason": "r", "message": "One?"})
    assert len(Down(ENVELOPED, [START, custom, told]).of("interrupt")) == 1


# Ends.


@pytest.mark.parametrize(
    ("last", "code", "text_"),
    [
        ({"type": "RUN_ERROR", "message": "m", "code": "C"}, "C", "m"),
        ({"type": "RUN_ERROR", "message": "m"}, "error", "m"),
        ({**FINISH, "outcome": {"type": "cancelled"}}, "run_cancelled", "The run was cancelled."),
        (None, "source_ended", "The agent stopped before its run was complete."),
        (RuntimeError("secret"), "source_error", "The agent failed."),
        (asyncio.CancelledError(), "cancelled", "The run was cancelled."),
    ],
)
@ALL
def test_every_end_is_an_error_and_done(dialect: str, last: Any, code: str, text_: str) -> None:
    fails = last if isinstance(last, BaseException) else None
    events = [START, *call()[:1], text("a\n``"), *([last] if isinstance(last, dict) else [])]
    down = Down(dialect, events, fails=fails)
    assert down.kinds[-3:] == ["tool_call", "error", "done"]
    assert down.of("error") == [{"code": code, "message": text_}]
    assert joined(dialect, down, "text") == "a\n``"


@ALL
def test_a_stream_of_nothing_ends_as_well(dialect: str) -> None:
    assert Down(dialect, []).kinds == ["error", "done"]
    assert Down(dialect, [], fails=RuntimeError()).kinds == ["error", "done"]


@ALL
def test_done_is_the_last_frame_of_all_runs(dialect: str) -> None:
    late = {"type": "RUN_ERROR", "message": "m"}
    runs = [START, *message("a"), *call(), FINISH, START, *message("b"), *call(), FINISH]
    down = Down(dialect, runs)
    assert down.kinds == ["text", "tool_call", "text", "tool_call", "done"]
    assert down.codes == []
    assert Down(dialect, [*runs, late]).kinds[-2:] == ["error", "done"]
    assert Down(dialect, [*runs, START, *message("c")]).kinds[-3:] == ["text", "error", "done"]


@ALL
def test_what_is_raised_after_the_run_is_no_error_of_the_run(dialect: str) -> None:
    assert Down(dialect, [START, FINISH], fails=RuntimeError()).kinds == ["done"]


def test_done_of_the_flat_dialect_sums_the_usage() -> None:
    usage = [{"inputTokens": 1, "outputTokens": 2}, {"inputTokens": 3, "model": "m"}, {"outputTokens": True}]
    assert Down(FLAT, [START, {**FINISH, "usage": usage}]).of("done") == [
        {"usage": {"prompt_tokens": 4, "completion_tokens": 2}}
    ]
    twice = [START, {**FINISH, "usage": usage}] * 2
    assert Down(FLAT, twice).of("done") == [{"usage": {"prompt_tokens": 8, "completion_tokens": 4}}]
    error = {"type": "RUN_ERROR", "message": "m", "usage": usage}
    assert Down(FLAT, [START, error]).of("done")[0]["usage"]["prompt_tokens"] == 4
    assert Down(FLAT, [START, {**FINISH, "usage": "odd"}]).of("done") == [
        {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    ]
    assert Down(ENVELOPED, [START, {**FINISH, "usage": usage}]).codes == ["superagent.lost"]


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(5, 5), (5.9, 5), (None, 1500), (True, 1500), ("5", 1500), (2**60, 1500), (-1, -1)]
)
def test_the_timestamp_is_the_events_or_the_clocks(timestamp: Any, expected: int) -> None:
    down = Down(ENVELOPED, [START, text("a", timestamp=timestamp), FINISH], clock=lambda: 1.5)
    assert json.loads(down.frames[0].data or "")["timestamp"] == expected


def test_the_timestamp_of_done_is_that_of_the_last_event_of_the_run() -> None:
    runs = [START, {**FINISH, "timestamp": 7}]
    times = [json.loads(frame.data or "")["timestamp"] for frame in Down(ENVELOPED, runs).frames]
    assert times == [7]
    times = [
        json.loads(frame.data or "")["timestamp"] for frame in Down(ENVELOPED, [*runs, START], clock=lambda: 1).frames
    ]
    assert times == [1000, 1000]


def test_nothing_that_is_held_is_lost_though_it_came_too_late() -> None:
    assert joined(FLAT, Down(FLAT, [START, FINISH, text("a\n``")]), "text") == "a\n``"


# Losses.


@pytest.mark.parametrize(
    "event",
    [
        {"type": "STATE_SNAPSHOT", "snapshot": {}},
        {"type": "STATE_DELTA", "delta": []},
        {"type": "RAW", "event": 1},
        {"type": "CUSTOM", "name": "n", "value": 1},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": "assistant", "content": "b"}]},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "v"},
        {"type": "OF_NEXT_YEAR", "value": 1},
        activity({"a": 1}),
    ],
)
@ALL
def test_what_has_no_frame_is_said_once(dialect: str, event: Wire) -> None:
    down = run(dialect, event, event, *message("a"))
    assert down.kinds == ["text", "done"]
    assert [(loss.code, loss.event_type) for loss in down.diagnostics] == [("superagent.lost", event["type"])]
    assert dialect in down.diagnostics[0].message


@pytest.mark.parametrize(
    ("dialect", "events", "words"),
    [
        (ENVELOPED, [{**FINISH, "result": 1}], "RUN_FINISHED.result"),
        (
            ENVELOPED,
            [{**FINISH, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}}],
            "RUN_FINISHED.outcome.pendingToolCallIds",
        ),
        (ENVELOPED, [subagent("FINISHED", result=1)], "SUBAGENT_FINISHED.result"),
        (FLAT, [subagent("STARTED", name="n", description="d")], "SUBAGENT_STARTED.description"),
        (
            FLAT,
            [interrupted({"id": "i", "reason": "r", "responseSchema": {"type": "boolean"}})],
            "RUN_FINISHED.outcome.interrupts.responseSchema",
        ),
        *(
            (
                ENVELOPED,
                [interrupted({"id": "i", "reason": "r", name: value})],
                f"RUN_FINISHED.outcome.interrupts.{name}",
            )
            for name, value in (("toolCallId", "c"), ("expiresAt", "2030-01-01T00:00:00Z"), ("metadata", {"a": 1}))
        ),
        (COMPATIBLE, [{**FINISH, "usage": [{"inputTokens": 1}]}], "RUN_FINISHED.usage"),
    ],
)
def test_fields_that_have_no_place_are_said(dialect: str, events: list[Wire], words: str) -> None:
    down = Down(dialect, [START, *events, FINISH])
    assert f"({dialect}: {words})" in down.diagnostics[0].message


def test_a_flood_of_unknown_types_makes_a_bounded_number_of_diagnostics() -> None:
    assert len(run(FLAT, *({"type": f"T{number}"} for number in range(1000))).diagnostics) == 200


def test_a_type_of_a_megabyte_makes_a_short_diagnostic() -> None:
    (loss,) = run(FLAT, {"type": "T" * 1_000_000}).diagnostics
    assert len(loss.message) < 300
    assert loss.event_type == "T" * 100


def test_every_type_of_the_sdk_has_a_row() -> None:
    assert EVENT_CLASSES.keys() <= READS.keys()


@ALL
def test_the_table_says_which_frames_an_event_makes(dialect: str) -> None:
    for before, event in [((), event) for event in SCENARIO] + [(before, event) for before, event in SAMPLES]:
        translator = downgrade(dialect, sink=lambda _: None, clock=lambda: 0.0)
        for earlier in before:
            translator.feed(decode_event(earlier))
        made: Sequence[Any] = list(translator.feed(decode_event(event)))
        kinds = {kind for kind, _ in READERS[dialect](b"".join(map(encode_sse, made)))} if made else set()
        assert kinds <= set(READS[event["type"]].gives), event
        assert not (kinds and READS[event["type"]].lost)


@pytest.mark.parametrize("dialect", ["Superagent", "", None, "ag-ui/0.1", 5])
def test_an_unknown_dialect_is_refused(dialect: Any) -> None:
    with pytest.raises(ConfigurationError, match="'superagent', 'superagent-flat', 'superagent-compatible'"):
        downgrade(dialect, sink=print, clock=lambda: 0.0)


# Models, and anything at all.


def test_models_are_read_as_wire_events_are() -> None:
    events: Sequence[Any] = [
        core.RunStartedEvent(thread_id="t", run_id="r"),
        core.TextMessageStartEvent(message_id="m", role="assistant"),
        core.TextMessageContentEvent(message_id="m", delta="```py\nx"),
        core.TextMessageEndEvent(message_id="m"),
        core.ToolCallStartEvent(tool_call_id="c", tool_call_name="f"),
        core.ToolCallArgsEvent(tool_call_id="c", delta="{}"),
        core.ToolCallEndEvent(tool_call_id="c"),
        core.ToolCallResultEvent(message_id="n", tool_call_id="c", content="r"),
        core.MessagesSnapshotEvent(messages=[core.ToolMessage(id="n", tool_call_id="c", content="r", error="e")]),
        core.StepStartedEvent(step_name="s"),
        core.ActivitySnapshotEvent(message_id="a", activity_type="w", content={"current": 1, "total": 2}),
        core.RunFinishedEvent.model_validate(interrupted({"id": "i", "reason": "r", "message": "Sure?"})),
    ]
    for dialect in DIALECTS:
        wired = [json.loads(event.model_dump_json(by_alias=True, exclude_none=True)) for event in events]
        models = Down(dialect, events)
        assert models.said == Down(dialect, wired).said
        kinds = ["code_block", "tool_call", "tool_result", "progress", "progress", "interrupt", "done"]
        assert models.kinds == (["text", *kinds[1:]] if dialect == COMPATIBLE else kinds)


@ALL
def test_fields_of_any_kind_raise_nothing(dialect: str) -> None:
    for before, event in SAMPLES:
        for _, _, spoilt in variants(event, [value for value in VALUES if value not in ("x", "assistant", 2**60)]):
            down = Down(dialect, stream_of(before, spoilt))
            assert down.kinds[-1] == "done"
            assert down.kinds.count("done") == 1


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"type": "TEXT_MESSAGE_CHUNK", "delta": "a"}, "TEXT_MESSAGE_CHUNK.messageId"),
        ({"type": "TOOL_CALL_CHUNK", "delta": "a"}, "TOOL_CALL_CHUNK.toolCallId"),
        ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": 5}, "TEXT_MESSAGE_CONTENT.delta"),
        ({"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": []}, "REASONING_MESSAGE_CONTENT.delta"),
    ],
)
def test_what_is_malformed_is_said_and_left_out(event: Wire, field: str) -> None:
    down = run(FLAT, event)
    assert down.kinds == ["done"]
    assert [f"({FLAT}: {field})" in loss.message for loss in down.diagnostics] == [True]


def test_a_lone_half_of_a_character_comes_when_its_message_ends() -> None:
    chunk = {"type": "REASONING_MESSAGE_CHUNK", "messageId": "q", "delta": "a\ud83d"}
    down = run(FLAT, chunk, *message("b"), *thought("c\ud83d", id="r"))
    assert [data["content"] for data in down.of("text", "thinking")] == ["a", "\ufffd", "b", "c", "\ufffd"]


def legal(data: st.DataObject) -> tuple[list[Wire], str, str]:
    """A legal stream without snapshots of messages, its pieces of text and reasoning numbered; and these joined."""
    made = make_stream(lambda values: data.draw(st.sampled_from(values)), longest=40, malformed=False)
    stream = [event for event in made if event["type"] != "MESSAGES_SNAPSHOT"]
    guard = GuardTranslator("t", "r", None, lambda _: None)
    given_ = [out for event in stream for out in guard.feed(decode_event(event))]
    events: list[Wire] = [json.loads(encode_event(event)) for event in [*given_, *guard.flush()]]
    said, thought_ = "", ""
    for number, event in enumerate(events):
        name = event["type"]
        if name.startswith("TEXT_MESSAGE"):
            event.pop("role", None)
        if event.get("delta") and name.startswith(("TEXT_MESSAGE", "REASONING_MESSAGE", "THINKING_TEXT")):
            event["delta"] = f"<{number}\n"
            said += event["delta"] if name.startswith("TEXT") else ""
            thought_ += event["delta"] if not name.startswith("TEXT") else ""
    return events, said, thought_


def in_order(events: list[Wire]) -> list[str]:
    """What a stream says, one behind the other, as far as it is told at once."""
    out: list[str] = []
    for event in events:
        name = event["type"]
        if event.get("delta") and name.startswith(("TEXT_MESSAGE", "REASONING_MESSAGE", "THINKING_TEXT")):
            out.append(event["delta"][:-1])
        elif name in ("RUN_ERROR", "SUBAGENT_ERROR") or (event.get("outcome") or {}).get("type") == "cancelled":
            out.append("error")
        elif name in ("TOOL_CALL_RESULT", "STEP_STARTED"):
            out.append("tool_result" if name == "TOOL_CALL_RESULT" else "progress")
    return out


def told_in_order(dialect: str, down: Down) -> list[str]:
    out: list[str] = []
    for kind, data in down.said:
        if kind in ("text", "code_block", "thinking"):
            out += delta_of(dialect, kind, data).split("\n")[:-1]
        elif kind in ("error", "tool_result") or (kind == "progress" and not data["total"]):
            out.append(kind)
    return out


@given(st.data())
def test_any_legal_stream_ends_in_one_done_keeps_order_and_joins_to_the_same_text(data: st.DataObject) -> None:
    events, said, thought_ = legal(data)
    for dialect in DIALECTS:
        down = Down(dialect, events)
        assert down.kinds[-1] == "done"
        assert down.kinds.count("done") == 1
        assert joined(dialect, down, "text", "code_block") == said
        assert joined(dialect, down, "thinking") == thought_
        assert told_in_order(dialect, down) == in_order(events)
        if dialect == ENVELOPED and len([event for event in events if event["type"] == "RUN_STARTED"]) == 1:
            ids = [call_["id"] for call_ in down.of("tool_call")]
            assert len(ids) == len(set(ids))


@given(st.data())
def test_any_stream_at_all_ends_in_one_done(data: st.DataObject) -> None:
    events = make_stream(lambda values: data.draw(st.sampled_from(values)), longest=40)
    for dialect in DIALECTS:
        kinds = Down(dialect, events, fails=RuntimeError(), tool_call_updates=True).kinds
        assert kinds[-1] == "done"
        assert kinds.count("done") == 1


@given(st.lists(st.text(alphabet='`~ \n\r[DONE]{"}ax:\ud83d\ude00\u2028', max_size=12), max_size=6))
def test_any_text_comes_out_whole_in_the_compatible_dialect(deltas: list[str]) -> None:
    whole = "".join(deltas).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    down = run(COMPATIBLE, *message(*deltas))
    # Where a CRLF is cut in two, each half ends a line: the format has no other way.
    got = joined(COMPATIBLE, down, "text")
    assert got.replace("\n", "") == whole.replace("\n", "").replace("\r", "")
    if "\r" not in whole:
        assert got == whole


@pytest.mark.parametrize("unit", ["{", "{ }", "} ", " ", "\n", "[DONE", "`", "{\n"])
def test_what_looks_odd_takes_no_longer_than_other_text(unit: str) -> None:
    """Searched again from each brace, the first of these would take minutes."""
    whole = f"{{{unit * (600_000 // len(unit))}x"
    for dialect in DIALECTS:
        assert joined(dialect, run(dialect, text(whole)), "text") == whole


def test_a_megabyte_in_one_record_passes() -> None:
    big = "x" * 1_000_000
    for dialect in DIALECTS:
        down = run(dialect, *message(big), *call(f'{{"a":"{big}"}}'), result(big))
        assert joined(dialect, down, "text") == big
        assert len(down.of("tool_call")) == 1
    assert SSEDecoder().feed(down.sent)
