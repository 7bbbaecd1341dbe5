"""The official A2UI SDK, an optional package: the one module that imports it.

Knows how to have a message, or a whole surface, checked against catalogs, and what the SDK misses. Does not know runs,
nor what becomes of what is wrong. Breaking releases of the SDK come often, so little of it is used: `BasicCatalog`,
`Catalog.from_json`, `validate_payload`, `A2uiError`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from agui_pipeline.translators._errors import ConfigurationError

_MAX_ERRORS: Final = 8
GENERATIONS: Final = ("v0.8", "v0.9", "v1.0")
"""Versions whose messages and surfaces differ; v0.9.1 is of v0.9."""

MAX_CALLS: Final = 256
"""Function calls (in data bindings, checks and actions) in what is checked at once. Each may take the SDK a
millisecond, since it tries every type that a value may have."""

UNREACHABLE: Final = "unreachable_component"
"""The code of a surface with a component that nothing refers to (any more)."""

_DATA: Final = frozenset({"updateDataModel", "dataModelUpdate", "dataModel"})

_VALUES: Final = ("valueString", "valueNumber", "valueBoolean", "valueMap")


@dataclass(frozen=True, slots=True)
class CatalogProblem:
    """What is wrong with a message by its catalog.

    Attributes:
        codes: What, in words that hold nothing of the message.
        errors: What and where: each with `path`, `code` and `message`. May hold content.
    """

    codes: str
    errors: tuple[Mapping[str, str], ...]


class CatalogValidator:
    """Checks messages against the basic catalogs of every A2UI version, and catalogs of one's own.

    About 0.2 ms for a small message, 6 ms for one of a hundred components. Check its limits before: the time is in
    proportion to its size. The first one of a process takes most of a second to make: the SDK is slow to import, and
    builds its models then.

    Args:
        catalogs: Catalogs of one's own: the SDK's objects, or catalog documents (JSON schemas) with an id in
            ``catalogId`` or ``$id``, and ``protocolVersion`` where that is not 0.9.
        generations: Which messages will be checked.

    Raises:
        ConfigurationError: The SDK is not installed, or a catalog is none.
    """

    def __init__(self, catalogs: Sequence[Any] = (), generations: Iterable[str] = GENERATIONS) -> None:
        try:
            from a2ui.core import A2uiError, Catalog  # noqa: PLC0415 - an extra, and slow to import
            from a2ui.utils import validate_payload  # noqa: PLC0415
        except ImportError as exc:
            raise ConfigurationError(
                "validate='full': needs the package a2ui-agent-sdk; pip install 'agui-pipeline[a2ui]'"
            ) from exc
        self._validate: Final[Callable[..., None]] = validate_payload
        self._error: Final[type[Exception]] = A2uiError
        # The basic catalog first: by the specification a v0.8 surface that names none uses it.
        self._catalogs: Final[dict[str, list[Any]]] = {name: [_basic_catalog(name)] for name in set(generations)}
        for at, given in enumerate(catalogs):
            try:
                catalog = Catalog.from_json(given, catalog_id=_id_in(given)) if isinstance(given, Mapping) else given
                generation = _generation(str(catalog.protocol_version))
                if generation not in GENERATIONS:
                    raise ValueError(f"its protocol version is {catalog.protocol_version!r}")
                self._catalogs.setdefault(generation, []).append(catalog)
                known = isinstance(catalog.catalog_id, str) and callable(catalog.get_component)
            except Exception as exc:  # the SDK lets errors of several kinds out
                raise ConfigurationError(f"catalogs[{at}]: the A2UI SDK cannot use it: {exc}") from exc
            if not known:
                raise ConfigurationError(f"catalogs[{at}]={given!r}: must be a catalog of the SDK or its document")

    def knows(self, generation: str, catalog_id: str) -> bool:
        """Say whether there is a catalog with an id."""
        return any(catalog.catalog_id == catalog_id for catalog in self._catalogs.get(generation, ()))

    @staticmethod
    def calls_in(messages: Iterable[Any]) -> int:
        """Count the function calls in messages: what makes checking them slow."""
        calls = 0
        pending: list[Any] = list(messages)
        while pending:
            item = pending.pop()
            if isinstance(item, Mapping):
                calls += "call" in item
                pending.extend(value for key, value in item.items() if key not in _DATA)
            elif isinstance(item, list):
                pending.extend(item)
        return calls

    def check(
        self, generation: str, messages: Sequence[Mapping[str, Any]], catalog_ids: Mapping[str, str]
    ) -> CatalogProblem | None:
        """Check messages as a renderer that gets them together would.

        A surface that they create is checked whole, references, cycles and root included; in one that they only
        update, references to components of earlier messages are in order.

        Args:
            generation: Theirs: ``"v0.8"``, ``"v0.9"`` or ``"v1.0"``.
            messages: Valid envelopes. More than `MAX_CALLS` function calls in them are a problem, too.
            catalog_ids: The catalogs of surfaces that were created before, by surface id, as far as is known.
        """
        if self.calls_in(messages) > MAX_CALLS:
            return _own("too_many_calls", "", f"no more than {MAX_CALLS} function calls are checked")
        for message in messages:
            problem = _missed(message)
            if problem is not None:
                return problem
        try:
            self._validate(self._catalogs[generation], list(messages), surface_catalog_ids=catalog_ids)
        except self._error as exc:
            return _problem(exc)
        except Exception as exc:  # noqa: BLE001 - a defect of the SDK must not end a run
            return CatalogProblem(f"the A2UI SDK failed on it ({type(exc).__name__})", ())
        return None


@cache
def _basic_catalog(generation: str) -> Any:
    """Return a basic catalog that has been used: the SDK builds its models then, for 200 ms, which no run must wait."""
    from a2ui.core.basic_catalog import BasicCatalog  # noqa: PLC0415
    from a2ui.utils import validate_payload  # noqa: PLC0415

    catalog = BasicCatalog(generation)
    if generation != "v0.8":
        text = {"id": "root", "component": "Text", "text": ""}
        validate_payload(
            [catalog], {"version": generation, "updateComponents": {"surfaceId": "s", "components": [text]}}
        )
    return catalog


def _id_in(document: Mapping[str, Any]) -> str | None:
    found = document.get("catalogId") or document.get("$id")
    return found if isinstance(found, str) else None


def _generation(protocol_version: str) -> str:
    version = protocol_version.removeprefix("v")
    return "v0.9" if version.startswith("0.9") else f"v{version}"


def _problem(exc: Exception) -> CatalogProblem:
    details = [detail.to_dict() for detail in getattr(exc, "details", ())[:_MAX_ERRORS]]
    if not details:
        details = [{"path": "", "code": _code_of(exc), "message": str(exc)[:500]}]
    codes = ", ".join(dict.fromkeys(str(detail["code"]) for detail in details))
    return CatalogProblem(codes, tuple(details))


def _code_of(exc: Exception) -> str:
    """Return a word for an error without details, as the SDK's codes are written."""
    text = str(exc)
    if "is not reachable from" in text:
        return UNREACHABLE
    for beginning, code in (
        ("Missing root", "missing_root"),
        ("Dangling", "dangling_reference"),
        ("Circular", "circular_reference"),
        ("Self-reference", "circular_reference"),
        ("Catalog not found", "unknown_catalog"),
    ):
        if text.startswith(beginning):
            return code
    return type(exc).__name__


def _missed(message: Mapping[str, Any]) -> CatalogProblem | None:
    """Find what the SDK misses in v0.8: components of two types, and data entries with no value or two."""
    update = message.get("surfaceUpdate")
    if isinstance(update, Mapping):
        for at, component in enumerate(update["components"]):
            types = component.get("component") if isinstance(component, Mapping) else None
            if not isinstance(types, Mapping) or len(types) != 1:
                return _own("component_type", f"components[{at}]", "a component has exactly one type")
    data = message.get("dataModelUpdate")
    return None if not isinstance(data, Mapping) else _missed_entry(data["contents"])


def _missed_entry(contents: Iterable[Any]) -> CatalogProblem | None:
    pending = [(f"contents[{at}]", entry) for at, entry in enumerate(contents)]
    while pending:
        path, entry = pending.pop()
        if not isinstance(entry, Mapping) or sum(name in entry for name in _VALUES) != 1:
            return _own("entry_value", path, f"an entry has exactly one of {', '.join(_VALUES)}")
        below = entry.get("valueMap")
        if isinstance(below, list):
            pending += [(f"{path}.valueMap[{at}]", child) for at, child in enumerate(below)]
    return None


def _own(code: str, path: str, message: str) -> CatalogProblem:
    return CatalogProblem(code, ({"path": path, "code": code, "message": message},))


class PromptSchemas:
    """The schemas that a model is shown: messages both ways, and catalogs, of one A2UI version.

    Args:
        version: ``"v0.8"``, ``"v0.9"``, ``"v0.9.1"`` or ``"v1.0"``.
        catalogs: Catalogs of one's own by id, as `CatalogValidator` takes them.

    Attributes:
        catalogs: The documents of the basic catalog and of those, by id, the basic one first.

    Raises:
        ConfigurationError: The SDK is not installed, or a catalog is none.
    """

    def __init__(self, version: str, catalogs: Mapping[str, Any]) -> None:
        try:
            from a2ui.core.basic_catalog import BasicCatalog  # noqa: PLC0415 - an extra, and slow to import
            from a2ui.utils.schema_pruning import prune_common_types_schema  # noqa: PLC0415
            from a2ui.utils.schemas import (  # noqa: PLC0415
                load_agent_to_renderer_schema,
                load_common_types_schema,
            )
        except ImportError as exc:
            raise ConfigurationError(
                "the A2UI schemas for a prompt need the package a2ui-agent-sdk; pip install 'agui-pipeline[a2ui]'"
            ) from exc
        self._version: Final = version
        self._prune: Final[Callable[..., dict[str, Any]]] = prune_common_types_schema
        self._messages: Final[dict[str, Any]] = load_agent_to_renderer_schema(version)
        self._common: Final[dict[str, Any]] = load_common_types_schema(version)
        basic = BasicCatalog(version)
        self.basic_catalog_id: Final[str] = basic.catalog_id
        self.catalogs: Final[dict[str, dict[str, Any]]] = {basic.catalog_id: basic.to_json()}
        for id_, given in catalogs.items():
            self.catalogs[id_] = dict(given) if isinstance(given, Mapping) else given.to_json()

    def server_to_client(self) -> dict[str, Any]:
        """Return the schema of the messages to the client, in which components may be anything."""
        return self._messages

    def with_catalogs(self, ids: Sequence[str]) -> dict[str, Any]:
        """Return the schema of the messages together with the catalogs of some ids.

        For v0.8 with one catalog, that is one schema, whose components are the catalog's. Later versions' schemas refer
        to each other as files: they stand side by side under the names that the references use.
        """
        documents = {id_: self.catalogs[id_] for id_ in ids}
        if not documents:
            return self._messages
        if self._version == "v0.8" and len(documents) == 1:
            ((id_, catalog),) = documents.items()
            return _with_components(self._messages, catalog, None if id_ == self.basic_catalog_id else id_)
        common = self._prune(self._common, self._messages, *documents.values())
        shown: dict[str, Any] = {"server_to_client.json": self._messages}
        if common:
            shown["common_types.json"] = common
        if len(documents) == 1:
            return {**shown, "catalog.json": next(iter(documents.values()))}
        return {**shown, "catalogs (each stands for catalog.json on the surfaces that name it)": documents}

    def client_to_server(self) -> dict[str, Any]:
        """Return the schema of the messages from the client: actions and errors."""
        if self._version == "v0.8":
            from a2ui.core.schema.v0_8.client_to_server import RendererToAgentMessage as Wanted  # noqa: PLC0415
        elif self._version == "v1.0":
            from a2ui.core.schema.v1_0.renderer_to_agent import RendererToAgentMessage as Wanted  # noqa: PLC0415
        else:
            from a2ui.core.schema.v0_9.client_to_server import RendererToAgentMessage as Wanted  # noqa: PLC0415
        return TypeAdapter[Any](Wanted).json_schema(by_alias=True)


def _with_components(messages: dict[str, Any], catalog: Mapping[str, Any], id_: str | None) -> dict[str, Any]:
    """Return v0.8's message schema with a catalog's components in place of any; `id_` where surfaces must name it."""
    shown: dict[str, Any] = copy.deepcopy(messages)
    properties = shown["properties"]
    component = properties["surfaceUpdate"]["properties"]["components"]["items"]["properties"]["component"]
    component |= {"additionalProperties": False, "properties": catalog.get("components", {})}
    begin = properties["beginRendering"]
    styles = catalog.get("styles")
    if styles:
        begin["properties"]["styles"] |= {"properties": styles}
    if id_ is not None:
        begin["properties"]["catalogId"] |= {"const": id_}
        begin["required"] = [*begin["required"], "catalogId"]
    return shown
