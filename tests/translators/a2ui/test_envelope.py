"""Which JSON values are A2UI messages, of each version."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.translators.a2ui._envelope import KINDS, VERSIONS, Envelope, read_envelope, surface_of, version_of
from tests.translators.a2ui.streams import BEGIN, CATALOG, DATA, DELETE, UPDATE, components, create, data, delete

CALL = {"functionCallId": "f", "callFunction": {"call": "x", "catalogId": CATALOG}}

VALID: dict[str, tuple[Any, str, str | None]] = {
    "beginRendering": (BEGIN, "v0.8", "s"),
    "with styles": ({"beginRendering": {"surfaceId": "s", "root": "r", "styles": {}, "catalogId": "c"}}, "v0.8", "s"),
    "surfaceUpdate": (UPDATE, "v0.8", "s"),
    "dataModelUpdate": (DATA, "v0.8", "s"),
    "dataModelUpdate of nothing": ({"dataModelUpdate": {"surfaceId": "s", "contents": []}}, "v0.8", "s"),
    "a bare deleteSurface is v0.8": (DELETE, "v0.8", "s"),
    **{f"createSurface {v}": (create(version=v), v, "s") for v in ("v0.9", "v0.9.1", "v1.0")},
    **{f"updateComponents {v}": (components(version=v), v, "s") for v in ("v0.9", "v0.9.1", "v1.0")},
    **{f"updateDataModel {v}": (data(None, version=v), v, "s") for v in ("v0.9", "v0.9.1", "v1.0")},
    **{f"deleteSurface {v}": (delete(version=v), v, "s") for v in ("v0.9", "v0.9.1", "v1.0")},
    "no value removes in v0.9": ({"version": "v0.9", "updateDataModel": {"surfaceId": "s"}}, "v0.9", "s"),
    "v1.0 needs no catalog": ({"version": "v1.0", "createSurface": {"surfaceId": "s"}}, "v1.0", "s"),
    "v1.0 creates whole": (
        create(version="v1.0", components=[{"id": "root", "component": "Text"}], dataModel={}),
        "v1.0",
        "s",
    ),
    "a function call": ({"version": "v1.0", "callRendererFunction": CALL}, "v1.0", None),
    "on a surface": ({"version": "v1.0", "callRendererFunction": {**CALL, "surfaceId": "s"}}, "v1.0", "s"),
    "a function's value": (
        {"version": "v1.0", "agentFunctionResponse": {"functionCallId": "f", "value": None}},
        "v1.0",
        None,
    ),
    "an empty surface id": (delete(""), "v0.9", ""),
    "unknown fields inside": (
        {"version": "v0.9", "deleteSurface": {"surfaceId": "s", "reason": "done"}},
        "v0.9",
        "s",
    ),
}


@pytest.mark.parametrize(("value", "version", "surface"), VALID.values(), ids=VALID.keys())
def test_a_message_is_read_with_its_version_and_surface(value: Any, version: str, surface: str | None) -> None:
    envelope = read_envelope(value)
    assert isinstance(envelope, Envelope), envelope
    assert (envelope.version, envelope.surface_id) == (version, surface)
    assert envelope.message is value
    assert envelope.body is value[envelope.kind]


INVALID: dict[str, tuple[Any, str]] = {
    "a list": ([], "object"),
    "null": (None, "object"),
    "a string": ("beginRendering", "object"),
    "empty": ({}, "exactly one message key; got none"),
    "no key but the version": ({"version": "v0.9"}, "got none"),
    "ordinary JSON": ({"temperature": 21}, "got none"),
    "two keys": ({**BEGIN, **DELETE}, "exactly one message key; got beginRendering, deleteSurface"),
    "keys of two versions": ({"version": "v0.9", **create(), **BEGIN}, "exactly one"),
    "something beside the key": ({**DELETE, "note": "x"}, "stand alone"),
    "an unknown version": (delete(version="v2.0"), '"version" must be one of v0.9, v0.9.1, v1.0'),
    "a version that is no string": ({"version": 0.9, **DELETE}, '"version" must be'),
    "a version that is a list": ({"version": ["v0.9"], **DELETE}, '"version" must be'),
    "a null version": ({"version": None, **DELETE}, '"version" must be'),
    "v0.8 has no version": ({"version": "v0.8", **DELETE}, 'no "version"'),
    "v0.9 without version": ({"createSurface": {"surfaceId": "s", "catalogId": "c"}}, 'needs a "version"'),
    "v0.8 with a later version": ({"version": "v0.9", **BEGIN}, "no message of v0.9"),
    "v1.0 functions earlier": ({"version": "v0.9.1", "callRendererFunction": CALL}, "no message of v0.9.1"),
    "a body that is no object": ({"deleteSurface": "s"}, "must hold an object"),
    "no surface": ({"deleteSurface": {}}, 'needs "surfaceId", a string'),
    "a surface that is a number": ({"deleteSurface": {"surfaceId": 1}}, 'needs "surfaceId", a string'),
    "a surface that is a list": ({"deleteSurface": {"surfaceId": ["s"]}}, 'needs "surfaceId", a string'),
    "no root": ({"beginRendering": {"surfaceId": "s"}}, 'needs "root", a string'),
    "no components": ({"surfaceUpdate": {"surfaceId": "s"}}, 'needs "components", a list of at least one'),
    "components of none": ({"surfaceUpdate": {"surfaceId": "s", "components": []}}, "a list of at least one"),
    "components that are no list": (
        {"version": "v0.9", "updateComponents": {"surfaceId": "s", "components": {}}},
        "a list of at least one",
    ),
    "no contents": ({"dataModelUpdate": {"surfaceId": "s"}}, 'needs "contents", a list'),
    "no catalog": ({"version": "v0.9", "createSurface": {"surfaceId": "s"}}, 'needs "catalogId", a string'),
    "v1.0 needs a value": ({"version": "v1.0", "updateDataModel": {"surfaceId": "s"}}, 'needs "value", a value'),
    "a path that is no string": (
        {"version": "v0.9", "updateDataModel": {"surfaceId": "s", "path": ["form"]}},
        '"path" of updateDataModel must be a string',
    ),
    "a v0.8 path that is no string": (
        {"dataModelUpdate": {"surfaceId": "s", "path": 1, "contents": []}},
        '"path" of dataModelUpdate must be a string',
    ),
    "a data model that is no object": (create(version="v1.0", dataModel=[]), '"dataModel" of createSurface'),
    "created with components of none": (create(version="v1.0", components=[]), '"components" of createSurface'),
    "created with null for components": (create(version="v1.0", components=None), '"components" of createSurface'),
    "a function on a surface that is a number": (
        {"version": "v1.0", "callRendererFunction": {**CALL, "surfaceId": 1}},
        '"surfaceId" of callRendererFunction must be a string',
    ),
    "a function without id": (
        {"version": "v1.0", "callRendererFunction": {"callFunction": {}}},
        'needs "functionCallId", a string',
    ),
    "a response without outcome": (
        {"version": "v1.0", "agentFunctionResponse": {"functionCallId": "f"}},
        'either "value" or "error"',
    ),
    "a response with both": (
        {"version": "v1.0", "agentFunctionResponse": {"functionCallId": "f", "value": 1, "error": {}}},
        'either "value" or "error"',
    ),
    "a key of next year": ({"version": "v1.0", "animateSurface": {"surfaceId": "s"}}, "got none"),
}


@pytest.mark.parametrize(("value", "reason"), INVALID.values(), ids=INVALID.keys())
def test_what_is_no_message_says_why(value: Any, reason: str) -> None:
    problem = read_envelope(value)
    assert isinstance(problem, str)
    assert reason in problem


def test_a_reason_repeats_nothing_of_the_value() -> None:
    needle = "n33dle"
    for value in (
        {needle: 1},
        {"version": needle, "deleteSurface": {}},
        {"deleteSurface": needle},
        {**DELETE, needle: 1},
    ):
        assert needle not in str(read_envelope(value))


def test_every_kind_is_valid_in_some_version() -> None:
    found = {envelope.kind for value, *_ in VALID.values() if isinstance(envelope := read_envelope(value), Envelope)}
    assert found == KINDS


@pytest.mark.parametrize(
    ("value", "version"),
    [(create(), "v0.9"), ({"version": "v1.0"}, "v1.0"), ({"version": "v9"}, "v0.8"), ({"version": []}, "v0.8")]
    + [(value, "v0.8") for value in (BEGIN, 1, "v0.9", None, ["v0.9"])],
)
def test_the_version_that_a_value_claims(value: Any, version: str) -> None:
    assert version_of(value) == version
    assert version in VERSIONS


@pytest.mark.parametrize(
    ("value", "surface"),
    [(BEGIN, "s"), ({"a": 1, "b": {"surfaceId": "x"}}, "x"), ({"a": {"surfaceId": 1}}, None), ([], None)],
)
def test_the_surface_that_a_value_seems_to_be_about(value: Any, surface: str | None) -> None:
    assert surface_of(value) == surface
