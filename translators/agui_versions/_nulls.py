"""Nulls: old clients give up on one in an optional field that they know; to 1.0 some of them mean nothing.

Knows where values are free, so that a null is data there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from agui_pipeline.translators._events import AnyEvent, WireEvent, decode_event
from agui_pipeline.translators.agui_versions._rule import Setting


class _Shape(NamedTuple):
    """Where nulls may stay in an object, and which of its fields hold objects, or lists of them, to look into."""

    keeps: frozenset[str] = frozenset()
    inside: Mapping[str, Any] = {}


_PLAIN: Final = _Shape()
_MESSAGE: Final = _Shape(
    inside={
        "toolCalls": _Shape(inside={"function": _PLAIN}),
        "content": _Shape(inside={"source": _PLAIN}),
    }
)
_INPUT: Final = _Shape(
    frozenset({"state", "forwardedProps"}),
    {
        "messages": _MESSAGE,
        "tools": _Shape(frozenset({"parameters"})),
        "resume": _Shape(frozenset({"payload"})),
    },
)
_OUTCOME: Final = _Shape(inside={"interrupts": _PLAIN})
_EVENT: Final = _Shape(
    frozenset({"rawEvent", "result", "outcome", "event", "value", "snapshot"}),
    {"messages": _MESSAGE, "input": _INPUT, "outcome": _OUTCOME, "usage": _PLAIN},
)


_NESTED: Final = ("RUN_", "MESSAGES_")
"""What the types begin with that have objects inside."""


def without_nulls(event: AnyEvent, _setting: Setting) -> Iterable[AnyEvent]:
    """Leave out what is null and may be left out. Models are encoded without it."""
    if type(event) is not WireEvent:
        return (event,)
    data = event._data  # noqa: SLF001 - a view of a view, for nothing
    if None not in data.values() and not event.type.startswith(_NESTED):
        return (event,)
    cleaned = _cleaned(data, _EVENT, event.type)
    return (event,) if cleaned is data else (decode_event(cleaned),)


def _cleaned(value: dict[str, Any], shape: _Shape, event_type: str | None = None) -> dict[str, Any]:
    """Return an object without its nulls: the same one where it has none."""
    out = value
    for name, item in value.items():
        if item is None:
            if name not in shape.keeps:
                out = dict(value) if out is value else out
                del out[name]
            continue
        inside = shape.inside.get(name)
        if inside is None:
            continue
        if type(item) is list:
            new: Any = [_cleaned(one, inside) if type(one) is dict else one for one in item]
            changed = any(one is not old for one, old in zip(new, item, strict=True))
        else:
            # An object in place of a list is an activity's content: data.
            free = type(item) is not dict or (name == "content" and event_type is None)
            new = item if free else _cleaned(item, inside)
            changed = new is not item
        if changed:
            out = dict(value) if out is value else out
            out[name] = new
    return out
