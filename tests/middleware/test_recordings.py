"""The stores of this process: what is remembered, for how long, and what is forgotten first."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agui_pipeline.middleware._capabilities import CapabilityStore, ClientCapabilities
from agui_pipeline.middleware._recordings import ActionRecording, ActionRecordings, ActionStore
from agui_pipeline.translators import ConfigurationError
from agui_pipeline.translators.a2ui_client import A2UICapabilities

pytestmark = pytest.mark.anyio


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def recording(size: int = 10, digest: str = "d") -> ActionRecording:
    return ActionRecording(digest, (b"x" * size,))


async def known(store: ActionRecordings, *ids: str) -> list[str]:
    return [id for id in ids if await store.get("k", id) is not None]


async def test_a_recording_is_kept_by_thread_and_request() -> None:
    store = ActionRecordings()
    assert isinstance(store, ActionStore)
    assert await store.put("k", "q", recording()) is True
    assert await store.get("k", "q") == recording()
    assert (await store.get("k", "p"), await store.get("j", "q")) == (None, None)
    await store.delete("k", "q")
    await store.delete("k", "q")
    assert (await store.get("k", "q"), len(store)) == (None, 0)


async def test_the_oldest_is_forgotten_first_whatever_was_read() -> None:
    store = ActionRecordings(max_recordings=2)
    for id in "abc":
        await store.put("k", id, recording())
        await store.get("k", "a")
    assert await known(store, *"abc") == ["b", "c"]


async def test_bytes_are_bounded_over_all() -> None:
    store = ActionRecordings(max_bytes=100)
    for id, size in (("a", 40), ("b", 40), ("b", 60), ("c", 50)):
        await store.put("k", id, recording(size))
    assert await known(store, *"abc") == ["c"]
    assert await store.put("k", "d", recording(50)) is True
    assert await known(store, *"cd") == ["c", "d"]


async def test_one_that_alone_is_too_large_is_not_kept_and_costs_no_other() -> None:
    store = ActionRecordings(max_bytes=100)
    await store.put("k", "a", recording())
    await store.put("k", "b", recording())
    assert await store.put("k", "b", recording(101)) is False
    assert await known(store, *"ab") == ["a"]


async def test_a_recording_expires() -> None:
    clock = Clock()
    store = ActionRecordings(expires=60, clock=clock)
    await store.put("k", "a", recording())
    clock.now += 30
    await store.put("k", "b", recording())
    clock.now += 29.9
    assert await known(store, *"ab") == ["a", "b"]
    clock.now += 0.1
    assert await known(store, *"ab") == ["b"]
    clock.now += 30
    assert len(store) == 0


async def test_one_that_is_put_again_is_new() -> None:
    clock = Clock()
    store = ActionRecordings(expires=60, clock=clock)
    await store.put("k", "a", recording())
    clock.now += 59
    await store.put("k", "a", recording(20))
    clock.now += 59
    assert await store.get("k", "a") == recording(20)


async def test_a_key_as_long_as_a_client_likes_is_not_kept_as_it_is() -> None:
    store = ActionRecordings()
    await store.put("k" * 1_000_000, "q", recording())
    assert await store.get("k" * 1_000_000, "q") == recording()
    assert await store.get("k" * 999_999, "q") is None
    assert max(len(key) for key, _ in store._kept) < 200
    await store.put("\ud800" * 200, "q", recording())
    assert await store.get("\ud800" * 200, "q") == recording()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_recordings": 0}, "max_recordings=0: must be a whole number, 1 or more"),
        ({"max_bytes": 1.5}, "max_bytes=1.5: must be a whole number of bytes, 1 or more"),
        ({"expires": 0}, "expires=0: must be a number of seconds, 1 or more"),
        ({"clock": time}, "clock=.*: must be a callable"),
    ],
)
async def test_options_are_checked(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        ActionRecordings(**options)


# Capabilities.


def capabilities(*ids: str) -> A2UICapabilities:
    return A2UICapabilities({"v0.9": ids})


async def test_the_last_word_of_each_thread_is_remembered() -> None:
    store = ClientCapabilities()
    assert isinstance(store, CapabilityStore)
    store.put("a", capabilities("1"))
    store.put("b", capabilities("2"))
    store.put("a", capabilities("3"))
    assert (store.get("a"), store.get("b"), store.get("c")) == (capabilities("3"), capabilities("2"), None)
    store.clear("a")
    assert (store.get("a"), store.get("b")) == (None, capabilities("2"))
    store.clear()
    assert store.get("b") is None


async def test_the_thread_that_was_used_least_recently_is_forgotten() -> None:
    store = ClientCapabilities(max_threads=2)
    store.put("a", capabilities())
    store.put("b", capabilities())
    store.get("a")
    store.put("c", capabilities())
    assert [key for key in "abc" if store.get(key) is not None] == ["a", "c"]


async def test_catalogs_that_clients_send_along_count() -> None:
    store = ClientCapabilities(max_bytes=1000)
    large = A2UICapabilities({"v0.9": ()}, {"v0.9": ({"catalogId": "x" * 400},)})
    for key in "abc":
        store.put(key, large)
    assert [key for key in "abc" if store.get(key) is not None] == ["b", "c"]
    store.put("b", capabilities())
    store.put("d", large)
    assert [key for key in "bcd" if store.get(key) is not None] == ["b", "c", "d"]
    store.put("e", A2UICapabilities({}, {"v0.9": ({"catalogId": "x" * 2000},)}))
    assert store.get("e") is None


@pytest.mark.parametrize("options", [{"max_threads": 0}, {"max_bytes": "1"}])
async def test_bounds_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="must be a whole number"):
        ClientCapabilities(**options)
