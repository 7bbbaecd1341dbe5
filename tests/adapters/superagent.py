"""Clients of the old HTTP API, in process, and agents behind it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from ag_ui.core import RunAgentInput
from starlette.applications import Starlette

from agui_pipeline.adapters.superagent import routes
from agui_pipeline.adapters.testing import ASGIResponse, run_asgi

STREAM = "/api/v1/chat/stream"
RESUME = "/api/v1/chat/resume"
ENVELOPED = {"x-a2ui": "true"}

CONFIRM = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}


def interrupt(id: str = "i", message: str = "Go on?", **fields: Any) -> dict[str, Any]:
    return {"id": id, "reason": "confirmation", "message": message, **fields}


def run(input: RunAgentInput, *events: Any, ends: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """A whole run around some events."""
    ids = {"threadId": input.thread_id, "runId": input.run_id}
    return [{"type": "RUN_STARTED", **ids}, *events, {"type": "RUN_FINISHED", **ids, **(ends or {})}]


def text(input: RunAgentInput, *deltas: str) -> list[dict[str, Any]]:
    id = f"text-{input.run_id}"
    parts = [{"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta} for delta in deltas]
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"},
        *parts,
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def asks(*interrupts: Mapping[str, Any]) -> dict[str, Any]:
    return {"outcome": {"type": "interrupt", "interrupts": list(interrupts)}}


class Agent:
    """Repeats what it is told, and asks back where that is "ask".

    Attributes:
        inputs: What it was called with.
        interrupts: What it asks.
    """

    def __init__(self, *interrupts: Mapping[str, Any]) -> None:
        self.inputs: list[RunAgentInput] = []
        self.interrupts = interrupts or (interrupt(),)

    @property
    def last(self) -> RunAgentInput:
        return self.inputs[-1]

    async def run(self, input: RunAgentInput) -> AsyncIterator[Any]:
        self.inputs.append(input)
        said = input.messages[-1].content if input.messages else "nothing"
        resumed = [entry.payload for entry in input.resume or () if entry.status == "resolved"]
        if resumed:
            events = run(input, *text(input, "resumed with ", json.dumps(resumed)))
        elif said == "ask":
            events = run(input, *text(input, "hm"), ends=asks(*self.interrupts))
        else:
            events = run(input, *text(input, "you said ", str(said)))
        for event in events:
            yield event


def app(source: Any, *middleware: Any, **options: Any) -> Starlette:
    return Starlette(routes=routes(source, *middleware, **options))


async def post(
    served: Any, path: str, body: Any, headers: Mapping[str, str] | None = None, **options: Any
) -> ASGIResponse:
    response = await run_asgi(served, path=path, body=body, headers=headers or {}, **options)
    if response.exception is not None:
        raise response.exception
    return response


async def say(
    served: Any, message: str, session: str = "s", headers: Mapping[str, str] = ENVELOPED, **fields: Any
) -> ASGIResponse:
    return await post(served, STREAM, {"session_id": session, "message": message, **fields}, headers)


async def answer(
    served: Any, session: str = "s", headers: Mapping[str, str] | None = None, **fields: Any
) -> ASGIResponse:
    return await post(served, RESUME, {"session_id": session, **fields}, headers)


async def get(served: Any, headers: Mapping[str, str] | None = None, **query: str) -> ASGIResponse:
    return await run_asgi(served, method="GET", path=f"{STREAM}?{urlencode(query)}", headers=headers or {})


def refused(response: ASGIResponse) -> tuple[int | None, str]:
    """The status and the code of a refusal, which has the old error body and nothing else."""
    body = response.json()
    assert set(body) == {"code", "message"}
    assert isinstance(body["message"], str)
    assert body["message"]
    return response.status, body["code"]


def enveloped(response: ASGIResponse) -> list[tuple[str, Any]]:
    """What the frames of an enveloped stream say: type and data."""
    assert response.status == 200
    found = []
    for frame in response.frames:
        if frame.data is None:
            continue
        envelope = json.loads(frame.data)
        assert envelope["type"] == frame.event
        found.append((envelope["type"], envelope["data"]))
    return found


def flat(response: ASGIResponse) -> list[dict[str, Any]]:
    """What `onmessage` would see of a flat stream."""
    assert response.status == 200
    assert all(frame.event is None for frame in response.frames)
    return [json.loads(frame.data) for frame in response.frames if frame.data is not None]


def tokens(response: ASGIResponse) -> list[str]:
    assert response.status == 200
    return [frame.data for frame in response.frames if frame.data is not None]


def said(response: ASGIResponse) -> str:
    return "".join(data["delta"] for kind, data in enveloped(response) if kind == "text")


def kinds(response: ASGIResponse) -> list[str]:
    """The types of an enveloped stream's frames, without repetition of neighbours."""
    found: list[str] = []
    for kind, _ in enveloped(response):
        if found[-1:] != [kind]:
            found.append(kind)
    return found


Serve = Callable[..., Starlette]
