"""Testing agents and the middleware around them, without a network, a key or a clock of one's own.

`ScriptedAgent` is a source made of a script, `collect` is a client that reads a run to its end, `run_asgi` is a server
and its client around an ASGI app. All three run on asyncio and on trio, and none patches anything.
`assert_valid_stream` says of a stream, however it was got, what the official client would refuse in it. Knows nothing
of any test framework.
"""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import anyio
from ag_ui.core import RunAgentInput
from pydantic.alias_generators import to_camel

from agui_pipeline.adapters._run_asgi import ASGIResponse, run_asgi
from agui_pipeline.middleware import Pipeline, Source, as_source
from agui_pipeline.middleware._options import check_number
from agui_pipeline.translators import ConfigurationError, Diagnostic, Event, SSEFrame, run_input
from agui_pipeline.translators._client_view import ClientView
from agui_pipeline.translators._verifier import assert_valid_stream

__all__ = [
    "ASGIResponse",
    "Collected",
    "Message",
    "Pause",
    "ScriptedAgent",
    "assert_valid_stream",
    "collect",
    "pause",
    "run_asgi",
]


@dataclass(frozen=True, slots=True)
class Pause:
    """A place in a script where the agent waits. Made by `pause`."""

    seconds: float


def pause(seconds: float) -> Pause:
    """Let a `ScriptedAgent` wait at this place of its script.

    Args:
        seconds: How long; 0 is one turn of the event loop, ``math.inf`` for ever (until cancelled).

    Raises:
        ConfigurationError: Not a number of seconds.
    """
    if seconds != math.inf:
        check_number("seconds", seconds, unit="a number of seconds")
    return Pause(seconds)


class ScriptedAgent:
    """A source that plays a script: the same one each run, any number of runs at once.

    The script's items, in order:

    - an event (model, mapping, JSON, SSE text; anything else, too, for tests of what is no event): yielded as it is;
    - `pause`: waits;
    - an exception, instance or class: raised, as itself;
    - a callable ``(input)``: called; what it returns is played in its place: an item, a list, tuple or generator of
      items, None for none, or an awaitable of these (so an async function may wait for something).

    Without pauses it never suspends: a source that always has its next event ready.

    Args:
        events: The script.
        delay: Seconds to wait before each event.
        raises: An exception to raise at the end of the script.

    Attributes:
        inputs: Every input it was called with.
        started: How many runs have begun; one that nobody reads has not.
        closed: How many of those have ended, in whatever way, their cleanup included.
        sent: What was yielded so far, over all runs.

    Raises:
        ConfigurationError: `delay` is no number of seconds, or the script is text.

    Example:
        >>> import asyncio
        >>> from ag_ui.core import RunStartedEvent
        >>> agent = ScriptedAgent(
        ...     [
        ...         lambda input: RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id),
        ...         {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Hel"},
        ...         pause(0),
        ...         {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "lo"},
        ...         ConnectionError("the model is gone"),
        ...     ]
        ... )
        >>> result = asyncio.run(collect(agent, catch=True))
        >>> result.text, result.exception
        ('Hello', ConnectionError('the model is gone'))
        >>> agent.started, agent.closed
        (1, 1)
    """

    def __init__(
        self, events: Iterable[Any] = (), *, delay: float = 0, raises: BaseException | type[BaseException] | None = None
    ) -> None:
        if isinstance(events, str | bytes | Mapping):
            raise ConfigurationError(f"a script is a list of items; got {type(events).__name__}: put it in a list")
        check_number("delay", delay, unit="a number of seconds")
        self._script: tuple[Any, ...] = (*events, *(() if raises is None else (raises,)))
        self._delay = delay
        self.inputs: list[RunAgentInput] = []
        self.started = 0
        self.closed = 0
        self.sent: list[Any] = []

    @property
    def running(self) -> int:
        """How many runs have begun and not ended."""
        return self.started - self.closed

    def __call__(self, input: RunAgentInput) -> AsyncGenerator[Any, None]:
        """Start a run. Nothing happens before its first event is asked for."""
        self.inputs.append(input)
        return self._play(input)

    run = __call__

    async def _play(self, input: RunAgentInput) -> AsyncGenerator[Any, None]:
        self.started += 1
        todo = deque(self._script)
        try:
            while todo:
                item = todo.popleft()
                if isinstance(item, Pause):
                    await (anyio.sleep_forever() if item.seconds == math.inf else anyio.sleep(item.seconds))
                elif isinstance(item, BaseException):
                    # The same object each run: without this its traceback would grow by one run each time.
                    raise item.with_traceback(None)
                elif inspect.isclass(item) and issubclass(item, BaseException):
                    raise item
                elif callable(item) and not inspect.isclass(item):
                    given = item(input)
                    if inspect.isawaitable(given):
                        given = await given
                    todo.extendleft(reversed(_items(given)))
                else:
                    if self._delay:
                        await anyio.sleep(self._delay)
                    self.sent.append(item)
                    yield item
        finally:
            self.closed += 1


def _items(given: Any) -> list[Any]:
    """Return what a callable of a script gave as a list. Models are iterable and frames are tuples, but one item."""
    if given is None:
        return []
    return list(given) if type(given) in (list, tuple) or isinstance(given, Iterator) else [given]


class Message(dict[str, Any]):
    """A message as the client has it: JSON, whose fields are attributes, too, in snake_case; None where absent.

    Example:
        >>> message = Message({"id": "m", "toolCalls": [{"id": "c", "function": {"name": "add"}}]})
        >>> message.tool_calls[0].function.name, message.content, message["id"]
        ('add', None, 'm')
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__({name: _with_attributes(value) for name, value in fields.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name] if name in self else self.get(to_camel(name))

    def __copy__(self) -> Self:
        return type(self)(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self)


def _with_attributes(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Message(value)
    return [_with_attributes(item) for item in value] if isinstance(value, list) else value


@dataclass(slots=True)
class Collected:
    """A run as its client saw it. See `collect`.

    Attributes:
        events: All events, in order.
        messages: The conversation that the client has after the run, the input's messages included.
        new_messages: Those that the input did not have.
        state: The shared state that the client has after the run.
        outcome: How the run ended: ``"success"``, ``"interrupt"``, ``"cancelled"``, ``"error"``; None when no
            terminal event came.
        error: The RUN_ERROR event where it ended in one.
        result: RUN_FINISHED's `result`.
        interrupts: The interrupts that wait for an answer.
        diagnostics: What the client would have warned about: patches that do not apply, content of unknown messages.
        exception: What the source raised, with ``catch=True``.
    """

    events: list[Any] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    new_messages: list[Message] = field(default_factory=list)
    state: Any = None
    outcome: str | None = None
    error: Event | None = None
    result: Any = None
    interrupts: list[Message] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    exception: Exception | None = None

    @property
    def types(self) -> list[str]:
        """The types of the events, as plain strings. Frames of other dialects count as their event's name."""
        return [event.event or "" if isinstance(event, SSEFrame) else str.__str__(event.type) for event in self.events]

    @property
    def text(self) -> str:
        """What the assistant said in this run, messages joined."""
        return "".join(message.content or "" for message in self.new_messages if message.role == "assistant")


def _source(events: Any) -> Source:
    """Return a source for what `collect` takes; one for events that are there already is good for one call."""
    if isinstance(events, Pipeline):
        return events  # as it is: the frames of one that leaves AG-UI are no events to decode
    if hasattr(events, "__aiter__"):
        return as_source(lambda _input: events)
    return as_source(list(events) if isinstance(events, Iterator) else events)


async def collect(events: Any, input: RunAgentInput | None = None, *, catch: bool = False) -> Collected:
    """Read a run to its end and say what the client has then.

    The events are applied as `@ag-ui/client` 1.0 does: text, tool calls and reasoning are put together from their
    parts or chunks, a TOOL_CALL_RESULT makes its own message, patches apply as a whole or are skipped, a
    MESSAGES_SNAPSHOT is reconciled by id. Whether the stream is legal is not checked: `assert_valid_stream` does that.

    Args:
        events: A source (a `Pipeline`, an agent, whatever `agui_pipeline.middleware.as_source` takes), which is called
            with `input`; or the events themselves: an async iterator, which is read and closed, or a list.
        input: The run's input: what the source gets, and what the client has before the run. Default: an input
            without messages, with an id of its own.
        catch: Keep an exception of the source in the result, with the events before it, instead of raising it.

    Raises:
        Exception: What the source raised, as itself, unless `catch`.
        ConfigurationError: `events` is neither a source nor events.

    Example:
        >>> import asyncio
        >>> result = asyncio.run(
        ...     collect(
        ...         [
        ...             {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
        ...             {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]},
        ...             {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
        ...         ]
        ...     )
        ... )
        >>> result.state, result.outcome, result.types
        ({'n': 2}, 'success', ['STATE_SNAPSHOT', 'STATE_DELTA', 'RUN_FINISHED'])
    """
    given = run_input() if input is None else input
    result = Collected()
    view = ClientView(given.messages, given.state, result.diagnostics.append)
    before = {message["id"] for message in view.messages}
    try:
        async for event in _source(events)(given):
            result.events.append(event)
            if not isinstance(event, SSEFrame):
                view.apply(event)
    except Exception as exc:
        if not catch:
            raise
        result.exception = exc
    result.messages = [Message(message) for message in view.messages]
    result.new_messages = [message for message in result.messages if message.id not in before]
    result.state = view.state
    result.outcome = view.outcome
    result.result = view.result
    result.interrupts = [_with_attributes(interrupt) for interrupt in view.interrupts]
    if view.error is not None:
        result.error = next(event for event in reversed(result.events) if event.type == "RUN_ERROR")
    return result
