"""A stream of AG-UI 1.0 as an older client takes it: the rules of its version, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Literal, TypeAlias

from ag_ui.core import RunAgentInput

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._diagnostics import DiagnosticSink
from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators._events import AnyEvent, Event
from agui_pipeline.translators.agui_versions._rule import JSONObject, Losses, Rule, Setting
from agui_pipeline.translators.agui_versions._table import RULES, rules_for
from agui_pipeline.translators.agui_versions._version import Version, version_of
from agui_pipeline.translators.lifecycle import ROWS

Interrupts: TypeAlias = Literal["custom", "structured"]

STRUCTURED: Final = Version(0, 0, 54)
"""The first version that knows the outcome of an interrupt."""

_Feed: TypeAlias = Callable[[AnyEvent], Iterable[AnyEvent]]


def check_level(level: str, interrupts: Interrupts = "custom") -> Version:
    """Return the version of a level, if it can tell of interrupts as wanted.

    Raises:
        ConfigurationError: It is no level, or its clients do not know structured interrupts.
    """
    version = version_of(level)
    if interrupts == "structured" and version < STRUCTURED:
        raise ConfigurationError(
            f"interrupts='structured' with {level!r}: clients before {STRUCTURED} do not know the outcome of an"
            " interrupt; wanted interrupts='custom', or a later level"
        )
    return version


class Downgrade(Translator):
    """Makes of one run's events what every client from a version on accepts.

    An event that no rule changes leaves as the same object. Nothing is held but what the client could not take yet:
    reasoning, texts and tool calls that interleave, and the end of a run that another one may follow.

    Args:
        level: ``"ag-ui/<version>"``.
        input: The run's input, as the client sent it.
        sink: Gets diagnostics (codes ``legacy.*``), at the end of the stream: one a kind, with a count.
        interrupts: How the client is told of them.
        on_interrupts: Gets the interrupts that each finished run left open, as JSON objects; none where it left none.
        without: Names of rules to leave out: for tests that show what each is for.

    Raises:
        ConfigurationError: `level` is no level, or none that knows structured interrupts.

    Example:
        >>> from agui_pipeline.translators import decode_event, run_input
        >>> downgrade = Downgrade("ag-ui/0.0.40", run_input("hi"), print)
        >>> downgrade.feed(decode_event({"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "m"}))
        [WireEvent(CUSTOM, name='SUBAGENT_ERROR', value={'subagentRunId': 's', 'message': 'm'})]
    """

    def __init__(
        self,
        level: str,
        input: RunAgentInput,
        sink: DiagnosticSink,
        *,
        interrupts: Interrupts = "custom",
        on_interrupts: Callable[[Sequence[JSONObject]], None] = lambda _: None,
        without: Collection[str] = (),
    ) -> None:
        version = check_level(level, interrupts)
        if unknown := set(without) - {rule.name for rule in RULES}:
            raise ConfigurationError(f"without={without!r}: there is no rule {min(unknown)!r}")
        self._losses = Losses(sink, level)
        setting = Setting(
            version=version,
            losses=self._losses,
            thread_id=input.thread_id,
            run_id=input.run_id,
            messages=input.messages,
            state=input.state,
            structured=interrupts == "structured",
            on_interrupts=on_interrupts,
        )
        chosen = [rule for rule in rules_for(version) if rule.name not in without]
        self._rules: list[tuple[frozenset[str] | None, Rule]] = [(rule.types, rule.make(setting)) for rule in chosen]
        self._plans: dict[str, list[tuple[int, _Feed]]] = {}

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        out: list[AnyEvent] = []
        self._through(0, event, out)
        return out

    def flush(self) -> Iterable[AnyEvent]:
        return self._end(failed=False)

    def fail(self, exc: BaseException) -> tuple[Sequence[AnyEvent], BaseException | None]:
        return self._end(failed=True), exc

    def _end(self, *, failed: bool) -> list[AnyEvent]:
        out: list[AnyEvent] = []
        for place, (_, rule) in enumerate(self._rules, 1):
            for event in rule.end(failed=failed):
                self._through(place, event, out)
        self._losses.tell()
        return out

    def _through(self, place: int, event: AnyEvent, out: list[AnyEvent]) -> None:
        """Take one event through the rules from a place on."""
        for at, feed in self._plan(event.type):
            if at < place:
                continue
            given = feed(event)
            if (type(given) is tuple or type(given) is list) and len(given) == 1 and given[0] is event:
                continue
            for one in given:
                self._through(at + 1, one, out)
            return
        out.append(event)

    def _plan(self, name: str) -> list[tuple[int, _Feed]]:
        """Return the rules that see a type, with their places."""
        if name not in ROWS:
            name = ""  # as the table calls all types that nobody knows
        plan = self._plans.get(name)
        if plan is None:
            plan = self._plans[name] = []
            plan += [(at, rule.feed) for at, (types, rule) in enumerate(self._rules) if types is None or name in types]
        return plan
