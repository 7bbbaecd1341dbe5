"""The pass-through hook: who is asked about what, what is counted, and that nothing else changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import CustomEvent, RawEvent, RunErrorEvent, TextMessageContentEvent
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.middleware import PassThroughMiddleware
from agui_pipeline.translators import ConfigurationError, Diagnostic, decode_event
from agui_pipeline.translators._events import EVENT_CLASSES
from agui_pipeline.translators._input import run_input
from agui_pipeline.translators._pass_through import DIAGNOSTICS, PassThroughTranslator

RUN = ["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"]
TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TEXT_MESSAGE_CHUNK"]
TYPES = sorted({*EVENT_CLASSES, "THINKING_START", "SUBAGENT_STARTED", "FROM_THE_FUTURE"})


# As `Any`: type checkers do not see pydantic's models as `Event`.
RAW: Any = RawEvent(event="secret")
CUSTOM: Any = CustomEvent(name="n", value="secret")
CONTENT: Any = TextMessageContentEvent(message_id="m", delta="d")


def no(_: Any) -> bool:
    return False


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("everything", [False, True])
def test_the_run_and_text_always_pass(type_: str, everything: bool) -> None:
    translator = PassThroughTranslator(no, lambda _: None, everything=everything)
    event = decode_event({"type": type_})
    passes = type_ in RUN or (type_ in TEXT and not everything)
    assert list(translator.feed(event)) == ([event] if passes else [])


@pytest.mark.parametrize("type_", TYPES)
def test_the_hook_is_asked_only_where_it_decides(type_: str) -> None:
    asked: list[Any] = []

    def hook(event: Any) -> bool:
        asked.append(event)
        return True

    event = decode_event({"type": type_})
    assert list(PassThroughTranslator(hook, lambda _: None).feed(event)) == [event]
    assert asked == ([] if type_ in {*RUN, *TEXT} else [event])
    asked.clear()
    assert list(PassThroughTranslator(hook, lambda _: None, everything=True).feed(event)) == [event]
    assert asked == ([] if type_ in RUN else [event])


def test_types_of_models_are_recognised() -> None:
    translator = PassThroughTranslator(no, lambda _: None)
    kept: list[Any] = [RunErrorEvent(message="x"), CONTENT]
    assert [event for item in kept for event in translator.feed(item)] == kept
    assert list(translator.feed(RAW)) == []


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.booleans())), st.booleans())
def test_what_passes_is_the_same_objects_in_order_and_the_rest_is_counted(
    run: list[tuple[str, bool]], everything: bool
) -> None:
    seen: list[Diagnostic] = []
    events = [decode_event({"type": type_, "accepted": accepted}) for type_, accepted in run]
    translator = PassThroughTranslator(lambda event: event.accepted, seen.append, everything=everything)
    out = [event for item in events for event in translator.feed(item)]
    always = {*RUN} if everything else {*RUN, *TEXT}
    kept = [event for event in events if event.type in always or event.accepted]
    assert len(out) == len(kept)
    assert all(one is other for one, other in zip(out, kept, strict=True))
    assert seen == []  # one a run, not one an event
    assert list(translator.flush()) == []
    dropped = [event.type for event in events if event.type not in always and not event.accepted]
    assert {item.event_type: item.detail["count"] for item in seen} == {name: dropped.count(name) for name in dropped}
    assert all(item.code in DIAGNOSTICS for item in seen)


def test_a_failing_source_reports_the_drops_and_passes_the_error_on() -> None:
    seen: list[Diagnostic] = []
    translator = PassThroughTranslator(no, seen.append)
    translator.feed(RAW)
    translator.feed(RAW)
    translator.feed(CUSTOM)
    error = RuntimeError("boom")
    events, passed_on = translator.fail(error)
    assert not events
    assert passed_on is error
    assert [(item.code, item.event_type, item.detail) for item in seen] == [
        ("pass-through.dropped", "RAW", {"count": 2}),
        ("pass-through.dropped", "CUSTOM", {"count": 1}),
    ]
    assert all(type(item.event_type) is str for item in seen)


def test_what_the_hook_raises_is_not_caught() -> None:
    def hook(event: Any) -> bool:
        raise KeyError(event.type)

    translator = PassThroughTranslator(hook, lambda _: None)
    with pytest.raises(KeyError, match="RAW"):
        translator.feed(RAW)


@pytest.mark.parametrize("answer", [1, "yes", [0]])
def test_any_true_value_lets_pass(answer: Any) -> None:
    assert list(PassThroughTranslator(lambda _: answer, lambda _: None).feed(RAW)) == [RAW]


# The middleware


async def _awaited(_: Any) -> bool:
    return True


@pytest.mark.parametrize("hook", [None, True, "RAW", ["RAW"], _awaited])
def test_a_hook_that_is_no_plain_callable_is_refused(hook: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^hook="):
        PassThroughMiddleware(hook)


@pytest.mark.parametrize("sink", [True, "log", _awaited])
def test_a_sink_that_is_no_plain_callable_is_refused(sink: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^on_diagnostic="):
        PassThroughMiddleware(no, on_diagnostic=sink)


class _Hook:
    def __call__(self, event: Any) -> bool:
        return bool(event.type == "RAW")


@pytest.mark.parametrize("hook", [_Hook(), lambda event: event.type == "RAW", no, bool])
def test_any_callable_may_be_the_hook(hook: Callable[[Any], bool]) -> None:
    assert isinstance(PassThroughMiddleware(hook).translator(run_input("x")), PassThroughTranslator)


def test_each_run_counts_for_itself() -> None:
    seen: list[Diagnostic] = []
    stage = PassThroughMiddleware(no, everything=True, on_diagnostic=seen.append)
    first, second = (stage.translator(run_input("x")) for _ in range(2))
    first.feed(CONTENT)
    second.flush()
    assert seen == []
    first.flush()
    assert [(item.event_type, item.detail["count"]) for item in seen] == [("TEXT_MESSAGE_CONTENT", 1)]


def test_without_a_sink_the_log_says_so_once_a_run(caplog: pytest.LogCaptureFixture) -> None:
    stage = PassThroughMiddleware(no)
    with caplog.at_level(logging.INFO, "agui_pipeline"):
        for _ in range(2):
            translator = stage.translator(run_input("x"))
            translator.feed(RAW)
            translator.feed(CUSTOM)
            translator.flush()
    assert [record.levelname for record in caplog.records] == ["INFO"] * 2  # as it was asked for
    assert all("pass-through.dropped" in record.getMessage() for record in caplog.records)
    assert "secret" not in caplog.text
