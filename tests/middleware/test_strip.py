"""Without debugging copies: what goes, what stays, and what the throttle can then do."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import CustomEvent, RawEvent, TextMessageContentEvent
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.adapters.testing import collect
from agui_pipeline.middleware import EventThrottleMiddleware, Pipeline, StripMiddleware
from agui_pipeline.translators import ConfigurationError, Diagnostic, decode_event, encode_event, run_input

pytestmark = pytest.mark.anyio


def given_to(events: list[Any], **options: Any) -> tuple[list[Any], list[Diagnostic]]:
    seen: list[Diagnostic] = []
    translator = StripMiddleware(on_diagnostic=seen.append, **options).translator(run_input())
    out = [sent for event in events for sent in translator.feed(event)]
    return [*out, *translator.flush()], seen


RAW: list[Any] = [
    RawEvent(event={"event": "on_chain_start"}),
    RawEvent(event=1, source="langgraph"),
    decode_event('{"type":"RAW","event":null,"source":7}'),
    decode_event('{"type":"RAW","event":{},"source":null}'),
]
A2UI: list[Any] = [
    RawEvent(event={}, source="a2ui/v0.8"),
    decode_event('{"type":"RAW","event":{},"source":"a2ui/v0.9"}'),
]


def test_raw_events_go_but_for_sources_that_are_kept() -> None:
    out, seen = given_to([*RAW, *A2UI])
    assert out == A2UI
    assert all(one is other for one, other in zip(out, A2UI, strict=True))
    assert [(one.code, one.detail["count"]) for one in seen] == [("strip.raw", 4)]
    assert given_to([*RAW, *A2UI], keep_sources=["lang?raph"])[0] == [RAW[1]]
    assert given_to([*RAW, *A2UI], keep_sources=())[0] == []
    assert given_to([*RAW, *A2UI], raw_events=False)[0] == [*RAW, *A2UI]


def test_the_copies_that_others_carry_go() -> None:
    model = TextMessageContentEvent(message_id="m", delta="x", raw_event={"a": 1})
    wire = decode_event('{"type":"NEXT_YEAR","x":1,"rawEvent":{"a":1}}')
    plain = [CustomEvent(name="n", value=None), decode_event('{"type":"NEXT_YEAR","rawEvent":null}')]
    out, seen = given_to([model, wire, *plain])
    assert [encode_event(event) for event in out[:2]] == [
        b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}',
        b'{"type":"NEXT_YEAR","x":1}',
    ]
    assert all(one is other for one, other in zip(out[2:], plain, strict=True))
    assert (model.raw_event, wire.raw_event) == ({"a": 1}, {"a": 1})
    assert [(one.code, one.detail["count"]) for one in seen] == [("strip.raw-event", 2)]
    assert given_to([model, wire], raw_event_field=False)[0] == [model, wire]


def test_an_event_of_a_class_without_the_field_passes() -> None:
    class Own:
        type = "OWN"

    own = Own()
    assert given_to([own])[0] == [own]


@given(st.text())
def test_a_source_is_compared_as_a_whole(source: str) -> None:
    event = RawEvent(event=1, source=source)
    assert (given_to([event])[0] == [event]) is source.startswith("a2ui/")


async def test_the_throttle_can_merge_what_is_left() -> None:
    def delta(text: str) -> dict[str, Any]:
        return {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text, "rawEvent": {"chunk": text}}

    events = [item for text in "abcdef" for item in ({"type": "RAW", "event": {"chunk": text}}, delta(text))]
    bare = await collect(Pipeline(events, EventThrottleMiddleware(on_diagnostic=lambda _: None)))
    assert len(bare.events) == 12
    stripped = await collect(Pipeline(events, StripMiddleware(on_diagnostic=lambda _: None), EventThrottleMiddleware()))
    assert [event.delta for event in stripped.events] == ["a", "bcdef"]


async def test_a_throttle_that_raw_events_defeat_says_so_once() -> None:
    text = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}
    for count, codes in ((10, []), (100, ["throttle.raw"])):
        seen: list[Diagnostic] = []
        throttle = EventThrottleMiddleware(interval=10, on_diagnostic=seen.append)
        await collect(Pipeline([text, {"type": "RAW", "event": 1}] * count, throttle))
        assert [one.code for one in seen] == codes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"raw_events": 1}, "raw_events=1"),
        ({"raw_event_field": None}, "raw_event_field=None"),
        ({"raw_events": False, "raw_event_field": False}, "nothing to strip"),
        ({"keep_sources": "a2ui/*"}, "keep_sources='a2ui/\\*'"),
        ({"keep_sources": [1]}, r"keep_sources=\[1\]"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        StripMiddleware(**options)
