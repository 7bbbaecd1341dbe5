"""A2UI server-to-client messages: which JSON values are one, of which version, and for which surface.

Knows the message keys, required fields and version rules of A2UI v0.8, v0.9, v0.9.1 and v1.0 (candidate), from the
specification's schemas. Does not know catalogs: components, their references and data are looked at by nobody here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

FALLBACK_VERSION: Final = "v0.8"
"""What a message without a known version counts as. Only v0.8 messages carry none."""

CREATES: Final = frozenset({"createSurface", "beginRendering"})
"""The messages that make a surface appear."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_filled_list(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0


def _is_anything(_value: object) -> bool:
    return True


_WANTED: Final[Mapping[Callable[[object], bool], str]] = {
    _is_text: "a string",
    _is_object: "an object",
    _is_list: "a list",
    _is_filled_list: "a list of at least one",
    _is_anything: "a value",
}

_Fields: TypeAlias = dict[str, Callable[[object], bool]]
_SURFACE: Final[_Fields] = {"surfaceId": _is_text}
_COMPONENTS: Final[_Fields] = _SURFACE | {"components": _is_filled_list}

# Required fields by message, by version.
_V08: Final[Mapping[str, _Fields]] = {
    "beginRendering": _SURFACE | {"root": _is_text},
    "surfaceUpdate": _COMPONENTS,
    "dataModelUpdate": _SURFACE | {"contents": _is_list},
    "deleteSurface": _SURFACE,
}
_V09: Final[Mapping[str, _Fields]] = {
    "createSurface": _SURFACE | {"catalogId": _is_text},
    "updateComponents": _COMPONENTS,
    "updateDataModel": _SURFACE,
    "deleteSurface": _SURFACE,
}
_V10: Final[Mapping[str, _Fields]] = {
    "createSurface": _SURFACE,
    "updateComponents": _COMPONENTS,
    "updateDataModel": _SURFACE | {"value": _is_anything},
    "deleteSurface": _SURFACE,
    "callRendererFunction": {"functionCallId": _is_text, "callFunction": _is_object},
    "agentFunctionResponse": {"functionCallId": _is_text},
}
_REQUIRED: Final[Mapping[str, Mapping[str, _Fields]]] = {"v0.8": _V08, "v0.9": _V09, "v0.9.1": _V09, "v1.0": _V10}

# Optional fields that this library reads: of another type they would be misread.
_OPTIONAL: Final[Mapping[str, _Fields]] = {
    "dataModelUpdate": {"path": _is_text},
    "updateDataModel": {"path": _is_text},
    "createSurface": {"components": _is_filled_list, "dataModel": _is_object},
    "callRendererFunction": _SURFACE,
}

VERSIONS: Final = tuple(_REQUIRED)
"""The A2UI versions known here, oldest first."""

KINDS: Final = frozenset(kind for messages in _REQUIRED.values() for kind in messages)
"""The keys that name a message, of any version."""


SURFACE_KINDS: Final = KINDS - {"callRendererFunction", "agentFunctionResponse"}
"""Those that change a surface."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A JSON value that is carried as an A2UI message.

    Attributes:
        kind: The message key, such as ``"surfaceUpdate"``; None where nothing was checked (``validate="off"``).
        version: One of `VERSIONS`.
        surface_id: The surface it is about; None where it is about none (v1.0 functions), or was not checked.
        message: The value as it was decoded. Never changed.
        size: Characters of the text that it was decoded from.
    """

    kind: str | None
    version: str
    surface_id: str | None
    message: Any
    size: int = 0

    @property
    def generation(self) -> str:
        """Whose surfaces it can change; see `generation_of`."""
        return generation_of(self.version)

    @property
    def body(self) -> Mapping[str, Any]:
        """What the message key holds; empty where nothing was checked."""
        return {} if self.kind is None else self.message[self.kind]


def generation_of(version: str) -> str:
    """Return whose surfaces messages of a version can change: ``"v0.8"``, ``"v0.9"`` (v0.9.1, too) or ``"v1.0"``."""
    return "v0.9" if version == "v0.9.1" else version


def read_envelope(value: object, size: int = 0) -> Envelope | str:
    """Read a JSON value as a message: exactly one known key, its required fields, the version that it belongs to.

    Args:
        value: Any decoded JSON.
        size: Characters of its text, for `Envelope.size`.

    Returns:
        The message, or one sentence that says what is wrong with it. The sentence repeats nothing of the value.

    Example:
        >>> read_envelope({"deleteSurface": {"surfaceId": "s"}}).version
        'v0.8'
        >>> read_envelope({"version": "v0.9", "createSurface": {"surfaceId": "s"}})
        'createSurface of v0.9 needs "catalogId", a string'
    """
    if not isinstance(value, dict):
        return "an A2UI message is a JSON object"
    version = value.get("version", FALLBACK_VERSION)
    kinds = [key for key in value if key in KINDS]
    problem = _problem_with_keys(value, version, kinds) or _problem_with_fields(value[kinds[0]], version, kinds[0])
    if problem is not None:
        return problem
    kind = kinds[0]
    return Envelope(kind, version, value[kind].get("surfaceId"), value, size)


def _problem_with_keys(value: dict[str, Any], version: object, kinds: list[str]) -> str | None:
    if not (isinstance(version, str) and version in _REQUIRED):
        return f'"version" must be one of {", ".join(VERSIONS[1:])}, or absent (v0.8)'
    if version == FALLBACK_VERSION and "version" in value:
        return 'a v0.8 message has no "version"'
    if len(kinds) != 1:
        return "an A2UI message has exactly one message key; got " + (", ".join(kinds) or "none")
    kind = kinds[0]
    if len(value) != 1 + ("version" in value):
        return f'{kind} must stand alone in its message, but for "version"'
    if kind in _REQUIRED[version]:
        return None
    return f'{kind} needs a "version"' if version == FALLBACK_VERSION else f"{kind} is no message of {version}"


def _problem_with_fields(body: object, version: str, kind: str) -> str | None:
    if not isinstance(body, dict):
        return f"{kind} must hold an object"
    for field, fits in _REQUIRED[version][kind].items():
        if field not in body or not fits(body[field]):
            return f'{kind} of {version} needs "{field}", {_WANTED[fits]}'
    for field, fits in _OPTIONAL.get(kind, {}).items():
        if field in body and not fits(body[field]):
            return f'"{field}" of {kind} must be {_WANTED[fits]}'
    if kind == "agentFunctionResponse" and ("value" in body) == ("error" in body):
        return 'agentFunctionResponse needs either "value" or "error"'
    return None


def unchecked_envelope(value: object, size: int = 0) -> Envelope:
    """Wrap a JSON value that nobody checked (``validate="off"``), with the version it claims if that is known."""
    return Envelope(None, version_of(value), None, value, size)


def version_of(value: object) -> str:
    """Return the version that a JSON value claims if it is a known one, else v0.8."""
    if isinstance(value, dict):
        version = value.get("version")
        if isinstance(version, str) and version in _REQUIRED:
            return version
    return FALLBACK_VERSION


def surface_of(value: object) -> str | None:
    """Return the surface that a JSON value seems to be about, for diagnostics of what is no message."""
    if isinstance(value, dict):
        for body in value.values():
            if isinstance(body, dict) and isinstance(body.get("surfaceId"), str):
                return str(body["surfaceId"])
    return None
