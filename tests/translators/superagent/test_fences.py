"""Code told from text, however it is cut; and put back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators.superagent._fences import LONGEST, Fences
from agui_pipeline.translators.superagent._fencing import Fencing
from tests.translators.superagent.kit import cuts

Told = list[tuple[str | None, str]]
MARKDOWN = st.text(alphabet="`` \n\r~a\t", max_size=60)


def told(pieces: list[str]) -> Told:
    """What is text (None) and what is code (its language), neighbours of a kind joined."""
    fences = Fences()
    out: Told = []
    for part in [*map(fences.feed, pieces), fences.flush()]:
        for piece in part:
            if out and out[-1][0] == piece.language and not piece.opens:
                out[-1] = (piece.language, out[-1][1] + piece.text)
            else:
                out.append((piece.language, piece.text))
    return out


TABLE: list[tuple[str, Told]] = [
    ("plain", [(None, "plain")]),
    ("See:\n```python\nx = 1\n```\nSo.", [(None, "See:\n"), ("python", "x = 1\n"), (None, "So.")]),
    ("```\nx\n```", [("", "x\n")]),
    ("```py title=a b\nx\n```\n", [("py", "x\n")]),
    ("```  c++  \nx\n```\n", [("c++", "x\n")]),
    ("```py\r\nx\r\n```\r\n", [("py", "x\r\n")]),
    ("a ``` b\n``x`` c\n", [(None, "a ``` b\n``x`` c\n")]),
    ("```a`b\nx", [(None, "```a`b\nx")]),
    ("```inline```\n", [(None, "```inline```\n")]),
    ("```py\na ``` b\n ```x\n```\n", [("py", "a ``` b\n ```x\n")]),
    ("````md\n```\nx\n```\n````\n", [("md", "```\nx\n```\n")]),
    ("```\nx\n`````  \ny", [("", "x\n"), (None, "y")]),
    ("~~~\nx\n~~~\n", [(None, "~~~\nx\n~~~\n")]),
    ("    ```\nx\n", [(None, "    ```\nx\n")]),
    ("1. Do\n   ```py\n   x\n     y\n z\n   ```\n", [(None, "1. Do\n"), ("py", "x\n  y\nz\n")]),
    ("```py\n    ```\n```", [("py", "    ```\n")]),
    ("```py\nno end", [("py", "no end")]),
    ("```py\nno end\n``", [("py", "no end\n``")]),
    ("```py", [(None, "```py")]),
    ("``", [(None, "``")]),
    ("  ", [(None, "  ")]),
    ("```a\n```\n```b\n```\n", [("a", ""), ("b", "")]),
    ("```a\nx\n```\n```a\ny\n```\n", [("a", "x\n"), ("a", "y\n")]),
    (f"```{'x' * LONGEST}\ny\n", [(None, f"```{'x' * LONGEST}\ny\n")]),
    (f"```\n{'`' * (LONGEST + 1)}\n```\n", [("", f"{'`' * (LONGEST + 1)}\n")]),
    ("", []),
]


@pytest.mark.parametrize(("source", "expected"), TABLE, ids=[repr(source)[:40] for source, _ in TABLE])
def test_code_is_told_from_text_wherever_it_is_cut(source: str, expected: Told) -> None:
    assert told([source]) == expected
    for pieces in cuts(source):
        assert told(pieces) == expected, pieces


@given(MARKDOWN, st.data())
def test_any_cut_gives_the_same(source: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(source)))))
    pieces = [source[start:end] for start, end in zip([0, *places], [*places, len(source)], strict=True)]
    assert told(pieces) == told([source])


@given(MARKDOWN)
def test_nothing_but_fences_and_indentation_is_cut(source: str) -> None:
    kept = "".join(text for _, text in told([source]))
    rest = iter(source)
    assert all(char in rest for char in kept)
    if "```" not in source:
        assert kept == source


def test_all_that_cannot_become_a_fence_goes_on_at_once() -> None:
    fences = Fences()
    assert [piece.text for piece in fences.feed("a``")] == ["a``"]
    assert [piece.text for piece in fences.feed("\n")] == ["\n"]
    assert fences.feed("  `") == []
    assert [piece.text for piece in fences.feed("x")] == ["  `x"]


@pytest.mark.parametrize("unit", ["`", " ", "\t", "```", "a`", "``` "])
def test_what_is_held_is_bounded(unit: str) -> None:
    for block in ("", "```\nx\n"):
        fences = Fences()
        fences.feed(block)
        given = sum(len(piece.text) for _ in range(500) for piece in fences.feed(unit))
        assert 500 * len(unit) - given <= LONGEST


# Back.


def put_back(pieces: Told, notes: list[None] | None = None) -> str:
    fencing = Fencing(lambda: None if notes is None else notes.append(None))
    out = [
        fencing.text(text) if language is None else fencing.code(text, language, opens=True)
        for language, text in pieces
    ]
    return "".join([*out, fencing.flush()])


@pytest.mark.parametrize(
    ("pieces", "source"),
    [
        ([(None, "a\n"), ("py", "x\n"), (None, "b")], "a\n```py\nx\n```\nb"),
        ([(None, "a"), ("", "x")], "a\n```\nx\n```"),
        ([("a", ""), ("b", "y")], "```a\n```\n```b\ny\n```"),
        ([("md", "```\nx\n```\n")], "````md\n```\nx\n```\n````"),
        ([("two words", "x"), (None, "y")], "```\nx\n```\ny"),
        ([("`", "x")], "```\nx\n```"),
        ([("py", "x\n``")], "```py\nx\n``\n```"),
    ],
)
def test_code_stands_between_fences(pieces: Told, source: str) -> None:
    assert put_back(pieces) == source


@given(MARKDOWN)
def test_what_was_told_apart_is_the_same_when_put_back(source: str) -> None:
    first = told([source])
    again = told([put_back(first)])
    # A block that no line end closes gets one, since its fence needs a line of its own.
    whole = [
        (language, text if language is None or text[-1:] in ("", "\n") else text + "\n") for language, text in first
    ]
    assert again == whole


def test_code_that_would_end_its_block_goes_on_in_another() -> None:
    notes: list[None] = []
    fencing = Fencing(lambda: notes.append(None))
    pieces = ["a\n", "`", "``", "\nb\n"]
    out = [fencing.code(piece, "md", opens=number == 0) for number, piece in enumerate(pieces)]
    source = "".join(out) + fencing.flush()
    assert source == "```md\na\n```\n````md\n```\nb\n````"
    assert told([source]) == [("md", "a\n"), ("md", "```\nb\n")]
    assert len(notes) == 1
