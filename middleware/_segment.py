"""What one task of a run has opened, and closing it in the right order.

A segment is the part of a chain between two pumps: its iterators run in one task and must be closed in that task.
Closing an async generator does not close the one it loops over, hence the list.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

_MANY: Final = 32


class Place:
    """A place in the order of closing, for an iterator that is being made."""

    __slots__ = ("iterator",)

    def __init__(self) -> None:
        self.iterator: AsyncIterator[Any] | None = None

    @property
    def over(self) -> bool:
        """Whether there is nothing to close any more. A place that is not filled yet is not over."""
        return getattr(self.iterator, "ag_frame", self) is None


class Segment:
    """The iterators that one task of a run made, in the order of opening, outermost first."""

    __slots__ = ("_many", "_places")

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._many = _MANY

    def reserve(self) -> Place:
        """Take a place before the iterator exists: a stage may open its own source while it is being made."""
        if len(self._places) >= self._many:  # a stage that retries for hours must not keep every attempt
            self._places = [place for place in self._places if not place.over]
            self._many = max(_MANY, 2 * len(self._places))
        place = Place()
        self._places.append(place)
        return place

    def fill(self, place: Place, iterator: AsyncIterator[Any]) -> None:
        """Put the iterator into its place."""
        place.iterator = iterator

    async def close(self) -> BaseException | None:
        """Close every iterator, outermost first; one that fails to close does not keep the next from closing.

        Returns:
            The first exception that closing raised, for the caller to raise where nothing else is being raised.
        """
        first: BaseException | None = None
        for place in self._places:
            aclose = getattr(place.iterator, "aclose", None)
            if aclose is None:
                continue
            try:
                await aclose()
            except BaseException as exc:  # noqa: BLE001 - reported below; a cancellation goes on after the rest closed
                first = exc if first is None else first
        self._places.clear()
        return first


def raise_closing(closing: BaseException | None, error: BaseException | None) -> None:
    """Raise what closing raised, unless that would hide the error being raised.

    As in Python's own `finally`, an exception of a cleanup takes the place of a cancellation: it must not be lost.

    Args:
        closing: What `Segment.close` returned.
        error: What is being raised already, if anything. Leaving early (GeneratorExit) is no error.
    """
    if closing is None:
        return
    if isinstance(closing, Exception):
        hides = isinstance(error, Exception)
    else:  # a cancellation itself, or more urgent: the first of its kind goes on
        hides = error is not None and not isinstance(error, Exception | GeneratorExit)
    if not hides:
        raise closing
