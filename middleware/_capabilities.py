"""What the clients of threads said that they can render, from one run to the next.

A client says it with some requests and not with others, and a planner wants to know at each. Knows how to remember and
to forget. Does not know what the capabilities mean.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol, runtime_checkable

from agui_pipeline.middleware._options import check_count
from agui_pipeline.translators._a2ui_client_carriers import unheard
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._keys import short_key
from agui_pipeline.translators.a2ui_client import A2UICapabilities


@runtime_checkable
class CapabilityStore(Protocol):
    """Where capabilities are remembered. Called in the event loop, at the start of runs: must not block.

    A key is one thread of one user. Forgetting is allowed: a client of which nothing is known has said nothing.
    """

    def get(self, key: str, /) -> A2UICapabilities | None:
        """Return what the thread's client last said, None for nothing."""
        ...

    def put(self, key: str, capabilities: A2UICapabilities, /) -> None:
        """Keep what the thread's client says now, in the place of what it said before."""
        ...


class ClientCapabilities:
    """A `CapabilityStore` in the memory of one process. The least recently used thread is forgotten first.

    Args:
        max_threads: Threads remembered.
        max_bytes: Bytes of JSON remembered over all of them: clients may send whole catalogs.

    Raises:
        ConfigurationError: A bound is no integer of at least 1.

    Example:
        >>> store = ClientCapabilities()
        >>> store.put("thread", A2UICapabilities({"v0.9": ("basic",)}))
        >>> store.get("thread").supported("v0.9.1"), store.get("another")
        (('basic',), None)
    """

    def __init__(self, *, max_threads: int = 10_000, max_bytes: int = 16 * 1024 * 1024) -> None:
        check_count("max_threads", max_threads, least=1)
        check_count("max_bytes", max_bytes, least=1, unit="a whole number of bytes")
        self._max_threads = max_threads
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, tuple[int, A2UICapabilities]] = OrderedDict()
        self._size = 0

    def get(self, key: str, /) -> A2UICapabilities | None:
        """Return what the thread's client last said."""
        key = short_key(key)
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][1]

    def put(self, key: str, capabilities: A2UICapabilities, /) -> None:
        """Keep what the thread's client says now."""
        key = short_key(key)
        self._size -= self._kept.pop(key, (0, None))[0]
        size = len(encode_json([capabilities.catalogs, capabilities.inline_catalogs], unheard))
        self._kept[key] = size, capabilities
        self._size += size
        while len(self._kept) > self._max_threads or self._size > self._max_bytes:
            self._size -= self._kept.popitem(last=False)[1][0]

    def clear(self, key: str | None = None) -> None:
        """Forget one thread, or all."""
        if key is None:
            self._kept.clear()
            self._size = 0
        else:
            self._size -= self._kept.pop(short_key(key), (0, None))[0]
