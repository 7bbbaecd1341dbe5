"""What a model answers: the frames of a chat completions stream as the events of a run.

Knows the JSON of both protocols, and when an answer is whole. Does not know how the frames came, nor time: it can be
tested, and used with any HTTP client, without an event loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias
from uuid import uuid4

from ag_ui.core import RunAgentInput

from examples.chat_completions.errors import ModelError, reported

Event: TypeAlias = dict[str, Any]

DONE: Final = "[DONE]"
"""The data of the last frame."""

_CUT_SHORT: Final = {
    "length": ("The answer is cut: it has reached the model's limit of tokens.", "length"),
    "content_filter": ("The rest of the answer was withheld by the model's content filter.", "content_filter"),
    "error": ("The model could not go on.", "model_error"),
}
"""What it means that an answer has ended for one of these reasons. It has ended well for any other."""

_BROKEN: Final = ("The answer is cut: a part of it is broken.", "stream_cut")
_NO_ENDPOINT: Final = ("What answered is no chat completions endpoint: see OPENAI_BASE_URL.", "model_error")
_STOPPED: Final = ("The answer is cut: the model's endpoint has stopped in the middle.", "stream_cut")

_USAGE: Final = {
    "inputTokens": ("prompt_tokens",),
    "outputTokens": ("completion_tokens",),
    "totalTokens": ("total_tokens",),
    "reasoningTokens": ("completion_tokens_details", "reasoning_tokens"),
    "cachedInputTokens": ("prompt_tokens_details", "cached_tokens"),
}
_MAX_COUNT: Final = 2**53
"""A client refuses the whole event for a count that JavaScript has no integer for."""


class Answer:
    """One answer, from its first delta to the end of the run.

    Feed it the data of each frame, or the one body of an endpoint that does not stream; then ask for the `end`.

    Args:
        input: The run's input.
        new_id: Makes ids for messages, and for calls that come without.

    Example:
        >>> from agui_pipeline.translators import run_input
        >>> answer = Answer(run_input(), new_id=lambda: "m")
        >>> for event in answer.feed('{"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}'):
        ...     print(event)
        {'type': 'TEXT_MESSAGE_START', 'messageId': 'm', 'role': 'assistant'}
        {'type': 'TEXT_MESSAGE_CONTENT', 'messageId': 'm', 'delta': 'Hi.'}
        >>> [event["type"] for event in answer.end()]
        ['TEXT_MESSAGE_END', 'RUN_FINISHED']
    """

    def __init__(self, input: RunAgentInput, *, new_id: Callable[[], str] = lambda: str(uuid4())) -> None:
        self._run = {"threadId": input.thread_id, "runId": input.run_id}
        self._new_id = new_id
        self._begun = False
        self._done = False
        self._message: str | None = None  # the assistant's message, which calls belong to
        self._speaking = False  # whether its text is open
        self._thought: str | None = None  # the reasoning that is open
        self._calls: dict[str, object] = {}  # the calls, with their index in the deltas
        self._finish_reason = ""
        self._usage: dict[str, Any] = {}

    def feed(self, data: str) -> Iterator[Event]:
        """Take the data of one frame; give its events.

        Raises:
            ModelError: It reports an error, or is no part of a chat completion.
        """
        if data == DONE:
            self._done = True
            return
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict):
            raise ModelError(*(_BROKEN if self._begun else _NO_ENDPOINT), detail=data)
        self._begun = True
        if chunk.get("error"):
            raise reported(chunk["error"])
        if usage := _object(chunk.get("usage")):  # some send it once, some with each chunk, more each time
            self._usage = _usage(usage, _string(chunk.get("model")))
        for choice in _objects(chunk.get("choices"))[:1]:
            yield from self._delta(_object(choice.get("delta")) or _object(choice.get("message")))
            self._finish_reason = _string(choice.get("finish_reason")) or self._finish_reason

    def end(self, error: ModelError | None = None) -> Iterator[Event]:
        """Give the end of the run, at the end of the stream.

        Args:
            error: Why there is no more to feed, unless the stream just ended. After a complete answer it is nothing.
        """
        yield from self._pause()
        if self._finish_reason in _CUT_SHORT:
            error = ModelError(*_CUT_SHORT[self._finish_reason])
        elif self._finish_reason or self._done:
            error = None
        elif error is None:
            error = ModelError(*_STOPPED)
        usage = {"usage": [self._usage]} if self._usage else {}
        if error is not None:  # calls stay open: a front end must not run one whose arguments are cut
            yield {"type": "RUN_ERROR", "message": str(error), "code": error.code, **usage}
            return
        for id in self._calls:
            yield {"type": "TOOL_CALL_END", "toolCallId": id}
        yield {"type": "RUN_FINISHED", **self._run, **usage}

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        # DeepSeek has named it so, OpenRouter and newer vLLM otherwise; who sends both says the same in both.
        if thought := _string(delta.get("reasoning_content")) or _string(delta.get("reasoning")):
            yield from self._think(thought)
        if text := _string(delta.get("content")) or _string(delta.get("refusal")):
            yield from self._say(text)
        for call in _objects(delta.get("tool_calls")):
            yield from self._call(call)

    def _think(self, delta: str) -> Iterator[Event]:
        if self._thought is None:
            yield from self._pause()
            self._thought = self._new_id()
            yield {"type": "REASONING_START", "messageId": self._thought}
            yield {"type": "REASONING_MESSAGE_START", "messageId": self._thought, "role": "reasoning"}
        yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": self._thought, "delta": delta}

    def _say(self, delta: str) -> Iterator[Event]:
        if not self._speaking:
            yield from self._pause()
            self._message, self._speaking = self._new_id(), True
            yield {"type": "TEXT_MESSAGE_START", "messageId": self._message, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._message, "delta": delta}

    def _call(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        """Take a part of a call. Only the first one has its id and its name; parts of several calls may alternate."""
        function = _object(delta.get("function"))
        name, id, index = _string(function.get("name")), _string(delta.get("id")), delta.get("index")
        known = id if id in self._calls else self._last_call(index)
        # Some endpoints number every call as the first, or none: a new id and a name are a new call.
        if known is None or (id and name and id != known):
            if not name:
                raise ModelError("The model called a tool without saying which.", "model_error")
            yield from self._pause()
            known = id or self._new_id()
            self._calls[known] = index
            self._message = self._message or self._new_id()
            call = {"toolCallId": known, "toolCallName": name, "parentMessageId": self._message}
            yield {"type": "TOOL_CALL_START", **call}
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some send what is to be text as what it means
            arguments = json.dumps(arguments)
        if _string(arguments):
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": known, "delta": arguments}

    def _last_call(self, index: object) -> str | None:
        return next((id for id, at in reversed(self._calls.items()) if at == index), None)

    def _pause(self) -> Iterator[Event]:
        """End the text or the reasoning that is open."""
        if self._thought is not None:
            yield {"type": "REASONING_MESSAGE_END", "messageId": self._thought}
            yield {"type": "REASONING_END", "messageId": self._thought}
            self._thought = None
        if self._speaking:
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._message}
            self._speaking = False


def _usage(usage: Mapping[str, Any], model: str) -> dict[str, Any]:
    found: dict[str, Any] = {"model": model} if model else {}
    for name, path in _USAGE.items():
        value: Any = usage
        for key in path:
            value = _object(value).get(key)
        if type(value) is int and 0 <= value < _MAX_COUNT:
            found[name] = value
    return found


# An endpoint may send anything, null in the place of what it has not, above all.


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
