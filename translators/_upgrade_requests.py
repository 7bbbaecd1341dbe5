"""Requests of clients of today, as agents before 1.0 take them.

Knows what their request models refused, whatever their age. What some of them took and others did not, stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._content_parts import text_of
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._events import loads
from agui_pipeline.translators._owners import field_of


def with_text_results(input: RunAgentInput, note: Callable[[str, str], None]) -> RunAgentInput:
    """Make text of the tool results that are made of parts, which 1.0 brought.

    Args:
        input: The run's input. Left as it is.
        note: Is told what was changed, ``(code, words)``.

    Returns:
        The same object where there are none.
    """
    messages = [_with_text(message) for message in input.messages]
    changed = sum(new is not old for new, old in zip(messages, input.messages, strict=True))
    if not changed:
        return input
    note("result-parts", f"{changed} results")
    return input.model_copy(update={"messages": messages})


def _with_text(message: Any) -> Any:
    content = field_of(message, "content", "content")
    if field_of(message, "role", "role") != "tool" or not isinstance(content, list | tuple):
        return message
    parts = loads(encode_json(list(content), lambda _: None))
    return message.model_copy(update={"content": text_of(parts)})
