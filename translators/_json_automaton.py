"""A pushdown automaton for one JSON object that arrives in pieces: RFC 8259, a character at a time, told as a table.

Knows, after any piece, whether the text so far can still become a JSON object, whether it is one, and at which
character it stopped being possible. Does not know what the object means, how long it may be, or what stands around
it (`_scanner.py`), and keeps no text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, cast

Outcome: TypeAlias = Literal["done", "syntax", "depth"]
"""How reading ended: at the closing brace, at a character that JSON cannot have there, at a bracket too many."""

_Row: TypeAlias = dict[str, int]
_Table: TypeAlias = tuple[_Row, ...]

# States in which a run of characters changes nothing: a regex jumps over it, and only then the table is asked.
(
    _KEY,  # in a member's name
    _STRING,  # in a string value
    _INTEGER,  # after a digit other than a leading zero
    _FRACTION,  # after a digit behind the point
    _EXPONENT,  # after a digit of the exponent
    # States that every character leaves, or that white space alone leaves as they are.
    _FIRST_KEY,  # after `{`
    _NEXT_KEY,  # after `,` in an object
    _COLON,  # after a member's name
    _VALUE,  # after `:`, after `,` in an array
    _FIRST_VALUE,  # after `[`
    _AFTER,  # after a value
    _MINUS,
    _ZERO,  # after a leading zero
    _POINT,
    _E,
    _SIGN,
) = range(16)
_RUN_STATES: Final = 5

_KEY_ESCAPE: Final = 16  # after a backslash, and then the four hexadecimal digits of \u
_ESCAPE: Final = 21
_LITERALS: Final = 26  # the inner letters of true, false and null

# What is no state: steps that do something. All are larger than any state.
_ACTIONS: Final = 100
_SPACE, _OPEN_OBJECT, _OPEN_ARRAY, _CLOSE, _IMPOSSIBLE = range(_ACTIONS, _ACTIONS + 5)

_Matcher: TypeAlias = Callable[[str, int, int], re.Match[str]]


def _jump(pattern: str) -> _Matcher:
    """Compile a pattern that matches everywhere, if only nothing."""
    return cast("_Matcher", re.compile(pattern).match)


# Whole escapes are part of the run; one that is cut or wrong is left to the table. Possessive: never tried twice.
_TEXT: Final = _jump(r'[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\x00-\x1f]*+)*+')
_DIGITS: Final = _jump(r"[0-9]*+")
_JUMPS: Final = (_TEXT, _TEXT, _DIGITS, _DIGITS, _DIGITS)
_WHITE: Final = _jump(r"[ \t\r\n]*+")


def _escapes(first: int, back: int) -> list[_Row]:
    r"""Rows for a cut escape sequence: after the backslash, then one for each digit of a \u."""
    rows: list[_Row] = [dict.fromkeys('"\\/bfnrt', back) | {"u": first + 1}]
    rows += [dict.fromkeys("0123456789abcdefABCDEF", step) for step in (first + 2, first + 3, first + 4, back)]
    return rows


def _table(closer: str, after_comma: int) -> _Table:
    """Build the table for what stands directly in one kind of container: current state, character, next step."""
    space = dict.fromkeys(" \t\r\n", _SPACE)
    after = {",": after_comma, closer: _CLOSE}
    # Nothing but white space tells the end of a number from what follows it, so a number's row has that row in it.
    number = after | dict.fromkeys(" \t\r\n", _AFTER)
    exponent = {"e": _E, "E": _E}
    digits = "0123456789"
    value = {
        '"': _STRING,
        "{": _OPEN_OBJECT,
        "[": _OPEN_ARRAY,
        "-": _MINUS,
        "0": _ZERO,
        **dict.fromkeys("123456789", _INTEGER),
    }
    literals: list[_Row] = []
    for word in ("true", "false", "null"):
        value[word[0]] = _LITERALS + len(literals)
        literals += [{letter: _LITERALS + len(literals) + 1 + i} for i, letter in enumerate(word[1:])]
        literals[-1] = {word[-1]: _AFTER}

    rows: dict[int, _Row] = {
        _KEY: {'"': _COLON, "\\": _KEY_ESCAPE},
        _STRING: {'"': _AFTER, "\\": _ESCAPE},
        _INTEGER: number | exponent | {".": _POINT},
        _FRACTION: number | exponent,
        _EXPONENT: number,
        _FIRST_KEY: space | {'"': _KEY, "}": _CLOSE},
        _NEXT_KEY: space | {'"': _KEY},
        _COLON: space | {":": _VALUE},
        _VALUE: space | value,
        _FIRST_VALUE: space | value | {"]": _CLOSE},
        _AFTER: space | after,
        _MINUS: {"0": _ZERO, **dict.fromkeys("123456789", _INTEGER)},
        _ZERO: number | exponent | {".": _POINT},
        _POINT: dict.fromkeys(digits, _FRACTION),
        _E: {"+": _SIGN, "-": _SIGN, **dict.fromkeys(digits, _EXPONENT)},
        _SIGN: dict.fromkeys(digits, _EXPONENT),
    }
    rows |= dict(enumerate(_escapes(_KEY_ESCAPE, _KEY), _KEY_ESCAPE))
    rows |= dict(enumerate(_escapes(_ESCAPE, _STRING), _ESCAPE))
    rows |= dict(enumerate(literals, _LITERALS))
    return tuple(rows[state] for state in range(len(rows)))


_OBJECT: Final = _table("}", _NEXT_KEY)
_ARRAY: Final = _table("]", _VALUE)


class JSONObjectReader:
    """Reads one JSON object, from behind its `{`.

    The result depends on the characters alone, never on how they were cut. The cost is linear in them.

    Args:
        max_depth: How many containers may be open at once, the object itself included.
    """

    __slots__ = ("_max_depth", "_open", "_state", "_table", "size", "stopped_at")

    size: int
    """Characters read so far, the opening brace included."""

    stopped_at: int
    """Where the last `read` ended: the index, in its text, behind the closing brace or of the character refused."""

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._state = _FIRST_KEY
        self._table = _OBJECT
        # Where each open container began, counted from the object's own brace; that of an array complemented (~).
        self._open = [0]
        self.size = 1
        self.stopped_at = 0

    def read(self, text: str, pos: int, end: int) -> Outcome | None:
        """Read ``text[pos:end]``, or as much of it as belongs to the object.

        Returns:
            None while the object is open and everything was read. Else how it ended; `stopped_at` says where, and
            the reader must not read on.
        """
        state, table = self._state, self._table
        base = self.size - pos
        outcome: Outcome | None = None
        while pos < end:
            if state < _RUN_STATES:
                pos = _JUMPS[state](text, pos, end).end()
                if pos == end:
                    break
            step = table[state].get(text[pos], _IMPOSSIBLE)
            if step < _ACTIONS:
                state = step
            elif step == _SPACE:
                pos = _WHITE(text, pos, end).end()
                continue
            elif step == _IMPOSSIBLE:
                outcome = "syntax"
                break
            elif step == _CLOSE:
                self._open.pop()
                if not self._open:
                    pos += 1
                    outcome = "done"
                    break
                state, table = _AFTER, _OBJECT if self._open[-1] >= 0 else _ARRAY
            elif len(self._open) >= self._max_depth:
                outcome = "depth"
                break
            elif step == _OPEN_OBJECT:
                self._open.append(pos + base)
                state, table = _FIRST_KEY, _OBJECT
            else:
                self._open.append(~(pos + base))
                state, table = _FIRST_VALUE, _ARRAY
            pos += 1
        self._state, self._table = state, table
        self.size = pos + base
        self.stopped_at = pos
        return outcome

    def inner(self, offset: int) -> JSONObjectReader | None:
        """Return a reader of the open object that began at `offset`, as if it had read from there to here.

        What an object inside may hold does not depend on what is around it, so whoever gives up the outer one need
        not read the inner one again. None where no object began there that is still open.

        Args:
            offset: Characters from this object's opening brace to the other's; not 0.
        """
        if offset not in self._open:
            return None
        reader = JSONObjectReader(self._max_depth)
        begun = self._open[self._open.index(offset) :]
        reader._open = [at - offset if at >= 0 else at + offset for at in begun]
        reader._state, reader._table = self._state, self._table
        reader.size = self.size - offset
        return reader
