"""Down to an older client's level and up again: text, calls, results, outcome come back, whatever interleaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agui_pipeline.translators import AnyEvent, Translator, decode_event, run_input
from agui_pipeline.translators._client_view import ClientView
from agui_pipeline.translators._upgrade import UpgradeTranslator
from agui_pipeline.translators._verifier import problems_of
from agui_pipeline.translators.agui_versions import RULES, Downgrade
from agui_pipeline.translators.agui_versions._version import Version

JSON = dict[str, Any]

LEVELS = sorted({bound for rule in RULES for bound in (rule.first, rule.last)})
THINKS = Version(0, 0, 37)
"""The first level whose clients are told of reasoning at all."""
IDS: JSON = {"threadId": "t", "runId": "r"}
INPUT = run_input("hi", thread_id="t", run_id="r")

deltas = st.lists(st.sampled_from(["a", "b ", "ü", ""]), max_size=3)


def _text(number: int, said: Sequence[str]) -> list[JSON]:
    id = f"m{number}"
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in said),
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def _call(number: int, said: Sequence[str]) -> list[JSON]:
    id = f"c{number}"
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f"},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for delta in said),
        {"type": "TOOL_CALL_END", "toolCallId": id},
        {"type": "TOOL_CALL_RESULT", "messageId": f"x{number}", "toolCallId": id, "content": "".join(said)},
    ]


def _reasoning(number: int, said: Sequence[str]) -> list[JSON]:
    id = f"r{number}"
    return [
        {"type": "REASONING_START", "messageId": f"s{number}"},
        {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"},
        *({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in said),
        {"type": "REASONING_MESSAGE_END", "messageId": id},
        {"type": "REASONING_END", "messageId": f"s{number}"},
    ]


def _chunks(number: int, said: Sequence[str]) -> list[JSON]:
    return [{"type": "TEXT_MESSAGE_CHUNK", "messageId": f"k{number}", "delta": delta} for delta in ["", *said]]


def _subagent(number: int, said: Sequence[str]) -> list[JSON]:
    id = f"a{number}"
    return [
        {"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n"},
        *({**event, "subagentRunId": id} for event in _text(100 + number, said)),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": id},
    ]


def _others(number: int, said: Sequence[str]) -> list[JSON]:
    step = {"stepName": f"n{number}"}
    return [
        {"type": "STEP_STARTED", **step},
        {"type": "CUSTOM", "name": "n", "value": None},
        *({"type": "STATE_SNAPSHOT", "snapshot": {"said": delta}} for delta in said),
        {"type": "RAW", "event": None},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": f"p{number}", "activityType": "A", "content": {}},
        {"type": "STEP_FINISHED", **step},
    ]


interrupts = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from("ijk"), "reason": st.just("r")},
        optional={
            "message": st.just("m"),
            "responseSchema": st.just({"type": "string"}),
            "metadata": st.just({"k": 1}),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda interrupt: str(interrupt["id"]),
)
outcomes = st.one_of(
    st.none(),
    st.just({"type": "success"}),
    interrupts.map(lambda found: {"type": "interrupt", "interrupts": found}),
)


@st.composite
def runs(draw: st.DrawFn) -> list[JSON]:
    """Make a run of parts that interleave in any way; each keeps its own order."""
    kinds = draw(st.lists(st.sampled_from([_text, _text, _call, _reasoning, _chunks, _subagent, _others]), max_size=5))
    lanes = [kind(number, draw(deltas)) for number, kind in enumerate(kinds)]
    events: list[JSON] = [{"type": "RUN_STARTED", **IDS}]
    while lanes := [lane for lane in lanes if lane]:
        events.append(draw(st.sampled_from(lanes)).pop(0))
    if draw(st.integers(0, 4)) == 0:
        return [*events, {"type": "RUN_ERROR", "message": "m"}]
    outcome = draw(outcomes)
    return [*events, {"type": "RUN_FINISHED", **IDS, **({} if outcome is None else {"outcome": outcome})}]


def through(translator: Translator, events: Iterable[Any]) -> list[AnyEvent]:
    out = [new for event in events for new in translator.feed(event)]
    return [*out, *translator.flush()]


def view(events: Iterable[AnyEvent]) -> JSON:
    """Return what the client shows, by id: where in the conversation a part stands may differ."""
    seen = ClientView(on_diagnostic=lambda _: None)
    for event in events:
        seen.apply(event)
    messages = seen.messages
    texts: dict[str, str] = {}
    for message in messages:
        if message["role"] == "assistant" and message.get("content"):
            # A text that goes on, as chunks do after anything else, is another message to clients up to 0.0.43.
            id = message["id"].partition("~")[0]
            texts[id] = texts.get(id, "") + message["content"]
    return {
        "texts": texts,
        "calls": {call["id"]: call["function"] for message in messages for call in message.get("toolCalls") or ()},
        "results": {message["toolCallId"]: message["content"] for message in messages if message["role"] == "tool"},
        "reasoning": [message["content"] for message in messages if message["role"] == "reasoning"],
        "state": seen.state,
        "outcome": seen.outcome,
        "interrupts": seen.interrupts,
    }


@settings(max_examples=200)
@given(run=runs(), level=st.sampled_from(LEVELS))
def test_what_went_down_comes_up_again(run: list[JSON], level: Version) -> None:
    events = [decode_event(event) for event in run]
    assert not list(problems_of(events)), "the run itself is legal"
    down = through(Downgrade(f"ag-ui/{level}", INPUT, lambda _: None), events)
    up = through(UpgradeTranslator("t", "r", lambda _: None, keep_custom=False), down)
    assert not list(problems_of(up))
    wanted = view(events)
    if level < THINKS:
        wanted["reasoning"] = []
    assert view(up) == wanted
