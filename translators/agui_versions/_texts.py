"""Text and tool results, as old clients want them: no empty deltas, one role, results as text."""

from __future__ import annotations

from collections.abc import Iterable

from agui_pipeline.translators._content_parts import text_of
from agui_pipeline.translators._events import AnyEvent, replace
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.agui_versions._rule import Setting, wire


def without_empty_deltas(event: AnyEvent, _setting: Setting) -> Iterable[AnyEvent]:
    """Leave out content that is empty: nothing is lost, and the client would give up on it."""
    return () if field_of(event, "delta", "delta") == "" else (event,)


def only_assistants(event: AnyEvent, setting: Setting) -> Iterable[AnyEvent]:
    """Make the assistant say every text, and say so: the client demands the role."""
    role = field_of(event, "role", "role")
    if role == "assistant":
        return (event,)
    if role is not None:
        setting.losses.note("legacy.role", event.type)
    return (replace(event, role="assistant"),)


def results_as_text(event: AnyEvent, setting: Setting) -> Iterable[AnyEvent]:
    """Make text of a tool result's parts."""
    if isinstance(field_of(event, "content", "content"), str):
        return (event,)
    view = wire(event, setting.losses)
    content = view.content
    if not isinstance(content, list):
        return (event,)
    setting.losses.note("legacy.result-parts", event.type)
    return (replace(view, content=text_of(content)),)
