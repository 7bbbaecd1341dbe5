"""The three dialects' tables: which fields the data of each type of frame has, and what each field holds.

The tables serve both directions, and the docs are made of them. They do not know how frames are put together
(`_writing.py`) or taken apart (`_parsing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from agui_pipeline.translators.superagent._meanings import (
    AgentSwitch,
    Code,
    Done,
    Error,
    Interrupt,
    Meaning,
    Progress,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

ENVELOPED: Final = "superagent"
FLAT: Final = "superagent-flat"
COMPATIBLE: Final = "superagent-compatible"

Fields: TypeAlias = Mapping[str, Mapping[str, str]]
"""By type of frame: each field of its data and the attribute of the meaning that it holds."""

MEANINGS: Final[Mapping[str, type[Meaning]]] = {
    meaning.kind: meaning
    for meaning in (Text, Thinking, ToolCall, ToolResult, Code, Interrupt, Error, Done, Progress, AgentSwitch)
}
"""What a frame means, by its type."""

WITH_WHOLE: Final[Fields] = {
    "text": {"content": "whole", "delta": "delta"},
    "thinking": {"content": "whole", "delta": "delta"},
    "tool_call": {"id": "id", "name": "name", "arguments": "arguments", "status": "status"},
    "tool_result": {"id": "id", "name": "name", "result": "text", "is_error": "is_error"},
    "code_block": {"language": "language", "code": "whole", "delta": "delta"},
    "interrupt": {"reason": "prompt", "fields": "fields"},
    "error": {"code": "code", "message": "message"},
    "done": {},
    "progress": {"agent_name": "agent", "step": "label", "total": "total", "current": "current"},
    "agent_switch": {"from_agent": "source", "to_agent": "target", "reason": "reason"},
}
"""The data of the enveloped dialect, and of the compatible one where that has any."""

INCREMENTAL: Final[Fields] = {
    "text": {"content": "delta"},
    "thinking": {"content": "delta"},
    "tool_call": {"name": "name", "input": "arguments"},
    "tool_result": {"name": "name", "output": "output", "error": "error"},
    "code_block": {"language": "language", "content": "delta"},
    "interrupt": {"reason": "reason", "prompt": "prompt"},
    "error": {"code": "code", "message": "message"},
    "done": {"usage": "usage"},
    "progress": {"step": "current", "total": "total", "label": "label"},
    "agent_switch": {"from": "source", "to": "target"},
}
"""The data of the flat dialect."""

DIALECTS: Final[Mapping[str, Fields]] = {ENVELOPED: WITH_WHOLE, FLAT: INCREMENTAL, COMPATIBLE: WITH_WHOLE}
"""The fields of each dialect, by its name."""

DONE_TOKEN: Final = "[DONE]"  # noqa: S105 - what ends a stream
"""The data of the compatible dialect's last frame."""
