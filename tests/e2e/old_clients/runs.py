"""Runs that together hold every event type of AG-UI 1.0, in the ways that older clients stumble over.

Each is legal: the 1.0.0 client takes it as it is. Knows no version of any client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.e2e.old_clients.events import (
    CALLS,
    FILE,
    FINISHED,
    HELLO,
    HI,
    IDS,
    IMAGE,
    INTERRUPTS,
    LINK,
    PARTS,
    PLAN,
    STARTED,
    THOUGHT,
    WORDS,
    Wire,
    activity,
    args,
    call,
    called,
    chunk,
    custom,
    delta,
    end,
    raw,
    reasoning,
    result,
    run,
    say,
    snapshot,
    span,
    start,
    state,
    step,
    subagent,
    text,
)


@dataclass(frozen=True)
class Run:
    """One request and the stream that answers it.

    Attributes:
        events: The stream.
        input: What the client has before: a (partial) RunAgentInput.
        same_as: A stream that says the same and that 1.0.0 takes, where it does not take this one.
        framed: Makes a frame of an event's JSON.
    """

    events: Sequence[Wire]
    input: Mapping[str, Any] = field(default_factory=dict)
    same_as: Sequence[Wire] | None = None
    framed: Callable[[str], str] = "data: {}\n\n".format

    def body(self) -> bytes:
        """Return the stream as it is sent."""
        return _body(self.events, self.framed)

    def reference(self) -> bytes:
        """Return the stream that the 1.0.0 client is sent."""
        return _body(self.same_as or self.events, self.framed)


def _body(events: Sequence[Wire], framed: Callable[[str], str]) -> bytes:
    return "".join(framed(json.dumps(event)) for event in events).encode()


RUNS: Final[Mapping[str, Run]] = {
    "plain": Run(
        run(
            *text("m", "Hel", "lo"),
            call("c", parentMessageId="m"),
            args("c", "{}"),
            called("c"),
            result("c"),
            state({"a": 1}),
        )
    ),
    "two calls and a text at once": Run(
        run(
            state({"n": 0}),
            start("m"),
            say("m", "one "),
            call("c1", parentMessageId="m"),
            args("c1", '{"q":'),
            call("c2", "count", parentMessageId="m"),
            say("m", "two"),
            args("c2", "{}"),
            delta("replace", "/n", value=1),
            args("c1", "1}"),
            raw({"tokens": 5}),
            called("c2"),
            end("m"),
            result("c2", "2"),
            custom(),
            called("c1"),
            result("c1", "1"),
            *text("n", "done"),
        )
    ),
    "steps around and inside of everything": Run(
        run(
            step("STARTED", "outer"),
            start("m"),
            step("STARTED", "inner"),
            say("m", "hi"),
            step("FINISHED", "inner"),
            end("m"),
            step("FINISHED", "outer"),
            state({"done": True}),
        )
    ),
    "reasoning": Run(
        run(
            span("START", "s1"),
            span("MESSAGE_START", "r1", role="reasoning"),
            span("MESSAGE_CONTENT", "r1", delta="first "),
            span("START", "s2"),
            span("MESSAGE_START", "r2", role="reasoning"),
            span("MESSAGE_CONTENT", "r2", delta="second"),
            start("m"),
            span("MESSAGE_CONTENT", "r1", delta="thought"),
            say("m", "hi"),
            span("MESSAGE_END", "r2"),
            span("END", "s2"),
            span("MESSAGE_END", "r1"),
            end("m"),
            span("END", "s1"),
            {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r1", "encryptedValue": "x"},
            *reasoning("r3", "third"),
        )
    ),
    "chunks": Run(
        run(
            chunk("TEXT_MESSAGE", messageId="m", role="assistant", delta="Hel"),
            chunk("TEXT_MESSAGE", delta="lo"),
            chunk("REASONING_MESSAGE", messageId="r", delta="h"),
            chunk("REASONING_MESSAGE", delta="m"),
            chunk("TOOL_CALL", toolCallId="c", toolCallName="search", parentMessageId="m", delta='{"q":'),
            chunk("TOOL_CALL", delta="1}"),
            raw(),
            chunk("TOOL_CALL", toolCallId="c2", toolCallName="count", delta="{}"),
            result("c"),
            chunk("TEXT_MESSAGE", messageId="n", delta="done"),
        )
    ),
    "subagents": Run(
        run(
            *text("m", "asking"),
            subagent("STARTED", "s", name="researcher", description="looks things up"),
            subagent("STARTED", "u", name="writer", parentSubagentRunId="s"),
            start("n", subagentRunId="s"),
            start("o", subagentRunId="u"),
            say("n", "from ", subagentRunId="s"),
            say("o", "from the writer", subagentRunId="u"),
            say("n", "the researcher"),
            end("o"),
            call("c", subagentRunId="s"),
            args("c", "{}"),
            end("n"),
            called("c"),
            result("c", subagentRunId="s"),
            activity("p", {"step": 1}, subagentRunId="s"),
            subagent("ERROR", "u", message="out of ink"),
            subagent("FINISHED", "s", result={"ok": True}, outcome={"type": "success"}),
            *text("z", "thanks"),
        )
    ),
    "chunks of subagents": Run(
        run(
            subagent("STARTED", "s", name="one"),
            chunk("TEXT_MESSAGE", messageId="m", delta="par"),
            chunk("TEXT_MESSAGE", messageId="n", delta="chi", subagentRunId="s"),
            chunk("TEXT_MESSAGE", delta="ent"),
            chunk("TEXT_MESSAGE", delta="ld", subagentRunId="s"),
            subagent("FINISHED", "s"),
        )
    ),
    "activities": Run(
        run(
            activity("p", {"step": 1, "log": []}),
            {
                "type": "ACTIVITY_DELTA",
                "messageId": "p",
                "activityType": "plan",
                "patch": [{"op": "add", "path": "/log/-", "value": "x"}],
            },
            activity("p", {"step": 9}, replace=False),
            start("m"),
            activity("q", {"step": 2}),
            say("m", "hi"),
            end("m"),
        )
    ),
    "a snapshot of messages": Run(
        run(
            snapshot(HI, HELLO, CALLS, {"id": "d", "role": "tool", "toolCallId": "c", "content": "found"}),
            *text("m", "more"),
        ),
        {"messages": [HI]},
    ),
    "media in a snapshot": Run(
        run(
            snapshot(
                {"id": "u", "role": "user", "content": [WORDS, IMAGE, LINK]},
                CALLS,
                {"id": "d", "role": "tool", "toolCallId": "c", "content": PARTS},
                PLAN,
                THOUGHT,
            ),
            *text("m", "seen"),
        )
    ),
    "a file in a snapshot": Run(
        run(snapshot({"id": "u", "role": "user", "content": [WORDS, FILE]}), *text("m", "heard")),
    ),
    "a result made of parts": Run(
        run(
            *text("m", "look"),
            call("c", parentMessageId="m"),
            called("c"),
            result("c", [WORDS, {**WORDS, "text": "this"}]),
        ),
    ),
    "a result that is a picture": Run(
        run(*text("m", "look"), call("c", parentMessageId="m"), called("c"), result("c", [IMAGE])),
    ),
    "the input echoed": Run(
        run(
            *text("m", "ok"),
            started={
                "protocolVersion": "1.0",
                "parentRunId": "p",
                "input": {
                    **IDS,
                    "messages": [HI, CALLS, {"id": "d", "role": "tool", "toolCallId": "c", "content": PARTS}],
                },
            },
        ),
        {"messages": [HI]},
    ),
    "media, thoughts and plans in the input echoed": Run(
        run(
            *text("m", "ok"),
            started={
                "input": {
                    **IDS,
                    "messages": [{**HI, "id": "v", "content": [WORDS, IMAGE, LINK, FILE]}, THOUGHT, PLAN],
                    "tools": [],
                    "context": [],
                    "state": {},
                    "forwardedProps": {},
                }
            },
        ),
        {"messages": [HI]},
    ),
    "plans that a snapshot leaves out": Run(
        run(
            activity("p", {"step": 1}),
            *text("m", "hey"),
            snapshot(HI, {"id": "m", "role": "assistant", "content": "hey"}),
        ),
        {"messages": [HI]},
    ),
    "thoughts that a snapshot leaves out": Run(
        run(*reasoning("r", "hm"), *text("m", "hey"), snapshot(HI, {"id": "m", "role": "assistant", "content": "hey"})),
        {"messages": [HI]},
    ),
    "interrupts": Run(
        run(
            *text("m", "May I?"),
            call("c", "delete", parentMessageId="m"),
            args("c", "{}"),
            called("c"),
            finished={"outcome": {"type": "interrupt", "interrupts": INTERRUPTS}},
        )
    ),
    "cancelled": Run(run(*text("m", "I st"), finished={"outcome": {"type": "cancelled"}})),
    "calls left to the client": Run(
        run(
            call("c", "confirm"),
            args("c", "{}"),
            called("c"),
            finished={
                "outcome": {"type": "success", "pendingToolCallIds": ["c"]},
                "result": 1,
                "usage": [{"model": "m"}],
            },
        )
    ),
    "an outcome of the future": Run(run(*text("m", "hi"), finished={"outcome": {"type": "paused"}})),
    "an error": Run(
        [
            STARTED,
            start("m"),
            say("m", "half"),
            call("c"),
            args("c", "{"),
            span("START", "s"),
            {"type": "RUN_ERROR", "message": "no more tokens", "code": "limit"},
        ]
    ),
    "an error at once": Run([{"type": "RUN_ERROR", "message": "no"}]),
    "a late error": Run([*run(*text("m", "hi")), {"type": "RUN_ERROR", "message": "too late"}]),
    "two runs": Run(
        [*run(*text("m", "one")), STARTED | {"runId": "r2"}, *text("n", "two"), FINISHED | {"runId": "r2"}]
    ),
    "a run after an error": Run(
        [STARTED, *text("m", "one"), {"type": "RUN_ERROR", "message": "again"}, *run(*text("n", "two"))]
    ),
    "texts of others": Run(
        run(*text("m", "rule", role="developer"), *text("n", "I said", role="user"), *text("o", "hi", name="bot"))
    ),
    "empty deltas": Run(run(start("m"), say("m", ""), say("m", "hi"), end("m"), *reasoning("r", "", "hm"))),
    "nulls": Run(
        run(
            {**start("m"), "name": None, "timestamp": None, "metadata": None, "subagentRunId": None},
            {**say("m", "hi"), "timestamp": None},
            end("m"),
            {**call("c"), "parentMessageId": None},
            {**called("c"), "rawEvent": None},
            {**result("c"), "role": None},
            custom(None),
            {**raw(None), "source": None},
            snapshot({**HI, "name": None}, {**HELLO, "toolCalls": None, "encryptedValue": None}),
            started={"parentRunId": None, "input": None},
            finished={"result": None, "outcome": None},
        ),
        same_as=run(
            *text("m", "hi"), call("c"), called("c"), result("c"), custom(None), raw(None), snapshot(HI, HELLO)
        ),
    ),
    "a type of the future": Run(run(start("m"), {"type": "MOOD_CHANGED", "mood": "good"}, say("m", "hi"), end("m"))),
    "a text that goes on later": Run(run(*text("m", "Hel"), *text("n", "wait"), start("m"), say("m", "lo"), end("m"))),
    "a subagent's text that goes on, and its call": Run(
        run(
            subagent("STARTED", "s", name="one"),
            *text("m", "Hel", subagentRunId="s"),
            *text("n", "wait"),
            start("m"),
            say("m", "lo", subagentRunId="s"),
            end("m", subagentRunId="s"),
            *text("o", "so"),
            call("c", parentMessageId="m"),
            args("c", "{}", subagentRunId="s"),
            called("c", subagentRunId="s"),
            result("c", subagentRunId="s"),
            subagent("FINISHED", "s"),
            *text("p", "done"),
        )
    ),
    "a call of an earlier message": Run(
        run(
            *text("m", "one"),
            *text("n", "two"),
            call("c", parentMessageId="m"),
            args("c", "{}"),
            called("c"),
            result("c"),
        )
    ),
    "a call before its message": Run(
        run(call("c", parentMessageId="m"), args("c", "{}"), called("c"), result("c"), *text("n", "then")),
    ),
    "a call told again": Run(
        run(
            *text("m", "look"),
            call("c", parentMessageId="m"),
            args("c", '{"q":'),
            called("c"),
            call("c", parentMessageId="m"),
            args("c", "1}"),
            called("c"),
            result("c"),
            *text("n", "done"),
        )
    ),
    "a type of the future outside of the run": Run(
        [{"type": "MOOD_CHANGED", "mood": "good"}, *run(*text("m", "hi")), {"type": "MOOD_CHANGED", "mood": "bad"}]
    ),
    "thinking of an older agent": Run(
        run(
            {"type": "THINKING_START", "title": "Plan"},
            {"type": "THINKING_TEXT_MESSAGE_START"},
            {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
            {"type": "THINKING_TEXT_MESSAGE_END"},
            {"type": "THINKING_END"},
            *text("m", "hi"),
        )
    ),
    "messages of the future": Run(
        run(
            snapshot(
                {**HI, "content": [WORDS, {"type": "hologram"}]}, {"id": "o", "role": "oracle", "content": "soon"}
            ),
            *text("m", "hi"),
        ),
        {"messages": [HI]},
    ),
    "a step of a subagent with the name of another one": Run(
        run(
            subagent("STARTED", "s", name="one"),
            step("STARTED", "search"),
            {**step("STARTED", "search"), "subagentRunId": "s"},
            {**step("FINISHED", "search"), "subagentRunId": "s"},
            step("FINISHED", "search"),
            subagent("FINISHED", "s"),
            *text("m", "hi"),
        )
    ),
    "frames without a space": Run(run(*text("m", "hi")), framed="event: message\ndata:{}\n\n".format),
    "nothing to show": Run(run(custom()), {"state": {"kept": True}}),
    "metadata and what is new": Run(
        run(
            *text("m", "hi", metadata={"k": None}, rawEvent={"a": None}, novel=1),
            {**call("c"), "metadata": {"k": 1}},
            called("c"),
            state({"a": None}),
        )
    ),
}
"""Each run by what is in it."""
