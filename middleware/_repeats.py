"""Answering a request once, however often it is sent: recorded, replayed, joined.

Knows which requests run now and what was recorded of those that ended. Does not know what a request is about, nor what
gives its events.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final, Literal, NamedTuple, TypeAlias

from agui_pipeline.middleware._live_run import LiveRun
from agui_pipeline.middleware._recent_requests import RecentRequests
from agui_pipeline.middleware._recordings import ActionRecording, ActionStore
from agui_pipeline.middleware._refusals import CUT, RefusedError, conflict, run_error, running
from agui_pipeline.translators import AnyEvent, Diagnostic, DiagnosticSink, decode_event
from agui_pipeline.translators._a2ui_action_states import outcome_of
from agui_pipeline.translators._reporting import log_stopped

WhileRunning: TypeAlias = Literal["refuse", "join"]


class Request(NamedTuple):
    """A request that can be recognised.

    Attributes:
        key: The thread, and whose it is.
        id: The client's id of the request. Where it has none: that of the equal one that came a moment ago, else empty.
        digest: Of what it says.
        alike: Whether the client gave it no id, so that it is known by what it says alone.
    """

    key: str
    id: str
    digest: str
    alike: bool = False

    @property
    def place(self) -> tuple[str, str]:
        """Where it is known by."""
        return self.key, self.id


class Repeats:
    """The requests that run now, in this process, and the store of those that ended.

    Args:
        store: Keeps recordings.
        while_running: What becomes of a repeat while the first is running.
        limit: Bytes of JSON that are held of one run.
        recent: The requests without an id that came a moment ago.
    """

    def __init__(self, store: ActionStore, while_running: WhileRunning, limit: int, recent: RecentRequests) -> None:
        self._store = store
        self._recent = recent
        self._join = while_running == "join"
        self._limit = limit
        self._running: dict[tuple[str, str], LiveRun] = {}

    def named(self, request: Request) -> Request:
        """Return a request that came without an id under that of the one it repeats, any other as it is."""
        return request._replace(id=self._recent.id_of(request.key, request.digest)) if request.alike else request

    def check(self, request: Request) -> None:
        """Raise `RefusedError` where a run of the same id goes on that this request cannot join."""
        live = self._running.get(request.place)
        if live is None:
            return
        if live.digest != request.digest:
            raise conflict()
        if not self._join or not live.whole:
            raise running()

    async def answer(
        self,
        request: Request,
        start: Callable[[], AsyncIterator[AnyEvent]],
        sink: DiagnosticSink,
    ) -> AsyncGenerator[AnyEvent, None]:
        """Give the events that answer a request: of a run, of the run that goes on, or of one that ended.

        Args:
            request: The request.
            start: Starts a run, where it takes one. May raise `RefusedError`.
            sink: Gets the diagnostics.

        Raises:
            RefusedError: It is answered by no run. Raised before the first event.
        """
        request = self.named(request)
        self.check(request)
        live = self._running.get(request.place)
        if live is None:
            if not request.id:
                request = request._replace(id=self._recent.came(request.key, request.digest))
            live = self._running[request.place] = LiveRun(request.digest, self._limit)
            events = self._lead(live, request, start, sink)
        else:
            _report(sink, "actions.joined")
            events = live.follow(lambda: _report(sink, "actions.cut"))
        async with aclosing(events):
            async for event in events:
                yield event
        if live.recording is not None:
            if live.recording.digest != request.digest:
                raise conflict()
            _report(sink, "actions.repeated")
            for data in live.recording.events:
                yield decode_event(data)

    async def _lead(
        self,
        live: LiveRun,
        request: Request,
        start: Callable[[], AsyncIterator[AnyEvent]],
        sink: DiagnosticSink,
    ) -> AsyncGenerator[AnyEvent, None]:
        """Give what a run gives, record it when it has finished, and tell those who joined how it went."""
        over = False
        try:
            live.recording = await self._store.get(*request.place)
            if live.recording is None:
                if request.alike:  # also where it is the retry of one that was cut: a second click is one of this
                    self._recent.came(request.key, request.digest, request.id)
                source = start()
                try:
                    async for event in source:
                        live.add(event)
                        if over and event.type in ("RUN_STARTED", "RUN_ERROR"):
                            # A stream of several runs, or one that failed after all: what was kept is not whole.
                            await self._store.delete(*request.place)
                            over = False
                        if event.type in ("RUN_FINISHED", "RUN_ERROR") and not over:
                            over = True
                            await self._ended(live, request, outcome_of(event), sink)
                        yield event
                finally:
                    await _closed(source)
            over = True
        except RefusedError as refused:
            live.end(run_error(refused.code, str(refused)))
            raise
        finally:
            self._forget(request, live)
            cut = run_error(CUT, "the run that this request had joined was cut: send it again")
            live.end(None if over else cut)

    async def _ended(self, live: LiveRun, request: Request, outcome: str, sink: DiagnosticSink) -> None:
        """Record a run that has come to its end, unless a retry of it shall run."""
        wanted = outcome in ("success", "interrupt")  # what a later protocol's word means, nobody knows here
        if wanted and not (live.whole and await self._kept(request, live.recorded())):
            _report(sink, "actions.not-recorded")
        # Whoever repeats it from now on gets what is recorded, or runs it again.
        self._forget(request, live)

    async def _kept(self, request: Request, recording: ActionRecording) -> bool:
        try:
            return await self._store.put(*request.place, recording)
        except Exception as exc:  # noqa: BLE001 - the run has succeeded, and its client shall hear of it
            log_stopped("actions.not-recorded", "the store of recordings failed", exc)
            return False

    def _forget(self, request: Request, live: LiveRun) -> None:
        if self._running.get(request.place) is live:
            del self._running[request.place]


def _report(sink: DiagnosticSink, code: str) -> None:
    sink(Diagnostic(code, DIAGNOSTICS[code]))


async def _closed(source: AsyncIterator[AnyEvent]) -> None:
    aclose: Callable[[], Awaitable[None]] | None = getattr(source, "aclose", None)
    if aclose is not None:
        await aclose()


DIAGNOSTICS: Final[Mapping[str, str]] = {
    "actions.joined": "a repeated request joined the run that answers it",
    "actions.cut": "a repeated request ended in RUN_ERROR: the run that it had joined was cut, or it read too slowly",
    "actions.repeated": "a repeated request got the recorded answer; nothing was run",
    "actions.not-recorded": "an answer was too large to be recorded, or the store failed: a repeat will run again",
}
"""The diagnostics of repeated requests, by code."""
