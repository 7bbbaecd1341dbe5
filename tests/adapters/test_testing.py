"""The testing helpers that users get: an agent made of a script, a client, a server around an ASGI app."""

from __future__ import annotations

import asyncio
import copy
import math
import pickle
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import anyio
import pytest
from ag_ui.core import RunAgentInput, RunErrorEvent, TextMessageChunkEvent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from agui_pipeline.adapters.testing import (
    ASGIResponse,
    Message,
    ScriptedAgent,
    collect,
    pause,
    run_asgi,
)
from agui_pipeline.middleware import EventThrottleMiddleware, Pipeline
from agui_pipeline.translators import ConfigurationError, SourceError, SSEFrame, decode_event, encode_sse, run_input
from tests.clocks import BACKENDS

pytestmark = pytest.mark.anyio

INPUT = run_input("hello", thread_id="thread", run_id="run", state={"n": 1})


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return BACKENDS[request.param]()


def chunk(text: str, id: str = "m") -> dict[str, Any]:
    return {"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": text}


# ScriptedAgent.


async def played(agent: ScriptedAgent, input: RunAgentInput = INPUT) -> list[Any]:
    return [item async for item in agent(input)]


async def test_a_script_is_played_as_it_stands_each_time() -> None:
    script = [TextMessageChunkEvent(message_id="m", delta="a"), chunk("b"), '{"type":"RAW"}', b"data: x\n\n", 5, None]
    agent = ScriptedAgent(script)
    for _ in range(2):
        assert await played(agent) == script
    assert [item async for item in agent.run(INPUT)] == script
    assert agent.sent == script * 3
    assert (agent.started, agent.closed, agent.running) == (3, 3, 0)
    assert agent.inputs == [INPUT] * 3


async def test_pauses_and_delays_take_their_time() -> None:
    start = anyio.current_time()
    await played(ScriptedAgent([chunk("a"), pause(2), chunk("b"), pause(0), pause(0.5)], delay=1))
    assert anyio.current_time() - start == pytest.approx(4.5)


async def test_an_endless_pause_ends_with_its_cancellation() -> None:
    agent = ScriptedAgent([chunk("a"), pause(math.inf), chunk("b")])
    with anyio.move_on_after(1000) as scope:
        await played(agent)
    assert scope.cancelled_caught
    assert agent.sent == [chunk("a")]
    assert agent.running == 0


async def test_a_pause_of_nothing_lets_others_run() -> None:
    log: list[str] = []

    async def other() -> None:
        log.append("other")

    async with anyio.create_task_group() as group:
        async for item in ScriptedAgent([chunk("a"), pause(0), pause(0), chunk("b")])(INPUT):
            log.append(item["delta"])
            if item["delta"] == "a":
                group.start_soon(other)
    assert log == ["a", "other", "b"]


@pytest.mark.parametrize("place", range(3))
async def test_an_exception_is_raised_in_its_place_as_itself(place: int) -> None:
    error = ConnectionError("gone")
    script: list[Any] = [chunk("a"), chunk("b")]
    script.insert(place, error)
    agent = ScriptedAgent(script)
    for _ in range(3):
        result = await collect(agent, catch=True)
        assert result.exception is error
        assert len(result.events) == place
    assert agent.running == 0
    depth = 0
    trace = error.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    assert depth < 10  # it does not grow with each run


async def test_an_exception_at_the_end_and_classes_of_exceptions() -> None:
    for agent in (ScriptedAgent([chunk("a")], raises=KeyError("k")), ScriptedAgent([chunk("a"), KeyError])):
        result = await collect(agent, catch=True)
        assert isinstance(result.exception, KeyError)
        assert result.text == "a"


async def test_functions_in_a_script_see_the_input_and_give_its_next_items() -> None:
    ready = anyio.Event()

    async def wait(_input: RunAgentInput) -> None:
        await ready.wait()

    async def late(_input: RunAgentInput) -> Any:
        return chunk("late")

    agent = ScriptedAgent(
        [
            lambda input: chunk(input.thread_id),  # noqa: A006
            lambda _input: [pause(1), chunk("b"), lambda _input: (chunk("c"), chunk("d"))],
            lambda _input: None,
            lambda _input: (chunk(text) for text in "ef"),
            lambda _input: SSEFrame(data="{}"),
            lambda _input: ready.set(),
            wait,
            late,
        ]
    )
    items = await played(agent)
    assert [item["delta"] for item in items if isinstance(item, dict)] == ["thread", *"bcdef", "late"]
    assert items[-2] == SSEFrame(data="{}")


async def test_a_class_in_a_script_is_an_item() -> None:
    assert await played(ScriptedAgent([TextMessageChunkEvent])) == [TextMessageChunkEvent]


async def test_runs_overlap() -> None:
    agent = ScriptedAgent([chunk("a"), pause(1), chunk("b")])
    first, second = agent(INPUT), agent(INPUT)
    assert agent.started == 0
    await anext(first)
    await anext(second)
    assert (agent.started, agent.running) == (2, 2)
    await first.aclose()
    assert (agent.closed, agent.running) == (1, 1)
    assert [item["delta"] async for item in second] == ["b"]
    assert (agent.closed, agent.running) == (2, 0)


async def test_it_is_a_source() -> None:
    agent = ScriptedAgent([chunk("a"), chunk("b")])
    result = await collect(Pipeline(agent, EventThrottleMiddleware()), INPUT)
    assert result.text == "ab"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: ScriptedAgent("data: {}"), "a script is a list of items; got str: put it in a list"),
        (lambda: ScriptedAgent(b"{}"), "got bytes"),
        (lambda: ScriptedAgent({"type": "RAW"}), "got dict"),
        (lambda: ScriptedAgent([], delay=-1), "delay=-1: must be a number of seconds, 0 or more"),
        (lambda: ScriptedAgent([], delay=math.inf), "delay=inf"),
        (lambda: pause(-1), "seconds=-1: must be a number of seconds, 0 or more"),
        (lambda: pause("1"), "seconds='1'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_script_is_refused(make: Callable[[], Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        make()


# collect.

RUN: list[dict[str, Any]] = [
    {"type": "RUN_STARTED", "threadId": "thread", "runId": "run"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hi"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "add", "parentMessageId": "m"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"},
    {"type": "TOOL_CALL_END", "toolCallId": "c"},
    {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "84"},
    {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]},
    {"type": "RUN_FINISHED", "threadId": "thread", "runId": "run", "result": {"ok": True}},
]


async def events() -> AsyncIterator[Any]:
    for event in RUN:
        yield event


@pytest.mark.parametrize(
    "make",
    [
        lambda: RUN,
        lambda: tuple(RUN),
        lambda: iter(RUN),
        lambda: (event for event in RUN),
        events,
        lambda: ScriptedAgent(RUN),
        lambda: Pipeline(RUN),
        lambda: lambda _input: events(),
        lambda: [b"".join(map(encode_sse, map(decode_event, RUN)))],
    ],
    ids=["list", "tuple", "iterator", "generator", "async generator", "agent", "pipeline", "function", "SSE"],
)
async def test_a_run_is_collected_from_a_source_or_its_events(make: Callable[[], Any]) -> None:
    result = await collect(make(), INPUT)
    assert result.types == [event["type"] for event in RUN]
    assert [message.role for message in result.messages] == ["user", "assistant", "tool"]
    assert result.messages[0].content == "hello"
    assert result.new_messages == result.messages[1:]
    assert result.messages[1].tool_calls[0].function.arguments == "{}"
    assert result.messages[2] == {"id": "r", "role": "tool", "toolCallId": "c", "content": "84"}
    assert result.state == {"n": 2}
    assert (result.outcome, result.result, result.error, result.exception) == ("success", {"ok": True}, None, None)
    assert result.text == "Hi"
    assert result.diagnostics == []


async def test_the_input_is_handed_on_and_stays_as_it_is() -> None:
    agent = ScriptedAgent(RUN)
    before = INPUT.model_copy(deep=True)
    await collect(agent, INPUT)
    await collect(agent)
    assert agent.inputs[0] is INPUT
    assert before == INPUT
    assert agent.inputs[1].messages == []


async def test_a_run_that_ends_in_an_error_names_it() -> None:
    error = RunErrorEvent(message="no", code="c")
    result = await collect([chunk("a"), error])
    assert result.outcome == "error"
    assert cast("object", result.error) is error


async def test_a_run_without_a_terminal_event_has_no_outcome() -> None:
    assert (await collect([chunk("a")])).outcome is None


async def test_interrupts_are_those_that_wait_for_an_answer() -> None:
    interrupt = {"id": "i", "reason": "approval", "toolCallId": "c"}
    outcome = {"type": "interrupt", "interrupts": [interrupt]}
    result = await collect([{"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome}])
    assert result.outcome == "interrupt"
    assert result.interrupts == [interrupt]
    assert result.interrupts[0].tool_call_id == "c"


async def test_what_the_client_would_warn_about_is_kept() -> None:
    result = await collect([{"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/x"}]}])
    assert [diagnostic.code for diagnostic in result.diagnostics] == ["client.patch-skipped"]


async def test_an_exception_is_raised_unless_it_is_caught() -> None:
    error = ConnectionError("gone")
    agent = ScriptedAgent([chunk("a"), error])
    with pytest.raises(ConnectionError) as caught:
        await collect(agent)
    assert caught.value is error
    result = await collect(agent, catch=True)
    assert result.exception is error
    assert result.text == "a"
    with pytest.raises(SourceError, match="got int"):
        await collect([5])


async def test_a_cancellation_is_not_caught_and_closes_the_source() -> None:
    agent = ScriptedAgent([chunk("a"), pause(math.inf)])
    with anyio.move_on_after(1) as scope:
        await collect(agent, catch=True)
    assert scope.cancelled_caught
    assert agent.running == 0


async def test_frames_of_other_dialects_are_collected_and_not_applied() -> None:
    async def leaves(input: RunAgentInput, next: Any) -> AsyncIterator[Any]:
        async for _ in next(input):
            yield SSEFrame(event="text", data="x")
            yield SSEFrame(data="[DONE]")

    result = await collect(Pipeline([chunk("a")], leaves))
    assert result.types == ["text", ""]
    assert result.messages == []


@pytest.mark.parametrize("bad", ["data: {}", 5, None, {"type": "RAW"}])
async def test_what_is_neither_a_source_nor_events_is_refused(bad: Any) -> None:
    with pytest.raises(ConfigurationError, match="source is"):
        await collect(bad)


def test_messages_are_json_with_attributes() -> None:
    message = Message({"id": "m", "toolCalls": [{"function": {"name": "f"}}], "metadata": {"my_key": 1}})
    assert message == {"id": "m", "toolCalls": [{"function": {"name": "f"}}], "metadata": {"my_key": 1}}
    assert message.tool_calls[0].function.name == "f"
    assert message.metadata.my_key == 1
    assert (message.content, message.id, message["id"]) == (None, "m", "m")
    for other in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):  # noqa: S301
        assert other == message
        assert other.tool_calls[0].function.name == "f"
    with pytest.raises(AttributeError):
        message.__wrapped__  # noqa: B018


# run_asgi.


def sse(*texts: str) -> list[bytes]:
    return [encode_sse(TextMessageChunkEvent(message_id="m", delta=text)) for text in texts]


def streaming(
    parts: list[Any], *, headers: Any = ((b"content-type", b"text/event-stream"),), log: list[Any] | None = None
) -> Any:
    """Return an app that sends parts of a body; a number is a wait, an exception is raised."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
        for part in parts:
            if isinstance(part, BaseException):
                raise part
            if isinstance(part, int):
                await anyio.sleep(part)
                continue
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if log is not None:
                log.append((anyio.current_time(), part))
        await send({"type": "http.response.body", "body": b""})

    return app


async def test_a_request_is_what_a_server_makes_of_it() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, await receive()))
        await PlainTextResponse("ok")(scope, receive, send)

    response = await run_asgi(
        app,
        path="/ag%20ent?a=1&b=ü",
        headers={"X-Own": "1", "Accept": "*/*"},
        body={"ü": 1},
        scope={"root_path": "/r"},
        spec_version="2.4",
    )
    scope, message = seen[0]
    assert (scope["type"], scope["method"], scope["path"], scope["root_path"]) == ("http", "POST", "/ag ent", "/r")
    assert (scope["raw_path"], scope["query_string"]) == (b"/ag%20ent", "a=1&b=ü".encode())
    assert scope["asgi"] == {"version": "3.0", "spec_version": "2.4"}
    assert dict(scope["headers"]) == {
        b"x-own": b"1",
        b"accept": b"*/*",
        b"host": b"testserver",
        b"content-type": b"application/json",
        b"content-length": b"8",
    }
    assert message == {"type": "http.request", "body": '{"ü":1}'.encode(), "more_body": False}
    assert (response.status, response.text, response.headers["content-type"]) == (
        200,
        "ok",
        "text/plain; charset=utf-8",
    )
    assert (response.complete, response.disconnected, response.exception) == (True, False, None)


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b"", [b""]),
        (b"ab", [b"ab"]),
        ("ü", ["ü".encode()]),
        ([b"a", "b", b""], [b"a", b"b", b""]),
        ([], [b""]),
        ({"a": [1]}, [b'{"a":[1]}']),
        (INPUT, [INPUT.model_dump_json(by_alias=True, exclude_none=True).encode()]),
    ],
)
async def test_a_body_comes_in_the_parts_that_were_given(body: Any, parts: list[bytes]) -> None:
    got: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            got.append(message["body"])
            if not message["more_body"]:
                break
        await Response()(scope, receive, send)

    await run_asgi(app, body=body)
    assert got == parts


async def stream(texts: list[str]) -> AsyncIterator[bytes]:
    for part in sse(*texts):
        yield part


async def test_a_starlette_app_streams_through_it() -> None:
    async def endpoint(request: Request) -> Response:
        body = await request.json()
        return StreamingResponse(stream(body["texts"]), media_type="text/event-stream")

    app = Starlette(routes=[Route("/agent", endpoint, methods=["POST"])])
    response = await run_asgi(app, path="/agent", body={"texts": ["a", "b"]})
    assert response.chunks == sse("a", "b")
    assert [event.delta for event in response.events] == ["a", "b"]
    assert (await run_asgi(app, path="/nowhere")).status == 404
    assert (await run_asgi(app, path="/agent", method="GET")).status == 405
    assert (await run_asgi(JSONResponse({"a": 1}))).json() == {"a": 1}


async def test_events_are_decoded_wherever_the_body_is_cut() -> None:
    body = b": ping\n\nevent: x\ndata: [DONE]\n\n" + b"".join(sse("ä", "b")) + b"data: 5\n\n"
    for size in (1, 2, 3, 7, len(body)):
        response = await run_asgi(streaming([body[at : at + size] for at in range(0, len(body), size)]))
        assert response.body == body
        assert [event.delta for event in response.events] == ["ä", "b"]
        assert [frame.data for frame in response.frames][:2] == [None, "[DONE]"]
        assert len(response.frames) == 5


async def test_the_end_of_the_body_ends_the_last_frame() -> None:
    response = await run_asgi(streaming([sse("a")[0].rstrip()]))
    assert [event.delta for event in response.events] == ["a"]


async def test_bodies_that_are_no_event_streams_are_not_decoded() -> None:
    response = await run_asgi(streaming(sse("a"), headers=()))
    assert (response.frames, response.events) == ([], [])


async def test_chunks_have_the_times_at_which_they_came() -> None:
    start = anyio.current_time()
    response = await run_asgi(streaming([b"a", 2, b"b", b"", 3, b"c"]))
    assert response.chunks == [b"a", b"b", b"c"]
    assert [round(time - start, 6) for time in response.times] == [0, 2, 5]


# A client that leaves.


async def listening(_scope: Any, receive: Any, send: Any) -> None:
    """Stream until the client leaves, as Starlette does before version 2.4 of the spec."""
    await receive()
    gone = anyio.Event()

    async def listen() -> None:
        assert await receive() == {"type": "http.disconnect"}
        gone.set()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        while not gone.is_set():
            await send({"type": "http.response.body", "body": b": ping\n\n" + b"".join(sse("a")), "more_body": True})
            await anyio.sleep(1)


@pytest.mark.parametrize("count", range(4))
async def test_a_client_leaves_after_so_many_events(count: int) -> None:
    response = await run_asgi(listening, disconnect_after=count)
    assert response.disconnected
    assert not response.complete
    assert len(response.events) == count
    assert response.status == (200 if count else None)
    assert response.exception is None


@pytest.mark.parametrize(
    ("leaves", "chunks"),
    [
        (lambda response: response.status is not None, 0),
        (lambda response: len(response.chunks) >= 2, 2),
        (lambda response: len(response.body) >= 3 * len(b": ping\n\n" + sse("a")[0]), 3),
        (lambda response: b"ping" in response.body, 1),
    ],
    ids=["started", "chunks", "bytes", "content"],
)
async def test_a_client_leaves_when_a_function_says_so(leaves: Callable[[ASGIResponse], bool], chunks: int) -> None:
    response = await run_asgi(listening, disconnect_after=leaves)
    assert response.disconnected
    assert len(response.chunks) == chunks


async def test_a_client_leaves_in_the_middle_of_its_body() -> None:
    got: list[Any] = []

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        got.extend([await receive() for _ in range(4)])

    response = await run_asgi(app, body=[b"a", b"b"], body_complete=False)
    assert [(message["type"], message.get("more_body")) for message in got] == [
        ("http.request", True),
        ("http.request", True),
        ("http.disconnect", None),
        ("http.disconnect", None),
    ]
    assert response.disconnected


async def test_receive_gives_a_disconnect_once_the_response_is_complete() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await Response("ok")(scope, receive, send)
        assert (await receive())["type"] == "http.disconnect"

    response = await run_asgi(app)
    assert response.exception is None
    assert (response.complete, response.disconnected) == (True, False)


@pytest.mark.parametrize(("spec_version", "raises"), [("2.0", False), ("2.3", False), ("2.4", True), ("2.10", True)])
async def test_what_is_sent_after_the_client_has_left(spec_version: str, *, raises: bool) -> None:
    response = await run_asgi(
        streaming(sse("a", "b", "c")), disconnect_after=1, spec_version=spec_version, headers={"x": "y"}
    )
    assert [event.delta for event in response.events] == ["a"]
    assert isinstance(response.exception, OSError) == raises
    assert [message["body"] for message in response.ignored] == (sse("b") if raises else [*sse("b", "c"), b""])


async def test_a_client_that_has_the_whole_response_does_not_leave() -> None:
    response = await run_asgi(streaming([*sse("a", "b")]), disconnect_after=3)
    assert (response.complete, response.disconnected) == (True, False)


# A client that reads slowly.


async def test_send_waits_for_a_slow_client() -> None:
    log: list[Any] = []
    start = anyio.current_time()
    await run_asgi(streaming(sse("a", "b"), log=log), read_delay=2)
    assert [time - start for time, _ in log] == [2, 4]


async def test_send_waits_for_a_client_that_stops_reading() -> None:
    log: list[Any] = []
    start = anyio.current_time()

    async def reader(response: ASGIResponse) -> None:
        if len(response.events) == 2:
            await anyio.sleep(10)

    response = await run_asgi(streaming(sse("a", "b", "c"), log=log), reader=reader)
    assert [time - start for time, _ in log] == [0, 10, 10]
    assert response.complete


async def test_a_client_that_has_stopped_reading_may_leave() -> None:
    """From within, or called by another task: either ends the wait."""
    log: list[Any] = []

    async def reader(response: ASGIResponse) -> None:
        if len(response.events) == 2:
            response.disconnect()
            await anyio.sleep_forever()

    response = await run_asgi(streaming(sse("a", "b", "c"), log=log), reader=reader)
    assert [part for _, part in log] == sse("a", "b", "c")
    assert [event.delta for event in response.events] == ["a", "b"]

    async with anyio.create_task_group() as group:

        async def stuck(response: ASGIResponse) -> None:
            async def later() -> None:
                await anyio.sleep(5)
                response.disconnect()

            group.start_soon(later)
            await anyio.sleep_forever()

        response = await run_asgi(streaming(sse("a", "b")), reader=stuck)
    assert response.disconnected
    assert len(response.events) == 1


# Apps that do wrong.


async def test_what_an_app_raises_is_kept() -> None:
    error = ValueError("app")
    response = await run_asgi(streaming([*sse("a"), error]))
    assert response.exception is error
    assert [event.delta for event in response.events] == ["a"]
    assert not response.complete


async def start_twice(_scope: Any, _receive: Any, send: Any) -> None:
    for _ in range(2):
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def body_first(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.body", "body": b"x"})


async def body_after_the_end(scope: Any, receive: Any, send: Any) -> None:
    await Response("ok")(scope, receive, send)
    await body_first(scope, receive, send)


async def unknown(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.trailers"})


LENGTH = [(b"Content-Length", b"3")]


@pytest.mark.parametrize(
    ("app", "problem"),
    [
        (start_twice, "second http.response.start"),
        (body_first, "body before http.response.start"),
        (body_after_the_end, "after it had completed its response"),
        (streaming(["text"]), "must be bytes; got str"),
        (streaming([b"four"], headers=LENGTH), "announced content-length 3 and sent 4 bytes"),
        (streaming([b"tw"], headers=LENGTH), "announced content-length 3 and sent 2 bytes"),
        (unknown, "does not offer the extension of a message 'http.response.trailers'"),
    ],
)
async def test_what_a_server_refuses_is_refused(app: Any, problem: str) -> None:
    response = await run_asgi(app)
    assert problem in str(response.exception)


async def test_an_answer_to_head_announces_a_body_that_it_has_not() -> None:
    response = await run_asgi(streaming([], headers=LENGTH), method="HEAD")
    assert (response.exception, response.complete) == (None, True)


async def test_an_app_that_does_not_return_fails_the_test() -> None:
    with pytest.raises(TimeoutError, match=r"did not return within 3 s: <ASGIResponse 200 incomplete, 1 chunks, 1"):
        await run_asgi(streaming([*sse("a"), 1000]), timeout=3)


async def test_an_app_that_answers_nothing_has_no_status() -> None:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None: ...

    response = await run_asgi(app)
    assert (response.status, response.complete, response.exception) == (None, False, None)


@pytest.mark.parametrize("bad", [-1, True, "3", 1.5])
async def test_when_a_client_leaves_is_checked(bad: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"disconnect_after=.*: must be None, a number of events, or a callable"
    ):
        await run_asgi(listening, disconnect_after=bad)


async def test_a_cancellation_goes_through_the_app() -> None:
    ended = False

    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        nonlocal ended
        try:
            await anyio.sleep_forever()
        finally:
            ended = True

    with anyio.move_on_after(1) as scope:
        await run_asgi(app)
    assert scope.cancelled_caught
    assert ended


def test_it_needs_no_plugin() -> None:
    assert asyncio.run(run_asgi(JSONResponse({"a": 1}))).json() == {"a": 1}
