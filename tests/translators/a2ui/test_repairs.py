"""``repair=True``: records that are no JSON become messages, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators.a2ui._repairs import MAX_RUN_CHARS
from tests.translators.a2ui.streams import (
    activity,
    components,
    content,
    create,
    custom,
    cut,
    data,
    delete,
    end,
    joined,
    lines,
    message,
    raw,
    run_of,
    start,
    translate,
)

pytest.importorskip("json_repair")
ALL: dict[str, Any] = {"pass_through": "all"}
SLIP = '{"version": "v0.9", "deleteSurface": {"surfaceId": "s",}}'
QUOTES = "{'deleteSurface': {surfaceId: 's8'}}"
DELETE = {"deleteSurface": {"surfaceId": "s8"}}
BEGIN = {"beginRendering": {"surfaceId": "s8", "root": "root"}}
FORM = json.dumps(components("root", "a", "b"), indent=2).replace('"\n', '",\n')


@pytest.mark.parametrize("framing", ["objects", "lines"])
@pytest.mark.parametrize("on_invalid", ["raw", "text", "drop", "error"])
def test_a_broken_message_is_repaired(framing: str, on_invalid: str) -> None:
    events = run_of(*message(SLIP + "\n" + QUOTES + "\n" + lines(BEGIN)))
    result = translate(events, repair=True, framing=framing, on_invalid=on_invalid)
    assert result.events == run_of(raw(delete(), "a2ui/v0.9"), raw(DELETE), raw(BEGIN))
    assert result.codes == ["a2ui.repaired"] * 2
    assert [dict(d.detail) for d in result.diagnostics] == [
        {"reason": "syntax", "size": len(SLIP), "surface_id": "s"},
        {"reason": "syntax", "size": len(QUOTES), "surface_id": "s8"},
    ]
    assert {d.message_id for d in result.diagnostics} == {"m"}


def test_without_the_option_nothing_is() -> None:
    assert translate(run_of(*message(SLIP))).events == run_of(raw(SLIP))


def test_over_many_lines() -> None:
    result = translate(run_of(*message("Here:\n```json\n" + FORM + "\n```\nBye")), repair=True, on_invalid="text")
    assert [event["type"] for event in result.events[1:-1]] == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "RAW",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
    ]
    assert result.events[3]["event"] == components("root", "a", "b")


def test_every_carrier_gets_it() -> None:
    text = lines(create()) + FORM
    assert translate(run_of(*message(text)), repair=True, carrier="custom").events[2:-1] == [
        custom(components("root", "a", "b"))
    ]
    assert translate(run_of(*message(text)), repair=True, carrier="activity").events[1:-1] == [
        activity("a2ui-surface-m", create(), components("root", "a", "b"))
    ]


PROSE = [
    "{name}, hello",
    "Sure: {a: 1,}",
    "{'mood': 'fine',} and so on",
    "{deleteSurface: {surface: 's'}}",  # no message after its repair either
    "{version: 'v0.9', deleteSurface: {surfaceId: 's'}, extra: 1}",
]


@pytest.mark.parametrize("text", PROSE)
@pytest.mark.parametrize("framing", ["objects", "lines"])
def test_what_is_no_message_stays_as_it_was(text: str, framing: str) -> None:
    result = translate(run_of(*message(text)), repair=True, framing=framing, on_invalid="text")
    assert joined(result.events) == run_of(start(), content(text), end())
    assert "a2ui.repaired" not in result.codes
    assert translate(run_of(*message(text)), repair=True, framing=framing).events == run_of(raw(text))


def test_a_message_that_was_cut_off_is_closed() -> None:
    text = json.dumps(components("root", "a"))[:-30]
    result = translate(run_of(start(), content(text)), repair=True, flush=True)
    (sent,) = result.events[1:-1]
    assert [component["id"] for component in sent["event"]["updateComponents"]["components"]] == ["root", "a"]
    assert result.detail("a2ui.repaired")["reason"] == "unfinished"


@pytest.mark.parametrize("key", ["__proto__", "constructor", "prototype"])
def test_a_repair_makes_no_key_that_reaches_a_prototype(key: str) -> None:
    spelt = f"\\u{ord(key[0]):04x}" + key[1:]
    for name in (key, spelt):
        text = "{'version': 'v0.9', 'updateDataModel': {'surfaceId': 's', 'value': {\"" + name + '": 1}}}'
        result = translate(run_of(*message(text)), repair=True, on_invalid="text")
        assert joined(result.events) == run_of(start(), content(text), end())


def test_a_repair_does_not_lift_a_limit() -> None:
    from agui_pipeline.middleware.a2ui import A2UILimits

    text = json.dumps(components(*"abcdef"))[:-1] + ",}"
    limits = A2UILimits(max_components=5)
    result = translate(run_of(*message(text)), repair=True, limits=limits, carrier="custom", on_invalid="drop")
    assert result.events == run_of()
    assert "a2ui.limit" in result.codes


def test_with_validation_off_any_object_is_one() -> None:
    result = translate(run_of(*message("{'a': 1}\n{b}\n{}\n")), repair=True, validate="off")
    assert result.events == run_of(raw({"a": 1}), raw("{b}"), raw({}))


def test_one_run_looks_at_so_much_and_no_more() -> None:
    broken = "{'a': '" + "x" * 30_000 + "'}\n"
    text = broken * (MAX_RUN_CHARS // 30_000 + 1) + QUOTES
    assert "a2ui.repaired" not in translate(run_of(*message(text)), repair=True).codes
    two_runs = [*run_of(*message(text)), *run_of(*message(QUOTES))]
    assert translate(two_runs, repair=True).codes.count("a2ui.repaired") == 1


def test_a_snapshot_of_the_history_agrees_with_what_was_streamed() -> None:
    history = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "assistant", "content": f"Hi\n{SLIP}\n"}]}
    result = translate(run_of(history), repair=True, on_invalid="text", **ALL)
    assert result.events[1]["messages"][0]["content"] == "Hi\n"
    assert result.codes == ["a2ui.snapshot-text"]


TEXT = f"Hello\n{SLIP}\n\n{FORM}\nand\n{lines(data(1))}{QUOTES} bye\n{PROSE[2]}\n{json.dumps(create())[:-1]}"


@pytest.mark.parametrize("framing", ["objects", "lines"])
@pytest.mark.parametrize("on_invalid", ["raw", "text"])
@given(points=st.lists(st.integers(0, 10_000), max_size=8))
def test_the_result_is_the_same_however_the_text_was_cut(points: list[int], framing: str, on_invalid: str) -> None:
    def sent(*deltas: str) -> tuple[Any, Any]:
        result = translate(run_of(*message(*deltas)), repair=True, framing=framing, on_invalid=on_invalid)
        return joined(result.events), sorted((d.code, repr(d.detail)) for d in result.diagnostics)

    assert sent(*cut(TEXT, points)) == sent(TEXT)
