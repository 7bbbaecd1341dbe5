"""Encoding and decoding against the SDK's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ag_ui.core import CustomEvent, Event, RawEvent, RunStartedEvent, TextMessageContentEvent
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

from agui_pipeline.translators import AnyEvent, decode_event, encode_event
from benchmarks._measure import Row, heading, machine, ratio

_COUNT = 3000


def main() -> None:
    """Print the ratios."""
    heading(f"encode_event and decode_event against the SDK ({machine()}); higher is better")
    encode = EventEncoder().encode
    models: dict[str, tuple[AnyEvent, str]] = {
        "TEXT_MESSAGE_CONTENT": (TextMessageContentEvent(message_id="m-1", delta="hello world"), "goal 4"),
        "RUN_STARTED": (RunStartedEvent(thread_id="t", run_id="r"), "goal 4"),
        "CUSTOM with a null": (CustomEvent(name="n", value={"a": [1, None, 2.5]}), ""),
        "RAW of 2 kB": (RawEvent(event={f"key-{i}": ["value", i, {"x": None}] for i in range(50)}), ""),
    }
    for name, (event, goal) in models.items():
        ours = ratio(partial(_repeat, encode, event), partial(_repeat, encode_event, event))
        print(Row(f"encode a model: {name}", ours, "x faster", goal))
    validate = TypeAdapter(Event).validate_json
    wire = encode_event(models["TEXT_MESSAGE_CONTENT"][0])
    print(
        Row(
            "decode and encode untouched: TEXT_MESSAGE_CONTENT",
            ratio(
                lambda: [encode(validate(wire)) for _ in range(_COUNT)],
                lambda: [encode_event(decode_event(wire)) for _ in range(_COUNT)],
            ),
            "x faster",
            "goal 5",
        )
    )


def _repeat(encode: Callable[[Any], object], event: AnyEvent) -> None:
    for _ in range(_COUNT):
        encode(event)


if __name__ == "__main__":
    main()
