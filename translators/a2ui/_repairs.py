"""Repairs of broken records: which of them count, and their diagnostic.

Knows that only a message counts, and the bounds of a run. Does not know how text is repaired
(`agui_pipeline.translators._repair`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import orjson

from agui_pipeline.translators._scan_items import Reason
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._envelope import read_envelope, surface_of
from agui_pipeline.translators.a2ui._limits import A2UILimits, value_excess

Repairer = Callable[[str], dict[str, Any] | None]

MAX_RUN_CHARS: Final = 262144
"""Characters of broken records that are looked at in one run: a third of a second of work, for usual mistakes."""


class Repairs:
    """Repairs the broken records of one run.

    Args:
        repairer: What makes an object of a text; None where nothing is repaired.
        limits: What is over one after its repair does not count.
        report: The diagnostics of the run.
        validates: Whether only A2UI messages count.
    """

    def __init__(self, repairer: Repairer | None, limits: A2UILimits, report: Reporter, *, validates: bool) -> None:
        self._repairer = repairer
        self._limits = limits
        self._report = report
        self._validates = validates
        self._left = MAX_RUN_CHARS

    @property
    def enabled(self) -> bool:
        """Whether there is anything to ask."""
        return self._repairer is not None

    def restart(self) -> None:
        """Begin another run."""
        self._left = MAX_RUN_CHARS

    def arguments(self, text: str, call_id: str | None) -> dict[str, Any] | None:
        """Return what a tool call's arguments that are no JSON were meant to be; what is in them is judged apart."""
        value = self._repaired(text)
        if value is not None:
            message = "the arguments of a tool call that are no JSON were repaired"
            self._report("a2ui.repaired", message, message_id=call_id, detail={"reason": "syntax", "size": len(text)})
        return value

    def _repaired(self, text: str) -> dict[str, Any] | None:
        self._left -= len(text)
        return None if self._repairer is None or self._left < 0 else self._repairer(text) or None

    def __call__(self, text: str, reason: Reason, message_id: str | None) -> dict[str, Any] | None:
        """Return the message that a broken record was meant to be; None where that is not to be had.

        Args:
            text: Its text.
            reason: What is wrong with it.
            message_id: The text message or tool call it stands in.
        """
        value = self._repaired(text)
        # What a repair makes is not spelt out in the text, so it is looked at on its own.
        if value is None or value_excess(self._limits, value, as_json(value)) is not None:
            return None
        if self._validates and isinstance(read_envelope(value), str):
            return None
        detail = {"reason": reason, "size": len(text), "surface_id": surface_of(value)}
        message = f"an A2UI message that is no JSON ({reason}) was repaired"
        self._report("a2ui.repaired", message, message_id=message_id, detail=detail)
        return value


def as_json(value: object) -> str:
    """Return a decoded value as JSON text, for what measures text."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # lone surrogates, integers past 64 bits
        return json.dumps(value, ensure_ascii=False)
