r"""Frames: one line of ``data: ``, which every client reads.

Observed: clients up to 0.0.42 lose a frame whose ``data:`` has no space behind it, all of them give up on CR.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agui_pipeline.translators._events import AnyEvent, WireEvent, decode_event
from agui_pipeline.translators.agui_versions._rule import Setting

_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")


def plain_frame(event: AnyEvent, _setting: Setting) -> Iterable[AnyEvent]:
    """Take an event out of the frame that it came in, where that is not one line of data. Its JSON stays as it was.

    With it go the frame's other fields; these clients read none of them.
    """
    if not isinstance(event, WireEvent):
        return (event,)
    frame, raw = event._sse, event._raw  # noqa: SLF001 - the slots are shared with this package
    if frame is not None:
        if frame.startswith(b"data: ") and frame.find(b"\n") == len(frame) - 2:
            return (event,)
    elif raw is None or not (b"\n" in raw or b"\r" in raw):
        return (event,)
    return (decode_event(event.data if raw is None else raw.translate(_ONE_LINE)),)
