"""What a pipeline and a stage add to an event."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from ag_ui.core import RunAgentInput, TextMessageContentEvent

from agui_pipeline.middleware import (
    A2UIActionMiddleware,
    EventThrottleMiddleware,
    PassThroughMiddleware,
    Pipeline,
    Source,
)
from agui_pipeline.translators import AnyEvent, Event, run_input
from benchmarks._measure import Row, heading, machine

_COUNT = 100_000
_EVENT = TextMessageContentEvent(message_id="m", delta="word ")


async def _agent(_input: RunAgentInput) -> AsyncIterator[AnyEvent]:
    for _ in range(_COUNT):
        yield _EVENT


async def _function(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
    async for event in next(input):
        yield event


def _accept(_event: Event) -> bool:
    return True


async def _cost(source: Any) -> float:
    """Return the least CPU time of an event, in µs."""
    input = run_input("go")
    best = float("inf")
    for _ in range(7):
        before = time.process_time()
        async for _event in source(input):
            pass
        best = min(best, time.process_time() - before)
    return best / _COUNT * 1e6


async def _main() -> None:
    heading(f"stages, µs an event beyond what the bare generator costs ({machine()})")
    bare = await _cost(_agent)
    pipeline = await _cost(Pipeline(_agent))
    print(Row("an async generator, read in a loop (the unit)", bare, "µs"))
    print(Row("a bare pipeline adds", pipeline - bare, "µs", "goal 0.2"))
    one = await _cost(Pipeline(_agent, _function))
    two = await _cost(Pipeline(_agent, _function, _function))
    print(Row("a function stage adds", two - one, "µs", "goal 0.1"))
    passing = [PassThroughMiddleware(_accept, everything=True) for _ in range(3)]
    first = await _cost(Pipeline(_agent, passing[0]))
    third = await _cost(Pipeline(_agent, *passing))
    print(Row("the first fused stage adds (to a bare pipeline)", first - pipeline, "µs"))
    print(Row("a further fused stage adds", (third - first) / 2, "µs", "goal 0.2"))
    aside = await _cost(Pipeline(_agent, passing[0], A2UIActionMiddleware(), passing[1]))
    second = await _cost(Pipeline(_agent, *passing[:2]))
    print(Row("an async stage that stands aside adds", aside - second, "µs", "goal 0.0"))
    throttled = await _cost(Pipeline(_agent, EventThrottleMiddleware()))
    print(Row("a throttle adds (a burst, merged)", throttled - pipeline, "µs"))


def main() -> None:
    """Print the costs."""
    asyncio.run(_main())


if __name__ == "__main__":
    main()
