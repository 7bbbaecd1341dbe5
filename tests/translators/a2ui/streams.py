"""Streams for the A2UI tests: events in wire form, one run of them through a translator, and what came out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.translators import AnyEvent, Diagnostic, Event, decode_event, encode_event, typed

Wire = dict[str, Any]

STARTED: Wire = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED: Wire = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
FAILED: Wire = {"type": "RUN_ERROR", "message": "boom"}

BEGIN: Wire = {"beginRendering": {"surfaceId": "s", "root": "root"}}
UPDATE: Wire = {
    "surfaceUpdate": {
        "surfaceId": "s",
        "components": [{"id": "root", "component": {"Text": {"text": {"literalString": "hi"}}}}],
    }
}
DATA: Wire = {"dataModelUpdate": {"surfaceId": "s", "path": "/form", "contents": [{"key": "a", "valueString": ""}]}}
DELETE: Wire = {"deleteSurface": {"surfaceId": "s"}}

CATALOG = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"


def create(surface: str = "s", version: str = "v0.9", **fields: Any) -> Wire:
    return {"version": version, "createSurface": {"surfaceId": surface, "catalogId": CATALOG, **fields}}


def components(*ids: str, surface: str = "s", version: str = "v0.9", text: str = "hi") -> Wire:
    made = [{"id": id_, "component": "Text", "text": text} for id_ in ids or ("root",)]
    return {"version": version, "updateComponents": {"surfaceId": surface, "components": made}}


def data(value: Any, path: str = "/form", surface: str = "s", version: str = "v0.9") -> Wire:
    return {"version": version, "updateDataModel": {"surfaceId": surface, "path": path, "value": value}}


def delete(surface: str = "s", version: str | None = "v0.9") -> Wire:
    message: Wire = {} if version is None else {"version": version}
    return {**message, "deleteSurface": {"surfaceId": surface}}


def lines(*messages: Any) -> str:
    """Write messages as JSON Lines."""
    return "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages)


def start(id: str = "m", **fields: Any) -> Wire:
    return {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant", **fields}


def content(delta: Any, id: Any = "m", **fields: Any) -> Wire:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta, **fields}


def end(id: str = "m", **fields: Any) -> Wire:
    return {"type": "TEXT_MESSAGE_END", "messageId": id, **fields}


def chunk(delta: str | None = None, id: str | None = None, **fields: Any) -> Wire:
    named = {} if id is None else {"messageId": id}
    return {"type": "TEXT_MESSAGE_CHUNK", **named, **({} if delta is None else {"delta": delta}), **fields}


def message(*deltas: str, id: str = "m") -> list[Wire]:
    """Return a whole text message."""
    return [start(id), *(content(delta, id) for delta in deltas), end(id)]


def run_of(*events: Wire) -> list[Wire]:
    """Return a run around events."""
    return [STARTED, *events, FINISHED]


def raw(value: Any, source: str = "a2ui/v0.8", **fields: Any) -> Wire:
    return {"type": "RAW", "event": value, "source": source, **fields}


def custom(value: Any, **fields: Any) -> Wire:
    return {"type": "CUSTOM", "name": "a2ui", "value": value, **fields}


def activity(id: str, *operations: Wire, **fields: Any) -> Wire:
    return {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": id,
        "activityType": "a2ui-surface",
        "content": {"a2ui_operations": list(operations)},
        "replace": True,
        **fields,
    }


def run_input(thread_id: str = "t", run_id: str = "r") -> RunAgentInput:
    return RunAgentInput(
        thread_id=thread_id, run_id=run_id, state={}, messages=[], tools=[], context=[], forwarded_props={}
    )


def as_wire(event: AnyEvent) -> Wire:
    """Return an event as a client gets it."""
    decoded = json.loads(encode_event(event))
    assert isinstance(decoded, dict)
    return decoded


@dataclass
class Result:
    """What came out of one run."""

    events: list[Wire]
    objects: list[AnyEvent]
    diagnostics: list[Diagnostic]

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code for diagnostic in self.diagnostics]

    def detail(self, code: str) -> dict[str, Any]:
        """Return the detail of the one diagnostic with a code."""
        (found,) = (diagnostic for diagnostic in self.diagnostics if diagnostic.code == code)
        return dict(found.detail)


def translate(
    events: Iterable[Wire | AnyEvent],
    middleware: A2UIMiddleware | None = None,
    *,
    models: bool = False,
    flush: bool = True,
    thread_id: str = "t",
    **options: Any,
) -> Result:
    """Feed one run to a new translator, of a new middleware unless one is given.

    Args:
        events: In wire form, or ready events.
        middleware: One to take the translator of; its diagnostics are not seen.
        models: Whether events in wire form are fed as models of the SDK, else as `WireEvent`s.
        flush: Whether the stream ends.
        thread_id: Of the run's input.
        **options: Of the middleware.
    """
    diagnostics: list[Diagnostic] = []
    if middleware is None:
        middleware = A2UIMiddleware(**options, on_diagnostic=diagnostics.append)
    translator = middleware.translator(run_input(thread_id))
    objects: list[AnyEvent] = []
    for event in events:
        fed: Event = decode_event(event) if isinstance(event, dict) else event  # type: ignore[assignment]
        objects.extend(translator.feed(typed(fed) if models else fed))  # type: ignore[arg-type]
    if flush:
        objects.extend(translator.flush())
    return Result([as_wire(event) for event in objects], objects, diagnostics)


def cut(text: str, points: Sequence[int]) -> list[str]:
    """Cut a text at points, counted modulo its length."""
    at = sorted({point % (len(text) + 1) for point in points} | {0, len(text)})
    return [text[begin:stop] for begin, stop in pairwise(at)]


def joined(events: Iterable[Wire]) -> list[Wire]:
    """Join adjacent deltas of one message. A chunk without id continues the chunk before it."""
    result: list[Wire] = []
    open_id: str | None = None
    for event in events:
        if event["type"] == "TEXT_MESSAGE_CHUNK":
            open_id = event.get("messageId", open_id)
            event = {**event, "messageId": open_id}  # noqa: PLW2901
        last = result[-1] if result else {}
        same = (last.get("type"), last.get("messageId")) == (event["type"], event.get("messageId"))
        if same and event["type"] in {"TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"}:
            result[-1] = {**last, "delta": last["delta"] + event["delta"]}
        else:
            result.append(event)
    return result
