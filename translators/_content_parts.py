"""Content parts as versions before 1.0 have them: the `binary` part, which left the protocol in 1.0, and text.

Knows what one says in terms of the other. Does not know where parts are found, nor how to complain of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agui_pipeline.translators._encode import encode_json

MEDIA: Final = ("image", "audio", "video")
"""The main MIME types that have a part of their own; all others are documents."""
_PLACES: Final = ("data", "url", "id")


def place_of(binary: Mapping[str, Any]) -> str | None:
    """Return which key of a `binary` part says where its bytes are: ``"data"``, ``"url"`` or ``"id"``; None for none.

    Where there are several, the first of these counts, as for the official client.
    """
    return next((name for name in _PLACES if binary.get(name)), None)


def media_of(binary: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a `binary` part as the media part of its MIME type. An id becomes a ``file`` source.

    What else it has stays: the file's name, and the places that a part with one source has no room for, as metadata.

    Args:
        binary: The part, without null keys. Left as it is.
        place: What `place_of` said.
    """
    mime_type = binary["mimeType"]
    rest = {name: value for name, value in binary.items() if name not in {"type", "mimeType", place}}
    metadata = rest.get("metadata", {})
    if isinstance(metadata, Mapping):
        named = {name: rest.pop(name) for name in ("filename", "url", "id") if name in rest}
        rest |= {"metadata": {**metadata, **named}} if named else {}
    main = mime_type.partition("/")[0].lower()
    source = {"type": "file" if place == "id" else place, "value": binary[place], "mimeType": mime_type}
    return {"type": main if main in MEDIA else "document", "source": source, **rest}


def text_of(parts: Sequence[Any]) -> str:
    """Return content parts as text: their own where there is nothing else, or their JSON."""
    said = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
    texts = [text for text in said if isinstance(text, str)]
    if len(texts) == len(parts):
        return "".join(texts)
    return encode_json(list(parts), lambda _: None).decode()
