"""Broken records: where one ends, what is repaired, and that it does not matter how the text was cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agui_pipeline.translators._broken_object import BrokenObjectReader
from agui_pipeline.translators._repair import MAX_REPAIR_CHARS, load_repairer
from agui_pipeline.translators._scan_items import BrokenRecord
from agui_pipeline.translators._scanner import JSONScanner, LineScanner

pytest.importorskip("json_repair")
REPAIR = load_repairer()

# A text, and where its object ends; None: it goes on.
EXTENTS: dict[str, tuple[str, int | None]] = {
    "a trailing comma": ('{"a":1,} and', 8),
    "single quotes": ("{'a': '}', 'b': 2} and", 18),
    "an apostrophe is no quote": ("{a: don't, b: 'x}'}", 19),
    "a bracket in a string": ('{"a": "}", b}', 13),
    "an escaped quote": (r'{"a": "\"}", b}', 15),
    "nested": ('{"a":[{"b":1,}],}\n', 17),
    "over lines": ('{\n  "a": 1,\n  "b": [\n    2,\n  ],\n}\n', 34),
    "a raw line end in a string": ('{"a": "x\ny", b}', 15),
    "no closing bracket, a record on the next line": ('{"a":{"b":1}\n{"c":2}', 13),
    "no closing quote, a record on the next line": ('{"a":"b}\n{"c":2}', 9),
    "no closing bracket, a sentence on the next line": ('{"a":{"b":1}\nDone.', 13),
    "no closing bracket, an array on the next line": ('{"a":{"b":1}\n[{}]', 13),
    "no closing bracket, a fence": ('{"a":{"b":1}\n```', 13),
    "no closing bracket, a fence on the line": ('{"a":{"b":1}```', 12),
    "no closing quote, a fence": ('{"a":"b\n```', 8),
    "no closing bracket, a tag": ('{"a":{"b":1}</a2ui-json>', 12),
    "no closing bracket, a blank line": ('{"a":{"b":1}\n  \nMore', 16),
    "a blank line in a string is text": ('{"a":"b\n\nc",}', 13),
    "keys at the margin": ("{\n\"a\":1,\n'b':2,\n}", 17),
    "unfinished": ('{"a":{"b":1,', None),
    "unfinished in a string": ('{"a":"b\n', None),
    "curly quotes around a key": ("{“a”: 1}", 8),
}


@pytest.mark.parametrize(("text", "end"), EXTENTS.values(), ids=EXTENTS.keys())
def test_where_a_broken_object_ends(text: str, end: int | None) -> None:
    reader = BrokenObjectReader(10)
    outcome = reader.read(text, 0, len(text))
    assert (None if outcome is None else reader.stopped_at) == end
    assert outcome != "no"
    assert reader.plausible


@pytest.mark.parametrize(
    "text", ["{name}, hello", "{}x", "{ {", "{[", "{1: 2}", "{a b: c}", '{"a\n": 1}', '{"a" x', "{a\n\nb", "{, ", "{:"]
)
def test_what_does_not_begin_with_a_key_is_none(text: str) -> None:
    reader = BrokenObjectReader(10)
    assert reader.read(text, 0, len(text)) == "no"
    assert not reader.plausible


def test_too_deep_is_none() -> None:
    reader = BrokenObjectReader(3)
    assert reader.read("{a: [[1]]}", 0, 10) == "closed"
    reader = BrokenObjectReader(2)
    assert reader.read("{a: [[1]]}", 0, 10) == "no"


def scan(pieces: list[str], scanner: str = "objects", *, repair: Any = None) -> tuple[list[Any], list[BrokenRecord]]:
    """Scan a text in pieces; return its items, neighbours joined, and what was broken."""
    broken: list[BrokenRecord] = []

    def mend(text: str, _reason: str) -> dict[str, Any] | None:
        return (repair or REPAIR)(text)

    made = (
        JSONScanner(2000, 20, on_broken=broken.append, repair=mend)
        if scanner == "objects"
        else LineScanner(2000, on_broken=broken.append, repair=mend)
    )
    found: list[Any] = []
    for piece in [*pieces, None]:
        for item in made.flush() if piece is None else made.feed(piece):
            if found and found[-1][0] == item.kind != "record":
                found[-1] = (item.kind, found[-1][1] + item.text, None)
            else:
                found.append((item.kind, item.text, item.value))
    return found, broken


def records(text: str, scanner: str = "objects") -> list[Any]:
    return [value for kind, _, value in scan([text], scanner)[0] if kind == "record"]


SLIPS: dict[str, tuple[str, list[Any]]] = {
    "a trailing comma": ('{"a":[1,2,],}', [{"a": [1, 2]}]),
    "Python": ("{'a': True, 'b': None}", [{"a": True, "b": None}]),
    "unquoted keys": ('{a: {b: "c"}}', [{"a": {"b": "c"}}]),
    "a comment": ('{"a": 1, // one\n "b": 2}', [{"a": 1, "b": 2}]),
    "cut off": ('{"a": {"b": [1, {"c": "d', [{"a": {"b": [1, {"c": "d"}]}}]),
    "one brace too few, on a line": ('{"a":{"b":1}\n{"c":2}\n', [{"a": {"b": 1}}, {"c": 2}]),
    "in a fence": ('```json\n{"a": 1,}\n```\n', [{"a": 1}]),
    "in an array": ('[{"a": 1,}, {"b": 2}]', [{"a": 1}, {"b": 2}]),
    "in tags": ('<a2ui-json>{"a": 1,}</a2ui-json>', [{"a": 1}]),
    "a line end in a string": ('{"a": "b\nc"}', [{"a": "b\nc"}]),
    "what is JSON is left alone": ('{"a": 1}\n{"b": "},"}', [{"a": 1}, {"b": "},"}]),
    "prose is left alone": ("Use {a: 1,} or\n(b: {c})\n", []),
}


@pytest.mark.parametrize(("text", "expected"), SLIPS.values(), ids=SLIPS.keys())
def test_usual_slips_are_repaired(text: str, expected: list[Any]) -> None:
    assert records(text) == expected


def test_on_lines_too() -> None:
    text = '{"a":1,}\nHello, {b:1}\n{\'c\':2}\r\n{"d":{"e":3}\n[1,]\n{"f":'
    assert records(text, "lines") == [{"a": 1}, {"c": 2}, {"d": {"e": 3}}, {"f": ""}]


def test_what_is_not_repaired_is_prose_as_a_whole_and_reported_once() -> None:
    text = '{"a": 1,\n  {"b": 2}\n}\n{"c": 3}'
    found, broken = scan([text], repair=lambda _text: None)
    assert found == [("prose", text[:22], None), ("record", '{"c": 3}', {"c": 3})]
    assert [record.reason for record in broken] == ["syntax"]
    assert broken[0].prefix == text[:12]


def test_what_never_was_an_object_is_read_again_line_by_line() -> None:
    found, broken = scan(['{name},\n{"a": 1}'])
    assert found == [("prose", "{name},\n", None), ("record", '{"a": 1}', {"a": 1})]
    assert len(broken) == 1


def test_prose_behind_one_is_held_no_longer_than_it_must() -> None:
    scanner = JSONScanner(1000, 10, repair=lambda text, _reason: REPAIR(text))
    (item,) = scanner.feed('{"a": 1,}')
    assert item.value == {"a": 1}
    (item,) = scanner.feed(" there")
    assert item == ("prose", " there", None)


def test_one_that_grows_too_long_goes_on_as_prose() -> None:
    asked: list[str] = []
    scanner = JSONScanner(100, 10, repair=lambda text, _reason: asked.append(text))
    text = '{"a": 1,, ' + "x, " * 100 + '\n{"b": 2}'
    items = [item for at in range(len(text)) for item in scanner.feed(text[at])] + scanner.flush()
    assert "".join(item.text for item in items) == text
    assert items[-1].value == {"b": 2}
    assert not asked


# Whatever the cuts

TEXT = "".join(text + "\n\n" for text, _ in [*SLIPS.values(), *EXTENTS.values()] if len(text) < 60)
FRAGMENTS = ["{", "}", "[", "]", '"', "'", ":", ",", "a", "\n", " ", "\\", "```\n", "<a2ui-json>", '{"a":', "1,}", "“"]


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_usual_slips_whatever_the_cuts(points: list[int]) -> None:
    at = [0, *sorted(points), len(TEXT)]
    assert scan([TEXT[begin:end] for begin, end in pairwise(at)]) == scan([TEXT])


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30), st.sampled_from(["objects", "lines"]))
@example(['{"a":', "\n", "{", "{"], "objects")
def test_anything_whatever_the_cuts(fragments: list[str], scanner: str) -> None:
    text = "".join(fragments)
    whole = scan([text], scanner)
    assert scan(fragments, scanner) == whole
    assert scan(list(text), scanner) == whole
    assert "".join(item[1] for item in whole[0]) == text


# json-repair, kept in bounds


@pytest.mark.parametrize("text", ["{name}", "{", "", "[1,]", "hello", "{" * 5000, '{"a":' * 5000])
def test_what_cannot_be_made_an_object(text: str) -> None:
    assert not REPAIR(text)


def test_a_long_form_with_a_slip_a_line_is_repaired() -> None:
    form = {"components": [{"id": f"c{at}", "text": f"text {at}"} for at in range(600)]}
    text = json.dumps(form, indent=1).replace('"\n', '",\n').replace('"id"', "id")
    assert 20_000 < len(text) < MAX_REPAIR_CHARS
    assert REPAIR(text) == form


MENDED: dict[str, tuple[str, Any]] = {
    "commas, and quotes in strings": (
        """{"a": "${f(x, 'E')} {it's,}", "b": ["c",],}""",
        {"a": "${f(x, 'E')} {it's,}", "b": ["c"]},
    ),
    "a comma, white space": ('{"a": 1 ,\n }', {"a": 1}),
    "a line end and a tab in a string": ('{"a": "b\n\tc\r\n\\n"}', {"a": "b\n\tc\r\n\n"}),
    "brackets missing at the end": ('{"a": [{"b": {"c": "d}"', {"a": [{"b": {"c": "d}"}}]}),
    "cut off behind a comma": ('{"a": [1, 2, ', {"a": [1, 2]}),
    "cut off in a string": ('{"a": ["it\'s, we', {"a": ["it's, we"]}),
    "cut off in a string with quotes": ('{"a": "say \\"hi\\" to', {"a": 'say "hi" to'}),
}


@pytest.mark.parametrize(("text", "expected"), MENDED.values(), ids=MENDED.keys())
def test_plain_slips_leave_strings_alone(text: str, expected: Any) -> None:
    assert REPAIR(text) == expected


def test_a_longer_text_is_not() -> None:
    assert REPAIR('{"a": "' + "x" * MAX_REPAIR_CHARS + '",}') is None


@pytest.mark.parametrize("unit", ["{]", '{"', "a'", '1"', ",“:", "} {true", "[{'"])
def test_what_would_take_the_parser_minutes_is_given_up(unit: str) -> None:
    assert REPAIR('{"a":' + unit * (MAX_REPAIR_CHARS // len(unit) - 2)) is None
