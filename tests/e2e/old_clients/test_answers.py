"""Interrupts and failures at older clients: what they answer reaches the agent, and what fails does not look fine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from ag_ui.core import RunAgentInput
from starlette.applications import Starlette
from starlette.routing import Route

from agui_pipeline.adapters.starlette import agent_endpoint
from agui_pipeline.middleware import GuardMiddleware
from agui_pipeline.middleware.legacy import LegacyDowngradeMiddleware
from agui_pipeline.translators import Event, decode_event
from tests.e2e.harness import serve
from tests.e2e.old_clients.endpoint import NEWEST, ignore, key
from tests.e2e.old_clients.events import text
from tests.e2e.old_clients.harness import VERSIONS, Shown, drive, install

OLDER: Final = VERSIONS[:-1]
STRUCTURED: Final = [version for version in OLDER if key(version) >= (0, 0, 54)]
INTERRUPT: Final = {"id": "i1", "reason": "confirm", "message": "Delete it?"}
ANSWER: Final = {"approved": True}


async def asks(input: RunAgentInput) -> AsyncIterator[Event]:
    """Ask a question, and in the next run say how it was answered."""
    ids = {"threadId": input.thread_id, "runId": input.run_id}
    yield decode_event({"type": "RUN_STARTED", **ids})
    if input.resume:
        (answer,) = input.resume
        told = {"interruptId": answer.interrupt_id, "status": answer.status, "payload": answer.payload}
        for event in text("m2", json.dumps(told)):
            yield decode_event(event)
        yield decode_event({"type": "RUN_FINISHED", **ids})
        return
    for event in text("m", "May I?"):
        yield decode_event(event)
    yield decode_event({"type": "RUN_FINISHED", **ids, "outcome": {"type": "interrupt", "interrupts": [INTERRUPT]}})


async def fails(input: RunAgentInput) -> AsyncIterator[Event]:
    """Fail in the middle of a text."""
    yield decode_event({"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id})
    for event in text("m", "half")[:2]:
        yield decode_event(event)
    raise ValueError


def shown_by(client: str, source: Any, cases: list[dict[str, Any]], **options: Any) -> list[Shown]:
    """Let a client run an agent through its own level, once a case."""
    legacy = LegacyDowngradeMiddleware(f"ag-ui/{client}", on_diagnostic=ignore, **options)
    endpoint = agent_endpoint(source, GuardMiddleware(on_diagnostic=ignore), legacy)
    with serve(Starlette(routes=[Route("/", endpoint, methods=["POST"])])) as base:
        return drive(client, [(base, case) for case in cases])


@pytest.fixture(scope="module", autouse=True)
def _clients() -> None:
    install()


@pytest.mark.parametrize("client", OLDER)
def test_an_answer_reaches_the_agent_with_the_id_of_what_it_answers(client: str) -> None:
    old, newer = {"resume": ANSWER}, {"resume": ANSWER, "interruptEvent": json.dumps(INTERRUPT)}
    cases: list[dict[str, Any]] = [{}, {"forwardedProps": {"command": old}}, {}, {"forwardedProps": {"command": newer}}]
    first, answered, again, answered_again = shown_by(client, asks, cases)
    for shown in (first, again):
        assert shown.error is None
        assert [json.loads(event["value"]) for event in shown.events if event["type"] == "CUSTOM"] == [INTERRUPT]
    for shown in (answered, answered_again):
        assert shown.error is None
        told = {"interruptId": "i1", "status": "resolved", "payload": ANSWER}
        assert json.loads(shown.messages[-1]["content"]) == told


@pytest.mark.parametrize("client", STRUCTURED)
def test_clients_that_know_the_outcome_may_have_it(client: str) -> None:
    answer = {"interruptId": "i1", "status": "resolved", "payload": ANSWER}
    first, answered = shown_by(client, asks, [{}, {"resume": [answer]}], interrupts="structured")
    assert (first.error, first.interrupts) == (None, [INTERRUPT])
    assert json.loads(answered.messages[-1]["content"]) == answer


@pytest.mark.parametrize("client", OLDER)
def test_a_run_that_fails_in_the_middle_is_told_to_have_failed(client: str) -> None:
    (shown,) = shown_by(client, fails, [{}])
    assert shown.error is None
    assert [event["type"] for event in shown.events][-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert [message["content"] for message in shown.messages] == ["half"]


def test_the_newest_client_is_left_alone() -> None:
    legacy = LegacyDowngradeMiddleware("ag-ui/0.0.30", on_diagnostic=ignore)
    with serve(Starlette(routes=[Route("/", agent_endpoint(asks, legacy), methods=["POST"])])) as base:
        (shown,) = drive(NEWEST, [(base, {})])
    assert (shown.error, shown.interrupts) == (None, [INTERRUPT])
    assert "CUSTOM" not in [event["type"] for event in shown.events]
