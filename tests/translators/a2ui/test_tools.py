"""A2UI in the arguments of tool calls."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.adapters.testing import assert_valid_stream
from agui_pipeline.middleware.a2ui import A2UILimits, A2UIMiddleware, SurfaceRegistry
from agui_pipeline.translators import decode_event
from agui_pipeline.translators.a2ui import BASIC_CATALOGS
from tests.translators.a2ui.streams import (
    BEGIN,
    FINISHED,
    STARTED,
    UPDATE,
    Result,
    Wire,
    activity,
    as_wire,
    chunk,
    components,
    content,
    create,
    custom,
    cut,
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

ALL: dict[str, Any] = {"pass_through": "all"}
FORM = [create(), components(), data({"a": 1})]


def call(*deltas: str, id: str = "c", name: str = "render_a2ui") -> list[Wire]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for delta in deltas),
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]


def chunks(*deltas: str, id: str = "c", name: str = "render_a2ui") -> list[Wire]:
    first, *rest = deltas
    opener = {"type": "TOOL_CALL_CHUNK", "toolCallId": id, "toolCallName": name, "delta": first}
    return [opener, *({"type": "TOOL_CALL_CHUNK", "delta": delta} for delta in rest)]


def render(*events: Wire, **options: Any) -> Result:
    return translate(run_of(*events), **{"tools": ["render_a2ui"], "carrier": "custom", **options})


SHAPES: dict[str, str] = {
    "messages": json.dumps({"messages": FORM}),
    "messages as text": json.dumps({"messages": json.dumps(FORM)}),
    "a2ui_json, an array": json.dumps({"a2ui_json": json.dumps(FORM)}),
    "a2ui_json, JSON Lines": json.dumps({"a2ui_json": lines(*FORM)}),
    "a2ui_json in a fence": json.dumps({"a2ui_json": "```json\n" + lines(*FORM) + "```"}),
    "a2ui_json, a value": json.dumps({"a2ui_json": FORM}),
    "operations": json.dumps({"a2ui_operations": FORM}),
    "with other arguments": json.dumps({"title": "x", "messages": FORM, "n": 1}),
    "an array": json.dumps(FORM, indent=1),
    "JSON Lines": lines(*FORM),
    "a string of text": json.dumps(lines(*FORM)),
}


@pytest.mark.parametrize("arguments", SHAPES.values(), ids=SHAPES.keys())
def test_where_messages_may_be(arguments: str) -> None:
    result = render(*call(arguments))
    assert result.events == run_of(*map(custom, FORM))
    assert result.codes == ["a2ui.pass-through-unset"]


def test_one_message() -> None:
    assert render(*call(json.dumps(delete()))).events == run_of(custom(delete()))


COMPONENTS = [{"id": "root", "component": "Text", "text": "hi"}]


def test_a_surface_with_components_and_data_becomes_messages() -> None:
    """The arguments of the official middleware's tool."""
    arguments = {"surfaceId": "s", "catalogId": "mine", "components": COMPONENTS, "data": {"a": 1}}
    assert render(*call(json.dumps(arguments))).events == run_of(
        custom({"version": "v0.9", "createSurface": {"surfaceId": "s", "catalogId": "mine"}}),
        custom(components()),
        custom(data({"a": 1}, "/")),
    )


@pytest.mark.parametrize(
    ("catalogs", "expected"),
    [
        ([], BASIC_CATALOGS["v0.9"]),
        ([{"catalogId": "mine"}], "mine"),
        ([{"catalogId": "later", "protocolVersion": "1.0"}, {"$id": "mine", "protocolVersion": "0.9.1"}], "mine"),
        ([{"catalogId": "later", "protocolVersion": "v1.0"}], BASIC_CATALOGS["v0.9"]),
        ([SimpleNamespace(catalog_id="later", protocol_version="v1.0"), SimpleNamespace(catalog_id="mine")], "mine"),
    ],
)
def test_its_catalog_is_the_first_of_ones_own(catalogs: Any, expected: str) -> None:
    arguments = json.dumps({"surfaceId": "s", "components": COMPONENTS})
    (created, _) = render(*call(arguments), catalogs=catalogs).events[1:-1]
    assert created["value"]["createSurface"]["catalogId"] == expected


def test_a_surface_is_created_once() -> None:
    """Across runs; the client keeps it."""
    middleware = A2UIMiddleware(tools=["render_a2ui"], carrier="custom")
    arguments = json.dumps({"surfaceId": "s", "components": COMPONENTS})
    first = translate(run_of(*call(arguments)), middleware).events[1:-1]
    again = translate(run_of(*call(arguments, id="c2")), middleware).events[1:-1]
    assert [len(first), len(again)] == [2, 1]
    only_data = json.dumps({"surfaceId": "s", "data": {"a": 2}})
    assert translate(run_of(*call(only_data)), middleware).events[1:-1] == [custom(data({"a": 2}, "/"))]
    assert middleware.registry.surfaces("t") == ("s",)


def test_also_where_one_call_says_it_twice() -> None:
    one, two = ({"surfaceId": "s", "components": COMPONENTS}, {"surfaceId": "s", "data": {"a": 1}})
    result = render(*call(json.dumps([one, two])))
    assert result.events == run_of(custom(create()), custom(components()), custom(data({"a": 1}, "/")))
    assert result.codes == ["a2ui.pass-through-unset"]


def test_an_activity_is_named_after_the_call() -> None:
    arguments = json.dumps({"messages": FORM})
    result = render(*call(arguments, id="c1"), carrier="activity")
    assert result.events[-2] == activity("a2ui-surface-c1", *FORM)
    two = json.dumps({"messages": [BEGIN, UPDATE, create("b"), components(surface="b")]})
    result = render(*call(two, id="c1"), carrier="activity")
    assert [event["messageId"] for event in result.events[1:-1]] == ["a2ui-surface-c1", "a2ui-surface-c1-b"]


def test_a_carrier_of_ones_own_is_told_the_call() -> None:
    seen: list[Any] = []

    def carrier(_sent: Any, context: Any) -> list[Any]:
        seen.append((context.message_id, context.tool_call_id, context.timestamp))
        return []

    events = call(lines(create()))
    events[-1]["timestamp"] = 7
    render(*events, *message(lines(create("b"))), carrier=carrier)
    assert seen == [(None, "c", 7), ("m", None, None)]


def test_events_come_behind_the_end_of_the_call_which_may_pass() -> None:
    events = call("[", json.dumps(create()), "]")
    result = render(*events, {"type": "CUSTOM", "name": "n", "value": 1}, **ALL)
    assert result.events == run_of(*events, custom(create()), {"type": "CUSTOM", "name": "n", "value": 1})
    without = render(*events, pass_through=["STATE_DELTA"])
    assert without.events == run_of(custom(create()))
    assert [d.event_type for d in without.diagnostics if d.code == "a2ui.dropped"] == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
    ]


def test_other_tools_are_not_looked_at() -> None:
    events = call(json.dumps({"messages": FORM}), name="weather_card")
    assert render(*events, **ALL).events == run_of(*events)


def test_chunks_are_read_too() -> None:
    half = len(SHAPES["messages"]) // 2
    pieces = chunks(SHAPES["messages"][:half], SHAPES["messages"][half:])
    assert render(*pieces).events == run_of(*map(custom, FORM))
    # What ends the stream of chunks at the client ends the call.
    step = {"type": "STEP_STARTED", "stepName": "x"}
    assert render(*pieces, step, **ALL).events == run_of(*pieces, *map(custom, FORM), step)
    other = chunks("{}", id="d", name="other")
    assert render(*pieces, *other, **ALL).events == run_of(*pieces, *map(custom, FORM), *other)


@pytest.mark.parametrize("models", [False, True])
def test_a_chat_has_prose_surfaces_in_text_and_in_calls_and_front_end_tools(*, models: bool) -> None:
    """All of it in chunks, which lean on one another: what goes in between must not cut one off from its stream."""
    weather = chunks('{"city":', '"Bern"}', id="w", name="weather_card")
    render_b = chunks(json.dumps({"surfaceId": "b", "components": COMPONENTS}), id="r")
    text = [chunk("Sunny.\n", "m", role="assistant"), chunk(lines(create(), components())), chunk("Book?")]
    events = run_of(*text, *weather, *render_b, chunk("Bye.", "n"))
    chat = A2UIMiddleware.chat(tools=["render_a2ui"])
    sent = translate(events, chat, models=models).events
    assert sent == run_of(
        text[0],
        custom(create()),
        custom(components()),
        chunk("Book?", "m", role="assistant"),
        *weather,
        *render_b,
        custom(create("b")),
        custom(components(surface="b")),
        chunk("Bye.", "n"),
    )
    assert_valid_stream(map(decode_event, sent))


def test_a_call_and_a_text_interleave() -> None:
    begin, arguments, stop = call(json.dumps(create("b")))
    events = run_of(start(), begin, content(json.dumps(create())[:20]), arguments, content(json.dumps(create())[20:]))
    assert translate([*events[:-1], stop, end(), FINISHED], tools=["render_a2ui"], carrier="custom").events == run_of(
        custom(create()), custom(create("b"))
    )


@pytest.mark.parametrize("ending", [[FINISHED], [{"type": "RUN_ERROR", "message": "x"}], []])
def test_a_call_without_its_end_is_read_before_the_run_ends(ending: list[Wire]) -> None:
    events = [STARTED, *call(lines(create()))[:-1], *ending]
    assert translate(events, tools=["render_a2ui"], carrier="custom").events == [STARTED, custom(create()), *ending]


def test_nor_where_the_source_fails() -> None:
    translator = A2UIMiddleware(tools=["render_a2ui"], carrier="custom").translator(run_input())
    for event in [STARTED, *call(lines(create()))[:-1]]:
        list(translator.feed(decode_event(event)))
    error = LookupError("gone")
    given, passed = translator.fail(error)
    assert [as_wire(event) for event in given] == [custom(create())]
    assert passed is error


NOTHING = ["", " ", "{}", "[]", "5", "{", '{"city": "Bern"}', '{"surfaceId": "s"}', '{"messages": 5}', "hello", "null"]


@pytest.mark.parametrize("arguments", NOTHING)
@pytest.mark.parametrize("on_invalid", ["raw", "text", "drop", "error"])
def test_arguments_without_a_message_follow_on_invalid(arguments: str, on_invalid: str) -> None:
    result = render(*call(arguments), on_invalid=on_invalid)
    assert "a2ui.invalid" in result.codes
    kinds = [event["type"] for event in result.events[1:]]
    assert kinds == {"raw": ["RAW", "RUN_FINISHED"], "error": ["RUN_ERROR"]}.get(on_invalid, ["RUN_FINISHED"])
    if on_invalid == "raw":
        assert result.events[1]["event"] == arguments


def test_messages_are_judged_one_by_one() -> None:
    bad = {"version": "v0.9", "createSurface": {"surfaceId": "x"}}
    result = render(*call(json.dumps([create(), bad, delete()])))
    assert result.events == run_of(custom(create()), raw(bad, "a2ui/v0.9"), custom(delete()))
    assert render(*call(json.dumps([bad, delete()])), on_invalid="text").events == run_of(custom(delete()))


def test_text_between_messages_is_no_message() -> None:
    arguments = json.dumps({"a2ui_json": f"Here:\n{lines(create())}{{oh\n{lines(delete())}"})
    result = render(*call(arguments))
    assert result.events == run_of(raw("Here:"), custom(create()), raw("{oh"), custom(delete()))
    assert result.codes.count("a2ui.invalid") == 2
    assert render(*call(arguments), on_invalid="text").events == run_of(custom(create()), custom(delete()))


@pytest.mark.parametrize("key", ["__proto__", "constructor"])
def test_limits_hold(key: str) -> None:
    text = json.dumps([data({key: 1}), delete()])
    result = render(*call(text), on_invalid="drop")
    assert result.events == run_of(custom(delete()))
    assert "a2ui.forbidden-key" in result.codes


def test_arguments_that_are_too_long_are_not_held() -> None:
    limits = A2UILimits(max_message_bytes=200)
    result = render(*call(lines(create()), *["x" * 500] * 9), limits=limits)
    assert result.events == run_of()
    assert result.detail("a2ui.limit") == {
        "limit": "tool_arguments",
        "maximum": 1600,
        "size": 4500 + len(lines(create())),
    }
    failed = render(*call("x" * 5000), *message("hi"), limits=limits, on_invalid="error")
    assert [event["type"] for event in failed.events] == ["RUN_STARTED", "RUN_ERROR"]


@pytest.mark.parametrize("item", ['"{"', "5", '{"messages": "x"}'])
def test_no_more_than_1024_values_of_a_call_are_looked_at(item: str) -> None:
    """A megabyte of tiny texts, each to be scanned, would take seconds."""
    many = f"[{json.dumps(create())}, {', '.join([item] * 2000)}, {json.dumps(delete())}]"
    result = render(*call(many), on_invalid="drop")
    assert result.events == run_of(custom(create()))
    assert result.detail("a2ui.limit") == {"limit": "tool_values", "maximum": 1024, "size": 1025}
    failed = render(*call(many), on_invalid="error")
    assert [event["type"] for event in failed.events] == ["RUN_STARTED", "CUSTOM", "RUN_ERROR"]
    enough = json.dumps([delete()] * 1023)
    assert "a2ui.limit" not in render(*call(enough), limits=A2UILimits(max_surface_messages=1023)).codes


def test_nothing_follows_a_run_error_of_ours() -> None:
    two = [*call("nothing"), *call(lines(create()), id="d"), *message(lines(create()))]
    result = render(*two, on_invalid="error", **ALL)
    assert [event["type"] for event in result.events][-2:] == ["TOOL_CALL_END", "RUN_ERROR"]


def test_repair() -> None:
    pytest.importorskip("json_repair")
    broken = SHAPES["messages"][:-1] + ",}"
    assert render(*call(broken)).events == run_of(raw(broken))
    result = render(*call(broken), repair=True)
    assert result.events == run_of(*map(custom, FORM))
    assert "a2ui.repaired" in result.codes
    slip = json.dumps({"a2ui_json": lines(create()) + json.dumps(delete())[:-1] + ",}"})
    assert render(*call(slip), repair=True).events == run_of(custom(create()), custom(delete()))


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "TOOL_CALL_START", "toolCallId": 5, "toolCallName": "render_a2ui"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": None},
        {"type": "TOOL_CALL_ARGS", "toolCallId": ["c"], "delta": "x"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": ["render_a2ui"]},
        {"type": "TOOL_CALL_END"},
        {"type": "TOOL_CALL_CHUNK", "toolCallName": "render_a2ui", "delta": "x"},
    ],
)
def test_malformed_events_do_no_harm(odd: Wire) -> None:
    assert render(odd, *call(lines(create()))).events == run_of(custom(create()))


def test_a_second_start_of_an_open_call_is_none() -> None:
    begin, first, stop = call(lines(create())[:9])
    rest = {**first, "delta": lines(create())[9:]}
    assert render(begin, first, begin, rest, stop).events == run_of(custom(create()))


def test_the_registry_is_shared() -> None:
    registry = SurfaceRegistry()
    render(*call(json.dumps({"surfaceId": "s", "components": COMPONENTS})), registry=registry)
    assert registry.messages_for("t", "s") == (
        {"version": "v0.9", "createSurface": {"surfaceId": "s", "catalogId": BASIC_CATALOGS["v0.9"]}},
        components(),
    )


@given(st.sampled_from(sorted(SHAPES)), st.lists(st.integers(0, 2000), max_size=6), st.booleans())
def test_the_result_is_the_same_however_arguments_were_cut(shape: str, points: list[int], chunked: bool) -> None:
    make = chunks if chunked else call
    assert render(*make(*cut(SHAPES[shape], points))).events == run_of(*map(custom, FORM))
