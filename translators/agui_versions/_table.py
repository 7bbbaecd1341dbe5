"""The rules of a downgrade, in order, and which clients each is for: measured on every published version.

Each holds for the versions `first` to `last`. Without it a client in its span gives up on a stream, or shows another
one; in front of its span it is not needed, or another rule does more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from agui_pipeline.translators._events import AnyEvent
from agui_pipeline.translators.agui_versions import _messages as messages
from agui_pipeline.translators.agui_versions._carried import Carried
from agui_pipeline.translators.agui_versions._chunks import ExpandedChunks
from agui_pipeline.translators.agui_versions._customs import (
    ACTIVITY,
    ENCRYPTED,
    REASONING,
    SUBAGENT,
    THINKING,
    Unknown,
    custom,
)
from agui_pipeline.translators.agui_versions._framing import plain_frame
from agui_pipeline.translators.agui_versions._ids import Parents, TextIds
from agui_pipeline.translators.agui_versions._late_results import TYPES as LATE_RESULTS
from agui_pipeline.translators.agui_versions._late_results import LateResults
from agui_pipeline.translators.agui_versions._nulls import without_nulls
from agui_pipeline.translators.agui_versions._outcome import Outcomes
from agui_pipeline.translators.agui_versions._retired import Retired
from agui_pipeline.translators.agui_versions._rule import BOUNDS, Plain, Rule, Setting
from agui_pipeline.translators.agui_versions._runs import SHOWS, OneRun, ShowsSomething, StopsAtError
from agui_pipeline.translators.agui_versions._serial import Serialised
from agui_pipeline.translators.agui_versions._steps import Steps
from agui_pipeline.translators.agui_versions._texts import only_assistants, results_as_text, without_empty_deltas
from agui_pipeline.translators.agui_versions._thinking import Thinking
from agui_pipeline.translators.agui_versions._version import FIRST, LAST, Version

Make: TypeAlias = Callable[[Setting], Rule]


class LevelRule(NamedTuple):
    """A row of the table.

    Attributes:
        name: Its name.
        first: The oldest version that it is for.
        last: The latest.
        make: Makes the rule for one run.
        types: The types of events that it must see, an empty one for all that no version has; None for all.
        text: What it does, for people.
    """

    name: str
    first: Version
    last: Version
    make: Make
    types: frozenset[str] | None
    text: str


def _plain(function: Callable[[AnyEvent, Setting], Iterable[AnyEvent]]) -> Make:
    return partial(Plain, function)


def _v(patch: int) -> Version:
    return Version(0, 0, patch)


_UNKNOWN: Final = frozenset({""})
_TEXTS: Final = frozenset({"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"})
_WITH_MESSAGES: Final = frozenset({"MESSAGES_SNAPSHOT", "RUN_STARTED"})
_APPENDS: Final = frozenset(
    {
        *("TEXT_MESSAGE_START", "TOOL_CALL_START", "TOOL_CALL_RESULT", "ACTIVITY_SNAPSHOT", "RUN_STARTED"),
        *("MESSAGES_SNAPSHOT", "REASONING_MESSAGE_START", "THINKING_TEXT_MESSAGE_START"),
    }
)
"""What puts messages into the client's list."""

RULES: Final[Sequence[LevelRule]] = (
    LevelRule("nulls", FIRST, LAST, _plain(without_nulls), None, "null in an optional field: the field goes"),
    LevelRule(
        "chunks",
        FIRST,
        LAST,
        ExpandedChunks,
        None,
        "`*_CHUNK` become START, CONTENT or ARGS, and END; a pending stream a subagent",
    ),
    LevelRule(
        "subagents",
        FIRST,
        _v(58),
        _plain(custom("legacy.subagent")),
        SUBAGENT,
        "`SUBAGENT_*` become CUSTOM (name: the type, value: the rest)",
    ),
    LevelRule("activities", FIRST, _v(40), _plain(custom("legacy.activity")), ACTIVITY, "`ACTIVITY_*` become CUSTOM"),
    LevelRule(
        "reasoning",
        FIRST,
        _v(36),
        _plain(custom("legacy.reasoning")),
        REASONING | THINKING,
        "`REASONING_*` and `THINKING_*` become CUSTOM",
    ),
    LevelRule(
        "thinking",
        _v(37),
        _v(44),
        Thinking,
        REASONING | THINKING | BOUNDS,
        "`REASONING_*` become `THINKING_*`: one span and one message at a time, ended before the run is",
    ),
    LevelRule(
        "encrypted reasoning",
        FIRST,
        _v(44),
        _plain(custom("legacy.reasoning")),
        ENCRYPTED,
        "`REASONING_ENCRYPTED_VALUE` becomes CUSTOM",
    ),
    LevelRule(
        "retired thinking",
        _v(45),
        LAST,
        Retired,
        THINKING | BOUNDS,
        "`THINKING_*` become `REASONING_*`, as in 1.0",
    ),
    LevelRule("unknown types", FIRST, LAST, Unknown, _UNKNOWN | BOUNDS, "types that no version has become CUSTOM"),
    LevelRule(
        "empty deltas",
        FIRST,
        _v(49),
        _plain(without_empty_deltas),
        frozenset({"TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "THINKING_TEXT_MESSAGE_CONTENT"}),
        "empty content of texts and reasoning goes",
    ),
    LevelRule(
        "text role",
        FIRST,
        _v(36),
        _plain(only_assistants),
        frozenset({"TEXT_MESSAGE_START"}),
        "every text is the assistant's",
    ),
    LevelRule(
        "tool results",
        FIRST,
        LAST,
        _plain(results_as_text),
        frozenset({"TOOL_CALL_RESULT"}),
        "a result made of parts becomes their text, or their JSON",
    ),
    LevelRule(
        "unknown messages",
        FIRST,
        LAST,
        _plain(messages.in_messages(messages.without_strangers)),
        _WITH_MESSAGES,
        "messages: roles and parts that no version has go",
    ),
    LevelRule(
        "tool messages",
        FIRST,
        LAST,
        _plain(messages.in_messages(messages.tool_text)),
        _WITH_MESSAGES,
        "messages: a tool's parts become their text, or their JSON",
    ),
    LevelRule(
        "files",
        _v(41),
        LAST,
        _plain(messages.in_messages(messages.file_as_binary)),
        _WITH_MESSAGES,
        "messages: media in a file become a `binary` part with its id",
    ),
    LevelRule(
        "media",
        _v(41),
        _v(48),
        _plain(messages.in_messages(messages.media_as_binary)),
        _WITH_MESSAGES,
        "messages: other media become a `binary` part, too",
    ),
    LevelRule(
        "user messages",
        FIRST,
        _v(40),
        _plain(messages.in_messages(messages.user_text)),
        _WITH_MESSAGES,
        "messages: a user's parts become their text",
    ),
    LevelRule(
        "reasoning messages",
        FIRST,
        _v(44),
        _plain(messages.in_messages(messages.without_role("reasoning", "legacy.reasoning"))),
        _WITH_MESSAGES,
        "messages: reasoning goes",
    ),
    LevelRule(
        "activity messages",
        FIRST,
        _v(40),
        _plain(messages.in_messages(messages.without_role("activity", "legacy.activity"))),
        _WITH_MESSAGES,
        "messages: activities go",
    ),
    LevelRule(
        "input",
        FIRST,
        LAST,
        _plain(messages.input_complete),
        frozenset({"RUN_STARTED"}),
        "`RUN_STARTED.input` gets empty `tools` and `context` where it has none",
    ),
    LevelRule(
        "outcomes",
        FIRST,
        LAST,
        Outcomes,
        frozenset({"RUN_STARTED", "RUN_FINISHED", "CUSTOM"}),
        "an interrupt becomes CUSTOM `on_interrupt`, another outcome CUSTOM; `success` loses `pendingToolCallIds`",
    ),
    LevelRule("one at a time", FIRST, _v(36), Serialised, None, "while a text or a call is open, all else waits"),
    LevelRule(
        "nested steps",
        FIRST,
        FIRST,
        partial(Steps, same=lambda _: None),
        frozenset({"STEP_STARTED", "STEP_FINISHED"}) | BOUNDS,
        "a step inside of another one becomes CUSTOM",
    ),
    LevelRule(
        "steps of a name",
        _v(31),
        _v(58),
        partial(Steps, same=lambda name: name),
        frozenset({"STEP_STARTED", "STEP_FINISHED"}) | BOUNDS,
        "a step inside of another one's step of that name becomes CUSTOM",
    ),
    LevelRule("end at error", FIRST, _v(58), StopsAtError, None, "what follows RUN_ERROR goes"),
    LevelRule("one run", FIRST, _v(36), OneRun, BOUNDS, "the runs of a stream are joined to one"),
    LevelRule(
        "carried activities",
        _v(41),
        _v(45),
        partial(Carried, role="activity"),
        _APPENDS | {"ACTIVITY_DELTA"},
        "snapshots of messages hold the run's activities, which the client would forget",
    ),
    LevelRule(
        "carried reasoning",
        _v(45),
        _v(49),
        partial(Carried, role="reasoning"),
        _APPENDS | {"REASONING_MESSAGE_CONTENT", "ACTIVITY_DELTA"},
        "snapshots of messages hold the reasoning, which the client would forget",
    ),
    LevelRule(
        "text ids",
        FIRST,
        _v(43),
        TextIds,
        _TEXTS | _APPENDS,
        "a text with an id that is in use gets another one (`~2`)",
    ),
    LevelRule(
        "parents", FIRST, _v(51), Parents, _APPENDS, "`parentMessageId` goes unless it is new, or the last message's"
    ),
    LevelRule(
        "late results",
        FIRST,
        FIRST,
        LateResults,
        LATE_RESULTS,
        "a tool result that no message follows gets a MESSAGES_SNAPSHOT behind it: the client would forget it",
    ),
    LevelRule(
        "something shown",
        FIRST,
        FIRST,
        ShowsSomething,
        SHOWS | BOUNDS,
        "a run without any update gets a STATE_SNAPSHOT of the state that the client sent",
    ),
    LevelRule("framing", FIRST, _v(42), _plain(plain_frame), None, "every event is one line of `data: `"),
)
"""All rules, in the order in which events meet them."""


def rules_for(version: Version) -> list[LevelRule]:
    """Return the rules that a client of a version needs, in order."""
    return [rule for rule in RULES if rule.first <= version <= rule.last]


def markdown() -> str:
    """Return the table as a part of the documentation."""
    lines = ["| rule | for clients | what it does |", "| --- | --- | --- |"]
    lines += [f"| {rule.name} | {_span(rule)} | {rule.text} |" for rule in RULES]
    return "\n".join(lines)


def _span(rule: LevelRule) -> str:
    if rule.first == rule.last:
        return str(rule.first)
    return f"≤ {rule.last}" if rule.first == FIRST else f"{rule.first} to {rule.last}"
