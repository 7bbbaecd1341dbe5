"""`HttpAgent` and what it sends, refuses, repeats and makes of an answer; the network is respx, or a mock transport."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import respx
from ag_ui.core import RunAgentInput
from hypothesis import given
from hypothesis import strategies as st

from agui_pipeline.adapters import _http_exchange, _http_stream
from agui_pipeline.adapters._http_body import _Inflater
from agui_pipeline.adapters._http_exchange import AGUIExchange, Call, Exchange
from agui_pipeline.adapters.http import HttpAgent
from agui_pipeline.adapters.testing import Collected, collect
from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Pipeline
from agui_pipeline.middleware._request import request as current
from agui_pipeline.translators import (
    AGUIPipelineError,
    AnyEvent,
    ConfigurationError,
    Diagnostic,
    LimitError,
    SourceError,
    SSEFrame,
    WireEvent,
    encode_sse,
    parse_input,
    run_input,
)
from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION, PROTOCOL_VERSION
from tests.adapters.apps import FRAMES, INPUT, POSITIONS, RUN, STREAM, TYPES, frame

pytestmark = pytest.mark.anyio

URL = "https://agents.example/run"
SSE = {"content-type": "text/event-stream"}
GIVEN = parse_input(INPUT)

STARTED, FINISHED = FRAMES[0], FRAMES[-1]


class Stream(httpx.AsyncByteStream):
    """The body of an answer, in pieces; an exception among them is raised."""

    def __init__(self, pieces: Iterable[bytes | Exception]) -> None:
        self.pieces = list(pieces)
        self.given = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            await anyio.lowlevel.checkpoint()
            if isinstance(piece, Exception):
                raise piece
            self.given += 1
            yield piece

    async def aclose(self) -> None:
        self.closed = True


def streaming(*pieces: bytes | Exception) -> httpx.Response:
    return httpx.Response(200, headers=SSE, stream=Stream(pieces))


def client_of(answer: httpx.Response | Callable[[httpx.Request], httpx.Response]) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(answer if callable(answer) else lambda _request: answer))


class Run(Collected):
    """What came of one run."""

    said: list[Diagnostic]

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code for diagnostic in self.said]


async def run(
    answer: httpx.Response | Callable[[httpx.Request], httpx.Response],
    input: RunAgentInput = GIVEN,
    *,
    url: str = URL,
    **options: Any,
) -> Run:
    """Run an agent at a mock endpoint, and keep the error it may end in."""
    said: list[Diagnostic] = []
    async with client_of(answer) as client:
        agent = HttpAgent(url, client=client, on_diagnostic=said.append, **options)
        result = await collect(agent, input, catch=True)
    found = Run(**{name: getattr(result, name) for name in Collected.__dataclass_fields__})
    found.said = said
    return found


async def sent(**options: Any) -> httpx.Request:
    """Return the request of a run."""
    with respx.mock:
        route = respx.post(URL).respond(200, headers=SSE, content=STREAM)
        await collect(HttpAgent(URL, **options), GIVEN)
        assert route.call_count == 1
        request: httpx.Request = route.calls[0].request
        return request


# What is sent.


async def test_a_run_is_one_post_of_the_input_in_camel_case() -> None:
    request = await sent()
    assert (request.method, str(request.url)) == ("POST", URL)
    assert json.loads(request.content) == INPUT | {"protocolVersion": PROTOCOL_VERSION}
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "text/event-stream"
    assert request.headers["accept-encoding"] == "gzip"


@pytest.mark.skipif(not HAS_PROTOCOL_VERSION, reason="the SDK's 1.x only")
async def test_a_declared_version_is_passed_on() -> None:
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, headers=SSE, content=STREAM)

    await run(answer, run_input("hi", protocol_version="7.1"))
    await run(answer, run_input("hi"))
    assert [body["protocolVersion"] for body in bodies] == ["7.1", PROTOCOL_VERSION]


async def test_reads_wait_for_ever_and_all_else_as_the_client_says() -> None:
    timeout = (await sent()).extensions["timeout"]
    assert timeout == {"connect": 5.0, "read": None, "write": 5.0, "pool": 5.0}
    async with httpx.AsyncClient(timeout=httpx.Timeout(1, connect=2, read=3)) as client:
        timeout = (await sent(client=client)).extensions["timeout"]
    assert timeout == {"connect": 2, "read": None, "write": 1, "pool": 1}


def fresh(input: RunAgentInput) -> Mapping[str, str]:
    return {"X-Run": input.run_id}


async def fresh_later(input: RunAgentInput) -> Mapping[str, str]:
    await anyio.lowlevel.checkpoint()
    return fresh(input)


class Request:
    """A request that is being served."""

    headers = httpx.Headers(
        [("Authorization", "Bearer user"), ("X-Tenant", "töne"), ("X-Other", "o")], encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"headers": {"X-Run": "1"}}, {"x-run": "1", "authorization": None}),
        ({"headers": fresh}, {"x-run": "r"}),
        ({"headers": fresh_later}, {"x-run": "r"}),
        ({"headers": {"Accept": "text/event-stream, */*"}}, {"accept": "text/event-stream, */*"}),
        ({"forward": ["Authorization"]}, {"authorization": "Bearer user", "x-tenant": None, "x-other": None}),
        ({"forward": ("x-tenant", "x-absent")}, {"x-tenant": "töne", "x-absent": None}),
        ({"forward": ["authorization"], "headers": {"AUTHORIZATION": "Bearer own"}}, {"authorization": "Bearer own"}),
        ({"forward": ["authorization"], "headers": lambda _: {"Authorization": "f"}}, {"authorization": "f"}),
    ],
)
async def test_headers(options: Mapping[str, Any], wanted: Mapping[str, str | None]) -> None:
    token = current.set(Request())
    try:
        request = await sent(**options)
    finally:
        current.reset(token)
    assert {name: request.headers.get(name) for name in wanted} == wanted
    assert len(request.headers.get_list("authorization")) <= 1


async def test_without_a_request_there_is_nothing_to_forward() -> None:
    assert "authorization" not in (await sent(forward=["authorization"])).headers


@pytest.mark.parametrize("value", ["sec\r\nret", "sec\0ret", "sec\vret", "sec\fret", "sec\u2028ret", 7])
async def test_a_header_that_cannot_be_one_is_refused_without_its_value(value: Any) -> None:
    for headers in ({"x-key": value}, lambda _: {"x-key": value}):
        with pytest.raises(ConfigurationError, match="x-key") as caught:
            await sent(headers=headers)
        assert "sec" not in str(caught.value)


async def test_what_a_headers_function_raises_leaves_as_itself() -> None:
    error = PermissionError("no token")

    def refuse(_input: RunAgentInput) -> Mapping[str, str]:
        raise error

    result = await run(streaming(STREAM), headers=refuse, retries=3)
    assert result.exception is error


# What comes.


async def test_untouched_events_are_the_bytes_that_came() -> None:
    odd = b': hi\nid: 7\ndata:{ "type" :"CUSTOM",\ndata: "name":"n","value":1e400,"new":"\xe2\x80\xa8"}\n\n'
    future = b'event: x\ndata: {"type":"OF_NEXT_YEAR","messageId":null}\n\n'
    result = await run(streaming(STARTED + odd + future + FINISHED))
    assert [encode_sse(event) for event in result.events] == [STARTED, odd, future, FINISHED]
    assert result.codes == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_any_line_end_is_read(end: bytes) -> None:
    result = await run(streaming(b"\xef\xbb\xbf" + STREAM.replace(b"\n", end)))
    assert [encode_sse(event) for event in result.events] == FRAMES


@pytest.mark.parametrize("size", [65_536, 65_536 + 100, 3 * 65_536])
def test_all_that_can_be_decompressed_is(size: int) -> None:
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(b"x" * size) + packer.flush()
    for cut in range(len(data) + 1):
        inflater = _Inflater()
        inflater.feed(data[:cut])
        pieces = list(iter(inflater.next, b""))
        assert b"".join(pieces) == zlib.decompressobj(wbits=31).decompress(data[:cut])
        assert all(len(piece) <= 65_536 for piece in pieces)


@given(cuts=st.sets(st.integers(1, len(STREAM) - 1), max_size=12))
def test_any_cut_gives_the_same(cuts: set[int]) -> None:
    ends = [*sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    async def main() -> None:
        assert [encode_sse(event) for event in (await run(streaming(*pieces))).events] == FRAMES

    anyio.run(main)


@pytest.mark.parametrize("data", [b"[DONE]", b'[{"type":"CUSTOM"}]', b'{"type":', b'{"a":1}', b"", b"NaN"])
async def test_a_frame_that_is_no_event_is_left_out(data: bytes) -> None:
    result = await run(streaming(STARTED + b": comment\n\ndata: " + data + b"\n\nid: 1\n\n" + FINISHED))
    assert result.types == ["RUN_STARTED", "RUN_FINISHED"]
    assert result.codes == ["http.frame"]


async def test_a_frame_named_error_ends_in_run_error() -> None:
    result = await run(streaming(STARTED + b'event: error\ndata: {"error":"secret"}\n\n' + FRAMES[1]))
    assert result.types == ["RUN_STARTED", "TEXT_MESSAGE_START", "RUN_ERROR"]
    assert (result.events[-1].code, "secret" in result.events[-1].message) == ("source_error", False)
    assert result.codes == ["http.error-frame", "http.cut"]
    assert "secret" not in "".join(diagnostic.message for diagnostic in result.said)
    ended = await run(streaming(STARTED + b"event: error\ndata: {}\n\n" + FINISHED))
    assert (ended.types, ended.codes) == (["RUN_STARTED", "RUN_FINISHED"], ["http.error-frame"])


async def test_an_event_in_a_frame_named_error_is_an_event() -> None:
    result = await run(streaming(STARTED + b'event: error\ndata: {"type":"RUN_ERROR","message":"m"}\n\n'))
    assert (result.types, result.codes) == (["RUN_STARTED", "RUN_ERROR"], [])


# How it ends.

CUT = httpx.RemoteProtocolError("peer closed connection")
PARTIAL = FRAMES[2][:30]


@pytest.mark.parametrize(
    ("pieces", "codes"),
    [
        ([STARTED], ["http.cut"]),
        ([STARTED, PARTIAL], ["http.frame", "http.cut"]),
        ([STARTED, CUT], ["http.cut"]),
        ([STARTED, PARTIAL, CUT], ["http.frame", "http.cut"]),
        ([STARTED, httpx.ReadError("reset")], ["http.cut"]),
        ([FINISHED, STARTED], ["http.cut"]),
    ],
)
async def test_a_cut_stream_ends_in_run_error(pieces: Sequence[bytes | Exception], codes: Sequence[str]) -> None:
    result = await run(streaming(*pieces))
    whole = [piece for piece in pieces if isinstance(piece, bytes) and piece is not PARTIAL]
    assert [encode_sse(event) for event in result.events[:-1]] == whole
    assert (result.events[-1].type, result.events[-1].code) == ("RUN_ERROR", "source_ended")
    assert (result.codes, result.exception) == (codes, None)


@pytest.mark.parametrize("pieces", [[], [PARTIAL], [CUT], [b": comment\n\n", CUT], [b"data: [DONE]\n\n"]])
async def test_before_the_first_event_it_is_raised(pieces: Sequence[bytes | Exception]) -> None:
    result = await run(streaming(*pieces))
    assert (type(result.exception).__mro__[1], result.events) == (SourceError, [])
    assert isinstance(result.exception, SourceError)
    assert (result.exception.status, result.exception.body) == (200, None)


@pytest.mark.parametrize("rest", [[CUT], [FRAMES[2][:30]], [b"data: [DONE]"], [FRAMES[2][:30], CUT]])
async def test_behind_a_terminal_event_nothing_is_lost(rest: Sequence[bytes | Exception]) -> None:
    result = await run(streaming(STREAM, *rest))
    assert (result.types, result.exception) == (TYPES, None)
    assert result.codes[-1] == ("http.cut" if rest[-1] is CUT else "http.frame")


async def test_a_last_event_without_its_blank_line_counts() -> None:
    result = await run(streaming(STREAM[:-2]))
    assert (result.types, result.codes) == (TYPES, [])


async def test_one_stream_may_hold_several_runs() -> None:
    result = await run(streaming(STREAM, STREAM))
    assert (result.types, result.codes) == (TYPES * 2, [])


async def test_an_error_of_no_http_library_leaves_as_itself() -> None:
    error = RuntimeError("a defect in a transport")
    result = await run(streaming(STARTED, error))
    assert (result.types, result.exception) == (["RUN_STARTED"], error)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"max_bytes": len(STREAM) - 1}, "max_bytes"), ({"max_frame_bytes": len(FRAMES[2]) - 1}, "max_frame_bytes")],
)
async def test_caps(options: dict[str, Any], error: str) -> None:
    result = await run(streaming(*FRAMES), **options)
    assert result.types[-1] == "RUN_ERROR"
    assert set(result.types[:-1]) < set(TYPES)
    assert (result.events[-1].code, result.codes) == ("source_limit", ["http.limit"])
    assert error in result.events[-1].message
    tiny: dict[str, Any] = dict.fromkeys(options, 50)
    large = await run(streaming(b"data: " + bytes(100), *FRAMES), **tiny)
    assert (type(large.exception), large.events) == (LimitError, [])


async def test_behind_a_frame_that_is_too_large_nothing_is_read() -> None:
    stream = Stream([STARTED, b"data: " + b"x" * 500 + b"\n\n" + FRAMES[1], FRAMES[2], FINISHED])
    result = await run(httpx.Response(200, headers=SSE, stream=stream), max_frame_bytes=400)
    assert (result.types, stream.given, stream.closed) == (["RUN_STARTED", "RUN_ERROR"], 2, True)


# Answers that are none.


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [
        (400, "application/json", '{"code":"invalid_input"}'),
        (401, "text/plain", "no"),
        (404, None, ""),
        (422, "application/json", '{"detail":[]}'),
        (500, "text/event-stream", STREAM.decode()),
        (503, "text/html", "<p>Grüße"),
        (200, "application/json", json.dumps(RUN)),
        (200, None, "data: {}"),
        (204, None, ""),
        (200, "text/event-stream-of-another-kind", ""),
        (304, None, ""),
        (307, None, "see there"),
    ],
)
async def test_another_answer_is_a_source_error(status: int, content_type: str | None, body: str) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    if status == 307:
        headers["location"] = "https://elsewhere.example/?token=secret"
    with respx.mock:
        respx.post(url__startswith=URL).respond(status, headers=headers, content=body.encode())
        agent = HttpAgent("https://user:secret@agents.example/run?token=secret", headers={"x-key": "secret"}, retries=0)
        with pytest.raises(SourceError) as caught:
            await collect(agent, GIVEN)
    assert (caught.value.status, caught.value.body) == (status, body)
    assert str(status) in str(caught.value)
    assert URL in str(caught.value)
    assert "secret" not in str(caught.value) + repr(agent)


async def test_the_body_of_a_refusal_is_cut() -> None:
    stream = Stream([b"x" * 999 + "é".encode()] * 1000)
    result = await run(httpx.Response(500, stream=stream))
    assert isinstance(result.exception, SourceError)
    assert result.exception.body is not None
    assert len(result.exception.body.encode(errors="replace")) <= 2050
    assert result.exception.body.startswith("x" * 999 + "é")
    assert (stream.given, stream.closed) == (3, True)


async def test_a_refusal_whose_body_breaks_off_is_still_a_refusal() -> None:
    result = await run(httpx.Response(500, stream=Stream([b"because", CUT])))
    assert isinstance(result.exception, SourceError)
    assert (result.exception.status, result.exception.body) == (500, "because")


async def test_a_compressed_refusal_is_decompressed() -> None:
    stream = Stream([zlib.compress(b"x" * 10**6, wbits=31)])
    result = await run(httpx.Response(500, headers={"content-encoding": "GZIP"}, stream=stream))
    assert isinstance(result.exception, SourceError)
    assert result.exception.body == "x" * 2048


async def test_a_mock_of_httpx2_works_as_well() -> None:
    httpx2 = pytest.importorskip("httpx2")
    for answer in ({"content": STREAM}, {"stream": httpx2.ByteStream(STREAM)}):
        transport = httpx2.MockTransport(lambda _, answer=answer: httpx2.Response(200, headers=SSE, **answer))
        async with httpx2.AsyncClient(transport=transport) as client:
            assert (await collect(HttpAgent(URL, client=client), GIVEN)).types == TYPES


async def test_what_was_not_asked_for_is_not_decompressed() -> None:
    for status in (200, 500):
        headers = SSE | {"content-encoding": "br"}
        result = await run(httpx.Response(status, headers=headers, stream=Stream([b"\x8b"])))
        assert isinstance(result.exception, SourceError)
        assert (result.exception.status, result.exception.body) == (status, None)


@pytest.mark.parametrize("kind", [httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ReadError])
async def test_no_answer_is_a_source_error(kind: type[httpx.TransportError]) -> None:
    with respx.mock:
        respx.post(URL).mock(side_effect=kind("secret"))
        with pytest.raises(SourceError, match=f"did not answer .{kind.__name__}") as caught:
            await collect(HttpAgent(URL), GIVEN)
    assert (caught.value.status, caught.value.body) == (None, None)
    assert isinstance(caught.value.__cause__, kind)
    assert "secret" not in str(caught.value)


async def test_an_answer_that_the_clients_own_hook_refuses() -> None:
    async def hook(response: httpx.Response) -> None:
        response.raise_for_status()

    transport = httpx.MockTransport(lambda _request: httpx.Response(503, text="no"))
    async with httpx.AsyncClient(transport=transport, event_hooks={"response": [hook]}) as client:
        with pytest.raises(SourceError, match="has answered 503") as caught:
            await collect(HttpAgent(URL, client=client), GIVEN)
    assert caught.value.status == 503


async def test_what_the_clients_own_hook_refuses_is_repeated_too() -> None:
    async def hook(response: httpx.Response) -> None:
        response.raise_for_status()

    answers = iter([httpx.Response(503), streaming(STREAM)])
    transport = httpx.MockTransport(lambda _request: next(answers))
    async with httpx.AsyncClient(transport=transport, event_hooks={"response": [hook]}) as client:
        agent = HttpAgent(URL, client=client, retries=1, sleep=Clock().sleep, on_diagnostic=lambda _: None)
        assert (await collect(agent, GIVEN)).types == TYPES


async def test_a_hook_may_read_the_answer() -> None:
    stream = Stream([zlib.compress(STREAM, wbits=31)])
    answer = httpx.Response(200, headers=SSE | {"content-encoding": "gzip"}, stream=stream)
    transport = httpx.MockTransport(lambda _request: answer)
    async with httpx.AsyncClient(transport=transport, event_hooks={"response": [httpx.Response.aread]}) as client:
        assert (await collect(HttpAgent(URL, client=client), GIVEN)).types == TYPES


# Again, and elsewhere.


class Clock:
    """Sleeps without sleeping."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def refused(status: int, after: str | None = None) -> httpx.Response:
    return httpx.Response(status, headers={} if after is None else {"retry-after": after})


OK = "ok"
GONE = httpx.ConnectError("refused")


@pytest.mark.parametrize(
    ("answers", "retries", "slept", "status"),
    [
        ([GONE, OK], 0, [], None),
        ([GONE, OK], 1, [0.5], OK),
        ([GONE, refused(503), refused(502), refused(504), OK], 4, [0.5, 1, 2, 4], OK),
        ([httpx.RemoteProtocolError("closed"), httpx.ReadError("reset"), OK], 2, [0.5, 1], OK),
        ([GONE, GONE, OK], 1, [0.5], None),
        ([refused(503), refused(503, "1"), OK], 1, [0.5], 503),
        ([refused(500), OK], 3, [], 500),
        ([refused(400), OK], 3, [], 400),
        ([refused(429), OK], 3, [], 429),
        ([refused(429, "7"), OK], 1, [7], OK),
        ([refused(429, "0"), OK], 1, [0.5], OK),
        ([refused(503, "30"), OK], 1, [30], OK),
        ([refused(503, "31"), OK], 1, [], 503),
        ([refused(503, "9" * 5000), OK], 1, [], 503),
        ([refused(503, "Wed, 21 Oct 2026 07:28:00 GMT"), OK], 1, [0.5], OK),
        ([refused(503)] * 9 + [OK], 9, [0.5, 1, 2, 4, 8, 16, 30, 30, 30], OK),
        ([httpx.LocalProtocolError("bad"), OK], 3, [], None),
        ([httpx.UnsupportedProtocol("ftp"), OK], 3, [], None),
        ([httpx.Response(200, json=[]), OK], 3, [], 200),
    ],
)
async def test_retries(answers: list[Any], retries: int, slept: list[float], status: Any) -> None:
    clock = Clock()
    said: list[Diagnostic] = []
    keys = iter(range(99))
    with respx.mock:
        good = httpx.Response(200, headers=SSE, content=STREAM)
        route = respx.post(URL).mock(side_effect=[good if answer is OK else answer for answer in answers])
        agent = HttpAgent(
            URL,
            headers=lambda _: {"x-attempt": str(next(keys))},
            retries=retries,
            sleep=clock.sleep,
            on_diagnostic=said.append,
        )
        result = await collect(agent, GIVEN, catch=True)
        attempts = [call.request.headers["x-attempt"] for call in route.calls]
        assert {call.request.content for call in route.calls} == {route.calls[0].request.content}
    assert clock.slept == slept
    assert attempts == [str(number) for number in range(len(slept) + 1)]
    assert [diagnostic.code for diagnostic in said] == ["http.retry"] * len(slept)
    if status is OK:
        assert result.types == TYPES
    else:
        assert isinstance(result.exception, SourceError)
        assert (result.exception.status, result.events) == (status, [])


def streaming_once(
    pieces: Sequence[bytes | Exception], seen: list[httpx.Request]
) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return streaming(*pieces)

    return answer


async def test_a_stream_that_began_is_not_asked_for_again() -> None:
    beginnings: list[list[bytes | Exception]] = [[STARTED, CUT], [CUT], []]
    for first in beginnings:
        seen: list[httpx.Request] = []
        clock = Clock()
        await run(streaming_once(first, seen), retries=5, sleep=clock.sleep)
        assert (len(seen), clock.slept) == (1, [])


THERE = "https://elsewhere.example/run"


def redirecting(status: int, to: str, seen: list[httpx.Request]) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if len(seen) == 1:
            return httpx.Response(status, headers={"location": to})
        return httpx.Response(200, headers=SSE, content=STREAM)

    return answer


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed_unless_asked(status: int) -> None:
    seen: list[httpx.Request] = []
    result = await run(redirecting(status, THERE, seen))
    assert isinstance(result.exception, SourceError)
    assert (len(seen), result.exception.status) == (1, status)
    assert "follow_redirects=True" in str(result.exception)


@pytest.mark.parametrize(
    ("url", "status", "to", "keeps"),
    [
        (URL, 307, "/there", True),
        (URL, 308, "https://agents.example:443/there", True),
        (URL, 307, THERE, False),
        (URL, 307, "https://agents.example:8443/run", False),
        ("http://agents.example/run", 308, URL, True),
        ("http://agents.example:8000/run", 308, URL, False),
        ("http://agents.example/run", 308, THERE, False),
        (URL, 307, "http://agents.example/run", None),
        (URL, 301, "/there", None),
        (URL, 302, "/there", None),
        (URL, 303, "/there", None),
    ],
)
async def test_a_redirect_that_is_followed(url: str, status: int, to: str, keeps: bool | None) -> None:
    seen: list[httpx.Request] = []
    secrets = {"Authorization": "Bearer s", "X-Key": "s", "Cookie": "s"}
    result = await run(redirecting(status, to, seen), url=url, headers=secrets, follow_redirects=True)
    if keeps is None:
        assert isinstance(result.exception, SourceError)
        assert (len(seen), result.exception.status) == (1, status)
        return
    assert result.types == TYPES
    first, second = seen
    assert (second.method, second.content) == ("POST", first.content)
    assert str(second.url) == str(first.url.join(to))
    assert ("authorization" in second.headers, "x-key" in second.headers) == (keeps, keeps)
    assert "cookie" not in second.headers
    assert second.headers["accept"] == "text/event-stream"
    assert second.headers["content-type"] == "application/json"


PLACES = [
    *("javascript:1", "https:x", "http://[::1", "https://xn--/"),
    *("https://agents.example:99999/", "https://agents..example/", f"https://{'a' * 64}.example/"),
]


@pytest.mark.parametrize("to", PLACES)
async def test_a_redirect_to_what_is_no_address_is_a_source_error(to: str) -> None:
    for follow in (True, False):
        seen: list[httpx.Request] = []
        result = await run(redirecting(307, to, seen), follow_redirects=follow)
        assert isinstance(result.exception, SourceError)
        assert len(seen) == 1


async def test_the_clients_own_credentials_do_not_follow_either() -> None:
    seen: list[httpx.Request] = []
    transport = httpx.MockTransport(redirecting(307, THERE, seen))
    async with httpx.AsyncClient(transport=transport, auth=("user", "pass"), headers={"x-key": "s"}) as client:
        await collect(HttpAgent(URL, client=client, follow_redirects=True), GIVEN)
    assert ["authorization" in request.headers for request in seen] == [True, False]
    assert ["x-key" in request.headers for request in seen] == [True, False]


async def test_redirects_have_an_end() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(307, headers={"location": "/again"})

    result = await run(answer, follow_redirects=True)
    assert isinstance(result.exception, SourceError)
    assert len(seen) == 6


# Leaving, and clients.


@pytest.mark.parametrize("count", POSITIONS)
@pytest.mark.parametrize("chain", [[], [EventThrottleMiddleware(interval=0)], [GuardMiddleware()]])
async def test_leaving_anywhere_closes_the_response(count: int, chain: list[Any]) -> None:
    stream = Stream(FRAMES)
    async with client_of(httpx.Response(200, headers=SSE, stream=stream)) as client:
        source = Pipeline(HttpAgent(URL, client=client), *chain)
        async with source.open(GIVEN) as events:
            for _ in range(count):
                await anext(events)
        assert stream.closed == (count > 0)


async def test_two_runs_at_once_are_two_runs() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        said = json.loads(request.content)["runId"]
        frames = [frame(event | ({"runId": said} if "runId" in event else {})) for event in RUN]
        return streaming(*frames)

    async with client_of(answer) as client:
        agent = HttpAgent(URL, client=client)
        first, second = (agent.run(run_input("hi", thread_id="t", run_id=name)) for name in "ab")
        pairs = [(await anext(first), await anext(second)) for _ in RUN]
        assert [pair[0].run_id for pair in pairs] == ["a", *[None] * 4, "a"]
        assert [pair[1].run_id for pair in pairs] == ["b", *[None] * 4, "b"]
        await first.aclose()
        await second.aclose()


async def test_a_given_client_is_not_closed() -> None:
    async with client_of(lambda _request: streaming(STREAM)) as client:
        async with HttpAgent(URL, client=client) as agent:
            await collect(agent, GIVEN)
        assert not client.is_closed
        await agent.aclose()
        assert not client.is_closed
        assert (await collect(agent, GIVEN)).types == TYPES


async def test_a_client_that_is_closed_says_so() -> None:
    client = client_of(streaming(STREAM))
    await client.aclose()
    with pytest.raises(RuntimeError, match="client has been closed"):
        await collect(HttpAgent(URL, client=client), GIVEN)


async def test_a_client_that_is_watched_is_a_client() -> None:
    async with client_of(lambda _request: streaming(STREAM)) as client:
        send = client.send

        def watched(*args: Any, **options: Any) -> Any:  # as tracing does it: no coroutine function
            return send(*args, **options)

        client.send = watched  # type: ignore[method-assign]
        assert (await collect(HttpAgent(URL, client=client), GIVEN)).types == TYPES


async def test_a_client_of_our_own_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[httpx.AsyncClient] = []
    init = httpx.AsyncClient.__init__

    def note(self: httpx.AsyncClient, **options: Any) -> None:
        made.append(self)
        init(self, **options)

    monkeypatch.setattr(httpx.AsyncClient, "__init__", note)
    with respx.mock:
        respx.post(URL).respond(200, headers=SSE, content=STREAM)
        agent = HttpAgent(URL)
        assert made == []
        await collect(agent, GIVEN)
        assert [client.is_closed for client in made] == [True]
        async with agent:
            await collect(agent, GIVEN)
            await collect(agent, GIVEN)
            assert [client.is_closed for client in made] == [True, False]
            with pytest.raises(RuntimeError, match="open already"):
                await agent.__aenter__()
        assert [client.is_closed for client in made] == [True, True]
        async with agent:
            await collect(agent, GIVEN)
        assert [client.is_closed for client in made] == [True] * 3


async def test_one_users_cookies_are_not_anothers() -> None:
    with respx.mock:
        route = respx.post(URL).respond(200, headers=SSE | {"set-cookie": "session=s; Path=/"}, content=STREAM)
        async with HttpAgent(URL) as agent:
            await collect(agent, GIVEN)
            await collect(agent, GIVEN)
        assert ["cookie" in call.request.headers for call in route.calls] == [False, False]


async def test_a_relative_address_is_the_clients() -> None:
    with respx.mock:
        route = respx.post(URL).respond(200, headers=SSE, content=STREAM)
        async with httpx.AsyncClient(base_url="https://agents.example") as client:
            agent = HttpAgent("/run", client=client)
            assert repr(agent) == "HttpAgent('/run')"
            await collect(agent, GIVEN)
        assert route.called


async def test_it_is_a_source_for_a_chain() -> None:
    async with client_of(streaming(*FRAMES[:-2])) as client:
        result = await collect(Pipeline(HttpAgent(URL, client=client), GuardMiddleware()), GIVEN)
    assert result.types == [*TYPES[:-2], "RUN_ERROR"]


# The seam for other dialects.


class Words:
    """A dialect: each frame is a word, the last one `end`."""

    def __init__(self, input: RunAgentInput, note: Callable[[Diagnostic], None]) -> None:
        self.input = input
        self.note = note
        self.complete = False

    def call(self, url: str) -> Call:
        return Call(url + "/words", b"speak", "PUT", {"X-Words": "yes", "accept": "text/*"})

    def feed(self, frame: SSEFrame) -> Iterable[AnyEvent]:
        self.complete = frame.data == "end"
        return [WireEvent("CUSTOM", {"type": "CUSTOM", "name": "word", "value": frame.data}, None)] * 2

    def flush(self) -> Iterable[AnyEvent]:
        return [WireEvent("RUN_FINISHED", {"type": "RUN_FINISHED"}, None)]

    def fail(self, exc: AGUIPipelineError, code: str) -> Iterable[AnyEvent]:
        self.note(Diagnostic("words", str(exc)))
        return [WireEvent("RUN_ERROR", {"type": "RUN_ERROR", "message": "words", "code": code}, None)]


async def test_a_dialect_of_ones_own() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return streaming(b"data: a\n\ndata: end\n\n" if len(seen) == 1 else b"data: a\n\ndata: b")

    exchange: Callable[..., Exchange] = Words
    good = await run(answer, dialect=exchange, headers={"x-key": "k"})
    assert (seen[0].method, str(seen[0].url), seen[0].content) == ("PUT", URL + "/words", b"speak")
    assert [seen[0].headers[name] for name in ("x-words", "accept", "x-key")] == ["yes", "text/*", "k"]
    assert [event.value for event in good.events] == ["a", "a", "end", "end", None]
    assert good.types[-1] == "RUN_FINISHED"
    bad = await run(answer, dialect=exchange)
    assert [event.value for event in bad.events] == ["a", "a", "b", "b", None]
    assert (bad.types[-1], bad.events[-1].code, bad.codes) == ("RUN_ERROR", "source_ended", ["http.cut", "words"])


def test_the_default_exchange_keeps_its_contract() -> None:
    exchange: Exchange = AGUIExchange(GIVEN, lambda _: None)
    assert exchange.call(URL).method == "POST"
    assert not exchange.complete
    assert list(exchange.feed(SSEFrame(raw=b"\n"))) == []


# Options.


@pytest.mark.parametrize(
    "options",
    [
        {"url": 7},
        {"url": ""},
        {"url": "/run"},
        {"url": "agents.example/run"},
        {"url": "ftp://agents.example"},
        {"url": "https://"},
        {"url": "https://[::1"},
        {"url": "https://xn--/"},
        {"url": "https://agents..example/run"},
        {"url": "https://agents.example:99999/run"},
        {"url": "https://agents.example:0/run"},
        {"client": 7},
        {"client": httpx.AsyncClient},
        {"client": httpx.Client()},
        {"headers": 7},
        {"headers": {"a b": "c"}},
        {"headers": {"a": None}},
        {"forward": "authorization"},
        {"forward": ["content-length"]},
        {"forward": ["Host"]},
        {"forward": ["a:"]},
        {"idle_timeout": 0},
        {"idle_timeout": -1},
        {"idle_timeout": "1"},
        {"idle_timeout": float("inf")},
        {"retries": -1},
        {"retries": 1.5},
        {"retries": True},
        {"follow_redirects": 1},
        {"dialect": 7},
        {"dialect": "of the future"},
        {"max_bytes": 0},
        {"max_frame_bytes": 0},
        {"max_frame_bytes": None},
        {"sleep": 1},
        {"on_diagnostic": 1},
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        HttpAgent(**{"url": URL} | options)


async def test_none_lifts_a_limit() -> None:
    result = await run(streaming(*FRAMES), idle_timeout=None, max_bytes=None)
    assert (result.types, result.codes) == (TYPES, [])


# The documentation.

SOURCES = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
SECTION = SOURCES.partition("\n## Remote endpoints\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
async def test_the_documented_ways_work(block: str) -> None:
    names: dict[str, Any] = {"__name__": "sources"}
    with respx.mock:
        route = respx.post(URL).respond(200, headers=SSE, content=STREAM)
        exec(compile(block, "sources.md", "exec"), names)  # noqa: S102 - our own text
        if "main" in names:
            assert await names["main"]() == "Grüße, 世界" * 2
        else:
            assert (await collect(names["agent"], GIVEN)).types == TYPES
        assert route.called
    if "client" in names:
        await names["client"].aclose()


def test_every_code_is_documented() -> None:
    codes = {*_http_stream.DIAGNOSTICS, *_http_exchange.DIAGNOSTICS}
    for code in (*codes, "source_ended", "source_timeout", "source_limit", "source_error"):
        assert f"`{code}`" in SECTION
