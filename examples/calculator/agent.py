"""A scripted agent that answers with a calculator, written as A2UI JSON Lines in its assistant text.

It stands in for a language model that was told to write A2UI: same events, same small deltas, no key and no network. It
remembers nothing between runs. What its form sends it reads with `parse_client_message`, whichever way it came; of the
middleware that carries its interface to the page it has never heard.
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

from agui_pipeline.translators import DecodeError, LimitError
from agui_pipeline.translators.a2ui_client import parse_client_message
from examples.calculator.arithmetic import calculate
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
    try:
        message = parse_client_message(input)
    except (DecodeError, LimitError) as problem:
        return answer(version, SURFACE, f"The page sent something odd: {_cut(str(problem))}")
    if message is None:
        # A surface that exists is not created again: v0.9 renderers refuse that. Each request gets a form of its own.
        asked = sum(message.role == "user" for message in input.messages)
        return form(version, SURFACE if asked <= 1 else f"{SURFACE}-{asked}")
    context = message.context
    if message.error is not None:
        words = message.error.get("message") or message.error.get("code") or "no details"
        text = f"The page reported a problem: {_cut(str(words))}"
    elif message.name != ACTION:
        text = f"This calculator has no action called “{_cut(str(message.name))}”."
    else:
        text = calculate(context.get("a"), context.get("b"), context.get("operation"))
    return answer(version, message.surface_id or SURFACE, text)


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
