"""Where surfaces are kept between runs: the interface of a store, and the one in memory.

A store keeps *records* by thread and surface and does not look into them. A surface is what its records, read in
order, make of it (`Surface.replay`). Does not know A2UI.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from agui_pipeline.translators._errors import ConfigurationError

Record: TypeAlias = Mapping[str, Any]
"""A JSON object. Its `size` says roughly how many characters of JSON it is."""


class SurfaceStore(Protocol):
    """What a `SurfaceRegistry` keeps its surfaces in. In memory: `MemorySurfaceStore`.

    The methods are called from the run itself, so they must be quick, and safe to call from any thread if runs are in
    several. There is one `get` for each run that has A2UI, and one write for each message. What they raise leaves the
    run as itself. A store may forget whole surfaces and threads whenever it likes (`append` then says so), but no
    single records. Records must not be changed; they are plain JSON and may be kept as such.
    """

    def get(self, thread: str) -> Mapping[str, Sequence[Record]]:
        """Return the records of each surface of a thread, in order; the least recently changed surface first."""
        ...

    def append(self, thread: str, surface: str, records: Sequence[Record]) -> bool:
        """Add records to those of a surface. False, without adding them, where the store has none of it (any more)."""
        ...

    def replace(self, thread: str, surface: str, records: Sequence[Record]) -> None:
        """Put records in the place of all that a surface has, also where it has none."""
        ...

    def delete(self, thread: str | None = None, surface: str | None = None) -> None:
        """Forget a surface of a thread; without `surface` the thread; without both everything."""
        ...


class _Thread:
    __slots__ = ("size", "surfaces")

    def __init__(self) -> None:
        self.surfaces: OrderedDict[str, tuple[list[Record], int]] = OrderedDict()
        self.size = 0


class MemorySurfaceStore:
    """Keeps records in memory, within bounds. The least recently changed threads are forgotten first.

    Args:
        max_threads: Threads kept.
        max_bytes: Characters of JSON kept over all threads, roughly; the Python objects take a few times that. The
            thread that was changed last stays in any case.

    Raises:
        ConfigurationError: A bound is no integer of at least 1.

    Example:
        >>> store = MemorySurfaceStore()
        >>> store.append("t", "s", [{"size": 1}])
        False
        >>> store.replace("t", "s", [{"size": 1}])
        >>> store.append("t", "s", [{"size": 2}])
        True
        >>> store.get("t")
        {'s': ({'size': 1}, {'size': 2})}
    """

    def __init__(self, *, max_threads: int = 1024, max_bytes: int = 64 * 1024 * 1024) -> None:
        check_bounds("MemorySurfaceStore", max_threads=max_threads, max_bytes=max_bytes)
        self._max_threads: Final = max_threads
        self._max_bytes: Final = max_bytes
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._size = 0

    def get(self, thread: str) -> dict[str, tuple[Record, ...]]:
        """Return the records of each surface of a thread, the least recently changed surface first."""
        known = self._threads.get(thread)
        return {} if known is None else {id_: tuple(records) for id_, (records, _) in known.surfaces.items()}

    def append(self, thread: str, surface: str, records: Sequence[Record]) -> bool:
        """Add records to those of a surface; False where there are none."""
        known = self._threads.get(thread)
        if known is None or surface not in known.surfaces:
            return False
        kept, size = known.surfaces[surface]
        kept.extend(records)
        self._put(known, thread, surface, kept, size + _size_of(records))
        return True

    def replace(self, thread: str, surface: str, records: Sequence[Record]) -> None:
        """Put records in the place of all that a surface has."""
        known = self._threads.get(thread)
        if known is None:
            known = self._threads[thread] = _Thread()
        self._put(known, thread, surface, list(records), _size_of(records))

    def _put(self, known: _Thread, thread: str, surface: str, records: list[Record], size: int) -> None:
        _, before = known.surfaces.get(surface, ((), 0))
        known.surfaces[surface] = records, size
        known.surfaces.move_to_end(surface)
        known.size += size - before
        self._size += size - before
        self._threads.move_to_end(thread)
        while len(self._threads) > self._max_threads or (self._size > self._max_bytes and len(self._threads) > 1):
            self.delete(next(iter(self._threads)))

    def delete(self, thread: str | None = None, surface: str | None = None) -> None:
        """Forget a surface of a thread; without `surface` the thread; without both everything."""
        if thread is None:
            self._threads.clear()
            self._size = 0
            return
        known = self._threads.get(thread)
        if known is None:
            return
        _, size = ((), known.size) if surface is None else known.surfaces.pop(surface, ((), 0))
        known.size -= size
        self._size -= size
        if surface is None or not known.surfaces:
            del self._threads[thread]


def check_bounds(owner: str, **bounds: int) -> None:
    """Check that bounds are integers of at least 1.

    Raises:
        ConfigurationError: One is not.
    """
    for name, value in bounds.items():
        if type(value) is not int or value < 1:
            raise ConfigurationError(f"{owner}({name}={value!r}): must be an integer of at least 1")


def _size_of(records: Sequence[Record]) -> int:
    return sum(int(record.get("size", 0)) for record in records)
