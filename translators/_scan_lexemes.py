"""What may stand around records and is no JSON: ``<a2ui-json>`` tags and the lines of Markdown fences.

Knows how they are spelt, and when a text that ends in the middle of one must wait for more. Does not know what they
mean where they stand (`_scanner.py`), and keeps nothing.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

_TAGS: Final = ("<a2ui-json>", "</a2ui-json>")
_LONGEST_TAG: Final = 12
TAG: Final = re.compile(r"</?a2ui-json>")
"""A tag, exactly."""

_TICKS: Final = re.compile(r"`*")
_LINE_END: Final = re.compile(r"[\n`]|</?a2ui-json>")
_MIN_TICKS: Final = 3
_MAX_TICKS: Final = 60  # nobody writes more; what is undecided must end somewhere
_MAX_INFO: Final = 60  # characters between the backticks and the line's end


class FenceLine(NamedTuple):
    """The line of a fence: where it ends, how many backticks it has, and whether it has nothing else."""

    end: int
    ticks: int
    bare: bool


def cut_tag(text: str, pos: int) -> int:
    """Return where, at `pos` or behind it, a tag begins that the end of the text has cut; else where the text ends."""
    begin = text.rfind("<", max(pos, len(text) - _LONGEST_TAG))
    if begin >= 0 and any(tag.startswith(text[begin:]) for tag in _TAGS):
        return begin
    return len(text)


def fence_line(text: str, pos: int, *, final: bool) -> FenceLine | Literal["none", "wait"]:
    """Read the line of a fence: three or more backticks, then at most 60 characters without another one.

    The line ends behind its line end, or before a tag, or, if the text is `final`, with it.

    Returns:
        The line; ``"none"`` if it is none; ``"wait"`` if that depends on what comes after the text. No more than 132
        characters have to wait.
    """
    info = _TICKS.match(text, pos).end()  # type: ignore[union-attr] # it matches everywhere
    ticks = info - pos
    if ticks > _MAX_TICKS or (ticks < _MIN_TICKS and (final or info < len(text))):
        return "none"
    # Far enough for a tag at the last place where one may end the line.
    limit = info + _MAX_INFO + _LONGEST_TAG
    found = _LINE_END.search(text, info, limit)
    if found is None and len(text) < limit and not final:
        return "wait"
    info_end = len(text) if found is None else found.start()
    if info_end - info > _MAX_INFO or (found is not None and found[0] == "`"):
        return "none"
    end = found.end() if found is not None and found[0] == "\n" else info_end
    return FenceLine(end, ticks, bare=not text[info:info_end].strip(" \t\r"))
