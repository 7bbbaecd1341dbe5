"""One request's hold on its session: what it takes from it, what its run adds, and what is given back.

Knows sessions and events; does not know HTTP, agents or dialects.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

import anyio
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters._superagent_sessions import (
    DIAGNOSTICS,
    JSONObject,
    Session,
    SessionLimits,
    SessionStore,
    Turns,
)
from agui_pipeline.adapters._superagent_shown import Shown, both
from agui_pipeline.middleware import Source
from agui_pipeline.translators import AnyEvent, Diagnostic, DiagnosticSink, encode_event
from agui_pipeline.translators import replace as replace_event
from agui_pipeline.translators._client_view import ClientView
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators._upgrade_interrupts import CUSTOM_NAME, Interrupts

_TRIES: Final = 8
"""How often a session is stored anew that others change meanwhile."""
_PATIENCE: Final = 10.0
"""Seconds that a store may take where a run broke off, or never began."""
_TERMINALS: Final = frozenset({"RUN_FINISHED", "RUN_ERROR"})
_BOUNDS: Final = _TERMINALS | {"RUN_STARTED"}
_JOINED: Final = frozenset({"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"})
"""Events of which a run has many, one behind the other: applied at once, as a message grows by copying."""


class Visit:
    """A session, from when a request takes its turn to when its run has said its last.

    Attributes:
        session: The session as it is, or is about to be.
        limits: What it may hold.
    """

    def __init__(
        self, key: str, store: SessionStore, turns: Turns, limits: SessionLimits, sink: DiagnosticSink
    ) -> None:
        self.session = Session()
        self._key = key
        self._store = store
        self._turns = turns
        self.limits = limits
        self._sink = sink
        self._stored: bytes | None = None  # what the store has, as far as this request knows
        self._before: bytes | None = None  # what it had before a claim
        self._asked: Sequence[JSONObject] = ()  # the interrupts that were stored last
        self._mine = False  # whether this request has the session's turn
        self._started = False

    async def open(self, patience: float) -> bool:
        """Take the session's turn and read it; returns whether the turn was free in time."""
        self._mine = await self._turns.take(self._key, patience)
        if not self._mine:
            return False
        try:
            self._stored = await self._store.get(self._key)
            if self._stored is not None:
                self.session = Session.decode(self._stored)
        except BaseException:
            self.leave()
            raise
        return True

    @property
    def known(self) -> bool:
        """Whether the session was there."""
        return self._stored is not None

    async def claim(self, session: Session, *, final: bool = False) -> bool:
        """Store what the session is from now on.

        Args:
            session: What it is.
            final: Whether it stays so even where no run starts.

        Returns:
            Whether it was stored: another process may have been faster.
        """
        session = replace(session, claim=str(uuid4()))
        known, new = self._stored, session.encode()
        # Also where the store fails behind it: it may have stored it before.
        self._before, self._stored = known, new
        if not await self._store.swap(self._key, known, new):
            self._before, self._stored = None, known
            return False
        if final:
            self._before = None
        self.session = session
        return True

    async def spoken(self, dialect: str | None) -> None:
        """Take note of the dialect in which open interrupts are shown again: the answer to them expects it."""
        if self.session.waiting and dialect != self.session.dialect:
            await self.claim(replace(self.session, dialect=dialect), final=True)

    async def close(self) -> None:
        """Give the turn back; and what was claimed, where the run has not started."""
        if not self._mine:
            return
        try:
            if not self._started and self._before is not None and self._stored is not None:
                with anyio.move_on_after(_PATIENCE, shield=True) as scope:
                    await self._store.swap(self._key, self._stored, self._before)
                if scope.cancelled_caught:
                    self._lost("it took too long")
        finally:
            self.leave()

    def leave(self) -> None:
        """Give the turn back: what the session is, is stored, and its client may come back at once."""
        if self._mine:
            self._mine = False
            self._turns.give_back(self._key)

    def recorder(self, session: Session, *, history: bool) -> _Recorder:
        """Return a stage that puts a run into the session.

        Args:
            session: What the session is besides what the run adds.
            history: Whether messages and state are remembered.
        """
        return _Recorder(self, session, history=history)

    async def remember(self, session: Session) -> None:
        """Store the session after its run. Where another run has changed it meanwhile, both are kept.

        Of interrupts those that are news: one that was stored before, or whose storing failed, may have been answered
        since then, and must not be open again.
        """
        self._started = True
        news = bool(session.interrupts) and session.interrupts != self._asked
        self._asked = session.interrupts
        for _ in range(_TRIES):
            new = self.limits.apply(session, self._sink).encode()
            if new == self._stored or await self._store.swap(self._key, self._stored, new):
                self._stored = new
                return
            self._stored = await self._store.get(self._key)
            theirs = Session() if self._stored is None else Session.decode(self._stored)
            session = replace(
                session,
                messages=_merged(theirs.messages, session.messages),
                shown=both(theirs.shown, session.shown),
            )
            if not news:
                session = replace(
                    session,
                    interrupts=theirs.interrupts,
                    answers=theirs.answers,
                    legacy=theirs.legacy,
                    calls=theirs.calls,
                )
        self._lost()

    async def rescue(self, session: Session) -> None:
        """Store the session after a run that broke off; where the store fails as well, that is a diagnostic."""
        with anyio.move_on_after(_PATIENCE, shield=True) as scope:
            try:
                await self.remember(session)
            except Exception as exc:  # noqa: BLE001 - what ended the run goes on, not this
                self._lost(type(exc).__name__)
        if scope.cancelled_caught:
            self._lost("it took too long")

    def _lost(self, why: str | None = None) -> None:
        text = DIAGNOSTICS["superagent.session-lost"]
        self._sink(Diagnostic("superagent.session-lost", text if why is None else f"{text} ({why})"))


def _merged(theirs: Sequence[JSONObject], ours: Sequence[JSONObject]) -> list[JSONObject]:
    known = {message["id"] for message in theirs}
    return [*theirs, *(message for message in ours if message["id"] not in known)]


class _Recorder:
    """A stage of one run: what passes it, its client has.

    The session is stored before a terminal event passes: a client answers as soon as it sees the interrupt. What came
    of a run that breaks off is stored, too: its client has seen it.
    """

    def __init__(self, visit: Visit, session: Session, *, history: bool) -> None:
        self._visit = visit
        self._session = session
        self._history = history

    async def __call__(self, input: RunAgentInput, next: Source) -> AsyncIterator[AnyEvent]:
        visit = self._visit
        fold = _Fold(input, self._session, visit, history=self._history)
        try:
            async for event in next(input):
                fold.take(event)
                if fold.changed and event.type in _TERMINALS:
                    await visit.remember(fold.session())
                    fold.changed = False
                    visit.leave()
                yield event
            if fold.changed:  # it just stopped
                await visit.remember(fold.session())
                fold.changed = False
        except BaseException:
            if fold.changed:
                await visit.rescue(fold.session())
            raise


class _Fold:
    """A run's events, put into a session."""

    def __init__(self, input: RunAgentInput, session: Session, visit: Visit, *, history: bool) -> None:
        self._session = session
        self._history = history
        self._view = ClientView(input.messages if history else (), input.state if history else None, _ignored)
        self._room = visit.limits.size
        self._deltas: list[str] = []
        self._last: AnyEvent | None = None  # the event that the deltas belong to
        self._shown = Shown(session.shown, session.calls)
        self._asked = Interrupts(lambda: str(uuid4()))
        self._interrupts: list[JSONObject] = []
        self._legacy = False
        self.changed = False

    def take(self, event: Any) -> None:
        """Take an event."""
        self._shown.take(event)
        bound = event.type in _BOUNDS
        if event.type == "CUSTOM" and event.name == CUSTOM_NAME:
            self._asked.take(event)
        if not (bound or (self._history and self._room > 0)):
            return
        self.changed = self.changed or event.type != "RUN_ERROR"
        if event.type in _JOINED and isinstance(event.delta, str):
            self._room -= len(event.delta)
            if not self._joins(event):
                self._apply()
                self._last, self._deltas = event, [event.delta]
            return
        self._apply()
        self._room -= 0 if bound else len(encode_event(event, _ignored))
        self._view.apply(event)
        if event.type == "RUN_FINISHED":
            self._ask(event)

    def session(self) -> Session:
        """Return the session with what the run has added so far."""
        self._apply()
        view = self._view
        return replace(
            self._session,
            messages=[message for message in view.messages if message["role"] != "activity"],
            state=view.state if self._history else {},
            interrupts=self._interrupts,
            answers=(),
            legacy=self._legacy,
            shown=self._shown.messages,
            calls=self._shown.calls if self._interrupts else (),
        )

    def _ask(self, event: Any) -> None:
        """Take note of what a run asks at its end. An error behind it takes nothing back: nor does it with the client.

        Agents of before 1.0 have told their interrupts by events of their own, in place of an outcome.
        """
        told = self._asked.outcome()
        self._legacy = told is not None and not field_of(event, "outcome", "outcome")
        asked = told["interrupts"] if told is not None and self._legacy else self._view.interrupts
        self._interrupts = [one for one in asked if isinstance(one, dict) and isinstance(one.get("id"), str)]

    def _joins(self, event: Any) -> bool:
        last: Any = self._last
        if last is None or event.type != last.type or field_of(event, "metadata", "metadata") is not None:
            return False
        name = "tool_call_id" if event.type == "TOOL_CALL_ARGS" else "message_id"
        if getattr(event, name) != getattr(last, name):
            return False
        self._deltas.append(event.delta)
        return True

    def _apply(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            self._view.apply(replace_event(last, delta="".join(self._deltas)))


def _ignored(_diagnostic: Diagnostic) -> None:
    """Take a diagnostic that the stream's own encoding, or the client, makes as well."""
