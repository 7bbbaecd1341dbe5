"""Inputs: what clients of every age send is read, and what is wrong is named by its JSON path."""

from __future__ import annotations

import json
from itertools import count
from types import MappingProxyType
from typing import Any

import pytest
from ag_ui.core import Context, RunAgentInput, Tool, UserMessage
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION, PROTOCOL_VERSION
from agui_pipeline.translators._errors import DecodeError
from agui_pipeline.translators._input import encode_input, parse_input, parse_input_report, run_input

only_1x = pytest.mark.skipif(not HAS_PROTOCOL_VERSION, reason="the SDK's 1.x only")

FULL: dict[str, Any] = {
    "threadId": "t",
    "runId": "r",
    "messages": [],
    "tools": [],
    "context": [],
    "state": {},
    "forwardedProps": {},
}


def body(**fields: Any) -> dict[str, Any]:
    return FULL | fields


def user(content: Any = "hi", **fields: Any) -> dict[str, Any]:
    return {"id": "m", "role": "user", "content": content, **fields}


def read(data: Any) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Return a body as it would be sent on, and the places repaired by code. New ids count from 1."""
    ids = (f"new-{n}" for n in count(1))
    report = parse_input_report(data, new_id=lambda: next(ids))
    assert isinstance(report.input, RunAgentInput)
    assert report.changed is bool(report.repairs)
    for repair in report.repairs:
        assert repair.detail["count"] >= len(repair.detail["places"])
        assert f"({repair.detail['count']} times)" in repair.message
    return json.loads(encode_input(report.input)), {item.code: item.detail["places"] for item in report.repairs}


# What is filled in


def test_the_body_of_a_client_that_sends_neither_ids_nor_lists_nor_state() -> None:
    sent, repairs = read(b'{"messages":[{"role":"user","content":"hi"}],"threadId":"t","runId":"r"}')
    assert sent == body(messages=[{"id": "new-1", "role": "user", "content": "hi"}])
    assert repairs == {"input.filled": ("tools", "context", "state", "forwardedProps"), "input.id": ("messages[0].id",)}


def test_a_body_that_says_all_of_it_is_not_changed() -> None:
    everything = body(
        parentRunId="p",
        protocolVersion="1.0",
        state={"a": None, "n": [1.5, 10**25]},
        messages=[
            {"id": "1", "role": "system", "content": "s", "name": "n"},
            {"id": "2", "role": "developer", "content": ""},
            user([{"type": "text", "text": "x"}, {"type": "image", "source": {"type": "url", "value": "https://h/i"}}]),
            {
                "id": "3",
                "role": "assistant",
                "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"id": "4", "role": "tool", "toolCallId": "c", "content": "[1]"},
            {"id": "5", "role": "activity", "activityType": "a", "content": {"x": None}},
            {"id": "6", "role": "reasoning", "content": "hm", "encryptedValue": "e"},
        ],
        tools=[{"name": "f", "description": "d", "parameters": {"type": "object", "default": None}}],
        context=[{"description": "d", "value": "v"}],
        forwardedProps={"command": {"resume": None}},
        resume=[{"interruptId": "i", "status": "resolved", "payload": {"a": None}}],
    )
    assert read(json.dumps(everything)) == (everything, {})


def test_unknown_fields_are_kept_wherever_they_stand() -> None:
    unknown = body(
        more={"a": None},
        nothing=None,
        messages=[user([{"type": "text", "text": "x", "more": 1}], thread_id="kept", more=[1], toolCalls=5)],
        tools=[{"name": "f", "description": "d", "more": 1}],
        context=[{"description": "d", "value": "v", "more": 1}],
    )
    assert read(unknown) == (unknown, {})


def test_what_is_empty_is_legal() -> None:
    assert read(FULL) == (FULL, {})
    empty = body(threadId="", runId="", messages=[user("", id=""), user([], name="")])
    assert read(empty) == (empty, {})


@pytest.mark.parametrize("name", ["threadId", "runId"])
@pytest.mark.parametrize("null", [False, True])
def test_a_missing_id_of_thread_or_run_gets_a_new_one(name: str, null: bool) -> None:
    data = body(**{name: None})
    if not null:
        del data[name]
    assert read(data) == (body(**{name: "new-1"}), {"input.id": (name,)})


def test_new_ids_are_random_uuids_so_that_no_two_messages_pass_for_one() -> None:
    data = {"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": "hi"}]}
    first, second = parse_input(data), parse_input(data)
    ids = {first.thread_id, first.run_id, second.thread_id, second.run_id}
    ids |= {message.id for message in (*first.messages, *second.messages)}
    assert len(ids) == 8
    assert {len(item) for item in ids} == {36}


@pytest.mark.parametrize(
    ("name", "empty"), [("tools", []), ("context", []), ("state", {}), ("forwardedProps", {})], ids=str
)
def test_null_lists_and_state_read_as_missing_ones(name: str, empty: Any) -> None:
    assert read(body(**{name: None})) == (body(**{name: empty}), {"input.filled": (name,)})


@pytest.mark.parametrize("value", [[], [1], "text", 5, False])
def test_state_may_be_anything(value: Any) -> None:
    assert read(body(state=value, forwardedProps=value)) == (body(state=value, forwardedProps=value), {})


def test_snake_case_keys_read_as_the_sdk_reads_them_and_are_no_change() -> None:
    sent, repairs = read(
        {
            "thread_id": "t",
            "run_id": "r",
            "messages": [
                {"id": "1", "role": "tool", "tool_call_id": "c", "content": "x"},
                {
                    "id": "2",
                    "role": "assistant",
                    "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": ""}, "encrypted_value": "e"}],
                },
                user([{"type": "image", "source": {"type": "data", "value": "QQ==", "mime_type": "image/png"}}]),
            ],
            "tools": [],
            "context": [],
            "state": {"snake_case": 1},
            "forwarded_props": {"snake_case": 1},
            "resume": [{"interrupt_id": "i", "status": "cancelled"}],
        }
    )
    assert repairs == {}
    assert sent == body(
        state={"snake_case": 1},
        forwardedProps={"snake_case": 1},
        messages=[
            {"id": "1", "role": "tool", "toolCallId": "c", "content": "x"},
            {
                "id": "2",
                "role": "assistant",
                "toolCalls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "f", "arguments": ""},
                        "encryptedValue": "e",
                    }
                ],
            },
            user([{"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}}]),
        ],
        resume=[{"interruptId": "i", "status": "cancelled"}],
    )


def test_where_both_spellings_are_there_the_wire_s_is_meant() -> None:
    for data in (body(thread_id="other"), {"thread_id": "other", **FULL}):
        assert parse_input(data).thread_id == "t"
        assert read(data) == (body(thread_id="other"), {})


# Older shapes


@pytest.mark.parametrize(
    ("sent", "read_as", "code", "place"),
    [
        # null keys go
        (
            {"id": "m", "role": "assistant", "content": None, "toolCalls": None, "name": None},
            {"id": "m", "role": "assistant"},
            "input.null",
            "messages[0]",
        ),
        (user(name=None, unknown=None), user(), "input.null", "messages[0]"),
        (
            user([{"type": "text", "text": "x", "metadata": None}]),
            user([{"type": "text", "text": "x"}]),
            "input.null",
            "messages[0].content[0]",
        ),
        (
            user([{"type": "audio", "source": {"type": "url", "value": "https://h/a", "mimeType": None}}]),
            user([{"type": "audio", "source": {"type": "url", "value": "https://h/a"}}]),
            "input.null",
            "messages[0].content[0].source",
        ),
        # missing content that must be there
        ({"id": "m", "role": "user"}, user(""), "input.filled", "messages[0].content"),
        (
            {"id": "m", "role": "tool", "toolCallId": "c"},
            {"id": "m", "role": "tool", "toolCallId": "c", "content": ""},
            "input.filled",
            "messages[0].content",
        ),
        *(
            (
                {"id": "m", "role": role},
                {"id": "m", "role": role, "content": ""},
                "input.filled",
                "messages[0].content",
            )
            for role in ("system", "developer", "reasoning")
        ),
        (
            {"id": "m", "role": "activity", "activityType": "a"},
            {"id": "m", "role": "activity", "activityType": "a", "content": {}},
            "input.filled",
            "messages[0].content",
        ),
        # content that must be text
        *(
            (
                {"id": "m", "role": role, "content": content},
                {"id": "m", "role": role, "content": text},
                "input.text",
                "messages[0].content",
            )
            for role in ("assistant", "system", "developer", "reasoning")
            for content, text in (({"a": [1, None]}, '{"a":[1,null]}'), (5, "5"), (True, "true"))
        ),
        (
            {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "é"}]},
            {"id": "m", "role": "assistant", "content": '[{"type":"text","text":"é"}]'},
            "input.text",
            "messages[0].content",
        ),
        *(
            (
                {"id": "m", "role": "tool", "toolCallId": "c", "content": content},
                {"id": "m", "role": "tool", "toolCallId": "c", "content": text},
                "input.text",
                "messages[0].content",
            )
            for content, text in (
                ({"ok": True}, '{"ok":true}'),
                ([1, 2], "[1,2]"),
                ([{"type": "image", "size": 3}], '[{"type":"image","size":3}]'),
                (0, "0"),
            )
        ),
    ],
)
def test_an_older_shape_of_a_message_reads_as_the_one_of_today(
    sent: dict[str, Any], read_as: dict[str, Any], code: str, place: str
) -> None:
    assert read(body(messages=[sent])) == (body(messages=[read_as]), {code: (place,)})


def test_content_that_is_null_and_needed_is_empty_text() -> None:
    assert read(body(messages=[user(None)])) == (
        body(messages=[user("")]),
        {"input.null": ("messages[0]",), "input.filled": ("messages[0].content",)},
    )


@pytest.mark.parametrize(
    ("arguments", "text", "codes"),
    [
        ({"a": 1}, '{"a":1}', ["input.text"]),
        ([], "[]", ["input.text"]),
        (None, "", ["input.null", "input.filled"]),
        ("{", "{", []),
    ],
)
def test_arguments_of_a_call_become_text(arguments: Any, text: str, codes: list[str]) -> None:
    def message(arguments: Any) -> dict[str, Any]:
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return {"id": "m", "role": "assistant", "toolCalls": [call]}

    sent, repairs = read(body(messages=[message(arguments)]))
    assert sent == body(messages=[message(text)])
    assert list(repairs) == codes
    assert {place for places in repairs.values() for place in places} <= {
        "messages[0].toolCalls[0].function",
        "messages[0].toolCalls[0].function.arguments",
    }


@pytest.mark.parametrize(
    ("binary", "part"),
    [
        (
            {"mimeType": "image/png", "data": "QQ=="},
            {"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}},
        ),
        (
            {"mime_type": "Audio/wav", "url": "https://h/a", "filename": "a.wav"},
            {
                "type": "audio",
                "source": {"type": "url", "value": "https://h/a", "mimeType": "Audio/wav"},
                "metadata": {"filename": "a.wav"},
            },
        ),
        (
            {"mimeType": "application/pdf", "data": "", "url": "https://h/a"},
            {
                "type": "document",
                "source": {"type": "url", "value": "https://h/a", "mimeType": "application/pdf"},
                "data": "",
            },
        ),
        (
            {"mimeType": "video", "data": "QQ==", "url": "https://h", "id": "f", "metadata": {"k": None}, "more": 1},
            {
                "type": "video",
                "source": {"type": "data", "value": "QQ==", "mimeType": "video"},
                "metadata": {"k": None, "url": "https://h", "id": "f"},
                "more": 1,
            },
        ),
        pytest.param(
            {"mimeType": "text/csv", "id": "file-1", "filename": "t.csv"},
            {
                "type": "document",
                "source": {"type": "file", "value": "file-1", "mimeType": "text/csv"},
                "metadata": {"filename": "t.csv"},
            },
            marks=only_1x,
        ),
        pytest.param(
            {"mimeType": "text/csv", "id": "file-1", "filename": "t.csv", "metadata": "text"},
            {
                "type": "document",
                "source": {"type": "file", "value": "file-1", "mimeType": "text/csv"},
                "metadata": "text",
                "filename": "t.csv",
            },
            marks=only_1x,
        ),
    ],
)
def test_a_binary_part_becomes_a_media_part_by_its_mime_type(binary: dict[str, Any], part: dict[str, Any]) -> None:
    sent, repairs = read(body(messages=[user([{"type": "binary", **binary}])]))
    assert sent == body(messages=[user([part])])
    assert repairs == {"input.binary": ("messages[0].content[0]",)}


@pytest.mark.skipif(HAS_PROTOCOL_VERSION, reason="the SDK's 0.1.x only")
def test_a_binary_part_that_names_a_file_stays_where_the_sdk_has_no_other() -> None:
    part = {"type": "binary", "mimeType": "text/csv", "id": "file-1"}
    assert read(body(messages=[user([part])])) == (body(messages=[user([part])]), {})


@only_1x
def test_the_content_of_a_tool_may_be_parts() -> None:
    message = {"id": "m", "role": "tool", "toolCallId": "c", "content": [{"type": "text", "text": "x"}]}
    assert read(body(messages=[message])) == (body(messages=[message]), {})


def test_many_repairs_of_a_kind_are_one_diagnostic_that_counts() -> None:
    report = parse_input_report(body(messages=[{"role": "user", "content": "x"}] * 20))
    (repair,) = report.repairs
    assert (repair.code, repair.detail["count"]) == ("input.id", 20)
    assert repair.detail["places"] == tuple(f"messages[{i}].id" for i in range(5))


def test_half_an_emoji_in_a_key_does_not_cost_the_run() -> None:
    sent, repairs = read(r'{"threadId":"t","runId":"r","messages":[{"role":"user","content":"a\ud83d","k\ud83d":1}]}')
    assert sent["messages"] == [{"id": "new-1", "role": "user", "content": "a\ufffd", "k\ufffd": 1}]
    assert repairs["input.surrogate"] == ("messages[0]",)


# What is given


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(FULL),
        json.dumps(FULL).encode(),
        bytearray(json.dumps(FULL).encode()),
        memoryview(json.dumps(FULL).encode()),
        b"\xef\xbb\xbf" + json.dumps(FULL).encode(),
        "\ufeff" + json.dumps(FULL),
        FULL,
        MappingProxyType(FULL),
    ],
    ids=["str", "bytes", "bytearray", "memoryview", "bytes with BOM", "str with BOM", "dict", "mapping"],
)
def test_any_form_of_a_json_object_is_taken(data: Any) -> None:
    assert read(data) == (FULL, {})


def test_a_decoded_body_is_left_as_it_is() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": {}}}
    data = {
        "messages": [
            {"role": "assistant", "content": None, "toolCalls": [call]},
            user([{"type": "binary", "mimeType": "image/png", "data": "QQ=="}]),
        ]
    }
    before = json.dumps(data)
    parse_input(data)
    assert json.dumps(data) == before


# What is refused


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the body: wanted a JSON object (a RunAgentInput), got no JSON: "),
        (b"{", "the body: wanted a JSON object (a RunAgentInput), got no JSON: "),
        (b"\xff", "the body: wanted a JSON object (a RunAgentInput), got no JSON: "),
        ("\ud800", "the body: wanted a JSON object (a RunAgentInput), got no JSON: "),
        (b'{"state":NaN}', "the body: wanted a JSON object (a RunAgentInput), got no JSON: "),
        (b"null", "the body: wanted a JSON object (a RunAgentInput), got null"),
        (b"[]", "the body: wanted a JSON object (a RunAgentInput), got a list"),
        (b'"x"', "the body: wanted a JSON object (a RunAgentInput), got the string 'x'"),
        (5, "the body: wanted a JSON object (a RunAgentInput), got a number"),
        (RunAgentInput(**FULL), "the body: wanted a JSON object (a RunAgentInput), got a Python RunAgentInput"),
        ({5: 1}, "the body: wanted keys that are strings, got a number"),
        ({}, "messages: missing; wanted a list (it may be empty)"),
        (body(messages=None), "messages: missing; wanted a list (it may be empty)"),
        (body(messages={}), "messages: wanted a list (it may be empty), got an object"),
        (body(threadId=5), "threadId: wanted a string, got a number"),
        (body(runId=["r"]), "runId: wanted a string, got a list"),
        (body(parentRunId=True), "parentRunId: wanted a string, got true"),
        (body(tools={}), "tools: wanted a list (it may be empty), got an object"),
        (body(tools=["f"]), "tools[0]: wanted an object, got the string 'f'"),
        (body(tools=[{"name": "f"}]), "tools[0].description: missing, and a tool needs it"),
        (body(context="c"), "context: wanted a list (it may be empty), got the string 'c'"),
        (body(context=[{"description": "", "value": {}}]), "context[0].value: wanted a string, got an object"),
        (body(context=[{"value": ""}]), "context[0].description: missing, and a context entry needs it"),
        (body(resume={}), "resume: wanted a list (it may be empty), got an object"),
        (
            body(resume=[{"interruptId": "i", "status": "done"}]),
            "resume[0].status: wanted 'resolved' or 'cancelled', got the string 'done'",
        ),
        (body(resume=[{"status": "resolved"}]), "resume[0].interruptId: missing, and a resume entry needs it"),
    ],
)
def test_a_body_that_is_no_input_is_refused_by_its_path(data: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        parse_input(data)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    if not message.endswith(" "):
        assert str(caught.value) == message


ROLES = "'developer', 'system', 'assistant', 'user', 'tool', 'activity' or 'reasoning'"


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        (5, "messages[1]: wanted an object, got a number"),
        (None, "messages[1]: wanted an object, got null"),
        ({5: 1}, "messages[1]: wanted keys that are strings, got a number"),
        ({"content": "x"}, f"messages[1].role: missing; wanted {ROLES}"),
        ({"role": "bot"}, f"messages[1].role: wanted {ROLES}, got the string 'bot'"),
        ({"role": ["user"]}, f"messages[1].role: wanted {ROLES}, got a list"),
        (user(id=5), "messages[1].id: wanted a string, got a number"),
        (user(name={}), "messages[1].name: wanted a string, got an object"),
        (user(5), "messages[1].content: wanted a string or a list of content parts, got a number"),
        (user({"a": 1}), "messages[1].content: wanted a string or a list of content parts, got an object"),
        (user(["x" * 50]), f"messages[1].content[0]: wanted an object, got the string '{'x' * 40}'…"),
        (
            user([{"text": "x"}]),
            "messages[1].content[0].type: missing; wanted 'text', 'image', 'audio', 'video' or 'document'",
        ),
        (
            user([{"type": "imag"}]),
            "messages[1].content[0].type: wanted 'text', 'image', 'audio', 'video' or 'document', got the string 'imag",
        ),
        (user([{"type": {}}]), "messages[1].content[0].type: wanted 'text', 'image', 'audio', 'video' or 'document', "),
        (user([{"type": "text"}]), "messages[1].content[0].text: missing, and a text part needs it"),
        (user([{"type": "text", "text": 5}]), "messages[1].content[0].text: wanted a string, got a number"),
        (user([{"type": "image"}]), "messages[1].content[0].source: missing, and an image part needs it"),
        (
            user([{"type": "video", "source": "https://h"}]),
            "messages[1].content[0].source: wanted an object, got the string 'https://h'",
        ),
        (
            user([{"type": "audio", "source": {"value": "x"}}]),
            "messages[1].content[0].source.type: missing, and an audio part needs it",
        ),
        (
            user([{"type": "audio", "source": {"type": "blob", "value": "x"}}]),
            "messages[1].content[0].source.type: wanted 'data'",
        ),
        (
            user([{"type": "image", "source": {"type": "data", "value": "x"}}]),
            "messages[1].content[0].source.mimeType: missing, and an image part needs it",
        ),
        (
            user([{"type": "image", "source": {"type": "url", "value": 1}}]),
            "messages[1].content[0].source.value: wanted a string, got a number",
        ),
        (
            user([{"type": "binary", "data": "x"}]),
            "messages[1].content[0].mimeType: missing; wanted a MIME type",
        ),
        (
            user([{"type": "binary", "mimeType": "a/b", "data": ""}]),
            "messages[1].content[0]: wanted a binary part with data, url or id, got one with none of them",
        ),
        (
            user([{"type": "binary", "mimeType": "a/b", "url": 5}]),
            "messages[1].content[0].url: wanted a string, got a number",
        ),
        ({"id": "m", "role": "tool"}, "messages[1].toolCallId: missing, and a tool message needs it"),
        (
            {"id": "m", "role": "activity", "content": {}},
            "messages[1].activityType: missing, and an activity message needs it",
        ),
        (
            {"id": "m", "role": "activity", "activityType": "a", "content": "x"},
            "messages[1].content: wanted an object, got the string 'x'",
        ),
        (
            {"id": "m", "role": "assistant", "toolCalls": {}},
            "messages[1].toolCalls: wanted a list (it may be empty), got an object",
        ),
        (
            {"id": "m", "role": "assistant", "toolCalls": [[]]},
            "messages[1].toolCalls[0]: wanted an object, got a list",
        ),
        (
            {"id": "m", "role": "assistant", "toolCalls": [{"function": {"name": "f", "arguments": ""}}]},
            "messages[1].toolCalls[0].id: missing, and a tool call needs it",
        ),
        (
            {"id": "m", "role": "assistant", "toolCalls": [{"id": "c"}]},
            "messages[1].toolCalls[0].function: missing, and a tool call needs it",
        ),
        (
            {"id": "m", "role": "assistant", "toolCalls": [{"id": "c", "function": "f"}]},
            "messages[1].toolCalls[0].function: wanted an object, got the string 'f'",
        ),
        (
            {"id": "m", "role": "assistant", "toolCalls": [{"id": "c", "function": {}}]},
            "messages[1].toolCalls[0].function.name: missing, and a tool call needs it",
        ),
        (
            {"id": "m", "role": "assistant", "toolCalls": [{"id": "c", "type": "x", "function": {"name": "f"}}]},
            "messages[1].toolCalls[0].type: wanted 'function', got the string 'x'",
        ),
    ],
)
def test_a_wrong_message_is_refused_by_path_role_and_field(message: Any, refusal: str) -> None:
    with pytest.raises(DecodeError) as caught:
        parse_input(body(messages=[user(), message]))
    assert str(caught.value).startswith(refusal)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


# Bombs


def nested(levels: int, kind: str) -> Any:
    value: Any = [] if kind == "list" else {}
    for _ in range(levels - 1):
        value = [value] if kind == "list" else {"k": value}
    return value


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("encoded", [True, False])
def test_two_hundred_levels_are_read_and_written_without_loss_and_one_more_is_refused(kind: str, encoded: bool) -> None:
    deepest = body(state=nested(199, kind))
    assert read(json.dumps(deepest) if encoded else deepest) == (deepest, {})
    deeper = body(state=nested(200, kind))
    with pytest.raises(DecodeError, match=r"^state: wanted at most 200 levels of nesting, got more$"):
        parse_input(json.dumps(deeper) if encoded else deeper)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_a_depth_bomb_is_refused(opening: str) -> None:
    for levels in (500, 2000, 100_000):
        with pytest.raises(DecodeError):
            parse_input(f'{{"messages":[],"state":{opening * levels}')
        closing = "".join("]" if char == "[" else "}" for char in reversed(opening) if char in "[{")
        with pytest.raises(DecodeError):
            parse_input(f'{{"messages":[],"state":{opening * levels}1{closing * levels}}}')


def test_a_decoded_value_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop["b"] = [loop, loop]
    for place in ("state", "forwardedProps", "messages"):
        with pytest.raises(DecodeError, match=f"^{place}: wanted at most 200 levels"):
            parse_input(body(**{place: [loop] if place == "messages" else loop}))


@pytest.mark.parametrize(
    ("item", "path"),
    [({"role": "tool"}, r"messages\[0\]"), (user([{"type": "text"}] * 50_000), r"messages\[0\]\.content\[0\]")],
)
def test_a_body_full_of_mistakes_is_refused_at_the_first_one(item: dict[str, Any], path: str) -> None:
    with pytest.raises(DecodeError, match=rf"^{path}\.\w+: missing") as caught:
        parse_input(body(messages=[item] * 50_000))
    assert len(str(caught.value)) < 100


def test_a_number_of_many_digits_does_not_break_a_refusal() -> None:
    for data in (body(threadId=10**5000), f'{{"threadId":{"9" * 5000},"messages":[]}}'):
        with pytest.raises(DecodeError, match=r"^threadId: wanted a string, got a number$"):
            parse_input(data)


# Writing


def test_an_input_is_written_in_camel_case_without_absent_fields_and_with_the_nulls_that_mean_something() -> None:
    input = run_input("hi", thread_id="t", run_id="r", state={"snake_case": None}, messages=[user()], extra_field=None)
    sent = json.loads(encode_input(input))
    message = sent["messages"].pop()
    assert (message["role"], message["content"], set(message)) == ("user", "hi", {"id", "role", "content"})
    if HAS_PROTOCOL_VERSION:
        assert sent.pop("protocolVersion") == PROTOCOL_VERSION
    assert sent == body(state={"snake_case": None}, messages=[user()], extra_field=None)


def test_what_is_written_reads_the_same_and_needs_no_repair() -> None:
    first = parse_input({"messages": [{"role": "user", "content": "a\u2028b"}, {"role": "assistant"}]})
    report = parse_input_report(encode_input(first))
    assert report.input == first
    assert not report.changed


def test_run_input_takes_models_and_either_spelling() -> None:
    history: list[BaseModel | dict[str, Any]] = [
        UserMessage(id="1", content="a"),
        {"role": "assistant", "content": "b"},
    ]
    input = run_input(
        messages=iter(history),
        tools=[Tool(name="f", description="d", parameters={})],
        context=[Context(description="d", value="v")],
        forwardedProps={"a": 1},
        parent_run_id="p",
        resume=None,
    )
    assert [message.content for message in input.messages] == ["a", "b"]
    assert input.tools == [Tool(name="f", description="d", parameters={})]
    assert input.context == [Context(description="d", value="v")]
    assert (input.forwarded_props, input.parent_run_id, input.resume) == ({"a": 1}, "p", None)
    assert input.state == {}


def test_run_input_makes_ids_and_declares_the_protocol_version() -> None:
    first, second = run_input("a"), run_input("a")
    assert len({first.thread_id, first.run_id, first.messages[0].id, second.thread_id, second.run_id}) == 5
    assert getattr(first, "protocol_version", None) == (PROTOCOL_VERSION if HAS_PROTOCOL_VERSION else None)
    assert getattr(run_input(protocol_version=None), "protocol_version", None) is None
    older = run_input(protocolVersion="0.9").model_dump()
    assert [older[name] for name in older if name in {"protocol_version", "protocolVersion"}] == ["0.9"]
    assert run_input().messages == []
    assert run_input("").messages[0].content == ""


def test_run_input_refuses_what_is_wrong_by_its_path() -> None:
    with pytest.raises(DecodeError, match=r"^messages\[0\]\.role: missing"):
        run_input(messages=[{"content": "x"}])
    with pytest.raises(DecodeError, match=r"^tools\[0\]\.description: missing"):
        run_input(tools=[{"name": "f"}])


# Any JSON


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
PART_KEYS = ["type", "text", "source", "value", "mimeType", "mime_type", "data", "url", "filename", "metadata"]
MESSAGE_KEYS = ["id", "role", "content", "toolCalls", "tool_calls", "function", "arguments", "name", "toolCallId"]
OTHER_KEYS = ["activityType", "description", "interruptId", "status", "payload"]
KINDS = ["text", "image", "binary", "document", "function", "resolved", "file", "user", "assistant", "tool", "system"]
names = st.sampled_from([*PART_KEYS, *MESSAGE_KEYS, *OTHER_KEYS])
words = st.sampled_from([*KINDS, "developer", "activity", "reasoning"])
things = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=3), inner, max_size=5),
    max_leaves=12,
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(st.dictionaries(names, things, max_size=6), max_size=3) | things,
        "tools": st.lists(things, max_size=2) | things,
        "context": st.lists(things, max_size=2) | things,
        "resume": st.lists(things, max_size=2) | things,
        "state": things,
        "forwardedProps": things,
        "threadId": things,
        "run_id": things,
        "protocolVersion": things,
        "other": things,
    },
)


@settings(max_examples=300)
@given(data=bodies | things)
def test_any_json_is_an_input_or_a_decode_error(data: Any) -> None:
    for form in (data, json.dumps(data)):
        try:
            report = parse_input_report(form)
        except DecodeError:
            continue
        again = parse_input_report(encode_input(report.input))
        assert not again.changed
        assert encode_input(again.input) == encode_input(report.input)


@given(data=st.binary(max_size=40) | st.text(max_size=40))
def test_any_bytes_or_text_are_an_input_or_a_decode_error(data: bytes | str) -> None:
    with pytest.raises(DecodeError):
        parse_input(data)
