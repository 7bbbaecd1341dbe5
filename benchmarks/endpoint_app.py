"""The app that the endpoint benchmarks serve: one bare endpoint, and the same behind several chains.

    uvicorn benchmarks.endpoint_app:app

Routes: ``/{chain}/{pace}/{count}``; ``pace`` is ``burst``, ``paced`` (a loop turn a token) or seconds between tokens,
each of which then says when it was made.
``GET /cpu`` says how much CPU time the process has used, and how large it is.
"""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from agui_pipeline import (
    A2UIMiddleware,
    AGUIMiddleware,
    EventThrottleMiddleware,
    PassThroughMiddleware,
    TranslatorMiddleware,
)

_RECORD = json.dumps(
    {
        "surfaceUpdate": {
            "surfaceId": "s",
            "components": [
                {"id": f"c{i}", "component": {"Text": {"text": {"literalString": "some words and more words"}}}}
                for i in range(20)
            ],
        }
    }
)


def _frame(delta: str) -> bytes:
    event = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": delta}
    return b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n"


_TOKENS = [_frame(_RECORD[i : i + 4]) for i in range(0, len(_RECORD), 4)] + [_frame("\n")]


async def _events(pace: str, count: int) -> AsyncIterator[bytes]:
    yield b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n'
    yield b'data: {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}\n\n'
    tokens = _TOKENS
    size = len(tokens)
    seconds = {"burst": -1.0, "paced": 0.0}.get(pace)
    if seconds is None:
        seconds = float(pace)
    for index in range(count):
        yield tokens[index % size] if seconds <= 0 else _frame(f"@{time.monotonic():.6f} ")
        if seconds >= 0:
            await asyncio.sleep(seconds)
    yield b'data: {"type":"TEXT_MESSAGE_END","messageId":"m"}\n\n'
    yield b'data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n\n'


async def _agent(request: Request) -> StreamingResponse:
    await request.body()
    stream = _events(request.path_params["pace"], request.path_params["count"])
    return StreamingResponse(stream, media_type="text/event-stream")


def _cpu(_request: Request) -> JSONResponse:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return JSONResponse({"cpu": time.process_time(), "rss": pages * resource.getpagesize()})


_CHAINS: dict[str, list[TranslatorMiddleware]] = {
    "untouched": [PassThroughMiddleware(lambda _event: True)],
    "throttle": [EventThrottleMiddleware()],
    "a2ui-throttle": [A2UIMiddleware(), EventThrottleMiddleware()],
}

app = Starlette(
    routes=[
        Route("/cpu", _cpu),
        *(Route(f"/{name}/{{pace}}/{{count:int}}", _agent, methods=["POST"]) for name in ("bare", "empty", *_CHAINS)),
    ]
)
app.add_middleware(AGUIMiddleware, middleware=[], paths=["/empty/*"])
for _name, _chain in _CHAINS.items():
    app.add_middleware(AGUIMiddleware, middleware=_chain, paths=[f"/{_name}/*"])
