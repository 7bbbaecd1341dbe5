"""Each published version of the client shows through its level, and through every older one, what 1.0.0 shows bare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import pytest

from agui_pipeline.translators._event_shapes import EVENTS
from agui_pipeline.translators.agui_versions import RULES
from tests.e2e.old_clients.endpoint import NEWEST, REFERENCE, Case, key, show
from tests.e2e.old_clients.harness import VERSIONS, Shown, install
from tests.e2e.old_clients.losses import GOES_ON, GOES_ON_BELOW, expected
from tests.e2e.old_clients.runs import RUNS
from tests.e2e.old_clients.view import view_of

LEVELS: Final = VERSIONS[:-1]
BOUNDARIES: Final = sorted({str(bound) for rule in RULES for bound in (rule.first, rule.last)} - set(LEVELS), key=key)
"""Where the rules change, between the versions that are driven."""

Seen: TypeAlias = Mapping[Case, Shown]


def faults(case: Case, seen: Seen) -> Iterator[str]:
    """Give what a client does not show as it must."""
    shown = seen[case]
    if shown.error:
        yield f"{case.client} through {case.level} gives up: {shown.error}"
        return
    view, must = view_of(shown), expected(case, view_of(seen[Case(case.run, NEWEST, REFERENCE)]))
    for name in vars(must):
        got, wanted = getattr(view, name), getattr(must, name)
        if got != wanted:
            yield f"{case.client} through {case.level}: {name} is {got!r} and not {wanted!r}"
    ids = [message["id"] for message in shown.messages]
    if len(set(ids)) < len(ids):
        yield f"{case.client} through {case.level} has two messages of an id: {ids}"


# Where bare streams break.

ALL: Final = ("0.0.30", NEWEST)
BREAKS: Final[Mapping[str, tuple[str, str] | None]] = {
    "plain": ("0.0.30", "0.0.30"),
    "two calls and a text at once": ("0.0.30", "0.0.36"),
    "steps around and inside of everything": ("0.0.30", "0.0.36"),
    "reasoning": ("0.0.30", "0.0.44"),
    "chunks": ("0.0.30", "0.0.51"),
    "subagents": ("0.0.30", "0.0.58"),
    "chunks of subagents": ("0.0.30", "0.0.58"),
    "activities": ("0.0.30", "0.0.40"),
    "a snapshot of messages": None,
    "media in a snapshot": ("0.0.30", "0.0.59"),
    "a file in a snapshot": ("0.0.30", "0.0.59"),
    "a result made of parts": ("0.0.30", "0.0.59"),
    "a result that is a picture": ("0.0.30", "0.0.59"),
    "the input echoed": ("0.0.44", "0.0.59"),
    "media, thoughts and plans in the input echoed": ("0.0.44", "0.0.59"),
    "plans that a snapshot leaves out": ("0.0.30", "0.0.44"),
    "thoughts that a snapshot leaves out": ("0.0.30", "0.0.48"),
    "interrupts": ("0.0.30", "0.0.53"),
    "cancelled": ("0.0.58", "0.0.59"),
    "calls left to the client": ("0.0.58", "0.0.59"),
    "an outcome of the future": ("0.0.58", "0.0.59"),
    "an error": ("0.0.30", "0.0.44"),
    "an error at once": ("0.0.30", "0.0.30"),
    "a late error": None,
    "two runs": ("0.0.30", "0.0.36"),
    "a run after an error": ("0.0.30", "0.0.58"),
    "texts of others": ("0.0.30", "0.0.36"),
    "empty deltas": ("0.0.30", "0.0.48"),
    "nulls": ALL,
    "a type of the future": ("0.0.30", "0.0.59"),
    "a text that goes on later": ("0.0.30", "0.0.40"),
    GOES_ON_BELOW: ("0.0.30", "0.0.58"),
    "a call of an earlier message": ("0.0.30", "0.0.51"),
    "a call before its message": None,
    "a call told again": None,
    "a type of the future outside of the run": ("0.0.30", "0.0.59"),
    "thinking of an older agent": ("0.0.30", "0.0.59"),
    "messages of the future": ("0.0.30", "0.0.59"),
    "a step of a subagent with the name of another one": ("0.0.30", "0.0.58"),
    "frames without a space": ("0.0.30", "0.0.40"),
    "nothing to show": ("0.0.30", "0.0.30"),
    "metadata and what is new": None,
}
"""The first and the last client that give up on a bare run, or show another one; None where all do well."""


# What each rule is for.

NEEDED: Final[Sequence[tuple[str, str]]] = (
    ("nulls", "nulls"),
    ("chunks", "chunks of subagents"),
    ("subagents", "subagents"),
    ("activities", "activities"),
    ("reasoning", "reasoning"),
    ("thinking", "reasoning"),
    ("encrypted reasoning", "reasoning"),
    ("retired thinking", "thinking of an older agent"),
    ("unknown types", "a type of the future"),
    ("unknown types", "a type of the future outside of the run"),
    ("empty deltas", "empty deltas"),
    ("text role", "texts of others"),
    ("tool results", "a result made of parts"),
    ("unknown messages", "messages of the future"),
    ("tool messages", "media in a snapshot"),
    ("files", "a file in a snapshot"),
    ("media", "media in a snapshot"),
    ("user messages", "media in a snapshot"),
    ("reasoning messages", "media in a snapshot"),
    ("activity messages", "media in a snapshot"),
    ("input", "the input echoed"),
    ("outcomes", "cancelled"),
    ("outcomes", "interrupts"),
    ("one at a time", "two calls and a text at once"),
    ("nested steps", "steps around and inside of everything"),
    ("steps of a name", "a step of a subagent with the name of another one"),
    ("end at error", "a run after an error"),
    ("one run", "two runs"),
    ("carried activities", "plans that a snapshot leaves out"),
    ("carried reasoning", "thoughts that a snapshot leaves out"),
    ("text ids", GOES_ON),
    ("parents", "a call of an earlier message"),
    ("late results", "plain"),
    ("something shown", "nothing to show"),
    ("framing", "frames without a space"),
)
"""Each rule with a run that shows what it is for."""


def ablated(rule: str, run: str) -> Case:
    """Return the case that must fail without a rule: at the last client that the rule is for and that breaks bare."""
    row = next(row for row in RULES if row.name == rule)
    first, last = BREAKS[run] or (NEWEST, "0.0.0")
    breaks = [client for client in LEVELS if key(first) <= key(client) <= key(last)]
    client = max((client for client in breaks if row.first <= key(client) <= row.last), key=key)
    return Case(run, client, client, rule)


# The tests.


def through(levels: Sequence[str]) -> list[Case]:
    """Return every run at every client through each of some levels that is not newer than the client."""
    return [
        Case(run, client, level) for client in VERSIONS for level in levels if key(level) <= key(client) for run in RUNS
    ]


@pytest.fixture(scope="module")
def seen() -> Seen:
    """What all clients show, of all that the tests of this module ask for: a process a version."""
    install()
    bare = [Case(run, client) for client in VERSIONS for run in RUNS] + [Case(run, NEWEST, REFERENCE) for run in RUNS]
    return show([*bare, *through(LEVELS), *(ablated(*pair) for pair in NEEDED)])


def test_the_runs_hold_every_event_type() -> None:
    types = {event["type"] for run in RUNS.values() for event in run.events}
    assert {name for name in EVENTS if not name.startswith("THINKING")} <= types


@pytest.mark.parametrize("run", list(RUNS))
def test_1_0_0_takes_the_bare_run(run: str, seen: Seen) -> None:
    assert list(faults(Case(run, NEWEST, REFERENCE), seen)) == []


@pytest.mark.parametrize("run", list(RUNS))
def test_a_run_is_shown_through_the_clients_level_and_every_older_one(run: str, seen: Seen) -> None:
    cases = [case for case in seen if case.run == run and not case.without and case.level in LEVELS]
    assert [fault for case in cases for fault in faults(case, seen)] == []


@pytest.mark.parametrize("run", list(RUNS))
def test_a_bare_run_breaks_where_it_was_measured_to(run: str, seen: Seen) -> None:
    broken = [client for client in VERSIONS if list(faults(Case(run, client), seen))]
    first, last = BREAKS[run] or (NEWEST, "0.0.0")
    assert broken == [client for client in VERSIONS if key(first) <= key(client) <= key(last)]


@pytest.mark.parametrize(("rule", "run"), NEEDED)
def test_a_level_without_a_rule_breaks_at_the_last_client_that_it_is_for(rule: str, run: str, seen: Seen) -> None:
    case = ablated(rule, run)
    assert list(faults(case._replace(without=""), seen)) == []
    assert list(faults(case, seen)) != []


def test_each_rule_is_known_to_be_needed() -> None:
    assert [rule.name for rule in RULES] == list(dict.fromkeys(rule for rule, _ in NEEDED))


@pytest.mark.slow
def test_every_level_at_which_a_rule_begins_or_ends_serves_every_later_client() -> None:
    install()
    references = [Case(run, NEWEST, REFERENCE) for run in RUNS]
    seen = show([*references, *through(BOUNDARIES)])
    assert [fault for case in seen if case.level != REFERENCE for fault in faults(case, seen)] == []
