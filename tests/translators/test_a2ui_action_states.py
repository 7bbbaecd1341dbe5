"""The states of an action in the stream that answers it: which, where, and never a success that was none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from agui_pipeline.adapters.testing import assert_valid_stream
from agui_pipeline.translators import AnyEvent, decode_event, run_input
from agui_pipeline.translators._a2ui_action_states import NAME, ActionStates
from agui_pipeline.translators._guard import GuardTranslator
from agui_pipeline.translators.a2ui_client import parse_client_message
from tests.streams import make_stream, seeded

STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
ERROR = {"type": "RUN_ERROR", "message": "no"}
CHUNK = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "a"}
MORE = {"type": "TEXT_MESSAGE_CHUNK", "delta": "b"}


def outcome(type: str, **fields: Any) -> dict[str, Any]:
    return {**FINISHED, "outcome": {"type": type, **fields}}


def states_of(component: str | None = "submit") -> ActionStates:
    action = {"name": "n", "surfaceId": "s", **({} if component is None else {"sourceComponentId": component})}
    message = parse_client_message(run_input(forwarded_props={"a2uiAction": {"userAction": action}}))
    assert message is not None
    return ActionStates(message)


def own(status: Any, *, surface: str = "s", component: str = "submit") -> dict[str, Any]:
    """Return an event of the agent's own."""
    value = {"surfaceId": surface, "interactionDisabled": False, "states": {component: {"status": status}}}
    return {"type": "CUSTOM", "name": "a2ui.action_state", "value": value}


def told(events: Iterable[AnyEvent]) -> list[Any]:
    """Return the types of events; of states what they say."""
    out: list[Any] = []
    for event in events:
        if event.type == "CUSTOM" and event.name == "a2ui.action_state":  # type: ignore[union-attr]
            value = event.value  # type: ignore[union-attr]
            assert value["surfaceId"] == "s"
            state = value["states"].get("submit")
            out.append(
                (state and state["status"], value["interactionDisabled"], bool(state and state.get("retryable")))
            )
        else:
            out.append(str.__str__(event.type))
    return out


def run(script: Sequence[dict[str, Any]], states: ActionStates | None = None) -> list[AnyEvent]:
    states = states or states_of()
    out: list[AnyEvent] = []
    for event in script:
        out.extend(states.feed(decode_event(event)))
    return [*out, *states.flush()]


PENDING = ("pending", True, False)
SUCCEEDED = ("succeeded", False, False)
FAILED = ("failed", False, True)
CANCELLED = ("cancelled", False, False)
WAITING = ("pending", False, False)


@pytest.mark.parametrize(
    ("terminal", "last"),
    [
        (FINISHED, SUCCEEDED),
        (outcome("success"), SUCCEEDED),
        (outcome("cancelled"), CANCELLED),
        (outcome("interrupt", interrupts=[{"id": "i", "reason": "r"}]), WAITING),
        (outcome("of the future"), FAILED),
        (ERROR, FAILED),
        ({**ERROR, "code": "cancelled"}, CANCELLED),
    ],
)
def test_pending_then_what_the_terminal_says(terminal: dict[str, Any], last: Any) -> None:
    events = run([STARTED, terminal])
    assert told(events) == ["RUN_STARTED", PENDING, last, terminal["type"]]
    assert_valid_stream(run([STARTED, FINISHED]))


def test_a_started_stream_that_just_ends_has_failed() -> None:
    assert told(run([STARTED, CHUNK])) == ["RUN_STARTED", PENDING, "TEXT_MESSAGE_CHUNK", FAILED]


@pytest.mark.parametrize(("error", "last"), [(ValueError("no"), FAILED), (asyncio.CancelledError(), CANCELLED)])
def test_an_exception_is_no_success_and_goes_on(error: BaseException, last: Any) -> None:
    states = states_of()
    for event in (STARTED, CHUNK):
        list(states.feed(decode_event(event)))
    events, raised = states.fail(error)
    assert (told(events), raised) == ([last], error)


def test_a_stream_of_chunks_is_not_broken() -> None:
    events = run([STARTED, CHUNK, MORE, MORE, FINISHED])
    assert told(events) == ["RUN_STARTED", PENDING, *["TEXT_MESSAGE_CHUNK"] * 3, SUCCEEDED, "RUN_FINISHED"]
    assert_valid_stream(events)


@pytest.mark.parametrize("first", [ERROR, FINISHED])
def test_nothing_is_told_where_no_run_was_started(first: dict[str, Any]) -> None:
    assert told(run([first])) == [first["type"]]  # a CUSTOM before RUN_STARTED, or behind RUN_ERROR, breaks the stream
    assert told(run([])) == []
    assert told(states_of().fail(ValueError())[0]) == []


def test_nothing_is_told_behind_a_terminal() -> None:
    late = run([STARTED, FINISHED, ERROR])
    assert told(late) == ["RUN_STARTED", PENDING, SUCCEEDED, "RUN_FINISHED", "RUN_ERROR"]
    again = run([STARTED, FINISHED, STARTED, FINISHED])
    assert told(again)[-3:] == ["RUN_FINISHED", "RUN_STARTED", "RUN_FINISHED"]


def test_it_is_told_once_that_it_is_pending() -> None:
    assert told(run([STARTED, STARTED, FINISHED])).count(PENDING) == 1


# The agent's own word.


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
@pytest.mark.parametrize("terminal", [FINISHED, ERROR])
def test_a_last_state_of_the_agents_own_stands(status: str, terminal: dict[str, Any]) -> None:
    assert told(run([STARTED, own(status), terminal])) == [
        "RUN_STARTED",
        PENDING,
        (status, False, False),
        terminal["type"],
    ]


def test_what_the_agent_says_is_still_going_on_has_not_succeeded() -> None:
    assert told(run([STARTED, own("pending"), FINISHED])) == ["RUN_STARTED", PENDING, WAITING, "RUN_FINISHED"]
    assert told(run([STARTED, own("pending"), ERROR]))[-2:] == [FAILED, "RUN_ERROR"]
    assert told(run([STARTED, own("pending")]))[-1] == FAILED


@pytest.mark.parametrize(
    "event",
    [
        own("succeeded", component="another"),
        {**own("succeeded"), "name": "another"},
        {**own("succeeded"), "value": None},
        {**own("succeeded"), "value": {"surfaceId": "s", "states": []}},
        {**own("succeeded"), "value": {"surfaceId": "s", "states": {"submit": "succeeded"}}},
        own(5),
    ],
)
def test_other_events_say_nothing_of_this_action(event: dict[str, Any]) -> None:
    states = states_of()
    out = list(states.feed(decode_event(STARTED)))
    (passed,) = states.feed(decode_event(event))
    assert passed.type == "CUSTOM"
    out += states.feed(decode_event(ERROR))
    assert told(out) == ["RUN_STARTED", PENDING, FAILED, "RUN_ERROR"]


def test_an_event_for_another_surface_is_not_ours() -> None:
    states = states_of()
    list(states.feed(decode_event(STARTED)))
    list(states.feed(decode_event(own("failed", surface="another"))))
    assert told(states.feed(decode_event(FINISHED))) == [SUCCEEDED, "RUN_FINISHED"]


def test_an_action_of_no_component_turns_the_surface_off_and_on() -> None:
    assert told(run([STARTED, FINISHED], states_of(None))) == [
        "RUN_STARTED",
        (None, True, False),
        (None, False, False),
        "RUN_FINISHED",
    ]


def test_a_retry_is_offered_only_where_something_failed() -> None:
    values = [event.value for event in run([STARTED, ERROR]) if event.type == "CUSTOM"]  # type: ignore[union-attr]
    assert values == [
        {"surfaceId": "s", "interactionDisabled": True, "states": {"submit": {"status": "pending"}}},
        {"surfaceId": "s", "interactionDisabled": False, "states": {"submit": {"status": "failed", "retryable": True}}},
    ]


# Any stream.


@pytest.mark.parametrize("seed", range(200))
def test_a_legal_stream_stays_legal(seed: int) -> None:
    choose = seeded(seed)
    guard = GuardTranslator("t", "r", None, lambda _: None)
    legal: list[Any] = [out for wire in make_stream(choose, malformed=False) for out in guard.feed(decode_event(wire))]
    legal += guard.flush()
    assert_valid_stream(legal)
    states = states_of()
    out = [told for event in legal for told in states.feed(event)]
    assert [*states.flush()] == []  # the guard has ended it
    assert_valid_stream(out)
    assert [event for event in out if event.type != "CUSTOM" or event.name != NAME] == legal  # type: ignore[union-attr]
