"""What comes out for what goes in: whole streams, as wire events and as models of the SDK."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.translators import decode_event
from tests.translators.a2ui.streams import (
    BEGIN,
    DATA,
    DELETE,
    FAILED,
    STARTED,
    UPDATE,
    Wire,
    activity,
    as_wire,
    chunk,
    components,
    content,
    create,
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


@dataclass
class Case:
    events: list[Wire]
    expected: list[Wire]
    options: dict[str, Any] = field(default_factory=dict)


TOOL_CALL: list[Wire] = [
    {"type": "TOOL_CALL_START", "toolCallId": "t1", "toolCallName": "search"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "t1", "delta": "{}"},
    {"type": "TOOL_CALL_END", "toolCallId": "t1"},
]
FORM = create(), components()

CASES = {
    "records cut anywhere, the last without a newline": Case(
        run_of(*message('{"surfaceUp', "d", lines(UPDATE)[12:-9], lines(UPDATE)[-9:] + json.dumps(BEGIN))),
        run_of(raw(UPDATE), raw(BEGIN)),
    ),
    "blank lines vanish, CRLF and white space are trimmed": Case(
        run_of(*message(f"\r\n  \n  {json.dumps(DATA)}  \r\n\n", f"{json.dumps(BEGIN)}\r", "\n")),
        run_of(raw(DATA), raw(BEGIN)),
    ),
    "prose before a tag on its line is a line": Case(
        run_of(*message(f"Here: <a2ui-json>{json.dumps(BEGIN)}</a2ui-json> and\nthere")),
        run_of(raw("Here:"), raw(BEGIN), raw("and"), raw("there")),
    ),
    "prose on both sides of a tag is one": Case(
        run_of(*message("one <a2ui-json>two\n<a2ui-json>\nthree")),
        run_of(raw("one two"), raw("three")),
    ),
    "a line that is no JSON travels as a string": Case(
        run_of(*message("Here is your form:\n" + lines(BEGIN))),
        run_of(raw("Here is your form:"), raw(BEGIN)),
    ),
    "JSON that is no object travels as its value": Case(
        run_of(*message('42\n"text"\n[1]\nnull\n12 apples\n')),
        run_of(raw(42), raw("text"), raw([1]), raw(None), raw("12 apples")),
    ),
    "an object that is no message travels as its value": Case(
        run_of(*message('{"temperature": 21}\n')),
        run_of(raw({"temperature": 21})),
    ),
    "pretty-printed and concatenated": Case(
        run_of(*message("{\n  ", json.dumps(BEGIN, indent=2)[2:] + json.dumps(DELETE))),
        run_of(raw(BEGIN), raw(DELETE)),
    ),
    "an array of messages": Case(
        run_of(*message(json.dumps([BEGIN, DELETE], indent=1))),
        run_of(raw(BEGIN), raw(DELETE)),
    ),
    "framing lines: one record a line": Case(
        run_of(*message('{\n"deleteSurface":{"surfaceId":"s"}}\n')),
        run_of(raw("{"), raw('"deleteSurface":{"surfaceId":"s"}}')),
        {"framing": "lines"},
    ),
    "framing lines: any JSON value is a record": Case(
        run_of(*message('[1]\n  {"a":null} \r\n7')),
        run_of(raw([1]), raw({"a": None}), raw(7)),
        {"framing": "lines"},
    ),
    "prose around a fence that was cut": Case(
        run_of(*message("Here:\n`", "``json\n[" + json.dumps(delete()) + "]\n``", "`\nOK?")),
        run_of(start(), content("Here:\n"), raw(delete(), "a2ui/v0.9"), content("OK?"), end()),
        {"on_invalid": "text"},
    ),
    "structure inside strings is text": Case(
        run_of(*message(*lines(components(text='use ```js``` then }, ] and ,} " \\')))),
        run_of(raw(components(text='use ```js``` then }, ] and ,} " \\'), "a2ui/v0.9")),
    ),
    "messages interleave": Case(
        run_of(
            start("m1"),
            start("m2"),
            content('{"version":"v0.9","d', "m1"),
            content("Hello", "m2"),
            content('eleteSurface":{"surfaceId":"s"}}', "m1"),
            end("m2"),
            end("m1"),
        ),
        run_of(start("m2"), content("Hello", "m2"), raw(delete(), "a2ui/v0.9"), end("m2")),
        {"on_invalid": "text"},
    ),
    "chunks with an id only on the first": Case(
        run_of(
            chunk('{"beginRen', "m", role="assistant"),
            chunk('dering":{"surfaceId":"s","root":"root"}}\n{"deleteSurface":{"surfaceId":"s"}}'),
        ),
        run_of(raw(BEGIN), raw(DELETE)),
    ),
    "other events are dropped by default": Case(
        run_of(
            {"type": "STEP_STARTED", "stepName": "x"},
            {"type": "CUSTOM", "name": "n", "value": 1},
            *message(lines(BEGIN)),
            {"type": "STEP_FINISHED", "stepName": "x"},
        ),
        run_of(raw(BEGIN)),
    ),
    "one type passes": Case(
        run_of(*TOOL_CALL, {"type": "CUSTOM", "name": "n", "value": {"k": None}}, *message(lines(BEGIN))),
        run_of({"type": "CUSTOM", "name": "n", "value": {"k": None}}, raw(BEGIN)),
        {"pass_through": ["CUSTOM"]},
    ),
    "what passes stays where it was, between two records": Case(
        run_of(start(), content(lines(UPDATE)), *TOOL_CALL, content(lines(BEGIN)), end()),
        run_of(raw(UPDATE), *TOOL_CALL, raw(BEGIN)),
        {"pass_through": "all"},
    ),
    "a complete record without newline is not lost when the run fails": Case(
        [STARTED, start(), content(json.dumps(BEGIN)), FAILED],
        [STARTED, raw(BEGIN), FAILED],
    ),
    "nor when the stream just ends": Case(
        [STARTED, start(), content(json.dumps(BEGIN))],
        [STARTED, raw(BEGIN)],
    ),
    "a cut record is no message": Case(
        [STARTED, start(), content('{"surfaceUpdate":{"surfaceId":'), FAILED],
        [STARTED, FAILED],
        {"on_invalid": "drop"},
    ),
    "the source names the version of the message itself": Case(
        run_of(*message(lines(create(), components(version="v0.9.1"), delete(version="v1.0"), DELETE))),
        run_of(
            raw(create(), "a2ui/v0.9"),
            raw(components(version="v0.9.1"), "a2ui/v0.9.1"),
            raw(delete(version="v1.0"), "a2ui/v1.0"),
            raw(DELETE),
        ),
    ),
    "a fixed source": Case(
        run_of(*message(lines(create()))),
        run_of(raw(create(), "mine")),
        {"source": "mine"},
    ),
    "a null inside a message is data": Case(
        run_of(*message(lines(data(None, "/x")))),
        run_of(custom(data(None, "/x"))),
        {"carrier": "custom"},
    ),
    "no invalid message travels as CUSTOM": Case(
        run_of(*message('{"version":"v0.9"}\n{"temperature":21}\n' + lines(create()))),
        run_of(custom(create())),
        {"carrier": "custom", "on_invalid": "drop"},
    ),
    "it travels as RAW if it travels": Case(
        run_of(*message('{"version":"v0.9"}\nHi\n' + lines(create()))),
        run_of(raw({"version": "v0.9"}, "a2ui/v0.9"), raw("Hi"), custom(create())),
        {"carrier": "custom"},
    ),
    "a custom name": Case(
        run_of(*message(lines(create()))),
        run_of({**custom(create()), "name": "a2ui.message"}),
        {"carrier": "custom", "custom_name": "a2ui.message"},
    ),
    "snapshots are cumulative and never show a surface without components": Case(
        run_of(start(), *(content(lines(operation)) for operation in FORM), end()),
        run_of(activity("a2ui-surface-m", *FORM)),
        {"carrier": "activity"},
    ),
    "text that is not the assistant's is not A2UI": Case(
        run_of({**start("u"), "role": "user"}, content("{", "u"), end("u")),
        run_of({**start("u"), "role": "user"}, content("{", "u"), end("u")),
    ),
    "an absent role is the assistant's": Case(
        run_of({"type": "TEXT_MESSAGE_START", "messageId": "m"}, content(lines(BEGIN)), end()),
        run_of(raw(BEGIN)),
    ),
    "an empty run": Case(run_of(), run_of()),
    "an empty message": Case(run_of(start(), end()), run_of()),
    "prose is dropped": Case(
        run_of(*message("Hello\n" + lines(BEGIN) + "bye")),
        run_of(raw(BEGIN)),
        {"on_invalid": "drop"},
    ),
    "nothing is checked": Case(
        run_of(*message('{"version":"v0.9"}\n{"a":1}\nHi')),
        run_of(raw({"version": "v0.9"}, "a2ui/v0.9"), raw({"a": 1}), raw("Hi")),
        {"validate": "off"},
    ),
}


@pytest.mark.parametrize("models", [False, True], ids=["wire", "models"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_stream(case: Case, *, models: bool) -> None:
    result = translate(case.events, models=models, **case.options)
    assert result.events == case.expected


def test_a_source_that_fails_gets_what_was_pending_delivered_first() -> None:
    translator = A2UIMiddleware(framing="lines").translator(run_input())
    for event in (STARTED, start(), content(json.dumps(BEGIN))):
        translator.feed(decode_event(event))
    boom = RuntimeError("boom")
    events, exc = translator.fail(boom)
    assert [as_wire(event) for event in events] == [raw(BEGIN)]
    assert exc is boom


def test_a_stream_of_two_runs_is_two_runs() -> None:
    again = {**STARTED, "runId": "r2"}
    result = translate(
        [*run_of(start(), content(json.dumps(BEGIN))), again, content(lines(DELETE)), {**FAILED}],
    )
    assert result.events == [*run_of(raw(BEGIN)), again, raw(DELETE), FAILED]
    assert result.codes == ["a2ui.sequence"]  # a message does not live on into the next run


def test_carrier_events_say_when_and_whose() -> None:
    opened = start(subagentRunId="sub", timestamp=1)
    events = run_of(opened, content(lines(BEGIN), timestamp=5), content(json.dumps(DELETE)), end(timestamp=9))
    assert translate(events, framing="lines").events[1:3] == [
        raw(BEGIN, timestamp=5, subagentRunId="sub"),
        raw(DELETE, timestamp=9, subagentRunId="sub"),
    ]


@pytest.mark.parametrize("carrier", ["raw", "custom", "activity"])
def test_every_carrier_keeps_the_attribution(carrier: str) -> None:
    result = translate(run_of(start(subagentRunId="sub"), content(lines(*FORM)), end()), carrier=carrier)
    assert {event.get("subagentRunId") for event in result.events[1:-1]} == {"sub"}
    assert len(result.events) > 2


def test_a_fraction_of_a_millisecond_is_no_timestamp() -> None:
    result = translate(run_of(start(), content(lines(BEGIN), timestamp=1.5), end()))
    assert result.events == run_of(raw(BEGIN))
