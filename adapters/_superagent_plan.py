"""What a request to a session comes to: which agent is run with which input, or what is said without a run.

Knows sessions, interrupts and their answers. Does not know HTTP but for the refusals, nor dialects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ag_ui.core import RunAgentInput

from agui_pipeline.adapters._superagent_agents import Agents
from agui_pipeline.adapters._superagent_answers import resume_entry
from agui_pipeline.adapters._superagent_requests import Asked, RefusedError
from agui_pipeline.adapters._superagent_run import Visit
from agui_pipeline.adapters._superagent_sessions import DIAGNOSTICS, JSONObject, Session, answered
from agui_pipeline.translators import DecodeError, Diagnostic, DiagnosticSink, run_input
from agui_pipeline.translators._upgrade_interrupts import with_command


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done.

    Attributes:
        agent_id: The agent's name, where it has one.
        source: What gives the events.
        input: The run's input.
        session: What the session is besides what the run adds; None where no agent is run.
    """

    agent_id: str | None
    source: Any
    input: RunAgentInput
    session: Session | None


async def plan_message(
    asked: Asked, visit: Visit, agents: Agents, *, history: bool, again: bool, sink: DiagnosticSink
) -> Plan:
    """Return what a message (or, without one, a look at what an agent has to say) comes to.

    A message cancels the interrupts that are open. A look shows them; `again`, where a stream broke off, it shows them
    or ends, and never starts a run.

    Raises:
        RefusedError: There is no such agent, or another request has taken the interrupts.
    """
    session = visit.session
    agent_id, source = await agents.find(asked.agent_id or session.agent_id)
    if again or (asked.message is None and session.waiting):
        return _without_run(agent_id, asked, session)
    # An agent of before 1.0 is not told: it goes on from the message by itself.
    given_up = () if session.legacy else session.interrupts
    cancelled = [{"interruptId": interrupt["id"], "status": "cancelled"} for interrupt in given_up]
    messages = session.messages if cancelled else answered(session.messages, sink)
    input = _input(asked, session if history else Session(), messages if history else (), cancelled, sink)
    if session.interrupts and not await visit.claim(replace(session, interrupts=(), answers=())):
        raise busy()
    return Plan(agent_id, source, input, replace(visit.session, agent_id=agent_id))


async def plan_answer(asked: Asked, visit: Visit, agents: Agents, *, history: bool, sink: DiagnosticSink) -> Plan:
    """Return what an answer comes to: a run once every open interrupt has one, until then the questions that are left.

    Raises:
        RefusedError: There is no such session or agent, nothing to resume, or the answer is none.
    """
    session = visit.session
    if not visit.known:
        raise RefusedError(404, "unknown_session", "there is no such session, or it has expired")
    agent_id, source = await agents.find(asked.agent_id or session.agent_id)
    waiting = session.waiting
    if not waiting:
        raise RefusedError(409, "nothing_to_resume", "the session waits for no answer")
    if asked.agent_id is not None and session.agent_id is not None and asked.agent_id != session.agent_id:
        raise RefusedError(409, "nothing_to_resume", "the session waits for the answer to another agent")
    assert asked.answer is not None  # noqa: S101 - a resume has one
    try:
        entry = resume_entry(waiting[0], asked.answer)
    except DecodeError as exc:
        raise RefusedError(400, "invalid_request", str(exc)) from None
    entries = [*session.answers, entry]
    if len(waiting) > 1:
        if not await visit.claim(replace(session, answers=entries), final=True):
            raise busy()
        return _without_run(agent_id, asked, visit.session)
    remembered = session if history else Session()
    input = _input(asked, remembered, remembered.messages, entries, sink)
    if session.legacy:
        input = with_command(input, _unsaid)
    if not await visit.claim(replace(session, interrupts=(), answers=())):
        raise busy()
    return Plan(agent_id, source, input, visit.session)


def _unsaid(_code: str, _words: str) -> None:
    """Take news that is none: old clients, too, answer where old agents look."""


def busy() -> RefusedError:
    """Return the refusal of a request whose session is in a run."""
    return RefusedError(409, "session_busy", "another request goes on with the session")


def asked_input(asked: Asked, **fields: Any) -> RunAgentInput:
    """Return a request as an input, with further fields.

    Raises:
        RefusedError: It cannot be one.
    """
    try:
        return run_input(asked.message, thread_id=asked.session_id, forwarded_props=dict(asked.props), **fields)
    except DecodeError as exc:
        raise RefusedError(400, "invalid_request", str(exc)) from None


def _input(
    asked: Asked, session: Session, messages: Sequence[JSONObject], resume: list[JSONObject], sink: DiagnosticSink
) -> RunAgentInput:
    more: Mapping[str, Any] = {"state": session.state, **({"resume": resume} if resume else {})}
    try:
        return asked_input(asked, messages=messages, **more)
    except RefusedError:
        # A message that an agent made up and no agent would take: it must not end the session for good.
        kept = [message for message in messages if _is_readable(message)]
        text = f"{DIAGNOSTICS['superagent.unreadable']} ({len(messages) - len(kept)})"
        sink(Diagnostic("superagent.unreadable", text, detail={"count": len(messages) - len(kept)}))
        return asked_input(asked, messages=kept, **more)


def _is_readable(message: JSONObject) -> bool:
    try:
        run_input(messages=[message])
    except DecodeError:
        return False
    return True


def _without_run(agent_id: str | None, asked: Asked, session: Session) -> Plan:
    """Return the questions that are open, as a run that asks nothing of any agent."""
    input = run_input(thread_id=asked.session_id)
    run = {"threadId": input.thread_id, "runId": input.run_id}
    outcome = {"type": "interrupt", "interrupts": list(session.waiting)} if session.waiting else {"type": "success"}
    events = [{"type": "RUN_STARTED", **run}, {"type": "RUN_FINISHED", **run, "outcome": outcome}]
    return Plan(agent_id, events, input, None)
