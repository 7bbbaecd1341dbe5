"""What A2UI clients send to the server: user actions, errors, data models, capabilities.

Knows what a client message must hold, of every version. Where it travels: `_a2ui_client_carriers.py`; what an agent
is told of it: `_a2ui_client_prompt.py`. Does not know which surfaces there are, nor who may do what.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._a2ui_client_capabilities import A2UICapabilities, client_capabilities
from agui_pipeline.translators._a2ui_client_carriers import (
    KEYS_BESIDE,
    KINDS,
    LIMITS,
    Extract,
    Found,
    find,
    kind_of,
    plain,
)
from agui_pipeline.translators._errors import DecodeError, LimitError
from agui_pipeline.translators.a2ui._limits import A2UILimits

__all__ = ["A2UICapabilities", "A2UIClientMessage", "Extract", "client_capabilities", "parse_client_message"]

MAX_REQUEST_ID: Final = 256
"""Characters of a request id: it is kept, and compared with those of other requests."""

_Object: TypeAlias = Mapping[str, Any]
_LITERALS: Final = frozenset({"literalString", "literalNumber", "literalBoolean", "literalArray"})


@dataclass(frozen=True, slots=True, kw_only=True)
class A2UIClientMessage:
    """A user action, or an error that a client reports.

    Attributes:
        raw: The whole message, plain JSON.
        name: The action's name; None in an error.
        surface_id: The surface it is about; None in an error that names none.
        source_component_id: The component that the user used; None where the client does not say.
        context: The action's values by key, as the client resolved them, out of wrappings such as ``literalString``;
            numbers that came as text stay text.
        version: The A2UI version that the message names; None where it names none, as in v0.8.
        request_id: The client's id of this request, the same when it repeats it; None where there is none.
        error: The error as it came; None in an action.
        data_model: The data of the surfaces that the client sent along, by surface id; None where it sent none.
        timestamp: When the action happened, in the client's words.
        path: Where it stood in the input, as a JSON path.
        index: Which of the input's messages it is, None where it travelled elsewhere.
    """

    raw: _Object = field(repr=False)
    name: str | None
    surface_id: str | None
    source_component_id: str | None = None
    context: _Object = field(default_factory=dict)
    version: str | None = None
    request_id: str | None = None
    error: _Object | None = None
    data_model: _Object | None = None
    timestamp: str | None = None
    path: str = ""
    index: int | None = None

    @property
    def kind(self) -> str:
        """The key of the message: ``"userAction"``, ``"action"`` or ``"error"``."""
        return next(key for key in KINDS if key in self.raw)

    @property
    def digest(self) -> str:
        """A digest of the message and its data model: repeats of a request have the same, other requests another."""
        return _digest([self.raw, self.data_model])

    @property
    def likeness(self) -> str:
        """The same as `digest`, but for when it happened: an action that was done twice has the same."""
        body = {name: value for name, value in self.raw[self.kind].items() if name != "timestamp"}
        return _digest([{**self.raw, self.kind: body}, self.data_model])


def _digest(value: Any) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()


def parse_client_message(
    input: RunAgentInput, *, extract: Extract | None = None, limits: A2UILimits = LIMITS
) -> A2UIClientMessage | None:
    """Read the A2UI client message of a run, whichever way it came.

    The first that is there counts: what `extract` finds; ``forwardedProps.a2ui.clientMessage`` (Agentdown: with
    ``requestId`` and ``clientDataModel`` beside it); ``forwardedProps.a2uiAction.userAction`` (CopilotKit); the last
    user message, if it is one JSON object with exactly one of the keys ``userAction``, ``action`` and ``error``
    (tRPC-Agent-Go's client); of the latter two with a ``version`` beside it or nothing, since users paste JSON, too.

    Args:
        input: The run's input.
        extract: ``(input) -> mapping or None`` for messages that travel elsewhere. Returns the message itself, or an
            object with ``clientMessage`` and, if they are there, ``requestId``, ``clientCapabilities``,
            ``clientDataModel``.
        limits: What a message may be: bytes, depth, characters of a string.

    Returns:
        The message; None where the run is about something else, which a message of a kind that is not known is too.

    Raises:
        DecodeError: What travels there is clearly a client message, and a malformed one; says where, as a JSON path.
            What a user wrote to a chat is none.
        LimitError: It is over a limit.

    Example:
        >>> from agui_pipeline.translators import run_input
        >>> text = '{"userAction":{"name":"add","surfaceId":"s","context":{"a":{"literalString":"12"}}}}'
        >>> message = parse_client_message(run_input(text))
        >>> message.name, message.surface_id, message.context
        ('add', 's', {'a': '12'})
        >>> parse_client_message(run_input('{"userAction":{"name":"add"}}', run_id="r"))
        Traceback (most recent call last):
            ...
        agui_pipeline.translators._errors.DecodeError: messages[0].content.userAction.surfaceId: missing; wanted a \
string
    """
    found = find(input, extract)
    if found is None:
        return None
    try:
        return _read(found, limits)
    except (DecodeError, LimitError):
        if found.certain:
            raise
        return None


def _read(found: Found, limits: A2UILimits) -> A2UIClientMessage | None:
    message = _object(found.message, found.path)
    kinds = [key for key in KINDS if key in message]
    if not kinds and not KEYS_BESIDE.issuperset(message):
        return None  # such as v1.0's callAgentFunction
    if len(kinds) != 1:
        got = " and ".join(kinds) or "none of them"
        raise DecodeError(f"{found.path}: wanted exactly one of {', '.join(KINDS)}, got {got}")
    (kind,) = kinds
    raw = plain(message, found.path, limits)
    path = f"{found.path}.{kind}"
    body = _object(raw[kind], path)
    envelope = found.envelope
    request_id = _string(envelope.values, "requestId", envelope.path)
    if request_id is not None and len(request_id) > MAX_REQUEST_ID:
        raise LimitError(f"{envelope.at('requestId')}: longer than {MAX_REQUEST_ID} characters")
    error = kind == "error"
    surface_id = body.get("surfaceId")
    return A2UIClientMessage(
        name=None if error else _required(body, "name", path),
        # Errors are free in v0.8, and one that is malformed is worth knowing, too.
        surface_id=(surface_id if isinstance(surface_id, str) else None)
        if error
        else _required(body, "surfaceId", path),
        source_component_id=None if error else _string(body, "sourceComponentId", path),
        context={} if error else _context(body.get("context"), f"{path}.context"),
        version=_string(raw, "version", found.path),
        request_id=request_id or None,
        error=body if error else None,
        data_model=_data_model(envelope.get("clientDataModel"), envelope.at("clientDataModel"), limits),
        timestamp=None if error else _string(body, "timestamp", path),
        raw=raw,
        path=found.path,
        index=found.index,
    )


def _context(value: Any, path: str) -> _Object:
    return {} if value is None else {key: unwrapped(item) for key, item in _object(value, path).items()}


def unwrapped(value: Any) -> Any:
    """Return a value without the wrapping that v0.8 puts around literals, in lists too; anything else as it is."""
    if isinstance(value, dict) and len(value) == 1 and not _LITERALS.isdisjoint(value):
        (value,) = value.values()
    return [unwrapped(item) for item in value] if isinstance(value, list) else value


def _data_model(value: Any, path: str, limits: A2UILimits) -> _Object | None:
    if value is None:
        return None
    model = _object(plain(value, path, limits), path)
    if "surfaces" not in model:
        raise DecodeError(f"{path}.surfaces: missing; wanted an object")
    return _object(model["surfaces"], f"{path}.surfaces")


def _object(value: Any, path: str) -> _Object:
    if not isinstance(value, Mapping):
        raise DecodeError(f"{path}: wanted an object, got {kind_of(value)}")
    return value


def _string(values: _Object, name: str, path: str) -> str | None:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise DecodeError(f"{path}.{name}: wanted a string, got {kind_of(value)}")
    return value


def _required(values: _Object, name: str, path: str) -> str:
    value = _string(values, name, path)
    if not value:
        raise DecodeError(f"{path}.{name}: {'missing' if value is None else 'empty'}; wanted a string")
    return value
