"""Characters cut in two: JavaScript cuts text between the halves of a character past U+FFFF.

Knows surrogates. Each half sent alone would become U+FFFD.
"""

from __future__ import annotations

from typing import Final

_HIGH: Final = ("\ud800", "\udbff")


class Halves:
    """Keeps the first half of a character until its other half comes."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """Take text; return it with whole characters, but for a last one whose other half has not come."""
        if self._half:
            text, self._half = _joined(self._half + text), ""
        if text and _HIGH[0] <= text[-1] <= _HIGH[1]:
            self._half = text[-1]
            return text[:-1]
        return text

    def flush(self) -> str:
        """Return a half that stayed alone."""
        half, self._half = self._half, ""
        return half


def _joined(text: str) -> str:
    # Only the seam can have changed; a lone half elsewhere stays for the encoder to report.
    return text[:2].encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") + text[2:]
