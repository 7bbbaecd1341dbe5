"""AG-UI events to frames of a Superagent dialect: reading, writing, and the time of each frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._diagnostics import DiagnosticSink
from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators._events import AnyEvent, Event
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators._sse import SSEFrame
from agui_pipeline.translators.superagent._dialects import DIALECTS
from agui_pipeline.translators.superagent._interrupts import CONFIRM
from agui_pipeline.translators.superagent._losses import Losses
from agui_pipeline.translators.superagent._meanings import AgentSwitch, Done, Interrupt, Meaning
from agui_pipeline.translators.superagent._reading import MAIN_AGENT, Reader
from agui_pipeline.translators.superagent._writing import WRITERS


def downgrade(
    dialect: str,
    *,
    sink: DiagnosticSink,
    clock: Callable[[], float],
    tool_call_updates: bool = False,
    agent_id: str | None = None,
    input: RunAgentInput | None = None,
    shown: Collection[str] = (),
) -> Translator:
    """Return a translator of one run whose `feed`, `flush` and `fail` give `SSEFrame`s in place of events.

    Guarantees:
        - Exactly one ``done``, the last frame, which `flush` or `fail` gives: there may be several runs in a stream,
          and a run that is over may still fail. Where a run is not over, an error goes before it: ``source_ended``,
          of `fail` ``source_error`` or ``cancelled``. `fail` hands the exception on.
        - Order is kept, but that a few characters which may become a fence wait until that is decided.
        - A frame's data is one line of JSON, except a token of the compatible dialect that has line ends itself.
        - What the dialect has no frame for is a diagnostic (``superagent.*``), once for a type and field.

    Args:
        dialect: ``"superagent"``, ``"superagent-flat"`` or ``"superagent-compatible"``.
        sink: Gets diagnostics.
        clock: ``() -> seconds since 1970``, for frames whose event has no timestamp.
        tool_call_updates: Whether the outcome of a tool call is another ``tool_call`` frame before its result. Clients
            that append each would show the call twice. The flat dialect has no status: there it changes nothing.
        agent_id: The main agent's name, in ``progress`` and ``agent_switch``.
        input: The run's input. Its messages name the tools of calls that were made in another run, and tell what in a
            MESSAGES_SNAPSHOT is new.
        shown: Ids of what the reader was shown in a run before that this one may go on with: of messages, behind which
            a MESSAGES_SNAPSHOT is new where the input has none; and of tool calls without a result, which are not told
            again. Their results are.

    Raises:
        ConfigurationError: There is no such dialect.

    Example:
        >>> from agui_pipeline.translators import decode_event
        >>> translator = downgrade("superagent-flat", sink=print, clock=lambda: 0.0)
        >>> event = decode_event('{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hi"}')
        >>> [frame.data for frame in translator.feed(event)]
        ['{"type":"text","content":"hi"}']
    """
    if dialect not in DIALECTS:
        raise ConfigurationError(f"dialect={dialect!r}: must be one of {', '.join(map(repr, DIALECTS))}")
    return SuperagentDowngrade(
        dialect, sink, clock, tool_call_updates=tool_call_updates, agent_id=agent_id, input=input, shown=shown
    )


class SuperagentDowngrade(Translator):
    """One run's downgrade. See `downgrade`."""

    def __init__(
        self,
        dialect: str,
        sink: DiagnosticSink,
        clock: Callable[[], float],
        *,
        tool_call_updates: bool,
        agent_id: str | None,
        input: RunAgentInput | None,
        shown: Collection[str],
    ) -> None:
        self._clock = clock
        self._ended_at: Any = None  # the timestamp of the terminal event, which is that of done
        self._losses = Losses(sink, dialect)
        self._fields = DIALECTS[dialect]
        self._writer = WRITERS[dialect](sink)
        self._reader = Reader(
            self._losses,
            agent=agent_id or MAIN_AGENT,
            fences=self._writer.fences,
            updates=tool_call_updates and self._writer.updates,
            messages=field_of(input, "messages", "messages"),
            shown=shown,
        )

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        meanings = self._reader.read(event)
        timestamp = field_of(event, "timestamp", "timestamp")
        self._ended_at = timestamp if self._reader.over else None
        return self._frames(meanings, timestamp) if meanings else ()

    def flush(self) -> Iterable[AnyEvent]:
        return self._end("source_ended")

    def fail(self, exc: BaseException) -> tuple[Sequence[AnyEvent], BaseException | None]:
        code = "source_error" if isinstance(exc, Exception) else "cancelled"
        return self._end(code), exc

    def _end(self, code: str) -> Sequence[Any]:
        return self._frames(self._reader.end(code), self._ended_at)

    def _frames(self, meanings: Iterable[Meaning], timestamp: Any) -> Sequence[Any]:
        known = isinstance(timestamp, int | float) and not isinstance(timestamp, bool) and abs(timestamp) < _LATEST
        time = int(timestamp if known else self._clock() * 1000)
        frames: list[SSEFrame] = []
        for meaning in meanings:
            self._note_losses(meaning)
            frames += self._writer.frames(meaning, time)
        return frames

    def _note_losses(self, meaning: Meaning) -> None:
        """Say what of a meaning the dialect has no place for."""
        kept = self._fields[meaning.kind].values()
        if isinstance(meaning, Done):
            if "usage" not in kept and any((meaning.usage or {}).values()):
                self._losses.say("lost", "RUN_FINISHED", "usage")
        elif isinstance(meaning, Interrupt):
            if "fields" not in kept and meaning.fields and list(meaning.fields) != [CONFIRM]:
                self._losses.say("lost", "RUN_FINISHED", "outcome.interrupts.responseSchema")
        elif isinstance(meaning, AgentSwitch) and "reason" not in kept and meaning.reason:
            self._losses.say("lost", "SUBAGENT_STARTED", "description")


_LATEST: Final = 2**53
"""Milliseconds that a JSON number holds exactly; what is past them is no time."""
