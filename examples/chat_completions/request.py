"""What a model is asked: a run's input as the body of a chat completions request.

Knows the JSON of both protocols. Does not know where it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ag_ui.core import RunAgentInput


def chat_request(input: RunAgentInput, model: str) -> dict[str, Any]:
    """Return the body of a request.

    A front end's `state` and `context` are not in it: put what the model shall know of them into a message.
    """
    request: dict[str, Any] = {
        "model": model,
        "messages": chat_messages(input.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if input.tools:
        request["tools"] = [{"type": "function", "function": _function(tool)} for tool in input.tools]
    return request


def _function(tool: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}} if tool.parameters is None else tool.parameters
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def chat_messages(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return a conversation as endpoints want it: the results of tool calls directly behind the calls.

    A call that nobody answered (the user wrote something else instead) and a result without a call are left out, since
    endpoints refuse them; activities and reasoning are, since they are the user's to see.
    """
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    chat: list[dict[str, Any]] = []
    for message in messages:
        if message.role in ("system", "developer"):  # every endpoint knows the first, not all the second
            chat.append({"role": "system", "content": _text(message.content)})
        elif message.role == "user":
            chat.append({"role": "user", "content": _user_content(message.content)})
        elif message.role == "assistant":
            calls = [call for call in message.tool_calls or () if call.id in results]
            said: dict[str, Any] = {"role": "assistant", "content": _text(message.content)}
            if calls:
                said["tool_calls"] = [_call(call) for call in calls]
            if calls or said["content"]:
                chat.append(said)
            chat += [_result(results.pop(call.id)) for call in calls]
    return chat


def _call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _result(message: Any) -> dict[str, Any]:
    text = _text(message.content) or _text(message.error)
    return {"role": "tool", "tool_call_id": message.tool_call_id, "content": text}


def _text(content: Any) -> str:
    """Return the text of a content that is text, or parts, or nothing."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content if part.type == "text")


def _user_content(content: Any) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    if all(part["type"] == "text" for part in parts):  # endpoints of models that read text only take no lists
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Any) -> dict[str, Any]:
    if part.type == "text":
        return {"type": "text", "text": part.text}
    source = getattr(part, "source", None)
    if part.type == "image" and source is not None and source.type in ("data", "url"):
        url = source.value if source.type == "url" else f"data:{source.mime_type};base64,{source.value}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": f"[Here the user sent a part of type {part.type}, which you cannot see.]"}
