"""The upgrade in a pipeline: options, runs side by side, what the agent and the client each get."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters.testing import ScriptedAgent, collect, pause
from agui_pipeline.middleware import GuardMiddleware, PendingInterrupts, Pipeline
from agui_pipeline.middleware.upgrade import UpgradeMiddleware
from agui_pipeline.translators import ConfigurationError, Diagnostic, decode_event, run_input
from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION
from agui_pipeline.translators._input import encode_input
from agui_pipeline.translators._verifier import assert_valid_stream
from tests.middleware.kit import INPUT, OopsError, tidy

pytestmark = pytest.mark.anyio

START = {"type": "RUN_STARTED", "threadId": "thread", "runId": "run"}
FINISH = {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"}
THINKING = [
    {"type": "THINKING_START"},
    {"type": "THINKING_TEXT_MESSAGE_START"},
    {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
]


def quiet(**options: Any) -> UpgradeMiddleware:
    return UpgradeMiddleware(on_diagnostic=lambda _: None, **options)


@pytest.mark.parametrize("options", [{"keep_custom": None}, {"new_id": 5}, {"on_diagnostic": 5}])
def test_options_are_checked(options: Any) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        UpgradeMiddleware(**options)


async def test_an_old_agent_is_a_new_one_to_the_client() -> None:
    async with tidy():
        result = await collect(Pipeline([START, *THINKING, FINISH], quiet()), INPUT)
    assert_valid_stream(result.events)
    (message,) = (message for message in result.messages if message["role"] == "reasoning")
    assert message["content"] == "hm"


async def test_runs_side_by_side_share_nothing() -> None:
    agent = ScriptedAgent([START, *THINKING[:2], pause(0), THINKING[2], FINISH])
    pipeline = Pipeline(agent, quiet())
    found: dict[str, list[Any]] = {}

    async def run(name: str) -> None:
        result = await collect(pipeline, run_input("hi", run_id=name))
        found[name] = [event.message_id for event in result.events if event.message_id is not None]

    async with tidy(), anyio.create_task_group() as tasks:
        for name in ("a", "b"):
            tasks.start_soon(run, name)
    for name in ("a", "b"):
        assert found[name] == [f"{name}-reasoning-{number}" for number in (1, 2, 2, 2, 1)]


async def test_the_agent_gets_the_answer_where_it_looks_for_it() -> None:
    seen: list[Any] = []

    async def agent(input: RunAgentInput) -> AsyncIterator[Any]:
        seen.append(input.forwarded_props)
        yield decode_event(START)
        yield decode_event(FINISH)

    said: list[Diagnostic] = []
    answer = run_input(resume=[{"interruptId": "i", "status": "resolved", "payload": "yes"}])
    await collect(Pipeline(agent, UpgradeMiddleware(on_diagnostic=said.append)), answer)
    assert seen == [{"command": {"resume": "yes"}}]
    assert [diagnostic.code for diagnostic in said] == ["upgrade.resume"]


async def test_an_answer_to_an_interrupt_made_here_is_told_once() -> None:
    seen: list[tuple[Any, Any]] = []

    async def agent(input: RunAgentInput) -> AsyncIterator[Any]:
        command = (input.forwarded_props or {}).get("command")
        seen.append((command, getattr(input, "resume", None)))
        yield decode_event(START)
        if command is None:
            for question in ("one", "two"):
                raw = {"id": f"langgraph's {question}"}
                yield decode_event({"type": "CUSTOM", "name": "on_interrupt", "value": question, "rawEvent": raw})
        yield decode_event(FINISH)

    stage = UpgradeMiddleware(on_diagnostic=lambda _: None)

    async def answered(thread: str, *ids: str) -> tuple[Any, Any]:
        resume = [{"interruptId": id, "status": "resolved", "payload": id[-3:]} for id in ids]
        await collect(Pipeline(agent, stage), run_input(thread_id=thread, resume=resume))
        return seen[-1]

    asked = await collect(Pipeline(agent, stage), run_input("go", thread_id="t"))
    assert [one["id"] for one in asked.events[-1].outcome["interrupts"]] == ["langgraph's one", "langgraph's two"]
    # Of another thread: nothing was made here.
    command, resume = await answered("u", "langgraph's one")
    assert (command, len(resume)) == ({"resume": "one"}, 1)
    assert await answered("t", "langgraph's two") == ({"resume": {"langgraph's two": "two"}}, None)
    # The thread's last run has left nothing open.
    assert (await answered("t", "langgraph's two"))[1] is not None


@pytest.mark.parametrize("pending", [{}, PendingInterrupts, 1])
def test_a_store_of_another_kind_is_refused(pending: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^pending="):
        UpgradeMiddleware(pending=pending)


async def test_a_guard_behind_it_ends_what_an_old_agent_leaves_open() -> None:
    agent = ScriptedAgent([START, *THINKING], raises=OopsError("secret"))
    async with tidy():
        result = await collect(Pipeline(agent, quiet(), GuardMiddleware(on_diagnostic=lambda _: None)), INPUT)
    assert_valid_stream(result.events)
    assert result.types[-3:] == ["REASONING_MESSAGE_END", "REASONING_END", "RUN_ERROR"]


async def test_an_error_of_the_source_goes_on_as_itself() -> None:
    agent = ScriptedAgent([START, *THINKING], raises=OopsError("secret"))
    async with tidy():
        with pytest.raises(OopsError, match="secret"):
            await collect(Pipeline(agent, quiet()), INPUT)


@pytest.mark.skipif(not HAS_PROTOCOL_VERSION, reason="before 1.x, parts of a tool result are read as its JSON text")
async def test_the_agent_gets_tool_results_as_text() -> None:
    picture = {"type": "image", "source": {"type": "url", "value": "https://x/y"}}
    contents: list[Any] = ["plain", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], [picture]]
    messages = [
        {"id": str(place), "role": "tool", "toolCallId": "c", "content": content}
        for place, content in enumerate(contents)
    ]
    user = {"id": "u", "role": "user", "content": [picture]}
    said: list[Diagnostic] = []
    agent = ScriptedAgent([START, FINISH])
    given = run_input(messages=[user, *messages])
    await collect(Pipeline(agent, UpgradeMiddleware(on_diagnostic=said.append)), given)
    (seen,) = agent.inputs
    texts: list[Any] = [message.content for message in seen.messages[1:]]
    assert texts[:2] == ["plain", "ab"]
    assert json.loads(texts[2]) == [picture]
    assert seen.messages[0] is given.messages[0]
    assert [diagnostic.code for diagnostic in said] == ["upgrade.result-parts"]
    assert quiet().prepare(seen) is seen


async def test_the_stage_in_the_docs_takes_out_what_strict_agents_refuse() -> None:
    page = (Path(__file__).parents[2] / "docs" / "older-clients.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "NEW =" in block]
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block, "older-clients.md", "exec"), names)  # noqa: S102 - our own text
    agent = ScriptedAgent([START, FINISH])
    answer = run_input("hi", protocolVersion="1.0", resume=[{"interruptId": "i", "status": "resolved", "payload": 1}])
    await collect(Pipeline(agent, *names["chain"]), answer)
    sent = json.loads(encode_input(agent.inputs[0]))
    assert set(sent) == {"threadId", "runId", "state", "messages", "tools", "context", "forwardedProps"}
    assert sent["forwardedProps"] == {"command": {"resume": 1}}
