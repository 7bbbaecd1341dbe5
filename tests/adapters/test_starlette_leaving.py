"""A client that leaves: the app ends, or finishes unread, and nothing of the request stays behind."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput
from sse_starlette import EventSourceResponse
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import ASGIApp, Message

from agui_pipeline.adapters.starlette import agent_app, agent_endpoint
from agui_pipeline.adapters.testing import ASGIResponse, run_asgi
from agui_pipeline.middleware import Source
from agui_pipeline.translators import Event
from tests.adapters.apps import (
    BODY,
    CHAINS,
    FRAMES,
    POSITIONS,
    RUN,
    SSE,
    TYPES,
    Call,
    Scripted,
    sleep,
    tidied,
    types,
    wait,
    wrapped,
)
from tests.adapters.apps import Source as Agent
from tests.clocks import BACKENDS
from tests.middleware.kit import OopsError, Raises, Same, Stage, in_asyncio, passing, tidy

pytestmark = pytest.mark.anyio

each_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
both_modes = pytest.mark.parametrize("mode", ["cancel", "detach"])
VERSIONS = ("2.3", "2.4")
MANY = FRAMES * 100


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


async def left(app: ASGIApp, when: Any, **options: Any) -> ASGIResponse:
    """Post an input and leave; see that nothing is left of the request."""
    async with tidy():
        response = await run_asgi(app, body=BODY, disconnect_after=when, **options)
        await tidied()
    return response


def refuses(spec_version: str) -> bool:
    return spec_version == "2.4"


@each_chain
@pytest.mark.parametrize("spec_version", VERSIONS)
async def test_a_client_that_leaves_ends_the_app(chain: Any, spec_version: str) -> None:
    for position in POSITIONS[1:]:
        for rest in ([wait], MANY):
            app = Scripted([*FRAMES[:position], *rest])
            response = await left(wrapped(app, *chain), position, spec_version=spec_version)
            assert response.exception is None
            assert types(response)[:position] == TYPES[:position]
            assert app.call.cleaned
            assert app.call.cancelled == 1 or (rest is MANY and app.call.cancelled == 0)
            if rest is not MANY:
                assert response.ignored == []
            elif refuses(spec_version):
                assert len(response.ignored) <= 1


@each_chain
async def test_a_client_that_leaves_ends_the_agent(chain: Any) -> None:
    for position in POSITIONS[1:]:
        for rest in ([anyio.sleep_forever], RUN * 100):
            agent = Agent([*RUN[:position], *rest])
            response = await left(agent_app(agent, *chain), position)
            assert response.exception is None
            assert types(response)[:position] == TYPES[:position]
            assert agent.cleaned
            assert agent.cancelled == (rest[0] is anyio.sleep_forever)


@each_chain
@pytest.mark.parametrize("spec_version", VERSIONS)
async def test_a_detached_app_finishes_unread(chain: Any, spec_version: str) -> None:
    heard: list[Message] = []

    async def listening(_call: Call, receive: Any, _send: Any) -> None:
        with anyio.move_on_after(10):
            heard.append(await receive())

    for position in (1, 3):
        script = [*FRAMES[:position], sleep(1), *FRAMES[position:], listening]
        app = Scripted(script)
        response = await left(wrapped(app, *chain, on_disconnect="detach"), position, spec_version=spec_version)
        assert response.exception is None
        assert types(response) == TYPES[:position]
        assert len(response.ignored) == 0
        assert (app.call.cancelled, app.call.sent, app.call.cleaned) == (0, len(RUN), True)
        assert heard == []

        agent = Agent([*RUN[:position], lambda: anyio.sleep(1), *RUN[position:]])
        response = await left(agent_app(agent, *chain, on_disconnect="detach"), position, spec_version=spec_version)
        assert (types(response), agent.cancelled, agent.sent) == (TYPES[:position], 0, len(RUN))


async def test_a_detached_app_that_fails_unread_is_reported() -> None:
    error = OopsError("unread")
    response = await left(wrapped(Scripted([FRAMES[0], sleep(1), error]), on_disconnect="detach"), 1)
    assert response.exception is error
    assert types(response) == TYPES[:1]


@both_modes
async def test_an_app_may_wait_for_the_disconnect_behind_its_response(mode: str) -> None:
    heard: list[Message] = []

    async def listening(_call: Call, receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        heard.append(await receive())

    async with tidy():
        response = await run_asgi(wrapped(Scripted([*FRAMES, listening]), on_disconnect=mode), body=BODY)
        await tidied()
    assert types(response) == TYPES
    assert [message["type"] for message in heard] == ["http.disconnect"]


# A server of one's own: what it does when the client leaves is up to the test.


async def serve(
    app: ASGIApp,
    *,
    leaves: float = math.inf,
    blocks: int = -1,
    fails: int = -1,
    error: BaseException | None = None,
) -> list[Message]:
    """Serve one request.

    Args:
        app: The app.
        leaves: When `receive` says that the client has left, in seconds.
        blocks: Which `send` never returns.
        fails: From which `send` on they raise.
        error: What they raise.
    """
    pending: list[Message] = [{"type": "http.request", "body": BODY, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if pending:
            return pending.pop()
        if leaves:
            await (anyio.sleep_forever() if leaves == math.inf else anyio.sleep(leaves))
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if 0 <= fails <= len(sent):
            assert error is not None
            raise error
        sent.append(message)
        if len(sent) == blocks + 1:
            await anyio.sleep_forever()

    scope = {"type": "http", "method": "POST", "path": "/", "asgi": {"spec_version": "2.3"}, "headers": []}
    async with tidy():
        await app(scope, receive, send)
        await tidied()
    return sent


@each_chain
@both_modes
async def test_a_client_that_has_left_before_the_app_answers(chain: Any, mode: str) -> None:
    for leaves in (0, 1):
        for script in ([sleep(2), *FRAMES], [sleep(2), b"plain"], [sleep(2), OopsError("unread")]):
            app = Scripted(script, headers=SSE if FRAMES[0] in script else [])
            if mode == "detach" and isinstance(script[-1], OopsError):
                with pytest.raises(OopsError):
                    await serve(wrapped(app, *chain, on_disconnect=mode), leaves=leaves)
            else:
                assert await serve(wrapped(app, *chain, on_disconnect=mode), leaves=leaves) == []
            for call in app.calls:
                assert call.cleaned
                assert call.cancelled == (mode == "cancel")
            if mode == "detach":
                assert app.call.sent == script.count(FRAMES[0]) * len(FRAMES)


@both_modes
async def test_a_client_that_has_left_before_an_agent_is_run(mode: str) -> None:
    agent = Agent([lambda: anyio.sleep(1), *RUN])
    assert len(await serve(agent_app(agent, on_disconnect=mode), leaves=0)) == 1
    assert agent.sent == (len(RUN) if mode == "detach" else 0)


@each_chain
async def test_a_client_that_leaves_while_a_send_is_stuck(chain: Any) -> None:
    """Some servers never wake a `send` whose client has left."""
    for blocks in range(4):
        for rest in ([wait], MANY):
            app = Scripted([*FRAMES, *rest])
            sent = await serve(wrapped(app, *chain), leaves=1, blocks=blocks)
            assert len(sent) <= blocks + 1
            assert app.call.cleaned
            assert app.call.cancelled == 1 or (rest is MANY and app.call.sent == len(FRAMES + MANY))

            agent = Agent([*RUN, *([anyio.sleep_forever] if rest[0] is wait else RUN * 100)])
            sent = await serve(agent_app(agent, *chain), leaves=1, blocks=blocks)
            assert len(sent) <= blocks + 1
            assert agent.cleaned or blocks == 0


async def test_a_client_that_leaves_while_a_heartbeat_is_stuck() -> None:
    for chain in CHAINS.values():
        app = Scripted([FRAMES[0], wait])
        sent = await serve(wrapped(app, *chain, heartbeat=1), leaves=5, blocks=2)
        assert [message.get("body") for message in sent[1:]] == [FRAMES[0], b": keep-alive\n\n"]
        assert (app.call.cancelled, app.call.cleaned) == (1, True)


@each_chain
@both_modes
async def test_a_send_that_raises_oserror_says_that_the_client_has_left(chain: Any, mode: str) -> None:
    """As servers do since ASGI 2.4; `receive` may never tell."""
    for fails in range(4):
        app = Scripted([*FRAMES, sleep(1), *FRAMES])
        sent = await serve(wrapped(app, *chain, on_disconnect=mode), fails=fails, error=BrokenPipeError("left"))
        assert len(sent) <= fails
        assert app.call.cleaned
        assert app.call.cancelled == (mode == "cancel" and app.call.sent < 2 * len(FRAMES))

        agent = Agent([*RUN, lambda: anyio.sleep(1), *RUN])
        await serve(agent_app(agent, *chain, on_disconnect=mode), fails=fails, error=BrokenPipeError("left"))
        over = agent.sent == 2 * len(RUN)  # then its own cleanup may be cut, as by any cancellation
        assert agent.cleaned or agent.sent == 0 or over
        assert agent.cancelled == (mode == "cancel" and agent.sent > 0 and not over)

        if mode == "detach":
            assert (app.call.sent, agent.sent) == (2 * len(FRAMES), 2 * len(RUN))
        elif fails <= 1:  # the rest may travel in one message
            assert app.call.sent <= len(FRAMES)
            assert agent.sent == fails * len(RUN)


@each_chain
async def test_any_other_error_of_send_leaves_as_itself(chain: Any) -> None:
    for fails in range(3):
        error = OopsError("of the server")
        app = Scripted([*FRAMES, sleep(1), *FRAMES])
        with pytest.raises(OopsError) as caught:
            await serve(wrapped(app, *chain), fails=fails, error=error)
        assert caught.value is error
        assert app.call.cleaned


async def test_a_receive_that_raises_says_that_the_client_has_left() -> None:
    app = Scripted([*FRAMES, wait])
    pending: list[Message] = [{"type": "http.request", "body": BODY, "more_body": False}]

    async def receive() -> Message:
        if pending:
            return pending.pop()
        await anyio.sleep(1)
        raise RuntimeError("the connection is lost")

    async def send(message: Message) -> None:
        pass

    async with tidy():
        await wrapped(app)({"type": "http", "method": "POST", "path": "/", "headers": []}, receive, send)
        await tidied()
    assert (app.call.cancelled, app.call.cleaned) == (1, True)


# Stubborn apps.


async def test_an_app_that_swallows_its_cancellation_and_returns_is_no_failure() -> None:
    async def deaf(_call: Call, _receive: Any, _send: Any) -> None:
        with anyio.CancelScope(), anyio.move_on_after(math.inf):
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                if not in_asyncio():
                    raise

    for end in ([], ["stop"]):
        app = Scripted([*FRAMES[:2], deaf, *end], ends=not end)
        response = await left(wrapped(app, passing), 2)
        assert response.exception is None
        assert types(response) == TYPES[:2]


async def test_an_app_that_swallows_its_cancellation_cannot_go_on_sending() -> None:
    if not in_asyncio():
        pytest.skip("trio does not let anyone swallow a cancellation")
    refused: list[BaseException] = []

    async def deaf(_call: Call, receive: Any, send: Any) -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            assert (await receive())["type"] == "http.disconnect"
            for _ in range(1000):
                try:
                    await send({"type": "http.response.body", "body": FRAMES[2], "more_body": True})
                except OSError as exc:
                    refused.append(exc)
                    raise

    app = Scripted([*FRAMES[:2], deaf])
    response = await left(wrapped(app), 2)
    assert response.exception is None
    assert len(refused) == 1


async def test_an_agent_that_swallows_its_cancellation_is_stopped_at_its_next_event() -> None:
    if not in_asyncio():
        pytest.skip("trio does not let anyone swallow a cancellation")

    async def deaf() -> None:
        try:
            await asyncio.sleep(math.inf)
        except asyncio.CancelledError:
            await asyncio.sleep(1)

    agent = Agent([*RUN[:2], deaf, *RUN * 100])
    response = await left(agent_app(agent), 2)
    assert response.exception is None
    assert (agent.sent, agent.cleaned) == (3, True)


async def test_an_error_of_an_app_that_is_being_ended_reaches_the_server() -> None:
    error = OopsError("in a finally")

    async def clumsy(_call: Call, _receive: Any, _send: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise error

    response = await left(wrapped(Scripted([FRAMES[0], clumsy])), 1)
    assert response.exception is error


# The order of things.


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_the_cleanup_of_a_stage_is_not_cut_short(depth: int) -> None:
    """One cancellation reaches each task, however many wrappings hear of the disconnect."""
    cleaned: list[str] = []

    def tidying(name: str) -> Any:
        async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
            try:
                async for event in next(input):
                    yield event
            finally:
                await tidied()
                await tidied()
                cleaned.append(name)

        return stage

    app = Scripted([*FRAMES[:2], wait])
    around: Any = app
    for level in range(depth):
        around = wrapped(around, tidying(f"inner {level}"), Stage(Same), tidying(f"outer {level}"))
    response = await left(around, 2)
    assert response.exception is None
    assert (app.call.cancelled, app.call.cleaned) == (1, True)
    assert sorted(cleaned) == sorted(f"{side} {level}" for level in range(depth) for side in ("inner", "outer"))


async def test_a_cancellation_from_outside_at_the_same_time_cuts_nothing() -> None:
    cleaned: list[bool] = []

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        try:
            async for event in next(input):
                yield event
        finally:
            await tidied()
            cleaned.append(True)

    app = Scripted([FRAMES[0], wait])

    async def serve_once(cancel: Callable[[], Any]) -> None:
        pending: list[Message] = [{"type": "http.request", "body": BODY, "more_body": False}]

        async def receive() -> Message:
            if pending:
                return pending.pop()
            await anyio.sleep(1)
            cancel()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            pass

        await wrapped(app, stage)({"type": "http", "method": "POST", "path": "/", "headers": []}, receive, send)

    async with tidy():
        if in_asyncio():
            task = asyncio.current_task()
            assert task is not None
            with pytest.raises(asyncio.CancelledError):
                await serve_once(task.cancel)
            task.uncancel()
        else:
            with anyio.CancelScope() as scope:
                await serve_once(scope.cancel)
        await tidied()
    assert cleaned == [True]
    assert (app.call.cancelled, app.call.cleaned) == (1, True)


@each_chain
async def test_a_failure_is_not_lost_where_the_client_is_gone_with_the_last_byte(chain: Any) -> None:
    """Servers say ``http.disconnect`` once the response is complete: also while its last `send` still runs."""
    error = OopsError("of a stage")
    response = await left(wrapped(Scripted(), *chain, Stage(lambda: Raises(error, 4))), None, read_delay=0.01)
    assert response.exception is error
    assert types(response) == [*TYPES[:3], "RUN_ERROR"]

    response = await left(wrapped(Scripted([*FRAMES[:3], error]), *chain), None, read_delay=0.01)
    assert response.exception is error
    assert types(response) == [*TYPES[:3], "RUN_ERROR"]


@both_modes
@each_chain
async def test_the_last_send_is_not_cut_short(chain: Any, mode: str) -> None:
    """hypercorn tells the app of the disconnect while the last `send` still closes the connection."""
    for app in (wrapped(Scripted(), *chain, on_disconnect=mode), agent_app(RUN, *chain, on_disconnect=mode)):
        pending: list[Message] = [{"type": "http.request", "body": BODY, "more_body": False}]
        over = anyio.Event()
        closed: list[bool] = []

        async def receive(pending: list[Message] = pending, over: anyio.Event = over) -> Message:
            if pending:
                return pending.pop()
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message, over: anyio.Event = over, closed: list[bool] = closed) -> None:
            if message["type"] == "http.response.body" and not message["more_body"]:
                over.set()
                await anyio.sleep(1)
                closed.append(True)

        async with tidy():
            await app({"type": "http", "method": "POST", "path": "/", "headers": []}, receive, send)
            await tidied()
        assert closed == [True]


@both_modes
async def test_background_work_goes_on_when_the_client_leaves(mode: str) -> None:
    done: list[str] = []

    async def background() -> None:
        await anyio.sleep(5)
        done.append("worked")

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()
        await StreamingResponse(FRAMES_OF(), media_type="text/event-stream", background=BackgroundTask(background))(
            scope, receive, send
        )

    response = await left(wrapped(endpoint, passing, on_disconnect=mode), len(RUN))
    assert types(response) == TYPES
    assert done == ["worked"] or response.disconnected


async def FRAMES_OF(then: Callable[[], Any] | None = None) -> AsyncIterator[bytes]:  # noqa: N802
    for one in FRAMES:
        yield one
    if then is not None:
        await then()


# The responses of the frameworks.


@both_modes
@pytest.mark.parametrize("spec_version", VERSIONS)
@pytest.mark.parametrize("framework", ["starlette", "sse-starlette"])
async def test_the_streams_of_frameworks_end_with_their_client(framework: str, spec_version: str, mode: str) -> None:
    ended: list[str] = []

    async def frames() -> AsyncIterator[Any]:
        try:
            for one in FRAMES:
                yield one if framework == "starlette" else {"data": one[6:-2].decode()}
                await anyio.sleep(1)
        finally:
            with anyio.CancelScope(shield=True):  # sse-starlette's task group cancels as often as trio
                await anyio.sleep(0.1)
            ended.append("frames")

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()
        response: Any = (
            StreamingResponse(frames(), media_type="text/event-stream")
            if framework == "starlette"
            else EventSourceResponse(frames())
        )
        await response(scope, receive, send)
        ended.append("response")

    app = wrapped(endpoint, on_disconnect=mode)
    if framework == "starlette":
        response = await left(app, 2, spec_version=spec_version)
    else:  # it leaves a task of its own behind, one an event loop
        response = await run_asgi(app, body=BODY, disconnect_after=2, spec_version=spec_version)
    assert response.exception is None
    assert types(response) == TYPES[:2]
    assert ended == (["frames", "response"] if mode == "detach" else ["frames"])


# Other answers.


# Starlette leaves a generator whose `send` raised to the garbage collector, which trio warns of.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@both_modes
@pytest.mark.parametrize("spec_version", VERSIONS)
async def test_an_endless_plain_answer_ends_with_its_client(mode: str, spec_version: str) -> None:
    ended: list[str] = []

    async def lines() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"{}\n"
                await anyio.sleep(1)
        finally:
            ended.append("lines")

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()
        await StreamingResponse(lines(), media_type="application/x-ndjson")(scope, receive, send)

    response = await left(
        wrapped(endpoint, on_disconnect=mode), lambda response: len(response.chunks) == 3, spec_version=spec_version
    )
    assert response.exception is None
    assert ended == ["lines"] or not in_asyncio()
    assert response.ignored == []


@both_modes
async def test_a_plain_answer_of_its_own_hears_the_disconnect(mode: str) -> None:
    heard: list[Message] = []

    async def listening(_call: Call, receive: Any, _send: Any) -> None:
        heard.append(await receive())

    app = Scripted([b"plain", listening], headers=[])
    response = await left(wrapped(app, on_disconnect=mode), lambda response: bool(response.chunks), spec_version="2.3")
    assert response.exception is None
    assert heard == [{"type": "http.disconnect"}]
    assert app.call.cancelled == 0


async def test_background_work_of_a_plain_answer_is_done_for_a_client_that_has_left() -> None:
    done: list[str] = []

    async def background() -> None:
        await anyio.sleep(1)
        done.append("worked")

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()
        await JSONResponse({}, background=BackgroundTask(background))(scope, receive, send)

    response = await left(wrapped(endpoint), lambda response: response.status is not None)
    assert (response.exception, done) == (None, ["worked"])


@both_modes
async def test_is_disconnected_tells_an_endpoint_the_truth(mode: str) -> None:
    told: list[bool] = []

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        await request.body()
        told.append(await request.is_disconnected())

        async def frames() -> AsyncIterator[bytes]:
            yield FRAMES[0]
            await anyio.sleep(1)
            told.append(await request.is_disconnected())

        async def behind() -> None:
            await anyio.sleep(1)
            told.append(await request.is_disconnected())

        await StreamingResponse(frames(), media_type="text/event-stream", background=BackgroundTask(behind))(
            scope, receive, send
        )

    async with tidy():
        await run_asgi(wrapped(endpoint, on_disconnect=mode), body=BODY)
        await tidied()
    assert told == [False, False, True]
    told.clear()
    await left(wrapped(endpoint, on_disconnect=mode), 1)
    assert told == ([False, False, True] if mode == "detach" else [False])  # detached, it hears of the end only


async def test_an_endpoint_that_serves_no_http_says_so() -> None:
    endpoint = agent_endpoint(RUN)
    for kind in ("lifespan", "websocket"):
        with pytest.raises(RuntimeError, match=f"serves HTTP; got a {kind} scope"):
            await endpoint({"type": kind}, None, None)  # type: ignore[arg-type]
