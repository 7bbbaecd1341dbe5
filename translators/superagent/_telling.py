"""Meanings to AG-UI events: what an old agent says, as the events of one run.

Knows what is open, and closes it before what cannot stand inside of it. Does not know frames, nor which error is fatal
(`_upgrade.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._events import AnyEvent, decode_event
from agui_pipeline.translators.superagent._fencing import Fencing
from agui_pipeline.translators.superagent._interrupts import ANSWER, response_schema
from agui_pipeline.translators.superagent._losses import Losses
from agui_pipeline.translators.superagent._meanings import (
    RAW,
    AgentSwitch,
    Code,
    Error,
    Interrupt,
    Meaning,
    Progress,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

ERROR_NAME: Final = "superagent.error"
"""The name of the CUSTOM event of an error that does not end the run; its value has a code and a message."""
PROGRESS: Final = "progress"
"""The type of the activity that shows progress towards a known total."""

_ANSWER_FIELD: Final = {"name": ANSWER, "type": "text", "label": ANSWER, "required": True}
"""What a flat agent wants to know: its resume has one answer."""


@dataclass(slots=True)
class _Subagent:
    """One that control went to. `parent` is None for the main agent."""

    id: str
    name: str
    parent: _Subagent | None


class Teller:
    """Tells the events of one run.

    Args:
        new_id: Makes ids of messages, calls, interrupts and subagents.
        losses: Is told what is wrong with an agent's frames.
    """

    def __init__(self, new_id: Callable[[], str], losses: Losses) -> None:
        self._new_id = new_id
        self._losses = losses
        self._out: list[AnyEvent] = []
        self._time: int | None = None
        self._text_id: str | None = None
        self._fencing = Fencing(self._refenced)
        self._thought_id: str | None = None
        self._wholes: dict[str, str] = {}
        self._calls: set[str] = set()
        self._waiting: dict[str, deque[str]] = {}  # ids of calls without id in the dialect, by the tool's name
        self._step: str | None = None
        self._activity_id: str | None = None
        self._main: str | None = None
        self._subagents: list[_Subagent] = []
        self.interrupts: list[dict[str, Any]] = []

    def tell(self, meaning: Meaning, time: int | None) -> list[AnyEvent]:
        """Return the events of one meaning (`Done` has none).

        Args:
            meaning: What to tell.
            time: The events' timestamp, None for none.
        """
        self._time = time
        teller = self._tellers.get(meaning.kind)
        if teller is not None:
            teller(self, meaning)
        return self._taken()

    def close(self, time: int | None) -> list[AnyEvent]:
        """Return what closes everything, at the end of the run."""
        self._time = time
        self._close_messages()
        self._close_step()
        while self._subagents:
            self._finish(self._subagents[-1])
        return self._taken()

    def error(self, code: str, message: str, time: int | None) -> list[AnyEvent]:
        """Return the event of an error that does not end the run."""
        self._time = time
        self._give("CUSTOM", name=ERROR_NAME, value={"code": code, "message": message})
        return self._taken()

    def _taken(self) -> list[AnyEvent]:
        out, self._out = self._out, []
        return out

    def _give(self, type: str, **fields: Any) -> None:
        time = {} if self._time is None else {"timestamp": self._time}
        self._out.append(decode_event({"type": type, **fields, **time}))

    # Text, code and reasoning.

    def _text(self, text: Text) -> None:
        delta, fresh = self._piece(text)
        if not delta:
            return
        self._close_thought()
        if fresh:
            self._close_text()
        self._say(self._fencing.text(delta))

    def _code(self, code: Code) -> None:
        delta, fresh = self._piece(code)
        self._close_thought()
        self._say(self._fencing.code(delta, code.language, opens=fresh))

    def _say(self, delta: str) -> None:
        if self._text_id is None:
            self._text_id = self._new_id()
            self._give("TEXT_MESSAGE_START", messageId=self._text_id, role="assistant")
        if delta:
            self._give("TEXT_MESSAGE_CONTENT", messageId=self._text_id, delta=delta)

    def _close_text(self) -> None:
        if self._text_id is None:
            return
        rest = self._fencing.flush()
        if rest:
            self._say(rest)
        self._give("TEXT_MESSAGE_END", messageId=self._text_id)
        self._text_id = None
        self._fencing = Fencing(self._refenced)

    def _refenced(self) -> None:
        self._losses.say("fence", Code.kind)

    def _thought(self, thinking: Thinking) -> None:
        delta, fresh = self._piece(thinking)
        if not delta:
            return
        self._close_text()
        if fresh:
            self._close_thought()
        if self._thought_id is None:
            self._thought_id = self._new_id()
            self._give("REASONING_START", messageId=self._thought_id)
            self._give("REASONING_MESSAGE_START", messageId=self._thought_id, role="reasoning")
        self._give("REASONING_MESSAGE_CONTENT", messageId=self._thought_id, delta=delta)

    def _close_thought(self) -> None:
        if self._thought_id is not None:
            self._give("REASONING_MESSAGE_END", messageId=self._thought_id)
            self._give("REASONING_END", messageId=self._thought_id)
            self._thought_id = None

    def _close_messages(self) -> None:
        self._close_thought()
        self._close_text()

    def _piece(self, piece: Text | Thinking | Code) -> tuple[str, bool]:
        """Return what is new, and whether it begins something new: the whole says so, in dialects that have it."""
        whole, delta = piece.whole, piece.delta
        if whole is None:
            return delta or "", False
        before = self._wholes.get(piece.kind, "")
        self._wholes[piece.kind] = whole
        if delta is None:
            goes_on = whole.startswith(before)
            return (whole[len(before) :] if goes_on else whole), not goes_on
        if len(whole) == len(before) + len(delta) and whole.startswith(before) and whole.endswith(delta):
            return delta, False
        if whole != delta:  # what a piece says is shown already; of a whole, nobody knows what part is
            self._losses.say("content", piece.kind)
        return delta, whole == delta

    # Tool calls.

    def _call(self, call: ToolCall) -> None:
        id = self._new_id() if call.id is None else call.id
        if id in self._calls:
            if call.status == "calling":
                self._losses.say("call-again", ToolCall.kind, id=id)
            return
        self._close_messages()
        self._calls.add(id)
        if call.id is None:
            self._waiting.setdefault(call.name, deque()).append(id)
        arguments = call.arguments
        raw = arguments.get(RAW) if len(arguments) == 1 else None
        self._give("TOOL_CALL_START", toolCallId=id, toolCallName=call.name)
        delta = raw if isinstance(raw, str) else encode_json(arguments).decode()
        if delta:
            self._give("TOOL_CALL_ARGS", toolCallId=id, delta=delta)
        self._give("TOOL_CALL_END", toolCallId=id)

    def _result(self, result: ToolResult) -> None:
        self._close_messages()
        id = result.id
        if id is None:
            waiting = self._waiting.get(result.name)
            id = waiting.popleft() if waiting else self._new_id()
        if id not in self._calls:
            self._losses.say("unpaired", ToolResult.kind, id=id)
        more: dict[str, Any] = {}
        if result.is_error:
            told = result.error is None or result.error == result.text
            more["metadata"] = {"is_error": True} if told else {"is_error": True, "error": result.error}
        self._give(
            "TOOL_CALL_RESULT", messageId=self._new_id(), toolCallId=id, content=result.text, role="tool", **more
        )

    # Progress and agents.

    def _progress(self, progress: Progress) -> None:
        if not progress.total:
            self._close_step()
            self._step = progress.label
            self._give("STEP_STARTED", stepName=progress.label)
            return
        if self._activity_id is None:
            self._activity_id = self._new_id()
        content = {"current": progress.current, "total": progress.total, "step": progress.label}
        if progress.agent:
            content["agent_name"] = progress.agent
        self._give(
            "ACTIVITY_SNAPSHOT", messageId=self._activity_id, activityType=PROGRESS, content=content, replace=True
        )

    def _close_step(self) -> None:
        if self._step is not None:
            self._give("STEP_FINISHED", stepName=self._step)
            self._step = None

    def _switch(self, switch: AgentSwitch) -> None:
        """Take control from an agent to its parent, or another one before that, or to a new one."""
        self._close_messages()
        if not self._subagents:
            self._main = switch.source
        source = next((one for one in reversed(self._subagents) if one.name == switch.source), None)
        left: list[_Subagent] = []
        one = source
        while one is not None:
            left.append(one)
            if (self._main if one.parent is None else one.parent.name) == switch.target:
                for ended in left:
                    self._finish(ended)
                return
            one = one.parent
        begun = _Subagent(self._new_id(), switch.target, source)
        self._subagents.append(begun)
        more = {"description": switch.reason} if switch.reason else {}
        if source is not None:
            more["parentSubagentRunId"] = source.id
        self._give("SUBAGENT_STARTED", subagentRunId=begun.id, name=begun.name, **more)

    def _finish(self, subagent: _Subagent) -> None:
        for child in [one for one in self._subagents if one.parent is subagent]:
            self._finish(child)
        self._subagents.remove(subagent)
        self._give("SUBAGENT_FINISHED", subagentRunId=subagent.id)

    # Questions and errors.

    def _interrupt(self, interrupt: Interrupt) -> None:
        fields = [_ANSWER_FIELD] if interrupt.fields is None else interrupt.fields
        confirms = bool(fields) and all(field.get("type") == "confirm" for field in fields)
        question: dict[str, Any] = {
            "id": self._new_id(),
            "reason": interrupt.reason or ("confirmation" if confirms else "input_required"),
            "message": interrupt.prompt,
        }
        if fields:
            question["responseSchema"] = response_schema(fields)
        self.interrupts.append(question)

    def _error(self, error: Error) -> None:
        self._give("CUSTOM", name=ERROR_NAME, value={"code": error.code, "message": error.message})

    _tellers: ClassVar[Mapping[str, Callable[[Teller, Any], None]]] = {
        Text.kind: _text,
        Thinking.kind: _thought,
        Code.kind: _code,
        ToolCall.kind: _call,
        ToolResult.kind: _result,
        Interrupt.kind: _interrupt,
        Error.kind: _error,
        Progress.kind: _progress,
        AgentSwitch.kind: _switch,
    }
