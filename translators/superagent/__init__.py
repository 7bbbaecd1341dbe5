"""The dialects of Superagent: AG-UI events to its frames, and back. Sans-IO."""

from agui_pipeline.translators.superagent._dialects import COMPATIBLE, DIALECTS, ENVELOPED, FLAT
from agui_pipeline.translators.superagent._downgrade import downgrade
from agui_pipeline.translators.superagent._interrupts import interrupt_fields, response_schema
from agui_pipeline.translators.superagent._losses import DIAGNOSTICS
from agui_pipeline.translators.superagent._upgrade import SuperagentUpgrade

__all__ = [
    "COMPATIBLE",
    "DIAGNOSTICS",
    "DIALECTS",
    "ENVELOPED",
    "FLAT",
    "SuperagentUpgrade",
    "downgrade",
    "interrupt_fields",
    "response_schema",
]
