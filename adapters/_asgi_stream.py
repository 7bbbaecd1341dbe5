"""One request's stream: a source in a task of its own, the chain in the request's, and the client that may leave.

Knows tasks, endings and who may write; `_asgi_writer.py` knows how. Does not know where the events come from: a
`Producer` (a wrapped app, a source) fills a channel.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

import anyio
from ag_ui.core import RunAgentInput, RunErrorEvent
from starlette.types import Message, Receive, Send

from agui_pipeline.adapters._asgi_writer import Writer, heartbeats
from agui_pipeline.middleware import Pipeline
from agui_pipeline.middleware._channel import Channel, open_channel
from agui_pipeline.middleware._drive import cancellations
from agui_pipeline.middleware._segment import Segment, raise_closing
from agui_pipeline.middleware._task import Child, interruptible, spawn
from agui_pipeline.translators import DiagnosticSink, SourceError, SSEFrame, encode_sse

_logger = logging.getLogger("agui_pipeline")

_AHEAD: Final = 256
"""Events that a source may be ahead of the chain. With the chain's own bound, all that a slow client makes us hold."""

STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_TERMINAL: Final = frozenset({"RUN_FINISHED", "RUN_ERROR"})


class StoppedError(SourceError):
    """What wrote a stream ended without completing it."""


class Producer(ABC):
    """Whatever fills a channel with one run's events.

    Attributes:
        complete: Whether all events were written: what still runs is not part of the stream (background tasks).
        error: What it raised.
    """

    def __init__(self) -> None:
        self.complete = False
        self.error: BaseException | None = None

    @abstractmethod
    async def produce(self, input: RunAgentInput, channel: Channel) -> None:
        """Write the run's events; raise what went wrong."""


class Stream:
    """One request's chain, its producers and its client.

    Args:
        pipeline: The chain, around any source; this stream puts its own in.
        send: The server's `send`.
        receive: The server's `receive`, whose body was read.
        make: Returns a producer for one call of the source.
        heartbeat: Seconds of silence after which a comment is sent; 0 for none.
        detach: Whether the run goes on when the client has left.
        sink: Gets diagnostics.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        send: Send,
        receive: Receive,
        *,
        make: Callable[[Stream], Producer],
        heartbeat: float,
        detach: bool,
        sink: DiagnosticSink,
    ) -> None:
        self.send = send
        self.sink = sink
        self.writer = Writer(send, self.client_left)
        self.gone = anyio.Event()  # what an app's own receive() waits for
        self.decided = anyio.Event()  # whether the response is ours is known
        self.ours = False
        self._pipeline = pipeline.around(self)
        self._receive = receive
        self._make = make
        self._heartbeat = heartbeat
        self._detach = detach
        self._block = interruptible()
        self._children: list[tuple[Producer, Child]] = []
        self._left = False

    # What producers call.

    async def start(self, message: Message) -> bool:
        """Send the response's start, unless the chain had to send one of its own before.

        Returns:
            Whether this one was sent.
        """
        if self.writer.started:
            return False
        self.ours = True
        self.writer.started = True  # before the await: the chain must not start it a second time
        self.decided.set()
        await self.writer.start(message)
        if self._heartbeat and not self.writer.discard:
            heartbeats().add(self.writer, self._heartbeat)
        return True

    def step_aside(self) -> None:
        """Leave the response to the app: it is no event stream, or it failed before there was one."""
        self.decided.set()
        self._block.interrupt()

    def client_left(self) -> None:
        """Take the news that nobody reads any more."""
        if self._left:
            return
        self._left = True
        self.writer.discard = True
        if not self._detach:
            self.gone.set()
            if self.ours or not self.decided.is_set():
                self._block.interrupt()

    # The source of the chain.

    def channel(self, input: RunAgentInput) -> Channel:
        """Start a producer; its channel is read by the chain."""
        producer = self._make(self)
        channel = open_channel(_AHEAD)
        channel.aside = self._aside
        channel.before_wait = self.writer.flush  # what was given is sent when the chain would wait for more

        async def run() -> None:
            try:
                await producer.produce(input, channel)
            except asyncio.CancelledError as exc:
                if child.cancelled:
                    raise
                producer.error = exc  # its own doing
            except Exception as exc:  # noqa: BLE001 - raised by `run`, after the stream has ended
                producer.error = exc
            finally:
                channel.end(producer.error)

        child = spawn(run, "agui_pipeline.producer")
        self._children.append((producer, child))
        return channel

    __call__ = channel

    def _aside(self, frame: SSEFrame) -> None:
        self.writer.add(encode_sse(frame, self.sink))

    # The request's task.

    async def run(self, input: RunAgentInput) -> None:
        """Run the chain to its end, or until the client leaves; returns when everything it started has ended.

        Raises:
            Exception: What a stage or a producer raised, unwrapped, after the stream was ended properly.
        """
        watcher = spawn(self._watch, "agui_pipeline.watcher")
        segment = Segment()
        error: BaseException | None = None
        try:
            with self._block:
                error = await self._write(input, segment)
        except BaseException as exc:
            error = exc
            raise
        finally:
            heartbeats().remove(self.writer)
            try:
                await self._close(segment, error)
            finally:
                watcher.cancel()
                await watcher.join()
        failed = error or next((producer.error for producer, _ in self._children if producer.error is not None), None)
        if isinstance(failed, Exception):
            raise failed
        if failed is not None:
            # Raised here, it would read as a cancellation of the request.
            _logger.error("the agent's task was cancelled from inside", exc_info=failed)

    async def _close(self, segment: Segment, error: BaseException | None) -> None:
        """Close the chain, then end what fills its channels, except what only finishes work after the stream."""
        closing = await segment.close()
        aside = self.decided.is_set() and not self.ours
        for producer, child in self._children:
            if not (producer.complete or aside):
                child.cancel()
            await child.join()
        raise_closing(closing, error)

    async def _write(self, input: RunAgentInput, segment: Segment) -> BaseException | None:
        """Write what the chain gives, to its end; returns the error that ended it."""
        writer = self.writer
        direct = not self._pipeline.fused  # a function stage may sleep with events behind it unsent
        asked = cancellations()
        terminal = foreign = False
        error: BaseException | None = None
        try:
            async for event in self._pipeline.start(input, segment):
                if not writer.started:
                    await self._started()
                if type(event) is SSEFrame:
                    foreign = True
                elif event.type in _TERMINAL:
                    terminal = True
                elif event.type == "RUN_STARTED":
                    terminal = False
                if writer.add(encode_sse(event, self.sink)) or direct:
                    await writer.flush()
        except Exception as exc:  # noqa: BLE001 - returned
            error = exc
        except asyncio.CancelledError as exc:
            if cancellations() != asked:
                raise
            error = exc  # a stage's own doing
        if not writer.started:
            if error is not None or not self._children:
                return error or StoppedError("the chain ended without an event and without calling its source")
            await self._started()
        if error is not None and not terminal and not foreign:
            code = "source_ended" if isinstance(error, StoppedError) else "source_error"
            message = (
                "The agent stopped before its run was complete." if code == "source_ended" else "The agent failed."
            )
            writer.add(encode_sse(RunErrorEvent(message=message, code=code)))
        await writer.finish()
        if not self._detach:
            self.gone.set()
        return error

    async def _started(self) -> None:
        """Make sure that the response has started: by the app, or here where the chain has not called it."""
        if self._children:
            await self.decided.wait()
            if not self.ours:
                await anyio.sleep_forever()  # the interruption is on its way
        else:
            await self.start({"type": "http.response.start", "status": 200, "headers": list(STREAM_HEADERS)})

    async def _watch(self) -> None:
        """Own `receive`: nobody else would notice that the client has left."""
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except Exception as exc:  # noqa: BLE001 - a server that raises here has lost its client
            _logger.debug("receive() raised %r: the client counts as gone", exc)
        self.client_left()
