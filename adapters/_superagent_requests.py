"""The requests of the old HTTP API: what each says, checked, or why it is refused.

Knows bodies and query parameters. Does not know sessions, agents or dialects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import Request

from agui_pipeline.adapters._asgi_body import Body, Refusal
from agui_pipeline.adapters._superagent_negotiate import forwarded
from agui_pipeline.translators import DecodeError
from agui_pipeline.translators._input import described, json_object


class RefusedError(Exception):
    """A request is refused: `refusal` says how."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.refusal = Refusal(status, code, message)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for.

    Attributes:
        session_id: The session; None where none was named: then nothing of it is remembered.
        agent_id: The agent, None where none was named.
        message: What the user says; None for nothing.
        answer: ``{"input": …}`` or ``{"answer": …}``; None where this is no resume.
        props: All else that it says.
    """

    session_id: str | None
    agent_id: str | None
    message: str | None = None
    answer: Mapping[str, Any] | None = None
    props: Mapping[str, Any] = field(default_factory=dict)


def read_body_object(body: Body, limit: int) -> Mapping[str, Any]:
    """Return the JSON object that a body is.

    Raises:
        RefusedError: It is too large, or none.
    """
    if not body.complete:
        raise RefusedError(413, "body_too_large", f"the body is larger than the limit of {limit} bytes")
    try:
        return json_object(body.data, "message and session_id, or a RunAgentInput")
    except DecodeError as exc:
        raise RefusedError(400, "invalid_request", str(exc)) from None


def chat(body: Mapping[str, Any]) -> Asked:
    """Return what a POST to the stream asks for: a message in a session.

    Raises:
        RefusedError: A field has the wrong type, or there is no message.
    """
    message = _text(body, "message")
    if message is None:
        raise RefusedError(400, "invalid_request", "message: missing; wanted what the user says, a string")
    return Asked(_name(body, "session_id"), _agent(body), message, props=forwarded(body))


def resume(body: Mapping[str, Any]) -> Asked:
    """Return what a POST to the resume asks for: an answer in a session.

    Raises:
        RefusedError: A field has the wrong type, or there is no session or no answer.
    """
    session = _name(body, "session_id")
    if session is None:
        raise RefusedError(400, "invalid_request", "session_id: missing; wanted the session that waits for an answer")
    given = [name for name in ("input", "answer") if body.get(name) is not None]
    if len(given) != 1:
        wanted = "either input, an object of field values, or answer, the value of the only field"
        raise RefusedError(400, "invalid_request", f"the body: wanted {wanted}; got {' and '.join(given) or 'neither'}")
    value = body[given[0]]
    if given == ["input"] and not isinstance(value, Mapping):
        raise RefusedError(400, "invalid_request", f"input: wanted an object of field values, got {described(value)}")
    if given == ["answer"] and not isinstance(value, str | bool | int | float):
        wanted = "a string, a number or a boolean"
        raise RefusedError(400, "invalid_request", f"answer: wanted {wanted}, got {described(value)}")
    return Asked(session, _agent(body), answer={given[0]: value}, props=forwarded(body))


def watch(request: Request) -> Asked:
    """Return what a GET of the stream asks for: a message in a session, or what the agent has to say by itself.

    Raises:
        RefusedError: There is no session.
    """
    query = dict(request.query_params)
    session = _name(query, "session") or _name(query, "session_id")
    if session is None:
        raise RefusedError(400, "invalid_request", "session: missing; wanted the session, as a query parameter")
    return Asked(session, _agent(query), query.get("message"), props=forwarded(query))


_MAX_NAME: Final = 1024
"""Characters of the name of a session or an agent: it is stored, and in frames."""


def _name(body: Mapping[str, Any], field: str) -> str | None:
    """Return the name of a session or an agent, which must be one that every store can take for a key."""
    name = _text(body, field)
    if name is not None and not 0 < len(name) <= _MAX_NAME:
        raise RefusedError(400, "invalid_request", f"{field}: wanted 1 to {_MAX_NAME} characters, got {len(name)}")
    if name is not None and not name.isprintable():
        raise RefusedError(400, "invalid_request", f"{field}: wanted printable characters, got {name[:100]!a}")
    return name


def _agent(body: Mapping[str, Any]) -> str | None:
    """Return the agent that is named; an empty name is none, as of a form that nobody filled in."""
    return None if body.get("agent_id") == "" else _name(body, "agent_id")


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if not (value is None or isinstance(value, str)):
        raise RefusedError(400, "invalid_request", f"{name}: wanted a string, got {described(value)}")
    return value
