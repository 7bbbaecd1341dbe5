"""Answers to interrupts as clients before 1.0 give them: ``forwardedProps.command.resume``, without an id.

Knows where the id may be found: in ``command.interruptEvent``, which newer ones of those clients send along (the value
of the CUSTOM event that they were told by), else among the interrupts that the thread waits with. Does not know who
remembers those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ag_ui.core import ResumeEntry, RunAgentInput

from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._events import loads

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "legacy.resume": "the client answered an interrupt in the old way; the answer was put where 1.0 has it",
    "legacy.resume-guessed": "the client answered one of several interrupts without saying which: the last is meant",
    "legacy.resume-unknown": "the client answered an interrupt, and none is known: the answer was left as it is",
}
"""The diagnostics of requests of old clients, by code."""


def answered(
    input: RunAgentInput, pending: Callable[[], Sequence[Mapping[str, Any]]], sink: DiagnosticSink
) -> RunAgentInput:
    """Return an input that answers an interrupt as AG-UI 1.0 does, where it answers one in the old way.

    The answer's id is that of the value echoed in ``command.interruptEvent``, else that of the interrupt that is
    pending; of several, of the last: it is the one that those clients show. A payload that is JSON text is decoded, as
    agents of that time do. `command` loses what was understood, so that no agent resumes twice.

    Args:
        input: The run's input. Left as it is.
        pending: Returns the interrupts that the thread waits with, oldest first.
        sink: Gets diagnostics (codes ``legacy.resume*``).

    Returns:
        The same object where there is no such answer, or none that is understood.
    """
    props: Any = input.forwarded_props
    command = props.get("command") if isinstance(props, Mapping) else None
    if input.resume or not isinstance(command, Mapping) or command.get("resume") is None:
        return input
    known = [one for one in pending() if isinstance(one.get("id"), str)]
    id = _echoed(command.get("interruptEvent"), known)
    if id is None and not known:
        sink(Diagnostic("legacy.resume-unknown", DIAGNOSTICS["legacy.resume-unknown"]))
        return input
    if id is None:
        id = known[-1]["id"]
        if len(known) > 1:
            detail = {"count": len(known), "interruptId": id}
            sink(Diagnostic("legacy.resume-guessed", DIAGNOSTICS["legacy.resume-guessed"], detail=detail))
    sink(Diagnostic("legacy.resume", DIAGNOSTICS["legacy.resume"], detail={"interruptId": id}))
    entry = ResumeEntry(interrupt_id=id, status="resolved", payload=_decoded(command["resume"]))
    left = {name: value for name, value in command.items() if name not in ("resume", "interruptEvent")}
    props = {name: value for name, value in props.items() if name != "command"} | ({"command": left} if left else {})
    return input.model_copy(update={"resume": [entry], "forwarded_props": props})


def _echoed(value: Any, known: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the id of the interrupt that an echoed value is: a pending one, or a whole one, as we write them."""
    value = _decoded(value)
    if isinstance(value, Mapping) and "id" not in value and "value" in value:  # the whole CUSTOM event
        value = _decoded(value["value"])
    id = value.get("id") if isinstance(value, Mapping) else None
    if value is not None:
        for one in known:
            # An agent's own event holds the value that LangGraph interrupted with, which is not an interrupt.
            if one["id"] == id or value in (_raw(one), _decoded(_raw(one))):
                return str(one["id"])
    whole = isinstance(id, str) and isinstance(value.get("reason"), str)
    return id if whole and not known else None


def _raw(interrupt: Mapping[str, Any]) -> Any:
    """Return the value that an interrupt was made of, where its metadata say so, as ag-ui-langgraph's do."""
    metadata = interrupt.get("metadata")
    langgraph = metadata.get("langgraph") if isinstance(metadata, Mapping) else None
    return langgraph.get("raw") if isinstance(langgraph, Mapping) else None


def _decoded(value: Any) -> Any:
    """Return what a text of JSON means; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value.encode(errors="surrogatepass"))
    except (ValueError, RecursionError):
        return value
