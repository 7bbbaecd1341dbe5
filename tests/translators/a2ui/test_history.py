"""A MESSAGES_SNAPSHOT that passes shows the text that a client was shown, not what the model wrote."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import AssistantMessage, MessagesSnapshotEvent, UserMessage

from agui_pipeline.middleware.a2ui import A2UIMiddleware
from agui_pipeline.translators import Diagnostic, decode_event, encode_event, run_input

RECORD = '{"version":"v0.9","deleteSurface":{"surfaceId":"s"}}'
HISTORY: list[dict[str, Any]] = [
    {"id": "u", "role": "user", "content": RECORD},
    {"id": "a", "role": "assistant", "content": f"Here:\n```json\n{RECORD}\n```\nOK?"},
    {"id": "b", "role": "assistant", "content": 'No message: {"temperature": 21}'},
    {"id": "c", "role": "assistant", "toolCalls": []},
]


def snapshot(messages: list[Any], **options: Any) -> tuple[Any, list[Diagnostic]]:
    seen: list[Diagnostic] = []
    translator = A2UIMiddleware.chat(**options, on_diagnostic=seen.append).translator(run_input("hi"))
    event = decode_event({"type": "MESSAGES_SNAPSHOT", "messages": messages})
    (given,) = translator.feed(event)
    return given, seen


def test_the_assistants_text_is_what_was_shown() -> None:
    given, seen = snapshot(HISTORY)

    assert [message.get("content") for message in given.messages] == [
        RECORD,
        "Here:\nOK?",
        'No message: {"temperature": 21}',
        None,
    ]
    assert [(one.code, one.detail["count"]) for one in seen] == [("a2ui.snapshot-text", 1)]
    assert HISTORY[1]["content"].count(RECORD) == 1  # the source's own object is left alone


def test_models_too() -> None:
    event = MessagesSnapshotEvent(
        messages=[UserMessage(id="u", content="hi"), AssistantMessage(id="a", content=f"Look:\n{RECORD}\n")]
    )
    (given,) = A2UIMiddleware.chat(on_diagnostic=lambda _: None).translator(run_input("hi")).feed(event)  # type: ignore[arg-type]
    assert b'"content":"Look:\\n"' in encode_event(given)
    assert b"deleteSurface" in encode_event(event)


def test_one_without_a2ui_is_the_same_object() -> None:
    event = decode_event({"type": "MESSAGES_SNAPSHOT", "messages": HISTORY[2:]})
    (given,) = A2UIMiddleware.chat().translator(run_input("hi")).feed(event)
    assert given is event


@pytest.mark.parametrize("messages", [None, "x", [None, 1, "{", {"role": "assistant", "content": ["{"]}]])
def test_malformed_ones_pass(messages: Any) -> None:
    event = decode_event({"type": "MESSAGES_SNAPSHOT", "messages": messages})
    (given,) = A2UIMiddleware.chat().translator(run_input("hi")).feed(event)
    assert given is event


def test_where_prose_is_no_text_the_history_is_left_alone() -> None:
    given, seen = snapshot(HISTORY, on_invalid="raw")
    assert given.messages == HISTORY
    assert seen == []
