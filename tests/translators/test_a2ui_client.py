"""Client messages: where they are found, what they must hold, and what is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import DecodeError, LimitError, run_input
from agui_pipeline.translators.a2ui import A2UILimits
from agui_pipeline.translators.a2ui_client import A2UIClientMessage, parse_client_message

CONTEXT = {"operation": "multiply", "a": "12", "b": "7"}
ACTION: dict[str, Any] = {
    "name": "calculate",
    "surfaceId": "calculator",
    "sourceComponentId": "submit",
    "timestamp": "2026-03-18T08:00:00Z",
    "context": CONTEXT,
}
V08 = {"userAction": ACTION}
V09 = {"version": "v0.9.1", "action": ACTION}
ERROR = {"version": "v0.9", "error": {"code": "VALIDATION_FAILED", "surfaceId": "s", "path": "/a", "message": "no"}}


def user(content: Any, *after: dict[str, Any]) -> RunAgentInput:
    text = content if isinstance(content, str | list) else json.dumps(content)
    return run_input(messages=[{"id": "u", "role": "user", "content": text}, *after], run_id="r", thread_id="t")


def props(value: Any) -> RunAgentInput:
    return run_input(forwarded_props=value, run_id="r", thread_id="t")


def agentdown(message: Any, **envelope: Any) -> RunAgentInput:
    return props({"a2ui": {"clientMessage": message, **envelope}})


def parsed(input: RunAgentInput, **options: Any) -> A2UIClientMessage:
    message = parse_client_message(input, **options)
    assert message is not None
    return message


# Where it is found.

PLACES: dict[str, tuple[RunAgentInput, str]] = {
    "Agentdown, v0.9": (agentdown(V09), "forwardedProps.a2ui.clientMessage"),
    "Agentdown, v0.8": (agentdown(V08), "forwardedProps.a2ui.clientMessage"),
    "CopilotKit": (props({"a2uiAction": V08}), "forwardedProps.a2uiAction"),
    "tRPC: a user message": (user(V08), "messages[0].content"),
    "a v0.9 user message": (user(V09), "messages[0].content"),
    "a v0.9 user message without its version": (user({"action": ACTION}), "messages[0].content"),
    "in white space": (user(f"\n {json.dumps(V08)}\t"), "messages[0].content"),
    "in parts": (user([{"type": "text", "text": json.dumps(V08)}]), "messages[0].content"),
    "in several parts": (
        user([{"type": "text", "text": text} for text in (json.dumps(V08)[:9], json.dumps(V08)[9:])]),
        "messages[0].content",
    ),
    "behind an assistant message": (
        user(V08, {"id": "a", "role": "assistant", "content": "…"}),
        "messages[0].content",
    ),
}


@pytest.mark.parametrize(("input", "path"), PLACES.values(), ids=PLACES.keys())
def test_an_action_is_found_wherever_it_travels(input: RunAgentInput, path: str) -> None:
    message = parsed(input)
    assert (message.name, message.surface_id, message.source_component_id) == ("calculate", "calculator", "submit")
    assert (message.context, message.timestamp, message.error) == (CONTEXT, ACTION["timestamp"], None)
    assert (message.path, message.index) == (path, 0 if path.startswith("messages") else None)


def test_its_version_is_what_it_says_itself() -> None:
    assert [parsed(input).version for input in (agentdown(V09), agentdown(V08), props({"a2uiAction": V08}))] == [
        "v0.9.1",
        None,
        None,
    ]


def named(name: str) -> dict[str, Any]:
    return {"userAction": {**ACTION, "name": name}}


def test_the_places_have_a_precedence() -> None:
    forwarded: dict[str, Any] = {"a2ui": {"clientMessage": named("2")}, "a2uiAction": named("3")}
    names: list[str | None] = []
    for forget in ("extract", "a2ui", "a2uiAction", None):
        input = run_input(json.dumps(named("4")), forwarded_props=dict(forwarded))
        names.append(parsed(input, extract=lambda _: named("1") if len(names) == 0 else None).name)
        forwarded.pop(forget or "", None)
    assert names == ["1", "2", "3", "4"]


def test_nothing_in_a_place_leads_to_the_next() -> None:
    empty = {"a2ui": {"clientMessage": None}, "a2uiAction": {"userAction": None}}
    assert parsed(run_input(json.dumps(named("4")), forwarded_props=empty)).name == "4"


def test_the_envelope_brings_a_request_id_and_data() -> None:
    data = {"calculator": {"a": "12"}}
    message = parsed(agentdown(V09, requestId="a2ui:1", clientDataModel={"version": "v0.9.1", "surfaces": data}))
    assert (message.request_id, message.data_model) == ("a2ui:1", data)
    bare = parsed(agentdown(V09, requestId=None, clientDataModel=None))
    assert (bare.request_id, bare.data_model) == (None, None)
    assert parsed(agentdown(V09, requestId="")).request_id is None


def test_an_envelope_is_read_with_its_own_message_only() -> None:
    input = run_input(forwarded_props={"a2ui": {"requestId": "q", "clientDataModel": 5}, "a2uiAction": V08})
    message = parsed(input)
    assert (message.path, message.request_id, message.data_model) == ("forwardedProps.a2uiAction", None, None)


def test_extract_may_find_the_message_or_an_envelope() -> None:
    assert parsed(props({"uiProtocol": V09}), extract=lambda run: run.forwarded_props["uiProtocol"]).path == (
        "extract(input)"
    )
    envelope = {"requestId": "q", "clientMessage": V09}
    message = parsed(props({"uiProtocol": envelope}), extract=lambda run: run.forwarded_props["uiProtocol"])
    assert (message.path, message.request_id) == ("extract(input).clientMessage", "q")


def test_extract_that_finds_no_object_is_told_so() -> None:
    with pytest.raises(DecodeError, match=r"extract\(input\): wanted an object or None, got a string"):
        parse_client_message(run_input("hi"), extract=lambda _: "text")  # type: ignore[arg-type,return-value]


# What it must hold.

WRAPPED: dict[str, tuple[Any, Any]] = {
    "plain": ("12", "12"),
    "literalString": ({"literalString": "12"}, "12"),
    "literalNumber": ({"literalNumber": 7}, 7),
    "literalBoolean": ({"literalBoolean": False}, False),
    "literalArray": ({"literalArray": ["a", {"literalString": "b"}]}, ["a", "b"]),
    "a list of wrapped": ([{"literalString": "a"}, "b"], ["a", "b"]),
    "null": (None, None),
    "a number": (1.5, 1.5),
    "an object of the data": ({"literalString": "a", "other": 1}, {"literalString": "a", "other": 1}),
    "an object with such a key inside": ({"k": {"literalString": "a"}}, {"k": {"literalString": "a"}}),
    "a path that nobody resolved": ({"path": "/a"}, {"path": "/a"}),
}


@pytest.mark.parametrize(("value", "plain"), WRAPPED.values(), ids=WRAPPED.keys())
@pytest.mark.parametrize("place", [agentdown, user])
def test_values_are_the_same_plain_and_wrapped(place: Any, value: Any, plain: Any) -> None:
    message = parsed(place({"userAction": {**ACTION, "context": {"v": value}}}))
    assert message.context == {"v": plain}
    assert message.raw["userAction"]["context"] == {"v": value}


@pytest.mark.parametrize("missing", ["context", "timestamp", "sourceComponentId"])
@pytest.mark.parametrize("null", [False, True])
def test_what_some_clients_leave_out_may_be_missing(missing: str, null: bool) -> None:
    action = {**ACTION, missing: None} if null else {key: ACTION[key] for key in ACTION if key != missing}
    message = parsed(agentdown({"userAction": action}))
    values = {"context": message.context, "timestamp": message.timestamp, "sourceComponentId": None}
    assert values[missing] in ({}, None)


@pytest.mark.parametrize(
    ("message", "surface_id"),
    [
        (ERROR, "s"),
        ({"error": {"message": "v0.8 errors are free", "surfaceId": "main"}}, "main"),
        ({"error": {}}, None),
        ({"error": {"surfaceId": 5}}, None),
    ],
)
@pytest.mark.parametrize("place", [agentdown, user])
def test_an_error_is_one_whatever_it_says(place: Any, message: dict[str, Any], surface_id: str | None) -> None:
    found = parsed(place(message))
    assert (found.error, found.surface_id, found.name, found.kind) == (message["error"], surface_id, None, "error")
    assert (found.context, found.version) == ({}, message.get("version"))


A2UI = "forwardedProps.a2ui"
CLIENT = f"{A2UI}.clientMessage"


def action(**fields: Any) -> dict[str, Any]:
    return {"action": {**ACTION, **fields}, "version": "v0.9"}


MALFORMED: dict[str, tuple[RunAgentInput, str]] = {
    "no object": (agentdown("text"), rf"{CLIENT}: wanted an object, got a string"),
    "a list": (agentdown([V09]), rf"{CLIENT}: wanted an object, got a list"),
    "empty": (agentdown({}), rf"{CLIENT}: wanted exactly one of userAction, action, error, got none of them"),
    "a version alone": (agentdown({"version": "v0.9"}), r"got none of them"),
    "two kinds": (agentdown({**V08, "error": {}}), r"got userAction and error"),
    "two kinds, one null": (agentdown({**V09, "error": None}), r"got action and error"),
    "an action that is none": (agentdown({"action": 5}), rf"{CLIENT}\.action: wanted an object, got a number"),
    "a null action": (agentdown({"action": None}), rf"{CLIENT}\.action: wanted an object, got null"),
    "no fields": (agentdown({"action": {}}), rf"{CLIENT}\.action\.name: missing; wanted a string"),
    "an empty name": (agentdown(action(name="")), rf"{CLIENT}\.action\.name: empty; wanted a string"),
    "a name that is none": (agentdown(action(name=[])), rf"{CLIENT}\.action\.name: wanted a string, got a list"),
    "no surface": (agentdown(action(surfaceId=None)), rf"{CLIENT}\.action\.surfaceId: missing; wanted a string"),
    "a surface that is none": (agentdown(action(surfaceId=True)), r"surfaceId: wanted a string, got true"),
    "a component that is none": (
        agentdown(action(sourceComponentId={})),
        r"sourceComponentId: wanted a string, got an",
    ),
    "a timestamp that is none": (agentdown(action(timestamp=1)), r"timestamp: wanted a string, got a number"),
    "a context that is none": (
        agentdown(action(context="x")),
        rf"{CLIENT}\.action\.context: wanted an object, got a s",
    ),
    "an unresolved context": (agentdown(action(context=[{"key": "a"}])), r"context: wanted an object, got a list"),
    "a version that is none": (
        agentdown({**V09, "version": 0.9}),
        rf"{CLIENT}\.version: wanted a string, got a number",
    ),
    "an error that is none": (agentdown({"error": "text"}), rf"{CLIENT}\.error: wanted an object, got a string"),
    "a request id that is none": (agentdown(V09, requestId=5), rf"{A2UI}\.requestId: wanted a string, got a number"),
    "data that is none": (
        agentdown(V09, clientDataModel=[]),
        rf"{A2UI}\.clientDataModel: wanted an object, got a list",
    ),
    "data without surfaces": (agentdown(V09, clientDataModel={}), rf"{A2UI}\.clientDataModel\.surfaces: missing"),
    "surfaces that are none": (
        agentdown(V09, clientDataModel={"surfaces": 1}),
        rf"{A2UI}\.clientDataModel\.surfaces: wanted an object, got a number",
    ),
    "CopilotKit's, no object": (
        props({"a2uiAction": {"userAction": "go"}}),
        r"forwardedProps\.a2uiAction\.userAction: wanted an object, got a string",
    ),
    "CopilotKit's, no fields": (
        props({"a2uiAction": {"userAction": {}}}),
        r"forwardedProps\.a2uiAction\.userAction\.name: missing",
    ),
    "a user message, no fields": (user({"userAction": {}}), r"messages\[0\]\.content\.userAction\.name: missing"),
    "a user message, null": (user({"userAction": None}), r"messages\[0\]\.content\.userAction: wanted an object"),
    "a v0.9 user message, no fields": (user({"version": "v0.9", "action": {}}), r"\.content\.action\.name: missing"),
    "a key that reaches a prototype": (
        agentdown(action(context={"__proto__": {"isAdmin": True}})),
        rf"{CLIENT}: holds a key that reaches a prototype",
    ),
}


@pytest.mark.parametrize(("input", "problem"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_message_is_refused_with_its_path(input: RunAgentInput, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        parse_client_message(input)


BIG = "x" * 200_000
OVER: dict[str, tuple[RunAgentInput, str]] = {
    "bytes": (agentdown(action(context={str(n): "x" * 15_000 for n in range(10)})), r"limit max_message_bytes=131072"),
    "a string": (agentdown(action(name="x" * 20_000)), r"limit max_string=16384"),
    "depth": (agentdown(action(context=json.loads('{"a":' * 60 + "1" + "}" * 60))), r"limit max_depth=50"),
    "a request id": (agentdown(V09, requestId="q" * 257), r"requestId: longer than 256 characters"),
    "data": (agentdown(V09, clientDataModel={"surfaces": {"s": {"v": BIG}}}), r"clientDataModel: 2\d+ is over"),
    "a user message": (
        user({"userAction": {**ACTION, "context": {"v": BIG}}}),
        r"messages\[0\]\.content: 2\d+ is over",
    ),
    "an error": (agentdown({"error": {"message": BIG}}), r"clientMessage: 2\d+ is over"),
}


@pytest.mark.parametrize(("input", "problem"), OVER.values(), ids=OVER.keys())
def test_a_message_over_a_limit_is_refused(input: RunAgentInput, problem: str) -> None:
    with pytest.raises(LimitError, match=problem):
        parse_client_message(input)


def test_limits_are_the_callers() -> None:
    with pytest.raises(LimitError, match="max_string=8"):
        parse_client_message(agentdown(V09), limits=A2UILimits(max_string=8))


# What is none.

CHAT: dict[str, Any] = {
    "prose": "Show me a calculator",
    "empty": "",
    "a list": [V08],
    "a number": "3",
    "an empty object": {},
    "another object": {"some": "json"},
    "two kinds": {"userAction": ACTION, "error": {}},
    "prose around one": f"What does {json.dumps(V08)} mean?",
    "two of them": json.dumps(V08) + "\n" + json.dumps(V08),
    "broken": json.dumps(V08)[:-1],
    "NaN": '{"userAction": NaN}',
    "deep nesting": "{" + '"userAction":{' * 100_000 + "}",
    "a game's move": {"action": "jump", "height": 3},
    "another protocol's action": {"action": {"type": "INCREMENT"}},
    "an API's error as text": {"error": "model not found"},
    "an API's error with more beside it": {"error": {"message": "model not found"}, "status": 404},
    "an action with more beside it": {"action": ACTION, "note": "what does this mean?"},
    "a log as large as a megabyte": {"error": {"message": "x" * 1_000_000}},
}


@pytest.mark.parametrize("content", CHAT.values(), ids=CHAT.keys())
def test_a_plain_chat_message_is_none(content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    assert parse_client_message(user(text)) is None


def test_only_the_last_user_message_counts() -> None:
    messages = [{"id": "1", "role": "user", "content": json.dumps(V08)}, {"id": "2", "role": "user", "content": "hi"}]
    assert parse_client_message(run_input(messages=messages)) is None


def test_only_users_act() -> None:
    messages = [{"id": "1", "role": "assistant", "content": json.dumps(V08)}]
    assert parse_client_message(run_input(messages=messages)) is None


def test_a_message_with_more_than_text_is_a_chat_message() -> None:
    image = {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}}
    assert parse_client_message(user([{"type": "text", "text": json.dumps(V08)}, image])) is None


@pytest.mark.parametrize("forwarded", [None, "text", [], 5, {"a2ui": 3}, {"a2ui": [V09]}, {"a2uiAction": "x"}])
def test_forwarded_props_of_any_shape_do_no_harm(forwarded: Any) -> None:
    assert parse_client_message(run_input("hello", forwarded_props=forwarded)) is None


def test_capabilities_alone_are_no_message() -> None:
    handshake = {"a2ui": {"clientCapabilities": {"v0.9": {"supportedCatalogIds": []}}, "requestId": "q"}}
    assert parse_client_message(run_input("hello", forwarded_props=handshake)) is None


def test_a_message_of_a_kind_of_a_later_version_is_left_to_the_agent() -> None:
    later = {"version": "v1.0", "callAgentFunction": {"functionCallId": "1", "callFunction": {"name": "f"}}}
    assert parse_client_message(agentdown(later)) is None


def test_the_input_is_not_changed_and_not_shared() -> None:
    forwarded = {"a2ui": {"clientMessage": {"action": {**ACTION, "context": {"v": ["a"]}}}}}
    input = run_input(forwarded_props=forwarded)
    before = input.model_dump_json()
    context = parsed(input).context
    context["v"].append("b")
    assert input.model_dump_json() == before


# Recognising a request.


def test_a_repeat_has_the_same_digest_and_anything_else_another() -> None:
    data = {"version": "v0.9", "surfaces": {"s": {"a": 1}}}
    first = parsed(agentdown(V09, requestId="q", clientDataModel=data)).digest
    reordered = json.loads(json.dumps(V09, sort_keys=True))
    assert parsed(agentdown(reordered, requestId="q", clientDataModel=data)).digest == first
    others = [
        agentdown({**V09, "version": "v0.9"}, clientDataModel=data),
        agentdown(action(context={**CONTEXT, "a": 12}), clientDataModel=data),
        agentdown(V09, clientDataModel={**data, "surfaces": {}}),
        agentdown(V09),
    ]
    digests = {first, *(parsed(other).digest for other in others)}
    assert len(digests) == 1 + len(others)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_NEARLY = st.dictionaries(st.sampled_from(["userAction", "action", "error", "version", "x"]), _JSON | st.just(ACTION))


@given(_JSON | _NEARLY, st.sampled_from([agentdown, user, lambda value: props({"a2uiAction": value})]))
def test_any_json_is_a_message_or_none_or_refused(value: Any, place: Any) -> None:
    try:
        message = parse_client_message(place(value))
    except (DecodeError, LimitError):
        return
    assert message is None or (message.name and message.surface_id) or isinstance(message.error, Mapping)
