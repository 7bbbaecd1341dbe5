"""Which agent an `agent_id` names.

Knows the three ways to say it: one source, a mapping, a resolver. Does not know HTTP but for the refusals.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from agui_pipeline.adapters._superagent_requests import RefusedError
from agui_pipeline.middleware import Middleware, Pipeline, TranslatorMiddleware
from agui_pipeline.translators import ConfigurationError

Resolver: TypeAlias = Callable[[str | None], Any]
"""Called with the `agent_id` of a request, None where it has none; returns a source, or None; may be async."""

_RESOLVER_PARAMETER: Final = "agent_id"


class Agents:
    """The agents that an API serves.

    Args:
        source: A source, which serves every agent id; a mapping of sources by agent id; or a resolver: a coroutine
            function, or a function whose first parameter is called `agent_id`.
        middleware: The chain, for the check of what is known.

    Raises:
        ConfigurationError: One of them is no source, or there are none.
    """

    def __init__(self, source: Any, middleware: tuple[Middleware | TranslatorMiddleware, ...]) -> None:
        self._resolver: Resolver | None = None
        self._agents: Mapping[str, Any] = {}
        self._one: Any = None
        if isinstance(source, Mapping):
            if not source or not all(isinstance(agent_id, str) for agent_id in source):
                raise ConfigurationError("the agents: wanted a mapping of agent ids to sources, with one at least")
            for agent in source.values():
                Pipeline(agent, *middleware)
            self._agents = dict(source)
        elif _is_resolver(source):
            Pipeline([], *middleware)
            self._resolver = source
        else:
            Pipeline(source, *middleware)
            self._one = source

    async def find(self, agent_id: str | None) -> tuple[str | None, Any]:
        """Return an agent's name and its source.

        Args:
            agent_id: What a request names; None for nothing: then it must be clear which is meant.

        Returns:
            The name is the `agent_id`, or that of the only agent; None where nobody said it.

        Raises:
            RefusedError: There is no such agent, or it is not clear which.
        """
        if self._one is not None:
            return agent_id, self._one
        if self._resolver is not None:
            found = self._resolver(agent_id)
            if isinstance(found, Awaitable):
                found = await found
        elif agent_id is None:
            if len(self._agents) > 1:
                raise RefusedError(400, "invalid_request", "agent_id: missing; wanted the name of one of the agents")
            ((agent_id, found),) = self._agents.items()
        else:
            found = self._agents.get(agent_id)
        if found is None:
            named = "" if agent_id is None else f" {agent_id[:100]!r}"
            raise RefusedError(404, "unknown_agent", f"there is no such agent{named}")
        return agent_id, found


def _is_resolver(source: Any) -> bool:
    """Whether a callable is asked for a source by agent id: told by its signature, as a source takes an `input`."""
    if not callable(source) or hasattr(source, "run"):
        return False
    call = source if inspect.isroutine(source) else type(source).__call__
    if inspect.iscoroutinefunction(call):
        return True
    try:
        names = list(inspect.signature(source).parameters)
    except (TypeError, ValueError):  # built in C: nothing to look at
        return False
    return names[:1] == [_RESOLVER_PARAMETER]
