"""The interrupts that threads wait with, so that an answer without an id finds its question.

Knows how to remember and to forget in an orderly way. Does not know what an answer looks like (`_resume.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators._keys import by_thread, short_key

_MAX_A_THREAD: Final = 100


@runtime_checkable
class PendingStore(Protocol):
    """Where `LegacyDowngradeMiddleware` keeps interrupts. Called in the event loop, amid runs: must not block.

    Forgetting is allowed: an answer then goes on as the client sent it.
    """

    def key(self, input: RunAgentInput, /) -> str:
        """Return what a run's thread is called here."""
        ...

    def remember(self, key: str, interrupts: Sequence[Mapping[str, Any]], /) -> None:
        """Keep the interrupts that a thread's last finished run left open, in the place of what was; none: forget."""
        ...

    def open(self, key: str, /) -> Sequence[Mapping[str, Any]]:
        """Return the interrupts of a thread, oldest first."""
        ...

    def take(self, key: str, ids: Collection[str] | None = None, /) -> Sequence[Mapping[str, Any]]:
        """Return interrupts of a thread and forget them.

        Args:
            key: The thread.
            ids: Which; None for all.
        """
        ...


class PendingInterrupts:
    """A `PendingStore` in the memory of one process, bounded. Keeps an interrupt's JSON object as it is.

    What is pending is lost when the process ends, and other processes do not see it: with several workers, send a
    thread to the same one, or write a `PendingStore` of your own. Not for use by several operating-system threads at
    once.

    Args:
        max_threads: Threads remembered. Then the one that was used least recently is forgotten. Of one thread the
            last 100 interrupts are kept.
        key: The thread: ``(input) -> str``. Default: the thread id, which clients choose. Where several users share a
            server, put the user in.

    Raises:
        ConfigurationError: An option has a value that it cannot have.

    Example:
        >>> pending = PendingInterrupts()
        >>> pending.remember("thread", [{"id": "i", "reason": "approval"}])
        >>> pending.take("thread"), pending.open("thread")
        (({'id': 'i', 'reason': 'approval'},), ())
    """

    def __init__(self, *, max_threads: int = 10_000, key: Callable[[RunAgentInput], str] = by_thread) -> None:
        if type(max_threads) is not int or max_threads < 1:
            raise ConfigurationError(
                f"PendingInterrupts(max_threads={max_threads!r}): must be an integer of at least 1"
            )
        if not callable(key):
            raise ConfigurationError(f"PendingInterrupts(key={key!r}): must be a callable (RunAgentInput) -> str")
        self._max_threads = max_threads
        self._key = key
        self._threads: OrderedDict[str, tuple[Mapping[str, Any], ...]] = OrderedDict()

    def key(self, input: RunAgentInput, /) -> str:
        """Return what a run's thread is called here."""
        key = self._key(input)
        if not isinstance(key, str):
            raise ConfigurationError(
                f"PendingInterrupts(key={self._key!r}): must return a string; it returned {type(key).__name__}"
            )
        return key

    def remember(self, key: str, interrupts: Sequence[Mapping[str, Any]], /) -> None:
        """Keep the interrupts that a thread's last finished run left open; none: forget the thread."""
        key = short_key(key)
        self._threads.pop(key, None)
        if interrupts:
            self._threads[key] = tuple(interrupts)[-_MAX_A_THREAD:]
            if len(self._threads) > self._max_threads:
                self._threads.popitem(last=False)

    def open(self, key: str, /) -> tuple[Mapping[str, Any], ...]:
        """Return the interrupts of a thread, oldest first."""
        key = short_key(key)
        if key in self._threads:
            self._threads.move_to_end(key)
        return self._threads.get(key, ())

    def take(self, key: str, ids: Collection[str] | None = None, /) -> tuple[Mapping[str, Any], ...]:
        """Return interrupts of a thread, all or those of some ids, and forget them."""
        known = self.open(key)
        taken = tuple(one for one in known if ids is None or one.get("id") in ids)
        self.remember(key, [one for one in known if one not in taken])
        return taken

    def clear(self, key: str | None = None) -> None:
        """Forget one thread, or all."""
        if key is None:
            self._threads.clear()
        else:
            self._threads.pop(short_key(key), None)
