"""Frames of an old agent to the AG-UI events of one run.

Knows where the run begins and ends, which error is its end, and what becomes of frames that are none. Does not know how
a dialect spells a frame (`_parsing.py`) or what is open (`_telling.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._compat import PROTOCOL_VERSION
from agui_pipeline.translators._diagnostics import DiagnosticSink
from agui_pipeline.translators._errors import ConfigurationError, DecodeError
from agui_pipeline.translators._events import AnyEvent, decode_event
from agui_pipeline.translators._sse import SSEFrame
from agui_pipeline.translators.superagent._dialects import DIALECTS
from agui_pipeline.translators.superagent._losses import Losses
from agui_pipeline.translators.superagent._meanings import CANCELLED, Done, Error, Meaning
from agui_pipeline.translators.superagent._parsing import parse
from agui_pipeline.translators.superagent._reading import ENDINGS
from agui_pipeline.translators.superagent._telling import Teller

BAD_FRAME: Final = "bad_frame"
"""The code of the error that stands for a frame that is not of its dialect."""

_LONGEST: Final = 4000
"""Characters of such a frame that go on."""


class SuperagentUpgrade:
    """Reads the answer of an agent that speaks a Superagent dialect, as the events of one AG-UI run.

    RUN_STARTED comes first, with the input's ids; text, with blocks of code back between fences, reasoning, tool calls
    and their results, steps and progress (activities of type ``progress``), subagents; ``done`` is RUN_FINISHED: with
    the interrupts that came before it as its outcome, or RUN_ERROR where an error came directly before it.

    Guarantees:
        - The stream is legal and has one terminal event, whatever the frames: without ``done``, `flush` gives a
          RUN_ERROR (``source_ended``), and `fail` one, too.
        - An error that is not directly before ``done`` does not end the run: it is a CUSTOM ``superagent.error``. So
          is a frame that is not of the dialect (code ``bad_frame``, its text the message), with a diagnostic.
        - A piece of text is believed more than the whole that comes with it. A frame with only the whole gives what is
          new in it.
        - The flat dialect has no ids: a result belongs to the oldest call of its name without one.

    Args:
        dialect: ``"superagent"``, ``"superagent-flat"`` or ``"superagent-compatible"``.
        input: The run's input.
        sink: Gets diagnostics.
        new_id: Makes ids.

    Raises:
        ConfigurationError: There is no such dialect.

    Example:
        >>> from itertools import count
        >>> from agui_pipeline.translators import run_input
        >>> ids = map(str, count())
        >>> agent = SuperagentUpgrade("superagent-flat", input=run_input("hi"), sink=print, new_id=ids.__next__)
        >>> [event.type for event in agent.feed(SSEFrame(data='{"type":"text","content":"hello"}'))]
        ['RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT']
        >>> [event.type for event in agent.feed(SSEFrame(data='{"type":"done","usage":{}}'))]
        ['TEXT_MESSAGE_END', 'RUN_FINISHED']
    """

    def __init__(self, dialect: str, *, input: RunAgentInput, sink: DiagnosticSink, new_id: Callable[[], str]) -> None:
        if dialect not in DIALECTS:
            raise ConfigurationError(f"dialect={dialect!r}: must be one of {', '.join(map(repr, DIALECTS))}")
        self._dialect = dialect
        self._run: Mapping[str, Any] = {"threadId": input.thread_id, "runId": input.run_id}
        self._losses = Losses(sink, dialect)
        self._teller = Teller(new_id, self._losses)
        self._started = False
        self._complete = False
        # An error that is the end of the run, if the next frame is done.
        self._error: Error | None = None

    @property
    def complete(self) -> bool:
        """Whether the terminal event was given: an end of the answer here loses nothing."""
        return self._complete

    def feed(self, frame: SSEFrame) -> list[AnyEvent]:
        """Take one frame; give the events that it means. One without data, such as a keep-alive, means nothing."""
        if frame.data is None:
            return []
        if self._complete:
            self._losses.say("after-done")
            return []
        out = self._start()
        try:
            meaning, time = parse(frame.data, self._dialect)
        except DecodeError as exc:
            self._losses.say("bad-frame", detail={"error": str(exc)})
            return out + self._minor() + self._teller.error(BAD_FRAME, _cut(frame.data), None)
        return out + self._take(meaning, time)

    def flush(self) -> list[AnyEvent]:
        """Take the end of the answer."""
        if self._complete:
            return []
        self._losses.say("source-ended")
        return self._failed("source_ended", ENDINGS["source_ended"])

    def fail(
        self, exc: BaseException, code: str = "source_error", message: str | None = None
    ) -> tuple[list[AnyEvent], BaseException]:
        """Take an error of the connection.

        Args:
            exc: What happened. Its text is sent to nobody.
            code: The code for the RUN_ERROR.
            message: Its message, one for the code where it is None.

        Returns:
            The last events, and the exception.
        """
        if self._complete:
            return [], exc
        self._losses.say("source-error")
        return self._failed(code, message or ENDINGS.get(code, ENDINGS["source_error"])), exc

    def _start(self) -> list[AnyEvent]:
        if self._started:
            return []
        self._started = True
        return [decode_event({"type": "RUN_STARTED", **self._run, "protocolVersion": PROTOCOL_VERSION})]

    def _take(self, meaning: Meaning, time: int | None) -> list[AnyEvent]:
        if isinstance(meaning, Done):
            return self._finish(meaning, time)
        out = self._minor()
        if isinstance(meaning, Error):
            self._error = meaning
            return out
        return out + self._teller.tell(meaning, time)

    def _minor(self) -> list[AnyEvent]:
        """Give the error before, which did not end the run."""
        error, self._error = self._error, None
        return [] if error is None else self._teller.tell(error, None)

    def _finish(self, done: Done, time: int | None) -> list[AnyEvent]:
        self._complete = True
        out = self._teller.close(time)
        more: dict[str, Any] = {} if time is None else {"timestamp": time}
        usage = _usage(done)
        if usage:
            more["usage"] = [usage]
        error = self._error
        if error is not None and error.code != CANCELLED:
            return [*out, decode_event({"type": "RUN_ERROR", "message": error.message, "code": error.code, **more})]
        if error is not None:
            more["outcome"] = {"type": "cancelled"}
        elif self._teller.interrupts:
            more["outcome"] = {"type": "interrupt", "interrupts": self._teller.interrupts}
        return [*out, decode_event({"type": "RUN_FINISHED", **self._run, **more})]

    def _failed(self, code: str, message: str) -> list[AnyEvent]:
        out = self._start() + self._minor() + self._teller.close(None)
        self._complete = True
        return [*out, decode_event({"type": "RUN_ERROR", "message": message, "code": code})]


def _usage(done: Done) -> dict[str, int]:
    counts = done.usage or {}
    named = (("inputTokens", "prompt_tokens"), ("outputTokens", "completion_tokens"))
    return {name: counts[old] for name, old in named if old in counts} if any(counts.values()) else {}


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
