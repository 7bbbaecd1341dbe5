"""A2UI in the arguments of tool calls, as agents with a tool such as ``render_a2ui`` send it.

Knows where in arguments messages are. Does not know how arguments are collected (`_open_calls.py`), nor which messages
are valid (`_judge.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from agui_pipeline.translators._scan_items import decode
from agui_pipeline.translators._scanner import JSONScanner
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._envelope import KINDS
from agui_pipeline.translators.a2ui._judge import Judge
from agui_pipeline.translators.a2ui._open_calls import ToolCall
from agui_pipeline.translators.a2ui._reader import Failure, Loose, Piece, Refusal
from agui_pipeline.translators.a2ui._repairs import Repairs, as_json

MESSAGE_KEYS: Final = ("messages", "a2ui_json", "a2ui_operations")
"""Arguments that hold messages: an array of them, one, or their text."""

_NOTHING: Final = "the arguments of a tool call hold no A2UI message"
_MAX_LEVELS: Final = 4  # {"messages": "[{…}]"} has three
MAX_CALL_VALUES: Final = 1024
"""Values in the arguments of a call that are looked at. An array may hold 250,000 texts, each to be scanned."""


class _Prose(NamedTuple):
    """Text between the records of arguments that are text."""

    text: str


class ToolReader:
    """Finds the messages in the arguments of one call.

    Args:
        judge: Decides on each.
        repairs: Repairs what is no JSON.
        report: The diagnostics of the run.
        on_invalid: What becomes of arguments that hold no message, and of values that are none. ``"text"`` is as
            ``"drop"``: they were never text for people.
        max_chars: The longest record in arguments that are text.
        max_depth: The deepest.
        catalog: The catalog of a surface whose tool call names none.
        exists: Whether a surface has been created.
    """

    def __init__(
        self,
        *,
        judge: Judge,
        repairs: Repairs,
        report: Reporter,
        on_invalid: str,
        max_chars: int,
        max_depth: int,
        catalog: str,
        exists: Callable[[str], bool],
    ) -> None:
        self._judge = judge
        self._repairs = repairs
        self._report = report
        self._on_invalid = on_invalid
        self._max_chars = max_chars
        self._max_depth = max_depth
        self._catalog = catalog
        self._exists = exists
        self._values = 0

    def read(self, call: ToolCall) -> Iterator[Piece]:
        """Give what goes on of a call that has ended: each piece only once those before it have gone on."""
        if call.over:
            yield from self._over("tool_arguments", call.max_chars, call.size, call.id)
            return
        nothing = True
        for value in self._found(call.arguments, call.id):
            nothing = False
            yield from self._judged(value, call.id)
        if self._values > MAX_CALL_VALUES:
            yield from self._over("tool_values", MAX_CALL_VALUES, self._values, call.id)
        elif nothing:
            yield from self._invalid(_NOTHING, call.arguments, call.id)

    def _judged(self, value: Any, call_id: str) -> list[Piece]:
        if isinstance(value, _Prose):
            return self._invalid("text in the arguments of a tool call is no A2UI message", value.text, call_id)
        text = as_json(value)
        verdict = self._judge(value, text, call_id)
        if isinstance(verdict, Refusal):
            return self._refused(verdict.reason, text if verdict.over_limit else value)
        return [verdict]

    def _refused(self, reason: str, value: Any) -> list[Piece]:
        if self._on_invalid == "error":
            return [Failure(reason)]
        return [Loose(value)] if self._on_invalid == "raw" else []

    def _invalid(self, reason: str, text: str, call_id: str) -> list[Piece]:
        self._report("a2ui.invalid", reason, message_id=call_id, detail={"reason": reason, "size": len(text)})
        return self._refused(reason, text)

    def _over(self, limit: str, maximum: int, size: int, call_id: str) -> list[Piece]:
        reason = f"{limit} is {maximum}, a call has {size}: what is over is not read"
        detail = {"limit": limit, "maximum": maximum, "size": size}
        self._report("a2ui.limit", reason, message_id=call_id, detail=detail)
        return [Failure(reason)] if self._on_invalid == "error" else []

    # Where the messages are

    def _found(self, text: str, call_id: str) -> Iterable[Any]:
        try:
            value = decode(text)
        except ValueError:
            records = self._records(text, call_id)
            if records:
                return records
            value = self._repairs.arguments(text, call_id)
        return self._messages(value, call_id, 1)

    def _records(self, text: str, call_id: str) -> list[Any]:
        """Read arguments that are JSON Lines and the like; nothing where there is no record in them."""
        scanner = JSONScanner(
            self._max_chars,
            self._max_depth,
            repair=(lambda broken, reason: self._repairs(broken, reason, call_id)) if self._repairs.enabled else None,
        )
        items = [*scanner.feed(text), *scanner.flush()]
        if not any(item.kind == "record" for item in items):
            return []
        return [
            item.value if item.kind == "record" else _Prose(item.text.strip())
            for item in items
            if item.kind == "record" or (item.kind == "prose" and not item.text.isspace())
        ]

    def _messages(self, value: Any, call_id: str, level: int) -> Iterator[Any]:
        self._values += 1
        if level > _MAX_LEVELS or self._values > MAX_CALL_VALUES:
            return
        if isinstance(value, str):
            yield from self._in_text(value, call_id, level)
        elif isinstance(value, list):
            for item in value:
                yield from self._messages(item, call_id, level + 1)
                if self._values > MAX_CALL_VALUES:
                    return
        elif isinstance(value, dict):
            if not KINDS.isdisjoint(value):
                yield value
                return
            key = next((key for key in MESSAGE_KEYS if key in value), None)
            yield from self._surface(value) if key is None else self._messages(value[key], call_id, level + 1)

    def _in_text(self, text: str, call_id: str, level: int) -> Iterable[Any]:
        try:
            inner = decode(text)
        except ValueError:
            return self._records(text, call_id)
        return self._messages(inner, call_id, level + 1)

    def _surface(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Make messages of the arguments of ``render_a2ui``: a surface, its components and its data."""
        surface_id, components = arguments.get("surfaceId"), arguments.get("components")
        if not isinstance(surface_id, str):
            return []
        given = arguments.get("data")
        data = given if isinstance(given, dict) and given else None
        if not (isinstance(components, list) and components) and data is None:
            return []
        version = {"version": "v0.9"}
        found: list[Any] = []
        if not self._exists(surface_id):
            catalog = arguments.get("catalogId")
            named = catalog if isinstance(catalog, str) and catalog else self._catalog
            found.append({**version, "createSurface": {"surfaceId": surface_id, "catalogId": named}})
        if components:
            found.append({**version, "updateComponents": {"surfaceId": surface_id, "components": components}})
        if data is not None:
            found.append({**version, "updateDataModel": {"surfaceId": surface_id, "path": "/", "value": data}})
        return found
