"""Who made what: the `subagentRunId` of each message, tool call, activity and reasoning of one run.

Knows the client's rules: what a part's first event says holds for the run, later events may say nothing but not the
contrary, snapshots restate it. Does not know what is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agui_pipeline.translators._event_shapes import MESSAGES
from agui_pipeline.translators._events import WireEvent
from agui_pipeline.translators.lifecycle import REASONING, SPAN, TEXT, TOOL, Repair, Violation

ACTIVITY: Final = "activity"
_NOT_SEEN: Final = object()
_NOTHING: Final[Mapping[str, Any]] = {}


def field_of(thing: Any, name: str, wire_name: str) -> Any:
    """Return a field of an event, message or call: a model's or a view's attribute, or a mapping's item.

    None where it is absent, also where the installed SDK has no such field.
    """
    if type(thing) is WireEvent:
        return thing._data.get(wire_name)  # noqa: SLF001 - half the time of the property
    if isinstance(thing, Mapping):
        return thing.get(wire_name)
    fields = getattr(thing, "__dict__", _NOTHING)
    if name in fields:
        return fields[name]
    extra = getattr(thing, "__pydantic_extra__", None)
    return extra.get(wire_name) if extra else getattr(thing, name, None)


def owner_of(thing: Any) -> str | None:
    """Return the tag of an event or a message; None, the parent's, where there is none that is a string."""
    tag = field_of(thing, "subagent_run_id", "subagentRunId")
    return tag if isinstance(tag, str) else None


def name_of(owner: object) -> str:
    """Return an owner in words, without its id."""
    return "the parent agent's" if owner is None else "a subagent's"


class Owners:
    """The owners in one run. Ids are unique within a kind only; a span of reasoning and its messages share theirs."""

    def __init__(self) -> None:
        reasoning: dict[str, str | None] = {}
        self._of: dict[str, dict[str, str | None]] = {
            TEXT: {},
            TOOL: {},
            ACTIVITY: {},
            SPAN: reasoning,
            REASONING: reasoning,
        }

    def keeps(self, kind: str) -> bool:
        """Whether parts of this kind have owners that outlive them."""
        return kind in self._of

    def check(self, kind: str, id: str, tag: str | None) -> Violation | None:
        """Return what is wrong with the tag of an event about something that was opened before, or never."""
        if tag is None or self._of[kind].get(id, tag) == tag:
            return None
        return untagged(kind, self._of[kind][id])

    def check_encrypted(self, subtype: Any, id: str, tag: str | None) -> Violation | None:
        """The same for an encrypted value, which may belong to a tool call, a message, or a reasoning message."""
        if subtype == "tool-call":
            return self.check(TOOL, id, tag)
        return self.check(TEXT if subtype == "message" and id in self._of[TEXT] else REASONING, id, tag)

    def check_opening(self, kind: str, id: str, tag: str | None, parent: Any) -> Violation | None:
        """The same for an event that opens a part.

        Args:
            kind: The kind of part.
            id: Its id.
            tag: The event's tag.
            parent: The id of a tool call's parent message, None for none.
        """
        inherited = self._inherited(kind, parent)
        if inherited is not _NOT_SEEN:
            if tag is not None and tag != inherited:
                words = f"the parent message is {name_of(inherited)}"
                return Violation("call-parent", Repair.CHANGE, words, {"subagent_run_id": None})
            known = self._of[kind].get(id, _NOT_SEEN)
            if tag is None and known is not _NOT_SEEN and known != inherited:
                words = f"the call is {name_of(known)}, its parent message {name_of(inherited)}"
                return Violation("call-parent", Repair.CHANGE, words, {"parent_message_id": None})
        return self.check(kind, id, tag)

    def open(self, kind: str, id: str, tag: str | None, parent: Any) -> None:
        """Record the owner of a part that is opened, unless it has one already."""
        if tag is None and kind is TOOL and isinstance(parent, str):
            tag = self._of[TEXT].get(parent)
        self._of[kind].setdefault(id, tag)

    def set(self, kind: str, id: str, tag: str | None) -> None:
        """Record the owner of what is made anew, whatever was known."""
        self._of[kind][id] = tag

    def known(self, kind: str, id: str) -> bool:
        """Whether there is one on record."""
        return id in self._of[kind]

    def get(self, kind: str, id: str) -> str | None:
        """Return the owner, None for the parent and for what is not known."""
        return self._of[kind].get(id)

    def seed(self, messages: Any, *, restate: bool) -> None:
        """Take the owners from messages.

        Args:
            messages: Models or mappings.
            restate: Whether they replace what is known (MESSAGES_SNAPSHOT), or are history (RUN_STARTED's input).
        """
        if not isinstance(messages, Iterable) or isinstance(messages, str | Mapping):
            return
        for message in messages:
            id, role = field_of(message, "id", "id"), field_of(message, "role", "role")
            if not isinstance(id, str) or not isinstance(role, str) or role not in MESSAGES:  # others are stripped
                continue
            named = [({"reasoning": REASONING, "activity": ACTIVITY}.get(role, TEXT), id)]
            calls = field_of(message, "tool_calls", "toolCalls") if role == "assistant" else None
            if isinstance(calls, list | tuple):
                ids = (field_of(call, "id", "id") for call in calls)
                named += [(TOOL, name) for name in ids if isinstance(name, str)]
            owner = owner_of(message)
            for kind, name in named:
                if restate or name not in self._of[kind]:
                    self._of[kind][name] = owner

    def _inherited(self, kind: str, parent: Any) -> object:
        return self._of[TEXT].get(parent, _NOT_SEEN) if kind is TOOL and isinstance(parent, str) else _NOT_SEEN


def untagged(kind: str, owner: object) -> Violation:
    """Return the violation of an event whose tag contradicts the owner: the id says more than the tag."""
    return Violation("owner", Repair.CHANGE, f"the {kind} is {name_of(owner)}", {"subagent_run_id": None})
