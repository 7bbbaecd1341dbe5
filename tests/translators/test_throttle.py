"""The throttle as a state machine: explicit times, no clock. What merges, what never does, and when it goes out."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import jsonpatch
import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    CustomEvent,
    RawEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from agui_pipeline.translators import WireEvent, decode_event, encode_event, typed
from agui_pipeline.translators._events import EVENT_CLASSES
from agui_pipeline.translators._throttle import ThrottleTranslator

JSON = dict[str, Any]
INTERVAL = 0.2


def text(delta: Any, message_id: str = "m", **more: Any) -> JSON:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": delta, **more}


def args(delta: str, tool_call_id: str = "t") -> JSON:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": tool_call_id, "delta": delta}


def chunk(**fields: Any) -> JSON:
    return {"type": "TEXT_MESSAGE_CHUNK", **fields}


def patch(*operations: JSON, **more: Any) -> JSON:
    return {"type": "STATE_DELTA", "delta": list(operations), **more}


def add(path: str, value: Any = 1) -> JSON:
    return {"op": "add", "path": path, "value": value}


def activity(content: Any, **more: Any) -> JSON:
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "t", "content": content, **more}


OTHER: JSON = {"type": "CUSTOM", "name": "n", "value": None}


def deltas_of(events: Iterable[Any]) -> list[Any]:
    return [event.delta for event in events]


class Driver:
    """What the pipeline does with a throttle, and the times at which each event went out."""

    def __init__(self, interval: float = INTERVAL, min_chars: int = 0) -> None:
        self.throttle = ThrottleTranslator(interval, min_chars)
        self.now = 0.0
        self.out: list[Any] = []
        self.times: list[float] = []

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := self.throttle.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self._gave(self.throttle.expire(self.now))
            assert self.throttle.deadline() != due
        self.now = end

    def feed(self, *events: Any) -> None:
        for event in events:
            self._gave(self.throttle.feed(decode_event(event) if isinstance(event, dict) else event, self.now))

    def end(self) -> None:
        self._gave(self.throttle.flush())
        assert self.throttle.deadline() is None

    def _gave(self, events: Iterable[Any]) -> None:
        for event in events:
            self.out.append(event)
            self.times.append(self.now)

    @property
    def sent(self) -> list[JSON]:
        return [as_json(event) for event in self.out]


def as_json(event: Any) -> JSON:
    """Read back what a client gets; halves of characters stay what they are."""
    if isinstance(event, WireEvent):
        return dict(event.data)
    loaded: JSON = json.loads(json.dumps(event.model_dump(mode="json", by_alias=True)))
    return {key: value for key, value in loaded.items() if value is not None or key in {"value", "snapshot"}}


def burst(events: Sequence[Any], interval: float = INTERVAL) -> list[JSON]:
    """Feed all at once behind a first event that opens the window; return what follows that one."""
    driver = Driver(interval)
    driver.feed(text("", "opens the window"))
    driver.feed(*events)
    driver.end()
    assert driver.sent[0] == text("", "opens the window")
    return driver.sent[1:]


# When


def test_the_first_event_goes_out_at_once_and_what_follows_once_an_interval() -> None:
    driver = Driver(interval=3.5)
    for number in range(9):
        driver.feed(text(str(number)))
        driver.wait(1)
    driver.end()
    assert [(event["delta"], time) for event, time in zip(driver.sent, driver.times, strict=True)] == [
        ("0", 0.0),
        ("123", 3.5),
        ("456", 7.0),
        ("78", 9.0),
    ]


def test_held_text_does_not_wait_for_the_next_event() -> None:
    driver = Driver()
    driver.feed(text("a"), text("b"))
    assert driver.throttle.deadline() == INTERVAL
    driver.wait(5)
    assert driver.sent == [text("a"), text("b")]
    assert driver.times == [0.0, INTERVAL]
    assert driver.throttle.deadline() is None


def test_after_a_pause_the_leading_edge_is_back() -> None:
    driver = Driver()
    driver.feed(text("a"), text("b"))
    driver.wait(INTERVAL + 0.1)
    driver.feed(text("c"))  # the flush of b opened a window
    assert driver.throttle.deadline() == pytest.approx(2 * INTERVAL)
    driver.wait(1)
    driver.feed(text("d"))
    assert [event["delta"] for event in driver.sent] == ["a", "b", "c", "d"]
    assert driver.times[-1] == driver.now


def test_no_timer_runs_while_nothing_is_held() -> None:
    driver = Driver()
    assert driver.throttle.deadline() is None
    driver.feed(text("a"))
    assert driver.throttle.deadline() is None
    driver.feed(text("b"))
    driver.feed(OTHER)
    assert driver.throttle.deadline() is None


def test_an_always_ready_source_flushes_without_the_timer() -> None:
    throttle = ThrottleTranslator(INTERVAL)
    out: list[Any] = []
    for tick in range(100):
        out += throttle.feed(decode_event(text("x")), tick / 100)
    assert len(out) == 5
    assert "".join(event.delta for event in [*out, *throttle.flush()]) == "x" * 100


def test_a_late_timer_changes_nothing_but_the_time() -> None:
    throttle = ThrottleTranslator(INTERVAL)
    throttle.feed(decode_event(text("a")), 0)
    throttle.feed(decode_event(text("b")), 0.1)
    assert deltas_of(throttle.expire(3.0)) == ["b"]
    assert throttle.feed(decode_event(text("c")), 3.1) == ()
    assert throttle.deadline() == pytest.approx(3.0 + INTERVAL)


def test_an_event_that_passes_flushes_and_starts_a_new_interval() -> None:
    driver = Driver()
    driver.feed(text("a"), text("b"))
    driver.wait(0.15)
    driver.feed(OTHER, text("c"))
    assert driver.sent == [text("a"), text("b"), OTHER]
    assert driver.throttle.deadline() == pytest.approx(0.15 + INTERVAL)


def test_an_event_that_passes_while_nothing_is_held_starts_none() -> None:
    driver = Driver()
    driver.feed(OTHER, text("a"))
    assert driver.sent == [OTHER, text("a")]


def test_held_characters_flush_early() -> None:
    driver = Driver(min_chars=5)
    driver.feed(text("first is free"), text("ab"), text("cd"))
    assert [event["delta"] for event in driver.sent] == ["first is free"]
    driver.feed(text("e"))
    assert [event["delta"] for event in driver.sent] == ["first is free", "abcde"]
    driver.feed(text("fghi"), args("j"))
    assert [event["delta"] for event in driver.sent[2:]] == ["fghi", "j"]
    driver.feed(patch(add("/a", "a long value")), activity({"text": "long"}), text(""))
    assert len(driver.sent) == 4  # neither is text


def test_an_interval_of_zero_passes_everything_at_once() -> None:
    driver = Driver(interval=0)
    events = [text("a"), text("b"), patch(add("/a")), patch(add("/b")), activity({}), activity({}), OTHER]
    driver.feed(*events)
    assert driver.sent == events
    assert driver.throttle.deadline() is None
    driver.feed(text("c\ud83d"), text("\ude00d"))
    assert driver.sent[-2:] == [text("c"), text("😀d")]


def test_a_failing_source_delivers_what_is_held() -> None:
    driver = Driver()
    driver.feed(text("par"), text("ti"), text("al"))
    error = RuntimeError("boom")
    events, passed_on = driver.throttle.fail(error)
    assert deltas_of(events) == ["tial"]
    assert passed_on is error


# What merges


MERGING: dict[str, tuple[list[Any], list[JSON]]] = {
    "text": ([text("a"), text(""), text("b")], [text("ab")]),
    "arguments": ([args("{"), args('"a"'), args("}")], [args('{"a"}')]),
    "reasoning": (
        [{"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": delta} for delta in "ab"],
        [{"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "ab"}],
    ),
    "text chunks, the id on the first only": (
        [chunk(messageId="m", role="user", name="n", delta="a"), chunk(delta="b"), chunk(messageId="m", delta="c")],
        [chunk(messageId="m", role="user", name="n", delta="abc")],
    ),
    "text chunks without an id": ([chunk(delta="a"), chunk(delta="b")], [chunk(delta="ab")]),
    "a chunk that only opens": ([chunk(messageId="m"), chunk(delta="a")], [chunk(messageId="m", delta="a")]),
    "chunks with nothing in them": ([chunk(messageId="m"), chunk()], [chunk(messageId="m")]),
    "tool call chunks": (
        [
            {"type": "TOOL_CALL_CHUNK", "toolCallId": "t", "toolCallName": "f", "parentMessageId": "p", "delta": "{"},
            {"type": "TOOL_CALL_CHUNK", "delta": "}"},
        ],
        [{"type": "TOOL_CALL_CHUNK", "toolCallId": "t", "toolCallName": "f", "parentMessageId": "p", "delta": "{}"}],
    ),
    "reasoning chunks": (
        [
            {"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "a"},
            {"type": "REASONING_MESSAGE_CHUNK", "delta": "b"},
        ],
        [{"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "ab"}],
    ),
    "patches": ([patch(add("/a")), patch(), patch(add("/b", None))], [patch(add("/a"), add("/b", None))]),
    "activity patches": (
        [
            {"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "t", "patch": [add(path)]}
            for path in ("/a", "/b")
        ],
        [{"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "t", "patch": [add("/a"), add("/b")]}],
    ),
    "snapshots: the last stays": (
        [{"type": "STATE_SNAPSHOT", "snapshot": value} for value in ({"a": 1}, None, [2])],
        [{"type": "STATE_SNAPSHOT", "snapshot": [2]}],
    ),
    "a snapshot of null": (
        [{"type": "STATE_SNAPSHOT", "snapshot": value} for value in (1, None)],
        [{"type": "STATE_SNAPSHOT", "snapshot": None}],
    ),
    "activity snapshots": ([activity({"a": 1}), activity({"b": 2})], [activity({"b": 2})]),
    "activity snapshots that say so": (
        [activity({"a": 1}), activity({"b": 2}, replace=True), activity({"c": 3}), activity({"d": 4}, replace=True)],
        [activity({"d": 4}, replace=True)],
    ),
    "what replaces one that does not": ([activity({"a": 1}, replace=False), activity({"b": 2})], [activity({"b": 2})]),
    "one owner": (
        [text("a", subagentRunId="s"), text("b", subagentRunId="s")],
        [text("ab", subagentRunId="s")],
    ),
    "equal unknown fields": ([text("a", new={"x": [1]}), text("b", new={"x": [1]})], [text("ab", new={"x": [1]})]),
    "metadata": (
        [
            text("a", metadata={"k": 1, "null": None}),
            text("b"),
            text("c", metadata={"k": {"x": 2}, "l": 3}),
            text("d", metadata=None),
        ],
        [text("abcd", metadata={"k": {"x": 2}, "null": None, "l": 3})],
    ),
    "metadata of patches": (
        [patch(add("/a"), metadata={"k": 1}), patch(add("/b"), metadata={"k": 2})],
        [patch(add("/a"), add("/b"), metadata={"k": 2})],
    ),
    "metadata of snapshots": (
        [activity({"a": 1}, metadata={"k": 1, "l": 1}), activity({"b": 2}, metadata={"k": 2})],
        [activity({"b": 2}, metadata={"k": 2, "l": 1})],
    ),
    "metadata of chunks without an id": (
        [chunk(delta="a", metadata={"k": 1}), chunk(delta="b", metadata={"l": 2})],
        [chunk(delta="ab", metadata={"k": 1, "l": 2})],
    ),
    "one rawEvent, first": ([text("a", rawEvent={"o": 1}), text("b")], [text("ab", rawEvent={"o": 1})]),
    "one rawEvent, last": ([text("a"), text("b", rawEvent=[1])], [text("ab", rawEvent=[1])]),
    "one rawEvent of snapshots": ([activity({}, rawEvent=1), activity({"a": 1})], [activity({"a": 1}, rawEvent=1)]),
    "one rawEvent of chunks without an id": (
        [chunk(delta="a", rawEvent=0), chunk(delta="b")],
        [chunk(delta="ab", rawEvent=0)],
    ),
    "the last timestamp": (
        [text("a", timestamp=1), text("b", timestamp=3), text("c")],
        [text("abc", timestamp=3)],
    ),
    "numbers past 64 bits": (
        [text("a", metadata={"n": 2**70}), patch(add("/a", 2**70)), patch(add("/b", 2**80))],
        [text("a", metadata={"n": 2**70}), patch(add("/a", 2**70), add("/b", 2**80))],
    ),
}


@pytest.mark.parametrize("case", MERGING)
def test_adjacent_events_of_one_stream_merge(case: str) -> None:
    events, expected = MERGING[case]
    received = [json.dumps(event).encode() for event in events]
    wires = [decode_event(raw) for raw in received]
    assert burst(wires) == expected
    assert [encode_event(wire) for wire in wires] == received
    # The client gets what the throttle says.
    driver = Driver()
    driver.feed(text("opens"), *wires)
    driver.end()
    assert [json.loads(encode_event(event)) for event in driver.out[1:]] == expected


APART: dict[str, list[JSON]] = {
    "different messages": [text("a", "m"), text("b", "n"), text("c", "m")],
    "different calls": [args("a", "t"), args("b", "u")],
    "different types of one message": [
        text("a"),
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": "b"},
    ],
    "content and chunk": [text("a"), chunk(messageId="m", delta="b")],
    "a chunk that opens another stream": [
        chunk(messageId="m", delta="a"),
        chunk(messageId="n", delta="b"),
        chunk(messageId="m"),
    ],
    "a chunk with an id behind one without": [chunk(delta="a"), chunk(messageId="m", delta="b")],
    "a chunk with another role": [chunk(messageId="m", role="user", delta="a"), chunk(role="system", delta="b")],
    "a chunk that adds a role": [chunk(messageId="m", delta="a"), chunk(messageId="m", role="user", delta="b")],
    "different owners": [text("a", subagentRunId="s"), text("b", subagentRunId="r")],
    "an owner and none": [text("a", subagentRunId="s"), text("b"), text("c", subagentRunId="s")],
    "chunks of an owner and of none": [
        chunk(delta="a", subagentRunId="s"),
        chunk(delta="b"),
        chunk(delta="c", subagentRunId="s"),
    ],
    "patches of different owners": [patch(add("/a"), subagentRunId="s"), patch(add("/b"))],
    "snapshots of different owners": [
        {"type": "STATE_SNAPSHOT", "snapshot": 1, "subagentRunId": "s"},
        {"type": "STATE_SNAPSHOT", "snapshot": 2, "subagentRunId": "r"},
    ],
    "snapshot, patch, snapshot": [
        {"type": "STATE_SNAPSHOT", "snapshot": {}},
        patch(add("/a")),
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 2}},
        patch(add("/a")),
    ],
    "different activities": [activity({}), activity({}) | {"messageId": "b"}, activity({}) | {"activityType": "u"}],
    "an activity that does not replace": [activity({"a": 1}), activity({"b": 2}, replace=False)],
    "an activity with a strange replace": [
        activity({"a": 1}),
        activity({"b": 2}, replace="no"),
        activity({}, replace=[]),
    ],
    "two rawEvents": [text("a", rawEvent=1), text("b", rawEvent=1)],
    "a new unknown field": [text("a"), text("b", new=1)],
    "an unknown field less": [text("a", new=1), text("b")],
    "an unknown field of a snapshot": [activity({"a": 1}, new=1), activity({"b": 2})],
    "an unknown null": [text("a"), text("b", new=None)],
    "another unknown value": [text("a", new=1), text("b", new=2)],
    "an unknown field of a chunk without an id": [chunk(delta="a", new=1), chunk(delta="b", new=2)],
    "patches with a test behind": [patch(add("/a")), patch({"op": "test", "path": "/a", "value": 2}, add("/b"))],
    "patches with a test before": [patch({"op": "test", "path": "/a", "value": 2}), patch(add("/b"))],
    "metadata that is none": [text("a", metadata={"a": 1}), text("b", metadata="x"), text("c", metadata={"a": 1})],
}


@pytest.mark.parametrize("case", APART)
def test_what_is_not_the_same_stream_stays_apart_and_untouched(case: str) -> None:
    driver = Driver()
    wires = [decode_event(json.dumps(event)) for event in APART[case]]
    driver.feed(text("opens"), *wires)
    assert len(driver.out) == 1
    driver.end()
    assert all(out is wire for out, wire in zip(driver.out[1:], wires, strict=True))


MALFORMED: list[JSON] = [
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m"},
    text(None),
    text(5),
    text(["a"]),
    {"type": "TOOL_CALL_ARGS", "toolCallId": "t", "delta": {"a": 1}},
    chunk(messageId="m", delta=5),
    {"type": "STATE_DELTA"},
    {"type": "STATE_DELTA", "delta": None},
    {"type": "STATE_DELTA", "delta": "[]"},
    {"type": "STATE_DELTA", "delta": {"op": "add"}},
    {"type": "STATE_DELTA", "delta": ["add"]},
    {"type": "STATE_DELTA", "delta": [None]},
    {"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "t", "patch": 5},
    {"type": "STATE_SNAPSHOT"},
    activity([]),
    activity(None),
]


@pytest.mark.parametrize("event", MALFORMED, ids=json.dumps)
def test_what_is_malformed_passes_at_once_as_it_came(event: JSON) -> None:
    driver = Driver()
    wire = decode_event(event)
    driver.feed(text("a"), text("b"), wire, text("c"))
    assert driver.sent == [text("a"), text("b"), event]
    assert driver.out[2] is wire


def test_malformed_metadata_and_ids_break_nothing() -> None:
    strange: list[JSON] = [
        text("a", metadata=5),
        text("b", metadata={"a": 1}),
        text("c", metadata=[]),
        text("d", message_id={"an": "object"}),  # type: ignore[arg-type]
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": ["list"], "delta": "e"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": None, "delta": "f"},
        text("g", timestamp="soon"),
    ]
    out = burst(strange)
    assert "".join(event["delta"] for event in out) == "abcdefg"


BUFFERABLE = {
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_CHUNK",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_CHUNK",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_CHUNK",
    "STATE_SNAPSHOT",
    "STATE_DELTA",
    "ACTIVITY_SNAPSHOT",
    "ACTIVITY_DELTA",
}


@pytest.mark.parametrize(
    "type_",
    sorted({*EVENT_CLASSES, "THINKING_TEXT_MESSAGE_CONTENT", "SUBAGENT_STARTED", "FROM_THE_FUTURE"} - BUFFERABLE),
)
def test_every_other_type_flushes_and_passes_at_once(type_: str) -> None:
    driver = Driver()
    passing = [decode_event({"type": type_, "messageId": "m", "delta": "x", "event": number}) for number in (1, 2)]
    driver.feed(text("a"), text("b"), *passing, text("c"))
    assert [event["type"] for event in driver.sent] == [*["TEXT_MESSAGE_CONTENT"] * 2, type_, type_]
    assert driver.out[2:] == passing
    assert all(out is event for out, event in zip(driver.out[2:], passing, strict=True))


def test_an_event_that_is_neither_kind_passes_at_once() -> None:
    driver = Driver()
    stand_in: Any = SimpleNamespace(type="TEXT_MESSAGE_CONTENT", message_id="m", delta="x")
    driver.feed(text("a"), stand_in, stand_in)
    assert driver.out[1:] == [stand_in, stand_in]


def test_what_merged_alone_is_the_event_itself() -> None:
    driver = Driver()
    events = [decode_event(json.dumps(event, indent=1)) for event in (text("a"), text("b"), patch(add("/a")))]
    last = decode_event(b'{ "type": "STATE_SNAPSHOT", "snapshot": {"big": 12345678901234567890123} }')
    driver.feed(*events, decode_event({"type": "STATE_SNAPSHOT", "snapshot": 1}), last)
    final = decode_event(activity({}, timestamp=2))
    driver.feed(decode_event(activity({}, timestamp=1)), final)
    driver.end()
    assert all(out is event for out, event in zip(driver.out, [*events, last, final], strict=True))


# Models


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (
            [TextMessageContentEvent(message_id="m", delta=delta) for delta in "abc"],
            TextMessageContentEvent(message_id="m", delta="abc"),
        ),
        (
            [ToolCallArgsEvent(tool_call_id="t", delta=delta) for delta in "{}"],
            ToolCallArgsEvent(tool_call_id="t", delta="{}"),
        ),
        (
            [ReasoningMessageContentEvent(message_id="m", delta=delta) for delta in "ab"],
            ReasoningMessageContentEvent(message_id="m", delta="ab"),
        ),
        (
            [TextMessageChunkEvent(message_id="m", role="user", delta="a"), TextMessageChunkEvent(delta="b")],
            TextMessageChunkEvent(message_id="m", role="user", delta="ab"),
        ),
        (
            [ToolCallChunkEvent(tool_call_id="t", tool_call_name="f"), ToolCallChunkEvent(delta="b")],
            ToolCallChunkEvent(tool_call_id="t", tool_call_name="f", delta="b"),
        ),
        (
            [
                ReasoningMessageChunkEvent(message_id="m", delta="a"),
                ReasoningMessageChunkEvent(message_id="m", delta="b"),
            ],
            ReasoningMessageChunkEvent(message_id="m", delta="ab"),
        ),
        ([StateSnapshotEvent(snapshot=value) for value in (1, None)], StateSnapshotEvent(snapshot=None)),
        (
            [StateDeltaEvent.model_validate(patch(add(path))) for path in ("/a", "/b")],
            StateDeltaEvent.model_validate(patch(add("/a"), add("/b"))),
        ),
        (
            [ActivitySnapshotEvent(message_id="a", activity_type="t", content={"n": number}) for number in (1, 2)],
            ActivitySnapshotEvent(message_id="a", activity_type="t", content={"n": 2}),
        ),
        (
            [
                ActivityDeltaEvent.model_validate(
                    {"messageId": "a", "activityType": "t", "patch": [add(path)], "metadata": {path: 1}, "timestamp": 1}
                )
                for path in ("/a", "/b")
            ],
            ActivityDeltaEvent.model_validate(
                {
                    "messageId": "a",
                    "activityType": "t",
                    "patch": [add("/a"), add("/b")],
                    "metadata": {"/a": 1, "/b": 1},
                    "timestamp": 1,
                }
            ),
        ),
    ],
    ids=lambda item: None if isinstance(item, list) else str.__str__(item.type),
)
def test_models_merge_to_models(events: list[Any], expected: Any) -> None:
    before = copy.deepcopy(events)
    driver = Driver()
    driver.feed(text("opens"), *events)
    driver.end()
    (merged,) = driver.out[1:]
    assert type(merged) is type(expected)
    assert encode_event(merged) == encode_event(expected)
    assert events == before
    # Both kinds agree.
    assert burst([decode_event(encode_event(event)) for event in events]) == [json.loads(encode_event(merged))]


@pytest.mark.parametrize(
    "events",
    [
        [TextMessageContentEvent(message_id="m", delta="a"), TextMessageContentEvent(message_id="n", delta="b")],
        [TextMessageContentEvent(message_id="m", delta=delta, raw_event={"x": 1}) for delta in "ab"],
        [TextMessageContentEvent.model_validate(text(delta, subagentRunId=delta)) for delta in "ab"],
        [TextMessageContentEvent.model_validate(text("a", extra=1)), TextMessageContentEvent.model_validate(text("b"))],
        [ActivitySnapshotEvent(message_id="a", activity_type="t", content={}, replace=bool(n)) for n in (1, 0)],
        [
            StateDeltaEvent.model_validate(patch(add("/a"))),
            StateDeltaEvent.model_validate(patch({"op": "test", "path": "/a", "value": 1})),
        ],
    ],
)
def test_models_that_differ_stay_apart(events: list[Any]) -> None:
    driver = Driver()
    driver.feed(text("opens"), *events)
    driver.end()
    assert all(out is event for out, event in zip(driver.out[1:], events, strict=True))


def test_a_model_and_a_wire_event_of_one_stream_merge() -> None:
    assert burst([TextMessageContentEvent(message_id="m", delta="a"), text("b")]) == [text("ab")]
    assert burst([text("a"), TextMessageContentEvent(message_id="m", delta="b")]) == [text("ab")]


# Characters that were cut in two

HIGH, LOW = "\ud83d", "\ude00"


def test_a_first_half_waits_for_the_other_half() -> None:
    driver = Driver()
    driver.feed(text("a" + HIGH))
    assert driver.sent == [text("a")]
    assert driver.throttle.deadline() is None  # no timer brings the other half
    driver.wait(10)
    driver.feed(text(LOW + "b"))
    assert driver.sent == [text("a"), text("😀b")]
    driver.end()
    assert len(driver.out) == 2


def test_a_first_half_alone_waits_with_all_it_brought() -> None:
    driver = Driver()
    driver.feed(text(HIGH, metadata={"k": 1}, rawEvent={"o": 1}, timestamp=1))
    assert driver.sent == []
    driver.feed(text(LOW, metadata={"l": 2}))
    driver.wait(1)
    assert driver.sent == [text("😀", metadata={"k": 1, "l": 2}, rawEvent={"o": 1}, timestamp=1)]


def test_what_goes_before_a_half_takes_the_metadata_along() -> None:
    driver = Driver()
    driver.feed(text("a" + HIGH, metadata={"k": 1}, rawEvent=[1]), text(LOW, rawEvent=[2]))
    driver.end()
    assert driver.sent == [text("a", metadata={"k": 1}, rawEvent=[1]), text("😀", rawEvent=[2])]


def test_a_half_alone_opens_no_window() -> None:
    driver = Driver()
    driver.feed(text(HIGH), text(LOW))
    assert driver.sent == [text("😀")]
    assert driver.times == [0.0]


def test_the_timer_keeps_a_half_back() -> None:
    driver = Driver()
    driver.feed(text("a"), text("b" + HIGH))
    driver.wait(1)
    assert driver.sent == [text("a"), text("b")]
    driver.feed(text(LOW))
    assert driver.sent == [text("a"), text("b"), text("😀")]


def test_an_empty_delta_does_not_tear_the_halves_apart() -> None:
    driver = Driver()
    driver.feed(text("a"), text("b" + HIGH), text(""))
    driver.wait(1)
    assert driver.sent == [text("a"), text("b")]
    driver.feed(text(""), text(LOW))
    driver.end()
    assert "".join(event["delta"] for event in driver.sent) == "ab😀"


def test_a_half_goes_out_before_what_flushes_it() -> None:
    driver = Driver()
    driver.feed(text("a" + HIGH), OTHER, text(LOW))
    driver.end()
    assert driver.sent == [text("a"), text(HIGH), OTHER, text(LOW)]


def test_a_half_goes_out_at_the_end() -> None:
    driver = Driver()
    driver.feed(text("a" + HIGH))
    driver.end()
    assert driver.sent == [text("a"), text(HIGH)]


def test_a_half_is_not_joined_across_another_message() -> None:
    driver = Driver()
    driver.feed(text("a" + HIGH), text("x", "n"))
    driver.wait(1)
    assert driver.sent == [text("a"), text(HIGH), text("x", "n")]
    driver.feed(text(LOW))
    assert driver.sent[-1] == text(LOW)


def test_halves_that_do_not_belong_together_stay_what_they_are() -> None:
    driver = Driver()
    driver.feed(text(LOW), text("a" + HIGH), text("b"), text(HIGH), text(HIGH + LOW + LOW))
    driver.end()
    assert "".join(event["delta"] for event in driver.sent) == LOW + "a" + HIGH + "b" + HIGH + "😀" + LOW


def test_halves_of_arguments_and_chunks_wait_too() -> None:
    driver = Driver()
    driver.feed(args(HIGH), args(LOW))
    driver.wait(1)
    driver.feed(chunk(messageId="m", role="user", delta="a" + HIGH))
    driver.wait(1)
    driver.feed(chunk(delta=LOW))
    driver.wait(1)
    assert driver.sent == [
        args("😀"),
        chunk(messageId="m", role="user", delta="a"),
        chunk(messageId="m", role="user", delta="😀"),
    ]


def test_a_half_of_a_model_waits_too() -> None:
    driver = Driver()
    driver.feed(TextMessageContentEvent(message_id="m", delta="a" + HIGH, raw_event=1))
    driver.feed(TextMessageContentEvent(message_id="m", delta=LOW))
    driver.end()
    assert [encode_event(event) for event in driver.out] == [
        encode_event(TextMessageContentEvent(message_id="m", delta="a", raw_event=1)),
        encode_event(TextMessageContentEvent(message_id="m", delta="😀")),
    ]


def test_held_characters_flush_without_the_half() -> None:
    driver = Driver(min_chars=2)
    driver.feed(text("a"), text("b" + HIGH), text(LOW))
    driver.wait(1)
    assert [event["delta"] for event in driver.sent] == ["a", "b", "😀"]


# Whole runs


def test_a_burst_of_text_and_a_tool_call_in_order() -> None:
    started: JSON = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    opened: JSON = {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    called: JSON = {"type": "TOOL_CALL_START", "toolCallId": "t", "toolCallName": "search"}
    call_ended: JSON = {"type": "TOOL_CALL_END", "toolCallId": "t"}
    closed: JSON = {"type": "TEXT_MESSAGE_END", "messageId": "m"}
    finished: JSON = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    driver = Driver()
    driver.feed(started, opened, text("a"), text("b"), text("c"), called, args("{"), args("}"), call_ended)
    driver.feed(text("d"), closed, finished)
    driver.end()
    assert driver.sent == [
        started,
        opened,
        text("a"),
        text("bc"),
        called,
        args("{}"),
        call_ended,
        text("d"),
        closed,
        finished,
    ]


def test_what_was_held_comes_before_the_failure() -> None:
    driver = Driver()
    driver.feed({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, text("par"), text("ti"), text("al"))
    events, error = driver.throttle.fail(RuntimeError("boom"))
    assert deltas_of(events) == ["tial"]
    assert str(error) == "boom"


def test_patches_join_snapshots_supersede_and_nothing_crosses() -> None:
    driver = Driver()
    driver.feed(
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 0}},
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}},
        patch(add("/b", None)),
        patch({"op": "replace", "path": "/a", "value": 2}),
        {"type": "STATE_SNAPSHOT", "snapshot": {"z": 1}},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    )
    assert driver.sent[1:-1] == [
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 0}},
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}},
        patch(add("/b", None), {"op": "replace", "path": "/a", "value": 2}),
        {"type": "STATE_SNAPSHOT", "snapshot": {"z": 1}},
    ]
    assert Client(driver.sent).state == {"z": 1}


# Any run at any pace


class Client:
    """What a front end makes of a stream: state, activities, texts and arguments, and the order of all else."""

    def __init__(self, events: Iterable[JSON]) -> None:
        self.state: Any = None
        self.activities: dict[str, Any] = {}
        self.texts: dict[Any, str] = {}
        self.metadata: dict[Any, JSON] = {}
        self.raw_events: list[Any] = []
        self.order: list[Any] = []
        self._lane: dict[Any, Any] = {}
        for event in events:
            self._read(event)

    def _read(self, event: JSON) -> None:
        type_ = event["type"]
        owner = event.get("subagentRunId")
        if "rawEvent" in event:
            self.raw_events.append(event["rawEvent"])
        key: Any = (type_, owner)
        if type_ == "STATE_SNAPSHOT":
            self.state = event["snapshot"]
        elif type_ == "STATE_DELTA":
            self.state = patched(self.state, event["delta"])
        elif type_ == "ACTIVITY_SNAPSHOT":
            if event["messageId"] not in self.activities or event.get("replace") is not False:
                self.activities[event["messageId"]] = event["content"]
        elif type_ == "ACTIVITY_DELTA":
            if event["messageId"] in self.activities:
                self.activities[event["messageId"]] = patched(self.activities[event["messageId"]], event["patch"])
        elif type_ in BUFFERABLE:
            stream = event.get("messageId", event.get("toolCallId"))
            if type_.endswith("CHUNK"):
                stream = self._lane[owner] = stream or self._lane.get(owner)
            key = (type_, owner, stream)
            self.texts[key] = self.texts.get(key, "") + (event.get("delta") or "")
        else:
            self.order.append(event)
            return
        self.metadata.setdefault(key, {}).update(event.get("metadata", {}))
        if not self.order or self.order[-1] != key:
            self.order.append(key)

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment] # as any mutable object


def patched(document: Any, operations: list[JSON]) -> Any:
    """Apply a patch as the clients do: whole or not at all."""
    try:
        return jsonpatch.apply_patch(document, operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        return document


operations = st.one_of(
    st.builds(lambda key, value: add(f"/{key}", value), st.sampled_from("ab"), st.integers(0, 2) | st.none()),
    st.builds(
        lambda key, value: {"op": "test", "path": f"/{key}", "value": value}, st.sampled_from("ab"), st.integers(0, 2)
    ),
)
owners = st.sampled_from([{}, {}, {"subagentRunId": "s"}, {"subagentRunId": "r"}])
riders = st.one_of(
    st.just({}),
    st.just({}),
    st.builds(lambda key, value: {"metadata": {key: value}}, st.sampled_from("kl"), st.integers(0, 3) | st.none()),
    st.builds(lambda number: {"rawEvent": number}, st.integers()),
    st.builds(lambda number: {"timestamp": number}, st.integers(0, 2**50)),
    st.builds(lambda number: {"newField": number}, st.integers(0, 1)),
)
deltas = st.sampled_from(["", "a", "b ", "😀", HIGH, LOW, "x" + HIGH, LOW + "y", HIGH + LOW, "é"])
ids = st.sampled_from("mn")
bodies = st.one_of(
    st.builds(text, deltas, ids),
    st.builds(text, deltas, ids),
    st.builds(args, deltas, ids),
    st.builds(lambda delta, id_: {"type": "REASONING_MESSAGE_CONTENT", "messageId": id_, "delta": delta}, deltas, ids),
    st.builds(lambda delta: chunk(delta=delta), deltas),
    st.builds(lambda delta, id_: chunk(delta=delta, messageId=id_), deltas, ids),
    st.builds(lambda id_: chunk(messageId=id_, role="user"), ids),
    st.builds(lambda delta: {"type": "TOOL_CALL_CHUNK", "delta": delta}, deltas),
    st.builds(
        lambda delta, id_: {"type": "TOOL_CALL_CHUNK", "delta": delta, "toolCallId": id_, "toolCallName": "f"},
        deltas,
        ids,
    ),
    st.builds(lambda values: {"type": "STATE_SNAPSHOT", "snapshot": values}, st.dictionaries(ids, st.integers(0, 2))),
    st.builds(lambda items: patch(*items), st.lists(operations, max_size=2)),
    st.builds(
        lambda id_, content, replace: activity(content, **replace) | {"messageId": id_},
        ids,
        st.dictionaries(ids, st.integers(0, 2)),
        st.sampled_from([{}, {"replace": True}, {"replace": False}]),
    ),
    st.builds(
        lambda id_, items: {"type": "ACTIVITY_DELTA", "messageId": id_, "activityType": "t", "patch": items},
        ids,
        st.lists(operations, max_size=2),
    ),
    st.sampled_from(
        [OTHER, {"type": "RAW", "event": 1}, {"type": "TEXT_MESSAGE_END", "messageId": "m"}, {"type": "NEW"}]
    ),
)
streams = st.lists(
    st.tuples(
        st.builds(lambda body, owner, rider: body | owner | rider, bodies, owners, riders),
        st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.05, 0.1, 0.3]),
    ),
    max_size=25,
)


def is_half(event: JSON) -> bool:
    return event.get("delta") == HIGH


@settings(max_examples=120)
@given(streams, st.sampled_from([0, 0.1, 0.1, 1.0]), st.sampled_from([0, 0, 1, 3]), st.booleans())
def test_any_run_at_any_pace_means_the_same(
    stream: list[tuple[JSON, float]], interval: float, min_chars: int, timers: bool
) -> None:
    driver = Driver(interval, min_chars)
    arrivals: list[float] = []
    for event, pause in stream:
        arrivals.append(driver.now)
        driver.feed(event)
        if timers:
            driver.wait(pause)
        else:  # a driver that never gets to its timer: the source is always ready
            driver.now += pause
    if timers:
        driver.wait(interval)
        assert all(is_half(event) for event in as_held(driver)), "held longer than the interval"
    driver.end()
    originals = [event for event, _ in stream]
    assert len(driver.out) <= len(originals) + sum(delta.endswith(HIGH) for delta in texts_of(originals))
    assert comparable(driver.sent) == comparable(originals)


def as_held(driver: Driver) -> list[JSON]:
    twin = copy.deepcopy(driver.throttle)
    return [as_json(event) for event in twin.flush()]


def texts_of(events: Iterable[JSON]) -> list[str]:
    return [event["delta"] for event in events if isinstance(event.get("delta"), str)]


def comparable(events: list[JSON]) -> Any:
    """What a client must see alike. (Halves join where they meet in a client's text.)"""
    client = Client(events)
    joined = {key: value.encode("utf-16", "surrogatepass") for key, value in client.texts.items() if value}
    fields = {(event["type"], event["newField"]) for event in events if "newField" in event}
    return client.state, client.activities, joined, client.metadata, client.raw_events, client.order, fields


@settings(max_examples=100)
@given(streams, st.sampled_from([0.05, 0.1]))
def test_nothing_waits_longer_than_the_interval_and_windows_do_not_overlap(
    stream: list[tuple[JSON, float]], interval: float
) -> None:
    driver = Driver(interval)
    waiting_since: float | None = None
    for event, pause in stream:
        before = len(driver.out)
        driver.feed(event)
        if len(driver.out) > before:
            waiting_since = None
        deadline = driver.throttle.deadline()
        if deadline is not None:
            waiting_since = driver.now if waiting_since is None else waiting_since
            assert deadline <= waiting_since + interval
        driver.wait(pause)
        if driver.throttle.deadline() is None:
            waiting_since = None


@given(streams)
def test_models_and_wire_events_are_treated_alike(stream: list[tuple[JSON, float]]) -> None:
    wires = [decode_event(event) for event, _ in stream if event["type"] in EVENT_CLASSES]
    events = [typed(wire) for wire in wires]
    assert comparable(burst(events)) == comparable(burst(wires))
    assert [event["type"] for event in burst(events)] == [event["type"] for event in burst(wires)]


def test_the_other_events_of_the_sdk_are_not_held_either() -> None:
    driver = Driver()
    events = [CustomEvent(name="n", value=1), RawEvent(event=1), TextMessageEndEvent(message_id="m")]
    driver.feed(text("a"), text("b"), *events)
    assert driver.out[2:] == events
