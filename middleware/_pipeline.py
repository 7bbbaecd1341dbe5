"""A source and the stages around it, as one source."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from itertools import pairwise
from typing import Any, cast

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._chain import Chain
from agui_pipeline.middleware._channel import ChannelSource
from agui_pipeline.middleware._drive import drive, drive_queue, ended
from agui_pipeline.middleware._intake import EVENT_TYPES, Intake
from agui_pipeline.middleware._segment import Segment, raise_closing
from agui_pipeline.middleware._source import async_iterator, check_middleware, opener_of
from agui_pipeline.middleware._translator import Stage, StrangeFrames, TranslatorMiddleware
from agui_pipeline.middleware._types import Source
from agui_pipeline.translators import ConfigurationError, Event, SSEFrame


class Pipeline:
    """A source with middleware around it; itself a source, that may be called any number of times, also at once.

    Order: as in a Unix pipe, in the order in which events meet the stages. The first middleware is nearest the
    source, the last nearest the client; inputs travel the other way. That is the reverse of Starlette's list.

    Guarantees:
        - Lazy: nothing runs before the first event is asked for. Each call is a run of its own.
        - Events leave in the order in which the last stage gave them; nothing is dropped, merged or reordered here.
        - Leaving early closes the source: after ``open()`` exits, or ``aclose()`` of the iterator returns, every
          `finally` of the source and of the stages has run, outermost first.
        - What a source or a stage raises leaves as itself, after what later stages hold was delivered.
          On cancellation nothing more is delivered.
        - Up to 64 events are read ahead of the reader, and only where a stage holds events for a time.

    Args:
        source: Whatever `as_source` takes.
        *middleware: Async generator functions ``(input, next)`` and middleware objects. An object that is needed in
            some runs only may have a method ``stand_aside(input)``: it returns the input to hand on where the run needs
            nothing else of it, so that its neighbours share one driver, and None where it is to be called.

    Raises:
        ConfigurationError: The source is none, a middleware is none, or one comes after a stage that leaves AG-UI; says
            what was got.

    Example:
        >>> import asyncio
        >>> from agui_pipeline.translators import replace, run_input
        >>> async def agent(input):
        ...     yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hello"}
        >>> async def shout(input, next):
        ...     async for event in next(input):
        ...         yield replace(event, delta=event.delta.upper())
        >>> async def main():
        ...     async with Pipeline(agent, shout).open(run_input("hi")) as events:
        ...         return [event.delta async for event in events]
        >>> asyncio.run(main())
        ['HELLO']
    """

    source: Callable[[RunAgentInput], AsyncIterator[Any]]
    """Opens the source's own iterator."""

    _channels: ChannelSource | None
    _members: tuple[Stage, ...]

    def __init__(self, source: Any, *middleware: Stage) -> None:
        members: tuple[Stage, ...] = middleware
        if type(source) is Pipeline:  # the same as one longer chain, in which more neighbours meet
            self.source, self._channels = source.source, source._channels  # noqa: SLF001 - of this class
            members = (*source._members, *middleware)  # noqa: SLF001
        else:
            self.source = opener_of(source)
            self._channels = source if isinstance(source, ChannelSource) else None
        for stage in middleware:
            check_middleware(stage)
        _check_last(members)
        self._members = members

    def __call__(self, input: RunAgentInput) -> AsyncGenerator[Event, None]:
        """Start a run: an async generator of its events.

        Where the reader may leave before the end, close the generator, or use `open`, which does.
        """
        return cast("AsyncGenerator[Event, None]", self._run(input))

    run = __call__

    def open(self, input: RunAgentInput) -> AbstractAsyncContextManager[AsyncGenerator[Event, None]]:
        """Start a run as a context manager, at whose exit the source is closed, however the block was left."""
        return aclosing(self(input))

    async def _run(self, input: RunAgentInput) -> AsyncGenerator[Any, None]:
        segment = Segment()
        intake = Intake()
        error: BaseException | None = None
        try:
            async for item in self.start(input, segment)[0]:
                # Frames are what a stage made that leaves AG-UI.
                if type(item) in EVENT_TYPES or (self._members and type(item) is SSEFrame):
                    yield item
                else:
                    for event in intake.take(item):
                        yield event
            for event in intake.flush():
                yield event
        except BaseException as exc:
            error = exc
            raise
        finally:
            raise_closing(await segment.close(), error)

    def around(self, source: Any) -> Pipeline:
        """Return the same stages around another source, without checking them again."""
        other = object.__new__(Pipeline)
        other.source = source
        other._channels = source if isinstance(source, ChannelSource) else None
        other._members = self._members
        return other

    def admit(self, input: RunAgentInput) -> None:
        """Ask the stages whether they would start a run with this input, nearest the client first.

        Adapters ask before they answer, so that a refusal is an answer of its own and no broken stream.

        Raises:
            DecodeError: A stage refuses it.
            LimitError: A stage refuses it for its size.
        """
        for stage in reversed(self._members):
            admit = getattr(stage, "admit", None)
            if admit is not None:
                admit(input)

    @property
    def protects(self) -> bool:
        """Whether a stage must see every request: then what cannot be read may not pass by the chain."""
        return any(getattr(stage, "protects", False) for stage in self._members)

    @property
    def strange_frames(self) -> StrangeFrames:
        """What becomes of a frame of a wrapped app whose data is no event: what the strictest stage says."""
        wanted = {stage.strange_frames for stage in self._members if isinstance(stage, TranslatorMiddleware)}
        return "refuse" if "refuse" in wanted else "drop" if "drop" in wanted else "pass"

    def in_band(self, input: RunAgentInput | None) -> TranslatorMiddleware | None:
        """Return the stage whose client learns of failures from the stream only, if there is one."""
        stages = (stage for stage in self._members if isinstance(stage, TranslatorMiddleware))
        return next((stage for stage in stages if stage.fails_in_band(input)), None)

    def start(self, input: RunAgentInput, segment: Segment) -> tuple[AsyncIterator[Any], bool]:
        """Open the last stage; for adapters that close `segment` themselves, in the task that reads.

        Returns:
            What it gives, and whether the whole chain of this run is one driver, which reads the source's channel
            itself.
        """
        chain = Chain(self._members, input)
        if chain.rest or self._channels is None:
            return self._open_chain(chain, segment), False
        return self._drive(chain, segment), True

    def _open_chain(self, chain: Chain, segment: Segment) -> AsyncIterator[Any]:
        """Open what a chain gives, and before it what is left of the stages."""
        if chain.empty and not chain.ended:
            return self._open_apart(chain.rest, chain.input, segment)
        return self._drive(chain, segment)

    def _drive(self, chain: Chain, segment: Segment) -> AsyncIterator[Any]:
        """Open what a chain gives; an empty one gives what is in the source's channel."""
        place = segment.reserve()
        iterator: AsyncIterator[Any]
        if chain.ended:
            iterator = ended(chain)
        elif chain.rest == 0 and self._channels is not None:
            iterator = drive_queue(chain, self._channels.channel(chain.input))
        elif chain.timed:
            iterator = drive_queue(chain, pump=lambda own: self._open_apart(chain.rest, chain.input, own))
        else:
            iterator = drive(chain, lambda: self._open_apart(chain.rest, chain.input, segment))
        segment.fill(place, iterator)
        return iterator

    def _open_apart(self, count: int, input: RunAgentInput, segment: Segment) -> AsyncIterator[Any]:
        """Open the last of the first `count` stages, which is async; or the source, where that is none."""
        place = segment.reserve()
        iterator: AsyncIterator[Any]
        if count == 0:
            iterator = self.source(input)
        else:
            stage = self._members[count - 1]
            name = getattr(stage, "__qualname__", type(stage).__qualname__)
            iterator = async_iterator(stage(input, self._next(count - 1, segment)), f"middleware {name}")
        segment.fill(place, iterator)
        return iterator

    def _next(self, count: int, segment: Segment) -> Source:
        """Return the source that an async stage reads: what the first `count` stages give, as events."""

        def next(input: RunAgentInput) -> AsyncIterator[Event]:
            chain = Chain(self._members[:count], input)
            if chain.rest or not chain.empty or self._channels is not None:
                return self._open_chain(chain, segment)
            place = segment.reserve()
            events = _events(self._open_apart(0, chain.input, segment))
            segment.fill(place, events)
            return events

        return next


def _check_last(stages: Sequence[Stage]) -> None:
    """See that nothing comes after a stage whose output is no AG-UI: it would be handed frames for events."""
    for stage, after in pairwise(stages):
        if getattr(stage, "leaves_agui", False):
            name = getattr(after, "__qualname__", type(after).__qualname__)
            raise ConfigurationError(
                f"{name} comes after {type(stage).__qualname__}, whose output is no AG-UI any more: put that one last"
            )


async def _events(iterator: AsyncIterator[Any]) -> AsyncIterator[Event]:
    """Turn a source's items into events, for a function stage that reads the source itself."""
    intake = Intake()
    async for item in iterator:
        if type(item) in EVENT_TYPES:
            yield item
        else:
            for event in intake.take(item):
                yield cast("Event", event)
    for event in intake.flush():
        yield cast("Event", event)
