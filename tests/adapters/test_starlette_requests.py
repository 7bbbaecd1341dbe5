"""The request around a run: context variables, `current_request()`, chains made for one request, background work."""

from __future__ import annotations

import contextvars
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from ag_ui.core import RunAgentInput
from fastapi import FastAPI
from fastapi import HTTPException as FastAPIHTTPException
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, SimpleUser
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from agui_pipeline.adapters.starlette import AGUIMiddleware, agent_app, current_request
from agui_pipeline.adapters.testing import run_asgi
from agui_pipeline.middleware import EventThrottleMiddleware, Source
from agui_pipeline.translators import ConfigurationError, Event, replace, run_input
from tests.adapters.apps import BODY, FRAMES, INPUT, RUN, STREAM, TYPES, Call, Scripted, ask, sleep, types, wrapped
from tests.clocks import BACKENDS
from tests.middleware.kit import Held, OopsError, Stage, passing

pytestmark = pytest.mark.anyio


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")


# Context.


async def test_outside_a_request_there_is_none() -> None:
    with pytest.raises(LookupError, match="outside a request"):
        current_request()


async def test_the_request_is_known_to_the_chain_the_app_and_the_agent() -> None:
    known: dict[str, Any] = {}

    def note(who: str) -> None:
        known[who] = (current_request().headers["x-user"], current_request().url.path, tenant.get())

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        note("stage")
        async for event in next(input):
            yield event
        note("end of the stage")

    class Noting(Stage):
        def translator(self, input: RunAgentInput) -> Any:
            note("translator")
            return super().translator(input)

    async def noting(_call: Call, _receive: Any, _send: Any) -> None:
        note("app")

    async def agent(_input: RunAgentInput) -> AsyncIterator[Any]:
        note("agent")
        for event in RUN:
            yield event
        note("end of the agent")

    def per_request(request: Request, _body: Any) -> Any:
        note("callable")
        assert request is current_request()
        return [stage, Noting(Held), stage]

    tenant.set("acme")
    expected = ("ada", "/agent", "acme")
    options: Any = {"headers": {"x-user": "ada", "content-type": "application/json"}, "path": "/agent"}
    app = AGUIMiddleware(Scripted([*FRAMES, noting]), middleware=per_request)
    assert types(await ask(app, **options)) == TYPES
    assert known == dict.fromkeys(("callable", "stage", "end of the stage", "translator", "app"), expected)
    known.clear()
    for chain in ([], [stage], [Noting(Held)], [stage, Noting(Held), stage]):
        await ask(agent_app(agent, *chain, path="/agent"), **options)
    assert known == dict.fromkeys(("stage", "end of the stage", "translator", "agent", "end of the agent"), expected)
    with pytest.raises(LookupError):
        current_request()


async def test_what_the_app_sets_stays_in_its_own_context() -> None:
    async def setting(_call: Call, _receive: Any, _send: Any) -> None:
        tenant.set("of the app")

    tenant.set("outer")
    await ask(wrapped(Scripted([setting, *FRAMES])))
    assert tenant.get() == "outer"


async def test_the_request_says_what_was_sent() -> None:
    seen: list[Any] = []

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        request = current_request()
        seen.extend((await request.json(), request.query_params["q"], await request.is_disconnected()))
        async for event in next(input):
            yield event

    for app in (wrapped(Scripted(), stage), agent_app(RUN, stage)):
        assert types(await ask(app, path="/?q=1")) == TYPES
        assert seen == [INPUT, "1", False]
        seen.clear()


async def test_the_chain_can_see_whether_its_client_is_there() -> None:
    told: list[bool] = []

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        await current_request().body()
        async for event in next(input):
            yield event
        told.append(await current_request().is_disconnected())

    for app in (
        wrapped(Scripted([*FRAMES, sleep(1)]), stage, on_disconnect="detach"),
        agent_app([*RUN], stage, on_disconnect="detach"),
    ):
        for when in (None, 1):
            await run_asgi(app, body=BODY, disconnect_after=when, spec_version="2.4")
        assert told == [False, True]
        told.clear()


async def test_nested_wrappings_know_the_same_request() -> None:
    urls: list[str] = []

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        urls.append(current_request().url.path)
        async for event in next(input):
            yield event

    await ask(wrapped(wrapped(Scripted(), stage), stage), path="/agent")
    assert urls == ["/agent", "/agent"]


async def test_a_user_that_was_authenticated_outside_reaches_the_chain() -> None:
    names: list[str] = []

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        names.append(current_request().user.display_name)
        async for event in next(input):
            yield event

    scope = {"user": SimpleUser("ada"), "auth": AuthCredentials(["authenticated"])}
    await ask(wrapped(Scripted(), stage), scope=scope)
    assert names == ["ada"]


# Chains for a request.


def shouting(mark: str) -> Any:
    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        async for event in next(input):
            yield replace(event, delta=event.delta + mark) if event.type == "TEXT_MESSAGE_CONTENT" else event

    return stage


async def test_a_chain_is_made_for_each_request() -> None:
    def chain(request: Request, body: Any) -> list[Any]:
        assert body == INPUT
        return [shouting(request.headers["x-mark"])]

    async def slowly(request: Request, body: Any) -> tuple[Any, ...]:
        assert (await request.json()) == body
        await anyio.sleep(0.1)
        return (shouting(request.headers["x-mark"]), EventThrottleMiddleware())

    class Maker:
        def __call__(self, request: Request, body: Any) -> Any:
            return (stage for stage in chain(request, body))

    for make in (chain, slowly, Maker(), Maker().__call__):
        app = AGUIMiddleware(Scripted([part for one in FRAMES for part in (one, sleep(0.1))]), middleware=make)
        texts: dict[str, str] = {}

        async def one(mark: str, app: Any = app, texts: dict[str, str] = texts) -> None:
            response = await ask(app, headers={"x-mark": mark, "content-type": "application/json"})
            texts[mark] = "".join(event.delta for event in response.events if event.type == "TEXT_MESSAGE_CONTENT")

        async with anyio.create_task_group() as group:
            for mark in "abcdef":
                group.start_soon(one, mark)
        assert texts == {mark: f"Grüße, {mark}世界{mark}" for mark in "abcdef"}


@pytest.mark.parametrize("kind", [HTTPException, FastAPIHTTPException])
async def test_a_chain_can_refuse_a_request_before_the_stream(kind: Any) -> None:
    async def guarded(request: Request, _body: Any) -> list[Any]:
        if request.headers.get("authorization") != "Bearer x":
            raise kind(429, "try later", headers={"Retry-After": "7"})
        return []

    app = Scripted()
    served = AGUIMiddleware(app, middleware=guarded)
    for body, headers in (
        (BODY, {}),
        (b"{}", {}),  # no body may slip past
        (b"no json", {}),
        (BODY, {"content-type": "text/plain"}),
        (BODY + b" " * 100, {}),
    ):
        response = await ask(AGUIMiddleware(app, middleware=guarded, max_body=len(BODY)), body, headers=headers)
        assert (response.status, response.headers["retry-after"]) == (429, "7")
        assert response.json() == {"code": "refused", "message": "try later"}
    assert app.calls == []
    assert (await ask(served, headers={"authorization": "Bearer x"})).body == STREAM


async def test_a_refusal_without_a_body_has_none() -> None:
    def nothing(_request: Request, _body: Any) -> list[Any]:
        raise HTTPException(204, headers={"X-Y": "z"})

    response = await ask(AGUIMiddleware(Scripted(), middleware=nothing))
    assert (response.status, response.body, response.headers["x-y"]) == (204, b"", "z")


async def test_a_callable_gets_the_body_as_far_as_it_was_read() -> None:
    bodies: list[Any] = []

    async def reading(request: Request, body: Any) -> list[Any]:
        bodies.append(body)
        if request.headers.get("content-type") == "text/plain":
            bodies.append(await request.body())
        return []

    app = Scripted()
    served = AGUIMiddleware(app, middleware=reading)
    for body, headers, wanted in (
        (BODY, {}, [INPUT]),
        (b'{"a":1}', {}, [{"a": 1}]),
        (b"no json", {}, [b"no json"]),
        ([b"some ", b"text"], {"content-type": "text/plain"}, [b"", b"some text"]),
    ):
        await ask(served, body, headers=headers)
        assert bodies == wanted
        assert app.calls[-1].body == (b"".join(body) if isinstance(body, list) else body)
        bodies.clear()


class Upgraded(list[Any]):
    """A chain, and what an old body asks for."""

    input: RunAgentInput | None = None


async def test_a_callable_may_say_what_an_old_body_asks_for() -> None:
    seen: list[RunAgentInput] = []

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[Event]:
        seen.append(input)
        async for event in next(input):
            yield event

    def upgrade(_request: Request, body: Any) -> Upgraded:
        chain = Upgraded([stage])
        if "message" in body:
            chain.input = run_input(body["message"], thread_id="old", run_id="new")
        return chain

    app = Scripted()
    served = AGUIMiddleware(app, middleware=upgrade, on_unparsable="reject")
    old = b'{"message":"hello"}'
    headers = {"content-type": "application/json", "content-length": str(len(old))}
    response = await ask(served, old, headers=headers)
    assert types(response) == TYPES
    got = json.loads(app.calls[-1].body)
    assert (got["threadId"], got["messages"][0]["content"]) == ("old", "hello")
    assert dict(app.calls[-1].scope["headers"])[b"content-length"] == str(len(app.calls[-1].body)).encode()
    assert seen[-1].thread_id == "old"
    assert (await ask(served)).body == STREAM
    assert app.calls[-1].body == BODY  # where it says nothing, the body goes on as it is
    assert (await ask(served, b"{}")).status == 400


async def test_a_callable_that_fails_is_answered_by_the_server() -> None:
    error = OopsError("of the callable")

    def failing(_request: Request, _body: Any) -> list[Any]:
        raise error

    makers: list[tuple[Any, Any]] = [
        (failing, error),
        (lambda _request, _body: None, None),
        (lambda _request, _body: [5], None),
    ]
    for make, raised in makers:
        app = Scripted()
        response = await run_asgi(AGUIMiddleware(app, middleware=make), body=BODY)
        assert response.status is None
        assert app.calls == []
        if raised is None:
            assert isinstance(response.exception, ConfigurationError)
        else:
            assert response.exception is raised


async def test_runs_of_one_chain_do_not_meet() -> None:
    app = AGUIMiddleware(
        Scripted([part for one in FRAMES for part in (one, sleep(0.01))]), middleware=[passing, Stage(Held), passing]
    )
    bodies: list[bytes] = []

    async def one() -> None:
        bodies.append((await ask(app)).body)

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(one)
    assert bodies == [STREAM] * 50


# Work behind the response.


@pytest.mark.parametrize("chain", [[], [passing], [Stage(Held)], [passing, Stage(Held)]])
async def test_background_work_of_the_wrapped_response_is_done(chain: list[Any]) -> None:
    done: list[str] = []

    async def work(name: str) -> None:
        await anyio.sleep(1)
        done.append(name)

    async def endpoint(request: Request) -> Response:
        async def frames() -> AsyncIterator[bytes]:
            for one in FRAMES:
                yield one

        body = await request.json()
        if body.get("plain"):
            return PlainTextResponse("text", background=BackgroundTask(work, "plain"))
        return StreamingResponse(
            frames(), media_type="text/event-stream", background=BackgroundTask(work, body["threadId"])
        )

    inner = Starlette(routes=[Route("/", endpoint, methods=["POST"])])
    for app in (wrapped(inner, *chain), wrapped(wrapped(inner, *chain), *chain)):
        response = await ask(app)
        assert types(response) == TYPES
        assert done == ["t"]
        assert (await ask(app, {**INPUT, "plain": True})).text == "text"
        assert done == ["t", "plain"]
        done.clear()


async def test_the_end_of_the_response_does_not_wait_for_background_work() -> None:
    times: list[float] = []

    async def behind(_call: Call, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        await anyio.sleep(100)

    async def timing(scope: Any, receive: Any, send: Any) -> None:
        async def noted(message: Any) -> None:
            if message["type"] == "http.response.body" and not message["more_body"]:
                times.append(anyio.current_time())
            await send(message)

        await wrapped(Scripted([*FRAMES, behind]))(scope, receive, noted)

    begin = anyio.current_time()
    await ask(timing, timeout=200)
    assert times == [pytest.approx(begin, abs=0.01)]
    assert anyio.current_time() == pytest.approx(begin + 100, abs=0.1)


async def test_a_fastapi_application_keeps_its_dependencies_with_yield_open_during_the_stream() -> None:
    opened: list[str] = []
    app = FastAPI()

    from fastapi import Depends

    async def connection() -> AsyncIterator[str]:
        opened.append("open")
        yield "connection"
        opened.append("closed")

    @app.post("/agent")
    async def endpoint(input_data: RunAgentInput, used: str = Depends(connection)) -> StreamingResponse:  # noqa: ARG001, FAST002
        async def frames() -> AsyncIterator[bytes]:
            for event in FRAMES:
                opened.append(used)
                yield event

        return StreamingResponse(frames(), media_type="text/event-stream")

    app.add_middleware(AGUIMiddleware, middleware=[passing])
    response = await ask(app, json.dumps(INPUT), path="/agent")
    assert types(response) == TYPES
    assert opened == ["open", *["connection"] * len(RUN), "closed"]
