"""The calculator demo without a browser: arithmetic, client events, messages, the agent's stream, the endpoints."""

from __future__ import annotations

import doctest
import json
import socket
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from ag_ui.core import BaseEvent, RunAgentInput
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.calculator import arithmetic
from examples.calculator.agent import calculator
from examples.calculator.arithmetic import calculate
from examples.calculator.server import build_app, listen
from examples.calculator.surfaces import ACTION, Version, answer, form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.applications import Starlette

VERSIONS: tuple[Version, ...] = ("v0.8", "v0.9.1")
CONTEXT = {"operation": "multiply", "a": "12", "b": "7"}
ACTION_BODY = {
    "name": ACTION,
    "surfaceId": "calculator",
    "sourceComponentId": "submit-button",
    "timestamp": "2026-03-18T08:00:00Z",
    "context": CONTEXT,
}


def run_input(*texts: str, **fields: Any) -> RunAgentInput:
    messages = [{"id": f"u{index}", "role": "user", "content": text} for index, text in enumerate(texts)]
    lists = {"messages": messages, "tools": [], "context": []}
    return RunAgentInput.model_validate(
        {"threadId": "t", "runId": "r", "state": {}, "forwardedProps": {}, **lists, **fields}
    )


# Arithmetic


@pytest.mark.parametrize(
    ("a", "operation", "b", "result"),
    [
        ("12", "multiply", "7", "84"),
        ("20", "divide", "5", "4"),
        ("0.1", "add", "0.2", "0.3"),
        ("1", "subtract", "0.9", "0.1"),
        ("1.50", "add", "1.50", "3"),
        ("100", "multiply", "10", "1000"),
        ("1", "divide", "3", "0.333333333333333"),
        ("2", "divide", "3", "0.666666666666667"),
        ("1", "divide", "8", "0.125"),
        ("1", "divide", "1024", "0.0009765625"),
        ("-5", "subtract", "-5", "0"),
        ("-0", "multiply", "3", "0"),
        ("  12\t", "add", "\n7 ", "19"),
        ("3,5", "add", "1,25", "4.75"),
        ("+4", "multiply", "−2", "-8"),  # noqa: RUF001 - U+2212
        ("１２", "add", "７", "19"),  # noqa: RUF001 - as East Asian input methods type digits
        (".5", "add", "5.", "5.5"),
        ("1e3", "add", "2E-1", "1000.2"),
        ("1e50", "multiply", "1e50", "1e100"),
        ("1e-50", "multiply", "1", "1e-50"),
        ("1e100", "add", "1", "1." + "0" * 99 + "1e100"),
        ("99999999999999999999", "add", "1", "100000000000000000000"),
        (12, "multiply", 7, "84"),
        (0.1, "add", 0.2, "0.3"),
        (1e21, "add", 0, "1e21"),
    ],
)
def test_computes_exactly_and_writes_plainly(a: Any, operation: str, b: Any, result: str) -> None:
    assert calculate(a, b, operation) == result


@pytest.mark.parametrize(
    "operation",
    [
        "multiply",
        " Multiply ",
        "*",
        "×",  # noqa: RUF001
        ["multiply"],
        ("multiply",),
        {"literalString": "multiply"},
        {"literalArray": ["multiply"]},
        [{"literalString": "multiply"}],
    ],
)
def test_operation_is_a_text_or_a_list_plain_or_wrapped(operation: Any) -> None:
    assert calculate({"literalString": "12"}, {"literalNumber": 7}, operation) == "84"


@pytest.mark.parametrize(
    ("a", "operation", "b", "words"),
    [
        ("", "add", "1", "Operand A is empty: enter a number."),
        ("1", "add", "  ", "Operand B is empty: enter a number."),
        (None, "add", "1", "Operand A is empty: enter a number."),
        ("twelve", "add", "1", "Operand A is not a number: “twelve”."),
        ("1", "add", "NaN", "Operand B is not a number: “NaN”."),
        ("Infinity", "add", "1", "Operand A is not a number: “Infinity”."),
        (float("inf"), "add", "1", "Operand A is not a number: “inf”."),
        ("1_000", "add", "1", "Operand A is not a number: “1_000”."),
        ("0x10", "add", "1", "Operand A is not a number: “0x10”."),
        ("1.2.3", "add", "1", "Operand A is not a number: “1.2.3”."),
        ("1,2,3", "add", "1", "Operand A is not a number: “1,2,3”."),
        ("--1", "add", "1", "Operand A is not a number: “--1”."),
        ("1,000", "add", "1", "Operand A is ambiguous: write “1,000” without the comma or with a point."),
        ("<b>" * 20, "add", "1", "Operand A is not a number: “<b><b><b><b><b><b><b><b>…”."),
        (True, "add", "1", "Operand A is not a number: “bool”."),
        ({"path": "/form/a"}, "add", "1", "Operand A is not a number: “dict”."),
        (["1"], "add", "1", "Operand A is not a number: “list”."),
        ("1e101", "add", "1", "Operand A is out of range: exponents go from -100 to 100."),
        ("1e" + "9" * 40, "add", "1", "Operand A is out of range: exponents go from -100 to 100."),
        ("9" * 101, "add", "1", "Operand A is too long: at most 100 characters."),
        pytest.param(10**5000, "add", "1", "Operand A is too long for this calculator.", id="huge integer"),
        ("1", "divide", "0", "Cannot divide by zero."),
        ("0", "divide", "-0.0", "Cannot divide by zero."),
        ("1", "", "1", "Choose an operation."),
        ("1", None, "1", "Choose an operation."),
        ("1", [], "1", "Choose an operation."),
        ("1", ["add", "divide"], "1", "Choose one operation, not several."),
        ("1", "power", "1", "Unknown operation “power”: choose one of add, subtract, multiply, divide."),
        ("1", 3, "1", "Unknown operation “int”: choose one of add, subtract, multiply, divide."),
    ],
)
def test_says_in_words_what_cannot_be_computed(a: Any, operation: Any, b: Any, words: str) -> None:
    assert calculate(a, b, operation) == words


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=13), inner, max_size=2)
)


@given(a=VALUES, b=VALUES, operation=VALUES | st.sampled_from(["add", "subtract", "multiply", "divide"]))
@settings(max_examples=150)
def test_any_json_gets_an_answer(a: Any, b: Any, operation: Any) -> None:
    assert calculate(a, b, operation)


@given(
    a=st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12),
    b=st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12),
)
@settings(max_examples=100)
def test_sums_differences_and_products_are_exact(a: Any, b: Any) -> None:
    left, right = Fraction(a), Fraction(b)
    for operation, exact in (("add", left + right), ("subtract", left - right), ("multiply", left * right)):
        assert Fraction(calculate(str(a), str(b), operation)) == exact


def test_the_docstrings_examples_run() -> None:
    outcome = doctest.testmod(arithmetic)
    assert (outcome.attempted > 0, outcome.failed) == (True, 0)


# What an action looks like on each carrier

V08_TEXT = json.dumps({"userAction": ACTION_BODY})
CARRIERS: dict[str, dict[str, Any]] = {
    "agentdown, v0.9": {"forwardedProps": {"a2ui": {"clientMessage": {"version": "v0.9.1", "action": ACTION_BODY}}}},
    "agentdown, v0.8": {"forwardedProps": {"a2ui": {"clientMessage": {"userAction": ACTION_BODY}}}},
    "copilotkit, inspector": {"forwardedProps": {"a2uiAction": {"userAction": ACTION_BODY}}},
    "trpc: a user message": {"messages": [{"id": "1", "role": "user", "content": V08_TEXT}]},
    "a v0.9 user message": {
        "messages": [{"id": "1", "role": "user", "content": json.dumps({"version": "v0.9", "action": ACTION_BODY})}]
    },
    "a user message of parts": {
        "messages": [{"id": "1", "role": "user", "content": [{"type": "text", "text": V08_TEXT}]}]
    },
    "behind an assistant message": {
        "messages": [
            {"id": "1", "role": "user", "content": V08_TEXT},
            {"id": "2", "role": "assistant", "content": "…"},
        ]
    },
}


# The messages


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Every string inside a component, with the key it stands under."""
    for key, child in value.items():
        for item in child if isinstance(child, list) else [child]:
            if isinstance(item, dict):
                yield from references(item)
            elif isinstance(item, str):
                yield key, item


def components_of(version: Version) -> list[dict[str, Any]]:
    (update,) = [
        body
        for message in form(version, "s")
        for body in message.values()
        if isinstance(body, dict) and "components" in body
    ]  # exactly one: a renderer refuses a message that refers to components of another
    components: list[dict[str, Any]] = update["components"]
    return components


@pytest.mark.parametrize("version", VERSIONS)
def test_every_component_is_defined_once_and_used(version: Version) -> None:
    components = components_of(version)
    ids = [component["id"] for component in components]
    used = {
        text
        for component in components
        for key, text in references(component)
        if key in ("children", "explicitList", "child")
    }
    assert len(ids) == len(set(ids))
    assert used | {"root"} == set(ids)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_other_property_reads_like_a_component_id(version: Version) -> None:
    components = components_of(version)
    ids = {component["id"] for component in components}
    for component in components:
        for key, text in references(component):
            assert key in ("id", "children", "explicitList", "child") or text not in ids, (key, text)


def test_v08_form_is_the_seed_documents() -> None:
    messages = form("v0.8", "calculator")
    assert [next(iter(message)) for message in messages] == [
        "dataModelUpdate",
        "dataModelUpdate",
        "surfaceUpdate",
        "beginRendering",
    ]
    by_id = {component["id"]: component["component"] for component in components_of("v0.8")}
    assert {"field-a", "field-b", "operator-choice", "submit-button", "result-value"} <= set(by_id)
    assert by_id["field-a"]["TextField"]["text"] == {"path": "/form/a"}
    assert by_id["submit-button"]["Button"]["action"]["name"] == "calculate_binary_operation"
    assert [option["value"] for option in by_id["operator-choice"]["MultipleChoice"]["options"]] == [
        "add",
        "subtract",
        "multiply",
        "divide",
    ]


def test_v09_form_creates_its_surface_first_and_names_its_version_everywhere() -> None:
    messages = form("v0.9.1", "calculator")
    assert {message["version"] for message in messages} == {"v0.9.1"}
    assert [[key for key in message if key != "version"] for message in messages] == [
        ["createSurface"],
        ["updateComponents"],
        ["updateDataModel"],
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_does_not_touch_what_was_typed(version: Version) -> None:
    assert "/form" not in json.dumps(answer(version, "s", "84"))


# The agent


async def events_of(version: Version, input: RunAgentInput) -> list[BaseEvent]:
    return [event async for event in calculator(version, pause=0)(input)]


async def lines_of(version: Version, input: RunAgentInput) -> list[Any]:
    """The records that the agent writes as text."""
    events = await events_of(version, input)
    text = "".join(getattr(event, "delta", "") for event in events)
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.anyio
async def test_a_run_is_one_message_in_small_deltas() -> None:
    events = await events_of("v0.8", run_input("Show me a calculator"))
    types = [str.__str__(event.type) for event in events]
    assert types[:2] == ["RUN_STARTED", "TEXT_MESSAGE_START"]
    assert types[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert set(types[2:-2]) == {"TEXT_MESSAGE_CONTENT"}
    sizes = [len(event.delta) for event in events[2:-2]]  # type: ignore[attr-defined]
    assert all(4 <= size <= 12 for size in sizes[:-1])
    assert len({event.message_id for event in events[1:-1]}) == 1  # type: ignore[attr-defined]


@pytest.mark.anyio
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_message_is_answered_with_the_form(version: Version) -> None:
    assert await lines_of(version, run_input("Show me a calculator")) == form(version, "calculator")
    assert await lines_of(version, run_input()) == form(version, "calculator")


@pytest.mark.anyio
async def test_asked_again_it_makes_a_surface_of_its_own() -> None:
    assert await lines_of("v0.9.1", run_input("a calculator", "one more")) == form("v0.9.1", "calculator-2")


@pytest.mark.anyio
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("fields", CARRIERS.values(), ids=CARRIERS.keys())
async def test_an_action_is_answered_in_the_agents_version(version: Version, fields: dict[str, Any]) -> None:
    assert await lines_of(version, run_input(**fields)) == answer(version, "calculator", "84")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("client_message", "surface", "words"),
    [
        ({"userAction": {**ACTION_BODY, "surfaceId": "calculator-2"}}, "calculator-2", "84"),
        (
            {"userAction": {"name": ACTION, "surfaceId": "calculator"}},
            "calculator",
            "Operand A is empty: enter a number.",
        ),
        (
            {"userAction": {**ACTION_BODY, "name": "reset"}},
            "calculator",
            "This calculator has no action called “reset”.",
        ),
        (
            {"userAction": {**ACTION_BODY, "context": "nonsense"}},
            "calculator",
            "The page sent something odd: messages[0].content.userAction.context: wanted an object, got a string",
        ),
        (
            {"userAction": {"name": ACTION}},
            "calculator",
            "The page sent something odd: messages[0].content.userAction.surfaceId: missing; wanted a string",
        ),
        (
            {"error": {"message": "button render failed", "surfaceId": "main"}},
            "main",
            "The page reported a problem: button render failed",
        ),
        ({"error": {"code": "VALIDATION_FAILED"}}, "calculator", "The page reported a problem: VALIDATION_FAILED"),
        ({"error": {}}, "calculator", "The page reported a problem: no details"),
        (
            {"error": {"message": "x" * 1000}},
            "calculator",
            "The page reported a problem: " + "x" * 120 + "…",
        ),
    ],
)
async def test_odd_client_events_are_answered_in_the_result_field(
    client_message: dict[str, Any], surface: str, words: str
) -> None:
    run = run_input(json.dumps(client_message))
    assert await lines_of("v0.8", run) == answer("v0.8", surface, words)


# The server's endpoints, called in process


@pytest.fixture(scope="module")
def app() -> Starlette:
    return build_app(pause=0)


def client_of(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://demo")


async def post(app: Starlette, path: str, body: Any) -> list[dict[str, Any]]:
    async with client_of(app) as client:
        response = await client.post(path, json=body)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    return [
        json.loads(frame.removeprefix("data: ")) for frame in response.text.split("\n\n") if frame.startswith("data:")
    ]


# What tRPC-Agent-Go's demo page sends: no message id, no tools, no context, no state.
TRPC_ASK = {"threadId": "t1", "runId": "r1", "messages": [{"role": "user", "content": "a calculator"}]}
TRPC_ACT = {"threadId": "t1", "runId": "r2", "messages": [{"role": "user", "content": V08_TEXT}]}
AGENTDOWN_ACT = {"threadId": "t1", "runId": "r2", "messages": [], **CARRIERS["agentdown, v0.9"]}


@pytest.mark.anyio
async def test_the_bare_agent_sends_the_interface_as_text(app: Starlette) -> None:
    events = await post(app, "/agent", TRPC_ASK)
    text = "".join(event.get("delta", "") for event in events)
    assert [json.loads(line) for line in text.splitlines()] == form("v0.8", "calculator")
    assert {event["type"] for event in events} == {
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    }


@pytest.mark.anyio
async def test_a2ui_sends_it_as_raw_events(app: Starlette) -> None:
    events = await post(app, "/a2ui", TRPC_ASK)
    assert [event["type"] for event in events] == ["RUN_STARTED", *["RAW"] * 4, "RUN_FINISHED"]
    assert [event["event"] for event in events[1:-1]] == form("v0.8", "calculator")
    assert {event["source"] for event in events[1:-1]} == {"a2ui/v0.8"}
    events = await post(app, "/a2ui", TRPC_ACT)
    assert [event["event"] for event in events[1:-1]] == answer("v0.8", "calculator", "84")


@pytest.mark.anyio
async def test_a2ui_custom_sends_v091_as_custom_events(app: Starlette) -> None:
    events = await post(app, "/a2ui-custom", TRPC_ASK)
    assert [(event["name"], event["value"]) for event in events[1:-1]] == [
        ("a2ui", message) for message in form("v0.9.1", "calculator")
    ]
    events = await post(app, "/a2ui-custom", AGENTDOWN_ACT)
    assert [event["value"] for event in events[1:-1]] == answer("v0.9.1", "calculator", "84")


@pytest.mark.anyio
async def test_a2ui_activity_shows_the_answer_in_the_form_that_is_there(app: Starlette) -> None:
    thread = {"threadId": "activity-thread"}
    asked = (await post(app, "/a2ui-activity", TRPC_ASK | thread))[1:-1]
    acted = (await post(app, "/a2ui-activity", TRPC_ACT | thread))[1:-1]
    assert {event["type"] for event in asked + acted} == {"ACTIVITY_SNAPSHOT"}
    assert {event["activityType"] for event in asked + acted} == {"a2ui-surface"}
    assert len({event["messageId"] for event in asked + acted}) == 1
    operations = acted[-1]["content"]["a2ui_operations"]
    assert operations[-1:] == answer("v0.8", "calculator", "84")
    assert any("surfaceUpdate" in operation for operation in operations)


@pytest.mark.anyio
@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b"\xff"])
async def test_the_bare_agent_refuses_what_is_no_json_object(app: Starlette, body: bytes) -> None:
    async with client_of(app) as client:
        response = await client.post("/agent", content=body)
    assert (response.status_code, response.json()) == (400, {"error": "the body is not a JSON object"})


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [{}, {"messages": None}, {"messages": [3, {"role": "user"}, {"role": "user", "content": [{"type": "text"}, 3]}]}],
)
async def test_the_bare_agent_reads_leniently(app: Starlette, body: Any) -> None:
    events = await post(app, "/agent", body)
    assert events[-1]["type"] == "RUN_FINISHED"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:4173", True),
        ("http://127.0.0.1:5500", True),
        ("http://[::1]:1", True),
        ("https://example.com", False),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com:80", False),
    ],
)
@pytest.mark.parametrize("path", ["/agent", "/a2ui", "/a2ui-activity", "/a2ui-custom"])
async def test_pages_of_this_machine_may_call_it(app: Starlette, path: str, origin: str, allowed: bool) -> None:
    preflight = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    async with client_of(app) as client:
        asked = await client.options(path, headers=preflight)
        posted = await client.post(path, json=TRPC_ACT, headers={"Origin": origin})
    assert (asked.status_code == 200) is allowed
    for response in (asked, posted):
        assert response.headers.get("access-control-allow-origin") == (origin if allowed else None)


@pytest.mark.anyio
async def test_the_root_leads_to_the_page_with_the_four_agents(app: Starlette) -> None:
    async with client_of(app) as client:
        root = await client.get("/")
        page = await client.get(root.headers["location"])
        config = await client.get("/agui-inspector/config.json")
    assert root.headers["location"] == "/agui-inspector/"
    assert page.status_code == 200
    assert [agent["url"] for agent in config.json()["agents"]] == ["/agent", "/a2ui", "/a2ui-activity", "/a2ui-custom"]


def test_a_taken_port_means_the_next_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with listen("127.0.0.1", port) as listener:
            assert port < listener.getsockname()[1] <= port + 100
