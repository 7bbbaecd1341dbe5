"""An agent that is a synchronous generator: it runs in a worker thread, and waits there for its reader.

    uvicorn examples.sync_generator:app

    curl -N localhost:8000/ -H 'content-type: application/json' -d '{"messages": [{"role": "user", "content": "hi"}]}'

`as_source` takes no synchronous generator on purpose: it would block the event loop, and with it every other run, for
as long as it thinks. `in_thread` makes a source of one:

- Backpressure: it goes on only when the next event is asked for. Nothing piles up behind a slow client.
- Closing: when the client leaves, the generator is closed as soon as it reaches its next `yield` (a thread cannot be
  interrupted), and its `finally` runs in a worker thread, too.
- It may move from one thread to another between two events; what must stay in one (a connection of sqlite3) it should
  open with ``check_same_thread=False`` or the like. Context variables that it sets, it keeps.
- A thread is taken for as long as it thinks. anyio has 40 of them for all; `limiter` gives these agents their own.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters.starlette import agent_app
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware

T = TypeVar("T")
_OVER: Final = object()
"""What stands for the end: StopIteration cannot leave a thread."""


def in_thread(
    agent: Callable[[RunAgentInput], Generator[T, None, object]], limiter: anyio.CapacityLimiter | None = None
) -> Callable[[RunAgentInput], AsyncIterator[T]]:
    """Return a source that runs a synchronous generator function in worker threads.

    Args:
        agent: The generator function.
        limiter: How many of these may think at once. Default: anyio's own limit, shared with all else.
    """

    async def source(input: RunAgentInput) -> AsyncIterator[T]:
        context = contextvars.copy_context()
        generator = agent(input)
        lock = threading.Lock()

        def step() -> Any:
            with lock:
                return context.run(next, generator, _OVER)

        def close() -> None:
            with lock:  # a step whose reader was cancelled may still run
                context.run(generator.close)

        try:
            while (event := await anyio.to_thread.run_sync(step, limiter=limiter)) is not _OVER:
                yield event
        finally:
            # Shielded, or a reader that was cancelled would leave the generator open. Outside of the limit, or it
            # would wait for those who think.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(close, limiter=anyio.CapacityLimiter(1))

    return source


def agent(input: RunAgentInput) -> Generator[dict[str, Any], None, None]:
    """Think, blocking, and answer."""
    yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
    for word in ("Slow ", "and ", "steady."):
        time.sleep(0.01)  # a model would be asked here, with a client that knows no async
        yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": "answer", "role": "assistant", "delta": word}
    yield {"type": "RUN_FINISHED", "threadId": input.thread_id, "runId": input.run_id}


# The first stage is nearest the agent, the last nearest the client.
app = agent_app(in_thread(agent), EventThrottleMiddleware(), GuardMiddleware())
