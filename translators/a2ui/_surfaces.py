"""Surfaces across runs: those of a thread, and a registry of threads that is bounded in every direction.

Knows what is remembered for how long, and what is written to the store when. Does not know what messages do to a
surface (`_surface.py`), what a store is made of (`_store.py`), nor what is emitted when (`_activity.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakValueDictionary

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators._keys import by_thread
from agui_pipeline.translators.a2ui._envelope import Envelope
from agui_pipeline.translators.a2ui._store import MemorySurfaceStore, Record, SurfaceStore, check_bounds
from agui_pipeline.translators.a2ui._surface import Message, Surface

_SLACK_RECORDS: Final = 16
_SLACK_BYTES: Final = 4096


class _Log:
    """What a store has of one surface, and what it has to be told yet."""

    __slots__ = ("count", "pending", "size")

    def __init__(self, count: int, size: int) -> None:
        self.count = count
        self.size = size
        self.pending: list[Record] = []


class ThreadSurfaces:
    """The surfaces of one thread while runs of it are under way, least recently changed first.

    Args:
        key: The thread, for the store.
        store: Where they are kept.
        max_surfaces: Surfaces remembered.
        max_messages: Messages that may rebuild one.

    Attributes:
        size: Characters of JSON kept, roughly.
    """

    __slots__ = ("__weakref__", "_key", "_logs", "_max_messages", "_max_surfaces", "_store", "_surfaces", "size")

    def __init__(self, key: str, store: SurfaceStore, max_surfaces: int, max_messages: int) -> None:
        self._key = key
        self._store = store
        self._max_surfaces = max_surfaces
        self._max_messages = max_messages
        self._surfaces: OrderedDict[str, Surface] = OrderedDict()
        self._logs: dict[str, _Log] = {}
        self.size = 0
        for surface_id, records in store.get(key).items():
            surface = self._surfaces[surface_id] = Surface.replay(records, max_messages)
            self._logs[surface_id] = _Log(len(records), sum(int(record.get("size", 0)) for record in records))
            self.size += surface.size

    def get(self, surface_id: str) -> Surface | None:
        """Return a surface if it is known."""
        return self._surfaces.get(surface_id)

    def created(self) -> tuple[str, ...]:
        """Return the ids of the surfaces that were created, least recently changed first."""
        return tuple(id_ for id_, surface in self._surfaces.items() if surface.create is not None)

    def open(self, surface_id: str, *, generation: str) -> tuple[Surface, str | None]:
        """Return a surface, known or new, and which other one was forgotten to make room for it."""
        surface = self._surfaces.get(surface_id)
        if surface is not None:
            return surface, None
        surface = self._surfaces[surface_id] = Surface(generation)
        return surface, self.forget_oldest() if len(self._surfaces) > self._max_surfaces else None

    def apply(self, surface: Surface, envelope: Envelope, run: object) -> tuple[bool, int]:
        """Apply a message to one of these surfaces; see `Surface.apply`."""
        before = surface.size
        changed, forgotten = surface.apply(envelope, run, self._max_messages)
        self.size += surface.size - before
        self._note(envelope.surface_id or "", {"message": envelope.message, "size": envelope.size})
        return changed, forgotten

    def name_activity(self, surface_id: str, surface: Surface, message_id: str | None, *, first: bool) -> None:
        """Give a surface that a text message or tool call created the id of its activity.

        Args:
            surface_id: The surface.
            surface: The same.
            message_id: The text message or tool call; None where it had no id.
            first: Whether no other surface was created by this message before. Those after the first append their
                own id.
        """
        taken = {other.activity_id for other in self._surfaces.values()}
        name = f"a2ui-surface-{surface_id if message_id is None else message_id}"
        while name in taken or not first:
            name = f"{name}-{surface_id}"
            first = True
        surface.activity_id = name
        self._note(surface_id, {"activity": name})

    def show(self, surface_id: str, surface: Surface, run: object) -> list[Message]:
        """Give the operations of a surface's next snapshot, which a client will be sent."""
        if surface.shown_in is None or not surface.flat:
            self._note(surface_id, {"shown": True})
        surface.shown_in = run
        return surface.snapshot(run)

    def remove(self, surface_id: str) -> None:
        """Forget a surface."""
        surface = self._surfaces.pop(surface_id, None)
        if surface is not None:
            self.size -= surface.size
            if self._logs.pop(surface_id, None) is not None:
                self._store.delete(self._key, surface_id)

    def forget_oldest(self) -> str | None:
        """Forget the least recently changed surface; return its id, None where there is none."""
        surface_id = next(iter(self._surfaces), None)
        if surface_id is not None:
            self.remove(surface_id)
        return surface_id

    def forget_all(self) -> None:
        """Forget every surface; the store has done so."""
        self._surfaces.clear()
        self._logs.clear()
        self.size = 0

    def _note(self, surface_id: str, record: Record) -> None:
        self._surfaces.move_to_end(surface_id)
        log = self._logs.get(surface_id)
        if log is None:
            log = self._logs[surface_id] = _Log(0, 0)
        log.pending.append(record)

    def commit(self, surface_id: str) -> None:
        """Tell the store what became of a surface since the last time."""
        log = self._logs.get(surface_id)
        surface = self._surfaces.get(surface_id)
        if log is None or surface is None or not log.pending:
            return
        count = log.count + len(log.pending)
        size = log.size + sum(int(record.get("size", 0)) for record in log.pending)
        # Folded where it is more than twice what rebuilds the surface: the work stays in proportion to what came.
        longer = count > _SLACK_RECORDS + 2 * surface.messages or size > _SLACK_BYTES + 2 * surface.size
        if log.count == 0 and not longer:
            self._store.replace(self._key, surface_id, log.pending)
        elif longer or not self._store.append(self._key, surface_id, log.pending):
            self._store.replace(self._key, surface_id, [surface.state()])
            count, size = 1, surface.size
        # Only now: what the store raises ends this run, but another one of the thread may go on.
        log.count, log.size, log.pending = count, size, []


class SurfaceRegistry:
    """Remembers surfaces across the runs of a thread, within bounds.

    The least recently changed is forgotten first. A forgotten surface can be updated no more; create it anew. One
    registry may serve several middleware, and any number of runs at once. Runs of a thread that are under way at the
    same time in one process see each other's messages; in several processes with a shared `store`, a run sees what
    was there when its first A2UI message came.

    Args:
        key: Which runs share surfaces. Default: those of one thread id. Where threads of different users may have
            the same id, put the user in it.
        max_threads: Threads remembered, in memory.
        max_surfaces: Surfaces remembered of a thread.
        max_messages: Messages that may rebuild a surface. Components come to one message however many there were;
            of data messages the oldest are forgotten.
        max_bytes: Characters of JSON remembered of a thread and, in memory, over all threads, roughly; the Python
            objects take a few times that.
        store: Where they are kept. Default: a `MemorySurfaceStore` with the bounds above; another store's threads are
            its own to bound.

    Raises:
        ConfigurationError: `key` is not callable, a bound is no integer of at least 1, or `store` lacks a method.
    """

    def __init__(
        self,
        *,
        key: Callable[[RunAgentInput], str] = by_thread,
        max_threads: int = 1024,
        max_surfaces: int = 64,
        max_messages: int = 512,
        max_bytes: int = 64 * 1024 * 1024,
        store: SurfaceStore | None = None,
    ) -> None:
        if not callable(key):
            raise ConfigurationError(f"SurfaceRegistry(key={key!r}): must be a callable (RunAgentInput) -> str")
        check_bounds(
            "SurfaceRegistry",
            max_threads=max_threads,
            max_surfaces=max_surfaces,
            max_messages=max_messages,
            max_bytes=max_bytes,
        )
        if store is None:
            store = MemorySurfaceStore(max_threads=max_threads, max_bytes=max_bytes)
        elif not all(callable(getattr(store, name, None)) for name in ("get", "append", "replace", "delete")):
            raise ConfigurationError(f"SurfaceRegistry(store={store!r}): must have get, append, replace and delete")
        self.key: Final = key
        self._store: Final = store
        self._max_surfaces = max_surfaces
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._live: WeakValueDictionary[str, ThreadSurfaces] = WeakValueDictionary()

    def thread(self, key: str) -> ThreadSurfaces:
        """Return the surfaces of a thread, for a run of it, which must hold on to them. Forgets where bounds say so."""
        thread = self._known(key)
        self._live[key] = thread
        while thread.size > self._max_bytes and thread.forget_oldest() is not None:
            pass
        return thread

    def _known(self, key: str) -> ThreadSurfaces:
        """Return the surfaces of a thread: those of the runs under way, else as the store has them."""
        live = self._live.get(key)
        return live or ThreadSurfaces(key, self._store, self._max_surfaces, self._max_messages)

    def messages_for(self, thread: str, surface: str) -> tuple[Mapping[str, Any], ...]:
        """Return the messages that rebuild a surface: created, all its components, its data. Empty where unknown.

        Args:
            thread: What `key` returned for its runs: the thread id by default.
            surface: The surface id.
        """
        found = self._known(thread).get(surface)
        return () if found is None else tuple(found.operations())

    def surfaces(self, thread: str) -> tuple[str, ...]:
        """Return the ids of a thread's surfaces that were created and not deleted, least recently changed first.

        Args:
            thread: What `key` returned for its runs: the thread id by default.
        """
        return self._known(thread).created()

    def sends_data_model(self, thread: str, surface: str) -> bool:
        """Say whether a surface was created with ``sendDataModel``: only then may a client send its data model.

        Args:
            thread: What `key` returned for its runs: the thread id by default.
            surface: The surface id. False where it is unknown.
        """
        found = self._known(thread).get(surface)
        return found is not None and found.sends_data_model

    def clear(self, thread: str | None = None) -> None:
        """Forget the surfaces of a thread (what `key` returned for it), or all; also those of runs under way."""
        self._store.delete(thread)
        for key, live in list(self._live.items()):
            if thread is None or key == thread:
                live.forget_all()
