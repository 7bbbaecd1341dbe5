"""The upgrade: agents of before AG-UI 1.0, served to clients of today."""

from __future__ import annotations

from collections.abc import Callable

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._options import check_callable, check_choice, check_store
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.translators import Diagnostic, DiagnosticSink
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._upgrade import DIAGNOSTICS, UpgradeTranslator
from agui_pipeline.translators._upgrade_interrupts import with_command
from agui_pipeline.translators._upgrade_requests import with_text_results
from agui_pipeline.translators.agui_versions import PendingInterrupts, PendingStore


class UpgradeMiddleware(TranslatorMiddleware):
    """Makes an older agent speak AG-UI 1.0: its events to the client, and the client's answers to it.

    - THINKING_* events, which name nothing, become REASONING_*: each span and each message gets an id, and what is
      open at the end of the run is closed. Text without a start gets one; ends of nothing are left out. The title of a
      span moves to its ``metadata``.
    - ``binary`` parts in MESSAGES_SNAPSHOT and ``RUN_STARTED.input`` become media parts of their MIME type (data, url,
      or id as a ``file`` source; the file's name as metadata). One that mirrors a media part of its message goes.
    - null where 1.0 wants a field left out: left out. (In ``RAW.event``, ``CUSTOM.value``, snapshots, results and
      ``rawEvent`` null is data.) Timestamps with a fraction become whole; a role that 1.0 prescribes is put in.
    - CUSTOM ``on_interrupt`` events, LangGraph's older convention, become the interrupts of RUN_FINISHED's outcome,
      where the agent gives none itself. An interrupt's id is LangGraph's own where the event carries it.
    - Towards the agent, a client's ``resume`` is said as ``forwardedProps.command.resume``: the payload (true where
      there is none), or of several interrupts an object of them by id, as LangGraph takes it. What a client itself put
      there stays. `resume` stays beside it, unless it answers interrupts that were made here: their agent knows the old
      way only, and where it reads both it would let `resume` win.
    - Tool results made of parts become their text, or their JSON.

    The official client does a part of this by itself, with a warning each time, and gives up on the rest.

    Guarantees:
        - What is as 1.0 has it passes unchanged: the same objects, in the same order. So do unknown types.
        - Nothing is held: what an event becomes goes out before the next one is taken.
        - The same run told twice gets the same ids.

    It is no guard: put a `GuardMiddleware` behind it. Put it nearest the source.

    Args:
        keep_custom: Whether ``on_interrupt`` events go on beside the outcome, for front ends that read those. False:
            the outcome alone.
        new_id: Makes the ids of reasoning, and of interrupts that have none. Default: the run's id and a number.
        pending: Remembers which interrupts were made here, a thread. Default: a `PendingInterrupts` of its own.
        on_diagnostic: Gets each `Diagnostic` (codes ``upgrade.*``), once a run for each field of each event type.
            Default: the log.

    Raises:
        ConfigurationError: An option has a value that it cannot have.

    Example:
        >>> import asyncio
        >>> from agui_pipeline.adapters.testing import collect
        >>> from agui_pipeline.middleware import Pipeline
        >>> old_agent = [
        ...     {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        ...     {"type": "CUSTOM", "name": "on_interrupt", "value": '"Delete it?"'},
        ...     {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
        ... ]
        >>> result = asyncio.run(collect(Pipeline(old_agent, UpgradeMiddleware(on_diagnostic=lambda diagnostic: None))))
        >>> result.outcome, result.events[-1].outcome["interrupts"][0]["message"]
        ('interrupt', 'Delete it?')
    """

    def __init__(
        self,
        *,
        keep_custom: bool = True,
        new_id: Callable[[], str] | None = None,
        pending: PendingStore | None = None,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        super().__init__(on_diagnostic=on_diagnostic)
        check_choice("keep_custom", keep_custom, (True, False))
        check_callable("new_id", new_id, "() -> str", optional=True)
        check_store("pending", pending, PendingStore, "a PendingInterrupts, or another PendingStore")
        self._keep_custom = keep_custom
        self._new_id = new_id
        self.pending: PendingStore = PendingInterrupts() if pending is None else pending

    def translator(self, input: RunAgentInput) -> UpgradeTranslator:
        """Return an upgrade for one run."""
        key = self.pending.key(input)
        return UpgradeTranslator(
            input.thread_id,
            input.run_id,
            run_sink(self.on_diagnostic),
            new_id=self._new_id,
            keep_custom=self._keep_custom,
            on_interrupts=lambda interrupts: self.pending.remember(key, interrupts),
        )

    def prepare(self, input: RunAgentInput) -> RunAgentInput:
        """Return the input as older agents read it: answers where they look for them, tool results as text."""
        sink = run_sink(self.on_diagnostic)

        def note(code: str, words: str) -> None:
            code = f"upgrade.{code}"
            sink(Diagnostic(code, f"{DIAGNOSTICS[code]} ({words})"))

        made = self.pending.open(self.pending.key(input))
        return with_text_results(with_command(input, note, made), note)
