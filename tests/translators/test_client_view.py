"""What the official client has after a run's events, event type by event type."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    MessagesSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    UserMessage,
)

from agui_pipeline.translators._client_view import ClientView
from agui_pipeline.translators._diagnostics import Diagnostic
from agui_pipeline.translators._events import decode_event

JSONObject = dict[str, Any]


def seen(
    *events: JSONObject, messages: Any = (), state: Any = None, problems: list[Diagnostic] | None = None
) -> ClientView:
    """Apply events; without `problems`, there must be none."""
    found: list[Diagnostic] = []
    view = ClientView(messages, state, found.append)
    for event in events:
        before = copy.deepcopy(event)
        view.apply(decode_event(event))
        assert event == before
    if problems is None:
        assert found == []
    else:
        problems += found
    return view


def start(id: str, **fields: Any) -> JSONObject:
    return {"type": "TEXT_MESSAGE_START", "messageId": id, **fields}


def content(id: str, delta: str, **fields: Any) -> JSONObject:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta, **fields}


def end(id: str, **fields: Any) -> JSONObject:
    return {"type": "TEXT_MESSAGE_END", "messageId": id, **fields}


def call(id: str, name: str = "add", **fields: Any) -> JSONObject:
    return {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, **fields}


def args(id: str, delta: str, **fields: Any) -> JSONObject:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta, **fields}


def result(id: str, call_id: str, content: str = "84", **fields: Any) -> JSONObject:
    return {"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call_id, "content": content, **fields}


def patch(*operations: JSONObject) -> JSONObject:
    return {"type": "STATE_DELTA", "delta": list(operations)}


def snapshot(*messages: JSONObject, **fields: Any) -> JSONObject:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages), **fields}


def activity(id: str, content: Any, kind: str = "plan", **fields: Any) -> JSONObject:
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": kind, "content": content, **fields}


def user(id: str) -> JSONObject:
    return {"id": id, "role": "user", "content": id}


def a_call(id: str, arguments: str = "", name: str = "add", **fields: Any) -> JSONObject:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def an_activity(id: str, content: Any, kind: str = "plan", **fields: Any) -> JSONObject:
    return {"id": id, "role": "activity", "activityType": kind, "content": content, **fields}


MESSAGES: dict[str, tuple[list[JSONObject], list[JSONObject]]] = {
    "text": (
        [start("m"), content("m", "Hel"), content("m", "lo"), end("m")],
        [{"id": "m", "role": "assistant", "content": "Hello"}],
    ),
    "text with a role and a name": (
        [start("m", role="user", name="Ada"), content("m", "Hi"), end("m")],
        [{"id": "m", "role": "user", "content": "Hi", "name": "Ada"}],
    ),
    "messages that interleave": (
        [start("a"), start("b"), content("b", "2"), content("a", "1"), end("b"), end("a")],
        [{"id": "a", "role": "assistant", "content": "1"}, {"id": "b", "role": "assistant", "content": "2"}],
    ),
    "an empty message": ([start("m"), end("m")], [{"id": "m", "role": "assistant", "content": ""}]),
    "metadata, key by key": (
        [
            start("m", metadata={"a": 1, "b": 1}),
            content("m", "x", metadata={"b": 2}),
            end("m", metadata={"c": None}),
        ],
        [{"id": "m", "role": "assistant", "content": "x", "metadata": {"a": 1, "b": 2, "c": None}}],
    ),
    "a subagent's message": (
        [start("m", subagentRunId="s"), content("m", "x")],
        [{"id": "m", "role": "assistant", "content": "x", "subagentRunId": "s"}],
    ),
    "text chunks": (
        [
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "Hel"},
            {"type": "RAW", "event": {}},
            {"type": "TEXT_MESSAGE_CHUNK", "delta": "lo"},
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "n", "delta": "next"},
        ],
        [
            {"id": "m", "role": "assistant", "content": "Hello"},
            {"id": "n", "role": "assistant", "content": "next"},
        ],
    ),
    "chunks in two lanes": (
        [
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "1"},
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "n", "delta": "a", "subagentRunId": "s"},
            {"type": "TEXT_MESSAGE_CHUNK", "delta": "2"},
            {"type": "TEXT_MESSAGE_CHUNK", "delta": "b", "subagentRunId": "s"},
        ],
        [
            {"id": "m", "role": "assistant", "content": "12"},
            {"id": "n", "role": "assistant", "content": "ab", "subagentRunId": "s"},
        ],
    ),
    "a tool call": (
        [call("c"), args("c", '{"a":'), args("c", "1}"), {"type": "TOOL_CALL_END", "toolCallId": "c"}],
        [{"id": "c", "role": "assistant", "toolCalls": [a_call("c", '{"a":1}')]}],
    ),
    "tool calls of a message": (
        [start("m"), content("m", "Well"), end("m"), call("c", parentMessageId="m"), call("d", parentMessageId="m")],
        [{"id": "m", "role": "assistant", "content": "Well", "toolCalls": [a_call("c"), a_call("d")]}],
    ),
    "a tool call before the text of its message": (
        [call("c", parentMessageId="m"), start("m"), content("m", "x")],
        [{"id": "m", "role": "assistant", "toolCalls": [a_call("c")], "content": "x"}],
    ),
    "tool call chunks": (
        [
            {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "add", "delta": "{"},
            {"type": "TOOL_CALL_CHUNK", "delta": "}"},
        ],
        [{"id": "c", "role": "assistant", "toolCalls": [a_call("c", "{}")]}],
    ),
    "a tool call that is started twice": (
        [call("c"), args("c", "{}"), call("c", "sub", metadata={"k": 1})],
        [{"id": "c", "role": "assistant", "toolCalls": [a_call("c", "{}", "sub", metadata={"k": 1})]}],
    ),
    "a result": (
        [call("c"), result("r", "c", metadata={"ms": 3})],
        [
            {"id": "c", "role": "assistant", "toolCalls": [a_call("c")]},
            {"id": "r", "role": "tool", "toolCallId": "c", "content": "84", "metadata": {"ms": 3}},
        ],
    ),
    "results stand behind their call, in order": (
        [call("c"), call("d", parentMessageId="c"), start("m"), result("r", "c"), result("s", "d")],
        [
            {"id": "c", "role": "assistant", "toolCalls": [a_call("c"), a_call("d")]},
            {"id": "r", "role": "tool", "toolCallId": "c", "content": "84"},
            {"id": "s", "role": "tool", "toolCallId": "d", "content": "84"},
            {"id": "m", "role": "assistant", "content": ""},
        ],
    ),
    "a result of a call that nobody made": (
        [start("m"), result("r", "c")],
        [
            {"id": "m", "role": "assistant", "content": ""},
            {"id": "r", "role": "tool", "toolCallId": "c", "content": "84"},
        ],
    ),
    "reasoning": (
        [
            {"type": "REASONING_START", "messageId": "r"},
            {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"},
            {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "hm"},
            {"type": "REASONING_MESSAGE_END", "messageId": "r"},
            {"type": "REASONING_END", "messageId": "r"},
            {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "…"},
        ],
        [{"id": "r", "role": "reasoning", "content": "hm", "encryptedValue": "…"}],
    ),
    "reasoning chunks": (
        [
            {"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "h"},
            {"type": "REASONING_MESSAGE_CHUNK", "delta": "m"},
        ],
        [{"id": "r", "role": "reasoning", "content": "hm"}],
    ),
    "an encrypted value of a tool call": (
        [
            call("c"),
            {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call", "entityId": "c", "encryptedValue": "…"},
        ],
        [{"id": "c", "role": "assistant", "toolCalls": [a_call("c", encryptedValue="…")]}],
    ),
    "an activity": ([activity("a", {"n": 1})], [an_activity("a", {"n": 1})]),
    "an activity that is replaced": (
        [activity("a", {"n": 1}, metadata={"k": 1}), start("m"), activity("a", {"n": 2}, "other")],
        [
            an_activity("a", {"n": 2}, "other", metadata={"k": 1}),
            {"id": "m", "role": "assistant", "content": ""},
        ],
    ),
    "an activity that is not replaced": (
        [activity("a", {"n": 1}), activity("a", {"n": 2}, replace=False)],
        [an_activity("a", {"n": 1})],
    ),
    "an activity's patch": (
        [
            activity("a", {"n": 1}),
            {
                "type": "ACTIVITY_DELTA",
                "messageId": "a",
                "activityType": "plan",
                "patch": [{"op": "add", "path": "/m", "value": 2}],
            },
        ],
        [an_activity("a", {"n": 1, "m": 2})],
    ),
    "a patch of an activity that nobody knows": (
        [{"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "plan", "patch": []}],
        [],
    ),
    "types that make no message": (
        [
            {"type": "STEP_STARTED", "stepName": "s"},
            {"type": "CUSTOM", "name": "n", "value": 1},
            {"type": "RAW", "event": 1},
            {"type": "OF_A_LATER_VERSION"},
        ],
        [],
    ),
}


@pytest.mark.parametrize(("events", "messages"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages_are_put_together(events: list[JSONObject], messages: list[JSONObject]) -> None:
    assert seen(*events).messages == messages


def test_models_count_as_what_they_are_on_the_wire() -> None:
    view = ClientView([UserMessage(id="u", content="hi")], {"n": 1})
    view.apply(TextMessageStartEvent(message_id="m"))
    view.apply(TextMessageContentEvent(message_id="m", delta="x"))
    view.apply(decode_event(patch({"op": "add", "path": "/m", "value": 2})))
    assert view.messages == [
        {"id": "u", "role": "user", "content": "hi"},
        {"id": "m", "role": "assistant", "content": "x"},
    ]
    assert view.state == {"n": 1, "m": 2}
    view.apply(MessagesSnapshotEvent(messages=[AssistantMessage(id="m", content="y")]))
    assert view.messages == [{"id": "m", "role": "assistant", "content": "y"}]


def test_what_the_client_had_before_is_not_changed() -> None:
    before = [{"id": "m", "role": "assistant", "content": "x", "metadata": {"k": 1}}]
    state = {"n": {"m": 1}}
    kept = copy.deepcopy((before, state))
    view = seen(
        content("m", "y", metadata={"k": 2}),
        patch({"op": "replace", "path": "/n/m", "value": 2}),
        messages=before,
        state=state,
    )
    assert (before, state) == kept
    assert view.messages[0]["content"] == "xy"


# State.


@pytest.mark.parametrize("value", [{"a": 1}, [], 0, False, None, "text"])
def test_a_snapshot_replaces_the_state(value: Any) -> None:
    assert seen({"type": "STATE_SNAPSHOT", "snapshot": value}, state={"b": 1}).state == value


def test_patches_apply_in_order() -> None:
    view = seen(
        {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1, "l": [1]}},
        patch({"op": "replace", "path": "/n", "value": 2}, {"op": "add", "path": "/l/-", "value": 2}),
        patch({"op": "test", "path": "/n", "value": 2}, {"op": "remove", "path": "/n"}),
    )
    assert view.state == {"l": [1, 2]}


@pytest.mark.parametrize(
    "bad",
    [
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "remove", "path": "/missing"},
        {"op": "add", "path": "/l/9", "value": 1},
        {"op": "add", "path": "/n/below/a/number", "value": 1},
        {"op": "test", "path": "/n", "value": 2},
        {"op": "move", "from": "/missing", "path": "/n"},
        {"op": "frobnicate", "path": "/n"},
        {"op": "add", "path": "no pointer", "value": 1},
        {},
    ],
)
def test_a_patch_that_does_not_apply_is_skipped_as_a_whole(bad: JSONObject) -> None:
    problems: list[Diagnostic] = []
    first = {"op": "add", "path": "/first", "value": 1}
    view = seen(patch(first, bad), patch(first), state={"n": 1, "l": []}, problems=problems)
    assert view.state == {"n": 1, "l": [], "first": 1}
    assert [problem.code for problem in problems] == ["client.patch-skipped"]
    assert problems[0].event_type == "STATE_DELTA"


def test_an_activitys_patch_that_does_not_apply_is_skipped_but_its_metadata_counts() -> None:
    problems: list[Diagnostic] = []
    view = seen(
        activity("a", {"n": 1}),
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "a",
            "activityType": "other",
            "patch": [{"op": "remove", "path": "/x"}],
            "metadata": {"k": 1},
        },
        problems=problems,
    )
    assert view.messages == [an_activity("a", {"n": 1}, metadata={"k": 1})]
    assert [(problem.code, problem.message_id) for problem in problems] == [("client.patch-skipped", "a")]


# Snapshots of messages.

LOCAL = [user("u"), {"id": "r", "role": "reasoning", "content": "hm"}, an_activity("a", {}), an_activity("b", {}, "x")]
CANONICAL = {"id": "r2", "role": "reasoning", "content": "hm"}


def ids(view: ClientView) -> list[str]:
    return [message["id"] for message in view.messages]


def owns(*types: Any) -> JSONObject:
    return {"@ag-ui/client": {"authoritativeActivityTypes": list(types)}}


@pytest.mark.parametrize(
    ("event", "left"),
    [
        (snapshot(), ["r", "a", "b"]),
        (snapshot(user("new"), user("u")), ["u", "r", "a", "b", "new"]),
        (snapshot(CANONICAL), ["a", "b", "r2"]),
        (snapshot(an_activity("a", {"n": 1})), ["r", "a"]),
        (snapshot(metadata=owns("x")), ["r", "a"]),
        (snapshot(metadata=owns("plan", "x")), ["r"]),
        (snapshot(metadata={"@ag-ui/client": {"authoritativeActivityTypes": None}}), ["r"]),
        (snapshot(metadata={"@ag-ui/client": {"authoritativeActivityTypes": 5}}), ["r", "a", "b"]),
        (snapshot(metadata={"@ag-ui/client": 5}), ["r", "a", "b"]),
        (snapshot(metadata={"@ag-ui/client": {}}), ["r", "a", "b"]),
    ],
)
def test_a_snapshot_of_messages_is_reconciled_by_id(event: JSONObject, left: list[str]) -> None:
    assert ids(seen(event, messages=LOCAL)) == left


def test_a_snapshot_updates_messages_in_their_places() -> None:
    new = {"id": "u", "role": "user", "content": "changed", "subagentRunId": None}
    view = seen(snapshot(user("v"), new), messages=[user("u"), user("v"), user("gone")])
    assert view.messages == [{"id": "u", "role": "user", "content": "changed"}, user("v")]


# The run.

FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
ERROR = {"type": "RUN_ERROR", "message": "no", "code": "c"}


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([], None),
        ([STARTED], None),
        ([STARTED, FINISHED], "success"),
        ([FINISHED | {"outcome": {"type": "success"}}], "success"),
        ([FINISHED | {"outcome": {"type": "of a later version"}}], "success"),
        ([FINISHED | {"outcome": {"type": "cancelled"}}], "cancelled"),
        ([FINISHED | {"outcome": {"type": "interrupt", "interrupts": [{"id": "i"}]}}], "interrupt"),
        ([ERROR], "error"),
        ([STARTED, FINISHED, ERROR], "error"),
        ([STARTED, ERROR, STARTED], None),
        ([STARTED, ERROR, STARTED, FINISHED], "success"),
    ],
)
def test_the_outcome_is_that_of_the_last_run(events: list[JSONObject], outcome: str | None) -> None:
    view = seen(*events)
    assert view.outcome == outcome
    assert view.error == (ERROR if outcome == "error" else None)
    assert view.interrupts == ([{"id": "i"}] if outcome == "interrupt" else [])


def test_the_result_is_that_of_a_success() -> None:
    assert seen(FINISHED | {"result": {"n": 1}}).result == {"n": 1}
    assert seen(FINISHED | {"result": {"n": 1}}, STARTED).result is None


def test_a_run_that_begins_with_messages_adds_those_that_are_new() -> None:
    view = seen(STARTED | {"input": {"messages": [user("u"), user("v")]}}, messages=[user("u")])
    assert ids(view) == ["u", "v"]


# What the client warns about or throws on.


@pytest.mark.parametrize(
    "event",
    [
        content("unknown", "x"),
        end("unknown"),
        args("unknown", "x"),
        {"type": "TOOL_CALL_END", "toolCallId": "unknown"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "unknown", "delta": "x"},
        start("a"),
        content("a", "x"),
        {"type": "REASONING_MESSAGE_START", "messageId": "a", "role": "reasoning"},
        {"type": "ACTIVITY_DELTA", "messageId": "u", "activityType": "plan", "patch": []},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "x"},
        {"type": "TOOL_CALL_CHUNK", "delta": "x"},
        {"type": "MESSAGES_SNAPSHOT", "messages": [5]},
        {"type": "RUN_STARTED", "input": 5},
        {"type": "RUN_FINISHED", "outcome": 5},
    ],
    ids=str,
)
def test_an_event_that_means_nothing_has_no_effect_and_is_reported(event: JSONObject) -> None:
    problems: list[Diagnostic] = []
    before = [user("u"), an_activity("a", {"n": 1})]
    view = seen(event, messages=before, problems=problems)
    assert view.messages == before
    assert [(problem.code, problem.event_type) for problem in problems] == [("client.ignored", event["type"])]


def test_a_tool_call_of_a_message_that_is_none_gets_its_own() -> None:
    problems: list[Diagnostic] = []
    view = seen(call("c", parentMessageId="u"), messages=[user("u")], problems=problems)
    assert ids(view) == ["u", "c"]
    assert len(problems) == 1


def test_a_chunk_that_could_continue_two_streams_is_ignored() -> None:
    problems: list[Diagnostic] = []
    chunk = {"type": "TEXT_MESSAGE_CHUNK", "delta": "1"}
    view = seen(
        chunk | {"messageId": "m", "subagentRunId": "s"},
        chunk | {"messageId": "n", "subagentRunId": "t"},
        chunk,
        problems=problems,
    )
    assert [message["content"] for message in view.messages] == ["1", "1"]
    assert "2 open streams" in problems[0].message


@pytest.mark.parametrize(
    ("between", "continues"),
    [
        ({"type": "RAW", "event": 1}, True),
        (activity("a", {}), True),
        ({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "…"}, True),
        ({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "subagentName": "n"}, True),
        ({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}, True),
        ({"type": "OF_A_LATER_VERSION"}, True),
        ({"type": "CUSTOM", "name": "n", "value": 1, "subagentRunId": "s"}, True),
        ({"type": "CUSTOM", "name": "n", "value": 1}, False),
        ({"type": "STATE_SNAPSHOT", "snapshot": {}}, False),
        ({"type": "STEP_STARTED", "stepName": "s"}, False),
        (start("x"), False),
        (result("r", "c"), False),
        ({"type": "REASONING_START", "messageId": "r"}, False),
        ({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "assistant", "content": "1"}]}, False),
        (STARTED, False),
        (STARTED | {"subagentRunId": "s"}, False),
        ({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "n"}, False),
    ],
    ids=str,
)
def test_what_closes_a_stream_of_chunks(between: JSONObject, *, continues: bool) -> None:
    chunk = {"type": "TEXT_MESSAGE_CHUNK", "delta": "1"}
    problems: list[Diagnostic] = []
    view = seen(chunk | {"messageId": "m"}, between, chunk, problems=problems)
    message = next(message for message in view.messages if message["id"] == "m")
    assert message["content"] == ("11" if continues else "1")
    assert len(problems) == (0 if continues else 1)
