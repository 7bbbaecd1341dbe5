"""Blocks of code put back into text, between fences: the way back of `_fences.py`.

Knows where lines begin and which lines would end a block. Does not know messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from agui_pipeline.translators.superagent._fences import LONGEST, MAY_CLOSE, closing_ticks

_SHORTEST: Final = 3
_LINE_OF_TICKS: Final = re.compile(r"^ {0,3}(`{3,})[ \t\r]*$", re.MULTILINE)
_INFO: Final = re.compile(r"[^`\s]{1,60}\Z")


class Fencing:
    r"""Writes the text and the code of one message as Markdown.

    A block stands between fences that are longer than any line of backticks in its first piece. Where a later line of
    its code would still end it, the block does end, and another one with a longer fence goes on.

    Args:
        note: Is told when that happens.

    Example:
        >>> fencing = Fencing(print)
        >>> fencing.text("See:") + fencing.code("x", "py", opens=True) + fencing.text("So.")
        'See:\n```py\nx\n```\nSo.'
    """

    __slots__ = ("_held", "_language", "_line_start", "_note", "_ticks")

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note
        self._line_start = True
        self._language: str | None = None  # of the open block
        self._ticks = 0
        self._held = ""  # the start of a line of code that would end the block

    def text(self, delta: str) -> str:
        """Take text; return what stands for it."""
        if not delta:
            return ""
        closed = self._close() + "\n" if self._language is not None else ""
        self._line_start = delta.endswith("\n")
        return closed + delta

    def code(self, delta: str, language: str, *, opens: bool) -> str:
        """Take code; return what stands for it. A block begins where `opens` says so, or the language is another."""
        begun = ""
        if opens or language != self._language:
            begun = self._close() + "\n" if self._language is not None else "" if self._line_start else "\n"
            self._language = language
            longest = max((len(found[1]) for found in _LINE_OF_TICKS.finditer(delta)), default=0)
            begun += self._open(max(_SHORTEST, longest + 1))
        return begun + self._code(delta)

    def flush(self) -> str:
        """Take the end of the message; return what closes an open block."""
        return self._close() if self._language is not None else ""

    def _open(self, ticks: int) -> str:
        self._ticks = ticks
        self._line_start = True
        language = self._language or ""
        return f"{'`' * ticks}{language if _INFO.match(language) else ''}\n"

    def _code(self, delta: str) -> str:
        out: list[str] = []
        text, self._held = self._held + delta, ""
        pos = 0
        while pos < len(text):
            end = text.find("\n", pos) + 1
            line = text[pos : end or len(text)]
            if self._line_start and not end and len(line) <= LONGEST and MAY_CLOSE.match(line):
                self._held = line
                break
            out.append(self._line(line))
            pos += len(line)
        return "".join(out)

    def _line(self, line: str) -> str:
        """Return a line of code, or the rest of one, behind what keeps it from ending its block."""
        ticks = closing_ticks(line.removesuffix("\n")) if self._line_start and len(line) <= LONGEST else 0
        again = ""
        if ticks >= self._ticks:
            self._note()
            again = f"{'`' * self._ticks}\n{self._open(ticks + 1)}"
        self._line_start = line.endswith("\n")
        return again + line

    def _close(self) -> str:
        line, self._held = self._held, ""
        rest = self._line(line) if line else ""
        end = f"{rest}{'' if self._line_start else chr(10)}{'`' * self._ticks}"
        self._language, self._line_start = None, False
        return end
