"""Repairing an object that is no JSON: the plain slips here, the rest by json-repair, an optional package.

The one module that imports it. Knows how to ask it about one object, and when to stop it. Does not know which texts are
worth asking about (`_broken_object.py`) nor what an object means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, SupportsIndex, TypeAlias

from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators._scan_items import Reason, decode

MAX_REPAIR_CHARS: Final = 32768
"""The longest text that is repaired. A usual mistake takes a millisecond for every thousand characters."""

_READS: Final = 8
"""How often each character of a text may be read, on average. Usual mistakes need two readings; the parser goes back
and forth, and a hostile text of 4 kB would otherwise take it several seconds."""

Repair: TypeAlias = Callable[[str, Reason], dict[str, Any] | None]
"""Takes the text of a broken record and what is wrong with it; gives the object that was meant, None where that is
not to be had. Asked once about each."""


class _BudgetError(Exception):
    """The parser has used up its budget."""


class _Budget:
    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class _Metered(str):
    """A text that counts how often it is read. So are what is cut from it and what is made of it."""

    __slots__ = ("budget",)

    budget: _Budget

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        budget = self.budget
        found = super().__getitem__(key)
        budget.left -= len(found)
        if budget.left < 0:
            raise _BudgetError
        return _metered(found, budget) if type(key) is slice else found

    def __add__(self, other: str) -> str:
        return _metered(super().__add__(other), self.budget)

    def __radd__(self, other: str) -> str:
        return _metered(other + str(self), self.budget)


def _metered(text: str, budget: _Budget) -> _Metered:
    made = _Metered(text)
    made.budget = budget
    return made


def load_repairer() -> Callable[[str], dict[str, Any] | None]:
    """Return a function that makes an object of a text that should be one; None where it cannot.

    The text must not be JSON. It is read by rules alone, so the same text always gives the same object; and within
    bounds: None for a text over `MAX_REPAIR_CHARS`, and for one that would take time out of proportion.

    Raises:
        ConfigurationError: The package is not installed.
    """
    try:
        from json_repair import repair_json  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise ConfigurationError(
            "repair=True: needs the package json-repair; pip install 'agui-pipeline[repair]'"
        ) from exc

    def repair(text: str) -> dict[str, Any] | None:
        if len(text) > MAX_REPAIR_CHARS:
            return None
        mended = _mended(text)
        if mended is not None:
            return mended
        metered = _metered(text, _Budget(_READS * len(text) + 4096))
        try:
            value = repair_json(metered, return_objects=True, skip_json_loads=True)
        except (_BudgetError, ValueError, RecursionError, IndexError):  # the parser is lenient, not faultless
            return None
        return value if isinstance(value, dict) else None

    return repair


_TOKEN: Final = re.compile(
    r"""
    (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<cut>"(?:[^"\\]|\\.)*\\?)  # not closed: the text ends in it
    | (?P<mark>[{}\[\],])
    | (?P<rest>[^"{}\[\],]+)
    """,
    re.DOTALL | re.VERBOSE,
)
_CLOSERS: Final = {"{": "}", "[": "]"}
_ESCAPES: Final = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def _mended(text: str) -> dict[str, Any] | None:
    """Mend what leaves no doubt: commas before a closing bracket, line ends in strings, brackets missing at the end.

    json-repair takes these for signs that quotes are wrong, too, and may cut a string with an apostrophe in two.
    """
    parts: list[str] = []
    missing: list[str] = []
    comma = -1  # where in `parts` the last comma is, if nothing but white space came since
    for token in _TOKEN.finditer(text):
        kind, piece = token.lastgroup, token[0]
        if kind == "cut":
            if any(mark in piece for mark in "}]\n\\"):
                return None  # a quote is missing rather than the end
            piece += '"'
        if kind == "mark" and piece in "}]":
            if not missing or missing.pop() != piece:
                return None
            if comma >= 0:
                parts[comma] = ""
        elif piece in _CLOSERS:
            missing.append(_CLOSERS[piece])
        if piece == ",":
            comma = len(parts)
        elif not piece.isspace():
            comma = -1
        parts.append(piece.translate(_ESCAPES) if kind == "string" else piece)
    if comma >= 0:
        parts[comma] = ""
    try:
        value = decode("".join([*parts, *reversed(missing)]))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
