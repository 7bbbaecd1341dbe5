"""Request bodies: read with a bound, parsed once, replayed unchanged.

Knows ASGI's request messages and `RunAgentInput`; does not know about responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Message, Receive, Scope

from agui_pipeline.translators import DecodeError
from agui_pipeline.translators._input import ParsedInput, parse_input_report


@dataclass
class Body:
    """What was read of a request body.

    Attributes:
        data: The bytes, as far as they were read.
        messages: The ASGI messages that were read, for replay.
        complete: Whether that is the whole body.
        disconnected: Whether the client left before the body was complete.
    """

    data: bytes = b""
    messages: list[Message] = field(default_factory=list)
    complete: bool = False
    disconnected: bool = False

    def tee(self, receive: Receive) -> Receive:
        """Return a `receive` that gives the messages again, then goes on with the real one and keeps what it gives."""
        given = 0

        async def teed() -> Message:
            nonlocal given
            if given == len(self.messages):
                self.messages.append(await receive())
            given += 1
            return self.messages[given - 1]

        return teed

    def replay(self, receive: Receive) -> Receive:
        """Return a `receive` that gives the messages again, then goes on with the real one."""
        pending = list(reversed(self.messages))

        async def replayed() -> Message:
            return pending.pop() if pending else await receive()

        return replayed


async def read_body(scope: Scope, receive: Receive, limit: int) -> Body:
    """Read a request body of at most `limit` bytes; stops reading where it is larger.

    A `content-length` over the limit is believed, and nothing is read.
    """
    body = Body()
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared[:20]) > limit:
        return body
    size = 0
    parts: list[bytes] = []
    while True:
        message = await receive()
        body.messages.append(message)
        if message["type"] != "http.request":
            body.disconnected = True
            break
        part = message.get("body", b"")
        size += len(part)
        parts.append(part)
        if size > limit:
            break
        if not message.get("more_body", False):
            body.complete = True
            break
    body.data = parts[0] if len(parts) == 1 else b"".join(parts)
    return body


def check_headers(scope: Scope) -> Refusal | None:
    """Return why a request's body cannot be an input, as far as its headers tell: then nothing need be read."""
    encoding = header(scope, b"content-encoding")
    if encoding is not None and encoding.strip().lower() not in (b"", b"identity"):
        return Refusal(415, "unsupported_encoding", f"content-encoding {encoding.decode('latin-1')!r}: send it plain")
    media_type = header(scope, b"content-type")
    if media_type is not None and not _is_json(media_type):
        got = media_type.decode("latin-1")[:80]
        return Refusal(415, "unsupported_media_type", f"content-type {got!r}: a RunAgentInput is application/json")
    return None


def parse_body(body: Body, limit: int) -> ParsedInput | Refusal:
    """Return the run's input, or why there is none and which HTTP status says so."""
    if not body.complete:
        return Refusal(413, "body_too_large", f"the body is larger than the limit of {limit} bytes")
    try:
        return parse_input_report(body.data)
    except DecodeError as exc:
        return Refusal(400, "invalid_input", str(exc))


@dataclass(frozen=True)
class Refusal:
    """Why a body is no input: the HTTP status that says so, a code for programs, a sentence for people."""

    status: int
    code: str
    message: str


def _is_json(media_type: bytes) -> bool:
    essence = media_type.split(b";", 1)[0].strip().lower()
    return essence in (b"application/json", b"text/json") or (
        essence.startswith(b"application/") and essence.endswith(b"+json")
    )


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the first value of a request header, None where there is none."""
    return next((value for key, value in scope.get("headers", ()) if key.lower() == name), None)


def with_body(headers: Sequence[tuple[bytes, bytes]], data: bytes) -> list[tuple[bytes, bytes]]:
    """Return request headers that describe another body."""
    kept = [(key, value) for key, value in headers if key.lower() not in (b"content-length", b"transfer-encoding")]
    return [*kept, (b"content-length", str(len(data)).encode())]


def single(data: bytes) -> Message:
    """Return the ASGI message of a whole body."""
    return {"type": "http.request", "body": data, "more_body": False}


def json_error(refusal: Refusal) -> dict[str, Any]:
    """Return the JSON body that goes with a refusal."""
    return {"code": refusal.code, "message": refusal.message}
