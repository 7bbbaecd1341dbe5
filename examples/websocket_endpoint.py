"""A pipeline behind a WebSocket: one run a connection, one JSON event a text frame.

    pip install agui-pipeline 'uvicorn[standard]'
    uvicorn examples.websocket_endpoint:app --ws-max-size 1048576

In a browser, on a page from one of `ORIGINS`::

    const socket = new WebSocket("ws://localhost:8000/agent");
    socket.onopen = () => socket.send(JSON.stringify({ threadId: "t", runId: "r", messages: [] }));
    socket.onmessage = ({ data }) => console.log(JSON.parse(data));

AG-UI names no WebSocket transport; this one does what the HTTP transport does, with these rules:

- The first frame is the RunAgentInput: text, at most `MAX_INPUT` bytes, within `PATIENCE` seconds. What it lacks is
  filled in, as over HTTP. Later frames are ignored.
- ``Origin`` is checked before the handshake is answered (403): browsers ask no server before they open a WebSocket to
  another site, and send its cookies along. A client that sends none is no browser, and passes.
- A client that leaves ends the run, at once; a slow one slows the agent.
- The stream ends with RUN_FINISHED or RUN_ERROR, and then the connection does. What a chain raises is in the log, not
  in the stream.

| code | means |
| --- | --- |
| 1000 | the run finished, or was interrupted |
| 1003 | the first frame was binary |
| 1007 | it was no RunAgentInput; the reason has the path |
| 1008 | it did not come in time |
| 1009 | it was too large |
| 1011 | the run ended in RUN_ERROR |

The server holds a frame whole before anyone can look at its size: hence ``--ws-max-size``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

import anyio
from ag_ui.core import RunAgentInput
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agui_pipeline.middleware import EventThrottleMiddleware, GuardMiddleware, Pipeline, Stage
from agui_pipeline.translators import DecodeError, LimitError, encode_event, parse_input
from examples.async_generator import agent

ORIGINS: Final = frozenset({"http://localhost:3000"})
MAX_INPUT: Final = 1024 * 1024
"""Bytes of the first frame."""
PATIENCE: Final = 10.0
"""Seconds until the first frame."""
_REASON: Final = 123
"""Bytes of a close frame's reason, by RFC 6455."""

_log = logging.getLogger(__name__)


class Refused(Exception):  # noqa: N818 - a refusal is no error of ours
    """The first frame is not what it must be."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason.encode()[:_REASON].decode(errors="ignore")


def websocket_endpoint(
    source: Any,
    *middleware: Stage,
    origins: Collection[str] = ORIGINS,
    max_input: int = MAX_INPUT,
    patience: float = PATIENCE,
) -> Callable[[WebSocket], Awaitable[None]]:
    """Return an endpoint for a `WebSocketRoute`.

    Args:
        source: Whatever `Pipeline` takes.
        *middleware: The chain. A guard is put behind it, so that every run is ended.
        origins: Pages that may connect, as browsers write them: scheme, host, and port unless it is the usual one.
        max_input: Bytes of the first frame.
        patience: Seconds until the first frame.
    """
    pipeline = Pipeline(source, *middleware, GuardMiddleware())

    async def endpoint(socket: WebSocket) -> None:
        origin = socket.headers.get("origin")
        if origin is not None and origin not in origins:
            await socket.close()  # before `accept`: the server answers 403
            return
        await socket.accept()
        try:
            input = await _first_frame(socket, max_input, patience)
            _admit(pipeline, input)
        except Refused as refused:
            await socket.close(refused.code, refused.reason)
            return
        except WebSocketDisconnect:
            return
        async with anyio.create_task_group() as group:
            group.start_soon(_until_it_leaves, socket, group.cancel_scope)
            code = await _send(socket, pipeline, input)
            if code is not None:
                await socket.close(code)
            group.cancel_scope.cancel()

    return endpoint


async def _first_frame(socket: WebSocket, max_input: int, patience: float) -> RunAgentInput:
    message: Any = None
    with anyio.move_on_after(patience):
        message = await socket.receive()
    if message is None:
        raise Refused(1008, "no RunAgentInput came in time")
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    text = message.get("text")
    if text is None:
        raise Refused(1003, "the first frame must be text: a RunAgentInput in JSON")
    if len(text) > max_input or len(text.encode(errors="surrogatepass")) > max_input:
        raise Refused(1009, f"a RunAgentInput may have {max_input} bytes")
    try:
        return parse_input(text)
    except DecodeError as exc:
        raise Refused(1007, str(exc)) from exc


def _admit(pipeline: Pipeline, input: RunAgentInput) -> None:
    """Ask the chain, a `TrustMiddleware` say, whether it takes the input at all."""
    try:
        pipeline.admit(input)
    except LimitError as exc:
        raise Refused(1009, str(exc)) from exc
    except DecodeError as exc:
        raise Refused(1007, str(exc)) from exc


async def _send(socket: WebSocket, pipeline: Pipeline, input: RunAgentInput) -> int | None:
    """Run the pipeline and return the code to close with; None where nobody is there any more."""
    code = 1011
    try:
        async with pipeline.open(input) as events:
            async for event in events:
                try:
                    await socket.send_text(encode_event(event).decode())
                except WebSocketDisconnect:
                    return None
                if event.type == "RUN_FINISHED":
                    code = 1000
    except Exception:  # noqa: BLE001 - of anybody's code; the guard made a RUN_ERROR of all that came in time
        _log.exception("a run failed after its end")
    return code


async def _until_it_leaves(socket: WebSocket, scope: anyio.CancelScope) -> None:
    """End the run when the client leaves. Without anyone who reads, the server would not say so."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    scope.cancel()


app = Starlette(routes=[WebSocketRoute("/agent", websocket_endpoint(agent, EventThrottleMiddleware()))])
