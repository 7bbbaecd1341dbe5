"""Requests that no run answers: why, and how that is said, in a stream and by HTTP.

Does not know who refuses what (`_repeats.py`, `actions.py`).
"""

from __future__ import annotations

from typing import Final

from ag_ui.core import EventType, RunErrorEvent

from agui_pipeline.translators import DecodeError, LimitError

INVALID: Final = "a2ui_action_invalid"
UNKNOWN_SURFACE: Final = "a2ui_surface_unknown"
RUNNING: Final = "a2ui_request_running"
CONFLICT: Final = "a2ui_request_conflict"
CUT: Final = "a2ui_request_cut"


class RefusedError(DecodeError):
    """A request that is not answered by a run.

    Args:
        code: Of the RUN_ERROR that says so.
        message: What is wrong, and what to do.
        status: The HTTP status where the answer has not begun yet.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class OverLimitError(LimitError):
    """A client message over a limit, which no run answers. Its HTTP status is that of any `LimitError`."""

    code: Final = INVALID


def running() -> RefusedError:
    """Return the refusal of a repeat that comes too early. The status is that of the Idempotency-Key header's draft."""
    return RefusedError(RUNNING, "this request is being answered already: wait for that answer", 409)


def conflict() -> RefusedError:
    """Return the refusal of another request under the same id. The status is that of the header's draft."""
    return RefusedError(CONFLICT, "another request had this request id: send this one under an id of its own", 422)


def run_error(code: str, message: str) -> RunErrorEvent:
    """Return the event that says so in a stream."""
    return RunErrorEvent(type=EventType.RUN_ERROR, message=message, code=code)
