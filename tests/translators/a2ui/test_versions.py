"""Which versions go on, and messages of different ones for the same surface."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.translators.a2ui import VERSIONS, SurfaceRegistry
from tests.translators.a2ui.streams import (
    BEGIN,
    DATA,
    DELETE,
    UPDATE,
    components,
    create,
    custom,
    data,
    delete,
    lines,
    message,
    raw,
    run_of,
    translate,
)


@pytest.mark.parametrize("sent", [BEGIN, UPDATE, DATA, DELETE])
def test_v08_does_not_travel_as_custom(sent: dict[str, Any]) -> None:
    """What reads CUSTOM events knows v0.9 and later; there a bad message fails its whole event."""
    result = translate(run_of(*message(lines(sent))), carrier="custom")
    assert result.events == run_of(raw(sent))
    assert result.codes == ["a2ui.version"]
    assert result.detail("a2ui.version") == {"version": "v0.8", "surface_id": "s"}
    (diagnostic,) = result.diagnostics
    assert diagnostic.message.endswith("see `version` of A2UIPlannerMiddleware")


@pytest.mark.parametrize(
    ("on_invalid", "types"), [("raw", ["RAW"]), ("drop", []), ("error", ["RUN_ERROR"]), ("text", ["START", "CONTENT"])]
)
def test_it_follows_on_invalid(on_invalid: str, types: list[str]) -> None:
    result = translate(run_of(*message(lines(DELETE))), carrier="custom", on_invalid=on_invalid)
    kinds = [event["type"].removeprefix("TEXT_MESSAGE_") for event in result.events[1:]]
    assert [kind for kind in kinds if kind not in {"END", "RUN_FINISHED"}] == types


@pytest.mark.parametrize("version", ["v0.9", "v0.9.1", "v1.0"])
def test_later_versions_do(version: str) -> None:
    sent = create(version=version)
    assert translate(run_of(*message(lines(sent))), carrier="custom").events == run_of(custom(sent))


def test_it_may_be_allowed() -> None:
    result = translate(run_of(*message(lines(BEGIN))), carrier="custom", versions=VERSIONS)
    assert (result.events, result.codes) == (run_of(custom(BEGIN)), [])


@pytest.mark.parametrize("carrier", ["raw", "activity"])
def test_with_every_carrier_versions_may_be_chosen(carrier: str) -> None:
    sent = [create("a", version="v1.0"), components(surface="a", version="v1.0"), BEGIN]
    result = translate(run_of(*message(lines(*sent))), carrier=carrier, versions=["v0.9", "v0.9.1"], on_invalid="drop")
    assert result.events == run_of()
    assert result.codes == ["a2ui.version"] * 3


def test_a_version_that_does_not_go_on_counts_for_nothing() -> None:
    registry = SurfaceRegistry()
    translate(run_of(*message(lines(BEGIN, UPDATE))), carrier="custom", registry=registry)
    assert registry.surfaces("t") == ()


MIXES = [
    ([create(), UPDATE], [("v0.8", "v0.9")]),
    ([create(), components(version="v1.0")], [("v1.0", "v0.9")]),
    ([create(version="v1.0"), data(1)], [("v0.9", "v1.0")]),
    ([BEGIN, data(1), data(2)], [("v0.9", "v0.8")] * 2),
    ([create(), DELETE], [("v0.8", "v0.9")]),
    ([UPDATE, create(), components()], []),  # created anew
    ([create(version="v0.9.1"), components(), data(1, version="v0.9.1"), delete()], []),
    ([create("a"), create("s", version="v1.0"), components(surface="a"), data(1, version="v1.0")], []),
]


@pytest.mark.parametrize(("messages", "mixes"), MIXES)
@pytest.mark.parametrize("followed", [False, True])
def test_mixes_on_one_surface_are_reported(messages: list[Any], mixes: list[Any], *, followed: bool) -> None:
    options: dict[str, Any] = {"registry": SurfaceRegistry()} if followed else {}
    result = translate(run_of(*message(lines(*messages))), **options)
    assert [event["event"] for event in result.events[1:-1]] == messages
    found = [d.detail for d in result.diagnostics if d.code == "a2ui.version-mix"]
    assert [(detail["version"], detail["surface"]) for detail in found] == mixes


def test_a_registry_knows_the_version_of_earlier_runs() -> None:
    registry = SurfaceRegistry()
    translate(run_of(*message(lines(create(), components()))), registry=registry)
    result = translate(run_of(*message(lines(data(1, version="v1.0")))), registry=registry)
    assert result.detail("a2ui.version-mix") == {"surface_id": "s", "version": "v1.0", "surface": "v0.9"}
    assert registry.messages_for("t", "s") == (create(), components())


def test_without_one_runs_do_not_know_each_other() -> None:
    twice = [*run_of(*message(lines(create(version="v1.0")))), *run_of(*message(lines(data(1))))]
    assert translate(twice).codes == []
