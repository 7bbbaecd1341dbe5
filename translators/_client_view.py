"""What the official client has after a run's events: its messages, its state, the outcome.

Knows how `@ag-ui/client` 1.0 applies each event. Does not check that a stream is legal: where that client would warn
or throw there is a diagnostic and the event has no effect.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

import jsonpatch
from pydantic import BaseModel

from agui_pipeline.translators._chunk_lanes import CHUNK_TYPES, ChunkLanes
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink, run_sink
from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._errors import SequenceError
from agui_pipeline.translators._events import AnyEvent, loads

JSONObject: TypeAlias = dict[str, Any]

# The client's own convention: which activity types a MESSAGES_SNAPSHOT is the whole truth about.
_HISTORY_KEY: Final = "@ag-ui/client"
_HISTORY_TYPES: Final = "authoritativeActivityTypes"
_NONE: Final = object()
"""No value, where None is one."""


DIAGNOSTICS: Final[Mapping[str, str]] = {
    "client.ignored": "an event that a client would ignore, or give up on, was left out of the view",
    "client.patch-skipped": "a patch that does not apply was skipped, as a client does",
}
"""The diagnostics of folding a run, by code."""


class ClientView:
    """Applies events as the official client does.

    Messages and state are plain JSON values with wire names (``toolCalls``), new objects that share nothing with the
    events.

    Args:
        messages: What the client has before the run, models or mappings.
        state: Likewise; None counts as an empty object.
        on_diagnostic: Gets a `Diagnostic` for each event without effect (codes ``client.*``). Default: the log.

    Attributes:
        messages: The conversation.
        state: The shared state.
        outcome: ``"success"``, ``"interrupt"``, ``"cancelled"``, ``"error"``; None while there is no terminal event.
        error: The RUN_ERROR event as JSON where that is how the run ended.
        result: RUN_FINISHED's `result`.
        interrupts: The interrupts that the outcome names.

    Example:
        >>> from ag_ui.core import TextMessageChunkEvent
        >>> view = ClientView()
        >>> view.apply(TextMessageChunkEvent(message_id="m", delta="hel"))
        >>> view.apply(TextMessageChunkEvent(delta="lo"))
        >>> view.messages
        [{'id': 'm', 'role': 'assistant', 'content': 'hello'}]
    """

    def __init__(
        self,
        messages: Iterable[Any] = (),
        state: Any = None,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        self.messages: list[JSONObject] = [_plain(message) for message in messages]
        self.state: Any = {} if state is None else _plain(state)
        self.outcome: str | None = None
        self.error: JSONObject | None = None
        self.result: Any = None
        self.interrupts: list[Any] = []
        self._sink = run_sink(on_diagnostic)
        self._lanes = ChunkLanes()

    def apply(self, event: AnyEvent) -> None:
        """Take the next event. Never raises; an event whose fields are not what the protocol says has no effect."""
        data: JSONObject = loads(encode_event(event, self._sink))
        name = data["type"]
        try:
            if name in CHUNK_TYPES:
                self._apply_chunk(data)
                return
            self._lanes.other(data)
            handler = self._handlers.get(name)
            if handler is not None:
                handler(self, data)
        except (AttributeError, KeyError, TypeError) as exc:
            self._ignore(data, f"a field is missing or has the wrong shape ({exc!r})")

    def _apply_chunk(self, chunk: JSONObject) -> None:
        try:
            stream, opens, _ = self._lanes.chunk(chunk)
        except SequenceError as exc:
            self._ignore(chunk, str(exc))
            return
        if stream.kind == "tool call":
            identified = {**chunk, "toolCallId": stream.id}
            if opens:
                self._start_tool_call(identified)
            self._extend_tool_call(identified)
            return
        identified = {**chunk, "messageId": stream.id}
        if not opens or "rawEvent" in chunk:
            identified.setdefault("delta", "")  # the client makes it a CONTENT event in any case
        if opens:
            (self._start_text if stream.kind == "text" else self._start_reasoning)(identified)
        self._extend_message(identified)

    # Text and reasoning.

    def _start_text(self, data: JSONObject) -> None:
        self._start_message(data, data.get("role") or "assistant")

    def _start_reasoning(self, data: JSONObject) -> None:
        self._start_message(data, "reasoning")

    def _start_message(self, data: JSONObject, role: str) -> None:
        message = self._message(data.get("messageId"))
        if message is None:
            message = {"id": data.get("messageId"), "role": role, "content": ""}
            if role != "reasoning" and data.get("name") is not None:
                message["name"] = data["name"]
            _tag(message, data)
            self.messages.append(message)
        elif message["role"] == "activity":
            self._ignore(data, "the id is an activity's: ids must be unique over activities and messages")
            return
        _merge_metadata(message, data)

    def _extend_message(self, data: JSONObject) -> None:
        message = self._message(data.get("messageId"))
        if message is None or message["role"] == "activity":
            self._ignore(data, "no message has its id" if message is None else "the id is an activity's")
            return
        delta = data.get("delta")
        if delta is not None:  # else an END, or a chunk that only opens the message
            held = message.get("content")
            message["content"] = (held if isinstance(held, str) else "") + delta
        _merge_metadata(message, data)

    def _end_message(self, data: JSONObject) -> None:
        self._extend_message({**data, "delta": None})  # the end may bring metadata

    # Tool calls.

    def _start_tool_call(self, data: JSONObject) -> None:
        call_id = data.get("toolCallId")
        call = self._tool_call(call_id)
        if call is not None:  # a replay: the arguments that came with the first one are the only ones
            call["function"]["name"] = data.get("toolCallName")
            _merge_metadata(call, data)
            return
        parent = data.get("parentMessageId")
        owner = self._message(parent) if parent else None
        if owner is None or owner["role"] != "assistant":
            if owner is not None:
                self._ignore(data, f"its parentMessageId is a message of role {owner['role']}", what="the parent")
            owner = {"id": parent if parent and owner is None else call_id, "role": "assistant", "toolCalls": []}
            if self._message(owner["id"]) is None:
                _tag(owner, data)
            self.messages.append(owner)
        call = {"id": call_id, "type": "function", "function": {"name": data.get("toolCallName"), "arguments": ""}}
        owner.setdefault("toolCalls", []).append(call)
        _merge_metadata(call, data)

    def _extend_tool_call(self, data: JSONObject) -> None:
        call = self._tool_call(data.get("toolCallId"))
        if call is None:
            self._ignore(data, "no message has its tool call")
            return
        call["function"]["arguments"] += data.get("delta") or ""
        _merge_metadata(call, data)

    def _end_tool_call(self, data: JSONObject) -> None:
        self._extend_tool_call({**data, "delta": None})

    def _tool_result(self, data: JSONObject) -> None:
        call_id = data.get("toolCallId")
        message = {
            "id": data.get("messageId"),
            "toolCallId": call_id,
            "role": data.get("role") or "tool",
            "content": data.get("content"),
        }
        _tag(message, data)
        _merge_metadata(message, data)
        # Behind the call's own message and its other results: providers refuse a history where text comes between.
        for place, owner in enumerate(self.messages):
            if owner["role"] == "assistant" and _call_of(owner, call_id) is not None:
                place += 1  # noqa: PLW2901 - the search goes on from here
                while place < len(self.messages) and self.messages[place]["role"] == "tool":
                    place += 1  # noqa: PLW2901
                self.messages.insert(place, message)
                return
        self.messages.append(message)

    def _encrypted_value(self, data: JSONObject) -> None:
        if data.get("subtype") == "tool-call":
            target = self._tool_call(data.get("entityId"))
        else:
            target = self._message(data.get("entityId"))
            if target is not None and target["role"] == "activity":
                target = None
        if target is not None:
            target["encryptedValue"] = data.get("encryptedValue")

    # State and activities.

    def _state_snapshot(self, data: JSONObject) -> None:
        self.state = data.get("snapshot")

    def _state_delta(self, data: JSONObject) -> None:
        state = self._patched(self.state, data.get("delta"), data)
        if state is not _NONE:
            self.state = state

    def _activity_snapshot(self, data: JSONObject) -> None:
        new = {
            "id": data.get("messageId"),
            "role": "activity",
            "activityType": data.get("activityType"),
            "content": data.get("content"),
        }
        _tag(new, data)
        old = self._message(new["id"])
        replaces = data.get("replace") is not False
        if old is None:
            self.messages.append(new)
            old = new
        elif replaces:
            kept = {} if old["role"] != "activity" else {k: v for k, v in old.items() if k != "subagentRunId"}
            old.clear()
            old.update(kept | new)
        elif old["role"] != "activity":
            return
        _merge_metadata(old, data)

    def _activity_delta(self, data: JSONObject) -> None:
        message = self._message(data.get("messageId"))
        if message is None:
            return
        if message["role"] != "activity":
            self._ignore(data, f"the id is that of a message of role {message['role']}")
            return
        _merge_metadata(message, data)
        before = message.get("content")
        content = self._patched({} if before is None else before, data.get("patch") or [], data)
        if content is not _NONE:
            message["content"] = content
            message["activityType"] = data.get("activityType")

    def _patched(self, document: Any, patch: Any, data: JSONObject) -> Any:
        """Return the document after a JSON patch, or `_NONE`: it applies as a whole or not at all."""
        try:
            return jsonpatch.apply_patch(document, patch)
        except Exception as exc:  # noqa: BLE001 - the library lets TypeErrors out, too; the client warns and goes on
            self._sink(
                Diagnostic(
                    "client.patch-skipped",
                    f"a {data['type']} does not apply to what the client has and is skipped ({type(exc).__name__})",
                    event_type=data["type"],
                    message_id=data.get("messageId"),
                    detail={"error": str(exc), "patch": patch},
                )
            )
            return _NONE

    # Snapshots of messages.

    def _messages_snapshot(self, data: JSONObject) -> None:
        new = {message["id"]: _untagged(message) for message in data.get("messages") or ()}
        roles = {message["role"] for message in new.values()}
        owned = _owned_activity_types(data)

        def stays(message: JSONObject) -> bool:
            """Whether a message that the snapshot leaves out is one that servers do not track."""
            if message["role"] == "reasoning":
                return "reasoning" not in roles
            if message["role"] != "activity" or owned is None:
                return False
            return "activity" not in roles if owned is _NONE else message["activityType"] not in owned

        kept = [new.get(old["id"], old) for old in self.messages if old["id"] in new or stays(old)]
        known = {message["id"] for message in kept}
        self.messages = kept + [message for id, message in new.items() if id not in known]

    # The run.

    def _run_started(self, data: JSONObject) -> None:
        self.outcome = self.error = self.result = None
        self.interrupts = []
        for message in (data.get("input") or {}).get("messages") or ():
            if self._message(message["id"]) is None:
                self.messages.append(_untagged(message))

    def _run_finished(self, data: JSONObject) -> None:
        outcome = data.get("outcome") or {}
        known = outcome.get("type") in ("interrupt", "cancelled")
        self.outcome = outcome["type"] if known else "success"  # a type it does not know reads as success
        self.interrupts = list(outcome.get("interrupts") or ()) if self.outcome == "interrupt" else []
        self.result = data.get("result") if self.outcome == "success" else None

    def _run_error(self, data: JSONObject) -> None:
        self.outcome = "error"
        self.error = data
        self.result = None
        self.interrupts = []

    # Looking up. The client takes the first match, too.

    def _message(self, id: Any) -> JSONObject | None:
        return next((message for message in self.messages if message["id"] == id), None)

    def _tool_call(self, id: Any) -> JSONObject | None:
        for message in self.messages:
            call = _call_of(message, id)
            if call is not None:
                return call
        return None

    def _ignore(self, data: JSONObject, why: str, *, what: str = "it") -> None:
        self._sink(
            Diagnostic(
                "client.ignored",
                f"a {data['type']} reached the client, which ignores {what}: {why}",
                event_type=data["type"],
                message_id=data.get("messageId") or data.get("toolCallId"),
            )
        )

    _handlers: ClassVar[Mapping[str, Callable[[ClientView, JSONObject], None]]] = {
        "TEXT_MESSAGE_START": _start_text,
        "TEXT_MESSAGE_CONTENT": _extend_message,
        "TEXT_MESSAGE_END": _end_message,
        "TOOL_CALL_START": _start_tool_call,
        "TOOL_CALL_ARGS": _extend_tool_call,
        "TOOL_CALL_END": _end_tool_call,
        "TOOL_CALL_RESULT": _tool_result,
        "REASONING_MESSAGE_START": _start_reasoning,
        "REASONING_MESSAGE_CONTENT": _extend_message,
        "REASONING_MESSAGE_END": _end_message,
        "REASONING_ENCRYPTED_VALUE": _encrypted_value,
        "STATE_SNAPSHOT": _state_snapshot,
        "STATE_DELTA": _state_delta,
        "ACTIVITY_SNAPSHOT": _activity_snapshot,
        "ACTIVITY_DELTA": _activity_delta,
        "MESSAGES_SNAPSHOT": _messages_snapshot,
        "RUN_STARTED": _run_started,
        "RUN_FINISHED": _run_finished,
        "RUN_ERROR": _run_error,
    }


def _plain(value: Any) -> Any:
    """Return a JSON value of the caller's own, wire names included."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return copy.deepcopy(dict(value) if isinstance(value, Mapping) else value)


def _tag(message: JSONObject, data: JSONObject) -> None:
    """What an event creates belongs to the subagent run that the event belongs to."""
    if data.get("subagentRunId") is not None:
        message["subagentRunId"] = data["subagentRunId"]


def _untagged(message: JSONObject) -> JSONObject:
    """Return a message of a snapshot without a null tag, which means the same as none."""
    if message.get("subagentRunId", "") is None:
        del message["subagentRunId"]
    return message


def _merge_metadata(target: JSONObject, data: JSONObject) -> None:
    if isinstance(data.get("metadata"), dict):
        target["metadata"] = {**(target.get("metadata") or {}), **data["metadata"]}


def _call_of(message: JSONObject, id: Any) -> JSONObject | None:
    return next((call for call in message.get("toolCalls") or () if call["id"] == id), None)


def _owned_activity_types(data: JSONObject) -> Any:
    """Return which activity types a MESSAGES_SNAPSHOT says it holds all of: a list, None for all types, or `_NONE`."""
    metadata = data.get("metadata")
    if not isinstance(metadata, dict) or _HISTORY_KEY not in metadata:
        return _NONE
    said = metadata[_HISTORY_KEY]
    if not isinstance(said, dict):
        return []
    types = said.get(_HISTORY_TYPES, _NONE)
    if types is _NONE or types is None:
        return types
    return types if isinstance(types, list) and all(isinstance(name, str) for name in types) else []
