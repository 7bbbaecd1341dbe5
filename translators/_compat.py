"""What differs between the `ag-ui-protocol` versions this library runs on (0.1.19 and later, 1.x), as flags and names.

Nothing else in the project tests for a version of the SDK.
"""

from __future__ import annotations

from typing import Final

import ag_ui.core as _core
from ag_ui.core.types import ConfiguredBaseModel

HAS_PROTOCOL_VERSION: Final[bool] = hasattr(_core, "PROTOCOL_VERSION")
"""Whether the SDK declares the protocol's version (1.x)."""

HAS_OMISSION: Final[bool] = hasattr(ConfiguredBaseModel, "_omit_fields_without_value")
"""Whether the SDK's models leave out optional fields without a value by themselves (1.x), not only its encoder."""

HAS_SUBAGENTS: Final[bool] = hasattr(_core, "SubagentStartedEvent")
"""Whether the SDK has SUBAGENT_* events and `subagent_run_id` fields (1.x)."""

PROTOCOL_VERSION: Final[str] = getattr(_core, "PROTOCOL_VERSION", "1.0")
"""The protocol version that this library's own declarations carry."""
