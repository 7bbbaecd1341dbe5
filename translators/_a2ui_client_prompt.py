"""What an agent is told of an A2UI client message: a message in the conversation, in one of three styles.

Knows the styles and their texts. Whatever a client sent stays data: it is quoted, in a message of the user or in the
result of a tool call, never of the system. Does not know whether the message may be told (`middleware/actions.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias, cast

from ag_ui.core import AssistantMessage, FunctionCall, RunAgentInput, ToolCall, ToolMessage, UserMessage

from agui_pipeline.translators._a2ui_client_carriers import unheard
from agui_pipeline.translators._encode import encode_json
from agui_pipeline.translators.a2ui_client import A2UIClientMessage

Style: TypeAlias = Literal["user_message", "tool_call", "text"]
STYLES: Final[tuple[Style, ...]] = ("user_message", "tool_call", "text")

TOOL_NAME: Final = "log_a2ui_event"
"""The tool of the pair that the official A2UI middleware appends. No model calls it, and none needs to know it."""

_DataModel: TypeAlias = Mapping[str, Any] | None


def tell_agent(
    input: RunAgentInput, message: A2UIClientMessage, style: Style, data_model: _DataModel = None
) -> RunAgentInput:
    """Return the input with a client message told in its conversation.

    A message that travelled as a user message is told in its place, any other at the end. Ids are made of the
    request's: telling it twice is telling it once.

    Args:
        input: The run's input, in which the message was found. Not changed; returned as it is where it says so already.
        message: The message.
        style: How it is told.
        data_model: The data of surfaces that the agent may see, by surface id.
    """
    id = _id(input, message)
    if style == "tool_call":
        call = ToolCall(
            id=f"{id}-call",
            type="function",
            function=FunctionCall(name=TOOL_NAME, arguments=_json(_arguments(message))),
        )
        told: Sequence[Any] = (
            AssistantMessage(id=id, role="assistant", content="", tool_calls=[call]),
            ToolMessage(id=f"{id}-result", role="tool", tool_call_id=call.id, content=_log(message, data_model)),
        )
    else:
        value = _value(message, data_model)
        if style == "user_message" and message.index is not None and value == message.raw:
            return input
        content = _json(value) if style == "user_message" else _text(message, data_model)
        told = (_user(input, message, id, content),)
    if message.index is None:
        ids = {item.id for item in told}
        messages = [item for item in input.messages if item.id not in ids]
        return input.model_copy(update={"messages": [*messages, *told]})
    before, after = input.messages[: message.index], input.messages[message.index + 1 :]
    return input.model_copy(update={"messages": [*before, *told, *after]})


def _user(input: RunAgentInput, message: A2UIClientMessage, id: str, content: str) -> UserMessage:
    if message.index is None:
        return UserMessage(id=id, role="user", content=content)
    return cast("UserMessage", input.messages[message.index]).model_copy(update={"content": content})


def _id(input: RunAgentInput, message: A2UIClientMessage) -> str:
    """Return an id that is the same each time this message comes, and another one for another message."""
    which = message.request_id or (
        f"run:{input.run_id}" if message.index is None else f"message:{input.messages[message.index].id}"
    )
    text = f"{input.thread_id}\0{which}\0{message.digest}"
    return f"a2ui-{blake2b(text.encode(errors='surrogatepass'), digest_size=12).hexdigest()}"


def _body(message: A2UIClientMessage) -> Mapping[str, Any]:
    """Return the action or the error, an action's context out of its wrappings."""
    body: Mapping[str, Any] = message.raw[message.kind]
    return {**body, "context": message.context} if message.error is None and "context" in body else body


def _value(message: A2UIClientMessage, data_model: _DataModel) -> dict[str, Any]:
    """Return the message as clients of its version write it, and the data model beside it."""
    version = {} if message.version is None else {"version": message.version}
    beside = {} if data_model is None else {"clientDataModel": {**version, "surfaces": data_model}}
    return {**version, message.kind: _body(message), **beside}


def _arguments(message: A2UIClientMessage) -> Mapping[str, Any]:
    return _body(message) if message.error is None else {"error": message.error}


def _log(message: A2UIClientMessage, data_model: _DataModel) -> str:
    """Write the tool's result: of an action the official middleware's sentence."""
    text = f"{_headline(message)}. "
    text += f"Context: {_json(message.context)}" if message.error is None else f"Error: {_json(message.error)}"
    return text if data_model is None else f"{text}. Data model: {_json(data_model)}"


def _text(message: A2UIClientMessage, data_model: _DataModel) -> str:
    """Write it for readers of prose: a value a line."""
    values = message.context if message.error is None else message.error
    lines = [f"{_headline(message)}{':' if values else '.'}"]
    lines += [f"- {_plainly(key)}: {_plainly(value)}" for key, value in values.items()]
    if data_model is not None:
        lines += [f"Data of surface {_json(surface)}: {_json(data)}" for surface, data in data_model.items()]
    return "\n".join(lines)


def _headline(message: A2UIClientMessage) -> str:
    if message.error is not None:
        where = "" if message.surface_id is None else f" on surface {_json(message.surface_id)}"
        return f"The user's client reported an error{where}"
    text = f"User performed action {_json(message.name)} on surface {_json(message.surface_id)}"
    component = message.source_component_id
    return text if not component else f"{text} (component: {_plainly(component)})"


def _plainly(value: Any) -> str:
    """Write a value; one that would not stay in its line, or could be taken for more than a value, as JSON."""
    return value if isinstance(value, str) and value.isprintable() and value == value.strip() else _json(value)


def _json(value: Any) -> str:
    return encode_json(value, unheard).decode()
