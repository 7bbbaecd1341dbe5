"""LangGraph as a source: real graphs, run through ag-ui-langgraph."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from ag_ui.core import CustomEvent, RunErrorEvent, RunStartedEvent
from ag_ui.encoder import EventEncoder
from fastapi import FastAPI

from agui_pipeline.adapters.langgraph import LangGraphSource, wrap_agent
from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app
from agui_pipeline.adapters.testing import assert_valid_stream, collect, run_asgi
from agui_pipeline.middleware import (
    EventThrottleMiddleware,
    GuardMiddleware,
    Pipeline,
    StripMiddleware,
    UpgradeMiddleware,
)
from agui_pipeline.translators import ConfigurationError, Diagnostic, decode_event, encode_event, run_input
from agui_pipeline.translators._compat import PROTOCOL_VERSION
from agui_pipeline.translators._input import encode_input
from tests.e2e.harness import needs

needs("ag_ui_langgraph", "ag-ui-langgraph")

from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint  # type: ignore[import-untyped]  # noqa: E402
from langchain_core.messages import AIMessageChunk  # noqa: E402
from langchain_core.outputs import ChatGenerationChunk  # noqa: E402
from langgraph.graph import MessagesState, StateGraph  # noqa: E402
from langgraph.types import interrupt  # noqa: E402

from tests.adapters import graphs  # noqa: E402
from tests.adapters.graphs import ANSWER, OopsError, assistant, failing_model, in_a_node, questions  # noqa: E402

pytestmark = [
    pytest.mark.anyio,
    # ag-ui-langgraph calls what LangGraph has deprecated.
    pytest.mark.filterwarnings("ignore:.*is deprecated. Use `get_:DeprecationWarning"),
]


@pytest.fixture(scope="module", params=[pytest.param(("asyncio", {}), id="asyncio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """LangGraph runs on asyncio only."""
    return request.param


def agent_of(graph: Any, **options: Any) -> Any:
    return LangGraphAgent(name="assistant", graph=graph, **options)


def resume(*answers: tuple[str, Any], status: str = "resolved", thread: str = "t") -> Any:
    entries = [{"interruptId": id, "status": status, "payload": payload} for id, payload in answers]
    return run_input(thread_id=thread, run_id="r2", resume=entries)


ASKED = run_input("find trains", thread_id="t", run_id="r1")


def said(result: Any) -> Any:
    """What the assistant said last in a run, as it was streamed."""
    pieces = [event for event in result.events if event.type == "TEXT_MESSAGE_CONTENT"]
    return "".join(event.delta for event in pieces if event.message_id == pieces[-1].message_id)


async def test_a_graph_with_a_tool_answers() -> None:
    result = await collect(LangGraphSource(assistant()), ASKED)

    assert_valid_stream(result.events)
    assert result.outcome == "success"
    assert sorted(message.role for message in result.messages) == ["assistant", "assistant", "tool", "user"]
    assert said(result) == "about trains: " + ANSWER
    assert result.new_messages[0].tool_calls[0].function.arguments == '{"query": "trains"}'
    assert {"RAW"}.isdisjoint(result.types)
    assert all(event.raw_event is None for event in result.events)
    assert result.events[0].protocol_version == PROTOCOL_VERSION
    assert LangGraphSource(assistant(), name="helper").name == "helper"


async def test_the_events_say_what_those_of_the_bare_agent_say() -> None:
    bare = await collect(agent_of(assistant()).clone(), ASKED)
    ours = await collect(LangGraphSource(agent_of(assistant())), ASKED)

    assert [name for name in bare.types if name != "RAW"] == ours.types
    assert (without_ids(bare), bare.outcome) == (without_ids(ours), ours.outcome)


def without_ids(result: Any) -> Any:
    """What a client has after a run, but for the random ids."""
    strip = {"id", "toolCallId", "parentMessageId"}
    messages = [{key: value for key, value in message.items() if key not in strip} for message in result.messages]
    state = [
        {key: value for key, value in message.items() if key not in {"id", "run_id", "response_metadata"}}
        for message in result.state["messages"]
    ]
    return messages, state


async def test_the_agents_own_events_are_sent_where_they_are_asked_for() -> None:
    result = await collect(LangGraphSource(agent_of(assistant()), raw_events=True), ASKED)
    assert result.types.count("RAW") > 50
    quiet = await collect(LangGraphSource(agent_of(assistant(), emit_raw_events=False), raw_events=True), ASKED)
    assert "RAW" not in quiet.types


async def test_the_given_agent_is_not_changed() -> None:
    graph = assistant()
    agent = agent_of(graph)
    await collect(LangGraphSource(agent), ASKED)
    assert (agent.graph, agent.emit_raw_events, agent.emit_interrupt_outcome) == (graph, True, False)


async def test_the_agent_gets_the_version_it_is_spoken_to_in() -> None:
    seen: list[Any] = []

    class Watching(LangGraphAgent):  # type: ignore[misc] # untyped
        def run(self, input: Any) -> Any:
            seen.append(input)
            return super().run(input)

    source = LangGraphSource(Watching(name="watching", graph=assistant()))
    await collect(source, ASKED)
    await collect(source, run_input("hi", protocol_version="0.9"))
    assert [getattr(input, "protocol_version", None) for input in seen] == [PROTOCOL_VERSION, "0.9"]


async def test_an_interrupt_is_told_and_answered() -> None:
    pipeline = Pipeline(LangGraphSource(assistant("book")), EventThrottleMiddleware(), GuardMiddleware(mode="raise"))

    asked = await collect(pipeline, ASKED)

    assert_valid_stream(asked.events)
    assert asked.outcome == "interrupt"
    (question,) = asked.interrupts
    assert (question.message, question.reason) == ("Book trains?", "approval")
    assert "CUSTOM" not in asked.types

    answered = await collect(pipeline, resume((question.id, "yes")))

    assert_valid_stream(answered.events)
    assert answered.outcome == "success"
    assert said(answered) == "booked trains: yes: " + ANSWER


async def test_an_interrupt_that_nobody_answers_is_told_again() -> None:
    source = LangGraphSource(assistant("book"))
    first = await collect(source, ASKED)
    again = await collect(source, run_input(thread_id="t", run_id="r2", messages=ASKED.messages))
    assert (again.outcome, again.interrupts[0].id) == ("interrupt", first.interrupts[0].id)


async def test_a_declined_interrupt_is_told_to_the_graph() -> None:
    source = LangGraphSource(assistant("book"))
    (question,) = (await collect(source, ASKED)).interrupts
    declined = await collect(source, resume((question.id, None), status="cancelled"))
    assert declined.outcome == "success"
    assert "__agui_cancelled__" in said(declined)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(LangGraphSource, id="graph"),
        pytest.param(lambda graph: LangGraphSource(agent_of(graph), interrupt_outcome=True), id="agent"),
        pytest.param(lambda graph: LangGraphSource(agent_of(graph, emit_interrupt_outcome=True)), id="agent's own"),
        pytest.param(lambda graph: wrap_agent(agent_of(graph), interrupt_outcome=True), id="wrapped"),
    ],
)
async def test_several_interrupts_are_answered_each_by_its_id(made: Any) -> None:
    source = made(questions("color", "size", "shape"))
    asked = await collect(source, ASKED)
    ids = {question.message: question.id for question in asked.interrupts}
    assert set(ids) == {"color", "size", "shape"}

    some = await collect(source, resume((ids["size"], "large"), (ids["shape"], {"kind": "round"})))
    assert [question.message for question in some.interrupts] == ["color"]

    rest = await collect(source, resume((ids["color"], "red")))
    assert rest.outcome == "success"
    assert sorted(rest.state["answers"]) == ["color=red", "shape={'kind': 'round'}", "size=large"]


def endpoint_of(graph: Any) -> Any:
    """An endpoint that nobody touches: all of ag-ui-langgraph's defaults."""
    app = FastAPI()
    add_langgraph_fastapi_endpoint(app, agent_of(graph), "/agent")
    return AGUIMiddleware(app, middleware=[UpgradeMiddleware(), StripMiddleware(), GuardMiddleware()])


async def asked_of(endpoint: Any, input: Any) -> Any:
    response = await run_asgi(endpoint, path="/agent", body=encode_input(input))
    assert response.exception is None
    return await collect(list(response.events))


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_endpoint_in_its_older_way_is_answered_by_id_through_the_upgrade(at_once: bool) -> None:
    endpoint = endpoint_of(questions("color", "size"))
    asked = await asked_of(endpoint, ASKED)
    ids = {question.message: question.id for question in asked.interrupts}
    assert (set(ids), asked.outcome) == ({"color", "size"}, "interrupt")
    answers = [(ids["size"], "large"), (ids["color"], "red")]
    for part in [answers] if at_once else [[one] for one in answers]:
        result = await asked_of(endpoint, resume(*part))
    assert result.outcome == "success"
    assert sorted(result.state["answers"]) == ["color=red", "size=large"]


async def test_an_answer_that_says_nothing_is_a_yes_through_the_upgrade() -> None:
    endpoint = endpoint_of(assistant("book"))
    asked = await asked_of(endpoint, ASKED)
    entries = [{"interruptId": asked.interrupts[0].id, "status": "resolved"}]
    result = await asked_of(endpoint, run_input(thread_id="t", run_id="r2", resume=entries))
    assert said(result).startswith("booked trains: True")


async def test_a_node_may_ask_twice() -> None:
    async def work(_state: Any) -> dict[str, Any]:
        one, two = interrupt("one"), interrupt("two")
        return {"messages": [("assistant", f"{one}, {two}")]}

    source = LangGraphSource(in_a_node(work))
    result = await collect(source, ASKED)
    for answer in ("first", "second"):
        result = await collect(source, resume((result.interrupts[0].id, answer)))
    assert result.outcome == "success"
    assert result.messages[-1].content == "first, second"


async def test_an_answer_to_what_is_not_open_answers_nothing() -> None:
    source = LangGraphSource(questions("color", "size"), expose_errors=True)
    ids = {question.message: question.id for question in (await collect(source, ASKED)).interrupts}
    await collect(source, resume((ids["color"], "red")))

    for answers in ([(ids["color"], "red")], [(ids["size"], "large"), ("someone-elses", "yes")]):
        failed = await collect(source, resume(*answers))
        assert_valid_stream(failed.events)
        assert failed.types == ["RUN_STARTED", "RUN_ERROR"]
        assert "which is not open" in failed.error.message  # type: ignore[union-attr]

    rest = await collect(source, resume((ids["size"], "large")))
    assert (rest.outcome, sorted(rest.state["answers"])) == ("success", ["color=red", "size=large"])
    late = await collect(source, resume((ids["size"], "small")))  # and where nothing is open, there is nothing to do
    assert (late.outcome, sorted(late.state["answers"])) == ("success", ["color=red", "size=large"])


async def test_where_an_agent_tells_no_ids_any_will_do() -> None:
    source = LangGraphSource(agent_of(assistant("book")))
    await collect(source, ASKED)
    result = await collect(source, resume(("what-a-stage-called-it", "yes")))
    assert said(result).startswith("booked trains: yes")  # as ag-ui-langgraph has it


async def test_an_agents_class_that_reads_answers_itself_is_left_alone() -> None:
    class Deaf(LangGraphAgent):  # type: ignore[misc] # untyped
        def _build_command_from_agui_resume(self, *_: Any, **__: Any) -> Any:
            return super()._build_command_from_agui_resume([])

    source = LangGraphSource(Deaf(name="deaf", graph=assistant("book"), emit_interrupt_outcome=True))
    asked = await collect(source, ASKED)
    again = await collect(source, resume((asked.interrupts[0].id, "yes")))
    assert said(again).startswith("booked trains: {'__agui_resume_map__': {}}")  # what the class made of it


async def test_an_agents_own_settings_stay() -> None:
    source = LangGraphSource(agent_of(assistant("book")))
    result = await collect(source, ASKED)
    assert (result.outcome, result.types.count("CUSTOM")) == ("success", 1)  # LangGraph's older way
    legacy = {"command": {"resume": "yes"}}
    answered = await collect(source, run_input(thread_id="t", run_id="r2", forwarded_props=legacy))
    assert said(answered) == "booked trains: yes: " + ANSWER
    both = await collect(LangGraphSource(agent_of(assistant("book"), emit_interrupt_outcome=True)), ASKED)
    assert (both.outcome, both.types.count("CUSTOM")) == ("interrupt", 1)


class Odd:
    """What no encoder has a form for."""

    def __str__(self) -> str:
        return "something odd"


class OddState(MessagesState):
    thing: Any


async def odd(_state: OddState) -> dict[str, Any]:
    return {"thing": {"odd": Odd(), "ratio": float("nan"), "bytes": b"\xff", "fine": [1, None]}}


async def test_a_state_that_json_has_no_form_for_is_repaired() -> None:
    seen: list[Diagnostic] = []
    source = LangGraphSource(in_a_node(odd, OddState), on_diagnostic=seen.append)

    result = await collect(source, ASKED)

    assert_valid_stream(result.events)
    assert result.outcome == "success"
    assert result.state["thing"] == {"odd": "something odd", "ratio": None, "bytes": "b'\\xff'", "fine": [1, None]}
    assert {"encode.object", "encode.nan"} == {diagnostic.code for diagnostic in seen}
    assert {diagnostic.event_type for diagnostic in seen} == {"STATE_SNAPSHOT"}


async def test_a_failing_run_is_closed_and_ends_in_one_error_that_says_nothing() -> None:
    seen: list[Diagnostic] = []
    bare = await collect(agent_of(failing_model()).clone(), ASKED)
    assert bare.error is not None
    assert "sk-123" in bare.error.message
    assert "STEP_FINISHED" not in bare.types

    result = await collect(LangGraphSource(failing_model(), on_diagnostic=seen.append), ASKED)

    assert_valid_stream(result.events)
    assert result.types[-3:] == ["TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_ERROR"]
    assert result.types.count("RUN_ERROR") == 1
    assert result.text == "half an "
    assert result.error is not None
    assert (result.error.message, result.error.code) == ("The agent failed.", "source_error")
    assert "sk-123" not in b"".join(map(encode_event, result.events)).decode()
    by_code = {diagnostic.code: diagnostic for diagnostic in seen}
    assert set(by_code) == {"langgraph.error-text", "langgraph.left-open"}
    assert "sk-123" in by_code["langgraph.error-text"].detail["error"]
    assert not any("sk-123" in diagnostic.message for diagnostic in seen)


async def test_an_error_says_what_happened_where_that_is_asked_for() -> None:
    result = await collect(LangGraphSource(failing_model(), expose_errors=True), ASKED)
    assert result.error is not None
    assert (result.error.message, result.error.code) == ("the key sk-123 is wrong", "source_error")


async def test_a_run_that_cannot_start_ends_in_an_error() -> None:
    class NoStart(LangGraphAgent):  # type: ignore[misc] # untyped
        async def prepare_stream(self, *_: Any, **__: Any) -> Any:
            raise OopsError

    result = await collect(LangGraphSource(NoStart(name="n", graph=assistant())), ASKED)
    assert_valid_stream(result.events)
    assert result.types == ["RUN_STARTED", "RUN_ERROR"]


async def test_nothing_follows_an_error_and_what_an_agent_raises_comes_out() -> None:
    class Chatty(LangGraphAgent):  # type: ignore[misc] # untyped
        async def run(self, input: Any) -> Any:
            async for event in super().run(input):
                yield event
            yield {"type": "STEP_STARTED", "stepName": "late"}
            raise OopsError

    failed = await collect(LangGraphSource(Chatty(name="n", graph=failing_model())), ASKED)
    assert failed.types[-1] == "RUN_ERROR"
    with pytest.raises(OopsError):
        await collect(LangGraphSource(Chatty(name="n", graph=assistant())), ASKED)


async def test_what_a_failing_subagent_left_open_is_closed_and_it_says_nothing_either() -> None:
    child = {"subagentRunId": "tools:1"}

    class Delegating(LangGraphAgent):  # type: ignore[misc] # untyped
        async def run(self, input: Any) -> Any:
            yield RunStartedEvent(thread_id=input.thread_id, run_id=input.run_id)
            for event in (
                {"type": "SUBAGENT_STARTED", "subagentRunId": "tools:0", "name": "one"},
                {"type": "SUBAGENT_ERROR", "subagentRunId": "tools:0", "message": "the key sk-123 is wrong"},
                {"type": "SUBAGENT_STARTED", **child, "name": "two"},
                {"type": "STEP_STARTED", "stepName": "inner", **child},
                {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look_up", **child},
                {"type": "REASONING_START", "messageId": "r"},
                {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"},
            ):
                yield decode_event(event)
            yield RunErrorEvent(message="the key sk-123 is wrong", code="provider")

    result = await collect(LangGraphSource(Delegating(name="n", graph=assistant())), ASKED)
    assert_valid_stream(result.events)
    assert result.types[8:] == [
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TOOL_CALL_END",
        "STEP_FINISHED",
        "SUBAGENT_ERROR",
        "RUN_ERROR",
    ]
    assert result.error is not None
    assert result.error.code == "provider"
    assert "sk-123" not in str(result.events)


async def test_runs_at_once_do_not_mix() -> None:
    source = LangGraphSource(agent_of(assistant()))
    results: dict[str, Any] = {}

    async def ask(thread: str) -> None:
        results[thread] = await collect(source, run_input("find trains", thread_id=thread, run_id=f"run-{thread}"))

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(ask, f"thread-{number}")
    for thread, result in results.items():
        assert_valid_stream(result.events)
        assert said(result) == "about trains: " + ANSWER
        ends = [event for event in result.events if event.type in ("RUN_STARTED", "RUN_FINISHED")]
        assert [(event.thread_id, event.run_id) for event in ends] == [(thread, f"run-{thread}")] * 2


class Endless:
    """A node that streams for ever, and says when it is over."""

    def __init__(self) -> None:
        self.begun = self.over = 0

    async def __call__(self, state: MessagesState) -> dict[str, Any]:
        self.begun += 1
        try:
            await graphs.ScriptedModel().ainvoke(state["messages"])
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.over += 1
        raise AssertionError


@pytest.mark.parametrize("count", range(1, 9))
async def test_leaving_early_ends_the_graph_before_the_block_is_left(count: int) -> None:
    node = Endless()
    wrapped = wrap_agent(agent_of(in_a_node(node)))
    tasks = asyncio.all_tasks()
    for number, source in enumerate((Pipeline(wrapped), Pipeline(LangGraphSource(wrapped._agent))), 1):
        async with source.open(ASKED) as events:
            for _ in range(count):
                await anext(events)
        assert node.over == node.begun <= number
        await anyio.wait_all_tasks_blocked()
        assert asyncio.all_tasks() == tasks


async def test_leaving_ends_a_graph_that_waits_for_its_reader() -> None:
    over: list[int] = []

    class Talking(graphs.ScriptedModel):
        async def _astream(self, *_: Any, **__: Any) -> Any:
            try:
                for number in range(10**6):
                    await asyncio.sleep(0)
                    yield ChatGenerationChunk(message=AIMessageChunk(content=f"{number} "))
            finally:
                await asyncio.sleep(0)
                over.append(1)

    async def work(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await Talking().ainvoke(state["messages"])]}

    async with Pipeline(LangGraphSource(in_a_node(work))).open(ASKED) as events:
        await anext(events)
        for _ in range(1000):  # long enough to read as far ahead as it may
            await asyncio.sleep(0)
    assert over == [1]


async def test_a_cancelled_run_ends_the_graph() -> None:
    node = Endless()
    tasks = asyncio.all_tasks()
    with anyio.move_on_after(0.2):
        await collect(LangGraphSource(in_a_node(node)), ASKED)
    assert node.over == 1
    await anyio.wait_all_tasks_blocked()
    assert asyncio.all_tasks() == tasks


def endpoint(agent: Any) -> FastAPI:
    app = FastAPI()
    add_langgraph_fastapi_endpoint(app, agent, "/agent")
    return app


WAYS: dict[str, Any] = {
    "a source": lambda graph: agent_app(LangGraphSource(graph), path="/agent"),
    "a source, throttled": lambda graph: agent_app(LangGraphSource(graph), EventThrottleMiddleware(), path="/agent"),
    "a wrapped agent": lambda graph: endpoint(wrap_agent(agent_of(graph))),
    "a wrapped agent, throttled": lambda graph: endpoint(wrap_agent(agent_of(graph), EventThrottleMiddleware())),
    "a wrapped endpoint": lambda graph: AGUIMiddleware(endpoint(agent_of(graph))),
    "a wrapped endpoint of a wrapped agent": lambda graph: AGUIMiddleware(endpoint(wrap_agent(agent_of(graph)))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("after", [1, 3, 8])
async def test_a_client_that_leaves_ends_the_graph(way: str, after: int) -> None:
    node = Endless()
    app = WAYS[way](in_a_node(node))
    tasks = asyncio.all_tasks()
    body = ASKED.model_dump(mode="json", by_alias=True)
    response = await run_asgi(app, path="/agent", body=body, disconnect_after=after)
    assert response.exception is None
    with anyio.fail_after(5):
        while asyncio.all_tasks() != tasks:  # noqa: ASYNC110 - nothing to be told by
            await anyio.sleep(0.001)
    assert node.over == node.begun


@pytest.mark.parametrize("way", WAYS)
async def test_requests_at_once_do_not_mix(way: str) -> None:
    app = WAYS[way](assistant())
    answers: dict[str, Any] = {}

    async def ask(thread: str) -> None:
        input = run_input(f"find {thread}", thread_id=thread, run_id=f"run-{thread}")
        answers[thread] = await run_asgi(app, path="/agent", body=input.model_dump(mode="json", by_alias=True))

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(ask, f"thread-{number}")
    for thread, response in answers.items():
        assert_valid_stream(response.events)
        result = await collect(list(response.events))
        assert said(result) == "about trains: " + ANSWER
        assert [message.content for message in result.messages if message.role == "user"] == [f"find {thread}"]
        assert {event.run_id for event in response.events if event.run_id} == {f"run-{thread}"}


@pytest.mark.parametrize("way", WAYS)
async def test_over_http_too_a_state_that_json_has_no_form_for_is_repaired(way: str) -> None:
    app = WAYS[way](in_a_node(odd, OddState))
    response = await run_asgi(app, path="/agent", body=ASKED.model_dump(mode="json", by_alias=True))
    result = await collect(list(response.events))
    if way == "a wrapped endpoint":  # it breaks off inside: all that is left to do is to say so
        assert (result.outcome, result.types[-1]) == ("error", "RUN_ERROR")
    else:
        assert (result.outcome, result.state["thing"]["odd"]) == ("success", "something odd")


# A chain in an agent.


async def shout(input: Any, next: Any) -> Any:
    yield CustomEvent(name="odd", value=Odd())
    async for event in next(input):
        yield event


async def test_a_wrapped_agent_is_an_agent() -> None:
    agent = agent_of(assistant(), description="helps", emit_interrupt_outcome=True)
    wrapped = wrap_agent(agent, EventThrottleMiddleware(), shout)
    clone = wrapped.clone()

    assert clone is not wrapped
    assert clone._agent is not agent
    for one in (wrapped, clone):
        assert (one.name, one.description, one.graph) == ("assistant", "helps", agent.graph)
        assert one.get_capabilities() == agent.get_capabilities()
        result = await collect(one, ASKED)
        assert said(result) == "about trains: " + ANSWER
        sent = [EventEncoder().encode(event) for event in result.events]
        assert sent[0] == 'data: {"type":"CUSTOM","name":"odd","value":"something odd"}\n\n'
    with pytest.raises(AttributeError):
        _ = wrapped._nothing


class Narrow(LangGraphAgent):  # type: ignore[misc] # untyped
    """An agent that knows nothing of newer flags, as there are some."""

    def __init__(self, *, name: str, graph: Any, description: str | None = None, config: Any = None) -> None:
        super().__init__(name=name, graph=graph, description=description, config=config)


async def test_an_agent_of_a_narrow_subclass_is_cloned_as_it_wants() -> None:
    wrapped = wrap_agent(Narrow(name="narrow", graph=assistant())).clone()
    assert type(wrapped._agent) is Narrow
    result = await collect(wrapped, ASKED)
    assert "RAW" not in result.types
    assert result.outcome == "success"


# The documentation.

DOCS = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
BLOCKS = [block for block in re.findall(r"```py\n(.*?)```", DOCS, re.DOTALL) if "langgraph" in block]


@pytest.mark.parametrize("block", BLOCKS)
async def test_the_documentations_blocks_answer(block: str) -> None:
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block, "sources.md", "exec"), names)  # noqa: S102 - our own text
    body = ASKED.model_dump(mode="json", by_alias=True)
    response = await run_asgi(names["app"], path="/agent", body=body)
    assert_valid_stream(response.events)
    assert (await collect(list(response.events))).messages[-1].content == "Hello."


def test_both_ways_are_documented() -> None:
    assert len(BLOCKS) == 2


# Construction.


class Leaving(EventThrottleMiddleware):
    leaves_agui = True


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LangGraphSource(StateGraph(MessagesState)), "not compiled"),
        (lambda: LangGraphSource(object()), "object; it must be a compiled graph"),
        (lambda: LangGraphSource(in_a_node(odd).copy({"checkpointer": None})), "without a checkpointer"),
        (lambda: LangGraphSource(assistant(), name=""), "name=''"),
        (lambda: LangGraphSource(assistant(), raw_events="no"), "raw_events='no'"),  # type: ignore[arg-type]
        (lambda: LangGraphSource(assistant(), expose_errors=1), "expose_errors=1"),  # type: ignore[arg-type]
        (lambda: LangGraphSource(assistant(), on_diagnostic=3), "on_diagnostic=3"),  # type: ignore[arg-type]
        (lambda: wrap_agent(wrap_agent(assistant())), "WrappedAgent; it must be"),
        (lambda: wrap_agent(assistant(), "stage"), "middleware is str"),  # type: ignore[arg-type]
        (lambda: wrap_agent(assistant(), Leaving()), "leaves AG-UI"),
    ],
)
def test_what_cannot_work_is_refused_at_once(make: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        make()
