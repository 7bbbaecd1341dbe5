"""Meanings to frames, a writer a dialect.

Knows how a dialect puts the fields of `_dialects.py` into a frame. Does not know where a meaning came from.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, cast

from agui_pipeline.translators._diagnostics import DiagnosticSink
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._events import loads
from agui_pipeline.translators._sse import SSEFrame
from agui_pipeline.translators.superagent._dialects import (
    COMPATIBLE,
    DONE_TOKEN,
    ENVELOPED,
    FLAT,
    INCREMENTAL,
    WITH_WHOLE,
)
from agui_pipeline.translators.superagent._meanings import Code, Done, Meaning, Text, Thinking


class Writer(ABC):
    """Makes frames of one run's meanings.

    Args:
        sink: Gets the repairs of what JSON cannot say (codes ``encode.*``).
    """

    fences = True
    """Whether code in text is to become frames of its own."""
    updates = True
    """Whether a tool call's status can be told after the call."""

    def __init__(self, sink: DiagnosticSink) -> None:
        self._sink = sink

    @abstractmethod
    def frames(self, meaning: Meaning, time: int) -> Iterable[SSEFrame]:
        """Give the frames of one meaning.

        Args:
            meaning: What to say. A text's `whole` is kept here, per message.
            time: Milliseconds since 1970.
        """

    def json(self, value: Any) -> str:
        """Return compact JSON, on one line for any reader."""
        return encode_json(value, self._sink).decode()


class _WithWhole(Writer):
    """What the dialects share whose pieces of text bring the whole text along."""

    def __init__(self, sink: DiagnosticSink) -> None:
        super().__init__(sink)
        # The text so far as JSON, without its quotes: only what is new is escaped. Of code, the last block's of a
        # message only.
        self._wholes: dict[tuple[str, str], str] = {}

    def data(self, meaning: Meaning) -> str:
        """Return the JSON of a frame's data."""
        if isinstance(meaning, Text | Thinking | Code):
            return self._piece(meaning)
        if isinstance(meaning, Done):
            return "null"
        return self.json({name: getattr(meaning, source) for name, source in WITH_WHOLE[meaning.kind].items()})

    def _piece(self, meaning: Text | Thinking | Code) -> str:
        key = (meaning.kind, meaning.message)
        delta = self.json(meaning.delta)
        whole = "" if isinstance(meaning, Code) and meaning.opens else self._wholes.get(key, "")
        self._wholes[key] = whole = whole + delta[1:-1]
        if isinstance(meaning, Code):
            return f'{{"language":{self.json(meaning.language)},"code":"{whole}","delta":{delta}}}'
        return f'{{"content":"{whole}","delta":{delta}}}'


class EnvelopedWriter(_WithWhole):
    """Named frames; the data an envelope of type, timestamp and data."""

    def frames(self, meaning: Meaning, time: int) -> Iterable[SSEFrame]:
        kind = meaning.kind
        data = f'{{"type":"{kind}","timestamp":{time},"data":{self.data(meaning)}}}'
        return (SSEFrame(event=kind, data=data),)


class CompatibleWriter(_WithWhole):
    """Text as it is; everything else JSON of type and data."""

    fences = False

    def frames(self, meaning: Meaning, time: int) -> Iterable[SSEFrame]:  # noqa: ARG002 - the dialect has no time
        if isinstance(meaning, Text):
            return [SSEFrame(data=token) for token in _tokens(self._sendable(meaning.delta or ""))]
        if isinstance(meaning, Done):
            return (SSEFrame(data=DONE_TOKEN),)
        return (SSEFrame(data=f'{{"type":"{meaning.kind}","data":{self.data(meaning)}}}'),)

    def _sendable(self, text: str) -> str:
        """Return text without lone halves of characters, as JSON would have it."""
        try:
            text.encode()
        except UnicodeEncodeError:
            return cast("str", loads(self.json(text).encode()))
        return text


class FlatWriter(Writer):
    """One object, `type` beside the fields. What a meaning does not have is left out."""

    updates = False

    def frames(self, meaning: Meaning, time: int) -> Iterable[SSEFrame]:  # noqa: ARG002 - the dialect has no time
        data = {"type": meaning.kind}
        for name, source in INCREMENTAL[meaning.kind].items():
            value = getattr(meaning, source)
            if value is not None:
                data[name] = value
        return (SSEFrame(data=self.json(data)),)


WRITERS: Final[Mapping[str, type[Writer]]] = {
    ENVELOPED: EnvelopedWriter,
    FLAT: FlatWriter,
    COMPATIBLE: CompatibleWriter,
}
"""The writer of each dialect, by its name."""

# What a reader that knows tokens from JSON by their looks would take for something else: a line of a token (readers by
# line see each alone), or all of it. The possessive quantifiers keep a line of braces linear.
_MISTAKEN: Final = re.compile(r"^[ \t]*+(?:\{[{ \t]*+(?=[^\n]*\}[ \t]*$)|\[DONE(?=\][ \t]*$))", re.MULTILINE)
_OPENS_OBJECT: Final = re.compile(r"\s*\{[{\s]*")


def _tokens(text: str) -> list[str]:
    """Cut a token where it, or a line of it, would read as an object or as the end. Joined, the parts are the token."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as the format does: readers end a line there
    cuts = {found.end() for found in _MISTAKEN.finditer(text)}
    if text.rstrip().endswith("}"):
        found = _OPENS_OBJECT.match(text)
        cuts |= {found.end()} if found else set()
    places = [0, *sorted(cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places) if start < end]
