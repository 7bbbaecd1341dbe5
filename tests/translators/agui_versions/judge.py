"""What an old client makes of a downgraded stream, held against what 1.0 makes of the stream itself."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from itertools import count
from typing import Any

from agui_pipeline.translators import Diagnostic, SSEFrame, WireEvent, encode_sse, run_input
from agui_pipeline.translators._client_view import ClientView
from agui_pipeline.translators._sse import decode_frame
from agui_pipeline.translators._upgrade_thinking import Thinking
from agui_pipeline.translators.agui_versions import Downgrade
from tests.translators.agui_versions.old_client import OldClient
from tests.translators.agui_versions.old_schemas import Wire

INPUT = run_input(
    messages=[{"id": "u", "role": "user", "content": "hello"}], thread_id="t", run_id="r", state={"before": True}
)


def ignore(_diagnostic: Diagnostic) -> None:
    """Take a diagnostic that the test is not about."""


def framed(event: Wire) -> WireEvent:
    """Return an event as it comes out of somebody's endpoint, in a frame of one of the legal kinds."""
    data = json.dumps(event, indent=1) if len(event) > 3 else json.dumps(event)
    lines = "".join(f"data:{line}\n" for line in data.split("\n"))
    return decode_frame(SSEFrame(data=data, raw=f": hello\nid: 1\n{lines}\n".encode()))


def downgraded(
    stream: Iterable[Wire],
    patch: int,
    *,
    without: Collection[str] = (),
    said: list[Diagnostic] | None = None,
    fails: bool = False,
    **options: Any,
) -> bytes:
    """Return what a client of version 0.0.patch is sent."""
    sink = ignore if said is None else said.append
    downgrade = Downgrade(f"ag-ui/0.0.{patch}", INPUT, sink, without=without, **options)
    out: list[Any] = []
    for event in stream:
        out += downgrade.feed(framed(event))
    if fails:
        more, error = downgrade.fail(ValueError())
        assert isinstance(error, ValueError)
        out += more
    else:
        out += downgrade.flush()
    return b"".join(encode_sse(event) for event in out)


def client_after(data: bytes, patch: int) -> OldClient:
    """Return a client that has read a response."""
    client = OldClient(patch, [message.model_dump(by_alias=True, exclude_none=True) for message in INPUT.messages])
    client.state = {"before": True}
    client.read(data)
    return client


def view_of(stream: Sequence[Wire]) -> ClientView:
    """Return what 1.0 makes of a stream."""
    view = ClientView(INPUT.messages, INPUT.state, on_diagnostic=lambda _: None)
    numbers = count(1)
    thinking = Thinking(lambda: f"r-thinking-{next(numbers)}", lambda *_: None)  # which 1.0 converts
    for event in map(framed, stream):
        for one in thinking.take(event) if event.type.startswith("THINKING") else (event,):
            view.apply(one)
    return view


def doubled(client: OldClient) -> list[str]:
    """Return whether a client has two messages of an id, in words."""
    ids = [message["id"] for message in client.final]
    return [] if len(ids) == len(set(ids)) else [f"ids: {ids}"]


def differences(stream: Sequence[Wire], client: OldClient) -> list[str]:
    """Return in what an old client's picture is not 1.0's, where no loss is known for it."""
    view, patch = view_of(stream), client.patch
    found: list[str] = []
    found += doubled(client)
    mine, theirs = (_summary(messages, patch) for messages in (view.messages, client.final))
    found += [f"{name}: {mine[name]} != {theirs[name]}" for name in mine if mine[name] != theirs[name]]
    if view.state != client.state:
        found.append(f"state: {view.state} != {client.state}")
    asked = [json.loads(event["value"])["id"] for event in client.customs if event["name"] == "on_interrupt"]
    if patch >= 54 and client.outcome and client.outcome["type"] == "interrupt":
        asked += [interrupt["id"] for interrupt in client.outcome["interrupts"]]
    wanted = [interrupt["id"] for interrupt in view.interrupts]
    if asked != wanted:
        found.append(f"interrupts: {wanted} != {asked}")
    if 37 <= patch <= 44:
        thoughts = [message["content"] for message in view.messages if message["role"] == "reasoning"]
        if any(event["type"].endswith("SNAPSHOT") for event in stream):
            thoughts = client.thoughts  # what was thought was thought, whatever a snapshot says
        if sorted(filter(None, client.thoughts)) != sorted(filter(None, thoughts)):
            found.append(f"thoughts: {thoughts} != {client.thoughts}")
    return found


def _summary(messages: Sequence[Wire], patch: int) -> dict[str, Any]:
    """Return what messages say, whatever message says it: by the ids that 1.0 has."""
    texts: dict[str, str] = {}
    calls: dict[str, str] = {}
    results: dict[str, bool] = {}
    activities: dict[str, Any] = {}
    reasoning: dict[str, str] = {}
    for message in messages:
        id, role, content = message["id"].partition("~")[0], message["role"], message.get("content")
        if role == "activity":
            if patch >= 41:
                activities[id] = content
        elif role == "reasoning":
            if patch >= 45:
                reasoning[id] = content or ""
        elif role == "tool":
            results[message["toolCallId"]] = bool(content)
        elif role != "oracle":
            spoken = content if isinstance(content, str) else _said(content)
            if spoken:
                texts[id] = texts.get(id, "") + spoken
        calls |= {call["id"]: call["function"]["arguments"] for call in message.get("toolCalls") or ()}
    return {"texts": texts, "calls": calls, "results": results, "activities": activities, "reasoning": reasoning}


def _said(content: Any) -> str:
    return "".join(part.get("text", "") for part in content or ())
