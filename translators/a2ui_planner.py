"""What a model is told about A2UI: seven slots of text, in the order that tRPC-Agent-Go puts them into a prompt.

Knows the slots, their labels and the instructions, one a version. Does not know where the schemas come from
(`_a2ui_sdk.py`), nor where in a run's input the text goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators.a2ui import VERSIONS

__all__ = ["PLANNER_SLOTS", "default_instruction", "planner_text"]

PLANNER_SLOTS: Final[Mapping[str, str]] = {
    "instruction": "",
    "server_to_client_with_standard_catalog": "Server-to-client-with-standard-catalog payload schema: ",
    "client_to_server": "Client-to-server payload schema: ",
    "client_capabilities": "Client capabilities schema: ",
    "server_to_client": "Server-to-client payload schema: ",
    "standard_catalog": "Standard catalog definition: ",
    "catalog_description": "Catalog description schema: ",
}
"""What stands before each slot's text, by slot, in tRPC-Agent-Go's order."""

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "v0.8": ("beginRendering", "surfaceUpdate", "dataModelUpdate", "deleteSurface"),
    "v0.9": ("createSurface", "updateComponents", "updateDataModel", "deleteSurface"),
    "v1.0": (
        "createSurface",
        "updateComponents",
        "updateDataModel",
        "deleteSurface",
        "callRendererFunction",
        "agentFunctionResponse",
    ),
}


def default_instruction(version: str, *, prose: bool = False) -> str:
    """Return the rules of output for an A2UI version: those that `A2UIMiddleware`, and tRPC's translator, rely on.

    Args:
        version: The A2UI version.
        prose: Whether the model may also write to people, on lines between the messages, as
            ``A2UIMiddleware.chat()`` reads it. tRPC's translator does not.

    Raises:
        ConfigurationError: There is no such version.

    Example:
        >>> print(default_instruction("v0.9").splitlines()[1])
        1. Write JSON Lines: each message is one JSON object on a line of its own, and every line is one message.
    """
    if version not in VERSIONS:
        raise ConfigurationError(f"version={version!r}: must be one of {', '.join(map(repr, VERSIONS))}")
    keys = _KEYS["v0.9" if version == "v0.9.1" else version]
    if version == "v0.8":
        only = f"Each object has exactly one top-level key, and it is one of: {', '.join(keys)}."
    else:
        only = (
            f'Each object has "version": "{version}" and exactly one further top-level key, which is one of: '
            f"{', '.join(keys)}."
        )
    if prose:
        answer = (
            f"You answer in plain text and, where it helps, with a user interface, written as A2UI {version} messages."
        )
        lines = "each message is one JSON object on a line of its own; plain text stands on other lines."
        one = "A line that holds an object holds exactly one, complete, and nothing else: never a part of one."
        rest = "The user reads your plain text: no JSON in it, no code fences, nothing about these messages."
    else:
        answer = f"You answer with a user interface, written as A2UI {version} messages."
        lines = "each message is one JSON object on a line of its own, and every line is one message."
        one = "A line holds exactly one complete object: never two of them, never a part of one."
        rest = "Write nothing else: no Markdown, no code fences, no greeting, no explanation, no comments."
    return "\n".join(
        (
            f"{answer} These rules have no exceptions:",
            f"1. Write JSON Lines: {lines}",
            f"2. {one}",
            "3. Never spread an object over several lines or over several text messages.",
            "4. Each object is valid JSON by itself, with no need of the lines around it.",
            f"5. {only}",
            f"6. {rest}",
        )
    )


def planner_text(slots: Mapping[str, Any]) -> str:
    """Put the slots together: in order, each behind its label, with a blank line between; empty ones are left out.

    Args:
        slots: Text by slot; anything else is written as compact JSON.

    Example:
        >>> print(planner_text({"client_to_server": {"type": "object"}, "instruction": "Be brief."}))
        Be brief.
        <BLANKLINE>
        Client-to-server payload schema: {"type":"object"}
    """
    parts = []
    for slot, label in PLANNER_SLOTS.items():
        value = slots.get(slot, "")
        text = value if isinstance(value, str) else encode_json(value).decode()
        if text.strip():
            parts.append(label + text)
    return "\n\n".join(parts)
