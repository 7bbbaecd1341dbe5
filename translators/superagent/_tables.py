"""The tables of the docs, made of the code's own. Knows Markdown, and nothing that the code does not do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agui_pipeline.translators.superagent._dialects import COMPATIBLE, DIALECTS, DONE_TOKEN, ENVELOPED, FLAT
from agui_pipeline.translators.superagent._reading import READS

_HOLDS: Final[Mapping[str, str]] = {
    "agent": "the agent that reports it",
    "arguments": "the arguments, an object",
    "code": "a code",
    "current": "how far it is",
    "delta": "the new piece",
    "error": "what went wrong, left out where nothing did",
    "fields": "the form's fields",
    "id": "the call's id",
    "is_error": "whether the tool failed",
    "label": "the step's name",
    "language": "the first word behind the opening fence",
    "message": "a message for people",
    "name": "the tool's name",
    "output": "the result, any JSON",
    "prompt": "the question, for people",
    "reason": "why",
    "source": "the agent that had control",
    "status": "`calling`, `success` or `error`",
    "target": "the agent that gets it",
    "text": "the result as text",
    "total": "how much there is, 0 where unknown",
    "usage": "`{prompt_tokens, completion_tokens}`",
    "whole": "the whole so far",
}
"""What an attribute of a meaning holds, in words."""


def events() -> str:
    """Return the table of what becomes of each type of event."""
    lines = []
    for name, row in READS.items():
        frames = ", ".join(f"`{kind}`" for kind in row.gives) or ("lost" if row.lost else "")
        lines.append(f"| `{name}` | {frames} | {row.note} |")
    return "\n".join(["| event | frames | |", "| --- | --- | --- |", *lines, "| any other type | lost | |"])


def frames() -> str:
    """Return the table of each type of frame, its fields in each dialect."""
    lines = [
        f"| `{kind}` | {_data(ENVELOPED, kind)} | {_data(FLAT, kind)} | {_compatible(kind)} |"
        for kind in DIALECTS[ENVELOPED]
    ]
    head = [f"| frame | `{ENVELOPED}`, in `data` | `{FLAT}` | `{COMPATIBLE}` |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *lines])


def _data(dialect: str, kind: str) -> str:
    fields = DIALECTS[dialect][kind]
    return "; ".join(f"`{name}`: {_HOLDS[source]}" for name, source in fields.items()) or "`null`"


def _compatible(kind: str) -> str:
    return {
        "text": "the piece itself, no JSON",
        "code_block": "stays in the text",
        "done": f"`{DONE_TOKEN}`",
    }.get(kind, "as in the first column")
