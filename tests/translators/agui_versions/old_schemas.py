"""The schemas of `@ag-ui/client` before 1.0: what each version refuses before it looks at anything else."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

Wire: TypeAlias = dict[str, Any]


class RefusedError(Exception):
    """`runAgent` rejects."""


_DELTAS = {"TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "THINKING_TEXT_MESSAGE_CONTENT"}


def check_shape(event: Wire, patch: int) -> None:
    """Raise what a client's schemas raise at an event."""
    name = event.get("type")
    shape = shapes(patch).get(name) if isinstance(name, str) else None
    if shape is None:
        raise RefusedError(f"type {name}")
    if "timestamp" in event and not isinstance(event["timestamp"], int | float):
        raise RefusedError("timestamp")
    for field, check in shape.items():
        must = not field.endswith("?")
        key = field.rstrip("?")
        if key not in event:
            if must:
                raise RefusedError(f"{name}.{key} is missing")
            continue
        if check == "string" and not isinstance(event[key], str):
            raise RefusedError(f"{name}.{key} is no string")
        if check == "list" and not isinstance(event[key], list):
            raise RefusedError(f"{name}.{key} is no list")
        if check == "object" and not isinstance(event[key], dict):
            raise RefusedError(f"{name}.{key} is no object")
    _check_more(event, patch)


@cache
def shapes(patch: int) -> dict[str, Wire]:
    """Return the fields of each type: ``?`` behind the name of one that may be absent, and what it must be."""
    text, call = {"messageId": "string"}, {"toolCallId": "string"}
    parent = {} if patch >= 58 else {"parentMessageId?": "string"}
    run = {"threadId": "string", "runId": "string"}
    chunk = {"delta?": "string"}
    found: dict[str, Wire] = {
        "TEXT_MESSAGE_START": {**text, "role" + "?" * (patch > 36): "string"},
        "TEXT_MESSAGE_CONTENT": {**text, "delta": "string"},
        "TEXT_MESSAGE_END": text,
        "TEXT_MESSAGE_CHUNK": {"messageId?": "string", "role?": "string", **chunk},
        "TOOL_CALL_START": {**call, "toolCallName": "string", **parent},
        "TOOL_CALL_ARGS": {**call, "delta": "string"},
        "TOOL_CALL_END": call,
        "TOOL_CALL_CHUNK": {"toolCallId?": "string", "toolCallName?": "string", **parent, **chunk},
        "TOOL_CALL_RESULT": {**text, **call, "content": "string", "role?": "string"},
        "STATE_SNAPSHOT": {},
        "STATE_DELTA": {"delta": "list"},
        "MESSAGES_SNAPSHOT": {"messages": "list"},
        "RAW": {"source?": "string"},
        "CUSTOM": {"name": "string"},
        "RUN_STARTED": {**run, **({"parentRunId?": "string"} if patch >= 41 else {})},
        "RUN_FINISHED": run,
        "RUN_ERROR": {"message": "string", "code?": "string"},
        "STEP_STARTED": {"stepName": "string"},
        "STEP_FINISHED": {"stepName": "string"},
    }
    if patch >= 48:
        found["TEXT_MESSAGE_START"] = {**found["TEXT_MESSAGE_START"], "name?": "string"}
    if patch >= 37:
        found |= {
            "THINKING_START": {"title?": "string"},
            "THINKING_END": {},
            "THINKING_TEXT_MESSAGE_START": {},
            "THINKING_TEXT_MESSAGE_CONTENT": {"delta": "string"},
            "THINKING_TEXT_MESSAGE_END": {},
        }
    if patch >= 41:
        activity = {**text, "activityType": "string"}
        found |= {
            "ACTIVITY_SNAPSHOT": {**activity, "content": "object"},
            "ACTIVITY_DELTA": {**activity, "patch": "list"},
        }
    if patch >= 45:
        found |= {
            "REASONING_START": text,
            "REASONING_MESSAGE_START": {**text, "role": "string"},
            "REASONING_MESSAGE_CONTENT": {**text, "delta": "string"},
            "REASONING_MESSAGE_END": text,
            "REASONING_MESSAGE_CHUNK": {"messageId?": "string", **chunk},
            "REASONING_END": text,
            "REASONING_ENCRYPTED_VALUE": {"entityId": "string", "encryptedValue": "string"},
        }
    if patch >= 59:
        subagent = {"subagentRunId": "string"}
        found |= {
            "SUBAGENT_STARTED": {**subagent, "name": "string"},
            "SUBAGENT_FINISHED": subagent,
            "SUBAGENT_ERROR": {**subagent, "message": "string"},
        }
    return found


def _check_more(event: Wire, patch: int) -> None:
    name = event["type"]
    if name == "TEXT_MESSAGE_START":
        roles = ("assistant", "user", "system", "developer") if patch > 36 else ("assistant",)
        if event.get("role", "assistant") not in roles:
            raise RefusedError("role")
    if name in _DELTAS and event["delta"] == "" and patch <= 49:
        raise RefusedError("an empty delta")
    if name == "MESSAGES_SNAPSHOT":
        for message in event["messages"]:
            _check_message(message, patch)
    if name == "RUN_STARTED" and "input" in event and patch >= 41:
        _check_input(event["input"], patch)
    if name in ("RUN_FINISHED", "RUN_ERROR") and patch >= 58:
        for usage in event.get("usage", ()):
            if None in usage.values():
                raise RefusedError("usage")
    if name == "RUN_FINISHED" and patch >= 54 and event.get("outcome") is not None:
        _check_outcome(event["outcome"])


def _check_input(given: Any, patch: int) -> None:
    if not isinstance(given, dict):
        raise RefusedError("input")
    for key in ("messages", "tools", "context"):
        if not isinstance(given.get(key), list):
            raise RefusedError(f"input.{key}")
    for message in given["messages"]:
        _check_message(message, patch)
    for tool in given["tools"]:
        if patch >= 54 and not isinstance(tool.get("metadata", {}), dict):
            raise RefusedError("input.tools.metadata")


def _check_outcome(outcome: Wire) -> None:
    if outcome.get("type") == "success":
        if set(outcome) != {"type"}:
            raise RefusedError("outcome")
    elif outcome.get("type") == "interrupt" and set(outcome) == {"type", "interrupts"} and outcome["interrupts"]:
        for interrupt in outcome["interrupts"]:
            for key in ("message", "toolCallId", "expiresAt"):
                if not isinstance(interrupt.get(key, ""), str):
                    raise RefusedError(f"interrupt.{key}")
    else:
        raise RefusedError("outcome")


def _check_message(message: Wire, patch: int) -> None:
    roles = {"developer", "system", "assistant", "user", "tool"}
    roles |= {"activity"} if patch >= 41 else set()
    roles |= {"reasoning"} if patch >= 45 else set()
    role = message.get("role")
    if role not in roles or not isinstance(message.get("id"), str):
        raise RefusedError(f"a message of role {role}")
    content = message.get("content")
    if role == "activity":
        if not isinstance(content, dict):
            raise RefusedError("content of an activity")
        return
    if role == "user" and isinstance(content, list) and patch >= 41:
        for part in content:
            _check_part(part, patch)
    elif not isinstance(content, str) and not (role == "assistant" and "content" not in message):
        raise RefusedError(f"content of role {role}")
    if not isinstance(message.get("name", ""), str):
        raise RefusedError("name")
    for call in message.get("toolCalls", ()):
        if not isinstance(call["function"]["arguments"], str):
            raise RefusedError("arguments")
        if patch >= 45 and not isinstance(call.get("encryptedValue", ""), str):
            raise RefusedError("encryptedValue")


def _check_part(part: Wire, patch: int) -> None:
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return
    if kind == "binary" and isinstance(part.get("mimeType"), str):
        if any(part.get(key) for key in ("id", "url", "data")):
            return
    elif kind in ("image", "audio", "video", "document") and patch >= 49:
        source = part["source"]
        if source.get("type") == "data" and isinstance(source.get("mimeType"), str):
            return
        if source.get("type") == "url" and isinstance(source.get("mimeType", ""), str):
            return
    raise RefusedError(f"a part of type {kind}")
