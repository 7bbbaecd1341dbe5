"""The A2UI middleware: its options and presets, and its place in a pipeline."""

from __future__ import annotations

import inspect
import json
import logging
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import RunAgentInput, Tool

from agui_pipeline.middleware import Pipeline
from agui_pipeline.middleware.a2ui import A2UILimits, A2UIMiddleware, SurfaceRegistry
from agui_pipeline.translators import ConfigurationError, Event, SequenceError, decode_event
from tests.translators.a2ui.streams import (
    BEGIN,
    DELETE,
    FINISHED,
    STARTED,
    Wire,
    activity,
    as_wire,
    components,
    content,
    create,
    custom,
    data,
    end,
    lines,
    message,
    raw,
    run_input,
    run_of,
    start,
    translate,
)

WRONG: list[tuple[str, Any, str]] = [
    ("carrier", "sse", "'raw', 'custom', 'activity', or a callable"),
    ("carrier", None, "'raw', 'custom', 'activity', or a callable"),
    ("carrier", ["raw"], "'raw', 'custom', 'activity', or a callable"),
    ("custom_name", None, "a string"),
    ("source", 8, "a string"),
    ("framing", "jsonl", "'objects', 'lines'"),
    ("on_invalid", "ignore", "'raw', 'text', 'drop', 'error'"),
    ("on_invalid", None, "'raw', 'text', 'drop', 'error'"),
    ("pass_through", "CUSTOM", "None, 'all', a collection of event types, or a predicate"),
    ("pass_through", True, "None, 'all', a collection of event types, or a predicate"),
    ("pass_through", [5], "None, 'all', a collection of event types, or a predicate"),
    ("pass_through", b"all", "None, 'all', a collection of event types, or a predicate"),
    ("validate", "strict", "'envelope', 'off', 'full'"),
    ("repair", "yes", "True or False"),
    ("versions", "v0.9", "None or a collection of 'v0.8', 'v0.9', 'v0.9.1', 'v1.0'"),
    ("versions", ["v0.7"], "None or a collection of 'v0.8', 'v0.9', 'v0.9.1', 'v1.0'"),
    ("versions", [], "None or a collection of 'v0.8', 'v0.9', 'v0.9.1', 'v1.0'"),
    ("catalogs", {"$id": "c"}, "a sequence of catalogs"),
    ("catalog_aliases", ["a"], "a mapping of the agent's catalog ids to the client's"),
    ("catalog_aliases", {"a": 1}, "a mapping of the agent's catalog ids to the client's"),
    ("catalog_aliases", {"": "b"}, "a mapping of the agent's catalog ids to the client's"),
    ("tools", "render_a2ui", "a collection of tool names"),
    ("tools", [1], "a collection of tool names"),
    ("tools", [""], "a collection of tool names"),
    ("limits", {"max_depth": 5}, "an A2UILimits"),
    ("limits", None, "an A2UILimits"),
    ("registry", {}, "None or a SurfaceRegistry"),
    ("reused", "keep", "'pass', 'recreate', 'drop'"),
    ("strict", "yes", "True or False"),
    ("on_diagnostic", "log", "callable"),
]


@pytest.mark.parametrize(("option", "value", "choices"), WRONG, ids=lambda value: repr(value)[:30])
def test_a_wrong_option_is_refused_with_its_name_value_and_choices(option: str, value: Any, choices: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        A2UIMiddleware(**{option: value})
    assert f"{option}={value!r}" in str(caught.value)
    assert choices in str(caught.value)


OFF: list[tuple[str, Any]] = [
    ("versions", ["v0.9"]),
    ("tools", ["render_a2ui"]),
    ("catalog_aliases", {"a": "b"}),
    ("reused", "drop"),
]


@pytest.mark.parametrize(("option", "value"), OFF)
def test_what_reads_messages_needs_validation(option: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}=.*needs validate='envelope'"):
        A2UIMiddleware(validate="off", **{option: value})


@pytest.mark.parametrize("catalog", ["c", 1, {}, {"catalogId": 1}, object()])
@pytest.mark.parametrize("use", [{"tools": ["render_a2ui"]}, {"validate": "full"}])
def test_a_catalog_has_an_id(catalog: Any, use: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"catalogs\[0\] is .*must be a catalog document with a catalogId"):
        A2UIMiddleware(**use, catalogs=[catalog])


def test_catalogs_without_use_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"catalogs=.*is for validate='full' or tools"):
        A2UIMiddleware(catalogs=[{"catalogId": "mine"}])


@pytest.mark.parametrize(
    ("options", "package", "extra"),
    [({"repair": True}, "json_repair", "repair"), ({"validate": "full"}, "a2ui", "a2ui")],
)
def test_a_missing_extra_is_named_at_construction(
    options: dict[str, Any], package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationError, match=rf"pip install 'agui-pipeline\[{extra}\]'"):
        A2UIMiddleware(**options)


@pytest.mark.parametrize("carrier", ["custom", "activity"])
def test_carriers_of_valid_messages_need_validation(carrier: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"validate='off': carrier='{carrier}' sends valid messages only"):
        A2UIMiddleware(carrier=carrier, validate="off")


def test_the_options_and_their_defaults() -> None:
    parameters = inspect.signature(A2UIMiddleware).parameters
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "carrier": "raw",
        "custom_name": "a2ui",
        "source": "a2ui/{version}",
        "framing": "objects",
        "on_invalid": "raw",
        "pass_through": None,
        "repair": False,
        "validate": "envelope",
        "versions": None,
        "limits": A2UILimits(
            max_message_bytes=131072,
            max_depth=50,
            max_components=256,
            max_component_depth=32,
            max_string=16384,
            max_surface_messages=256,
        ),
        "catalogs": (),
        "catalog_aliases": {},
        "tools": (),
        "registry": None,
        "reused": "pass",
        "strict": False,
        "on_diagnostic": None,
    }


def test_every_default_may_be_given() -> None:
    for name, parameter in inspect.signature(A2UIMiddleware).parameters.items():
        A2UIMiddleware(**{name: parameter.default})
    A2UIMiddleware(registry=SurfaceRegistry(), tools=[], catalogs=[], catalog_aliases={})


@pytest.mark.parametrize("types", [["CUSTOM"], ("CUSTOM",), {"CUSTOM"}, frozenset({"CUSTOM"}), {"CUSTOM": 1}.keys()])
@pytest.mark.parametrize("models", [False, True])
def test_types_come_in_any_collection(types: Any, *, models: bool) -> None:
    event = {"type": "CUSTOM", "name": "n", "value": 1}
    assert translate(run_of(event), pass_through=types, models=models).events == run_of(event)


def test_types_may_be_the_sdks() -> None:
    from ag_ui.core import EventType

    event = {"type": "CUSTOM", "name": "n", "value": 1}
    for models in (False, True):
        assert translate(run_of(event), pass_through=[EventType.CUSTOM], models=models).events == run_of(event)


# Presets


def trpc(events: list[Wire], **options: Any) -> list[Wire]:
    return translate(events, A2UIMiddleware.trpc(**options)).events


def test_trpc_takes_every_line_as_it_is() -> None:
    text = ' {"version":"v0.9","x":1} \r\n\n  \nHello {\n[1]\nnull\n"s"\n{"deleteSurface":1}\n{"half\n  last'
    assert trpc(run_of(*message(text))) == run_of(
        *map(raw, [{"version": "v0.9", "x": 1}, "Hello {", [1], None, "s", {"deleteSurface": 1}, '{"half', "last"])
    )


def test_trpc_reads_every_role() -> None:
    events = run_of({**start("u"), "role": "user"}, content(lines(BEGIN), "u"), end("u"))
    assert trpc(events) == run_of(raw(BEGIN))


def test_trpc_is_strict() -> None:
    with pytest.raises(SequenceError):
        trpc(run_of(content("x")))


def test_trpc_flushes_a_last_line_without_a_newline() -> None:
    assert trpc([STARTED, start(), content(json.dumps(BEGIN)), FINISHED]) == run_of(raw(BEGIN))


def test_trpc_has_the_hook() -> None:
    event = {"type": "CUSTOM", "name": "n", "value": 1}
    assert trpc(run_of(event)) == run_of()
    assert trpc(run_of(event), pass_through=lambda event: event.type == "CUSTOM") == run_of(event)


def test_trpc_knows_no_surfaces_to_count() -> None:
    messages = [DELETE] * 300
    assert len(trpc(run_of(*message(lines(*messages))))) == 302


def test_chat_is_one_stream_for_prose_tools_and_surfaces() -> None:
    tool = {"type": "TOOL_CALL_START", "toolCallId": "t", "toolCallName": "weather_card"}
    text = f"Here you are:\n```json\n{json.dumps(create())}\n{json.dumps(components())}\n```\nAnything else?"
    events = run_of(start(), content(text), end(), tool, {"type": "TOOL_CALL_END", "toolCallId": "t"})
    assert translate(events, A2UIMiddleware.chat()).events == run_of(
        start(),
        content("Here you are:\n"),
        custom(create()),
        custom(components()),
        content("Anything else?"),
        end(),
        tool,
        {"type": "TOOL_CALL_END", "toolCallId": "t"},
    )


@pytest.mark.anyio
async def test_chat_leaves_front_end_tools_to_the_agent_and_the_front_end() -> None:
    """A registered component, prose and a surface in one run; the agent is offered the tools as they came."""
    tools = [
        Tool(
            name="weather_card",
            description="Shows the weather",
            parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        )
    ]
    asked = run_input().model_copy(update={"tools": tools})
    offered: list[Any] = []
    call = [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "weather_card", "parentMessageId": "m"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"city":'},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '"Bern"}'},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ]
    text = f"Sunny in Bern.\n{lines(create(), components())}Shall I book?"

    async def agent(input: RunAgentInput) -> AsyncIterator[Event]:
        offered.append(input)
        for event in run_of(*message(text), *call):
            yield decode_event(event)

    async with Pipeline(agent, A2UIMiddleware.chat()).open(asked) as events:
        sent = [as_wire(event) async for event in events]
    assert sent == run_of(
        start(),
        content("Sunny in Bern.\n"),
        custom(create()),
        custom(components()),
        content("Shall I book?"),
        end(),
        *call,
    )
    (seen,) = offered
    assert seen.tools == tools
    assert seen == asked


def test_a_preset_may_be_varied() -> None:
    middleware = A2UIMiddleware.chat(carrier="activity", on_invalid="drop")
    events = run_of(*message("Hi\n" + lines(create(), components())))
    assert translate(events, middleware).events == run_of(activity("a2ui-surface-m", create(), components()))


def test_presets_make_subclasses_of_a_subclass() -> None:
    class Mine(A2UIMiddleware):
        pass

    assert type(Mine.chat()) is Mine
    assert type(Mine.trpc()) is Mine


# In a pipeline


def source(*events: Wire, error: Exception | None = None) -> Any:
    async def run(_input: Any) -> AsyncIterator[Event]:
        for event in events:
            yield decode_event(event)
        if error is not None:
            raise error

    return run


async def collect(pipeline: Pipeline, thread_id: str = "t") -> list[Wire]:
    async with pipeline.open(run_input(thread_id)) as events:
        return [as_wire(event) async for event in events]


@pytest.mark.anyio
async def test_it_translates_a_source() -> None:
    pipeline = Pipeline(source(*run_of(*message(lines(BEGIN)))), A2UIMiddleware())
    assert await collect(pipeline) == run_of(raw(BEGIN))


@pytest.mark.anyio
async def test_what_is_pending_when_the_source_fails_is_delivered_first() -> None:
    failing = source(STARTED, start(), content(json.dumps(BEGIN)), error=LookupError("boom"))
    pipeline = Pipeline(failing, A2UIMiddleware(framing="lines"))
    out: list[Wire] = []
    async with pipeline.open(run_input()) as events:
        while len(out) < len([STARTED, raw(BEGIN)]):
            out.append(as_wire(await anext(events)))
        with pytest.raises(LookupError, match="boom"):
            await anext(events)
    assert out == [STARTED, raw(BEGIN)]


@pytest.mark.anyio
async def test_one_middleware_serves_runs_that_follow_each_other() -> None:
    middleware = A2UIMiddleware(carrier="activity")
    first = Pipeline(source(*run_of(*message(lines(create(), components()), id="m1"))), middleware)
    second = Pipeline(source(*run_of(*message(lines(data(84, "/result")), id="m2"))), middleware)
    await collect(first)
    assert await collect(second) == run_of(activity("a2ui-surface-m1", create(), components(), data(84, "/result")))
    assert await collect(second, thread_id="another") == run_of()


@pytest.mark.anyio
async def test_by_default_a_drop_is_logged_once_a_run(caplog: pytest.LogCaptureFixture) -> None:
    noise = [{"type": "RAW", "event": at} for at in range(3)]
    pipeline = Pipeline(source(*run_of(*noise, {"type": "STEP_STARTED", "stepName": "x"})), A2UIMiddleware())
    for _ in range(2):
        caplog.clear()
        assert await collect(pipeline) == run_of()
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert "pass_through" in record.getMessage()
