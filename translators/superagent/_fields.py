"""Fields of events that nobody has validated. Knows that anything may stand where a string should."""

from __future__ import annotations

from typing import Any

from agui_pipeline.translators._owners import field_of


def text_of(thing: Any, name: str, wire_name: str) -> str:
    """Return a field of an event, or of a part of one, that must be a string; empty where it is none."""
    value = field_of(thing, name, wire_name)
    return value if isinstance(value, str) else ""
