"""A real model behind the whole A2UI chain: any endpoint that speaks OpenAI's chat completions.

    pip install 'agui-pipeline[a2ui]' uvicorn
    OPENAI_API_KEY=… python examples/openai_agent.py [--port 8000]

    curl -N localhost:8000/agent -H 'content-type: application/json' \
         -d '{"threadId": "t", "messages": [{"role": "user", "content": "A form to book a table"}]}'

The model is told A2UI's rules and components, what it writes becomes surfaces, and what the user does with them comes
back in the next run. `OpenAIAgent` is how an agent of one's own is written: an object with ``run(input)``, an async
generator of events, that opens what it needs in an ``async with`` and leaves the rest to the chain. What the protocol
means is apart, in ``chat_completions/``, and knows nothing of HTTP.

Surfaces and tool calls are remembered in this process, by the thread id, which clients choose: for several users put
the user into the `key` of each stage in `build_app`, for several processes use stores of your own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":  # run as a file: let `examples` be found from any working directory
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anyio
import httpx
import uvicorn
from ag_ui.core import AssistantMessage, RunAgentInput
from starlette.applications import Starlette

from agui_pipeline.adapters.starlette import agent_app
from agui_pipeline.middleware import (
    A2UIActionMiddleware,
    A2UIMiddleware,
    A2UIPlannerMiddleware,
    ClientCapabilities,
    EventThrottleMiddleware,
    GuardMiddleware,
    IssuedCalls,
    Middleware,
    Source,
    SurfaceRegistry,
    TrustMiddleware,
)
from agui_pipeline.translators import AnyEvent, ConfigurationError, LimitError, SSEDecoder
from examples.chat_completions.answer import DONE, Answer, Event
from examples.chat_completions.errors import ModelError, refused
from examples.chat_completions.request import chat_request

BASE_URL: Final = "https://api.openai.com/v1"
MODEL: Final = "gpt-4.1-mini"
HELP: Final = f"""\
OPENAI_API_KEY is not set. This example asks a model, and takes from the environment:
  OPENAI_API_KEY    the key; any word for a server of your own that wants none
  OPENAI_BASE_URL   the endpoint (default: {BASE_URL})
  OPENAI_MODEL      the model (default: {MODEL})"""

IDLE: Final = 300.0
"""Seconds without a byte after which a model is given up: one that thinks before it speaks takes minutes."""
LINGER: Final = 1.0
"""Seconds that the connection is given to end behind the last frame."""
_EXCERPT: Final = 2000
"""Bytes of a refusal that are read, for the log."""

_log = logging.getLogger(__name__)


# The agent.


class OpenAIAgent:
    """A source: each run is one request, its answer the run's events.

    Args:
        client: Has the endpoint's address and the key; see `open_client`. The agent does not close it.
        model: The model's name.
    """

    def __init__(self, client: httpx.AsyncClient, model: str) -> None:
        self._client = client
        self._model = model

    async def run(self, input: RunAgentInput) -> AsyncIterator[Event]:
        """Answer. Every run ends in RUN_FINISHED or RUN_ERROR, behind all that the model has said."""
        yield {"type": "RUN_STARTED", "threadId": input.thread_id, "runId": input.run_id}
        answer = Answer(input)
        error: ModelError | None = None
        try:
            # A generator is closed where its reader leaves it only if somebody says so.
            async with aclosing(self._ask(chat_request(input, self._model))) as frames:
                async for data in frames:
                    for event in answer.feed(data):
                        yield event
        except ModelError as exc:
            error = exc
            _log.warning("%s %s", exc, self._without_key(exc.detail[:_EXCERPT]))
        for event in answer.end(error):
            yield event

    async def _ask(self, request: Mapping[str, Any]) -> AsyncGenerator[str, None]:
        """Send a request; give the data of each frame of the answer. Leaving closes the connection."""
        body = json.dumps(request)  # ASCII, so that half a surrogate in a user's message does no harm
        try:
            async with self._client.stream("POST", "chat/completions", content=body) as response:
                if response.status_code != httpx.codes.OK:
                    raise refused(
                        response.status_code, await _excerpt(response), response.headers.get("retry-after", "")
                    )
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    yield (await response.aread()).decode(errors="replace")  # it does not stream: all at once
                    return
                # Not `aiter_lines`: it ends a line at U+2028, too, which JSON has in the middle of text.
                chunks, decoder = response.aiter_bytes(), SSEDecoder()
                async for chunk in chunks:
                    for frame in decoder.feed(chunk):
                        if frame.data is not None:
                            yield frame.data
                        if frame.data == DONE:
                            # A connection is used again only if its answer was read to the end, which is near.
                            with anyio.move_on_after(LINGER):
                                async for _ in chunks:
                                    pass
                            return
                for frame in decoder.flush():
                    if frame.data is not None:
                        yield frame.data
        except httpx.ConnectError as exc:
            raise ModelError("The model cannot be reached: see OPENAI_BASE_URL.", "model_unreachable") from exc
        except httpx.TimeoutException as exc:
            raise ModelError("The model has been silent for too long.", "model_timeout") from exc
        except httpx.HTTPError as exc:
            raise ModelError("The answer is cut: the connection to the model broke off.", "stream_cut") from exc
        except LimitError as exc:
            raise ModelError("The model sent too much at once.", "model_error", detail=str(exc)) from exc

    def _without_key(self, detail: str) -> str:
        """Return an endpoint's words for the log, in one line: some quote the request that they refuse."""
        key = self._client.headers.get("authorization", "").removeprefix("Bearer ")
        return repr(detail.replace(key, "…") if key else detail)


async def _excerpt(response: httpx.Response) -> str:
    """Read the beginning of a refusal."""
    body = b""
    with suppress(httpx.HTTPError):  # the status says enough
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _EXCERPT:
                break
    return body[:_EXCERPT].decode(errors="replace")


def open_client(key: str, base_url: str = BASE_URL) -> httpx.AsyncClient:
    """Return a client for `OpenAIAgent`, to be closed at the end of the program.

    Raises:
        ConfigurationError: The key or the address cannot be one. The key is not shown.
    """
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigurationError("OPENAI_API_KEY holds a character that no key has, such as a space or a line end")
    if not base_url.startswith(("http://", "https://")):
        raise ConfigurationError(f"OPENAI_BASE_URL is no http(s) address, such as {BASE_URL}")
    return httpx.AsyncClient(
        base_url=base_url,
        headers={"authorization": f"Bearer {key}", "content-type": "application/json", "accept": "text/event-stream"},
        # httpx's read timeout starts anew with every byte: it limits silence, and not how long an answer takes.
        timeout=httpx.Timeout(10.0, read=IDLE),
        # A stream has its connection to itself, and may be long: without a limit none waits for another.
        limits=httpx.Limits(max_connections=None),
    )


# The chain.


def surfaces_shown(registry: SurfaceRegistry) -> Middleware:
    """Return a stage that shows the model the surfaces it has made, which a front end's history lacks.

    Without it a model cannot update what it does not know of. In a message of the assistant, since it said that.
    """

    async def stage(input: RunAgentInput, next: Source) -> AsyncIterator[AnyEvent]:
        thread = registry.key(input)
        surfaces = [registry.messages_for(thread, surface) for surface in registry.surfaces(thread)]
        if surfaces:
            lines = "\n".join(json.dumps(message) for messages in surfaces for message in messages)
            messages = list(input.messages)
            users = [place for place, message in enumerate(messages) if message.role == "user"]
            said = AssistantMessage(id="surfaces-shown", role="assistant", content=lines)
            messages.insert(users[-1] if users else len(messages), said)
            input = input.model_copy(update={"messages": messages})
        async for event in next(input):
            yield event

    return stage


def build_app(agent: OpenAIAgent) -> Starlette:
    """Return an app that serves an agent at ``/agent``, for front ends that read A2UI v0.9 from activities."""
    surfaces = SurfaceRegistry()
    capabilities = ClientCapabilities()
    return agent_app(
        agent,
        # Events meet the first stage first, inputs the last: what a client sends passes Trust before all others.
        surfaces_shown(surfaces),
        A2UIPlannerMiddleware(version="v0.9", capabilities=capabilities),
        A2UIMiddleware.chat(carrier="activity", registry=surfaces),
        A2UIActionMiddleware(registry=surfaces, capabilities=capabilities),
        EventThrottleMiddleware(),
        GuardMiddleware(),
        TrustMiddleware(issued=IssuedCalls()),
        path="/agent",
    )


# The command.


async def serve(key: str, base_url: str, model: str, *, host: str, port: int) -> None:
    """Serve until a signal comes."""
    async with open_client(key, base_url) as client:
        app = build_app(OpenAIAgent(client, model))
        print(f"Asking {model}. Serving http://{host}:{port}/agent; Ctrl-C stops it.", flush=True)
        await uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="warning")).serve()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the agent, or say what is missing."""
    parser = argparse.ArgumentParser(description="An A2UI agent on any OpenAI-compatible endpoint.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: %(default)s)")
    args = parser.parse_args(argv)
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key:
        print(HELP, file=sys.stderr)
        return 2
    base_url = os.environ.get("OPENAI_BASE_URL") or BASE_URL
    model = os.environ.get("OPENAI_MODEL") or MODEL
    try:
        asyncio.run(serve(key, base_url, model, host=args.host, port=args.port))
    except ConfigurationError as exc:  # a key that cannot be one, or the extra `a2ui` is missing
        print(exc, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
