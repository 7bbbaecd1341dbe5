"""What these tests share: events in short, a run through a dialect, and readers as old front ends have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

from agui_pipeline.translators import (
    Diagnostic,
    SSEDecoder,
    SSEFrame,
    decode_event,
    encode_event,
    encode_sse,
    run_input,
)
from agui_pipeline.translators.superagent import COMPATIBLE, ENVELOPED, FLAT, SuperagentUpgrade, downgrade

Wire = dict[str, Any]
DIALECTS = (ENVELOPED, FLAT, COMPATIBLE)
INPUT = run_input("hello", thread_id="thread", run_id="run")
START: Wire = {"type": "RUN_STARTED", "threadId": "thread", "runId": "run"}
FINISH: Wire = {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run"}


def text(delta: str, id: str = "m", **more: Any) -> Wire:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta, **more}


def message(*deltas: str, id: str = "m", **more: Any) -> list[Wire]:
    start = {"type": "TEXT_MESSAGE_START", "messageId": id, **more}
    return [start, *(text(delta, id) for delta in deltas), {"type": "TEXT_MESSAGE_END", "messageId": id}]


def thought(*deltas: str, id: str = "q") -> list[Wire]:
    return [
        {"type": "REASONING_START", "messageId": id},
        {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"},
        *({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in deltas),
        {"type": "REASONING_MESSAGE_END", "messageId": id},
        {"type": "REASONING_END", "messageId": id},
    ]


def call(*arguments: str, id: str = "c", name: str = "f") -> list[Wire]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for delta in arguments),
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]


def result(content: Any, id: str = "c", **more: Any) -> Wire:
    return {"type": "TOOL_CALL_RESULT", "messageId": f"result-{id}", "toolCallId": id, "content": content, **more}


def interrupted(*interrupts: Wire) -> Wire:
    return {**FINISH, "outcome": {"type": "interrupt", "interrupts": list(interrupts)}}


class Down:
    """One stream through a dialect: `frames`, and the `codes` and `diagnostics` that it made."""

    def __init__(
        self, dialect: str, events: Iterable[Any], *, fails: BaseException | None = None, **options: Any
    ) -> None:
        self.diagnostics: list[Diagnostic] = []
        options.setdefault("clock", lambda: 1746000000.0)
        translator = downgrade(dialect, sink=self.diagnostics.append, **options)
        given: list[Any] = []
        for event in events:
            given += translator.feed(decode_event(event) if isinstance(event, dict) else event)
        if fails is None:
            given += translator.flush()
        else:
            last, raised = translator.fail(fails)
            assert raised is fails
            given += last
        assert all(isinstance(frame, SSEFrame) for frame in given)
        self.frames: Sequence[SSEFrame] = given
        self.sent = b"".join(map(encode_sse, given))
        self.said = READERS[dialect](self.sent)

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code for diagnostic in self.diagnostics]

    def of(self, *kinds: str) -> list[Any]:
        """The data of the frames of some types, as an old front end reads them."""
        return [data for kind, data in self.said if kind in kinds]

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.said]


def read_enveloped(sent: bytes) -> list[tuple[str, Any]]:
    """Read as the fetch readers do: frames by blank lines, two regular expressions."""
    said: list[tuple[str, Any]] = []
    assert not {"\u2028", "\u2029"} & set(sent.decode())  # in JavaScript, a dot does not match these
    *frames, rest = sent.decode().split("\n\n")
    assert rest == ""
    for frame in frames:
        event, data = re.search(r"^event: (.+)", frame, re.MULTILINE), re.search(r"^data: (.+)", frame, re.MULTILINE)
        assert event is not None
        assert data is not None
        envelope = json.loads(data[1])
        assert list(envelope) == ["type", "timestamp", "data"]
        assert envelope["type"] == event[1]
        assert type(envelope["timestamp"]) is int
        said.append((event[1], envelope["data"]))
    return said


def read_flat(sent: bytes) -> list[tuple[str, Any]]:
    """Read as an `EventSource` with `onmessage`, which never sees a frame that has a name."""
    said: list[tuple[str, Any]] = []
    for frame in _frames(sent):
        assert frame.event is None
        data = json.loads(frame.data or "")
        said.append((data.pop("type"), data))
    return said


def read_compatible(sent: bytes) -> list[tuple[str, Any]]:
    """Read tokens as a client that tells JSON from text by its looks."""
    said: list[tuple[str, Any]] = []
    for frame in _frames(sent):
        assert frame.event is None
        assert frame.data
        if frame.data.strip() == "[DONE]":
            said.append(("done", None))
            continue
        try:
            value = json.loads(frame.data)
        except ValueError:
            value = None
        if isinstance(value, dict):
            assert list(value) == ["type", "data"]
            said.append((value["type"], value["data"]))
        else:
            said.append(("text", frame.data))
    return said


def _frames(sent: bytes) -> list[SSEFrame]:
    assert b"\r" not in sent
    assert sent.endswith(b"\n\n")
    decoder = SSEDecoder()
    return decoder.feed(sent) + decoder.flush()


READERS = {ENVELOPED: read_enveloped, FLAT: read_flat, COMPATIBLE: read_compatible}


def delta_of(dialect: str, kind: str, data: Any) -> str:
    """The piece of text, reasoning or code in what a reader gave."""
    if dialect == COMPATIBLE and kind == "text":
        return str(data)
    return str(data["content" if dialect == FLAT else "delta"])


def joined(dialect: str, down: Down, *kinds: str) -> str:
    return "".join(delta_of(dialect, kind, data) for kind, data in down.said if kind in kinds)


class Up:
    """The frames of an old agent through the upgrade: `events` as JSON, and the diagnostics."""

    def __init__(self, dialect: str, frames: Iterable[SSEFrame | str], *, fails: BaseException | None = None) -> None:
        self.diagnostics: list[Diagnostic] = []
        ids = map("id-{}".format, count(1))
        upgrade = SuperagentUpgrade(dialect, input=INPUT, sink=self.diagnostics.append, new_id=ids.__next__)
        self.objects: list[Any] = []
        for frame in frames:
            self.objects += upgrade.feed(SSEFrame(data=frame) if isinstance(frame, str) else frame)
        if fails is None:
            self.objects += upgrade.flush()
        else:
            last, raised = upgrade.fail(fails)
            assert raised is fails
            self.objects += last
        assert upgrade.complete
        self.events: list[Wire] = [json.loads(encode_event(event)) for event in self.objects]

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code for diagnostic in self.diagnostics]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, *types: str) -> list[Wire]:
        return [event for event in self.events if event["type"] in types]

    @property
    def text(self) -> str:
        return "".join(event["delta"] for event in self.of("TEXT_MESSAGE_CONTENT"))


def cuts(whole: str) -> Iterator[list[str]]:
    """A text in two, at every place, and in single characters."""
    yield from ([whole[:place], whole[place:]] for place in range(1, len(whole)))
    yield list(whole)
