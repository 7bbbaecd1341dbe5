"""What older agents send is fatal or lost at the official client, or a warning, and arrives whole after the upgrade."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from agui_pipeline.adapters.starlette import AGUIMiddleware
from agui_pipeline.middleware import Source, Stage, UpgradeMiddleware
from agui_pipeline.translators import Event
from tests.e2e.harness import missing, serve
from tests.e2e.old_clients.harness import Shown, drive, install

try:
    from ag_ui_langgraph import (  # type: ignore[import-untyped]
        LangGraphAgent,
        add_langgraph_fastapi_endpoint,
    )

    from tests.adapters import graphs
except ImportError:
    graphs = None  # type: ignore[assignment]

# ag-ui-langgraph calls what LangGraph has deprecated; inside a server thread that must not end the run.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning")

JSON = dict[str, Any]

BARE, UPGRADED = "/bare", "/agent"


@dataclass(frozen=True)
class Old:
    """What an older agent sends.

    Attributes:
        events: Its events, without those of the run's ends, which carry `started` and `finished`.
        bare: What the client makes of it without help: ``"fatal"``, or part of a warning.
        shows: What it shows with the upgrade and not without: part of its final messages or interrupts, as JSON.
    """

    events: Sequence[JSON]
    bare: str
    shows: str
    started: JSON = field(default_factory=dict)
    finished: JSON = field(default_factory=dict)


def hm(delta: str) -> JSON:
    return {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": delta}


OPEN, CLOSE = {"type": "THINKING_TEXT_MESSAGE_START"}, {"type": "THINKING_TEXT_MESSAGE_END"}
SPAN, END = {"type": "THINKING_START", "title": "Plan"}, {"type": "THINKING_END"}
TEXT = [
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
]


def user(*parts: JSON) -> list[JSON]:
    return [{"id": "u", "role": "user", "content": list(parts)}]


FILE = {"type": "binary", "mimeType": "application/pdf", "id": "f1", "filename": "a.pdf"}
HM = '"content":"hm"'

CASES: dict[str, Old] = {
    "thinking": Old([SPAN, OPEN, hm("h"), hm("m"), CLOSE, END], "deprecated THINKING_START", HM),
    "a message outside of a span": Old([OPEN, hm("hm"), CLOSE], "deprecated THINKING_TEXT", HM),
    "text without a start": Old([SPAN, hm("hm"), END], "fatal", HM),
    "an end of nothing": Old([OPEN, hm("hm"), CLOSE, CLOSE, END], "fatal", HM),
    "thinking that is never ended": Old([SPAN, OPEN, hm("hm"), *TEXT], "fatal", HM),
    "a message that its span ends": Old([SPAN, OPEN, hm("hm"), END], "fatal", HM),
    "a message that another one ends": Old([SPAN, OPEN, hm("x"), OPEN, hm("hm"), CLOSE, END], "fatal", HM),
    "text in the middle": Old([SPAN, OPEN, hm("h"), *TEXT, hm("m"), CLOSE, END], "deprecated THINKING_START", HM),
    "reasoning without a role": Old(
        [
            {"type": "REASONING_MESSAGE_START", "messageId": "x"},
            {"type": "REASONING_MESSAGE_CONTENT", "messageId": "x", "delta": "hm"},
            {"type": "REASONING_MESSAGE_END", "messageId": "x"},
        ],
        "fatal",
        HM,
    ),
    "nulls everywhere": Old(
        [{**TEXT[0], "name": None, "metadata": None}, *({**event, "timestamp": None} for event in TEXT[1:])],
        "fatal",
        '"content":"hi"',
    ),
    "a fraction of a second": Old([{**TEXT[0], "timestamp": 1.5}, *TEXT[1:]], "fatal", '"content":"hi"'),
    "no parent": Old(
        [
            {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": None},
            {"type": "TOOL_CALL_END", "toolCallId": "c"},
        ],
        "deprecated TOOL_CALL_START.parentMessageId",
        '"name":"f"',
        finished={"outcome": None},
    ),
    "a file by its id in a snapshot": Old(
        [{"type": "MESSAGES_SNAPSHOT", "messages": user(FILE)}],
        "cannot be converted",
        '"source":{"type":"file","value":"f1","mimeType":"application/pdf"}',
    ),
    "a file by its id in the echoed input": Old(
        [],
        "cannot be converted",
        '"metadata":{"filename":"a.pdf"}',
        started={"input": {"threadId": "t", "runId": "r", "messages": user(FILE), "tools": [], "context": []}},
    ),
    "nulls in a snapshot": Old(
        [
            {
                "type": "MESSAGES_SNAPSHOT",
                "messages": [{"id": "a", "role": "assistant", "content": "x", "toolCalls": None}],
            }
        ],
        "fatal",
        '{"id":"a","role":"assistant","content":"x"}',
    ),
    "an interrupt": Old(
        [{"type": "CUSTOM", "name": "on_interrupt", "value": '"Delete it?"', "rawEvent": {"id": "lg"}}],
        "",
        '{"id":"lg","reason":"langgraph:interrupt","message":"Delete it?"',
    ),
}


async def old_agent(request: Request) -> StreamingResponse:
    """Send what the case says that the path names."""
    body = await request.json()
    case = list(CASES.values())[int(request.path_params["case"])]
    ids = {"threadId": body["threadId"], "runId": body["runId"]}

    async def frames() -> AsyncIterator[str]:
        for event in [{"type": "RUN_STARTED", **ids, **case.started}, *case.events]:
            yield f"data: {json.dumps(event)}\n\n"
        yield f"data: {json.dumps({'type': 'RUN_FINISHED', **ids, **case.finished})}\n\n"

    return StreamingResponse(frames(), media_type="text/event-stream")


@pytest.fixture(scope="module")
def shown() -> Mapping[tuple[str, str], Shown]:
    """What the client shows of each case, bare and upgraded: one process runs them all."""
    install()
    app = Starlette(routes=[Route(f"{path}/{{case}}", old_agent, methods=["POST"]) for path in (BARE, UPGRADED)])
    upgrade = UpgradeMiddleware(on_diagnostic=lambda _: None)
    places = [(name, path) for name in CASES for path in (BARE, UPGRADED)]
    with serve(AGUIMiddleware(app, middleware=[upgrade], paths=[f"{UPGRADED}/*"])) as base:
        urls = [f"{base}{path}/{list(CASES).index(name)}" for name, path in places]
        return dict(zip(places, drive("1.0.0", [(url, {}) for url in urls]), strict=True))


@pytest.mark.parametrize("name", list(CASES))
def test_an_old_agent_reaches_the_client_whole(name: str, shown: Mapping[tuple[str, str], Shown]) -> None:
    case, bare, upgraded = CASES[name], shown[name, BARE], shown[name, UPGRADED]
    if case.bare == "fatal":
        assert bare.error, "the client bears it now: what we know of it is out of date"
    else:
        assert bare.error is None
        assert case.bare in "".join(bare.warnings)
    assert (upgraded.error, upgraded.warnings) == (None, [])
    assert case.shows in words(upgraded)
    if "deprecated" not in case.bare:  # which the client upgrades by itself
        assert case.shows not in words(bare)


def words(shown: Shown) -> str:
    return json.dumps([shown.messages, shown.interrupts], separators=(",", ":"))


# LangGraph, which tells of interrupts in the old way unless it is asked not to.

ASK = {"messages": [{"id": "u", "role": "user", "content": "trains"}], "threadId": "t"}


def deaf(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
    """Make an agent of the old days: one that does not know `resume`."""
    return next(input.model_copy(update={"resume": None}))


@pytest.fixture
def _langgraph() -> None:
    install()
    if graphs is None:
        missing("ag-ui-langgraph")


@contextmanager
def langgraph(graph: Any) -> Iterator[str]:
    """Serve a graph as ag-ui-langgraph does, behind the upgrade; give its address."""
    app = FastAPI()
    add_langgraph_fastapi_endpoint(app, LangGraphAgent(name="assistant", graph=graph), UPGRADED)
    chain: list[Stage] = [deaf, UpgradeMiddleware(on_diagnostic=lambda _: None)]
    with serve(AGUIMiddleware(app, middleware=chain)) as base:
        yield base + UPGRADED


def answered(shown: Shown, *payloads: Any) -> JSON:
    answers = zip(shown.interrupts, payloads, strict=True)
    resume = [{"interruptId": asked["id"], "status": "resolved", "payload": payload} for asked, payload in answers]
    return {**ASK, "messages": shown.messages, "resume": resume}


@pytest.mark.usefixtures("_langgraph")
def test_an_answer_to_langgraph_comes_back_to_the_tool_that_asked() -> None:
    with langgraph(graphs.assistant("book")) as url:
        (asked,) = drive("1.0.0", [(url, ASK)])
        (interrupt,) = asked.interrupts
        assert (interrupt["message"], interrupt["reason"]) == ("Book trains?", "approval")
        assert interrupt["responseSchema"] == {"type": "string"}
        (done,) = drive("1.0.0", [(url, answered(asked, "window seat"))])
    assert (done.error, done.interrupts) == (None, [])
    assert "booked trains: window seat" in json.dumps(done.messages)


@pytest.mark.usefixtures("_langgraph")
def test_each_of_several_answers_to_langgraph_comes_back_to_what_asked() -> None:
    with langgraph(graphs.questions("who", "when")) as url:
        (asked,) = drive("1.0.0", [(url, ASK)])
        assert [interrupt["message"] for interrupt in asked.interrupts] == ["who", "when"]
        (done,) = drive("1.0.0", [(url, answered(asked, "me", "now"))])
    assert (done.error, done.interrupts) == (None, [])
    assert done.state["answers"] == ["who=me", "when=now"]
