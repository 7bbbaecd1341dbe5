"""Older clients: the dialects that a stream can be downgraded to, and their requests upgraded from.

Knows the options and what they may be. The rules are in `agui_pipeline.translators.agui_versions`, other protocols in
`agui_pipeline.translators.superagent`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._options import check_callable, check_choice, check_store
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.translators import (
    AnyEvent,
    ConfigurationError,
    DiagnosticSink,
    Event,
    TimedTranslator,
    Translator,
)
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.agui_versions import (
    STATUS_UNREAD,
    Downgrade,
    Interrupts,
    PendingInterrupts,
    PendingStore,
    answered,
    check_level,
    version_of,
)

__all__ = ["LegacyDowngradeMiddleware", "PendingInterrupts", "PendingStore"]

SUPERAGENT: Final = ("superagent", "superagent-flat", "superagent-compatible")
"""The dialects that are not AG-UI."""


class LegacyDowngradeMiddleware(TranslatorMiddleware):
    """Speaks an older dialect: to front ends on an older `@ag-ui/client`, or of Superagent's protocol.

    An AG-UI level ``"ag-ui/<version>"`` gives a stream that every client from that published version on accepts
    (0.0.30 to 0.0.59; 1.0.0 changes nothing). What such a client would give up on becomes what it knows, or a CUSTOM
    event that holds it. Requests do not say which version sent them, so the level is configured: the oldest client
    that is served. The answers of those clients to interrupts (``forwardedProps.command.resume``) become `resume`.

    Guarantees:
        - Nothing is lost silently: a `Diagnostic` a kind and run names what the client will not see, at the end.
        - What no rule of the level changes leaves as the same object, in its place; of the clients up to 0.0.36, which
          take one message or call at a time, other events wait for it. At most 20,000 events are held.
        - A run that fails is ended in the order that the client takes: what is open first, then RUN_ERROR.
        - Of the clients up to 0.0.37, which look at no HTTP status, a request that an adapter refuses, or a wrapped app
          answers with an error, gets a stream with RUN_ERROR.
        - A client whose input declares `protocolVersion` 1.0 or later is left alone, unless `force`.

    Put it last, at the client's side. A stage behind one that leaves AG-UI is a `ConfigurationError` of the pipeline.

    Args:
        dialect: ``"ag-ui/<version>"``, ``"superagent"``, ``"superagent-flat"`` or ``"superagent-compatible"``.
        interrupts: How an AG-UI client is told of them: ``"custom"`` as CUSTOM ``on_interrupt`` with a text and no
            outcome, which front ends of every age show; ``"structured"`` as the outcome, from 0.0.54 on.
        force: Whether the level holds for clients that declare 1.0 or later, too.
        pending: Remembers what threads wait with, for answers that name no interrupt. Default: a `PendingInterrupts`
            of its own.
        tool_call_updates: Whether Superagent's reader is told how a tool call went, in a second frame of the call.
        agent_id: The agent's name in Superagent's events.
        shown: Ids of messages and tool calls that Superagent's reader was shown before the run, beside those of its
            input: they are not told again. For a stage that is made for one request.
        clock: Returns the time in seconds since the epoch, for Superagent's timestamps.
        on_diagnostic: Gets each `Diagnostic` (codes ``legacy.*``). Default: the log.

    Raises:
        ConfigurationError: An option has a value that it cannot have, or that the dialect has no use for.

    Example:
        >>> import asyncio
        >>> from agui_pipeline.adapters.testing import collect
        >>> from agui_pipeline.middleware import Pipeline
        >>> agent = [
        ...     {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        ...     {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "searcher"},
        ...     {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"},
        ...     {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
        ... ]
        >>> legacy = LegacyDowngradeMiddleware("ag-ui/0.0.58", force=True, on_diagnostic=lambda diagnostic: None)
        >>> asyncio.run(collect(Pipeline(agent, legacy))).types
        ['RUN_STARTED', 'CUSTOM', 'CUSTOM', 'RUN_FINISHED']
    """

    def __init__(
        self,
        dialect: str,
        *,
        interrupts: Interrupts = "custom",
        force: bool = False,
        pending: PendingStore | None = None,
        tool_call_updates: bool = False,
        agent_id: str | None = None,
        shown: Collection[str] = (),
        clock: Callable[[], float] = time.time,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        super().__init__(on_diagnostic=on_diagnostic)
        check_choice("interrupts", interrupts, ("custom", "structured"))
        check_choice("force", force, (False, True))
        check_choice("tool_call_updates", tool_call_updates, (False, True))
        check_callable("clock", clock, "() -> float")
        check_store("pending", pending, PendingStore, "a PendingInterrupts, or another PendingStore")
        if not isinstance(shown, list | tuple | set | frozenset) or not all(isinstance(id, str) for id in shown):
            raise ConfigurationError(f"shown={shown!r:.200}: must be a list, tuple or set of ids, which are str")
        self._foreign = dialect in SUPERAGENT
        _check_dialect(dialect, interrupts, foreign=self._foreign)
        _check_use("tool_call_updates", tool_call_updates, used=self._foreign, dialect=dialect)
        _check_use("agent_id", agent_id, used=self._foreign, dialect=dialect)
        _check_use("shown", shown, used=self._foreign, dialect=dialect)
        self.dialect = dialect
        self.pending: PendingStore = PendingInterrupts() if pending is None else pending
        # These clients give up on such a frame, and the translator never meets it.
        self.strange_frames = "drop"
        self._interrupts: Interrupts = interrupts
        self._force = force
        self._tool_call_updates = tool_call_updates
        self._agent_id = agent_id
        self._shown = frozenset(shown)
        self._clock = clock

    @property
    def leaves_agui(self) -> bool:
        """Whether what it gives are frames of another protocol, which no further stage can read."""
        return self._foreign

    def fails_in_band(self, input: RunAgentInput | None) -> bool:
        """Whether the client is one of those up to 0.0.37, which look at no HTTP status."""
        if self._foreign or (input is not None and self._is_current(input)):
            return False
        return version_of(self.dialect) <= STATUS_UNREAD

    def translator(self, input: RunAgentInput) -> Translator | TimedTranslator:
        """Return the downgrade of one run."""
        sink = run_sink(self.on_diagnostic)
        if self._foreign:
            from agui_pipeline.translators.superagent import downgrade  # noqa: PLC0415 - for those who ask for it

            return downgrade(
                self.dialect,
                sink=sink,
                clock=self._clock,
                tool_call_updates=self._tool_call_updates,
                agent_id=self._agent_id,
                input=input,
                shown=self._shown,
            )
        if self._is_current(input):
            return _Untouched()
        thread = _Thread(self.pending, input)
        inner = Downgrade(self.dialect, input, sink, interrupts=self._interrupts, on_interrupts=thread.remember)
        return _Answering(inner, thread)

    def prepare(self, input: RunAgentInput) -> RunAgentInput:
        """Return the input with an old answer to an interrupt as 1.0 has it; the same object where there is none."""
        if self._foreign or self._is_current(input):
            return input
        return _Thread(self.pending, input).answered(run_sink(self.on_diagnostic))

    def _is_current(self, input: RunAgentInput) -> bool:
        return not self._force and _declares_current(field_of(input, "protocol_version", "protocolVersion"))


class _Thread:
    """The interrupts of one run's thread."""

    def __init__(self, store: PendingStore, input: RunAgentInput) -> None:
        self._store = store
        self._input = input
        self._key = store.key(input)

    def remember(self, interrupts: Sequence[Mapping[str, Any]]) -> None:
        self._store.remember(self._key, interrupts)

    def answered(self, sink: DiagnosticSink) -> RunAgentInput:
        return answered(self._input, lambda: self._store.open(self._key), sink)

    def answers(self) -> list[str]:
        """Return the ids of what this run answers."""
        return [entry.interrupt_id for entry in self.answered(lambda _: None).resume or ()]

    def settle(self, ids: Sequence[str]) -> None:
        """Forget what was answered."""
        if ids:
            self._store.take(self._key, ids)


class _Answering(Translator):
    """Forgets the interrupts that a run answers once that run has begun: a run that was refused answers nothing."""

    def __init__(self, inner: Downgrade, thread: _Thread) -> None:
        self._inner = inner
        self._thread = thread
        # Now, as the input is made now: until this run begins, another one of its thread may leave other interrupts.
        self._answers = thread.answers()
        self._begun = False

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        if not self._begun and event.type != "RUN_ERROR":
            self._begun = True
            self._thread.settle(self._answers)
        return self._inner.feed(event)

    def flush(self) -> Iterable[AnyEvent]:
        return self._inner.flush()

    def fail(self, exc: BaseException) -> tuple[Sequence[AnyEvent], BaseException | None]:
        return self._inner.fail(exc)


class _Untouched(Translator):
    """Lets every event pass."""

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        return (event,)


def _declares_current(version: object) -> bool:
    """Whether a declared protocol version is 1.0 or later. Clients before declare none."""
    major = version.partition(".")[0] if isinstance(version, str) else ""
    return major.isascii() and major.isdigit() and int(major[:9]) >= 1


def _check_dialect(dialect: object, interrupts: Interrupts, *, foreign: bool) -> None:
    if foreign:
        _check_use("interrupts", interrupts == "structured", used=False, dialect=dialect)
    elif isinstance(dialect, str) and dialect.startswith("ag-ui/"):
        check_level(dialect, interrupts)
    else:
        names = ", ".join(map(repr, SUPERAGENT))
        raise ConfigurationError(f"dialect={dialect!r}: must be 'ag-ui/<version of @ag-ui/client>', or one of {names}")


def _check_use(name: str, value: object, *, used: bool, dialect: object) -> None:
    if value and not used:
        raise ConfigurationError(f"{name}={value!r}: the dialect {dialect!r} has no use for it")
