"""LangGraph, through ag-ui-langgraph: a graph or an agent as a source, and an agent with a chain in it.

Knows the options, and the course of a run, which ag-ui-langgraph leaves open where it is left early. What is made of a
graph is in `_langgraph_agent.py`, what becomes of the events in `_langgraph_events.py`; how LangGraph's events become
those of AG-UI, ag-ui-langgraph knows alone. LangGraph runs on asyncio only, and so does this.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Self, cast

from ag_ui.core import RunAgentInput

from agui_pipeline.adapters._langgraph_agent import ClosedGraph, agent_of, answer_by_id
from agui_pipeline.adapters._langgraph_events import Outgoing, view
from agui_pipeline.middleware import Pipeline, Stage
from agui_pipeline.middleware._options import check_callable, check_choice
from agui_pipeline.middleware._pump import Pump
from agui_pipeline.middleware._segment import Segment, raise_closing
from agui_pipeline.translators import ConfigurationError, DiagnosticSink, Event, WireEvent
from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION, PROTOCOL_VERSION
from agui_pipeline.translators._diagnostics import run_sink

__all__ = ["LangGraphSource", "WrappedAgent", "wrap_agent"]


class LangGraphSource:
    """A LangGraph graph, or an agent of ag-ui-langgraph, as a `Source`: any number of runs, also at once.

    Each run has a clone of the agent: ag-ui-langgraph keeps the state of a run on its agent. Up to 64 events are read
    ahead of the reader.

    What differs from the events of the bare agent:

    - No RAW events and no `rawEvent` copies of LangGraph's own events: they are nine tenths of a stream and more.
    - RUN_STARTED declares the protocol's version, as AG-UI 1.0 wants it. So does the input that the agent gets.
    - Events are views over JSON (`WireEvent`). A state with objects that JSON has no form for is sent with their
      ``str()``, and a diagnostic (``encode.object``); the SDK's encoder would break the stream off there.
    - A RUN_ERROR comes last, what the run left open is closed before it, and it does not tell the client what the
      exception said. That is in the log.
    - A run that is left early, or cancelled in whatever way, is over when its iterator is closed: the nodes' `finally`
      have run. The bare agent's nodes run on for a while, or for ever.
    - For a graph (an agent's own settings stay as they are): an interrupt is told in RUN_FINISHED's outcome, as AG-UI
      1.0 has it, without LangGraph's older ``on_interrupt`` event, and `RunAgentInput.resume` may answer several
      interrupts, each by its id. An answer to one that is not open, while others are, fails the run and answers none.

    Args:
        graph_or_agent: A compiled graph with a checkpointer, or a `LangGraphAgent` (or one of a subclass).
        name: The agent's name, for a graph. An agent has one.
        raw_events: Whether LangGraph's own events are sent, too, if the agent is set to send them.
        interrupt_outcome: Whether an interrupt is in the run's outcome, as AG-UI 1.0 has it; an agent may send
            LangGraph's older CUSTOM ``on_interrupt`` beside it. None: as the agent is set (a graph: True).
        expose_errors: Whether RUN_ERROR and SUBAGENT_ERROR say what the exception said.
        on_diagnostic: Gets each `Diagnostic` (codes ``langgraph.*`` and ``encode.*``). Default: the log.

    Raises:
        ConfigurationError: The extra is not installed, an option has a value it cannot have, or it is neither a
            compiled graph with a checkpointer nor an agent.

    Example (docs/sources.md has it in full)::

        source = LangGraphSource(graph.compile(checkpointer=InMemorySaver()))
        app = agent_app(source, EventThrottleMiddleware(), path="/agent")
    """

    def __init__(
        self,
        graph_or_agent: object,
        *,
        name: str = "langgraph",
        raw_events: bool = False,
        interrupt_outcome: bool | None = None,
        expose_errors: bool = False,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        if type(name) is not str or not name:
            raise ConfigurationError(f"name={name!r}: must be a string that is not empty")
        check_choice("raw_events", raw_events, (False, True))
        check_choice("interrupt_outcome", interrupt_outcome, (None, False, True))
        check_choice("expose_errors", expose_errors, (False, True))
        check_callable("on_diagnostic", on_diagnostic, "(Diagnostic) -> None", optional=True)
        self._agent = agent_of(graph_or_agent, name)
        self._raw_events = raw_events
        self._interrupt_outcome = interrupt_outcome
        self._expose_errors = expose_errors
        self.on_diagnostic = on_diagnostic

    @property
    def name(self) -> str:
        """The agent's name."""
        return cast("str", self._agent.name)

    def __call__(self, input: RunAgentInput) -> AsyncGenerator[Event, None]:
        """Start a run: an async generator of its events."""
        return cast("AsyncGenerator[Event, None]", self._run(input))

    run = __call__

    def with_agent(self, agent: object) -> LangGraphSource:
        """Return a source with the same options for another agent."""
        return LangGraphSource(
            agent,
            raw_events=self._raw_events,
            interrupt_outcome=self._interrupt_outcome,
            expose_errors=self._expose_errors,
            on_diagnostic=self.on_diagnostic,
        )

    async def _run(self, input: RunAgentInput) -> AsyncGenerator[WireEvent, None]:
        outgoing = Outgoing(run_sink(self.on_diagnostic), expose_errors=self._expose_errors)
        # In a task of its own: LangGraph does not stop its nodes where it is cancelled by a scope of anyio, which cuts
        # every await of its cleanup, too. Starlette cancels that way when a client leaves.
        pump = Pump(functools.partial(self._open, input))
        error: BaseException | None = None
        try:
            async for event in pump.channel:
                for sent in outgoing.take(event):
                    yield sent
                if outgoing.over:
                    break
        except BaseException as exc:
            error = exc
            raise
        finally:
            raise_closing(await pump.stop(), error)

    def _open(self, input: RunAgentInput, segment: Segment) -> AsyncIterator[Any]:
        agent = self._agent.clone()
        if not self._raw_events:
            agent.emit_raw_events = False
        if self._interrupt_outcome is not None:
            agent.emit_interrupt_outcome = self._interrupt_outcome
        answer_by_id(agent)
        agent.graph = ClosedGraph(agent.graph, segment)
        place = segment.reserve()
        events: AsyncIterator[Any] = agent.run(_declared(input))
        segment.fill(place, events)
        return events


class WrappedAgent:
    """An agent of ag-ui-langgraph with a chain in it: ``name``, ``clone()``, ``run(input)`` and all else it has.

    Made by `wrap_agent`.
    """

    def __init__(self, agent: Any, source: LangGraphSource, pipeline: Pipeline) -> None:
        self._agent = agent
        self._source = source
        self._pipeline = pipeline
        self.name: str = source.name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of a half-made copy, too
            raise AttributeError(name)
        return getattr(self._agent, name)

    def clone(self) -> Self:
        """Return a clone of the agent in the same chain. `add_langgraph_fastapi_endpoint` asks for one a request."""
        agent = self._agent.clone()
        source = self._source.with_agent(agent)
        return type(self)(agent, source, self._pipeline.around(source))

    async def run(self, input: RunAgentInput) -> AsyncIterator[WireEvent]:
        """Start a run: an async generator of events that any encoder can encode."""
        sink = run_sink(self._source.on_diagnostic)
        async with self._pipeline.open(input) as events:
            async for event in events:
                # A stage's own event may hold what the SDK's encoder raises at, in the middle of an HTTP answer.
                yield event if type(event) is WireEvent else view(event, sink)


def wrap_agent(
    agent: object,
    *middleware: Stage,
    raw_events: bool = False,
    interrupt_outcome: bool | None = None,
    expose_errors: bool = False,
    on_diagnostic: DiagnosticSink | None = None,
) -> WrappedAgent:
    """Put a chain into an agent of ag-ui-langgraph, which mounts in `add_langgraph_fastapi_endpoint` as before.

    The agent itself is not changed. Clients of AG-UI 1.0 need `interrupt_outcome`, or an agent that was made with
    ``emit_interrupt_outcome=True``; else it tells of interrupts in LangGraph's older way only.

    Args:
        agent: A `LangGraphAgent`, or one of a subclass; a compiled graph gets an agent.
        *middleware: The chain, as in a `Pipeline`: the first stage is nearest the agent, the last nearest the client.
        raw_events: As in `LangGraphSource`, which has the rest of what changes.
        interrupt_outcome: As in `LangGraphSource`.
        expose_errors: As in `LangGraphSource`.
        on_diagnostic: As in `LangGraphSource`.

    Raises:
        ConfigurationError: As `LangGraphSource`; or a middleware is none, or speaks another protocol than AG-UI: the
            endpoint's encoder would not take its frames.

    Example (docs/sources.md has it in full)::

        agent = LangGraphAgent(name="assistant", graph=graph, emit_interrupt_outcome=True)
        chain = [EventThrottleMiddleware(), GuardMiddleware()]
        add_langgraph_fastapi_endpoint(app, wrap_agent(agent, *chain), "/agent")
    """
    source = LangGraphSource(
        agent,
        raw_events=raw_events,
        interrupt_outcome=interrupt_outcome,
        expose_errors=expose_errors,
        on_diagnostic=on_diagnostic,
    )
    for stage in middleware:
        if getattr(stage, "leaves_agui", False):
            raise ConfigurationError(
                f"{type(stage).__name__} leaves AG-UI, and the endpoint of ag-ui-langgraph can encode AG-UI only: "
                "serve a LangGraphSource with agent_app, or put AGUIMiddleware around the endpoint"
            )
    return WrappedAgent(source._agent, source, Pipeline(source, *middleware))  # noqa: SLF001 - of this module


def _declared(input: RunAgentInput) -> RunAgentInput:
    """Declare the version that the agent is spoken to in, where the SDK has a place for it."""
    if not HAS_PROTOCOL_VERSION or getattr(input, "protocol_version", None) is not None:
        return input
    return input.model_copy(update={"protocol_version": PROTOCOL_VERSION})
