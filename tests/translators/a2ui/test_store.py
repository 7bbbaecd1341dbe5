"""Surfaces in a store: what a shared one needs, and that it makes no difference."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.middleware.a2ui import A2UIMiddleware, MemorySurfaceStore, SurfaceRegistry, SurfaceStore
from agui_pipeline.translators import ConfigurationError, decode_event
from tests.translators.a2ui.streams import (
    BEGIN,
    DATA,
    DELETE,
    STARTED,
    UPDATE,
    Wire,
    activity,
    as_wire,
    components,
    content,
    create,
    data,
    delete,
    lines,
    message,
    run_input,
    run_of,
    start,
    translate,
)


class JSONStore:
    """A store that keeps text, as one behind a network would; several processes may share it."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, list[str]]] = {}
        self.calls: list[str] = []

    def get(self, thread: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        self.calls.append("get")
        known = self.kept.get(thread, {})
        return {surface: [json.loads(text) for text in records] for surface, records in known.items()}

    def append(self, thread: str, surface: str, records: Sequence[Mapping[str, Any]]) -> bool:
        self.calls.append("append")
        known = self.kept.get(thread, {})
        if surface not in known:
            return False
        known[surface] = [*known.pop(surface), *(json.dumps(record) for record in records)]
        return True

    def replace(self, thread: str, surface: str, records: Sequence[Mapping[str, Any]]) -> None:
        self.calls.append("replace")
        known = self.kept.setdefault(thread, {})
        known.pop(surface, None)
        known[surface] = [json.dumps(record) for record in records]

    def delete(self, thread: str | None = None, surface: str | None = None) -> None:
        self.calls.append("delete")
        if thread is None:
            self.kept.clear()
        elif surface is None:
            self.kept.pop(thread, None)
        else:
            self.kept.get(thread, {}).pop(surface, None)


def run(store: SurfaceStore, *messages: Any, id: str = "m", **options: Any) -> list[Wire]:
    """Run an agent that says these messages, in a process of its own; return the snapshots."""
    middleware = A2UIMiddleware(carrier="activity", registry=SurfaceRegistry(store=store, **options))
    return translate(run_of(*message(lines(*messages), id=id)), middleware).events[1:-1]


def test_processes_that_share_a_store_share_surfaces() -> None:
    store = JSONStore()
    run(store, create(sendDataModel=True), components(), data(1, "/a"), id="m1")
    assert run(store, data(2, "/b"), id="m2") == [
        activity("a2ui-surface-m1", create(sendDataModel=True), components(), data(2, "/b"))
    ]
    registry = SurfaceRegistry(store=store)
    assert registry.messages_for("t", "s") == (create(sendDataModel=True), components(), data(1, "/a"), data(2, "/b"))
    assert registry.surfaces("t") == ("s",)
    assert registry.sends_data_model("t", "s")
    run(store, delete())
    assert registry.surfaces("t") == ()
    assert not registry.sends_data_model("t", "s")


def test_a_run_asks_once_and_writes_once_a_message() -> None:
    store = JSONStore()
    run(store, create(), components(), data(1), data(2))
    assert store.calls == ["get", "replace", "append", "append", "append"]
    store.calls.clear()
    run(store, delete())
    assert store.calls == ["get", "delete"]


def test_a_run_without_a2ui_does_not_ask() -> None:
    store = JSONStore()
    translate(run_of(*message("Hello")), A2UIMiddleware(carrier="activity", registry=SurfaceRegistry(store=store)))
    assert store.calls == []


def test_what_a_store_has_forgotten_meanwhile_is_told_again_whole() -> None:
    store = JSONStore()
    middleware = A2UIMiddleware(carrier="activity", registry=SurfaceRegistry(store=store))
    translator = middleware.translator(run_input())
    for event in (STARTED, start(), content(lines(create(), components(), data(1, "/a")))):
        list(translator.feed(decode_event(event)))
    store.kept.clear()  # an expiry
    list(translator.feed(decode_event(content(lines(data(2, "/b"))))))
    assert SurfaceRegistry(store=store).messages_for("t", "s") == (
        create(),
        components(),
        data(1, "/a"),
        data(2, "/b"),
    )


class FailingStore(JSONStore):
    """A store that cannot be reached for a while."""

    failing = False

    def append(self, thread: str, surface: str, records: Sequence[Mapping[str, Any]]) -> bool:
        if self.failing:
            raise ConnectionError("gone")
        return super().append(thread, surface, records)


def test_what_a_store_failed_to_keep_is_told_again_by_another_run_of_the_thread() -> None:
    store = FailingStore()
    middleware = A2UIMiddleware(carrier="activity", registry=SurfaceRegistry(store=store))
    one, two = middleware.translator(run_input()), middleware.translator(run_input(run_id="r2"))
    for translator in (one, two):
        for event in (STARTED, start()):
            list(translator.feed(decode_event(event)))
    list(one.feed(decode_event(content(lines(create(), components())))))
    list(two.feed(decode_event(content(lines(data(0, "/zero"))))))
    store.failing = True
    with pytest.raises(ConnectionError):
        list(one.feed(decode_event(content(lines(data(1, "/one"))))))
    store.failing = False
    list(two.feed(decode_event(content(lines(data(2, "/two"))))))
    expected = (create(), components(), data(0, "/zero"), data(1, "/one"), data(2, "/two"))
    assert SurfaceRegistry(store=store).messages_for("t", "s") == expected


@pytest.mark.parametrize("on_invalid", ["raw", "text", "drop", "error"])
def test_a_run_that_was_cut_holds_on_to_nothing(on_invalid: Any) -> None:
    """Nobody tells a translator that its client has left. The next run must ask the store, not the garbage."""
    store = JSONStore()
    middleware = A2UIMiddleware(carrier="activity", on_invalid=on_invalid, registry=SurfaceRegistry(store=store))
    gc.disable()
    try:
        translator = middleware.translator(run_input())
        for event in (STARTED, start(), content(lines(create(), components()) + "{")):
            list(translator.feed(decode_event(event)))
        del translator
        run(store, delete())  # in another process
        assert middleware.registry.surfaces("t") == ()
        assert translate(run_of(*message(lines(data(1)))), middleware).events == run_of()
    finally:
        gc.enable()


def test_clearing_reaches_runs_under_way() -> None:
    registry = SurfaceRegistry()
    translator = A2UIMiddleware(carrier="activity", registry=registry).translator(run_input())
    for event in (STARTED, start(), content(lines(create(), components()))):
        list(translator.feed(decode_event(event)))
    registry.clear("other")
    assert registry.surfaces("t") == ("s",)
    registry.clear("t")
    assert list(translator.feed(decode_event(content(lines(data(1)))))) == []
    assert registry.surfaces("t") == ()


def test_runs_of_one_process_see_each_other_at_once() -> None:
    store = JSONStore()
    middleware = A2UIMiddleware(carrier="activity", registry=SurfaceRegistry(store=store))
    one, two = middleware.translator(run_input()), middleware.translator(run_input(run_id="r2"))
    for translator in (one, two):
        for event in (STARTED, start()):
            list(translator.feed(decode_event(event)))
    list(one.feed(decode_event(content(lines(create(), components())))))
    (snapshot,) = two.feed(decode_event(content(lines(data(1)))))
    assert as_wire(snapshot)["messageId"] == "a2ui-surface-m"
    assert store.calls.count("get") == 1


def test_records_do_not_pile_up() -> None:
    store = JSONStore()
    run(store, create(), components())
    for at in range(100):
        run(store, data("x" * 50, f"/{at % 3}"), components(text=str(at)))
    assert len(store.kept["t"]["s"]) <= 16 + 2 * 5
    assert run(store, data(1, "/n"))[-1]["content"]["a2ui_operations"] == [
        create(),
        components(text="99"),
        data(1, "/n"),
    ]


def test_records_of_strangers_are_skipped() -> None:
    store = MemorySurfaceStore()
    for record in ({}, {"message": 5}, {"message": {"deleteSurface": 1}}, {"size": 3}):
        store.replace("t", "s", [record, {"message": create()}])
        assert SurfaceRegistry(store=store).surfaces("t") == ("s",)


POOL = [
    BEGIN,
    UPDATE,
    DATA,
    {"dataModelUpdate": {"surfaceId": "s", "path": "/form", "contents": [{"key": "a", "valueString": "x"}]}},
    {"surfaceUpdate": {"surfaceId": "s", "components": [{"id": "b", "component": {"Divider": {}}}]}},
    DELETE,
    create(),
    create("a", sendDataModel=True),
    components(),
    components("root", "x", surface="a", text="other"),
    {"version": "v0.9", "updateComponents": {"surfaceId": "s", "components": [{"id": "root", "text": "untyped"}]}},
    {"version": "v0.9", "updateComponents": {"surfaceId": "s", "components": [5, {"component": "Text"}]}},
    data(1, "/a"),
    data(2, "/a/b"),
    data({}, "/", surface="a"),
    data(3, "/form", version="v0.9.1"),
    delete("a"),
    create(version="v1.0", components=[{"id": "root", "component": "Text"}], dataModel={"a": 1}),
    data(None, version="v1.0"),
]


@given(st.lists(st.lists(st.sampled_from(POOL), min_size=1, max_size=8), max_size=8))
def test_a_store_makes_no_difference(runs: list[list[Wire]]) -> None:
    store = JSONStore()
    here = A2UIMiddleware(carrier="activity", registry=SurfaceRegistry())
    keep = here.registry.thread("t")  # one process in which a run of the thread is always under way
    for at, messages in enumerate(runs):
        expected = translate(run_of(*message(lines(*messages), id=f"m{at}")), here).events[1:-1]
        assert run(store, *messages, id=f"m{at}") == expected
    elsewhere = SurfaceRegistry(store=store)
    assert elsewhere.surfaces("t") == keep.created()
    for surface in "sa":
        assert elsewhere.messages_for("t", surface) == here.registry.messages_for("t", surface)
        assert elsewhere.sends_data_model("t", surface) == here.registry.sends_data_model("t", surface)


# The one in memory


def sized(size: int) -> dict[str, Any]:
    return {"message": 1, "size": size}


def test_bytes_are_counted_over_all_threads() -> None:
    store = MemorySurfaceStore(max_bytes=100)
    store.replace("a", "s", [sized(40)])
    store.replace("b", "s", [sized(40)])
    assert store.append("a", "s", [sized(10)])
    store.replace("c", "s", [sized(40)])
    assert [bool(store.get(thread)) for thread in "abc"] == [True, False, True]
    store.delete("c", "s")
    store.replace("d", "s", [sized(50)])
    assert [bool(store.get(thread)) for thread in "abcd"] == [True, False, False, True]
    store.replace("d", "s", [sized(1000)])
    assert [bool(store.get(thread)) for thread in "abcd"] == [False, False, False, True]
    store.delete()
    store.replace("e", "s", [sized(100)])
    store.replace("f", "s", [])
    assert store.get("e")


def test_an_appended_surface_is_the_latest() -> None:
    store = MemorySurfaceStore()
    for surface in "ab":
        store.replace("t", surface, [sized(1)])
    store.append("t", "a", [sized(1)])
    assert list(store.get("t")) == ["b", "a"]
    store.delete("t", "nothing")
    store.delete("nothing", "a")
    assert list(store.get("t")) == ["b", "a"]


@pytest.mark.parametrize("option", ["max_threads", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_its_bounds_are_integers_of_at_least_1(option: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}="):
        MemorySurfaceStore(**{option: value})


@pytest.mark.parametrize("store", [{}, object(), "redis://", JSONStore.get])
def test_a_store_has_its_four_methods(store: Any) -> None:
    with pytest.raises(ConfigurationError, match="must have get, append, replace and delete"):
        SurfaceRegistry(store=store)


# What the registry knows


def test_surfaces_are_known_once_they_are_created_and_until_they_are_deleted() -> None:
    registry = SurfaceRegistry()
    middleware = A2UIMiddleware(registry=registry)

    def say(*messages: Any) -> None:
        translate(run_of(*message(lines(*messages))), middleware)

    say(UPDATE, components(surface="never"))
    assert registry.surfaces("t") == ()
    say(BEGIN, create("a"), create("b", sendDataModel=True), create("c", sendDataModel=False))
    assert set(registry.surfaces("t")) == {"s", "a", "b", "c"}
    assert [registry.sends_data_model("t", id_) for id_ in ("s", "a", "b", "c", "never")] == [
        False,
        False,
        True,
        False,
        False,
    ]
    say(create("b"), delete("a"))
    assert not registry.sends_data_model("t", "b")
    assert set(registry.surfaces("t")) == {"s", "b", "c"}
    assert registry.surfaces("other") == ()
