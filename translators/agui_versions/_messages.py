"""Messages in snapshots, and in the input that RUN_STARTED repeats: each rule takes one message.

Knows what a client's schema lets a message be. Clients up to 0.0.40 do not look at an input, but later ones, which read
the same level, do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from agui_pipeline.translators._content_parts import text_of
from agui_pipeline.translators._event_shapes import MESSAGES
from agui_pipeline.translators._events import AnyEvent, replace
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.agui_versions._rule import JSONObject, Losses, Setting, wire
from agui_pipeline.translators.agui_versions._version import Version

MessageRule: TypeAlias = Callable[[JSONObject, Losses], JSONObject | None]
"""Returns a message as the client can take it, the same object where it can; None to leave it out."""

READS_INPUT: Final = Version(0, 0, 41)
"""The first version that looks at RUN_STARTED's `input`."""

_MEDIA: Final = ("image", "audio", "video", "document")
_PARTS: Final = (*_MEDIA, "text", "binary")
_SOURCES: Final = ("data", "url", "file")
_ANY_BYTES: Final = "application/octet-stream"


def in_messages(rule: MessageRule) -> Callable[[AnyEvent, Setting], Iterable[AnyEvent]]:
    """Return the rule of events that a rule of messages makes."""

    def changed(event: AnyEvent, setting: Setting) -> Iterable[AnyEvent]:
        if event.type == "MESSAGES_SNAPSHOT":
            view = wire(event, setting.losses)
            messages = _changed(view.messages, rule, setting.losses)
            return (event,) if messages is view.messages else (replace(view, messages=messages),)
        if field_of(event, "input", "input") is None:
            return (event,)
        view = wire(event, setting.losses)
        given = view.input
        messages = _changed(given.get("messages"), rule, setting.losses) if isinstance(given, dict) else None
        if messages is None or messages is given["messages"]:
            return (event,)
        return (replace(view, input={**given, "messages": messages}),)

    return changed


def _changed(messages: Any, rule: MessageRule, losses: Losses) -> Any:
    if not isinstance(messages, list):
        return messages
    new = [rule(message, losses) if isinstance(message, dict) else message for message in messages]
    if all(one is old for one, old in zip(new, messages, strict=True)):
        return messages
    return [message for message in new if message is not None]


def input_complete(event: AnyEvent, setting: Setting) -> Iterable[AnyEvent]:
    """Put in what the client demands of an input that 1.0 does not."""
    if field_of(event, "input", "input") is None:
        return (event,)
    view = wire(event, setting.losses)
    given = view.input
    if not isinstance(given, dict):
        return (replace(view, input=None),)
    lists = ("messages", "tools", "context")
    missing: JSONObject = {name: [] for name in lists if not isinstance(given.get(name), list)}
    return (replace(view, input={**given, **missing}),) if missing else (event,)


def without_strangers(message: JSONObject, losses: Losses) -> JSONObject | None:
    """Leave out roles and content parts that no version has, as 1.0 does; old clients give up on them."""
    role = message.get("role")
    if not isinstance(role, str) or role not in MESSAGES:
        losses.note("legacy.message")
        return None
    return _with_parts(message, losses, lambda part: part if _is_known(part) else None)


def _is_known(part: JSONObject) -> bool:
    kind = part.get("type")
    if kind not in _PARTS:
        return False
    source = part.get("source")
    return kind not in _MEDIA or (isinstance(source, dict) and source.get("type") in _SOURCES)


def tool_text(message: JSONObject, losses: Losses) -> JSONObject:
    """Make text of the parts of a tool's message."""
    if message.get("role") != "tool" or not isinstance(message.get("content"), list):
        return message
    losses.note("legacy.message-parts", "MESSAGES_SNAPSHOT")
    return {**message, "content": text_of(message["content"])}


def file_as_binary(message: JSONObject, losses: Losses) -> JSONObject:
    """Make `binary` parts, with the file's id, of media in files."""
    return _with_parts(message, losses, lambda part: _binary(part) if _source(part) == "file" else part)


def media_as_binary(message: JSONObject, losses: Losses) -> JSONObject:
    """Make `binary` parts of media that are sent or linked."""
    return _with_parts(message, losses, lambda part: _binary(part) if _source(part) in ("data", "url") else part)


def user_text(message: JSONObject, losses: Losses) -> JSONObject:
    """Leave a user's text of what he said in parts."""
    if message.get("role") != "user" or not isinstance(message.get("content"), list):
        return message
    losses.note("legacy.message-parts", "MESSAGES_SNAPSHOT")
    texts = [part.get("text") for part in message["content"] if isinstance(part, dict) and part.get("type") == "text"]
    return {**message, "content": "".join(text for text in texts if isinstance(text, str))}


def without_role(role: str, code: str) -> MessageRule:
    """Return the rule that leaves out the messages of a role."""

    def without(message: JSONObject, losses: Losses) -> JSONObject | None:
        if message.get("role") != role:
            return message
        losses.note(code, "MESSAGES_SNAPSHOT")
        return None

    return without


def _with_parts(message: JSONObject, losses: Losses, change: Callable[[JSONObject], JSONObject | None]) -> JSONObject:
    parts = message.get("content")
    if message.get("role") not in ("user", "tool") or not isinstance(parts, list):
        return message
    new = [change(part) if isinstance(part, dict) else part for part in parts]
    if all(one is old for one, old in zip(new, parts, strict=True)):
        return message
    losses.note("legacy.message-parts", "MESSAGES_SNAPSHOT")
    return {**message, "content": [part for part in new if part is not None]}


def _source(part: JSONObject) -> Any:
    source = part.get("source")
    return source.get("type") if part.get("type") in _MEDIA and isinstance(source, dict) else None


def _binary(part: JSONObject) -> JSONObject:
    """Return a media part as the `binary` part that it was before 1.0."""
    source = part["source"]
    key = "id" if source["type"] == "file" else source["type"]
    known = source.get("mimeType")
    mime_type = known if isinstance(known, str) else _ANY_BYTES if part["type"] == "document" else f"{part['type']}/*"
    metadata = part.get("metadata")
    name = metadata.get("filename") if isinstance(metadata, dict) else None
    binary = {"type": "binary", "mimeType": mime_type, key: source.get("value")}
    return binary | ({"filename": name} if isinstance(name, str) else {})
