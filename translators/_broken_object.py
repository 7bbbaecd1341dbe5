"""Where an object ends that is no JSON: how much of a text is worth the attempt to repair it.

Knows brackets, both kinds of quotes and lines, as a model that has made a mistake still writes them. Does not know how
a repair is made (`_repair.py`), nor what stands around the object (`_scanner.py`).
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Extent: TypeAlias = Literal["closed", "line", "no"]
"""What ended it: its last bracket, or a mark that cannot be in it; a line that cannot belong to it. ``"no"``: it never
was an object: `stopped_at` means nothing."""

_WHITE: Final = frozenset(" \t\r\n")
_QUOTES: Final = frozenset("\"'“”")
_CONTINUES: Final = frozenset(" \t\r\n}],\"':“”")
_BEFORE_VALUE: Final = frozenset("{[,:")
_BRACE, _KEY, _COLON, _INSIDE = range(4)


class BrokenObjectReader:
    """Reads one object that is no JSON, character by character, in pieces of any size.

    It ends with the bracket that closes the first one, if brackets and quotes are in their places; before a tag or a
    fence; before a line that begins at its margin with what cannot go on an object, such as the next record or a
    sentence; behind a blank line. It must begin with a key and a colon: ``{name}, hello`` is none.

    Args:
        max_depth: How deep brackets may nest; deeper is no object.

    Attributes:
        stopped_at: Where in the piece it ended.
    """

    __slots__ = ("_before", "_blank", "_depth", "_escaped", "_max_depth", "_new_line", "_quote", "_state", "stopped_at")

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._state = _BRACE
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self._new_line = False  # nothing of the line has been read
        self._blank = False  # nothing but white space
        self._before = ""  # the last character that is no white space, outside strings
        self.stopped_at = 0

    @property
    def plausible(self) -> bool:
        """Whether it has begun as an object does."""
        return self._state == _INSIDE

    def read(self, text: str, begin: int, end: int) -> Extent | None:
        """Read from `begin` to `end`. None where it goes on."""
        for at in range(begin, end):
            char = text[at]
            outcome = self._inside(char) if self._state == _INSIDE else self._beginning(char)
            if outcome is not None:
                self.stopped_at = at + (outcome == "closed" and char in "}]") + (outcome == "line" and char == "\n")
                return outcome
        return None

    def _beginning(self, char: str) -> Extent | None:
        """Read up to the first colon."""
        if self._state == _BRACE:
            if self._depth == 0:
                self._depth = 1  # the brace itself
            elif char in _QUOTES:
                self._state, self._quote = _KEY, '"' if char in "“”" else char
            elif char.isalpha() or char in "_$":
                self._state = _KEY
            elif char not in _WHITE:
                return "no"
        elif self._state == _KEY and self._quote:
            if self._escaped:
                self._escaped = False
            elif char == "\\":
                self._escaped = True
            elif char == self._quote or (char in "“”" and self._quote == '"'):
                self._state, self._quote = _COLON, ""
            elif char == "\n":
                return "no"
        elif char == ":":
            self._state = _INSIDE
            self._before = char
        elif self._state == _KEY and char in _WHITE:
            self._state = _COLON
        elif not (self._state == _KEY and (char.isalnum() or char in "_$-.")) and char not in _WHITE:
            return "no"
        return None

    def _inside(self, char: str) -> Extent | None:
        if self._new_line:
            self._new_line = False
            if (char in "{`") if self._quote else (char not in _CONTINUES):
                return "line"
        if char == "\n":
            if self._blank and not self._quote:
                return "line"
            self._new_line = self._blank = True
            self._escaped = False
            return None
        if char not in _WHITE:
            self._blank = False
        if not self._quote:
            return self._outside_strings(char)
        self._in_string(char)
        return None

    def _in_string(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == self._quote:
            self._quote = ""
            self._before = char

    def _outside_strings(self, char: str) -> Extent | None:
        # An apostrophe opens a string only where a value or a key may stand.
        if char == '"' or (char == "'" and self._before in _BEFORE_VALUE):
            self._quote = char
        elif char in "{[":
            self._depth += 1
            if self._depth > self._max_depth:
                return "no"
        elif char in "}]":
            self._depth -= 1
            if self._depth == 0:
                return "closed"
        elif char in "<`":
            return "closed"
        if char not in _WHITE:
            self._before = char
        return None
