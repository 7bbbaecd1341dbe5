"""Endpoints as people write them are wrapped without a change to them, and their events arrive byte for byte."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any

import anyio
import httpx
import pytest
from ag_ui.core import (
    EventType,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from ag_ui.encoder import EventEncoder
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app, agent_endpoint
from agui_pipeline.adapters.testing import ASGIResponse
from agui_pipeline.middleware import A2UIMiddleware, EventThrottleMiddleware, Source
from agui_pipeline.translators import Diagnostic, Event, replace
from tests.adapters.apps import BODY, FRAMES, INPUT, RUN, STREAM, TYPES, Scripted, ask, frame, pieces, types, wrapped
from tests.middleware.kit import Same, Stage, passing

pytestmark = pytest.mark.anyio


async def shout(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
    async for event in next(input):
        yield replace(event, delta=event.delta.upper()) if event.type == "TEXT_MESSAGE_CONTENT" else event


def text(response: ASGIResponse) -> str:
    return "".join(event.delta for event in response.events if event.type == "TEXT_MESSAGE_CONTENT")


# Endpoints.


async def plain(request: Request) -> StreamingResponse:
    """Text frames from an async generator, which Starlette encodes."""
    body = await request.json()

    async def frames() -> AsyncIterator[str]:
        for event in RUN:
            yield frame(event | ({"threadId": body["threadId"]} if "threadId" in event else {})).decode()

    return StreamingResponse(frames(), media_type="text/event-stream")


async def threaded(request: Request) -> StreamingResponse:
    """A plain generator, which Starlette runs in a thread; memoryviews."""
    await request.body()

    def frames() -> Iterator[memoryview]:
        for piece in pieces(STREAM, 7):
            yield memoryview(piece)

    return StreamingResponse(frames(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def with_crlf(request: Request) -> EventSourceResponse:
    """sse-starlette: CRLF line ends, pings, an event name and an id."""
    await request.json()

    async def frames() -> AsyncIterator[Any]:
        for number, event in enumerate(RUN):
            data = json.dumps(event, ensure_ascii=False)
            yield ServerSentEvent(data, event="message", id=str(number)) if number % 2 else {"data": data}
            if number == 3:
                await anyio.sleep(0.08)

    return EventSourceResponse(frames(), ping=0.05)


def fastapi_app() -> FastAPI:
    """The SDK's models on both sides, as its documentation shows it."""
    app = FastAPI()

    @app.post("/agent")
    async def endpoint(input_data: RunAgentInput, request: Request) -> StreamingResponse:
        encoder = EventEncoder(accept=request.headers.get("accept", ""))

        async def frames() -> AsyncIterator[str]:
            thread, run = input_data.thread_id, input_data.run_id
            yield encoder.encode(RunStartedEvent(type=EventType.RUN_STARTED, thread_id=thread, run_id=run))
            yield encoder.encode(TextMessageStartEvent(message_id="m", role="assistant"))
            yield encoder.encode(TextMessageContentEvent(message_id="m", delta="Grüße, "))
            yield encoder.encode(TextMessageContentEvent(message_id="m", delta=str(input_data.messages[-1].content)))
            yield encoder.encode(TextMessageEndEvent(message_id="m"))
            yield encoder.encode(RunFinishedEvent(thread_id=thread, run_id=run))

        return StreamingResponse(frames(), media_type=encoder.get_content_type())

    return app


def starlette_app(endpoint: Any, *, path: str = "/agent") -> Starlette:
    return Starlette(routes=[Route(path, endpoint, methods=["POST"])])


APPS: dict[str, Any] = {
    "Starlette": lambda: starlette_app(plain),
    "threaded": lambda: starlette_app(threaded),
    "sse-starlette": lambda: starlette_app(with_crlf),
    "FastAPI": fastapi_app,
}

each_app = pytest.mark.parametrize("make", APPS.values(), ids=APPS.keys())


@each_app
async def test_an_endpoint_is_wrapped_from_inside_its_application(make: Any) -> None:
    bare = await ask(make(), path="/agent")
    app = make()
    app.add_middleware(AGUIMiddleware, middleware=[shout], paths=["/agent"])
    response = await ask(app, path="/agent")
    assert types(response) == types(bare) == TYPES
    assert (response.status, response.complete) == (200, True)
    assert text(response) == text(bare).upper()
    assert b"\r" not in response.body
    assert response.headers["content-type"] == bare.headers["content-type"]
    assert response.headers["x-accel-buffering"] == "no"


@each_app
async def test_a_whole_application_is_wrapped_from_outside(make: Any) -> None:
    for chain in ([], [Stage(Same)], [passing], [EventThrottleMiddleware(interval=0)]):
        bare = await ask(make(), path="/agent")
        response = await ask(AGUIMiddleware(make(), middleware=chain), path="/agent")
        pings = [one.raw for one in bare.frames if one.data is None]
        seen = [one.raw for one in response.frames]
        assert seen == [one.raw for one in bare.frames] or (
            pings and [one for one in seen if not one.startswith(b":")] == [one.raw for one in bare.frames if one.data]
        )
        assert b"\r" not in response.body


@each_app
async def test_wrapping_twice_works(make: Any) -> None:
    app = make()
    app.add_middleware(AGUIMiddleware, middleware=[Stage(Same)], paths=["/agent"])
    app.add_middleware(AGUIMiddleware, middleware=[EventThrottleMiddleware(), shout])
    response = await ask(AGUIMiddleware(app, middleware=[A2UIMiddleware.chat()]), path="/agent")
    assert types(response)[0] == "RUN_STARTED"
    assert types(response)[-1] == "RUN_FINISHED"
    assert text(response).startswith("GRÜSSE,")


async def test_pings_of_the_app_go_on() -> None:
    response = await ask(AGUIMiddleware(starlette_app(with_crlf)), path="/agent")
    pings = [one.raw for one in response.frames if one.data is None]
    assert pings
    assert all(ping.startswith(b": ping") and ping.endswith(b"\n\n") for ping in pings)
    named = [one for one in response.frames if one.id is not None]
    assert [(one.event, one.id) for one in named] == [("message", "1"), ("message", "3"), ("message", "5")]


async def test_a_transport_that_calls_the_app_sees_a_wrapped_endpoint_whole() -> None:
    transport = httpx.ASGITransport(AGUIMiddleware(starlette_app(plain), middleware=[shout]))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        response = await client.post("/agent", content=BODY, headers={"content-type": "application/json"})
    assert "GRÜSSE, " in response.text


# Chunks.


CRLF = STREAM.replace(b"\n", b"\r\n")
CHUNKINGS: dict[str, list[Any]] = {
    "one byte a chunk": pieces(STREAM, 1),
    "CRLF, one byte a chunk": pieces(CRLF, 1),
    "all in one chunk": [STREAM],
    "CRLF in one chunk": [CRLF],
    "CR": [STREAM.replace(b"\n", b"\r")],
    "bytes, memoryviews, bytearrays": [
        (bytes, memoryview, bytearray)[number % 3](piece) for number, piece in enumerate(pieces(STREAM, 5))
    ],
    "empty chunks": [part for one in FRAMES for part in (b"", one, bytearray(), memoryview(b""))],
    "two frames a chunk": [b"".join(FRAMES[at : at + 2]) for at in range(0, len(FRAMES), 2)],
    "a frame and a half a chunk": pieces(STREAM, len(STREAM) // 4),
}


@pytest.mark.parametrize("chunks", CHUNKINGS.values(), ids=CHUNKINGS.keys())
async def test_the_cut_of_the_chunks_does_not_matter(chunks: list[Any]) -> None:
    for chain in ([], [Stage(Same)], [passing]):
        response = await ask(wrapped(Scripted(chunks), *chain))
        assert response.body == STREAM


@given(st.data())
def test_any_cut_gives_the_same_stream(data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from([STREAM, CRLF]))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))) | {0, len(stream)})
    chunks = [stream[start:end] for start, end in pairwise(cuts)]
    response = anyio.run(ask, wrapped(Scripted(chunks), Stage(Same)))
    assert response.body == STREAM


async def test_a_bytearray_that_the_app_uses_again_is_safe() -> None:
    buffer = bytearray()

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for one in FRAMES:
            buffer[:] = one
            await send({"type": "http.response.body", "body": memoryview(bytes(buffer)), "more_body": True})
            await send({"type": "http.response.body", "body": buffer, "more_body": True})
        buffer[:] = b"x" * len(buffer)
        await send({"type": "http.response.body"})

    response = await ask(wrapped(app))
    assert response.body == b"".join(one + one for one in FRAMES)


# Frames.


async def test_untouched_frames_are_sent_byte_for_byte() -> None:
    frames = [
        b'data:{"type":"CUSTOM",  "name":"no space",\ndata: "value":1.0}\n\n',
        b'event: custom\nid: 7\nretry: 100\ndata: {"type":"CUSTOM","name":"fields","value":null}\n\n',
        b': a comment\ndata: {"type":"FUTURE_EVENT","snake_case":true,"n":1e400}\n\n',
        b'data: {"type":"CUSTOM","name":"\\u00fc","value":"\\ud800"}\n\n',
    ]
    for chain in ([], [Stage(Same)], [passing]):
        response = await ask(wrapped(Scripted([b"".join(frames)]), *chain))
        assert response.body == b"".join(frames)


async def test_frames_that_are_no_events_pass_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    foreign = [b": ping\n\n", b"data: [DONE]\n\n", b"data: \n\n", b"id: 5\n\n", b"retry: 10\n\n", b'data: {"a":1}\n\n']
    diagnostics: list[Diagnostic] = []
    met: list[str] = []

    async def noting(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input):
            met.append(event.type)
            yield event

    app = Scripted([FRAMES[0], *foreign, *FRAMES[1:]])
    for chain in ([], [Stage(Same)], [noting]):
        response = await ask(wrapped(app, *chain, on_diagnostic=diagnostics.append))
        assert sorted(one.raw for one in response.frames) == sorted([*foreign, *FRAMES])
        assert types(response) == TYPES
        assert [one.code for one in diagnostics] == ["asgi.frame"] * 3
        diagnostics.clear()
    assert met == TYPES
    await ask(wrapped(app))
    assert [record.levelname for record in caplog.records] == ["WARNING"]  # a code and run


async def test_a_frame_past_the_limit_is_dropped_and_the_stream_goes_on() -> None:
    diagnostics: list[Diagnostic] = []
    huge = b"data: " + b"x" * (10 * 1024 * 1024) + b"\n\n"
    for cut in (len(huge), 1 << 20):
        app = Scripted([FRAMES[0], *pieces(huge, cut), *FRAMES[1:]])
        response = await ask(wrapped(app, on_diagnostic=diagnostics.append))
        assert response.body == STREAM
        assert [one.code for one in diagnostics] == ["asgi.frame-limit"]
        diagnostics.clear()
    response = await ask(wrapped(Scripted([FRAMES[0] + huge + FRAMES[1] + huge + b"".join(FRAMES[2:])])))
    assert response.body == STREAM
    response = await ask(wrapped(Scripted([*FRAMES, huge[:-2]])))
    assert response.body == STREAM


# Headers.


async def test_the_headers_of_the_app_go_on_but_for_what_a_changed_stream_must_say() -> None:
    given = [
        (b"Content-Type", b"text/event-stream; charset=utf-8"),
        (b"Content-Length", str(len(STREAM)).encode()),
        (b"Cache-Control", b"no-cache, private"),
        (b"X-Accel-Buffering", b"yes"),
        (b"Set-Cookie", b"a=1"),
        (b"Set-Cookie", b"b=2"),
        (b"ETag", b'"x"'),
    ]
    response = await ask(wrapped(Scripted(headers=given), shout))
    assert response.headers.raw == [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"etag", b'"x"'),
        (b"cache-control", b"no-cache, private, no-transform"),
        (b"x-accel-buffering", b"no"),
    ]
    assert response.status == 200


@pytest.mark.parametrize(
    "content_type", [b"text/event-stream", b"TEXT/Event-Stream;charset=UTF-8", b" text/event-stream ; q=1"]
)
async def test_an_event_stream_is_known_by_its_content_type(content_type: bytes) -> None:
    response = await ask(wrapped(Scripted(headers=[(b"content-type", content_type)]), shout))
    assert "GRÜSSE, " in response.text
    assert response.headers["content-type"] == content_type.decode()


async def test_the_status_of_the_app_goes_on() -> None:
    response = await ask(wrapped(Scripted(status=203), shout))
    assert (response.status, text(response)) == (203, "GRÜSSE, 世界")


# Places.


async def test_paths_are_those_that_the_router_sees() -> None:
    inner = Starlette(routes=[Route("/agent", plain, methods=["POST"]), Route("/other", plain, methods=["POST"])])
    inner.add_middleware(AGUIMiddleware, middleware=[shout], paths=["/agent"])
    app = Starlette(routes=[Mount("/api", Mount("/v1", inner))])
    for root in ("", "/prefix"):
        shouted = await ask(app, path=f"{root}/api/v1/agent", scope={"root_path": root})
        assert text(shouted) == "GRÜSSE, 世界"
        calm = await ask(app, path=f"{root}/api/v1/other", scope={"root_path": root})
        assert text(calm) == "Grüße, 世界"


async def test_an_endpoint_serves_under_a_mount_and_as_a_route() -> None:
    endpoint = agent_endpoint(RUN, shout)
    app = Starlette(routes=[Route("/route", endpoint), Mount("/mount", agent_app(RUN, shout, path="/agent"))])
    fast = FastAPI()
    fast.mount("/fast", endpoint)
    fast.add_route("/route", endpoint)  # type: ignore[arg-type]
    for served, path in ((app, "/route"), (app, "/mount/agent"), (fast, "/fast/"), (fast, "/route"), (endpoint, "/x")):
        response = await ask(served, path=path)
        assert text(response) == "GRÜSSE, 世界", path
    assert (await ask(app, path="/mount/other")).status == 404


async def test_what_the_router_notes_in_the_scope_is_seen_outside() -> None:
    """Tracers and metrics name a request by its route, which they find in the scope behind the call."""
    seen: list[Any] = []

    def tracing(app: ASGIApp) -> ASGIApp:
        async def traced(scope: Any, receive: Any, send: Any) -> None:
            async def noted(message: Any) -> None:
                if message["type"] == "http.response.start":
                    seen.append(scope.get("endpoint"))
                await send(message)

            await app(scope, receive, noted)
            seen.append((scope.get("endpoint"), scope["path_params"], scope["asgi"]["spec_version"]))

        return traced

    inner = starlette_app(plain, path="/{name}")
    assert types(await ask(tracing(AGUIMiddleware(inner)), path="/agent")) == TYPES
    assert seen == [plain, (plain, {"name": "agent"}, "2.3")]


async def test_the_app_gets_the_input_that_the_chain_hands_on() -> None:
    class Prepared(Stage):
        def __init__(self) -> None:
            super().__init__(Same, lambda given: given.model_copy(update={"state": {"n": 2}}))

    async def renaming(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input.model_copy(update={"thread_id": "other"})):
            yield event

    app = Scripted()
    await ask(wrapped(app, Prepared(), renaming))
    sent = json.loads(app.call.body)
    assert sent == {**INPUT, "state": {"n": 2}, "threadId": "other"}
    headers = dict(app.call.scope["headers"])
    assert headers[b"content-length"] == str(len(app.call.body)).encode()
    assert app.call.body != BODY
