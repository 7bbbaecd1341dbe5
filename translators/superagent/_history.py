"""What a run only shows in a MESSAGES_SNAPSHOT: the answers of models that do not stream.

Knows which messages were there before the run, and which of a snapshot stand behind those. Does not know what was
streamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.superagent._fields import text_of


class History:
    """The messages of one stream."""

    __slots__ = ("_before", "_dated", "_news")

    def __init__(self) -> None:
        self._before: set[str] = set()
        self._news: Sequence[Any] = ()
        self._dated = False

    def remember(self, ids: Iterable[str]) -> None:
        """Take the ids of messages from before the run."""
        self._before.update(ids)

    def snapshot(self, messages: Sequence[Any]) -> None:
        """Take the messages of a snapshot. The last one of a run counts."""
        known = [place for place, id in enumerate(ids_of(messages)) if id in self._before]
        self._dated = bool(known)
        self._news = messages[known[-1] + 1 :] if known else messages

    def take(self) -> tuple[list[Any], bool]:
        """Take the end of a run; give the agent's messages in its last snapshot that are not from before.

        Returns:
            The messages; and whether that is certain. It is not where the snapshot has none of the messages from
            before: an agent that remembers by thread may show a history that the client did not send.
        """
        news, self._news = self._news, ()
        return [message for message in news if field_of(message, "role", "role") == "assistant"], self._dated


def ids_of(messages: Iterable[Any]) -> list[str]:
    """Return the ids of messages, empty ones for those without."""
    return [text_of(message, "id", "id") for message in messages]
