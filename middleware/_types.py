"""The two types that everything here is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from ag_ui.core import RunAgentInput

from agui_pipeline.translators import AnyEvent, Event

Source: TypeAlias = Callable[[RunAgentInput], AsyncIterator[Event]]
"""Called once a run; gives the events of that run. A `Pipeline` is one."""

Middleware: TypeAlias = Callable[[RunAgentInput, Source], AsyncIterator[AnyEvent]]
"""Called once a run with the input and the source before it; gives the changed events. An async generator function."""
