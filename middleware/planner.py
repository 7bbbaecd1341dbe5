"""A2UI's rules and schemas in the prompt, so that a model writes what `A2UIMiddleware` reads.

Knows where in a run's input the text goes, for which client, and that it stays on the server. What it says is
`agui_pipeline.translators.a2ui_planner`'s.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from ag_ui.core import Context, RunAgentInput, SystemMessage

from agui_pipeline.middleware._capabilities import CapabilityStore
from agui_pipeline.middleware._options import check_callable, check_choice, check_store
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.translators import (
    AnyEvent,
    ConfigurationError,
    DecodeError,
    Diagnostic,
    DiagnosticSink,
    Event,
    LimitError,
    Translator,
    replace,
)
from agui_pipeline.translators._a2ui_sdk import PromptSchemas
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._keys import by_thread
from agui_pipeline.translators.a2ui import VERSIONS
from agui_pipeline.translators.a2ui._aliases import CatalogAliases
from agui_pipeline.translators.a2ui._catalogs import BASIC_CATALOGS, catalog_ids
from agui_pipeline.translators.a2ui_client import A2UICapabilities, client_capabilities
from agui_pipeline.translators.a2ui_planner import PLANNER_SLOTS, default_instruction, planner_text

__all__ = ["A2UIPlannerMiddleware"]

Slot: TypeAlias = "str | Mapping[str, Any] | None"

PROMPT_ID: Final = "a2ui-planner"
"""The id of the system message, and the description of the context entry. Fixed, so that an agent that keeps its
thread's messages by id has the rules once."""

_NO_ALIASES: Final[Mapping[str, str]] = MappingProxyType({})
_MAX_TEXTS: Final = 64
_FROM_SDK: Final = ("server_to_client_with_standard_catalog", "client_to_server")

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "planner.capabilities": "the client's A2UI capabilities cannot be read; the prompt was made as if it had sent none",
    "planner.version": "the client names A2UI versions, and not the one that the prompt asks the model for",
    "planner.catalogs": "the client supports none of the known A2UI catalogs; the prompt shows no components",
    "planner.inline": "the client sent A2UI catalogs along; what a client sends does not go into a prompt",
    "planner.id": "a message of the client that is no system message has the id of the planner's; it was left out",
}
"""The diagnostics of planning, by code."""


class A2UIPlannerMiddleware(TranslatorMiddleware):
    """Tells the model to write A2UI: the rules of output, and the schemas of what it may say and hear.

    Seven slots, in tRPC-Agent-Go's order; each option below that is named as a slot replaces its text, and ``""``
    removes it. Anything but a string is written as compact JSON. Put it first in a chain, nearest the agent.

    Guarantees: the same text, serialized once, for all clients that support the same catalogs. Nothing that a client
    sent becomes part of it, but which of the known catalogs it shows. The text does not go back to the client: a
    MESSAGES_SNAPSHOT and the input in a RUN_STARTED are sent on without it. RAW events and states are not searched.

    Args:
        version: The A2UI version that the model shall write. ``A2UIMiddleware.chat()`` with its carrier ``"custom"``
            sends v0.9 and later only: name one of these beside it.
        prose: Whether the default instruction lets the model write to people between the messages, too: for
            ``A2UIMiddleware.chat()``, where prose stays text.
        instruction: The rules of output. Default: one complete JSON object a line and nothing else, in six rules. One
            of your own replaces them whole, and has to see to it that the stream stays readable.
        server_to_client_with_standard_catalog: Default: the version's message schema with the catalogs that the client
            supports (all known ones, where it said nothing).
        client_to_server: Default: the version's schema of actions and errors.
        client_capabilities: Default: empty.
        server_to_client: Default: empty.
        standard_catalog: Default: empty.
        catalog_description: Default: empty.
        catalogs: Catalogs of your own beside the version's basic one, as in `A2UIMiddleware`.
        catalog_aliases: The client's catalog ids by the agent's, as in `A2UIMiddleware`.
        placement: ``"system"``: a system message behind those that lead the conversation. ``"context"``: an entry of
            the input's context, for agents that put it into the prompt.
        capabilities: Where what clients said that they support is remembered, for requests that say nothing; the same
            object as that of `A2UIActionMiddleware`. Default: only what the request says counts.
        key: What a client's word is remembered under. Default: the thread id.
        extract: As in `A2UIActionMiddleware`: asked first for what the client sent.
        on_diagnostic: Gets each diagnostic (codes ``planner.*``). Default: the log.

    Raises:
        ConfigurationError: An option has a value it cannot have, or a default schema is wanted and the extra ``a2ui``
            is not installed.

    Example:
        >>> planner = A2UIPlannerMiddleware(
        ...     instruction="One JSON object a line.", server_to_client_with_standard_catalog={"type": "object"},
        ...     client_to_server="",
        ... )
        >>> print(planner.text())
        One JSON object a line.
        <BLANKLINE>
        Server-to-client-with-standard-catalog payload schema: {"type":"object"}
    """

    def __init__(  # noqa: PLR0913 - the options
        self,
        *,
        version: Literal["v0.8", "v0.9", "v0.9.1", "v1.0"] = "v0.8",
        prose: bool = False,
        instruction: Slot = None,
        server_to_client_with_standard_catalog: Slot = None,
        client_to_server: Slot = None,
        client_capabilities: Slot = None,
        server_to_client: Slot = None,
        standard_catalog: Slot = None,
        catalog_description: Slot = None,
        catalogs: Sequence[Any] = (),
        catalog_aliases: Mapping[str, str] = _NO_ALIASES,
        placement: Literal["system", "context"] = "system",
        capabilities: CapabilityStore | None = None,
        key: Callable[[RunAgentInput], str] = by_thread,
        extract: Callable[[RunAgentInput], Mapping[str, Any] | None] | None = None,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        super().__init__(on_diagnostic=on_diagnostic)
        check_choice("version", version, VERSIONS)
        check_choice("prose", prose, (False, True))
        if prose and instruction is not None:
            raise ConfigurationError(
                "prose=True: is for the default instruction, and one is given: say there whether prose is allowed"
            )
        check_choice("placement", placement, ("system", "context"))
        check_callable("key", key, "(RunAgentInput) -> str")
        check_callable("extract", extract, "(RunAgentInput) -> mapping or None", optional=True)
        check_store("capabilities", capabilities, CapabilityStore, "a ClientCapabilities, or another CapabilityStore")
        given: dict[str, Slot] = {
            "instruction": instruction,
            "server_to_client_with_standard_catalog": server_to_client_with_standard_catalog,
            "client_to_server": client_to_server,
            "client_capabilities": client_capabilities,
            "server_to_client": server_to_client,
            "standard_catalog": standard_catalog,
            "catalog_description": catalog_description,
        }
        for slot, value in given.items():
            if value is not None and not isinstance(value, str | Mapping):
                raise ConfigurationError(f"{slot}={value!r}: must be text, a JSON object, or None for the default")
        self._version: Final[str] = version
        self._placement = placement
        self._capabilities = capabilities
        self._key = key
        self._extract = extract
        self._aliases = CatalogAliases(catalog_aliases)
        own = dict(zip(catalog_ids(catalogs), catalogs, strict=True))
        self._known: Final = tuple(dict.fromkeys((BASIC_CATALOGS[version], *own)))
        self._slots: Final = {slot: value for slot, value in given.items() if value is not None}
        self._schemas: Final = (
            PromptSchemas(version, own) if any(slot not in self._slots for slot in _FROM_SDK) else None
        )
        self._slots.setdefault("instruction", default_instruction(version, prose=prose))
        if self._schemas is not None and "client_to_server" not in self._slots:
            self._slots["client_to_server"] = self._schemas.client_to_server()
        self._pruned = "server_to_client_with_standard_catalog" not in self._slots
        self._texts: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def text(self, input: RunAgentInput | None = None) -> str:
        """Return what the model is told in a run; without an input, to a client of which nothing is known.

        Raises:
            TypeError: `input` is no RunAgentInput.
        """
        if input is not None and not isinstance(input, RunAgentInput):
            raise TypeError(
                f"text() of a {type(input).__name__}: wants the RunAgentInput of a run, as run_input('hello') makes one"
            )
        return self._text(self._known if input is None else self._supported(input, lambda _diagnostic: None))

    def prepare(self, input: RunAgentInput) -> RunAgentInput:
        """Return the input with the text in it, once."""
        sink = run_sink(self.on_diagnostic)
        text = self._text(self._supported(input, sink))
        context = [entry for entry in input.context or () if entry.description != PROMPT_ID]
        # An agent may have sent its system message to a client, which sends it back with the others.
        messages = [message for message in input.messages if message.id != PROMPT_ID]
        strange = [message.role for message in input.messages if message.id == PROMPT_ID and message.role != "system"]
        if strange:
            sink(_diagnostic("planner.id", roles=tuple(strange[:8])))
        if not text:
            pass
        elif self._placement == "context":
            context.append(Context(description=PROMPT_ID, value=text))
        else:
            leading = 0
            while leading < len(messages) and messages[leading].role in ("system", "developer"):
                leading += 1
            messages.insert(leading, SystemMessage(id=PROMPT_ID, content=text))
        return input.model_copy(update={"context": context, "messages": messages})

    def translator(self, input: RunAgentInput) -> Translator:  # noqa: ARG002 - the same for all runs
        """Return what keeps the text from the client."""
        return _Withheld(self._texts.values())

    def _text(self, ids: tuple[str, ...]) -> str:
        """Return the text that shows some of the known catalogs."""
        if not self._pruned or self._schemas is None:
            ids = ()
        text = self._texts.get(ids)
        if text is None:
            slots: dict[str, Any] = dict(self._slots)
            if self._pruned and self._schemas is not None:
                slots["server_to_client_with_standard_catalog"] = self._schemas.with_catalogs(ids)
            text = self._texts[ids] = planner_text({slot: slots.get(slot, "") for slot in PLANNER_SLOTS})
            if len(self._texts) > _MAX_TEXTS:
                self._texts.popitem(last=False)
        return text

    def _supported(self, input: RunAgentInput, sink: DiagnosticSink) -> tuple[str, ...]:
        """Return the known catalogs that the client supports, in the order in which they are known."""
        said = self._said(input, sink)
        if said is None or not said.versions:
            return self._known
        if said.inline(self._version):
            sink(_diagnostic("planner.inline"))
        if not said.catalogs.get("v0.9" if self._version == "v0.9.1" else self._version):
            sink(_diagnostic("planner.version", named=said.versions[:8], wanted=self._version))
            return self._known
        supported = frozenset(said.supported(self._version))
        ids = tuple(id_ for id_ in self._known if id_ in supported)
        if not ids:
            sink(_diagnostic("planner.catalogs", known=self._known))
        return ids

    def _said(self, input: RunAgentInput, sink: DiagnosticSink) -> A2UICapabilities | None:
        try:
            said = client_capabilities(input, extract=self._extract, catalog_aliases=self._aliases)
        except (DecodeError, LimitError) as exc:
            sink(_diagnostic("planner.capabilities", error=str(exc)))
            said = None
        if self._capabilities is None:
            return said
        key = self._key(input)
        if said is None:
            return self._capabilities.get(key)
        self._capabilities.put(key, said)
        return said


def _diagnostic(code: str, **detail: Any) -> Diagnostic:
    return Diagnostic(code, DIAGNOSTICS[code], detail=detail)


class _Withheld(Translator):
    """Takes the planner's text out of what an agent tells its client of its messages and of its input.

    Args:
        texts: What the model may have been told: an agent may give a message another id.
    """

    def __init__(self, texts: Collection[str]) -> None:
        self._texts = texts

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        if event.type == "MESSAGES_SNAPSHOT":
            messages = event.messages
            kept = self._without(messages)
            return (event,) if kept is messages else (replace(event, messages=kept),)
        if event.type == "RUN_STARTED" and event.input is not None:
            return (self._with_input(event),)
        return (event,)

    def _with_input(self, event: Event) -> Event:
        input = event.input
        changed: dict[str, Any] = {}
        for field in ("messages", "context"):
            items = _field(input, field)
            kept = self._without(items)
            if kept is not items:
                changed[field] = kept
        if not changed:
            return event
        if isinstance(input, Mapping):
            return replace(event, input={**input, **changed})
        return replace(event, input=input.model_copy(update=changed))

    def _without(self, items: Any) -> Any:
        """Return a list without the planner's own entry; the same object where there is none."""
        if not isinstance(items, list | tuple):
            return items
        kept = [item for item in items if not self._is_own(item)]
        return items if len(kept) == len(items) else kept

    def _is_own(self, item: Any) -> bool:
        if PROMPT_ID in (_field(item, "id"), _field(item, "description")):
            return True
        if _field(item, "role") not in ("system", "developer"):
            return False
        text = _field(item, "content")
        return bool(text) and text in self._texts


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
