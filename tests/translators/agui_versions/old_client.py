"""A model of `@ag-ui/client` before 1.0: what each version refuses, and what it makes of the rest.

Made from what the published versions were seen to do, and from their sources: bytes to frames, frames to events (their
schemas), the order of events, and how they are applied.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

import jsonpatch

from tests.translators.agui_versions.old_schemas import RefusedError, Wire, check_shape, shapes

PATCHES = (30, *range(33, 60))
"""The published versions, 0.0.x. 1.0.0 is `agui_pipeline`'s own `ClientView`."""


class OldClient:
    """One client and one run of it.

    Args:
        patch: Its version, 0.0.patch.
        messages: What it has before the run.
        state: Likewise.
    """

    def __init__(self, patch: int, messages: Iterable[Wire] = (), state: Any = None) -> None:
        self.patch = patch
        self.messages: list[Wire] = copy.deepcopy(list(messages))
        self.state: Any = {} if state is None else copy.deepcopy(state)
        self.customs: list[Wire] = []
        self.outcome: Any = None
        self.error: str | None = None
        self.shown = False
        self.thoughts: list[str] = []
        self._first = True
        self._running = False
        self._finished = False
        self._failed = False
        self._texts: set[str] = set()
        self._calls: set[str] = set()
        self._steps: set[Any] = set()
        self._subagents: set[str] = set()
        self._span = False
        self._thought = False
        self._chunks: dict[Any, tuple[str, str]] = {}  # what chunks are writing: a lane, and from 0.0.59 on several
        self._visible: list[Wire] = self.messages  # what 0.0.30 has shown: it forgets results that nothing follows

    # Bytes.

    def read(self, data: bytes) -> None:
        """Read a whole response."""
        for frame in data.decode().split("\n\n"):
            lines = []
            for line in frame.split("\n"):
                if line.startswith("data: "):
                    lines.append(line[6:])
                elif line.startswith("data:") and self.patch >= 43:
                    lines.append(line[5:])
            if lines:
                try:
                    event = json.loads("\n".join(lines))
                except ValueError as exc:
                    raise RefusedError("a frame is no JSON") from exc
                self.take(event)
        if self.patch == 30 and not self.shown:
            raise RefusedError("EmptyError")

    def take(self, event: Wire) -> None:
        check_shape(event, self.patch)
        for one in self._expanded(event):
            self._check_order(one)
            self._apply(one)

    # Chunks.

    def _expanded(self, event: Wire) -> list[Wire]:
        name = event["type"]
        lane = event.get("subagentRunId") if self.patch >= 59 else None
        if not name.endswith("_CHUNK"):
            if name in _LEAVES_CHUNKS or name not in shapes(self.patch):
                return [event]
            lanes = list(self._chunks) if name.startswith(("RUN", "MESSAGES")) else [lane]
            return [*(end for one in lanes for end in self._end_chunks(one)), event]
        kind = name.removesuffix("_CHUNK")
        key = "toolCallId" if kind == "TOOL_CALL" else "messageId"
        pending = self._chunks.get(lane)
        out: list[Wire] = []
        if pending is None or pending[0] != kind or event.get(key) not in (None, pending[1]):
            if key not in event or (kind == "TOOL_CALL" and "toolCallName" not in event):
                raise RefusedError(f"{name} that continues nothing")
            out += self._end_chunks(lane)
            self._chunks[lane] = pending = (kind, event[key])
            role = {"REASONING_MESSAGE": "reasoning", "TEXT_MESSAGE": event.get("role", "assistant")}.get(kind)
            out.append({**event, "type": f"{kind}_START", "role": role})
        if "delta" in event:
            content = "ARGS" if kind == "TOOL_CALL" else "CONTENT"
            out.append({"type": f"{kind}_{content}", key: pending[1], "delta": event["delta"]})
        return out

    def _end_chunks(self, lane: Any) -> list[Wire]:
        kind, id = self._chunks.pop(lane, (None, None))
        key = "toolCallId" if kind == "TOOL_CALL" else "messageId"
        return [] if kind is None else [{"type": f"{kind}_END", key: id}]

    # Order.

    def _check_order(self, event: Wire) -> None:  # noqa: C901, PLR0912 - a table
        name = event["type"]
        if self._failed and not (name == "RUN_STARTED" and self.patch >= 59):
            raise RefusedError(f"{name} after RUN_ERROR")
        if self._finished and name not in ("RUN_ERROR", "RUN_STARTED"):
            raise RefusedError(f"{name} after RUN_FINISHED")
        if self._first and name not in ("RUN_STARTED", "RUN_ERROR"):
            raise RefusedError(f"{name} comes first")
        if name == "RUN_STARTED" and not self._first and (self.patch <= 36 or self._running):
            raise RefusedError("a second RUN_STARTED")
        self._first = False
        if self.patch <= 36 and (self._texts or self._calls):
            own = {"TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"} if self._texts else {"TOOL_CALL_ARGS", "TOOL_CALL_END"}
            if name not in own | {"RAW"}:
                raise RefusedError(f"{name} while a part is open")
        match name:
            case "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_END":
                _part(self._texts, name, event["messageId"])
            case "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_END":
                _part(self._calls, name, event["toolCallId"])
            case "STEP_STARTED" | "STEP_FINISHED":
                key: Any = event["stepName"]
                if self.patch == 30:
                    key = None
                elif self.patch >= 59:
                    key = (key, event.get("subagentRunId"))
                _part(self._steps, name.replace("STARTED", "START").replace("FINISHED", "END"), key)
            case "SUBAGENT_STARTED":
                _part(self._subagents, "SUBAGENT_START", event["subagentRunId"])
            case "SUBAGENT_FINISHED" | "SUBAGENT_ERROR":
                _part(self._subagents, "SUBAGENT_END", event["subagentRunId"])
            case "RUN_STARTED":
                self._running, self._finished, self._failed = True, False, False
            case "RUN_FINISHED":
                if self._texts or self._calls or self._steps or self._subagents:
                    raise RefusedError("RUN_FINISHED with something open")
                self._running, self._finished = False, True
                self._span = self._thought = False
            case "RUN_ERROR":
                self._running, self._failed = False, True
                for parts in (self._texts, self._calls, self._steps, self._subagents):
                    parts.clear()
            case _:
                self._check_thinking(name)

    def _check_thinking(self, name: str) -> None:
        match name:
            case "THINKING_START" if not self._span:
                self._span = True
            case "THINKING_END" if self._span:
                self._span = False
            case "THINKING_TEXT_MESSAGE_START" if self._span and not self._thought:
                self._thought = True
                self.thoughts.append("")
            case "THINKING_TEXT_MESSAGE_CONTENT" if self._thought:
                pass
            case "THINKING_TEXT_MESSAGE_END" if self._thought:
                self._thought = False
            case _ if name.startswith("THINKING"):
                raise RefusedError(f"{name} out of order")
            case _:
                pass

    # What is made of it.

    def _apply(self, event: Wire) -> None:  # noqa: C901, PLR0912, PLR0915 - a table
        match event["type"]:
            case "TEXT_MESSAGE_START":
                known = self._message(event["messageId"]) if self.patch >= 44 else None
                if known is None:
                    message = {"id": event["messageId"], "role": event.get("role", "assistant"), "content": ""}
                    self.messages.append(message)
            case "TEXT_MESSAGE_CONTENT":
                message = self.messages[-1] if self.patch <= 36 else self._message(event["messageId"]) or {}
                message["content"] = _text(message) + event["delta"]
            case "TOOL_CALL_START":
                self._start_call(event)
            case "TOOL_CALL_ARGS":
                calls = [call for message in self.messages for call in message.get("toolCalls", ())]
                if self.patch <= 36:
                    calls = self.messages[-1]["toolCalls"][-1:]
                call = next((call for call in calls if self.patch <= 36 or call["id"] == event["toolCallId"]), None)
                if call is not None:
                    call["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                result = {key: event[key] for key in ("toolCallId", "content")}
                self.messages.append({"id": event["messageId"], "role": "tool", **result})
            case "STATE_SNAPSHOT":
                self.state = event.get("snapshot")
            case "STATE_DELTA":
                try:
                    self.state = jsonpatch.apply_patch(self.state, event["delta"])
                except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
                    return
            case "MESSAGES_SNAPSHOT":
                self._snapshot(event["messages"])
            case "RUN_STARTED" if self.patch >= 41:
                for message in event.get("input", {}).get("messages", ()):
                    if self._message(message["id"]) is None:
                        self.messages.append(copy.deepcopy(message))
            case "ACTIVITY_SNAPSHOT" | "ACTIVITY_DELTA":
                self._activity(event)
            case "REASONING_MESSAGE_START":
                if self._message(event["messageId"]) is None:
                    self.messages.append({"id": event["messageId"], "role": "reasoning", "content": ""})
            case "REASONING_MESSAGE_CONTENT":
                reasoning = self._message(event["messageId"])
                if reasoning is not None:
                    reasoning["content"] = _text(reasoning) + event["delta"]
            case "THINKING_TEXT_MESSAGE_START" if self.patch == 45:  # the one that converts it, as 1.0.0 does
                self.messages.append({"id": f"thought-{len(self.thoughts)}", "role": "reasoning", "content": ""})
            case "THINKING_TEXT_MESSAGE_CONTENT":
                self.thoughts[-1] += event["delta"]
            case "CUSTOM":
                self.customs.append(event)
            case "RUN_FINISHED":
                self.outcome = event.get("outcome") if self.patch >= 54 else None
            case "RUN_ERROR":
                self.error = event["message"]
            case _:
                pass
        if event["type"] in _UPDATES:
            self.shown = True
            if event["type"] not in ("STATE_SNAPSHOT", "STATE_DELTA"):
                self._visible = list(self.messages)

    @property
    def final(self) -> list[Wire]:
        """The messages that the application has after the run."""
        return self._visible if self.patch == 30 else self.messages

    def _message(self, id: str) -> Wire | None:
        return next((message for message in self.messages if message["id"] == id), None)

    def _start_call(self, event: Wire) -> None:
        parent = event.get("parentMessageId")
        last: Wire = self.messages[-1] if self.messages else {"id": None}
        message = last if last["id"] == parent else None
        if self.patch >= 52 and parent:
            message = self._message(parent)
        if not parent or message is None:
            message = {"id": parent or event["toolCallId"], "role": "assistant"}
            self.messages.append(message)
        function = {"name": event["toolCallName"], "arguments": ""}
        message.setdefault("toolCalls", []).append(
            {"id": event["toolCallId"], "type": "function", "function": function}
        )

    def _snapshot(self, messages: list[Wire]) -> None:
        new = {message["id"]: copy.deepcopy(message) for message in messages}
        kept = [role for role, first in (("activity", 46), ("reasoning", 50)) if self.patch >= first]
        if not kept:
            self.messages = copy.deepcopy(messages)
            return
        self.messages = [new.get(old["id"], old) for old in self.messages if old["role"] in kept or old["id"] in new]
        ids = {message["id"] for message in self.messages}
        self.messages += [message for id, message in new.items() if id not in ids]

    def _activity(self, event: Wire) -> None:
        known = self._message(event["messageId"])
        if event["type"] == "ACTIVITY_DELTA":
            if known is not None and known["role"] == "activity":
                known["content"] = jsonpatch.apply_patch(known["content"], event["patch"])
            return
        new = {"id": event["messageId"], "role": "activity"}
        new |= {key: copy.deepcopy(event[key]) for key in ("activityType", "content")}
        if known is None:
            self.messages.append(new)
        elif event.get("replace", True):
            known.clear()
            known.update(new)


_UPDATES = {
    *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_ARGS"),
    *("STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT"),
}
"""What 0.0.30 tells the application of."""


_LEAVES_CHUNKS = {"RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED"}


def _text(message: Wire) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def _part(open_: set[Any], name: str, key: Any) -> None:
    if name.endswith("_START"):
        if key in open_:
            raise RefusedError(f"{name} of what is open")
        open_.add(key)
    elif key not in open_:
        raise RefusedError(f"{name} of what is not open")
    elif name.endswith("_END"):
        open_.remove(key)
