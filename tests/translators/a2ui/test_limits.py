"""Limits: what is over one is not passed as a message, is reported, and leaves the rest alone."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.translators import ConfigurationError, decode_event
from agui_pipeline.translators.a2ui import A2UILimits
from agui_pipeline.translators.a2ui._limits import component_excess, value_excess
from tests.translators.a2ui.streams import (
    BEGIN,
    DELETE,
    FINISHED,
    STARTED,
    Wire,
    as_wire,
    components,
    content,
    custom,
    data,
    delete,
    end,
    lines,
    message,
    raw,
    run_input,
    run_of,
    start,
    translate,
)


def nested(depth: int) -> Any:
    """Return a value for a message that is `depth` levels deep with it."""
    value: Any = 1
    for _ in range(depth - 2):
        value = [value]
    return value


def chain(length: int) -> Wire:
    """Return components that each hold the next."""
    made = [{"id": f"c{at}", "component": "Card", "child": f"c{at + 1}"} for at in range(length - 1)]
    made.append({"id": f"c{length - 1}", "component": "Text", "text": "c0"})
    return {"version": "v0.9", "updateComponents": {"surfaceId": "s", "components": made}}


MANY = A2UILimits()
OVER: dict[str, tuple[A2UILimits, Any, str, int]] = {
    "bytes": (A2UILimits(max_message_bytes=100), data("x" * 100), "max_message_bytes", 101),
    "bytes, not characters": (A2UILimits(max_message_bytes=200), data("é" * 80), "max_message_bytes", 235),
    "depth": (A2UILimits(max_depth=5), data(nested(6)), "max_depth", 6),
    "a long string": (A2UILimits(max_string=50), data("x" * 51), "max_string", 51),
    "a long key": (A2UILimits(max_string=50), data({"x" * 51: 1}), "max_string", 51),
    "a long surface id": (A2UILimits(max_string=50), delete("x" * 51), "max_string", 51),
    "components": (MANY, components(*(f"c{at}" for at in range(257))), "max_components", 257),
    "component depth": (MANY, chain(33), "max_component_depth", 33),
}


@pytest.mark.parametrize("framing", ["objects", "lines"])
@pytest.mark.parametrize(("limits", "value", "limit", "size"), OVER.values(), ids=OVER.keys())
def test_a_record_over_a_limit_is_reported_and_the_rest_goes_on(
    limits: A2UILimits, value: Any, limit: str, size: int, framing: str
) -> None:
    text = lines(value, delete("t"))
    result = translate(run_of(*message(text)), framing=framing, limits=limits, carrier="custom", on_invalid="drop")
    assert result.events == run_of(custom(delete("t")))
    (detail,) = (d.detail for d in result.diagnostics if d.code == "a2ui.limit")
    assert detail["limit"] == limit
    assert detail["maximum"] == getattr(limits, limit)
    assert detail["size"] >= size
    assert detail["surface_id"] == value[next(key for key in value if key != "version")]["surfaceId"]


@pytest.mark.parametrize("framing", ["objects", "lines"])
def test_what_is_just_within_every_limit_passes(framing: str) -> None:
    limits = A2UILimits(max_message_bytes=20000, max_string=50, max_depth=20)
    values = [
        data("x" * 50),
        data(nested(20)),
        data({"x" * 50: "\U0001f600" * 50}),
        components(*(f"c{at}" for at in range(256))),
        chain(32),
        data("\u2028" * 50),
    ]
    assert all(len(json.dumps(value, ensure_ascii=False).encode()) <= 20000 for value in values)
    result = translate(run_of(*message(lines(*values))), framing=framing, limits=limits, carrier="custom")
    assert result.events == run_of(*map(custom, values))
    assert result.codes == []


def test_exactly_the_limit_of_bytes_passes() -> None:
    text = json.dumps(delete())
    exact = A2UILimits(max_message_bytes=len(text))
    assert translate(run_of(*message(text)), limits=exact, carrier="custom").events == run_of(custom(delete()))
    less = A2UILimits(max_message_bytes=len(text) - 1)
    assert translate(run_of(*message(text)), limits=less, on_invalid="drop").codes[0] == "a2ui.limit"


@pytest.mark.parametrize("key", ["__proto__", "constructor", "prototype"])
@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("validate", ["envelope", "off"])
def test_keys_that_reach_a_prototype_are_refused_at_any_depth(key: str, validate: str, *, escaped: bool) -> None:
    text = json.dumps(data([{"a": {key: 1}}]))
    if escaped:
        text = text.replace(key, f"\\u{ord(key[0]):04x}" + key[1:])
    result = translate(run_of(*message(text + "\n" + lines(delete()))), validate=validate)
    # As text it does no harm.
    assert result.events == run_of(raw(text), raw(delete(), "a2ui/v0.9"))
    assert result.codes == ["a2ui.forbidden-key"]


def test_such_words_are_fine_as_values() -> None:
    value = data({"text": "the constructor and the prototype, __proto__"})
    assert translate(run_of(*message(lines(value))), carrier="custom").events == run_of(custom(value))


@pytest.mark.parametrize("on_invalid", ["raw", "text", "drop"])
def test_too_many_messages_for_a_surface_follow_on_invalid(on_invalid: str) -> None:
    limits = A2UILimits(max_surface_messages=2)
    sent = [data(at) for at in range(4)]
    other = data(0, surface="other")
    result = translate(run_of(*message(lines(*sent, other))), limits=limits, carrier="custom", on_invalid=on_invalid)
    kept = [event["value"] for event in result.events if event["type"] == "CUSTOM"]
    assert kept == [*sent[:2], other]
    details = [dict(diagnostic.detail) for diagnostic in result.diagnostics if diagnostic.code == "a2ui.limit"]
    assert details == [{"limit": "max_surface_messages", "maximum": 2, "size": 3, "surface_id": "s"}] * 2
    gone_on = [json.loads(event["event"]) for event in result.events if event["type"] == "RAW"]
    text = "".join(event.get("delta", "") for event in result.events)
    assert gone_on == (sent[2:] if on_invalid == "raw" else [])
    assert text == (lines(*sent[2:]) if on_invalid == "text" else "")


def test_messages_for_a_surface_are_counted_a_run() -> None:
    limits = A2UILimits(max_surface_messages=1)
    events = [*run_of(*message(lines(data(1)))), *run_of(*message(lines(data(2))))]
    assert translate(events, limits=limits).codes == []


def test_surfaces_of_a_run_are_bounded_too() -> None:
    sent = [delete(str(at)) for at in range(1030)]
    result = translate(run_of(*message(lines(*sent))), on_invalid="drop")
    assert len(result.events) == 1024 + 2
    assert result.codes == ["a2ui.limit"] * 6


BIG = 64 * 1024 * 1024


@pytest.mark.parametrize("framing", ["objects", "lines"])
@pytest.mark.parametrize("on_invalid", ["raw", "text", "drop"])
@pytest.mark.parametrize("begins", ['{"surfaceUpdate":{"surfaceId":"big","components":["', "prose ", " "])
def test_an_endless_record_costs_no_more_than_its_limit(framing: str, on_invalid: str, begins: str) -> None:
    limits = A2UILimits(max_message_bytes=50_000)
    diagnostics: list[Any] = []
    options: Any = {"framing": framing, "on_invalid": on_invalid, "limits": limits}
    middleware = A2UIMiddleware(**options, on_diagnostic=diagnostics.append)
    translator = middleware.translator(run_input())
    for event in (STARTED, start(), content(begins)):
        list(translator.feed(decode_event(event)))
    delta = decode_event(content(" " * 16384 if begins == " " else "x" * 16384))
    sent = 0
    tracemalloc.start()
    try:
        for _ in range(BIG // 16384):
            for out in translator.feed(delta):
                sent += len(getattr(out, "event", None) or getattr(out, "delta", None) or "")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    carried: list[Any] = []
    for event in (content("\n" + lines(DELETE)), end(), FINISHED):
        carried += [as_wire(out)["event"] for out in translator.feed(decode_event(event)) if out.type == "RAW"]
    assert carried[-1] == DELETE  # what comes after it is read
    if begins.startswith("{"):
        (found,) = (diagnostic for diagnostic in diagnostics if diagnostic.code == "a2ui.limit")
        assert found.detail["limit"] == "max_message_bytes"
        assert found.detail["size"] > 50_000
        assert found.detail["surface_id"] == "big"
    if on_invalid != "drop" and begins != " ":
        assert sent > BIG - 100_000  # it went on, in pieces


def test_a_message_after_an_endless_line_is_read() -> None:
    limits = A2UILimits(max_message_bytes=1000)
    result = translate(run_of(*message(*["x" * 900] * 5, "\n" + lines(BEGIN))), limits=limits)
    assert "".join(event["event"] for event in result.events[1:-2]) == "x" * 4500
    assert all(len(event["event"]) <= 1000 for event in result.events[1:-2])
    assert result.events[-2] == raw(BEGIN)


def test_pieces_of_a_long_line_are_not_read_as_values() -> None:
    limits = A2UILimits(max_message_bytes=10)
    result = translate(run_of(*message("1" * 25)), limits=limits)
    assert [event["event"] for event in result.events[1:-1]] == ["1" * 10, "1" * 10, "1" * 5]


def test_references_are_followed_in_every_form() -> None:
    def depth_of(*made: Any) -> int:
        found = component_excess(A2UILimits(max_component_depth=1), made)
        return 1 if found is None else found.size

    text = {"id": "t", "component": {"Text": {"text": {"literalString": "x"}}}}
    forms = [
        {"Column": {"children": {"explicitList": ["t"]}}},
        {"List": {"children": {"template": {"componentId": "t", "dataBinding": "/x"}}}},
        {"Tabs": {"tabItems": [{"title": {"literalString": "x"}, "child": "t"}]}},
        {"Modal": {"entryPointChild": "t", "contentChild": "t"}},
    ]
    for form in forms:
        assert depth_of({"id": "root", "component": form}, text) == 2
    flat = {"id": "t", "component": "Text", "text": "root"}
    for form in (
        {"child": "t"},
        {"children": ["t"]},
        {"children": {"componentId": "t", "path": "/x"}},
        {"tabs": [{"title": "x", "child": "t"}]},
        {"trigger": "t", "content": "t"},
    ):
        assert depth_of({"id": "root", "component": "X", **form}, flat) == 2


def test_a_circle_of_references_ends() -> None:
    made = [{"id": "a", "component": "Card", "child": "b"}, {"id": "b", "component": "Card", "child": "a"}]
    assert component_excess(A2UILimits(max_component_depth=2), made * 2) is None


def test_odd_components_are_no_error() -> None:
    made: list[Any] = [1, None, [], {}, {"id": 1}, {"id": ["x"]}, {"id": "a", "child": {"child": ["a", 1]}}]
    assert component_excess(A2UILimits(max_component_depth=1), made) is None


def test_lone_surrogates_count_as_bytes() -> None:
    found = value_excess(A2UILimits(max_message_bytes=5), "\ud800\ud800", '"\ud800\ud800"')
    assert found is not None
    assert found.size == 8


@pytest.mark.parametrize("name", [*A2UILimits.__dataclass_fields__])
@pytest.mark.parametrize("value", [0, -1, 1.5, "9", None, True])
def test_a_limit_is_an_integer_of_at_least_1(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}=.*must be an integer of at least 1"):
        A2UILimits(**{name: value})
