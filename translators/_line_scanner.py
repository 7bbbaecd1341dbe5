"""Framing "lines": one record a line, as tRPC-Agent-Go reads A2UI.

Knows lines, and whether one is JSON. Does not know objects that span lines (`_scanner.py`), nor what a record means.
"""

from __future__ import annotations

from contextlib import suppress
from io import StringIO
from typing import Final

from agui_pipeline.translators._repair import Repair
from agui_pipeline.translators._scan_items import OnBroken, Reason, ScanItem, decode, merged, positive, report

# What Go's strings.TrimSpace trims, as the translator does whose framing this is. str.strip() trims four more.
LINE_WHITE: Final = "".join(c for c in map(chr, range(0x3001)) if c.isspace() and not "\x1c" <= c <= "\x1f")
# To see without decoding that most lines of prose, and of objects over many lines, are no JSON: its errors are slow.
_JSON_BEGINS: Final = frozenset('{["-0123456789tfn')
_CLOSERS: Final = {"{": "}", "[": "]", '"': '"'}


class LineScanner:
    r"""Framing "lines": one record a line, whatever JSON value it is; a line that is no JSON is prose.

    Lines end at ``\n`` only: U+2028 and other line separators may stand inside JSON strings. White space around a
    record belongs to its text and is not decoded; a blank line is cut.

    Not more than `max_chars` are held. A longer line is prose, and comes in pieces from there on.

    Args:
        max_chars: The longest line, in characters, without its ``\n``.
        on_broken: Called once with each line that is too long, and each that begins as an object and is none, before
            its text comes as prose.
        repair: Makes a record of a line that begins as an object and is none, if it can.

    Example:
        >>> scanner = LineScanner(max_chars=1000)
        >>> [(item.kind, item.value) for item in scanner.feed('[1]\n\nhello\n{"a"')]
        [('record', [1]), ('cut', None), ('prose', None)]
        >>> scanner.feed(':1}')
        []
        >>> scanner.flush()
        [ScanItem(kind='record', text='{"a":1}', value={'a': 1})]
    """

    def __init__(self, max_chars: int, *, on_broken: OnBroken | None = None, repair: Repair | None = None) -> None:
        self._max_chars = positive("max_chars", max_chars)
        self._on_broken = on_broken
        self._repair = repair
        self._pending = StringIO()
        self._size = 0  # of the line so far, held or not

    def feed(self, text: str) -> list[ScanItem]:
        """Take the next piece; give the lines it ended, in order."""
        size = self._size + len(text)
        if "\n" not in text and size <= self._max_chars:
            self._size = size
            self._pending.write(text)
            return []
        items: list[ScanItem] = []
        pos = 0
        while end := text.find("\n", pos) + 1:
            self._read(text[pos:end], items)
            pos = end
        if pos < len(text):
            self._read(text[pos:], items)
        return merged(items)

    def flush(self) -> list[ScanItem]:
        """End the message; give its last line, if that had no line end. The scanner is as new afterwards."""
        text = self._pending.getvalue()
        self._begin_line()
        return [self._whole(text, "unfinished")] if text else []

    def _begin_line(self) -> None:
        if self._size:
            self._size = 0
            self._pending = StringIO()

    def _read(self, text: str, items: list[ScanItem]) -> None:
        """Read a line, or a part of one, up to and including its line end."""
        ended = text[-1] == "\n"
        before = self._size
        self._size += len(text)
        if self._size - ended > self._max_chars:
            if before <= self._max_chars:
                text = self._pending.getvalue() + text
                self._pending = StringIO()
                report(self._on_broken, "size", self._max_chars + 1, text)
            items.append(ScanItem("prose", text))
        elif ended:
            items.append(self._whole(self._pending.getvalue() + text, "syntax"))
        else:
            self._pending.write(text)
        if ended:
            self._begin_line()

    def _whole(self, text: str, reason: Reason) -> ScanItem:
        """Decide on a whole line; `reason` is what is wrong with it if it begins as an object and is none."""
        line = text.strip(LINE_WHITE)
        if not line:
            return ScanItem("cut", text)
        first = line[0]
        if first in _JSON_BEGINS and line[-1] == _CLOSERS.get(first, line[-1]):
            with suppress(ValueError):
                return ScanItem("record", text, decode(line))
        if first == "{":
            value = None if self._repair is None else self._repair(line, reason)
            if value is not None:
                return ScanItem("record", text, value)
            report(self._on_broken, reason, len(line), line)
        return ScanItem("prose", text)
