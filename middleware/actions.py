"""What users do with A2UI surfaces becomes what the agent reads, once however often it is sent.

Knows the options, which client messages are refused, and what the agent may see. What a message must hold and how it
is told is `agui_pipeline.translators.a2ui_client`'s; how a repeat is answered, `_repeats.py`'s.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._capabilities import CapabilityStore, ClientCapabilities
from agui_pipeline.middleware._options import check_callable, check_choice, check_count, check_number, check_store
from agui_pipeline.middleware._recent_requests import RecentRequests
from agui_pipeline.middleware._recordings import ActionRecording, ActionRecordings, ActionStore
from agui_pipeline.middleware._refusals import (
    CONFLICT,
    INVALID,
    RUNNING,
    UNKNOWN_SURFACE,
    OverLimitError,
    RefusedError,
    run_error,
)
from agui_pipeline.middleware._repeats import DIAGNOSTICS as REPEATS
from agui_pipeline.middleware._repeats import Repeats, Request, WhileRunning
from agui_pipeline.middleware._request import request_header
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.middleware._types import Source
from agui_pipeline.translators import (
    AnyEvent,
    ConfigurationError,
    DecodeError,
    Diagnostic,
    DiagnosticSink,
    LimitError,
)
from agui_pipeline.translators._a2ui_action_states import ActionStates
from agui_pipeline.translators._a2ui_client_carriers import empty_carrier
from agui_pipeline.translators._a2ui_client_data import screen_data_models
from agui_pipeline.translators._a2ui_client_prompt import STYLES, Style, tell_agent
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._keys import by_thread
from agui_pipeline.translators.a2ui import A2UILimits, CatalogAliases, SurfaceRegistry
from agui_pipeline.translators.a2ui_client import (
    MAX_REQUEST_ID,
    A2UIClientMessage,
    Extract,
    client_capabilities,
    parse_client_message,
)

__all__ = [
    "A2UIActionMiddleware",
    "ActionRecording",
    "ActionRecordings",
    "ActionStore",
    "CapabilityStore",
    "ClientCapabilities",
]

UnknownSurfaces: TypeAlias = Literal["pass", "refuse"]

_HEADER: Final = "idempotency-key"
_LIMITS: Final = A2UILimits()
_NO_ALIASES: Final[Mapping[str, str]] = MappingProxyType({})


class A2UIActionMiddleware:
    """Tells the agent what a user did with a surface, or which error the client met, as a message it can read.

    A client message is found wherever clients put it (see
    `agui_pipeline.translators.a2ui_client.parse_client_message`). Runs about something else pass as they are. The
    rest of the input stays as it came, but for the data model: of ``forwardedProps.a2ui.clientDataModel`` and of what
    is told only the surfaces remain that were created with ``sendDataModel``, as `registry` knows; without one, none.

    How it is told (`style`), always as data, never in a message of the system:

    - ``"user_message"``: the JSON of the message as a user message, as tRPC-Agent-Go's client sends it, its data
      model beside it as ``clientDataModel``;
    - ``"tool_call"``: an assistant's call of ``log_a2ui_event`` with the action as arguments, and its result, ``User
      performed action "n" on surface "s" (component: b). Context: {…}``, as the official A2UI middleware does;
    - ``"text"``: a user message for readers of prose, a value a line.

    A message that travelled as a user message is told in its place, any other behind the last message.

    What is refused starts nothing: a message without its required fields or over a limit; an action for a surface
    that is not there, with ``unknown_surfaces="refuse"``; a repeat that must wait. Adapters answer with an HTTP error
    where `admit` can know it; else the stream is one RUN_ERROR that says what is wrong. The code is the same:
    ``a2ui_action_invalid``, ``a2ui_surface_unknown``, ``a2ui_request_running``, ``a2ui_request_conflict``.

    A request that is sent again is answered once. It is the same where `key` and its ``requestId`` are, or, where its
    envelope has none, the HTTP header ``Idempotency-Key``; another message under the same id is refused. Without either
    it runs each time it comes, unless `same_within` says what a double click is. A repeat gets
    the recorded stream as it was, the first run's ids included. While the first is running it is refused, or joins:
    it gets what the first gave so far, then the rest as it comes. A run is recorded when its RUN_FINISHED comes;
    one that was cut (its client left, it was cancelled, its source raised), that ended in RUN_ERROR, or in the outcome
    ``cancelled``, is not, so that a retry runs. Those who joined a run that is cut get RUN_ERROR
    (``a2ui_request_cut``).

    Guarantees:
        - Order is kept and nothing is held; a reader that joined and is slow keeps nobody waiting.
        - A message is told once, also where a history already holds it.

    Put it behind the `A2UIMiddleware` whose registry it shares: what is recorded is what the client got.

    Args:
        style: How the agent is told.
        extract: ``(input) -> mapping or None`` for messages that travel elsewhere; see `parse_client_message`.
        registry: The surfaces that there are: the one that was given to `A2UIMiddleware`.
        unknown_surfaces: ``"refuse"``: an action for a surface that was never created, or was deleted, is refused.
            Needs `registry`: one in memory knows no surface after a restart. Errors are always told.
        while_running: What becomes of a repeat while the first is running: ``"refuse"`` or ``"join"``.
        same_within: Seconds. A message without an id is a repeat of an equal one (the same thread, message and data
            model, whatever its ``timestamp``) that came less than so long ago, in this process. 0: never. For clients
            that give their requests no id, as CopilotKit's: long enough for a double click, too short for a second one
            that is meant.
        store: Keeps recordings: an `ActionRecordings` (the default), or any `ActionStore`. Which requests are running
            is known in this process and object only.
        max_recording_bytes: Bytes of JSON of a stream that is recorded, or joined; a larger one runs again when it is
            repeated.
        action_states: Whether CUSTOM events named ``a2ui.action_state`` tell the client how far an action has come:
            ``{"surfaceId", "interactionDisabled", "states": {componentId: {"status", "retryable"?}}}``, ``pending``
            behind RUN_STARTED, then ``succeeded``, ``failed`` or ``cancelled`` before the terminal event. An event of
            this name that the agent sends itself is the last word of a run that succeeds.
        capabilities: Remembers what the clients of threads can render, whenever they say so; for the planner.
        catalog_aliases: The client's catalog ids by the agent's, as of `A2UIMiddleware`: the agent's are remembered.
        key: The thread of a request, in `store` and `capabilities`: ``(input) -> str``. Default: the thread id, which
            clients choose. Where several users share a server, put the user in.
        limits: What a client message may be.
        clock: Gives the time in seconds, for `same_within`; only differences mean something.
        on_diagnostic: Gets each `Diagnostic`; codes in `DIAGNOSTICS` of this module. Default: the log.

    Raises:
        ConfigurationError: An option has a value it cannot have.

    Example:
        >>> import asyncio
        >>> from agui_pipeline.middleware import Pipeline
        >>> from agui_pipeline.translators import run_input
        >>> async def agent(input):
        ...     yield {"type": "CUSTOM", "name": "read", "value": input.messages[-1].content}
        >>> action = {"name": "add", "surfaceId": "calculator", "context": {"a": "12", "b": {"literalString": "7"}}}
        >>> async def main():
        ...     pipeline = Pipeline(agent, A2UIActionMiddleware(style="text"))
        ...     async with pipeline.open(run_input(forwarded_props={"a2uiAction": {"userAction": action}})) as events:
        ...         return [event.value async for event in events]
        >>> print(*asyncio.run(main()))
        User performed action "add" on surface "calculator":
        - a: 12
        - b: 7
    """

    def __init__(  # noqa: PLR0913 - the options
        self,
        *,
        style: Style = "user_message",
        extract: Extract | None = None,
        registry: SurfaceRegistry | None = None,
        unknown_surfaces: UnknownSurfaces = "pass",
        while_running: WhileRunning = "refuse",
        same_within: float = 0.0,
        store: ActionStore | None = None,
        max_recording_bytes: int = 1024 * 1024,
        action_states: bool = False,
        capabilities: CapabilityStore | None = None,
        catalog_aliases: Mapping[str, str] = _NO_ALIASES,
        key: Callable[[RunAgentInput], str] = by_thread,
        limits: A2UILimits = _LIMITS,
        clock: Callable[[], float] = time.monotonic,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        check_choice("style", style, STYLES)
        check_callable("extract", extract, "(RunAgentInput) -> mapping or None", optional=True)
        check_choice("unknown_surfaces", unknown_surfaces, ("pass", "refuse"))
        check_choice("while_running", while_running, ("refuse", "join"))
        check_number("same_within", same_within, unit="a number of seconds (0 for never)")
        check_choice("action_states", action_states, (False, True))
        check_count("max_recording_bytes", max_recording_bytes, least=1, unit="a whole number of bytes")
        check_callable("key", key, "(RunAgentInput) -> str")
        check_callable("clock", clock, "() -> float")
        check_callable("on_diagnostic", on_diagnostic, "(Diagnostic) -> None", optional=True)
        if registry is not None and not isinstance(registry, SurfaceRegistry):
            raise ConfigurationError(f"registry={registry!r}: must be None or a SurfaceRegistry")
        if unknown_surfaces == "refuse" and registry is None:
            raise ConfigurationError(
                "unknown_surfaces='refuse': needs registry=, the SurfaceRegistry that was given to A2UIMiddleware"
            )
        check_store("store", store, ActionStore, "an ActionRecordings, or another ActionStore")
        check_store("capabilities", capabilities, CapabilityStore, "a ClientCapabilities, or another CapabilityStore")
        if not isinstance(limits, A2UILimits):
            raise ConfigurationError(f"limits={limits!r}: must be an A2UILimits")
        self.on_diagnostic = on_diagnostic
        self._style = style
        self._extract = extract
        self._registry = registry
        self._refuse_unknown = unknown_surfaces == "refuse"
        self._alike = same_within > 0
        recent = RecentRequests(same_within, clock)
        store = ActionRecordings() if store is None else store
        self._repeats = Repeats(store, while_running, max_recording_bytes, recent)
        self._action_states = action_states
        self._capabilities = capabilities
        self._aliases = CatalogAliases(catalog_aliases)
        self._key = key
        self._limits = limits

    def admit(self, input: RunAgentInput) -> None:
        """Raise where a run with this input would be refused, as far as that can be told without waiting.

        Raises:
            DecodeError: It would be; has the `code` of the refusal, and its HTTP `status`.
            LimitError: It would be, for its size; has the `code` of the refusal.
        """
        try:
            message, request = self._read(input)
            if request is not None:
                request = self._repeats.named(request)
                self._repeats.check(request)
            # What has an id may have been answered, which the store alone knows, and is answered so again.
            if message is not None and (request is None or not request.id):
                self._check_surface(input, message)
        except (RefusedError, OverLimitError) as exc:
            run_sink(self.on_diagnostic)(_diagnostic(exc))
            raise

    def stand_aside(self, input: RunAgentInput) -> RunAgentInput | None:
        """Return what to hand on where the run is about something else; None where this stage is to be called."""
        try:
            if self._read(input)[0] is not None:
                return None
        except (RefusedError, OverLimitError):  # refused when it is called
            return None
        sink = run_sink(self.on_diagnostic)
        self._remember(input, sink)
        self._look_for_slips(input, sink)
        return self._screened(input, None, sink)[0]

    def __call__(self, input: RunAgentInput, next: Source) -> AsyncIterator[AnyEvent]:
        """Run this stage around `next`. A run that is about something else is the source's own iterator."""
        sink = run_sink(self.on_diagnostic)
        self._remember(input, sink)
        try:
            message, request = self._read(input)
            if message is not None and request is None:
                self._check_surface(input, message)
        except (RefusedError, OverLimitError) as exc:
            return _refused(exc, sink)
        if message is None:
            self._look_for_slips(input, sink)
            return next(self._screened(input, None, sink)[0])

        def answer(input: RunAgentInput) -> AsyncIterator[AnyEvent]:
            if request is None:
                return self._start(input, message, next, sink)
            return self._once(input, message, request, next, sink)

        if not self._action_states or message.error is not None:
            return answer(input)
        # Outside of what is recorded: a run that has finished is recorded before anybody hears that it succeeded.
        return _TellsStates(ActionStates(message))(input, cast("Source", answer))

    async def _once(
        self, input: RunAgentInput, message: A2UIClientMessage, request: Request, next: Source, sink: DiagnosticSink
    ) -> AsyncGenerator[AnyEvent, None]:
        """Answer a request that may have been sent before."""

        def start() -> AsyncIterator[AnyEvent]:
            # Only here: a repeat is answered as it was, also where the answer deleted the surface.
            self._check_surface(input, message)
            return self._start(input, message, next, sink)

        try:
            async with aclosing(self._repeats.answer(request, start, sink)) as events:
                async for event in events:
                    yield event
        except RefusedError as exc:
            sink(_diagnostic(exc))
            yield run_error(exc.code, str(exc))

    def _start(
        self, input: RunAgentInput, message: A2UIClientMessage, next: Source, sink: DiagnosticSink
    ) -> AsyncIterator[AnyEvent]:
        """Start the run that answers a message."""
        input, data_model = self._screened(input, message.data_model, sink)
        return next(tell_agent(input, message, self._style, data_model))

    def _read(self, input: RunAgentInput) -> tuple[A2UIClientMessage | None, Request | None]:
        """Return the client message of an input, and what it is recognised by when it comes again.

        Raises:
            RefusedError: The message is malformed.
            OverLimitError: It is over a limit.
        """
        try:
            message = parse_client_message(input, extract=self._extract, limits=self._limits)
        except LimitError as exc:
            raise OverLimitError(str(exc)) from exc
        except DecodeError as exc:
            raise RefusedError(INVALID, str(exc)) from exc
        if message is None:
            return None, None
        id = message.request_id or request_header(_HEADER)
        if not id:
            alike = Request(self._key(input), "", message.likeness, alike=True) if self._alike else None
            return message, alike
        if len(id) > MAX_REQUEST_ID:
            raise OverLimitError(f"the header Idempotency-Key is longer than {MAX_REQUEST_ID} characters")
        return message, Request(self._key(input), id, message.digest)

    def _check_surface(self, input: RunAgentInput, message: A2UIClientMessage) -> None:
        registry = self._registry
        if registry is None or not self._refuse_unknown or message.error is not None:
            return
        if message.surface_id not in registry.surfaces(registry.key(input)):
            where = f"{message.path}.{message.kind}.surfaceId"
            raise RefusedError(UNKNOWN_SURFACE, f"{where}: there is no such surface in this thread, or none any more")

    def _look_for_slips(self, input: RunAgentInput, sink: DiagnosticSink) -> None:
        """Report what looks as if it should have been a client message, in a run about something else."""
        slip = empty_carrier(input, self._extract)
        if slip is not None:
            sink(Diagnostic("actions.nothing", f"{DIAGNOSTICS['actions.nothing']}: {slip}"))

    def _screened(
        self, input: RunAgentInput, data_model: Mapping[str, Any] | None, sink: DiagnosticSink
    ) -> tuple[RunAgentInput, Mapping[str, Any] | None]:
        """Return an input and a data model without the surfaces whose data was not asked for."""
        registry = self._registry
        thread = "" if registry is None else registry.key(input)

        def asked(surface_id: str) -> bool:
            return registry is not None and registry.sends_data_model(thread, surface_id)

        input, left_out = screen_data_models(input, asked)
        kept = {id: data for id, data in (data_model or {}).items() if asked(id)}
        left_out = max(left_out, len(data_model or ()) - len(kept))
        if left_out:
            sink(Diagnostic("actions.data-model", DIAGNOSTICS["actions.data-model"], detail={"surfaces": left_out}))
        return input, kept or None

    def _remember(self, input: RunAgentInput, sink: DiagnosticSink) -> None:
        if self._capabilities is None:
            return
        try:
            said = client_capabilities(input, extract=self._extract, catalog_aliases=self._aliases, limits=self._limits)
        except (DecodeError, LimitError) as exc:
            text = DIAGNOSTICS["actions.capabilities"]
            sink(Diagnostic("actions.capabilities", text, detail={"error": str(exc)}))
            return
        if said is not None:
            self._capabilities.put(self._key(input), said)


class _TellsStates(TranslatorMiddleware):
    """One answer's action states, as a stage."""

    def __init__(self, states: ActionStates) -> None:
        super().__init__()
        self._states = states

    def translator(self, input: RunAgentInput) -> ActionStates:  # noqa: ARG002 - it serves one answer
        return self._states


async def _refused(exc: RefusedError | OverLimitError, sink: DiagnosticSink) -> AsyncGenerator[AnyEvent, None]:
    """Give the answer to a request that starts nothing."""
    sink(_diagnostic(exc))
    yield run_error(exc.code, str(exc))


_CODES: Final[Mapping[str, str]] = {
    INVALID: "actions.invalid",
    UNKNOWN_SURFACE: "actions.unknown-surface",
    RUNNING: "actions.running",
    CONFLICT: "actions.conflict",
}


def _diagnostic(exc: RefusedError | OverLimitError) -> Diagnostic:
    code = _CODES[exc.code]
    return Diagnostic(code, DIAGNOSTICS[code], detail={"error": str(exc)})


DIAGNOSTICS: Final[Mapping[str, str]] = {
    "actions.invalid": "a client message without its fields, or over a limit, was refused",
    "actions.unknown-surface": "an action for a surface that is not there was refused",
    "actions.running": "a repeated request was refused while the first is being answered",
    "actions.conflict": "another request under the id of an earlier one was refused",
    "actions.nothing": "what came in the place of a client message is none, so the agent is told of no action",
    "actions.data-model": "data of surfaces that were not created with sendDataModel was kept from the agent",
    "actions.capabilities": "what a client says that it can render is malformed; it was not remembered",
    **REPEATS,
}
"""The diagnostics of client messages, by code."""
