"""What clients send: request bodies to `RunAgentInput`, and back.

Knows the shapes that clients of every age send, what may be filled in, and how to say what is wrong with the rest.
Does not know about HTTP, about who may send what (`TrustMiddleware` does), nor about interrupts that are pending on the
server: a bare ``forwardedProps.command.resume`` cannot be upgraded from the body alone.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args
from uuid import uuid4

import ag_ui.core as _core
from ag_ui.core import Context, FunctionCall, ResumeEntry, RunAgentInput, Tool, ToolCall
from pydantic import BaseModel, ValidationError

from agui_pipeline.translators._compat import HAS_PROTOCOL_VERSION, PROTOCOL_VERSION
from agui_pipeline.translators._content_parts import media_of, place_of
from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._errors import DecodeError
from agui_pipeline.translators._events import loads

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_DEPTH: Final = 200
"""Levels of nesting that a body may have: what `encode_input` writes again without loss."""

_Model = TypeVar("_Model", bound=BaseModel)


def _uuid() -> str:
    return str(uuid4())


@dataclass(frozen=True, slots=True)
class ParsedInput:
    """A request body, read.

    Attributes:
        input: The run's input.
        repairs: What was filled in or changed, one `Diagnostic` a kind (codes ``input.*``), each with the number of
            places and the first few of them in `detail`. Empty when the body said all of it itself.
    """

    input: RunAgentInput
    repairs: tuple[Diagnostic, ...]

    @property
    def changed(self) -> bool:
        """Whether `input` says more, or something else, than the body: then the body must not be forwarded as it is."""
        return bool(self.repairs)


def parse_input(
    data: bytes | bytearray | memoryview | str | Mapping[str, Any], *, new_id: Callable[[], str] = _uuid
) -> RunAgentInput:
    """Read a request body as clients really send it.

    - Filled in where missing or null: `tools`, `context` (empty lists), `state`, `forwardedProps` (empty objects),
      `threadId`, `runId` and the ids of messages (new ones: a server that knows nothing of its clients must not guess
      that two messages are the same), the content of messages that need one (empty). `messages` must be there; it may
      be empty.
    - Upgraded: null keys of messages go; `binary` parts become media parts by their MIME type (data, url, or id as a
      file, the file's name in the part's metadata); content and tool call arguments that must be text and are not
      become their JSON text.
    - Kept: unknown fields. Keys in snake_case are taken for those in camelCase, as the SDK does.

    Args:
        data: A JSON object, as UTF-8 bytes or text, or already decoded. Left as it is.
        new_id: Makes an id. Default: a random UUID.

    Raises:
        DecodeError: Not JSON, nested deeper than 200 levels, or no input; says where as a JSON path
            (``messages[2].content``), what was wanted and what was got.

    Example:
        >>> parse_input('{"threadId":"t","runId":"r","messages":[{"role":"bot","content":"hi"}]}')
        Traceback (most recent call last):
            ...
        agui_pipeline.translators._errors.DecodeError: messages[0].role: wanted 'developer', 'system', 'assistant', \
'user', 'tool', 'activity' or 'reasoning', got the string 'bot'
    """
    return parse_input_report(data, new_id=new_id).input


def parse_input_report(
    data: bytes | bytearray | memoryview | str | Mapping[str, Any], *, new_id: Callable[[], str] = _uuid
) -> ParsedInput:
    """Read a request body as `parse_input` does, and say what was filled in or changed."""
    return _Reader(new_id).read(json_object(data))


def encode_input(input: RunAgentInput, on_diagnostic: DiagnosticSink | None = None) -> bytes:
    """Encode an input as the JSON body of a request: camelCase, optional fields without a value left out.

    Args:
        input: The input.
        on_diagnostic: Gets a `Diagnostic` a repair (codes ``encode.*``, as of `encode_event`). Default: the log.
    """
    return encode_json(input, on_diagnostic)


def run_input(
    text: str | None = None,
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    messages: Iterable[BaseModel | Mapping[str, Any]] = (),
    **fields: Any,
) -> RunAgentInput:
    """Make an input, for scripts and tests.

    Args:
        text: What the user says: a user message behind `messages`. None: no such message.
        thread_id: Default: a random UUID.
        run_id: Default: a random UUID.
        messages: The messages so far, as models or as JSON objects.
        **fields: Other fields of `RunAgentInput`, by either spelling. `tools` and `context` default to empty lists,
            `state` and `forwarded_props` to empty objects, `protocol_version` to this library's, where the SDK has it.

    Raises:
        DecodeError: A field is not what it must be; says which.

    Example:
        >>> input = run_input("What is 12 times 7?", thread_id="t", state={"unit": "m"})
        >>> input.thread_id, input.messages[0].role, input.messages[0].content, input.state, input.tools
        ('t', 'user', 'What is 12 times 7?', {'unit': 'm'}, [])
    """
    every = list(messages)
    if text is not None:
        every.append({"role": "user", "content": text})
    declared = (
        {"protocol_version": PROTOCOL_VERSION} if HAS_PROTOCOL_VERSION and "protocolVersion" not in fields else {}
    )
    return parse_input(declared | fields | {"threadId": thread_id, "runId": run_id, "messages": every})


def json_object(data: object, what: str = "a RunAgentInput") -> Mapping[str, Any]:
    """Decode a body and see that it is an object of bearable depth.

    Raises:
        DecodeError: It is not; says what was wanted.
    """
    shallow = False
    if isinstance(data, (bytes, bytearray, memoryview, str)):
        raw = data.encode(errors="surrogatepass") if isinstance(data, str) else bytes(data)
        try:
            data = loads(raw.removeprefix(b"\xef\xbb\xbf"))
        except ValueError as exc:
            raise DecodeError(f"the body: wanted a JSON object ({what}), got no JSON: {exc}") from None
        shallow = raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH
    if not isinstance(data, Mapping):
        raise _refusal("the body", f"a JSON object ({what})", data)
    if not shallow:
        for key, value in data.items():
            if _deeper_than(value, MAX_DEPTH - 1):
                raise DecodeError(f"{key}: wanted at most {MAX_DEPTH} levels of nesting, got more")
    return data


_CONTAINERS: Final = (dict, list, tuple, MappingProxyType)


def _deeper_than(value: object, levels: int) -> bool:
    """Whether lists and objects are nested deeper than that. No recursion: a bomb must not go off here."""
    level: list[Any] = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(levels):
        # By identity: a decoded value that holds itself, or one part many times, stays as small as it is.
        children = {
            id(child): child
            for parent in level
            for child in (parent if isinstance(parent, (list, tuple)) else parent.values())
            if isinstance(child, _CONTAINERS)
        }
        if not children:
            return False
        level = list(children.values())
    return bool(level)


_ROLES: Final[tuple[str, ...]] = get_args(_core.Role)
_TEXT_ROLES: Final = frozenset({"developer", "system", "assistant", "tool", "reasoning"})
"""Roles whose content is text. A tool's may be parts as well, since the SDK's 1.0."""
_MAX_PLACES: Final = 5
"""Places that a diagnostic names: the rest is counted."""
_MISSING: Final = object()


class _Reader:
    """Reads one body: upgrades on the way down, validates item by item, and notes what it changed.

    Item by item, because pydantic lists every problem of every item, and a body of a few megabytes can have a million.
    """

    __slots__ = ("_new_id", "_places", "_repairs")

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._repairs: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}

    def read(self, body: Mapping[str, Any]) -> ParsedInput:
        """Read the whole body."""
        known = _spellings(RunAgentInput)
        values = _respelled(body, known, "")
        for name in [name for name, value in values.items() if value is None and name in known]:
            del values[name]
            if name not in _FILLED:
                self._note("input.null", name)
        for name in _FILLED:
            if name not in values:
                values[name] = self._filled(name)
        # Clients before 1.0 answer an interrupt by `forwardedProps.command.resume`, without its id. Whoever knows the
        # pending interrupts can make `resume` of it; here it stays where it is.
        values["messages"] = self._items(values.get("messages", _MISSING), "messages", self._message)
        for name, cls, what in (
            ("tools", Tool, "a tool"),
            ("context", Context, "a context entry"),
            ("resume", ResumeEntry, "a resume entry"),
        ):
            if name in values:
                values[name] = self._items(values[name], name, partial(self._item, cls, what))
        return ParsedInput(self._validated(RunAgentInput, values, "", "a RunAgentInput"), tuple(self._diagnostics()))

    def _filled(self, name: str) -> Any:
        if name in {"threadId", "runId"}:
            self._note("input.id", name)
            return self._new_id()
        self._note("input.filled", name)
        return [] if name in {"tools", "context"} else {}

    def _items(self, value: object, path: str, read: Callable[[Any, str], BaseModel]) -> list[BaseModel]:
        if not isinstance(value, (list, tuple)):
            raise _refusal(path, "a list (it may be empty)", value)
        return [item if isinstance(item, BaseModel) else read(item, f"{path}[{i}]") for i, item in enumerate(value)]

    def _item(self, cls: type[BaseModel], what: str, value: object, path: str) -> BaseModel:
        return self._validated(cls, _respelled(value, _spellings(cls), path), path, what)

    def _message(self, value: object, path: str) -> BaseModel:
        values = self._without_nulls(value, _message_spellings(), path)
        role = values.get("role", _MISSING)
        cls = _messages().get(role) if isinstance(role, str) else None
        if cls is None:
            raise _refusal(f"{path}.role", _one_of(_ROLES), role)
        if "id" not in values:
            values["id"] = self._new_id()
            self._note("input.id", f"{path}.id")
        self._read_content(values, role, f"{path}.content")
        if role == "assistant" and "toolCalls" in values:
            values["toolCalls"] = self._items(values["toolCalls"], f"{path}.toolCalls", self._call)
        return self._validated(cls, values, path, f"{'an' if role[0] == 'a' else 'a'} {role} message")

    def _read_content(self, values: dict[str, Any], role: str, path: str) -> None:
        content = values.get("content", _MISSING)
        if content is _MISSING:
            if role != "assistant":  # whose message may be nothing but tool calls
                values["content"] = {} if role == "activity" else ""
                self._note("input.filled", path)
        elif role == "user":
            if isinstance(content, (list, tuple)):
                values["content"] = self._items(content, path, self._part)
            elif not isinstance(content, str):
                raise _refusal(path, "a string or a list of content parts", content)
        elif role in _TEXT_ROLES and not isinstance(content, str):
            parts = self._tool_parts(content, path) if role == "tool" else None
            values["content"] = self._text(content, path) if parts is None else parts

    def _tool_parts(self, content: object, path: str) -> list[BaseModel] | None:
        """Read a tool's content as parts; None where it is some other list, a result in JSON."""
        if not HAS_PROTOCOL_VERSION or not isinstance(content, (list, tuple)):
            return None
        try:
            return self._items(content, path, self._part)
        except DecodeError:
            return None

    def _text(self, value: object, path: str) -> str:
        self._note("input.text", path)
        return encode_json(value).decode()

    def _call(self, value: object, path: str) -> BaseModel:
        values = self._without_nulls(value, _spellings(ToolCall), path)
        if isinstance(values.get("function"), Mapping):
            function = self._without_nulls(values["function"], _spellings(FunctionCall), f"{path}.function")
            arguments = function.get("arguments", _MISSING)
            if arguments is _MISSING:
                function["arguments"] = ""
                self._note("input.filled", f"{path}.function.arguments")
            elif not isinstance(arguments, str):
                function["arguments"] = self._text(arguments, f"{path}.function.arguments")
            values["function"] = function
        return self._validated(ToolCall, values, path, "a tool call")

    def _part(self, value: object, path: str) -> BaseModel:
        values = self._without_nulls(value, _part_spellings(), path)
        if values.get("type") == "binary":
            values = self._media(values, path)
        kind = values.get("type", _MISSING)
        cls = _parts().get(kind) if isinstance(kind, str) else None
        if cls is None:
            raise _refusal(f"{path}.type", _one_of([name for name in _parts() if name != "binary"]), kind)
        if isinstance(values.get("source"), Mapping):
            values["source"] = self._without_nulls(values["source"], _part_spellings(), f"{path}.source")
        return self._validated(cls, values, path, f"{'an' if kind[0] in 'ai' else 'a'} {kind} part")

    def _media(self, binary: dict[str, Any], path: str) -> dict[str, Any]:
        """Make a media part of a `binary` part, which left the protocol in 1.0."""
        for name in ("mimeType", "data", "url", "id", "filename"):
            if not isinstance(binary.get(name, ""), str):
                raise _refusal(f"{path}.{name}", "a string", binary[name])
        mime_type = binary.get("mimeType")
        if not mime_type:
            raise _refusal(f"{path}.mimeType", "a MIME type", binary.get("mimeType", _MISSING))
        place = place_of(binary)
        if place is None:
            raise DecodeError(f"{path}: wanted a binary part with data, url or id, got one with none of them")
        if place == "id" and not HAS_PROTOCOL_VERSION:
            return binary  # 0.1.x has the old part and no source for files
        self._note("input.binary", path)
        return media_of(binary, place)

    def _without_nulls(self, value: object, spellings: Mapping[str, str], path: str) -> dict[str, Any]:
        values = _respelled(value, spellings, path)
        if None not in values.values():
            return values
        self._note("input.null", path)
        return {name: item for name, item in values.items() if item is not None}

    def _validated(self, cls: type[_Model], values: dict[str, Any], path: str, what: str) -> _Model:
        try:
            if values.get("type") == "binary":
                with warnings.catch_warnings():  # 0.1.x deprecates what it has no other part for
                    warnings.simplefilter("ignore", DeprecationWarning)
                    return cls.model_validate(values)
            return cls.model_validate(values)
        except ValidationError as exc:
            errors = exc.errors(include_url=False)
        if any(error["type"] == "string_unicode" for error in errors):
            # A lone surrogate, such as JavaScript leaves when it cuts an emoji in two.
            self._note("input.surrogate", path or "the body")
            return self._validated(cls, loads(encode_json(values, lambda _: None)), path, what)
        raise _explained(errors[0], path, what)

    def _note(self, code: str, path: str) -> None:
        self._repairs[code] += 1
        if self._repairs[code] <= _MAX_PLACES:
            self._places.setdefault(code, []).append(path)

    def _diagnostics(self) -> Iterable[Diagnostic]:
        for code, count in self._repairs.items():
            detail = {"count": count, "places": tuple(self._places[code])}
            yield Diagnostic(code, f"{DIAGNOSTICS[code]} ({count} times)", detail=detail)


_FILLED: Final = ("threadId", "runId", "tools", "context", "state", "forwardedProps")
"""The fields of an input that get a value when they are missing or null."""

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "input.id": "the client sent no id of the thread, the run or a message; it got a new one",
    "input.filled": "the client left something out that an input needs; it was filled in, empty",
    "input.null": "the client sent null where a field should be left out; it was left out",
    "input.text": "the client sent content or arguments that should be text; they became their JSON text",
    "input.binary": "the client sent a binary part, of before 1.0; it became a media part",
    "input.surrogate": "the client sent a lone surrogate in a key; it became U+FFFD",
}
"""The diagnostics of reading an input, by code."""


def _respelled(value: object, spellings: Mapping[str, str], path: str) -> dict[str, Any]:
    """Copy an object, its known keys as the wire has them. Where both spellings are there, the wire's is meant."""
    if not isinstance(value, Mapping):
        raise _refusal(path, "an object", value)
    out: dict[str, Any] = {}
    for key, item in value.items():
        name = spellings.get(key, key) if isinstance(key, str) else None
        if name is None:
            raise DecodeError(f"{path or 'the body'}: wanted keys that are strings, got {described(key)}")
        out[key if name != key and name in value else name] = item
    return out


def _spelled(classes: Iterable[type[BaseModel]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for cls in classes:
        for name, info in cls.model_fields.items():
            found |= dict.fromkeys((name, info.alias or name), info.alias or name)
    return found


@cache
def _spellings(cls: type[BaseModel]) -> Mapping[str, str]:
    """Map both spellings of each field of a model to the wire's."""
    return _spelled((cls,))


@cache
def _message_spellings() -> Mapping[str, str]:
    return _spelled(_messages().values())


@cache
def _part_spellings() -> Mapping[str, str]:
    """Map the spellings of the keys of parts and their sources; `binary` parts share them."""
    return _spelled(_parts().values()) | {"mime_type": "mimeType"}


@cache
def _messages() -> Mapping[str, type[BaseModel]]:
    """Map each role to the installed SDK's model."""
    return {cls.model_fields["role"].default: cls for cls in get_args(get_args(_core.Message)[0])}


@cache
def _parts() -> Mapping[str, type[BaseModel]]:
    """Map each type of content part to the installed SDK's model; 1.x renamed their union."""
    union = getattr(_core, "ContentPart", None) or _core.InputContent
    return {cls.model_fields["type"].default: cls for cls in get_args(get_args(union)[0])}


_WANTED: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
"""What was wanted, by the type of pydantic's error."""


def _explained(error: ErrorDetails, path: str, what: str) -> DecodeError:
    """Say in the words of JSON what pydantic found wrong in one item."""
    loc = error["loc"]
    for i, name in enumerate(loc):
        if i and loc[i - 1] == "source":  # the source's kind: pydantic's way through the union, no key of the client's
            continue
        path = f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}" if path else name
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return DecodeError(f"{path}: missing, and {what} needs it")
    if kind == "union_tag_not_found":
        return DecodeError(f"{path}.type: missing, and {what} needs it")
    if kind == "union_tag_invalid":
        tags = [tag.strip().strip("'") for tag in context["expected_tags"].split(",")]
        return _refusal(f"{path}.type", _one_of(tags), context["tag"])
    if kind == "literal_error":
        return _refusal(path, context["expected"], error["input"])
    wanted = _WANTED.get(kind)
    return DecodeError(f"{path}: {error['msg']}") if wanted is None else _refusal(path, wanted, error["input"])


def _refusal(path: str, wanted: str, got: object) -> DecodeError:
    if got is _MISSING:
        return DecodeError(f"{path}: missing; wanted {wanted}")
    return DecodeError(f"{path}: wanted {wanted}, got {described(got)}")


def _one_of(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in names]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


_EXCERPT: Final = 40


def described(value: object) -> str:
    """Name a value by its JSON type, with as much of it as helps to find it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"the string {value!r}" if len(value) <= _EXCERPT else f"the string {value[:_EXCERPT]!r}…"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, Mapping) else f"a Python {type(value).__name__}"
