"""The answers of old clients to interrupts, and what threads wait with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import RunAgentInput

from agui_pipeline.translators import ConfigurationError, Diagnostic, parse_input, run_input
from agui_pipeline.translators.agui_versions import PendingInterrupts, PendingStore, answered

INTERRUPT = {"id": "i", "reason": "approval", "message": "May I?"}
OTHER = {"id": "j", "reason": "approval"}


def asked(**command: Any) -> RunAgentInput:
    """Return what a client before 1.0 sends."""
    return parse_input({"threadId": "t", "messages": [], "forwardedProps": {"a": 1, "command": command}})


def answer(input: RunAgentInput, *pending: Any) -> tuple[Any, list[str]]:
    said: list[Diagnostic] = []
    out = answered(input, lambda: pending, said.append)
    if out is input:
        return None, [one.code for one in said]
    (entry,) = out.resume or []
    assert entry.status == "resolved"
    return (entry.interrupt_id, entry.payload), [one.code for one in said]


ECHOES: dict[str, Any] = {
    "the text of the event": json.dumps(INTERRUPT),
    "its value, decoded": INTERRUPT,
    "the event": {"name": "on_interrupt", "value": json.dumps(INTERRUPT)},
    "the event, decoded": {"name": "on_interrupt", "value": INTERRUPT},
}


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("pending", [(), (INTERRUPT,), (INTERRUPT, OTHER)])
def test_the_echoed_interrupt_is_the_one_that_is_answered(echo: str, pending: tuple[Any, ...]) -> None:
    assert answer(asked(resume="yes", interruptEvent=ECHOES[echo]), *pending) == (("i", "yes"), ["legacy.resume"])


@pytest.mark.parametrize(
    "echo", [None, "May I?", "[1]", {"id": "order-7"}, {"id": 7, "reason": "r"}, [], {"value": "x"}]
)
def test_without_a_known_id_the_pending_interrupt_is_meant(echo: Any) -> None:
    assert answer(asked(resume="yes", interruptEvent=echo), INTERRUPT) == (("i", "yes"), ["legacy.resume"])
    assert answer(asked(resume="yes", interruptEvent=echo)) == (None, ["legacy.resume-unknown"])


def test_an_id_of_an_agents_own_value_is_not_an_interrupts() -> None:
    echo = {"id": "order-7", "reason": "too expensive"}
    assert answer(asked(resume="yes", interruptEvent=echo), INTERRUPT) == (("i", "yes"), ["legacy.resume"])


def test_the_value_that_an_agent_interrupted_with_is_found_among_several() -> None:
    raws: list[Any] = ["May I?", {"question": "Which?", "id": "order-7"}, '{"a": 1}']
    pending = [{"id": str(raw), "reason": "r", "metadata": {"langgraph": {"raw": raw}}} for raw in raws]
    for raw, one in zip(raws, pending, strict=True):
        for echo in (raw, json.dumps(raw)):
            assert answer(asked(resume="yes", interruptEvent=echo), *pending, OTHER) == (
                (one["id"], "yes"),
                ["legacy.resume"],
            )


def test_of_several_the_last_is_meant_and_that_is_said() -> None:
    wanted = (("j", "yes"), ["legacy.resume-guessed", "legacy.resume"])
    assert answer(asked(resume="yes"), INTERRUPT, OTHER) == wanted


@pytest.mark.parametrize(
    ("sent", "payload"),
    [
        ("yes", "yes"),
        ('{"approved": true}', {"approved": True}),
        ({"approved": None}, {"approved": None}),
        ("true", True),
        (False, False),
        ("", ""),
        ("NaN", "NaN"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_a_payload_is_what_agents_of_that_time_made_of_it(sent: Any, payload: Any) -> None:
    assert answer(asked(resume=sent), INTERRUPT) == (("i", payload), ["legacy.resume"])


def test_what_was_understood_leaves_the_command_so_that_no_agent_resumes_twice() -> None:
    input = asked(resume="yes", interruptEvent="x", node="n")
    out = answered(input, lambda: [INTERRUPT], lambda _: None)
    assert out.forwarded_props == {"a": 1, "command": {"node": "n"}}
    assert answered(asked(resume="yes"), lambda: [INTERRUPT], lambda _: None).forwarded_props == {"a": 1}
    assert input.forwarded_props == {"a": 1, "command": {"resume": "yes", "interruptEvent": "x", "node": "n"}}
    assert input.resume is None


@pytest.mark.parametrize(
    "input",
    [
        run_input("hi"),
        asked(),
        asked(resume=None),
        run_input(forwardedProps={"command": "resume"}),
        run_input(forwardedProps=["command"]),
        run_input(forwardedProps={"command": {"resume": "old"}}, resume=[{"interruptId": "k", "status": "resolved"}]),
    ],
)
def test_other_inputs_are_handed_on_as_they_are(input: RunAgentInput) -> None:
    assert answer(input, INTERRUPT) == (None, [])


def test_pending_interrupts_are_those_that_the_last_run_left() -> None:
    pending = PendingInterrupts()
    assert isinstance(pending, PendingStore)
    assert pending.key(run_input(thread_id="t")) == "t"
    pending.remember("t", [INTERRUPT, OTHER])
    assert pending.open("t") == (INTERRUPT, OTHER)
    assert pending.take("t", ["i", "x"]) == (INTERRUPT,)
    assert pending.open("t") == (OTHER,)
    pending.remember("t", [INTERRUPT])
    assert pending.open("t") == (INTERRUPT,)
    pending.remember("t", [])
    assert pending.take("t") == ()
    assert pending.take("unknown") == ()


def test_they_are_bounded_and_the_least_used_thread_goes_first() -> None:
    pending = PendingInterrupts(max_threads=2)
    for name in "ab":
        pending.remember(name, [INTERRUPT])
    pending.open("a")
    pending.remember("c", [INTERRUPT])
    assert [bool(pending.open(name)) for name in "abc"] == [True, False, True]
    pending.remember("c", [{"id": str(number)} for number in range(1000)])
    assert len(pending.open("c")) == 100
    assert pending.open("c")[-1] == {"id": "999"}
    pending.remember("x" * 1_000_000, [INTERRUPT])
    assert max(map(len, pending._threads)) < 200
    assert pending.open("x" * 1_000_000) == (INTERRUPT,)
    pending.clear("x" * 1_000_000)
    assert pending.open("x" * 1_000_000) == ()
    pending.clear()
    assert pending.open("c") == ()


def test_a_key_that_is_no_string_is_said_to_be_none() -> None:
    with pytest.raises(ConfigurationError, match="must return a string; it returned NoneType"):
        PendingInterrupts(key=lambda _: None).key(run_input())  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    "options", [{"max_threads": 0}, {"max_threads": True}, {"max_threads": 1.5}, {"key": "thread"}]
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"PendingInterrupts\("):
        PendingInterrupts(**options)
