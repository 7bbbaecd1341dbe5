"""What the frames of the Superagent dialects say, whatever the dialect. Both directions go through these.

Knows the ten types and what each holds. Does not know AG-UI (`_reading.py`, `_telling.py`) or how a dialect spells a
frame (`_dialects.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

from agui_pipeline.translators._events import loads

RAW: Final = "_raw"
"""The only key of the arguments of a call whose arguments are no JSON object; its value is their text."""

CANCELLED: Final = "run_cancelled"
"""The code of the error that stands for the outcome ``cancelled``, for which the dialects have no frame."""


@dataclass(slots=True)
class Text:
    """A piece of what the agent says.

    Attributes:
        delta: The piece; None where a frame had only the whole.
        message: Which message it belongs to; where that is unknown, empty.
        whole: The message so far. Writers know it themselves; None where a frame did not say.
    """

    kind: ClassVar = "text"
    delta: str | None
    message: str = ""
    whole: str | None = None


@dataclass(slots=True)
class Thinking:
    """A piece of the agent's reasoning. Attributes as in `Text`."""

    kind: ClassVar = "thinking"
    delta: str | None
    message: str = ""
    whole: str | None = None


@dataclass(slots=True)
class Code:
    """A piece of a fenced block of code.

    Attributes:
        delta: The piece; None where a frame had only the whole.
        language: The first word behind the opening fence, empty where there is none.
        message: Which message it stands in.
        whole: The block's code so far, as in `Text`.
        opens: Whether it is the first piece of its block.
    """

    kind: ClassVar = "code_block"
    delta: str | None
    language: str = ""
    message: str = ""
    whole: str | None = None
    opens: bool = False


@dataclass(slots=True)
class ToolCall:
    """A complete tool call, or (status ``success``, ``error``) news of one. `id` is None where the dialect has none."""

    kind: ClassVar = "tool_call"
    name: str
    arguments: Mapping[str, Any]
    id: str | None = None
    status: Literal["calling", "success", "error"] = "calling"


@dataclass(slots=True)
class ToolResult:
    """What a tool gave back.

    Attributes:
        name: The tool's.
        text: The result as text.
        id: The call's, None where the dialect has none.
        is_error: Whether the tool failed.
        error: What went wrong, None where nothing did.
    """

    kind: ClassVar = "tool_result"
    name: str
    text: str
    id: str | None = None
    is_error: bool = False
    error: str | None = None

    @property
    def output(self) -> Any:
        """The result as a JSON value: what its text says where that is an object or a list, else the text."""
        if self.text.lstrip()[:1] in ("{", "["):
            try:
                return loads(self.text.encode(errors="surrogatepass"))
            except ValueError:
                pass
        return self.text


@dataclass(slots=True)
class Interrupt:
    """A question of the agent's.

    Attributes:
        prompt: For people.
        reason: A code, empty where the dialect has none.
        fields: What the answer consists of, in the enveloped dialect's form; None where the dialect does not say.
    """

    kind: ClassVar = "interrupt"
    prompt: str
    reason: str = ""
    fields: Sequence[Mapping[str, Any]] | None = None


@dataclass(slots=True)
class Error:
    """Something went wrong: with `Done` directly behind it the run, else something smaller."""

    kind: ClassVar = "error"
    code: str
    message: str


@dataclass(slots=True)
class Progress:
    """How far an agent is. `total` is 0 where nobody knows."""

    kind: ClassVar = "progress"
    label: str
    current: float
    total: float = 0
    agent: str = ""


@dataclass(slots=True)
class AgentSwitch:
    """Control went from one agent to another."""

    kind: ClassVar = "agent_switch"
    source: str
    target: str
    reason: str = ""


@dataclass(slots=True)
class Done:
    """The end of the stream. `usage` has ``prompt_tokens`` and ``completion_tokens``; None where a dialect has none."""

    kind: ClassVar = "done"
    usage: Mapping[str, int] | None = None


Meaning: TypeAlias = Text | Thinking | Code | ToolCall | ToolResult | Interrupt | Error | Progress | AgentSwitch | Done
