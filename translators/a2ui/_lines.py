"""Prose in lines, for ``on_invalid="raw"``: joined, trimmed, without the blank ones. Does not know what lines mean."""

from __future__ import annotations

from typing import NamedTuple

from agui_pipeline.translators._line_scanner import LINE_WHITE


class Line(NamedTuple):
    """A line, or a part of one that is too long to hold (`whole` is False)."""

    text: str
    whole: bool


class LineJoiner:
    """Joins pieces of text to lines, trimmed, without the blank ones.

    Args:
        max_chars: A longer line comes in parts of this many characters, so that no more of it is held.
    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._parts: list[str] = []
        self._size = 0
        self._whole = True

    def feed(self, text: str) -> list[Line]:
        """Take the next piece; give the lines that it ended."""
        lines: list[Line] = []
        begin = 0
        while end := text.find("\n", begin) + 1:
            self._add(text[begin : end - 1], lines)
            lines += self.flush()
            begin = end
        self._add(text[begin:], lines)
        return lines

    def _add(self, text: str, lines: list[Line]) -> None:
        if not self._size:
            text = text.lstrip(LINE_WHITE)
        if not text:
            return
        self._parts.append(text)
        self._size += len(text)
        if self._size > self._max_chars:
            held = "".join(self._parts)
            # At least one character stays: where a part ends must not depend on how the text came.
            end = (self._size - 1) // self._max_chars * self._max_chars
            lines += [Line(held[at : at + self._max_chars], whole=False) for at in range(0, end, self._max_chars)]
            self._parts = [held[end:]]
            self._size -= end
            self._whole = False

    def flush(self) -> list[Line]:
        """End the line; give it, unless it is blank."""
        line = Line("".join(self._parts).rstrip(LINE_WHITE), self._whole)
        self._parts.clear()
        self._size = 0
        self._whole = True
        return [line] if line.text else []
