"""Checks of option values at construction. Each names the option, the value and what it must be."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable

from agui_pipeline.translators import ConfigurationError


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Check that an option is one of a few values.

    Raises:
        ConfigurationError: It is not.
    """
    known = tuple(choices)
    if not any(type(value) is type(choice) and value == choice for choice in known):
        raise ConfigurationError(f"{name}={value!r}: must be one of {', '.join(map(repr, known))}")


def check_number(
    name: str, value: object, *, least: float = 0, most: float = sys.float_info.max, unit: str = "a number"
) -> None:
    """Check that an option is a finite number, at least `least` and at most `most`.

    Raises:
        ConfigurationError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        bounds = f"{least:g} or more" if most == sys.float_info.max else f"{least:g} to {most:g}"
        raise ConfigurationError(f"{name}={value!r}: must be {unit}, {bounds}")


def check_count(name: str, value: object, *, least: int = 0, unit: str = "a whole number") -> None:
    """Check that an option is a whole number, at least `least`.

    Raises:
        ConfigurationError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name}={value!r}: must be {unit}, {least} or more")


def check_callable(name: str, value: object, wanted: str, *, optional: bool = False) -> None:
    """Check that an option is a plain callable (or None, where that is allowed).

    Raises:
        ConfigurationError: It is not, or it is async: nobody would await what it returns.
    """
    if inspect.iscoroutinefunction(value):
        raise ConfigurationError(f"{name}={value!r}: must be a callable {wanted} that is not async")
    if not (callable(value) or (optional and value is None)):
        raise ConfigurationError(f"{name}={value!r}: must be {'None or ' if optional else ''}a callable {wanted}")


def check_store(name: str, value: object, protocol: type, wanted: str) -> None:
    """Check that an option is None, or an object with the methods of a runtime-checkable protocol.

    Raises:
        ConfigurationError: It is not, or it is a class: that has the methods, too, and nothing to call them on.
    """
    if value is not None and (isinstance(value, type) or not isinstance(value, protocol)):
        raise ConfigurationError(f"{name}={value!r}: must be None, {wanted}")
