"""What older clients do not show, and from which level on they do. All else must be as the 1.0.0 client has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final, NamedTuple

from tests.e2e.old_clients.endpoint import BARE, NEWEST, REFERENCE, Case, key
from tests.e2e.old_clients.harness import VERSIONS
from tests.e2e.old_clients.view import Content, View


def _without(**fields: Any) -> Callable[[View], View]:
    return lambda view: replace(view, **fields)


def _text(parts: Content) -> str:
    return parts if isinstance(parts, str) else "".join(part[1] for part in parts if part[0] == "text")


def _results_as_text(view: View) -> View:
    def told(content: Content) -> Content:
        return _text(content) if all(part[0] == "text" for part in content) else content

    return replace(view, results=[(id, told(content)) for id, content in view.results])


def _users_as_text(view: View) -> View:
    return replace(view, texts=[(role, _text(content)) for role, content in view.texts])


def _without_files(view: View) -> View:
    def without(content: Content) -> Content:
        return content if isinstance(content, str) else tuple(part for part in content if part[1] != "file")

    return replace(view, texts=[(role, without(content)) for role, content in view.texts])


def _without_activities(view: View) -> View:
    owners = {id: owner for id, owner in view.owners.items() if id != "p"}
    return replace(view, activities=[], owners=owners)


def _without_echo(view: View) -> View:
    texts = [(role, content) for role, content in view.texts if isinstance(content, str)]
    return replace(view, texts=texts, calls=[], results=[], reasoning=[], activities=[])


def _assistants(view: View) -> View:
    return replace(view, texts=[("assistant", content) for _, content in view.texts])


def _first_text(view: View) -> View:
    return replace(view, texts=view.texts[:1])


def _again(first: str, second: str) -> Callable[[View], View]:
    return _without(calls=[("c", "search", first), ("c", "search", second)])


def _split(view: View) -> View:
    (role, _), wait, *rest = view.texts
    owners = {**view.owners, **({"m~2": "s"} if "m" in view.owners else {})}
    return replace(view, texts=[(role, "Hel"), wait, (role, "lo"), *rest], owners=owners)


def _apart(view: View) -> View:
    return replace(view, owners={**view.owners, **({"c": "s"} if view.owners else {})})


class Loss(NamedTuple):
    """Something that is not shown.

    Attributes:
        what: In words.
        lose: Takes it out of what 1.0.0 shows.
        level: The last level that loses it; None where no level does.
        client: The last client that loses it, whatever its level; None where none does.
        runs: In which runs; empty for all.
        only: The only clients that lose it, at those levels; empty for all.
    """

    what: str
    lose: Callable[[View], View]
    level: str | None = None
    client: str | None = None
    runs: Sequence[str] = ()
    only: Sequence[str] = ()


ECHOED: Final = ("the input echoed", "media, thoughts and plans in the input echoed")
SNAPSHOTS: Final = ("media in a snapshot", "a file in a snapshot")
AGAIN: Final = "a call told again"
GOES_ON: Final = "a text that goes on later"
GOES_ON_BELOW: Final = "a subagent's text that goes on, and its call"

OLDER: Final = VERSIONS[:-1]

LOSSES: Final[Sequence[Loss]] = (
    Loss("metadata of messages and calls", _without(metadata={}), client="0.0.58"),
    Loss("which subagent a message is of", _without(owners={}), client="0.0.58"),
    Loss("a result's parts, but not their text", _results_as_text, level="0.0.59"),
    Loss(
        "files, whose old name 1.0.0 does not read",
        _without_files,
        level="0.0.59",
        runs=(SNAPSHOTS[1], ECHOED[1]),
        only=[NEWEST],
    ),
    Loss("that a call told again is the same", _again('{"q":1}', ""), client="0.0.57", runs=[AGAIN]),
    Loss("that its arguments are, too", _again('{"q":', "1}"), client="0.0.36", runs=[AGAIN]),
    Loss("a run after an error", _first_text, level="0.0.58", runs=["a run after an error"]),
    Loss("reasoning, but for 1.0.0, which reads THINKING_*", _without(reasoning=[]), level="0.0.44", only=OLDER),
    Loss("reasoning in messages", _without(reasoning=[]), level="0.0.44", runs=(SNAPSHOTS[0], ECHOED[1])),
    Loss("which message a call is of", _apart, level="0.0.51", runs=[GOES_ON_BELOW]),
    Loss("that a text goes on", _split, level="0.0.43", runs=[GOES_ON, GOES_ON_BELOW]),
    Loss("what an input echoed holds", _without_echo, client="0.0.40", runs=ECHOED),
    Loss("activities", _without_activities, level="0.0.40"),
    Loss("what a user sent beside text", _users_as_text, level="0.0.40"),
    Loss("reasoning", _without(reasoning=[]), level="0.0.36"),
    Loss("who said a text", _assistants, level="0.0.36", runs=["texts of others"]),
)


def expected(case: Case, bare: View) -> View:
    """Return what a client must show, where 1.0.0 shows a view of the bare run."""

    def applies(loss: Loss) -> bool:
        if (loss.runs and case.run not in loss.runs) or (loss.only and case.client not in loss.only):
            return False
        at_level = case.level not in (BARE, REFERENCE) and loss.level is not None and key(case.level) <= key(loss.level)
        return at_level or (loss.client is not None and key(case.client) <= key(loss.client))

    return reduce(lambda view, loss: loss.lose(view), filter(applies, LOSSES), bare)
