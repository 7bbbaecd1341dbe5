"""What an old agent's frames become, what is believed, what is odd, and that the run is legal and ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import ConfigurationError, SSEFrame
from agui_pipeline.translators._verifier import problems_of
from agui_pipeline.translators.superagent import COMPATIBLE, ENVELOPED, FLAT, SuperagentUpgrade
from tests.translators.superagent.kit import DIALECTS, INPUT, Up, Wire, cuts
from tests.translators.superagent.test_fences import told

ALL = pytest.mark.parametrize("dialect", DIALECTS)
STARTED: Wire = {"type": "RUN_STARTED", "threadId": "thread", "runId": "run", "protocolVersion": "1.0"}
FINISHED: Wire = {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"}


def enveloped(kind: str, data: Any = None, **more: Any) -> str:
    return json.dumps({"type": kind, "timestamp": 1746000000000, "data": data, **more})


def flat(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, **fields})


def text(delta: str | None, content: str | None = None) -> str:
    given = {"content": content, "delta": delta}
    return enveloped("text", {name: value for name, value in given.items() if value is not None})


def code(delta: str, whole: str, language: str = "py") -> str:
    return enveloped("code_block", {"language": language, "code": whole, "delta": delta})


DONE = enveloped("done")
FLAT_DONE = flat("done", usage={"prompt_tokens": 0, "completion_tokens": 0})
DONE_IN: dict[str, str] = {ENVELOPED: DONE, FLAT: FLAT_DONE, COMPATIBLE: "[DONE]"}


def up(*frames: str, dialect: str = ENVELOPED) -> Up:
    return Up(dialect, [*frames, DONE_IN[dialect]])


# The documented streams.


def test_the_enveloped_stream_of_the_documentation() -> None:
    run = up(
        enveloped("thinking", {"content": "用户想了解量子计算...", "delta": "用户想了解量子计算..."}),
        enveloped(
            "tool_call", {"id": "call_1", "name": "web_search", "arguments": {"query": "AI"}, "status": "calling"}
        ),
        enveloped("tool_result", {"id": "call_1", "name": "web_search", "result": "IBM", "is_error": False}),
        text("根据", "根据"),
        text("最新研究", "根据最新研究"),
    )
    bare = [{name: value for name, value in event.items() if name != "timestamp"} for event in run.events]
    assert bare == [
        STARTED,
        {"type": "REASONING_START", "messageId": "id-1"},
        {"type": "REASONING_MESSAGE_START", "messageId": "id-1", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "id-1", "delta": "用户想了解量子计算..."},
        {"type": "REASONING_MESSAGE_END", "messageId": "id-1"},
        {"type": "REASONING_END", "messageId": "id-1"},
        {"type": "TOOL_CALL_START", "toolCallId": "call_1", "toolCallName": "web_search"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "call_1", "delta": '{"query":"AI"}'},
        {"type": "TOOL_CALL_END", "toolCallId": "call_1"},
        {"type": "TOOL_CALL_RESULT", "messageId": "id-2", "toolCallId": "call_1", "content": "IBM", "role": "tool"},
        {"type": "TEXT_MESSAGE_START", "messageId": "id-3", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "id-3", "delta": "根据"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "id-3", "delta": "最新研究"},
        {"type": "TEXT_MESSAGE_END", "messageId": "id-3"},
        FINISHED,
    ]
    assert {event.get("timestamp") for event in run.events[1:]} == {1746000000000}
    assert run.codes == []


def test_the_flat_stream_of_the_documentation() -> None:
    run = Up(
        FLAT,
        [
            flat("text", content="Hello"),
            flat("tool_call", name="datetime", input={}),
            flat("tool_result", name="datetime", output={"datetime": "2025-01-01"}),
            flat("done", usage={"prompt_tokens": 100, "completion_tokens": 50}),
        ],
    )
    assert run.types[1:4] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert run.of("TOOL_CALL_RESULT") == [
        {"type": "TOOL_CALL_RESULT", "messageId": "id-3", "toolCallId": "id-2", "role": "tool"}
        | {"content": '{"datetime":"2025-01-01"}'}
    ]
    assert run.events[-1] == FINISHED | {"usage": [{"inputTokens": 100, "outputTokens": 50}]}
    assert run.codes == []


def test_the_compatible_stream_of_the_documentation() -> None:
    run = up("Hel", "lo\nyou", '{"type":"error","data":{"code":"E","message":"m"}}', "!", dialect=COMPATIBLE)
    assert run.text == "Hello\nyou!"
    assert run.of("CUSTOM")[0]["value"] == {"code": "E", "message": "m"}
    assert run.events[-1] == FINISHED


# Pieces and wholes.


@pytest.mark.parametrize(
    ("frames", "deltas", "codes"),
    [
        ([text("a", "a"), text("b", "ab")], [["a", "b"]], []),
        ([text("a", "a"), text("b", "b")], [["a"], ["b"]], []),
        ([text("a"), text("b")], [["a", "b"]], []),
        ([text(None, "a"), text(None, "ab"), text(None, "ab")], [["a", "b"]], []),
        ([text(None, "a"), text(None, "x")], [["a"], ["x"]], []),
        ([text("a", "a"), text("b", "aXb"), text("c", "aXbc")], [["a", "b", "c"]], ["superagent.content"]),
        ([text("", ""), text("", "")], [], []),
        ([text(None, "a"), text("b", "ab"), text(None, "abc")], [["a", "b", "c"]], []),
    ],
)
def test_pieces_are_believed_and_wholes_say_where_a_message_begins(
    frames: list[str], deltas: list[list[str]], codes: list[str]
) -> None:
    run = up(*frames)
    found: dict[str, list[str]] = {}
    for event in run.of("TEXT_MESSAGE_CONTENT"):
        found.setdefault(event["messageId"], []).append(event["delta"])
    assert list(found.values()) == deltas
    assert run.codes == codes


def test_text_that_goes_on_behind_a_tool_call_is_another_message() -> None:
    call = enveloped("tool_call", {"id": "c", "name": "f", "arguments": {}, "status": "calling"})
    run = up(text("a", "a"), call, text("b", "ab"))
    assert [event["delta"] for event in run.of("TEXT_MESSAGE_CONTENT")] == ["a", "b"]
    assert len(run.of("TEXT_MESSAGE_START")) == 2
    assert run.codes == []


def test_code_comes_back_between_fences_in_its_message() -> None:
    run = up(
        text("See:", "See:"), code("x = ", "x = "), code("1\n", "x = 1\n"), code("y", "y"), code("z", "z", "js"),
        text("So.", "See:So."),
    )  # fmt: skip
    assert run.text == "See:\n```py\nx = 1\n```\n```py\ny\n```\n```js\nz\n```\nSo."
    assert len(run.of("TEXT_MESSAGE_START")) == 1


@pytest.mark.parametrize("source", ["```\nx\n", "a\n````  \nb\n", "``` x\n```\n", "`````\n``\n```\n"])
def test_code_that_holds_fences_comes_back_whole(source: str) -> None:
    for pieces in cuts(source):
        up_ = up(*(flat("code_block", language="md", content=piece) for piece in pieces), dialect=FLAT)
        read = told([up_.text])
        assert {language for language, _ in read} == {"md"}
        assert "".join(code_ for _, code_ in read) == source
        assert ("superagent.fence" in up_.codes) is (len(read) > 1)


# Tool calls.


def test_results_of_the_flat_dialect_go_to_the_oldest_call_of_their_name() -> None:
    run = up(
        flat("tool_call", name="f", input={"n": 1}),
        flat("tool_call", name="g", input={}),
        flat("tool_call", name="f", input={"n": 2}),
        *(flat("tool_result", name=name, output=output) for name, output in (("f", "1"), ("g", None), ("f", [2]))),
        flat("tool_result", name="h", output="lost", error="broke"),
        dialect=FLAT,
    )
    ids = [event["toolCallId"] for event in run.of("TOOL_CALL_START")]
    results = run.of("TOOL_CALL_RESULT")
    assert [event["toolCallId"] for event in results[:3]] == [ids[0], ids[1], ids[2]]
    assert [event["content"] for event in results] == ["1", "", "[2]", "lost"]
    assert results[3]["toolCallId"] not in ids
    assert results[3]["metadata"] == {"is_error": True, "error": "broke"}
    assert run.codes == ["superagent.unpaired"]


@pytest.mark.parametrize(
    ("arguments", "deltas"),
    [({"a": 1}, ['{"a":1}']), ({}, ["{}"]), (None, ["{}"]), ({"_raw": "x"}, ["x"]), ({"_raw": ""}, []), ("x", ["x"])],
)
def test_arguments_come_as_json_or_as_they_were(arguments: Any, deltas: list[str]) -> None:
    run = up(enveloped("tool_call", {"id": "c", "name": "f", "arguments": arguments, "status": "calling"}))
    assert [event["delta"] for event in run.of("TOOL_CALL_ARGS")] == deltas


def test_news_of_a_call_is_no_other_call() -> None:
    data = {"id": "c", "name": "f", "arguments": {}}
    run = up(*(enveloped("tool_call", {**data, "status": status}) for status in ("calling", "success")))
    assert len(run.of("TOOL_CALL_START")) == 1
    assert run.codes == []
    assert up(enveloped("tool_call", data), enveloped("tool_call", data)).codes == ["superagent.call-again"]
    assert len(up(enveloped("tool_call", {**data, "status": "error"})).of("TOOL_CALL_START")) == 1


def test_a_failed_result_says_so() -> None:
    run = up(enveloped("tool_result", {"id": "c", "name": "f", "result": "no", "is_error": True}))
    assert run.of("TOOL_CALL_RESULT")[0]["metadata"] == {"is_error": True}
    run = up(flat("tool_call", name="f"), flat("tool_result", name="f", error="no"), dialect=FLAT)
    assert run.of("TOOL_CALL_RESULT")[0]["content"] == "no"
    assert run.of("TOOL_CALL_RESULT")[0]["metadata"] == {"is_error": True}


# Progress and agents.


def test_progress_without_a_total_is_steps_and_with_one_an_activity() -> None:
    run = up(
        enveloped("progress", {"agent_name": "w", "step": "a", "total": 0, "current": 1}),
        enveloped("progress", {"agent_name": "w", "step": "b", "total": 0, "current": 2}),
        enveloped("progress", {"agent_name": "w", "step": "summarize", "total": 3, "current": 2}),
        enveloped("progress", {"agent_name": "w", "step": "summarize", "total": 3, "current": 3}),
    )
    assert [(event["type"], event["stepName"]) for event in run.of("STEP_STARTED", "STEP_FINISHED")] == [
        ("STEP_STARTED", "a"),
        ("STEP_FINISHED", "a"),
        ("STEP_STARTED", "b"),
        ("STEP_FINISHED", "b"),
    ]
    first, second = run.of("ACTIVITY_SNAPSHOT")
    assert first["messageId"] == second["messageId"]
    assert first["content"] == {"current": 2, "total": 3, "step": "summarize", "agent_name": "w"}
    assert (first["activityType"], first["replace"]) == ("progress", True)


def switch(source: str, target: str, reason: str = "") -> str:
    return enveloped("agent_switch", {"from_agent": source, "to_agent": target, "reason": reason})


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        (["main>a", "a>main"], ["+a", "-a"]),
        (["main>a", "a>b", "b>a", "a>main"], ["+a", "+b/a", "-b", "-a"]),
        (["main>a", "a>b", "b>main"], ["+a", "+b/a", "-b", "-a"]),
        (["main>a", "main>b", "a>main", "b>main"], ["+a", "+b", "-a", "-b"]),
        (["main>a", "main>a", "a>main", "a>main"], ["+a", "+a", "-a", "-a"]),
        (["a>a", "a>a"], ["+a", "-a"]),
        (["main>a", "a>b"], ["+a", "+b/a", "-b", "-a"]),
        (["main>a", "a>b", "a>main"], ["+a", "+b/a", "-b", "-a"]),
        (["main>a", "a>main", "main>a"], ["+a", "-a", "+a", "-a"]),
    ],
)
def test_control_that_goes_to_an_agent_starts_a_subagent_and_ends_it_when_it_comes_back(
    switches: list[str], expected: list[str]
) -> None:
    run = up(*(switch(*one.split(">")) for one in switches))
    names: dict[str, str] = {}
    seen = []
    for event in run.of("SUBAGENT_STARTED", "SUBAGENT_FINISHED"):
        id = event["subagentRunId"]
        if event["type"] == "SUBAGENT_STARTED":
            names[id] = event["name"]
            parent = event.get("parentSubagentRunId")
            seen.append(f"+{event['name']}" + (f"/{names[parent]}" if parent else ""))
        else:
            seen.append(f"-{names[id]}")
    assert seen == expected
    assert problems_of(run.objects) == []


def test_the_reason_of_a_switch_is_the_subagents_description() -> None:
    assert up(switch("m", "a", "because")).of("SUBAGENT_STARTED")[0]["description"] == "because"


# Interrupts, errors and ends.


def test_interrupts_before_done_are_the_outcome() -> None:
    fields = [
        {"name": "ok", "type": "confirm", "label": "Sure?", "required": True},
        {"name": "how", "type": "select", "label": "how", "options": ["a", "b"]},
        {"name": "why", "type": "text", "label": "Why?"},
    ]
    run = up(
        enveloped("interrupt", {"reason": "Delete?", "fields": fields}),
        enveloped("interrupt", {"reason": "Go?", "fields": fields[:1]}),
        enveloped("interrupt", {"reason": "Well?", "fields": None}),
    )
    outcome = run.events[-1]["outcome"]
    assert outcome["type"] == "interrupt"
    assert [(one["reason"], one["message"]) for one in outcome["interrupts"]] == [
        ("input_required", "Delete?"),
        ("confirmation", "Go?"),
        ("input_required", "Well?"),
    ]
    assert outcome["interrupts"][0]["responseSchema"] == {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean", "title": "Sure?"},
            "how": {"type": "string", "enum": ["a", "b"]},
            "why": {"type": "string", "title": "Why?"},
        },
        "required": ["ok"],
    }
    assert len({one["id"] for one in outcome["interrupts"]}) == 3


def test_an_interrupt_of_the_flat_dialect_wants_one_answer() -> None:
    run = up(flat("interrupt", reason="need_user_input", prompt="Which timezone?"), dialect=FLAT)
    (interrupt,) = run.events[-1]["outcome"]["interrupts"]
    assert interrupt == {
        "id": "id-1",
        "reason": "need_user_input",
        "message": "Which timezone?",
        "responseSchema": {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
    }


ERRORS = {
    ENVELOPED: enveloped("error", {"code": "E", "message": "m"}),
    FLAT: flat("error", code="E", message="m"),
    COMPATIBLE: json.dumps({"type": "error", "data": {"code": "E", "message": "m"}}),
}
TEXTS = {ENVELOPED: text("a", "a"), FLAT: flat("text", content="a"), COMPATIBLE: "a"}
CUSTOM: Wire = {"type": "CUSTOM", "name": "superagent.error", "value": {"code": "E", "message": "m"}}


@ALL
def test_an_error_directly_before_done_is_the_runs(dialect: str) -> None:
    run = up(TEXTS[dialect], ERRORS[dialect], dialect=dialect)
    last = run.events[-1]
    assert (last["type"], last["code"], last["message"]) == ("RUN_ERROR", "E", "m")
    assert run.of("CUSTOM") == []


@ALL
def test_any_other_error_is_not(dialect: str) -> None:
    run = up(ERRORS[dialect], ERRORS[dialect], TEXTS[dialect], dialect=dialect)
    assert run.events[1:3] == [CUSTOM, CUSTOM]
    assert run.types[-1] == "RUN_FINISHED"


@ALL
def test_keep_alives_mean_nothing(dialect: str) -> None:
    keep_alive = SSEFrame(raw=b": keep-alive\n\n")
    run = Up(dialect, [keep_alive, TEXTS[dialect], ERRORS[dialect], keep_alive, DONE_IN[dialect], keep_alive])
    assert run.types[-1] == "RUN_ERROR"
    assert run.codes == []


@ALL
def test_without_done_the_run_ends_in_an_error(dialect: str) -> None:
    run = Up(dialect, [TEXTS[dialect], ERRORS[dialect]])
    assert run.types[-3:] == ["CUSTOM", "TEXT_MESSAGE_END", "RUN_ERROR"]
    assert run.events[-1]["code"] == "source_ended"
    assert run.codes == ["superagent.source-ended"]
    assert Up(dialect, []).types == ["RUN_STARTED", "RUN_ERROR"]


@ALL
def test_an_error_of_the_connection_ends_the_run(dialect: str) -> None:
    run = Up(dialect, [TEXTS[dialect]], fails=RuntimeError("secret"))
    assert run.types[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert (run.events[-1]["code"], run.events[-1]["message"]) == ("source_error", "The agent failed.")
    assert Up(dialect, [DONE_IN[dialect]], fails=RuntimeError()).types == ["RUN_STARTED", "RUN_FINISHED"]


def test_the_code_and_the_message_of_a_failure_can_be_given() -> None:
    upgrade = SuperagentUpgrade(FLAT, input=INPUT, sink=lambda _: None, new_id=lambda: "x")
    events, _ = upgrade.fail(RuntimeError(), "source_timeout", "too slow")
    assert (events[-1].code, events[-1].message) == ("source_timeout", "too slow")  # type: ignore[union-attr]


@ALL
def test_what_comes_after_done_is_left_out(dialect: str) -> None:
    run = Up(dialect, [DONE_IN[dialect], TEXTS[dialect], DONE_IN[dialect]])
    assert run.types == ["RUN_STARTED", "RUN_FINISHED"]
    assert run.codes == ["superagent.after-done"]


def test_done_may_have_an_empty_object_for_its_data() -> None:
    assert Up(ENVELOPED, [enveloped("done", {})]).events == [STARTED, FINISHED | {"timestamp": 1746000000000}]


def test_the_outcome_cancelled_comes_back() -> None:
    run = up(enveloped("error", {"code": "run_cancelled", "message": "The run was cancelled."}))
    assert run.events[-1]["outcome"] == {"type": "cancelled"}


# Bad frames.

BAD_ANYWHERE = ["not JSON", "[1]", "null", '"x"', "{}", '{"type":5}', '{"type":"news"}', '{"type":"text"}', "", "NaN"]
BAD_ANYWHERE += ["[" * 3000, '{"type":"text","data":{"delta":NaN},"content":NaN}', '{"type":"text","content":"a', "\0"]
BAD_ENVELOPED = [
    enveloped("text", None),
    enveloped("text", {}),
    enveloped("text", {"delta": 5}),
    enveloped("text", "a"),
    enveloped("tool_call", {"name": "f"}),
    enveloped("tool_call", {"id": "c", "name": "f", "arguments": [1]}),
    enveloped("tool_call", {"id": "c", "name": "f", "status": "odd"}),
    enveloped("tool_result", {"id": "c", "name": "f", "result": "r", "is_error": "no"}),
    enveloped("interrupt", {"reason": "r", "fields": [{"type": "confirm"}]}),
    enveloped("interrupt", {"reason": "r", "fields": {}}),
    enveloped("progress", {"step": "s", "current": "1", "total": 2}),
    enveloped("progress", {"step": "s", "current": True, "total": 2}),
    enveloped("agent_switch", {"from_agent": "a"}),
    enveloped("error", {"code": "E"}),
    enveloped("done", 5),
]
BAD_FLAT = [
    flat("text", delta="a"),
    flat("tool_call", input={}),
    flat("tool_result", output=1),
    flat("interrupt", reason="r"),
    flat("done", usage=5),
    flat("progress", step="s", total=1, label="l"),
    '{"type":"progress","step":1e400,"total":1,"label":"l"}',
]


@pytest.mark.parametrize(
    ("dialect", "data"),
    [(ENVELOPED, data) for data in BAD_ANYWHERE + BAD_ENVELOPED] + [(FLAT, data) for data in BAD_ANYWHERE + BAD_FLAT],
)
def test_a_frame_of_another_dialect_is_an_error_that_ends_nothing(dialect: str, data: str) -> None:
    run = up(TEXTS[dialect], data, TEXTS[dialect], dialect=dialect)
    assert run.of("CUSTOM") == [
        {"type": "CUSTOM", "name": "superagent.error", "value": {"code": "bad_frame", "message": data}}
    ]
    assert run.codes == ["superagent.bad-frame"]
    assert run.text == "aa"
    assert run.types[-1] == "RUN_FINISHED"


@pytest.mark.parametrize(
    "data", ["{", "{}", '{"type":"text"}', '{"type":"news","data":{}}', '{"type":"error","data":1}']
)
def test_in_the_compatible_dialect_what_is_no_frame_is_text(data: str) -> None:
    assert up(data, dialect=COMPATIBLE).text == data


def test_a_bad_frame_does_not_carry_a_megabyte_on() -> None:
    (custom,) = up("x" * 1_000_000).of("CUSTOM")
    assert len(custom["value"]["message"]) < 5000


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KINDS = ("text", "thinking", "tool_call", "tool_result", "code_block", "interrupt", "error", "progress", "agent_switch")
NAMES = (
    *("content", "delta", "id", "name", "arguments", "status", "result", "is_error", "language", "code", "reason"),
    *("fields", "message", "agent_name", "step", "total", "current", "from_agent", "to_agent", "input", "output"),
    *("error", "prompt", "usage", "label", "from", "to"),
)
VALUES = st.sampled_from(["a", "b", "ab", "```\n", 1, 0, True, None, {}, {"_raw": "x"}, [{"name": "a"}]]) | JSON_VALUES
FIELDS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=12)


@given(st.lists(st.tuples(st.sampled_from((*KINDS, *KINDS, "done")), FIELDS, st.booleans()) | st.text(), max_size=20))
def test_whatever_comes_the_run_is_legal_and_ends(items: list[Any]) -> None:
    for dialect in DIALECTS:
        frames = []
        for item in items:
            if isinstance(item, str):
                frames.append(item)
            else:
                kind, fields, odd = item
                frames.append(flat(kind, **fields) if (dialect == FLAT) is not odd else enveloped(kind, fields))
        run = Up(dialect, frames)
        assert problems_of(run.objects) == []
        assert run.types[0] == "RUN_STARTED"
        assert run.types[-1] in ("RUN_FINISHED", "RUN_ERROR")


@pytest.mark.parametrize("dialect", ["", "ag-ui", None])
def test_an_unknown_dialect_is_refused(dialect: Any) -> None:
    with pytest.raises(ConfigurationError, match="'superagent'"):
        SuperagentUpgrade(dialect, input=INPUT, sink=print, new_id=lambda: "x")
