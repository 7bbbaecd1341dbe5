"""The demo: one agent, and what agui_pipeline makes of it, side by side in one page.

    python examples/calculator/server.py [--port 8000]

Four endpoints, one and the same endpoint function behind each; nothing in it changes:

    /agent           bare: the interface scrolls by as JSON text
    /a2ui            its text becomes RAW events, as tRPC-Agent-Go sends them
    /a2ui-activity   it becomes ACTIVITY_SNAPSHOT events: the page shows a form that computes
    /a2ui-custom     the agent speaks A2UI v0.9.1, its text becomes CUSTOM events

Knows Starlette, uvicorn and agui-inspector (the page). Does not know what the agent says.
"""

from __future__ import annotations

import argparse
import errno
import json
import logging
import socket
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":  # run as a file: let `examples` be found from any working directory
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import uvicorn
from ag_ui.core import RunAgentInput, UserMessage
from ag_ui.encoder import EventEncoder
from agui_inspector import Agent as InspectorAgent  # type: ignore[import-untyped]
from agui_inspector import mount_inspector
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from agui_pipeline.adapters.starlette import AGUIMiddleware
from agui_pipeline.middleware import A2UIMiddleware, EventThrottleMiddleware, GuardMiddleware
from examples.calculator.agent import PAUSE, Agent, calculator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import FrameType

    from starlette.requests import Request

__all__ = ["build_app", "main"]

ASK = "Show me a calculator"
PATHS = {
    "/agent": "Bare: JSON text",
    "/a2ui": "RAW events",
    "/a2ui-activity": "ACTIVITY: a form",
    "/a2ui-custom": "CUSTOM, A2UI v0.9.1",
}
PORT_TRIES = 100


# What the user has: an endpoint that streams an agent's events. It has never heard of agui_pipeline.


def agent_route(agent: Agent) -> Callable[[Request], Awaitable[Response]]:
    """Make an ordinary Starlette endpoint that runs ``agent`` and streams its events."""

    async def endpoint(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return JSONResponse({"error": "the body is not a JSON object"}, status_code=400)
        run_input, encoder = read_input(body), EventEncoder()

        async def stream() -> AsyncIterator[str]:
            async for event in agent(run_input):
                yield encoder.encode(event)

        return StreamingResponse(stream(), media_type=encoder.get_content_type())

    return endpoint


def read_input(body: Mapping[str, Any]) -> RunAgentInput:
    """Read a request as leniently as A2UI clients write it: no message ids, no tools, context or state."""
    messages = body.get("messages")
    return RunAgentInput(
        thread_id=str(body.get("threadId") or uuid.uuid4()),
        run_id=str(body.get("runId") or uuid.uuid4()),
        messages=[
            UserMessage(
                id=str(message.get("id") or uuid.uuid4()), role="user", content=plain_text(message.get("content"))
            )
            for message in (messages if isinstance(messages, list) else ())
            if isinstance(message, dict) and message.get("role") == "user"
        ],
        tools=[],
        context=[],
        state={},
        forwarded_props=body.get("forwardedProps") or {},
    )


def plain_text(content: Any) -> str:
    """Return a message's content as text: it is text already, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


# What agui_pipeline adds: a few lines around that application.


def build_app(*, pause: float = PAUSE) -> Starlette:
    """Build the whole demo.

    Args:
        pause: Seconds between two deltas of the agent; 0 for tests.
    """
    endpoint = agent_route(calculator("v0.8", pause=pause))
    endpoint_v09 = agent_route(calculator("v0.9.1", pause=pause))
    app = Starlette(
        routes=[
            Route("/", lambda _: RedirectResponse("/agui-inspector/")),
            Route("/agent", endpoint, methods=["POST"]),
            Route("/a2ui", endpoint, methods=["POST"]),
            Route("/a2ui-activity", endpoint, methods=["POST"]),
            Route("/a2ui-custom", endpoint_v09, methods=["POST"]),
        ]
    )

    # A chain is in the order in which events meet it: text becomes A2UI events first, what is left is paced after.
    for path, to_events in (
        ("/a2ui", A2UIMiddleware()),
        ("/a2ui-activity", A2UIMiddleware(carrier="activity")),
        ("/a2ui-custom", A2UIMiddleware(carrier="custom")),
    ):
        chain = [to_events, EventThrottleMiddleware(), GuardMiddleware()]
        app.add_middleware(AGUIMiddleware, middleware=chain, paths=[path])

    # Added last is outermost in Starlette: pages of this machine, on whatever port, may call every endpoint.
    app.add_middleware(
        CORSMiddleware,
        allow_origin_regex=r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?",
        allow_methods=["POST"],
        allow_headers=["*"],
    )
    mount_inspector(
        app,
        enabled=True,
        agents=[
            InspectorAgent(id=path.strip("/"), url=path, name=name, preset={"quickMessages": [ASK]})
            for path, name in PATHS.items()
        ],
    )
    return app


# The command.


def listen(host: str, port: int) -> socket.socket:
    """Listen on ``port`` or the next free one after it.

    Raises:
        OSError: No port in reach is free, or the host is not of this machine.
    """
    for candidate in range(port, min(port + PORT_TRIES, 65536)):
        try:
            return socket.create_server((host, candidate))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    raise OSError(errno.EADDRINUSE, f"no free port from {port} to {min(port + PORT_TRIES, 65536) - 1}")


class QuietServer(uvicorn.Server):
    """A server that is told to stop while agents stream, and does not call it an error."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal. What is logged from now on is tracebacks of the streams that end with the server."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        super().handle_exit(sig, frame)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the demo until Ctrl-C."""
    parser = argparse.ArgumentParser(description="The calculator demo of agui-pipeline.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to try first (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=PAUSE, help="seconds between two deltas (default: %(default)s)")
    args = parser.parse_args(argv)

    logging.getLogger("agui_inspector").setLevel(logging.ERROR)  # its warning that it is mounted: it is meant to be
    try:
        listener = listen(args.host, args.port)
    except (OSError, OverflowError) as error:
        print(f"Cannot listen on {args.host}, port {args.port}: {error}", file=sys.stderr)
        return 1
    port = listener.getsockname()[1]
    if port != args.port and args.port:
        print(f"Port {args.port} is taken; using {port}.")
    base = f"http://{args.host}:{port}"
    body = {"threadId": "t1", "runId": "r1", "messages": [{"role": "user", "content": ASK}]}
    print(
        f"Open {base}/ in a browser, choose an agent and ask it for a calculator.\n"
        f"Or in a terminal:\n"
        f"  curl -N {base}/a2ui -H 'Content-Type: application/json' -d '{json.dumps(body)}'\n"
        f"Ctrl-C stops it.",
        flush=True,
    )
    config = uvicorn.Config(build_app(pause=args.pause), log_level="warning", ws="none", timeout_graceful_shutdown=1)
    try:
        QuietServer(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn has shut down and hands the signal on; a traceback would look like a fault
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
