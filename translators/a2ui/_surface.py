"""One surface: what A2UI messages have said about it, folded to the messages that rebuild it.

Knows how each message changes a surface, and which earlier ones it makes superfluous. Does not know threads, runs
(but as marks) or events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self, cast

import orjson

from agui_pipeline.translators.a2ui._catalogs import catalog_named_by
from agui_pipeline.translators.a2ui._envelope import CREATES, FALLBACK_VERSION, Envelope, read_envelope

MAX_SURFACE_SIZE: Final = 4 * 1024 * 1024
"""Characters of JSON that one surface may come to. The TypeScript client gives up at 10 MB of one event."""

MAX_OPERATIONS: Final = 256
"""Operations that a v0.8 activity grows to before it is folded again."""

Message = dict[str, Any]

_EARLIER: Final = object()
"""Marks what a run before this one did, as far as a store knows."""


class _Datum:
    """One data message of a surface."""

    __slots__ = ("message", "path", "run", "size")

    def __init__(self, message: Message, path: str, run: object, size: int) -> None:
        self.message = message
        self.path = path
        self.run = run
        self.size = size


class Surface:
    """One surface: how it was created, its components by id, and the data messages that still count.

    Args:
        generation: That of the first message about it; see `generation_of`.

    Attributes:
        activity_id: The message id of the activity that shows it, once it has been created.
        shown_in: The last run that showed it to a client; None where none did. Compared by identity.
        size: Characters of JSON kept, roughly.
    """

    __slots__ = (
        "_component_sizes",
        "_components",
        "_data",
        "_grown",
        "_shown",
        "_unshown",
        "_update",
        "activity_id",
        "create",
        "generation",
        "shown_in",
        "size",
    )

    def __init__(self, generation: str) -> None:
        self.activity_id: str | None = None
        self.shown_in: object = None
        self.size = 0
        self.create: Message | None = None
        self.generation = generation
        self._components: dict[object, Any] = {}
        self._component_sizes: dict[object, int] = {}
        self._update: Message = {}
        """The last component message without its components: its version, and fields that we do not know."""
        self._data: list[_Datum] = []
        self._shown: list[Message] = []
        self._unshown: list[Message] = []
        """v0.8: the operations of the last snapshot, and the data messages that came since."""
        self._grown = 0
        """v0.8: characters of the data messages among them."""

    @classmethod
    def replay(cls, records: Iterable[Mapping[str, Any]], max_messages: int) -> Self:
        """Make a surface of what a store has kept of it. Records that nobody here wrote are skipped."""
        surface = cls(FALLBACK_VERSION)
        first = True
        for record in records:
            if "state" in record:
                surface._restore(record["state"])
            elif "activity" in record:
                surface.activity_id = record["activity"]
            elif "shown" in record:
                surface.shown_in = _EARLIER
                surface.snapshot(_EARLIER)
            elif isinstance(envelope := read_envelope(record.get("message"), record.get("size", 0)), Envelope):
                if first:
                    surface.generation = envelope.generation
                surface.apply(envelope, _EARLIER, max_messages)
            first = False
        return surface

    def state(self) -> dict[str, Any]:
        """Give the one record that says all about it."""
        state = {
            "generation": self.generation,
            "activity": self.activity_id,
            "seen": self.shown_in is not None,
            "create": self.create,
            "components": [[self._component_sizes[key], value] for key, value in self._components.items()],
            "update": self._update,
            "data": [[datum.path, datum.size, datum.message] for datum in self._data],
            "shown": self._shown,
            "unshown": self._unshown,
            "grown": self._grown,
            "size": self.size,
        }
        return {"state": state, "size": self.size}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.generation = state["generation"]
        self.activity_id = state["activity"]
        self.shown_in = _EARLIER if state["seen"] else None
        self.create = state["create"]
        for size, component in state["components"]:
            key = _key_of(component)
            self._components[key] = component
            self._component_sizes[key] = size
        self._update = state["update"]
        self._data = [_Datum(message, path, _EARLIER, size) for path, size, message in state["data"]]
        self._shown, self._unshown = list(state["shown"]), list(state["unshown"])
        self._grown = state["grown"]
        self.size = state["size"]

    @property
    def flat(self) -> bool:
        """Whether its messages are of v0.9 or later, whose components are flat objects."""
        return self.generation != FALLBACK_VERSION

    @property
    def complete(self) -> bool:
        """Whether a renderer has something to show: it was created and has components."""
        return self.create is not None and bool(self._components)

    @property
    def catalog_id(self) -> str | None:
        """The catalog that it was created with; None where it named none, or was not created."""
        for kind in CREATES:
            if self.create is not None and kind in self.create:
                return catalog_named_by(kind, self.create[kind])
        return None

    @property
    def sends_data_model(self) -> bool:
        """Whether it was created with `sendDataModel`."""
        return self.create is not None and self.create.get("createSurface", {}).get("sendDataModel") is True

    @property
    def messages(self) -> int:
        """How many messages rebuild it."""
        return (self.create is not None) + bool(self._components) + len(self._data)

    def operations(self) -> list[Message]:
        """Give the messages that rebuild it: created, all components in one, data.

        All components in one message, because the v0.8 renderers refuse a message that refers to components outside
        it, and created first, because the v0.9 renderers refuse anything else.
        """
        return self._folded(None)

    def snapshot(self, run: object) -> list[Message]:
        """Give the operations of the next snapshot for a client that shows the last one.

        What a user has typed must survive, and the renderers differ in how they apply a new list of operations:

        - v0.9 (the official middleware's readers, CopilotKit): every operation but the createSurface, on top of what
          is shown. So data that other runs set is left out.
        - v0.8 (the official React renderer in the AG-UI inspector): only what was appended, if the new list begins
          with the old one; else the surface is built anew. So the list grows while create message and components stay
          as they are, and holds all data when it is folded.

        Args:
            run: Whose data a v0.9 snapshot holds; compared by identity.
        """
        if self.flat:
            return self._folded(run)
        head = self._head()
        grown = [*self._shown, *self._unshown]
        fits = len(grown) <= MAX_OPERATIONS and self._grown <= MAX_SURFACE_SIZE
        appends = fits and len(self._shown) >= len(head)
        if not (appends and all(_same(old, new) for old, new in zip(self._shown, head, strict=False))):
            grown = self._folded(None)
            self._grown = sum(datum.size for datum in self._data)
        self._shown = grown
        self._unshown = []
        return grown

    def _head(self) -> list[Message]:
        found: list[Message] = [] if self.create is None else [self.create]
        if self._components:
            kind = "updateComponents" if self.flat else "surfaceUpdate"
            found.append({**self._update, kind: {**self._update[kind], "components": list(self._components.values())}})
        return found

    def _folded(self, run: object) -> list[Message]:
        return self._head() + [datum.message for datum in self._data if run is None or datum.run is run]

    def deletion(self, surface_id: str) -> Message:
        """Give the message that removes it, in the version that created it: a v0.9 renderer ignores a v0.8 one."""
        version = {} if self.create is None or not self.flat else {"version": self.create["version"]}
        return {**version, "deleteSurface": {"surfaceId": surface_id}}

    def apply(self, envelope: Envelope, run: object, max_messages: int) -> tuple[bool, int]:
        """Take one message other than a deletion, of this surface's generation unless it creates it.

        Args:
            envelope: The message.
            run: Whose it is, for `snapshot`; compared by identity.
            max_messages: How many messages may rebuild the surface; the oldest data is forgotten first.

        Returns:
            Whether this changes what `operations` gives, and how many data messages were forgotten.
        """
        body = envelope.body
        kind = envelope.kind
        size = envelope.size
        if kind == "createSurface":
            self._empty(envelope.generation)
            self._put_create(envelope, run)
            return True, 0
        if kind == "beginRendering":
            if self.flat:
                self._empty(FALLBACK_VERSION)
            changed = not _same(self.create, envelope.message)
            self.size += size - _size_of(self.create)
            self.create = envelope.message
            return changed, 0
        if kind in {"surfaceUpdate", "updateComponents"}:
            rest = {key: value for key, value in body.items() if key != "components"}
            update = {key: rest if key == kind else value for key, value in envelope.message.items()}
            return self._put_components(body["components"], update, size), 0
        changed = self._put_datum(_Datum(envelope.message, _path(body.get("path")), run, size))
        if not self.flat:
            self._unshown.append(envelope.message)
            self._grown += size
            if len(self._unshown) > MAX_OPERATIONS:  # nobody shows it: the next snapshot is folded
                self._shown, self._unshown, self._grown = [], [], 0
        forgotten = 0
        while self.messages > max(max_messages, 3):  # created, components, and the newest data
            self.size -= self._data.pop(0).size
            forgotten += 1
        return changed, forgotten

    def _empty(self, generation: str) -> None:
        self._components.clear()
        self._component_sizes.clear()
        self._data.clear()
        self._shown, self._unshown, self._grown = [], [], 0
        self.create = None
        self.generation = generation
        self.size = 0

    def _put_create(self, envelope: Envelope, run: object) -> None:
        self.size = envelope.size
        body = dict(envelope.body)
        # v1.0 may bring components and data along: apart, so that they take part in what follows.
        components = body.pop("components", None)
        data = body.pop("dataModel", None)
        self.create = {key: body if key == "createSurface" else value for key, value in envelope.message.items()}
        head = {key: value for key, value in envelope.message.items() if key != "createSurface"}
        if components is not None:
            self._put_components(components, {**head, "updateComponents": {"surfaceId": envelope.surface_id}}, 0)
        if data is not None:
            message = {**head, "updateDataModel": {"surfaceId": envelope.surface_id, "path": "/", "value": data}}
            self._put_datum(_Datum(message, "", run, 0))

    def _put_components(self, components: list[Any], update: Message, size: int) -> bool:
        changed = False
        share = size // len(components)
        for component in components:
            key = _key_of(component)
            if self.flat and key in self._components and "component" not in component:
                # A v0.9 update may leave the type of a known component out.
                known = self._components[key]
                if "component" in known:
                    component = {**component, "component": known["component"]}  # noqa: PLW2901 - the event's stays
            changed = changed or key not in self._components or not _same(self._components[key], component)
            self._components[key] = component
            self.size += share - self._component_sizes.get(key, 0)
            self._component_sizes[key] = share
        self._update = update
        return changed

    def _put_datum(self, new: _Datum) -> bool:
        kept: list[_Datum] = []
        replaced: list[_Datum] = []
        for old in self._data:
            (replaced if _replaces(new, old, flat=self.flat) else kept).append(old)
        # In v0.8 a message kept after the replaced one may have replaced the same map.
        last = len(replaced) == 1 and (self.flat or self._data[-1] is replaced[0])
        repeated = last and replaced[0].run is new.run and _same(replaced[0].message, new.message)
        self.size += new.size - sum(old.size for old in replaced)
        self._data = [*kept, new]
        return not repeated


def _key_of(component: object) -> object:
    """Return what a component is replaced by: its id; one without is never replaced."""
    key = component.get("id") if isinstance(component, dict) else None
    return key if isinstance(key, str) else object()


def _path(path: object) -> str:
    """Return a data path without the slash at its end, so that the root is ``""``."""
    text = cast("str", path) if path else "/"
    return "/" + text.strip("/") if text.strip("/") else ""


def _replaces(new: _Datum, old: _Datum, *, flat: bool) -> bool:
    """Say whether nothing of `old` can be left once `new` is applied after it."""
    if new.path == "":
        return True
    if old.path != new.path and not old.path.startswith(new.path + "/"):
        return False
    if flat:
        return True
    # v0.8 renderers differ on whether the keys that a map had before stay: only what is named again is replaced.
    named = _keys(new.message)
    if old.path == new.path:
        return _keys(old.message) <= named
    return old.path[len(new.path) + 1 :].split("/", 1)[0] in named


def _keys(message: Message) -> set[str]:
    contents = message["dataModelUpdate"]["contents"]
    return {item["key"] for item in contents if isinstance(item, dict) and isinstance(item.get("key"), str)}


def _same(one: object, other: object) -> bool:
    """Compare JSON values as JSON does: ``1``, ``1.0`` and ``true`` differ, in whatever order keys stand."""
    if one is other:
        return True
    if one != other:
        return False
    try:
        return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # integers past 64 bits and the like: to show it once more does no harm
        return False


def _size_of(message: Message | None) -> int:
    try:
        return 0 if message is None else len(orjson.dumps(message))
    except TypeError:
        return len(repr(message))
