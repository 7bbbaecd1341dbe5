"""Old agents as remote sources: runs in the dialects of Superagent.

Knows what the old HTTP API is sent for a run. Does not know what the frames of its answer mean (`SuperagentUpgrade`),
nor about connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final
from uuid import uuid4

import httpx
from ag_ui.core import RunAgentInput

from agui_pipeline.adapters._http_exchange import Call, ExchangeFactory
from agui_pipeline.middleware._options import check_choice
from agui_pipeline.translators import (
    AGUIPipelineError,
    AnyEvent,
    ConfigurationError,
    Diagnostic,
    DiagnosticSink,
    SSEFrame,
)
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.superagent import DIALECTS, ENVELOPED, FLAT, SuperagentUpgrade

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "http.old-input": "the old API of the remote agent has no place for a part of the input, which was left out",
}
"""The diagnostics of asking an old agent, by code."""

_OPT_INS: Final[Mapping[str, str]] = {ENVELOPED: "true", FLAT: "flat"}
"""What ``X-A2UI`` says. Agents that know but one dialect do not look at it."""
_NO: Final[Mapping[str, Mapping[str, Any]]] = {
    dialect: {"answer": "no"} if dialect == FLAT else {"input": {"confirm": False}} for dialect in DIALECTS
}
_ANSWERS: Final = frozenset({"assistant", "tool"})
_ASIDE: Final = frozenset({"message", "session_id", "input", "answer"})


def exchange_for(dialect: str, *, agent_id: str | None = None) -> ExchangeFactory:
    """Return what makes an exchange a run, in one dialect.

    Args:
        dialect: ``"superagent"``, ``"superagent-flat"`` or ``"superagent-compatible"``.
        agent_id: Which of the remote agents is asked. Default: ``forwardedProps.agent_id`` of a run, if it has one.

    Raises:
        ConfigurationError: There is no such dialect.
    """
    check_choice("dialect", dialect, tuple(DIALECTS))
    if not (agent_id is None or isinstance(agent_id, str)):
        raise ConfigurationError(f"agent_id={agent_id!r}: must be None or a str")
    return partial(_SuperagentExchange, dialect, agent_id)


class _SuperagentExchange:
    """One run of an old agent.

    A run that carries `resume` answers the interrupt that the last one ended with, at the address beside the stream's
    (``…/chat/resume`` beside ``…/chat/stream``); any other sends the user's new message to the session that is the
    thread. The old agent knows what was said before; it has no place for tools, context, state, or what is not text.
    """

    def __init__(self, dialect: str, agent_id: str | None, input: RunAgentInput, sink: DiagnosticSink) -> None:
        self._dialect = dialect
        self._agent_id = agent_id
        self._input = input
        self._sink = sink
        self._upgrade = SuperagentUpgrade(dialect, input=input, sink=sink, new_id=lambda: str(uuid4()))

    @property
    def complete(self) -> bool:
        """Whether the run has had its terminal event."""
        return self._upgrade.complete

    def call(self, url: str) -> Call:
        """Return the message, or the answer."""
        input = self._input
        props = input.forwarded_props if isinstance(input.forwarded_props, Mapping) else {}
        body: dict[str, Any] = {name: value for name, value in props.items() if name not in _ASIDE}
        if self._agent_id is not None:
            body["agent_id"] = self._agent_id
        body["session_id"] = input.thread_id
        lost = [name for name in ("tools", "context", "state") if getattr(input, name)]
        entries = list(input.resume or ())
        answers = [entry.payload for entry in entries if entry.status == "resolved"]
        message, left = _new_message(input)
        if answers or (entries and message is None):
            url = str(httpx.URL(url).copy_with(raw_path=_beside(httpx.URL(url))))
            # One at a time: the agent asks for the others again. Giving up is no answer there; saying no is.
            body |= self._answer(answers[0]) if answers else _NO[self._dialect]
            lost += ["resume"] * (len(entries) > 1 or not answers)
        else:
            body["message"] = message or ""
            lost += ["messages"] * left
        if lost:
            text = f"{DIAGNOSTICS['http.old-input']} ({', '.join(lost)})"
            self._sink(Diagnostic("http.old-input", text, detail={"fields": lost}))
        opt_in = _OPT_INS.get(self._dialect)
        return Call(url, encode_json(body, self._sink), headers={"x-a2ui": opt_in} if opt_in else {})

    def _answer(self, payload: Any) -> dict[str, Any]:
        if self._dialect != FLAT:
            return {"input": payload if isinstance(payload, Mapping) else {"answer": payload}}
        if isinstance(payload, Mapping):
            payload = next(iter(payload.values())) if len(payload) == 1 else dict(payload)
        scalar = isinstance(payload, str | bool | int | float)
        return {"answer": payload if scalar else encode_json(payload, self._sink).decode()}

    def feed(self, frame: SSEFrame) -> Iterable[AnyEvent]:
        """Give the events of a frame."""
        return self._upgrade.feed(frame)

    def flush(self) -> Iterable[AnyEvent]:
        """Give what is held."""
        return self._upgrade.flush()

    def fail(self, exc: AGUIPipelineError, code: str) -> Iterable[AnyEvent]:
        """Give what is held, and a RUN_ERROR."""
        events, _ = self._upgrade.fail(exc, code, str(exc))
        return events


def _beside(url: httpx.URL) -> bytes:
    """Return the path of the resume, which is beside that of the stream; the query stays."""
    path, mark, query = url.raw_path.partition(b"?")
    return path.rpartition(b"/")[0] + b"/resume" + mark + query


def _new_message(input: RunAgentInput) -> tuple[str | None, bool]:
    """Return the text of the user's new message, and whether it had more than text.

    None where there is none: what stands before an answer was said in another run, and must not be said again.
    """
    for message in reversed(input.messages):
        if message.role in _ANSWERS:
            break
        if message.role == "user":
            content = message.content
            if isinstance(content, str):
                return content, False
            texts = [field_of(part, "text", "text") for part in content]
            return "\n".join(text for text in texts if isinstance(text, str)), None in texts
    return None, False
