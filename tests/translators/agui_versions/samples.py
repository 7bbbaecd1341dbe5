"""Legal streams of AG-UI 1.0 that older clients give up on, or show otherwise: one for each rule at least."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Wire: TypeAlias = dict[str, Any]

RUN: Final[Wire] = {"threadId": "t", "runId": "r"}
START: Final[Wire] = {"type": "RUN_STARTED", **RUN}
FINISH: Final[Wire] = {"type": "RUN_FINISHED", **RUN}
ERROR: Final[Wire] = {"type": "RUN_ERROR", "message": "no"}
STATE: Final[Wire] = {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1, "nothing": None}}


def text(id: str, *deltas: str, **more: Any) -> list[Wire]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant", **more},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in deltas),
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def call(id: str, *deltas: str, **more: Any) -> list[Wire]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f", **more},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for delta in deltas),
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]


def result(id: str, content: Any = "done", **more: Any) -> Wire:
    return {"type": "TOOL_CALL_RESULT", "messageId": f"{id}-result", "toolCallId": id, "content": content, **more}


def reasoning(id: str, *deltas: str) -> list[Wire]:
    return [
        {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"},
        *({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in deltas),
        {"type": "REASONING_MESSAGE_END", "messageId": id},
    ]


def step(name: str, *inside: Wire, **more: Any) -> list[Wire]:
    return [
        {"type": "STEP_STARTED", "stepName": name, **more},
        *inside,
        {"type": "STEP_FINISHED", "stepName": name, **more},
    ]


def activity(id: str = "act", **content: Any) -> Wire:
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "PLAN", "content": content or {"n": 1}}


def snapshot(*messages: Wire, **more: Any) -> Wire:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages), **more}


def message(id: str, content: Any = "hi", role: str = "assistant", **more: Any) -> Wire:
    return {"id": id, "role": role, "content": content, **more}


def run(*events: Wire) -> list[Wire]:
    return [START, *events, FINISH]


def woven(*streams: list[Wire]) -> list[Wire]:
    """Return streams event by event in turns."""
    longest = max(map(len, streams))
    return [stream[place] for place in range(longest) for stream in streams if place < len(stream)]


SUBAGENT: Final[Wire] = {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "searcher"}
SUBAGENT_END: Final[Wire] = {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}
INTERRUPT: Final[Wire] = {"id": "i", "reason": "approval", "message": "May I?"}
IMAGE: Final[Wire] = {"type": "image", "source": {"type": "url", "value": "https://x/y", "mimeType": "image/png"}}
FILE: Final[Wire] = {"type": "document", "source": {"type": "file", "value": "file-1"}, "metadata": {"filename": "a"}}
TEXT_PART: Final[Wire] = {"type": "text", "text": "look"}


def chunk(delta: str | None = None, **more: Any) -> Wire:
    return {"type": "TEXT_MESSAGE_CHUNK", **more} | ({} if delta is None else {"delta": delta})


STREAMS: Final[dict[str, list[Wire]]] = {
    "plain": run(*text("m", "hel", "lo"), *call("c", '{"a":', "1}"), result("c"), *text("n", "done"), STATE),
    "parent null": run(*call("c", "{}", parentMessageId=None)),
    "snapshot of calls": run(
        snapshot(
            message("m", toolCalls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
            message("u", [{**IMAGE, "metadata": None}], role="user"),
        )
    ),
    "chunks of two lanes": run(
        SUBAGENT,
        chunk("a", messageId="m"),
        chunk("b", messageId="n", subagentRunId="s"),
        chunk("c"),
        chunk("d", subagentRunId="s"),
        SUBAGENT_END,
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": "{"},
        {"type": "TOOL_CALL_CHUNK", "delta": "}"},
    ),
    "a chunk around an unknown type": run(
        chunk("a", messageId="m"), {"type": "FUTURE", "n": None}, chunk("b"), chunk(messageId="m")
    ),
    "chunks of reasoning": run(
        {"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "hm"},
        {"type": "REASONING_MESSAGE_CHUNK", "delta": "m"},
        *text("m", "hi"),
    ),
    "subagents": run(
        SUBAGENT,
        *text("m", "hi", subagentRunId="s"),
        SUBAGENT_END,
        {**SUBAGENT, "subagentRunId": "u", "parentSubagentRunId": "s"},
        {"type": "SUBAGENT_ERROR", "subagentRunId": "u", "message": "no"},
    ),
    "activities": run(
        *text("m", "hi"),
        activity(),
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "act",
            "activityType": "PLAN",
            "patch": [{"op": "replace", "path": "/n", "value": 2}],
        },
    ),
    "reasoning": run(
        {"type": "REASONING_START", "messageId": "r"},
        *reasoning("r", "hm", "m"),
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "x"},
        {"type": "REASONING_END", "messageId": "r"},
        *text("m", "hi"),
    ),
    "reasoning, woven": run(
        {"type": "REASONING_START", "messageId": "a"},
        {"type": "REASONING_START", "messageId": "b"},
        *woven(reasoning("a", "1", "2"), reasoning("b", "3", "4"), text("m", "x", "y")),
        {"type": "REASONING_END", "messageId": "b"},
        {"type": "REASONING_END", "messageId": "a"},
    ),
    "reasoning between a text and its call": run(
        *text("m", "hi"),
        {"type": "REASONING_START", "messageId": "s"},
        *reasoning("r", "hm"),
        {"type": "REASONING_END", "messageId": "s"},
        *call("c", "{}", parentMessageId="m"),
        result("c"),
        *text("n", "ho"),
    ),
    "reasoning that breaks off": [
        START,
        {"type": "REASONING_START", "messageId": "a"},
        *reasoning("a", "1")[:2],
        *reasoning("b", "2")[:2],
        STATE,
        ERROR,
    ],
    "thinking": run(
        {"type": "THINKING_START", "title": "t"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_END"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "m"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        *text("m", "hi"),
    ),
    "unknown type": run({"type": "OF_THE_FUTURE", "anything": [None]}, *text("m", "hi")),
    "empty deltas": run(*text("m", "", "hi", ""), *reasoning("r", "", "hm"), *call("c", "", "{}")),
    "roles": run(*text("m", "hi", role="user"), {"type": "TEXT_MESSAGE_START", "messageId": "n"}, *text("n", "x")[1:]),
    "result parts": run(
        *call("c", "{}"), result("c", [TEXT_PART, TEXT_PART]), *call("d", "{}"), result("d", [IMAGE]), *text("m", "hi")
    ),
    "snapshot of everything": run(
        snapshot(
            message("1", "be kind", role="system"),
            message("2", [TEXT_PART, IMAGE, FILE], role="user"),
            message("3", [TEXT_PART], role="tool", toolCallId="c"),
            message("4", "hm", role="reasoning"),
            {"id": "5", "role": "activity", "activityType": "PLAN", "content": {"a": None}},
            message("6", "?", role="oracle"),
            message("7", [{"type": "hologram"}, TEXT_PART], role="user"),
        )
    ),
    "snapshot of media": run(snapshot(message("2", [TEXT_PART, IMAGE], role="user"))),
    "snapshot of files": run(snapshot(message("2", [TEXT_PART, FILE], role="user"))),
    "snapshot of a tool": run(snapshot(message("3", [TEXT_PART], role="tool", toolCallId="c"))),
    "snapshot of reasoning": run(snapshot(message("4", "hm", role="reasoning"))),
    "snapshot of an activity": run(snapshot({"id": "5", "role": "activity", "activityType": "P", "content": {}})),
    "snapshot of a stranger": run(snapshot(message("6", "?", role="oracle"), message("m"))),
    "input": [
        {**START, "input": {**RUN, "messages": [message("2", [FILE], role="user"), message("x", role="oracle")]}},
        *text("m", "hi"),
        FINISH,
    ],
    "interrupt": [
        START,
        *text("m", "hi"),
        {**FINISH, "outcome": {"type": "interrupt", "interrupts": [INTERRUPT, {"id": "j", "reason": "r"}]}},
    ],
    "success with pending calls": [
        START,
        *call("c", "{}"),
        {**FINISH, "outcome": {"type": "success", "pendingToolCallIds": ["c"]}},
    ],
    "cancelled": [START, *text("m", "hi"), {**FINISH, "outcome": {"type": "cancelled"}}],
    "an unknown outcome": [START, *text("m", "hi"), {**FINISH, "outcome": {"type": "moot", "why": 1}}],
    "woven": run(
        *woven(
            text("m", "a", "b", "c"),
            call("c", '{"a":', "1", "}"),
            text("n", "d", "e"),
            [{"type": "RAW", "event": 1}, {"type": "CUSTOM", "name": "n", "value": None}, STATE],
        ),
        result("c"),
        *text("o", "f"),
    ),
    "an error with everything open": [START, text("m", "a")[0], text("m", "a")[1], *call("c", "{")[:2], ERROR],
    "steps": run(*step("outer", *step("inner", *text("m", "hi")))),
    "steps of one name": run(SUBAGENT, *step("plan", *step("plan", *text("m", "hi"), subagentRunId="s")), SUBAGENT_END),
    "two runs": [*run(*text("m", "hi")), *run(*text("n", "ho"))],
    "a run after an error": [START, *text("m", "hi"), ERROR, START, FINISH],
    "an error after the end": [*run(*text("m", "hi")), ERROR],
    "a text again": run(*text("m", "hi"), *text("n", "!"), *text("m", " you"), *call("c", "{}", parentMessageId="m")),
    "a text of a call's message": run(*call("c", "{}", parentMessageId="m"), *text("m", "hi")),
    "calls of one parent": run(
        *text("m", "hi"),
        *call("c", "{}", parentMessageId="m"),
        *call("d", "{}", parentMessageId="m"),
        result("c"),
        *call("e", "{}", parentMessageId="m"),
        result("d"),
        result("e"),
        *text("n", "ho"),
    ),
    "a snapshot after an activity": run(*text("m", "hi"), activity(), snapshot(message("m"), message("n"))),
    "a snapshot after reasoning": run(*reasoning("r", "h", "m"), *text("m", "hi"), snapshot(message("m"))),
    "a text with the id of a call that loses its parent": run(
        *text("m", "hi"), *text("n", "ho"), *call("c", "{}", parentMessageId="m"), *text("c", "hu")
    ),
    "a call behind a snapshot and an activity": run(
        *text("m", "hi"), activity(), snapshot(message("m")), *call("c", "{}", parentMessageId="m"), *text("n", "ho")
    ),
    "a call behind a snapshot and reasoning": run(
        *text("m", "hi"),
        *reasoning("r", "hm"),
        snapshot(message("m")),
        *call("c", "{}", parentMessageId="m"),
        *text("n", "ho"),
    ),
    "nothing": run({"type": "CUSTOM", "name": "n", "value": 1}),
    "a late result": run(*text("m", "h", "i"), *call("c", "{", "}", parentMessageId="m"), result("c"), STATE),
    "only a result": run(result("c")),
    "only an error": [ERROR],
    "usage": [
        START,
        *text("m", "hi"),
        {**FINISH, "usage": [{"inputTokens": 1, "cacheWriteInputTokens": 1}], "result": None},
    ],
    "raw events": run(*text("m", "hi", rawEvent=None, timestamp=1)),
}
"""All of them legal for `@ag-ui/client` 1.0."""

SLOPPY: Final[dict[str, list[Wire]]] = {
    "nulls": run(
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "name": None, "timestamp": None},
        *text("m", "hi")[1:],
        {"type": "RAW", "event": None, "source": None},
        {"type": "CUSTOM", "name": "n", "value": None},
        snapshot(message("m", "hi", name=None), {"id": "n", "role": "assistant", "content": None}),
    ),
}
"""Streams with what agents on an older SDK write, which 1.0 does not take either."""
