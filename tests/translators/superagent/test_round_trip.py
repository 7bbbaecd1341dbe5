"""Down and up again: a client has the same text, reasoning, calls, results and outcome."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import SSEDecoder, decode_event
from agui_pipeline.translators._client_view import ClientView
from agui_pipeline.translators._verifier import problems_of
from agui_pipeline.translators.superagent import COMPATIBLE, ENVELOPED, FLAT
from tests.translators.superagent.kit import (
    DIALECTS,
    FINISH,
    START,
    Down,
    Up,
    Wire,
    call,
    interrupted,
    message,
    result,
    thought,
)
from tests.translators.superagent.scenario import EVENTS
from tests.translators.superagent.test_fences import told


def there_and_back(dialect: str, events: list[Wire]) -> Up:
    decoder = SSEDecoder()
    frames = decoder.feed(Down(dialect, events).sent)
    up = Up(dialect, [*frames, *decoder.flush()])
    assert problems_of(up.objects) == []
    return up


def seen(events: list[Any]) -> Wire:
    """What a client has of a stream: its text as a reader of Markdown sees it, calls, results, reasoning, outcome."""
    view = ClientView(on_diagnostic=lambda _: None)
    for event in events:
        view.apply(decode_event(event) if isinstance(event, dict) else event)
    calls = [call for one in view.messages for call in one.get("toolCalls") or ()]
    names = {call["id"]: call["function"]["name"] for call in calls}
    return {
        "text": [
            (language, text if language is None else text.removesuffix("\n"))
            for one in view.messages
            if one["role"] == "assistant"
            for language, text in told([one.get("content") or ""])
        ],
        "plain": "".join(one.get("content") or "" for one in view.messages if one["role"] == "assistant"),
        "reasoning": "".join(one["content"] for one in view.messages if one["role"] == "reasoning"),
        "calls": [(call["function"]["name"], _json(call["function"]["arguments"])) for call in calls],
        "results": [
            (names.get(one["toolCallId"]), _json(one["content"]), (one.get("metadata") or {}).get("is_error", False))
            for one in view.messages
            if one["role"] == "tool"
        ],
        "outcome": view.outcome,
        "error": view.error and (view.error["code"], view.error["message"]),
        "questions": [one.get("message") or one["reason"] for one in view.interrupts],
    }


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_scenario_comes_back(dialect: str) -> None:
    before, after = seen(EVENTS), seen(there_and_back(dialect, EVENTS).objects)
    del before["plain"], after["plain"]
    if dialect != ENVELOPED:  # which alone says where a message begins
        before["text"], after["text"] = _joined(before["text"]), _joined(after["text"])
    assert after == before


def _joined(text: list[tuple[str | None, str]]) -> list[tuple[str | None, str]]:
    out: list[tuple[str | None, str]] = []
    for language, part in text:
        if out and out[-1][0] == language and language is None:
            out[-1] = (language, out[-1][1] + part)
        else:
            out.append((language, part))
    return out


def test_ids_come_back_where_the_dialect_has_them() -> None:
    for dialect in (ENVELOPED, COMPATIBLE):
        up = there_and_back(dialect, [START, *call("{}", id="abc"), result("r", "abc"), FINISH])
        assert up.of("TOOL_CALL_RESULT")[0]["toolCallId"] == "abc"
        assert up.of("TOOL_CALL_START")[0]["toolCallId"] == "abc"


def test_timestamps_and_usage_come_back_where_the_dialect_has_them() -> None:
    usage = [{"inputTokens": 3, "outputTokens": 4}]
    events = [START, *message("a"), {**FINISH, "usage": usage, "timestamp": 7}]
    assert there_and_back(FLAT, events).events[-1]["usage"] == usage
    assert there_and_back(ENVELOPED, events).events[-1]["timestamp"] == 7


def test_fields_of_a_question_come_back() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "boolean", "title": "A?"}, "b": {"type": "string", "enum": ["x", "y"]}},
        "required": ["b"],
    }
    up = there_and_back(ENVELOPED, [START, interrupted({"id": "i", "reason": "r", "responseSchema": schema})])
    assert up.events[-1]["outcome"]["interrupts"][0]["responseSchema"] == schema


WORDS = st.lists(
    st.sampled_from(
        ["a", "b\n", "\n", "```", "```py\n", "\n```\n", "`", "~~~\n", " ", "x = 1\n", "[DONE]", '{"type":1}', "😀"]
    ),
    max_size=8,
)
ARGUMENTS = st.sampled_from(["", "{}", '{"a":1}', "[1]", "odd", '{"a":"\\n\\n"}'])
CONTENT = st.sampled_from(["", "r", '{"a": 1}', "[1]", "42", "{", "a\n\nb"])
OUTCOMES: list[Wire] = [
    FINISH,
    interrupted({"id": "1", "reason": "r", "message": "Sure?"}),
    interrupted({"id": "1", "reason": "r", "message": "One?"}, {"id": "2", "reason": "two"}),
    {**FINISH, "outcome": {"type": "cancelled"}},
    {"type": "RUN_ERROR", "message": "m", "code": "C"},
]


@st.composite
def runs(draw: st.DrawFn) -> list[Wire]:
    """Legal runs of messages, thoughts, calls and results one behind the other."""
    events = [START]
    for number in range(draw(st.integers(0, 5))):
        match draw(st.sampled_from(("message", "message", "thought", "call", "step", "subagent"))):
            case "message":
                # Only one dialect says where a message begins: in the others two that share a line are one text.
                events += message(*draw(WORDS), "\n", id=f"m{number}")
            case "thought":
                events += thought(*filter(None, draw(WORDS)), id=f"q{number}")
            case "call":
                ids = [f"c{number}-{one}" for one in range(draw(st.integers(1, 3)))]  # made side by side
                for id in ids:
                    events += call(draw(ARGUMENTS), id=id, name=draw(st.sampled_from("fg")))
                for id in ids:
                    failed: Wire = {"metadata": {"is_error": True}} if draw(st.booleans()) else {}
                    events.append(result(draw(CONTENT), id, **failed))
            case "step":
                events += [{"type": f"STEP_{part}", "stepName": "s"} for part in ("STARTED", "FINISHED")]
            case _:
                tag = {"subagentRunId": f"s{number}"}
                events += [{"type": "SUBAGENT_STARTED", "name": "n", **tag}, {"type": "SUBAGENT_FINISHED", **tag}]
    return [*events, draw(st.sampled_from(OUTCOMES))]


@given(runs())
def test_down_and_up_is_the_same_to_a_client(events: list[Wire]) -> None:
    for dialect in DIALECTS:
        before, after = seen(events), seen(there_and_back(dialect, events).objects)
        for found in (before, after):
            # Messages may be one or several; all else of them counts: the text, the code, in order. In the compatible
            # dialect code is text, and what begins a line of a message may not begin one of the joined text.
            found["text"] = "".join(text for _, text in found["text"]).replace("\n", "")
            found["plain"] = found["plain"] if dialect == COMPATIBLE else ""
            found["text"] = found["text"] if dialect != COMPATIBLE else ""
            found["calls"] = [(name, {} if arguments == "" else arguments) for name, arguments in found["calls"]]
        assert after == before
