r"""Server-sent events: bytes to frames to events, and back.

Knows the WHATWG event-stream format, in both directions. Knows of JSON only that `decode_event` and `encode_event`
speak it. Does not know about HTTP, about time (heartbeats, reconnecting) or about what a frame's event name means.

Reading is liberal: CR, LF, CRLF and mixes of them, comments, a byte order mark, chunks cut anywhere. Writing is strict:
LF only, a blank line at the end of every frame. The official TypeScript client splits on ``\n\n`` and nothing else, so
CR or CRLF towards it is fatal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import BytesIO
from typing import Final, NamedTuple

from agui_pipeline.translators._diagnostics import Diagnostic, DiagnosticSink, run_sink
from agui_pipeline.translators._encode import encode_event
from agui_pipeline.translators._errors import ConfigurationError, DecodeError, LimitError
from agui_pipeline.translators._events import SHARED, AnyEvent, WireEvent, decode_event, loads

MAX_FRAME_BYTES: Final = 10 * 1024 * 1024
"""The default limit of a frame, in bytes: the official TypeScript client's own buffer cap."""

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "sse.field": "CR, LF or NUL in a field of a frame was sent as a space",
    "sse.retry": "the retry of a frame is no time in milliseconds and was left out",
}
"""The diagnostics of writing frames, by code."""

_BOM: Final = b"\xef\xbb\xbf"
_LF: Final = 0x0A
_CR: Final = 0x0D
_new: Final = tuple.__new__

_MAX_RETRY_DIGITS: Final = 18
"""Digits of a ``retry`` that are believed: more is no time, and `int` raises at 4300."""


class SSEFrame(NamedTuple):
    r"""One frame of an event stream: what stands between two blank lines.

    A decoder makes them with `raw`, which is what is sent on; to send a frame of your own, leave `raw` out. To change a
    frame, build a new one: `_replace` would keep the old `raw`, and that wins.

    Attributes:
        event: The ``event`` field, None when absent (a reader then calls it ``message``).
        data: The ``data`` fields joined by ``\n``, None when the frame has none: a comment, a keep-alive, a lone id.
        id: The ``id`` field, None when absent or when it holds a NUL (readers must ignore such an id).
        retry: The ``retry`` field in milliseconds, None when absent or not all digits.
        raw: The bytes as received, comments and the closing blank line included, with every line end made LF. Empty in
            a frame made by hand.

    Example:
        >>> encode_sse(SSEFrame(event="done", data="1\n2"))
        b'event: done\ndata: 1\ndata: 2\n\n'
    """

    event: str | None = None
    data: str | None = None
    id: str | None = None
    retry: int | None = None
    raw: bytes = b""


class SSEDecoder:
    r"""Bytes of one event stream, cut anywhere, to frames. Linear in the bytes, whatever the chunking.

    The frames are the same for every way to cut the same bytes, and their `raw`, joined, are the bytes received with
    line ends made LF: nothing is lost. So a frame that holds only comments or fields other than ``data`` is a frame,
    too, with `data` None, and a blank line with nothing before it is one with nothing but ``raw == b"\n"``: keep-alives
    can be sent on, and idle timers see them. Lines end at CR and LF only, never at U+2028 or U+0085. Invalid UTF-8
    becomes U+FFFD in the fields; `raw` keeps it. A byte order mark is skipped at the start of the stream only; it stays
    in the `raw` of the first frame, and `encode_sse` leaves it out.

    A frame past the limit is skipped up to its closing blank line, in constant memory, and reported once, in its
    place: `feed` or `flush` first returns the frames before it, then a call raises `LimitError`, then the next call
    gives the frames behind it. The decoder stays usable: stop at the error, or go on feeding (an empty chunk will do).
    A second oversized frame before the error was raised is counted in that error, not reported apart.

    Args:
        max_frame_bytes: The most bytes of one frame, its closing blank line and comments included, line ends counted
            as one byte. Bounds the memory held, too.

    Raises:
        ConfigurationError: `max_frame_bytes` is not a positive int.

    Example:
        >>> decoder = SSEDecoder()
        >>> decoder.feed(b'data: {"type"')
        []
        >>> decoder.feed(b':"CUSTOM"}\r\n\r\n')
        [SSEFrame(event=None, data='{"type":"CUSTOM"}', id=None, retry=None, raw=b'data: {"type":"CUSTOM"}\n\n')]
    """

    __slots__ = (
        "_begun",
        "_behind",
        "_bom",
        "_calm",
        "_cr",
        "_limit",
        "_lost",
        "_lost_at",
        "_lost_size",
        "_pending",
        "_skipping",
    )

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        if type(max_frame_bytes) is not int or max_frame_bytes < 1:
            raise ConfigurationError(f"max_frame_bytes must be a positive int (bytes); got {max_frame_bytes!r}")
        self._limit = max_frame_bytes
        # Whether none of what follows matters to the next chunk: one look in place of seven.
        self._calm = False
        # The frame whose end has not come, line ends LF already. While skipping: its last byte only.
        self._pending = bytearray()
        self._skipping = False
        # Whether the last chunk ended in CR: a LF at the start of the next one belongs to it.
        self._cr = False
        # Whether the stream is past the place of a byte order mark, and whether one waits for the first frame's raw.
        self._begun = False
        self._bom = False
        # Oversized frames not reported yet: how many, the size of the first, and how many of the frames not yet
        # returned stand before it; and those frames of earlier calls that could not be returned before the error.
        self._lost = 0
        self._lost_size = 0
        self._lost_at = 0
        self._behind: list[SSEFrame] = []

    def feed(self, data: bytes | bytearray | memoryview) -> list[SSEFrame]:
        """Take the next bytes of the stream.

        Args:
            data: Any number of bytes, none included.

        Returns:
            The frames that are complete now, in order. When one chunk of bytes is exactly one frame with LF line ends,
            its `raw` is that object.

        Raises:
            LimitError: A frame was larger than ``max_frame_bytes``. It was skipped; nothing else was lost, and the
                bytes given with this call were taken (see the class).
        """
        chunk = data if type(data) is bytes else bytes(data)
        frames: list[SSEFrame] = []
        pos = 0
        if not self._calm or _CR in chunk:
            chunk = self._prepared(chunk)
            if self._pending and chunk:
                pos = self._complete(chunk, frames)
        size = len(chunk)
        limit = self._limit
        while pos < size:
            # The usual frame, one line of data, is taken without a look at its lines.
            eol = chunk.find(b"\n", pos + 6) if chunk.startswith(b"data: ", pos) else -1
            end = eol + 2
            if eol >= 0 and end <= size and chunk[eol + 1] == _LF and end - pos <= limit:
                text = chunk[pos + 6 : eol].decode("utf-8", "replace")
                raw = chunk if end - pos == size else chunk[pos:end]
                # As SSEFrame(…), without the call of a Python function.
                frames.append(_new(SSEFrame, (None, text, None, None, raw)))
                pos = end
            else:
                pos = self._next(chunk, pos, frames)
        return frames if self._calm else self._settled(frames)

    def feed_event(self, data: bytes) -> WireEvent | None:
        """Take bytes that are exactly one event's usual frame, as `feed` and `decode_frame` would, at half the cost.

        Returns:
            The event; None where they are anything else: then nothing was taken, and they must be fed.
        """
        end = len(data) - 2
        if (
            not self._calm
            or end + 2 > self._limit
            or type(data) is not bytes
            or not data.startswith(b"data: ")
            or data.find(b"\n", 6) != end
            or data[end + 1] != _LF
            or _CR in data
        ):
            return None
        raw = data[6:end]
        try:
            value = loads(raw)
        except ValueError:  # `feed` and `decode_frame` may see it otherwise, or say what is wrong
            return None
        name = value.get("type") if type(value) is dict else None
        if type(name) is not str:
            return None
        event = WireEvent(SHARED.get(name, name), value, raw)
        event._sse = data  # noqa: SLF001 - the slots are shared with this module
        return event

    def flush(self) -> list[SSEFrame]:
        """Take the end of the stream; afterwards the decoder is ready for another one.

        Returns:
            The last frame, when the stream ended without its blank line: as the official TypeScript client reads it
            (browsers drop such a frame). Its `raw` has no closing blank line either; `encode_sse` adds it.

        Raises:
            LimitError: As in `feed`; then another `flush` gives what was behind the oversized frame.
        """
        frames: list[SSEFrame] = []
        if len(self._pending) > self._limit:  # a tiny limit, and a byte order mark that was none
            self._lose(len(self._pending), frames)
        elif self._pending and not self._skipping:
            frames.append(_parse(bytes(self._pending)))
        elif self._bom:
            frames.append(SSEFrame())
        self._pending.clear()
        self._skipping = self._cr = self._begun = False
        return self._settled(frames)

    def _next(self, chunk: bytes, pos: int, frames: list[SSEFrame]) -> int:
        """Take whatever stands at a place where a frame starts; return the place behind it."""
        if chunk[pos] == _LF:
            frames.append(_BLANK)
            return pos + 1
        blank = chunk.find(b"\n\n", pos)
        if blank < 0:
            self._hold(chunk[pos:], frames)
            return len(chunk)
        end = blank + 2
        if end - pos > self._limit:
            self._lose(end - pos, frames)
        else:
            frames.append(_parse(chunk if end - pos == len(chunk) else chunk[pos:end]))
        return end

    def _complete(self, chunk: bytes, frames: list[SSEFrame]) -> int:
        """Look for the end of the pending frame; return how much of the chunk was part of it.

        Only the new bytes are searched: a frame in many small chunks stays linear.
        """
        pending = self._pending
        if pending[-1] == _LF and chunk.startswith(b"\n"):
            end = 1
        else:
            blank = chunk.find(b"\n\n")
            if blank < 0:
                self._hold(chunk, frames)
                return len(chunk)
            end = blank + 2
        if self._skipping:
            self._skipping = False
        elif len(pending) + end > self._limit:
            self._lose(len(pending) + end, frames)
        else:
            pending += chunk[:end]
            frames.append(_parse(bytes(pending)))
        pending.clear()
        return end

    def _hold(self, part: bytes, frames: list[SSEFrame]) -> None:
        """Keep bytes of a frame whose end has not come; past the limit only what finding its end needs."""
        self._calm = False
        pending = self._pending
        if not self._skipping and len(pending) + len(part) > self._limit:
            self._lose(len(pending) + len(part), frames)
            self._skipping = True
        if self._skipping:
            pending[:] = part[-1:]
        else:
            pending += part

    def _lose(self, size: int, frames: list[SSEFrame]) -> None:
        """Note an oversized frame, to be reported in its place among the frames."""
        self._calm = False
        if not self._lost:
            self._lost_size = size
            self._lost_at = len(self._behind) + len(frames)
        self._lost += 1
        if not frames:
            self._bom = False  # the mark was part of the frame that is skipped

    def _settled(self, frames: list[SSEFrame]) -> list[SSEFrame]:
        """Return or keep frames so that an oversized one is reported between its neighbours."""
        if self._bom and frames:
            frames[0] = frames[0]._replace(raw=_BOM + frames[0].raw)
            self._bom = False
        frames = self._behind + frames
        count = 0
        if not self._lost:
            self._behind = []
        else:
            frames, self._behind = frames[: self._lost_at], frames[self._lost_at :]
            self._lost_at = 0
            if not frames:
                count, self._lost = self._lost, 0
        self._calm = self._begun and not (self._pending or self._cr or self._bom or self._lost or self._behind)
        if count:
            raise LimitError(
                f"a frame of the event stream has {self._lost_size} bytes or more, and max_frame_bytes is"
                f" {self._limit}; it was skipped{f', and {count - 1} like it' if count > 1 else ''}"
            )
        return frames

    def _prepared(self, chunk: bytes) -> bytes:
        """Make every line end LF, and take a byte order mark off the start of the stream."""
        self._calm = False
        if self._cr and chunk:  # a CRLF cut between two chunks
            chunk = chunk.removeprefix(b"\n")
            self._cr = False
        if _CR in chunk:
            self._cr = chunk.endswith(b"\r")
            chunk = _lf(chunk)
        if self._begun:
            return chunk
        chunk = bytes(self._pending) + chunk
        self._pending.clear()
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._pending += chunk
            return b""
        self._begun = True
        self._bom = chunk.startswith(_BOM)
        return chunk.removeprefix(_BOM)


_BLANK: Final = SSEFrame(raw=b"\n")
"""One object for all: a flood of blank lines costs a pointer each."""


def _parse(raw: bytes) -> SSEFrame:
    """Read the fields of one frame with LF line ends, by the format's rules."""
    event = id_ = retry = None
    lines: list[bytes] = []
    # A reader of bytes ends lines at LF only, and makes no list: short lines would take many times the frame's size.
    for line in BytesIO(raw):
        name, _, value = line.removesuffix(b"\n").partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            lines.append(value)
        elif name == b"event":
            event = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                id_ = value.decode("utf-8", "replace")
        elif name == b"retry" and len(value) <= _MAX_RETRY_DIGITS and value.isdigit():
            retry = int(value)
    data = b"\n".join(lines).decode("utf-8", "replace") if lines else None
    return SSEFrame(event, data, id_, retry, raw)


def decode_frame(frame: SSEFrame) -> WireEvent:
    """Decode the event in a frame's data.

    The whole frame is remembered with the event, its comments and its ``event``, ``id`` and ``retry`` fields included,
    and sent again by `encode_sse` as long as nobody replaced the event.

    Raises:
        DecodeError: The frame has no data, or its data is no event.
    """
    data = frame.data
    if data is None:
        raise DecodeError(f"an event needs a frame with data; got a frame without: {_excerpt(frame)}")
    event = decode_event(data.encode(errors="surrogatepass"))
    if frame.raw:
        event._sse = _sendable(frame)  # noqa: SLF001 - the slots are shared with this module
    return event


_EXCERPT: Final = 40


def _excerpt(frame: SSEFrame) -> str:
    text = repr(frame.raw or frame)
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


def encode_sse(item: AnyEvent | SSEFrame, on_diagnostic: DiagnosticSink | None = None) -> bytes:
    r"""Encode an event, or a frame, as bytes of an event stream.

    Args:
        item: An event becomes ``data: {json}\n\n``, a frame what it was received as (`raw`), else its fields. An event
            that `decode_frame` made and nobody replaced gives the frame it came in.
        on_diagnostic: Gets a `Diagnostic` a repair (codes ``encode.*``, ``sse.*``). Default: the log.

    Returns:
        Whole frames with LF line ends and a closing blank line; empty for a frame that has nothing in it. No text ends
        a field or a frame early: line ends in `data` start another ``data`` line, and CR, LF and NUL in `event` or `id`
        become one space each (removing them could turn one name into another). A `retry` that is no non-negative
        int of at most 18 digits is left out, as readers would. Never raises on any text.

    Example:
        >>> encode_sse(decode_event('{"type":"CUSTOM",\r\n"name":"n"}'))
        b'data: {"type":"CUSTOM",\ndata: "name":"n"}\n\n'
    """
    if isinstance(item, WireEvent):
        sse = item._sse  # noqa: SLF001 - the slots are shared with this module
        if sse is not None:
            return sse
        data = encode_event(item, on_diagnostic)
        if _LF in data or _CR in data:  # the original bytes, pretty-printed: white space between tokens
            data = _lines(data)
    elif isinstance(item, SSEFrame):
        return _encode_frame(item, on_diagnostic)
    else:
        data = encode_event(item, on_diagnostic)
    return b"data: %b\n\n" % data


def _lines(data: bytes) -> bytes:
    return _lf(data).replace(b"\n", b"\ndata: ")


def _lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _sendable(frame: SSEFrame) -> bytes:
    """Return a frame's bytes as they can stand anywhere in a stream; the same object where they already can."""
    raw = frame.raw
    if _CR in raw:  # made by hand: a decoder's have none
        raw = _lf(raw)
    if raw.startswith(_BOM):
        raw = _without_mark(raw, frame)
    if raw.endswith(b"\n\n") or raw in {b"", b"\n"}:
        return raw
    return raw + (b"\n" if raw.endswith(b"\n") else b"\n\n")  # the last frame of a stream that just stopped


def _without_mark(raw: bytes, frame: SSEFrame) -> bytes:
    """Take the stream's byte order mark off its first frame: behind another one it would be part of a field's name.

    Elsewhere the same bytes are text. Then the fields do not read the same without them, and they stay; so do two of
    them, which read the same in both places.
    """
    rest = raw.removeprefix(_BOM)
    return rest if not rest.startswith(_BOM) and _parse(rest)[:4] == frame[:4] else raw


_BREAKS_NAME: Final = re.compile("\r\n|[\r\n\0]")


def _encode_frame(frame: SSEFrame, on_diagnostic: DiagnosticSink | None) -> bytes:
    event, data, id_, retry, raw = frame
    if raw:
        return _sendable(frame)
    repairs: list[Diagnostic] = []
    lines: list[bytes] = []
    for name, text in (("event", event), ("id", id_)):
        if text is not None:
            clean = _BREAKS_NAME.sub(" ", text)
            if clean != text:
                repairs.append(Diagnostic("sse.field", f"CR, LF or NUL in the {name} of a frame was sent as a space"))
            lines.append(b"%b: %b\n" % (name.encode(), _utf8(clean, repairs)))
    if retry is not None:
        if type(retry) is int and 0 <= retry < 10**_MAX_RETRY_DIGITS:
            lines.append(b"retry: %d\n" % retry)
        else:
            repairs.append(Diagnostic("sse.retry", "the retry of a frame is no time in milliseconds and was left out"))
    if data is not None:
        lines.append(b"data: %b\n" % _lines(_utf8(data, repairs)))
    if repairs:
        sink = run_sink(on_diagnostic)
        for repair in repairs:
            sink(repair)
    return b"".join((*lines, b"\n")) if lines else b""


def _utf8(text: str, repairs: list[Diagnostic]) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Through UTF-16 two halves that stand together become the character they mean.
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if "\ufffd" in joined:
            repairs.append(
                Diagnostic("encode.surrogate", "a lone surrogate was sent as U+FFFD: UTF-8 has no form for it")
            )
        return joined.encode()
