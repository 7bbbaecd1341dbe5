"""Reading the text of one message: what the scanner finds, judged, and what `on_invalid` makes of the rest.

Knows records, prose, verdicts and the four ways to treat what is no message. Does not know events or carriers: it
gives pieces, which the translator makes events of.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agui_pipeline.translators._line_scanner import LINE_WHITE, LineScanner
from agui_pipeline.translators._repair import Repair
from agui_pipeline.translators._scan_items import BrokenRecord, OnBroken, Reason, ScanItem, Scanner, decode
from agui_pipeline.translators._scanner import JSONScanner
from agui_pipeline.translators.a2ui._envelope import Envelope
from agui_pipeline.translators.a2ui._lines import Line, LineJoiner
from agui_pipeline.translators.a2ui._repairs import Repairs


@dataclass(frozen=True, slots=True)
class Refusal:
    """The verdict on a record that is no message.

    Attributes:
        reason: What is wrong with it, without repeating any of it.
        over_limit: Whether a client must not get it as a value.
    """

    reason: str
    over_limit: bool = False


@dataclass(frozen=True, slots=True)
class Loose:
    """What is no message and travels all the same: a JSON value, or a line of text."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """What is no message, where that ends the run."""

    reason: str


Piece: TypeAlias = Envelope | Loose | Failure | str
"""A message; what travels though it is none; the end of the run; prose that goes on as text."""

Judge: TypeAlias = Callable[[Any, str, str | None], Envelope | Refusal]
"""Called once with each record: its value, its text, and the id of the message it stands in."""

BrokenSink: TypeAlias = Callable[[BrokenRecord, str | None], None]


class Reader(ABC):
    """Reads the text of one message, in pieces of any size. What it gives depends on the text alone.

    Args:
        scanner: Finds records; one for each message.
        judge: Decides on them.
        message_id: The message.
    """

    def __init__(self, scanner: Scanner, judge: Judge, message_id: str | None) -> None:
        self.scan: Final = scanner.feed
        """Takes the next piece of text; gives what `read` takes, nothing for most pieces."""
        self._flush = scanner.flush
        self._judge = judge
        self._message_id = message_id

    @abstractmethod
    def read(self, items: list[ScanItem]) -> list[Piece]:
        """Take what `scan` gave; give the pieces that go on, in order."""

    def flush(self) -> list[Piece]:
        """End the message; give what was held."""
        return self.read(self._flush())


class _TextReader(Reader):
    """`on_invalid="text"`: what is no message is text."""

    def read(self, items: list[ScanItem]) -> list[Piece]:
        pieces: list[Piece] = []
        for item in items:
            if item.kind == "record":
                verdict = self._judge(item.value, item.text.strip(LINE_WHITE), self._message_id)
                # Line ends and all: it goes on as it was.
                _add(pieces, verdict if isinstance(verdict, Envelope) else item.text)
            elif item.kind == "prose":
                _add(pieces, item.text)
        return pieces


class _ObjectTextReader(Reader):
    """The same where the scanner wants the verdict, to know whether the rest of the line is prose, too."""

    def __init__(
        self, make_scanner: Callable[[Callable[[Any, str], bool]], Scanner], judge: Judge, message_id: str | None
    ) -> None:
        self._accepted: deque[Envelope] = deque()
        accepted = self._accepted

        def accept(value: Any, text: str) -> bool:  # no method: a run that is cut must be gone at once
            verdict = judge(value, text, message_id)
            if isinstance(verdict, Envelope):
                accepted.append(verdict)
                return True
            return False

        super().__init__(make_scanner(accept), judge, message_id)

    def read(self, items: list[ScanItem]) -> list[Piece]:
        pieces: list[Piece] = []
        for item in items:
            if item.kind == "record":
                pieces.append(self._accepted.popleft())
            elif item.kind == "prose":
                _add(pieces, item.text)
        return pieces


def _add(pieces: list[Piece], piece: Envelope | str) -> None:
    """Append a piece; text joins text before it."""
    if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
        pieces[-1] += piece
    else:
        pieces.append(piece)


class _RawReader(Reader):
    """`on_invalid="raw"`: what is no message travels as the JSON value that it is, or as a line of text."""

    def __init__(self, scanner: Scanner, judge: Judge, message_id: str | None, max_chars: int) -> None:
        super().__init__(scanner, judge, message_id)
        self._lines = LineJoiner(max_chars)
        # The line scanner has tried to read each line already.
        self._values = isinstance(scanner, JSONScanner)

    def read(self, items: list[ScanItem]) -> list[Piece]:
        pieces: list[Piece] = []
        for item in items:
            if item.kind == "prose":
                self._add_lines(self._lines.feed(item.text), pieces)
            elif item.kind == "record":
                self._add_lines(self._lines.flush(), pieces)
                pieces.append(self._record(item.value, item.text.strip(LINE_WHITE)))
        return pieces

    def flush(self) -> list[Piece]:
        pieces = super().flush()
        self._add_lines(self._lines.flush(), pieces)
        return pieces

    def _record(self, value: Any, text: str) -> Piece:
        verdict = self._judge(value, text, self._message_id)
        if isinstance(verdict, Envelope):
            return verdict
        return Loose(text if verdict.over_limit else value)

    def _add_lines(self, lines: list[Line], pieces: list[Piece]) -> None:
        for line in lines:
            if self._values and line.whole and line.text[0] in _VALUE_BEGINS:
                try:
                    value = decode(line.text)
                except ValueError:
                    pass
                else:
                    pieces.append(self._record(value, line.text))
                    continue
            pieces.append(Loose(line.text))


_VALUE_BEGINS: Final = frozenset('["-0123456789tfn')
"""How a JSON value other than an object begins. An object that is prose was given up as a record."""


class _DropReader(Reader):
    """`on_invalid="drop"`."""

    def __init__(
        self,
        scanner: Scanner,
        judge: Judge,
        message_id: str | None,
        on_dropped: Callable[[int], None],
    ) -> None:
        super().__init__(scanner, judge, message_id)
        self._on_dropped = on_dropped

    def read(self, items: list[ScanItem]) -> list[Piece]:
        pieces: list[Piece] = []
        for item in items:
            if item.kind == "record":
                verdict = self._judge(item.value, item.text.strip(LINE_WHITE), self._message_id)
                if isinstance(verdict, Envelope):
                    pieces.append(verdict)
            elif item.kind == "prose":
                self._on_dropped(len(item.text))
        return pieces


class _ErrorReader(Reader):
    """`on_invalid="error"`."""

    def read(self, items: list[ScanItem]) -> list[Piece]:
        pieces: list[Piece] = []
        for item in items:
            if item.kind == "record":
                verdict = self._judge(item.value, item.text.strip(LINE_WHITE), self._message_id)
                pieces.append(verdict if isinstance(verdict, Envelope) else Failure(verdict.reason))
            elif item.kind == "prose" and not item.text.isspace():
                pieces.append(Failure("text that is no A2UI message"))
        return pieces


_FIRST_SURFACE: Final = re.compile(r'"surfaceId"\s*:\s*"((?:[^"\\]|\\.){0,200})"')


def surface_in(text: str) -> str | None:
    """Return the surface that the beginning of a broken record names, as it is spelt there."""
    found = _FIRST_SURFACE.search(text)
    return found[1] if found else None


class ReaderFactory:
    """Makes the readers of one run, all alike.

    Args:
        framing: ``"objects"`` or ``"lines"``.
        on_invalid: ``"raw"``, ``"text"``, ``"drop"`` or ``"error"``.
        max_chars: The longest record, in characters; also how long a line of text may be in one piece.
        max_depth: The deepest record, where the scanner finds that out (``"objects"``).
        judge: The verdict on each record.
        on_broken: Gets what began as a record and is none, with the id of its message.
        on_dropped: Gets the number of characters of each piece of dropped prose.
        repairs: Repairs what began as a record and is none.
    """

    def __init__(
        self,
        *,
        framing: str,
        on_invalid: str,
        max_chars: int,
        max_depth: int,
        judge: Judge,
        on_broken: BrokenSink,
        on_dropped: Callable[[int], None],
        repairs: Repairs,
    ) -> None:
        self._objects = framing == "objects"
        self._on_invalid = on_invalid
        self._max_chars = max_chars
        self._max_depth = max_depth
        self._judge = judge
        self._on_broken = on_broken
        self._on_dropped = on_dropped
        self._repairs = repairs

    def __call__(self, message_id: str | None) -> Reader:
        """Return a reader for one message."""

        def on_broken(broken: BrokenRecord) -> None:
            self._on_broken(broken, message_id)

        repair: Repair | None = None
        if self._repairs.enabled:

            def repair(text: str, reason: Reason) -> dict[str, Any] | None:
                return self._repairs(text, reason, message_id)

        if self._on_invalid == "text" and self._objects:
            return _ObjectTextReader(lambda accept: self._scanner(on_broken, repair, accept), self._judge, message_id)
        scanner = self._scanner(on_broken, repair)
        if self._on_invalid == "text":
            return _TextReader(scanner, self._judge, message_id)
        if self._on_invalid == "raw":
            return _RawReader(scanner, self._judge, message_id, self._max_chars)
        if self._on_invalid == "error":
            return _ErrorReader(scanner, self._judge, message_id)
        return _DropReader(scanner, self._judge, message_id, self._on_dropped)

    def _scanner(
        self, on_broken: OnBroken, repair: Repair | None, accept: Callable[[Any, str], bool] | None = None
    ) -> Scanner:
        if self._objects:
            return JSONScanner(self._max_chars, self._max_depth, accept, on_broken=on_broken, repair=repair)
        return LineScanner(self._max_chars, on_broken=on_broken, repair=repair)
