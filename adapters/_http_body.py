"""The body of a response, read as it comes: decompressed within bounds, with a limit to its silence and to its size.

Knows content encodings, time, and how a response of httpx (or httpx2) is left early. Does not know what the bytes mean.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import Any, Final

import anyio

from agui_pipeline.adapters._http_silence import ImpatienceError, open_patience
from agui_pipeline.translators import AGUIPipelineError, LimitError, SourceError

ENCODINGS: Final = ("", "identity", "gzip")
"""The content encodings that are read. Others have no bound on what one packet becomes, or no way to stop in it."""

EXCERPT: Final = 2048
"""Bytes that are kept of the body of an answer that is no event stream."""

_PIECE: Final = 64 * 1024
_EXCERPT_SECONDS: Final = 5.0

_BUFFERED: Final = 16 * 1024
"""Chunks that a connection may have read and not given yet: 64 KiB of them, with their framing."""


class SilenceError(SourceError):
    """Nothing came for too long."""


class CutError(SourceError):
    """The answer ended before it was complete."""


def is_http_error(exc: BaseException, name: str = "HTTPError") -> bool:
    """Whether an exception is httpx's or httpx2's of that name, or of a class below it: they share the names only."""
    return any(cls.__name__ == name and cls.__module__.startswith("httpx") for cls in type(exc).__mro__)


class Body:
    """The body of one response.

    Args:
        response: A response that was asked for with ``stream=True``.
        idle_timeout: Seconds of silence that are too many; None: none are.
        max_bytes: Decompressed bytes that are too many; None: none are.
    """

    def __init__(self, response: Any, *, idle_timeout: float | None, max_bytes: int | None) -> None:
        self._response = response
        self._idle_timeout = idle_timeout
        self._patience = open_patience(idle_timeout)
        self._max_bytes = max_bytes
        self._size = 0
        self._packed = 0
        self._inflater: _Inflater | None = None
        if response.is_stream_consumed:  # a mock transport's, whose content is there already, decompressed
            self._chunks = response.aiter_bytes()
        else:
            self._chunks = response.aiter_raw()
            if self.encoding == "gzip":
                self._inflater = _Inflater()

    @property
    def status(self) -> int:
        """The status of the response."""
        return int(self._response.status_code)

    @property
    def encoding(self) -> str:
        """The content encoding that the response declares."""
        return str(self._response.headers.get("content-encoding", "")).strip().lower()

    async def read(self) -> bytes:
        """Wait for what comes next; at most 64 KiB of it where it is compressed. Empty at the end.

        Raises:
            SourceError: Nothing came for too long, or the connection broke.
            LimitError: There was too much.
        """
        inflater = self._inflater
        data = b"" if inflater is None else inflater.next()
        while not data:
            chunk = await self._chunk()
            if chunk is None:
                return b""
            if inflater is None:
                data = chunk
            else:
                self._packed = self._counted(self._packed, chunk)  # gzip can be nothing for ever
                inflater.feed(chunk)
                data = inflater.next()
        self._size = self._counted(self._size, data)
        return data

    def _counted(self, size: int, data: bytes) -> int:
        size += len(data)
        if self._max_bytes is not None and size > self._max_bytes:
            raise LimitError(f"the remote agent has sent more than max_bytes={self._max_bytes}")
        return size

    async def _chunk(self) -> bytes | None:
        """Wait for any bytes: comments and what decompresses to nothing are a sign of life, too."""
        try:
            return bytes(await self._patience.wait(self._chunks.__anext__))
        except StopAsyncIteration:
            return None
        except ImpatienceError:
            raise SilenceError(f"the remote agent has sent nothing for {self._idle_timeout:g} seconds") from None
        except Exception as exc:
            if not is_http_error(exc):
                raise
            raise CutError("the connection to the remote agent broke") from exc

    async def excerpt(self) -> str | None:
        """Return the first 2048 bytes as text, or what came of them in 5 seconds; None where they cannot be read."""
        if self.encoding not in ENCODINGS:
            return None
        data = bytearray()
        with anyio.move_on_after(_EXCERPT_SECONDS):
            with suppress(AGUIPipelineError):  # the status says more than how its explanation broke off
                while len(data) < EXCERPT and (piece := await self.read()):
                    data += piece
        return data[:EXCERPT].decode(errors="replace")

    async def aclose(self) -> None:
        """Close the response, and with it the connection where the body was not read to its end. Not cut short."""
        try:
            # The iterator stands on several others, which closing it would leave to the garbage collector (trio warns
            # of each). Cancelled from within, they end in order, and so does the connection.
            with anyio.CancelScope(shield=True) as scope:
                scope.cancel()
                # Whatever it ends with: nobody wants this body any more.
                with suppress(Exception):
                    for _ in range(_BUFFERED):
                        await anext(self._chunks)
        finally:
            self._patience.close()
            with anyio.CancelScope(shield=True):
                await self._response.aclose()


class _Inflater:
    """Decompresses gzip piece by piece: a small packet may become a thousand times its size."""

    def __init__(self) -> None:
        self._gzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._rest = b""
        self._full = False  # whether the last piece was as large as pieces get: then more may be ready

    def feed(self, data: bytes) -> None:
        """Take compressed bytes; all that came of those before must have been taken by `next`."""
        self._rest = data

    def next(self) -> bytes:
        """Return the next piece of what is ready, empty where more input is needed.

        Raises:
            CutError: That is not gzip.
        """
        while self._rest or self._full:
            if self._gzip.eof:  # another member may follow
                self._gzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            try:
                piece = self._gzip.decompress(self._rest, _PIECE)
            except zlib.error as exc:
                raise CutError("what the remote agent has sent is not the gzip that it declared") from exc
            self._rest = self._gzip.unused_data if self._gzip.eof else self._gzip.unconsumed_tail
            self._full = len(piece) == _PIECE and not self._gzip.eof
            if piece:
                return piece
        return b""
