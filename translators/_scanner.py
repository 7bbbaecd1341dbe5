"""Framing "objects": JSON records in the text of a message, however a model wrote them, while it arrives.

Knows how an answer is cut into records, prose and what is neither (white space, Markdown fences, ``<a2ui-json>``
tags, the punctuation of arrays). Does not know what a record means, which message the text belongs to, or what
becomes of prose: the caller decides, and may refuse records. JSON itself is `_json_automaton.py`'s.

The scanner is in one of four places: in a *slot*, where a record may start and what came before it is still
undecided; in the *prose* of a line; in a *record*; in a *broken* record, where they are repaired. Beside records only a
slot holds text back: white space, tags in it, the opener of a fence, a `[`. The first thing that is none of these
decides over all of it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from io import StringIO
from typing import Any, Final

from agui_pipeline.translators._broken_object import BrokenObjectReader
from agui_pipeline.translators._json_automaton import JSONObjectReader, Outcome
from agui_pipeline.translators._line_scanner import LineScanner
from agui_pipeline.translators._repair import MAX_REPAIR_CHARS, Repair
from agui_pipeline.translators._scan_items import (
    PREFIX_CHARS,
    BrokenRecord,
    Kind,
    OnBroken,
    Reason,
    ScanItem,
    Scanner,
    decode,
    merged,
    positive,
    report,
)
from agui_pipeline.translators._scan_lexemes import TAG, cut_tag, fence_line

__all__ = ["BrokenRecord", "JSONScanner", "LineScanner", "ScanItem", "Scanner"]

_SLOT, _PROSE, _RECORD, _BROKEN = range(4)

_WHITE: Final = re.compile(r"[ \t\r\n]+")
_PROSE_END: Final = re.compile(rf"\n|{TAG.pattern}")
_MAX_FENCES: Final = 16


class JSONScanner:
    r"""Framing "objects": JSON Lines, and what models really write in their place.

    A record is a JSON object at the start of a line (or behind another one, a comma, a ``[``, a tag), on one line or
    over many. Around records, the brackets and commas of an array, the Markdown fence they stand in, ``<a2ui-json>``
    tags and white space are cut. All else is prose, and goes on at once except where it may still turn out to be one
    of these. What began as a record and stops being JSON is prose to the end of the line it began on; the lines after
    that are read again.

    No more than `max_chars` of a record and `max_chars` of undecided text are held, beside the 132 that the line of a
    fence may need. Undecided text that grows longer, such as endless white space, is prose. Of fences in fences the
    outermost are forgotten beyond sixteen: their closers are taken for openers.

    Args:
        max_chars: The longest record, in characters.
        max_depth: How deep its containers may nest, the record itself included.
        accept: Called as ``accept(value, text)`` with each whole object. False refuses it: it is prose, and so is the
            rest of its line.
        on_broken: Called once with each candidate that was given up, before its text comes as prose.
        repair: Makes a record of one that is no JSON or is unfinished, if it can. Such a candidate ends where
            `BrokenObjectReader` says, is held until then (up to `MAX_REPAIR_CHARS`), and is prose as a whole if there
            is no repair.

    Raises:
        ConfigurationError: A limit is less than 1.

    Example:
        >>> scanner = JSONScanner(max_chars=1000, max_depth=10)
        >>> scanner.feed('Here:\n{"a":')
        [ScanItem(kind='prose', text='Here:\n', value=None)]
        >>> [(item.kind, item.value) for item in scanner.feed('1}\n{"b":2} Done')]
        [('record', {'a': 1}), ('cut', None), ('record', {'b': 2}), ('prose', None)]
        >>> scanner.flush()
        []
    """

    def __init__(
        self,
        max_chars: int,
        max_depth: int,
        accept: Callable[[Any, str], bool] | None = None,
        *,
        on_broken: OnBroken | None = None,
        repair: Repair | None = None,
    ) -> None:
        self._max_chars = positive("max_chars", max_chars)
        self._max_depth = positive("max_depth", max_depth)
        self._accept = accept
        self._on_broken = on_broken
        self._repair = repair
        self._reset()

    def _reset(self) -> None:
        self._out: list[ScanItem] = []
        self._mode = _SLOT
        # The beginning of a tag or of a fence's line, which the next piece must complete. Short: it is read again.
        self._carry = ""
        # Of the record: what has read it, and its text up to the last piece.
        self._reader = JSONObjectReader(self._max_depth)
        self._pending = StringIO()
        # Of the broken record: what reads on, how much it has read, and what was wrong.
        self._broken = BrokenObjectReader(self._max_depth)
        self._broken_size = 0
        self._break = BrokenRecord("syntax", 0, "")
        # Of the slot: what is undecided, and the white space behind that. Kind None is decided by what comes next.
        self._held: list[tuple[Kind | None, str]] = []
        self._space: list[str] = []
        self._held_size = 0
        self._opener = False  # held is an opener, of the innermost of _fences
        self._bracket = False  # held is a `[`, and behind it only _space
        self._spilling = False  # in white space too long to hold: the rest of it is prose
        self._after = False  # on the line of a record, behind it
        self._comma = False  # behind a record, and its comma may come
        # Around it.
        self._arrays = 0  # open ones whose `[` was cut
        self._fences: deque[tuple[int, bool]] = deque(maxlen=_MAX_FENCES)  # backticks of the opener; whether it was cut

    def feed(self, text: str) -> list[ScanItem]:
        """Take the next piece; give what it decided, in order."""
        if self._mode == _RECORD:
            if self._reader.size + len(text) <= self._max_chars:
                outcome = self._reader.read(text, 0, len(text))
                if outcome is None:
                    self._pending.write(text)
                    return []
                return self._scan(text, outcome)
        elif self._mode == _PROSE and "<" not in text and "\n" not in text and text and not self._carry:
            return [ScanItem("prose", text)]
        return self._scan(text)

    def flush(self) -> list[ScanItem]:
        """End the message; give all that was held. The scanner is as new afterwards.

        An unfinished candidate is broken, held text is prose, lone white space is cut.
        """
        items = self._scan("", final=True)
        self._reset()
        return items

    def _scan(self, text: str, outcome: Outcome | None = None, *, final: bool = False) -> list[ScanItem]:
        """Read a piece. `outcome`: what the reader said of it, if it was asked. `final`: nothing comes after it."""
        self._out = []
        if self._carry:
            text = self._carry + text
            self._carry = ""
        pos = begin = 0
        lost: tuple[JSONObjectReader, int] | None = None
        while pos < len(text) or self._mode in (_RECORD, _BROKEN):
            if self._mode == _PROSE:
                pos = self._read_prose(text, pos, final=final)
            elif self._mode == _SLOT:
                pos = self._read_slot(text, pos, final=final)
                if self._mode == _RECORD:
                    begin = pos
                    # What a broken candidate had read of an object inside it is not read again. (An object in an
                    # object in an object, a line each, would be read once a level.)
                    inner = lost[0].inner(begin - lost[1]) if lost else None
                    self._reader = inner or JSONObjectReader(self._max_depth)
                    pos = begin + self._reader.size
            elif self._mode == _BROKEN:
                extent = self._read_broken(text, pos, final=final)
                if extent is None:
                    self._pending.write(text[pos:])
                    break
                text, pos = extent
            else:
                if outcome is None:
                    limit = pos + self._max_chars - self._reader.size
                    outcome = self._reader.read(text, pos, min(len(text), limit))
                pos = self._reader.stopped_at
                if outcome == "done":
                    self._end_record(self._take_pending() + text[begin:pos])
                elif outcome is None and pos == len(text) and not final:
                    self._pending.write(text[begin:])
                    break
                else:
                    text = self._give_up(outcome, text, begin, pos)
                    if self._mode == _BROKEN:
                        pos = begin
                    else:
                        lost = (self._reader, begin)
                        pos = begin + 1
                outcome = None
        if final:
            self._release("prose" if self._opener or self._bracket else "cut")
        return merged(self._out)

    def _take_pending(self) -> str:
        pending = self._pending.getvalue()
        if pending:
            self._pending = StringIO()
        return pending

    def _end_record(self, text: str) -> None:
        """Decide on a whole object."""
        try:
            value = decode(text)
        except ValueError:
            report(self._on_broken, "undecodable", len(text), text)
        else:
            if self._accept is None or self._accept(value, text):
                self._add_record(text, value)
                return
        self._begin_prose()
        self._emit("prose", text)

    def _add_record(self, text: str, value: Any) -> None:
        self._arrays += self._bracket
        self._release("cut")
        self._out.append(ScanItem("record", text, value))
        self._mode = _SLOT
        self._after = self._comma = True

    def _give_up(self, outcome: Outcome | None, text: str, begin: int, stop: int) -> str:
        """Make prose of a candidate's brace, or a broken record of the candidate.

        Returns:
            The text with all of the candidate in it, to be read again.
        """
        earlier = self._take_pending()
        if earlier:  # a candidate from an earlier piece: begin is 0 and stays so
            text = earlier + text
            stop += len(earlier)
        reason: Reason = outcome if outcome in ("syntax", "depth") else "size" if stop < len(text) else "unfinished"
        size = stop - begin + (reason != "unfinished")
        self._break = BrokenRecord(reason, size, text[begin : begin + min(size, PREFIX_CHARS)])
        if self._repair is not None and reason in ("syntax", "unfinished") and size <= self._repairable:
            self._mode = _BROKEN
            self._broken = BrokenObjectReader(self._max_depth)
            self._broken_size = 0
        else:
            self._begin_broken_prose("{")
        return text

    @property
    def _repairable(self) -> int:
        return min(self._max_chars, MAX_REPAIR_CHARS)

    def _begin_broken_prose(self, text: str) -> None:
        """Give a candidate up, and `text` of it as prose."""
        if self._on_broken is not None:
            self._on_broken(self._break)
        self._begin_prose()
        self._emit("prose", text)

    def _read_broken(self, text: str, pos: int, *, final: bool) -> tuple[str, int] | None:
        """Read a broken record to its end.

        Returns:
            The text with all of the candidate in it, and where to read on; None where the candidate goes on.
        """
        end = min(len(text), pos + self._repairable - self._broken_size)
        extent = self._broken.read(text, pos, end)
        if extent is None and end == len(text) and not final:
            self._broken_size += end - pos
            return None
        stop = end if extent is None else self._broken.stopped_at
        earlier = self._take_pending()
        if earlier:  # pos is 0 and stays so
            text = earlier + text
            stop += len(earlier)
        if not self._broken.plausible:
            self._begin_broken_prose("{")
            return text, pos + 1
        whole = extent in ("closed", "line") or (extent is None and stop == len(text))
        self._end_broken(text[pos:stop], whole=whole)
        return text, stop

    def _end_broken(self, text: str, *, whole: bool) -> None:
        """Make a record of a broken one, or prose. `whole`: it ended within bounds."""
        value = self._repair(text, self._break.reason) if whole and self._repair is not None else None
        if value is not None and (self._accept is None or self._accept(value, text)):
            self._add_record(text, value)
        else:
            self._begin_broken_prose(text)
        if text[-1] == "\n":
            self._begin_line()

    def _read_prose(self, text: str, pos: int, *, final: bool) -> int:
        """Read to the end of the line, or to the next tag."""
        found = _PROSE_END.search(text, pos)
        if found is None:
            end = len(text) if final else cut_tag(text, pos)
            self._emit("prose", text[pos:end])
            self._carry = text[end:]
            return len(text)
        if found[0] == "\n":
            self._emit("prose", text[pos : found.end()])
            self._begin_line()
        else:
            self._emit("prose", text[pos : found.start()])
            self._read_tag(found[0])
        return found.end()

    def _read_slot(self, text: str, pos: int, *, final: bool) -> int:
        """Read white space, or one thing that is none. Of a candidate nothing is read, only the mode is set."""
        white = _WHITE.match(text, pos)
        if white is not None:
            return self._read_white(text, pos, white.end())
        self._spilling = False
        char = text[pos]
        if char == "{":
            self._mode = _RECORD
        elif self._bracket:
            self._drop_bracket()
        elif char == "[":
            self._after = self._comma = False
            self._bracket = True
            self._hold(None, char)
            pos += 1
        elif (char == "," and self._comma) or (char == "]" and self._arrays):
            self._cut_punctuation(char)
            pos += 1
        elif char in "`<":
            pos = self._read_markup(text, pos, final=final)
        else:
            self._begin_prose()
        return pos

    def _read_markup(self, text: str, pos: int, *, final: bool) -> int:
        """Read a tag or the line of a fence; else prose begins here."""
        if text[pos] == "`":
            line = fence_line(text, pos, final=final)
            if line == "wait":
                self._carry = text[pos:]
                return len(text)
            if line != "none" and self._read_fence(text[pos : line.end], line.ticks, bare=line.bare):
                return line.end
        else:
            tag = TAG.match(text, pos)
            if tag is not None:
                self._read_tag(tag[0])
                return tag.end()
            if not final and cut_tag(text, pos) == pos:
                self._carry = text[pos:]
                return len(text)
        self._begin_prose()
        return pos

    def _read_white(self, text: str, pos: int, end: int) -> int:
        """Read white space, up to `end` or to where it is decided."""
        if self._spilling:
            self._emit("prose", text[pos:end])
            self._after = self._after and "\n" not in text[pos:end]
            return end
        room = self._max_chars - self._held_size
        if self._after:
            line_end = text.find("\n", pos, end)
            if 0 <= line_end <= pos + room:
                self._release("cut")
                self._emit("cut", text[pos : line_end + 1])
                self._after = False
                return line_end + 1
        end = min(end, pos + room + 1)
        self._space.append(text[pos:end])
        self._grow(end - pos)
        return end

    def _cut_punctuation(self, char: str) -> None:
        self._release("prose" if self._opener else "cut")
        self._emit("cut", char)
        self._after = True
        if char == ",":
            self._comma = False
        else:
            self._arrays -= 1

    def _read_tag(self, tag: str) -> None:
        """Cut a tag. Its fence is one of records; of white space before the tag what comes behind it decides."""
        if self._opener:
            self._release("cut")
        self._begin_line()
        self._arrays = 0
        if self._held_size:
            self._hold("cut", tag)
        else:
            self._emit("cut", tag)

    def _read_fence(self, line: str, ticks: int, *, bare: bool) -> bool:
        """Close the innermost fence, or open one. False if the line does neither."""
        if bare and self._fences and ticks >= self._fences[-1][0]:
            kind: Kind = "cut" if self._fences[-1][1] else "prose"
            self._release(kind)
            self._emit(kind, line)
            self._fences.pop()
            self._arrays = 0
            self._begin_line()
            return True
        if self._after:
            return False
        if self._opener:  # the first thing in the outer fence is another one: it is prose
            space = "".join(self._space)
            self._space.clear()
            self._release("prose", keep=space)
        self._begin_line()
        self._fences.append((ticks, False))
        self._opener = True
        self._hold(None, line)
        return True

    def _drop_bracket(self) -> None:
        """Make prose of a held `[` that stands before no record, and of its line."""
        space = "".join(self._space)
        line_end = space.find("\n") + 1
        if line_end == 0:
            self._begin_prose()
        else:
            self._space = [space[:line_end]]
            self._release("prose", keep=space[line_end:])
            self._begin_line()

    def _begin_prose(self) -> None:
        self._release("prose")
        self._mode = _PROSE

    def _begin_line(self) -> None:
        self._mode = _SLOT
        self._after = self._comma = False

    def _hold(self, kind: Kind | None, text: str) -> None:
        if self._space:
            self._held.append((None, "".join(self._space)))
            self._space.clear()
        self._held.append((kind, text))
        self._grow(len(text))

    def _grow(self, size: int) -> None:
        """Count what is held. Too much of it is prose: endless white space must not fill the memory."""
        self._held_size += size
        if self._held_size > self._max_chars:
            if self._bracket:
                self._drop_bracket()
            else:
                self._release("prose")
                self._spilling = True

    def _release(self, kind: Kind, *, keep: str = "") -> None:
        """Give what is held, as prose or as cut; `keep` is white space to hold on to."""
        if self._opener:
            self._opener = False
            self._fences[-1] = (self._fences[-1][0], kind == "cut")
        self._bracket = False
        if self._held_size:
            for own, piece in self._held:
                self._emit(own or kind, piece)
            self._emit(kind, "".join(self._space))
            self._held.clear()
            self._space = [keep] if keep else []
            self._held_size = len(keep)

    def _emit(self, kind: Kind, text: str) -> None:
        if text:
            self._out.append(ScanItem(kind, text))
