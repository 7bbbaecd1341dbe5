"""Who tells of an exception: whoever raises it last, or else whoever stopped it. Never both."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Final

_logger = logging.getLogger("agui_pipeline")

raised_later: Final[ContextVar[list[BaseException] | None]] = ContextVar("agui_pipeline.raised_later", default=None)
"""The exceptions that an adapter will raise, or log, when the stream has ended, where one is at work."""


def log_stopped(name: str, words: str, exc: BaseException) -> None:
    """Log, with its traceback, an exception that goes no further, unless an adapter tells of it later.

    Args:
        name: The code of the diagnostic that goes with it.
        words: What happened.
        exc: The exception.
    """
    later = raised_later.get()
    if later is None or not any(exc is known for known in later):
        _logger.error("%s: %s", name, words, exc_info=exc)
