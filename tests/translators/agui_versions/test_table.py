"""The table of rules: with all of them every old client has what 1.0 has; without one, some do not."""

from __future__ import annotations

from functools import cache

import pytest

from agui_pipeline.translators._verifier import problems_of
from agui_pipeline.translators.agui_versions import RULES
from agui_pipeline.translators.agui_versions._table import rules_for
from agui_pipeline.translators.agui_versions._version import FIRST, LAST, Version
from tests.translators.agui_versions.judge import client_after, differences, doubled, downgraded, framed
from tests.translators.agui_versions.old_client import PATCHES
from tests.translators.agui_versions.old_schemas import RefusedError
from tests.translators.agui_versions.samples import SLOPPY, STREAMS

ALL = STREAMS | SLOPPY


@cache
def sent(name: str, level: int, without: tuple[str, ...]) -> bytes:
    return downgraded(ALL[name], level, without=without)


def judged(name: str, level: int, patch: int, *, without: tuple[str, ...] = ()) -> list[str]:
    """Return what is wrong when a client reads a stream at a level; for a later one, what it refuses or has twice."""
    try:
        client = client_after(sent(name, level, without), patch)
    except RefusedError as exc:
        return [f"refused: {exc}"]
    return differences(ALL[name], client) if patch == level else doubled(client)


@pytest.mark.parametrize("name", STREAMS)
def test_the_streams_are_legal(name: str) -> None:
    assert problems_of([framed(event) for event in STREAMS[name]]) == []


@pytest.mark.parametrize("name", ALL)
def test_every_version_has_at_its_level_what_1_0_has(name: str) -> None:
    assert {patch: wrong for patch in PATCHES if (wrong := judged(name, patch, patch))} == {}


@pytest.mark.parametrize("name", ALL)
def test_a_level_is_accepted_by_every_later_version(name: str) -> None:
    pairs = [(level, patch) for level in PATCHES for patch in PATCHES if patch > level]
    assert {pair: wrong for pair in pairs if (wrong := judged(name, *pair))} == {}


def breaks(rule: str, level: int) -> bool:
    """Whether some client that reads a level has some stream wrong without a rule."""
    clients = (level, *(patch for patch in PATCHES if patch > level))
    return any(judged(name, level, patch, without=(rule,)) for name in ALL for patch in clients)


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_without_a_rule_its_clients_break(rule: str) -> None:
    (row,) = [row for row in RULES if row.name == rule]
    last = Version(0, 0, 42) if rule == "framing" else row.last  # later ones read what it puts right
    inside = [patch for patch in PATCHES if row.first.patch <= patch <= last.patch]
    assert breaks(rule, inside[0])
    assert breaks(rule, inside[-1])


def test_outside_of_its_span_a_rule_is_not_used() -> None:
    for rule in RULES:
        for patch in range(FIRST.patch, LAST.patch + 1):
            version = Version(0, 0, patch)
            assert (rule in rules_for(version)) == (rule.first <= version <= rule.last)
    assert rules_for(Version(1, 0, 0)) == []
