"""The tables of the lifecycle, every cell and every rule; and the verifier, which speaks for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ag_ui.core as sdk
import pytest

from agui_pipeline.translators import DecodeError, SSEFrame, decode_event
from agui_pipeline.translators._chunk_lanes import ChunkLanes
from agui_pipeline.translators._event_shapes import EVENTS, misfits
from agui_pipeline.translators._events import EVENT_CLASSES
from agui_pipeline.translators._lifecycle import Lifecycle
from agui_pipeline.translators._verifier import assert_valid_stream, problems_of
from agui_pipeline.translators.lifecycle import (
    ANY_OTHER,
    ENDERS,
    LANES,
    OPENERS,
    PARTS,
    ROWS,
    RULES,
    RUN,
    Repair,
    State,
    Violation,
    markdown,
)
from tests.event_samples import SAMPLES, stream_of, variants
from tests.streams import make_stream, seeded

Wire = dict[str, Any]

START: Wire = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISH: Wire = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ERROR: Wire = {"type": "RUN_ERROR", "message": "m"}
FIELDS: Wire = {"messageId": "i", "toolCallId": "i", "stepName": "i", "subagentRunId": None, "delta": "d"}
"""What makes an event of any type one about the same part."""


def text(part: str, id: str | None = "m", tag: str | None = None, **fields: Any) -> Wire:
    return event(f"TEXT_MESSAGE_{part}", messageId=id, subagentRunId=tag, **fields)


def tool(part: str, id: str | None = "c", tag: str | None = None, **fields: Any) -> Wire:
    return event(f"TOOL_CALL_{part}", toolCallId=id, subagentRunId=tag, **fields)


def event(type: str, **fields: Any) -> Wire:
    return {"type": type, **{name: value for name, value in fields.items() if value is not None}}


def walk(events: Iterable[Wire]) -> list[Violation | None]:
    life = Lifecycle()
    return [life.step(decode_event(item)) for item in events]


# The tables.


def test_the_tables_know_the_events_that_the_protocol_has() -> None:
    retired = {name for name in ROWS if name.startswith("THINKING_")}
    assert set(ROWS) == set(EVENTS)
    assert set(ROWS) - retired == set(EVENT_CLASSES) - retired if hasattr(sdk, "SubagentStartedEvent") else True


def test_every_state_of_a_part_answers_every_event_of_it() -> None:
    for states in (RUN, *PARTS.values()):
        (columns,) = {tuple(cells) for cells in states.values()}
        assert columns
    assert set(OPENERS) == set(ENDERS) == set(PARTS)


def about(kind: str, type: str) -> Wire:
    """Return an event about the one part of a kind that these tests know."""
    fields = {**FIELDS, "toolCallName": "f", "role": "reasoning" if kind.startswith("reasoning") else "user"}
    if kind == "subagent":
        fields["subagentRunId"] = "i"
    return event(type, **fields)


CELLS = [
    (kind, state, name, cell)
    for kind, states in PARTS.items()
    for state, row in states.items()
    for name, cell in row.items()
]


@pytest.mark.parametrize(("kind", "state", "name", "cell"), CELLS)
def test_every_cell_of_the_parts(kind: str, state: State, name: str, cell: State | Repair) -> None:
    way = {
        State.CLOSED: [],
        State.OPEN: [about(kind, OPENERS[kind])],
        State.OVER: [about(kind, OPENERS[kind]), about(kind, ENDERS[kind])],
    }[state]
    *before, found = walk([START, *way, about(kind, name)])
    assert before == [None] * len(before)
    if isinstance(cell, State):
        assert found is None
        follows = walk([START, *way, about(kind, name), FINISH])[-1]
        open_ = cell is State.OPEN and not name.endswith("_CHUNK")  # chunks end by themselves
        assert (follows is not None and follows.rule == "left-open") is open_
    else:
        assert found is not None
        assert found.repair is cell
        assert found.rule == {"OVER": {"SUBAGENT_STARTED": "subagent-over"}}.get(state.name, {}).get(
            name, "already-open" if state is State.OPEN else "not-open"
        )


@pytest.mark.parametrize(
    ("way", "state"),
    [
        ([], State.BEFORE),
        ([START], State.ACTIVE),
        ([START, FINISH], State.FINISHED),
        ([START, ERROR], State.FAILED),
        ([ERROR], State.FAILED),
        ([START, FINISH, ERROR], State.FAILED),
        ([START, FINISH, START], State.ACTIVE),
        ([START, ERROR, START], State.ACTIVE),
    ],
)
def test_every_cell_of_the_run(way: list[Wire], state: State) -> None:
    for name, cell in RUN[state].items():
        last = {"RUN_STARTED": START, "RUN_FINISHED": FINISH, "RUN_ERROR": ERROR}.get(name, event("RAW", event=1))
        *before, found = walk([*way, last])
        assert before == [None] * len(way)
        assert (found if found is None else found.repair) == (cell if isinstance(cell, Repair) else None)
    assert Lifecycle().run is State.BEFORE


def test_what_a_run_left_behind_does_not_count_in_the_next_one() -> None:
    def run(tag: str) -> list[Wire]:
        subagent = {"subagentRunId": "s", "name": "n", "message": "m"}
        return [
            START,
            text("START", "m", tag),
            tool("CHUNK", "c", tag, toolCallName="f"),
            event("ACTIVITY_SNAPSHOT", messageId="a", subagentRunId=tag, replace=False),
            event("ACTIVITY_DELTA", messageId="a", subagentRunId=tag),
            event("SUBAGENT_STARTED", **subagent),
            event("SUBAGENT_ERROR", **subagent),
            ERROR,
        ]

    assert walk([*run("s"), *run("u")]) == [None] * 16


# The rules, one by one.

A_STEP = event("STEP_STARTED", stepName="x")
OF_S = {"tag": "s"}


@pytest.mark.parametrize(
    ("rule", "repair", "events"),
    [
        ("not-started", Repair.START_RUN, [text("START")]),
        ("not-started", Repair.START_RUN, [FINISH]),
        ("run-active", Repair.DROP, [START, {**START, "runId": "r2"}]),
        ("after-terminal", Repair.DROP, [START, FINISH, event("CUSTOM", name="n", value=1)]),
        ("after-terminal", Repair.DROP, [START, ERROR, ERROR]),
        ("already-open", Repair.DROP, [START, text("START"), text("START")]),
        ("already-open", Repair.CLOSE_FIRST, [START, text("START"), text("CHUNK")]),
        ("already-open", Repair.DROP, [START, A_STEP, A_STEP]),
        # The chunks of another lane are not closed by it.
        ("already-open", Repair.DROP, [START, text("CHUNK", "m", "s"), text("START")]),
        ("not-open", Repair.DROP, [START, text("CHUNK"), text("END")]),
        ("not-open", Repair.OPEN_FIRST, [START, text("CHUNK"), text("CONTENT", delta="d")]),
        ("not-open", Repair.DROP, [START, text("START"), text("END", "n")]),
        (
            "not-open",
            Repair.DROP,
            [START, event("REASONING_START", messageId="m"), event("REASONING_MESSAGE_END", messageId="m")],
        ),
        ("left-open", Repair.CLOSE_ALL, [START, A_STEP, FINISH]),
        ("left-open", Repair.CLOSE_ALL, [START, event("SUBAGENT_STARTED", subagentRunId="s", name="n"), FINISH]),
        ("left-open", Repair.CLOSE_ALL, [START, event("THINKING_START"), FINISH]),
        ("no-id", Repair.DROP, [START, text("START", None)]),
        ("no-id", Repair.DROP, [START, {"type": "TEXT_MESSAGE_CHUNK", "messageId": ["m"]}]),
        ("no-id", Repair.DROP, [START, event("ACTIVITY_DELTA", patch=[])]),
        ("no-id", Repair.DROP, [START, event("TOOL_CALL_RESULT", messageId="m", content="c")]),
        ("owner", Repair.CHANGE, [START, text("START"), text("CONTENT", tag="s", delta="d")]),
        ("owner", Repair.CHANGE, [START, text("START", **OF_S), text("END", tag="u")]),
        ("owner", Repair.CHANGE, [START, text("START", **OF_S), text("END"), text("START", tag="u")]),
        ("owner", Repair.CHANGE, [START, text("CHUNK", **OF_S), text("CHUNK", tag="u")]),
        ("owner", Repair.CHANGE, [START, event("THINKING_START"), event("THINKING_END", subagentRunId="s")]),
        (
            "owner",
            Repair.CHANGE,
            [
                START,
                event("REASONING_START", messageId="m", subagentRunId="s"),
                event("REASONING_MESSAGE_START", messageId="m", subagentRunId="u", role="reasoning"),
            ],
        ),
        (
            "owner",
            Repair.CHANGE,
            [
                START,
                event("ACTIVITY_SNAPSHOT", messageId="m", subagentRunId="s"),
                event("ACTIVITY_SNAPSHOT", messageId="m", replace=False),
                event("ACTIVITY_DELTA", messageId="m", subagentRunId="u"),
            ],
        ),
        (
            "owner",
            Repair.CHANGE,
            [
                START,
                text("START", **OF_S),
                event("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="m", subagentRunId="u"),
            ],
        ),
        (
            "owner",
            Repair.CHANGE,
            [
                START,
                event("REASONING_START", messageId="m", subagentRunId="s"),
                event("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="m", subagentRunId="u"),
            ],
        ),
        (
            "owner",
            Repair.CHANGE,
            [
                {**START, "input": {"messages": [{"id": "m", "role": "assistant", "subagentRunId": "s"}]}},
                text("START", tag="u"),
            ],
        ),
        (
            "owner",
            Repair.CHANGE,
            [
                START,
                tool("START", toolCallName="f", **OF_S),
                {
                    "type": "MESSAGES_SNAPSHOT",
                    "messages": [{"id": "m", "role": "assistant", "subagentRunId": "u", "toolCalls": [{"id": "c"}]}],
                },
                tool("END", **OF_S),
            ],
        ),
        (
            "owner",
            Repair.CHANGE,
            [START, event("TOOL_CALL_RESULT", messageId="m", toolCallId="c", content=""), text("START", tag="s")],
        ),
        (
            "step-owner",
            Repair.CHANGE,
            [START, {**A_STEP, "subagentRunId": "s"}, event("STEP_FINISHED", stepName="x")],
        ),
        (
            "step-owner",
            Repair.DROP,
            [START, {**A_STEP, "subagentRunId": "s"}, A_STEP, event("STEP_FINISHED", stepName="x", subagentRunId="u")],
        ),
        (
            "call-parent",
            Repair.CHANGE,
            [START, text("START"), tool("START", tag="s", toolCallName="f", parentMessageId="m")],
        ),
        (
            "call-parent",
            Repair.CHANGE,
            [
                START,
                text("START", **OF_S),
                tool("START", toolCallName="f"),
                tool("END"),
                tool("START", toolCallName="f", parentMessageId="m"),
            ],
        ),
        (
            "subagent-over",
            Repair.DROP,
            [START, *(about("subagent", f"SUBAGENT_{part}") for part in ("STARTED", "ERROR", "STARTED"))],
        ),
        (
            "subagent-parent",
            Repair.CHANGE,
            [START, event("SUBAGENT_STARTED", subagentRunId="s", name="n", parentSubagentRunId="s")],
        ),
        ("chunk-id", Repair.DROP, [START, text("CHUNK", None, delta="d")]),
        ("chunk-id", Repair.DROP, [START, text("CHUNK"), tool("CHUNK", None, delta="d")]),
        ("chunk-id", Repair.DROP, [START, text("CHUNK"), event("CUSTOM", name="n"), text("CHUNK", None, delta="d")]),
        ("chunk-id", Repair.DROP, [START, tool("CHUNK", delta="d")]),
        ("chunk-id", Repair.DROP, [START, text("CHUNK", "a", "s"), text("CHUNK", "b", "u"), text("CHUNK", None)]),
        ("chunk-conflict", Repair.CHANGE, [START, text("CHUNK"), text("CHUNK", role="user")]),
        ("chunk-conflict", Repair.CHANGE, [START, tool("CHUNK", toolCallName="f"), tool("CHUNK", toolCallName="g")]),
        ("chunk-end", Repair.DROP, [START, text("CHUNK", **OF_S), text("END")]),
        (
            "result-id",
            Repair.CHANGE,
            [START, text("CHUNK", **OF_S), event("TOOL_CALL_RESULT", messageId="m", toolCallId="c", content="")],
        ),
    ],
)
def test_every_rule(rule: str, repair: Repair, events: list[Wire]) -> None:
    life = Lifecycle()
    *before, last = map(decode_event, events)
    assert [life.step(item) for item in before] == [None] * len(before)
    found = life.step(last)
    assert found is not None
    assert (found.rule, found.repair) == (rule, repair)
    assert bool(found.changes) is (repair is Repair.CHANGE)
    assert life.step(last) == found, "a refused event changes nothing"


def test_the_rules_above_are_all() -> None:
    (mark,) = (mark for mark in test_every_rule.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    assert {rule for rule, _, _ in mark.args[1]} == set(RULES)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([ERROR], id="an error first"),
        pytest.param([START, FINISH, ERROR], id="a late error"),
        pytest.param([START, ERROR, START, FINISH, START, ERROR], id="several runs"),
        pytest.param([event("OF_THE_FUTURE"), START, FINISH, event("OF_THE_FUTURE")], id="unknown types anywhere"),
        pytest.param([START, text("START"), ERROR], id="an error does not care what is open"),
        pytest.param(
            [START, text("START"), tool("START", "m", toolCallName="f"), text("END"), tool("END", "m"), FINISH],
            id="interleaved, one id for two kinds",
        ),
        pytest.param(
            [START, text("START"), text("END"), text("START"), text("END"), FINISH], id="opened again after its end"
        ),
        pytest.param(
            [START, text("START", **OF_S), text("CONTENT", delta="d"), text("END"), FINISH], id="untagged continuations"
        ),
        pytest.param(
            [START, A_STEP, {**A_STEP, "subagentRunId": "s"}, event("STEP_FINISHED", stepName="x"), ERROR],
            id="a step of the same name by another owner",
        ),
        pytest.param(
            [
                START,
                event("REASONING_START", messageId="m"),
                event("REASONING_MESSAGE_START", messageId="m", role="reasoning"),
                event("REASONING_END", messageId="m"),
                event("REASONING_MESSAGE_END", messageId="m"),
                FINISH,
            ],
            id="a span and its message share an id",
        ),
        pytest.param(
            [
                START,
                text("START", **OF_S),
                tool("START", toolCallName="f", parentMessageId="m"),
                tool("ARGS", delta="d", **OF_S),
                ERROR,
            ],
            id="a call is its parent message's owner's",
        ),
        pytest.param(
            [
                {**START, "input": {"messages": [{"id": "m", "role": "user", "subagentRunId": tag} for tag in "su"]}},
                text("START", **OF_S),
                {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "user"}, {"id": "m", "role": "future"}]},
                event("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="m"),
                ERROR,
            ],
            id="history does not restate an owner",
        ),
        pytest.param(
            [
                START,
                event("ACTIVITY_SNAPSHOT", messageId="a", subagentRunId="s"),
                event("ACTIVITY_SNAPSHOT", messageId="a", subagentRunId="u", replace=False),
                event("ACTIVITY_DELTA", messageId="a", subagentRunId="s"),
                event("ACTIVITY_SNAPSHOT", messageId="a", subagentRunId="u"),
                event("ACTIVITY_DELTA", messageId="a", subagentRunId="u"),
                FINISH,
            ],
            id="an activity is whose snapshot replaced it last",
        ),
        pytest.param([START, text("CHUNK"), text("CHUNK", None, delta="d"), text("CHUNK", "n"), FINISH], id="chunks"),
        pytest.param(
            [
                START,
                text("CHUNK"),
                event("RAW", event=1),
                event("ACTIVITY_SNAPSHOT", messageId="a"),
                text("CHUNK", None),
                FINISH,
            ],
            id="RAW and activities do not end chunks",
        ),
        pytest.param(
            [
                START,
                text("CHUNK", "a", "s"),
                tool("CHUNK", "b", toolCallName="f"),
                text("CHUNK", None, delta="goes on with a"),
                text("CONTENT", "a", delta="from the other lane"),
                FINISH,
            ],
            id="an untagged chunk goes on with the only stream of its kind",
        ),
        pytest.param(
            [
                START,
                event("SUBAGENT_STARTED", subagentRunId="s", name="n"),
                event("SUBAGENT_FINISHED", subagentRunId="s"),
                event("SUBAGENT_STARTED", subagentRunId="u", name="n", parentSubagentRunId="s"),
                text("START", **OF_S),
                text("END"),
                event("SUBAGENT_ERROR", subagentRunId="u", message="m"),
                FINISH,
            ],
            id="a child of a subagent that is over, and a tag of one",
        ),
    ],
)
def test_legal_streams(events: Sequence[Wire]) -> None:
    assert walk(events) == [None] * len(events)


def test_the_lanes_are_those_of_the_other_reader_of_chunks() -> None:
    for name in set(ROWS) - {row.type for row in ROWS.values() if row.chunk or row.type.startswith("THINKING_")}:
        for tag, other in ((None, "s"), ("s", None)):
            lanes = ChunkLanes()
            for owner in (tag, other):
                lanes.chunk(text("CHUNK", f"of {owner}", owner))
            closed = {stream.owner for stream in lanes.other(event(name, subagentRunId=tag))}
            wanted = {"all": {tag, other}, "its own": {tag}}.get(LANES.get(name, ""), set())
            if not (name.startswith("SUBAGENT_") and tag is None):
                assert closed == wanted, name


def test_the_documentation_shows_every_cell_and_rule() -> None:
    page = markdown()
    cells = [cell for states in (RUN, *PARTS.values()) for row in states.values() for cell in row.values()]
    assert sum(page.count(f"*{repair}*") for repair in Repair) == sum(isinstance(cell, Repair) for cell in cells)
    assert all(f"`{name}`" in page for name in (*ROWS, *RULES) if name in (*LANES, *RULES) or ROWS[name].kind)
    assert ANY_OTHER in page


# Fields.


def test_complete_events_have_nothing_wrong_with_them() -> None:
    assert {event["type"] for _, event in SAMPLES} == set(EVENTS)
    for _, sample in SAMPLES:
        assert misfits(decode_event(sample), {}) == []


def test_the_fields_of_the_samples_are_those_of_the_table() -> None:
    for name, shape in EVENTS.items():
        seen = {field for _, sample in SAMPLES if sample["type"] == name for field in sample}
        tag = {"subagentRunId"} if "subagentRunId" in shape.fields else set()  # left out where an opener has none
        assert seen - {"title"} | tag == set(shape.fields) | {"type"}


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": 5}, "delta must be a string; got a number"),
        ({"type": "CUSTOM", "name": None, "value": 1}, "name must be a string; got null"),
        (
            {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "a", "value": 1}]},
            "delta[0].path must be a JSON pointer; got another string",
        ),
        ({"type": "STATE_DELTA", "delta": [{"op": "add", "path": ""}]}, "delta[0].value must be a value; got nothing"),
        ({"type": "STATE_DELTA", "delta": {}}, "delta must be an array; got an object"),
        (
            {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "A", "content": []},
            "content must be an object; got an empty array",
        ),
        (
            {**FINISH, "outcome": {"type": "interrupt", "interrupts": []}},
            "outcome.interrupts must be an array of 1 or more; got an empty array",
        ),
        ({**FINISH, "outcome": "success"}, "outcome must be an object; got another string"),
        (
            {**ERROR, "usage": [{"inputTokens": -1}]},
            "usage[0].inputTokens must be a whole number from 0 to 9007199254740991; got a number",
        ),
        (
            {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "tool"},
            "role must be 'developer' or 'system' or 'assistant' or 'user'; got another string",
        ),
        (
            {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "user", "content": True}]},
            "messages[0].content must be a string or an array; got true",
        ),
    ],
)
def test_a_misfit_says_what_where_and_instead_of_what(event: Wire, wrong: str) -> None:
    (found,) = misfits(decode_event(event), {})
    assert str(found) == wrong
    assert found.fix is None


def test_objects_of_python_are_the_encoders_business() -> None:
    messages = [sdk.UserMessage(id="m", role="user", content="c")]
    event = decode_event({"type": "MESSAGES_SNAPSHOT", "messages": messages, "metadata": object()})
    assert misfits(event, {}) == []


# The verifier.


def test_a_legal_stream_of_any_kind_of_item_is_valid() -> None:
    assert_valid_stream(
        [
            sdk.RunStartedEvent(thread_id="t", run_id="r"),
            '{"type":"TEXT_MESSAGE_START","messageId":"m"}',
            b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"d"}',
            SSEFrame(None, '{"type":"TEXT_MESSAGE_END","messageId":"m"}', None, None, b""),
            SSEFrame(None, None, None, None, b": keep-alive\n\n"),
            decode_event(FINISH),
        ]
    )


def test_a_stream_that_just_stops_is_not_complete() -> None:
    assert_valid_stream([START], complete=False)
    with pytest.raises(AssertionError, match=r"at its end: .*RUN_FINISHED or RUN_ERROR \(guard.source-ended\)"):
        assert_valid_stream([START])


def test_no_event_at_all_is_not_complete_either() -> None:
    with pytest.raises(AssertionError, match=r"at its end"):
        assert_valid_stream([])


def test_the_message_names_each_problem_and_shows_what_came_before() -> None:
    events = [START, *(event("STEP_STARTED", stepName=f"{n}") for n in range(9)), text("END"), {**ERROR, "message": 5}]
    with pytest.raises(AssertionError) as raised:
        assert_valid_stream(events)
    assert str(raised.value) == "\n".join(
        [
            "@ag-ui/client 1.0 would refuse this stream:",
            f"  event 10: TEXT_MESSAGE_END ('m'): the text message is not open: {RULES['not-open']} (guard.not-open)",
            "  event 11: RUN_ERROR: message must be a string; got a number (guard.malformed)",
            "The events up to there:",
            "     …",
            *(f"     {n + 1} STEP_STARTED ('{n}')" for n in range(3, 9)),
            "  -> 10 TEXT_MESSAGE_END ('m')",
        ]
    )


def test_a_flood_of_problems_is_cut() -> None:
    with pytest.raises(AssertionError, match="and 15 more"):
        assert_valid_stream([START, *[text("END")] * 20, FINISH])


def test_what_is_no_event_is_said() -> None:
    with pytest.raises(DecodeError, match="a stream is made of events; got int"):
        assert_valid_stream([5])


def test_a_models_fields_are_judged_as_they_go_over_the_wire() -> None:
    start = sdk.RunStartedEvent(thread_id="t", run_id="r", parent_run_id=None)
    broken = sdk.RunErrorEvent.model_construct(message=5)
    assert [found.diagnostic.code for found in problems_of([start, broken])] == ["guard.malformed"]


@pytest.mark.parametrize("seed", range(0, 300, 3))
def test_the_first_problem_is_where_the_table_says(seed: int) -> None:
    stream = make_stream(seeded(seed), malformed=False)
    refused = next((place for place, found in enumerate(walk(stream)) if found is not None), None)
    problems = problems_of(stream, complete=False)
    assert (problems[0].place if problems else None) == refused


def test_every_malformed_field_of_the_samples_is_found_where_it_is() -> None:
    for before, sample in SAMPLES:
        for path, value, changed in variants(sample, [{"type": "odd"}]):
            found = misfits(decode_event(changed), {"threadId": "t", "runId": "r"})
            assert all(misfit.path[: len(path)] == path or path[: len(misfit.path)] == misfit.path for misfit in found)
            assert bool(found) <= bool(problems_of(stream_of(before, changed))), (path, value)
