"""The WebSocket example: what it refuses and how, and every way in which a run can end."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from starlette.websockets import WebSocket

from agui_pipeline.adapters.testing import ScriptedAgent, assert_valid_stream, pause
from agui_pipeline.middleware import EventThrottleMiddleware, TrustMiddleware
from agui_pipeline.translators import decode_event
from examples.websocket_endpoint import ORIGINS, app, websocket_endpoint

pytestmark = pytest.mark.anyio

INPUT = json.dumps({"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": "Grüße"}]})
STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
TEXT = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "Grüße"}


class OopsError(Exception):
    pass


class Socket:
    """A server with one WebSocket: its client sends `frames`, and leaves when it has got `leaves` of them back."""

    def __init__(
        self, frames: Sequence[Any] = (INPUT,), *, leaves: float = math.inf, origin: str | None = None
    ) -> None:
        self.scope = {
            "type": "websocket",
            "path": "/agent",
            "headers": [] if origin is None else [(b"origin", origin.encode())],
        }
        self._incoming = [{"type": "websocket.connect"}, *({"type": "websocket.receive", **frame(f)} for f in frames)]
        self._leaves = leaves
        self._left = anyio.Event()
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> Any:
        if self._incoming:
            return self._incoming.pop(0)
        if self._leaves == 0:
            self._left.set()
        await self._left.wait()
        return {"type": "websocket.disconnect", "code": 1001}

    async def send(self, message: Any) -> None:
        if self._left.is_set():
            raise OSError
        self.sent.append(message)
        if message["type"] == "websocket.close" or len(self.events) >= self._leaves:
            self._left.set()

    async def meet(self, source: Any, *middleware: Any, **options: Any) -> Socket:
        with anyio.fail_after(5):
            endpoint = websocket_endpoint(source, *middleware, **options)
            await endpoint(WebSocket(self.scope, self.receive, self.send))
        return self

    @property
    def events(self) -> list[Any]:
        return [decode_event(message["text"]) for message in self.sent if message["type"] == "websocket.send"]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def close(self) -> Any:
        """The code and the reason, where it was closed."""
        last = self.sent[-1]
        return (last["code"], last.get("reason") or "") if last["type"] == "websocket.close" else None


def frame(content: Any) -> dict[str, Any]:
    return {"bytes": content} if isinstance(content, bytes) else {"text": content}


@pytest.mark.parametrize("chain", [(), (EventThrottleMiddleware(),)], ids=["bare", "timed"])
async def test_a_run_is_sent_an_event_a_frame(chain: Any) -> None:
    agent = ScriptedAgent([STARTED, TEXT, pause(0), FINISHED])
    socket = await Socket().meet(agent, *chain)
    assert_valid_stream(socket.events)
    assert socket.types == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]
    assert socket.close == (1000, "")
    assert agent.inputs[0].messages[0].content == "Grüße"
    assert agent.running == 0


async def test_the_app_of_the_example_answers() -> None:
    socket = Socket()
    await app({**socket.scope, "subprotocols": []}, socket.receive, socket.send)
    assert_valid_stream(socket.events)
    assert socket.types[-1] == "RUN_FINISHED"


REFUSED: dict[str, tuple[list[Any], dict[str, Any], int, str]] = {
    "binary": ([b"{}"], {}, 1003, "must be text"),
    "no JSON": (["hello"], {}, 1007, ""),
    "no input": (['{"messages": [{"role": "wizard"}]}'], {}, 1007, "role"),
    "a long reason": (['{"messages": [{"role": "%s"}]}' % ("ü" * 500)], {}, 1007, ""),
    "too large": (['"' + "ü" * 50 + '"'], {"max_input": 60}, 1009, "60 bytes"),
    "too late": ([], {"patience": 0.01}, 1008, "in time"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_input_is_refused(case: str) -> None:
    frames, options, code, reason = REFUSED[case]
    agent = ScriptedAgent([STARTED, FINISHED])
    socket = await Socket(frames).meet(agent, **options)
    assert [message["type"] for message in socket.sent] == ["websocket.accept", "websocket.close"]
    assert socket.close[0] == code
    assert reason in socket.close[1]
    assert len(socket.close[1].encode()) <= 123
    assert agent.started == 0


async def test_what_the_chain_would_not_take_is_refused() -> None:
    text = json.dumps({"messages": [{"role": "user", "content": "x"}] * 5000})
    agent = ScriptedAgent([STARTED, FINISHED])
    socket = await Socket([text]).meet(agent, TrustMiddleware(on_violation="reject"))
    assert socket.close[0] in (1007, 1009)
    assert agent.started == 0


@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        (None, True),
        (next(iter(ORIGINS)), True),
        ("https://evil.example", False),
        ("null", False),
        ("", False),
        (next(iter(ORIGINS)) + ".evil.example", False),
    ],
)
async def test_a_page_from_elsewhere_is_turned_away_before_the_handshake(origin: str | None, welcome: bool) -> None:
    agent = ScriptedAgent([STARTED, FINISHED])
    socket = await Socket(origin=origin).meet(agent)
    assert socket.sent[0]["type"] == ("websocket.accept" if welcome else "websocket.close")
    assert agent.started == welcome


ENDINGS: dict[str, tuple[list[Any], list[str], int]] = {
    "it raises": ([STARTED, TEXT, OopsError("secret")], ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_ERROR"], 1011),
    "it raises at once": ([OopsError("secret")], ["RUN_STARTED", "RUN_ERROR"], 1011),
    "it stops": ([STARTED], ["RUN_STARTED", "RUN_ERROR"], 1011),
    "it fails": ([STARTED, {"type": "RUN_ERROR", "message": "no"}], ["RUN_STARTED", "RUN_ERROR"], 1011),
    "it raises afterwards": ([STARTED, FINISHED, OopsError("secret")], ["RUN_STARTED", "RUN_FINISHED"], 1000),
    "it is interrupted": (
        [STARTED, {**FINISHED, "outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "ask"}]}}],
        ["RUN_STARTED", "RUN_FINISHED"],
        1000,
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_every_run_is_ended_and_then_the_connection(ending: str) -> None:
    script, types, code = ENDINGS[ending]
    agent = ScriptedAgent(script)
    socket = await Socket().meet(agent)
    assert (socket.types, socket.close) == (types, (code, ""))
    assert "secret" not in str(socket.sent)
    assert agent.running == 0


@pytest.mark.parametrize("leaves", range(3))
@pytest.mark.parametrize("chain", [(), (EventThrottleMiddleware(),)], ids=["bare", "timed"])
async def test_a_client_that_leaves_ends_the_run(leaves: int, chain: Any) -> None:
    agent = ScriptedAgent([STARTED, TEXT, pause(math.inf)])
    socket = await Socket(leaves=leaves).meet(agent, *chain)
    assert agent.running == 0
    assert socket.close is None


async def test_a_client_that_leaves_instead_of_asking_starts_nothing() -> None:
    agent = ScriptedAgent([STARTED])
    socket = await Socket([], leaves=0).meet(agent)
    assert agent.started == 0
    assert [message["type"] for message in socket.sent] == ["websocket.accept"]


async def test_later_frames_are_ignored() -> None:
    socket = await Socket([INPUT, "more", b"more"]).meet(ScriptedAgent([STARTED, pause(0.01), FINISHED]))
    assert socket.types == ["RUN_STARTED", "RUN_FINISHED"]
