"""Activities that say how far something is: a numeric ``current`` and ``total`` in their content.

Knows the content of each activity, deltas applied. Does not know when a client hears of it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard

import jsonpatch

from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._events import loads
from agui_pipeline.translators.superagent._meanings import Progress

_LABELS: Final = ("step", "label", "title")
"""Where the words for a step may be, the first that has any; else it is the activity's type."""


class Activities:
    """The activities of one run.

    Args:
        note: Is told of patches that do not apply: the activity's id.
    """

    __slots__ = ("_contents", "_note", "_told")

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._contents: dict[str, Any] = {}
        self._told: dict[str, tuple[Any, ...]] = {}

    def snapshot(self, id: str, activity_type: str, content: Any, *, replace: bool) -> Progress | None:
        """Take a snapshot; return the progress that it makes, None for none."""
        if replace or id not in self._contents:
            # A JSON value of our own: patches change it in place, and events are never changed.
            self._contents[id] = loads(encode_json(content, lambda _: None))
        return self._progress(id, activity_type)

    def delta(self, id: str, activity_type: str, patch: Any) -> Progress | None:
        """Take a patch; likewise. One of an activity without snapshot has no effect."""
        if id not in self._contents:
            return None
        try:
            # In place: a copy of the content for each patch would cost its size. A patch that does not apply may then
            # have been applied in part, so that nothing is known of the content any more.
            self._contents[id] = jsonpatch.JsonPatch(copy.deepcopy(patch)).apply(self._contents[id], in_place=True)
        except Exception:  # noqa: BLE001 - the library lets TypeErrors out, too
            del self._contents[id]
            self._note(id)
            return None
        return self._progress(id, activity_type)

    def counts(self, id: str) -> bool:
        """Whether the activity has said how far it is."""
        return id in self._told

    def _progress(self, id: str, activity_type: str) -> Progress | None:
        content = self._contents[id]
        if not isinstance(content, Mapping):
            return None
        current, total = content.get("current"), content.get("total")
        if not _is_number(current) or not _is_number(total):
            return None
        label = next((text for name in _LABELS if isinstance(text := content.get(name), str)), activity_type)
        told = (label, current, total)
        if self._told.get(id) == told:
            return None
        self._told[id] = told
        return Progress(label, current, total)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
