"""Anything that can be asked for a run's events, as a `Source`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._types import Source
from agui_pipeline.translators import ConfigurationError, SourceError

_WANTED = (
    "a source is an async generator function (input), a function that returns an async iterator, an object with "
    "run(input), or a list or tuple of events"
)


def as_source(source: Any) -> Source:
    """Return a `Source` for whatever can give a run's events.

    Args:
        source: An async generator function, a function that returns an async iterator, an object with ``run(input)``
            (a LangGraphAgent, an ADKAgent, a `Pipeline`), or a list or tuple to be replayed. Items may be
            `ag_ui.core` models, mappings, JSON, or SSE text (cut anywhere).

    Returns:
        A callable that may be called any number of times, each time for a run of its own. An item that is no event
        raises `SourceError` from the iterator.

    Raises:
        ConfigurationError: It is none of these; says what was got.
    """
    from agui_pipeline.middleware._pipeline import Pipeline  # noqa: PLC0415 - a pipeline opens its source with this module

    return Pipeline(source)


def opener_of(source: Any) -> Callable[[RunAgentInput], AsyncIterator[Any]]:
    """Return the function that opens a source's own iterator, whose items are still as the source yields them."""
    if isinstance(source, list | tuple):
        return _replay(tuple(source))
    if inspect.isclass(source):
        raise ConfigurationError(f"source={source.__name__} is a class: give an instance; {_WANTED}")
    if isinstance(source, str | bytes | bytearray):
        raise ConfigurationError(f"source is {type(source).__name__}; {_WANTED} (one item may be SSE text: [text])")
    if hasattr(source, "__aiter__") or hasattr(source, "__next__") or inspect.iscoroutine(source):
        raise ConfigurationError(
            f"source is a one-shot {type(source).__name__}, good for one run only: give the function that makes it"
        )
    run = getattr(source, "run", None)
    function = run if callable(run) and not inspect.isfunction(source) else source
    if not callable(function):
        raise ConfigurationError(f"source is {type(source).__name__}; {_WANTED}")
    name = getattr(source, "__qualname__", type(source).__qualname__)
    call = function if inspect.isroutine(function) else type(function).__call__
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        if _takes_asgi(call):
            raise ConfigurationError(f"source {name} is an ASGI app: put AGUIMiddleware around it; {_WANTED}")
        raise ConfigurationError(f"source {name} is a coroutine function without yield; {_WANTED}")
    if inspect.isgeneratorfunction(function):
        raise ConfigurationError(f"source {name} is a synchronous generator function; {_WANTED}")
    _check_takes(function, 1, f"source {name} must take one argument, the RunAgentInput")

    def opened(input: RunAgentInput) -> AsyncIterator[Any]:
        return async_iterator(function(input), f"source {name}")

    return opened


def async_iterator(value: Any, who: str) -> AsyncIterator[Any]:
    """Return the iterator of what a source or stage returned.

    Raises:
        SourceError: It returned something that cannot be iterated asynchronously.
    """
    if hasattr(value, "__aiter__"):
        return cast("AsyncIterator[Any]", aiter(value))
    close = getattr(value, "close", None)
    if inspect.iscoroutine(value) and close is not None:
        close()  # or Python warns that it was never awaited
    raise SourceError(f"{who} must return an async iterator; it returned {type(value).__name__}")


def _check_takes(function: Callable[..., Any], count: int, problem: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in C: nothing to look at
        return
    try:
        signature.bind(*range(count))
    except TypeError as exc:
        raise ConfigurationError(f"{problem} ({exc})") from None


def _takes_asgi(function: Callable[..., Any]) -> bool:
    try:
        return [*inspect.signature(function).parameters][-3:] == ["scope", "receive", "send"]
    except (TypeError, ValueError):
        return False


def check_middleware(stage: Any) -> None:
    """Check what can be checked of a middleware before its first run.

    Raises:
        ConfigurationError: It is none; says what was got.
    """
    wanted = "a middleware is an async generator function (input, next) or an object of a middleware class"
    if inspect.isclass(stage):
        raise ConfigurationError(
            f"middleware {stage.__name__} is a class: give an instance, {stage.__name__}(); {wanted}"
        )
    if not callable(stage):
        hint = " (unpack it: *chain)" if isinstance(stage, list | tuple) else ""
        raise ConfigurationError(f"middleware is {type(stage).__name__}{hint}; {wanted}")
    name = getattr(stage, "__qualname__", type(stage).__qualname__)
    call = stage if inspect.isroutine(stage) else type(stage).__call__
    if inspect.iscoroutinefunction(call):
        raise ConfigurationError(f"middleware {name} is a coroutine function without yield; {wanted}")
    if inspect.isgeneratorfunction(call):
        raise ConfigurationError(f"middleware {name} is a synchronous generator function; {wanted}")
    _check_takes(stage, 2, f"middleware {name} must take two arguments, (input, next)")


def _replay(items: Sequence[Any]) -> Callable[[RunAgentInput], AsyncIterator[Any]]:
    async def replay(_input: RunAgentInput) -> AsyncIterator[Any]:
        for item in items:
            yield item

    return replay
