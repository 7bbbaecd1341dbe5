"""A2UI in assistant text becomes events that a client can render.

Knows the options, what they may be and the presets. What they do is `agui_pipeline.translators.a2ui`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeAlias, TypedDict, Unpack

from ag_ui.core import RunAgentInput

from agui_pipeline.middleware._options import check_choice
from agui_pipeline.middleware._translator import TranslatorMiddleware
from agui_pipeline.translators import ConfigurationError, DiagnosticSink, Event
from agui_pipeline.translators._a2ui_sdk import CatalogValidator
from agui_pipeline.translators._diagnostics import run_sink
from agui_pipeline.translators._repair import load_repairer
from agui_pipeline.translators.a2ui import (
    VERSIONS,
    A2UIContext,
    A2UILimits,
    A2UISettings,
    A2UITranslator,
    CarrierFunction,
    CatalogAliases,
    MemorySurfaceStore,
    SurfaceRegistry,
    SurfaceStore,
    catalog_ids,
    generation_of,
    tool_catalog,
)

__all__ = [
    "A2UIContext",
    "A2UILimits",
    "A2UIMiddleware",
    "A2UIOptions",
    "CatalogAliases",
    "MemorySurfaceStore",
    "SurfaceRegistry",
    "SurfaceStore",
]

PassThrough: TypeAlias = Callable[[Event], bool] | Collection[str] | Literal["all"] | None

_CARRIERS: Final = ("raw", "custom", "activity")
_LIMITS: Final = A2UILimits()
_NO_ALIASES: Final[Mapping[str, str]] = MappingProxyType({})


class A2UIOptions(TypedDict, total=False):
    """The options of `A2UIMiddleware`, for those who pass them on."""

    carrier: Literal["raw", "custom", "activity"] | CarrierFunction
    custom_name: str
    source: str
    framing: Literal["objects", "lines"]
    on_invalid: Literal["raw", "text", "drop", "error"]
    pass_through: PassThrough
    repair: bool
    validate: Literal["envelope", "off", "full"]
    versions: Collection[str] | None
    limits: A2UILimits
    catalogs: Sequence[Any]
    catalog_aliases: Mapping[str, str]
    tools: Collection[str]
    registry: SurfaceRegistry | None
    reused: Literal["pass", "recreate", "drop"]
    strict: bool
    on_diagnostic: DiagnosticSink | None


class A2UIMiddleware(TranslatorMiddleware):
    r"""Reads the assistant's text as A2UI messages and sends each in an event of its own.

    What a message's text holds apart from them goes where `on_invalid` says. By default this agrees with
    tRPC-Agent-Go's translator on well-formed A2UI v0.8 JSON Lines: RAW events with ``source="a2ui/v0.8"``, the run's
    own events (RUN_STARTED, RUN_FINISHED, RUN_ERROR), and no others unless `pass_through` accepts them.

    Guarantees: order is kept; what is pending when a message, the run or the stream ends goes on before what ends it;
    the result is the same however the text was cut; no more than the limit of a message is held of each open one.
    Text of other roles passes as it is.

    Args:
        carrier: How a message travels. ``"raw"``: RAW, as tRPC-Agent-Go. ``"custom"``: CUSTOM named `custom_name`,
            one message an event. ``"activity"``: ACTIVITY_SNAPSHOT of type ``a2ui-surface`` with
            ``{"a2ui_operations": [...]}``, each holding the whole surface (its data: what this run set, so that what
            a user typed is not reset), under one message id a surface that stays across runs. Or a callable
            ``(message, context) -> event or iterable of events``; see `A2UIContext`.
        custom_name: The name of CUSTOM events.
        source: The `source` of RAW events; ``{version}`` stands for the message's own version, v0.8 where unknown.
        framing: ``"objects"``: JSON Lines, and what models really write: objects over several lines or several on
            one, arrays of messages, Markdown fences, ``<a2ui-json>`` tags. ``"lines"``: exactly one record a line.
        on_invalid: What becomes of text that is no message. ``"raw"``: valid JSON travels as a RAW of that value, the
            rest as a RAW string a line. ``"text"``: it goes on as the text message that it is. ``"drop"``.
            ``"error"``: RUN_ERROR with the code ``a2ui_invalid``, and nothing after it.
        pass_through: Which events that are no text pass: a predicate, a collection of types, or ``"all"``. None: none
            do, and the first that is dropped makes a diagnostic.
        repair: Whether a record that is no JSON (a trailing comma, single quotes, the end cut off) is repaired, if the
            result is an A2UI message. Each repair is a diagnostic; prose is never touched. Needs the extra ``repair``.
        validate: ``"envelope"``: a message has exactly one known key, its required fields and the right version.
            ``"off"``: any JSON value is one (with ``"raw"`` or a callable). ``"full"``: it is valid by the catalog of
            its surface, too, and at the end of a run each surface as a whole is looked at, which makes a diagnostic.
            Takes 6 ms for a message of a hundred components. Needs the extra ``a2ui``.
        versions: The A2UI versions whose messages go on; others go where `on_invalid` says. None: all, but v0.8 with
            the carrier ``"custom"``, whose readers know v0.9 and later only.
        limits: What one message may be; a record over a limit goes where `on_invalid` says, as text.
        catalogs: Catalogs of one's own, beside the basic ones, for ``validate="full"`` and `tools`: catalog documents
            with an id, or catalogs of the A2UI SDK.
        catalog_aliases: The client's catalog ids for the agent's; messages go on with the client's. For the other way
            see `aliases`.
        tools: Names of tools whose arguments carry A2UI, such as ``render_a2ui``: what is in them goes on behind the
            end of the call. Whether the call itself goes on is up to `pass_through`.
        registry: Remembers surfaces across runs, for the activity carrier, `reused`, `tools` and ``validate="full"``;
            where one is given, with every carrier. Default: one of this middleware's own.
        reused: What becomes of a createSurface for a surface that exists: ``"pass"``; ``"recreate"``: a deleteSurface
            goes before it; ``"drop"``.
        strict: Whether text events out of order raise `SequenceError`, as tRPC-Agent-Go's translator does; else they
            are diagnostics.
        on_diagnostic: Gets each diagnostic; codes in `agui_pipeline.translators.a2ui.DIAGNOSTICS`.

    Raises:
        ConfigurationError: An option has a value it cannot have, or needs an extra that is not installed.

    Example:
        >>> from agui_pipeline.translators import decode_event
        >>> from ag_ui.core import RunAgentInput
        >>> run = RunAgentInput(thread_id="t", run_id="r", state={}, messages=[], tools=[], context=[],
        ...                     forwarded_props={})
        >>> translator = A2UIMiddleware(pass_through="all").translator(run)
        >>> list(translator.feed(decode_event('{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}')))
        []
        >>> delta = r'{\"deleteSurface\":{\"surfaceId\":\"s\"}}'
        >>> text = '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"' + delta + '"}'
        >>> [(event.type, event.source, event.event) for event in translator.feed(decode_event(text))]
        [(<EventType.RAW: 'RAW'>, 'a2ui/v0.8', {'deleteSurface': {'surfaceId': 's'}})]
    """

    registry: SurfaceRegistry
    """The surfaces across runs, if this middleware follows them."""

    aliases: CatalogAliases
    """`catalog_aliases`, both ways: for what reads the catalogs that a client says it has."""

    def __init__(  # noqa: PLR0913 - the options
        self,
        *,
        carrier: Literal["raw", "custom", "activity"] | CarrierFunction = "raw",
        custom_name: str = "a2ui",
        source: str = "a2ui/{version}",
        framing: Literal["objects", "lines"] = "objects",
        on_invalid: Literal["raw", "text", "drop", "error"] = "raw",
        pass_through: PassThrough = None,
        repair: bool = False,
        validate: Literal["envelope", "off", "full"] = "envelope",
        versions: Collection[str] | None = None,
        limits: A2UILimits = _LIMITS,
        catalogs: Sequence[Any] = (),
        catalog_aliases: Mapping[str, str] = _NO_ALIASES,
        tools: Collection[str] = (),
        registry: SurfaceRegistry | None = None,
        reused: Literal["pass", "recreate", "drop"] = "pass",
        strict: bool = False,
        on_diagnostic: DiagnosticSink | None = None,
    ) -> None:
        super().__init__(on_diagnostic=on_diagnostic)
        if not callable(carrier) and carrier not in _CARRIERS:
            choices = ", ".join(map(repr, _CARRIERS))
            raise _wrong("carrier", carrier, f"must be one of {choices}, or a callable (message, context) -> event(s)")
        check_choice("framing", framing, ("objects", "lines"))
        check_choice("on_invalid", on_invalid, ("raw", "text", "drop", "error"))
        check_choice("reused", reused, ("pass", "recreate", "drop"))
        check_choice("validate", validate, ("envelope", "off", "full"))
        if validate == "off" and carrier in ("custom", "activity"):
            raise _wrong("validate", validate, f"carrier={carrier!r} sends valid messages only; 'off' goes with 'raw'")
        if validate == "off":
            recreates = None if reused == "pass" else reused
            needing = {"reused": recreates, "versions": versions, "tools": tools, "catalog_aliases": catalog_aliases}
            for option, value in needing.items():
                if value:
                    raise _wrong(option, value, "needs validate='envelope', which knows messages and their surfaces")
        _check_type("custom_name", custom_name, str, "a string")
        _check_type("source", source, str, "a string, in which {version} stands for the message's version")
        _check_type("strict", strict, bool, "True or False")
        _check_type("limits", limits, A2UILimits, "an A2UILimits")
        if registry is not None:
            _check_type("registry", registry, SurfaceRegistry, "None or a SurfaceRegistry")
        _check_type("repair", repair, bool, "True or False")
        allowed = _versions(versions, carrier)
        named_tools = _names("tools", tools, "a collection of tool names")
        if isinstance(catalogs, str | bytes | Mapping) or not isinstance(catalogs, Sequence):
            raise _wrong("catalogs", catalogs, "must be a sequence of catalogs")
        known_catalogs = catalog_ids(catalogs)
        if catalogs and not (validate == "full" or named_tools):
            raise _wrong("catalogs", known_catalogs, "is for validate='full' or tools, and there is neither")
        self.aliases = CatalogAliases(catalog_aliases)
        follows = (
            carrier == "activity" or registry is not None or reused != "pass" or bool(named_tools) or validate == "full"
        )
        self.registry = SurfaceRegistry() if registry is None else registry
        self._settings = A2UISettings(
            carrier=carrier,
            custom_name=custom_name,
            source=source,
            framing=framing,
            on_invalid=on_invalid,
            pass_through=_predicate(pass_through),
            validate=validate,
            versions=allowed,
            repairer=load_repairer() if repair else None,
            validator=CatalogValidator(catalogs, map(generation_of, allowed)) if validate == "full" else None,
            aliases=self.aliases,
            tools=named_tools,
            tool_catalog=tool_catalog(catalogs),
            limits=limits,
            registry=self.registry if follows else None,
            reused=reused,
            strict=strict,
        )

    @classmethod
    def trpc(cls, **options: Unpack[A2UIOptions]) -> Self:
        """Make one that agrees with tRPC-Agent-Go's translator, on malformed input too.

        One record a line, the source always ``a2ui/v0.8``, every JSON value passes as it is, text of every role is
        read, text events out of order raise `SequenceError`. Two things differ: a last line without a line end is
        not lost, and `limits` hold.

        Args:
            **options: Options that differ from this, such as `pass_through`.
        """
        preset: A2UIOptions = {
            "framing": "lines",
            "source": "a2ui/v0.8",
            "validate": "off",
            "strict": True,
            **options,
        }
        made = cls(**preset)
        made._settings = replace(made._settings, every_role=True)
        return made

    @classmethod
    def chat(cls, **options: Unpack[A2UIOptions]) -> Self:
        """Make one for a single stream of prose, front-end tools and surfaces.

        Messages travel as CUSTOM, prose and broken records stay text, and every other event passes.

        Args:
            **options: Options that differ from this.
        """
        preset: A2UIOptions = {"carrier": "custom", "on_invalid": "text", "pass_through": "all", **options}
        return cls(**preset)

    def translator(self, input: RunAgentInput) -> A2UITranslator:
        """Return a new translator for one run."""
        return A2UITranslator(
            self._settings,
            run_sink(self.on_diagnostic),
            thread=self.registry.key(input),
            thread_id=input.thread_id,
            run_id=input.run_id,
        )


def _wrong(option: str, value: object, what: str) -> ConfigurationError:
    return ConfigurationError(f"{option}={value!r}: {what}")


def _check_type(option: str, value: object, type_: type, what: str) -> None:
    if not isinstance(value, type_):
        raise _wrong(option, value, f"must be {what}")


def _names(option: str, value: object, what: str) -> frozenset[str]:
    """Return a collection of names as a set."""
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        names = frozenset(value)
        if all(isinstance(name, str) and name for name in names):
            return names
    raise _wrong(option, value, f"must be {what}")


def _versions(versions: object, carrier: object) -> frozenset[str]:
    """Return the versions whose messages go on."""
    if versions is None:
        # What reads CUSTOM events knows v0.9 and later; one bad message fails its whole event there.
        return frozenset(VERSIONS[1:] if carrier == "custom" else VERSIONS)
    what = f"None or a collection of {', '.join(map(repr, VERSIONS))}"
    allowed = _names("versions", versions, what)
    if not allowed or not allowed <= frozenset(VERSIONS):
        raise _wrong("versions", versions, f"must be {what}")
    return allowed


def _predicate(pass_through: object) -> Callable[[Event], bool] | None:
    """Return the predicate that `pass_through` says; None where it says nothing."""
    if pass_through is None:
        return None
    if isinstance(pass_through, str):
        # Any other string is a collection, too: "CUSTOM" would silently be six types that nobody has.
        if str.__str__(pass_through) == "all":
            return lambda _event: True
    elif callable(pass_through):
        return pass_through
    elif isinstance(pass_through, Collection) and all(isinstance(name, str) for name in pass_through):
        types = frozenset(str.__str__(name) for name in pass_through)
        return lambda event: event.type in types
    raise _wrong("pass_through", pass_through, "must be None, 'all', a collection of event types, or a predicate")
