"""What is no event stream of an agent passes byte for byte, message for message."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message

from agui_pipeline.adapters.starlette import AGUIMiddleware
from agui_pipeline.adapters.testing import run_asgi
from agui_pipeline.middleware import Source
from agui_pipeline.translators import Diagnostic
from tests.adapters.apps import BODY, FRAMES, SSE, STREAM, Scripted, ask, types, wrapped

pytestmark = pytest.mark.anyio


async def forbidden(_input: Any, _next: Source) -> Any:
    raise AssertionError("this request must not meet the chain")
    yield


class Recorded:
    """Runs an app and keeps its messages as they are."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def run(self, app: ASGIApp, body: bytes = BODY, **scope: Any) -> list[Message]:
        request: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if request:
                return request.pop()
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: Message) -> None:
            self.messages.append(message)

        connection = {
            "type": "http",
            "method": "POST",
            "path": "/agent",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "headers": [(b"content-type", b"application/json")],
            "query_string": b"",
            "extensions": {"http.response.debug": {}},
        }
        await app({**connection, **scope}, receive, send)
        return self.messages


ANSWERS: dict[str, Scripted] = {
    "a JSON error": Scripted([b'{"detail":[]}'], status=422, headers=[(b"Content-Type", b"application/json")]),
    "no content": Scripted([], status=204, headers=[(b"X-Thing", b"1"), (b"X-Thing", b"2")]),
    "a redirect": Scripted([], status=307, headers=[(b"location", b"/elsewhere")]),
    "chunks of text": Scripted([b"a", b"", b"b\r\n\r\n", b"data: {}\n\n"], headers=[(b"content-type", b"text/plain")]),
    "no content type": Scripted([STREAM], headers=[]),
    "a type that only begins alike": Scripted([STREAM], headers=[(b"content-type", b"text/event-streams")]),
    "a compressed event stream": Scripted([gzip.compress(STREAM)], headers=[*SSE, (b"Content-Encoding", b"gzip")]),
    "bytearrays and memoryviews": Scripted([bytearray(b"a"), memoryview(b"b")], headers=[]),
}


@pytest.mark.parametrize("app", ANSWERS.values(), ids=ANSWERS.keys())
async def test_other_answers_are_not_touched(app: Scripted) -> None:
    bare = await Recorded().run(app)
    assert await Recorded().run(wrapped(app)) == bare
    assert await Recorded().run(wrapped(wrapped(app))) == bare


async def test_a_compressed_event_stream_is_reported() -> None:
    diagnostics: list[Diagnostic] = []
    await ask(wrapped(ANSWERS["a compressed event stream"], on_diagnostic=diagnostics.append))
    assert [(one.code, one.detail) for one in diagnostics] == [("asgi.bypass", {"reason": "content-encoding"})]


async def test_identity_is_no_compression() -> None:
    response = await ask(wrapped(Scripted(headers=[*SSE, (b"content-encoding", b"identity")])))
    assert response.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
async def test_other_methods_are_not_touched(method: str) -> None:
    diagnostics: list[Diagnostic] = []
    app = Scripted()
    bare = await Recorded().run(app, method=method)
    assert await Recorded().run(wrapped(app, forbidden, on_diagnostic=diagnostics.append), method=method) == bare
    reported = [] if method in ("HEAD", "OPTIONS") else [("asgi.bypass", {"reason": "method"})]
    assert [(one.code, one.detail) for one in diagnostics] == reported
    plain = Scripted([b"text"], headers=[])
    assert await Recorded().run(wrapped(plain, forbidden, on_diagnostic=diagnostics.append), method=method)
    assert len(diagnostics) == len(reported)


PATHS: list[tuple[Any, str, bool]] = [
    (None, "/any", True),
    (["/agent"], "/agent", True),
    (["/agent"], "/agent/", False),
    (["/agent"], "/Agent", False),
    (["/agent"], "/agents", False),
    (["/agent*"], "/agents/1", True),
    (["/agent/*"], "/agent", False),
    (["/agent/*"], "/agent/1/run", True),
    (["*"], "/", True),
    (["/a", "/b*"], "/bcd", True),
    (("/a", "/b"), "/b", True),
    ({"/a"}, "/a", True),
    ([], "/agent", False),
    (lambda scope: scope["path"].endswith("run"), "/1/run", True),
    (lambda scope: dict(scope["headers"]).get(b"x-agent") == b"1", "/agent", False),
]


@pytest.mark.parametrize(("paths", "path", "matches"), PATHS)
async def test_only_matching_paths_are_touched(paths: Any, path: str, *, matches: bool) -> None:
    app = AGUIMiddleware(Scripted(), paths=paths)
    for _ in range(2):
        response = await ask(app, path=path)
        assert ("x-accel-buffering" in response.headers) == matches


async def test_paths_may_come_from_an_iterator() -> None:
    app = AGUIMiddleware(Scripted(), paths=iter(["/a", "/b"]))  # type: ignore[arg-type]
    for path in ("/a", "/b", "/b"):
        assert "x-accel-buffering" in (await ask(app, path=path)).headers


async def test_a_path_is_matched_without_the_prefix_of_mounts() -> None:
    app = AGUIMiddleware(Scripted(), paths=["/agent"])
    for root, path, matches in (
        ("", "/agent", True),
        ("/api", "/api/agent", True),
        ("/api/", "/api/agent", True),
        ("/api", "/agent", True),  # servers that have cut the prefix off
        ("/api", "/apiagent", False),
        ("/api/agent", "/api/agent", False),
    ):
        response = await ask(app, path=path, scope={"root_path": root})
        assert ("x-accel-buffering" in response.headers) == matches, (root, path)


async def test_requests_to_other_paths_keep_their_own_receive_and_send() -> None:
    seen: list[Any] = []

    async def app(*call: Any) -> None:
        seen.append(call)

    call: Any = ({"type": "http", "method": "POST", "path": "/other", "headers": []}, object(), object())
    await AGUIMiddleware(app, paths=["/agent"])(*call)
    assert all(one is other for one, other in zip(seen[0], call, strict=True))


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
async def test_lifespan_and_websockets_pass(kind: str) -> None:
    incoming: list[Message] = [{"type": f"{kind}.{name}"} for name in ("one", "two")]
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope is given
        await send({**await receive(), "answer": 1})
        await send({**await receive(), "answer": 2})

    given: Any = {"type": kind, "path": "/agent", "headers": []}
    await AGUIMiddleware(app, middleware=[forbidden], paths=lambda _scope: True)(given, receive, send)
    assert sent == [{"type": f"{kind}.one", "answer": 1}, {"type": f"{kind}.two", "answer": 2}]


async def test_files_pass(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 200_000)

    async def endpoint(request: Request) -> FileResponse:
        await request.body()
        return FileResponse(path)

    app = Starlette(routes=[Route("/agent", endpoint, methods=["POST"])])
    bare = await ask(app, path="/agent")
    response = await ask(wrapped(app), path="/agent")
    assert (response.chunks, response.headers.raw) == (bare.chunks, bare.headers.raw)

    # Where the server would take the path alone, the file comes in chunks: no answer may pass by unread.
    extensions: dict[str, Any] = {"extensions": {"http.response.pathsend": {}}}
    response = await ask(wrapped(app), path="/agent", scope=extensions)
    assert response.body == bare.body


async def test_extensions_that_would_pass_by_are_not_offered() -> None:
    app = Scripted()
    offered: dict[str, Any] = {f"http.response.{name}": {} for name in ("pathsend", "zerocopysend", "trailers", "push")}
    await Recorded().run(wrapped(app), extensions={**offered, "tls": {}})
    assert set(app.call.scope["extensions"]) == {"http.response.push", "tls"}
    assert app.call.scope["asgi"] == {"version": "3.0", "spec_version": "2.4"}


async def test_messages_of_extensions_pass_before_a_plain_answer_and_are_dropped_from_a_stream() -> None:
    push: Message = {"type": "http.response.push", "path": "/x", "headers": []}

    async def pushing(_call: Any, _receive: Any, send: Any) -> None:
        await send(push)

    plain = Scripted([pushing, b"text"], headers=[])
    assert push in await Recorded().run(wrapped(plain))
    messages = await Recorded().run(wrapped(Scripted([FRAMES[0], pushing, *FRAMES[1:]])))
    assert [message["type"] for message in messages[:2]] == ["http.response.start", "http.response.body"]
    assert push not in messages


async def test_trailers_are_not_announced_for_a_changed_stream() -> None:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": SSE, "trailers": True})
        await send({"type": "http.response.body", "body": STREAM, "more_body": False})
        await send({"type": "http.response.trailers", "headers": []})

    messages = await Recorded().run(wrapped(app))
    assert not messages[0].get("trailers", False)
    assert {message["type"] for message in messages} == {"http.response.start", "http.response.body"}


async def test_the_background_work_of_other_answers_runs() -> None:
    done: list[int] = []

    async def work() -> None:
        await anyio.lowlevel.checkpoint()
        done.append(1)

    async def endpoint(request: Request) -> Response:
        from starlette.background import BackgroundTask

        await request.json()
        return JSONResponse({}, background=BackgroundTask(work))

    app = Starlette(routes=[Route("/agent", endpoint, methods=["POST"])])
    assert (await ask(wrapped(app), path="/agent")).json() == {}
    assert done == [1]


async def test_an_app_that_raises_in_another_answer_raises_to_the_server() -> None:
    error = ValueError("of the app")
    response = await run_asgi(wrapped(Scripted([b"text", error], headers=[])), body=BODY)
    assert response.exception is error
    assert (response.body, response.complete) == (b"text", False)


async def test_an_app_that_breaks_the_order_of_messages_is_left_to_the_server() -> None:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.body", "body": b"x"})

    response = await run_asgi(wrapped(app), body=BODY)
    assert isinstance(response.exception, RuntimeError)
    assert "before http.response.start" in str(response.exception)


async def test_an_event_stream_beside_a_json_answer_of_the_same_app() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        which = Scripted() if scope["path"] == "/agent" else ANSWERS["a JSON error"]
        await which(scope, receive, send)

    served = wrapped(app)
    assert types(await ask(served, path="/agent"))
    assert (await ask(served, path="/other")).status == 422
