"""The old HTTP API: what its requests say, in which dialect they are answered, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from agui_pipeline.adapters.superagent import MemorySessions, routes
from agui_pipeline.adapters.testing import run_asgi
from agui_pipeline.middleware import TrustMiddleware
from agui_pipeline.translators import ConfigurationError, run_input
from tests.adapters.superagent import (
    CONFIRM,
    ENVELOPED,
    RESUME,
    STREAM,
    Agent,
    answer,
    app,
    enveloped,
    flat,
    get,
    interrupt,
    kinds,
    post,
    refused,
    run,
    said,
    say,
    text,
    tokens,
)

pytestmark = pytest.mark.anyio

CHAT = {"agent_id": "a", "session_id": "s", "message": "hello"}


async def test_a_message_is_the_users_and_the_session_is_the_thread() -> None:
    agent = Agent()
    await say(app(agent), "hello", agent_id="a", temperature=0.5)
    (message,) = agent.last.messages
    assert (message.role, message.content) == ("user", "hello")
    assert agent.last.thread_id == "s"
    assert agent.last.forwarded_props == {"agent_id": "a", "temperature": 0.5}
    assert agent.last.run_id
    assert not agent.last.resume


@pytest.mark.parametrize("opt_in", [{"headers": ENVELOPED}, {"query": "?a2ui=true"}, {"headers": {"X-A2UI": "TRUE"}}])
async def test_the_opt_in_gets_envelopes(opt_in: dict[str, Any]) -> None:
    response = await post(app(Agent()), STREAM + opt_in.get("query", ""), CHAT, opt_in.get("headers"))
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"
    assert kinds(response) == ["text", "done"]
    assert said(response) == "you said hello"
    assert enveloped(response)[-1] == ("done", None)


@pytest.mark.parametrize("headers", [{}, {"x-a2ui": "false"}, {"x-a2ui": ""}])
async def test_without_it_there_are_tokens(headers: dict[str, str]) -> None:
    assert tokens(await post(app(Agent()), STREAM, CHAT, headers)) == ["you said ", "hello", "[DONE]"]


async def test_an_event_source_gets_unnamed_json() -> None:
    agent = Agent()
    response = await get(app(agent), session="s", message="hello", agent_id="a")
    assert [(one["type"], one.get("content")) for one in flat(response)] == [
        ("text", "you said "),
        ("text", "hello"),
        ("done", None),
    ]
    assert agent.last.thread_id == "s"


async def test_the_default_dialect_is_that_of_messages_without_opt_in() -> None:
    served = app(Agent(), default_dialect="superagent-flat")
    assert flat(await post(served, STREAM, CHAT))[-1]["type"] == "done"
    assert kinds(await post(served, STREAM, CHAT, ENVELOPED))[-1] == "done"


async def test_an_agui_body_is_served_as_agui_without_a_session() -> None:
    agent = Agent()
    served = app(agent)
    for _ in range(2):
        response = await post(served, STREAM, run_input("hello", thread_id="s"))
        assert [event.type for event in response.events][-1] == "RUN_FINISHED"
        assert len(agent.last.messages) == 1
    assert refused(await answer(served, input={"confirm": True})) == (404, "unknown_session")


async def test_an_agui_body_with_the_opt_in_is_answered_in_envelopes() -> None:
    agent = Agent()
    body = run_input("hello", thread_id="t", forwarded_props={"agent_id": "a"})
    assert said(await post(app({"a": agent, "b": Agent()}), STREAM, body, ENVELOPED)) == "you said hello"
    assert agent.last.thread_id == "t"


@pytest.mark.parametrize("kind", ["enveloped", "flat", "tokens"])
async def test_a_megabyte_in_one_record(kind: str) -> None:
    agent = Agent()
    served = app(agent, on_diagnostic=lambda _: None)
    word = "wörter\r\n\n \u2028 " * 80_000
    if kind == "flat":
        response = await post(served, STREAM, {"session_id": "s", "message": word}, {"x-a2ui": "flat"})
        heard = "".join(one.get("content", "") for one in flat(response))
    elif kind == "tokens":
        response = await say(served, word, headers={})
        heard = "".join(tokens(response)).removesuffix("[DONE]")
    else:
        heard = said(await say(served, word))
    expected = f"you said {word}"
    # In tokens a CR is a line end like any other.
    assert heard == (expected.replace("\r\n", "\n") if kind == "tokens" else expected)
    await say(served, "still there?")
    assert agent.last.messages[-1].content == "still there?"


async def test_events_of_next_year_pass_the_session() -> None:
    async def future(input: Any) -> Any:
        events = run(input, {"type": "HOLOGRAM_CHUNK", "delta": {"x": 1}}, *text(input, "seen?"))
        for event in events:
            yield event

    served = app(future, on_diagnostic=lambda _: None)
    for _ in range(2):
        assert said(await say(served, "go")) == "seen?"


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (STREAM, b"", 400, "invalid_request"),
        (STREAM, b"no json", 400, "invalid_request"),
        (STREAM, b"[1]", 400, "invalid_request"),
        (STREAM, b'{"message":' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "invalid_request"),
        (STREAM, {}, 400, "invalid_request"),
        (STREAM, {"session_id": "s"}, 400, "invalid_request"),
        (STREAM, {"session_id": "s", "message": None}, 400, "invalid_request"),
        (STREAM, {"session_id": "s", "message": ["hello"]}, 400, "invalid_request"),
        (STREAM, {"session_id": 1, "message": "hello"}, 400, "invalid_request"),
        (STREAM, {"session_id": "", "message": "hello"}, 400, "invalid_request"),
        (STREAM, {"session_id": "s" * 1100, "message": "hello"}, 400, "invalid_request"),
        (STREAM, {"session_id": "s", "message": "hello", "agent_id": 7}, 400, "invalid_request"),
        (STREAM, {"session_id": "a\0b", "message": "hello"}, 400, "invalid_request"),
        (STREAM, {"session_id": "a\nb", "message": "hello"}, 400, "invalid_request"),
        (STREAM, b'{"session_id": "\\ud800", "message": "hello"}', 400, "invalid_request"),
        (STREAM, {"session_id": "s", "message": "hello", "agent_id": "a" * 1100}, 400, "invalid_request"),
        (STREAM, {"session_id": "s", "message": "hello", "agent_id": ["a"]}, 400, "invalid_request"),
        (STREAM, b"\x1f\x8b\x08", 400, "invalid_request"),
        (STREAM, {"session_id": "s", "message": "x" * 3000}, 413, "body_too_large"),
        (RESUME, {"session_id": "s", "input": {"confirm": "x" * 3000}}, 413, "body_too_large"),
        (STREAM, {"session_id": "s", "message": "hello", "agent_id": "nobody"}, 404, "unknown_agent"),
        (STREAM, {"messages": "no list", "forwardedProps": {"agent_id": "a"}}, 400, "invalid_input"),
        (STREAM, {"messages": [], "forwardedProps": {"agent_id": "nobody"}}, 404, "unknown_agent"),
        (STREAM, {"messages": []}, 400, "invalid_request"),
        (RESUME, {"input": {"confirm": True}}, 400, "invalid_request"),
        (RESUME, {"session_id": ["s"], "input": {"confirm": True}}, 400, "invalid_request"),
        (RESUME, {"session_id": "s"}, 400, "invalid_request"),
        (RESUME, {"session_id": "s", "input": "yes"}, 400, "invalid_request"),
        (RESUME, {"session_id": "s", "input": [True]}, 400, "invalid_request"),
        (RESUME, {"session_id": "s", "answer": {"confirm": True}}, 400, "invalid_request"),
        (RESUME, {"session_id": "s", "answer": "yes", "input": {"confirm": True}}, 400, "invalid_request"),
        (RESUME, {"session_id": "s", "input": {}}, 400, "invalid_request"),
        (RESUME, {"session_id": "s", "input": {"confirm": "perhaps"}}, 400, "invalid_request"),
        (RESUME, {"session_id": "s", "input": {"confirm": True}, "agent_id": "nobody"}, 404, "unknown_agent"),
        (RESUME, {"session_id": "s", "input": {"confirm": True}, "agent_id": "b"}, 409, "nothing_to_resume"),
        (RESUME, {"session_id": "nowhere", "input": {"confirm": True}}, 404, "unknown_session"),
    ],
)
async def test_what_cannot_be_served_is_refused_and_changes_nothing(
    path: str, body: Any, status: int, code: str
) -> None:
    agent, other = Agent(interrupt(responseSchema=CONFIRM)), Agent()
    served = app({"a": agent, "b": other}, max_body=2000)
    if isinstance(body, bytes) and len(body) > 2000:
        served = app({"a": agent, "b": other}, max_body=20_000)
    await say(served, "ask", agent_id="a")
    assert refused(await post(served, path, body)) == (status, code)
    assert (len(agent.inputs), other.inputs) == (1, [])
    # The session waits as before.
    assert said(await answer(served, input={"confirm": True})) == 'resumed with [{"confirm": true}]'


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ({"content-encoding": "gzip"}, 415, "unsupported_encoding"),
    ],
)
async def test_bodies_of_other_kinds_are_refused(headers: dict[str, str], status: int, code: str) -> None:
    for path in (STREAM, RESUME):
        assert refused(await post(app(Agent()), path, CHAT, headers)) == (status, code)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", STREAM, "POST, GET"),
        ("HEAD", STREAM, "POST, GET"),
        ("OPTIONS", STREAM, "POST, GET"),
        ("GET", RESUME, "POST"),
    ],
)
async def test_other_methods_are_refused(method: str, path: str, allowed: str) -> None:
    response = await run_asgi(app(Agent()), method=method, path=path)
    assert (response.status, response.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"session": ""},
        {"session": "s" * 2000},
        {"message": "hello"},
        {"session_id": ""},
        {"session": "a\0b"},
        {"session": "s", "agent_id": "a" * 2000},
    ],
)
async def test_a_get_needs_a_session(query: Any) -> None:
    assert refused(await get(app(Agent()), **query)) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("query", "session", "message"),
    [
        ("session=%E4%B8%96%E7%95%8C", "世界", "nothing"),
        ("session=%F0%9F%98%80&message=%0A%00", "😀", "\n\0"),
        ("session=a&session=b&message=x&message=y", "b", "y"),  # the last, wherever it is asked for
        ("session=a;message=b", "a;message=b", "nothing"),
        ("session=%ff%&%&&=&messages=[]", "\ufffd%", "nothing"),
        ("session=a&message=x&input=1&answer=2&a2ui=no", "a", "x"),
    ],
)
async def test_queries_of_all_kinds(query: str, session: str, message: str) -> None:
    agent = Agent()
    response = await run_asgi(app(agent), method="GET", path=f"{STREAM}?{query}")
    assert flat(response)[1]["content"] == message
    assert agent.last.thread_id == session
    assert not {"session", "message", "input", "answer", "a2ui"} & set(agent.last.forwarded_props or ())


async def test_a_refusal_of_the_chain_is_an_answer() -> None:
    agent = Agent()
    served = app(agent, TrustMiddleware(on_violation="reject", roles=["assistant"], on_diagnostic=lambda _: None))
    assert refused(await say(served, "hello")) == (400, "refused_input")
    assert agent.inputs == []


async def test_a_body_in_parts_and_one_that_is_never_complete() -> None:
    agent = Agent()
    response = await post(app(agent), STREAM, [b'{"session_id":"s",', b'"message":"hello"}'], ENVELOPED)
    assert said(response) == "you said hello"
    response = await run_asgi(app(agent), path=STREAM, body=[b'{"session_id":'], body_complete=False)
    assert (response.status, response.exception, len(agent.inputs)) == (None, None, 1)


# Which agent.


async def test_agents_by_their_id() -> None:
    agents = {"a": Agent(), "b": Agent()}
    served = app(agents)
    await say(served, "hello", agent_id="b")
    assert (len(agents["a"].inputs), len(agents["b"].inputs)) == (0, 1)
    await say(served, "again")  # the session knows whom it talks to
    assert len(agents["b"].inputs) == 2
    assert refused(await say(served, "hello", session="other")) == (400, "invalid_request")
    assert refused(await say(served, "hello", agent_id="c")) == (404, "unknown_agent")


async def test_a_single_agent_need_not_be_named() -> None:
    assert said(await say(app({"a": Agent()}), "hello")) == "you said hello"
    assert said(await say(app(Agent()), "hello", agent_id="whatever")) == "you said hello"
    assert said(await say(app({"a": Agent()}), "hello", agent_id="")) == "you said hello"  # nobody chose one


async def test_resolvers() -> None:
    agent = Agent()

    def named(agent_id: str | None) -> Any:
        return agent if agent_id == "a" else None

    async def fetched(agent_id: str | None) -> Any:
        return named(agent_id)

    for resolver in (named, fetched):
        served = app(resolver)
        assert said(await say(served, "hello", agent_id="a")) == "you said hello"
        assert refused(await say(served, "hello", agent_id="b")) == (404, "unknown_agent")
        assert refused(await say(served, "hello", session="new")) == (404, "unknown_agent")


async def test_the_agent_is_named_in_progress_and_when_control_changes() -> None:
    async def stepping(input: Any) -> Any:
        events = run(
            input,
            {"type": "STEP_STARTED", "stepName": "search"},
            {"type": "STEP_FINISHED", "stepName": "search"},
            {"type": "SUBAGENT_STARTED", "subagentRunId": "1", "name": "writer"},
            {"type": "SUBAGENT_FINISHED", "subagentRunId": "1"},
        )
        for event in events:
            yield event

    named: dict[str, Any] = {"agent_id": "research-agent"}
    for served, fields in ((app(stepping), named), (app({"research-agent": stepping}), {})):
        frames = enveloped(await say(served, "hello", **fields))
        assert frames[0] == ("progress", {"agent_name": "research-agent", "step": "search", "total": 0, "current": 1})
        switches = [(data["from_agent"], data["to_agent"]) for kind, data in frames if kind == "agent_switch"]
        assert switches == [("research-agent", "writer"), ("writer", "research-agent")]


@pytest.mark.parametrize(
    ("source", "stages", "options"),
    [
        ({}, [], {}),
        ({"a": "no source"}, [], {}),
        ({1: Agent()}, [], {}),
        ("no source", [], {}),
        (Agent(), ["no stage"], {}),
        ({"a": Agent()}, ["no stage"], {}),
        (Agent(), [], {"prefix": "api"}),
        (Agent(), [], {"default_dialect": "superagent-2"}),
        (Agent(), [], {"tool_call_updates": 1}),
        (Agent(), [], {"history": "yes"}),
        (Agent(), [], {"store": object()}),
        (Agent(), [], {"store": MemorySessions}),
        (Agent(), [], {"key": "thread"}),
        (Agent(), [], {"max_messages": 0}),
        (Agent(), [], {"max_session": -1}),
        (Agent(), [], {"patience": -1}),
        (Agent(), [], {"heartbeat": -1}),
        (Agent(), [], {"max_body": 0}),
        (Agent(), [], {"on_disconnect": "stay"}),
    ],
)
def test_options_are_checked_at_construction(source: Any, stages: list[Any], options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        routes(source, *stages, **options)


async def test_the_prefix_is_configurable() -> None:
    response = await post(app(Agent(), prefix="/old/"), "/old/stream", CHAT, ENVELOPED)
    assert said(response) == "you said hello"
