"""Limits of one A2UI message: what a client would choke on is not passed to it as a message.

Knows sizes, depths and forbidden keys of decoded JSON. Does not know what becomes of a message that is over a limit
(`on_invalid` says that), nor how text is cut into records (`_scanner.py` bounds what is held).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from agui_pipeline.translators._errors import ConfigurationError

FORBIDDEN_KEYS: Final = frozenset({"__proto__", "constructor", "prototype"})
"""Keys that reach a JavaScript object's prototype where a client merges objects carelessly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class A2UILimits:
    """What one A2UI message may be. Each an integer of at least 1.

    Attributes:
        max_message_bytes: UTF-8 bytes of its text. Bounds what is held while a message is incomplete, too.
        max_depth: Levels of objects and lists, the message itself being the first.
        max_components: Components in one message.
        max_component_depth: Components above one another, as far as one message says it.
        max_string: Characters of a string or key.
        max_surface_messages: Messages for one surface in one run.

    Raises:
        ConfigurationError: A limit is no integer of at least 1.
    """

    max_message_bytes: int = 131072
    max_depth: int = 50
    max_components: int = 256
    max_component_depth: int = 32
    max_string: int = 16384
    max_surface_messages: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or value < 1:
                raise ConfigurationError(f"A2UILimits({field.name}={value!r}): must be an integer of at least 1")


@dataclass(frozen=True, slots=True)
class Excess:
    """One limit that something is over.

    Attributes:
        limit: The name of the limit, or ``"forbidden_key"``.
        maximum: What is allowed.
        size: What was found.
    """

    limit: str
    maximum: int
    size: int


def byte_size(text: str) -> int:
    """Return how many bytes of UTF-8 a text is; a lone surrogate counts as three."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def value_excess(limits: A2UILimits, value: object, text: str) -> Excess | None:
    """Find a limit that any JSON value is over: bytes, depth, strings, forbidden keys.

    Args:
        limits: The limits.
        value: The decoded JSON.
        text: The text that it was decoded from.
    """
    length = len(text)
    if length > limits.max_message_bytes or length * 4 > limits.max_message_bytes:
        size = byte_size(text)
        if size > limits.max_message_bytes:
            return Excess("max_message_bytes", limits.max_message_bytes, size)
    # A string is no longer than its JSON text, a level needs a bracket, and a key is spelt out or escaped: most
    # messages are cleared by these searches and never walked.
    if (
        length > limits.max_string
        or text.count("{") + text.count("[") > limits.max_depth
        or "\\u" in text
        or any(key in text for key in FORBIDDEN_KEYS)
    ):
        return _walk(limits, value)
    return None


def _walk(limits: A2UILimits, value: object) -> Excess | None:
    forbidden = deepest = longest = 0
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, str):
            longest = max(longest, len(item))
        elif isinstance(item, dict):
            deepest = max(deepest, depth)
            for key, child in item.items():
                longest = max(longest, len(key))
                forbidden += key in FORBIDDEN_KEYS
                pending.append((child, depth + 1))
        elif isinstance(item, list):
            deepest = max(deepest, depth)
            pending.extend((child, depth + 1) for child in item)
    if forbidden:
        return Excess("forbidden_key", 0, forbidden)
    if deepest > limits.max_depth:
        return Excess("max_depth", limits.max_depth, deepest)
    if longest > limits.max_string:
        return Excess("max_string", limits.max_string, longest)
    return None


def component_excess(limits: A2UILimits, components: Sequence[Any]) -> Excess | None:
    """Find a limit that the components of one message are over: their number, and how deep they nest."""
    if len(components) > limits.max_components:
        return Excess("max_components", limits.max_components, len(components))
    if len(components) > limits.max_component_depth:  # a chain is no longer than the list
        depth = _component_depth(components)
        if depth > limits.max_component_depth:
            return Excess("max_component_depth", limits.max_component_depth, depth)
    return None


# Where the components of the basic catalogs, v0.8 to v1.0, name the components below them.
_REFERENCES: Final = frozenset(
    {"child", "children", "explicitList", "componentId", "entryPointChild", "contentChild", "trigger", "content"}
)


def _component_depth(components: Sequence[Any]) -> int:
    """Return the longest chain of references among components. A reference back into its own chain ends it."""
    below = {
        component["id"]: component
        for component in components
        if isinstance(component, dict) and isinstance(component.get("id"), str)
    }
    children = {id_: [name for name in _names_in(component) if name in below] for id_, component in below.items()}
    depths: dict[str, int] = {}
    on_path: set[str] = set()
    for start in below:
        stack = [start]
        while stack:
            name = stack[-1]
            if name in depths:
                stack.pop()
            elif name not in on_path:
                on_path.add(name)
                stack.extend(child for child in children[name] if child not in depths and child not in on_path)
            else:
                stack.pop()
                on_path.discard(name)
                depths[name] = 1 + max((depths.get(child, 0) for child in children[name]), default=0)
    return max(depths.values(), default=0)


def _names_in(component: object) -> Iterable[str]:
    """Give the strings that stand where a component is referred to."""
    pending: list[tuple[Any, bool]] = [(component, False)]
    while pending:
        item, refers = pending.pop()
        if isinstance(item, str):
            if refers:
                yield item
        elif isinstance(item, dict):
            pending.extend((child, key in _REFERENCES) for key, child in item.items())
        elif isinstance(item, list):
            pending.extend((child, refers) for child in item)
