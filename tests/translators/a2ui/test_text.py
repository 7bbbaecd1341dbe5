"""Prose goes on as text: the same events where it can be, in the form it came in, legal for the client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agui_pipeline.translators import AnyEvent, decode_event, typed
from agui_pipeline.translators.a2ui import VERSIONS
from tests.translators.a2ui.streams import (
    BEGIN,
    DELETE,
    FINISHED,
    STARTED,
    Wire,
    as_wire,
    chunk,
    content,
    create,
    custom,
    end,
    lines,
    raw,
    run_of,
    start,
    translate,
)

CHAT: dict[str, Any] = {"carrier": "custom", "on_invalid": "text", "pass_through": "all", "versions": VERSIONS}
RECORD = json.dumps(BEGIN)


@pytest.mark.parametrize("models", [False, True], ids=["wire", "models"])
def test_a_delta_that_is_all_prose_is_the_same_event(*, models: bool) -> None:
    wires = run_of(start(), content("Hello "), content("world\n"), end())
    events: list[AnyEvent] = [decode_event(event) for event in wires]
    if models:
        events = [typed(event) for event in events]
    out = translate(events, **CHAT).objects
    assert len(out) == len(events)
    assert all(one is other for one, other in zip(out, events, strict=True))


def test_so_is_a_chunk() -> None:
    events = [decode_event(event) for event in run_of(chunk("Hello ", "m"), chunk("world"), chunk(" 1", "m"))]
    out = translate(events, **CHAT).objects
    assert all(one is other for one, other in zip(out, events, strict=True))


def test_a_held_delta_that_turns_out_to_be_prose_is_the_same_event() -> None:
    events = [decode_event(event) for event in run_of(start(), content("Hi\n"), content("``"), end())]
    out = translate(events, **CHAT).objects
    assert [as_wire(event) for event in out] == run_of(start(), content("Hi\n"), content("``"), end())
    assert out[3] is events[3]


def test_start_goes_out_before_the_first_prose_and_end_only_if_it_did() -> None:
    events = run_of(start("a"), content(RECORD, "a"), end("a"), start("b"), content(RECORD + "\nHi", "b"), end("b"))
    assert translate(events, **CHAT).events == run_of(
        custom(BEGIN), custom(BEGIN), start("b"), content("Hi", "b"), end("b")
    )


def test_the_opener_is_the_original_with_all_it_says() -> None:
    opened = start(name="bot", metadata={"k": 1}, rawEvent={"x": 1}, unknown="kept")
    assert translate(run_of(opened, content("Hi"), end()), **CHAT).events == run_of(opened, content("Hi"), end())


def test_order_within_one_delta() -> None:
    text = f"a\n{RECORD}\nb\n{json.dumps(DELETE)}\nc"
    assert translate(run_of(start(), content(text), end()), **CHAT).events == run_of(
        start(), content("a\n"), custom(BEGIN), content("b\n"), custom(DELETE), content("c"), end()
    )


def test_a_refused_record_goes_on_as_it_was() -> None:
    for framing in ("objects", "lines"):
        text = 'Look: \n{"temperature": 21}\n{"version": "v0.9"}\r\n \u3000{"a":1}\n'
        out = translate(run_of(start(), content(text), end()), framing=framing, **CHAT)
        assert out.events == run_of(start(), content(text), end())
        # White space that is none to JSON makes the last one prose where the start of a line counts.
        assert out.codes == ["a2ui.invalid"] * (2 if framing == "objects" else 3)


def test_what_an_event_says_besides_its_text_goes_on_once() -> None:
    event = content(f"a\n{RECORD}\nb", metadata={"k": 1}, rawEvent={"x": 1}, timestamp=7)
    assert translate(run_of(start(), event, end()), **CHAT).events == run_of(
        start(),
        content("a\n", metadata={"k": 1}, rawEvent={"x": 1}, timestamp=7),
        custom(BEGIN, timestamp=7),
        content("b", timestamp=7),
        end(),
    )


def test_metadata_of_a_held_delta_goes_on_with_its_text() -> None:
    events = run_of(
        start(),
        content("Hi\n", metadata={"z": 0}),
        content("`", metadata={"a": 1, "b": 1}),
        content("code`", metadata={"b": 2}),
        end(),
    )
    assert translate(events, **CHAT).events == run_of(
        start(), content("Hi\n", metadata={"z": 0}), content("`code`", metadata={"a": 1, "b": 2}), end()
    )


def test_metadata_of_a2ui_text_goes_on_with_the_prose_behind_it() -> None:
    events = run_of(start(), content("Hi\n"), content(RECORD + "\n", metadata={"a": 1}), content("there"), end())
    assert translate(events, **CHAT).events == run_of(
        start(), content("Hi\n"), custom(BEGIN), content("there", metadata={"a": 1}), end()
    )


def test_metadata_that_is_left_over_goes_on_with_the_end() -> None:
    events = run_of(start(), content("Hi\n"), content(RECORD, metadata={"a": 1}), end(metadata={"b": 2}))
    assert translate(events, **CHAT).events == run_of(
        start(), content("Hi\n"), custom(BEGIN), end(metadata={"a": 1, "b": 2})
    )


def test_of_chunks_too() -> None:
    events = run_of(chunk("Hi\n", "m"), chunk(RECORD, metadata={"a": 1}))
    assert translate(events, **CHAT).events == run_of(
        chunk("Hi\n", "m"), custom(BEGIN), chunk(id="m", metadata={"a": 1})
    )


def test_an_event_without_text_goes_on_for_what_else_it_says() -> None:
    usage = content("", metadata={"tokens": 9})
    events = run_of(start(), content("Hi"), usage, end())
    assert translate(events, **CHAT).events == events
    held = run_of(start(), usage, content("Hi"), end())
    assert translate(held, **CHAT).events == run_of(start(), content("Hi", metadata={"tokens": 9}), end())


def test_a_raw_event_that_cannot_go_on_is_reported() -> None:
    events = run_of(start(), content("`", rawEvent=1), content("code`", rawEvent=2), end())
    out = translate(events, **CHAT)
    assert out.events == run_of(start(), content("`code`", rawEvent=2), end())
    assert out.detail("a2ui.raw-event") == {"count": 1}


def test_raw_events_of_a2ui_text_are_nobodys_loss() -> None:
    parts = [content(RECORD[at : at + 5], rawEvent=at) for at in range(0, len(RECORD), 5)]
    assert translate(run_of(start(), *parts, content("\nHi"), end()), **CHAT).codes == []


# Chunks


def test_a_chunk_after_a_custom_event_says_again_whose_it_is() -> None:
    """CUSTOM ends the client's stream: the next chunk without an id would be fatal."""
    opener = chunk(f"Hello\n{RECORD}\n", "m", name="bot", role="assistant", subagentRunId="sub")
    out = translate(run_of(opener, chunk("world", subagentRunId="sub"), chunk("!", subagentRunId="sub")), **CHAT)
    named = {"name": "bot", "role": "assistant", "subagentRunId": "sub"}
    assert out.events == run_of(
        chunk("Hello\n", "m", **named),
        custom(BEGIN, subagentRunId="sub"),
        chunk("world", "m", **named),
        chunk("!", subagentRunId="sub"),
    )


def test_raw_ends_no_stream() -> None:
    out = translate(run_of(chunk(f"Hello\n{RECORD}\n", "m"), chunk("world")), on_invalid="text")
    assert out.events == run_of(chunk("Hello\n", "m"), raw(BEGIN), chunk("world"))


def test_prose_that_comes_after_a_first_chunk_without_any_is_named() -> None:
    out = translate(run_of(chunk(RECORD, "m", name="bot"), chunk("Hi"), chunk("!")), **CHAT)
    assert out.events == run_of(custom(BEGIN), chunk("Hi", "m", name="bot"), chunk("!"))


def test_a_first_chunk_without_text_opens_the_message() -> None:
    out = translate(run_of(chunk(id="m", metadata={"a": 1}), chunk("Hi"), chunk(), chunk("!")), **CHAT)
    assert out.events == run_of(chunk("Hi", "m", metadata={"a": 1}), chunk(), chunk("!"))
    assert out.codes == []


CLOSERS: list[Wire] = [
    {"type": "TOOL_CALL_START", "toolCallId": "t", "toolCallName": "n"},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "t", "toolCallName": "n"},
    {"type": "TOOL_CALL_RESULT", "toolCallId": "t", "messageId": "r", "content": "x"},
    {"type": "STATE_DELTA", "delta": []},
    {"type": "CUSTOM", "name": "n", "value": 1},
    {"type": "STEP_STARTED", "stepName": "x"},
    {"type": "REASONING_MESSAGE_CHUNK", "messageId": "q", "delta": "hm"},
    {"type": "REASONING_START", "messageId": "q"},
    {"type": "MESSAGES_SNAPSHOT", "messages": []},
    start("other"),
    chunk("x", "other"),
    {**start("user"), "role": "user"},
    {"type": "RUN_ERROR", "message": "boom"},
    FINISHED,
]
KEEPERS: list[Wire] = [
    {"type": "RAW", "event": 1},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "x", "content": {}},
    {"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "x", "patch": []},
    {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "a", "encryptedValue": "x"},
    {"type": "SUBAGENT_STARTED", "subagentRunId": "sub", "agentName": "x"},
    {"type": "STATE_DELTA", "delta": [], "subagentRunId": "sub"},
    chunk("x", "other", subagentRunId="sub"),
    {"type": "FROM_NEXT_YEAR"},
]


@pytest.mark.parametrize("closer", CLOSERS, ids=lambda event: event["type"])
def test_what_ends_a_chunk_stream_flushes_it_first(closer: Wire) -> None:
    events = [STARTED, chunk("Hi\n", "m"), chunk('{"half'), closer]
    out = translate(events, flush=False, **CHAT).events
    assert out[:3] == [STARTED, chunk("Hi\n", "m"), chunk('{"half')]
    if closer["type"] != "TEXT_MESSAGE_START" or closer["role"] == "user":
        assert out[3:] == [closer]


@pytest.mark.parametrize("pass_through", [None, "all"])
@pytest.mark.parametrize("closer", CLOSERS[:9], ids=lambda event: event["type"])
def test_whether_it_passes_or_not(closer: Wire, pass_through: Any) -> None:
    events = [STARTED, chunk('{"half', "m"), closer, chunk('":1}', "m")]
    out = translate(events, on_invalid="raw", pass_through=pass_through).events
    kept = [event["event"] for event in out if event["type"] == "RAW"]
    assert kept == ['{"half', '":1}']


@pytest.mark.parametrize("keeper", KEEPERS, ids=lambda event: event["type"])
def test_what_does_not_end_it_leaves_it_alone(keeper: Wire) -> None:
    events = [STARTED, chunk(RECORD[:9], "m"), keeper, chunk(RECORD[9:], "m"), FINISHED]
    out = translate(events, **CHAT)
    assert custom(BEGIN) in out.events
    assert out.codes == []


def test_a_subagents_end_ends_its_stream() -> None:
    finished = {"type": "SUBAGENT_FINISHED", "subagentRunId": "sub"}
    events = [STARTED, chunk("{", "m", subagentRunId="sub"), chunk("{", "p"), finished, FINISHED]
    out = translate(events, **CHAT).events
    assert out == [STARTED, chunk("{", "m", subagentRunId="sub"), finished, chunk("{", "p"), FINISHED]


def test_one_stream_a_subagent() -> None:
    one, two = json.dumps(BEGIN), json.dumps(create())
    events = run_of(
        chunk(one[:9], "m1"),
        chunk(two[:9], "m2", subagentRunId="sub"),
        chunk(one[9:]),
        chunk(two[9:], subagentRunId="sub"),
    )
    assert translate(events, **CHAT).events == run_of(custom(BEGIN), custom(create(), subagentRunId="sub"))


def test_an_untagged_chunk_finds_its_message_by_id() -> None:
    events = run_of(chunk("{", "p"), chunk(RECORD[:9], "m", subagentRunId="sub"), chunk(RECORD[9:], "m"))
    assert custom(BEGIN, subagentRunId="sub") in translate(events, **CHAT).events


def test_an_untagged_chunk_without_id_continues_the_only_stream() -> None:
    events = run_of(chunk(RECORD[:9], "m", subagentRunId="sub"), chunk(RECORD[9:]))
    assert translate(events, **CHAT).events == run_of(custom(BEGIN, subagentRunId="sub"))


def test_where_several_streams_could_be_meant_none_is_taken() -> None:
    """The client refuses such a chunk; here it is reported, and no message gets another's text."""
    half = RECORD[:9]
    events = run_of(chunk(half, "m1", subagentRunId="s1"), chunk(half, "m2", subagentRunId="s2"), chunk(RECORD[9:]))
    result = translate(events, on_invalid="raw")
    assert result.codes == ["a2ui.sequence", "a2ui.broken", "a2ui.broken"]
    assert raw(BEGIN) not in result.events


def test_it_is_named_where_the_client_could_take_it_for_anothers() -> None:
    """The END that closed the parent's stream at the source is withheld: at the client that stream is still open."""
    events = run_of(
        start("t"),
        chunk("one", "p"),
        chunk("two", "m", subagentRunId="sub", role="user"),
        end("t"),
        chunk("three"),
    )
    assert translate(events, **CHAT).events == run_of(
        chunk("one", "p"),
        chunk("two", "m", subagentRunId="sub", role="user"),
        chunk("three", "m", subagentRunId="sub", role="user"),
    )


def test_a_start_that_comes_late_ends_a_stream_at_the_client() -> None:
    events = run_of(
        start("t", subagentRunId="sub"),
        chunk("one", "m", subagentRunId="sub"),
        content("two", "t"),
        chunk("three", subagentRunId="sub"),
        end("t"),
    )
    assert translate(events, **CHAT).events == run_of(
        chunk("one", "m", subagentRunId="sub"),
        start("t", subagentRunId="sub"),
        content("two", "t"),
        chunk("three", "m", subagentRunId="sub"),
        end("t"),
    )


def test_a_tool_call_is_named_where_a_carrier_event_ended_it_at_the_client() -> None:
    call = {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "subagentRunId": "sub"}
    more = {"type": "TOOL_CALL_CHUNK", "delta": "{}", "subagentRunId": "sub"}
    events = run_of(start("t", subagentRunId="sub"), call, content(RECORD, "t"), more, end("t"))
    assert translate(events, **CHAT).events == run_of(call, custom(BEGIN, subagentRunId="sub"), {**call, "delta": "{}"})


# Other roles


@pytest.mark.parametrize("role", ["user", "system", "developer", "tool", "reasoning", "of next year", 5])
@pytest.mark.parametrize("on_invalid", ["raw", "text", "drop", "error"])
def test_text_of_other_roles_passes_as_it_is(role: Any, on_invalid: str) -> None:
    events = run_of(
        {**start("u", subagentRunId="sub"), "role": role},
        content(lines(BEGIN), "u"),  # untagged, and still the same message
        content("", "u"),
        end("u", subagentRunId="sub"),
        chunk(RECORD, "c", role=role),
        chunk("{"),
        chunk(),
    )
    result = translate(events, on_invalid=on_invalid)
    assert result.events == events
    assert result.codes == []


def test_it_interleaves_with_the_assistants() -> None:
    user = {**start("u"), "role": "user"}
    events = run_of(start(), content(RECORD[:9]), user, content("x", "u"), content(RECORD[9:]), end("u"), end())
    assert translate(events).events == run_of(user, content("x", "u"), raw(BEGIN), end("u"))
