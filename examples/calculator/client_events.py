"""What the form sent: the A2UI client event of a run, whichever way it came.

A2UI says what an action looks like, not where AG-UI carries it, so clients differ. Knows the three places in use and
their precedence. Does not know what an action means, and validates nothing beyond what it must to read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ag_ui.core import RunAgentInput

__all__ = ["ClientEvent", "find_client_event"]

_EVENT_KEYS = ("userAction", "action", "error")  # v0.8 action, v0.9 action, error of either


@dataclass(frozen=True)
class ClientEvent:
    """A user action (``error`` is None) or an error that the client reports.

    Attributes:
        name: The action's name; empty in an error.
        surface_id: The surface it happened on; None where the client does not say.
        context: The action's values by key, as the client resolved them.
        error: What the client reports, in its words.
    """

    name: str
    surface_id: str | None
    context: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


def find_client_event(run: RunAgentInput) -> ClientEvent | None:
    """Find the client event of a run; None where the run is an ordinary message.

    Precedence: ``forwardedProps.a2ui.clientMessage``, ``forwardedProps.a2uiAction``, then the last user message if it
    is one JSON object with exactly one of ``userAction``, ``action`` and ``error``.
    """
    props = _mapping(run.forwarded_props)
    for candidate in (
        _mapping(props.get("a2ui")).get("clientMessage"),
        props.get("a2uiAction"),
        _json_object(last_user_text(run)),
    ):
        event = _read(_mapping(candidate))
        if event is not None:
            return event
    return None


def last_user_text(run: RunAgentInput) -> str:
    """Return the text of the last user message, or an empty string."""
    for message in reversed(run.messages):
        if message.role != "user":
            continue
        if isinstance(message.content, str):
            return message.content
        return "".join(part.text for part in message.content or () if part.type == "text")
    return ""


def _read(message: Mapping[str, Any]) -> ClientEvent | None:
    keys = [key for key in _EVENT_KEYS if key in message]
    if len(keys) != 1:
        return None
    body = _mapping(message[keys[0]])
    surface_id = body.get("surfaceId")
    surface_id = surface_id if isinstance(surface_id, str) and surface_id else None
    if keys[0] == "error":
        return ClientEvent("", surface_id, error=str(body.get("message") or body.get("code") or "no details"))
    return ClientEvent(str(body.get("name", "")), surface_id, _mapping(body.get("context")))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _json_object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # an ordinary sentence; or nesting meant to hurt
        return None
