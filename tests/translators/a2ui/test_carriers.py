"""A carrier of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from ag_ui.core import CustomEvent, StateSnapshotEvent

from agui_pipeline.translators import AnyEvent, decode_event
from agui_pipeline.translators.a2ui import A2UIContext
from tests.translators.a2ui.streams import (
    BEGIN,
    Wire,
    chunk,
    components,
    content,
    create,
    end,
    lines,
    message,
    raw,
    run_of,
    start,
    translate,
)


def test_it_gets_each_message_with_its_context() -> None:
    calls: list[tuple[Any, A2UIContext]] = []

    def carrier(sent: Any, context: A2UIContext) -> list[AnyEvent]:
        calls.append((sent, context))
        return []

    events = run_of(start(subagentRunId="sub"), content(lines(BEGIN, create()), timestamp=3), end())
    translate(events, carrier=carrier, thread_id="thread")
    common = {"message_id": "m", "thread_id": "thread", "run_id": "r", "subagent_run_id": "sub", "timestamp": 3}
    assert calls == [
        (BEGIN, A2UIContext(kind="beginRendering", version="v0.8", surface_id="s", **common)),  # type: ignore[arg-type]
        (create(), A2UIContext(kind="createSurface", version="v0.9", surface_id="s", **common)),  # type: ignore[arg-type]
    ]
    with pytest.raises(FrozenInstanceError):
        calls[0][1].version = "v1.0"  # type: ignore[misc]


def event_of(sent: Any, context: A2UIContext) -> AnyEvent:
    return CustomEvent(name=f"ui.{context.surface_id}", value=sent)


def list_of(sent: Any, _context: A2UIContext) -> list[AnyEvent]:
    return [decode_event({"type": "CUSTOM", "name": "ui.s", "value": sent})]


def iterator_of(sent: Any, context: A2UIContext) -> Iterator[AnyEvent]:
    yield event_of(sent, context)


@pytest.mark.parametrize("carrier", [event_of, list_of, iterator_of])
def test_it_gives_an_event_or_several(carrier: Any) -> None:
    result = translate(run_of(*message(lines(BEGIN) + "Hi")), carrier=carrier)
    assert result.events == run_of({"type": "CUSTOM", "name": "ui.s", "value": BEGIN}, raw("Hi"))


def test_or_several_kinds() -> None:
    def carrier(sent: Any, _context: A2UIContext) -> tuple[AnyEvent, ...]:
        return StateSnapshotEvent(snapshot=sent), CustomEvent(name="n", value=1)

    events = run_of(chunk("Hi\n" + lines(BEGIN), "m"), chunk("there"))
    assert [event["type"] for event in translate(events, carrier=carrier, on_invalid="text").events[1:-1]] == [
        "TEXT_MESSAGE_CHUNK",
        "STATE_SNAPSHOT",
        "CUSTOM",
        "TEXT_MESSAGE_CHUNK",
    ]
    # Both of them end the client's chunk stream.
    assert translate(events, carrier=carrier, on_invalid="text").events[-2] == chunk("there", "m")


@pytest.mark.parametrize("returned", [None, "CUSTOM", b"x", 5, {"type": "CUSTOM"}, [{"type": "CUSTOM"}], [None]])
def test_what_is_no_event_is_an_error_that_says_so(returned: Any) -> None:
    with pytest.raises(TypeError, match="must return an event or an iterable of events"):
        translate(run_of(*message(lines(BEGIN))), carrier=lambda _sent, _context: returned)


def test_what_it_raises_leaves_as_itself() -> None:
    def carrier(_sent: Any, _context: A2UIContext) -> list[AnyEvent]:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        translate(run_of(*message(lines(BEGIN))), carrier=carrier)


def test_it_gets_valid_messages_only() -> None:
    seen: list[Any] = []

    def carrier(value: Any, _context: A2UIContext) -> list[AnyEvent]:
        seen.append(value)
        return []

    translate(run_of(*message('{"a":1}\n' + lines(components()) + '{"version":"v0.9"}\n')), carrier=carrier)
    assert seen == [components()]


def test_unless_nothing_is_checked() -> None:
    seen: list[Wire] = []

    def carrier(value: Any, context: A2UIContext) -> list[AnyEvent]:
        seen.append({"value": value, "kind": context.kind, "version": context.version})
        return []

    translate(run_of(*message('{"a":1}\n{"version":"v0.9"}\n')), carrier=carrier, validate="off")
    assert seen == [
        {"value": {"a": 1}, "kind": None, "version": "v0.8"},
        {"value": {"version": "v0.9"}, "kind": None, "version": "v0.9"},
    ]


def test_the_run_id_is_that_of_the_run() -> None:
    ids: list[str] = []

    def carrier(_sent: Any, context: A2UIContext) -> list[AnyEvent]:
        ids.append(context.run_id)
        return []

    second = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r2"}, *message(lines(BEGIN))]
    translate([*message(lines(BEGIN)), *run_of(*message(lines(BEGIN))), *second], carrier=carrier)
    assert ids == ["r", "r", "r2"]
