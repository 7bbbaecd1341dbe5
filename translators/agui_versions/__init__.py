"""Older versions of `@ag-ui/client`: what makes a stream of AG-UI 1.0 one that they accept, and their answers ours."""

from collections.abc import Mapping
from typing import Final

from agui_pipeline.translators.agui_versions._downgrade import Downgrade, Interrupts, check_level
from agui_pipeline.translators.agui_versions._pending import PendingInterrupts, PendingStore
from agui_pipeline.translators.agui_versions._resume import DIAGNOSTICS as _ANSWERS
from agui_pipeline.translators.agui_versions._resume import answered
from agui_pipeline.translators.agui_versions._rule import DIAGNOSTICS as _LOSSES
from agui_pipeline.translators.agui_versions._table import RULES, markdown
from agui_pipeline.translators.agui_versions._version import STATUS_UNREAD, version_of

DIAGNOSTICS: Final[Mapping[str, str]] = {**_LOSSES, **_ANSWERS}
"""The diagnostics of a downgrade, by code."""

__all__ = [
    "DIAGNOSTICS",
    "RULES",
    "STATUS_UNREAD",
    "Downgrade",
    "Interrupts",
    "PendingInterrupts",
    "PendingStore",
    "answered",
    "check_level",
    "markdown",
    "version_of",
]
