"""Where in an input an A2UI client message travels: A2UI says what one looks like, not where AG-UI carries it.

Knows the places in use, their precedence, and what else travels in the same envelope. Does not know what a message
must hold (`a2ui_client.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._diagnostics import Diagnostic
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._errors import DecodeError, LimitError
from agui_pipeline.translators._events import loads
from agui_pipeline.translators.a2ui._limits import A2UILimits, value_excess

Extract: TypeAlias = Callable[[RunAgentInput], Mapping[str, Any] | None]
"""Finds a client message where an application of your own puts it: the message, or an envelope of one."""

KINDS: Final = ("userAction", "action", "error")
"""The keys that say what a client message is: the action of v0.8, that of v0.9 and later, the error of either."""

LIMITS: Final = A2UILimits()

KEYS_BESIDE: Final = frozenset({"version"})
"""What may stand beside it."""

_KNOWN: Final = frozenset({*KINDS, "callAgentFunction", "rendererFunctionResponse"})
"""These, and what v1.0 has besides, which is the agent's own affair."""

_AT_ANY_TIME: Final = frozenset({"clientCapabilities", "clientDataModel"})
_MAX_KEYS: Final = 4
_MAX_KEY: Final = 40

_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What Agentdown sends in ``forwardedProps.a2ui``, or what `extract` found.

    Attributes:
        path: Where it stands, as a JSON path.
        values: ``clientMessage``, ``requestId``, ``clientCapabilities`` and ``clientDataModel``, each if it is there.
        bare: Whether there is no envelope around the message.
    """

    path: str
    values: Mapping[str, Any]
    bare: bool = False

    def get(self, name: str) -> Any:
        """Return one of its values; None where it is absent or null."""
        return self.values.get(name)

    def at(self, name: str) -> str:
        """Return the path of one of its values."""
        return self.path if self.bare else f"{self.path}.{name}"


@dataclass(frozen=True, slots=True)
class Found:
    """A client message in its place.

    Attributes:
        path: Where it stands.
        message: The message, not checked: any JSON value.
        envelope: What travels beside it; an empty one in the other places.
        index: Which of the input's messages it is, None where it is none of them.
        certain: Whether it can be nothing else. Text that a user wrote may be JSON for reasons of its own.
    """

    path: str
    message: Any
    envelope: Envelope
    index: int | None = None
    certain: bool = True


def envelopes(input: RunAgentInput, extract: Extract | None) -> tuple[Envelope, ...]:
    """Return the envelopes of an input, the first to be asked first."""
    found = []
    own = None if extract is None else extract(input)
    if own is not None:
        if not isinstance(own, Mapping):
            raise DecodeError(f"extract(input): wanted an object or None, got {kind_of(own)}")
        bare = any(key in own for key in KINDS)
        found.append(Envelope("extract(input)", {"clientMessage": own} if bare else own, bare))
    props = _mapping(input.forwarded_props).get("a2ui")
    if isinstance(props, Mapping):
        found.append(Envelope("forwardedProps.a2ui", props))
    return tuple(found)


def find(input: RunAgentInput, extract: Extract | None) -> Found | None:
    """Find the client message of an input; None where there is none.

    In this order: `extract`, ``forwardedProps.a2ui.clientMessage``, ``forwardedProps.a2uiAction.userAction`` (as the
    official A2UI middleware reads it), the last user message (as tRPC-Agent-Go's client sends it).
    """
    for envelope in envelopes(input, extract):
        message = envelope.get("clientMessage")
        if message is not None:
            return Found(envelope.at("clientMessage"), message, envelope)
    action = _mapping(_mapping(input.forwarded_props).get("a2uiAction")).get("userAction")
    if action is not None:
        path = "forwardedProps.a2uiAction"
        return Found(path, {"userAction": action}, Envelope(path, _NOTHING))
    return _in_last_user_message(input)


def empty_carrier(input: RunAgentInput, extract: Extract | None) -> str | None:
    """Say what is wrong where something travels in a client message's place and is none: misspelt, most likely.

    For an input in which there is no client message. What is found is named by its keys, so that it can be logged.

    Returns:
        What was found and what was wanted; None where nobody tried to send one.
    """
    props: Any = input.forwarded_props
    if props is not None and not isinstance(props, Mapping):
        return f"forwardedProps: wanted an object, got {kind_of(props)}"
    props = _mapping(props)
    if props.get("a2ui") is not None and not isinstance(props["a2ui"], Mapping):
        return f"forwardedProps.a2ui: wanted an object, got {kind_of(props['a2ui'])}"
    for envelope in envelopes(input, extract):
        message = envelope.get("clientMessage")
        if message is None and _for_a_message(envelope.values):
            return f"{envelope.path}: wanted clientMessage, got {_keys(envelope.values)}"
        if isinstance(message, Mapping) and _KNOWN.isdisjoint(message) and not KEYS_BESIDE.issuperset(message):
            return f"{envelope.at('clientMessage')}: wanted one of {', '.join(KINDS)}, got {_keys(message)}"
    action = props.get("a2uiAction")
    if action is None:
        return None
    got = _keys(action) if isinstance(action, Mapping) else kind_of(action)
    return f"forwardedProps.a2uiAction: wanted userAction, got {got}"


def _for_a_message(envelope: Mapping[str, Any]) -> bool:
    """Say whether an envelope without a message was meant to have one: some hold what is sent at any time."""
    return bool(envelope) and ("requestId" in envelope or _AT_ANY_TIME.isdisjoint(envelope))


def _keys(value: Mapping[str, Any]) -> str:
    """Name the keys of an object, for the log: a client may choose them as long, and as strange, as it likes."""
    named = [ascii(str(key)[:_MAX_KEY]) for key in list(value)[:_MAX_KEYS]]
    if len(value) > _MAX_KEYS:
        named.append("more")
    return f"an object with {', '.join(named) or 'nothing in it'}"


def _in_last_user_message(input: RunAgentInput) -> Found | None:
    for index in range(len(input.messages) - 1, -1, -1):
        message = input.messages[index]
        if message.role == "user":
            value = _json_object(_text(message.content))
            kinds = [key for key in KINDS if key in value]
            if len(kinds) != 1:
                return None
            # Nobody writes "userAction" to a chat. An "error" is pasted from any API, and "action" is a word.
            certain = kinds[0] == "userAction" or isinstance(value.get("version"), str)
            if not certain and len(value) > 1:
                return None  # to be told as it is: what stands beside it is no A2UI, and would get lost
            path = f"messages[{index}].content"
            return Found(path, value, Envelope(path, _NOTHING), index, certain)
    return None


def _text(content: Any) -> str:
    """Return a message's text; empty where it is not text alone."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.text for part in parts) if all(part.type == "text" for part in parts) else ""


def _json_object(text: str) -> Mapping[str, Any]:
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return _NOTHING
    try:
        return _mapping(loads(text.encode(errors="surrogatepass")))
    except ValueError:  # a sentence in braces; or nesting meant to hurt
        return _NOTHING


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else _NOTHING


def plain(value: object, path: str, limits: A2UILimits) -> Any:
    """Return a copy of what a client sent, plain JSON within the limits.

    Raises:
        DecodeError: An object in it has a key that reaches a prototype in JavaScript.
        LimitError: It is over one of the limits.
    """
    text = encode_json(value, unheard)
    copy = loads(text)
    excess = value_excess(limits, copy, text.decode())
    if excess is None:
        return copy
    if excess.limit == "forbidden_key":
        raise DecodeError(f"{path}: holds a key that reaches a prototype in JavaScript, such as '__proto__'")
    raise LimitError(f"{path}: {excess.size} is over the limit {excess.limit}={excess.maximum}")


def unheard(_repair: Diagnostic) -> None:
    """What a client sent has been read from JSON: there is nothing to repair that was not reported then."""


def kind_of(value: object) -> str:
    """Name a value by its JSON type, for an error."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int | float):
        return "a number"
    return "an object" if isinstance(value, Mapping) else "a list" if isinstance(value, list | tuple) else "no JSON"
