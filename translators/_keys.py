"""What a thread is called where something of it is remembered. Does not know what that is."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from ag_ui.core import RunAgentInput

_MAX_KEY: Final = 128
"""Characters of a key that are kept as they are: a client chooses the id of its thread, also one of a megabyte."""


def by_thread(input: RunAgentInput) -> str:
    """Return the thread id: the key of a client's thread where no other is given."""
    return input.thread_id


def short_key(key: str) -> str:
    """Return a key that is kept in place of a long one."""
    return key if len(key) <= _MAX_KEY else "#" + blake2b(key.encode(errors="surrogatepass")).hexdigest()
