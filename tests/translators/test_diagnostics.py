"""What a diagnostic is, and where it goes without a sink."""

from __future__ import annotations

import copy
import dataclasses
import logging
import pickle

import pytest

from agui_pipeline.translators import Diagnostic
from agui_pipeline.translators._diagnostics import default_sink, run_sink

NAN = Diagnostic("encode.nan", "NaN was sent as null", detail={"value": "secret"})
DEPTH = Diagnostic("encode.depth", "nested too deep", event_type="RAW", message_id="m")


def test_a_diagnostic_is_frozen_and_has_defaults() -> None:
    assert (DEPTH.code, DEPTH.message, DEPTH.event_type, DEPTH.message_id, DEPTH.detail) == (
        "encode.depth",
        "nested too deep",
        "RAW",
        "m",
        {},
    )
    assert (NAN.event_type, NAN.message_id) == (None, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        NAN.code = "other"  # type: ignore[misc]
    assert [field.name for field in dataclasses.fields(Diagnostic)] == [
        "code",
        "message",
        "event_type",
        "message_id",
        "detail",
    ]


def test_two_diagnostics_share_no_detail() -> None:
    assert Diagnostic("a", "b").detail is not Diagnostic("a", "b").detail


def test_diagnostics_compare_copy_and_pickle() -> None:
    assert dataclasses.replace(NAN) == NAN
    assert dataclasses.replace(NAN, detail={}) != NAN
    for twin in (copy.deepcopy(NAN), pickle.loads(pickle.dumps(NAN))):  # noqa: S301 - its own pickle
        assert twin == NAN


def test_a_callers_sink_gets_every_diagnostic_as_it_is() -> None:
    seen: list[Diagnostic] = []
    assert run_sink(seen.append) == seen.append
    sink = run_sink(seen.append)
    for _ in range(2):
        sink(NAN)
    assert all(item is NAN for item in seen)
    assert len(seen) == 2


def test_without_a_sink_each_code_is_logged_once_a_run_without_content(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        sink = run_sink(None)
        for diagnostic in (NAN, DEPTH, NAN, dataclasses.replace(NAN, message="again")):
            sink(diagnostic)
        run_sink(None)(NAN)  # another run
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("agui_pipeline", "WARNING", "encode.nan: NaN was sent as null"),
        ("agui_pipeline", "WARNING", "encode.depth: nested too deep"),
        ("agui_pipeline", "WARNING", "encode.nan: NaN was sent as null"),
    ]
    assert "secret" not in caplog.text


def test_a_message_may_hold_percent_signs(caplog: pytest.LogCaptureFixture) -> None:
    run_sink(None)(Diagnostic("x", "100 % of %s and %(name)d"))
    assert caplog.records[0].getMessage() == "x: 100 % of %s and %(name)d"


def test_a_sink_that_is_false_is_a_sink() -> None:
    class Seen(list[Diagnostic]):
        def __call__(self, diagnostic: Diagnostic) -> None:
            self.append(diagnostic)

    seen, outer = Seen(), Seen()
    token = default_sink.set(outer)
    try:
        run_sink(seen)(Diagnostic("a.b", "one"))
        run_sink(None)(Diagnostic("a.c", "two"))
    finally:
        default_sink.reset(token)
    assert [one.code for one in seen] == ["a.b"]
    assert [one.code for one in outer] == ["a.c"]
