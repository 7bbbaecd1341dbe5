"""Messages and reasoning on their way to being told: whole characters, code apart from text.

Knows which pieces belong together and what is held of each. Does not know events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agui_pipeline.translators.superagent._fences import Fences, Piece
from agui_pipeline.translators.superagent._halves import Halves
from agui_pipeline.translators.superagent._meanings import Code, Meaning, Text, Thinking


class _Message:
    """One message that streams. `muted`: nobody shall hear it. `said`: its pieces."""

    __slots__ = ("fences", "halves", "muted", "said")

    def __init__(self) -> None:
        self.fences = Fences()
        self.halves = Halves()
        self.muted = False
        self.said: list[str] = []


class Texts:
    """The messages and the reasoning of one run.

    A message that was ended may go on, in the block of code in which it ended.

    Args:
        fences: Whether code is told apart.
    """

    __slots__ = ("_fences", "_messages", "_thoughts")

    def __init__(self, *, fences: bool) -> None:
        self._fences = fences
        self._messages: dict[str, _Message] = {}
        self._thoughts: dict[str, Halves] = {}

    def open(self, id: str, *, muted: bool) -> None:
        """Take the start of a message; of a muted one nothing is given."""
        self._message(id).muted = muted

    def say(self, id: str, delta: str) -> list[Meaning]:
        """Take a piece of a message; give what is decided."""
        message = self._message(id)
        message.said.append(delta)
        whole = "" if message.muted else message.halves.feed(delta)
        return self._told(id, message, whole) if whole else []

    def end(self, id: str) -> list[Meaning]:
        """Take the end of a message; give what was held of it."""
        message = self._messages.get(id)
        if message is None:
            return []
        half = message.halves.flush()
        held = self._told(id, message, half) if half else []
        return held + _meanings(id, message.fences.flush())

    def think(self, id: str, delta: str) -> list[Meaning]:
        """Take a piece of reasoning; give what is decided."""
        whole = self._thoughts.setdefault(id, Halves()).feed(delta)
        return [Thinking(whole, id)] if whole else []

    def end_thought(self, id: str) -> list[Meaning]:
        """Take the end of some reasoning; give what was held of it."""
        halves = self._thoughts.get(id)
        half = "" if halves is None else halves.flush()
        return [Thinking(half, id)] if half else []

    @property
    def ids(self) -> Collection[str]:
        """The messages that have come."""
        return self._messages.keys()

    def said(self) -> set[str]:
        """Return what each message has said, without white space around it."""
        return {"".join(message.said).strip() for message in self._messages.values()}

    def end_all(self) -> list[Meaning]:
        """Take the end of the run; give all that is held."""
        found = [meaning for id in self._messages for meaning in self.end(id)]
        return found + [meaning for id in self._thoughts for meaning in self.end_thought(id)]

    def forget(self) -> None:
        """Forget all: another run may use the same ids."""
        self._messages.clear()
        self._thoughts.clear()

    def _message(self, id: str) -> _Message:
        message = self._messages.get(id)
        if message is None:
            message = self._messages[id] = _Message()
        return message

    def _told(self, id: str, message: _Message, text: str) -> list[Meaning]:
        return _meanings(id, message.fences.feed(text)) if self._fences else [Text(text, id)]


def _meanings(id: str, pieces: Iterable[Piece]) -> list[Meaning]:
    return [
        Text(text, id) if language is None else Code(text, language, id, opens=opens)
        for text, language, opens in pieces
    ]
