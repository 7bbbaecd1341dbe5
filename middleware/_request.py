"""The request that a run answers, for those who want to look at it: a context variable that adapters set.

Knows that a request has headers. Does not know HTTP, nor any framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol

__all__ = ["RequestLike", "request", "request_header"]


class RequestLike(Protocol):
    """What middleware may ask of a request."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, looked up by names of any case."""
        ...


request: ContextVar[RequestLike] = ContextVar("agui_pipeline.request")
"""The request that this task serves; also in the tasks that it starts."""


def request_header(name: str) -> str | None:
    """Return a header of the running request; None outside one, or where it has no such header."""
    try:
        return request.get().headers.get(name)
    except LookupError:
        return None
