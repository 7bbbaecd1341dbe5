"""A small family of stages, chains made of them, and the check that a run leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import sniffio
import trio
from ag_ui.core import RunAgentInput

from agui_pipeline.middleware import Pipeline, Source, TranslatorMiddleware
from agui_pipeline.translators import AnyEvent, Event, TimedTranslator, Translator, run_input

INPUT = run_input("hello", thread_id="thread", run_id="run")
HOLD = 0.05
"""Seconds that `Held` holds an event for."""


class OopsError(Exception):
    """What sources and stages of these tests raise."""


class StopError(BaseException):
    """An exception that `except Exception` does not see, such as a test framework's."""


def custom(value: Any) -> dict[str, Any]:
    return {"type": "CUSTOM", "name": "n", "value": value}


def customs(count: int) -> list[dict[str, Any]]:
    return [custom(number) for number in range(1, count + 1)]


def values(events: Iterable[Any]) -> list[Any]:
    return [event.value for event in events]


class Stage(TranslatorMiddleware):
    """A sans-IO stage made of a function that makes its translator."""

    def __init__(
        self,
        make: Callable[[], Translator | TimedTranslator],
        prepare: Callable[[RunAgentInput], RunAgentInput] | None = None,
    ) -> None:
        super().__init__()
        self._make = make
        self._prepare = prepare

    def translator(self, input: RunAgentInput) -> Translator | TimedTranslator:  # noqa: ARG002
        return self._make()

    def prepare(self, input: RunAgentInput) -> RunAgentInput:
        return input if self._prepare is None else self._prepare(input)


class Same(Translator):
    def feed(self, event: Event) -> Iterable[AnyEvent]:
        return (event,)


class Held(TimedTranslator):
    """Holds every event for a while, or to the end."""

    def __init__(self, seconds: float = HOLD) -> None:
        self._seconds = seconds
        self._until: float | None = None
        self._held: list[AnyEvent] = []

    def feed(self, event: Event, now: float) -> Sequence[AnyEvent]:
        due = self.expire(now) if self._until is not None and self._until <= now else ()
        if self._until is None:
            self._until = now + self._seconds
        self._held.append(event)
        return due

    def deadline(self) -> float | None:
        return self._until

    def expire(self, now: float) -> Sequence[AnyEvent]:  # noqa: ARG002
        return self.flush()

    def flush(self) -> Sequence[AnyEvent]:
        held, self._held, self._until = self._held, [], None
        return held


class Prompt(TimedTranslator):
    """Holds nothing, but has a pump before it, which so reads ahead of the reader."""

    def feed(self, event: Event, now: float) -> Iterable[AnyEvent]:  # noqa: ARG002
        return (event,)


class Kept(Translator):
    """Holds every event to the end."""

    def __init__(self) -> None:
        self._held: list[AnyEvent] = []

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        self._held.append(event)
        return ()

    def flush(self) -> Iterable[AnyEvent]:
        return self._held


class Raises(Translator):
    """Lets events pass, and raises at the given one, or at the end."""

    def __init__(self, error: BaseException, at: int | None) -> None:
        self._error = error
        self._left = at

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                raise self._error
        return (event,)

    def flush(self) -> Iterable[AnyEvent]:
        if self._left is None:
            raise self._error
        return ()


async def passing(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
    async for event in next(input):
        yield event


def _same(input: RunAgentInput) -> RunAgentInput:
    return input


class Aside:
    """An async stage that stands aside, in runs of which its function gives an input.

    Attributes:
        calls: How often it was called.
    """

    def __init__(self, stand_aside: Callable[[RunAgentInput], Any] = _same) -> None:
        self.calls = 0
        self.stand_aside = stand_aside

    def __call__(self, input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        self.calls += 1
        return passing(input, next)


CHAINS: dict[str, Callable[[Any], Pipeline]] = {
    "bare": Pipeline,
    "function": lambda source: Pipeline(source, passing),
    "functions": lambda source: Pipeline(source, passing, passing),
    "fused": lambda source: Pipeline(source, Stage(Same), Stage(Same)),
    "timed": lambda source: Pipeline(source, Stage(Held)),
    "fused and timed": lambda source: Pipeline(source, Stage(Same), Stage(Held), Stage(Same)),
    "function, timed": lambda source: Pipeline(source, passing, Stage(Held)),
    "timed, function": lambda source: Pipeline(source, Stage(Held), passing),
    "fused, function, fused": lambda source: Pipeline(source, Stage(Same), passing, Stage(Same)),
    "two pumps": lambda source: Pipeline(source, Stage(Held), passing, Stage(Held)),
    "prompt pump": lambda source: Pipeline(source, Stage(Prompt)),
    "prompt pumps": lambda source: Pipeline(source, Stage(Prompt), passing, Stage(Same), Stage(Prompt)),
    "aside": lambda source: Pipeline(source, Aside()),
    "function, aside": lambda source: Pipeline(source, passing, Aside()),
    "aside, function": lambda source: Pipeline(source, Aside(), passing),
    "fused, aside, timed": lambda source: Pipeline(source, Stage(Same), Aside(), Stage(Held), Aside()),
    "nested": lambda source: Pipeline(Pipeline(source, Stage(Same)).run, passing, Stage(Same)),
    "nested pumps": lambda source: Pipeline(Pipeline(source, Stage(Held), passing).run, Stage(Same), Stage(Held)),
}
"""Every way in which a chain can be put together, around a source."""


def in_asyncio() -> bool:
    return sniffio.current_async_library() == "asyncio"


@contextlib.asynccontextmanager
async def tidy() -> AsyncIterator[None]:
    """Fail where the block leaves a task, a timer, or a complaint that the event loop would log."""
    if not in_asyncio():
        tasks = trio.lowlevel.current_statistics().tasks_living
        yield
        gc.collect(1)  # the young: what is left of the run; a full collection costs more than the run
        after = trio.lowlevel.current_statistics()
        assert after.tasks_living == tasks
        assert after.seconds_to_next_deadline == math.inf
        return
    loop: Any = asyncio.get_running_loop()
    complaints: list[Any] = []
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))
    before = asyncio.all_tasks()
    try:
        yield
        gc.collect(1)  # the young: what is left of the run; a full collection costs more than the run
    finally:
        loop.set_exception_handler(handler)
    assert asyncio.all_tasks() == before
    assert [timer for timer in loop._scheduled if not timer.cancelled()] == []
    assert complaints == []
