"""Server-sent events: what is read from any cut of any bytes, and what is written."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from typing import SupportsIndex

import pytest
from ag_ui.core import CustomEvent, TextMessageContentEvent
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agui_pipeline.translators._diagnostics import Diagnostic
from agui_pipeline.translators._errors import ConfigurationError, DecodeError, LimitError
from agui_pipeline.translators._events import decode_event, replace
from agui_pipeline.translators._sse import SSEDecoder, SSEFrame, decode_frame, encode_sse

BOM = b"\xef\xbb\xbf"
BLANK = SSEFrame(raw=b"\n")

Fields = tuple[str | None, str | None, str | None, int | None]


def decode(chunks: Iterable[bytes]) -> list[SSEFrame]:
    decoder = SSEDecoder()
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    return frames + decoder.flush()


def outcomes(chunks: Iterable[bytes], max_frame_bytes: int) -> list[SSEFrame | None]:
    """Decode with a limit and go on after errors; None stands where one was raised."""
    decoder = SSEDecoder(max_frame_bytes)
    found: list[SSEFrame | None] = []

    def step(call: Callable[[], list[SSEFrame]]) -> bool:
        try:
            frames = call()
        except LimitError:
            found.append(None)
            return True
        found.extend(frames)
        return bool(frames)

    for chunk in chunks:
        step(lambda chunk=chunk: decoder.feed(chunk))  # type: ignore[misc]
    while step(decoder.flush):
        pass
    return found


def fields(frame: SSEFrame) -> Fields:
    return frame.event, frame.data, frame.id, frame.retry


def with_lf(data: bytes) -> bytes:
    return re.sub(rb"\r\n|\r", b"\n", data)


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def reference(data: bytes) -> list[Fields]:
    """Read a whole stream by the letter of the WHATWG algorithm, one line after the other."""
    if data == BOM:
        return [(None, None, None, None)]
    frames: list[Fields] = []
    lines = re.split("\r\n|\r|\n", data.removeprefix(BOM).decode("utf-8", "replace"))
    if lines[-1] == "":  # what follows the last line end is a line only when there is something
        lines.pop()
    event = id_ = retry = None
    texts: list[str] = []
    open_ = False
    for line in [*lines, None]:
        if line is None and not open_:
            break
        if not line:
            frames.append((event, "\n".join(texts) if texts else None, id_, retry))
            event = id_ = retry = None
            texts, open_ = [], False
            continue
        open_ = True
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            texts.append(value)
        elif name == "event":
            event = value
        elif name == "id" and "\0" not in value:
            id_ = value
        elif name == "retry" and re.fullmatch("[0-9]{1,18}", value):
            retry = int(value)
    return frames


PIECES = [
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r"),
    *(b"data", b"data:", b"data: ", b"event: ", b"id: ", b"retry: ", b"other: ", b": ", b":", b" ", b"Data: "),
    *(b"x", b"12", b"\0", b'{"type":"CUSTOM"}', b"data: {}\n\n", b": ping\r\n\r\n", b"data: {}\r\n\r\n"),
    *("é".encode(), "🙂".encode(), "\u2028".encode(), "\x85".encode(), b"\x0b", b"\x0c", b"\x1e"),
    *(BOM, BOM[:1], BOM[1:], b"\xff", "🙂".encode()[:2]),
]
streams = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)
places = st.lists(st.integers(min_value=0, max_value=400), max_size=12)


# What is read


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"data: a\n\n", [SSEFrame(data="a", raw=b"data: a\n\n")], id="LF"),
        pytest.param(b"data: a\r\n\r\n", [SSEFrame(data="a", raw=b"data: a\n\n")], id="CRLF"),
        pytest.param(b"data: a\r\r", [SSEFrame(data="a", raw=b"data: a\n\n")], id="CR"),
        pytest.param(b"data: a\n\r\n", [SSEFrame(data="a", raw=b"data: a\n\n")], id="LF CRLF"),
        pytest.param(b"data: a\r\n\n", [SSEFrame(data="a", raw=b"data: a\n\n")], id="CRLF LF"),
        pytest.param(b"data: a\n\r", [SSEFrame(data="a", raw=b"data: a\n\n")], id="LF CR"),
        pytest.param(
            b"data: a\n\n: ping\r\n\r\ndata: b\n\n",
            [
                SSEFrame(data="a", raw=b"data: a\n\n"),
                SSEFrame(raw=b": ping\n\n"),
                SSEFrame(data="b", raw=b"data: b\n\n"),
            ],
            id="LF data with CRLF pings",
        ),
        pytest.param(
            b"event: e\nid: 7\nretry: 1500\nfoo: bar\ndata: a\n\n",
            [SSEFrame("e", "a", "7", 1500, b"event: e\nid: 7\nretry: 1500\nfoo: bar\ndata: a\n\n")],
            id="every field",
        ),
        pytest.param(b"event:\nid:\n\n", [SSEFrame(event="", id="", raw=b"event:\nid:\n\n")], id="empty is not absent"),
        pytest.param(
            b"event: a\nevent: b\nid: 1\nid: 2\nretry: 3\nretry: 4\n\n",
            [SSEFrame("b", None, "2", 4, b"event: a\nevent: b\nid: 1\nid: 2\nretry: 3\nretry: 4\n\n")],
            id="the last of a repeated field stays",
        ),
        pytest.param(b"data:a\n\n", [SSEFrame(data="a", raw=b"data:a\n\n")], id="no space after the colon"),
        pytest.param(b"data:  a \n\n", [SSEFrame(data=" a ", raw=b"data:  a \n\n")], id="one space goes, others stay"),
        pytest.param(b"data: a: b\n\n", [SSEFrame(data="a: b", raw=b"data: a: b\n\n")], id="colon in the value"),
        pytest.param(b"data\n\n", [SSEFrame(data="", raw=b"data\n\n")], id="no colon"),
        pytest.param(b"data:\n\n", [SSEFrame(data="", raw=b"data:\n\n")], id="empty data"),
        pytest.param(b"data: \n\n", [SSEFrame(data="", raw=b"data: \n\n")], id="empty data after a space"),
        pytest.param(b"data\ndata\n\n", [SSEFrame(data="\n", raw=b"data\ndata\n\n")], id="two empty lines of data"),
        pytest.param(
            b"data: a\n: c\ndata:b\ndata\n\n",
            [SSEFrame(data="a\nb\n", raw=b"data: a\n: c\ndata:b\ndata\n\n")],
            id="lines of data around a comment",
        ),
        pytest.param(b" data: a\n\n", [SSEFrame(raw=b" data: a\n\n")], id="a space before a name is part of it"),
        pytest.param(b"DATA: a\n\n", [SSEFrame(raw=b"DATA: a\n\n")], id="names are case-sensitive"),
        pytest.param(b"retry: 1.5\n\n", [SSEFrame(raw=b"retry: 1.5\n\n")], id="retry is digits only"),
        pytest.param(b"retry:\n\n", [SSEFrame(raw=b"retry:\n\n")], id="empty retry"),
        pytest.param("retry: ٣\n\n".encode(), [SSEFrame(raw="retry: ٣\n\n".encode())], id="retry is ASCII digits only"),
        pytest.param(
            b"retry: " + b"9" * 5000 + b"\n\n",
            [SSEFrame(raw=b"retry: " + b"9" * 5000 + b"\n\n")],
            id="a retry that int() would refuse",
        ),
        pytest.param(b"id: a\0b\n\n", [SSEFrame(raw=b"id: a\0b\n\n")], id="an id with NUL is ignored"),
        pytest.param(b"\n", [BLANK], id="a blank line alone"),
        pytest.param(
            b"\n\n\r\ndata: a\n\n\n",
            [BLANK, BLANK, BLANK, SSEFrame(data="a", raw=b"data: a\n\n"), BLANK],
            id="blank lines are frames of their own",
        ),
        pytest.param(b":\n\n", [SSEFrame(raw=b":\n\n")], id="an empty comment"),
        pytest.param(b"data: a", [SSEFrame(data="a", raw=b"data: a")], id="end inside a line"),
        pytest.param(b"data: a\n", [SSEFrame(data="a", raw=b"data: a\n")], id="end before the blank line"),
        pytest.param(b"data: a\r", [SSEFrame(data="a", raw=b"data: a\n")], id="end after a lone CR"),
        pytest.param(BOM + b"data: a\n\n", [SSEFrame(data="a", raw=BOM + b"data: a\n\n")], id="byte order mark"),
        pytest.param(
            BOM + b"\ndata: a\n\n",
            [SSEFrame(raw=BOM + b"\n"), SSEFrame(data="a", raw=b"data: a\n\n")],
            id="byte order mark before a blank line",
        ),
        pytest.param(BOM, [SSEFrame(raw=BOM)], id="nothing but a byte order mark"),
        pytest.param(BOM[:2], [SSEFrame(raw=BOM[:2])], id="half a byte order mark"),
        pytest.param(
            BOM + BOM + b"data: a\n\n", [SSEFrame(raw=BOM + BOM + b"data: a\n\n")], id="the second mark is text"
        ),
        pytest.param(
            b"data: a\n\n" + BOM + b"data: b\n\n",
            [SSEFrame(data="a", raw=b"data: a\n\n"), SSEFrame(raw=BOM + b"data: b\n\n")],
            id="a mark later on is text",
        ),
        pytest.param(
            b"data: a\xffb\n\n", [SSEFrame(data="a\ufffdb", raw=b"data: a\xffb\n\n")], id="invalid UTF-8 of one line"
        ),
        pytest.param(
            b"event: \xff\ndata: \xf0\x9f\ndata: \x99\n\n",
            [SSEFrame("\ufffd", "\ufffd\n\ufffd", raw=b"event: \xff\ndata: \xf0\x9f\ndata: \x99\n\n")],
            id="invalid UTF-8 is not healed over lines",
        ),
        pytest.param(
            "data: a\u2028b\x85c\x0b\x0c\x1ed\n\n".encode(),
            [SSEFrame(data="a\u2028b\x85c\x0b\x0c\x1ed", raw="data: a\u2028b\x85c\x0b\x0c\x1ed\n\n".encode())],
            id="only CR and LF end a line",
        ),
    ],
)
def test_frames_of_a_stream_in_one_chunk_and_in_single_bytes(data: bytes, expected: list[SSEFrame]) -> None:
    assert decode([data]) == expected
    assert decode(data[i : i + 1] for i in range(len(data))) == expected


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes_is_taken_and_may_be_changed_afterwards(
    kind: Callable[[bytes], bytes | bytearray | memoryview],
) -> None:
    decoder = SSEDecoder()
    data = kind(b"data: a\n\ndata: b")
    frames = decoder.feed(data)
    if isinstance(data, bytearray):
        data[:] = b"?" * len(data)
    assert frames == [SSEFrame(data="a", raw=b"data: a\n\n")]
    assert type(frames[0].raw) is bytes
    assert decoder.flush() == [SSEFrame(data="b", raw=b"data: b")]


def test_a_frame_is_given_at_its_blank_line_not_at_the_line_feed_after_a_carriage_return() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\r\r") == [SSEFrame(data="a", raw=b"data: a\n\n")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"\n") == [BLANK]


def test_a_chunk_that_is_one_frame_is_its_raw_without_a_copy() -> None:
    decoder = SSEDecoder()
    for chunk in (b'data: {"type":"RAW"}\n\n', b"event: e\ndata: a\n\n", b": ping\n\n"):
        (frame,) = decoder.feed(chunk)
        assert frame.raw is chunk


def test_a_decoder_is_ready_for_another_stream_after_flush() -> None:
    decoder = SSEDecoder()
    decoder.feed(BOM + b"data: a\n\ndata: b\r")
    assert decoder.flush() == [SSEFrame(data="b", raw=b"data: b\n")]
    assert decoder.flush() == []
    assert decoder.feed(BOM + b"\ndata: c\n\n") == [SSEFrame(raw=BOM + b"\n"), SSEFrame(data="c", raw=b"data: c\n\n")]
    decoder.feed(b"data: d\r")
    decoder.flush()
    assert decoder.feed(b"\n") == [BLANK]


def test_a_decoder_is_ready_for_another_stream_after_an_oversized_end() -> None:
    decoder = SSEDecoder(max_frame_bytes=10)
    with pytest.raises(LimitError):
        decoder.feed(b"data: 12345")
    assert decoder.flush() == []
    assert decoder.feed(b"data: ") == []
    assert decoder.feed(b"a\n\n") == [SSEFrame(data="a", raw=b"data: a\n\n")]


@settings(max_examples=300)
@given(data=streams, places=places)
@example(data=BOM + b"data: 1\r\n\r\ndata: 2\n\n", places=[1, 2, 11, 12, 13])
def test_any_cut_of_any_bytes_gives_the_same_frames(data: bytes, places: list[int]) -> None:
    assert decode(cut(data, places)) == decode([data])


@settings(max_examples=300)
@given(data=streams, places=places)
def test_the_raws_of_all_frames_joined_are_the_stream_with_lf(data: bytes, places: list[int]) -> None:
    assert b"".join(frame.raw for frame in decode(cut(data, places))) == with_lf(data)


@settings(max_examples=300)
@given(data=streams | st.binary(max_size=60))
def test_fields_agree_with_a_reader_by_the_letter(data: bytes) -> None:
    assert [fields(frame) for frame in decode([data])] == reference(data)


# Limits


def test_frames_before_an_oversized_one_come_first_and_those_behind_it_after_the_error() -> None:
    decoder = SSEDecoder(max_frame_bytes=20)
    big = b"data: " + b"x" * 30 + b"\n\n"
    before, behind = SSEFrame(data="a", raw=b"data: a\n\n"), SSEFrame(data="b", raw=b"data: b\n\n")
    assert decoder.feed(before.raw + big + behind.raw) == [before]
    with pytest.raises(LimitError, match=r"38 bytes or more, and max_frame_bytes is 20; it was skipped$"):
        decoder.feed(b"data: c")
    assert decoder.feed(b"\n\n") == [behind, SSEFrame(data="c", raw=b"data: c\n\n")]
    assert decoder.flush() == []


def test_an_error_that_waits_comes_with_the_next_call_whatever_that_brings() -> None:
    decoder = SSEDecoder(max_frame_bytes=10)
    for more in (b"", b"data: a\n\n"):
        assert decoder.feed(b": a\n\n" + b"data: 12345678\n\n") == [SSEFrame(raw=b": a\n\n")]
        with pytest.raises(LimitError):
            decoder.feed(more)
        assert [frame.raw for frame in decoder.feed(b"")] == [more] * bool(more)


def test_an_oversized_frame_is_reported_as_soon_as_nothing_stands_before_it_and_only_once() -> None:
    decoder = SSEDecoder(max_frame_bytes=10)
    assert decoder.feed(b"data: 1234") == []
    with pytest.raises(LimitError, match=r"11 bytes or more"):
        decoder.feed(b"5")
    for _ in range(3):
        assert decoder.feed(b"data: x\n") == []
    assert decoder.feed(b"\r\ndata: a\n\n") == [SSEFrame(data="a", raw=b"data: a\n\n")]


def test_the_end_of_the_stream_reports_and_then_gives_the_rest() -> None:
    decoder = SSEDecoder(max_frame_bytes=10)
    assert decoder.feed(b"data: a\n\ndata: 12345678\n\n") == [SSEFrame(data="a", raw=b"data: a\n\n")]
    with pytest.raises(LimitError):
        decoder.flush()
    assert decoder.flush() == []
    with pytest.raises(LimitError):
        decoder.feed(b"data: 12345678\n\ndata: b")
    assert decoder.flush() == [SSEFrame(data="b", raw=b"data: b")]


def test_oversized_frames_that_come_together_are_one_error() -> None:
    decoder = SSEDecoder(max_frame_bytes=10)
    with pytest.raises(LimitError, match=r"16 bytes or more, .*, and 2 like it$"):
        decoder.feed(b"data: 12345678\n\n" * 2 + b": a\n\n" + b"event: 12345678\n\n")
    assert decoder.feed(b"") == [SSEFrame(raw=b": a\n\n")]


@pytest.mark.parametrize("frame", [b"data: 12\n\n", b"a: 12345\n\n", b"data: 1\r\n\r\n"])
def test_a_frame_of_exactly_the_limit_is_legal(frame: bytes) -> None:
    size = len(with_lf(frame))
    for chunks in ([frame], [frame[i : i + 1] for i in range(len(frame))]):
        assert len(outcomes(chunks, size)) == 1
        assert outcomes(chunks, size) != [None]
        assert outcomes(chunks, size - 1) == [None]


def test_half_a_byte_order_mark_counts_as_well() -> None:
    assert outcomes([BOM[:2]], 1) == [None]
    assert outcomes([BOM[:2], BOM[2:] + b"\n"], 1) == [SSEFrame(raw=BOM + b"\n")]
    assert outcomes([BOM[:1], BOM[1:2]], 2) == [SSEFrame(raw=BOM[:2])]


def test_a_byte_order_mark_goes_with_the_oversized_frame_it_stood_before() -> None:
    assert outcomes([BOM + b"data: 1234567\n\ndata: a\n\n"], 12) == [None, SSEFrame(data="a", raw=b"data: a\n\n")]


@settings(max_examples=200)
@given(data=streams, places=places, limit=st.integers(min_value=1, max_value=30))
def test_only_oversized_frames_are_lost_and_the_first_error_stands_in_its_place(
    data: bytes, places: list[int], limit: int
) -> None:
    found = outcomes(cut(data, places), limit)
    everything = decode([data])
    sizes = [len(frame.raw.removeprefix(BOM) if i == 0 else frame.raw) for i, frame in enumerate(everything)]
    small = [frame for frame, size in zip(everything, sizes, strict=True) if size <= limit]
    assert [frame for frame in found if frame is not None] == small
    first = next((i for i, size in enumerate(sizes) if size > limit), None)
    assert (found.index(None) if None in found else None) == first


def test_what_is_skipped_takes_no_memory() -> None:
    decoder = SSEDecoder(max_frame_bytes=1000)
    errors = 0
    for _ in range(1000):
        try:
            assert decoder.feed(b"x" * 999) == []
        except LimitError:
            errors += 1
        assert len(decoder._pending) <= 1000
    assert errors == 1


def test_callers_that_go_on_after_errors_get_every_frame_within_two_calls() -> None:
    decoder = SSEDecoder(max_frame_bytes=10)
    got: list[SSEFrame] = []
    chunk = b": a\n\n" + b"data: 12345678\n\n" + b": b\n\n" + b"data: 12345678\n\n"
    for call in range(1, 21):
        with suppress(LimitError):
            got += decoder.feed(chunk)
        assert len(got) >= 2 * call - 4
    assert len(decoder._behind) <= 4


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "10"])
def test_a_limit_that_is_no_number_of_bytes_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"max_frame_bytes must be a positive int \(bytes\); got {value!r}"):
        SSEDecoder(max_frame_bytes=value)  # type: ignore[arg-type]


class CountingBuffer(bytearray):
    """Counts the bytes that are read back out of the buffer."""

    read = 0

    def __bytes__(self) -> bytes:
        self.read += len(self)
        return bytes(memoryview(self))

    def __getitem__(self, key: SupportsIndex | slice) -> int | bytearray:  # type: ignore[override]
        self.read += 1 if not isinstance(key, slice) else len(range(*key.indices(len(self))))
        return super().__getitem__(key)

    def find(self, *_: object) -> int:
        raise AssertionError("the buffer must not be searched again")

    __contains__ = startswith = endswith = find  # type: ignore[assignment]


@pytest.mark.parametrize("size", [1, 100])
def test_a_frame_in_small_chunks_is_read_back_once(size: int) -> None:
    decoder = SSEDecoder()
    decoder.feed(b"\n")
    buffer = decoder._pending = CountingBuffer()
    data = b"data: " + b"line\ndata: " * 2000 + b"\n\n"
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    assert decoder._pending is buffer
    assert [frame.raw for frame in frames] == [data]
    # The whole once, and one byte a chunk to know whether a line has ended.
    assert buffer.read <= len(data) + len(chunks)


# Events in frames


@pytest.mark.parametrize(
    "frame",
    [
        b'data: {"type":"CUSTOM", "name":"n"}\n\n',
        b'data:{"type":"CUSTOM"}\n\n',
        b'event: x\nid: 1\nretry: 5\ndata: {"type":"CUSTOM"}\n\n',
        b': comment\ndata: {"type":"CUSTOM"}\nfoo: bar\n\n',
        b'data: {"type":\ndata: "CUSTOM"}\n\n',
        b'data: {"type":"CUSTOM","value":"\xff"}\n\n',
    ],
)
def test_an_untouched_event_is_sent_in_the_frame_it_came_in(frame: bytes) -> None:
    (received,) = SSEDecoder().feed(frame)
    event = decode_frame(received)
    assert event.type == "CUSTOM"
    assert encode_sse(event) == frame
    assert encode_sse(event) is frame
    assert encode_sse(received) is frame


NORMAL = b'data: {"type":"CUSTOM","name":"\xc3\xbc","n":12345678901234567890123}\n\n'


@pytest.mark.parametrize(
    ("chunk", "taken"),
    [
        pytest.param(NORMAL, True, id="the usual frame"),
        pytest.param(b'data:  {"type":"from next year"} \n\n', True, id="white space around"),
        pytest.param(b'data:{"type":"CUSTOM"}\n\n', False, id="no space"),
        pytest.param(b'data: {"type":"CUSTOM",\n"a":1}\n\n', False, id="a line end that JSON allows and frames do not"),
        pytest.param(b'data: {"type":"CUSTOM",\r"a":1}\n\n', False, id="CR"),
        pytest.param(b'data: {"type":"CUSTOM"}\r\n\r\n', False, id="CRLF"),
        pytest.param(b'data: {"type":"CUSTOM"}\n', False, id="cut before the blank line"),
        pytest.param(b'data: {"type":"CUSTOM"}\n\n\n', False, id="a blank line more"),
        pytest.param(NORMAL * 2, False, id="two frames"),
        pytest.param(b'id: 1\ndata: {"type":"CUSTOM"}\n\n', False, id="another field"),
        pytest.param(b'data: {"type":"\xff"}\n\n', False, id="no UTF-8"),
        pytest.param(b"data: [1]\n\n", False, id="a list"),
        pytest.param(b'data: {"type":1}\n\n', False, id="no type"),
        pytest.param(b"data: \n\n", False, id="no data"),
        pytest.param(b'data: {"type":"CUSTOM","a":"%s"}\n\n' % (b"x" * 200), False, id="past the limit"),
        pytest.param(bytearray(NORMAL), False, id="bytes that may change"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_the_short_way_gives_what_the_long_one_does_or_nothing(chunk: bytes, *, taken: bool) -> None:
    decoder = SSEDecoder(max_frame_bytes=200)
    assert decoder.feed_event(NORMAL) is None  # a byte order mark may come at the start of a stream
    assert len(decoder.feed(NORMAL)) == 1
    event = decoder.feed_event(chunk)
    assert (event is not None) is taken
    if event is not None:
        (frame,) = decoder.feed(chunk)
        other = decode_frame(frame)
        assert (event, event.type, event._raw, encode_sse(event)) == (other, other.type, other._raw, encode_sse(other))
    assert decoder.feed(b"data: cut") == []
    assert decoder.feed_event(NORMAL) is None  # it is the rest of that line


def test_an_event_keeps_its_own_frame_when_several_come_in_one_chunk() -> None:
    frames = SSEDecoder().feed(b'id: 1\ndata: {"type":"A"}\n\ndata: {"type":"B"}\n\n')
    assert [encode_sse(decode_frame(frame)) for frame in frames] == [
        b'id: 1\ndata: {"type":"A"}\n\n',
        b'data: {"type":"B"}\n\n',
    ]


@pytest.mark.parametrize(
    ("received", "sent"),
    [
        pytest.param(b'data: {"type":"A"}\r\n\r\n', b'data: {"type":"A"}\n\n', id="CRLF"),
        pytest.param(BOM + b'data: {"type":"A"}\n\n', b'data: {"type":"A"}\n\n', id="byte order mark"),
        pytest.param(b'id: 1\ndata: {"type":"A"}', b'id: 1\ndata: {"type":"A"}\n\n', id="end inside a line"),
        pytest.param(b'id: 1\ndata: {"type":"A"}\n', b'id: 1\ndata: {"type":"A"}\n\n', id="end before a blank line"),
    ],
)
def test_a_received_frame_is_sent_so_that_it_can_stand_anywhere(received: bytes, sent: bytes) -> None:
    (frame,) = decode([received])
    assert encode_sse(frame) == sent
    assert encode_sse(decode_frame(frame)) == sent


def test_a_replaced_event_does_not_go_out_in_its_old_frame() -> None:
    (frame,) = SSEDecoder().feed(b'id: 1\ndata: {"type":"CUSTOM","name":"n"}\n\n')
    assert encode_sse(replace(decode_frame(frame), name="m")) == b'data: {"type":"CUSTOM","name":"m"}\n\n'


def test_an_event_of_a_frame_made_by_hand_is_framed_anew() -> None:
    event = decode_frame(SSEFrame(event="e", data='{"type":"CUSTOM"}'))
    assert encode_sse(event) == b'data: {"type":"CUSTOM"}\n\n'
    assert encode_sse(copy.copy(event)) == b'data: {"type":"CUSTOM"}\n\n'


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b": ping\n\n", r"needs a frame with data; got a frame without: b': ping\\n\\n'"),
        (b"event: " + b"e" * 100 + b"\n\n", r"got a frame without: b'event: e{31}…$"),
        (b"data: [DONE]\n\n", r"'\[DONE\]'"),
        (b"data:\n\n", r"''"),
        (b"data: NaN\n\n", "NaN"),
        (b"data: {}\n\n", 'a string "type"'),
        (b'data: [{"type":"A"}]\n\n', "JSON object"),
        (b'data: {"type":"A"}\ndata: {"type":"B"}\n\n', "not JSON"),
    ],
)
def test_a_frame_without_an_event_is_refused(frame: bytes, message: str) -> None:
    (received,) = SSEDecoder().feed(frame)
    with pytest.raises(DecodeError, match=message):
        decode_frame(received)


def test_a_hand_made_frame_without_data_is_refused_by_its_fields() -> None:
    with pytest.raises(DecodeError, match=r"without: SSEFrame\(event='e'"):
        decode_frame(SSEFrame(event="e"))


# What is written


def test_a_model_is_one_line_of_data() -> None:
    event = TextMessageContentEvent(message_id="m", delta="a\r\n\u2028b\x85")
    sent = encode_sse(event)
    assert sent == b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a\\r\\n\\u2028b\xc2\x85"}\n\n'
    (frame,) = SSEDecoder().feed(sent)
    assert decode_frame(frame).delta == "a\r\n\u2028b\x85"


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n", "\n\n", "\n\r"])
def test_json_received_over_several_lines_is_several_lines_of_data(newline: str) -> None:
    event = decode_event(f'{{"type":"CUSTOM",{newline}"name":{newline} "n"}}')
    sent = encode_sse(event)
    assert b"\r" not in sent
    (frame,) = SSEDecoder().feed(sent)
    assert decode_frame(frame) == event
    assert frame.data == with_lf(f'{{"type":"CUSTOM",{newline}"name":{newline} "n"}}'.encode()).decode()


def test_repairs_inside_an_event_are_reported() -> None:
    seen: list[Diagnostic] = []
    assert encode_sse(CustomEvent(name="n", value=float("nan")), seen.append).endswith(b'"value":null}\n\n')
    assert [diagnostic.code for diagnostic in seen] == ["encode.nan"]


@pytest.mark.parametrize(
    ("frame", "sent", "codes"),
    [
        (SSEFrame(data="a"), b"data: a\n\n", []),
        (SSEFrame(data=""), b"data: \n\n", []),
        (SSEFrame(data=" a"), b"data:  a\n\n", []),
        (SSEFrame("e", "a", "7", 10), b"event: e\nid: 7\nretry: 10\ndata: a\n\n", []),
        (SSEFrame(retry=0), b"retry: 0\n\n", []),
        (SSEFrame(event="", id=""), b"event: \nid: \n\n", []),
        (SSEFrame(), b"", []),
        (SSEFrame(data="a\nb\rc\r\nd\n\n"), b"data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: \n\n", []),
        (SSEFrame(data="a\u2028b\x85c"), "data: a\u2028b\x85c\n\n".encode(), []),
        (SSEFrame(event="e\ndata: x"), b"event: e data: x\n\n", ["sse.field"]),
        (SSEFrame(event="err\nor"), b"event: err or\n\n", ["sse.field"]),
        (SSEFrame(id="1\r\n\r\ndata: x\0"), b"id: 1  data: x \n\n", ["sse.field"]),
        (SSEFrame(retry=-1, data="a"), b"data: a\n\n", ["sse.retry"]),
        (SSEFrame(retry=10**5000, data="a"), b"data: a\n\n", ["sse.retry"]),
        (SSEFrame(retry="5\ndata: x", data="a"), b"data: a\n\n", ["sse.retry"]),  # type: ignore[arg-type]
        (SSEFrame(data="a\ud800b"), "data: a\ufffdb\n\n".encode(), ["encode.surrogate"]),
        (SSEFrame(event="\udc00", data="\ud83d\ude42"), "event: \ufffd\ndata: 🙂\n\n".encode(), ["encode.surrogate"]),
        # Bytes given by hand are sent as they are, except that they cannot break the stream around them.
        (SSEFrame(data="ignored", raw=b": ping\n\n"), b": ping\n\n", []),
        (SSEFrame(raw=b"\n"), b"\n", []),
        (SSEFrame(raw=b"data: a\r\n\r\n"), b"data: a\n\n", []),
        (SSEFrame(raw=b"data: a\r\r"), b"data: a\n\n", []),
        (SSEFrame(raw=b"data: a"), b"data: a\n\n", []),
        (SSEFrame(raw=BOM), b"", []),
    ],
)
def test_a_frame_is_sent_from_its_fields_without_ending_early(
    frame: SSEFrame, sent: bytes, codes: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Diagnostic] = []
    assert encode_sse(frame, seen.append) == sent
    assert [diagnostic.code for diagnostic in seen] == codes
    encode_sse(frame)
    assert len(caplog.records) == len(codes)


texts = st.text(st.sampled_from("ab :\r\n\0\u2028\x85\ud800é🙂"), max_size=12)


@settings(max_examples=200)
@given(
    frame=st.builds(
        SSEFrame,
        event=st.none() | texts,
        data=st.none() | texts,
        id=st.none() | texts,
        retry=st.none() | st.integers(),
        raw=st.just(b""),
    ),
    neighbour=st.sampled_from([SSEFrame(data="next"), SSEFrame(event="e", raw=b"event: e\n\n")]),
)
def test_whatever_a_frame_holds_it_is_read_as_one_frame(frame: SSEFrame, neighbour: SSEFrame) -> None:
    found = decode([encode_sse(frame, lambda _: None) + encode_sse(neighbour)])
    assert len(found) == (1 if encode_sse(frame, lambda _: None) == b"" else 2)
    assert fields(found[-1]) == fields(neighbour)
    if len(found) == 2:
        sent = found[0]
        assert (sent.event is None, sent.data is None, sent.id is None) == (
            frame.event is None,
            frame.data is None,
            frame.id is None,
        )
        clean = (frame.data or "").replace("\r\n", "\n").replace("\r", "\n").replace("\ud800", "\ufffd")
        assert (sent.data or "") == clean


def test_a_byte_order_mark_that_is_text_is_sent_as_it_came() -> None:
    first, second = decode([b"data: a\n\n" + BOM + b"data: x\ndata: b\n\n"])
    assert (first.data, second.data) == ("a", "b")
    assert encode_sse(second) == BOM + b"data: x\ndata: b\n\n"


@settings(max_examples=100)
@given(data=streams, places=places)
@example(data=BOM + BOM + b"data: a\n\n", places=[])
@example(data=b"\n" + BOM + b"\n\ndata: a\n\n", places=[])
def test_a_stream_read_and_written_reads_the_same_and_holds_no_cr(data: bytes, places: list[int]) -> None:
    frames = decode(cut(data, places))
    sent = [encode_sse(frame) for frame in frames]
    assert b"\r" not in b"".join(sent)
    assert all(item.endswith(b"\n\n") or item in {b"\n", b""} for item in sent)
    again = decode([b"".join(sent)])
    # Frames without a field may become more or fewer: a byte order mark alone on a line is no line without it.
    nothing = fields(SSEFrame())
    assert [fields(frame) for frame in again if fields(frame) != nothing] == [
        fields(frame) for frame in frames if fields(frame) != nothing
    ]
