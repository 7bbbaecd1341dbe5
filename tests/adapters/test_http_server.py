"""`HttpAgent` against real servers that do to a stream whatever networks and servers do; with httpx and with httpx2."""

from __future__ import annotations

import gc
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any, cast

import anyio
import pytest

from agui_pipeline.adapters.http import HttpAgent
from agui_pipeline.adapters.starlette import agent_app
from agui_pipeline.adapters.testing import collect
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Pipeline
from agui_pipeline.translators import Diagnostic, LimitError, SourceError, encode_sse, parse_input
from tests.adapters.apps import BODY, FRAMES, INPUT, RUN, STREAM, TYPES, frame
from tests.adapters.remote import SSE_HEAD, Script, Socket, chunked, remote
from tests.adapters.server import Client, Server, until

pytestmark = pytest.mark.anyio

GIVEN = parse_input(INPUT)
SILENCE = 0.25
"""Seconds, also of an answer's way here on a machine that has other things to do."""
JSON_HEAD = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\n"


@pytest.fixture(params=["own", "httpx", "httpx2"])
async def make(request: pytest.FixtureRequest, anyio_backend: Any) -> Any:  # noqa: ARG001 - the client is of its loop
    """Makes agents: with a client of their own, or with one of either library."""
    said: list[Diagnostic] = []
    library = None if request.param == "own" else pytest.importorskip(request.param)
    client = library and library.AsyncClient(trust_env=False)

    def agent(url: str, **options: Any) -> HttpAgent:
        made = HttpAgent(url, client=client, on_diagnostic=said.append, **options)
        made.said = said  # type: ignore[attr-defined]
        return made

    yield agent
    if client:
        assert not client.is_closed
        await client.aclose()
    gc.collect()  # what was left open would warn here


Make = Callable[..., HttpAgent]


def codes(agent: HttpAgent) -> list[str]:
    return [diagnostic.code for diagnostic in cast("Any", agent).said]


def silent_after(*chunks: bytes, head: bytes = SSE_HEAD) -> Script:
    """Some chunks, then silence until the client leaves."""

    def script(socket: Socket) -> None:
        socket.stream(*chunks, head=head)
        socket.stall()

    return script


def whole(socket: Socket) -> None:
    socket.stream(STREAM)
    socket.end()


# What servers do to the bytes.


def dribble(socket: Socket) -> None:
    socket.stream(*(STREAM[place : place + 1] for place in range(len(STREAM))))
    socket.end()


def crlf(socket: Socket) -> None:
    socket.stream(STREAM.replace(b"\n", b"\r\n"), b": ping\r\n\r\n")
    socket.end()


def mixed(socket: Socket) -> None:
    for place, one in enumerate(FRAMES):
        data = one if place % 2 else one.replace(b"\n", b"\r\n")
        socket.stream(data) if not place else socket.send(chunked(data), chunked(b": ping\r\n\r\n"))
    socket.end()


def until_close(socket: Socket) -> None:
    socket.send(SSE_HEAD + b"connection: close\r\n\r\n" + STREAM)
    socket._connection.shutdown(1)


def sized(socket: Socket) -> None:
    socket.send(SSE_HEAD + b"content-length: %d\r\n\r\n" % len(STREAM), STREAM)


GZIP_HEAD = SSE_HEAD + b"content-encoding: gzip\r\n"


def gzip() -> Any:
    return zlib.compressobj(wbits=31)


def gzipped(socket: Socket) -> None:
    packer = gzip()
    flushed = [packer.compress(one) + packer.flush(zlib.Z_SYNC_FLUSH) for one in FRAMES]
    socket.stream(*flushed, packer.flush(), head=GZIP_HEAD)
    socket.end()


def gzipped_dribble(socket: Socket) -> None:
    packer = gzip()
    data = packer.compress(STREAM) + packer.flush()
    socket.stream(*(data[place : place + 1] for place in range(len(data))), head=GZIP_HEAD)
    socket.end()


def members(socket: Socket) -> None:
    data = b""
    for one in FRAMES:
        packer = gzip()
        data += packer.compress(one) + packer.flush()
    socket.stream(data, head=GZIP_HEAD)
    socket.end()


@pytest.mark.parametrize("script", [whole, dribble, crlf, mixed, until_close, sized, gzipped, gzipped_dribble, members])
async def test_the_run_arrives_byte_for_byte(make: Make, script: Any) -> None:
    with remote(script) as there:
        agent = make(there.url)
        result = await collect(agent, GIVEN)
        assert [encode_sse(event) for event in result.events] == FRAMES
        assert codes(agent) == []
        assert json.loads(there.asked[0].body)["runId"] == "r"
        assert there.asked[0].line == "POST /run HTTP/1.1"


async def test_a_compressed_event_does_not_wait_for_the_next(make: Make) -> None:
    seen = threading.Event()

    def script(socket: Socket) -> None:
        packer = gzip()
        socket.stream(packer.compress(FRAMES[0]) + packer.flush(zlib.Z_SYNC_FLUSH), head=GZIP_HEAD)
        assert seen.wait(10)
        socket.send(chunked(packer.compress(STREAM[len(FRAMES[0]) :]) + packer.flush()))
        socket.end()

    with remote(script) as there:
        async for event in make(there.url)(GIVEN):
            assert event.type in TYPES
            seen.set()


def gzip_all(data: bytes) -> bytes:
    packer = gzip()
    return bytes(packer.compress(data) + packer.flush())


@pytest.mark.parametrize("pack", [bytes, gzip_all], ids=["plain", "gzip"])
async def test_a_megabyte_in_one_record(make: Make, pack: Callable[[bytes], bytes]) -> None:
    large = frame({"type": "RAW", "event": "ä€😀\u2028" * 150_000})
    data = pack(FRAMES[0] + large + FRAMES[-1])
    head = GZIP_HEAD if pack(b"") else SSE_HEAD

    def script(socket: Socket) -> None:
        socket.stream(*(data[place : place + 70_000] for place in range(0, len(data), 70_000)), head=head)
        socket.end()

    with remote(script) as there:
        result = await collect(make(there.url), GIVEN)
    assert len(large) > 1_500_000
    assert [encode_sse(event) for event in result.events] == [FRAMES[0], large, FRAMES[-1]]


async def test_a_bomb_is_met_by_the_caps(make: Make) -> None:
    bomb = gzip_all(FRAMES[0] + b"data: " + bytes(12_000_000))
    comments = gzip_all(FRAMES[0] + b": \n\n" * 500_000)
    assert len(bomb) < 20_000
    for data, options in ((bomb, {}), (comments, {"max_bytes": 1_000_000})):
        with remote(silent_after(data, head=GZIP_HEAD)) as there:
            agent = make(there.url, **options)
            result = await collect(agent, GIVEN)
            assert (result.types, result.events[-1].code) == (["RUN_STARTED", "RUN_ERROR"], "source_limit")
            assert there.left
    with remote(silent_after(gzip_all(bytes(12_000_000)), head=GZIP_HEAD)) as there:
        assert type((await collect(make(there.url), GIVEN, catch=True)).exception) is LimitError


async def test_gzip_that_is_nothing_for_ever_is_met_by_the_caps(make: Make) -> None:
    def script(socket: Socket) -> None:
        socket.stream(gzip_all(FRAMES[0]), head=GZIP_HEAD)
        socket.flood(chunked(gzip_all(b"") * 1000))

    with remote(script) as there:
        result = await collect(make(there.url, max_bytes=100_000), GIVEN)
        assert (result.types, result.events[-1].code) == (["RUN_STARTED", "RUN_ERROR"], "source_limit")
        assert there.left


# Cut, or silent.


def cut_mid_frame(socket: Socket) -> None:
    socket.stream(FRAMES[0], FRAMES[1][:20])
    socket._connection.shutdown(1)


def cut_mid_chunk(socket: Socket) -> None:
    socket.stream(FRAMES[0])
    socket.send(b"50\r\n" + FRAMES[1][:20])
    socket._connection.shutdown(1)


def crash(socket: Socket) -> None:
    socket.stream(FRAMES[0])
    arrived.wait(10)
    socket.reset()


def too_short(socket: Socket) -> None:
    socket.send(SSE_HEAD + b"content-length: 100000\r\n\r\n" + FRAMES[0] + FRAMES[1][:20])
    socket._connection.shutdown(1)


def no_terminal(socket: Socket) -> None:
    socket.stream(FRAMES[0])
    socket.end()


def no_framing(socket: Socket) -> None:
    socket.stream(FRAMES[0])
    socket.send(b"not a chunk\r\n")


def broken_gzip(socket: Socket) -> None:
    packer = gzip()
    data = packer.compress(FRAMES[0]) + packer.flush(zlib.Z_SYNC_FLUSH)
    socket.stream(data, b"\xff" * 50, head=GZIP_HEAD)
    socket.end()


def cut_gzip(socket: Socket) -> None:
    packer = gzip()
    socket.stream(packer.compress(FRAMES[0]) + packer.flush(zlib.Z_SYNC_FLUSH), head=GZIP_HEAD)
    socket.end()


arrived = threading.Event()


@pytest.mark.parametrize(
    "script", [cut_mid_frame, cut_mid_chunk, crash, too_short, no_terminal, no_framing, broken_gzip, cut_gzip]
)
async def test_a_broken_stream_ends_in_run_error(make: Make, script: Any) -> None:
    arrived.clear()
    with remote(script) as there:
        agent = make(there.url)
        events = []
        async for event in agent(GIVEN):
            events.append(event)
            arrived.set()
    assert encode_sse(events[0]) == FRAMES[0]
    assert [event.type for event in events] == ["RUN_STARTED", "RUN_ERROR"]
    assert events[-1].code == "source_ended"
    assert codes(agent)[-1] == "http.cut"


async def test_silence_ends_in_run_error(make: Make) -> None:
    with remote(silent_after(FRAMES[0])) as there:
        agent = make(there.url, idle_timeout=SILENCE)
        result = await collect(agent, GIVEN)
        assert (result.types, result.events[-1].code) == (["RUN_STARTED", "RUN_ERROR"], "source_timeout")
        assert codes(agent) == ["http.idle"]
        assert there.left


async def test_silence_behind_the_end_of_a_run_is_no_error(make: Make) -> None:
    with remote(silent_after(STREAM)) as there:
        agent = make(there.url, idle_timeout=SILENCE)
        assert (await collect(agent, GIVEN)).types == TYPES
        assert codes(agent) == ["http.idle"]


@pytest.mark.parametrize("script", [Socket.stall, silent_after()], ids=["nothing", "head"])
async def test_silence_before_the_first_event_is_raised(make: Make, script: Script) -> None:
    with remote(script) as there:
        with pytest.raises(SourceError, match=r"0\.25 seconds"):
            await collect(make(there.url, idle_timeout=SILENCE), GIVEN)
        assert there.left


# Other answers.


async def test_a_json_array_is_no_stream(make: Make) -> None:
    body = json.dumps(RUN).encode()

    def script(socket: Socket) -> None:
        socket.send(JSON_HEAD % 200 + b"content-length: %d\r\n\r\n" % len(body) + body)

    with remote(script) as there, pytest.raises(SourceError, match="text/event-stream") as caught:
        await collect(make(there.url), GIVEN)
    assert (caught.value.status, caught.value.body) == (200, body.decode())


async def test_an_endless_refusal_is_read_to_two_kilobytes(make: Make) -> None:
    def script(socket: Socket) -> None:
        socket.send(JSON_HEAD % 503 + b"transfer-encoding: chunked\r\n\r\n")
        socket.flood(chunked(b"x" * 1000))

    with remote(script) as there:
        with pytest.raises(SourceError) as caught:
            await collect(make(there.url), GIVEN)
        assert (caught.value.status, caught.value.body) == (503, "x" * 2048)
        assert there.left


async def test_a_refusal_that_stalls_is_given_up(make: Make) -> None:
    def script(socket: Socket) -> None:
        socket.send(JSON_HEAD % 500 + b"content-length: 100\r\n\r\n" + b"because")
        socket.stall()

    with remote(script) as there, pytest.raises(SourceError) as caught:
        await collect(make(there.url, idle_timeout=SILENCE), GIVEN)
    assert (caught.value.status, caught.value.body) == (500, "because")


async def test_a_redirect_is_followed_without_the_secrets(make: Make) -> None:
    with remote(whole) as there:
        location = there.url.encode().replace(b"/run", b"/there")
        answer = b"HTTP/1.1 307 X\r\ncontent-length: 0\r\nlocation: " + location + b"\r\n\r\n"
        with remote(lambda socket: socket.send(answer)) as here:
            headers = {"authorization": "Bearer s", "x-key": "s"}
            with pytest.raises(SourceError, match="307"):
                await collect(make(here.url, headers=headers), GIVEN)
            assert there.asked == []
            assert (await collect(make(here.url, headers=headers, follow_redirects=True), GIVEN)).types == TYPES
            assert {"authorization", "x-key"} <= here.asked[-1].headers.keys()
        (asked,) = there.asked
        assert (asked.line, asked.body) == ("POST /there HTTP/1.1", here.asked[-1].body)
        assert not {"authorization", "x-key"} & asked.headers.keys()


async def test_nobody_listens(make: Make) -> None:
    with remote(whole) as there:
        pass
    with pytest.raises(SourceError, match=r"did not answer .ConnectError"):
        await collect(make(there.url), GIVEN)


async def test_a_connection_that_closes_is_tried_again_if_asked(make: Make) -> None:
    def close(socket: Socket) -> None:
        socket._connection.close()

    with remote(close, whole) as there:
        assert (await collect(make(there.url, retries=1), GIVEN)).types == TYPES
        assert [asked.body for asked in there.asked] == [there.asked[0].body] * 2
    with remote(close, whole) as there:
        with pytest.raises(SourceError):
            await collect(make(there.url), GIVEN)
        assert len(there.asked) == 1


# Leaving.


def endless(socket: Socket) -> None:
    """Many small chunks at once, so that some wait in the client's buffers, then silence."""
    socket.stream(FRAMES[0] + b"".join(FRAMES[1:3]))
    socket.send(b"".join(chunked(FRAMES[2]) for _ in range(500)))
    socket.stall()


CHAINS: dict[str, Callable[[], list[Any]]] = {
    "none": list,
    "throttle": lambda: [EventThrottleMiddleware(interval=0.01)],
    "guard, throttle": lambda: [GuardMiddleware(), EventThrottleMiddleware(interval=0.01)],
}


@pytest.mark.parametrize("chain", list(CHAINS))
@pytest.mark.parametrize("count", [1, 3])
async def test_leaving_closes_the_connection(make: Make, chain: str, count: int) -> None:
    with remote(endless) as there:
        async with Pipeline(make(there.url), *CHAINS[chain]()).open(GIVEN) as events:
            for _ in range(count):
                await anext(events)
        assert there.left
        gc.collect()


@pytest.mark.parametrize("chain", list(CHAINS))
async def test_cancelling_closes_the_connection(make: Make, chain: str) -> None:
    with remote(silent_after(FRAMES[0])) as there:
        got = []
        with anyio.CancelScope() as scope:
            async with Pipeline(make(there.url), *CHAINS[chain]()).open(GIVEN) as events:
                async for event in events:
                    got.append(event.type)
                    # While the next event is waited for, and not where this one was given.
                    scope.deadline = anyio.current_time() + 0.05
        assert (got, scope.cancelled_caught) == (["RUN_STARTED"], True)
        assert there.left


async def test_cancelling_before_an_answer_closes_the_connection(make: Make) -> None:
    with remote(Socket.stall) as there:
        async with anyio.create_task_group() as group:
            group.start_soon(collect, make(there.url), GIVEN)
            await anyio.to_thread.run_sync(until, lambda: there.asked)
            group.cancel_scope.cancel()
        assert there.left


async def test_connections_are_kept_while_it_is_open(anyio_backend: Any) -> None:  # noqa: ARG001
    with remote(whole) as there:
        agent = HttpAgent(there.url)
        async with agent:
            for _ in range(3):
                await collect(agent, GIVEN)
        await collect(agent, GIVEN)
        await collect(agent, GIVEN)
        assert [asked.connection for asked in there.asked] == [1, 1, 1, 2, 3]


def test_one_agent_serves_one_event_loop_after_another() -> None:
    with remote(whole) as there:
        agent = HttpAgent(there.url)
        for backend in ("asyncio", "trio", "asyncio"):
            assert anyio.run(collect, agent, GIVEN, backend=backend).types == TYPES


async def test_closing_it_ends_the_runs_that_go_on(anyio_backend: Any) -> None:  # noqa: ARG001
    with remote(silent_after(FRAMES[0])) as there:
        async with HttpAgent(there.url, on_diagnostic=lambda _: None) as agent:
            events = agent(GIVEN)
            types = [(await anext(events)).type]
        assert there.left
        assert types + [event.type async for event in events] == ["RUN_STARTED", "RUN_ERROR"]


async def test_many_runs_at_once_share_an_open_agent(make: Make) -> None:
    with remote(whole) as there:
        agent = make(there.url)
        results = []

        async def one() -> None:
            results.append((await collect(agent, GIVEN)).types)

        async with agent, anyio.create_task_group() as group:
            for _ in range(30):
                group.start_soon(one)
    assert results == [TYPES] * 30


# Served by `agent_app`.


@pytest.fixture
def served(server: Server) -> Iterator[Callable[..., Server]]:
    """Serves an agent on the real server."""

    def serve(agent: HttpAgent, *middleware: Any) -> Server:
        server.app = agent_app(agent, *middleware)
        return server

    yield serve
    server.app = None


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("chain", list(CHAINS))
def test_the_client_leaves_and_the_remote_agent_hears_of_it(
    served: Callable[..., Server], chain: str, reset: bool
) -> None:
    with remote(endless) as there:
        client = Client(served(HttpAgent(there.url), *CHAINS[chain]()))
        assert client.events(1)[0].type == "RUN_STARTED"
        assert not there.asked[0].left.is_set()
        client.leave(reset=reset)
        assert there.left


def test_a_served_remote_agent_is_that_agent(served: Callable[..., Server]) -> None:
    with remote(crlf) as there:
        answer = served(HttpAgent(there.url, forward=["x-tenant"])).post(headers={"x-tenant": "t"})
        assert answer.content == STREAM
        assert json.loads(there.asked[0].body).items() >= INPUT.items()
        assert there.asked[0].headers.get("x-tenant") == "t"


def test_the_failure_of_a_served_remote_agent_shows_nothing(served: Callable[..., Server]) -> None:
    with remote(lambda socket: socket.send(JSON_HEAD % 401 + b"content-length: 6\r\n\r\nsecret")) as there:
        server = served(HttpAgent(there.url + "?key=secret", headers={"x-key": "secret"}), GuardMiddleware())
        events = [line for line in server.post(BODY).text.split("\n\n") if line]
        assert "RUN_ERROR" in events[-1]
        assert "secret" not in "".join(events)
        until(lambda: server.errors)
        assert "secret" not in "".join(message + repr(error) for message, error in server.errors)
        server.errors.clear()
