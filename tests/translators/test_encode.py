"""Encoding events: the same meaning as the SDK's encoder, and never an exception."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import logging
import math
import re
import uuid
import warnings
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from types import MappingProxyType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import ag_ui.core as sdk
import orjson
import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    BaseEvent,
    CustomEvent,
    EventType,
    MessagesSnapshotEvent,
    RawEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    UserMessage,
)
from ag_ui.encoder import EventEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    SecretStr,
    TypeAdapter,
    ValidationError,
    computed_field,
    field_serializer,
    model_serializer,
)

from agui_pipeline.translators import Diagnostic, decode_event, encode_event, encode_sse, replace
from agui_pipeline.translators._compat import HAS_OMISSION
from agui_pipeline.translators._encode import DIAGNOSTICS, _encode_slowly, encode_json
from agui_pipeline.translators._events import EVENT_CLASSES

Codes = list[tuple[str, int]]


def by_the_sdk(event: BaseEvent) -> Any:
    """What the SDK's encoder says, read back."""
    return json.loads(EventEncoder().encode(event).removeprefix("data: "))


def encode(event: Any) -> tuple[Any, Codes]:
    """What ours says, read back strictly, and the diagnostics' codes and counts."""
    seen: list[Diagnostic] = []
    data = encode_event(event, seen.append)
    assert type(data) is bytes
    for code in seen:
        assert code.code in DIAGNOSTICS
        assert code.event_type == str.__str__(event.type)
    assert b"\xe2\x80\xa8" not in data
    assert b"\xe2\x80\xa9" not in data
    return json.loads(data, parse_constant=pytest.fail), [(item.code, item.detail["count"]) for item in seen]


def unexpected(diagnostic: Diagnostic) -> None:
    pytest.fail(f"{diagnostic}")


def custom(value: Any) -> CustomEvent:
    return CustomEvent(name="n", value=value)


def nested(levels: int, innermost: Any = 0, kind: str = "list") -> Any:
    value = innermost
    for level in range(levels):
        value = {"k": value} if kind == "dict" or (kind == "mixed" and level % 2) else [value]
    return value


# The same meaning as the SDK's encoder


payloads = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def values_for(  # noqa: PLR0911 - one a kind of annotation
    annotation: Any, metadata: tuple[Any, ...] = ()
) -> st.SearchStrategy[Any]:
    """Draw values that a field of the SDK's models takes."""
    origin, args = get_origin(annotation), get_args(annotation)
    if any(getattr(item, "pattern", None) or "pattern" in getattr(item, "__dict__", {}) for item in metadata):
        return st.sampled_from(["", "/a", "/a/0/~1b", "/\u2028"])
    if origin is Annotated:
        return values_for(args[0], tuple(args[1:]))
    if origin in {Union, UnionType}:
        return st.one_of([values_for(item) for item in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is list:
        return st.lists(values_for(*args), min_size=1, max_size=2)
    if origin is dict:
        return st.dictionaries(st.text(max_size=5), payloads, max_size=2)
    if annotation is Any:
        return payloads
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return models(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=8),
        int: st.integers(-(2**53) + 1, 2**53 - 1),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return simple[annotation]


@st.composite
def models(draw: st.DrawFn, cls: type[BaseModel]) -> BaseModel:
    fields = {}
    for name, field in cls.model_fields.items():
        if not field.is_required() and draw(st.booleans()):
            continue
        value = draw(values_for(field.annotation, tuple(field.metadata)))
        if value is None and not HAS_OMISSION and field.is_required():
            continue  # the older encoder leaves out required nulls: ours keeps them
        fields[name] = value
    if draw(st.booleans()):
        extra = draw(payloads)
        fields["anExtra_field"] = "" if extra is None and not HAS_OMISSION else extra
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return cls(**fields)
        except ValidationError:
            return draw(st.nothing())


MODELS = {
    name: cls
    for name, cls in vars(sdk).items()
    if isinstance(cls, type) and issubclass(cls, BaseModel) and cls.model_fields and cls is not BaseEvent
}


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=10)
@given(data=st.data())
def test_models_of_every_class_mean_the_same(name: str, data: st.DataObject) -> None:
    model = data.draw(models(MODELS[name]))
    event = model if isinstance(model, BaseEvent) else custom([model])
    result, codes = encode(event)
    assert result == by_the_sdk(event)
    assert codes == []


def test_the_classes_above_are_all_events_and_more() -> None:
    assert set(EVENT_CLASSES.values()) < set(MODELS.values())


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            TextMessageContentEvent(message_id="m", delta="hi"),
            b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hi"}',
        ),
        (TextMessageChunkEvent(), b'{"type":"TEXT_MESSAGE_CHUNK"}'),
        (
            RunStartedEvent(thread_id="t", run_id="r", timestamp=5),
            b'{"type":"RUN_STARTED","timestamp":5,"threadId":"t","runId":"r"}',
        ),
        (custom(None), b'{"type":"CUSTOM","name":"n","value":null}'),
        (custom({"k": None, "list": [None]}), b'{"type":"CUSTOM","name":"n","value":{"k":null,"list":[null]}}'),
        (RawEvent(event=None, source="s"), b'{"type":"RAW","event":null,"source":"s"}'),
        (StateSnapshotEvent(snapshot=None), b'{"type":"STATE_SNAPSHOT","snapshot":null}'),
        (
            StateDeltaEvent(delta=cast("Any", [{"op": "add", "path": "/b", "value": None}])),
            b'{"type":"STATE_DELTA","delta":[{"op":"add","path":"/b","value":null}]}',
        ),
        (
            StateDeltaEvent(delta=cast("Any", [{"op": "move", "from": "/a", "path": "/b"}])),
            b'{"type":"STATE_DELTA","delta":[{"op":"move","from":"/a","path":"/b"}]}',
        ),
        (
            ActivityDeltaEvent(message_id="m", activity_type="t", patch=cast("Any", [])),
            b'{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"t","patch":[]}',
        ),
        (
            MessagesSnapshotEvent(messages=[UserMessage(id="1", role="user", content="x")]),
            b'{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":"x"}]}',
        ),
        (
            RunFinishedEvent(thread_id="t", run_id="r", outcome=cast("Any", {"type": "success"})),
            b'{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}',
        ),
        (
            CustomEvent(name="n", value=1, snake_extra=None, camelExtra=[1]),  # type: ignore[call-arg]
            b'{"type":"CUSTOM","name":"n","value":1,"snake_extra":null,"camelExtra":[1]}',
        ),
        (custom("a\u2028b\u2029c\xe2"), '{"type":"CUSTOM","name":"n","value":"a\\u2028b\\u2029câ"}'.encode()),
        (custom(2**70), b'{"type":"CUSTOM","name":"n","value":1180591620717411303424}'),
        (custom([-(2**63) - 1, 0.1]), b'{"type":"CUSTOM","name":"n","value":[-9223372036854775809,0.1]}'),
    ],
    ids=lambda item: item.decode()[:60] if isinstance(item, bytes) else None,
)
def test_events_as_compact_json(event: BaseEvent, expected: bytes) -> None:
    def by_value(item: Any) -> Any:
        return json.loads(json.dumps(item, sort_keys=True))

    assert by_value(json.loads(encode_event(event))) == by_value(json.loads(expected))
    assert sorted(encode_event(event)) == sorted(expected)  # nothing but the order of keys may differ


class Colour(Enum):
    RED = "red"
    NUMBER = 7
    NESTED = ("a", 1)


class Level(IntEnum):
    HIGH = 3


class Word(str):
    __slots__ = ()


class Number(int):
    pass


class Real(float):
    pass


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - the untyped kind, too


@dataclass
class Point:
    x_pos: int
    more: Any = None


class Payload(BaseModel):
    snake_name: int | None = None
    aliased: int = Field(default=1, alias="theAlias")
    inner: Any = None


class Numbers(RootModel[list[int]]):
    pass


class Floats(RootModel[list[float]]):
    pass


PYTHON_VALUES: list[Any] = [
    Colour.RED,
    Colour.NUMBER,
    Colour.NESTED,
    Level.HIGH,
    EventType.RAW,
    Word("w"),
    Number(3),
    Real(1.5),
    Pair(1, None),
    Point(1, Point(2)),
    Payload(),
    Payload(inner=Payload(inner=UserMessage(id="1", role="user", content="x"))),
    Numbers([1, 2]),
    UserMessage(id="1", role="user", content="x", extraField=None),  # type: ignore[call-arg]
    custom({"nested": custom(1)}),
    dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    dt.datetime(2026, 1, 2, 3, 4, 5, 678),  # noqa: DTZ001 - naive on purpose
    dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    dt.date(2026, 1, 2),
    dt.time(3, 4, 5),
    dt.timedelta(days=1, seconds=2),
    Decimal("1.50"),
    Decimal("NaN"),
    uuid.UUID(int=5),
    {1},
    frozenset({"a"}),
    (1, (2,)),
    deque([1, 2]),
    b"bytes",
    bytearray(b"bytes"),
    Path("/a/b"),
    ipaddress.ip_address("127.0.0.1"),
    SecretStr("hidden"),
    re.compile("a+"),
    OrderedDict(b=1, a=2),
    defaultdict(int, a=1),
    {1: "int", None: "none", 1.5: "float", Level.HIGH: "enum", Colour.RED: "red"},
    {True: "true", False: "false", 2: "int"},
    {EventType.RAW: 1, Word("w"): 2},
    {dt.date(2026, 1, 2): 1, uuid.UUID(int=1): 2, (1, "a"): 3, b"b": 4},
    2**64,
    -(2**80),
    '\x00\x1f\x7f"\\/',
]


@pytest.mark.parametrize("value", PYTHON_VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [{"k": value}, None]], ids=["bare", "within"])
def test_python_values_mean_what_the_sdk_says(value: Any, wrap: Callable[[Any], Any]) -> None:
    event = custom(wrap(value))
    expected = by_the_sdk(event)
    if not HAS_OMISSION and isinstance(value, BaseModel | Point):
        expected = TypeAdapter(Any).dump_python(wrap(value), mode="json", by_alias=True)
        assert json.loads(encode_event(event))["value"] is not None
        return
    assert encode(event) == (expected, [])
    # Also where something else in the event sends it the slow way.
    result, codes = encode(custom([wrap(value), math.nan]))
    assert result["value"] == [expected["value"], None]
    assert codes == [("encode.nan", 1)]


@given(payloads)
def test_the_slow_way_and_the_fast_way_agree(value: Any) -> None:
    assert json.loads(_encode_slowly(value, unexpected, None)) == json.loads(encode_json(value, unexpected)) == value


@given(payloads, st.text(), st.none() | st.text())
def test_a_changed_wire_event_says_the_same_as_a_model(value: Any, name: str, raw: str | None) -> None:
    model = CustomEvent(name=name, value=value, raw_event=raw)
    wire = replace(decode_event('{"type":"CUSTOM"}'), name=name, value=value, raw_event=raw)
    assert json.loads(encode_event(wire)) == json.loads(encode_event(model))


class _Computed(CustomEvent):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def shouted(self) -> str:
        return self.name.upper()


class _FieldSerializer(CustomEvent):
    @field_serializer("value")
    def _say(self, value: Any) -> str:
        return f"<{value}>"


class _JSONOnly(CustomEvent):
    @field_serializer("value", when_used="json")
    def _say(self, value: Any) -> str:
        return f"<{value}>"


class _Whole(CustomEvent):
    @model_serializer
    def _say(self) -> dict[str, Any]:
        return {"type": "CUSTOM", "whole": self.name}


class _Annotated(CustomEvent):
    value: Annotated[Any, PlainSerializer(lambda value: f"<{value}>")]


class _AnnotatedWithin(CustomEvent):
    value: list[Annotated[Any, PlainSerializer(lambda value: f"<{value}>")]]


class _Excluded(CustomEvent):
    internal: str = Field(default="no", exclude=True)


class _Configured(CustomEvent):
    model_config = ConfigDict(ser_json_timedelta="float")

    value: dt.timedelta


class _Plain(CustomEvent):
    added_field: int = 1
    optional_field: str | None = None
    stays_null: str | None = "x"


class _NotTheSDKs(BaseModel):
    type: str = "MINE"
    snake_name: int | None = None
    aliased: str = Field(default="x", alias="theAlias")


class _AnyType(BaseEvent):
    type: Any = "MY_TYPE"
    some_field: str = "s"


@pytest.mark.parametrize(
    "event",
    [
        _Computed(name="n", value=1),
        _FieldSerializer(name="n", value=1),
        _JSONOnly(name="n", value=1),
        _Whole(name="n", value=1),
        _Annotated(name="n", value=1),
        _AnnotatedWithin(name="n", value=[1, 2]),
        _Excluded(name="n", value=1),
        _Configured(name="n", value=dt.timedelta(seconds=1.5)),
        _Plain(name="n", value=1),
        _Plain(name="n", value={"a": None}, added_field=2, optional_field="o"),
        _Computed(name="n", value=None),
        _NotTheSDKs(),
        replace(_FieldSerializer(name="n", value=1), name=5),
        _AnyType(),
        _AnyType(type="OTHER"),
        _AnyType(type=EventType.RAW),
        CustomEvent.model_construct(name="n", value=1),
        CustomEvent.model_construct(type="CUSTOM", name="n", value=1),
        TextMessageContentEvent(message_id="m", delta="d").model_copy(update={"type": "TEXT_MESSAGE_CONTENT"}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_subclasses_that_serialize_themselves_mean_what_the_sdk_says(event: BaseEvent) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the SDK warns about unvalidated values
        expected = by_the_sdk(event)
    assert encode(event) == (expected, [])


@pytest.mark.skipif(not HAS_OMISSION, reason="the older encoder leaves out every null")
def test_a_null_of_a_field_with_another_default_stays() -> None:
    event = _Plain(name="n", value=None, stays_null=None)
    assert encode(event) == (by_the_sdk(event), [])
    assert encode(event)[0] == {"type": "CUSTOM", "name": "n", "value": None, "addedField": 1, "staysNull": None}


def test_an_event_that_is_no_model_is_read_by_its_attributes() -> None:
    stand_in = SimpleNamespace(type="CUSTOM", name="n", value=None, message_id="m", metadata=None, _private=1)
    assert encode(stand_in)[0] == {"type": "CUSTOM", "name": "n", "value": None, "messageId": "m"}

    @dataclass(slots=True)
    class Mine:
        type: str
        tool_call_id: str
        new_field: Any = None

    assert encode(Mine("MINE", "t", math.nan)) == (
        {"type": "MINE", "toolCallId": "t", "newField": None},
        [("encode.nan", 1)],
    )


def test_a_changed_event_is_encoded_once() -> None:
    event = replace(decode_event('{"type":"CUSTOM"}'), name="n", value=math.nan)
    seen: list[Diagnostic] = []
    assert encode_event(event, seen.append) is encode_event(event, seen.append)
    assert [item.code for item in seen] == ["encode.nan"]


# Never an exception


class _Evil:
    def __str__(self) -> str:
        raise RuntimeError("no")


class _Long:
    def __str__(self) -> str:
        return "x" * 1000


class _Halved:
    def __str__(self) -> str:
        return "a\ud83d"


class _EvilMapping(UserDict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("no")


class _EvilKey:
    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other

    __str__ = _Evil.__str__


class _EvilModel(BaseModel):
    inner: Any

    @field_serializer("inner")
    def _say(self, _: Any) -> Any:
        raise RuntimeError("no")


class _Secretive(BaseModel):
    model_config = ConfigDict(extra="allow")

    shown: Any
    hidden: str = Field(default="secret", exclude=True)


class _EvilClass:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("no")

    __str__ = _Evil.__str__


NAN = math.nan
INF = math.inf


@pytest.mark.parametrize(
    ("value", "expected", "codes"),
    [
        (["g", 5, 0x7FF0, None], ["g", 5, 0x7FF0, None], []),  # whose bytes look like a NaN's
        (["g", 5, 0x7FF0, NAN], ["g", 5, 0x7FF0, None], [("encode.nan", 1)]),
        (NAN, None, [("encode.nan", 1)]),
        (INF, None, [("encode.nan", 1)]),
        (-INF, None, [("encode.nan", 1)]),
        (Real("nan"), None, [("encode.nan", 1)]),
        ([NAN, 1.5, None, INF], [None, 1.5, None, None], [("encode.nan", 2)]),
        ({"a": {"b": (NAN,)}}, {"a": {"b": [None]}}, [("encode.nan", 1)]),
        (OrderedDict(a=[Real("inf")]), {"a": [None]}, [("encode.nan", 1)]),
        ({NAN}, [None], [("encode.nan", 1)]),
        (deque([NAN]), [None], [("encode.nan", 1)]),
        (Pair(NAN, 1), [None, 1], [("encode.nan", 1)]),
        (Point(1, NAN), {"x_pos": 1, "more": None}, [("encode.nan", 1)]),
        (Payload(inner=NAN), {"snake_name": None, "theAlias": 1, "inner": None}, [("encode.nan", 1)]),
        (Floats([1.5, NAN]), [1.5, None], [("encode.nan", 1)]),
        ([Payload(), NAN], [{"snake_name": None, "theAlias": 1, "inner": None}, None], [("encode.nan", 1)]),
        ([Floats([1.5]), None], [[1.5], None], []),
        (custom([NAN]), {"type": "CUSTOM", "name": "n", "value": [None]}, [("encode.nan", 1)]),
        ("null", "null", []),
        ({"null": "null"}, {"null": "null"}, []),
        ("\ud83d", "\ufffd", [("encode.surrogate", 1)]),
        ("a\udc00b\ud83d", "a\ufffdb\ufffd", [("encode.surrogate", 1)]),
        (["\ud83d", {"\ude00": "\ud83d\ude00"}], ["\ufffd", {"\ufffd": "😀"}], [("encode.surrogate", 2)]),
        ("\ud83d\ude00", "😀", []),
        ("\ufffd\ud83d\ude00", "\ufffd😀", []),
        ("\ude00\ud83d", "\ufffd\ufffd", [("encode.surrogate", 1)]),
        ("\ufeff\ud83d\u2028", "\ufeff\ufffd\u2028", [("encode.surrogate", 1)]),
        (Point(1, "\ud83d"), {"x_pos": 1, "more": "\ufffd"}, [("encode.surrogate", 1)]),
        (Payload(inner="\ud83d"), {"snake_name": None, "theAlias": 1, "inner": "\ufffd"}, [("encode.surrogate", 1)]),
        (
            dict(zip("\ud83d\udc00x"[:2], (1, 2), strict=True)),
            {"\ufffd": 2},
            [("encode.surrogate", 2), ("encode.key", 1)],
        ),
        ({1: "a", "1": "b"}, {"1": "b"}, [("encode.key", 1)]),
        (_Long(), "x" * 200, [("encode.object", 1)]),
        (_Evil(), "<_Evil>", [("encode.object", 1)]),
        (_Halved(), "a\ufffd", [("encode.object", 1), ("encode.surrogate", 1)]),
        ([_Evil(), {"k": _Evil()}], ["<_Evil>", {"k": "<_Evil>"}], [("encode.object", 2)]),
        ({_EvilKey(): 1}, {"<_EvilKey>": 1}, [("encode.object", 1)]),
        (Point(1, _Evil()), {"x_pos": 1, "more": "<_Evil>"}, [("encode.object", 1)]),
        (
            Payload(inner=[_Evil(), 1]),
            {"snake_name": None, "theAlias": 1, "inner": ["<_Evil>", 1]},
            [("encode.object", 1)],
        ),
        (_EvilModel(inner=[1]), {"inner": [1]}, []),
        (_Secretive(shown=_Evil(), more=1), {"shown": "<_Evil>", "more": 1}, [("encode.object", 1)]),  # type: ignore[call-arg]
        (deque([_Evil(), 1]), ["<_Evil>", 1], [("encode.object", 1)]),
        (UserDict(a=1), {"a": 1}, []),
        (MappingProxyType({"a": 1, "b": MappingProxyType({})}), {"a": 1, "b": {}}, []),
        (b"\xff", "b'\\xff'", [("encode.object", 1)]),
        (ValueError("what"), "what", [("encode.object", 1)]),
        (10**5000, "<int>", [("encode.object", 1)]),
        ({"a": [10**5000, 10**30]}, {"a": ["<int>", 10**30]}, [("encode.object", 1)]),
        ([2**64, "\u2028"], [2**64, "\u2028"], []),
    ],
    ids=lambda item: None if isinstance(item, list) else type(item).__name__,
)
def test_what_json_cannot_say_is_repaired_and_reported_once_a_code(value: Any, expected: Any, codes: Codes) -> None:
    event = custom(value)
    result, reported = encode(event)
    assert result == {"type": "CUSTOM", "name": "n", "value": expected}
    assert reported == codes
    assert encode(replace(decode_event('{"type":"CUSTOM","name":"n"}'), value=value)) == (result, codes)
    assert json.loads(encode_sse(event, lambda _: None).removeprefix(b"data: ")) == result


def test_an_object_is_named_by_its_str() -> None:
    class Thing:
        def __str__(self) -> str:
            return "a thing"

    assert encode(custom(Thing()))[0]["value"] == "a thing"
    assert encode(custom(_EvilMapping(a=1)))[1] == [("encode.object", 1)]
    assert encode(custom([_EvilClass()])) == (
        {"type": "CUSTOM", "name": "n", "value": ["<_EvilClass>"]},
        [("encode.object", 1)],
    )


@pytest.mark.parametrize(
    ("event", "expected", "codes"),
    [
        (
            TextMessageContentEvent(message_id="m", delta="a\ud83d"),
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a\ufffd"},
            [("encode.surrogate", 1)],
        ),
        (
            TextMessageContentEvent(message_id="m", delta="a", metadata={"x": NAN}),  # type: ignore[call-arg, unused-ignore]
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a", "metadata": {"x": None}},
            [("encode.nan", 1)],
        ),
        (
            replace(TextMessageContentEvent(message_id="m", delta="a"), delta=NAN),
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": None},
            [("encode.nan", 1)],
        ),
        (
            TextMessageContentEvent.model_construct(delta="only"),
            {"type": "TEXT_MESSAGE_CONTENT", "delta": "only"},
            [],
        ),
        (
            _FieldSerializer.model_construct(name="n", value=_Evil()),
            {"type": "CUSTOM", "name": "n", "value": "<_Evil>"},
            [("encode.object", 1)],
        ),
        (
            _Computed(name="n", value=_Evil()),
            {"type": "CUSTOM", "name": "n", "value": "<_Evil>"},
            [("encode.object", 1)],
        ),
        (
            _Computed(name="n", value=[NAN]),
            {"type": "CUSTOM", "name": "n", "value": [None], "shouted": "N"},
            [("encode.nan", 1)],
        ),
        (
            _Computed(name="n", value=1, extra=[NAN]),  # type: ignore[call-arg]
            {"type": "CUSTOM", "name": "n", "value": 1, "extra": [None], "shouted": "N"},
            [("encode.nan", 1)],
        ),
        (
            CustomEvent(name="n", value="v", extra=NAN),  # type: ignore[call-arg]
            {"type": "CUSTOM", "name": "n", "value": "v", "extra": None},
            [("encode.nan", 1)],
        ),
        (
            CustomEvent(name="n", value=1, raw_event={"o": _Evil()}),
            {"type": "CUSTOM", "name": "n", "value": 1, "rawEvent": {"o": "<_Evil>"}},
            [("encode.object", 1)],
        ),
        (SimpleNamespace(type="X", evil=_Evil()), {"type": "X", "evil": "<_Evil>"}, [("encode.object", 1)]),
    ],
    ids=lambda item: type(item).__name__ if hasattr(item, "type") else None,
)
def test_every_field_of_an_event_is_repaired(event: Any, expected: Any, codes: Codes) -> None:
    if not HAS_OMISSION and isinstance(event, TextMessageContentEvent) and "metadata" in expected:
        assert event.model_extra is not None  # no field there, but kept
    assert encode(event) == (expected, codes)


class _Slotted:
    __slots__ = ("type",)


@pytest.mark.parametrize("thing", [None, 5, NAN, "text", [1], object(), _Evil(), _Slotted(), {"type": "RAW"}])
def test_even_what_is_no_event_raises_nothing(thing: Any) -> None:
    assert orjson.loads(encode_event(thing, lambda _: None)) is not pytest.fail


@pytest.mark.parametrize("kind", ["list", "dict", "mixed"])
@pytest.mark.parametrize("levels", [1, 100, 198, 199, 200, 201, 252, 253, 254, 255, 300, 2000])
def test_nesting_past_200_levels_is_cut(kind: str, levels: int) -> None:
    value = nested(levels, "in", kind)
    for event in (RawEvent(event=value), decode_event({"type": "RAW", "event": value})):
        data, codes = encode(event)
        kept, depth = data["event"], 1
        while isinstance(kept, list | dict):
            kept, depth = (kept[0] if isinstance(kept, list) else kept["k"]), depth + 1
        if levels < 200:
            assert (kept, depth, codes) == ("in", levels + 1, [])
        else:
            assert (kept, depth, codes) == ("…", 200, [("encode.depth", 1)])


def test_a_wide_and_flat_payload_is_not_cut() -> None:
    value: Any = [{"a": [], "b": {}}] * 2000
    assert encode(RawEvent(event=value)) == ({"type": "RAW", "event": value}, [])


@pytest.mark.parametrize("levels", [50, 150, 400])
@pytest.mark.parametrize(
    "wrap",
    [custom, lambda value: Payload(inner=value), lambda value: Point(1, value), lambda value: Pair(value, 1)],
    ids=["event", "model", "dataclass", "tuple"],
)
def test_nested_objects_are_cut_too(wrap: Callable[[Any], Any], levels: int) -> None:
    value: Any = 0
    for _ in range(levels):
        value = wrap(value)
    result, codes = encode(custom(value))
    text = json.dumps(result, ensure_ascii=False)
    assert ("…" in text) == (levels > 199)
    assert [code for code, _ in codes] == (["encode.depth"] if levels > 199 else [])


def _circles() -> Iterator[Any]:
    ring: Any = []
    ring.append(ring)
    yield ring
    double: Any = []
    double += [double, double]  # cut at its depth only, it would be 2 ** 200 long
    yield double
    table: dict[str, Any] = {}
    table["self"] = {"again": table}
    yield table
    model = Payload(inner=[])
    model.inner.append(model)
    yield model
    event = custom([])
    event.value.append(event)
    yield event
    point = Point(1)
    point.more = [point]
    yield point


@pytest.mark.parametrize("value", list(_circles()), ids=lambda value: type(value).__name__)
def test_what_contains_itself_is_cut(value: Any) -> None:
    result, codes = encode(custom(value))
    assert "…" in json.dumps(result, ensure_ascii=False)
    assert [code for code, _ in codes] == ["encode.depth"]


class _Child(BaseModel):
    parent: Any = Field(default=None, exclude=True)
    value: float | None = None


def test_what_a_model_does_not_send_may_be_a_circle() -> None:
    child = _Child()
    child.parent = [child]
    assert encode(custom([child])) == ({"type": "CUSTOM", "name": "n", "value": [{"value": None}]}, [])
    assert encode(custom([child, NAN]))[1] == [("encode.nan", 1)]


def test_what_occurs_twice_is_no_circle() -> None:
    shared = {"a": [1]}
    assert encode(custom([shared, shared, NAN]))[0]["value"] == [shared, shared, None]


def test_little_stack_left_is_no_exception() -> None:
    def dig(levels: int) -> bytes:
        return dig(levels - 1) if levels else encode_event(RawEvent(event=nested(190, NAN)), lambda _: None)

    for levels in (500, 700, 800, 850):
        assert dig(levels).startswith(b'{"type":"RAW","event":[')


garbage = st.recursive(
    st.sampled_from([None, True, NAN, INF, 2**70, b"\xff", object(), print, int, ..., 1j, _Evil(), _Long()])
    | st.sampled_from(PYTHON_VALUES)
    | st.builds(lambda: 10**5000)
    | st.floats()
    | st.integers()
    | st.text(st.characters(codec=None, categories=["Cs", "L", "Cc", "Zl", "Zp"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2) | st.integers() | st.none() | st.floats(), inner, max_size=3)
        | st.builds(Point, st.integers(), inner)
        | st.builds(lambda item: Payload(inner=item), inner)
        | st.builds(lambda item: SimpleNamespace(type="X", field=item), inner)
        | st.builds(lambda item: custom([item]), inner)
        | st.builds(lambda item: MappingProxyType({"k": item}), inner)
        | st.builds(iter, st.lists(inner, max_size=2))
    ),
    max_leaves=10,
)


@settings(max_examples=150)
@given(garbage, garbage, st.sampled_from(["model", "mapping", "foreign", "extra", "replaced"]))
def test_any_garbage_gives_valid_json_and_one_diagnostic_a_code(value: Any, other: Any, place: str) -> None:
    events: Mapping[str, Callable[[], Any]] = {
        "model": lambda: CustomEvent(name="n", value=value, raw_event=other),
        "mapping": lambda: decode_event({"type": "X", "a": value, "b": other}),
        "foreign": lambda: SimpleNamespace(type="X", a=value, b=other),
        "extra": lambda: CustomEvent(name="n", value=value, more=other),  # type: ignore[call-arg]
        "replaced": lambda: replace(TextMessageStartEvent(message_id="m"), message_id=value, role=other),
    }
    seen: list[Diagnostic] = []
    event = events[place]()
    data = encode_event(event, seen.append)
    assert json.loads(data.decode(), parse_constant=pytest.fail)["type"] == event.type
    codes = [item.code for item in seen]
    assert len(codes) == len(set(codes))


# Diagnostics


def test_without_a_sink_repairs_are_logged_without_content(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agui_pipeline"):
        encode_event(custom({"secret": [NAN, NAN]}))
    assert [record.getMessage() for record in caplog.records] == [
        "encode.nan: NaN or an infinity was sent as null: JSON has no form for it (2 times)"
    ]


def test_nothing_repaired_is_nothing_said(caplog: pytest.LogCaptureFixture) -> None:
    encode_event(custom({"a": None, "b": "null", "c": 2**70, "d": "\ud83d\ude00", 5: (1,)}))
    assert caplog.records == []
