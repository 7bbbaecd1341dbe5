"""The guard's translator: every repair, every ending, and that whatever goes in, what comes out is a legal stream."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agui_pipeline.translators import AnyEvent, Diagnostic, SequenceError, decode_event, encode_event, typed
from agui_pipeline.translators._errors import DecodeError
from agui_pipeline.translators._event_shapes import EVENTS
from agui_pipeline.translators._guard import DIAGNOSTICS, ENDINGS, GuardTranslator, Mode
from agui_pipeline.translators._verifier import problems_of
from agui_pipeline.translators.lifecycle import RULES
from tests.event_samples import SAMPLES, stream_of, variants
from tests.streams import Wire, make_stream, mutated, seeded

START: Wire = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISH: Wire = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ERROR: Wire = {"type": "RUN_ERROR", "message": "m"}
ENDED: Wire = {"type": "RUN_ERROR", "message": ENDINGS["source_ended"], "code": "source_ended"}
FAILED: Wire = {"type": "RUN_ERROR", "message": ENDINGS["source_error"], "code": "source_error"}


def event(type: str, **fields: Any) -> Wire:
    return {"type": type, **{name: value for name, value in fields.items() if value is not None}}


def text(part: str, id: str | None = "m", tag: str | None = None, **fields: Any) -> Wire:
    return event(f"TEXT_MESSAGE_{part}", messageId=id, subagentRunId=tag, **fields)


def tool(part: str, id: str | None = "c", tag: str | None = None, **fields: Any) -> Wire:
    return event(f"TOOL_CALL_{part}", toolCallId=id, subagentRunId=tag, **fields)


def step(part: str, name: str = "x", tag: str | None = None) -> Wire:
    return event(f"STEP_{part}", stepName=name, subagentRunId=tag)


def subagent(part: str, id: str = "s", **fields: Any) -> Wire:
    return event(f"SUBAGENT_{part}", subagentRunId=id, **fields)


CUSTOM = event("CUSTOM", name="n", value=1)
CALL = {"id": "2", "type": "function", "function": {"name": "f", "arguments": ""}}
INTERRUPTED = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "r", "subagentRunId": "s"}]}


@dataclass
class Result:
    objects: list[AnyEvent] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    exception: BaseException | None = None

    @property
    def events(self) -> list[Wire]:
        return [json.loads(encode_event(item)) for item in self.objects]

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code.removeprefix("guard.") for diagnostic in self.diagnostics]


def run(
    events: Iterable[Wire | AnyEvent],
    *,
    raises: BaseException | None = None,
    mode: Mode = "repair",
    expose_errors: bool = False,
    version: str | None = None,
) -> Result:
    """Run a guard over a stream whose input says thread t and run r."""
    result = Result()
    guard = GuardTranslator("t", "r", version, result.diagnostics.append, mode=mode, expose_errors=expose_errors)
    for item in events:
        result.objects.extend(guard.feed(decode_event(item) if isinstance(item, dict) else item))  # type: ignore[arg-type]
    if raises is None:
        result.objects.extend(guard.flush())
    else:
        more, result.exception = guard.fail(raises)
        result.objects.extend(more)
    return result


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "agui_pipeline")


A = text("CONTENT", delta="a")
B = text("CONTENT", delta="b")


@pytest.mark.parametrize(
    ("events", "expect", "codes"),
    [
        pytest.param([START, ERROR, FINISH], [START, ERROR], ["after-terminal"], id="one terminal"),
        pytest.param([START, FINISH, FINISH], [START, FINISH], ["after-terminal"], id="one terminal of a kind"),
        pytest.param([START, FINISH, ERROR], [START, FINISH, ERROR], [], id="a late error is legal"),
        pytest.param(
            [START, FINISH, text("CHUNK", delta="late"), START, FINISH],
            [START, FINISH, START, FINISH],
            ["after-terminal"],
            id="what follows a terminal is left out",
        ),
        pytest.param(
            [START, text("START", role="assistant"), A, FINISH],
            [START, text("START", role="assistant"), A, text("END"), FINISH],
            ["left-open"],
            id="open text at the end",
        ),
        pytest.param(
            [START, step("STARTED"), tool("START", toolCallName="f"), tool("ARGS", delta="{}"), FINISH],
            [
                START,
                step("STARTED"),
                tool("START", toolCallName="f"),
                tool("ARGS", delta="{}"),
                tool("END"),
                step("FINISHED"),
                FINISH,
            ],
            ["left-open"],
            id="closed in reverse order of opening",
        ),
        pytest.param(
            [
                START,
                event("REASONING_START", messageId="m", subagentRunId="s"),
                event("REASONING_MESSAGE_START", messageId="m", role="reasoning"),
                event("THINKING_START"),
                event("THINKING_TEXT_MESSAGE_START", subagentRunId="u"),
                step("STARTED", "x", "u"),
                FINISH,
            ],
            [
                START,
                event("REASONING_START", messageId="m", subagentRunId="s"),
                event("REASONING_MESSAGE_START", messageId="m", role="reasoning"),
                event("THINKING_START"),
                event("THINKING_TEXT_MESSAGE_START", subagentRunId="u"),
                step("STARTED", "x", "u"),
                step("FINISHED", "x", "u"),
                event("THINKING_TEXT_MESSAGE_END", subagentRunId="u"),
                event("THINKING_END"),
                event("REASONING_MESSAGE_END", messageId="m"),
                event("REASONING_END", messageId="m", subagentRunId="s"),
                FINISH,
            ],
            ["left-open"],
            id="reasoning, thinking and the steps of subagents, too, by their owners",
        ),
        pytest.param([START, text("CHUNK", delta="a"), FINISH], None, [], id="chunks end by themselves"),
        pytest.param(
            [START, text("START"), A],
            [START, text("START"), A, text("END"), ENDED],
            ["source-ended"],
            id="a stream that just stops is an error",
        ),
        pytest.param([], [START, ENDED], ["source-ended"], id="no event at all"),
        pytest.param(
            [event("OF_THE_FUTURE")], [event("OF_THE_FUTURE"), START, ENDED], ["source-ended"], id="nothing known"
        ),
        pytest.param([ERROR], [ERROR], [], id="an error may come first"),
        pytest.param([START, ERROR, START], [START, ERROR, START, ENDED], ["source-ended"], id="the second run stops"),
        pytest.param([START, text("START"), ERROR], None, [], id="the source's own error is left as it is"),
        pytest.param(
            [text("START"), A, text("END"), FINISH],
            [START, text("START"), A, text("END"), FINISH],
            ["not-started"],
            id="a missing start",
        ),
        pytest.param([FINISH], [START, FINISH], ["not-started"], id="nothing but an end"),
        pytest.param(
            [START, text("START", role="user", name="n"), A, text("END"), B, FINISH],
            [
                START,
                text("START", role="user", name="n"),
                A,
                text("END"),
                text("START", role="user", name="n"),
                B,
                text("END"),
                FINISH,
            ],
            ["not-open", "left-open"],
            id="content after its end opens the message again",
        ),
        pytest.param(
            [START, A, FINISH],
            [START, text("START", role="assistant"), A, text("END"), FINISH],
            ["not-open", "left-open"],
            id="content without a start is the assistant's",
        ),
        pytest.param(
            [START, text("START", tag="s"), text("END"), text("CONTENT", tag="s", delta="b"), FINISH],
            [
                START,
                text("START", tag="s"),
                text("END"),
                text("START", tag="s", role="assistant"),
                text("CONTENT", tag="s", delta="b"),
                text("END", tag="s"),
                FINISH,
            ],
            ["not-open", "left-open"],
            id="opened again for its owner",
        ),
        pytest.param(
            [START, tool("START", toolCallName="f", parentMessageId="m"), tool("END"), tool("ARGS", delta="1"), FINISH],
            [
                START,
                tool("START", toolCallName="f", parentMessageId="m"),
                tool("END"),
                tool("START", toolCallName="f", parentMessageId="m"),
                tool("ARGS", delta="1"),
                tool("END"),
                FINISH,
            ],
            ["not-open", "left-open"],
            id="arguments after their end open the call again, by its name",
        ),
        pytest.param(
            [START, tool("ARGS", delta="1"), tool("END"), FINISH],
            [START, FINISH],
            ["not-open", "not-open"],
            id="nobody can invent the name of a call",
        ),
        pytest.param(
            [START, event("REASONING_MESSAGE_CONTENT", messageId="m", delta="d"), FINISH],
            [
                START,
                event("REASONING_MESSAGE_START", messageId="m", role="reasoning"),
                event("REASONING_MESSAGE_CONTENT", messageId="m", delta="d"),
                event("REASONING_MESSAGE_END", messageId="m"),
                FINISH,
            ],
            ["not-open", "left-open"],
            id="reasoning content without a start",
        ),
        pytest.param(
            [START, event("THINKING_TEXT_MESSAGE_CONTENT", delta="d"), event("THINKING_TEXT_MESSAGE_END"), FINISH],
            [
                START,
                event("THINKING_TEXT_MESSAGE_START"),
                event("THINKING_TEXT_MESSAGE_CONTENT", delta="d"),
                event("THINKING_TEXT_MESSAGE_END"),
                FINISH,
            ],
            ["not-open"],
            id="thinking content without a start",
        ),
        pytest.param(
            [START, text("START"), text("START", role="user"), A, text("END"), text("END"), FINISH],
            [START, text("START"), A, text("END"), FINISH],
            ["already-open", "not-open"],
            id="a second start and a second end",
        ),
        pytest.param(
            [START, step("STARTED"), step("STARTED"), step("FINISHED"), step("FINISHED"), FINISH],
            [START, step("STARTED"), step("FINISHED"), FINISH],
            ["already-open", "not-open"],
            id="a step that starts twice",
        ),
        pytest.param(
            [START, step("STARTED", tag="s"), step("FINISHED"), FINISH],
            [START, step("STARTED", tag="s"), step("FINISHED", tag="s"), FINISH],
            ["step-owner"],
            id="a step is finished for whoever started it",
        ),
        pytest.param(
            [START, step("STARTED"), step("FINISHED", tag="s"), FINISH],
            [START, step("STARTED"), step("FINISHED"), FINISH],
            ["step-owner"],
            id="a step of the parent's, finished by a subagent",
        ),
        pytest.param(
            [START, text("START", tag="s"), text("CONTENT", tag="u", delta="d"), text("END"), FINISH],
            [START, text("START", tag="s"), text("CONTENT", delta="d"), text("END"), FINISH],
            ["owner"],
            id="the id says more than the tag",
        ),
        pytest.param(
            [
                START,
                text("START", tag="s"),
                tool("START", toolCallName="f"),
                tool("END"),
                tool("START", toolCallName="f", parentMessageId="m"),
                tool("END"),
                text("END"),
                FINISH,
            ],
            [
                START,
                text("START", tag="s"),
                tool("START", toolCallName="f"),
                tool("END"),
                tool("START", toolCallName="f"),
                tool("END"),
                text("END"),
                FINISH,
            ],
            ["call-parent"],
            id="a call stays with its owner",
        ),
        pytest.param(
            [
                START,
                subagent("STARTED", name="n"),
                subagent("STARTED", name="n"),
                subagent("FINISHED"),
                subagent("STARTED", name="n"),
                subagent("FINISHED"),
                FINISH,
            ],
            [START, subagent("STARTED", name="n"), subagent("FINISHED"), FINISH],
            ["already-open", "subagent-over", "not-open"],
            id="a subagent is one invocation",
        ),
        pytest.param(
            [START, subagent("STARTED", name="n", parentSubagentRunId="u"), subagent("FINISHED"), FINISH],
            [START, subagent("STARTED", name="n"), subagent("FINISHED"), FINISH],
            ["subagent-parent"],
            id="a parent that never started",
        ),
        pytest.param(
            [START, subagent("STARTED", name="n"), FINISH],
            [START, subagent("STARTED", name="n"), subagent("FINISHED"), FINISH],
            ["left-open"],
            id="a subagent of a run that succeeded has finished",
        ),
        pytest.param(
            [START, subagent("STARTED", name="n"), {**FINISH, "outcome": {"type": "cancelled"}}],
            [
                START,
                subagent("STARTED", name="n"),
                subagent("ERROR", message=ENDINGS["cancelled"], code="cancelled"),
                {**FINISH, "outcome": {"type": "cancelled"}},
            ],
            ["left-open"],
            id="one of a run that was cancelled has not",
        ),
        pytest.param(
            [
                START,
                subagent("STARTED", name="n"),
                subagent("STARTED", "u", name="n"),
                {**FINISH, "outcome": INTERRUPTED},
            ],
            [
                START,
                subagent("STARTED", name="n"),
                subagent("STARTED", "u", name="n"),
                subagent("FINISHED", "u"),
                subagent("FINISHED", outcome={"type": "suspended", "interruptIds": ["i"]}),
                {**FINISH, "outcome": INTERRUPTED},
            ],
            ["left-open"],
            id="one that an interrupt is from is suspended",
        ),
        pytest.param(
            [START, subagent("STARTED", name="n")],
            [
                START,
                subagent("STARTED", name="n"),
                subagent("ERROR", message=ENDINGS["source_ended"], code="source_ended"),
                ENDED,
            ],
            ["source-ended"],
            id="one of a run that stopped has failed",
        ),
        # Chunks.
        pytest.param(
            [START, text("CHUNK", delta="a"), CUSTOM, text("CHUNK", None, delta="b"), FINISH],
            [START, text("CHUNK", delta="a"), CUSTOM, text("CHUNK", delta="b"), FINISH],
            ["chunk-id"],
            id="a chunk whose stream was closed meanwhile is named",
        ),
        pytest.param(
            [text("CHUNK", delta="a"), CUSTOM, text("CHUNK", None, delta="b"), FINISH],
            [START, text("CHUNK", delta="a"), CUSTOM, text("CHUNK", delta="b"), FINISH],
            ["not-started", "chunk-id"],
            id="also where the stream began with it",
        ),
        pytest.param(
            [
                START,
                tool("CHUNK", toolCallName="f"),
                CUSTOM,
                tool("CHUNK", None, delta="{"),
                tool("CHUNK", delta="}", metadata={}),
                CUSTOM,
                tool("CHUNK", delta=" "),
                FINISH,
            ],
            [
                START,
                tool("CHUNK", toolCallName="f"),
                CUSTOM,
                tool("CHUNK", toolCallName="f", delta="{"),
                tool("CHUNK", delta="}", metadata={}),
                CUSTOM,
                tool("CHUNK", toolCallName="f", delta=" "),
                FINISH,
            ],
            ["chunk-id", "chunk-id"],
            id="a tool call with its name",
        ),
        pytest.param(
            [START, text("CHUNK", None, delta="b"), tool("CHUNK", delta="{"), FINISH],
            [START, FINISH],
            ["chunk-id", "chunk-id"],
            id="chunks of nothing",
        ),
        pytest.param(
            [
                START,
                text("CHUNK", tag="s", delta="a"),
                {**CUSTOM, "subagentRunId": "s"},
                text("CHUNK", None, delta="b"),
                FINISH,
            ],
            [
                START,
                text("CHUNK", tag="s", delta="a"),
                {**CUSTOM, "subagentRunId": "s"},
                text("CHUNK", delta="b"),
                FINISH,
            ],
            ["chunk-id"],
            id="the only stream that it can mean",
        ),
        pytest.param(
            [START, text("CHUNK", "a", "s"), text("CHUNK", "b", "u"), text("CHUNK", None, delta="?"), FINISH],
            [START, text("CHUNK", "a", "s"), text("CHUNK", "b", "u"), FINISH],
            ["chunk-id"],
            id="a chunk of nobody knows what",
        ),
        pytest.param(
            [START, text("CHUNK", delta="a"), text("CHUNK", role="user", delta="b"), FINISH],
            [START, text("CHUNK", delta="a"), text("CHUNK", delta="b"), FINISH],
            ["chunk-conflict"],
            id="the first chunk says the role",
        ),
        pytest.param(
            [START, text("START"), text("CHUNK", delta="a"), text("CHUNK", None, delta="b"), text("END"), FINISH],
            [START, text("START"), text("END"), text("CHUNK", delta="a"), text("CHUNK", None, delta="b"), FINISH],
            ["already-open", "not-open"],
            id="chunks of a message that was started",
        ),
        pytest.param(
            [START, text("CHUNK", delta="a"), text("CONTENT", delta="b"), text("END"), FINISH],
            [
                START,
                text("CHUNK", delta="a"),
                text("START", role="assistant"),
                text("CONTENT", delta="b"),
                text("END"),
                FINISH,
            ],
            ["not-open"],
            id="content of a message that chunks have started",
        ),
        pytest.param(
            [START, text("CHUNK", tag="s", delta="a"), text("END"), text("CHUNK", None, "s", delta="b"), FINISH],
            [START, text("CHUNK", tag="s", delta="a"), text("CHUNK", None, "s", delta="b"), FINISH],
            ["chunk-end"],
            id="an end for chunks of another lane",
        ),
        pytest.param(
            [
                START,
                text("CHUNK", "a", delta="1"),
                text("START", "b", "s"),
                text("END", "b", "s"),
                text("CHUNK", "b", "u", delta="2"),
                text("CHUNK", None, "u", delta="3"),
                text("CHUNK", None, delta="4"),
                FINISH,
            ],
            [
                START,
                text("CHUNK", "a", delta="1"),
                text("START", "b", "s"),
                text("END", "b", "s"),
                text("CHUNK", "b", delta="2"),  # closes a in the client's eyes
                text("CHUNK", "b", delta="3"),
                text("CHUNK", "a", delta="4"),
                FINISH,
            ],
            ["owner", "chunk-id", "owner", "chunk-id"],
            id="a chunk goes where its producer meant it to, whatever the repairs did to the lanes",
        ),
        pytest.param(
            [
                START,
                text("CHUNK", tag="s", delta="a"),
                event("TOOL_CALL_RESULT", messageId="m", toolCallId="c", content=""),
                FINISH,
            ],
            [
                START,
                text("CHUNK", tag="s", delta="a"),
                event("TOOL_CALL_RESULT", messageId="m", toolCallId="c", content="", subagentRunId="s"),
                FINISH,
            ],
            ["result-id"],
            id="a result with the id of a message in progress",
        ),
        # Several runs, and runs in runs.
        pytest.param([START, ERROR, {**START, "runId": "r2"}, FINISH], None, [], id="two runs"),
        pytest.param([START, START, FINISH], [START, FINISH], ["run-active"], id="the same run twice"),
        pytest.param(
            [START, {**START, "runId": "r2"}, ERROR, {**START, "runId": "r2"}, {**FINISH, "runId": "r2"}],
            [START, ERROR, {**START, "runId": "r2"}, {**FINISH, "runId": "r2"}],
            ["run-active"],
            id="a run that was once inside of another one",
        ),
        pytest.param(
            [
                START,
                tool("START", toolCallName="f"),
                text("CHUNK", delta="a"),
                ERROR,
                START,
                tool("ARGS", delta="{}"),
                text("CHUNK", None, delta="b"),
                FINISH,
            ],
            [START, tool("START", toolCallName="f"), text("CHUNK", delta="a"), ERROR, START, FINISH],
            ["not-open", "chunk-id"],
            id="what an earlier run said is not said in this one",
        ),
        pytest.param(
            [START, tool("END"), ERROR, START, {**FINISH, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}}],
            [START, ERROR, START, {**FINISH, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}}],
            ["not-open"],
            id="nor is what it lost",
        ),
        pytest.param(
            [
                START,
                text("START", tag="s"),
                event("MESSAGES_SNAPSHOT", messages=[{"id": "m", "role": "user", "content": "", "subagentRunId": "u"}]),
                FINISH,
            ],
            [
                START,
                text("START", tag="s"),
                event("MESSAGES_SNAPSHOT", messages=[{"id": "m", "role": "user", "content": "", "subagentRunId": "u"}]),
                text("END"),
                FINISH,
            ],
            ["left-open"],
            id="a snapshot gave the message to somebody else",
        ),
        pytest.param(
            [START, {**START, "runId": "inner"}, A, {**FINISH, "runId": "inner"}, B, FINISH],
            [START, text("START", role="assistant"), A, B, text("END"), FINISH],
            ["run-active", "not-open", "nested-run", "left-open"],
            id="a run in a run goes with both its ends",
        ),
        # The answers that the client is asked for.
        pytest.param(
            [
                START,
                tool("ARGS", "lost", delta=""),
                tool("START", toolCallName="f"),
                tool("END"),
                {**FINISH, "outcome": {"type": "success", "pendingToolCallIds": ["lost", "c", "of another run"]}},
            ],
            [
                START,
                tool("START", toolCallName="f"),
                tool("END"),
                {**FINISH, "outcome": {"type": "success", "pendingToolCallIds": ["c", "of another run"]}},
            ],
            ["not-open", "pending-tool-calls"],
            id="calls that never reached the client cannot be answered",
        ),
        pytest.param(
            [
                START,
                tool("START", toolCallName="f"),
                tool("START", toolCallName="f"),
                tool("END"),
                {**FINISH, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}},
            ],
            [
                START,
                tool("START", toolCallName="f"),
                tool("END"),
                {**FINISH, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}},
            ],
            ["already-open"],
            id="one that did, can",
        ),
    ],
)
def test_repairs(events: list[Wire], expect: list[Wire] | None, codes: list[str]) -> None:
    result = run(events)
    assert result.events == (events if expect is None else expect)
    assert result.codes == codes
    assert problems_of(result.objects) == []
    if all(item["type"] in EVENTS and item["type"][:8] != "THINKING" for item in events):
        models = run(as_model(item) for item in events)
        assert (models.events, models.codes) == (run(map(wired, map(as_model, events))).events, codes)


def as_model(item: Wire) -> AnyEvent:
    try:
        return typed(decode_event(item))
    except (DecodeError, ValidationError):  # a type that an older SDK does not have
        return decode_event(item)


def wired(item: AnyEvent) -> Wire:
    decoded: Wire = json.loads(encode_event(item))
    return decoded


@pytest.mark.parametrize(
    ("spoilt", "mended"),
    [
        (text("CONTENT", delta="d") | {"delta": None}, text("CONTENT", delta="")),
        ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m"}, text("CONTENT", delta="")),
        (text("CONTENT", delta="d", timestamp=1.9), text("CONTENT", delta="d", timestamp=1)),
        (text("CONTENT", delta="d", timestamp="2026-11-30"), text("CONTENT", delta="d")),
        (text("CONTENT", delta="d", timestamp=2**60), text("CONTENT", delta="d")),
        (text("CONTENT", delta="d") | {"metadata": None, "subagentRunId": None}, text("CONTENT", delta="d")),
        (text("CONTENT", delta="d") | {"subagentRunId": ["s"]}, text("CONTENT", delta="d")),
        (text("CONTENT", delta="d") | {"messageId": None}, None),
        (text("CONTENT", delta="d") | {"messageId": {}}, None),
        ({"type": "CUSTOM", "name": "n"}, {"type": "CUSTOM", "name": "n", "value": None}),
        ({"type": "RAW"}, {"type": "RAW", "event": None}),
        (
            {"type": "TOOL_CALL_RESULT", "toolCallId": 7, "content": None, "role": "assistant"},
            event("TOOL_CALL_RESULT", toolCallId="7", content="", role="tool", messageId="7-result"),
        ),
        (
            {
                "type": "MESSAGES_SNAPSHOT",
                "messages": [
                    {
                        "id": "1",
                        "role": "assistant",
                        "content": None,
                        "name": None,
                        "toolCalls": [CALL | {"id": 2, "metadata": None}],
                    },
                    {
                        "id": "2",
                        "role": "user",
                        "content": [
                            {"type": "image", "id": None, "source": {"type": "url", "value": "v", "mimeType": None}}
                        ],
                    },
                ],
            },
            {
                "type": "MESSAGES_SNAPSHOT",
                "messages": [
                    {"id": "1", "role": "assistant", "toolCalls": [CALL]},
                    {
                        "id": "2",
                        "role": "user",
                        "content": [{"type": "image", "source": {"type": "url", "value": "v"}}],
                    },
                ],
            },
        ),
    ],
)
def test_fields_with_one_possible_meaning(spoilt: Wire, mended: Wire | None) -> None:
    source = decode_event(spoilt)
    before = encode_event(source)
    result = run([START, text("START"), source, text("END"), FINISH])
    assert result.events == [START, text("START"), *([] if mended is None else [mended]), text("END"), FINISH]
    assert result.codes == ["malformed"]
    assert result.diagnostics[0].detail["repair"] is not None
    assert (encode_event(source), source.data) == (before, spoilt), "the source's event is not touched"


@pytest.mark.parametrize(
    ("spoilt", "mended"),
    [
        ([{"type": "RUN_STARTED"}, FINISH], [START, FINISH]),
        ([{"type": "RUN_STARTED", "threadId": 5, "runId": {}}, FINISH], [{**START, "threadId": "5"}, FINISH]),
        ([{**START, "runId": "r7"}, {"type": "RUN_FINISHED"}], [{**START, "runId": "r7"}, {**FINISH, "runId": "r7"}]),
        ([START, {"type": "RUN_ERROR"}], [START, {**ERROR, "message": "The agent failed."}]),
        ([START, {**ERROR, "message": {"detail": "secret"}}], [START, {**ERROR, "message": "The agent failed."}]),
        (
            [
                START,
                {"type": "REASONING_MESSAGE_START", "messageId": "m"},
                event("REASONING_MESSAGE_END", messageId="m"),
                FINISH,
            ],
            [
                START,
                event("REASONING_MESSAGE_START", messageId="m", role="reasoning"),
                event("REASONING_MESSAGE_END", messageId="m"),
                FINISH,
            ],
        ),
        (
            [START, {"type": "STEP_STARTED", "stepName": 1}, {"type": "STEP_FINISHED", "stepName": 1}, FINISH],
            [START, step("STARTED", "1"), step("FINISHED", "1"), FINISH],
        ),
    ],
)
def test_malformed_ends_and_openers(spoilt: list[Wire], mended: list[Wire]) -> None:
    result = run(spoilt)
    assert result.events == mended
    assert set(result.codes) == {"malformed"}


@pytest.mark.parametrize(
    "hopeless",
    [
        text("CONTENT") | {"delta": ["d"]},
        event("ACTIVITY_SNAPSHOT", messageId="a", activityType="A", content=[]),
        event("STATE_DELTA", delta=[{"op": "remove", "path": "no slash"}]),
        event("STATE_SNAPSHOT"),
        event("CUSTOM", value=1),
    ],
)
def test_what_has_no_certain_repair_passes_with_a_diagnostic(hopeless: Wire) -> None:
    source = decode_event(hopeless)
    result = run([START, text("START"), source, text("END"), FINISH])
    assert result.objects[2] is source
    assert result.codes == ["malformed"]
    assert result.diagnostics[0].detail["repair"] is None


def test_an_event_without_a_type_to_speak_of_is_left_out() -> None:
    assert run([START, event(""), FINISH]).events == [START, FINISH]


def test_many_malformed_fields_make_one_short_diagnostic() -> None:
    messages = [{"id": "1", "role": "user", "content": "c", "name": None}] * 50
    (diagnostic,) = run([START, event("MESSAGES_SNAPSHOT", messages=messages), FINISH]).diagnostics
    assert diagnostic.message.endswith("messages[2].name must be a string; got null; and 47 more")


def test_the_start_that_is_supplied_says_what_the_input_said() -> None:
    assert run([FINISH], version="1.0").events == [{**START, "protocolVersion": "1.0"}, FINISH]
    assert run([], raises=ValueError("x"), version="1.0").events == [{**START, "protocolVersion": "1.0"}, FAILED]


def test_an_id_with_half_a_character_is_closed_as_well() -> None:
    half = json.loads('"\\ud800"')
    result = run([START, text("START", half), A | {"messageId": half}, FINISH])
    assert [item.type for item in result.objects] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert result.objects[3].message_id == half  # type: ignore[union-attr] # of either kind


class Foreign:
    """An event that is neither a model nor a view."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return vars(self)


def test_events_of_a_class_of_ones_own_are_repaired_as_well() -> None:
    foreign: Any = Foreign(type="TEXT_MESSAGE_CONTENT", message_id="m", delta="d", subagent_run_id="s")
    result = run([START, text("START"), foreign, text("END"), FINISH])
    assert result.codes == ["owner"]


# Endings.


class SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("raised", "code", "exposed"),
    [
        (ValueError("secret"), "source_error", "secret"),
        (ValueError(), "source_error", "ValueError"),
        (SilentError(), "source_error", "SilentError"),
        (ValueError("s" * 2000), "source_error", "s" * 1000),
        (BaseException("asked to stop"), "cancelled", "asked to stop"),
    ],
)
def test_what_a_source_raises_ends_the_run(raised: BaseException, code: str, exposed: str) -> None:
    events = [START, step("STARTED"), text("CHUNK", delta="a"), text("START", "n"), text("CONTENT", "n", delta="b")]
    closed = [*events, text("END", "n"), step("FINISHED")]
    result = run(events, raises=raised)
    assert result.events == [*closed, {"type": "RUN_ERROR", "message": ENDINGS[code], "code": code}]
    assert result.exception is None
    assert result.codes == [code.replace("_", "-")]
    assert result.diagnostics[0].detail["exception"] is raised
    assert "secret" not in result.diagnostics[0].message
    told = run(events, raises=raised, expose_errors=True)
    assert told.events == [*closed, {"type": "RUN_ERROR", "message": exposed, "code": code}]


@pytest.mark.parametrize("end", [FINISH, ERROR])
def test_what_is_raised_after_a_terminal_event_goes_on_to_the_reader(end: Wire) -> None:
    error = ValueError("x")
    result = run([START, end], raises=error)
    assert (result.events, result.exception, result.codes) == ([START, end], error, [])


def test_the_log_gets_the_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agui_pipeline")
    error = ValueError("secret")
    run([START], raises=error)
    (record,) = caplog.records
    assert (record.levelname, record.exc_info and record.exc_info[1]) == ("ERROR", error)
    assert "secret" not in record.getMessage()


# Modes.

WRONG = [text("START"), A, text("END"), text("END"), {**A, "subagentRunId": "s"}, {"type": "CUSTOM"}, FINISH, CUSTOM]


def test_report_changes_nothing_and_says_what_a_repair_would() -> None:
    result = run(WRONG, mode="report")
    repaired = run(WRONG)
    assert result.events == WRONG
    assert (
        result.codes
        == repaired.codes
        == ["not-started", "not-open", "not-open", "owner", "malformed", "left-open", "after-terminal"]
    )
    error = ValueError("x")
    result = run([START, text("START")], mode="report", raises=error)
    assert (result.events, result.exception, result.codes) == ([START, text("START")], error, ["source-error"])
    result = run([START], mode="report")
    assert (result.events, result.codes) == ([START], ["source-ended"])


@pytest.mark.parametrize(
    ("events", "what", "code"),
    [
        ([text("START")], "TEXT_MESSAGE_START ('m'): the stream is before the first run", "not-started"),
        ([START, text("END")], "TEXT_MESSAGE_END ('m'): the text message is not open", "not-open"),
        ([START, step("STARTED"), FINISH], "RUN_FINISHED: still open: 1 of kind step", "left-open"),
        (
            [START, text("CHUNK"), CUSTOM, text("CHUNK", None)],
            "TEXT_MESSAGE_CHUNK: its stream was closed meanwhile",
            "chunk-id",
        ),
        ([START, {**ERROR, "message": 5}], "RUN_ERROR: message must be a string; got a number", "malformed"),
        ([START], "the end of the source: the source ended without RUN_FINISHED or RUN_ERROR", "source-ended"),
    ],
)
def test_raise_names_the_event_its_state_and_the_rule(events: list[Wire], what: str, code: str) -> None:
    with pytest.raises(SequenceError) as raised:
        run(events, mode="raise")
    rule = f": {RULES[code]}" if code in RULES else ""
    assert str(raised.value) == f"{what}{rule} (guard.{code})"
    assert run(events).codes, "where repair has something to say"


def test_raise_leaves_legal_streams_and_errors_alone() -> None:
    legal = [START, text("START"), A, text("END"), FINISH]
    assert run(legal, mode="raise").events == legal
    error = ValueError("x")
    result = run([START], mode="raise", raises=error)
    assert (result.events, result.exception, result.codes) == ([START], error, [])


# Whatever goes in.


@given(st.data())
def test_any_stream_comes_out_legal(data: st.DataObject) -> None:
    events = make_stream(lambda values: data.draw(st.sampled_from(values)), longest=12)
    result = run(events, raises=data.draw(st.sampled_from([None, ValueError("x")])))
    assert problems_of(result.objects) == []
    assert_untouched_by_a_second_guard(result.objects)


@pytest.mark.parametrize("models", [False, True])
def test_many_seeded_streams_come_out_legal(models: bool) -> None:
    seen: set[str] = set()
    for seed in range(700):
        events: Sequence[Any] = make_stream(seeded(seed))
        if models:
            events = [as_model(item) for item in events]
        result = run(events, raises=ValueError("x") if seed % 2 else None)
        assert problems_of(result.objects) == [], seed
        assert_untouched_by_a_second_guard(result.objects)
        seen.update(diagnostic.code for diagnostic in result.diagnostics)
    rare = {"guard.no-id", "guard.result-id", "guard.cancelled"}
    assert seen >= set(DIAGNOSTICS) - rare


def assert_untouched_by_a_second_guard(objects: Sequence[AnyEvent]) -> None:
    """A legal stream passes unchanged, object by object: as models and views, and as it came over a wire."""
    for stream in (objects, [decode_event(encode_event(item)) for item in objects]):
        again = run(stream)
        assert again.diagnostics == []
        assert len(again.objects) == len(stream)
        assert all(out is came for out, came in zip(again.objects, stream, strict=True))


@given(st.data())
def test_nothing_is_left_out_or_changed_in_silence(data: st.DataObject) -> None:
    """What goes out unchanged keeps its order, and whatever does not is reported."""

    def choose(values: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(values))

    legal = [wired(item) for item in run(make_stream(choose, longest=12)).objects]
    events = [decode_event(item) for item in mutated(legal, choose)]
    result = run(events)
    places = {id(item): place for place, item in enumerate(events)}
    kept = [places[id(item)] for item in result.objects if id(item) in places]
    assert kept == sorted(kept)
    assert len(events) - len(kept) <= len(result.diagnostics)
    assert len(kept) == len(result.objects) or result.diagnostics


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
FIELD_NAMES = sorted({name for shape in EVENTS.values() for name in shape.fields})


@given(
    st.lists(
        st.builds(
            lambda name, fields: {**fields, "type": name},
            st.sampled_from([*EVENTS, "OF_THE_FUTURE"]),
            st.dictionaries(st.sampled_from(FIELD_NAMES), JSON | st.sampled_from(["m", "s"]), max_size=6),
        ),
        max_size=8,
    )
)
def test_garbage_raises_nothing_and_leaves_only_what_was_said(events: list[Wire]) -> None:
    result = run(events)
    left = [problem.diagnostic for problem in problems_of(result.objects)]
    said = [diagnostic.message for diagnostic in result.diagnostics if diagnostic.detail.get("repair", "") is None]
    assert all(diagnostic.code == "guard.malformed" for diagnostic in left)
    assert len(left) <= len(said)


def test_every_malformed_field_is_repaired_or_passes_with_a_diagnostic() -> None:
    for before, sample in SAMPLES:
        for path, value, changed in variants(sample, ["missing", None, 5, 1.5, "x", {"type": "odd"}]):
            result = run(stream_of(before, changed))
            hopeless = [item for item in result.diagnostics if item.detail["repair"] is None]
            assert bool(problems_of(result.objects)) == bool(hopeless), (path, value)


# The words.


def test_the_codes_are_those_that_are_documented() -> None:
    assert {f"guard.{rule}" for rule in RULES} < set(DIAGNOSTICS)
    assert all(code.startswith("guard.") and text for code, text in DIAGNOSTICS.items())


def test_diagnostics_hold_no_content() -> None:
    secret = "SECRET"  # noqa: S105 - content, for this test
    events = [
        START,
        text("CONTENT", secret, secret, delta=secret),
        text("CONTENT", secret, "other", delta=secret, name=secret),
        step("FINISHED", secret),
        tool("CHUNK", secret, toolCallName=secret),
        tool("CHUNK", secret, toolCallName="other"),
        {"type": "CUSTOM", "name": [secret], "value": secret},
        {**FINISH, "outcome": secret},
    ]
    result = run(events, raises=ValueError(secret))
    assert len(result.diagnostics) >= 7
    assert not [diagnostic.message for diagnostic in result.diagnostics if secret in diagnostic.message]
