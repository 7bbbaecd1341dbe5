"""What the calculator computes: two operands and an operation as a form sends them, one line of text back.

Knows that everything arrives as text or a little wrapped, and that a person typed it. Exact decimal arithmetic:
0.1 + 0.2 is 0.3. Does not know about A2UI messages, events or the network, and never raises: what cannot be computed is
said in words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, localcontext
from typing import Any

__all__ = ["calculate"]

# Limits that keep every sum, difference and product exact within PRECISION digits, and the answer readable.
MAX_OPERAND_CHARS = 100
MAX_EXPONENT = 100
PRECISION = 500
QUOTIENT_DIGITS = 15  # significant digits of a quotient that does not come out even

# Plain notation between these powers of ten, scientific outside: nobody counts forty zeros.
PLAIN_FROM, PLAIN_TO = -7, 20

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e([+-]?\d+))?", re.ASCII | re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+", re.ASCII)

_OPERATIONS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}
_SYMBOLS = {"+": "add", "-": "subtract", "*": "multiply", "\u00d7": "multiply", "/": "divide", "\u00f7": "divide"}


class _NotComputable(Exception):  # noqa: N818 - not an error of the program: its text is the answer
    """The input cannot be computed; the text says why, to the person at the form."""


def calculate(a: Any, b: Any, operation: Any) -> str:
    """Compute ``a operation b``.

    Args:
        a: The first operand: text, a number, or either wrapped as ``{"literalString": "12"}``.
        b: The second operand, likewise.
        operation: ``add``, ``subtract``, ``multiply`` or ``divide`` (or its symbol): text, a list that holds it, or
            either wrapped. A choice that was never touched arrives as text, a touched one as a list.

    Returns:
        The number as text (``84``, ``0.3``, ``1e100``), or one sentence that says what is wrong with the input.

    >>> calculate("12", {"literalString": "7"}, ["multiply"])
    '84'
    >>> calculate("1", "0", "divide")
    'Cannot divide by zero.'
    """
    try:
        return _compute(_operand("A", a), _operand("B", b), _operation(operation))
    except _NotComputable as reason:
        return str(reason)


def _compute(a: Decimal, b: Decimal, operation: str) -> str:
    if operation == "divide" and not b:
        raise _NotComputable("Cannot divide by zero.")
    with localcontext(Context(prec=PRECISION)) as context:
        result = _OPERATIONS[operation](a, b)
        if context.flags[Inexact]:
            result = Context(prec=QUOTIENT_DIGITS).plus(result)
        return _text(result.normalize())


def _text(number: Decimal) -> str:
    """Write a normalized number: no trailing zeros, no negative zero, no capital E."""
    if not number:
        return "0"
    if PLAIN_FROM <= number.adjusted() <= PLAIN_TO:
        return format(number, "f")
    return format(number, "e").replace("e+", "e")


def _operand(name: str, value: Any) -> Decimal:
    value = _unwrap(value)
    if value is None or value == "":
        raise _NotComputable(f"Operand {name} is empty: enter a number.")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _NotComputable(f"Operand {name} is not a number: {_shown(value)}.")
    try:
        text = value if isinstance(value, str) else repr(value)  # repr: the shortest decimal that means this float
    except ValueError:  # Python refuses to write integers of more than 4,300 digits
        raise _NotComputable(f"Operand {name} is too long for this calculator.") from None
    if len(text) > MAX_OPERAND_CHARS:
        raise _NotComputable(f"Operand {name} is too long: at most {MAX_OPERAND_CHARS} characters.")
    # NFKC: what an East Asian input method types (full-width digits) counts. U+2212 is the minus of mathematics.
    text = unicodedata.normalize("NFKC", text).replace("\u2212", "-").strip()
    if not text:
        raise _NotComputable(f"Operand {name} is empty: enter a number.")
    if _GROUPED.fullmatch(
        text
    ):  # 1,000 is a thousand to one reader and one to another: a guess would be wrong for half
        raise _NotComputable(f"Operand {name} is ambiguous: write {_shown(text)} without the comma or with a point.")
    if text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _NotComputable(f"Operand {name} is not a number: {_shown(text)}.")
    if match[1] is not None and abs(int(match[1])) > MAX_EXPONENT:
        raise _NotComputable(f"Operand {name} is out of range: exponents go from -{MAX_EXPONENT} to {MAX_EXPONENT}.")
    return Decimal(text)


def _operation(value: Any) -> str:
    value = _unwrap(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) > 1:  # a renderer that ignores maxAllowedSelections
            raise _NotComputable("Choose one operation, not several.")
        value = _unwrap(value[0]) if value else None
    if value is None or value == "":
        raise _NotComputable("Choose an operation.")
    name = value.strip().lower() if isinstance(value, str) else ""
    name = _SYMBOLS.get(name, name)
    if name not in _OPERATIONS:
        raise _NotComputable(f"Unknown operation {_shown(value)}: choose one of {', '.join(_OPERATIONS)}.")
    return name


def _unwrap(value: Any) -> Any:
    """Take a v0.8 literal out of its wrapping; anything else is returned as it is."""
    if isinstance(value, Mapping) and len(value) == 1:
        for key in ("literalString", "literalNumber", "literalArray"):
            if key in value:
                return value[key]
    return value


def _shown(value: Any, limit: int = 24) -> str:
    """Quote what was got, cut: it came from a client and goes onto a page."""
    text = value if isinstance(value, str) else type(value).__name__
    return f"“{text if len(text) <= limit else text[:limit] + '…'}”"
