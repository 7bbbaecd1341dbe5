"""`HttpAgent` and time: how much silence is too much, to the second, on a clock that jumps."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import httpx
import pytest

from agui_pipeline.adapters.http import HttpAgent
from agui_pipeline.adapters.testing import collect
from agui_pipeline.translators import Diagnostic, SourceError, parse_input
from tests.adapters.apps import FRAMES, INPUT, STREAM, TYPES
from tests.clocks import BACKENDS
from tests.middleware.kit import in_asyncio

pytestmark = pytest.mark.anyio

GIVEN = parse_input(INPUT)
URL = "https://agents.example/run"
SSE = {"content-type": "text/event-stream"}
COMMENT = b": still here\n\n"
EVER = math.inf
REST = STREAM[len(FRAMES[0]) :]
SLOWLY = [(9 * (place % 9 == 0), STREAM[place : place + 1]) for place in range(len(STREAM))]
"""Byte by byte, with a rest before every ninth."""


@pytest.fixture(params=list(BACKENDS))
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


class Network(httpx.AsyncBaseTransport):
    """Answers after a while, with pieces that come after a while each."""

    def __init__(self, pieces: Sequence[tuple[float, bytes]], *, after: float = 0, status: int = 200) -> None:
        self.pieces = pieces
        self.after = after
        self.status = status

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await anyio.sleep(self.after)
        return httpx.Response(self.status, headers=SSE, stream=Body(self.pieces), request=request)


class Body(httpx.AsyncByteStream):
    def __init__(self, pieces: Sequence[tuple[float, bytes]]) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for after, piece in self.pieces:
            await anyio.sleep(after)
            yield piece


async def timed(network: Network, **options: Any) -> tuple[Any, list[str], float]:
    """Run an agent; return what came, the codes of what was said, and the seconds that it took."""
    said: list[Diagnostic] = []
    async with httpx.AsyncClient(transport=network) as client:
        agent = HttpAgent(URL, client=client, on_diagnostic=said.append, **options)
        begun = anyio.current_time()
        result = await collect(agent, GIVEN, catch=True)
        return result, [diagnostic.code for diagnostic in said], anyio.current_time() - begun


@pytest.mark.parametrize(
    ("pieces", "seconds", "whole"),
    [
        ([(100, FRAMES[0]), (119.9, REST)], 219.9, True),
        ([(0, FRAMES[0]), (119, COMMENT), (119, COMMENT), (1, b":"), (119, b"\n\n" + REST)], 358, True),
        (SLOWLY, 9 * math.ceil(len(STREAM) / 9), True),
        ([(0, FRAMES[0]), (121, COMMENT), (0, FRAMES[-1])], 120, False),
        ([(3, FRAMES[0]), (100, COMMENT), (EVER, FRAMES[-1])], 223, False),
        ([(0, FRAMES[0]), (60, b"data: half a fra"), (EVER, b"")], 180, False),
    ],
)
async def test_a_hundred_and_twenty_seconds_of_silence(
    pieces: Sequence[tuple[float, bytes]], seconds: float, whole: bool
) -> None:
    result, codes, took = await timed(Network(pieces))
    assert took == pytest.approx(seconds)
    assert result.exception is None
    if whole:
        assert (result.types, codes) == (TYPES, [])
    else:
        assert result.types == ["RUN_STARTED", "RUN_ERROR"]
        assert (result.events[-1].code, codes[-1]) == ("source_timeout", "http.idle")
        assert "120 seconds" in result.events[-1].message


async def test_the_answer_may_take_as_long() -> None:
    assert (await timed(Network([(0, STREAM)], after=119)))[0].types == TYPES
    for network in (Network([(0, STREAM)], after=EVER), Network([(EVER, STREAM)])):
        result, _, took = await timed(network, idle_timeout=7, retries=5)
        assert isinstance(result.exception, SourceError)
        assert took == pytest.approx(7)


async def test_without_a_limit_it_waits() -> None:
    network = Network([(10**6, FRAMES[0]), (10**6, REST)], after=10**6)
    result, _, took = await timed(network, idle_timeout=None)
    assert result.types == TYPES
    assert took == pytest.approx(3 * 10**6)


async def test_only_the_remote_agents_time_counts() -> None:
    network = Network([(50, one) for one in FRAMES])
    async with httpx.AsyncClient(transport=network) as client:
        types = []
        async for event in HttpAgent(URL, client=client, idle_timeout=60)(GIVEN):
            await anyio.sleep(500)
            types.append(event.type)
    assert types == TYPES


async def test_the_body_of_a_refusal_may_take_five_seconds() -> None:
    result, _, took = await timed(Network([(2, b"because"), (EVER, b"")], status=500))
    assert (result.exception.status, result.exception.body) == (500, "because")
    assert took == pytest.approx(5)
    result, _, took = await timed(Network([(0, b"because"), (EVER, b"")], status=500), idle_timeout=3)
    assert (result.exception.status, result.exception.body) == (500, "because")
    assert took == pytest.approx(3)


async def test_attempts_keep_their_distance() -> None:
    result, codes, took = await timed(Network([], status=503), retries=3)
    assert (result.exception.status, codes) == (503, ["http.retry"] * 3)
    assert took == pytest.approx(0.5 + 1 + 2)


@pytest.mark.parametrize("count", range(len(TYPES) + 1))
async def test_no_timer_is_left(count: int) -> None:
    async with httpx.AsyncClient(transport=Network([(1, one) for one in FRAMES])) as client:
        events = HttpAgent(URL, client=client)(GIVEN)
        for _ in range(count):
            await anext(events)
        await events.aclose()
        if in_asyncio():
            scheduled: Any = asyncio.get_running_loop()
            assert [handle for handle in scheduled._scheduled if not handle.cancelled()] == []
