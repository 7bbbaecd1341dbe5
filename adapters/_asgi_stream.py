"""One request's stream: a source in a task of its own, the chain in the request's, and the client that may leave.

Knows endings and who may write; `_asgi_writer.py` knows how. Does not know where the events come from: a `Producer`
(a wrapped app, a source) fills a channel.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable
from typing import Final

import anyio
import anyio.lowlevel
from ag_ui.core import RunAgentInput, RunErrorEvent
from starlette.types import Message, Receive, Send

from agui_pipeline.adapters._asgi_producer import (
    AnsweredError,
    Events,
    Producer,
    StoppedError,
    disconnected,
    join_all,
    stop,
)
from agui_pipeline.adapters._asgi_writer import Writer, heartbeats
from agui_pipeline.middleware import Pipeline
from agui_pipeline.middleware._chain import Chain
from agui_pipeline.middleware._channel import Channel, in_trio, open_channel
from agui_pipeline.middleware._drive import cancellations
from agui_pipeline.middleware._intake import EVENT_TYPES, Intake
from agui_pipeline.middleware._segment import Segment, raise_closing
from agui_pipeline.middleware._task import Child, interruptible, spawn
from agui_pipeline.middleware._translator import StrangeFrames
from agui_pipeline.translators import AnyEvent, Diagnostic, DiagnosticSink, SSEFrame, WireEvent, encode_sse
from agui_pipeline.translators._diagnostics import default_sink
from agui_pipeline.translators._reporting import raised_later

_logger = logging.getLogger("agui_pipeline")

_AHEAD: Final = 256
"""Events that a source may be ahead of the chain. With the chain's own bound, all that a slow client makes us hold."""

STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_BOUNDS: Final = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"})


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

    Attributes:
        decided: Set once the chain need not wait for the app to answer.
        ours: Whether the response is this stream's.
        aside: Whether it is the app's own, and passes as it is.
        unread: Set when the client has left, or the response has ended.
        fused: Whether the whole chain is one driver, in this request's task; known once the chain has started.
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
        self.sink = sink
        self.writer = Writer(send, self.client_left)
        self.unread = anyio.Event()
        self.decided = anyio.Event()
        self.ours = False
        self.aside = False
        self._pipeline = pipeline.around(self)
        self.fused = False
        self._send = send
        self._receive = receive
        self._make = make
        self._heartbeat = heartbeat
        self._detach = detach
        self._block = interruptible()
        self._task: object = None
        self._children: list[tuple[Producer, Child]] = []
        self._left = False
        self._over = False  # whether the chain has ended
        self._holds = False  # whether the chain has given an event that waits for the response to start
        self._error: BaseException | None = None  # what ended the chain
        self._raised_later: list[BaseException] = []
        self._terminal = False  # whether the run's terminal event was written
        self._foreign = False  # whether the stream speaks another dialect than AG-UI

    # What producers call.

    @property
    def strange_frames(self) -> StrangeFrames:
        """What becomes of a frame of the app whose data is no event."""
        return self._pipeline.strange_frames

    async def start(self, message: Message) -> None:
        """Send the response's start, unless one was sent already (the chain may call its source late, or twice)."""
        if self.writer.started or self._over:
            return
        self.ours = True
        self.writer.started = True  # before the await: the chain must not start it a second time
        self.decided.set()
        await self.writer.start(message)
        if self._heartbeat and not self.writer.discard:
            heartbeats().add(self.writer, self._heartbeat)

    @property
    def open(self) -> bool:
        """Whether the app may still answer by itself."""
        return not (self.writer.started or self._over)

    def step_aside(self) -> None:
        """Leave the response to the app: it is no event stream, or it failed before there was one."""
        if self._holds:
            text = "what the chain gave before the app answered was dropped: the answer is no event stream"
            self.sink(Diagnostic("asgi.dropped", text))
        self.aside = True
        self.decided.set()
        if self._left:
            self._tell()
        self._block.interrupt()

    async def pass_on(self, message: Message) -> None:
        """Send a message of the app's own answer.

        Raises:
            OSError: The client has left, and the app would go on sending for ever: below version 2.4 of the ASGI spec
                servers do not say so, and the app was told that this is 2.4.
        """
        if not self._left:
            await self._send(message)
        elif message.get("more_body", False):
            raise OSError("the client has left")

    def client_left(self) -> None:
        """Take the news that nobody reads any more."""
        if self._left:
            return
        self._left = True
        self.writer.discard = True
        self.unread.set()
        if self.aside:
            self._tell()
        elif not (self._detach or self.writer.finished):
            # The last `send` is let alone: some servers say that the client is gone while it still tidies up.
            self._block.interrupt()

    def _tell(self) -> None:
        """Let the apps hear that nobody reads any more."""
        self.unread.set()
        for producer, _ in self._children:
            producer.gone.set()

    async def receive(self) -> Message:
        """Wait until the client leaves or the response has ended: what is left to hear once the body was read."""
        return await disconnected(self.unread)

    # The source of the chain.

    def channel(self, input: RunAgentInput) -> Channel:
        """Start a producer; its channel is read by the chain."""
        return self._call(input)[0]

    def __call__(self, input: RunAgentInput) -> Events:
        """Do the same for a stage that reads it by itself, and may close it before its end."""
        channel, producer, child = self._call(input)

        async def close() -> None:
            if not (producer.complete or self.aside):
                stop(producer, child)
                await child.join()
                if all(other.stopped for other, _ in self._children):
                    self.decided.set()  # none is left that could answer

        return Events(channel, close)

    def _call(self, input: RunAgentInput) -> tuple[Channel, Producer, Child]:
        producer = self._make(self)
        channel = open_channel(_AHEAD)
        channel.aside = self._aside
        # What was given is sent when the chain would wait for more: by the chain's own task. Elsewhere (in a pump)
        # a cancellation could hit the sending of what others gave.
        channel.before_wait = self.writer.flush if _current_task() is self._task else self._flush_elsewhere

        async def run() -> None:
            try:
                await producer.produce(input, channel)
            except asyncio.CancelledError as exc:
                if child.cancelled:
                    raise
                producer.error = exc  # its own doing
                self._raised_later.append(exc)  # `_raise` logs it: a guard in the chain must not do so, too
            except Exception as exc:  # noqa: BLE001 - raised by `run`, after the stream has ended
                producer.error = exc
                self._raised_later.append(exc)
            finally:
                channel.end(producer.error)

        child = spawn(run, "agui_pipeline.producer")
        self._children.append((producer, child))
        return channel, producer, child

    async def feed(self, channel: Channel, chain: Chain, items: Iterable[WireEvent | SSEFrame]) -> None:
        """Do in the writer's task what the request's task would do with these items, and send what comes of it."""
        now = channel.time() if chain.timed else 0.0
        frames: list[bytes] = []
        for item in items:
            if isinstance(item, SSEFrame):
                frames.append(encode_sse(item, self.sink))
                continue
            for event in chain.feed(item, now):
                frames.append(self._encoded(event))  # noqa: PERF401 - mostly one, and then this is the fastest
            if chain.ended:
                break
        channel.fed(chain.deadline() if chain.timed else None)
        await self.writer.deliver(frames)

    def _aside(self, frame: SSEFrame) -> None:
        self.writer.add(encode_sse(frame, self.sink))

    async def _flush_elsewhere(self) -> None:
        if self.writer.pending:
            self.writer.beat()

    # The request's task.

    async def run(self, input: RunAgentInput, start: Message | None = None) -> None:
        """Run the chain to its end, or until the client leaves; returns when everything it started has ended.

        Args:
            input: The run's input.
            start: The start of the response, to be sent at once; None: the app sends it.

        Raises:
            Exception: What a stage or a producer raised, unwrapped, after the stream was ended properly.
        """
        # Stages ask for both in this context, and in those that are copied from it.
        later, sink = raised_later.set(self._raised_later), default_sink.set(self.sink)
        try:
            await self._run(input, start)
        finally:
            default_sink.reset(sink)
            raised_later.reset(later)

    async def _run(self, input: RunAgentInput, start: Message | None) -> None:
        self._task = _current_task()
        watcher = spawn(self._watch, "agui_pipeline.watcher")
        segment = Segment()
        leaving: BaseException | None = None
        try:
            with self._block:
                if start is not None:
                    await self.start(start)
                await self._write(input, segment)
                if self._block.interrupted:  # what has not arrived yet must arrive in the block
                    await anyio.lowlevel.checkpoint()
        except BaseException as exc:
            leaving = exc
            raise
        finally:
            self._over = True
            heartbeats().remove(self.writer)
            try:
                await self._close(segment, leaving)
            finally:
                try:
                    await self.writer.settle()
                finally:
                    watcher.cancel()
                    await watcher.join()
        self._raise()

    async def _close(self, segment: Segment, leaving: BaseException | None) -> None:
        """Close the chain, then end what fills its channels, except what only finishes work after the stream."""
        closing = await segment.close()
        # With the request's own task, all that works for it is cancelled.
        cut = any(exc is not None and not isinstance(exc, Exception) for exc in (closing, leaving))
        for producer, child in self._children:
            if cut or not (producer.complete or self.aside):
                # First the cancellation, then the disconnect: told first, an app would return early and be cancelled
                # while it cleans up.
                stop(producer, child)
        if not self.aside:
            self._tell()
        try:
            for _, child in self._children:
                await child.wait()
        except BaseException:
            for producer, child in self._children:
                stop(producer, child)
            raise
        finally:
            await join_all(child for _, child in self._children)
        if leaving is not None or not isinstance(closing, Exception):
            raise_closing(closing, leaving)
        elif self._error is None:
            self._error = closing

    async def _write(self, input: RunAgentInput, segment: Segment) -> None:
        """Write what the chain gives, and its end; notes the error that ended it."""
        asked = cancellations()
        try:
            await self._copy(input, segment)
        except (Exception, asyncio.CancelledError) as exc:
            # The request's own cancellation, or what a stage made of it: nothing more is delivered.
            if cancellations() > asked and not (self._block.interrupted and isinstance(exc, Exception)):
                raise
            self._error = exc  # a stage's own doing
        error = self._error
        if self._block.interrupted:  # and a stage has swallowed that
            return
        if not self.writer.started:
            if error is None and not self._children:
                self._error = error = StoppedError("the chain ended without an event and without calling its source")
            if error is not None or not await self._started():
                return
        if error is not None and not (self._terminal or self._foreign):
            self.writer.add(encode_sse(_run_error(error)))
        await self.writer.finish()

    async def _copy(self, input: RunAgentInput, segment: Segment) -> None:
        """Write what the chain gives."""
        block = self._block
        intake = Intake()
        events, self.fused = self._pipeline.start(input, segment)
        writer = self.writer
        add = writer.add
        direct = not self.fused  # a function stage may sleep with events behind it unsent
        async for item in events:
            if block.interrupted:  # and a stage has swallowed that
                return
            kind = type(item)
            if writer.started and (kind in EVENT_TYPES or kind is SSEFrame):
                if add(self._encoded(item)) or direct:
                    await writer.flush()
            else:
                await self._put(intake.take(item) if kind not in EVENT_TYPES and kind is not SSEFrame else (item,))
        await self._put(intake.flush())

    async def _put(self, events: Iterable[AnyEvent | SSEFrame]) -> None:
        writer = self.writer
        for event in events:
            if not writer.started:
                self._holds = True
                if not await self._started():
                    return
            if writer.add(self._encoded(event)) or not self.fused:
                await writer.flush()

    def _encoded(self, event: AnyEvent | SSEFrame) -> bytes:
        """Return an event's frame, and note what it says of the run."""
        if isinstance(event, SSEFrame):
            self._foreign = True
        elif event.type in _BOUNDS:
            self._terminal = event.type != "RUN_STARTED"
        return encode_sse(event, self.sink)

    async def _started(self) -> bool:
        """See that the response has started: by the app, or here where the chain has not called it, or has ended it.

        Returns:
            Whether it is ours.
        """
        if self._children:
            await self.decided.wait()
        if not (self.ours or self.aside):
            await self.start({"type": "http.response.start", "status": 200, "headers": list(STREAM_HEADERS)})
        return self.ours

    async def _watch(self) -> None:
        """Own `receive`: nobody else would notice that the client has left."""
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except Exception as exc:  # noqa: BLE001 - a server that raises here has lost its client
            _logger.debug("receive() raised %r: the client counts as gone", exc)
        self.client_left()

    def _raise(self) -> None:
        """Raise what went wrong; the server logs it. What it would not tell is logged here."""
        errors: list[BaseException] = []
        for error in (self._error, *(producer.error for producer, _ in self._children)):
            # An answer of the app's own is no failure of the server.
            if not (error is None or isinstance(error, AnsweredError) or any(error is known for known in errors)):
                errors.append(error)
        failed = next((error for error in errors if isinstance(error, Exception)), None)
        told = _with_causes(failed)
        for error in errors:
            if not any(error is known for known in told):
                # A cancellation that nobody asked for: raised, it would read as one of the request.
                _logger.error("a run failed with %s", type(error).__name__, exc_info=error)
        if failed is not None:
            raise failed


def _run_error(error: BaseException) -> RunErrorEvent:
    """Return what the client is told. The text of an exception may hold secrets: it stays in the log."""
    if isinstance(error, AnsweredError):
        return RunErrorEvent(message=f"The agent answered with HTTP status {error.status}.", code="source_error")
    if isinstance(error, StoppedError):
        return RunErrorEvent(message="The agent stopped before its run was complete.", code="source_ended")
    if isinstance(error, Exception):
        return RunErrorEvent(message="The agent failed.", code="source_error")
    return RunErrorEvent(message="The agent was cancelled.", code="cancelled")


def _with_causes(error: BaseException | None) -> list[BaseException]:
    """Return an error and those that its traceback tells of, too."""
    found: list[BaseException] = []
    todo = [error]
    while todo:
        one = todo.pop()
        if one is not None and not any(one is known for known in found):
            found.append(one)
            todo += (one.__cause__, one.__context__)
    return found


def _current_task() -> object:
    return sys.modules["trio"].lowlevel.current_task() if in_trio() else asyncio.current_task()
