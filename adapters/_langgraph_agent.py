"""The agent of a run: ag-ui-langgraph's, for a graph or as it is given, with what it leaves to others.

Knows ag-ui-langgraph's classes and one method of theirs, and which graphs cannot work. Does not know about events.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from agui_pipeline.middleware._segment import Segment
from agui_pipeline.translators import ConfigurationError

_INSTALL: Final = "pip install 'agui-pipeline[langgraph]'"
_WANTED: Final = "a compiled graph (StateGraph(…).compile(checkpointer=…)) or an ag_ui_langgraph.LangGraphAgent"


def agent_of(graph_or_agent: object, name: str) -> Any:
    """Return the agent; for a graph, one that tells of interrupts, and takes answers, as AG-UI 1.0 does."""
    try:
        from ag_ui_langgraph import LangGraphAgent  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
        from langgraph.graph.state import CompiledStateGraph, StateGraph  # noqa: PLC0415 - comes with it
    except ImportError as exc:
        raise ConfigurationError(f"LangGraph needs an extra: {_INSTALL} ({exc})") from exc
    if isinstance(graph_or_agent, LangGraphAgent):
        return graph_or_agent
    if isinstance(graph_or_agent, StateGraph):
        raise ConfigurationError(f"graph is a StateGraph that is not compiled; it must be {_WANTED}")
    if not isinstance(graph_or_agent, CompiledStateGraph):
        raise ConfigurationError(f"graph_or_agent is {type(graph_or_agent).__name__}; it must be {_WANTED}")
    if not graph_or_agent.checkpointer:
        raise ConfigurationError(
            "the graph was compiled without a checkpointer, in which ag-ui-langgraph looks up each thread: "
            "graph.compile(checkpointer=…)"
        )
    return LangGraphAgent(
        name=name, graph=graph_or_agent, emit_interrupt_outcome=True, enable_legacy_on_interrupt_event=False
    )


def answer_by_id(agent: Any) -> None:
    """Let an agent resume each interrupt by its id, as LangGraph itself does it; one whose class decides is left alone.

    ag-ui-langgraph hands the graph a lone payload as it is, which answers whatever is open, and several as a map of its
    own, which the graph does not know.
    """
    from ag_ui_langgraph import LangGraphAgent  # noqa: PLC0415 - an extra
    from ag_ui_langgraph.interrupts import (  # type: ignore[import-untyped]  # noqa: PLC0415
        DEFAULT_RESUME_SENTINEL_CANCELLED,
    )
    from langgraph.types import Command  # noqa: PLC0415

    name = "_build_command_from_agui_resume"
    if getattr(type(agent), name, None) is not getattr(LangGraphAgent, name, None):
        return
    plain = getattr(agent, name)
    # In LangGraph's older way a client hears no ids, and names an interrupt as somebody on the way has called it.
    tells_ids = agent.emit_interrupt_outcome or not agent.enable_legacy_on_interrupt_event

    def command(entries: list[Any], *, open_interrupts: Any = None) -> Any:
        asked = {interrupt.id for interrupt in open_interrupts or ()}
        strange = [entry.interrupt_id for entry in entries if entry.interrupt_id not in asked]
        if not asked or (strange and not tells_ids):
            return plain(entries)
        if strange:
            # A second click on "yes" must not be the answer to the next question.
            raise ValueError(f"resume answers {strange[0]!r}, which is not open; open: {sorted(asked)}")
        return Command(
            resume={
                entry.interrupt_id: entry.payload
                if entry.status == "resolved"
                else {DEFAULT_RESUME_SENTINEL_CANCELLED: True, "interrupt_id": entry.interrupt_id}
                for entry in entries
            }
        )

    setattr(agent, name, command)


class ClosedGraph:
    """A graph whose streams of events are closed with the run.

    ag-ui-langgraph loops over them and leaves them to the garbage collector: nodes would run on when a run is over.
    """

    def __init__(self, graph: Any, segment: Segment) -> None:
        self._graph = graph
        self._segment = segment

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._graph, name)
        return self._closed(value) if name == "astream_events" else value

    def _closed(self, astream_events: Any) -> Any:
        @functools.wraps(astream_events)  # it is looked at, for what it accepts
        def stream(*args: Any, **kwargs: Any) -> Any:
            place = self._segment.reserve()
            events = astream_events(*args, **kwargs)
            self._segment.fill(place, events)
            return events

        return stream
