"""Random AG-UI streams for tests of the guard and its verifier: every event type, few ids, so that things collide.

A stream is made by a `choose` function, which hypothesis or a seeded generator provides: both make the same kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

Wire: TypeAlias = dict[str, Any]
Choose: TypeAlias = Callable[[Sequence[Any]], Any]

IDS = ("a", "b")
OWNERS = (None, None, None, "s", "u")
NO_IDS: Sequence[Any] = ("missing", None, 7, True, 1.5, [], {}, ["a"])
"""What is found where an id should be."""
LEGAL_NULLS = ("rawEvent", "parentMessageId", "result")
PAIRS = {
    "TEXT_MESSAGE": "messageId",
    "TOOL_CALL": "toolCallId",
    "REASONING_MESSAGE": "messageId",
}


def make_stream(choose: Choose, *, longest: int = 24, malformed: bool = True) -> list[Wire]:
    """Make a stream.

    Args:
        choose: Returns one of a few values.
        longest: The most events.
        malformed: Whether ids, and fields that have one possible meaning, may be malformed.
    """
    length = choose(range(longest + 1))
    events = [_event(choose, malformed=malformed) for _ in range(length)]
    if choose((True, True, True, False)):
        events.insert(0, _run_started(choose))
    if choose((True, True, False)):
        events.append(_run_finished(choose))
    return events


def seeded(seed: int) -> Choose:
    """Return a `choose` that makes the same choices each time."""
    return Random(seed).choice  # noqa: S311 - the same choices each time are the point


def mutated(stream: Sequence[Wire], choose: Choose) -> list[Wire]:
    """Return a stream with one or two events left out, doubled, exchanged or put in: nearly legal, if it was legal."""
    events = list(stream)
    for _ in range(choose((1, 1, 2))):
        place = choose(range(len(events) + 1))
        match choose(("leave out", "double", "exchange", "put in", "put in", "retag")):
            case "leave out":
                del events[place : place + 1]
            case "double":
                events[place:place] = events[place : place + 1]
            case "exchange":
                events[place : place + 2] = reversed(events[place : place + 2])
            case "put in":
                events.insert(place, _event(choose, malformed=False))
            case _ if place < len(events):
                event = {name: value for name, value in events[place].items() if name != "subagentRunId"}
                events[place] = _tagged(event, choose) if not event["type"].startswith("RUN_") else event
            case _:
                pass
    return events


def _event(choose: Choose, *, malformed: bool) -> Wire:
    event: Wire = choose(_KINDS)(choose)
    if malformed and choose((False,) * 7 + (True,)):
        _spoil(event, choose)
    return event


def _tagged(event: Wire, choose: Choose) -> Wire:
    owner = choose(OWNERS)
    return event if owner is None else event | {"subagentRunId": owner}


def _some(choose: Choose, **fields: Any) -> Wire:
    return {name: value for name, value in fields.items() if choose((True, False))}


def _triad(choose: Choose) -> Wire:
    name = choose(list(PAIRS))
    event: Wire = {"type": "", PAIRS[name]: choose(IDS)}
    part = choose(("START", "CONTENT", "CONTENT", "END"))
    if part == "CONTENT":
        part = "ARGS" if name == "TOOL_CALL" else part
        event["delta"] = choose(("", "x"))
    elif part == "START":
        match name:
            case "TOOL_CALL":
                event |= {"toolCallName": choose(("f", "g")), **_some(choose, parentMessageId=choose(IDS))}
            case "TEXT_MESSAGE":
                event |= _some(choose, role=choose(("assistant", "user")), name="n")
            case _:
                event["role"] = "reasoning"
    event["type"] = f"{name}_{part}"
    return _tagged(event, choose)


def _chunk(choose: Choose) -> Wire:
    name = choose(list(PAIRS))
    event: Wire = {"type": f"{name}_CHUNK"}
    event |= _some(choose, delta="x", **{PAIRS[name]: choose(IDS)})
    if name == "TOOL_CALL":
        event |= _some(choose, toolCallName=choose(("f", "f", "g")), parentMessageId=choose(IDS))
    if name == "TEXT_MESSAGE" and choose((True, False, False)):
        event |= _some(choose, role=choose(("assistant", "user")), name=choose(("n", "m")))
    if choose((True, False, False)):
        event |= _some(choose, metadata={"k": 1}, rawEvent={"raw": 1})
    return _tagged(event, choose)


def _span(choose: Choose) -> Wire:
    return _tagged({"type": choose(("REASONING_START", "REASONING_END")), "messageId": choose(IDS)}, choose)


def _thinking(choose: Choose) -> Wire:
    kind = choose(
        (
            *("THINKING_START", "THINKING_END", "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_END"),
            "THINKING_TEXT_MESSAGE_CONTENT",
        )
    )
    return _tagged({"type": kind, **({"delta": "x"} if kind.endswith("CONTENT") else {})}, choose)


def _step(choose: Choose) -> Wire:
    return _tagged({"type": choose(("STEP_STARTED", "STEP_FINISHED")), "stepName": choose(IDS)}, choose)


def _subagent(choose: Choose) -> Wire:
    event: Wire = {"type": "", "subagentRunId": choose(("s", "u"))}
    match choose(("STARTED", "STARTED", "FINISHED", "ERROR")):
        case "STARTED":
            event |= {"type": "SUBAGENT_STARTED", "name": "n"}
            return event | _some(choose, parentSubagentRunId=choose(("s", "u")))
        case "FINISHED":
            return event | {"type": "SUBAGENT_FINISHED"} | _some(choose, outcome={"type": "success"}, result=1)
        case _:
            return event | {"type": "SUBAGENT_ERROR", "message": "m"}


def _result(choose: Choose) -> Wire:
    event = {"type": "TOOL_CALL_RESULT", "messageId": choose((*IDS, "r")), "toolCallId": choose(IDS), "content": "c"}
    return _tagged(event, choose)


def _activity(choose: Choose) -> Wire:
    event: Wire = {"type": "", "messageId": choose(IDS), "activityType": "A"}
    if choose((True, False)):
        event |= {"type": "ACTIVITY_SNAPSHOT", "content": {}} | _some(choose, replace=choose((True, False)))
    else:
        event |= {"type": "ACTIVITY_DELTA", "patch": []}
    return _tagged(event, choose)


def _encrypted(choose: Choose) -> Wire:
    event = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": choose(("tool-call", "message"))}
    return _tagged(event | {"entityId": choose(IDS), "encryptedValue": "v"}, choose)


def _snapshot(choose: Choose) -> Wire:
    return {"type": "MESSAGES_SNAPSHOT", "messages": _messages(choose)}


def _messages(choose: Choose) -> list[Wire]:
    messages = []
    for _ in range(choose(range(3))):
        message: Wire = {"id": choose(IDS), "role": choose(("assistant", "user", "reasoning", "activity", "oracle"))}
        if message["role"] == "activity":
            message |= {"activityType": "A", "content": {}}
        else:
            message["content"] = "c"
        if message["role"] == "assistant" and choose((True, False)):
            call = {"id": choose(IDS), "type": "function", "function": {"name": "f", "arguments": ""}}
            message["toolCalls"] = [call]
        messages.append(_tagged(message, choose))
    return messages


def _free(choose: Choose) -> Wire:
    event = choose(
        (
            {"type": "CUSTOM", "name": "n", "value": None},
            {"type": "RAW", "event": None, "source": "s"},
            {"type": "STATE_SNAPSHOT", "snapshot": {}},
            {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/k", "value": 1}]},
            {"type": "OF_THE_FUTURE", "messageId": 5},
        )
    )
    return _tagged(dict(event), choose)


def _run_started(choose: Choose) -> Wire:
    event: Wire = {"type": "RUN_STARTED", "threadId": "t", "runId": choose(("r", "r", "r2"))}
    event |= _some(choose, protocolVersion="1.0")
    if choose((False, False, False, True)):
        event["input"] = {"threadId": "t", "runId": "r", "messages": _messages(choose)}
    return event


def _run_finished(choose: Choose) -> Wire:
    event: Wire = {"type": "RUN_FINISHED", "threadId": "t", "runId": choose(("r", "r", "r2"))}
    outcome = choose(
        (
            None,
            {"type": "success", "pendingToolCallIds": ["a", "b"]},
            {"type": "cancelled"},
            {"type": "interrupt", "interrupts": [{"id": "i", "reason": "r", "subagentRunId": "s"}]},
            {"type": "of the future"},
        )
    )
    return event if outcome is None else event | {"outcome": outcome}


def _terminal(choose: Choose) -> Wire:
    if choose((True, False)):
        return {"type": "RUN_ERROR", "message": "m"} | _some(choose, code="c")
    return _run_finished(choose)


_KINDS: Sequence[Callable[[Choose], Wire]] = (
    *(_triad,) * 8,
    *(_chunk,) * 8,
    *(_span, _span, _step, _step, _step, _subagent, _subagent, _subagent, _result, _activity, _encrypted),
    *(_snapshot, _thinking, _free, _free, _free, _run_started, _terminal),
)


def _spoil(event: Wire, choose: Choose) -> None:
    """Make fields malformed: ids in any way, others such that they have one possible meaning."""
    match choose(("id", "id", "null", "timestamp", "role", "empty")):
        case "id":
            names = [name for name in event if name.endswith("Id") or name == "stepName"]
            if names:
                name, value = choose(names), choose(NO_IDS)
                if name.startswith("parent") and (value is True or not isinstance(value, int | type(None))):
                    return  # nothing that a part is found by: it passes
                event.pop(name)
                if value != "missing":
                    event[name] = value
        case "null":
            event[choose(("timestamp", "metadata", "rawEvent"))] = None
        case "timestamp":
            event["timestamp"] = choose((1.5, 1.0, "now", 2**60, True, {}))
        case "role" if event["type"] in ("REASONING_MESSAGE_START", "TOOL_CALL_RESULT"):
            event["role"] = choose(("assistant", None))
        case "empty":
            for name in ("delta", "content", "message", "value", "event"):
                if name in event and isinstance(event[name], str | None):
                    event[name] = None
        case _:
            pass
