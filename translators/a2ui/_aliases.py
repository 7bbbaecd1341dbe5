"""Catalog ids under two names: the agent's and the client's.

A surface says by id which catalog of components it needs, and a client says by id which it has; the same catalog goes
by several (the specification's basic catalog of v0.9 has another id in CopilotKit's renderers). Knows both directions.
Does not know what a catalog holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agui_pipeline.translators._errors import ConfigurationError

# Where a message names a catalog: the message key, and the way to the id below it.
_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "createSurface": ("catalogId",),
    "beginRendering": ("catalogId",),
    "callRendererFunction": ("callFunction", "catalogId"),
}


class CatalogAliases:
    """Maps catalog ids between an agent and its client. An id without alias is the same on both sides.

    Args:
        aliases: The client's id by the agent's. Not followed further: an alias of an alias is none.

    Raises:
        ConfigurationError: `aliases` is no mapping of strings to strings, or an id is empty.

    Example:
        >>> aliases = CatalogAliases({"agent's": "client's"})
        >>> aliases.to_client("agent's"), aliases.to_client("other")
        ("client's", 'other')
        >>> aliases.to_agent("client's"), aliases.to_agent("other")
        ("agent's", 'other')
    """

    __slots__ = ("_agents", "_clients")

    def __init__(self, aliases: Mapping[str, str]) -> None:
        given: object = aliases
        if not isinstance(given, Mapping) or not all(
            isinstance(id_, str) and id_ for pair in given.items() for id_ in pair
        ):
            raise ConfigurationError(
                f"catalog_aliases={aliases!r}: must be a mapping of the agent's catalog ids to the client's"
            )
        self._clients: Final = dict(aliases)
        self._agents: Final[dict[str, list[str]]] = {}
        for agents, clients in self._clients.items():
            self._agents.setdefault(clients, []).append(agents)

    def __bool__(self) -> bool:
        return bool(self._clients)

    def to_client(self, id: str) -> str:
        """Return the client's id of a catalog that the agent names."""
        return self._clients.get(id, id)

    def to_agent(self, id: str) -> str:
        """Return the agent's id of a catalog that the client names; the first where the agent has several."""
        known = self._agents.get(id)
        return known[0] if known else id

    def supported(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the ids under which the agent may use the catalogs that a client says it has, each once, in order.

        Where the agent has several ids for one of the client's, all of them.
        """
        found = (agents for id_ in ids for agents in self._agents.get(id_, (id_,)))
        return tuple(dict.fromkeys(found))

    def outgoing(self, kind: str | None, message: Any) -> Any:
        """Return a message with the client's id in place of the agent's; the same object where nothing changes.

        Args:
            kind: The message key; None where nobody looked for one, and nothing is changed.
            message: The message, which is not changed.
        """
        way = _PLACES.get(kind or "")
        return message if way is None else self._renamed(message, (str(kind), *way))

    def _renamed(self, value: Any, way: tuple[str, ...]) -> Any:
        if not way:
            return self._clients.get(value, value) if isinstance(value, str) else value
        if not isinstance(value, dict) or way[0] not in value:
            return value
        old = value[way[0]]
        new = self._renamed(old, way[1:])
        return value if new is old else {**value, way[0]: new}
