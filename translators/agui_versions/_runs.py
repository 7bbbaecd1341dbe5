"""Runs: how many a stream may hold, and what may follow their end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agui_pipeline.translators._events import AnyEvent, decode_event
from agui_pipeline.translators.agui_versions._rule import TERMINALS, Rule, Setting


class StopsAtError(Rule):
    """Lets nothing follow RUN_ERROR."""

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._over = False

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        if self._over:
            self._losses.note("legacy.after-error", event.type)
            return ()
        self._over = event.type == "RUN_ERROR"
        return (event,)


class OneRun(Rule):
    """Joins the runs of a stream to one, which so ends when the stream does."""

    def __init__(self, setting: Setting) -> None:
        self._losses = setting.losses
        self._started = False
        self._finished: AnyEvent | None = None

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        if event.type == "RUN_FINISHED":
            self._finished = event
            return ()
        if event.type == "RUN_STARTED":
            if self._started:
                self._losses.note("legacy.runs", event.type)
                self._finished = None
                return ()
            self._started = True
            return (event,)
        return (*self.end(failed=True), event)  # a late RUN_ERROR

    def end(self, *, failed: bool) -> Iterable[AnyEvent]:  # noqa: ARG002 - the same for every end
        finished, self._finished = self._finished, None
        return () if finished is None else (finished,)


SHOWS: Final = frozenset(
    {
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_ARGS"),
        *("STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"),
    }
)
"""What makes that client's run resolve. STATE_DELTA does only where it applies."""


class ShowsSomething(Rule):
    """Repeats the input's state in a run that showed nothing: the client's `runAgent` rejects without an update."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._started = False
        self._shown = False

    def feed(self, event: AnyEvent) -> Iterable[AnyEvent]:
        name = event.type
        if name in TERMINALS:
            return (*self.end(failed=True), event)
        self._started = self._started or name == "RUN_STARTED"
        self._shown = self._shown or name in SHOWS
        return (event,)

    def end(self, *, failed: bool) -> Iterable[AnyEvent]:
        if self._shown or not (self._started or failed):
            return ()
        self._shown = True
        ids = {"threadId": self._setting.thread_id, "runId": self._setting.run_id}
        start: dict[str, Any] = {"type": "RUN_STARTED", **ids}
        state = {"type": "STATE_SNAPSHOT", "snapshot": self._setting.state}
        return tuple(decode_event(event) for event in ([] if self._started else [start]) + [state])
