"""Golden streams: what each version becomes on each carrier, word for word.

``golden/<stream>.in.jsonl`` holds the events of an agent's runs, one a line; ``golden/<stream>.<carrier>.jsonl`` what a
client is sent. After an intended change, ``python -m tests.translators.a2ui.test_golden`` writes the latter anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators.a2ui import VERSIONS
from tests.translators.a2ui.streams import Wire, cut, joined, translate

GOLDEN = Path(__file__).parent / "golden"
STREAMS = sorted(path.name.removesuffix(".in.jsonl") for path in GOLDEN.glob("*.in.jsonl"))
CARRIERS = ("raw", "custom", "activity")
OPTIONS: dict[str, Any] = {"on_invalid": "text", "pass_through": "all", "versions": VERSIONS, "tools": ["render_a2ui"]}


def events_in(name: str) -> list[Wire]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


def sent(events: list[Wire], carrier: str, **options: Any) -> list[Wire]:
    return translate(events, carrier=carrier, **OPTIONS, **options).events


def test_there_is_one_for_each_version_and_carrier() -> None:
    assert set(STREAMS) >= {*VERSIONS, "tools"}
    assert len(list(GOLDEN.glob("*.jsonl"))) == len(STREAMS) * (1 + len(CARRIERS))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("models", [False, True])
def test_the_client_is_sent(stream: str, carrier: str, *, models: bool) -> None:
    assert sent(events_in(f"{stream}.in.jsonl"), carrier, models=models) == events_in(f"{stream}.{carrier}.jsonl")


@pytest.mark.parametrize("stream", STREAMS)
def test_all_of_it_is_valid_by_the_catalogs(stream: str) -> None:
    pytest.importorskip("a2ui")
    result = translate(events_in(f"{stream}.in.jsonl"), validate="full", **OPTIONS)
    assert {diagnostic.code for diagnostic in result.diagnostics} <= {"a2ui.no-surface", "a2ui.invalid"}
    assert result.events == events_in(f"{stream}.raw.jsonl")


def recut(event: Wire, points: list[int]) -> list[Wire]:
    """Cut the text of an event, or the arguments of a tool call."""
    if "delta" not in event:
        return [event]
    return [{**event, "delta": piece} for piece in cut(event["delta"], points) if piece]


@pytest.mark.parametrize("stream", STREAMS)
@given(carrier=st.sampled_from(CARRIERS), points=st.lists(st.integers(0, 4000), max_size=6))
def test_the_same_however_the_text_was_cut(stream: str, carrier: str, points: list[int]) -> None:
    events = [piece for event in events_in(f"{stream}.in.jsonl") for piece in recut(event, points)]
    without_arguments = [event for event in joined(sent(events, carrier)) if event["type"] != "TOOL_CALL_ARGS"]
    expected = joined(events_in(f"{stream}.{carrier}.jsonl"))
    assert without_arguments == [event for event in expected if event["type"] != "TOOL_CALL_ARGS"]


if __name__ == "__main__":
    for name in STREAMS:
        for kind in CARRIERS:
            lines = [
                json.dumps(event, ensure_ascii=False) + "\n" for event in sent(events_in(f"{name}.in.jsonl"), kind)
            ]
            (GOLDEN / f"{name}.{kind}.jsonl").write_text("".join(lines), encoding="utf-8")
