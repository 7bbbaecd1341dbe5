"""What both scanners give: items, reports on broken records, and the protocol that makes them interchangeable.

Knows how a record's text is decoded. Does not know where records are found (`_scanner.py`, `_line_scanner.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators._events import loads

Kind: TypeAlias = Literal["record", "prose", "cut"]
Reason: TypeAlias = Literal["syntax", "depth", "size", "unfinished", "undecodable"]


class ScanItem(NamedTuple):
    """A piece of scanned text. The texts of a message's items, joined, are exactly the message.

    Attributes:
        kind: ``"record"``; ``"prose"``, text for people; ``"cut"``, text around records that is for nobody.
        text: The piece, as it was.
        value: The decoded JSON of a record, else None.
    """

    kind: Kind
    text: str
    value: Any = None


class BrokenRecord(NamedTuple):
    """What began as a record and is none. Its text comes as prose.

    Attributes:
        reason: ``"syntax"``: a character that JSON cannot have there. ``"depth"``, ``"size"``: over the scanner's
            limit. ``"unfinished"``: the message ended. ``"undecodable"``: JSON, but nested
            deeper than Python's decoders go.
        size: Characters up to where that was known, the last one included.
        prefix: The first of them, at most `PREFIX_CHARS`.
    """

    reason: Reason
    size: int
    prefix: str


OnBroken: TypeAlias = Callable[[BrokenRecord], None]

PREFIX_CHARS: Final = 512
"""How much of a broken record is reported: enough for an envelope's key and its surfaceId."""


class Scanner(Protocol):
    """Takes the text of one message in pieces of any size; gives its items as soon as they are certain.

    What was given after a text depends on that text alone, never on how it was cut into pieces (where two items of
    prose, or two cut ones, meet is no part of that: within one answer they are one). The work is linear in the text.
    """

    def feed(self, text: str) -> list[ScanItem]:
        """Take the next piece; give what it decided, in order."""
        ...

    def flush(self) -> list[ScanItem]:
        """End the message; give all that was held. The scanner is as new afterwards."""
        ...


# A lone surrogate, or an escape (whose second half may be one: then it is no JSON and must stay none).
_SURROGATE: Final = re.compile(r"(\\.)|([\ud800-\udfff])", re.DOTALL)


def decode(text: str) -> Any:
    """Decode a record.

    Surrogates are read as if they were written as escapes: an emoji that an agent cut in two between deltas becomes
    one again, and a half that stays alone decodes as a lone surrogate.

    Raises:
        ValueError: The text is not JSON, or is nested too deep.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = _SURROGATE.sub(lambda found: found[1] or f"\\u{ord(found[2]):04x}", text).encode()
    return loads(data)


def report(on_broken: OnBroken | None, reason: Reason, size: int, text: str) -> None:
    """Report a broken record whose text begins `text`."""
    if on_broken is not None:
        on_broken(BrokenRecord(reason, size, text[: min(size, PREFIX_CHARS)]))


def merged(items: list[ScanItem]) -> list[ScanItem]:
    """Join neighbours that are both prose or both cut."""
    if len(items) < 2:  # noqa: PLR2004 - nothing to join
        return items
    result: list[ScanItem] = []
    for kind, group in groupby(items, key=lambda item: item.kind):
        if kind == "record":
            result.extend(group)
        else:
            result.append(ScanItem(kind, "".join(item.text for item in group)))
    return result


def positive(name: str, value: int) -> int:
    """Return a limit that is one."""
    if value < 1:
        raise ConfigurationError(f"{name} must be at least 1; got {value!r}")
    return value
