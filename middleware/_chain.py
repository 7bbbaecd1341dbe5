"""Neighbouring sans-IO stages as one: what goes in at the first comes out at the last.

Does not know about tasks, timers or where events come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ag_ui.core import RunAgentInput
from pydantic import BaseModel

from agui_pipeline.middleware._translator import Stage, TranslatorMiddleware
from agui_pipeline.translators import AnyEvent, TimedTranslator, Translator, WireEvent


class Chain:
    """The translators of one run, nearest the source first.

    Args:
        stages: Those that the run shall go through, nearest the source first. The last ones are taken, up to one that
            must run apart: an async stage, unless it stands aside in this run.
        input: The run's input as it comes from the client's side.

    Attributes:
        rest: How many of the stages are left, of which the last must run apart.
        input: What is to be given to the next of them, or to the source: the input as the stages changed it, last
            stage first.
        empty: Whether there are no translators.
        timed: Whether any member may hold events for a while.
        ended: Whether a stage raised, or `end` was called: nothing more may be fed.
        error: What the reader must raise after the last events; None for a plain end.
        last: The events that go out before `error`, where a stage raised while the chain was being made.
    """

    __slots__ = ("_feeds", "_stages", "_timed", "empty", "ended", "error", "input", "last", "rest", "timed")

    def __init__(self, stages: Sequence[Stage], input: RunAgentInput) -> None:
        made: list[Translator | TimedTranslator] = []
        problem: Exception | None = None
        rest = len(stages)
        for stage in reversed(stages):
            try:
                if isinstance(stage, TranslatorMiddleware):
                    translator = stage.translator(input)
                    if not isinstance(translator, Translator | TimedTranslator):
                        raise TypeError(_wrong(stage, "translator", "a Translator or a TimedTranslator", translator))
                    input = _checked(stage, "prepare", stage.prepare(input))
                    made.append(translator)
                else:
                    stand_aside = getattr(stage, "stand_aside", None)
                    changed = None if stand_aside is None else stand_aside(input)
                    if changed is None:
                        break
                    input = _checked(stage, "stand_aside", changed)
            except Exception as exc:  # noqa: BLE001 - to the stages after it, it is a source that raises
                problem = exc
                break
            rest -= 1
        made.reverse()
        self.rest = rest
        self.input = input
        self.empty = not made
        self._stages: list[tuple[Any, bool]] = [(stage, isinstance(stage, TimedTranslator)) for stage in made]
        self._feeds = [(stage.feed, timed) for stage, timed in self._stages]
        self._timed = [(place, stage) for place, (stage, timed) in enumerate(self._stages) if timed]
        self.timed = bool(self._timed)
        self.ended = False
        self.error: BaseException | None = None
        self.last: Sequence[AnyEvent] = () if problem is None else self.end(problem, 0.0)

    def feed(self, event: AnyEvent, now: float) -> Iterable[AnyEvent]:
        """Put one event in at the first stage. Look at `ended` after taking the events."""
        events: Sequence[AnyEvent] = (event,)
        for place, (feed, timed) in enumerate(self._feeds, 1):
            if len(events) != 1:
                return self._through(place - 1, events, now)
            try:
                given = feed(events[0], now) if timed else feed(events[0])
            except Exception as exc:  # noqa: BLE001 - to the stages after it, it is a source that raises
                return self._finish(place, (), exc, now)
            if type(given) is tuple or type(given) is list:
                events = given
            else:  # a generator: what it gave before it raises counts
                events = []
                try:
                    events.extend(_events_of(given, feed))
                except Exception as exc:  # noqa: BLE001 - likewise
                    return self._finish(place, events, exc, now)
            if not events:
                break
        return events

    def deadline(self) -> float | None:
        """Return when `expire` wants to be called: the least over the stages."""
        least: float | None = None
        for _, stage in self._timed:
            due = stage.deadline()
            if due is not None and (least is None or due < least):
                least = due
        return least

    def expire(self, now: float) -> Sequence[AnyEvent]:
        """Let every stage that is due give what it holds; what one gives goes through those after it."""
        out: list[AnyEvent] = []
        for place, stage in self._timed:
            due = stage.deadline()
            if due is None or due > now:
                continue
            given: list[AnyEvent] = []
            try:
                given.extend(stage.expire(now))
            except Exception as exc:  # noqa: BLE001 - to the stages after it, it is a source that raises
                out.extend(self._finish(place + 1, given, exc, now))
            else:
                out.extend(self._through(place + 1, given, now))
            if self.ended:
                break
        return out

    def end(self, error: BaseException | None, now: float) -> Sequence[AnyEvent]:
        """Take the end of the source, or its error; return the last events. `error` says what follows them."""
        return self._finish(0, (), error, now)

    def _through(self, place: int, events: Iterable[AnyEvent], now: float) -> Iterable[AnyEvent]:
        for stage, timed in self._stages[place:] if place else self._stages:
            place += 1
            out: list[AnyEvent] = []
            try:
                if timed:
                    for event in events:
                        out.extend(_events_of(stage.feed(event, now), stage.feed))
                else:
                    for event in events:
                        out.extend(_events_of(stage.feed(event), stage.feed))
            except Exception as exc:  # noqa: BLE001 - to the stages after it, it is a source that raises
                return self._finish(place, out, exc, now)
            if not out:
                return out
            events = out
        return events

    def _finish(
        self, place: int, events: Iterable[AnyEvent], error: BaseException | None, now: float
    ) -> Sequence[AnyEvent]:
        """Feed the stages from `place` on what came before the end, then the end; each may change what follows."""
        self.ended = True
        for stage, timed in self._stages[place:]:
            out: list[AnyEvent] = []
            try:
                for event in events:
                    given = stage.feed(event, now) if timed else stage.feed(event)
                    out.extend(_events_of(given, stage.feed))
                if error is None:
                    out.extend(stage.flush())
                else:
                    more, error = stage.fail(error)
                    out.extend(more)
            except Exception as exc:  # noqa: BLE001 - a stage that raises is not flushed
                error = exc
            events = out
        self.error = error
        return list(events)


def _checked(stage: object, method: str, input: object) -> RunAgentInput:
    if not isinstance(input, RunAgentInput):
        raise TypeError(_wrong(stage, method, "a RunAgentInput", input))
    return input


def _events_of(given: Any, feed: Any) -> Iterable[AnyEvent]:
    """Check what a `feed` returned. A model is iterable, too: what it gives is its fields."""
    if type(given) is tuple or type(given) is list:
        return given
    if isinstance(given, BaseModel | WireEvent | Mapping | str) or not isinstance(given, Iterable):
        raise TypeError(_wrong(feed.__self__, "feed", "an iterable of events, such as (event,)", given))
    return given


def _wrong(stage: object, method: str, wanted: str, given: object) -> str:
    return f"{type(stage).__name__}.{method}() must return {wanted}; it returned {type(given).__name__}"
