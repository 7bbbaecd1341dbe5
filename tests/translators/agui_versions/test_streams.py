"""Any legal stream through any level: every client that may read it takes it, however the stream breaks off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.translators import DecodeError, SSEDecoder, decode_event, encode_event, encode_sse, typed
from agui_pipeline.translators._events import loads
from agui_pipeline.translators._guard import GuardTranslator
from agui_pipeline.translators.agui_versions import Downgrade
from agui_pipeline.translators.agui_versions._rule import BOUNDS
from tests.streams import make_stream
from tests.translators.agui_versions.judge import INPUT, client_after, downgraded, framed, ignore
from tests.translators.agui_versions.old_client import PATCHES
from tests.translators.agui_versions.old_schemas import Wire
from tests.translators.agui_versions.samples import STREAMS

patches = st.sampled_from(PATCHES)


@st.composite
def legal(draw: st.DrawFn) -> list[Wire]:
    """Return a stream as the guard lets it go out."""

    def choose(values: Sequence[Any]) -> Any:
        return draw(st.sampled_from(values))

    guard = GuardTranslator("t", "r", None, lambda _: None)
    out: list[Any] = []
    for event in make_stream(choose, malformed=False):
        out += guard.feed(framed(event))
    out += guard.flush()
    return [loads(encode_event(event)) for event in out]


def events_of(data: bytes) -> list[Wire]:
    return [loads((frame.data or "").encode()) for frame in SSEDecoder().feed(data)]


@given(legal(), patches, patches)
def test_a_legal_stream_is_accepted_at_its_level_and_by_later_clients(stream: list[Wire], one: int, two: int) -> None:
    level, patch = sorted((one, two))
    client_after(downgraded(stream, level), patch)


@given(legal(), patches)
def test_what_went_through_a_level_goes_through_it_again_as_it_is(stream: list[Wire], level: int) -> None:
    once = events_of(downgraded(stream, level))
    assert events_of(downgraded(once, level)) == once


@given(st.data(), patches)
def test_nothing_that_an_agent_sends_makes_a_rule_raise(data: st.DataObject, level: int) -> None:
    downgraded(make_stream(lambda values: data.draw(st.sampled_from(values))), level)


@given(legal(), patches, st.integers(0, 30))
def test_a_stream_that_breaks_off_can_be_ended_by_an_error(stream: list[Wire], level: int, place: int) -> None:
    data = downgraded(stream[:place], level, fails=True)
    bounds = [event["type"] for event in events_of(data) if event["type"] in BOUNDS]
    if bounds[-1:] in ([], ["RUN_STARTED"]):  # as an adapter does
        data += encode_sse(framed({"type": "RUN_ERROR", "message": "The agent failed."}))
    client_after(data, level)


@pytest.mark.parametrize("level", [30, 37, 41, 45, 54, 59])
def test_models_are_downgraded_as_their_json_is(level: int) -> None:
    for name, stream in STREAMS.items():
        models: list[Any] = []
        for event in stream:
            try:
                models.append(typed(framed(event)))
            except DecodeError:  # no model of the installed SDK
                models.append(framed(event))
        views = [decode_event(encode_event(model)) for model in models]
        assert through(models, level) == through(views, level), name


def through(events: Sequence[Any], level: int) -> list[Wire]:
    downgrade = Downgrade(f"ag-ui/0.0.{level}", INPUT, ignore)
    out = [one for event in events for one in downgrade.feed(event)]
    return [loads(encode_event(one)) for one in [*out, *downgrade.flush()]]
