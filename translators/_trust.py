"""What a client may claim: its input is data, and this says what of it a server must not believe.

Knows what is left out when a rule of `_trust_rules.py` is broken, and how messages stay consistent then. Does not know
where the list of issued calls comes from (`_issued.py`), nor about HTTP.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from ag_ui.core import ResumeEntry, RunAgentInput
from pydantic import BaseModel

from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._errors import DecodeError, LimitError
from agui_pipeline.translators._events import loads
from agui_pipeline.translators._issued import IssuedStore, digest
from agui_pipeline.translators._trust_rules import CLIENT_ROLES, DIAGNOSTICS, UNITS, TrustLimits, TrustRules

__all__ = ["CLIENT_ROLES", "DIAGNOSTICS", "TrustLimits", "TrustRules", "scheme_of", "screen_input"]


def screen_input(
    input: RunAgentInput, rules: TrustRules, sink: DiagnosticSink, *, store: IssuedStore | None = None, key: str = ""
) -> RunAgentInput:
    """Return an input without what its client has no right to claim.

    Args:
        input: The input. Left as it is.
        rules: What is allowed.
        sink: Gets a `Diagnostic` a refusal or a drop (codes ``trust.*``), with the JSON path as ``detail["path"]``.
        store: Knows what was issued; None: nobody does.
        key: The input's thread in the store.

    Returns:
        The same object where nothing was wrong; else a copy that shares what was kept, in its order.

    Raises:
        DecodeError: Something is not allowed, and the rules say to reject.
        LimitError: Something is over a limit, and the rules say to reject; or an id of the thread or the run is,
            without which there is no input.
    """
    screen = _Screen(rules, sink, store, key)
    screened = screen.input(input)
    screen.summarize()
    return screened


_T = TypeVar("_T")
_REPORTED: Final = 10
"""Diagnostics of one code for one input; the rest is one more, with a count. One request must not fill a log."""


class _Screen:
    """Goes through one input. What is found wrong goes to `_refuse`, which raises where the rules say to reject."""

    def __init__(self, rules: TrustRules, sink: DiagnosticSink, store: IssuedStore | None, key: str) -> None:
        self._rules = rules
        self._limits = rules.limits
        self._sink = sink
        self._store = store
        self._key = key
        self._found: Counter[str] = Counter()
        self._unverified: list[str] = []
        self._clients_own: set[str] = set()  # ids of the calls that a client may make up

    def input(self, input: RunAgentInput) -> RunAgentInput:
        """Screen all of it."""
        for name, path in (("thread_id", "threadId"), ("run_id", "runId")):
            self._within("max_id", path, len(getattr(input, name)), fatal=True)
        new: dict[str, Any] = {
            "messages": self._messages(input.messages),
            "tools": self._items(input.tools, "tools", "max_tools", self._small),
            "context": self._items(input.context, "context", "max_context", self._small),
            "resume": self._items(input.resume, "resume", "max_resume", self._resumable),
            "state": input.state if self._open(input.state, "state", "max_state_bytes") else {},
            "forwarded_props": self._forwarded(input.forwarded_props),
        }
        for name, path in (("parent_run_id", "parentRunId"), ("protocol_version", "protocolVersion")):
            value = getattr(input, name, None)
            if isinstance(value, str) and not self._within("max_id", path, len(value)):
                new[name] = None
        changes = {name: value for name, value in new.items() if value is not getattr(input, name)}
        if changes.get("resume") == []:
            changes["resume"] = None  # nothing is resumed, which an empty list need not mean
        gone = [name for name, value in (input.__pydantic_extra__ or {}).items() if not self._extra(name, value)]
        if not changes and not gone:
            return input
        screened = input.model_copy(update=changes)
        for name in gone:
            del (screened.__pydantic_extra__ or {})[name]  # the copy's own
            screened.__pydantic_fields_set__.discard(name)
        return screened

    def summarize(self) -> None:
        """Report what was counted only."""
        for code, count in self._found.items():
            if count > _REPORTED:
                rest = count - _REPORTED
                self._sink(Diagnostic(code, f"{DIAGNOSTICS[code]} ({rest} times more)", detail={"count": rest}))
        if self._unverified:
            detail = {"path": self._unverified[0], "count": len(self._unverified)}
            self._sink(Diagnostic("trust.unverified", DIAGNOSTICS["trust.unverified"], detail=detail))

    # What is found

    def _refuse(
        self, code: str, path: str, why: str, *, id: str | None = None, fatal: bool = False, **detail: Any
    ) -> None:
        """Report what is wrong, and raise where that is the rule.

        Args:
            code: Which rule, without its prefix.
            path: Where, as a JSON path.
            why: What was wanted, what was got: for the client's developer.
            id: The message's id.
            fatal: Whether nothing can be left out, so that only refusing remains.
            **detail: More for the diagnostic.
        """
        code = f"trust.{code}"
        self._found[code] += 1
        rejected = fatal or self._rules.reject
        if rejected or self._found[code] <= _REPORTED:
            done = "the run was refused" if rejected else "left out"
            words = f"{DIAGNOSTICS[code]} ({done})"
            self._sink(Diagnostic(code, words, message_id=id, detail={"path": path, **detail}))
        if rejected:
            raise (LimitError if code == "trust.limit" else DecodeError)(f"{path}: {why} ({code})")

    def _within(self, limit: str, path: str, size: int, *, id: str | None = None, fatal: bool = False) -> bool:
        """Whether a size is within a limit; refuse it where not."""
        most: int = getattr(self._limits, limit)
        if size <= most:
            return True
        why = f"wanted at most {most} {UNITS[limit]}, got {size}"
        self._refuse("limit", path, why, id=id, fatal=fatal, limit=limit, maximum=most, size=size)
        return False

    def _open(self, value: Any, path: str, limit: str, *, id: str | None = None) -> bool:
        """Whether a value of any JSON is of a size, a depth and with keys that are allowed."""
        if value is None or (isinstance(value, dict | list) and not value):
            return True
        data = encode_json(value, _unsaid)
        if not self._within(limit, path, len(data), id=id):
            return False
        # A level takes a bracket, and a key is spelt out by our encoder: most values are cleared by these searches.
        deep = data.count(b"{") + data.count(b"[") > self._limits.max_depth
        if deep and not self._within("max_depth", path, sum(1 for _ in _levels(loads(data))), id=id):
            return False
        if b'"__proto__":' in data or (b'"constructor":{' in data and _constructs(loads(data))):
            why = "wanted no key '__proto__', and no 'constructor' that has a 'prototype'"
            self._refuse("prototype-key", path, why, id=id)
            return False
        return True

    def _fields(self, model: BaseModel, path: str, id: str | None) -> bool:
        """Whether the texts and open values of a message, a call or a part are within limits.

        Lists of models are not looked into: each of their items is checked apart, and may go alone.
        """
        for name, value in model.__dict__.items():
            if isinstance(value, str):
                data = name == "data" or (name == "value" and getattr(model, "type", None) == "data")
                limit = "max_data" if data else "max_text"
                good = len(value) <= getattr(self._limits, limit) or self._within(
                    limit, f"{path}.{_alias(model, name)}", len(value), id=id
                )
            elif value is None or (isinstance(value, list) and value and isinstance(value[0], BaseModel)):
                continue
            elif isinstance(value, BaseModel):
                good = self._fields(value, f"{path}.{_alias(model, name)}", id)
            else:
                good = self._open(value, f"{path}.{_alias(model, name)}", "max_value_bytes", id=id)
            if not good:
                return False
        extra = model.__pydantic_extra__
        return not extra or (self._unmasked(model, path, id) and self._open(extra, path, "max_value_bytes", id=id))

    def _unmasked(self, model: BaseModel, path: str, id: str | None) -> bool:
        """Whether no unknown field is the other spelling of a known one.

        ``toolCalls`` and ``tool_calls`` in one message: this library judges the first, and who reads only the second,
        or both in the other order, would get what nobody judged.
        """
        extra = model.__pydantic_extra__
        both = _spellings(type(model)).intersection(extra) if extra else ()
        for name in both:
            self._refuse("two-spellings", f"{path}.{name}", "wanted the field in one spelling, got both", id=id)
        return not both

    def _extra(self, name: str, value: Any) -> bool:
        """Whether an unknown field of the input itself may stay."""
        if name in _spellings(RunAgentInput):
            self._refuse("two-spellings", name, "wanted the field in one spelling, got both")
            return False
        return self._open(value, name, "max_value_bytes")

    # Lists other than messages, and forwardedProps

    def _items(
        self,
        items: list[_T] | None,
        path: str,
        limit: str,
        check: Callable[[_T, str, str | None], bool],
        id: str | None = None,
    ) -> list[_T] | None:
        """Keep the first so many items, and of these what passes a check; the same list where that is all of it."""
        if not items:
            return items
        first = items if self._within(limit, path, len(items), id=id) else items[: getattr(self._limits, limit)]
        kept = [item for i, item in enumerate(first) if check(item, f"{path}[{i}]", id)]
        return items if len(kept) == len(items) else kept

    def _small(self, item: BaseModel, path: str, id: str | None) -> bool:
        return self._unmasked(item, path, id) and self._open(item, path, "max_value_bytes", id=id)

    def _resumable(self, entry: ResumeEntry, path: str, id: str | None) -> bool:
        if not self._small(entry, path, id):
            return False
        if self._store is None:
            self._unverified.append(path)
        elif not self._store.has_interrupt(self._key, entry.interrupt_id):
            self._refuse("unissued-resume", path, "wanted an interruptId that this server issued for this thread")
            return False
        return True

    def _forwarded(self, props: Any) -> Any:
        """Screen the properties; of them also the answer to an interrupt that clients before 1.0 put there."""
        if not self._open(props, "forwardedProps", "max_forwarded_bytes"):
            return {}
        for name in props if isinstance(props, Mapping) else ():
            # LangGraph's integration makes snake_case of the keys: "Command" is one more way to say it.
            command = props[name] if isinstance(name, str) and name.lower() == "command" else None
            if not isinstance(command, Mapping) or command.get("resume") is None:
                continue
            path = f"forwardedProps.{name}.resume"
            if self._store is None:
                self._unverified.append(path)
            elif not self._store.has_interrupt(self._key, None):
                self._refuse("unissued-resume", path, "wanted an interrupt that this server issued for this thread")
                props = {**props, name: {key: value for key, value in command.items() if key != "resume"}}
        return props

    # Messages

    def _messages(self, messages: list[Any]) -> list[Any]:
        """Keep the last so many messages, and of these what passes; then put right what belongs together."""
        most = self._limits.max_messages
        cut = 0 if self._within("max_messages", "messages", len(messages)) else len(messages) - most
        kept: list[Any] = [None] * cut
        kept += (self._message(messages[i], f"messages[{i}]") for i in range(cut, len(messages)))
        if all(one is other for one, other in zip(kept, messages, strict=True)):
            return messages
        self._pair(messages, kept)
        return [message for message in kept if message is not None]

    def _message(self, message: Any, path: str) -> Any:
        """Return a message as it may be, None where it may not."""
        role, id = message.role, message.id
        if role not in self._rules.roles:
            allowed = ", ".join(map(repr, sorted(self._rules.roles)))
            self._refuse("role", f"{path}.role", f"a client may send {allowed}; got {role!r}", id=id)
            return None
        if not self._fields(message, path, id) or (role == "tool" and not self._result(message, path)):
            return None
        if role == "assistant" and message.tool_calls:
            calls = self._items(message.tool_calls, f"{path}.toolCalls", "max_tool_calls", self._call, id)
            return message if calls is message.tool_calls else _with_calls(message, calls)
        if isinstance(getattr(message, "content", None), list) and message.content:
            parts = self._items(message.content, f"{path}.content", "max_parts", self._part, id)
            if parts is not message.content:
                return message.model_copy(update={"content": parts}) if parts else None
        return message

    def _call(self, call: Any, path: str, id: str | None) -> bool:
        if not self._fields(call, path, id):
            return False
        if self._store is None:
            self._unverified.append(path)
            return True
        name, known = call.function.name, self._store.get_call(self._key, call.id)
        if known is None and name in self._rules.client_calls:
            self._clients_own.add(call.id)
            return True
        if known is None:
            wrong = ("unissued-call", "", "wanted a tool call that this server issued for this thread")
        elif known.names and name not in known.names:
            wrong = ("altered-call", ".function.name", "wanted the name that was issued")
        elif self._rules.compare and known.arguments and digest(call.function.arguments) not in known.arguments:
            wrong = ("altered-call", ".function.arguments", "wanted the arguments that were issued")
        else:
            return True
        code, where, why = wrong
        self._refuse(code, path + where, why, id=id)
        return False

    def _result(self, message: Any, path: str) -> bool:
        if self._store is None:
            self._unverified.append(path)
            return True
        known = self._store.get_call(self._key, message.tool_call_id)
        if known is None:
            if message.tool_call_id in self._clients_own:
                return True
            why = "wanted the id of a tool call that this server issued for this thread"
            self._refuse("unissued-result", f"{path}.toolCallId", why, id=message.id)
            return False
        if self._rules.compare and known.answered and digest(message.content) not in known.results:
            why = "this server had a result of that tool call itself; wanted that"
            self._refuse("altered-result", f"{path}.content", why, id=message.id)
            return False
        return True

    def _part(self, part: Any, path: str, id: str | None) -> bool:
        """Whether a content part is one that a client may send: within limits, and of a source it may name."""
        if not self._fields(part, path, id):
            return False
        if part.type == "binary":  # left the protocol in 1.0; the older SDK has no other part for files
            is_file, url, where = bool(part.id), part.url, f"{path}.url"
        else:
            source: Any = getattr(part, "source", None)
            kind = getattr(source, "type", None)
            is_file, url, where = kind == "file", source.value if kind == "url" else None, f"{path}.source.value"
        if is_file and not self._rules.allow_file_sources:
            self._refuse("file-source", path, "wanted inline data or a URL, got a file's id", id=id)
            return False
        if url is not None and scheme_of(url) not in self._rules.url_schemes:
            schemes = " or ".join(self._rules.url_schemes)
            wanted = f"a URL of the scheme {schemes}" if schemes else "inline data, no URL"
            self._refuse("url", where, f"wanted {wanted}; got the scheme {scheme_of(url) or '(none)'}", id=id)
            return False
        return True

    def _pair(self, messages: Sequence[Any], kept: list[Any]) -> None:
        """Let calls go whose results went, and results whose call went: models' APIs refuse one without the other.

        A result belongs to the last call of its id before it. A call that had no result to begin with stays, as does
        a result whose call is not in the input: the server may have it.
        """
        alive = {id(call) for message in kept for call in _calls_of(message)}
        latest: dict[str, _Pair] = {}
        pairs: list[_Pair] = []
        for place, message in enumerate(messages):
            for i, call in enumerate(_calls_of(message)):
                latest[call.id] = pair = _Pair(place, f"messages[{place}].toolCalls[{i}]", call, [])
                pairs.append(pair)
            if message.role == "tool" and message.tool_call_id in latest:
                latest[message.tool_call_id].results.append(place)
        changed: set[int] = set()
        for pair in pairs:
            if id(pair.call) not in alive:
                for place in pair.results:
                    if kept[place] is not None:
                        why = "the call that it answers was left out"
                        self._refuse("orphan-result", f"messages[{place}]", why, id=messages[place].id)
                        kept[place] = None
            elif pair.results and all(kept[place] is None for place in pair.results):
                self._refuse("orphan-call", pair.path, "its result was left out", id=messages[pair.place].id)
                alive.discard(id(pair.call))
                changed.add(pair.place)
        for place in changed:
            calls = [call for call in _calls_of(kept[place]) if id(call) in alive]
            kept[place] = _with_calls(kept[place], calls)


@dataclass(slots=True)
class _Pair:
    """A tool call, the place of its message, its path, and the places of its results."""

    place: int
    path: str
    call: Any
    results: list[int]


_GONE: Final = object()


def _unsaid(_diagnostic: Diagnostic) -> None:
    """Say nothing about what encoding repairs: it is done to measure, and nobody is sent the result."""


def _calls_of(message: Any) -> Sequence[Any]:
    return (message.tool_calls or ()) if message is not None and message.role == "assistant" else ()


def _with_calls(message: Any, calls: list[Any] | None) -> Any:
    """Return a message with fewer calls; None where there is nothing else in it."""
    if calls or message.content:
        return message.model_copy(update={"tool_calls": calls or None})
    return None


@cache
def _spellings(cls: type[BaseModel]) -> frozenset[str]:
    return frozenset(cls.model_fields).union(info.alias for info in cls.model_fields.values() if info.alias)


def _alias(model: BaseModel, name: str) -> str:
    info = type(model).model_fields.get(name)
    return name if info is None or info.alias is None else info.alias


def _levels(value: Any) -> Iterator[list[Any]]:
    """Give the objects and lists of decoded JSON, level by level."""
    level = [value] if type(value) in _NESTING else []
    while level:
        yield level
        level = [
            child
            for item in level
            for child in (item.values() if type(item) is dict else item)
            if type(child) in _NESTING
        ]


_NESTING: Final = frozenset({dict, list})


def _constructs(value: Any) -> bool:
    """Whether some ``constructor`` of decoded JSON has a ``prototype``: the other way to every object's."""
    constructors = (item.get("constructor") for level in _levels(value) for item in level if type(item) is dict)
    return any(type(item) is dict and "prototype" in item for item in constructors)


_IGNORED_BEFORE: Final = "".join(map(chr, range(0x21)))
"""Control characters and the space, which browsers and URL libraries skip before a URL."""
_IGNORED_IN: Final = {ord(char): None for char in "\t\r\n"}
"""What they skip inside of one, so that ``java<newline>script:`` is a scheme that a browser runs."""
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_MAX_SCHEME: Final = 256


def scheme_of(url: str) -> str:
    """Return the scheme of a URL as browsers read it, in lower case; empty where there is none (a relative URL)."""
    found = _SCHEME.match(url.lstrip(_IGNORED_BEFORE)[:_MAX_SCHEME].translate(_IGNORED_IN))
    return "" if found is None else found[1].lower()
