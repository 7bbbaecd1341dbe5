"""A scripted agent that answers with a calculator, written as A2UI JSON Lines in its assistant text.

It stands in for a language model that was told to write A2UI: same events, same small deltas, no key and no network. It
remembers nothing between runs and has never heard of agui_pipeline.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from ag_ui.core import (
    BaseEvent,
    EventType,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from examples.calculator.arithmetic import calculate
from examples.calculator.client_events import find_client_event
from examples.calculator.surfaces import ACTION, Version, answer, form

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Agent", "calculator", "reply"]

Agent: TypeAlias = Callable[[RunAgentInput], AsyncIterator[BaseEvent]]

SURFACE = "calculator"
PAUSE = 0.01  # seconds between two deltas: about as fast as a model writes
_DELTA_SIZES = (5, 9, 4, 12, 7)  # characters; records are cut at changing places, as tokens cut them


def calculator(version: Version = "v0.8", *, pause: float = PAUSE) -> Agent:
    """Make the agent.

    Args:
        version: The A2UI version it writes.
        pause: Seconds between two deltas; 0 for tests.

    Returns:
        An async generator function: one call is one run, from RUN_STARTED to RUN_FINISHED, with one assistant message.
    """

    async def run(input: RunAgentInput) -> AsyncIterator[BaseEvent]:
        thread_id, run_id = input.thread_id, input.run_id
        message_id = f"message-{uuid.uuid4().hex[:12]}"
        yield RunStartedEvent(type=EventType.RUN_STARTED, thread_id=thread_id, run_id=run_id)
        yield TextMessageStartEvent(type=EventType.TEXT_MESSAGE_START, message_id=message_id, role="assistant")
        for delta in _deltas("".join(_line(message) for message in reply(input, version))):
            if pause:
                await anyio.sleep(pause)
            yield TextMessageContentEvent(type=EventType.TEXT_MESSAGE_CONTENT, message_id=message_id, delta=delta)
        yield TextMessageEndEvent(type=EventType.TEXT_MESSAGE_END, message_id=message_id)
        yield RunFinishedEvent(type=EventType.RUN_FINISHED, thread_id=thread_id, run_id=run_id)

    return run


def reply(input: RunAgentInput, version: Version) -> list[dict[str, Any]]:
    """Decide what to answer: a fresh form to a message, a filled result field to what the form sent."""
    event = find_client_event(input)
    if event is None:
        # A surface that exists is not created again: v0.9 renderers refuse that. Each request gets a form of its own.
        asked = sum(message.role == "user" for message in input.messages)
        return form(version, SURFACE if asked <= 1 else f"{SURFACE}-{asked}")
    if event.error is not None:
        text = f"The page reported a problem: {_cut(event.error)}"
    elif event.name != ACTION:
        text = f"This calculator has no action called “{_cut(event.name)}”."
    else:
        text = calculate(event.context.get("a"), event.context.get("b"), event.context.get("operation"))
    return answer(version, event.surface_id or SURFACE, text)


def _line(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n"


def _deltas(text: str) -> Iterator[str]:
    start = 0
    for size in itertools.cycle(_DELTA_SIZES):
        if start >= len(text):
            return
        yield text[start : start + size]
        start += size


def _cut(text: str, limit: int = 120) -> str:
    """Shorten what a client sent before it is shown on a page."""
    return text if len(text) <= limit else text[:limit] + "…"
