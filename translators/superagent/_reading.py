"""AG-UI events to meanings: what an old client shall hear of each event.

Knows AG-UI: triads, chunks and their lanes, subagents, outcomes. `READS` says what becomes of each type; the docs are
made of it. Does not know how a dialect writes a meaning (`_writing.py`), nor time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from agui_pipeline.translators._chunk_lanes import CHUNK_TYPES, ChunkLanes, Pending
from agui_pipeline.translators._errors import SequenceError
from agui_pipeline.translators._events import AnyEvent
from agui_pipeline.translators._owners import field_of, owner_of
from agui_pipeline.translators._upgrade_interrupts import CUSTOM_NAME, Interrupts
from agui_pipeline.translators.superagent._activities import Activities
from agui_pipeline.translators.superagent._calls import Calls
from agui_pipeline.translators.superagent._fields import text_of
from agui_pipeline.translators.superagent._history import History, ids_of
from agui_pipeline.translators.superagent._interrupts import NEEDS_INPUT, interrupt_fields
from agui_pipeline.translators.superagent._losses import Losses
from agui_pipeline.translators.superagent._meanings import (
    CANCELLED,
    AgentSwitch,
    Done,
    Error,
    Interrupt,
    Meaning,
    Progress,
)
from agui_pipeline.translators.superagent._texts import Texts

MAIN_AGENT: Final = "agent"
"""The name of the agent that is no subagent, where nobody gave one."""

ENDINGS: Final[Mapping[str, str]] = {
    CANCELLED: "The run was cancelled.",
    "source_ended": "The agent stopped before its run was complete.",
    "source_error": "The agent failed.",
    "cancelled": "The run was cancelled.",
}
"""The messages of the errors that are no event's, by their code."""


class _Subagent(NamedTuple):
    name: str
    parent: str | None


class Reader:
    """Reads the events of one stream: of one run, as a rule, but there may be several.

    Args:
        losses: Is told what has no meaning in the dialect.
        agent: The name of the main agent.
        fences: Whether code in text is told apart.
        updates: Whether the outcome of a tool call is told before its result.
        messages: Those of the input, which are no news.
        shown: The ids of messages and tool calls that were told in a run before, and are no news either.

    Attributes:
        over: Whether the last run has had its terminal event.
    """

    def __init__(
        self, losses: Losses, *, agent: str, fences: bool, updates: bool, messages: Any, shown: Collection[str]
    ) -> None:
        self.over = False
        self._losses = losses
        self._agent = agent
        self._usage = {"prompt_tokens": 0, "completion_tokens": 0}
        self._lanes: ChunkLanes | None = None  # once there was a chunk
        self._texts = Texts(fences=fences)
        self._calls = Calls(lambda code, call_id: losses.say(code, id=call_id), updates=updates, shown=shown)
        self._history = History()
        self._history.remember(shown)
        self._activities = Activities(lambda activity_id: losses.say("patch", "ACTIVITY_DELTA", id=activity_id))
        self._subagents: dict[str, _Subagent] = {}
        self._steps = 0
        self._asked = Interrupts(map("interrupt-{}".format, count()).__next__)  # the dialects have no ids
        self._remember(messages)

    def read(self, event: AnyEvent) -> list[Meaning]:
        """Take one event; give what it means, in order. Never raises on what a field holds."""
        name = str.__str__(event.type)
        found: list[Meaning] = []
        if self._lanes is not None and name not in CHUNK_TYPES:
            for stream in self._lanes.other({"type": name, "subagentRunId": owner_of(event)}):
                self._close(stream, found)
        row = READS.get(name)
        if row is None or row.read is None:
            if row is None or row.lost:
                self._losses.say("lost", name)
        else:
            row.read(self, event, found)
        return found

    def end(self, code: str) -> list[Meaning]:
        """Take the end of the stream: give `Done`, before it what is held and an error where a run is not over.

        Args:
            code: The error's.
        """
        found: list[Meaning] = []
        self._settle_all(found)
        if not self.over:
            self._losses.say("source-ended" if code == "source_ended" else "source-error")
            found.append(Error(code, ENDINGS[code]))
        found.append(Done(self._usage))
        return found

    def _settle_all(self, found: list[Meaning]) -> None:
        """Give all that is held, at the end of a run."""
        found += self._texts.end_all()
        found += self._calls.close_all()
        self._tell_news(found)

    def _tell_news(self, found: list[Meaning]) -> None:
        """Give the text of messages that only a snapshot had."""
        messages, certain = self._history.take()
        said = self._texts.said() if messages else set()
        for message in messages:
            id, content = text_of(message, "id", "id"), field_of(message, "content", "content")
            calls = field_of(message, "tool_calls", "toolCalls")
            known = calls if isinstance(calls, list | tuple) else ()
            lost = not all(self._calls.begun(text_of(call, "id", "id")) for call in known)
            text = content if isinstance(content, str) else None
            # Some agents keep what they streamed under another id.
            fresh = content and id not in self._texts.ids and (text is None or text.strip() not in said)
            if fresh and certain and text:
                found += self._texts.say(id, text)
                found += self._texts.end(id)
            if lost or (fresh and not (certain and text)):
                self._losses.say("lost", "MESSAGES_SNAPSHOT", id=id)

    # Text and reasoning.

    def _text_start(self, event: AnyEvent, found: list[Meaning]) -> None:
        del found
        self._open_text(text_of(event, "message_id", "messageId"), event)

    def _open_text(self, id: str, event: AnyEvent) -> None:
        muted = field_of(event, "role", "role") not in (None, "assistant")
        self._texts.open(id, muted=muted)
        if muted:
            self._losses.say("role", str.__str__(event.type), "role", id=id)

    def _text_content(self, event: AnyEvent, found: list[Meaning]) -> None:
        found += self._texts.say(text_of(event, "message_id", "messageId"), self._delta(event))

    def _text_end(self, event: AnyEvent, found: list[Meaning]) -> None:
        found += self._texts.end(text_of(event, "message_id", "messageId"))

    def _thought(self, event: AnyEvent, found: list[Meaning]) -> None:
        found += self._texts.think(text_of(event, "message_id", "messageId"), self._delta(event))

    def _thought_end(self, event: AnyEvent, found: list[Meaning]) -> None:
        found += self._texts.end_thought(text_of(event, "message_id", "messageId"))

    def _delta(self, event: AnyEvent) -> str:
        delta = field_of(event, "delta", "delta")
        if isinstance(delta, str):
            return delta
        if delta is not None:
            self._losses.say("malformed", str.__str__(event.type), "delta")
        return ""

    # Chunks.

    def _chunk(self, event: AnyEvent, found: list[Meaning]) -> None:
        name = str.__str__(event.type)
        kind, wire_name = CHUNK_TYPES[name]
        id = field_of(event, "tool_call_id" if kind == "tool call" else "message_id", wire_name)
        if self._lanes is None:
            self._lanes = ChunkLanes()
        known = {"type": name, wire_name: id if isinstance(id, str) else None, "subagentRunId": owner_of(event)}
        try:
            stream, opens, closes = self._lanes.chunk(known)
        except SequenceError:
            self._losses.say("malformed", name, wire_name)
            return
        if closes is not None:
            self._close(closes, found)
        if kind == "text":
            if opens:
                self._open_text(stream.id, event)
            found += self._texts.say(stream.id, self._delta(event))
        elif kind == "reasoning":
            found += self._texts.think(stream.id, self._delta(event))
        else:
            if opens:
                self._calls.open(stream.id, text_of(event, "tool_call_name", "toolCallName"))
            self._calls.extend(stream.id, self._delta(event))

    def _close(self, stream: Pending, found: list[Meaning]) -> None:
        if stream.kind == "text":
            found += self._texts.end(stream.id)
        elif stream.kind == "reasoning":
            found += self._texts.end_thought(stream.id)
        else:
            found += self._calls.close(stream.id)

    # Tool calls.

    def _call_start(self, event: AnyEvent, found: list[Meaning]) -> None:
        del found
        name = text_of(event, "tool_call_name", "toolCallName")
        self._calls.open(text_of(event, "tool_call_id", "toolCallId"), name)

    def _call_args(self, event: AnyEvent, found: list[Meaning]) -> None:
        del found
        self._calls.extend(text_of(event, "tool_call_id", "toolCallId"), self._delta(event))

    def _call_end(self, event: AnyEvent, found: list[Meaning]) -> None:
        found += self._calls.close(text_of(event, "tool_call_id", "toolCallId"))

    def _call_result(self, event: AnyEvent, found: list[Meaning]) -> None:
        metadata = field_of(event, "metadata", "metadata")
        said = metadata.get("is_error") if isinstance(metadata, Mapping) else None
        id = text_of(event, "tool_call_id", "toolCallId")
        content = field_of(event, "content", "content")
        found += self._calls.result(id, content, is_error=None if said is None else bool(said))

    def _messages_snapshot(self, event: AnyEvent, found: list[Meaning]) -> None:
        messages = field_of(event, "messages", "messages")
        found += self._calls.snapshot(messages)
        self._history.snapshot(messages if isinstance(messages, list | tuple) else ())

    def _run_started(self, event: AnyEvent, found: list[Meaning]) -> None:
        del found
        if self.over:  # another run: its ids may be those of the first one
            self.over = False
            self._history.remember(self._texts.ids)
            self._texts.forget()
            self._calls.forget()
            self._subagents.clear()
            self._asked.forget()
            self._steps = 0
        self._remember(field_of(field_of(event, "input", "input"), "messages", "messages"))

    def _remember(self, messages: Any) -> None:
        """Take messages from before the run."""
        self._history.remember(ids_of(self._calls.remember(messages)))

    # Progress and agents.

    def _step(self, event: AnyEvent, found: list[Meaning]) -> None:
        self._steps += 1
        label = text_of(event, "step_name", "stepName")
        found.append(Progress(label, self._steps, 0, self._name_of(owner_of(event))))

    def _activity(self, event: AnyEvent, found: list[Meaning]) -> None:
        id = text_of(event, "message_id", "messageId")
        kind = text_of(event, "activity_type", "activityType")
        if event.type == "ACTIVITY_SNAPSHOT":
            content = field_of(event, "content", "content")
            replaces = field_of(event, "replace", "replace") is not False
            progress = self._activities.snapshot(id, kind, content, replace=replaces)
        else:
            progress = self._activities.delta(id, kind, field_of(event, "patch", "patch"))
        if progress is not None:
            progress.agent = self._name_of(owner_of(event))
            found.append(progress)
        elif not self._activities.counts(id):
            self._losses.say("lost", str.__str__(event.type))

    def _subagent_started(self, event: AnyEvent, found: list[Meaning]) -> None:
        parent = field_of(event, "parent_subagent_run_id", "parentSubagentRunId")
        subagent = _Subagent(text_of(event, "name", "name"), parent if isinstance(parent, str) else None)
        self._subagents[owner_of(event) or ""] = subagent
        reason = text_of(event, "description", "description")
        found.append(AgentSwitch(self._name_of(subagent.parent), subagent.name, reason))

    def _subagent_ended(self, event: AnyEvent, found: list[Meaning]) -> None:
        subagent = self._subagents.pop(owner_of(event) or "", None)
        if field_of(event, "result", "result") is not None:
            self._losses.say("lost", "SUBAGENT_FINISHED", "result")
        message = text_of(event, "message", "message") if event.type == "SUBAGENT_ERROR" else ""
        if event.type == "SUBAGENT_ERROR":
            found.append(Error(text_of(event, "code", "code") or "subagent_error", message))
        if subagent is not None:
            found.append(AgentSwitch(subagent.name, self._name_of(subagent.parent), message))

    def _name_of(self, subagent: str | None) -> str:
        known = None if subagent is None else self._subagents.get(subagent)
        return self._agent if known is None else known.name

    # The end.

    def _custom(self, event: AnyEvent, found: list[Meaning]) -> None:
        del found
        if field_of(event, "name", "name") == CUSTOM_NAME:
            self._asked.take(event)
        else:
            self._losses.say("lost", "CUSTOM")

    def _run_finished(self, event: AnyEvent, found: list[Meaning]) -> None:
        told = field_of(event, "outcome", "outcome")
        outcome = told or self._asked.outcome()
        kind = field_of(outcome, "type", "type") if outcome is not None else None
        self._settle_all(found)
        self.over = True
        if kind == "interrupt":
            interrupts = field_of(outcome, "interrupts", "interrupts")
            for interrupt in interrupts if isinstance(interrupts, list | tuple) else ():
                found.append(_interrupt(interrupt))
                for name, wire_name in _PLACELESS if told else ():
                    if field_of(interrupt, name, wire_name) is not None:
                        self._losses.say("lost", "RUN_FINISHED", f"outcome.interrupts.{wire_name}")
        elif kind == "cancelled":
            found.append(Error(CANCELLED, ENDINGS[CANCELLED]))
        elif outcome is not None and field_of(outcome, "pending_tool_call_ids", "pendingToolCallIds"):
            self._losses.say("lost", "RUN_FINISHED", "outcome.pendingToolCallIds")
        if field_of(event, "result", "result") is not None:
            self._losses.say("lost", "RUN_FINISHED", "result")
        self._count(event)

    def _run_error(self, event: AnyEvent, found: list[Meaning]) -> None:
        self._settle_all(found)
        self.over = True
        code = text_of(event, "code", "code") or "error"
        found.append(Error(code, text_of(event, "message", "message")))
        self._count(event)

    def _count(self, event: AnyEvent) -> None:
        """Add the tokens of a run, which may have used several models."""
        entries = field_of(event, "usage", "usage")
        for entry in entries if isinstance(entries, list | tuple) else ():
            for name, attribute, wire_name in _TOKENS:
                tokens = field_of(entry, attribute, wire_name)
                if isinstance(tokens, int) and not isinstance(tokens, bool):
                    self._usage[name] += tokens


_TOKENS: Final = (
    ("prompt_tokens", "input_tokens", "inputTokens"),
    ("completion_tokens", "output_tokens", "outputTokens"),
)


_PLACELESS: Final = (("tool_call_id", "toolCallId"), ("expires_at", "expiresAt"), ("metadata", "metadata"))
"""What programs would read of an interrupt, and no dialect has a place for."""


def _interrupt(interrupt: Any) -> Interrupt:
    reason = text_of(interrupt, "reason", "reason")
    prompt = text_of(interrupt, "message", "message") or reason
    return Interrupt(prompt, reason or NEEDS_INPUT, interrupt_fields(interrupt))


class Row(NamedTuple):
    """What becomes of one type of event.

    Attributes:
        read: The method that reads it; None where nothing does.
        gives: The types of frames that it may make.
        note: When, and of what; for people.
    """

    read: Callable[[Reader, AnyEvent, list[Meaning]], None] | None
    gives: tuple[str, ...] = ()
    note: str = ""

    @property
    def lost(self) -> bool:
        """Whether something is lost that a client could see."""
        return self.read is None and not self.note


_SHAPE: Final = "only says where something begins or ends"
_TEXT: Final = ("text", "code_block")

# ruff: noqa: SLF001 - the table is of the class's own methods
READS: Final[Mapping[str, Row]] = {
    "RUN_STARTED": Row(Reader._run_started, (), _SHAPE),
    "TEXT_MESSAGE_START": Row(Reader._text_start, (), "roles other than assistant: the message is lost"),
    "TEXT_MESSAGE_CONTENT": Row(Reader._text_content, _TEXT, "one a delta; code between fences is a `code_block`"),
    "TEXT_MESSAGE_END": Row(Reader._text_end, _TEXT, "what was held because it could have become a fence"),
    "TEXT_MESSAGE_CHUNK": Row(Reader._chunk, _TEXT, "as the triad that it stands for"),
    "REASONING_START": Row(None, (), _SHAPE),
    "REASONING_MESSAGE_START": Row(None, (), _SHAPE),
    "REASONING_MESSAGE_CONTENT": Row(Reader._thought, ("thinking",), "one a delta"),
    "REASONING_MESSAGE_END": Row(Reader._thought_end, (), _SHAPE),
    "REASONING_MESSAGE_CHUNK": Row(Reader._chunk, ("thinking",), "as the triad that it stands for"),
    "REASONING_END": Row(None, (), _SHAPE),
    "THINKING_START": Row(None, (), _SHAPE),
    "THINKING_TEXT_MESSAGE_START": Row(None, (), _SHAPE),
    "THINKING_TEXT_MESSAGE_CONTENT": Row(Reader._thought, ("thinking",), "of AG-UI before 1.0"),
    "THINKING_TEXT_MESSAGE_END": Row(Reader._thought_end, (), _SHAPE),
    "THINKING_END": Row(None, (), _SHAPE),
    "TOOL_CALL_START": Row(Reader._call_start, (), "its name is kept for the frames below"),
    "TOOL_CALL_ARGS": Row(Reader._call_args, (), "kept until the arguments are complete"),
    "TOOL_CALL_END": Row(Reader._call_end, ("tool_call",), "one a call, `calling`"),
    "TOOL_CALL_CHUNK": Row(Reader._chunk, ("tool_call",), "one a call, when another event ends its chunks"),
    "TOOL_CALL_RESULT": Row(
        Reader._call_result,
        ("tool_result",),
        "with `tool_call_updates` a `tool_call` (`success` or `error`) before it, except in the flat dialect",
    ),
    "STEP_STARTED": Row(Reader._step, ("progress",), "`current` counts the steps, `total` is 0"),
    "STEP_FINISHED": Row(None, (), _SHAPE),
    "ACTIVITY_SNAPSHOT": Row(
        Reader._activity, ("progress",), "where its content has numbers `current` and `total`, when these change"
    ),
    "ACTIVITY_DELTA": Row(Reader._activity, ("progress",), "likewise, the patch applied"),
    "SUBAGENT_STARTED": Row(Reader._subagent_started, ("agent_switch",), "from its parent to it"),
    "SUBAGENT_FINISHED": Row(Reader._subagent_ended, ("agent_switch",), "from it back to its parent"),
    "SUBAGENT_ERROR": Row(Reader._subagent_ended, ("error", "agent_switch"), "its message; then back to its parent"),
    "MESSAGES_SNAPSHOT": Row(
        Reader._messages_snapshot,
        ("tool_result", "text", "code_block"),
        "results of calls of this run that had none; at the end of the run, the agent's text that was not streamed and "
        "stands behind the messages of the input, or of the run that goes on; names and errors of calls are kept",
    ),
    "CUSTOM": Row(Reader._custom, (), "lost, except `on_interrupt`: an `interrupt` at the end of the run"),
    "RUN_FINISHED": Row(
        Reader._run_finished,
        ("interrupt", "error"),
        "one `interrupt` an interrupt, in order; the outcome `cancelled` is an `error` (`run_cancelled`)",
    ),
    "RUN_ERROR": Row(Reader._run_error, ("error",), "without a code its code is `error`"),
    "STATE_SNAPSHOT": Row(None),
    "STATE_DELTA": Row(None),
    "REASONING_ENCRYPTED_VALUE": Row(None),
    "RAW": Row(None),
}
"""What becomes of each type of event. Types that are not here are lost."""
