"""What a client may say, and how much of it: the options of `TrustMiddleware`, and the codes of what it refuses.

Knows the defaults and why they are what they are. Does not look at inputs (`_trust.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from agui_pipeline.translators._errors import ConfigurationError

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "trust.role": "the client sent a message of a role that it may not speak in",
    "trust.unissued-call": "the client sent a tool call that was never issued",
    "trust.altered-call": "the client sent a tool call with another name or other arguments than were issued",
    "trust.unissued-result": "the client sent a result of a tool call that was never issued",
    "trust.altered-result": "the client sent another result of a tool call than the server had",
    "trust.orphan-result": "a tool result was left out with its call",
    "trust.orphan-call": "a tool call was left out with its result",
    "trust.unissued-resume": "the client resumed an interrupt that was never issued",
    "trust.unverified": "the client sent tool calls, results or resume entries, and no store says which were issued",
    "trust.file-source": "the client named a file, which would be fetched with the server's credentials",
    "trust.url": "the client sent a URL of a scheme that is not allowed",
    "trust.two-spellings": "the client sent a field in camelCase and in snake_case at once, to be read in two ways",
    "trust.prototype-key": "the client sent an object with a key that reaches a JavaScript object's prototype",
    "trust.limit": "the client sent more than a limit allows",
}
"""The diagnostics of this stage, by code."""

CLIENT_ROLES: Final = ("user", "assistant", "tool", "activity", "reasoning")
"""The roles that a client may speak in, unless told otherwise: it sends back the whole history. Not the server's own
``system`` and ``developer``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustLimits:
    """What one input may hold. Each an integer of at least 1; the defaults are what long, honest chats stay below.

    The bytes of a whole body are the adapter's to bound (`max_body`, 10 MiB): these bound its parts.

    Attributes:
        max_messages: Messages.
        max_parts: Content parts of one message.
        max_tool_calls: Tool calls of one message.
        max_tools: Tools.
        max_context: Context entries.
        max_resume: Resume entries.
        max_id: Characters of the ids of the thread, the run and its parent: stores keep them as keys.
        max_text: Characters of any text of a message, such as its content, arguments of a call, or a result.
        max_data: Characters of base64 in one content part.
        max_state_bytes: Bytes of the state as JSON.
        max_forwarded_bytes: Bytes of `forwardedProps` as JSON.
        max_value_bytes: Bytes as JSON of any other open value: a tool, a context entry, a resume entry, the content
            of an activity, metadata, and what unknown fields hold.
        max_depth: Levels of objects and lists in an open value, itself being the first.

    Raises:
        ConfigurationError: A limit is no integer of at least 1.
    """

    max_messages: int = 1_000
    max_parts: int = 100
    max_tool_calls: int = 100
    max_tools: int = 200
    max_context: int = 100
    max_resume: int = 100
    max_id: int = 1_024
    max_text: int = 1_000_000
    max_data: int = 8 * 1024 * 1024
    max_state_bytes: int = 1024 * 1024
    max_forwarded_bytes: int = 1024 * 1024
    max_value_bytes: int = 256 * 1024
    max_depth: int = 64

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if type(value) is not int or value < 1:
                raise ConfigurationError(f"TrustLimits({item.name}={value!r}): must be an integer of at least 1")


UNITS: Final = {
    "max_messages": "messages",
    "max_parts": "content parts",
    "max_tool_calls": "tool calls",
    "max_tools": "tools",
    "max_context": "context entries",
    "max_resume": "resume entries",
    "max_id": "characters",
    "max_text": "characters",
    "max_data": "characters of base64",
    "max_state_bytes": "bytes of JSON",
    "max_forwarded_bytes": "bytes of JSON",
    "max_value_bytes": "bytes of JSON",
    "max_depth": "levels of nesting",
}
"""What each limit counts."""


@dataclass(frozen=True, slots=True)
class TrustRules:
    """The options of `agui_pipeline.middleware.TrustMiddleware`, as they apply to one input."""

    reject: bool = False
    roles: frozenset[str] = frozenset(CLIENT_ROLES)
    url_schemes: tuple[str, ...] = ("http", "https")
    allow_file_sources: bool = False
    client_calls: frozenset[str] = frozenset()
    compare: bool = True
    limits: TrustLimits = field(default_factory=TrustLimits)
