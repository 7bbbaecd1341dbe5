"""Tool calls on their way to being told: names, arguments in pieces, results, and what was told already.

Knows which call an id means, when it is complete, and what messages say about calls. Does not know events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators._events import loads
from agui_pipeline.translators._owners import field_of
from agui_pipeline.translators.superagent._fields import text_of
from agui_pipeline.translators.superagent._meanings import RAW, Meaning, ToolCall, ToolResult


@dataclass(slots=True)
class _Call:
    """One tool call.

    Attributes:
        id: Its id.
        name: The tool's name, empty where nobody said.
        pieces: What has come of its arguments.
        arguments: Its arguments, once they are complete.
        started: Whether it began in this run; else it is known from messages.
        told: Whether its frame went out.
        shown: Whether its frame went out in a run before: then it does not again.
        resulted: Whether that of its result did.
        from_snapshot: Whether that result was a snapshot's.
        failed: Whether the result was sent as an error.
        error: What a message says went wrong.
    """

    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    started: bool = False
    told: bool = False
    shown: bool = False
    resulted: bool = False
    from_snapshot: bool = False
    failed: bool = False
    error: str | None = None


class Calls:
    """The calls of one run.

    Args:
        note: Is told what goes wrong: a code, and the id of the call.
        updates: Whether the outcome of a call is told before its result.
        shown: The ids of calls that were told in a run before, and go on in this one.
    """

    __slots__ = ("_calls", "_note", "_open", "_updates")

    def __init__(self, note: Callable[[str, str], None], *, updates: bool, shown: Iterable[str]) -> None:
        self._note = note
        self._updates = updates
        self._calls = {id: _Call(id, started=True, shown=True) for id in shown}
        self._open: dict[str, _Call] = {}

    def open(self, id: str, name: str) -> None:
        """Take the start of a call."""
        call = self._get(id)
        call.name = name or call.name
        call.started = True
        if call.told:  # the official client, too, takes it for the call that it knows
            self._note("call-again", id)
        else:
            self._open[id] = call

    def extend(self, id: str, delta: str) -> None:
        """Take a piece of a call's arguments."""
        call = self._get(id)
        if call.told:
            self._note("late-arguments", id)
        elif delta:
            call.started = True
            self._open[id] = call
            call.pieces.append(delta)

    def close(self, id: str) -> Iterator[ToolCall]:
        """Take the end of a call's arguments, or its result; give the call, once."""
        call = self._open.pop(id, None)
        if call is not None:
            call.told = True
            call.arguments = _arguments("".join(call.pieces))
            call.pieces.clear()
            if not call.shown:  # an agent that goes on says again which call it goes on with
                yield ToolCall(call.name, call.arguments, id)

    def close_all(self) -> Iterator[ToolCall]:
        """Give all calls that are not complete, at the end of the run."""
        for id in list(self._open):
            yield from self.close(id)

    def result(self, id: str, content: Any, *, is_error: bool | None) -> Iterator[Meaning]:
        """Take the result of a call.

        Args:
            id: The call's.
            content: Text, or content parts.
            is_error: Whether the tool failed; None where that is what messages say.
        """
        call = self._get(id)
        if not call.from_snapshot:  # else it was given before
            yield from self._result(call, content, failed=call.error is not None if is_error is None else is_error)

    def remember(self, messages: Any) -> list[Any]:
        """Take what messages say about calls: their names and errors. Returns these messages as a list."""
        known = list(messages) if isinstance(messages, list | tuple) else []
        for message in known:
            calls = field_of(message, "tool_calls", "toolCalls")
            for item in calls if isinstance(calls, list | tuple) else ():
                call = self._get(text_of(item, "id", "id"))
                call.name = call.name or text_of(field_of(item, "function", "function"), "name", "name")
            error = field_of(message, "error", "error")
            if isinstance(error, str) and field_of(message, "role", "role") == "tool":
                self._get(text_of(message, "tool_call_id", "toolCallId")).error = error
        return known

    def snapshot(self, messages: Any) -> Iterator[Meaning]:
        """Take the messages of a snapshot; give the results of this run's calls that had none."""
        for message in self.remember(messages):
            if field_of(message, "role", "role") != "tool":
                continue
            call = self._get(text_of(message, "tool_call_id", "toolCallId"))
            if call.resulted:
                if call.error is not None and not call.failed:
                    self._note("late-error", call.id)
            elif call.started:
                call.from_snapshot = True
                yield from self._result(call, field_of(message, "content", "content"), failed=call.error is not None)

    def _result(self, call: _Call, content: Any, *, failed: bool) -> Iterator[Meaning]:
        yield from self.close(call.id)
        if self._updates and call.told:
            yield ToolCall(call.name, call.arguments, call.id, "error" if failed else "success")
        call.resulted, call.failed = True, failed
        text = _result_text(content)
        yield ToolResult(call.name, text, call.id, failed, (call.error or text or "error") if failed else None)

    def begun(self, id: str) -> bool:
        """Whether a call began in this run."""
        call = self._calls.get(id)
        return call is not None and call.started

    def forget(self) -> None:
        """Forget all but the names: another run may use the same ids."""
        self._calls = {id: _Call(id, call.name) for id, call in self._calls.items()}

    def _get(self, id: str) -> _Call:
        return self._calls.setdefault(id, _Call(id))


def _arguments(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = loads(text.encode(errors="surrogatepass"))
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {RAW: text}


def _result_text(content: Any) -> str:
    """Return the text of a result: of content parts that are all text the texts, of anything else its JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list | tuple) and content:
        texts = [field_of(part, "text", "text") for part in content if field_of(part, "type", "type") == "text"]
        if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
            return "".join(texts)
    return encode_json(content).decode()
