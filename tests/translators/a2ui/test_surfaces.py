"""The registry: bounded in every direction, forgetting in order."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.translators import ConfigurationError, Diagnostic, decode_event
from agui_pipeline.translators.a2ui import SurfaceRegistry
from agui_pipeline.translators.a2ui._surface import MAX_SURFACE_SIZE
from tests.translators.a2ui.streams import (
    BEGIN,
    DATA,
    STARTED,
    UPDATE,
    Wire,
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


def say(registry: SurfaceRegistry, *messages: Any, thread_id: str = "t", **options: Any) -> list[Diagnostic]:
    """Let an agent say these messages; return the diagnostics."""
    diagnostics: list[Diagnostic] = []
    chosen = {"carrier": "activity", **options}
    middleware = A2UIMiddleware(registry=registry, on_diagnostic=diagnostics.append, **chosen)
    translate(run_of(*message(lines(*messages))), middleware, thread_id=thread_id)
    return diagnostics


def form(surface: str = "s") -> list[Wire]:
    return [create(surface), components(surface=surface)]


def test_it_gives_the_messages_that_rebuild_a_surface() -> None:
    registry = SurfaceRegistry()
    say(registry, create(), components("a"), data(1))
    say(registry, components("b"), data(2, "/b"))
    assert registry.messages_for("t", "s") == (create(), components("a", "b"), data(1), data(2, "/b"))
    assert registry.messages_for("t", "other") == ()
    assert registry.messages_for("other", "s") == ()


@pytest.mark.parametrize("carrier", ["raw", "custom"])
def test_a_registry_that_is_given_follows_every_carrier(carrier: str) -> None:
    registry = SurfaceRegistry()
    assert say(registry, BEGIN, UPDATE, DATA, carrier=carrier, versions=["v0.8"]) == []
    assert registry.messages_for("t", "s") == (BEGIN, UPDATE, DATA)
    say(registry, {"deleteSurface": {"surfaceId": "s"}}, carrier=carrier, versions=["v0.8"])
    assert registry.messages_for("t", "s") == ()


def test_without_one_nothing_is_remembered_for_carriers_that_need_nothing() -> None:
    middleware = A2UIMiddleware()
    translate(run_of(*message(lines(*form()))), middleware)
    assert middleware.registry.messages_for("t", "s") == ()


@pytest.mark.parametrize(
    ("reused", "kinds"), [("pass", ["createSurface"]), ("drop", []), ("recreate", ["deleteSurface", "createSurface"])]
)
def test_reused_surfaces_with_raw(reused: Any, kinds: list[str]) -> None:
    middleware = A2UIMiddleware(reused=reused, registry=SurfaceRegistry())
    translate(run_of(*message(lines(*form()))), middleware)
    out = translate(run_of(*message(lines(create()))), middleware).events[1:-1]
    assert [next(key for key in event["event"] if key != "version") for event in out] == kinds
    assert {event["source"] for event in out} <= {"a2ui/v0.9"}


def test_reused_alone_is_reason_to_remember() -> None:
    middleware = A2UIMiddleware(reused="drop")
    events = run_of(*message(lines(create(), create())))
    assert len(translate(events, middleware).events) == 3


def test_clear() -> None:
    registry = SurfaceRegistry()
    for thread_id in ("a", "b", "c"):
        say(registry, *form(), thread_id=thread_id)
    registry.clear("a")
    assert not registry.messages_for("a", "s")
    assert registry.messages_for("b", "s")
    registry.clear("unknown")
    registry.clear()
    assert not registry.messages_for("b", "s")


def test_the_least_recently_used_thread_is_forgotten_first() -> None:
    registry = SurfaceRegistry(max_threads=2)
    say(registry, *form(), thread_id="a")
    say(registry, *form(), thread_id="b")
    say(registry, data(1), thread_id="a")
    say(registry, *form(), thread_id="c")
    assert [bool(registry.messages_for(thread_id, "s")) for thread_id in "abc"] == [True, False, True]


def test_a_run_without_a2ui_forgets_nobody() -> None:
    registry = SurfaceRegistry(max_threads=1)
    say(registry, *form(), thread_id="a")
    translate(run_of(*message("Hello")), A2UIMiddleware(carrier="activity", registry=registry), thread_id="b")
    assert registry.messages_for("a", "s")


def test_the_least_recently_used_surface_of_a_thread_is_forgotten_first() -> None:
    registry = SurfaceRegistry(max_surfaces=2)
    diagnostics = say(registry, *form("a"), *form("b"), data(1, surface="a"), *form("c"))
    assert [bool(registry.messages_for("t", surface)) for surface in "abc"] == [True, False, True]
    assert [(d.code, d.detail["surface_id"]) for d in diagnostics] == [("a2ui.surface-forgotten", "b")]


def test_the_oldest_data_of_a_surface_is_forgotten_first() -> None:
    registry = SurfaceRegistry(max_messages=4)
    diagnostics = say(registry, *form(), data(1, "/a"), data(2, "/b"), data(3, "/c"), data(4, "/a"))
    assert registry.messages_for("t", "s") == (*form(), data(3, "/c"), data(4, "/a"))
    assert [d.code for d in diagnostics] == ["a2ui.surface-forgotten"] * 2


def test_what_is_overwritten_takes_no_room() -> None:
    registry = SurfaceRegistry(max_bytes=2000)
    for at in range(200):
        say(registry, *([] if at else form()), data(at), components(text=str(at)))
    assert registry.messages_for("t", "s") == (create(), components(text="199"), data(199))
    assert registry.thread("t").size < 400


def test_bytes_are_bounded_over_all_threads() -> None:
    registry = SurfaceRegistry(max_bytes=10_000)
    for thread_id in "abc":
        say(registry, *form(), data("x" * 4000), thread_id=thread_id)
    registry.thread("d")
    assert [bool(registry.messages_for(thread_id, "s")) for thread_id in "abc"] == [False, True, True]


def test_and_of_one_thread() -> None:
    registry = SurfaceRegistry(max_bytes=10_000)
    for surface in "abc":
        say(registry, *form(surface), data("x" * 4000, surface=surface))
    registry.thread("t")
    assert [bool(registry.messages_for("t", surface)) for surface in "abc"] == [False, True, True]


def test_deleting_makes_room() -> None:
    registry = SurfaceRegistry()
    say(registry, *form("a"), *form("b"), delete("a"))
    only_b = registry.thread("t").size
    say(registry, delete("b"))
    assert only_b > 0
    assert registry.thread("t").size == 0


def test_a_surface_is_never_larger_than_a_client_can_take() -> None:
    registry = SurfaceRegistry()
    middleware = A2UIMiddleware(carrier="activity", registry=registry)
    chunk = "x" * 16000
    snapshots = 0
    for at in range(60):
        big = {"version": "v0.9", "updateComponents": {"surfaceId": "s", "components": []}}
        big["updateComponents"] = {
            "surfaceId": "s",
            "components": [{"id": f"{at}-{n}", "component": "Text", "text": chunk} for n in range(8)],
        }
        out = translate(run_of(*message(lines(*([] if at else [create()]), big))), middleware)
        snapshots += len(out.events) - 2
    assert 0 < registry.thread("t").size <= MAX_SURFACE_SIZE
    assert 20 < snapshots < 60


def test_that_is_reported() -> None:
    registry = SurfaceRegistry()
    say(registry, *form())
    thread = registry.thread("t")
    surface = thread.get("s")
    assert surface is not None
    surface.size = MAX_SURFACE_SIZE
    (diagnostic,) = say(registry, data(1))
    assert diagnostic.code == "a2ui.limit"
    assert diagnostic.detail["limit"] == "surface_size"
    assert diagnostic.detail["surface_id"] == "s"


def test_runs_of_one_thread_at_the_same_time_share_its_surfaces() -> None:
    middleware = A2UIMiddleware(carrier="activity")
    one, two = middleware.translator(run_input()), middleware.translator(run_input(run_id="r2"))
    for translator in (one, two):
        for event in (STARTED, start()):
            translator.feed(decode_event(event))
    one.feed(decode_event(content(lines(*form()))))
    (snapshot,) = two.feed(decode_event(content(lines(data(1)))))
    assert as_wire(snapshot)["messageId"] == "a2ui-surface-m"


@pytest.mark.parametrize("option", ["max_threads", "max_surfaces", "max_messages", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "many", None, True])
def test_bounds_are_integers_of_at_least_1(option: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}=.*integer of at least 1"):
        SurfaceRegistry(**{option: value})


def test_the_key_is_callable() -> None:
    with pytest.raises(ConfigurationError, match="key='t'"):
        SurfaceRegistry(key="t")  # type: ignore[arg-type]
