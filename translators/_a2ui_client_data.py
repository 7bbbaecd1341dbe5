"""The data models that clients send along: which of them an agent may see.

A client sends the data of a surface with every message where the surface was created with ``sendDataModel``. Whatever
else arrives was not asked for. Knows where data models stand in an input. Does not know the surfaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ag_ui.core import RunAgentInput


def screen_data_models(input: RunAgentInput, asked: Callable[[str], bool]) -> tuple[RunAgentInput, int]:
    """Return an input whose ``forwardedProps.a2ui.clientDataModel`` holds only what was asked for.

    Args:
        input: The run's input; not changed, and returned as it is where nothing is left out.
        asked: Says of a surface id whether its data was asked for.

    Returns:
        The input, and of how many surfaces the data was left out. What is no data model counts as one.
    """
    props: Any = input.forwarded_props
    envelope = props.get("a2ui") if isinstance(props, Mapping) else None
    if not isinstance(envelope, Mapping) or envelope.get("clientDataModel") is None:
        return input, 0
    model = envelope["clientDataModel"]
    surfaces = model.get("surfaces") if isinstance(model, Mapping) else None
    if isinstance(surfaces, Mapping):
        kept = {id: data for id, data in surfaces.items() if asked(id)}
        if len(kept) == len(surfaces):
            return input, 0
        left_out = len(surfaces) - len(kept)
    else:
        kept, left_out = {}, 1
    changed: dict[str, Any] = {**envelope, "clientDataModel": {**model, "surfaces": kept}} if kept else dict(envelope)
    if not kept:
        del changed["clientDataModel"]
    return input.model_copy(update={"forwarded_props": {**props, "a2ui": changed}}), left_out
