"""Which published version of `@ag-ui/client` a level means. Does not know what any of them can do."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agui_pipeline.translators._errors import ConfigurationError

PREFIX: Final = "ag-ui/"
"""What the name of a level begins with."""

_TEXT: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")


class Version(NamedTuple):
    """A version of `@ag-ui/client`; compares as versions do."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


FIRST: Final = Version(0, 0, 30)
"""The oldest version that is a level."""
LAST: Final = Version(0, 0, 59)
"""The last version before 1.0."""
STATUS_UNREAD: Final = Version(0, 0, 37)
"""The last version that does not look at the HTTP status of an answer."""
CURRENT: Final = Version(1, 0, 0)
"""The version that needs no rules, as all of its major version."""


def version_of(level: str) -> Version:
    """Return the version that a level names.

    Args:
        level: Such as ``"ag-ui/0.0.44"``. From 0.0.30 to 0.0.59 and from 1.0.0 on, below 2.

    Raises:
        ConfigurationError: It names none of these; says what was got and what is wanted.

    Example:
        >>> version_of("ag-ui/0.0.44") < version_of("ag-ui/1.0.0")
        True
    """
    name: object = level
    found = _TEXT.fullmatch(name.removeprefix(PREFIX)) if isinstance(name, str) and name.startswith(PREFIX) else None
    if found is None:
        raise ConfigurationError(f"{level!r} is no level: wanted 'ag-ui/' and a version of @ag-ui/client, {_WANTED}")
    version = Version(*map(int, found.groups()))
    if version < FIRST:
        raise ConfigurationError(f"{level!r} is older than any level: wanted {_WANTED}")
    if LAST < version < CURRENT or version.major > CURRENT.major:
        raise ConfigurationError(f"{level!r} is no version of @ag-ui/client known here: wanted {_WANTED}")
    return version


_WANTED: Final = f"'ag-ui/{FIRST}' to 'ag-ui/{LAST}', or 'ag-ui/{CURRENT}'"
