"""The sans-IO base classes: a translator is fed events and gives events. It does not know about time, tasks or sockets.

The driver's side of the contract (agui_pipeline.middleware):

- `feed` once an event, in order. The events it gives are passed on in order, before the next `feed`.
- At the end of the source: `flush`, once. On an error of the source: `fail`, once, instead.
- On cancellation, and after a method raised: nothing more is called.
- One translator serves one run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agui_pipeline.translators._events import AnyEvent, Event


class _Ending:
    """What translators of both kinds do when the source ends."""

    def flush(self) -> Iterable[AnyEvent]:
        """Give what is held, at the end of the source. Called once. Default: nothing."""
        return ()

    def fail(self, exc: BaseException) -> tuple[Sequence[AnyEvent], BaseException | None]:
        """Give what is held, and say what becomes of the error of the source.

        Args:
            exc: What the source, or a stage nearer to it, raised.

        Returns:
            The events to pass on, and the exception that the stages after this one shall see: `exc` itself, another,
            or None when it was dealt with, so that they see a plain end. Default: what `flush` gives, then `exc`.
        """
        return tuple(self.flush()), exc


class Translator(_Ending, ABC):
    """A state machine over one run's events that needs no clock.

    Only `feed` must be written. Never mutate an event: `agui_pipeline.translators.replace` makes changed copies.
    """

    @abstractmethod
    def feed(self, event: Event) -> Iterable[AnyEvent]:
        """Take one event; give the events that go on in its place, in order (``(event,)`` leaves it alone)."""


class TimedTranslator(_Ending, ABC):
    """A state machine over one run's events that holds some of them for a while.

    Times are seconds on a monotonic clock that the driver chose; only differences mean something.
    """

    @abstractmethod
    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:
        """Take one event at time `now`; give what goes on, in order.

        A window that is over by `now` must be flushed here: a source that always has something ready never lets the
        driver's timer fire.
        """

    def deadline(self) -> float | None:
        """Say when `expire` wants to be called; None while nothing is held."""
        return None

    def expire(self, now: float) -> Iterable[AnyEvent]:  # noqa: ARG002 - the default holds nothing
        """Give what is due at `now`. Called at or after `deadline`, also when the source is silent."""
        return ()
