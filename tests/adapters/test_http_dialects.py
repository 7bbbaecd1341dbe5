"""Old agents as remote sources: what the old API is asked for, and a round trip through our own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agui_pipeline.adapters._http_dialects import exchange_for
from agui_pipeline.adapters.http import HttpAgent
from agui_pipeline.adapters.superagent import old_agent
from agui_pipeline.adapters.testing import assert_valid_stream, collect
from agui_pipeline.translators import ConfigurationError, Diagnostic, run_input
from tests.adapters.superagent import CONFIRM, RESUME, STREAM, Agent, app, interrupt

pytestmark = pytest.mark.anyio

DIALECTS = ("superagent", "superagent-flat", "superagent-compatible")
URL = "http://agents.example/api/v1/chat/stream"
CONTEXT = [{"description": "d", "value": "v"}]


def asked(
    dialect: str, url: str = URL, *, agent_id: str | None = None, **fields: Any
) -> tuple[str, dict[str, str], Any, list[str]]:
    """What a run asks for: address, headers, body, and the parts of the input that found no place."""
    seen: list[Diagnostic] = []
    call = exchange_for(dialect, agent_id=agent_id)(run_input(**{"thread_id": "t", **fields}), seen.append).call(url)
    assert call.method == "POST"
    assert {diagnostic.code for diagnostic in seen} <= {"http.old-input"}
    lost = [name for diagnostic in seen for name in diagnostic.detail["fields"]]
    return call.url, dict(call.headers), json.loads(call.body), lost


@pytest.mark.parametrize(
    ("dialect", "headers"),
    [
        ("superagent", {"x-a2ui": "true"}),
        ("superagent-flat", {"x-a2ui": "flat"}),
        ("superagent-compatible", {}),
    ],
)
def test_the_last_user_message_is_sent_with_the_opt_in(dialect: str, headers: dict[str, str]) -> None:
    messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}]
    found = asked(dialect, text="two", messages=messages, forwarded_props={"agent_id": "a", "k": 1, "message": "no"})
    assert found == (URL, headers, {"agent_id": "a", "k": 1, "session_id": "t", "message": "two"}, [])


def test_the_agents_name_may_be_configured() -> None:
    assert asked("superagent", text="hi", agent_id="b", forwarded_props={"agent_id": "a"})[2]["agent_id"] == "b"
    assert "agent_id" not in asked("superagent", text="hi", forwarded_props="none")[2]


@pytest.mark.parametrize(
    ("fields", "message", "lost"),
    [
        ({}, "", []),
        ({"messages": [{"role": "assistant", "content": "hello?"}]}, "", []),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
            "a\nb",
            [],
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "see"},
                            {"type": "image", "source": {"type": "url", "value": "http://x.example/y.png"}},
                        ],
                    }
                ]
            },
            "see",
            ["messages"],
        ),
        (
            {
                "text": "hi",
                "tools": [{"name": "f", "description": "", "parameters": {}}],
                "state": {"n": 1},
                "context": CONTEXT,
            },
            "hi",
            ["tools", "context", "state"],
        ),
    ],
)
def test_what_has_no_place_is_a_diagnostic(fields: Any, message: str, lost: list[str]) -> None:
    found = asked("superagent", **fields)
    assert (found[2]["message"], found[3]) == (message, lost)


def entry(payload: Any = None, status: str = "resolved", id: str = "i") -> dict[str, Any]:
    return {"interruptId": id, "status": status, **({} if payload is None else {"payload": payload})}


@pytest.mark.parametrize(
    ("dialect", "payload", "body"),
    [
        ("superagent", {"confirm": True}, {"input": {"confirm": True}}),
        ("superagent", "Berlin", {"input": {"answer": "Berlin"}}),
        ("superagent-compatible", {"a": 1, "b": 2}, {"input": {"a": 1, "b": 2}}),
        ("superagent-flat", "Berlin", {"answer": "Berlin"}),
        ("superagent-flat", {"answer": "Berlin"}, {"answer": "Berlin"}),
        ("superagent-flat", {"confirm": True}, {"answer": True}),
        ("superagent-flat", {"a": 1, "b": 2}, {"answer": '{"a":1,"b":2}'}),
        ("superagent-flat", None, {"answer": "null"}),
    ],
)
def test_an_answer_goes_to_the_resume(dialect: str, payload: Any, body: dict[str, Any]) -> None:
    url, _, sent, lost = asked(dialect, resume=[entry(payload)], forwarded_props={"agent_id": "a"})
    assert url == "http://agents.example/api/v1/chat/resume"
    assert (sent, lost) == ({"agent_id": "a", "session_id": "t", **body}, [])


@pytest.mark.parametrize(
    ("url", "resume"),
    [
        ("https://a.example/stream?key=1%2F2&x=y", "https://a.example/resume?key=1%2F2&x=y"),
        ("https://a.example/a%2Fb/stream", "https://a.example/a%2Fb/resume"),
        ("https://a.example", "https://a.example/resume"),
        ("/chat/stream", "/chat/resume"),
    ],
)
def test_the_resume_is_beside_the_stream(url: str, resume: str) -> None:
    assert asked("superagent", url, resume=[entry({"confirm": True})])[0] == resume


def test_of_several_answers_the_first_is_sent() -> None:
    several = [entry({"a": 1}, id="i1"), entry({"b": 2}, id="i2")]
    assert asked("superagent", resume=several)[2:] == ({"session_id": "t", "input": {"a": 1}}, ["resume"])


def test_giving_up_is_a_new_message_or_a_no() -> None:
    given_up: dict[str, Any] = {"resume": [entry(status="cancelled")]}
    url, _, body, lost = asked("superagent", text="never mind", **given_up)
    assert (url, body, lost) == (URL, {"session_id": "t", "message": "never mind"}, [])
    before = [{"role": "user", "content": "delete it"}, {"role": "assistant", "content": "Sure?"}]
    for dialect, no in (("superagent", {"input": {"confirm": False}}), ("superagent-flat", {"answer": "no"})):
        url, _, body, lost = asked(dialect, messages=before, **given_up)
        assert (url.endswith("/resume"), body, lost) == (True, {"session_id": "t", **no}, ["resume"])


def test_nothing_is_said_twice() -> None:
    said = [{"role": "user", "content": "delete it"}, {"role": "assistant", "content": "Done."}]
    assert asked("superagent", messages=said)[2]["message"] == ""
    assert asked("superagent", messages=[*said, {"role": "user", "content": "and now?"}])[2]["message"] == "and now?"
    system = {"role": "system", "content": "Be brief."}
    assert asked("superagent", messages=[*said[:1], system])[2]["message"] == "delete it"


@pytest.mark.parametrize(
    "make",
    [
        lambda: HttpAgent(URL, dialect="superagent-2"),
        lambda: old_agent("flat"),
        lambda: old_agent("superagent", agent_id=7),  # type: ignore[arg-type]
    ],
)
def test_options_are_checked(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError):
        make()


class Through(httpx.AsyncBaseTransport):
    """The old API in process: a streaming answer need not stream here."""

    def __init__(self, served: Any) -> None:
        self._inner = httpx.ASGITransport(app=served)
        self.paths: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        return await self._inner.handle_async_request(request)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_there_and_back_again(dialect: str) -> None:
    agent = Agent(interrupt(responseSchema=CONFIRM))
    transport = Through(app({"a": agent, "b": Agent()}))
    async with httpx.AsyncClient(transport=transport) as client:
        remote = HttpAgent(URL, client=client, dialect=old_agent(dialect, agent_id="a"))
        first = await collect(remote, run_input("hello", thread_id="t"))
        assert_valid_stream(first.events)
        assert (first.text, first.outcome) == ("you said hello", "success")
        asked_back = await collect(remote, run_input("ask", thread_id="t", messages=first.messages))
        assert_valid_stream(asked_back.events)
        assert (asked_back.text, asked_back.outcome) == ("hm", "interrupt")
        (open_,) = asked_back.interrupts
        assert open_.message == "Go on?"
        payload = {"confirm": True} if dialect != "superagent-flat" else "yes"
        resume = [{"interruptId": open_.id, "status": "resolved", "payload": payload}]
        last = await collect(remote, run_input(thread_id="t", resume=resume))
        assert_valid_stream(last.events)
        assert (last.text, last.outcome) == ('resumed with [{"confirm": true}]', "success")
    assert transport.paths == [STREAM, STREAM, RESUME]
    # The session of the old API knew what had been said.
    assert [message.content for message in agent.last.messages] == ["hello", "you said hello", "ask", "hm"]
