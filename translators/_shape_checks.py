"""The vocabulary of `_event_shapes.py`: what a value must be, and what one that is not surely means.

Knows JSON values. Does not know any event.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

LARGEST: Final = 2**53 - 1
"""The largest integer that JavaScript tells from its neighbour."""


class Removed:
    """A fix: the field goes."""


class Dropped:
    """A fix: the whole event goes, since what it is about has no name."""


class Misfit(NamedTuple):
    """A field whose value the client refuses.

    Attributes:
        path: Keys and indices that lead to it.
        got: What is there, in words without content.
        wanted: What must be there.
        fix: Where there is only one reading: `Removed`, `Dropped`, or a one-tuple with the value; else None.
    """

    path: tuple[str | int, ...]
    got: str
    wanted: str
    fix: type[Removed | Dropped] | tuple[Any] | None = None

    def __str__(self) -> str:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).lstrip(".")
        return f"{where} must be {self.wanted}; got {self.got}"


Context = Mapping[str, Any]
"""What the stream around the event says: values for `threadId` and `runId`, by wire name."""


class Check(ABC):
    """What a value must be.

    Only JSON's own types are judged: other objects, in events of in-process agents, are the encoder's business.
    """

    wanted: str

    def is_nameless(self, value: Any) -> bool:  # noqa: ARG002 - most checks are of no names
        """Whether a value stands where a name should, and names nothing: as good as absent."""
        return False

    @abstractmethod
    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        """Append what is wrong with a value."""

    def _misfit(self, value: Any, path: tuple[str | int, ...], fix: Any = None) -> Misfit:
        return Misfit(path, _word(value), self.wanted, fix)


class Text(Check):
    wanted = "a string"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if type(value) is not str and _foreign(value, str):
            found.append(self._misfit(value, path))


class Sentence(Check):
    """Text for people, which a fixed sentence can stand in for."""

    wanted = "a string"

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, str):
            found.append(self._misfit(value, path, (self._instead,)))


class Name(Check):
    """An id. A whole number has exactly one spelling; anything else that is no string names nothing."""

    wanted = "a string"

    def __init__(self, otherwise: type[Removed | Dropped] | None = None) -> None:
        self._otherwise = otherwise

    def is_nameless(self, value: Any) -> bool:
        return type(value) is not int and _foreign(value, str)

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if type(value) is not str and _foreign(value, str):
            fix = (str(value),) if type(value) is int else self._otherwise
            found.append(self._misfit(value, path, fix))


class Choice(Check):
    def __init__(self, *values: str) -> None:
        self._values = frozenset(values)
        self.wanted = " or ".join(repr(value) for value in values)
        self._fix = (values[0],) if len(values) == 1 else None

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, str) or (isinstance(value, str) and value not in self._values):
            found.append(self._misfit(value, path, self._fix))


class Whole(Check):
    wanted = f"a whole number from 0 to {LARGEST}"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if not _is_whole(value) or value < 0:
            found.append(self._misfit(value, path))


class Timestamp(Check):
    """Informative only: a fraction goes, and so does what is no number at all."""

    wanted = "a whole number of at most 53 bits"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if not _is_whole(value):
            number = isinstance(value, float) and -LARGEST <= value <= LARGEST
            found.append(self._misfit(value, path, (int(value),) if number else Removed))


class Flag(Check):
    wanted = "true or false"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, bool):
            found.append(self._misfit(value, path))


class Anything(Check):
    wanted = "a value"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        """Any JSON value is one; whether null is, the field says."""


class JSONObject(Check):
    """An object that the protocol does not look into."""

    wanted = "an object"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, Mapping):
            found.append(self._misfit(value, path))


class Pointer(Check):
    wanted = "a JSON pointer"
    _SYNTAX: Final = re.compile(r"(?:/(?:[^/~]|~[01])*)*")

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, str) or (isinstance(value, str) and not self._SYNTAX.fullmatch(value)):
            found.append(self._misfit(value, path))


class Many(Check):
    def __init__(self, item: Check, *, least: int = 0) -> None:
        self._item = item
        self._least = least
        self.wanted = f"an array of {least} or more" if least else "an array"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, (list, tuple)):
            found.append(self._misfit(value, path))
        elif isinstance(value, list | tuple):
            if len(value) < self._least:
                found.append(self._misfit(value, path))
            for index, item in enumerate(value):
                self._item.look(item, (*path, index), found)


class TextOr(Check):
    def __init__(self, parts: Check) -> None:
        self._parts = parts
        self.wanted = "a string or an array"

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, (str, list, tuple)):
            found.append(self._misfit(value, path))
        elif not isinstance(value, str):
            self._parts.look(value, path, found)


class Field(NamedTuple):
    """A field of an object."""

    check: Check
    required: bool = True
    null: bool = False
    """Whether null is legal: as data, or as one of the old spellings that the client still reads as absent."""
    empty: Callable[[Mapping[str, Any], Context], Any] | None = None
    """What absence and null mean, where the field is required and they can mean only one thing."""


class Shape(Check):
    """An object whose fields the protocol describes. Fields that it does not are stripped by the client."""

    wanted = "an object"

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.fields = fields
        self._required = tuple(name for name, field in fields.items() if field.required)

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, Mapping):
            found.append(self._misfit(value, path))
        elif isinstance(value, Mapping):
            self.look_into(value, path, found, {})

    def look_into(
        self, value: Mapping[str, Any], path: tuple[str | int, ...], found: list[Misfit], context: Context
    ) -> None:
        fields = self.fields
        for name, item in value.items():
            field = fields.get(name)
            if field is None:
                continue
            if item is not None:
                if field.empty is not None and type(item) is not str and field.check.is_nameless(item):
                    self._absent(name, _word(item), value, path, found, context)
                else:
                    field.check.look(item, (*path, name), found)
            elif not field.null:
                self._absent(name, "null", value, path, found, context)
        for name in self._required:
            if name not in value:
                self._absent(name, "nothing", value, path, found, context)

    def _absent(
        self,
        name: str,
        got: str,
        value: Mapping[str, Any],
        path: tuple[str | int, ...],
        found: list[Misfit],
        context: Context,
    ) -> None:
        field = self.fields[name]
        fix: Any = None
        if not field.required:
            fix = Removed
        elif field.empty is not None:
            fix = (field.empty(value, context),)
        elif isinstance(field.check, Name):
            fix = field.check._otherwise  # noqa: SLF001 - this module owns the class
        found.append(Misfit((*path, name), got, field.check.wanted, fix))


class Media(Shape):
    """A media part, which the client strips as a whole where it does not know the kind of source."""

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        source = value.get("source") if isinstance(value, Mapping) else None
        if not isinstance(source, Mapping) or source.get("type") in ("data", "url", "file"):
            super().look(value, path, found)


class Tagged(Check):
    """One of several shapes, told apart by one field. A shape that the client does not know, it strips."""

    wanted = "an object"

    def __init__(self, tag: str, shapes: Mapping[str, Check]) -> None:
        self._tag = tag
        self._shapes = shapes

    def look(self, value: Any, path: tuple[str | int, ...], found: list[Misfit]) -> None:
        if _foreign(value, Mapping):
            found.append(self._misfit(value, path))
        elif isinstance(value, Mapping):
            tag = value.get(self._tag)
            shape = self._shapes.get(tag) if isinstance(tag, str) else None
            if shape is not None:
                shape.look(value, path, found)


_NATIVE: Final = (str, int, float, list, tuple, Mapping, type(None))


def _foreign(value: Any, wanted: type | tuple[type, ...]) -> bool:
    """Whether a value is one of JSON's, but not of the wanted type."""
    return not isinstance(value, wanted) and isinstance(value, _NATIVE)


def _is_whole(value: Any) -> bool:
    # JSON has one kind of number: 1.0 is whole.
    if type(value) is int:
        return -LARGEST <= value <= LARGEST
    if type(value) is float:
        return value.is_integer() and -LARGEST <= value <= LARGEST
    return not isinstance(value, _NATIVE)


def _word(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "another string"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, Mapping):
        return "an object"
    return "an array" if value else "an empty array"
