"""What a session of the old HTTP API is remembered by, where, and for how long.

Knows that clients of that API send one message at a time and name a session; does not know HTTP, nor runs.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Protocol, runtime_checkable

import anyio
import orjson

from agui_pipeline.middleware._options import check_callable, check_count, check_number
from agui_pipeline.translators import Diagnostic, DiagnosticSink
from agui_pipeline.translators._encode import encode_json

JSONObject = dict[str, Any]

DIAGNOSTICS: Final[Mapping[str, str]] = {
    "superagent.history-cut": "a session outgrew its limits: its oldest messages were forgotten",
    "superagent.session-lost": "what came of a run could not be stored in its session",
    "superagent.unreadable": "messages that are none were left out of a session's history",
    "superagent.unanswered": "tool calls that nobody answered were left out of a session's history",
}
"""The diagnostics of keeping sessions, by code."""


@dataclass(frozen=True, slots=True)
class Session:
    """What an AG-UI client would remember of a thread. JSON values with wire names throughout; never mutated.

    Attributes:
        messages: The conversation.
        state: The shared state.
        interrupts: Those that the last run ended with, in order; empty when it ended otherwise.
        answers: Entries of `RunAgentInput.resume`, for the first of `interrupts`: a run goes on when all have one.
        legacy: Whether the agent told its interrupts in the convention of before AG-UI 1.0 (CUSTOM ``on_interrupt``),
            and looks for answers where that has them.
        dialect: The dialect that the last stream was sent in; None for AG-UI.
        agent_id: The agent of the last run, as its client named it.
        shown: The ids of the messages that its client saw last, also where `messages` are not remembered: in a
            MESSAGES_SNAPSHOT of the next run, what stands behind them is new.
        calls: The ids of the tool calls that its client saw of a run that waits, and that have no result: the run may
            tell them again when it goes on.
        claim: Which request has taken the interrupts last: what one has taken, no other may give back.
    """

    messages: Sequence[JSONObject] = ()
    state: Any = field(default_factory=dict)
    interrupts: Sequence[JSONObject] = ()
    answers: Sequence[JSONObject] = ()
    legacy: bool = False
    dialect: str | None = None
    agent_id: str | None = None
    shown: Sequence[str] = ()
    calls: Sequence[str] = ()
    claim: str | None = None

    @property
    def waiting(self) -> Sequence[JSONObject]:
        """The interrupts that nobody has answered yet, in order."""
        return self.interrupts[len(self.answers) :]

    def encode(self) -> bytes:
        """Return it as JSON."""
        return encode_json(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Session:
        """Return what `encode` made JSON of; of a later version, what this one knows."""
        known = orjson.loads(data)
        return cls(**{name: known[name] for name in cls.__slots__ if name in known})


@runtime_checkable
class SessionStore(Protocol):
    """Where sessions are kept: bytes by a key. Forgetting is allowed: a session that is not there is a new one.

    One that several processes share lets any of them answer any request. All that is asked of it is a compare-and-swap
    (``UPDATE … WHERE value = ?``, a few lines of Lua in Redis): the answer to an interrupt must start one run, however
    often, and wherever, it arrives.
    """

    async def get(self, key: str, /) -> bytes | None:
        """Return what is stored, None for nothing."""
        ...

    async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:
        """Store `new` if `old` is what is stored (None: nothing is), atomically.

        Returns:
            Whether it was.
        """
        ...


class MemorySessions:
    """A `SessionStore` in the memory of one process, bounded in every direction.

    Sessions are lost when the process ends, and other processes do not see them: with several workers, send a session
    to the same one, or write a `SessionStore` of your own.

    Args:
        max_sessions: Sessions remembered. Then the one that was used least recently is forgotten.
        max_bytes: Bytes of JSON remembered, over all sessions; likewise.
        expires: Seconds until a session that nobody uses is forgotten.
        clock: ``() -> seconds``, monotonic.

    Raises:
        ConfigurationError: A limit is no positive number.
    """

    def __init__(
        self,
        *,
        max_sessions: int = 10_000,
        max_bytes: int = 256 * 1024 * 1024,
        expires: float = 86_400.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_count("max_sessions", max_sessions, least=1)
        check_count("max_bytes", max_bytes, least=1, unit="a whole number of bytes")
        check_number("expires", expires, unit="a number of seconds")
        check_callable("clock", clock, "() -> seconds")
        self._max_sessions = max_sessions
        self._max_bytes = max_bytes
        self._expires = expires
        self._clock = clock
        self._sessions: OrderedDict[str, tuple[float, bytes]] = OrderedDict()  # least recently used first
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._sessions)

    async def get(self, key: str, /) -> bytes | None:
        """Return what is stored, None for nothing."""
        self._expire()
        data = self._take(key)
        if data is not None:
            self._put(key, data)  # the last that was used
        return data

    async def swap(self, key: str, old: bytes | None, new: bytes, /) -> bool:
        """Store `new` if `old` is what is stored."""
        self._expire()
        stored = self._sessions.get(key, (0.0, None))[1]
        if stored != old:
            return False
        self._take(key)
        self._put(key, new)
        while len(self._sessions) > self._max_sessions or self._bytes > self._max_bytes:
            self._take(next(iter(self._sessions)))
        return True

    def _expire(self) -> None:
        before = self._clock() - self._expires
        while self._sessions:
            key, (used, _) = next(iter(self._sessions.items()))
            if used > before:
                break
            self._take(key)

    def _take(self, key: str) -> bytes | None:
        found = self._sessions.pop(key, None)
        if found is None:
            return None
        self._bytes -= len(found[1])
        return found[1]

    def _put(self, key: str, data: bytes) -> None:
        self._sessions[key] = (self._clock(), data)
        self._bytes += len(data)


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What one session may hold.

    Attributes:
        messages: Messages.
        size: Bytes, as JSON.
    """

    messages: int
    size: int

    def apply(self, session: Session, sink: DiagnosticSink) -> Session:
        """Return a session within the limits: of too many messages the first go, up to one of the user's.

        Instructions at the start of a history stay. What is too large even so goes whole.
        """
        if len(session.messages) <= self.messages and len(session.encode()) <= self.size:
            return session
        kept = self._cut(session)
        text = f"{DIAGNOSTICS['superagent.history-cut']} ({len(session.messages) - len(kept.messages)})"
        sink(Diagnostic("superagent.history-cut", text, detail={"messages": len(session.messages)}))
        return kept

    def _cut(self, session: Session) -> Session:
        messages = session.messages
        start = next((place for place, one in enumerate(messages) if one["role"] not in _INSTRUCTIONS), len(messages))
        head, rest = list(messages[:start]), list(messages[start:])
        size = len(replace(session, messages=head).encode())
        kept = 0
        for message in reversed(rest):
            size += len(encode_json(message)) + 1
            if size > self.size or len(head) + kept == self.messages:
                break
            kept += 1
        rest = rest[len(rest) - kept :]
        # From a message of the user's on: providers refuse a history that begins with the result of a tool.
        while rest and rest[0]["role"] != "user":
            del rest[0]
        cut = replace(session, messages=head + rest)
        if len(cut.encode()) > self.size or len(head) > self.messages:
            cut = replace(session, messages=(), state={}, shown=(), calls=())
        if len(cut.encode()) > self.size:
            cut = replace(cut, interrupts=(), answers=())
        return cut


_INSTRUCTIONS: Final = ("system", "developer")


def answered(messages: Sequence[JSONObject], sink: DiagnosticSink) -> list[JSONObject]:
    """Return a history without the tool calls that have no result: providers refuse it for them.

    They are left when a client leaves in the middle of a run, or does not care for an interrupt. Messages of nothing
    else go with them.
    """
    results = {message.get("toolCallId") for message in messages if message["role"] == "tool"}
    kept: list[JSONObject] = []
    left = 0
    for message in messages:
        calls = message.get("toolCalls") or ()
        done = [call for call in calls if isinstance(call, dict) and call.get("id") in results]
        left += len(calls) - len(done)
        if len(done) == len(calls):
            kept.append(message)
        elif done or message.get("content"):
            rest = {name: value for name, value in message.items() if name != "toolCalls"}
            kept.append({**rest, "toolCalls": done} if done else rest)
    if left:
        text = f"{DIAGNOSTICS['superagent.unanswered']} ({left})"
        sink(Diagnostic("superagent.unanswered", text, detail={"count": left}))
    return kept


_MAX_WAITING: Final = 8
"""Requests that wait for one session."""


class Turns:
    """Which sessions are in a run, in this process: one at a time, others wait for it in order."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[anyio.Event]] = {}

    async def take(self, key: str, patience: float) -> bool:
        """Take a session's turn.

        Args:
            key: The session.
            patience: Seconds to wait for it; 0 for not at all.

        Returns:
            Whether it was given; then `give_back` must be called.
        """
        queue = self._queues.get(key)
        if queue is None:
            self._queues[key] = deque()
            return True
        if not patience or len(queue) >= _MAX_WAITING:
            return False
        mine = anyio.Event()
        queue.append(mine)
        try:
            with anyio.move_on_after(patience):
                await mine.wait()
        except BaseException:
            if mine.is_set():
                self.give_back(key)
            raise
        finally:
            if not mine.is_set():
                queue.remove(mine)
        return mine.is_set()

    def give_back(self, key: str) -> None:
        """Give a session's turn to the next that waits for it."""
        queue = self._queues[key]
        if queue:
            queue.popleft().set()
        else:
            del self._queues[key]
