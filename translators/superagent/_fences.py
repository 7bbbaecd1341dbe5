"""Fenced code in streamed text: which characters are text, which are code, which are fences.

Knows lines and backticks. A fence is a line of at most three spaces, three or more backticks and, where it opens, an
info string without backticks; at most `LONGEST` characters. The closing one has at least as many backticks and nothing
else. ``~~~`` is text, and so is a deeper indented fence. Does not know messages or frames.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

LONGEST: Final = 100
"""Characters of a line that may be a fence. It bounds what is held back, and what is looked at twice."""

_MAY_OPEN: Final = re.compile(r" {0,3}(?:`{0,2}|`{3,}[^`]*)\Z")
_OPENS: Final = re.compile(r"( {0,3})(`{3,})([^`]*)\Z")
MAY_CLOSE: Final = re.compile(r" {0,3}`*[ \t\r]*\Z")
"""The start of a line that may end a block."""
_CLOSES: Final = re.compile(r" {0,3}(`{3,})[ \t\r]*\Z")


def closing_ticks(line: str) -> int:
    """Return how many backticks a line has that may end a block; 0 where it is no such line."""
    found = _CLOSES.match(line)
    return len(found[1]) if found else 0


class Piece(NamedTuple):
    """Some characters of one kind.

    Attributes:
        text: The characters; empty only in the one piece of a block without code.
        language: None for text; for code the first word of the info string, which may be empty.
        opens: Whether it is the first piece of its block.
    """

    text: str
    language: str | None = None
    opens: bool = False


class Fences:
    r"""Tells code from text in one message, however it is cut.

    The pieces of text joined, with the code put back between fences, are the message. A fence's own line end goes with
    it; the indentation of an opening fence is taken off the lines of its code, as Markdown does. All but what may yet
    become a fence goes on at once.

    Example:
        >>> fences = Fences()
        >>> fences.feed("See:\n``")
        [Piece(text='See:\n', language=None, opens=False)]
        >>> fences.feed("`py\nprint(1)\n```\nSo.")
        [Piece(text='print(1)\n', language='py', opens=True), Piece(text='So.', language=None, opens=False)]
    """

    __slots__ = ("_held", "_indent", "_language", "_opens", "_ticks", "_undecided")

    def __init__(self) -> None:
        # The start of a line that may be a fence; whether the next character belongs to such a start.
        self._held = ""
        self._undecided = True
        # The open block: backticks of its fence (0: none is open), indentation, language, whether it had no piece yet.
        self._ticks = 0
        self._indent = 0
        self._language: str | None = None
        self._opens = False

    def feed(self, delta: str) -> list[Piece]:
        """Take the next characters; give those that are decided."""
        if not self._undecided and "\n" not in delta:  # most: a word in the middle of a line
            return [Piece(delta, self._language)] if delta else []
        out: _Drafts = []
        text = self._held + delta
        self._held = ""
        pos = 0
        while pos < len(text):
            if not self._undecided:
                pos = self._rest_of_line(text, pos, out)
                continue
            end = text.find("\n", pos, pos + LONGEST + 1)
            line = text[pos : end if end >= 0 else pos + LONGEST + 1]
            if end < 0 and len(line) <= LONGEST and (MAY_CLOSE if self._ticks else _MAY_OPEN).match(line):
                self._held = line
                break
            if end >= 0 and self._fence(line, out):
                pos = end + 1
                continue
            self._undecided = False
            if self._ticks:
                pos += min(self._indent, len(line) - len(line.lstrip(" ")))
        return _pieces(out)

    def flush(self) -> list[Piece]:
        """Take the end of the message, or of what has come of it: more may follow, in the same block."""
        out: _Drafts = []
        line, self._held = self._held, ""
        if self._ticks and self._fence(line, out):
            return _pieces(out)
        if self._ticks:
            line = line[min(self._indent, len(line) - len(line.lstrip(" "))) :]
        if line:
            self._undecided = False
            self._give(line, out)
        return _pieces(out)

    def _rest_of_line(self, text: str, pos: int, out: _Drafts) -> int:
        end = text.find("\n", pos) + 1
        self._undecided = end > 0
        end = end or len(text)
        self._give(text[pos:end], out)
        return end

    def _fence(self, line: str, out: _Drafts) -> bool:
        """Take a whole line if it is a fence here."""
        if self._ticks:
            if closing_ticks(line) < self._ticks:
                return False
            if self._opens:  # a block without code is a block
                self._give("", out)
            self._ticks, self._language = 0, None
            return True
        found = _OPENS.match(line)
        if found is None:
            return False
        words = found[3].split(maxsplit=1)
        self._indent, self._ticks, self._language = len(found[1]), len(found[2]), words[0] if words else ""
        self._opens = True
        return True

    def _give(self, text: str, out: _Drafts) -> None:
        if out and out[-1][1] == self._language and not self._opens:
            out[-1][0].append(text)
        else:
            out.append(([text], self._language, self._opens))
        self._opens = False


_Drafts: TypeAlias = list[tuple[list[str], str | None, bool]]
"""Pieces whose text is not joined yet: a megabyte of short lines stays linear."""


def _pieces(drafts: _Drafts) -> list[Piece]:
    return [Piece("".join(text), language, opens) for text, language, opens in drafts]
