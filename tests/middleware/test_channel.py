"""The queue under every timed stage: who waits for whom, and how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from agui_pipeline.middleware._channel import in_trio, open_channel
from agui_pipeline.translators import SSEFrame
from tests.clocks import BACKENDS
from tests.middleware.kit import OopsError, in_asyncio, tidy

pytestmark = pytest.mark.anyio


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


async def together(*runs: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async with tidy(), anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(run)


async def test_the_loop_is_recognised() -> None:
    assert in_trio() != in_asyncio()


async def test_items_come_in_order_and_the_end_after_them() -> None:
    channel = open_channel(10)
    for item in (1, 2, 3):
        channel.push(item)
    channel.end()
    assert [item async for item in channel] == [1, 2, 3]
    with pytest.raises(StopAsyncIteration):
        await anext(channel)


async def test_an_error_comes_after_the_items_as_itself() -> None:
    channel = open_channel(10)
    error = OopsError()
    channel.push(1)
    channel.end(error)
    channel.end()  # only the first call counts
    assert await anext(channel) == 1
    with pytest.raises(OopsError) as caught:
        await anext(channel)
    assert caught.value is error


async def test_a_reader_waits_for_the_writer() -> None:
    channel = open_channel(10)
    got: list[tuple[float, Any]] = []
    start = anyio.current_time()

    async def write() -> None:
        for item in (1, 2):
            await anyio.sleep(1)
            channel.push(item)
        await anyio.sleep(1)
        channel.end()

    async def read() -> None:
        async for item in channel:
            got.append((anyio.current_time() - start, item))  # noqa: PERF401 - an `await` each
        got.append((anyio.current_time() - start, "end"))

    await together(read, write)
    assert got == [(1, 1), (2, 2), (3, "end")]


async def test_a_writer_waits_for_room_and_not_longer() -> None:
    channel = open_channel(2)
    log: list[Any] = []

    async def write() -> None:
        for item in range(6):
            channel.push(item)
            log.append(len(channel.items))
            if len(channel.items) >= channel.limit:
                await channel.room()
        channel.end()

    async def read() -> None:
        await anyio.sleep(1)
        assert log == [1, 2]
        assert [item async for item in channel] == [0, 1, 2, 3, 4, 5]

    await together(write, read)
    assert max(log) == 2


async def test_a_reader_that_takes_many_tells_the_writer_once() -> None:
    """`took` wakes the writer only where there is room again."""
    channel = open_channel(2)
    passed: list[int] = []

    async def write() -> None:
        channel.push(1)
        channel.push(2)
        channel.push(3)
        await channel.room()
        passed.append(len(channel.items))

    async def read() -> None:
        await anyio.sleep(1)
        for expected in (2, 1):
            channel.items.popleft()
            channel.took()
            await anyio.sleep(1)
            assert passed == ([] if expected == 2 else [1])

    await together(write, read)


async def test_a_writer_that_waits_can_be_released() -> None:
    channel = open_channel(1)
    assert not channel.release()  # nobody waits

    async def write() -> None:
        channel.push(1)
        await channel.room()
        assert len(channel.items) == 1

    async def release() -> None:
        await anyio.sleep(1)
        assert channel.release()
        assert channel.release()  # until the writer has run, it still counts as waiting

    await together(write, release)


async def test_a_wait_ends_at_its_deadline() -> None:
    channel = open_channel(1)
    start = channel.time()
    async with tidy():
        while channel.time() < start + 2:
            await channel.wait(start + 2)
        assert channel.time() == start + 2
        channel.close()


async def test_a_wait_with_something_to_read_returns_at_once() -> None:
    channel = open_channel(2)
    start = channel.time()
    channel.push(1)
    await channel.wait(start + 2)
    channel.items.clear()
    channel.end()
    await channel.wait(start + 2)
    await channel.wait()
    assert channel.time() == start


async def test_a_wait_whose_deadline_has_passed_returns() -> None:
    channel = open_channel(2)
    await anyio.sleep(5)
    start = channel.time()
    await channel.wait(start - 1)
    assert channel.time() == start
    channel.close()


async def test_an_item_ends_a_wait_before_its_deadline() -> None:
    channel = open_channel(2)

    async def write() -> None:
        await anyio.sleep(1)
        channel.push(1)

    async def read() -> None:
        start = channel.time()
        await channel.wait(start + 10)
        assert (channel.time(), list(channel.items)) == (start + 1, [1])
        channel.close()

    await together(read, write)


async def test_closing_drops_the_timer() -> None:
    channel = open_channel(2)

    async def read() -> None:
        with anyio.move_on_after(1):
            await channel.wait(channel.time() + 100)
        channel.close()

    await together(read)


async def test_a_cancelled_wait_can_be_repeated() -> None:
    channel = open_channel(2)
    for _ in range(3):
        with anyio.move_on_after(1) as scope:
            await channel.wait()
        assert scope.cancelled_caught
    channel.push(1)
    assert await anext(channel) == 1


async def test_before_a_reader_waits_it_may_do_something_else() -> None:
    """An adapter sends what it has collected; what arrives meanwhile makes the wait unnecessary."""
    channel = open_channel(2)
    calls: list[int] = []

    async def before() -> None:
        calls.append(len(channel.items))
        channel.push("meanwhile")

    channel.before_wait = before
    assert await anext(channel) == "meanwhile"
    assert calls == [0]
    channel.push("ready")
    assert await anext(channel) == "ready"
    assert calls == [0]


async def test_frames_that_no_stage_shall_see_are_put_aside_in_their_place() -> None:
    channel = open_channel(9)
    aside: list[Any] = []
    channel.aside = lambda frame: aside.append((frame.event, seen[-1:]))
    seen: list[Any] = []
    for item in (SSEFrame(event="a"), 1, SSEFrame(event="b"), SSEFrame(event="c"), 2):
        channel.push(item)
    channel.end()
    seen.extend([item async for item in channel])
    assert seen == [1, 2]
    assert [name for name, _ in aside] == ["a", "b", "c"]


async def test_one_timer_serves_many_waits() -> None:
    if not in_asyncio():
        pytest.skip("trio's deadlines belong to scopes, which are left before the next is entered")
    loop: Any = asyncio.get_running_loop()
    channel = open_channel(2)
    start = channel.time()

    def timers() -> list[float]:
        return [timer.when() - start for timer in loop._scheduled if not timer.cancelled()]

    async def wait(deadline: float) -> None:
        channel.items.clear()
        loop.call_soon(channel.push, 1)
        await channel.wait(start + deadline)

    await wait(10)
    assert timers() == [10]
    await wait(20)  # waking once too early is cheaper than a new timer
    assert timers() == [10]
    await wait(5)
    assert timers() == [5]
    channel.close()
    assert timers() == []
