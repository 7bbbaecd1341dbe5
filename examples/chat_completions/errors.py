"""What goes wrong between a chat completions endpoint and us, in words for the client of a run.

Knows what HTTP statuses and an endpoint's own errors mean. Does not know how either came.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

_LONGEST_DATE = 40
_LONGEST_SECONDS = 9
"""Digits: more is no time that anybody waits."""


class ModelError(Exception):
    """Why there is no answer, or no whole one.

    Its text and its code go to the client, and are our own: an endpoint's may quote the key, or other users.

    Attributes:
        code: RUN_ERROR's.
        detail: What the endpoint said, for the log.
    """

    def __init__(self, message: str, code: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail


def refused(status: int, detail: str = "", retry_after: str = "") -> ModelError:
    """Return what an HTTP status means.

    Args:
        status: The status.
        detail: The body.
        retry_after: The header ``retry-after``, where there was one.
    """
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):  # the detail stays out: it may quote the key
        return ModelError(f"The model refused the server's key (HTTP {status}): see OPENAI_API_KEY.", "key_refused")
    if status == HTTPStatus.NOT_FOUND:
        what = "There is no such model, or no such address (HTTP 404): see OPENAI_MODEL and OPENAI_BASE_URL."
        return ModelError(what, "model_not_found", detail=detail)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        what = f"The model takes no more requests for now (HTTP 429){_when(retry_after)}."
        return ModelError(what, "rate_limited", detail=detail)
    return ModelError(f"The model could not answer (HTTP {status}).", "model_error", detail=detail)


def reported(error: Any) -> ModelError:
    """Return what an ``error`` object means that came in an answer; some endpoints give it a status as its code."""
    detail = json.dumps(error)
    code = error.get("code") if isinstance(error, dict) else None
    if type(code) is int and code in range(400, 600):
        return refused(code, detail)
    if code == "rate_limit_exceeded":
        return refused(HTTPStatus.TOO_MANY_REQUESTS, detail)
    return ModelError("The model could not go on: its endpoint reported an error.", "model_error", detail=detail)


def _when(retry_after: str) -> str:
    """Read a ``retry-after``: seconds or a date. Anything else is the endpoint's words, and left out."""
    if retry_after.isascii() and retry_after.isdigit() and len(retry_after) <= _LONGEST_SECONDS:
        return f": try again in {int(retry_after)} seconds"
    if retry_after.endswith(" GMT") and retry_after.isprintable() and len(retry_after) <= _LONGEST_DATE:
        return f": try again after {retry_after}"
    return ""
