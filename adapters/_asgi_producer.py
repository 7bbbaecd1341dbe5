"""What fills a run's channel: a producer in a task of its own, how it is ended, and how a stage reads it.

Knows tasks and channels; does not know what a producer calls (a wrapped app, a source), nor about the client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from typing import Any, cast

import anyio
from ag_ui.core import RunAgentInput
from starlette.types import Message

from agui_pipeline.middleware._channel import Channel
from agui_pipeline.middleware._task import Child
from agui_pipeline.translators import SourceError


class StoppedError(SourceError):
    """What wrote a stream ended without completing it."""


class AnsweredError(SourceError):
    """An app answered with an error status, which its client does not look at: it is told in the stream instead."""


class Producer(ABC):
    """Whatever fills a channel with one run's events.

    Attributes:
        complete: Whether all events were written: what still runs is not part of the stream (background tasks).
        stopped: Whether nobody wants more of it: it was cancelled, and may have swallowed that.
        gone: Set when a wrapped app is to hear ``http.disconnect``.
        error: What it raised.
    """

    def __init__(self) -> None:
        self.complete = False
        self.stopped = False
        self.gone = anyio.Event()
        self.error: BaseException | None = None

    @abstractmethod
    async def produce(self, input: RunAgentInput, channel: Channel) -> None:
        """Write the run's events; raise what went wrong."""


class Steps:
    """A coroutine to await, that counts its steps: what it does between two waits is one.

    Only those of the task that awaits it: in one that it starts, everything counts as the same step.
    """

    __slots__ = ("_inner", "number")

    def __init__(self, awaitable: Awaitable[None]) -> None:
        self._inner: Any = awaitable.__await__()
        self.number = 0

    def __await__(self) -> Generator[Any, Any, None]:
        return cast("Generator[Any, Any, None]", self)

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> Any:
        self.number += 1
        return next(self._inner)

    def send(self, value: Any) -> Any:
        """Go on with a value, which no event loop has."""
        self.number += 1
        return self._inner.send(value)

    def throw(self, *exc: Any) -> Any:
        """Go on with an exception, such as a cancellation."""
        self.number += 1
        return self._inner.throw(*exc)

    def close(self) -> None:
        """End it where it stands."""
        self._inner.close()


class Events(AsyncIterator[Any]):
    """A channel as a stage reads it, which may close it before its end: that ends what fills it."""

    __slots__ = ("_channel", "aclose")

    def __init__(self, channel: Channel, aclose: Callable[[], Awaitable[None]]) -> None:
        self._channel = channel
        self.aclose = aclose

    def __anext__(self) -> Awaitable[Any]:
        return self._channel.__anext__()


def stop(producer: Producer, child: Child) -> None:
    """End a producer; its task still has to be joined."""
    producer.stopped = True
    child.cancel()
    producer.gone.set()


async def join_all(children: Iterable[Child]) -> None:
    """Wait for the end of all, also where a cancellation arrives meanwhile; that is raised afterwards."""
    cancelled: BaseException | None = None
    for child in children:
        try:
            await child.join()
        except BaseException as exc:  # noqa: BLE001 - raised below
            cancelled = exc
    if cancelled is not None:
        raise cancelled


async def disconnected(event: anyio.Event) -> Message:
    """Wait for the event and return ``http.disconnect``."""
    if not event.is_set():  # Request.is_disconnected() asks in a cancelled scope, where every wait is cut short
        await event.wait()
    return {"type": "http.disconnect"}
