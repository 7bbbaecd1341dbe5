"""Reading, decoding, copying and validating events: what is kept, what is refused, and how the refusal reads."""

from __future__ import annotations

import copy
import json
import pickle
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import ag_ui.core as sdk
import pytest
from ag_ui.core import (
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
    EventType,
    RawEvent,
    RunFinishedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
)
from ag_ui.encoder import EventEncoder
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, PrivateAttr

from agui_pipeline.translators import DecodeError, Event, WireEvent, decode_event, encode_event, replace, typed
from agui_pipeline.translators._compat import HAS_SUBAGENTS
from agui_pipeline.translators._events import ALIASES, EVENT_CLASSES

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


# Decoding


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hi"}',
        '{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"hm"}',
        '{"type":"FROM_THE_FUTURE","someField":[1],"another":null}',
        '{"type":"CUSTOM","name":"n","value":null,"metadata":null,"unknown":{"a":[null]}}',
        '  {\r\n\t"type" : "RAW",\n "event" : {}\n}\n',
        '{"delta":"last","type":"TEXT_MESSAGE_CONTENT"}',
        '{"type":"RAW","event":1,"event":2}',
        '{"type":"A","type":"B"}',
        '{"type":"RAW","event":1234567890123456789012345}',
        '{"type":"RAW","event":-9999999999999999999}',
        '{"type":"RAW","event":1e400}',
        '{"type":"RAW","event":1.50}',
        '{"type":"RAW","event":"\\ud83d"}',
        '{"type":"RAW","\\udc00":1}',
        '{"type":"RAW","event":"caf\\u00e9 café \\u2028 \u2028 \\/"}',
        '{"type":""}',
        '{"type":"RAW","event":' + "1" * 5000 + "}",
        '{"type":"RAW","event":' + "[" * 500 + "]" * 500 + "}",
    ],
)
def test_an_untouched_event_is_sent_again_byte_for_byte(text: str) -> None:
    raw = text.encode()
    for data in (raw, bytearray(raw), memoryview(raw), text):
        event = decode_event(data)
        assert encode_event(event) == raw
        assert encode_event(copy.copy(event)) == raw
        assert encode_event(copy.deepcopy(event)) == raw
        assert encode_event(pickle.loads(pickle.dumps(event))) == raw  # noqa: S301 - its own pickle
    assert encode_event(decode_event(raw)) is raw


@given(st.dictionaries(st.text(), json_values, max_size=5), st.text(), st.booleans(), st.sampled_from([None, 2]))
def test_any_object_with_a_string_type_is_an_event(
    fields: dict[str, Any], type_: str, ascii_only: bool, indent: int | None
) -> None:
    data = fields | {"type": type_}
    raw = json.dumps(data, ensure_ascii=ascii_only, indent=indent).encode()
    event = decode_event(raw)
    assert event.type == type_
    assert event.data == data
    assert encode_event(event) == raw
    assert json.loads(encode_event(decode_event(data))) == data
    assert event == decode_event(data)


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"", "''"),
        (b"   ", "'   '"),
        (b"{", "'{'"),
        (b'{"type":"A"} x', "not JSON"),
        (b'{"type":"A"}{"type":"B"}', "not JSON"),
        (b"[DONE]", "'[DONE]'"),
        (b"[]", "'[]'"),
        (b'[{"type":"CUSTOM"}]', "CUSTOM"),
        (b'"CUSTOM"', "CUSTOM"),
        (b"null", "'null'"),
        (b"12", "'12'"),
        (b"{}", "without one"),
        (b'{"Type":"CUSTOM"}', "without one"),
        (b'{"type":null}', "of NoneType"),
        (b'{"type":5}', "of int"),
        (b'{"type":["CUSTOM"]}', "of list"),
        (b'{"type":{"a":1}}', "of dict"),
        (b'{"type":' + b"[" * 1000 + b"]" * 1000 + b"}", "of list"),
        (b'{"type":"RAW","event":NaN}', "not JSON"),
        (b'{"type":"RAW","event":[-Infinity]}', "not JSON"),
        (b'{"type":"RAW","a":"\\ud800","event":NaN}', "not JSON"),
        (b'{"type":"RAW","event":"\xff"}', "not JSON"),
        (b'{"type":"RAW","event":"\xed\xa0\xbd"}', "not JSON"),
        (b'{"type":"RAW","event":"\n"}', "not JSON"),
        (b"{'type':'RAW'}", "not JSON"),
        (b'{"type":"RAW",}', "not JSON"),
        (b'{"type":"RAW","event":01}', "not JSON"),
        (b'\xef\xbb\xbf{"type":"RAW"}', "not JSON"),
        ('{"type":"RAW"}'.encode("utf-16"), "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"type":"RAW","event":' * 100_000, "not JSON"),
        ('{"type":"\ud83d"}', "not JSON"),
        ({}, "without one"),
        ({"type": b"CUSTOM"}, "of bytes"),
        (None, "NoneType"),
        (10**12, "int"),
        (["type"], "list"),
        (CustomEvent(name="n", value=1), "CustomEvent"),
    ],
)
def test_what_is_no_event_is_refused_with_what_was_got(data: Any, got: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_event(data)
    message = str(caught.value)
    assert got in message
    assert "must be a JSON object" in message or 'needs a string "type"' in message
    assert len(message) < 300


def test_a_refusal_quotes_no_more_than_the_start() -> None:
    with pytest.raises(DecodeError) as caught:
        decode_event(b"[" + b'"secret",' * 1000 + b"1]")
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1234567890123456789012", 1234567890123456789012),
        ("-1234567890123456789012", -1234567890123456789012),
        (str(2**70), 2**70),
        (str(2**63), 2**63),
        (str(2**64 - 1), 2**64 - 1),
        (str(2**64), 2**64),
        (str(-(2**63) - 1), -(2**63) - 1),
        (str(-(2**63)), -(2**63)),
        ("0.1234567890123456789012", 0.1234567890123456789012),
        ("12345678901234567890.5", 12345678901234567890.5),
        ("1" * 400, int("1" * 400)),
        ("1e400", float("inf")),
        ("-1e400", float("-inf")),
        ("1E5", 1e5),
        ("-0", 0),
    ],
)
@pytest.mark.parametrize(
    ("shape", "read"),
    [
        ('{"type":"RAW","event":%s}', lambda event: event.event),
        ('{"type":"RAW","event":{"a":[%s, 1]}}', lambda event: event.event["a"][0]),
        (
            '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"d","rawEvent":{"id":%s}}',
            lambda e: e.raw_event["id"],
        ),
        ('{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":%s}', lambda event: event.timestamp),
        ('{"type":"UNKNOWN","x":"\\ud83d","y":%s}', lambda event: event.y),
    ],
)
def test_numbers_are_read_exactly(number: str, value: float, shape: str, read: Any) -> None:
    event = decode_event(shape % number)
    assert read(event) == value
    assert type(read(event)) is type(value)
    changed = replace(event, extra_field=1)
    assert read(decode_event(encode_event(changed))) == (value if abs(value) < float("inf") else None)


def test_a_number_too_long_for_python_is_kept_in_the_bytes() -> None:
    event = decode_event(b'{"type":"RAW","event":' + b"9" * 5000 + b"}")
    assert event.event == float("inf")


def test_big_numbers_deeper_than_the_standard_library_reads_are_kept_in_the_bytes() -> None:
    raw = b'{"type":"RAW","event":' + b"[" * 1000 + b"12345678901234567890123" + b"]" * 1000 + b"}"
    assert encode_event(decode_event(raw)) is raw


def test_of_repeated_keys_the_last_counts() -> None:
    event = decode_event(b'{"type":"A","x":1,"type":"B","x":2}')
    assert (event.type, event.x) == ("B", 2)


def test_a_mapping_is_copied_and_its_enum_type_made_a_string() -> None:
    data = {"type": EventType.CUSTOM, "name": "n", "value": 1}
    event = decode_event(data)
    data["value"] = 2
    assert event.value == 1
    assert type(event.type) is str
    assert type(event.data["type"]) is str
    assert data["type"] is EventType.CUSTOM
    assert json.loads(encode_event(decode_event(MappingProxyType(data)))) == {"type": "CUSTOM", "name": "n", "value": 2}


# Reading


def test_types_compare_as_strings_in_both_kinds() -> None:
    for event in (decode_event('{"type":"CUSTOM","name":"n"}'), CustomEvent(name="n", value=1)):
        assert event.type == "CUSTOM"
        assert event.type in {"CUSTOM", "RAW"}
        assert {"CUSTOM": 1}[event.type] == 1
        assert isinstance(event, Event)


def test_known_types_share_one_string() -> None:
    first, second = (decode_event(b'{"type":"TOOL_CALL_ARGS"}') for _ in range(2))
    assert first.type is second.type


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_every_field_of_the_sdk_reads_by_its_snake_case_name(name: str) -> None:
    event = decode_event({"type": "X", ALIASES[name]: ["value"]})
    assert getattr(event, name) == ["value"]
    assert getattr(event, ALIASES[name]) == ["value"]
    assert getattr(decode_event({"type": "X"}), name) is None
    assert isinstance(vars(WireEvent)[name], property)


def test_every_field_of_every_event_class_has_an_alias() -> None:
    for cls in EVENT_CLASSES.values():
        for name, field in cls.model_fields.items():
            assert name == "type" or ALIASES[name] == field.alias
    names = {str(value.value) for value in EventType}
    assert EVENT_CLASSES.keys() == names


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("someNewField", "some_new_field"),
        ("someNewField", "someNewField"),
        ("snake_on_the_wire", "snake_on_the_wire"),
        ("a2uiVersion", "a2ui_version"),
        ("step2Name", "step2_name"),
        ("someURL", "some_URL"),
        ("x", "x"),
        ("URL", "URL"),
        ("_meta", "_meta"),
        ("__dunder__", "__dunder__"),
        ("class", "class"),
    ],
)
def test_unknown_fields_read_by_snake_case_and_by_wire_name(key: str, name: str) -> None:
    assert getattr(decode_event({"type": "X", key: "value"}), name) == "value"
    assert getattr(decode_event({"type": "X", key: None}), name) is None


def test_a_known_field_is_its_wire_name_only() -> None:
    event = decode_event('{"type":"X","message_id":"not the wire name"}')
    assert event.message_id is None
    changed = replace(event, message_id="m")
    assert changed.message_id == "m"
    assert changed.data == {"type": "X", "message_id": "not the wire name", "messageId": "m"}


def test_the_camel_case_field_wins_over_a_snake_case_one() -> None:
    event = decode_event('{"type":"X","newField":null,"new_field":1}')
    assert event.new_field is None
    assert event.data["new_field"] == 1


def test_an_absent_field_reads_as_none_but_python_protocols_are_not_fooled() -> None:
    event = decode_event('{"type":"X"}')
    assert event.message_id is None
    assert event.no_such_field is None
    for name in ("__array__", "__iter__", "__await__", "_repr_html_", "_ipython_display_"):
        assert not hasattr(event, name)
    with pytest.raises(AttributeError, match="_no_such"):
        _ = event._no_such
    with pytest.raises(AttributeError):  # and no endless recursion
        _ = WireEvent.__new__(WireEvent).message_id


def test_a_wire_event_is_read_only() -> None:
    event = decode_event('{"type":"CUSTOM","name":"n","value":1}')
    with pytest.raises(TypeError):
        cast("dict[str, Any]", event.data)["value"] = 2
    for name in ("value", "message_id", "no_such_field", "data"):
        with pytest.raises(AttributeError):
            setattr(event, name, 2)
    assert event.data == {"type": "CUSTOM", "name": "n", "value": 1}


def test_events_are_equal_by_content_and_unhashable() -> None:
    event = decode_event('{"type":"CUSTOM","name":"n"}')
    assert event == decode_event('{ "name":"n", "type":"CUSTOM" }')
    assert event != decode_event('{"type":"CUSTOM","name":"m"}')
    assert event != {"type": "CUSTOM", "name": "n"}
    with pytest.raises(TypeError, match="unhashable"):
        hash(event)


def test_copies_and_pickles_keep_what_a_changed_event_says() -> None:
    event = replace(decode_event('{"type":"CUSTOM","name":"n","value":{"a":[1]}}'), name="m")
    for twin in (copy.copy(event), copy.deepcopy(event), pickle.loads(pickle.dumps(event))):  # noqa: S301
        assert twin == event
        assert type(twin) is WireEvent
        assert encode_event(twin) == b'{"type":"CUSTOM","name":"m","value":{"a":[1]}}'
    assert copy.deepcopy(event).value is not event.value


def test_the_repr_names_type_and_fields() -> None:
    assert repr(decode_event('{"type":"CUSTOM","name":"n","value":null}')) == "WireEvent(CUSTOM, name='n', value=None)"
    assert repr(decode_event('{"type":"X"}')) == "WireEvent(X)"


@pytest.mark.parametrize("depth", [10, 500, 1000])
def test_deep_nesting_is_no_recursion_error(depth: int) -> None:
    event = decode_event('{"type":"RAW","event":' + "[" * depth + "]" * depth + "}")
    assert repr(event).startswith("WireEvent(RAW")
    assert event == copy.deepcopy(event) if depth < 500 else encode_event(event) == encode_event(copy.deepcopy(event))
    assert encode_event(replace(event, source="s")).startswith(b'{"type":"RAW","event":[[')
    assert isinstance(typed(event), RawEvent)


def test_third_party_encoders_may_treat_it_as_a_model() -> None:
    event: Any = decode_event('{"type":"CUSTOM","name":"n","value":{"a":null},"someNew":"x"}')
    assert EventEncoder().encode(event) == 'data: {"type":"CUSTOM","name":"n","value":{"a":null},"someNew":"x"}\n\n'
    assert event.model_dump() == dict(event.data)
    assert event.model_dump(mode="json", exclude_none=True, by_alias=False) == dict(event.data)
    event.model_dump()["value"]["a"] = 1
    assert event.value == {"a": None}


def test_a_third_party_encoder_gets_one_line() -> None:
    event: Any = decode_event('{\r\n "type":"CUSTOM",\n "name":"a\\nb"\r}')
    frame = EventEncoder().encode(event)
    assert "\r" not in frame
    assert frame.count("\n") == 2
    assert json.loads(frame[6:]) == {"type": "CUSTOM", "name": "a\nb"}


# Changed copies


def test_replace_changes_a_copy_of_a_wire_event() -> None:
    raw = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a","unknown":null}'
    event = decode_event(raw)
    changed = replace(event, delta="b")
    assert encode_event(changed) == b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b","unknown":null}'
    assert encode_event(event) is raw
    assert event.delta == "a"
    assert type(changed) is WireEvent


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"message_id": "n"}, {"messageId": "n"}),
        ({"messageId": "n"}, {"messageId": "n"}),
        ({"raw_event": {"a": None}}, {"rawEvent": {"a": None}}),
        ({"some_new_field": 1}, {"someNewField": 1}),
        ({"someNewField": 1}, {"someNewField": 1}),
        ({"snake_case": 2}, {"snake_case": 2}),
        ({"known": None}, {"known": ...}),
        ({"message_id": None}, {"messageId": ...}),
        ({"never_there": None}, {}),
        ({"metadata": {"k": None}}, {"metadata": {"k": None}}),
        ({"a2ui_version": "v0.9"}, {"a2uiVersion": "v0.9"}),
        ({"_meta": 1}, {"_meta": 1}),
        ({"type": "OTHER"}, {"type": "OTHER"}),
        ({"type": EventType.RAW, "event": None}, {"type": "RAW", "event": None}),
        ({"subagent_run_id": "s"}, {"subagentRunId": "s"}),
        ({}, {}),
    ],
)
def test_replace_takes_both_spellings_and_none_removes(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    data = {"type": "X", "messageId": "m", "known": 1, "snake_case": 1, "empty": None}
    event = decode_event(json.dumps(data))
    wanted = {key: value for key, value in (data | expected).items() if value is not ...}
    changed = replace(event, **fields)
    assert changed.data == wanted
    assert json.loads(encode_event(changed)) == wanted
    assert type(changed.type) is str
    assert event.data == data


@pytest.mark.parametrize(
    ("type_", "field"),
    [
        ("RAW", "event"),
        ("CUSTOM", "value"),
        ("STATE_SNAPSHOT", "snapshot"),
        ("ACTIVITY_SNAPSHOT", "content"),
    ],
)
def test_where_null_is_a_value_it_stays(type_: str, field: str) -> None:
    changed = replace(decode_event({"type": type_, field: 1}), **{field: None})
    assert json.loads(encode_event(changed)) == {"type": type_, field: None}
    elsewhere = replace(decode_event({"type": "OTHER", field: 1}), **{field: None})
    assert json.loads(encode_event(elsewhere)) == {"type": "OTHER"}
    by_new_type = replace(decode_event({"type": "OTHER", field: 1}), type=type_, **{field: None})
    assert json.loads(encode_event(by_new_type)) == {"type": type_, field: None}


@pytest.mark.parametrize("type_", [None, 5, b"RAW", ["RAW"]])
def test_replace_refuses_a_type_that_is_no_string(type_: Any) -> None:
    with pytest.raises(DecodeError, match="string"):
        replace(decode_event('{"type":"X"}'), type=type_)
    with pytest.raises(DecodeError, match="string"):
        replace(CustomEvent(name="n", value=1), type=type_)


@pytest.mark.parametrize("other", [{"type": "RAW"}, SimpleNamespace(type="RAW"), None, "RAW"])
def test_replace_says_what_it_cannot_copy(other: Any) -> None:
    with pytest.raises(TypeError, match=type(other).__name__):
        replace(other, event=1)


def test_replace_changes_a_copy_of_a_model() -> None:
    event = TextMessageContentEvent(message_id="m", delta="a", raw_event={"x": 1})
    before = event.model_copy(deep=True)
    changed = replace(event, delta="b", messageId="n")
    assert type(changed) is TextMessageContentEvent
    assert (changed.message_id, changed.delta, changed.raw_event) == ("n", "b", {"x": 1})
    assert changed.model_fields_set == {"message_id", "delta", "raw_event"}
    assert event == before
    assert changed == TextMessageContentEvent(message_id="n", delta="b", raw_event={"x": 1})
    assert replace(event, timestamp=1).model_fields_set == {"message_id", "delta", "raw_event", "timestamp"}
    assert event.model_fields_set == {"message_id", "delta", "raw_event"}
    assert replace(event) == event
    assert replace(event) is not event
    assert replace(event, raw_event=None).raw_event is None
    assert b"rawEvent" not in encode_event(replace(event, raw_event=None))
    assert replace(event, type="TEXT_MESSAGE_CONTENT", delta="b").delta == "b"


def test_replace_of_a_model_keeps_and_changes_extra_fields() -> None:
    event: Any = CustomEvent(name="n", value=1, someExtra="x", other_extra="y", run_id=1)  # type: ignore[call-arg]
    changed: Any = replace(event, some_extra="z", brandNew=1, other_extra=None, gone_anyway=None, run_id=2)
    assert json.loads(encode_event(changed)) == {
        "type": "CUSTOM",
        "name": "n",
        "value": 1,
        "someExtra": "z",
        "brandNew": 1,
        "run_id": 2,
    }
    assert changed.brandNew == 1
    assert changed.run_id == 2
    assert event.other_extra == "y"
    assert event.someExtra == "x"
    assert json.loads(encode_event(replace(event, value=None)))["value"] is None


def test_replace_of_a_model_sets_known_fields_that_its_class_lacks_by_wire_name() -> None:
    event = TextMessageStartEvent(message_id="m")
    assert json.loads(encode_event(replace(event, tool_call_id="t")))["toolCallId"] == "t"
    assert json.loads(encode_event(replace(event, subagent_run_id="s", metadata={"a": None}))) == {
        "type": "TEXT_MESSAGE_START",
        "messageId": "m",
        **({} if event.role is None else {"role": event.role}),
        "subagentRunId": "s",
        "metadata": {"a": None},
    }


def test_a_model_that_is_given_another_type_becomes_a_wire_event() -> None:
    event = StateSnapshotEvent(snapshot={"deep": [CustomEvent(name="n", value=None)]})
    changed: Any = replace(event, type="CUSTOM", name="state", value=1, snapshot=None)
    assert type(changed) is WireEvent
    assert json.loads(encode_event(changed)) == {"type": "CUSTOM", "name": "state", "value": 1}
    kept: Any = replace(event, type="MY_STATE")
    assert kept.snapshot == {"deep": [{"type": "CUSTOM", "name": "n", "value": None}]}
    assert event.snapshot["deep"][0].name == "n"


class _Tagged(CustomEvent):
    name: str = "tagged"
    value: Any = None
    _secret: list[int] = PrivateAttr(default_factory=list)


class _Bare(BaseEvent):
    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Any = "BARE"
    text: str = ""


def test_replace_of_a_subclass_stays_one_and_shares_no_private_state() -> None:
    event = _Tagged()
    event._secret.append(1)
    changed = replace(event, value=2)
    assert type(changed) is _Tagged
    assert changed._secret == [1]
    changed._secret = [2]
    assert event._secret == [1]
    frozen = replace(_Bare(text="a"), text="b")
    assert frozen == _Bare(text="b")
    assert frozen.model_extra is None


@given(st.sampled_from(["wire", "model"]), json_values, json_values, st.text())
def test_replace_never_changes_its_input(kind: str, value: Any, other: Any, name: str) -> None:
    model = CustomEvent(name="n", value=value, extra=[value])  # type: ignore[call-arg]
    event: Any = model if kind == "model" else decode_event(encode_event(model))
    before = encode_event(event)
    changed = replace(event, value=other, name=name, extra=other, more=other)
    assert encode_event(event) == before
    assert changed.value == other
    assert changed.name == name


# Validation


def test_typed_gives_the_model() -> None:
    event = typed(decode_event('{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hi","unknownField":1}'))
    assert type(event) is TextMessageContentEvent
    assert event.delta == "hi"
    assert event.model_extra == {"unknownField": 1}
    assert typed(event) is event
    activity = typed(decode_event('{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"t","content":{}}'))
    assert isinstance(activity, ActivitySnapshotEvent)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"type":"TEXT_MESSAGE_CONTENT","delta":"x"}', "messageId"),
        ('{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":5}', "delta"),
        ('{"type":"TEXT_MESSAGE_CONTENT","messageId":null,"delta":"x"}', "messageId"),
        ('{"type":"RUN_STARTED","threadId":"t","runId":"r","timestamp":"soon"}', "timestamp"),
        (
            '{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":"x"},{"role":"user"}]}',
            "messages[1]",
        ),
        ('{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":[],"content":{}}', "activityType"),
        (
            '{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}',
            "outcome.interrupt.interrupts[0].reason",
        ),
        ('{"type":"NO_SUCH_TYPE","x":"secret"}', "type: 'NO_SUCH_TYPE'"),
    ],
)
def test_typed_names_the_field(text: str, where: str) -> None:
    with pytest.raises(DecodeError) as caught:
        typed(decode_event(text))
    assert where in str(caught.value)
    assert "secret" not in str(caught.value)


def test_typed_says_what_it_cannot_validate() -> None:
    for other in (None, {"type": "RAW"}, SimpleNamespace(type="RAW")):
        with pytest.raises(DecodeError, match=type(other).__name__):
            typed(cast("Any", other))


@pytest.mark.skipif(not HAS_SUBAGENTS, reason="the retired types are models there")
def test_typed_refuses_retired_types_that_still_flow() -> None:
    event = decode_event('{"type":"THINKING_START","title":"t"}')
    assert event.title == "t"
    with pytest.raises(DecodeError, match="THINKING_START"):
        typed(event)


@pytest.mark.parametrize("cls", EVENT_CLASSES.values(), ids=EVENT_CLASSES.keys())
def test_the_package_and_the_sdk_agree_on_every_class(cls: type[BaseEvent]) -> None:
    assert getattr(sdk, cls.__name__) is cls


def test_a_run_with_a_result_of_null_keeps_its_meaning() -> None:
    event = RunFinishedEvent(thread_id="t", run_id="r", result={"a": None})
    assert typed(decode_event(encode_event(event))) == event
