"""What the scanners find in a text: a case for each clause of the framing, and that no cut of a text changes it."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agui_pipeline.translators import _json_automaton
from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators._scanner import BrokenRecord, JSONScanner, LineScanner, ScanItem, Scanner

MAX_CHARS: Final = 200
MAX_DEPTH: Final = 5

Part = tuple[str, str]
"""A kind and a text. A case is a list of them: joined, they are the input; taken one by one, what it must give."""


def rec(text: str) -> Part:
    return ("record", text)


def prose(text: str) -> Part:
    return ("prose", text)


def cut(text: str) -> Part:
    return ("cut", text)


A: Final = rec('{"a":1}')
B: Final = rec('{"b":[2,{"c":null}]}')


def merge(items: Iterable[ScanItem]) -> list[Part]:
    """Kinds and texts, neighbours of the same kind (records excepted) joined: where they meet is not promised."""
    merged: list[Part] = []
    for kind, group in groupby(items, key=lambda item: item.kind):
        texts = [item.text for item in group]
        merged += [(kind, text) for text in texts] if kind == "record" else [(kind, "".join(texts))]
    return merged


def pieces(text: str, cuts: Sequence[int]) -> Iterator[str]:
    """The text in pieces; a cut given twice makes an empty one."""
    places = [0, *sorted(cuts), len(text)]
    return (text[begin:end] for begin, end in pairwise(places))


def scan(scanner: Scanner, parts: Iterable[str]) -> list[ScanItem]:
    return [item for part in parts for item in scanner.feed(part)] + scanner.flush()


def objects(*, broken: list[BrokenRecord] | None = None, **options: Any) -> JSONScanner:
    limits = {"max_chars": MAX_CHARS, "max_depth": MAX_DEPTH} | options
    return JSONScanner(**limits, on_broken=None if broken is None else broken.append)


def is_envelope(value: Any, text: str) -> bool:
    assert json.loads(text) == value
    return "no" not in value


def check(make: Callable[[], Scanner], expected: Sequence[Part]) -> None:
    """Scan the case's text whole, in single characters and cut at every place."""
    text = "".join(piece for _, piece in expected)
    assert merge(scan(make(), [text])) == list(expected)
    assert merge(scan(make(), text)) == list(expected)
    for place in range(1, len(text)):
        assert merge(scan(make(), [text[:place], text[place:]])) == list(expected), place


# --- rule 1: where a record may start

STARTS: Final[dict[str, list[Part]]] = {
    "the message": [A],
    "white space from the start of the message on": [cut(" \t\r\n  \n "), A],
    "a line, after prose": [prose("Here:\n"), A],
    "an indented line, after prose": [prose("Here:\n"), cut("  "), A],
    "a line, after a record": [A, cut("\n"), B],
    "a line, after a CRLF": [A, cut("\r\n"), B, cut("\r\n")],
    "directly behind a record": [A, B],
    "behind a record and white space": [A, cut(" \t"), B],
    "behind a record and a comma": [A, cut(","), B],
    "behind a record, a comma and a line end": [A, cut(" ,\n  "), B],
    "behind a record, a line end and a comma": [A, cut("\n, "), B],
    "behind a bracket": [cut("["), A, cut("]")],
    "behind an opening tag": [cut("<a2ui-json>"), A],
    "behind a closing tag": [cut("</a2ui-json>"), A],
    "behind a tag in a line of prose": [prose("Sure: "), cut("<a2ui-json> "), A],
    "behind a fence's opener": [cut("```json\n"), A, cut("\n```")],
    "not in a line of prose": [prose('Sure: {"a":1}')],
    "not in a line of prose, but in the next": [prose('Sure: {"a":1}\n'), A],
    "not behind a lone CR in prose": [prose('Sure:\r{"a":1}')],
    "not behind a word on the line of a record": [A, prose(' and {"a":1}')],
    "not behind two commas": [A, cut(","), prose(',{"a":1}')],
    "not behind a comma without a record": [prose(',{"a":1}')],
    "not behind a comma that no longer follows the record": [A, cut("\n"), prose('x\n,{"a":1}')],
    "not behind a BOM": [prose('\ufeff{"a":1}')],
    "not behind other white space than JSON's": [prose('\xa0{"a":1}\x0b{"a":1}\x85{"a":1}\u2028{"a":1}')],
    "not behind an inline code span": [prose('`{"a":1}`')],
    "not as another value": [prose('"a"\n1\nnull\ntrue')],
}

# --- rule 2: what a record is

RECORDS: Final[dict[str, list[Part]]] = {
    "empty": [rec("{}")],
    "empty, with white space": [rec("{ \n}")],
    "all kinds of values": [
        rec('{"a":"","b":-0.5e+10,"c":0,"d":true,"e":false,"f":null,"g":[],"h":{},"i":[1, 2.0E-1]}')
    ],
    "pretty-printed": [rec('{\r\n  "a" : [\n\t1 ,\n    {"b": "c"}\n  ]\n}'), cut("\n"), A],
    "brackets, fences, tags and commas in strings": [rec('{"a":"}{][,```\\n <a2ui-json>","}":"\\"}"}')],
    "escapes": [rec(r'{"\u00e9\n":"\"\\\/\b\f\n\r\t\ud83d\uDE00"}')],
    "a lone surrogate's escape": [rec(r'{"a":"\ud800"}')],
    "other line ends in strings": [rec('{"a":"\u2028\u2029\x85\x7f"}'), cut("\n"), A],
    "characters beyond the BMP": [rec('{"😀":"😀"}')],
    "a key twice": [rec('{"a":1,"a":2}')],
    "numbers past what Python's floats hold": [rec('{"a":1e400,"b":-1e-400,"c":123456789012345678901234567890}')],
}

# --- rule 3: broken

BROKEN: Final[dict[str, tuple[str, list[Part]]]] = {
    "no key": ("syntax", [prose("{ x}\n"), A]),
    "a comma too many": ("syntax", [prose('{"a":1,}\n'), A]),
    "a comma in the wrong place": ("syntax", [prose('{,"a":1}\n'), A]),
    "a comma too many, in an array": ("syntax", [prose('{"a":[1,]}\n'), A]),
    "no comma": ("syntax", [prose('{"a":1 "b":2}\n'), A]),
    "no colon": ("syntax", [prose('{"a" 1}\n'), A]),
    "no value": ("syntax", [prose('{"a":}\n'), A]),
    "a key that is no string": ("syntax", [prose("{1:2}\n"), A]),
    "a closer of the other kind": ("syntax", [prose('{"a":[1}\n'), A]),
    "a bracket too many": ("syntax", [prose('{"a":1]\n'), A]),
    "single quotes": ("syntax", [prose("{'a':1}\n"), A]),
    "a comment": ("syntax", [prose('{"a":1 // one\n}\n'), A]),
    "NaN": ("syntax", [prose('{"a":NaN}\n'), A]),
    "Infinity": ("syntax", [prose('{"a":-Infinity}\n'), A]),
    "True": ("syntax", [prose('{"a":True}\n'), A]),
    "a literal cut short": ("syntax", [prose('{"a":tru}\n'), A]),
    "a literal that goes on": ("syntax", [prose('{"a":nullx}\n'), A]),
    "a leading zero": ("syntax", [prose('{"a":01}\n'), A]),
    "a leading zero behind a minus": ("syntax", [prose('{"a":-01}\n'), A]),
    "a leading plus": ("syntax", [prose('{"a":+1}\n'), A]),
    "a leading point": ("syntax", [prose('{"a":.5}\n'), A]),
    "a trailing point": ("syntax", [prose('{"a":1.}\n'), A]),
    "no digit behind a minus": ("syntax", [prose('{"a":-}\n'), A]),
    "no digit in an exponent": ("syntax", [prose('{"a":1e}\n'), A]),
    "no digit behind an exponent's sign": ("syntax", [prose('{"a":1e-}\n'), A]),
    "a hexadecimal number": ("syntax", [prose('{"a":0x10}\n'), A]),
    "digits of another script": ("syntax", [prose('{"a":\u0661}\n'), A]),
    "a raw line end in a string": ("syntax", [prose('{"a":"\n"}\n'), A]),
    "a raw line end in a key": ("syntax", [prose('{"\n":1}\n'), A]),
    "a raw tab in a string": ("syntax", [prose('{"a":"\t"}\n'), A]),
    "a NUL in a string": ("syntax", [prose('{"a":"\0"}\n'), A]),
    "an escape that JSON has not": ("syntax", [prose(r'{"a":"\x41"}' "\n"), A]),
    "an escape that JSON has not, in a key": ("syntax", [prose(r'{"\'":1}' "\n"), A]),
    "a Unicode escape cut short": ("syntax", [prose(r'{"a":"\u12"}' "\n"), A]),
    "a Unicode escape that is none": ("syntax", [prose(r'{"a":"\u12g4"}' "\n"), A]),
    "a Unicode escape with other digits": ("syntax", [prose('{"a":"\\u\u0661\u0662\u0663\u0664"}\n'), A]),
    "other white space than JSON's": ("syntax", [prose('{\xa0"a":1}\n'), A]),
    "a tag in it": ("syntax", [prose('{"a":'), cut("<a2ui-json>"), A]),
    "a fence in it": ("syntax", [prose('{"a":\n'), cut("```\n"), A]),
    "its own later line is a record": ("syntax", [prose('{"a":\n'), cut("  "), A, cut("\n"), prose("x\n"), A]),
    "its own later line is a record, in an array": (
        "syntax",
        [prose('{"a":[\n'), A, cut(",\n"), B, cut("\n"), prose("]\nx}")],
    ),
    "its own later line is an array": ("syntax", [prose('{"a":\n'), cut("["), A, cut("\n]\n"), prose("x")]),
    "what is undecided before it": ("syntax", [prose("Hi\n"), prose("\n  { x\n"), A]),
    "behind a record": ("syntax", [A, prose(" { x\n"), A]),
    "behind a bracket": ("syntax", [prose("[ { x\n"), A, cut("\n"), prose("]")]),
    "behind a bracket, as a later one": ("syntax", [cut("["), A, cut(","), prose(" { x\n"), A, cut("\n]")]),
    "in a fence": ("syntax", [prose("```json\n { x\n"), A, cut("\n"), prose("```\n")]),
    "behind a tag": ("syntax", [cut("<a2ui-json>"), prose("\n{ x\n"), cut("</a2ui-json>")]),
    "too deep": ("depth", [prose('{"a":[[[[[1]]]]]}\n'), A]),
    "objects too deep": ("depth", [prose('{"a":{"a":{"a":{"a":{"a":{}}}}}}\n'), A]),
    "too long": ("size", [prose('{"a":"' + "x" * MAX_CHARS + '"}\n'), A]),
    "too long by one": ("size", [prose('{"a":"' + "x" * (MAX_CHARS - 7) + '"}\n'), A]),
    "too long, of white space": ("size", [prose("{" + " \n" * MAX_CHARS + "}\n"), A]),
    "too long, of digits": ("size", [prose('{"a":' + "1" * MAX_CHARS + "}\n"), A]),
    "unfinished": ("unfinished", [prose('{"a":1')]),
    "unfinished at its brace": ("unfinished", [A, cut("\n"), prose("{")]),
    "unfinished in an escape": ("unfinished", [prose('{"a":"\\u00')]),
    "unfinished, its later line a record": ("unfinished", [prose('{"a":[\n'), A, cut(",\n"), B, cut(",\n")]),
}

# --- rule 4: refused by accept (an object with the key "no")

REFUSED: Final[dict[str, list[Part]]] = {
    "with its line end": [A, cut("\n"), prose('{"no":1}\n'), A],
    "with the rest of its line": [prose('{"no":1} {"a":1}\n'), A],
    "without being read again": [prose('{"no":\n{"a":1}}\n'), A],
    "with the white space before it": [A, cut("\n"), prose('\n  {"no":1}')],
    "with its fence": [prose('```json\n{"no":1}\n```\n'), A],
    "with the bracket before it": [prose('[{"no":1}]\n'), A],
    "in an array that a record opened": [cut("["), A, cut(","), prose('{"no":1},\n'), A, cut("\n]")],
    "behind a tag": [cut("<a2ui-json>"), prose('{"no":1}'), cut("</a2ui-json>")],
}

# --- rule 5: arrays

ARRAYS: Final[dict[str, list[Part]]] = {
    "of one": [cut("["), A, cut("]")],
    "of two": [cut("["), A, cut(","), B, cut("]\n")],
    "pretty-printed": [cut("[\n  "), A, cut(",\n  "), B, cut("\n]\n"), prose("Done")],
    "with a trailing comma": [cut("["), A, cut(",]\n"), B],
    "JSON Lines of arrays": [cut("["), A, cut("]\n["), B, cut("]\n")],
    "one behind the other": [cut("["), A, cut("]["), B, cut("]")],
    "in an array": [cut("["), A, cut(",["), B, cut("]]"), prose("]")],
    "in a fence, its closer on their line": [cut("```json\n["), A, cut("]```\n"), prose("Done")],
    "never closed": [cut("["), A, cut("\n"), prose("Done")],
    "closed behind prose": [cut("["), A, cut("\n"), prose("oops\n"), cut("]\n"), A],
    "in prose": [prose('See [{"a":1}]')],
    "a link": [prose("[link](http://localhost)\n"), A],
    "a footnote": [prose("[1]\n"), A],
    "an empty one": [prose("[]\n"), A],
    "of white space": [prose("[ ]\n"), A],
    "opened on a line of its own": [cut("[\n\n"), A],
    "a lone bracket behind a record": [A, prose(" [x\n"), A],
    "a lone bracket behind a record, at its line's end": [A, prose(" [\nx\n"), A],
    "a bracket before prose in the next line": [prose("[\n\n  x\n"), A],
    "a bracket before a bracket": [prose('[[{"a":1}]]\n'), A],
    "a bracket on the line before a bracket": [prose("[\n"), cut(" ["), A, cut("]")],
    "a bracket before a tag": [prose("["), cut("<a2ui-json>"), A],
    "a bracket before a fence": [prose("[```json\n"), A],
    "a bracket on the line before a fence": [prose("[\n"), cut("```json\n"), A, cut("\n```")],
    "a bracket at the end": [prose("[ ")],
    "a closer without an opener": [A, prose("]")],
    "a closer behind its fence": [cut("```\n["), A, cut("\n```\n"), prose("]")],
    "a closer behind its tag": [cut("["), A, cut("</a2ui-json>"), prose("]")],
    "a closer in a fence of its own": [cut("["), A, cut("\n"), prose("```\n"), cut("]\n"), prose("```\n"), A],
}

# --- rule 6: fences

FENCES: Final[dict[str, list[Part]]] = {
    "around a record": [prose("Here:\n"), cut("```json\n"), A, cut("\n```\n"), prose("OK?")],
    "without an info string": [cut("```\n"), A, cut("\n```\n")],
    "with CRLF": [cut("```json\r\n"), A, cut("\r\n```\r\n"), prose("OK?")],
    "with white space in their lines": [cut("  ``` json \n"), A, cut("\n  ``` \t\n"), prose("OK?")],
    "of many backticks": [cut("`" * 60 + "\n"), A, cut("\n" + "`" * 60)],
    "of too many backticks": [prose("`" * 61 + "\n"), A],
    "of too few backticks": [prose("``\n"), A, cut("\n"), prose("``")],
    "with an info string of 60 characters": [cut("```" + "x" * 60 + "\n"), A, cut("\n```")],
    "with an info string of 60 characters that a tag ends": [cut("```" + "x" * 60 + "<a2ui-json>"), A, cut("\n```")],
    "with an info string of 61 characters that a tag ends": [prose("```" + "x" * 61), cut("<a2ui-json>"), A],
    "with an info string of 61 characters": [prose("```" + "x" * 61 + "\n"), A, cut("\n"), prose("```")],
    "with another backtick": [prose("```json`\n"), A],
    "on one line": [prose('```{"a":1}```\n'), A],
    "not at a line's start": [prose("Look: ```json\n"), A, cut("\n"), prose("```\n")],
    "around several records": [cut("```\n"), A, cut("\n\n"), B, cut("\n```\n")],
    "around a record, then prose": [cut("```\n"), A, cut("\n"), prose("hm\n"), cut("```\n"), prose("OK?")],
    "around prose, then a record": [prose("```\nhm\n"), A, cut("\n"), prose("```\n"), A],
    "around code": [prose("```python\nprint()\n\n```\n"), A],
    "around white space": [prose("```\n \n```\n"), A],
    "around nothing": [prose("```\n```\n"), A],
    "around nothing, then one around a record": [prose("```\n```\n"), cut("```\n"), A, cut("\n```\n")],
    "around a tag": [cut("```json\n<a2ui-json>\n"), A, cut("\n</a2ui-json>\n```\n"), prose("OK?")],
    "around a tag and prose": [cut("```json\n<a2ui-json>"), prose("hm\n"), cut("```")],
    "in a tag": [cut("<a2ui-json>\n```json\n"), A, cut("\n```\n</a2ui-json>")],
    "in a tag, on its line": [cut("<a2ui-json>```json\n"), A, cut("\n```</a2ui-json>")],
    "ended by a tag": [cut("```json <a2ui-json>"), A, cut("\n```")],
    "closed on the line of a record": [cut("```\n"), A, cut("```\n"), prose("OK?")],
    "closed on the line of a record, behind a space": [cut("```\n"), A, cut(" ```\n"), prose("OK?")],
    "not opened on the line of a record": [A, prose("```json\n"), A],
    "not opened on the line of a record, bare": [A, prose("```\n"), A],
    "closed by more backticks": [cut("```\n"), A, cut("\n````\n"), prose("OK?")],
    "not closed by fewer": [cut("````\n"), A, cut("\n"), prose("```\nhm\n```\n"), cut("````\n"), prose("OK?")],
    "not closed by a line with more": [
        cut("```\n"),
        A,
        cut("\n"),
        prose("``` hm\nhm\n```\n"),
        cut("```\n"),
        prose("OK?"),
    ],
    "in a fence": [prose("````md\n"), cut("```json\n"), A, cut("\n```\n"), prose("````\n"), A],
    "in a fence of the same kind": [prose("```md\nUse:\n"), cut("```json\n"), A, cut("\n```\n"), prose("```\n"), A],
    "in a fence of records": [cut("```\n"), A, cut("\n```json\n"), B, cut("\n```\n```\n"), prose("OK?")],
    "with code in a fence": [prose("```md\n```js\nx\n```\n```\n"), A],
    "with white space before the inner one": [
        prose("```md\n"),
        cut("  \n ```json\n"),
        A,
        cut("\n```\n"),
        prose("```\n"),
    ],
    "closed at the end": [cut("```\n"), A, cut("\n```")],
    "not closed": [cut("```\n"), A],
    "opened at the end": [A, cut("\n"), prose("```json")],
    "opened at the end, with a line end": [prose("```json\n")],
    "begun at the end": [A, cut("\n"), prose("``")],
    "around an array": [cut("```json\n[\n"), A, cut(",\n"), B, cut("\n]\n```\n"), prose("OK?")],
    "around a list": [prose("```\n[1]\n```\n"), A],
    "of tildes": [prose("~~~\n"), A, cut("\n"), prose("~~~")],
}

# --- rule 7: tags

TAGS: Final[dict[str, list[Part]]] = {
    "around a record": [cut("<a2ui-json>"), A, cut("</a2ui-json>")],
    "on their own lines": [prose("Hi\n"), cut("<a2ui-json>\n"), A, cut("\n</a2ui-json>"), prose("\nBye")],
    "in a line of prose": [prose("a "), cut("<a2ui-json>"), A, cut("</a2ui-json>"), prose(" b")],
    "around prose": [prose("a "), cut("<a2ui-json>"), prose(" hm "), cut("</a2ui-json>"), prose(" b")],
    "around prose, with white space before them": [prose("\n "), cut("<a2ui-json>"), prose("\nhm")],
    "one behind the other": [cut("<a2ui-json></a2ui-json><a2ui-json>"), A],
    "of another case": [prose("<A2UI-JSON>")],
    "with white space in them": [prose("<a2ui-json > < a2ui-json>")],
    "with a longer name": [prose("<a2ui-jsonl>")],
    "begun and not finished": [prose("x <a2ui-jso")],
    "begun and not finished, at a line's start": [prose("x\n <a2ui-jso")],
    "begun twice": [prose("<a2ui-"), cut("<a2ui-json>"), A],
    "behind other angles": [prose("a < b <"), cut("</a2ui-json>"), A],
    "other HTML": [prose("<b>x</b>\n"), A],
    "in a string": [rec('{"a":"<a2ui-json>{}</a2ui-json>"}')],
    "in a string of what is broken": [prose('{"a":"'), cut("<a2ui-json>"), A, cut("</a2ui-json>"), prose('" x')],
}

# --- rules 8 to 10: white space, prose, flush

WHITE: Final[dict[str, list[Part]]] = {
    "alone": [cut(" \r\n\t\n")],
    "nothing": [],
    "before a record": [prose("Hi\n"), cut("\n\n  "), A],
    "behind a record, with its line end": [A, cut("  \r\n"), prose("Bye")],
    "behind a record, only its own line end": [A, cut("\n"), prose("\n\n  Bye")],
    "behind a record, before prose on its line": [A, prose("  Bye\n"), A],
    "before prose": [prose("\n\n  Hi\n\n  there\n"), A],
    "before a fence of records": [prose("Hi\n"), cut("\n\n```\n"), A],
    "before a fence of prose": [prose("Hi\n\n\n```\nx")],
    "before a closer that is cut": [cut("```\n"), A, cut("\n\n  ```\n"), prose("Bye")],
    "at the end of prose": [prose("Hi \n"), cut("\n ")],
    "at the end, behind a record": [A, cut("  ")],
    "no more than the limit of it": [cut("\n" * MAX_CHARS), A],
    "more than the limit of it": [prose("\n" * (MAX_CHARS + 1)), A],
    "far more than the limit of it": [prose(" \n" * MAX_CHARS * 2), A, cut("\n"), prose("x")],
    "more than the limit behind a record": [A, prose(" " * (MAX_CHARS + 1) + "\n"), A],
    "more than the limit behind a record, before a fence": [
        *[A, prose(" " * (MAX_CHARS + 1) + "\n"), cut("```\n"), A, cut("\n```")],
    ],
    "the limit of it behind a record, then its line end": [A, cut(" " * MAX_CHARS + "\n"), prose("\nx")],
    "more than the limit behind a bracket": [prose("[" + " " * (MAX_CHARS + 1) + '{"a":1}\n'), A],
    "more than the limit behind a bracket and a line end": [prose("[\n"), cut(" " * MAX_CHARS), A],
    "more than the limit behind a fence's opener": [prose("```\n" + " " * MAX_CHARS), A, cut("\n"), prose("```\n"), A],
    "tags past the limit": [cut("<a2ui-json>" * 20), A],
    "tags and white space up to the limit": [cut("\n<a2ui-json>" * 16 + "\n"), A],
    "tags and white space past the limit": [*[prose("\n"), cut("<a2ui-json>")] * 17, prose("\n"), A],
    "backticks past every limit": [prose("`" * 2 * MAX_CHARS)],
}


def named(table: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", table.values(), ids=list(table))


@named(STARTS)
def test_a_record_may_start(case: list[Part]) -> None:
    check(objects, case)


@named(RECORDS)
def test_a_record_is(case: list[Part]) -> None:
    check(objects, case)


@named(BROKEN)
def test_a_broken_candidate_is_prose(case: tuple[str, list[Part]]) -> None:
    reason, parts = case
    broken: list[BrokenRecord] = []
    check(lambda: objects(broken=broken), merge(ScanItem(kind, text) for kind, text in parts))  # type: ignore[arg-type]
    assert reason in {report.reason for report in broken}


@named(REFUSED)
def test_a_refused_object_is_prose(case: list[Part]) -> None:
    broken: list[BrokenRecord] = []
    check(lambda: objects(accept=is_envelope, broken=broken), case)
    assert broken == []


@named(ARRAYS)
def test_arrays_are_punctuation(case: list[Part]) -> None:
    check(objects, case)


@named(FENCES)
def test_fences(case: list[Part]) -> None:
    check(objects, case)


@named(TAGS)
def test_tags(case: list[Part]) -> None:
    check(objects, case)


@named(WHITE)
def test_white_space(case: list[Part]) -> None:
    check(objects, case)


# --- framing "lines"

LINES: Final[dict[str, list[Part]]] = {
    "objects": [rec('{"a":1}\n'), rec('{"b":2}\n')],
    "any JSON value": [rec("[1]\n"), rec('"x"\n'), rec("-1.5e3\n"), rec("true\n"), rec("false\n"), rec("null\n")],
    "numbers that floats cannot hold": [rec("1e400\n"), rec("123456789012345678901234567890\n")],
    "CRLF": [rec('{"a":1}\r\n'), prose("Hi\r\n"), cut("\r\n")],
    "trimmed": [rec(' \t{"a":1}\xa0\u3000\r\n')],
    "blank lines": [cut("\n \t\r\n\u2003\n")],
    "prose": [prose("Hello\n\u00e9\n"), rec("1\n")],
    "several values on a line": [prose('{"a":1}{"b":2}\n1 2\n')],
    "an object over many lines": [prose('{\n"a":1\n}\n')],
    "an array over many lines": [prose("[\n"), rec("1\n"), prose("]\n")],
    "fences and tags": [prose("```json\n"), rec("{}\n"), prose("```\n<a2ui-json>{}\n")],
    "no JSON, if nearly": [prose('NaN\nInfinity\n-Infinity\nTrue\n01\n.5\n+1\n\'a\'\n{"a":NaN}\n[1,]\n"\t"\n')],
    "other line separators": [rec('{"a":"\u2028\u2029\x85"}\n'), prose("a\u2028{}\x0b{}\x0c{}\x1e{}\x85{}\n")],
    "a CR is no line end": [prose("1\r2\n")],
    "a last line without an end": [prose("Hi\n"), rec('{"a":1}')],
    "a last line of prose without an end": [rec("1\n"), prose("Hi")],
    "a last line of white space": [rec("1\n"), cut("  ")],
    "nothing": [],
    "as long as the limit": [rec('"' + "x" * (MAX_CHARS - 2) + '"\n'), rec("1\n")],
    "longer than the limit": [prose('"' + "x" * (MAX_CHARS - 1) + '"\n'), rec("1\n")],
    "far longer than the limit": [prose('"' + "x" * MAX_CHARS * 5 + '"\n'), rec("1\n")],
    "white space longer than the limit": [prose(" " * (MAX_CHARS + 1) + "\n"), rec("1\n")],
    "a last line longer than the limit": [rec("1\n"), prose("x" * (MAX_CHARS + 1))],
}


@named(LINES)
def test_lines(case: list[Part]) -> None:
    check(lambda: LineScanner(MAX_CHARS), case)


# --- when it is said


@pytest.mark.parametrize(
    ("scanner", "told"),
    [
        pytest.param(objects(), [("Hel", [prose("Hel")]), ("lo", [prose("lo")])], id="prose at once"),
        pytest.param(objects(), [('{"a":', []), ("1}", [A])], id="a record at its closing brace"),
        pytest.param(objects(), [('{"a":1}{', [A]), ("x", [prose("{x")])], id="a broken one at the wrong character"),
        pytest.param(objects(), [("a <a2ui", [prose("a ")]), ("-x", [prose("<a2ui-x")])], id="what is no tag, with it"),
        pytest.param(
            objects(), [("a <a2ui", [prose("a ")]), ("-json>", [cut("<a2ui-json>")])], id="a tag with its end"
        ),
        pytest.param(objects(), [("[", []), ("l", [prose("[l")])], id="a bracket with the next character"),
        pytest.param(objects(), [("``", []), ("x", [prose("``x")])], id="what is no fence, with it"),
        pytest.param(objects(), [("```js", []), ("\n", []), ("x", [prose("```js\nx")])], id="an opener with its fence"),
        pytest.param(objects(), [("\n", []), ("\nx", [prose("\n\nx")])], id="white space with what follows"),
        pytest.param(objects(), [('{"a":1} ', [A]), ("\n", [cut(" \n")])], id="a record's line end at once"),
        pytest.param(
            LineScanner(9), [("1", []), ("2\n3", [rec("12\n")]), ("\n", [rec("3\n")])], id="a line at its end"
        ),
        pytest.param(
            LineScanner(5),
            [("12345", []), ("6", [prose("123456")]), ("7", [prose("7")]), ("\n8", [prose("\n")])],
            id="too long a line at the limit",
        ),
    ],
)
def test_nothing_waits_longer_than_it_must(scanner: Scanner, told: list[tuple[str, list[Part]]]) -> None:
    assert [merge(scanner.feed(piece)) for piece, _ in told] == [parts for _, parts in told]


def test_flush_leaves_a_scanner_as_new() -> None:
    unfinished = ['{"a":', "```\n", "[", " ", "x", "<a2", '{"a":1}', '[{"a":1}', "`", '```\n{"a":1}']
    scanner = objects()
    for text in unfinished:
        scan(scanner, [text])
        assert merge(scan(scanner, [A[1], "\n```\n", B[1], "\n```", "\n]"])) == [
            A,
            cut("\n```\n"),
            B,
            cut("\n```\n"),
            prose("]"),
        ], text


# --- values and reports


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1e400}', {"a": float("inf")}),
        ('{"a":123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        (r'{"a":"\ud83d\ude00 \ud83d"}', {"a": "😀 \ud83d"}),
        # An agent that cuts its text by UTF-16 units sends an emoji's halves in two deltas.
        ('{"a":"\ud83d\ude00"}', {"a": "😀"}),
        ('{"a":"\ud83d"}', {"a": "\ud83d"}),
        ('{"\\\\\ud83d":"\ude00"}', {"\\\ud83d": "\ude00"}),
    ],
)
@pytest.mark.parametrize("make", [objects, lambda: LineScanner(MAX_CHARS)])
def test_values_that_decoders_stumble_over(make: Callable[[], Scanner], text: str, value: object) -> None:
    assert scan(make(), text) == [ScanItem("record", text, value)]


@pytest.mark.parametrize("make", [objects, lambda: LineScanner(MAX_CHARS)])
def test_a_backslash_before_half_an_emoji_is_no_escape(make: Callable[[], Scanner]) -> None:
    text = '{"a":"\\\ud83d"}'
    assert merge(scan(make(), text)) == [prose(text)]


def test_an_integer_of_any_length_is_one() -> None:
    text = f'{{"a":{"1" * 5000}}}'  # Python's int() refuses it
    for scanner in (objects(max_chars=6000), LineScanner(6000)):
        assert merge(scan(scanner, [text])) == [rec(text)]


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"a":['])
@pytest.mark.parametrize("max_depth", [5, 100_000])
def test_a_depth_bomb_is_prose(opening: str, max_depth: int) -> None:
    bomb = opening * 50_000
    for make in (lambda: objects(max_chars=10_000_000, max_depth=max_depth), lambda: LineScanner(10_000_000)):
        assert merge(scan(make(), [bomb, "\n", A[1]]))[0] == prose(bomb + "\n")


def test_what_no_decoder_reads_is_prose() -> None:
    bomb = '{"a":' * 50_000 + "1" + "}" * 50_000
    text = f"{bomb} {A[1]}\n"
    broken: list[BrokenRecord] = []
    for scanner in (objects(max_chars=500_000, max_depth=100_000, broken=broken), LineScanner(500_000)):
        assert merge(scan(scanner, [text, B[1]])) == [prose(text), B]
    assert broken == [BrokenRecord("undecodable", len(bomb), bomb[:512])]


@pytest.mark.parametrize(
    ("text", "reports"),
    [
        ('{"a":1}', []),
        ('Sure: {x} [link] [1] `{"a"`', []),
        ("{ x", [("syntax", 3, "{ x")]),
        ('{"a":"\n', [("syntax", 7, '{"a":"\n')]),
        ('{"a":\n{"b":\nx', [("syntax", 13, '{"a":\n{"b":\nx'), ("syntax", 7, '{"b":\nx')]),
        ('{"a":[[[[[1]]]]]}', [("depth", 10, '{"a":[[[[[')]),
        (
            '{"surfaceUpdate":{"surfaceId":"s","components":["' + "x" * 300,
            [("size", 201, '{"surfaceUpdate":{"surfaceId":"s","components":["' + "x" * 152)],
        ),
        ('{"a":1', [("unfinished", 6, '{"a":1')]),
        ("{", [("unfinished", 1, "{")]),
        ('{"a":1}\n{"b"', [("unfinished", 4, '{"b"')]),
    ],
)
def test_a_broken_candidate_is_reported(text: str, reports: list[tuple[str, int, str]]) -> None:
    for parts in ([text], list(text)):
        broken: list[BrokenRecord] = []
        scan(objects(broken=broken), parts)
        assert broken == reports


def test_the_report_of_a_long_candidate_holds_only_its_beginning() -> None:
    broken: list[BrokenRecord] = []
    scan(objects(max_chars=10_000, broken=broken), ['{"a":"', "x" * 5000, "\n"])
    assert [(report.size, len(report.prefix)) for report in broken] == [(5007, 512)]


@pytest.mark.parametrize(
    ("text", "reports"),
    [
        ('Hello\n[1\n"x\n1 2\n', []),
        ('{"a":1}\n', []),
        (' {"a" \n', [("syntax", 4, '{"a"')]),
        (' {"a" ', [("unfinished", 4, '{"a"')]),
        ("x" * 250 + "\n" + "y" * 250, [("size", 201, "x" * 201), ("size", 201, "y" * 201)]),
    ],
)
def test_a_broken_line_is_reported_once(text: str, reports: list[tuple[str, int, str]]) -> None:
    for parts in ([text], list(text)):
        broken: list[BrokenRecord] = []
        scan(LineScanner(MAX_CHARS, on_broken=broken.append), parts)
        assert broken == reports


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_must_be_one(limit: int) -> None:
    with pytest.raises(ConfigurationError, match=f"max_chars must be at least 1; got {limit}"):
        JSONScanner(limit, 1)
    with pytest.raises(ConfigurationError, match=f"max_depth must be at least 1; got {limit}"):
        JSONScanner(1, limit)
    with pytest.raises(ConfigurationError, match=f"max_chars must be at least 1; got {limit}"):
        LineScanner(limit)


# --- any cut of any text

FRAGMENTS: Final = (
    *(
        '{"a":1}',
        '{"b":[2,{"c":null}]}',
        '{"no":1}',
        '{\n  "a": [\n    1\n  ]\n}',
        '{"a":\n{"b":\n[\n',
        '{"é":"😀\\n\\u00e9"}',
    ),
    *("{ x", '{"a":"', '{"a":[[', '"', "{", "}", "[", "]", ",", ":", "}\n", "]\n", ",\n"),
    *("\n", "\r\n", " ", "\t", "\r", "    ", "\u2028", "\xa0"),
    *("`", "``", "```", "````\n", "```json\n", "```\n", "```md\n"),
    *("<a2ui-json>", "</a2ui-json>", "<a2ui-json", "</", "<", "json>"),
    *(
        "Sure: ",
        "x",
        "[link]",
        "[1]",
        "[]",
        "\\",
        "\\u00",
        "\\ud83d",
        "\ud83d",
        "\ude00",
        "\0",
        "é",
        "😀",
        "10",
        "-0.5e",
        "tr",
        "ue",
    ),
)

texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=30).map("".join)
cuts = st.lists(st.integers(0, 300), max_size=40)

Make = Callable[[list[BrokenRecord]], Scanner]

scanners = st.sampled_from([4, 12, 60, 1000]).flatmap(
    lambda size: st.sampled_from([1, 2, 50]).flatmap(
        lambda depth: st.sampled_from(
            [
                lambda broken: JSONScanner(size, depth, on_broken=broken.append),
                lambda broken: JSONScanner(size, depth, is_envelope, on_broken=broken.append),
                lambda broken: LineScanner(size, on_broken=broken.append),
            ]
        )
    )
)


def told_of(make: Make, text: str) -> tuple[list[Part], list[BrokenRecord]]:
    """What a new scanner says of a text given whole, before it is told that the message ends."""
    broken: list[BrokenRecord] = []
    return merge(make(broken).feed(text)), broken


@given(scanners, texts, cuts)
@example(lambda broken: JSONScanner(60, 3, on_broken=broken.append), '{"a":\n' * 9, [])
def test_what_was_said_after_a_text_does_not_depend_on_its_cuts(make: Make, text: str, cuts: list[int]) -> None:
    broken: list[BrokenRecord] = []
    scanner = make(broken)
    items: list[ScanItem] = []
    fed = ""
    for piece in pieces(text, [place % (len(text) + 1) for place in cuts]):
        items += scanner.feed(piece)
        fed += piece
        assert (merge(items), broken) == told_of(make, fed)
    items += scanner.flush()
    assert "".join(item.text for item in items) == text
    whole: list[BrokenRecord] = []
    assert merge(items) == merge(scan(make(whole), [text]))
    assert broken == whole


@given(texts, st.sampled_from([1, 12, 60]))
def test_no_more_is_held_than_the_limits_allow(text: str, size: int) -> None:
    for scanner, most in ((JSONScanner(size, 50), 2 * size + 132), (LineScanner(size), size)):
        given_back = ""
        for place, char in enumerate(text, 1):
            given_back += "".join(item.text for item in scanner.feed(char))
            assert text.startswith(given_back)
            assert place - len(given_back) <= most


@given(texts)
def test_records_are_json_and_neighbours_are_joined(text: str) -> None:
    for scanner in (JSONScanner(1000, 50), LineScanner(1000)):
        items = scanner.feed(text)
        for before, item in zip([None, *items], items, strict=False):
            assert item.text
            if item.kind == "record":
                assert json.dumps(item.value) == json.dumps(strict_loads(item.text))
            else:
                assert item.value is None
                assert before is None or before.kind != item.kind


def strict_loads(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    return json.loads(text.strip(" \t\r\n\xa0\u2028"), parse_constant=refuse)


# --- what is known beforehand must be found

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
messages = st.dictionaries(st.text(), values, max_size=3)


@given(st.lists(messages, max_size=5), cuts, st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n", " \n"]))
def test_json_lines_come_out_as_they_went_in(
    values: list[dict[str, Any]], cuts: list[int], ascii_only: bool, end: str
) -> None:
    text = "".join(json.dumps(value, ensure_ascii=ascii_only) + end for value in values)
    for scanner in (JSONScanner(100_000, 50), LineScanner(100_000)):
        items = scan(scanner, pieces(text, [place % (len(text) + 1) for place in cuts]))
        assert [item.value for item in items if item.kind == "record"] == values
        assert [item for item in items if item.kind == "prose"] == []


words = st.text("abé, .:1{}[]\"'", min_size=1).map(lambda text: "x" + text)


@st.composite
def documents(draw: st.DrawFn) -> tuple[list[Part], list[dict[str, Any]]]:
    """An answer of whole lines, what it consists of, and the messages in it."""
    parts: list[Part] = []
    found: list[dict[str, Any]] = []

    def record() -> Part:
        found.append(draw(messages))
        return rec(json.dumps(found[-1], indent=draw(st.sampled_from([None, 0, 2]))))

    for kind in draw(st.lists(st.sampled_from(["record", "line", "array", "fence", "code", "tag", "prose", "broken"]))):
        match kind:
            case "record":
                parts += [record(), cut("\n")]
            case "line":
                parts += [record(), cut(draw(st.sampled_from(["", " ", ",", ", \n"]))), record(), cut("\n")]
            case "array":
                parts += [cut("[\n"), record(), cut(",\n"), record(), cut("\n]\n")]
            case "fence":
                parts += [cut("```json\n"), record(), cut("\n```\n")]
            case "code":
                parts += [prose(f"```py\n{draw(words)}\n\n{draw(words)}\n```\n")]
            case "tag":
                parts += [cut("<a2ui-json>\n"), record(), cut("\n</a2ui-json>"), prose("\nx\n")]
            case "prose":
                parts += [prose(f"{draw(words)}\n")]
            case _:
                parts += [prose("{" + draw(words) + "\n")]
    return parts, found


@given(documents(), cuts)
def test_everything_in_an_answer_is_found(document: tuple[list[Part], list[dict[str, Any]]], cuts: list[int]) -> None:
    parts, found = document
    text = "".join(piece for _, piece in parts)
    items = scan(JSONScanner(100_000, 50), pieces(text, [place % (len(text) + 1) for place in cuts]))
    assert merge(items) == merge(ScanItem(kind, piece) for kind, piece in parts if piece)  # type: ignore[arg-type]
    assert [item.value for item in items if item.kind == "record"] == found


# --- the automaton against json.loads


def reads(text: str) -> tuple[_json_automaton.JSONObjectReader, str | None]:
    reader = _json_automaton.JSONObjectReader(50)
    return reader, reader.read(text, 1, len(text))


@given(messages, st.sampled_from([None, 1]), st.booleans())
def test_an_object_is_done_at_its_last_brace_and_not_before(
    value: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert reads(text)[1] == "done"
    assert all(reads(text[:end])[1] is None for end in range(1, len(text)))


TAILS: Final = (
    *("", '"', '0"', '00"', '000"', '0000"', 'n"', "0", "e", "ue", "rue", "l", "ll", "ull", "se", "lse", "alse"),
    *(":0", '":0', '0":0', '00":0', '000":0', '0000":0', 'n":0', '"":0'),
)


def can_become_json(text: str) -> bool:
    closers = "".join("}" if char == "{" else "]" for char in unclosed(text))
    for tail in TAILS:
        try:
            strict_loads(text + tail + closers[::-1])
        except ValueError:
            continue
        return True
    return False


def unclosed(text: str) -> list[str]:
    """The brackets that are open at the end of a viable prefix of JSON."""
    stack: list[str] = []
    in_string = escaped = False
    for char in text:
        if in_string:
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in "{[":
            stack.append(char)
        elif char in "}]":
            stack.pop()
    return stack


@settings(max_examples=200)
@given(messages, st.data())
def test_a_prefix_is_viable_exactly_if_something_completes_it(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    place = data.draw(st.integers(1, len(text)), label="place")
    wrong = data.draw(st.text('{}[]",:\\u0123456789abcdefE+-.tnl \n\t\r\0é', min_size=1, max_size=3), label="wrong")
    text = text[:place] + wrong + text[place + data.draw(st.integers(0, 2), label="skip") :]
    reader, outcome = reads(text)
    if outcome is None:
        assert can_become_json(text)
    elif outcome == "done":
        assert isinstance(strict_loads(text[: reader.stopped_at]), dict)
    else:
        assert can_become_json(text[: reader.stopped_at])
        assert not can_become_json(text[: reader.stopped_at + 1])


@given(messages, st.data())
def test_a_reader_of_an_inner_object_is_what_would_have_read_it(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps({"a": [value, {"b": {"c": value}}]})
    text = text[: data.draw(st.integers(1, len(text) - 1))]
    outer, _ = reads(text)
    found = 0
    for offset in range(1, len(text)):
        inner = outer.inner(offset)
        if inner is not None:
            found += 1
            alone, outcome = reads(text[offset:])
            assert outcome is None
            assert {name: getattr(inner, name) for name in inner.__slots__ if name != "stopped_at"} == {
                name: getattr(alone, name) for name in inner.__slots__ if name != "stopped_at"
            }
    assert found == unclosed(text)[1:].count("{")


# --- work and memory


@pytest.mark.parametrize("step", [1, 4, 1000, 10**9])
@pytest.mark.parametrize(
    "unit",
    [
        '{"a":\n',
        '{"a":[\n',
        '{"a":\n{"b":1},\n',
        '{"a":"xxxxxxxxxxxxxxxxxxxxxxxx","b":\n',
        '{"a":"<a2ui-json>{',
        '{"<a2ui-json>{" : "',
        "{ x\n",
        '[{"a":1},\n',
        "[\n",
        "```\n",
        "<a2ui-",
    ],
)
def test_no_character_is_read_more_than_a_few_times(unit: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    original = _json_automaton.JSONObjectReader.read

    def counting(self: _json_automaton.JSONObjectReader, text: str, pos: int, end: int) -> Any:
        nonlocal read
        outcome = original(self, text, pos, end)
        read += self.stopped_at - pos + 1
        return outcome

    monkeypatch.setattr(_json_automaton.JSONObjectReader, "read", counting)
    text = unit * 1000
    scan(objects(max_chars=3000, max_depth=50), (text[at : at + step] for at in range(0, len(text), step)))
    assert read <= 3 * len(text)


@pytest.mark.parametrize("unit", ['{"a":"', "    ", "````", "[   ", "<a2ui-json> ", "```\n", "```a\n", '[{"a":1}\n'])
def test_endless_text_takes_bounded_memory(unit: str) -> None:
    for scanner in (objects(max_chars=1000), LineScanner(1000)):
        tracemalloc.start()
        try:
            for _ in range(5000):
                scanner.feed(unit)
            assert tracemalloc.get_traced_memory()[1] < 80_000
        finally:
            tracemalloc.stop()
