"""Interrupts as agents before 1.0 tell them, as the outcome and the answers of 1.0.

Knows LangGraph's convention: a CUSTOM event ``on_interrupt`` an interrupt, its value (a JSON string, as a rule) the
question, and an answer in ``forwardedProps.command.resume``, which names no interrupt. Does not remember which of them
are pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._events import AnyEvent, loads
from agui_pipeline.translators._owners import field_of, owner_of

CUSTOM_NAME: Final = "on_interrupt"
REASON: Final = "langgraph:interrupt"
"""The reason of an interrupt that gives none: the one that ag-ui-langgraph gives in its own outcomes."""
CANCELLED: Final = "__agui_cancelled__"
"""The key of what ag-ui-langgraph hands a graph whose interrupt the client cancelled: a resume has no word for that."""

_FIELDS: Final[Mapping[str, tuple[type, tuple[str, ...]]]] = {
    "reason": (str, ("reason",)),
    "message": (str, ("message",)),
    "toolCallId": (str, ("toolCallId", "tool_call_id")),
    "responseSchema": (Mapping, ("responseSchema", "response_schema")),
    "expiresAt": (str, ("expiresAt", "expires_at")),
}
"""The fields of an interrupt that a value may hold, each with its kind and its spellings there."""


class Interrupts:
    """The interrupts that one run told of in the old way.

    Args:
        new_id: Makes the id of an interrupt that has none.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._told: dict[str, dict[str, Any]] = {}

    def take(self, event: AnyEvent) -> None:
        """Remember what a CUSTOM event of the old convention says. Told again, an interrupt is still one."""
        value = _value_of(event)
        id = _id_of(event, value) or self._new_id()
        self._told[id] = {"id": id, **_question(event, value)}

    def outcome(self) -> dict[str, Any] | None:
        """Return the outcome of a run that ends with these interrupts, and forget them; None where there are none."""
        told, self._told = self._told, {}
        return {"type": "interrupt", "interrupts": list(told.values())} if told else None

    def forget(self) -> None:
        """Start afresh, with another run of the same stream."""
        self._told = {}


def _value_of(event: AnyEvent) -> Any:
    value = field_of(event, "value", "value")
    if isinstance(value, str):
        try:
            return loads(value.encode(errors="surrogatepass"))
        except ValueError:
            return value  # a question in plain words
    return value


def _id_of(event: AnyEvent, value: Any) -> str | None:
    """Return the id that an interrupt brings along: that of LangGraph's own interrupt, else one in its value."""
    raw = field_of(event, "raw_event", "rawEvent")  # that interrupt: JSON off the wire, an object in process
    given = (field_of(raw, "id", "id") if raw is not None else None, _first(value, ("id",), str))
    return next((id for id in given if isinstance(id, str) and id), None)


def _question(event: AnyEvent, value: Any) -> dict[str, Any]:
    """Return all but the id of an interrupt, as ag-ui-langgraph reads LangGraph's values."""
    found = {name: _first(value, spellings, kind) for name, (kind, spellings) in _FIELDS.items()}
    if isinstance(value, str):
        found["message"] = value
    tag = owner_of(event)
    if _first(value, ("id",), str) and found["reason"] is not None:  # an interrupt of 1.0, whole
        found["metadata"] = _first(value, ("metadata",), Mapping)
        found["subagentRunId"] = tag or _first(value, ("subagentRunId",), str)
    else:
        found["metadata"] = {"langgraph": {"raw": value}}
        found["subagentRunId"] = tag
    return {"reason": REASON} | {name: item for name, item in found.items() if item is not None}


def _first(value: Any, spellings: Iterable[str], kind: type) -> Any:
    """Return a field of an object that is of the kind it must be; None for none."""
    if not isinstance(value, Mapping):
        return None
    return next((value[key] for key in spellings if isinstance(value.get(key), kind)), None)


def with_command(
    input: RunAgentInput, note: Callable[[str, str], None], made: Sequence[Mapping[str, Any]] = ()
) -> RunAgentInput:
    """Say `resume` in the old way: ``forwardedProps.command.resume``.

    Args:
        input: The run's input. Left as it is.
        note: Is told what was said, or could not be, ``(code, words)``.
        made: The interrupts that the thread waits with, where they were made here of the old convention. An answer to
            them is said in the old way only (an agent that reads both lets `resume` win, and need not know these ids),
            and by id where there are several.

    Returns:
        The same object where there is nothing to say, or the client itself said it.
    """
    entries = field_of(input, "resume", "resume")
    if not entries:
        return input
    props = {} if input.forwarded_props is None else input.forwarded_props
    command = props.get("command") if isinstance(props, Mapping) else None
    command = {} if command is None else command
    if not isinstance(props, Mapping) or not isinstance(command, Mapping):
        note("resume-lost", "forwardedProps, or its command, is no object")
        return input
    if command.get("resume") is not None:
        return input
    answers = _answers(entries, note)
    ids = {one.get("id") for one in made}
    ours = bool(ids) and ids.issuperset(answers)
    by_id = len(answers) > 1 or (ours and len(ids) > 1)
    note("resume", f"{len(entries)} interrupts")
    resume = answers if by_id else next(iter(answers.values()))  # LangGraph's own form for several
    said: dict[str, Any] = {"forwarded_props": {**props, "command": {**command, "resume": resume}}}
    return input.model_copy(update=said | ({"resume": None} if ours else {}))


def _answers(entries: Iterable[Any], note: Callable[[str, str], None]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for entry in entries:
        id, payload = field_of(entry, "interrupt_id", "interruptId"), field_of(entry, "payload", "payload")
        if field_of(entry, "status", "status") == "cancelled":
            note("resume-cancelled", f"the graph gets an object with the key {CANCELLED}")
            answers[id] = {CANCELLED: True, "interrupt_id": id}
        else:
            answers[id] = True if payload is None else payload  # agents read null as no answer
    return answers
