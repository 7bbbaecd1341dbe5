"""Requests without an id that came a moment ago: a second click of a client that gives its requests none.

Knows how long one is remembered, and how many are. Does not know what became of them (`_repeats.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from agui_pipeline.translators._keys import short_key

_MAX_REQUESTS: Final = 4096
"""Requests remembered, the oldest forgotten first: what is forgotten too early runs again."""


class RecentRequests:
    """Gives requests without an id one of their own, by which a repeat is known as long as it counts as one.

    Args:
        within: Seconds from when a request came; 0: nothing is a repeat.
        clock: Gives the time in seconds; only differences mean something.
    """

    def __init__(self, within: float, clock: Callable[[], float]) -> None:
        self._within = within
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[float, str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def id_of(self, key: str, digest: str) -> str:
        """Return the id of the equal request that came a moment ago; empty where there is none."""
        now = self._clock()
        while self._known and now - next(iter(self._known.values()))[0] >= self._within:
            self._known.popitem(last=False)
        return self._known.get((short_key(key), digest), (0.0, ""))[1]

    def came(self, key: str, digest: str, id: str = "") -> str:
        """Remember a request that is to be run, from now on.

        Args:
            key: Its thread, and whose it is.
            digest: Of what it says.
            id: Its id, where it has been given one.

        Returns:
            Its id. No client can know it: it may not be claimed by a ``requestId``.
        """
        place = short_key(key), digest
        self._known.pop(place, None)
        id = id or uuid4().hex
        self._known[place] = self._clock(), id
        if len(self._known) > _MAX_REQUESTS:
            self._known.popitem(last=False)
        return id
