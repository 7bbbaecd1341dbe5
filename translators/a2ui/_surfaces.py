"""Surfaces across runs: those of a thread, and a registry of threads that is bounded in every direction.

Knows what is remembered for how long. Does not know what messages do to a surface (`_surface.py`), nor what is
emitted when (`_activity.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators.a2ui._envelope import Envelope
from agui_pipeline.translators.a2ui._surface import Surface


class ThreadSurfaces:
    """The surfaces of one thread, least recently used first.

    Attributes:
        size: Characters of JSON kept, roughly.
    """

    __slots__ = ("_max_messages", "_max_surfaces", "_surfaces", "size")

    def __init__(self, max_surfaces: int, max_messages: int) -> None:
        self._surfaces: OrderedDict[str, Surface] = OrderedDict()
        self._max_surfaces = max_surfaces
        self._max_messages = max_messages
        self.size = 0

    def get(self, surface_id: str) -> Surface | None:
        """Return a surface if it is known."""
        return self._surfaces.get(surface_id)

    def open(self, surface_id: str, *, flat: bool) -> tuple[Surface, str | None]:
        """Return a surface, known or new, and which other one was forgotten to make room for it."""
        surface = self._surfaces.get(surface_id)
        if surface is not None:
            self._surfaces.move_to_end(surface_id)
            return surface, None
        surface = self._surfaces[surface_id] = Surface(flat=flat)
        return surface, self.forget_oldest() if len(self._surfaces) > self._max_surfaces else None

    def apply(self, surface: Surface, envelope: Envelope, run: object) -> tuple[bool, int]:
        """Apply a message to one of these surfaces; see `Surface.apply`."""
        before = surface.size
        changed, forgotten = surface.apply(envelope, run, self._max_messages)
        self.size += surface.size - before
        return changed, forgotten

    def remove(self, surface_id: str) -> None:
        """Forget a surface."""
        surface = self._surfaces.pop(surface_id, None)
        if surface is not None:
            self.size -= surface.size

    def forget_oldest(self) -> str | None:
        """Forget the least recently used surface; return its id, None where there is none."""
        surface_id = next(iter(self._surfaces), None)
        if surface_id is not None:
            self.remove(surface_id)
        return surface_id

    def new_activity_id(self, surface_id: str, message_id: str | None, *, first: bool) -> str:
        """Return an id for the activity of a surface that a text message created.

        Args:
            surface_id: The surface.
            message_id: The text message; None where it had no id.
            first: Whether no other surface was created by this message before. Those after the first append their
                own id.
        """
        taken = {surface.activity_id for surface in self._surfaces.values()}
        name = f"a2ui-surface-{surface_id if message_id is None else message_id}"
        while name in taken or not first:
            name = f"{name}-{surface_id}"
            first = True
        return name


def by_thread(input: RunAgentInput) -> str:
    """Return the thread id: the default `key` of what lasts across runs."""
    return input.thread_id


class SurfaceRegistry:
    """Remembers surfaces across the runs of a thread, in memory and within bounds.

    The least recently used is forgotten first. A forgotten surface can be updated no more; create it anew. One
    registry may serve several middleware, and any number of runs at once.

    Args:
        key: Which runs share surfaces. Default: those of one thread id. Where threads of different users may have
            the same id, put the user in it.
        max_threads: Threads remembered.
        max_surfaces: Surfaces remembered of a thread.
        max_messages: Messages that may rebuild a surface. Components come to one message however many there were;
            of data messages the oldest are forgotten.
        max_bytes: Characters of JSON remembered over all threads, roughly; the Python objects take a few times that.

    Raises:
        ConfigurationError: `key` is not callable, or a bound is no integer of at least 1.
    """

    def __init__(
        self,
        *,
        key: Callable[[RunAgentInput], str] = by_thread,
        max_threads: int = 1024,
        max_surfaces: int = 64,
        max_messages: int = 512,
        max_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        if not callable(key):
            raise ConfigurationError(f"SurfaceRegistry(key={key!r}): must be a callable (RunAgentInput) -> str")
        bounds = {
            "max_threads": max_threads,
            "max_surfaces": max_surfaces,
            "max_messages": max_messages,
            "max_bytes": max_bytes,
        }
        for name, value in bounds.items():
            if type(value) is not int or value < 1:
                raise ConfigurationError(f"SurfaceRegistry({name}={value!r}): must be an integer of at least 1")
        self.key: Final = key
        self._max_threads = max_threads
        self._max_surfaces = max_surfaces
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._threads: OrderedDict[str, ThreadSurfaces] = OrderedDict()

    def thread(self, key: str) -> ThreadSurfaces:
        """Return the surfaces of a thread, for a run of it. Forgets other threads where bounds are passed."""
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = ThreadSurfaces(self._max_surfaces, self._max_messages)
        self._threads.move_to_end(key)
        while len(self._threads) > self._max_threads:
            self._threads.popitem(last=False)
        total = sum(known.size for known in self._threads.values())
        while total > self._max_bytes and len(self._threads) > 1:
            total -= self._threads.popitem(last=False)[1].size
        while thread.size > self._max_bytes and thread.forget_oldest() is not None:
            pass
        return thread

    def messages_for(self, thread: str, surface: str) -> tuple[Mapping[str, Any], ...]:
        """Return the messages that rebuild a surface: created, all its components, its data. Empty where unknown.

        Args:
            thread: What `key` returned for its runs: the thread id by default.
            surface: The surface id.
        """
        known = self._threads.get(thread)
        found = None if known is None else known.get(surface)
        return () if found is None else tuple(found.operations())

    def clear(self, thread: str | None = None) -> None:
        """Forget the surfaces of a thread (what `key` returned for it), or all."""
        if thread is None:
            self._threads.clear()
        else:
            self._threads.pop(thread, None)
