"""The result depends on the text alone, never on how it was cut."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import AnyEvent, decode_event
from agui_pipeline.translators.a2ui import A2UIContext, A2UILimits
from agui_pipeline.translators.a2ui._lines import Line, LineJoiner
from tests.translators.a2ui.streams import (
    BEGIN,
    DATA,
    DELETE,
    UPDATE,
    Wire,
    chunk,
    components,
    content,
    create,
    cut,
    data,
    end,
    joined,
    run_of,
    start,
    translate,
)

FRAGMENTS = [
    *(
        json.dumps(message)
        for message in (BEGIN, DATA, DELETE, UPDATE, create(), components("root", "b"), data({"x": 1}))
    ),
    *(
        '{"temperature":21}',
        '{"version":"v0.9"}',
        '{"__proto__":1}',
        '{"a":"' + "y" * 200 + '"}',
        "[1,2]",
        "42",
        '"str"',
    ),
    *("Hello", "Hello {x} ", "{ x", "{", "}", "[", "]", ",", '"', "\\", "`", "```", "```json\n", "\n```\n", "x" * 30),
    *("\n", "\n", "\n\n", " ", "\r\n", "\u2028", "é", "😀", "<a2ui-json>", "</a2ui-json>", "<"),
]


def own_carrier(message: Any, context: A2UIContext) -> list[AnyEvent]:
    named = {"type": "CUSTOM", "name": "own", "value": [message, context.message_id, context.surface_id]}
    return [decode_event(named), decode_event({"type": "RAW", "event": context.version})]


texts = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=12).map("".join)
CHAT: dict[str, Any] = {"on_invalid": "text", "pass_through": "all"}
points = st.lists(st.integers(0, 2000), max_size=20)
options = st.fixed_dictionaries(
    {
        "carrier": st.sampled_from(["raw", "custom", "activity", own_carrier]),
        "framing": st.sampled_from(["objects", "lines"]),
        "on_invalid": st.sampled_from(["raw", "text", "drop", "error"]),
        "limits": st.sampled_from(
            [A2UILimits(), A2UILimits(max_message_bytes=60), A2UILimits(max_depth=3), A2UILimits(max_string=20)]
        ),
    }
)


def triad(parts: list[str]) -> list[Wire]:
    return run_of(start(), *map(content, parts), end())


def chunks(parts: list[str]) -> list[Wire]:
    return run_of(*(chunk(part, None if at else "m") for at, part in enumerate(parts)))


@given(text=texts, points=points, options=options, form=st.sampled_from([triad, chunks]))
def test_any_cut_gives_the_same_events_and_diagnostics(text: str, points: list[int], options: Any, form: Any) -> None:
    whole = translate(form([text]), **options)
    pieces = translate(form(cut(text, points)), **options)
    assert joined(pieces.events) == joined(whole.events)
    if options["on_invalid"] != "error":  # there, what came in the same delta after the end has been looked at
        assert sorted(pieces.codes) == sorted(whole.codes)


@given(text=texts, points=points, options=options)
def test_wire_events_and_models_are_treated_alike(text: str, points: list[int], options: Any) -> None:
    events = triad(cut(text, points))
    assert translate(events, **options).events == translate(events, models=True, **options).events


@given(text=texts, points=points)
def test_text_is_either_carried_or_goes_on(text: str, points: list[int]) -> None:
    """With on_invalid="text" no prose is lost: without records and what may be cut around them, all text goes on."""
    plain = "".join(char for char in text if char not in '{[]},`<>"')
    result = translate(triad(cut(plain, points)), on_invalid="text")
    # Of text without anything that could begin a record, only white space at its ends may be cut.
    assert "".join(event.get("delta", "") for event in result.events).strip() == plain.strip()


@given(text=texts, points=points, others=st.lists(st.integers(0, 20), max_size=4))
def test_other_events_in_between_change_nothing(text: str, points: list[int], others: list[int]) -> None:
    events = triad(cut(text, points))
    mixed = list(events)
    for at in others:
        mixed.insert(1 + at % (len(events) - 1), {"type": "STATE_DELTA", "delta": []})
    passed = translate(mixed, **CHAT).events
    passed = [event for event in passed if event["type"] != "STATE_DELTA"]
    assert joined(passed) == joined(translate(events, on_invalid="text").events)


@given(text=st.text(alphabet=" a\n\r\u3000", max_size=40), points=points, limit=st.integers(1, 5))
def test_lines_are_joined_and_parted_the_same_way(text: str, points: list[int], limit: int) -> None:
    def read(parts: list[str]) -> list[Line]:
        joiner = LineJoiner(limit)
        return [line for part in parts for line in joiner.feed(part)] + joiner.flush()

    found = read([text])
    assert read(cut(text, points)) == found
    assert read(list(text)) == found
    assert all(0 < len(line.text) <= limit for line in found)
    assert sum(line.text.count("a") for line in found) == text.count("a")
