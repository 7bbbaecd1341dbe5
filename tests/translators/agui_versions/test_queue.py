"""One at a time: any interleaving becomes a sequence that holds the same, in bounded memory."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import decode_event
from agui_pipeline.translators.agui_versions import _serial
from agui_pipeline.translators.agui_versions._queue import MAX_HELD, OneAtATime
from agui_pipeline.translators.agui_versions._rule import Losses, Setting
from agui_pipeline.translators.agui_versions._version import FIRST
from tests.translators.agui_versions.old_schemas import Wire
from tests.translators.agui_versions.samples import STATE, call, text


def end_of(start: Any) -> Any:
    return decode_event({"type": "END", "key": start.key})


def made(kind: str, key: str) -> Any:
    return decode_event({"type": kind, "key": key})


def fed(queue: OneAtATime, script: list[tuple[str, str]]) -> list[tuple[str, str]]:
    out: list[Any] = []
    for kind, key in script:
        event = made(kind, key)
        match kind:
            case "START":
                out += queue.start(key, event)
            case "MORE":
                out += queue.more(key, event)
            case "END":
                out += queue.end(key, event)
            case _:
                out += queue.other(event)
    out += queue.drain()
    return [(event.type, event.key) for event in out]


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[str, str]]:
    open_: list[str] = []
    script: list[tuple[str, str]] = []
    for number in range(draw(st.integers(0, 30))):
        kind = draw(st.sampled_from(("START", "MORE", "END", "OTHER")))
        if kind == "START":
            free = [key for key in "abc" if key not in open_]
            if free:
                open_.append(draw(st.sampled_from(free)))
                script.append((kind, open_[-1]))
        elif kind == "OTHER":
            script.append((kind, str(number)))
        elif open_:
            key = draw(st.sampled_from(open_))
            script.append((kind, key))
            if kind == "END":
                open_.remove(key)
    return script


@given(scripts())
def test_parts_follow_each_other_and_nothing_is_lost(script: list[tuple[str, str]]) -> None:
    out = fed(OneAtATime(end_of), script)
    current = None
    for kind, key in out:
        if kind == "START":
            assert current is None
            current = key
        elif kind == "OTHER":
            assert current is None
        else:
            assert current == key
            current = None if kind == "END" else current
    assert current is None
    for name in "abc":
        mine = [one for one in script if one[1] == name]
        ended = mine + [("END", name)] * (mine.count(("START", name)) - mine.count(("END", name)))
        assert [one for one in out if one[1] == name] == ended
    starts = [one for one in script if one[0] in ("START", "OTHER")]
    assert [one for one in out if one[0] in ("START", "OTHER")] == starts


@given(scripts(), st.integers(1, 5))
def test_a_full_queue_loses_nothing_of_what_may_be_split(script: list[tuple[str, str]], limit: int) -> None:
    full: list[Any] = []
    out = fed(OneAtATime(end_of, on_full=full.append, limit=limit), script)
    for kind in ("MORE", "OTHER"):
        assert sorted(one for one in out if one[0] == kind) == sorted(one for one in script if one[0] == kind)
    assert sum(kind == "START" for kind, _ in out) == sum(kind == "END" for kind, _ in out)
    if not full:
        assert out == fed(OneAtATime(end_of), script)


def test_what_may_not_be_split_loses_the_rest() -> None:
    queue = OneAtATime(end_of, splits=lambda _: False, limit=1)
    script = [("START", "a"), ("MORE", "a"), ("OTHER", "1"), ("OTHER", "2"), ("MORE", "a"), ("END", "a")]
    assert fed(queue, script) == [("START", "a"), ("MORE", "a"), ("END", "a"), ("OTHER", "1"), ("OTHER", "2")]


def serialised(stream: list[Wire], limit: int) -> tuple[list[str], dict[str, int]]:
    said: list[Any] = []
    losses = Losses(said.append, "level")
    rule = _serial.Serialised(Setting(version=FIRST, losses=losses, thread_id="t", run_id="r"))
    rule._parts._limit = limit
    out = [one for event in stream for one in rule.feed(decode_event(event))]
    out += rule.end(failed=False)
    losses.tell()
    return [event.type for event in out], {one.code: one.detail["count"] for one in said}


def test_a_text_that_too_much_waits_for_goes_on_as_another() -> None:
    stream = [*text("m", "a")[:2], STATE, STATE, STATE, *text("m", "b")[1:]]
    types, said = serialised(stream, 2)
    assert [name.removeprefix("TEXT_MESSAGE_") for name in types] == [
        *("START", "CONTENT", "END", "STATE_SNAPSHOT", "STATE_SNAPSHOT", "STATE_SNAPSHOT"),
        *("START", "CONTENT", "END"),
    ]
    assert said["legacy.queue"] == 1


def test_what_waits_is_weighed() -> None:
    large = {"type": "STATE_SNAPSHOT", "snapshot": "x" * 1_000_000}
    stream = [*text("m", "a")[:2], *[large] * 200, *text("m", "b")[1:]]
    types, said = serialised(stream, MAX_HELD)
    assert types.index("TEXT_MESSAGE_END") == 2
    assert said["legacy.queue"] == 1
    small = [*text("m", "a")[:2], *[STATE] * 200, *text("m", "b")[1:]]
    assert "legacy.queue" not in serialised(small, MAX_HELD)[1]


def test_a_call_that_too_much_waits_for_is_cut() -> None:
    stream = [*call("c", "{")[:2], STATE, STATE, *call("c", "}")[1:]]
    types, said = serialised(stream, 1)
    assert types == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "STATE_SNAPSHOT", "STATE_SNAPSHOT"]
    assert said["legacy.queue"] == 1
