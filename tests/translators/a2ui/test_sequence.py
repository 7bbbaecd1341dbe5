"""Streams that are not as they should be: out of order, malformed, hostile; and what ends a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.translators import SequenceError, decode_event
from agui_pipeline.translators.a2ui import DIAGNOSTICS, ERROR_CODE
from tests.translators.a2ui.streams import (
    BEGIN,
    DELETE,
    FAILED,
    FINISHED,
    STARTED,
    Wire,
    chunk,
    components,
    content,
    create,
    custom,
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

RECORD = json.dumps(BEGIN)
PASS_ALL: dict[str, Any] = {"pass_through": "all"}

OUT_OF_ORDER: dict[str, tuple[list[Wire], list[Wire]]] = {
    "content without start is read": ([content(lines(BEGIN)), end()], [raw(BEGIN)]),
    "end of nothing": ([end()], []),
    "start of what is open": ([start(), content(RECORD[:9]), start(), content(RECORD[9:]), end()], [raw(BEGIN)]),
    "an end too many": ([*message(lines(BEGIN)), end()], [raw(BEGIN)]),
    "a chunk without an id": ([chunk(RECORD)], [raw(BEGIN)]),
    "a chunk of what has a start": ([start(), content(RECORD[:9]), chunk(RECORD[9:], "m"), end()], [raw(BEGIN)]),
}


@pytest.mark.parametrize(("events", "expected"), OUT_OF_ORDER.values(), ids=OUT_OF_ORDER.keys())
def test_text_out_of_order_is_read_and_reported(events: list[Wire], expected: list[Wire]) -> None:
    result = translate(run_of(*events))
    assert result.events == run_of(*expected)
    assert result.codes == ["a2ui.sequence"]


@pytest.mark.parametrize("events", [events for events, _ in OUT_OF_ORDER.values()], ids=OUT_OF_ORDER.keys())
def test_strict_raises(events: list[Wire]) -> None:
    with pytest.raises(SequenceError, match=r"TEXT_MESSAGE_(START|CONTENT|END|CHUNK) for (a|no) message"):
        translate(run_of(*events), strict=True)


def test_strict_has_nothing_against_messages_that_interleave() -> None:
    events = run_of(start("a"), start("b"), content("x", "b"), content("y", "a"), end("a"), end("b"))
    assert translate(events, strict=True).codes == []


def test_prose_without_a_start_goes_on_without_one() -> None:
    result = translate(run_of(content("Hi"), content(" you")), on_invalid="text")
    assert result.events == run_of(content("Hi"), content(" you"))
    assert result.codes == ["a2ui.sequence"]


MALFORMED: list[Wire] = [
    content(None),
    content(5),
    content(["x"]),
    content({"a": 1}),
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m"},
    chunk(5, "c"),  # type: ignore[arg-type]
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "c", "delta": ["x"]},
]


@pytest.mark.parametrize("event", MALFORMED, ids=repr)
@pytest.mark.parametrize("on_invalid", ["raw", "text"])
def test_a_delta_that_is_no_text_is_dropped_and_reported(event: Wire, on_invalid: str) -> None:
    result = translate(run_of(start(), event, content(lines(BEGIN)), end()), on_invalid=on_invalid)
    assert result.events == run_of(raw(BEGIN))
    assert result.codes == ["a2ui.malformed"]


@pytest.mark.parametrize("id_", [5, ["m"], {"m": 1}, 1.5, True])
def test_an_id_that_is_no_text_is_reported_and_its_text_read(id_: Any) -> None:
    result = translate(run_of(content(lines(BEGIN), id_)))
    assert result.events == run_of(raw(BEGIN))
    assert set(result.codes) == {"a2ui.malformed", "a2ui.sequence"}


HOSTILE: list[Any] = [None, 5, 1.5, True, "", "x" * 5000, [], ["x"], {}, {"a": 1}, "\ud800"]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize(
    "options", [{}, {"carrier": "activity", "on_invalid": "text"}, {"carrier": "custom", "framing": "lines"}]
)
def test_no_field_of_any_type_raises(value: Any, options: Any) -> None:
    fields = (
        "messageId",
        "delta",
        "role",
        "name",
        "subagentRunId",
        "timestamp",
        "metadata",
        "rawEvent",
        "runId",
        "toolCallId",
    )
    base = [
        STARTED,
        start(),
        content(lines(BEGIN)[:20]),
        chunk("Hi", "c"),
        {"type": "TOOL_CALL_CHUNK"},
        end(),
        FINISHED,
    ]
    for field in fields:
        for at in range(len(base)):
            events = [*base[:at], {**base[at], field: value}, *base[at:]]
            translate(events, **PASS_ALL, **options)


ODD_BODIES: list[Any] = [None, 5, [], "x", {"surfaceId": None, "root": "r"}, {"surfaceId": ["s"], "root": "r"}]
ODD_COMPONENTS: list[Any] = [[None], [5, {"id": 5}], [{}], [{"id": ["a"]}] * 2, "abc"]
ODD_CONTENTS: list[Any] = [None, 5, {"key": ["x"]}, {"key": "a"}]
RECORDS: list[Any] = [
    *({"beginRendering": body} for body in ODD_BODIES),
    *({"surfaceUpdate": {"surfaceId": "s", "components": made}} for made in ODD_COMPONENTS),
    {"dataModelUpdate": {"surfaceId": "s", "contents": ODD_CONTENTS, "path": "//a//"}},
    {"version": "v0.9", "updateDataModel": {"surfaceId": "s", "path": "", "value": 10**400}},
    {"deleteSurface": {"surfaceId": "x" * 100_000}},
]


@pytest.mark.parametrize("carrier", ["raw", "custom", "activity"])
@pytest.mark.parametrize("framing", ["objects", "lines"])
def test_no_record_raises(carrier: str, framing: str) -> None:
    text = lines(*RECORDS, BEGIN, *RECORDS, DELETE, *RECORDS, BEGIN)
    assert translate(run_of(*message(text)), carrier=carrier, framing=framing).events


@pytest.mark.parametrize("carrier", ["raw", "activity"])
def test_numbers_that_python_refuses_leave_the_rest_alone(carrier: str) -> None:
    text = '{"version":"v0.9","updateDataModel":{"surfaceId":"s","value":' + "1" * 5000 + "}}\n"
    result = translate(run_of(*message(lines(create(), components()) + text + text + lines(delete()))), carrier=carrier)
    assert len(result.events) > 3


def test_types_of_next_year_pass_or_not_like_any_other() -> None:
    event = {"type": "HOLOGRAM", "messageId": ["odd"]}
    assert translate(run_of(event)).events == run_of()
    assert translate(run_of(event), **PASS_ALL).events == run_of(event)


# What passes


def test_what_is_dropped_unasked_is_said_once_a_run() -> None:
    events = run_of(
        {"type": "RAW", "event": 1}, {"type": "CUSTOM", "name": "n", "value": 1}, {"type": "RAW", "event": 2}
    )
    result = translate([*events, *events])
    assert result.codes == ["a2ui.pass-through-unset"] * 2
    assert "pass_through" in result.diagnostics[0].message
    assert result.diagnostics[0].event_type == "RAW"


def test_what_is_dropped_as_configured_is_counted_a_type_and_run() -> None:
    events = run_of({"type": "RAW", "event": 1}, {"type": "STEP_STARTED", "stepName": "x"}, {"type": "RAW", "event": 2})
    result = translate(events, pass_through=())
    assert [(d.code, d.event_type, d.detail["count"]) for d in result.diagnostics] == [
        ("a2ui.dropped", "RAW", 2),
        ("a2ui.dropped", "STEP_STARTED", 1),
    ]


def test_a_predicate_is_asked_only_about_what_is_no_text() -> None:
    asked: list[str] = []

    def hook(event: Any) -> bool:
        asked.append(event.type)
        return bool(event.type == "CUSTOM")

    kept = {"type": "CUSTOM", "name": "n", "value": None}
    events = run_of(*message("Hi"), kept, chunk("x", "c"), {"type": "RAW", "event": 1}, {**start("u"), "role": "user"})
    assert kept in translate(events, pass_through=hook).events
    assert asked == ["CUSTOM", "RAW"]


def test_what_a_predicate_raises_leaves_as_itself() -> None:
    def hook(_event: Any) -> bool:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        translate(run_of({"type": "RAW", "event": 1}), pass_through=hook)


# on_invalid="error"


@pytest.mark.parametrize(
    "text",
    ["Hello", '{"temperature":21}', '{"version":"v0.9"}', '{"half', "42", '{"__proto__":1}'],
)
@pytest.mark.parametrize("framing", ["objects", "lines"])
def test_invalid_text_ends_the_run_in_an_error(text: str, framing: str) -> None:
    tool = {"type": "TOOL_CALL_START", "toolCallId": "t", "toolCallName": "n"}
    events = [
        STARTED,
        start(),
        content(lines(BEGIN) + text + "\n" + lines(DELETE)),
        tool,
        content("x"),
        end(),
        FINISHED,
    ]
    result = translate(events, on_invalid="error", framing=framing, **PASS_ALL)
    assert result.events[:2] == [STARTED, raw(BEGIN)]
    (error,) = result.events[2:]
    assert (error["type"], error["code"]) == ("RUN_ERROR", ERROR_CODE)
    assert "not valid A2UI" in error["message"]
    assert result.detail("a2ui.after-error") == {"count": 4}


@pytest.mark.parametrize("last", [FINISHED, FAILED])
def test_nothing_follows_an_error_that_the_end_of_the_run_brought_to_light(last: Wire) -> None:
    result = translate([STARTED, start(), content("Hello"), last], on_invalid="error", framing="lines")
    assert [event["type"] for event in result.events] == ["RUN_STARTED", "RUN_ERROR"]
    assert result.detail("a2ui.after-error") == {"count": 1}


def test_of_an_error_in_a_chunk_stream_nothing_follows_either() -> None:
    for last in (
        {"type": "STATE_DELTA", "delta": []},
        start("n"),
        end("n"),
        chunk(lines(DELETE), "n"),
        {"type": "TOOL_CALL_CHUNK"},
    ):
        result = translate(
            [STARTED, chunk("Hello", "m"), last, FINISHED], on_invalid="error", framing="lines", **PASS_ALL
        )
        assert [event["type"] for event in result.events] == ["RUN_STARTED", "RUN_ERROR"], last


def test_the_next_run_of_a_stream_is_read_again() -> None:
    events = [*run_of(*message("Hello")), *run_of(*message(lines(BEGIN)))]
    result = translate(events, on_invalid="error")
    assert [event["type"] for event in result.events[:2]] == ["RUN_STARTED", "RUN_ERROR"]
    assert result.events[2:] == run_of(raw(BEGIN))


def test_white_space_is_no_error() -> None:
    for framing in ("objects", "lines"):
        events = run_of(*message(" \n\n" + lines(BEGIN) + " \r\n\t\n" + lines(DELETE) + "  "))
        assert translate(events, on_invalid="error", framing=framing).events == run_of(raw(BEGIN), raw(DELETE))


def test_valid_messages_travel_by_their_carrier_all_the_same() -> None:
    assert translate(run_of(*message(lines(create()))), on_invalid="error", carrier="custom").events == run_of(
        custom(create())
    )


# Diagnostics


def test_prose_that_is_dropped_is_counted() -> None:
    result = translate(run_of(*message("Hello\n", lines(BEGIN), "bye")), on_invalid="drop")
    assert result.detail("a2ui.prose-dropped") == {"count": 9}


def test_invalid_records_are_reported_with_reason_and_surface() -> None:
    result = translate(run_of(*message('{"version":"v0.9","createSurface":{"surfaceId":"x"}}')))
    assert result.detail("a2ui.invalid") == {
        "reason": 'createSurface of v0.9 needs "catalogId", a string',
        "surface_id": "x",
        "size": 52,
    }
    assert result.diagnostics[0].message_id == "m"


def test_a_record_that_breaks_off_is_reported() -> None:
    result = translate(run_of(*message('{"surfaceUpdate":{"surfaceId":"x",')))
    assert result.detail("a2ui.broken") == {"reason": "unfinished", "size": 34, "surface_id": "x"}


def test_no_message_of_a_diagnostic_holds_content() -> None:
    needle = "n33dle"
    bodies = [f'{{"{needle}":1}}', f'{{"version":"{needle}"}}', f'{{"{needle}', needle, lines(delete(needle))]
    text = "\n".join(bodies)
    for on_invalid in ("raw", "text", "drop", "error"):
        for carrier in ("raw", "custom", "activity"):
            result = translate(
                run_of(content(text, needle), *message(text, id=needle)), carrier=carrier, on_invalid=on_invalid
            )
            assert not [d.message for d in result.diagnostics if needle in d.message]
            if on_invalid == "error":
                assert needle not in json.dumps(result.events)


def test_every_code_is_documented() -> None:
    import re
    from pathlib import Path

    import agui_pipeline.translators.a2ui as package

    folder = Path(str(package.__file__)).resolve().parent
    used = {code for path in folder.glob("*.py") for code in re.findall(r'"(a2ui\.[a-z-]+)"', path.read_text())}
    assert used == set(DIAGNOSTICS)


def test_two_runs_of_one_middleware_share_nothing() -> None:
    middleware = A2UIMiddleware(on_invalid="text")
    one, two = middleware.translator(run_input()), middleware.translator(run_input())
    for event in (STARTED, start(), content(RECORD[:9])):
        one.feed(decode_event(event))
    for event in (STARTED, start()):
        two.feed(decode_event(event))
    assert [event.type for event in two.feed(decode_event(content("Hi")))] == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
    ]
    assert [event.type for event in one.feed(decode_event(content(RECORD[9:])))] == ["RAW"]
