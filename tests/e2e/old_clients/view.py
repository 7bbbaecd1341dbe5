"""What is to be seen of a client's conversation, in the same terms whatever the version of the client.

Knows that versions spell the same thing differently. Does not know what any of them loses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.e2e.old_clients.harness import Shown

Part: TypeAlias = tuple[str, ...]
"""Of a content part: ``("text", …)``, or its MIME type, the kind of its source and the value of that."""
Content: TypeAlias = str | tuple[Part, ...]


@dataclass(frozen=True)
class View:
    """The conversation, kind by kind, each in its order.

    Attributes:
        texts: Role and content of each message that says something.
        calls: Id, name and arguments of each tool call.
        results: Tool call id and content of each result; JSON text of parts as those parts.
        reasoning: The content of each reasoning message.
        activities: Type and content of each activity.
        state: The state.
        interrupts: What the user is asked.
        failed: What RUN_ERROR events said.
        notes: What the agent's own CUSTOM (of that name) and RAW events held.
        metadata: Of each message and call that has some.
        owners: The subagent of each message that is a subagent's.
    """

    texts: Sequence[tuple[str, Content]]
    calls: Sequence[tuple[str, str, str]]
    results: Sequence[tuple[str, Content]]
    reasoning: Sequence[str]
    activities: Sequence[tuple[str, Any]]
    state: Any
    interrupts: Sequence[Any]
    failed: Sequence[str]
    notes: Sequence[tuple[str, Any]]
    metadata: Mapping[str, Any]
    owners: Mapping[str, str]


def view_of(shown: Shown) -> View:
    """Return what is to be seen of what a client has at the end of a run."""
    messages = shown.messages

    def of(*roles: str) -> Iterable[dict[str, Any]]:
        return (message for message in messages if message["role"] in roles)

    calls = [call for message in of("assistant") for call in message.get("toolCalls") or ()]
    asked = [event for event in shown.events if (event["type"], event.get("name")) == ("CUSTOM", "on_interrupt")]
    return View(
        texts=[
            (message["role"], content_of(message["content"]))
            for message in of("user", "assistant", "developer", "system")
            if message.get("content")
        ],
        calls=[(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls],
        results=[(message["toolCallId"], _result_of(message["content"])) for message in of("tool")],
        reasoning=[message["content"] for message in of("reasoning")],
        activities=[(message["activityType"], message["content"]) for message in of("activity")],
        state=shown.state,
        interrupts=shown.interrupts or [json.loads(event["value"]) for event in asked],
        failed=[event["message"] for event in shown.events if event["type"] == "RUN_ERROR"],
        notes=[
            (event["type"], event.get("value", event.get("event")))
            for event in shown.events
            if event["type"] == "RAW" or (event["type"], event.get("name")) == ("CUSTOM", "note")
        ],
        metadata={item["id"]: item["metadata"] for item in [*messages, *calls] if item.get("metadata")},
        owners={message["id"]: message["subagentRunId"] for message in messages if message.get("subagentRunId")},
    )


def content_of(content: Any) -> Content:
    """Return content as text or as parts."""
    return content if isinstance(content, str) else tuple(map(_part_of, content))


def _result_of(content: Any) -> Content:
    if isinstance(content, str) and content.startswith('[{"type":'):
        content = json.loads(content)
    return content_of(content)


def _part_of(part: Mapping[str, Any]) -> Part:
    if part["type"] == "text":
        return ("text", part["text"])
    if part["type"] == "binary":
        place = next(name for name in ("data", "url", "id") if part.get(name))
        return (part["mimeType"], "file" if place == "id" else place, part[place])
    source = part["source"]
    return (source["mimeType"], source["type"], source["value"])
