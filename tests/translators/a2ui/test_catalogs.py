"""``validate="full"``: by what is in the catalog of a surface."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.translators import ConfigurationError
from agui_pipeline.translators._a2ui_sdk import CatalogValidator
from agui_pipeline.translators.a2ui import BASIC_CATALOGS
from tests.translators.a2ui.streams import (
    BEGIN,
    DATA,
    UPDATE,
    Wire,
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

pytest.importorskip("a2ui")


def full(*messages: Any, **options: Any) -> Any:
    return translate(run_of(*message(lines(*messages))), **{"validate": "full", **options})


def component(**fields: Any) -> Wire:
    return {"version": "v0.9", "updateComponents": {"surfaceId": "s", "components": [{"id": "root", **fields}]}}


def v08(**type_: Any) -> Wire:
    return {"surfaceUpdate": {"surfaceId": "s", "components": [{"id": "root", "component": type_}]}}


def v08_data(*contents: Any) -> Wire:
    return {"dataModelUpdate": {"surfaceId": "s", "contents": list(contents)}}


TEXT = {"text": {"literalString": "hi"}}
WHOLE = create(
    version="v1.0",
    catalogId=BASIC_CATALOGS["v1.0"],
    components=[{"id": "root", "component": "Text", "text": "hi"}],
    dataModel={"a": 1},
)

VALID = {
    "v0.8": [BEGIN, UPDATE, DATA, {"deleteSurface": {"surfaceId": "s"}}],
    "v0.8, components first": [UPDATE, DATA, BEGIN],
    "v0.9": [create(), components(), data({"a": [1, None]}), delete()],
    "v0.9.1": [create(version="v0.9.1"), components(version="v0.9.1"), data(1, version="v0.9.1")],
    "v0.9 and v0.9.1": [create(), components(version="v0.9.1")],
    "v1.0": [WHOLE, data(None, version="v1.0"), delete(version="v1.0")],
    "a component that another has replaced": [
        create(),
        component(component="Column", children=["a"]),
        {
            "version": "v0.9",
            "updateComponents": {"surfaceId": "s", "components": [{"id": "a", "component": "Text", "text": ""}]},
        },
        component(component="Text", text="done"),
    ],
    "children that come later": [
        create(),
        component(component="Column", children=["a"]),
        {
            "version": "v0.9",
            "updateComponents": {"surfaceId": "s", "components": [{"id": "a", "component": "Text", "text": ""}]},
        },
    ],
}


@pytest.mark.parametrize("messages", VALID.values(), ids=VALID.keys())
def test_valid_messages_go_on(messages: list[Any]) -> None:
    result = full(*messages)
    assert [event["event"] for event in result.events[1:-1]] == messages
    assert result.codes == []


INVALID: dict[str, tuple[Wire, str, str]] = {
    "an unknown component": (component(component="Nope"), "unrecognized_component", "components.root.component"),
    "a property of the wrong type": (component(component="Text", text=5), "type_mismatch", "components.root.text.str"),
    "a required property": (component(component="Text"), "missing_field", "components.root"),
    "itself among its children": (component(component="Column", children=["root"]), "circular_reference", ""),
    "an unknown catalog": (
        {"version": "v0.9", "createSurface": {"surfaceId": "s", "catalogId": "nowhere"}},
        "unknown_catalog",
        "",
    ),
    "no root in a surface that comes whole": (
        {
            **WHOLE,
            "createSurface": {**WHOLE["createSurface"], "components": [{"id": "x", "component": "Text", "text": ""}]},
        },
        "missing_root",
        "",
    ),
    "v0.8, an unknown component": (v08(Nope={}), "unrecognized_component", "components.root.component"),
    "v0.8, two types in one": (v08(Text=TEXT, Divider={}), "component_type", "components[0]"),
    "v0.8, no type": (v08(), "component_type", "components[0]"),
    "v0.8, no value": (v08_data({"key": "a", "valueString": "x"}, {"key": "b"}), "entry_value", "contents[1]"),
    "v0.8, two values": (v08_data({"key": "a", "valueString": "x", "valueNumber": 1}), "entry_value", "contents[0]"),
    "v0.8, no value in a map": (
        v08_data({"key": "a", "valueMap": [{"key": "b"}]}),
        "entry_value",
        "contents[0].valueMap[0]",
    ),
    "v0.8, an entry that is none": (v08_data("a"), "entry_value", "contents[0]"),
}


@pytest.mark.parametrize(("sent", "code", "path"), INVALID.values(), ids=INVALID.keys())
def test_what_is_wrong_and_where(sent: Wire, code: str, path: str) -> None:
    result = full(sent, carrier="custom", versions=["v0.8", "v0.9", "v1.0"])
    assert result.events[1]["type"] == "RAW"  # as on_invalid says
    detail = result.detail("a2ui.catalog")
    assert detail["surface_id"] == "s"
    assert code in detail["reason"]
    assert detail["errors"][0]["code"] == code
    assert detail["errors"][0]["path"] == path


def test_it_follows_on_invalid_and_the_others_go_on() -> None:
    messages = create(), component(component="Nope"), components()
    assert full(*messages, carrier="custom", on_invalid="drop").events == run_of(custom(create()), custom(components()))
    failed = full(*messages, on_invalid="error").events[-1]
    assert failed["message"] == (
        "The agent's answer is not valid A2UI: updateComponents is not valid by its catalog: unrecognized_component."
    )


def test_a_diagnostics_message_repeats_nothing_of_the_stream() -> None:
    result = full(component(component="n33dle"))
    (found,) = [d for d in result.diagnostics if d.code == "a2ui.catalog"]
    assert "n33dle" not in found.message
    assert "n33dle" in str(found.detail)


def test_limits_come_first() -> None:
    from agui_pipeline.translators.a2ui import A2UILimits

    result = full(components("root", "a", "b"), limits=A2UILimits(max_components=2))
    assert "a2ui.catalog" not in result.codes
    assert "a2ui.limit" in result.codes


def test_what_would_take_too_long_is_refused() -> None:
    """The SDK tries each type that a value may have, at each level: a quarter of a second here, seconds without."""

    def condition(level: int) -> Any:
        return {"call": "and", "args": {"values": [condition(level - 1)] * 2}} if level else True

    field = {"component": "TextField", "label": "a"}
    checks = [{"message": "m", "condition": condition(4)} for _ in range(18)]
    result = full(component(**field, checks=checks))
    assert result.detail("a2ui.catalog")["reason"] == "too_many_calls"
    assert full(create(), component(**field, checks=checks[:1])).codes == []
    assert full(create(), components(), data([{"call": "home"}] * 300)).codes == []


WHOLES = {
    "a dangling reference": ([create(), component(component="Column", children=["a", "zz"])], "dangling_reference"),
    "no root": ([create(), components("other")], "missing_root"),
    "v0.8, no such root": ([{"beginRendering": {"surfaceId": "s", "root": "top"}}, UPDATE], "missing_root"),
    "a circle over two messages": (
        [
            create(),
            component(component="Column", children=["a"]),
            {
                "version": "v0.9",
                "updateComponents": {
                    "surfaceId": "s",
                    "components": [{"id": "a", "component": "Column", "children": ["root"]}],
                },
            },
        ],
        "circular_reference",
    ),
}


@pytest.mark.parametrize(("messages", "code"), WHOLES.values(), ids=WHOLES.keys())
def test_a_surface_is_looked_at_as_a_whole_at_the_end_of_the_run(messages: list[Any], code: str) -> None:
    result = full(*messages)
    assert [event["event"] for event in result.events[1:-1]] == messages
    assert result.codes == ["a2ui.surface-invalid"]
    assert result.detail("a2ui.surface-invalid")["reason"] == code


@pytest.mark.parametrize("heavy", ["components", "calls", "size"])
def test_what_is_looked_at_then_is_bounded_over_all_surfaces_of_the_run(heavy: str) -> None:
    """The event loop waits for it: sixty-four surfaces would take seconds."""
    calls = {"call": "formatString", "args": {"value": "x"}}
    fields: dict[str, Any] = {"text": {"components": "hi", "calls": calls, "size": "x" * 1024}[heavy]}
    a_message, messages = {"components": (150, 3), "calls": (100, 1), "size": (60, 2)}[heavy]

    def surface(id: str) -> list[Wire]:
        made = [
            {"id": f"c{at}", "component": "Column", "children": ["zz"]}
            if at == 0
            else {"id": f"c{at}", "component": "Text", **fields}
            for at in range(a_message * messages)
        ]
        parts = [made[at : at + a_message] for at in range(0, len(made), a_message)]
        return [
            create(id),
            *({"version": "v0.9", "updateComponents": {"surfaceId": id, "components": part}} for part in parts),
        ]

    result = full(*surface("a"), *surface("b"), *surface("c"), *[create("d"), components("other", surface="d")])
    invalid = [d.detail["surface_id"] for d in result.diagnostics if d.code == "a2ui.surface-invalid"]
    assert invalid == ["a", "b", "d"]  # what is smaller may still have its turn
    again = full(*surface("c"))
    assert again.codes == ["a2ui.surface-invalid"]


MINE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/mine.json",
    "catalogId": "mine",
    "components": {
        "Gauge": {
            "type": "object",
            "properties": {"component": {"const": "Gauge"}, "id": {"type": "string"}, "level": {"type": "number"}},
            "required": ["component", "id", "level"],
        }
    },
}
CREATE_MINE = {"version": "v0.9", "createSurface": {"surfaceId": "s", "catalogId": "mine"}}


def test_a_catalog_of_ones_own() -> None:
    good, bad = component(component="Gauge", level=5), component(component="Gauge", level="high")
    result = full(CREATE_MINE, good, bad, catalogs=[MINE], on_invalid="drop")
    assert [event["event"] for event in result.events[1:-1]] == [CREATE_MINE, good]
    assert result.codes == ["a2ui.catalog"]
    assert full(CREATE_MINE, good, on_invalid="drop").events == run_of()


def test_a_surface_is_held_to_the_catalog_that_created_it() -> None:
    """In the same delta, later in the run, and in later runs."""
    for split in (False, True):
        middleware = A2UIMiddleware(validate="full", catalogs=[MINE], on_invalid="drop")
        messages = [CREATE_MINE, components()]
        runs = [[one] for one in messages] if split else [messages]
        sent = [translate(run_of(*message(lines(*run))), middleware).events[1:-1] for run in runs]
        assert [event["event"] for events in sent for event in events] == [CREATE_MINE]


def test_a_v08_surface_that_names_none_has_the_basic_one() -> None:
    mine = {"catalogId": "mine", "protocolVersion": "0.8", "components": {"Gauge": {"type": "object"}}}
    options: dict[str, Any] = {"catalogs": [mine], "on_invalid": "drop"}
    named = {"beginRendering": {**BEGIN["beginRendering"], "catalogId": "mine"}}
    assert len(full(named, v08(Gauge={}), **options).events) == 4
    assert len(full(BEGIN, v08(Gauge={}), **options).events) == 3
    middleware = A2UIMiddleware(validate="full", **options)
    runs = [translate(run_of(*message(lines(sent))), middleware).events for sent in (BEGIN, v08(Gauge={}))]
    assert [len(events) for events in runs] == [3, 2]


def test_by_the_agents_name_for_it() -> None:
    options: dict[str, Any] = {"validate": "full", "catalogs": [MINE], "catalog_aliases": {"old": "t", "mine": "t"}}
    middleware = A2UIMiddleware(**options)
    gauge = component(component="Gauge", level=5)
    (first,) = translate(run_of(*message(lines(CREATE_MINE))), middleware).events[1:-1]
    assert first["event"]["createSurface"]["catalogId"] == "t"
    assert translate(run_of(*message(lines(gauge))), middleware).events == run_of(raw(gauge, "a2ui/v0.9"))


def test_catalogs_of_the_sdk() -> None:
    from a2ui.core import Catalog

    mine = Catalog.from_json(MINE)
    assert CatalogValidator([mine]).knows("v0.9", "mine")
    assert full(CREATE_MINE, component(component="Gauge", level=1), catalogs=[mine]).codes == []


@pytest.mark.parametrize("catalog", [{"catalogId": "x", "components": 5}, {"catalogId": "x", "protocolVersion": "7"}])
def test_a_catalog_that_the_sdk_cannot_use_is_refused_at_construction(catalog: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"catalogs\[0\]"):
        A2UIMiddleware(validate="full", catalogs=[catalog])


def test_a_defect_of_the_sdk_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: Any, **_options: Any) -> None:
        raise KeyError("defect")

    validator = CatalogValidator()
    monkeypatch.setattr(validator, "_validate", fail)
    problem = validator.check("v0.9", [components()], {})
    assert problem is not None
    assert problem.codes == "the A2UI SDK failed on it (KeyError)"


def test_tools_are_validated_too() -> None:
    arguments = '{"surfaceId":"s","components":[{"id":"root","component":"Nope"}]}'
    call = [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "render_a2ui"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": arguments},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ]
    result = translate(run_of(*call), tools=["render_a2ui"], validate="full", on_invalid="drop")
    assert len(result.events) == 3  # the create alone
    assert "a2ui.catalog" in result.codes
