"""What the Superagent dialects' stages say about what they lost or repaired: the codes, and each said once.

Knows nothing of frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "superagent.lost": "the dialect has no frame for an event, or no place for a field of it, and it was left out",
    "superagent.role": "text of another role than assistant was left out: the dialect's text is the agent's",
    "superagent.after-done": "what an old agent sent after done was left out",
    "superagent.malformed": "a field is not what the protocol says and was left out",
    "superagent.call-again": "a tool call that was told already was not told again: old clients append each",
    "superagent.late-arguments": "arguments that came after the result of their tool call were left out",
    "superagent.late-error": "a tool failed, and its result was sent before anything said so",
    "superagent.patch": "a patch of an activity does not apply: its progress is unknown until its next snapshot",
    "superagent.source-error": "the source raised before its run was complete",
    "superagent.source-ended": "the source ended before its run was complete",
    "superagent.bad-frame": "a frame of an old agent is not of its dialect; its text went on as an error",
    "superagent.content": "what an old agent says the whole text is disagrees with its pieces, which were believed",
    "superagent.unpaired": "a result came from an old agent whose tool was not called",
    "superagent.fence": "code that holds the end of its own fence went on in another block with a longer one",
}
"""The diagnostics of the Superagent dialects, by code."""

_MOST: Final = 200
"""Different things said of one run: a hostile source can name any number of types."""
_LONGEST: Final = 100
"""Characters of a type that are kept."""


class Losses:
    """Makes one run's diagnostics, each once for a type and a field.

    Args:
        sink: Gets them.
        dialect: The dialect's name.
    """

    __slots__ = ("_dialect", "_said", "_sink")

    def __init__(self, sink: DiagnosticSink, dialect: str) -> None:
        self._sink = sink
        self._dialect = dialect
        self._said: set[tuple[str, str, str]] = set()

    def say(
        self,
        code: str,
        event_type: str = "",
        field: str = "",
        *,
        id: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the diagnostic ``superagent.<code>``.

        Args:
            code: Its code, without the prefix.
            event_type: The type of the event, empty for none.
            field: What of the event it is about, empty for the whole.
            id: The message or tool call concerned.
            detail: More, for programs.
        """
        event_type = event_type[:_LONGEST]
        key = (code, event_type, field)
        if key in self._said or len(self._said) >= _MOST:
            return
        self._said.add(key)
        code = f"superagent.{code}"
        words = f"{self._dialect}: {event_type}{'.' if event_type and field else ''}{field}".rstrip(": ")
        self._sink(
            Diagnostic(
                code,
                f"{DIAGNOSTICS[code]} ({words})",
                event_type=event_type or None,
                message_id=id,
                detail=detail or {},
            )
        )
