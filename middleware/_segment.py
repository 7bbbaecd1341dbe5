"""What one task of a run has opened, and closing it in the right order.

A segment is the part of a chain between two pumps: its iterators run in one task and must be closed in that task.
Closing an async generator does not close the one it loops over, hence the list.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

_MANY: Final = 32


class Segment:
    """The iterators that one task of a run made, in the order of opening, outermost first."""

    __slots__ = ("_iterators",)

    def __init__(self) -> None:
        self._iterators: list[AsyncIterator[Any] | None] = []

    def reserve(self) -> int:
        """Take a place before the iterator exists: a stage may open its own source while it is being made."""
        if len(self._iterators) > _MANY:  # a stage that retries for hours must not keep every attempt
            self._iterators = [it for it in self._iterators if getattr(it, "ag_frame", it) is not None]
        self._iterators.append(None)
        return len(self._iterators) - 1

    def fill(self, place: int, iterator: AsyncIterator[Any]) -> None:
        """Put the iterator into its place."""
        self._iterators[place] = iterator

    async def close(self) -> BaseException | None:
        """Close every iterator, outermost first; one that fails to close does not keep the next from closing.

        Returns:
            The first exception that closing raised, for the caller to raise where nothing else is being raised.
        """
        first: BaseException | None = None
        for iterator in self._iterators:
            aclose = getattr(iterator, "aclose", None)
            if aclose is None:
                continue
            try:
                await aclose()
            except BaseException as exc:  # noqa: BLE001 - reported below; a cancellation goes on after the rest closed
                first = first or exc
        self._iterators.clear()
        return first


def raise_closing(closing: BaseException | None, error: BaseException | None) -> None:
    """Raise what closing raised, unless that would hide the error being raised.

    Args:
        closing: What `Segment.close` returned.
        error: What is being raised already, if anything. Leaving early (GeneratorExit) is no error; and a
            cancellation is never hidden.
    """
    if closing is None:
        return
    if error is None or isinstance(error, GeneratorExit) or not isinstance(closing, Exception):
        raise closing
