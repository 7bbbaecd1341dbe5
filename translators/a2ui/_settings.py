"""What an `A2UIMiddleware` was configured to do, checked, as its translators read it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agui_pipeline.translators._a2ui_sdk import CatalogValidator
from agui_pipeline.translators._events import Event
from agui_pipeline.translators.a2ui._aliases import CatalogAliases
from agui_pipeline.translators.a2ui._carriers import CarrierFunction
from agui_pipeline.translators.a2ui._catalogs import BASIC_CATALOGS
from agui_pipeline.translators.a2ui._envelope import VERSIONS
from agui_pipeline.translators.a2ui._limits import A2UILimits
from agui_pipeline.translators.a2ui._repairs import Repairer
from agui_pipeline.translators.a2ui._surfaces import SurfaceRegistry

CarrierName: TypeAlias = Literal["raw", "custom", "activity"]
Framing: TypeAlias = Literal["objects", "lines"]
OnInvalid: TypeAlias = Literal["raw", "text", "drop", "error"]
Validate: TypeAlias = Literal["envelope", "off", "full"]
Reused: TypeAlias = Literal["pass", "recreate", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class A2UISettings:
    """The options of `A2UIMiddleware`, with its defaults; see there.

    Attributes:
        pass_through: Whether an event that is no text passes; None: none does, and nobody has chosen that.
        every_role: Whether the text of every role is read, as tRPC-Agent-Go does.
        versions: The A2UI versions whose messages go on.
        repairer: Makes an object of a text that should be one; None: nothing is repaired.
        validator: Checks messages against catalogs (``validate="full"``).
        aliases: The client's catalog ids for the agent's.
        tools: The tools whose arguments carry A2UI.
        tool_catalog: The catalog of a surface whose tool call names none.
        registry: The surfaces across runs; None: nobody follows them.
    """

    carrier: CarrierName | CarrierFunction = "raw"
    custom_name: str = "a2ui"
    source: str = "a2ui/{version}"
    framing: Framing = "objects"
    on_invalid: OnInvalid = "raw"
    pass_through: Callable[[Event], bool] | None = None
    validate: Validate = "envelope"
    versions: Collection[str] = VERSIONS
    repairer: Repairer | None = None
    validator: CatalogValidator | None = None
    aliases: CatalogAliases = field(default_factory=lambda: CatalogAliases({}))
    tools: Collection[str] = ()
    tool_catalog: str = BASIC_CATALOGS["v0.9"]
    limits: A2UILimits = field(default_factory=A2UILimits)
    registry: SurfaceRegistry | None = None
    reused: Reused = "pass"
    strict: bool = False
    every_role: bool = False
