"""Carriers: the AG-UI events that A2UI messages travel in. RAW, CUSTOM, or what a callable of the application makes.

Knows how one message becomes events. Does not know which values are messages (`_envelope.py`), nor the snapshots of
the activity carrier, which need the surfaces (`_activity.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeGuard

from ag_ui.core import BaseEvent, CustomEvent, RawEvent

from agui_pipeline.translators._events import AnyEvent, WireEvent, replace
from agui_pipeline.translators.a2ui._envelope import VERSIONS, Envelope


@dataclass(frozen=True, slots=True)
class A2UIContext:
    """Where an A2UI message was found, for a carrier of one's own.

    Attributes:
        kind: The message key, such as ``"surfaceUpdate"``; None with ``validate="off"``.
        version: ``"v0.8"``, ``"v0.9"``, ``"v0.9.1"`` or ``"v1.0"``.
        surface_id: The surface it is about, if any.
        message_id: The text message it stood in; None where that had no id, or it stood in a tool call.
        thread_id: The thread of the run.
        run_id: The run.
        subagent_run_id: The subagent whose text it was, if any.
        timestamp: Of the event that completed it, milliseconds; None where that had none.
        tool_call_id: The tool call whose arguments it stood in, if any.
    """

    kind: str | None
    version: str
    surface_id: str | None
    message_id: str | None
    thread_id: str
    run_id: str
    subagent_run_id: str | None
    timestamp: int | None
    tool_call_id: str | None = None


CarrierFunction: TypeAlias = Callable[[Mapping[str, Any], A2UIContext], AnyEvent | Iterable[AnyEvent]]
"""A carrier of one's own: takes a message, which it must not change, and gives the event or events that carry it."""

Carrier: TypeAlias = Callable[[Envelope, A2UIContext], Iterable[AnyEvent]]
"""What the translator calls for each message."""


class RawCarrier:
    """RAW events with a `source`, as tRPC-Agent-Go sends them. Also for what is no message.

    Args:
        source: The text of `source`; ``{version}`` stands for the version of the message.
    """

    def __init__(self, source: str) -> None:
        self._sources: Final = {version: source.replace("{version}", version) for version in VERSIONS}

    def __call__(self, envelope: Envelope, context: A2UIContext) -> Iterable[AnyEvent]:
        event = RawEvent(event=envelope.message, source=self._sources[envelope.version], timestamp=context.timestamp)
        return (attributed(event, context.subagent_run_id),)


class CustomCarrier:
    """CUSTOM events with one message each, as Agentdown reads them: one bad message of several would fail them all."""

    def __init__(self, name: str) -> None:
        self._name: Final = name

    def __call__(self, envelope: Envelope, context: A2UIContext) -> Iterable[AnyEvent]:
        event = CustomEvent(name=self._name, value=envelope.message, timestamp=context.timestamp)
        return (attributed(event, context.subagent_run_id),)


class FunctionCarrier:
    """What a callable of the application gives. Its exceptions leave the stage as themselves."""

    def __init__(self, function: CarrierFunction) -> None:
        self._function: Final = function

    def __call__(self, envelope: Envelope, context: A2UIContext) -> Iterable[AnyEvent]:
        made = self._function(envelope.message, context)
        if _is_event(made):  # first: an SDK model is iterable, too
            return (made,)
        if isinstance(made, Iterable) and not isinstance(made, str | bytes | Mapping):
            given = list(made)
            events = [event for event in given if _is_event(event)]
            if len(events) == len(given):
                return events
        raise TypeError(f"a carrier must return an event or an iterable of events; got {type(made).__name__}")


def _is_event(value: object) -> TypeGuard[AnyEvent]:
    return isinstance(value, BaseEvent | WireEvent) or isinstance(getattr(value, "type", None), str)


def attributed(event: BaseEvent, subagent_run_id: str | None) -> AnyEvent:
    """Return the event as one of a subagent's, where there is one."""
    # As an extra field on SDKs that have no subagents.
    return event if subagent_run_id is None else replace(event, subagent_run_id=subagent_run_id)
