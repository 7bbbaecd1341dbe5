"""What a server has said to its clients: tool calls, their results, and interrupts, by thread.

Knows what of the outgoing events must be remembered so that an input can be compared with it later, and how to forget
in an orderly way. Does not know what becomes of an input that claims something else (`_trust.py`).
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final, Protocol, runtime_checkable

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._errors import ConfigurationError
from agui_pipeline.translators._events import AnyEvent, Event
from agui_pipeline.translators._keys import short_key
from agui_pipeline.translators._owners import field_of, owner_of

_MAX_VERSIONS: Final = 8
"""Names, arguments and results remembered of one call id: some models count their calls from zero in each run."""
_MAX_ARGUMENTS: Final = 4_000_000
"""Characters of a call's arguments that are held until it ends. A longer call is known by its name only."""
_MAX_CALLS_A_THREAD: Final = 1_000
_MAX_INTERRUPTS_A_THREAD: Final = 100
_MAX_JSON: Final = 65_536
"""Characters of a text that is compared as JSON; a longer one is compared character by character, which is cheap."""
_LEGACY_INTERRUPT: Final = "on_interrupt"
"""The CUSTOM event by which LangGraph's integration tells clients before 1.0 of an interrupt. It has no id for them."""


@dataclass(frozen=True, slots=True)
class IssuedCall:
    """What a server said of one tool call id. Made of strings, tuples and a bool, so that it is easily stored.

    Attributes:
        names: The tools that it called; empty where no name was said.
        arguments: The `digest` of each text of arguments; empty where they are not known.
        results: The `digest` of each result that the server itself sent.
        answered: Whether the server answered it: then no client has another result for it.
    """

    names: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    answered: bool = False

    def called(self, name: str | None, arguments: str | None) -> IssuedCall:
        """Return it with one more call, which is not answered yet.

        Args:
            name: The tool's name, None where it was not said.
            arguments: The digest of the arguments, None where it is not known.
        """
        return replace(self, names=_with(self.names, name), arguments=_with(self.arguments, arguments), answered=False)

    def told(self, name: str | None, arguments: str | None) -> IssuedCall:
        """Return it with another form of the call, as history has it: that says nothing about an answer."""
        return replace(self, names=_with(self.names, name), arguments=_with(self.arguments, arguments))

    def result(self, result: str, *, final: bool) -> IssuedCall:
        """Return it with one more result.

        Args:
            result: The digest of its content.
            final: Whether this is the server's answer, not a result in a history, which may be the client's.
        """
        return replace(self, results=_with(self.results, result), answered=self.answered or final)


@runtime_checkable
class IssuedStore(Protocol):
    """Where `TrustMiddleware` keeps what was issued. Called in the event loop, in the midst of runs: must not block.

    One key is one thread of one user, as the middleware's `key` says. Forgetting is allowed: what a store does not
    know was not issued.
    """

    def get_call(self, key: str, call_id: str, /) -> IssuedCall | None:
        """Return what is known of a tool call, None for nothing."""
        ...

    def put_call(self, key: str, call_id: str, call: IssuedCall, /) -> None:
        """Keep what is known of a tool call now, in the place of what was."""
        ...

    def has_interrupt(self, key: str, interrupt_id: str | None, /) -> bool:
        """Say whether this interrupt was issued; for None, whether any was."""
        ...

    def put_interrupt(self, key: str, interrupt_id: str | None, /) -> None:
        """Keep that an interrupt was issued; None for one that has no id (of before AG-UI 1.0)."""
        ...


class _Thread:
    __slots__ = ("calls", "interrupts")

    def __init__(self) -> None:
        self.calls: OrderedDict[str, IssuedCall] = OrderedDict()
        self.interrupts: OrderedDict[str | None, None] = OrderedDict()


class IssuedCalls:
    """An `IssuedStore` in the memory of one process, bounded in every direction.

    What was issued is lost when the process ends, and other processes do not see it: with several workers, send a
    thread to the same one, or write an `IssuedStore` of your own. Not for use by several operating-system threads at
    once.

    Args:
        max_threads: Threads remembered. Then the one that was used least recently is forgotten.
        max_calls: Tool calls remembered, over all threads (about 600 bytes each); of one thread at most 1000.

    Raises:
        ConfigurationError: A limit is no integer of at least 1.
    """

    def __init__(self, *, max_threads: int = 10_000, max_calls: int = 100_000) -> None:
        for name, value in (("max_threads", max_threads), ("max_calls", max_calls)):
            if type(value) is not int or value < 1:
                raise ConfigurationError(f"IssuedCalls({name}={value!r}): must be an integer of at least 1")
        self._max_threads = max_threads
        self._max_calls = max_calls
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._calls = 0

    def get_call(self, key: str, call_id: str, /) -> IssuedCall | None:
        """Return what is known of a tool call, None for nothing."""
        thread = self._used(key)
        return None if thread is None else thread.calls.get(call_id)

    def put_call(self, key: str, call_id: str, call: IssuedCall, /) -> None:
        """Keep what is known of a tool call now."""
        calls = self._made(key).calls
        self._calls += call_id not in calls
        calls[call_id] = call
        calls.move_to_end(call_id)
        while self._calls > self._max_calls and len(self._threads) > 1:
            self._forget_oldest()  # another thread: this one has just been used
        while len(calls) > _MAX_CALLS_A_THREAD or self._calls > self._max_calls:
            calls.popitem(last=False)
            self._calls -= 1

    def has_interrupt(self, key: str, interrupt_id: str | None, /) -> bool:
        """Say whether this interrupt was issued; for None, whether any was."""
        thread = self._used(key)
        if thread is None:
            return False
        return bool(thread.interrupts) if interrupt_id is None else interrupt_id in thread.interrupts

    def put_interrupt(self, key: str, interrupt_id: str | None, /) -> None:
        """Keep that an interrupt was issued."""
        interrupts = self._made(key).interrupts
        interrupts[interrupt_id] = None
        interrupts.move_to_end(interrupt_id)
        if len(interrupts) > _MAX_INTERRUPTS_A_THREAD:
            interrupts.popitem(last=False)

    def remember(self, key: str, messages: Iterable[Any]) -> None:
        """Take the tool calls and results of a history that clients get in another way than by a run's events.

        Args:
            key: The thread, as the middleware's `key` names it.
            messages: Messages as models, or as JSON objects with wire names. From the server, never from a client.
        """
        remember(self, key, messages)

    def clear(self, key: str | None = None) -> None:
        """Forget one thread, or all."""
        if key is None:
            self._threads.clear()
            self._calls = 0
        else:
            self._dropped(self._threads.pop(short_key(key), None))

    def _used(self, key: str) -> _Thread | None:
        key = short_key(key)
        thread = self._threads.get(key)
        if thread is not None:
            self._threads.move_to_end(key)
        return thread

    def _made(self, key: str) -> _Thread:
        thread = self._used(key)
        if thread is None:
            thread = self._threads[short_key(key)] = _Thread()
            if len(self._threads) > self._max_threads:
                self._forget_oldest()
        return thread

    def _forget_oldest(self) -> None:
        self._dropped(self._threads.popitem(last=False)[1])

    def _dropped(self, thread: _Thread | None) -> None:
        self._calls -= 0 if thread is None else len(thread.calls)


class _OpenCall:
    """A call whose arguments are being sent."""

    __slots__ = ("deltas", "name", "size")

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.deltas: list[str] = []
        self.size = 0

    def add(self, delta: object) -> None:
        if isinstance(delta, str):
            self.size += len(delta)
            if self.size > _MAX_ARGUMENTS:
                self.deltas.clear()
            else:
                self.deltas.append(delta)

    def arguments(self) -> str | None:
        return None if self.size > _MAX_ARGUMENTS else digest("".join(self.deltas))


class IssuedTranslator(Translator):
    """Lets every event of a run pass, and puts what it issues into a store, before the client can see it.

    A call is issued once it is complete, or the run has ended: of one that breaks off because the client left, the
    client must not be able to choose the rest.

    Args:
        store: The store.
        key: The thread in it.
    """

    def __init__(self, store: IssuedStore, key: str) -> None:
        self._store = store
        self._key = key
        self._open: dict[str, _OpenCall] = {}
        self._last: dict[str | None, str] = {}  # the last call that chunks named, by lane

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        watch = _WATCHED.get(event.type)
        if watch is not None:
            watch(self, event)
        return (event,)

    def flush(self) -> Iterable[AnyEvent]:
        for call_id in list(self._open):
            self._complete(call_id)
        return ()

    def _start(self, event: Event) -> None:
        call_id = _string(event, "tool_call_id", "toolCallId")
        if call_id is not None:
            self._complete(call_id)
            self._open[call_id] = _OpenCall(_string(event, "tool_call_name", "toolCallName"))

    def _args(self, event: Event) -> None:
        call = self._open.get(_string(event, "tool_call_id", "toolCallId") or "")
        if call is not None:
            call.add(field_of(event, "delta", "delta"))

    def _end(self, event: Event) -> None:
        self._complete(_string(event, "tool_call_id", "toolCallId"))

    def _chunk(self, event: Event) -> None:
        call_id, lane = _string(event, "tool_call_id", "toolCallId"), owner_of(event)
        if call_id is None:
            call_id = self._last.get(lane)
            if call_id is None and lane is None and len(self._last) == 1:
                (call_id,) = self._last.values()  # as the client does: the only stream there is
        elif call_id not in self._open:
            self._open[call_id] = _OpenCall(_string(event, "tool_call_name", "toolCallName"))
        call = None if call_id is None else self._open.get(call_id)
        if call_id is not None and call is not None:
            self._last[lane] = call_id
            call.add(field_of(event, "delta", "delta"))

    def _result(self, event: Event) -> None:
        call_id = _string(event, "tool_call_id", "toolCallId")
        if call_id is not None:
            self._complete(call_id)
            known = self._store.get_call(self._key, call_id) or IssuedCall()
            content = digest(field_of(event, "content", "content"))
            self._store.put_call(self._key, call_id, known.result(content, final=True))

    def _snapshot(self, event: Event) -> None:
        remember(self._store, self._key, field_of(event, "messages", "messages"))

    def _custom(self, event: Event) -> None:
        if field_of(event, "name", "name") == _LEGACY_INTERRUPT:
            self._store.put_interrupt(self._key, None)

    def _ended(self, event: Event) -> None:
        self.flush()
        self._last.clear()
        interrupts = field_of(field_of(event, "outcome", "outcome"), "interrupts", "interrupts")
        for interrupt in interrupts if isinstance(interrupts, list | tuple) else ():
            id = _string(interrupt, "id", "id")
            if id is not None:
                self._store.put_interrupt(self._key, id)

    def _complete(self, call_id: str | None) -> None:
        call = None if call_id is None else self._open.pop(call_id, None)
        if call_id is not None and call is not None:
            known = self._store.get_call(self._key, call_id) or IssuedCall()
            self._store.put_call(self._key, call_id, known.called(call.name, call.arguments()))


_WATCHED: Final[Mapping[str, Callable[[IssuedTranslator, Event], None]]] = {
    "TOOL_CALL_START": IssuedTranslator._start,  # noqa: SLF001 - the table of the class above
    "TOOL_CALL_ARGS": IssuedTranslator._args,  # noqa: SLF001
    "TOOL_CALL_END": IssuedTranslator._end,  # noqa: SLF001
    "TOOL_CALL_CHUNK": IssuedTranslator._chunk,  # noqa: SLF001
    "TOOL_CALL_RESULT": IssuedTranslator._result,  # noqa: SLF001
    "MESSAGES_SNAPSHOT": IssuedTranslator._snapshot,  # noqa: SLF001
    "CUSTOM": IssuedTranslator._custom,  # noqa: SLF001
    "RUN_FINISHED": IssuedTranslator._ended,  # noqa: SLF001
    "RUN_ERROR": IssuedTranslator._ended,  # noqa: SLF001
}
"""What is done about an event, by type. RUN_STARTED is not here: its `input` is what a client said."""


def remember(store: IssuedStore, key: str, messages: Any) -> None:
    """Put the tool calls and results of a server's history into a store. Whatever is no message is passed over."""
    for message in messages if isinstance(messages, Iterable) and not isinstance(messages, str | Mapping) else ():
        role = field_of(message, "role", "role")
        if role == "assistant":
            calls = field_of(message, "tool_calls", "toolCalls")
            for call in calls if isinstance(calls, list | tuple) else ():
                call_id, function = _string(call, "id", "id"), field_of(call, "function", "function")
                if call_id is not None:
                    known = store.get_call(key, call_id) or IssuedCall()
                    arguments = field_of(function, "arguments", "arguments")
                    store.put_call(key, call_id, known.told(_string(function, "name", "name"), digest(arguments)))
        elif role == "tool":
            call_id = _string(message, "tool_call_id", "toolCallId")
            if call_id is not None:
                known = store.get_call(key, call_id) or IssuedCall()
                content = digest(field_of(message, "content", "content"))
                store.put_call(key, call_id, known.result(content, final=False))


def digest(content: object) -> str:
    """Return what stands for a text of arguments or the content of a result, to compare it with another.

    JSON is compared as JSON: clients read arguments and write them again, without the spaces, ``1.0`` as ``1``. No
    arguments are ``{}``. Of content parts, what they show counts, not their ids and metadata.
    """
    text = content if isinstance(content, str) else json.dumps(_gist(content))
    if len(text) <= _MAX_JSON:
        start = text.lstrip()[:1]
        if start in ("", "{", "["):
            try:
                value = json.loads(text or "{}", parse_int=float)
                text = json.dumps(value, sort_keys=True)
            except (ValueError, RecursionError):
                pass
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _gist(content: object) -> list[Any]:
    gist: list[Any] = []
    for part in content if isinstance(content, list | tuple) else (content,):
        source = field_of(part, "source", "source")
        shown = (
            field_of(part, "type", "type"),
            field_of(part, "text", "text"),
            field_of(source, "type", "type"),
            field_of(source, "value", "value"),
        )
        gist.append([str.__str__(item) if isinstance(item, str) else repr(item) for item in shown])
    return gist


def _string(thing: Any, name: str, wire_name: str) -> str | None:
    value = field_of(thing, name, wire_name)
    return value if isinstance(value, str) else None


def _with(known: tuple[str, ...], one: str | None) -> tuple[str, ...]:
    return known if one is None or one in known else (*known, one)[-_MAX_VERSIONS:]
