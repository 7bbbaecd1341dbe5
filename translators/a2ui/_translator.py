"""A2UI in assistant text becomes carrier events: one run, sans-IO.

Knows which events bring text of which message, what passes, what is dropped, and in which order things go on. Does
not know how text is cut into records (`_reader.py`), which are messages (`_judge.py`), or how they travel
(`_delivery.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, TypeAlias

from agui_pipeline.translators._base import Translator
from agui_pipeline.translators._diagnostics import DiagnosticSink
from agui_pipeline.translators._errors import SequenceError
from agui_pipeline.translators._events import AnyEvent, Event
from agui_pipeline.translators.a2ui._codes import Reporter
from agui_pipeline.translators.a2ui._delivery import Delivery
from agui_pipeline.translators.a2ui._history import without_records
from agui_pipeline.translators.a2ui._judge import Judge
from agui_pipeline.translators.a2ui._lanes import Lanes, Stream, stream_id, subagent_of
from agui_pipeline.translators.a2ui._messages import Output, TextMessage
from agui_pipeline.translators.a2ui._open_calls import OpenCalls, ToolCall
from agui_pipeline.translators.a2ui._reader import Piece, ReaderFactory
from agui_pipeline.translators.a2ui._repairs import Repairs
from agui_pipeline.translators.a2ui._run_surfaces import RunSurfaces
from agui_pipeline.translators.a2ui._settings import A2UISettings
from agui_pipeline.translators.a2ui._tools import ToolReader

_Handler: TypeAlias = Callable[["A2UITranslator", Event], Iterable[AnyEvent]]


class A2UITranslator(Translator):
    """One run of A2UI translation; a stream of several runs is several. See `agui_pipeline.middleware.A2UIMiddleware`.

    Args:
        settings: What to do.
        sink: Gets each diagnostic.
        thread: The registry's key of the run.
        thread_id: The thread, for carriers.
        run_id: The run, for carriers.
    """

    def __init__(
        self, settings: A2UISettings, sink: DiagnosticSink, *, thread: str, thread_id: str, run_id: str
    ) -> None:
        self._settings = settings
        self._texts = settings.on_invalid == "text"
        self._out = Output()
        self._report = report = Reporter(sink)
        registry = settings.registry
        self._surfaces = None if registry is None else RunSurfaces(lambda: registry.thread(thread), settings, report)
        self._deliver = Delivery(settings, self._out, report, self._surfaces, thread_id=thread_id, run_id=run_id)
        surfaces = self._surfaces
        self._judge = Judge(
            settings.limits,
            report,
            validates=settings.validate != "off",
            versions=settings.versions,
            mixes=surfaces is None,
            validator=settings.validator,
            catalog_of=None if surfaces is None else surfaces.catalog_of,
        )
        self._repairs = Repairs(settings.repairer, settings.limits, report, validates=settings.validate != "off")
        self._new_reader = ReaderFactory(
            framing=settings.framing,
            on_invalid=settings.on_invalid,
            max_chars=settings.limits.max_message_bytes,
            max_depth=settings.limits.max_depth,
            judge=self._judge,
            on_broken=self._judge.broken,
            on_dropped=self._judge.dropped,
            repairs=self._repairs,
        )
        self._reading = self._TEXT_AND_CALLS if settings.tools else self._TEXT
        # Both change while a run is over by a RUN_ERROR of ours.
        self._handlers = self._reading
        self._handle_other: _Handler = A2UITranslator._other
        self._open: dict[str | None, TextMessage] = {}
        self._calls = OpenCalls(settings.tools, settings.limits.max_message_bytes)
        self._lanes = Lanes()  # the source's chunk streams
        # What is reported at the end of a run.
        self._dropped: dict[str, int] = {}
        self._told_unset = False
        self._raw_events = 0
        self._after_error = 0

    def feed(self, event: Event) -> Iterable[AnyEvent]:
        return self._handlers.get(event.type, self._handle_other)(self, event)

    def flush(self) -> Iterable[AnyEvent]:
        self._flush_all(None)
        self._finish_run()
        return self._out.take()

    # Runs

    def _run_started(self, event: Event) -> Iterable[AnyEvent]:
        self._flush_all(event)
        self._finish_run()
        self._told_unset = False
        run_id = getattr(event, "run_id", None)
        if isinstance(run_id, str):
            self._deliver.run_id = run_id
        self._out.add(event)
        return self._out.take()

    def _run_ended(self, event: Event) -> Iterable[AnyEvent]:
        self._flush_all(event)
        if self._deliver.failed:  # what was pending has ended the run in a RUN_ERROR: its own end must not follow
            return self._ignore(event)
        self._finish_run()
        self._out.add(event)
        return self._out.take()

    def _ignore(self, _event: Event) -> Iterable[AnyEvent]:
        """Drop an event: by the protocol nothing but a new run may follow the RUN_ERROR that went out."""
        self._after_error += 1
        return self._out.take()

    def _flush_all(self, event: Event | None) -> None:
        """Send what open messages still hold: those with a START in the order they were opened, then chunk streams."""
        for message in self._open.values():
            self._end_message(message, event)
        self._open.clear()
        for stream in self._lanes.close_all():
            self._end_stream(stream, event)
        for call in self._calls.end_all():
            self._end_call(call, event)

    def _finish_run(self) -> None:
        """Report what is reported once a run, and forget the run."""
        if self._settings.pass_through is not None:
            for name, count in self._dropped.items():
                text = f"{count} {name} events did not pass pass_through"
                self._report("a2ui.dropped", text, event_type=name, detail={"count": count})
        totals = {
            "a2ui.prose-dropped": (
                self._judge.dropped_chars,
                "characters of text that is no A2UI message were dropped",
            ),
            "a2ui.after-error": (self._after_error, "events after the RUN_ERROR for invalid A2UI were dropped"),
            "a2ui.raw-event": (self._raw_events, "rawEvent copies were left out: their text went on with other events"),
        }
        for code, (count, what) in totals.items():
            if count:
                self._report(code, f"{count} {what}", detail={"count": count})
        self._dropped.clear()
        self._raw_events = self._after_error = 0
        self._deliver.failed = False
        self._handlers, self._handle_other = self._reading, A2UITranslator._other
        self._judge.restart()
        self._repairs.restart()
        if self._surfaces is not None:
            self._surfaces.finish()

    # Text

    def _text_start(self, event: Event) -> Iterable[AnyEvent]:
        if self._lanes.streams and not self._close_streams(event):
            return self._ignore(event)
        id_ = self._message_id(event)
        message = self._open.get(id_)
        if message is None:
            message = self._open[id_] = self._new_message(id_, event, subagent_of(event), chunked=False)
        else:
            self._out_of_order(event, id_, "a message that is open already")
        if message.reader is None:
            self._out.add(event)
        return self._out.take()

    def _text_content(self, event: Event) -> Iterable[AnyEvent]:
        if self._lanes.streams and not self._close_streams(event):
            return self._ignore(event)
        try:
            message = self._open.get(event.message_id)
        except TypeError:  # unhashable
            message = None
        if message is None:
            message = self._unopened(event)
        return self._read(message, event)

    def _text_end(self, event: Event) -> Iterable[AnyEvent]:
        if self._lanes.streams and not self._close_streams(event):
            return self._ignore(event)
        id_ = self._message_id(event)
        message = self._open.pop(id_, None)
        if message is None:
            self._out_of_order(event, id_, "a message that is not open")
        elif message.reader is None:
            self._out.add(event)
        else:
            self._end_message(message, event, end=event)
        return self._out.take()

    def _text_chunk(self, event: Event) -> Iterable[AnyEvent]:
        lane, stream = self._lanes.continued_by(event)
        if stream is not None and stream.message is not None:
            return self._read(stream.message, event)
        id_ = self._message_id(event)
        message = self._open.get(id_) if id_ is not None else None
        if message is not None:
            self._out_of_order(event, id_, "a message that has a START")
            return self._read(message, event)
        if id_ is None:
            self._out_of_order(event, id_, "no message: the first chunk of a stream needs a messageId")
        message = self._new_message(id_, event, lane, chunked=True)
        for closed in self._lanes.open(lane, Stream("text", id_, event, message)):
            self._end_stream(closed, event)
        return self._ignore(event) if self._deliver.failed else self._read(message, event)

    def _read(self, message: TextMessage, event: Event) -> Iterable[AnyEvent]:
        """Send on what goes on of an event with text of a message."""
        reader = message.reader
        if reader is None:
            message.send(event, self._out)
            return self._out.take()
        delta = getattr(event, "delta", None)
        if not isinstance(delta, str):
            if delta is not None or not message.chunked:  # a chunk need not have one
                self._malformed(event, message.id, "delta")
            elif self._texts:
                message.empty(event, self._out)
        elif not self._texts:
            items = reader.scan(delta)
            if items:
                self._send_pieces(message, reader.read(items), event)
        elif not delta:
            message.empty(event, self._out)
        else:
            items = reader.scan(delta)
            whole = len(items) == 1 and items[0].kind == "prose" and items[0].text == delta
            if not (whole and message.take_prose(event, self._out)):
                message.take(event)
                if items:
                    self._send_pieces(message, reader.read(items), event)
        return self._out.take() if self._out.events else ()

    def _send_pieces(self, message: TextMessage, pieces: list[Piece], event: Event | None) -> None:
        self._deliver.pieces(message, pieces, event)
        self._stop_where_failed()

    def _stop_where_failed(self) -> None:
        if self._deliver.failed:
            self._handlers, self._handle_other = self._OVER, A2UITranslator._ignore

    def _new_message(
        self, id_: str | None, opener: Event | None, subagent_run_id: str | None, *, chunked: bool
    ) -> TextMessage:
        """Make a message, with a reader unless its role says that it is not the assistant's."""
        role = getattr(opener, "role", None)
        reads = role is None or role == "assistant" or self._settings.every_role
        return TextMessage(id_, subagent_run_id, self._new_reader(id_) if reads else None, opener, chunked=chunked)

    def _unopened(self, event: Event) -> TextMessage:
        """Return the message of content that came without START."""
        id_ = self._message_id(event)
        message = self._open.get(id_)  # malformed ids are all one message
        if message is None:
            self._out_of_order(event, id_, "a message that is not open")
            message = self._open[id_] = self._new_message(id_, None, subagent_of(event), chunked=False)
        return message

    def _end_message(self, message: TextMessage | None, event: Event | None, *, end: Event | None = None) -> None:
        """Send on what a message still holds, and its END where one came."""
        if message is None or message.reader is None:
            return
        if not self._deliver.failed:
            pieces = message.reader.flush()
            if pieces:
                self._send_pieces(message, pieces, event)
        if self._texts and not self._deliver.failed and (end is not None or message.chunked):
            message.end(end, self._out)
        self._raw_events += message.lost_raw_events

    def _message_id(self, event: Event) -> str | None:
        id_ = getattr(event, "message_id", None)
        if id_ is None or isinstance(id_, str):
            return id_
        self._malformed(event, None, "messageId")
        return None

    # Other events

    def _other(self, event: Event) -> Iterable[AnyEvent]:
        if self._lanes.streams and not self._close_streams(event):
            return self._ignore(event)
        if self._passes(event):
            self._out.add(event)
        return self._out.take()

    def _messages_snapshot(self, event: Event) -> Iterable[AnyEvent]:
        if self._lanes.streams and not self._close_streams(event):
            return self._ignore(event)
        if self._passes(event):
            # Where prose is shown as text, the history must agree with it.
            shown, count = without_records(event, self._settings) if self._texts else (event, 0)
            if count:
                text = (
                    "A2UI messages in the text of a MESSAGES_SNAPSHOT were left out: they travel as they are streamed"
                )
                self._report("a2ui.snapshot-text", text, event_type="MESSAGES_SNAPSHOT", detail={"count": count})
            self._out.add(shown)
        return self._out.take()

    def _other_chunk(self, event: Event) -> Iterable[AnyEvent]:
        lane, stream = self._lanes.continued_by(event)
        if not self._close_streams(event):
            return self._ignore(event)
        if self._passes(event):
            self._out.add_chunk(event, event if stream is None else stream.opener, lane)
        if self._settings.tools and event.type == "TOOL_CALL_CHUNK":
            id_ = stream_id(event, event.type) if stream is None else stream.id
            self._calls.take(event, id_, opens=stream is None)
        return self._out.take()

    # Tool calls that carry A2UI

    def _tool_call(self, event: Event) -> Iterable[AnyEvent]:
        if self._lanes.streams and not self._close_streams(event):
            return self._ignore(event)
        if self._passes(event):
            self._out.add(event)
        id_ = getattr(event, "tool_call_id", None)
        if isinstance(id_, str):
            self._calls.take(event, id_, opens=event.type == "TOOL_CALL_START")
            if event.type == "TOOL_CALL_END":
                self._end_call(self._calls.end(id_), event)
        return self._out.take()

    def _end_call(self, call: ToolCall | None, event: Event | None) -> None:
        """Send on what the arguments of a call hold."""
        if call is not None and not self._deliver.failed:
            settings, surfaces = self._settings, self._surfaces
            reader = ToolReader(
                judge=self._judge,
                repairs=self._repairs,
                report=self._report,
                on_invalid=settings.on_invalid,
                max_chars=settings.limits.max_message_bytes,
                max_depth=settings.limits.max_depth,
                catalog=settings.tool_catalog,
                exists=lambda surface_id: surfaces is not None and surfaces.exists(surface_id),
            )
            self._deliver.call_pieces(call, reader.read(call), event)
            self._stop_where_failed()

    def _passes(self, event: Event) -> bool:
        """Say whether an event that is no text passes; count it if it does not."""
        passes = self._settings.pass_through
        if passes is not None and passes(event):
            return True
        name = str.__str__(event.type)
        if passes is None and not self._told_unset:
            self._told_unset = True
            text = (
                f"{name} and other events that are no text are dropped: "
                'set pass_through to "all", to the types that shall pass, or to a predicate'
            )
            self._report("a2ui.pass-through-unset", text, event_type=name)
        self._dropped[name] = self._dropped.get(name, 0) + 1
        return False

    def _close_streams(self, event: Event) -> bool:
        """Send on what the chunk streams still hold that this event ends. Says whether the run goes on."""
        for stream in self._lanes.take(event):
            self._end_stream(stream, event)
        return not self._deliver.failed

    def _end_stream(self, stream: Stream, event: Event | None) -> None:
        if stream.kind == "tool":
            self._end_call(self._calls.end(stream.id), event)
        self._end_message(stream.message, event)

    # What takes which event. No bound methods: they would keep a run that was cut, and its thread's surfaces, alive.

    _TEXT: ClassVar[Mapping[str, _Handler]] = {
        "TEXT_MESSAGE_START": _text_start,
        "TEXT_MESSAGE_CONTENT": _text_content,
        "TEXT_MESSAGE_END": _text_end,
        "TEXT_MESSAGE_CHUNK": _text_chunk,
        "TOOL_CALL_CHUNK": _other_chunk,
        "REASONING_MESSAGE_CHUNK": _other_chunk,
        "MESSAGES_SNAPSHOT": _messages_snapshot,
        "RUN_STARTED": _run_started,
        "RUN_FINISHED": _run_ended,
        "RUN_ERROR": _run_ended,
    }
    _TEXT_AND_CALLS: ClassVar[Mapping[str, _Handler]] = {
        **_TEXT,
        "TOOL_CALL_START": _tool_call,
        "TOOL_CALL_ARGS": _tool_call,
        "TOOL_CALL_END": _tool_call,
    }
    _OVER: ClassVar[Mapping[str, _Handler]] = {"RUN_STARTED": _run_started}

    # Diagnostics

    def _out_of_order(self, event: Event, message_id: str | None, what: str) -> None:
        name = str.__str__(event.type)
        if self._settings.strict:
            raise SequenceError(f"{name} for {what}" + ("" if message_id is None else f" ({message_id!r})"))
        self._report("a2ui.sequence", f"{name} for {what}", event_type=name, message_id=message_id)

    def _malformed(self, event: Event, message_id: str | None, field: str) -> None:
        name = str.__str__(event.type)
        self._report("a2ui.malformed", f"{field} of {name} is no string", event_type=name, message_id=message_id)
