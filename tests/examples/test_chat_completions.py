"""The chat completions protocol: what a conversation becomes, and what deltas of all kinds become."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.adapters.testing import assert_valid_stream
from agui_pipeline.translators import parse_input, run_input
from examples.chat_completions.answer import Answer
from examples.chat_completions.errors import ModelError, refused, reported
from examples.chat_completions.request import chat_request

CALLS = [
    {"id": name, "type": "function", "function": {"name": "look", "arguments": arguments}}
    for name, arguments in (("c1", '{"at":1}'), ("c2", ""))
]
PIXEL = "iVBORw0KGgo="


def tool(id: str, content: Any = "seen", **fields: Any) -> dict[str, Any]:
    return {"id": f"r{id}", "role": "tool", "toolCallId": id, "content": content, **fields}


def user(content: Any) -> dict[str, Any]:
    return {"id": "u", "role": "user", "content": content}


CALLING = {"id": "a", "role": "assistant", "toolCalls": CALLS}
SAID_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}
SAID_OTHER = {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}}

CONVERSATIONS: dict[str, tuple[list[Any], list[Any]]] = {
    "everyone": (
        [
            {"id": "1", "role": "system", "content": "Be brief."},
            {"id": "2", "role": "developer", "content": "In German."},
            user("Hi"),
            {"id": "3", "role": "assistant", "content": "Hallo"},
        ],
        [
            {"role": "system", "content": "Be brief."},
            {"role": "system", "content": "In German."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hallo"},
        ],
    ),
    "text and an image": (
        [
            user(
                [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image", "source": {"type": "data", "value": PIXEL, "mimeType": "image/png"}},
                    {"type": "image", "source": {"type": "url", "value": "https://x.example/a.png"}},
                ]
            )
        ],
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                    {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
                ],
            }
        ],
    ),
    "parts of text only": (
        [user([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])],
        [{"role": "user", "content": "one\ntwo"}],
    ),
    "a part that no such endpoint takes": (
        [user([{"type": "video", "source": {"type": "url", "value": "https://x.example/a.mp4"}}])],
        [{"role": "user", "content": "[Here the user sent a part of type video, which you cannot see.]"}],
    ),
    "calls and their results": (
        [CALLING, tool("c1"), tool("c2", "", error="it is dark")],
        [
            {"role": "assistant", "content": "", "tool_calls": [SAID_CALL, SAID_OTHER]},
            {"role": "tool", "tool_call_id": "c1", "content": "seen"},
            {"role": "tool", "tool_call_id": "c2", "content": "it is dark"},
        ],
    ),
    "a call that nobody answered": (
        [{**CALLING, "content": "Let me see."}, user("Never mind"), tool("c2")],
        [
            {"role": "assistant", "content": "Let me see.", "tool_calls": [SAID_OTHER]},
            {"role": "tool", "tool_call_id": "c2", "content": "seen"},
            {"role": "user", "content": "Never mind"},
        ],
    ),
    "no call was answered": ([CALLING, user("Never mind")], [{"role": "user", "content": "Never mind"}]),
    "a result without a call": ([tool("c9"), user("Hi")], [{"role": "user", "content": "Hi"}]),
    "one call twice": (
        [{**CALLING, "toolCalls": CALLS[:1]}, tool("c1"), {**CALLING, "id": "b", "toolCalls": CALLS[:1]}],
        [
            {"role": "assistant", "content": "", "tool_calls": [SAID_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        ],
    ),
    "what the user only sees": (
        [
            {"id": "1", "role": "activity", "activityType": "a2ui-surface", "content": {"a2ui_operations": []}},
            {"id": "2", "role": "reasoning", "content": "Hm."},
        ],
        [],
    ),
}


@pytest.mark.parametrize("case", CONVERSATIONS)
def test_a_conversation(case: str) -> None:
    messages, expected = CONVERSATIONS[case]
    request = chat_request(parse_input({"threadId": "t", "runId": "r", "messages": messages}), "m")
    assert request["messages"] == expected
    assert (request["model"], request["stream"]) == ("m", True)
    assert "tools" not in request


def test_the_front_ends_tools() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "number"}}}
    tools = [
        {"name": "look", "description": "Looks.", "parameters": schema},
        {"name": "wait", "description": "Waits."},
    ]
    request = chat_request(parse_input({"messages": [], "tools": tools}), "m")
    assert request["tools"] == [
        {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": schema}},
        {
            "type": "function",
            "function": {
                "name": "wait",
                "description": "Waits.",
                "parameters": {"type": "object", "properties": {}},
            },
        },
    ]


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "x", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: Any = 0, id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    return chunk(tool_calls=[{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}])


def told(chunks: list[Any], error: ModelError | None = None) -> list[dict[str, Any]]:
    """A run's events, which a client takes; the ids are counted."""
    ids = itertools.count(1)
    answer = Answer(run_input(thread_id="t", run_id="r"), new_id=lambda: f"id{next(ids)}")
    events: list[dict[str, Any]] = []
    try:
        for item in chunks:
            events += answer.feed(item if isinstance(item, str) else json.dumps(item))
    except ModelError as exc:
        error = exc
    events += answer.end(error)
    assert_valid_stream([{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, *events])
    return events


def short(events: list[dict[str, Any]]) -> list[str]:
    """Each event as one line."""
    fields = ("messageId", "toolCallId", "toolCallName", "parentMessageId", "delta", "code")
    return [" ".join([event["type"], *(str(event[name]) for name in fields if name in event)]) for event in events]


FIRST_CALL = "TOOL_CALL_START c1 look id1"
ANSWERS: dict[str, tuple[list[Any], list[str]]] = {
    "text": (
        [chunk(role="assistant", content=""), chunk(content="Hel"), chunk(content="lo"), chunk("stop"), "[DONE]"],
        [
            "TEXT_MESSAGE_START id1",
            "TEXT_MESSAGE_CONTENT id1 Hel",
            "TEXT_MESSAGE_CONTENT id1 lo",
            "TEXT_MESSAGE_END id1",
            "RUN_FINISHED",
        ],
    ),
    "reasoning, as DeepSeek has it": (
        [chunk(reasoning_content="Hm", content=None), chunk(reasoning_content="."), chunk("stop", content="Yes")],
        [
            "REASONING_START id1",
            "REASONING_MESSAGE_START id1",
            "REASONING_MESSAGE_CONTENT id1 Hm",
            "REASONING_MESSAGE_CONTENT id1 .",
            "REASONING_MESSAGE_END id1",
            "REASONING_END id1",
            "TEXT_MESSAGE_START id2",
            "TEXT_MESSAGE_CONTENT id2 Yes",
            "TEXT_MESSAGE_END id2",
            "RUN_FINISHED",
        ],
    ),
    "reasoning, as OpenRouter has it, between text": (
        [chunk(content="A"), chunk(reasoning="Hm", reasoning_details=[{}]), chunk("stop", content="B")],
        [
            "TEXT_MESSAGE_START id1",
            "TEXT_MESSAGE_CONTENT id1 A",
            "TEXT_MESSAGE_END id1",
            "REASONING_START id2",
            "REASONING_MESSAGE_START id2",
            "REASONING_MESSAGE_CONTENT id2 Hm",
            "REASONING_MESSAGE_END id2",
            "REASONING_END id2",
            "TEXT_MESSAGE_START id3",
            "TEXT_MESSAGE_CONTENT id3 B",
            "TEXT_MESSAGE_END id3",
            "RUN_FINISHED",
        ],
    ),
    "two calls, their parts in turn": (
        [
            chunk(content="Wait."),
            call(0, "c1", "look", ""),
            call(1, "c2", "hear", "{"),
            call(0, None, None, "{}"),
            call(1, None, None, "}"),
            chunk("tool_calls"),
        ],
        [
            "TEXT_MESSAGE_START id1",
            "TEXT_MESSAGE_CONTENT id1 Wait.",
            "TEXT_MESSAGE_END id1",
            FIRST_CALL,
            "TOOL_CALL_START c2 hear id1",
            "TOOL_CALL_ARGS c2 {",
            "TOOL_CALL_ARGS c1 {}",
            "TOOL_CALL_ARGS c2 }",
            "TOOL_CALL_END c1",
            "TOOL_CALL_END c2",
            "RUN_FINISHED",
        ],
    ),
    "every call is numbered the first": (
        [call(0, "c1", "look", "{}"), call(0, "c2", "hear", "{}"), chunk("tool_calls")],
        [
            FIRST_CALL,
            "TOOL_CALL_ARGS c1 {}",
            "TOOL_CALL_START c2 hear id1",
            "TOOL_CALL_ARGS c2 {}",
            "TOOL_CALL_END c1",
            "TOOL_CALL_END c2",
            "RUN_FINISHED",
        ],
    ),
    "no call is numbered": (
        [call(None, "c1", "look", "{"), call(None, None, None, "}"), call(None, "c2", "hear"), chunk("tool_calls")],
        [
            FIRST_CALL,
            "TOOL_CALL_ARGS c1 {",
            "TOOL_CALL_ARGS c1 }",
            "TOOL_CALL_START c2 hear id1",
            "TOOL_CALL_END c1",
            "TOOL_CALL_END c2",
            "RUN_FINISHED",
        ],
    ),
    "id and name are in every part": (
        [call(0, "c1", "look", "{"), call(0, "c1", "look", "}"), chunk("tool_calls")],
        [FIRST_CALL, "TOOL_CALL_ARGS c1 {", "TOOL_CALL_ARGS c1 }", "TOOL_CALL_END c1", "RUN_FINISHED"],
    ),
    "a call without an id, its arguments no text": (
        [call(0, "", "look", {"at": 1}), chunk("stop")],
        ["TOOL_CALL_START id1 look id2", 'TOOL_CALL_ARGS id1 {"at": 1}', "TOOL_CALL_END id1", "RUN_FINISHED"],
    ),
    "a call without a name": ([call(0, "c1", None, "{}")], ["RUN_ERROR model_error"]),
    "text behind a call": (
        [call(0, "c1", "look"), chunk(content="So."), chunk("stop")],
        [
            FIRST_CALL,
            "TEXT_MESSAGE_START id2",
            "TEXT_MESSAGE_CONTENT id2 So.",
            "TEXT_MESSAGE_END id2",
            "TOOL_CALL_END c1",
            "RUN_FINISHED",
        ],
    ),
    "a refusal in words": (
        [chunk(refusal="I will not.", content=None), chunk("stop")],
        ["TEXT_MESSAGE_START id1", "TEXT_MESSAGE_CONTENT id1 I will not.", "TEXT_MESSAGE_END id1", "RUN_FINISHED"],
    ),
    "too long, in a call": (
        [call(0, "c1", "look", '{"a'), chunk("length")],
        [FIRST_CALL, 'TOOL_CALL_ARGS c1 {"a', "RUN_ERROR length"],
    ),
    "filtered": (
        [chunk(content="How"), chunk("content_filter"), "[DONE]"],
        [
            "TEXT_MESSAGE_START id1",
            "TEXT_MESSAGE_CONTENT id1 How",
            "TEXT_MESSAGE_END id1",
            "RUN_ERROR content_filter",
        ],
    ),
    "cut": (
        [chunk(content="How")],
        ["TEXT_MESSAGE_START id1", "TEXT_MESSAGE_CONTENT id1 How", "TEXT_MESSAGE_END id1", "RUN_ERROR stream_cut"],
    ),
    "nothing at all": ([], ["RUN_ERROR stream_cut"]),
    "nothing, and done": (["[DONE]"], ["RUN_FINISHED"]),
    "an error": ([{"error": {"message": "sk-secret", "code": "overloaded"}}], ["RUN_ERROR model_error"]),
    "an error in plain words": ([{"error": "sk-secret"}], ["RUN_ERROR model_error"]),
    "an error behind a complete answer": ([chunk("stop"), {"error": "late"}], ["RUN_FINISHED"]),
    "no JSON": (["<html>"], ["RUN_ERROR model_error"]),
    "no object": (["[1]"], ["RUN_ERROR model_error"]),
    "nested without end": (["[" * 100_000], ["RUN_ERROR model_error"]),
    "other shapes": (
        [
            {},
            {"choices": None},
            {"choices": [1, {}]},
            chunk(content=7, tool_calls={"a": 1}),
            chunk(tool_calls=["x"]),
            {"choices": [{"delta": None, "finish_reason": "stop"}]},
        ],
        ["RUN_FINISHED"],
    ),
    "not streamed": (
        [{"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}],
        ["TEXT_MESSAGE_START id1", "TEXT_MESSAGE_CONTENT id1 Hi", "TEXT_MESSAGE_END id1", "RUN_FINISHED"],
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer(case: str) -> None:
    chunks, expected = ANSWERS[case]
    events = told(chunks)
    assert short(events) == expected
    assert "secret" not in str(events)


def test_an_answer_that_broke_off_behind_its_end_is_whole() -> None:
    broken = ModelError("The connection broke.", "stream_cut")
    assert short(told([chunk("stop", content="Hi")], broken))[-1] == "RUN_FINISHED"
    assert short(told([chunk(content="Hi")], broken))[-1] == "RUN_ERROR stream_cut"


USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 7,
    "total_tokens": 12,
    "completion_tokens_details": {"reasoning_tokens": 3},
    "prompt_tokens_details": None,
}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (USAGE, {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12, "reasoningTokens": 3}),
        ({"prompt_tokens": -1, "completion_tokens": True, "total_tokens": 2**53}, {}),
    ],
)
def test_usage(usage: Any, expected: Any) -> None:
    last = {"model": "m-1", "choices": [], "usage": usage}
    assert told([chunk("stop"), last, "[DONE]"])[-1]["usage"] == [{"model": "m-1", **expected}]
    assert told([chunk("length"), last])[-1]["usage"] == [{"model": "m-1", **expected}]
    assert "usage" not in told([{**chunk("stop"), "usage": None}])[-1]


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "x", "stop", "c1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
some_delta = st.fixed_dictionaries(
    {},
    optional={
        "content": anything,
        "reasoning": anything,
        "tool_calls": anything
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "index": anything,
                    "id": anything,
                    "function": anything
                    | st.fixed_dictionaries({}, optional={"name": anything, "arguments": anything}),
                },
            ),
            max_size=3,
        ),
    },
)
some_chunk = anything | st.fixed_dictionaries(
    {},
    optional={
        "error": anything,
        "usage": anything | st.fixed_dictionaries({"prompt_tokens_details": anything}),
        "choices": anything
        | st.lists(st.fixed_dictionaries({}, optional={"delta": some_delta, "finish_reason": anything}), max_size=2),
    },
)


@given(st.lists(some_chunk, max_size=8))
def test_whatever_comes_the_run_is_legal_and_ended(chunks: list[Any]) -> None:
    assert told(chunks)[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")


@pytest.mark.parametrize(
    ("retry_after", "said"),
    [
        ("20", "try again in 20 seconds"),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "try again after Wed, 21 Oct 2026 07:28:00 GMT"),
        ("", None),
        ("sk-secret", None),
        ("²", None),
        ("9" * 5000, None),
        ("x" * 5000 + " GMT", None),
    ],
)
def test_when_to_ask_again(retry_after: str, said: str | None) -> None:
    error = refused(429, "", retry_after)
    assert error.code == "rate_limited"
    assert str(error) == f"The model takes no more requests for now (HTTP 429){': ' + said if said else ''}."


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": 429}, "rate_limited"),
        ({"code": "rate_limit_exceeded"}, "rate_limited"),
        ({"code": 401, "message": "sk-secret"}, "key_refused"),
        ({"code": 200}, "model_error"),
        ({"code": True}, "model_error"),
        ([1], "model_error"),
    ],
)
def test_an_error_that_is_reported(error: Any, code: str) -> None:
    assert reported(error).code == code
    assert "secret" not in str(reported(error))
    assert code != "key_refused" or not reported(error).detail
