"""Apps to put `AGUIMiddleware` around, the requests they get, and what a client may see of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agui_pipeline.adapters.starlette import AGUIMiddleware
from agui_pipeline.adapters.testing import ASGIResponse, run_asgi
from tests.middleware.kit import Held, Same, Stage, in_asyncio, passing

RUN: list[dict[str, Any]] = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Grüße, "},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "世界"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
]
TYPES = [event["type"] for event in RUN]
POSITIONS = range(len(RUN) + 1)
"""Everywhere in a run: before its first event, between two, after the last."""

INPUT: dict[str, Any] = {
    "threadId": "t",
    "runId": "r",
    "messages": [{"id": "1", "role": "user", "content": "Grüße"}],
    "tools": [],
    "context": [],
    "state": {"n": 1},
    "forwardedProps": {},
}
BODY = json.dumps(INPUT, indent=1, ensure_ascii=False).encode()
"""A body that lacks nothing, laid out as no encoder here would."""

SSE = [(b"content-type", b"text/event-stream; charset=utf-8")]

CHAINS: dict[str, list[Any]] = {
    "none": [],
    "fused": [Stage(Same)],
    "function": [passing],
    "timed": [Stage(Held)],
    "function, timed": [passing, Stage(Held)],
    "timed, function": [Stage(Held), passing],
}
"""One chain for each way in which events can be read."""


def frame(event: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"


FRAMES = [frame(event) for event in RUN]
STREAM = b"".join(FRAMES)


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def types(response: ASGIResponse) -> list[str]:
    return [event.type for event in response.events]


async def tick(times: int = 20) -> None:
    """Let every other task run until it waits."""
    for _ in range(times):
        await anyio.lowlevel.checkpoint()


async def tidied() -> None:
    """Clean up as agents do: it takes a while, and must not be cut short."""
    if in_asyncio():
        await asyncio.sleep(0.001)  # with nothing to protect it: one cancellation has arrived, and no second may
        await asyncio.sleep(0.001)
    else:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.001)


class Call:
    """What one call of a `Scripted` app saw."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.body = b""
        self.messages: list[Message] = []
        self.sent = 0
        self.cancelled = 0
        self.refused: list[BaseException] = []
        self.cleaned = False


class Scripted:
    """A plain ASGI app that plays a script.

    Args:
        script: Bytes are a body message, the first of which starts the response, as "start" does; an exception is
            raised; a callable ``(call, receive, send)`` is awaited; "stop" returns at once.
        headers: Of the response.
        status: Of the response.
        ends: Whether the last message says so.
    """

    def __init__(
        self,
        script: Iterable[Any] = FRAMES,
        *,
        headers: Sequence[tuple[bytes, bytes]] = SSE,
        status: int = 200,
        ends: bool = True,
    ) -> None:
        self._script = list(script)
        self._headers = headers
        self._status = status
        self._ends = ends
        self.calls: list[Call] = []

    @property
    def call(self) -> Call:
        (call,) = self.calls
        return call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Call(scope)
        self.calls.append(call)
        try:
            while scope["type"] == "http":
                message = await receive()
                call.messages.append(message)
                call.body += message.get("body", b"")
                if not message.get("more_body", False):
                    break
            await self._play(call, receive, send)
        except anyio.get_cancelled_exc_class():
            call.cancelled += 1
            raise
        finally:
            await tidied()
            call.cleaned = True

    async def _play(self, call: Call, receive: Receive, send: Send) -> None:
        start: Message | None = {"type": "http.response.start", "status": self._status, "headers": list(self._headers)}
        for item in [*self._script, *(["start"] if self._ends else [])]:
            if start is not None and (item == "start" or isinstance(item, bytes | bytearray | memoryview)):
                await send(start)
                start = None
            if isinstance(item, bytes | bytearray | memoryview):
                await send({"type": "http.response.body", "body": item, "more_body": True})
                call.sent += 1
            elif isinstance(item, BaseException):
                raise item
            elif item == "stop":
                return
            elif item != "start":
                await item(call, receive, send)
        if self._ends:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def wait(_call: Call, _receive: Receive, _send: Send) -> None:
    """Say nothing more, until cancelled."""
    await anyio.sleep_forever()


def sleep(seconds: float) -> Callable[[Call, Receive, Send], Any]:
    async def slept(_call: Call, _receive: Receive, _send: Send) -> None:
        await anyio.sleep(seconds)

    return slept


def wrapped(app: ASGIApp, *middleware: Any, **options: Any) -> AGUIMiddleware:
    return AGUIMiddleware(app, middleware=middleware, **options)


async def ask(app: ASGIApp, body: Any = BODY, **options: Any) -> ASGIResponse:
    """Post an input; fail on an exception that nobody expected."""
    response = await run_asgi(app, body=body, **options)
    if response.exception is not None:
        raise response.exception
    return response


class Source:
    """A source that counts what it gave, and cleans up."""

    def __init__(self, script: Iterable[Any] = RUN) -> None:
        self._script = list(script)
        self.sent = 0
        self.cancelled = 0
        self.cleaned = False

    def run(self, input: Any) -> AsyncIterator[Any]:
        return self._run(input)

    async def _run(self, _input: Any) -> AsyncIterator[Any]:
        try:
            for item in self._script:
                if isinstance(item, BaseException):
                    raise item
                if callable(item):
                    await item()
                else:
                    self.sent += 1
                    yield item
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        finally:
            await tidied()
            self.cleaned = True
