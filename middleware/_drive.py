"""Drivers: reading a source, feeding a chain of translators, giving what comes out.

Two of them. `drive` reads the source directly, in the reader's own task. `drive_queue` reads a channel and keeps
the chain's deadlines; a pump or an adapter writes the channel. Neither yields inside a cancel scope, and neither
ever cancels a pending ``__anext__``.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from agui_pipeline.middleware._chain import Chain
from agui_pipeline.middleware._channel import Channel, in_trio
from agui_pipeline.middleware._intake import EVENT_TYPES, Intake
from agui_pipeline.middleware._pump import Pump
from agui_pipeline.middleware._segment import Segment, raise_closing
from agui_pipeline.translators import AnyEvent, SSEFrame


async def ended(chain: Chain) -> AsyncIterator[AnyEvent]:
    """Give the last events of a chain that ended before it began."""
    for event in chain.last:
        yield event
    if chain.error is not None:
        raise chain.error


async def drive(chain: Chain, open_source: Callable[[], AsyncIterator[Any]]) -> AsyncIterator[AnyEvent]:
    """Feed a chain that holds nothing for a time.

    Args:
        chain: The translators of one run.
        open_source: Opens what the chain reads. Called here, since what it raises concerns the chain, too.
    """
    intake = Intake()
    asked = cancellations()
    error: BaseException | None = None
    step: Callable[[], Awaitable[Any]] | None = None
    feed = chain.feed
    while not chain.ended:
        # The try does not span the yield: what a reader throws in is no error of the source.
        try:
            if step is None:
                step = open_source().__anext__
            item = await step()
        except StopAsyncIteration:
            break
        except (Exception, asyncio.CancelledError) as exc:
            if cancellations() > asked:  # the reader's, or what the source made of it: nothing more is delivered
                raise
            error = exc  # the source's own
            break
        if type(item) in EVENT_TYPES:
            for out in feed(item, 0.0):
                yield out
            continue
        events, error = _taken(intake, item)
        for event in events:
            for out in feed(event, 0.0):
                yield out
            if chain.ended:
                break
        if error is not None:
            break
    for out in _last(chain, intake, error, 0.0):
        yield out
    if chain.error is not None:
        raise chain.error


async def drive_queue(  # noqa: C901, PLR0912, PLR0915 - the hot loop: every call taken out of it is paid an event
    chain: Chain, channel: Channel | None = None, *, pump: Callable[[Segment], AsyncIterator[Any]] | None = None
) -> AsyncIterator[AnyEvent]:
    """Feed a chain from a channel and keep its deadlines.

    Args:
        chain: The translators of one run.
        channel: A channel that somebody else writes. Or:
        pump: Opens the source, which is then read in a task of its own; that task has ended when this generator has.
    """
    pumping = None if pump is None else Pump(pump)  # here: a generator that is never started opens nothing
    channel = pumping.channel if pumping is not None else channel
    assert channel is not None  # noqa: S101 - one of the two is given
    intake = Intake()
    channel.chain = chain
    items = channel.items
    feed = chain.feed
    timed = chain.timed
    now = 0.0
    error: BaseException | None = None
    leaving: BaseException | None = None
    try:
        while not chain.ended and error is None:
            if items:
                if timed:
                    now = channel.time()  # once a batch
                for _ in range(len(items)):
                    item = items.popleft()
                    if type(item) in EVENT_TYPES:
                        for out in feed(item, now):
                            yield out
                    elif channel.aside is not None and type(item) is SSEFrame:
                        channel.aside(item)
                        continue
                    else:
                        events, error = _taken(intake, item)
                        for event in events:
                            for out in feed(event, now):
                                yield out
                            if chain.ended:
                                break
                        if error is not None:
                            break
                    if chain.ended:
                        break
                channel.took()
                continue
            if channel.ended:
                error = channel.error
                break
            deadline = chain.deadline() if timed else None
            if deadline is not None:
                now = channel.time()
                if deadline <= now:
                    for out in chain.expire(now):
                        yield out
                    continue
            await channel.wait(deadline)
        for out in _last(chain, intake, error, channel.time() if timed else 0.0):
            yield out
        if chain.error is not None:
            raise chain.error
    except BaseException as exc:
        leaving = exc
        raise
    finally:
        channel.chain = None
        if pumping is not None:
            closing = await pumping.stop()
            if closing is not error:  # else the stages have had it, and may have dealt with it
                raise_closing(closing, leaving)
        else:
            channel.close()


def _taken(intake: Intake, item: Any) -> tuple[list[AnyEvent], Exception | None]:
    """Return the events in an item, and what came after them if that is no event."""
    events: list[AnyEvent] = []
    try:
        events.extend(intake.take(item))
    except Exception as exc:  # noqa: BLE001 - to be raised after those events and what is held
        return events, exc
    return events, None


def _last(chain: Chain, intake: Intake, error: BaseException | None, now: float) -> list[AnyEvent]:
    """End the chain, unless one of its stages already did."""
    out: list[AnyEvent] = []
    if error is None and not chain.ended:
        events: list[AnyEvent] = []
        try:
            events.extend(intake.flush())
        except Exception as exc:  # noqa: BLE001 - raised after what is held
            error = exc
        for event in events:
            out.extend(chain.feed(event, now))
            if chain.ended:
                break
    if not chain.ended:
        out.extend(chain.end(error, now))
    return out


def cancellations() -> int:
    """How often the current task was asked to cancel; tells a cancellation of ours from one a source raised itself."""
    if in_trio():
        # There it is a state, not a count.
        return int(sys.modules["trio"].current_effective_deadline() == -math.inf)
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
