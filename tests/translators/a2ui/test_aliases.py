"""Catalog ids under two names."""

from __future__ import annotations

import pytest

from agui_pipeline.middleware.a2ui import A2UIMiddleware, SurfaceRegistry
from agui_pipeline.translators.a2ui import CatalogAliases
from tests.translators.a2ui.streams import (
    BEGIN,
    CATALOG,
    Wire,
    activity,
    components,
    create,
    data,
    lines,
    message,
    run_of,
    translate,
)

COPILOTKIT = "https://a2ui.org/specification/v0_9/basic_catalog.json"
ALIASES = {CATALOG: COPILOTKIT, "mine": "theirs", "old": "theirs"}


def test_both_ways() -> None:
    aliases = CatalogAliases(ALIASES)
    assert [aliases.to_client(id_) for id_ in (CATALOG, "mine", "old", "other")] == [
        COPILOTKIT,
        "theirs",
        "theirs",
        "other",
    ]
    assert [aliases.to_agent(id_) for id_ in (COPILOTKIT, "theirs", "other")] == [CATALOG, "mine", "other"]
    assert aliases.supported(["theirs", "other", COPILOTKIT, "theirs"]) == ("mine", "old", "other", CATALOG)
    assert not CatalogAliases({})


def test_an_alias_of_an_alias_is_none() -> None:
    assert CatalogAliases({"a": "b", "b": "a"}).to_client("a") == "b"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (create(), {"version": "v0.9", "createSurface": {"surfaceId": "s", "catalogId": COPILOTKIT}}),
        (
            {"beginRendering": {**BEGIN["beginRendering"], "catalogId": "mine"}},
            {"beginRendering": {**BEGIN["beginRendering"], "catalogId": "theirs"}},
        ),
        (
            {"version": "v1.0", "callRendererFunction": {"functionCallId": "f", "callFunction": {"catalogId": "mine"}}},
            {
                "version": "v1.0",
                "callRendererFunction": {"functionCallId": "f", "callFunction": {"catalogId": "theirs"}},
            },
        ),
        (BEGIN, BEGIN),
        (components(text=CATALOG), components(text=CATALOG)),
        (data({"catalogId": CATALOG}), data({"catalogId": CATALOG})),
    ],
)
def test_messages_go_on_with_the_clients_id(sent: Wire, expected: Wire) -> None:
    (event,) = translate(run_of(*message(lines(sent))), catalog_aliases=ALIASES).events[1:-1]
    assert event["event"] == expected


def test_a_surface_is_remembered_as_the_client_knows_it() -> None:
    registry = SurfaceRegistry()
    renamed = {"version": "v0.9", "createSurface": {"surfaceId": "s", "catalogId": COPILOTKIT}}
    events = run_of(*message(lines(create(), components())))
    result = translate(events, carrier="activity", registry=registry, catalog_aliases=ALIASES)
    assert result.events[1] == activity("a2ui-surface-m", renamed, components())
    assert registry.messages_for("t", "s") == (renamed, components())


def test_the_middleware_has_them_for_the_other_way() -> None:
    assert A2UIMiddleware(catalog_aliases=ALIASES).aliases.to_agent(COPILOTKIT) == CATALOG
    assert A2UIMiddleware().aliases.to_agent(COPILOTKIT) == COPILOTKIT
