"""Which dialect a request asks for, and what its body says as a `RunAgentInput`.

Knows the old HTTP API's opt-in, bodies and parameters. Does not know about sessions: what a client said before, and
what it is answering, is not in its body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from ag_ui.core import RunAgentInput
from starlette.requests import Request

from agui_pipeline.middleware import Middleware, TranslatorMiddleware
from agui_pipeline.middleware._options import check_choice
from agui_pipeline.middleware.legacy import LegacyDowngradeMiddleware
from agui_pipeline.translators import DecodeError, run_input
from agui_pipeline.translators.superagent import COMPATIBLE, DIALECTS, ENVELOPED, FLAT

OPT_IN: Final = "x-a2ui"
"""The header that asks for a dialect."""
OPT_IN_PARAMETER: Final = "a2ui"
"""The query parameter that does."""
_OPT_INS: Final[Mapping[str, str]] = {"true": ENVELOPED, "1": ENVELOPED, "flat": FLAT}

_OURS: Final = frozenset({"message", "session_id", "session", "input", "answer", OPT_IN_PARAMETER})
"""What of an old body, or of its query, is said elsewhere in an input. All else goes on as `forwarded_props`."""


class Negotiated(list["Middleware | TranslatorMiddleware"]):
    """What `negotiate` found: the stages to put at the client's end of a chain.

    Attributes:
        dialect: The dialect; None for AG-UI, where there are no stages.
        input: What an old body says as an input; None where the body is one itself.
    """

    def __init__(
        self,
        stages: Iterable[Middleware | TranslatorMiddleware] = (),
        *,
        dialect: str | None = None,
        input: RunAgentInput | None = None,
    ) -> None:
        super().__init__(stages)
        self.dialect = dialect
        self.input = input

    def behind(self, *middleware: Middleware | TranslatorMiddleware) -> Negotiated:
        """Return the same behind other stages, which are nearer the source.

        Example:
            >>> from agui_pipeline.middleware import EventThrottleMiddleware
            >>> def chain(request, body):
            ...     return negotiate(request, body).behind(EventThrottleMiddleware())
        """
        return Negotiated([*middleware, *self], dialect=self.dialect, input=self.input)


def negotiate(
    request: Request,
    body: Any,
    default_dialect: str | None = None,
    *,
    tool_call_updates: bool = False,
    shown: Collection[str] = (),
) -> Negotiated:
    """Return the stages that speak the dialect a request asks for.

    The first that holds:

    1. ``X-A2UI: true``, or ``?a2ui=true``: enveloped; ``flat`` in place of ``true``, which no old client says: flat;
    2. an AG-UI body (it has `messages`): AG-UI, untouched;
    3. a GET, which is how an `EventSource` asks: flat;
    4. an old body (`message`, or `session_id`): the `default_dialect`; without one, flat where it carries an `answer`,
       else compatible;
    5. anything else: AG-UI, untouched.

    For `AGUIMiddleware(middleware=negotiate)`: one endpoint then serves AG-UI front ends and old ones. An old body
    becomes a `RunAgentInput` before the wrapped app sees it: `message` the user's message, `session_id` the thread id,
    the run id a new one, other fields `forwarded_props`. Nothing is remembered there: the app must know its threads by
    itself, and answers to interrupts (which name none) are not understood. `routes` does both.

    Args:
        request: The request.
        body: Its decoded JSON; bytes where it is none.
        default_dialect: One of the three dialects, for old bodies that do not opt in.
        tool_call_updates: As in `LegacyDowngradeMiddleware`.
        shown: Likewise; `routes` knows it from the session.

    Raises:
        ConfigurationError: There is no such dialect.

    Example:
        >>> request = Request({"type": "http", "method": "POST", "headers": [], "query_string": b"a2ui=true"})
        >>> found = negotiate(request, {"agent_id": "a", "session_id": "s", "message": "hello"})
        >>> found.dialect, found.input.thread_id, found.input.messages[0].content, found.input.forwarded_props
        ('superagent', 's', 'hello', {'agent_id': 'a'})
    """
    if default_dialect is not None:
        check_choice("default_dialect", default_dialect, tuple(DIALECTS))
    dialect = _dialect(request, body, default_dialect)
    if dialect is None:
        return Negotiated()
    stage = LegacyDowngradeMiddleware(
        dialect, tool_call_updates=tool_call_updates, agent_id=agent_of(body), shown=shown
    )
    return Negotiated([stage], dialect=dialect, input=_old_input(body))


def _dialect(request: Request, body: Any, default: str | None) -> str | None:
    for said in (request.headers.get(OPT_IN), request.query_params.get(OPT_IN_PARAMETER)):
        opted = _OPT_INS.get((said or "").strip().lower())
        if opted is not None:
            return opted
    if is_agui(body):
        return None
    if request.method == "GET":
        return FLAT
    if isinstance(body, Mapping) and ("message" in body or "session_id" in body):
        return default or (FLAT if "answer" in body else COMPATIBLE)
    return None


def is_agui(body: Any) -> bool:
    """Whether a body is (meant as) a RunAgentInput."""
    return isinstance(body, Mapping) and "messages" in body


def agent_of(body: Any) -> str | None:
    """Return the agent that a body names: an old one by itself, an AG-UI one in what it forwards."""
    said = body.get("forwardedProps") if is_agui(body) else body
    agent = said.get("agent_id") if isinstance(said, Mapping) else None
    return agent if isinstance(agent, str) else None


def _old_input(body: Any) -> RunAgentInput | None:
    """Return the input that an old body is; None where it is none, or answers what only a session knows."""
    if not isinstance(body, Mapping) or is_agui(body):
        return None
    message, session = body.get("message"), body.get("session_id")
    if not isinstance(message, str) or not (session is None or isinstance(session, str)):
        return None
    try:
        return run_input(message, thread_id=session, forwarded_props=forwarded(body))
    except DecodeError:
        return None  # nested too deep


def forwarded(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an old body says beside the message and the session: the agent may know what to do with it."""
    return {name: value for name, value in body.items() if name not in _OURS}
