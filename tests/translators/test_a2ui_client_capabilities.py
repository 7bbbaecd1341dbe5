"""What a client says that it can render: shapes, versions, aliases."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.translators import DecodeError, LimitError, run_input
from agui_pipeline.translators.a2ui_client import A2UICapabilities, client_capabilities

BASIC = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"
INLINE = {"catalogId": "own", "components": {}}


def said(capabilities: Any, **options: Any) -> A2UICapabilities:
    input = run_input("a form, please", forwarded_props={"a2ui": {"clientCapabilities": capabilities}})
    found = client_capabilities(input, **options)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("wire", "catalogs"),
    [
        ({"v0.9": {"supportedCatalogIds": ["a", "b"]}}, {"v0.9": ("a", "b")}),
        ({"v0.9.1": {"supportedCatalogIds": ["a"]}}, {"v0.9": ("a",)}),
        ({"v0.9": {"supportedCatalogIds": ["a"]}, "v0.9.1": {"supportedCatalogIds": ["b", "a"]}}, {"v0.9": ("a", "b")}),
        ({"v1.0": {"supportedCatalogIds": ["a"]}, "v0.9": {}}, {"v1.0": ("a",), "v0.9": ()}),
        ({"supportedCatalogIds": ["a"]}, {"v0.8": ("a",)}),
        ({"supportedCatalogIds": ["a"], "v0.9": {"supportedCatalogIds": ["b"]}}, {"v0.8": ("a",), "v0.9": ("b",)}),
        ({"v0.8": {"supportedCatalogIds": ["a"]}}, {"v0.8": ("a",)}),
        ({"v7": {"supportedCatalogIds": ["a"], "ofTheFuture": 1}}, {"v7": ("a",)}),
        ({}, {}),
    ],
)
def test_catalogs_by_version(wire: Any, catalogs: Any) -> None:
    found = said(wire)
    assert (found.catalogs, found.versions) == (catalogs, tuple(catalogs))
    assert all(found.supported(version) == ids for version, ids in catalogs.items())


def test_v091_is_asked_for_under_either_name() -> None:
    found = said({"v0.9.1": {"supportedCatalogIds": [BASIC], "inlineCatalogs": [INLINE]}})
    assert found.supported("v0.9") == found.supported("v0.9.1") == (BASIC,)
    assert found.inline("v0.9") == found.inline("v0.9.1") == (INLINE,)
    assert (found.supported("v0.8"), found.inline("v0.8")) == ((), ())


def test_aliases_make_them_the_agents_names() -> None:
    found = said(
        {"v0.9": {"supportedCatalogIds": ["client's", "other"]}}, catalog_aliases={"agent's": "client's", "x": "y"}
    )
    assert found.supported("v0.9") == ("agent's", "other")


def test_they_come_with_an_action_too() -> None:
    action = {"version": "v0.9", "action": {"name": "n", "surfaceId": "s"}}
    envelope = {"clientMessage": action, "clientCapabilities": {"v0.9": {"supportedCatalogIds": ["a"]}}}
    found = client_capabilities(run_input(forwarded_props={"a2ui": envelope}))
    assert found == A2UICapabilities({"v0.9": ("a",)})


def test_extract_is_asked_first() -> None:
    envelope = {"clientCapabilities": {"supportedCatalogIds": ["own"]}}
    assert said({"supportedCatalogIds": ["a"]}, extract=lambda _: envelope).supported("v0.8") == ("own",)
    assert said({"supportedCatalogIds": ["a"]}, extract=lambda _: None).supported("v0.8") == ("a",)


@pytest.mark.parametrize("forwarded", [None, {}, 5, {"a2ui": 5}, {"a2ui": {}}, {"a2ui": {"clientCapabilities": None}}])
def test_a_client_may_say_nothing(forwarded: Any) -> None:
    assert client_capabilities(run_input("hi", forwarded_props=forwarded)) is None


@pytest.mark.parametrize(
    ("wire", "problem"),
    [
        ([], "clientCapabilities: wanted an object, got a list"),
        ({"v0.9": []}, r"clientCapabilities\.v0\.9: wanted an object with supportedCatalogIds, got a list"),
        ({"v0.9": {"supportedCatalogIds": "a"}}, r"v0\.9\.supportedCatalogIds: wanted a list, got a string"),
        ({"v0.9": {"supportedCatalogIds": ["a", 5]}}, r"supportedCatalogIds\[1\]: wanted a string, got a number"),
        ({"supportedCatalogIds": {}}, r"clientCapabilities\.supportedCatalogIds: wanted a list, got an object"),
        ({"v0.9": {"inlineCatalogs": ["a"]}}, r"inlineCatalogs\[0\]: wanted an object, got a string"),
        ({"constructor": {}}, "holds a key that reaches a prototype"),
    ],
)
def test_malformed_ones_are_refused_with_their_path(wire: Any, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        said(wire)


def test_they_have_limits() -> None:
    with pytest.raises(LimitError, match="max_message_bytes"):
        said({"v0.9": {"supportedCatalogIds": [str(n) for n in range(50_000)]}})
