"""An agent that uses all that the old front ends show: thinking, a step, a tool, code, another agent, a question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import anyio.lowlevel
from ag_ui.core import RunAgentInput

TEXT: Final = "Grüße, 世界! Das Ergebnis:\n\n"
CODE: Final = "def hello():\n    print('世界')\n"
FENCED: Final = f"```python\n{CODE}```\n"
AFTER: Final = "Fertig: 84."
THOUGHT: Final = "用户想了解量子计算…\nThen I search."
ARGUMENTS: Final = '{"query":"量子计算","limit":3}'
RESULT: Final = "IBM 发布 1000 量子比特处理器\nzweite Zeile"
QUESTION: Final = "即将执行删除操作，请确认是否继续？"  # noqa: RUF001 - Chinese
FORM: Final = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "确认操作"}},
    "required": ["confirm"],
}


async def agent(input: RunAgentInput) -> AsyncIterator[dict[str, Any]]:
    """Do everything, then ask; once that is answered, say what was answered."""
    run = {"threadId": input.thread_id, "runId": input.run_id}
    yield {"type": "RUN_STARTED", **run}
    answers = [entry.payload for entry in input.resume or () if entry.status == "resolved"]
    if answers:
        agreed = isinstance(answers[0], dict) and answers[0].get("confirm") is True
        asked = sum(message.role == "user" for message in input.messages)
        for event in told(f"after-{input.run_id}", f"{'Deleted' if agreed else 'Kept'}", f", {asked} question(s)."):
            yield event
        yield {"type": "RUN_FINISHED", **run}
        return
    for event in everything(input.run_id):
        yield event
        await anyio.lowlevel.checkpoint()  # each in a turn of its own
    interrupt = {"id": f"i-{input.run_id}", "reason": "confirmation", "message": QUESTION, "responseSchema": FORM}
    yield {"type": "RUN_FINISHED", **run, "outcome": {"type": "interrupt", "interrupts": [interrupt]}}


def everything(run_id: str) -> Iterator[dict[str, Any]]:
    """Give the events between a run's bounds."""
    think, call, sub = f"think-{run_id}", f"call-{run_id}", f"sub-{run_id}"
    yield {"type": "REASONING_START", "messageId": think}
    yield {"type": "REASONING_MESSAGE_START", "messageId": think, "role": "reasoning"}
    for delta in pieces(THOUGHT):
        yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": think, "delta": delta}
    yield {"type": "REASONING_MESSAGE_END", "messageId": think}
    yield {"type": "REASONING_END", "messageId": think}
    yield {"type": "STEP_STARTED", "stepName": "search"}
    yield {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "web_search"}
    for delta in pieces(ARGUMENTS):
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": delta}
    yield {"type": "TOOL_CALL_END", "toolCallId": call}
    yield {"type": "TOOL_CALL_RESULT", "toolCallId": call, "messageId": f"r-{run_id}", "content": RESULT}
    yield {"type": "STEP_FINISHED", "stepName": "search"}
    yield {"type": "SUBAGENT_STARTED", "subagentRunId": sub, "name": "writer"}
    yield {"type": "SUBAGENT_FINISHED", "subagentRunId": sub}
    yield from told(f"text-{run_id}", *pieces(TEXT + FENCED + AFTER))


def told(id: str, *deltas: str) -> Iterator[dict[str, Any]]:
    """Give a text message."""
    yield {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}
    for delta in deltas:
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}
    yield {"type": "TEXT_MESSAGE_END", "messageId": id}


def pieces(text: str, size: int = 5) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
