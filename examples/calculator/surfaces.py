"""The calculator's user interface as A2UI messages, in the two versions of the format.

Knows A2UI v0.8 and v0.9.1 and the component ids that the form is made of. Does not know what the numbers mean, nor how
the messages travel: the agent writes them as text, one JSON object a line.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

__all__ = ["ACTION", "Version", "answer", "form"]

Version: TypeAlias = Literal["v0.8", "v0.9.1"]
Message: TypeAlias = dict[str, Any]

ACTION = "calculate_binary_operation"
BASIC_CATALOG = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"

_CHILDREN = [
    "title", "desc", "field-a", "field-b", "operator-choice", "submit-button", "result-title", "result-value",
]  # fmt: skip
_OPERATIONS = {
    "add": "Add (+)",
    "subtract": "Subtract (−)",  # noqa: RUF001 - the minus sign of mathematics, on purpose
    "multiply": "Multiply (×)",  # noqa: RUF001 - likewise
    "divide": "Divide (÷)",
}
_TITLE = "Calculator"
_DESCRIPTION = "Enter two numbers and choose an operation."
_SUBMIT = "Calculate"
_RESULT = "Result"


def form(version: Version, surface_id: str) -> list[Message]:
    """Return the messages that build the form, in the order they are to be sent.

    All components are in one message: some renderers refuse an update that refers to components of a later one.
    """
    return _form_v08(surface_id) if version == "v0.8" else _form_v09(surface_id)


def answer(version: Version, surface_id: str, text: str) -> list[Message]:
    """Return the messages that show ``text`` in the form's result field, and touch nothing that the user typed."""
    if version == "v0.8":
        return [_data_v08(surface_id, "/result", {"value": text})]
    return [{"version": version, "updateDataModel": {"surfaceId": surface_id, "path": "/result/value", "value": text}}]


def _form_v08(surface_id: str) -> list[Message]:
    def text(value: dict[str, str], **rest: str) -> dict[str, Any]:
        return {"Text": {"text": value, **rest}}

    def number_field(label: str, path: str) -> dict[str, Any]:
        return {"TextField": {"label": {"literalString": label}, "text": {"path": path}, "textFieldType": "number"}}

    components: dict[str, dict[str, Any]] = {
        "root": {"Column": {"children": {"explicitList": _CHILDREN}}},
        "title": text({"literalString": _TITLE}, usageHint="h2"),
        "desc": text({"literalString": _DESCRIPTION}),
        "field-a": number_field("Operand A", "/form/a"),
        "field-b": number_field("Operand B", "/form/b"),
        "operator-choice": {
            "MultipleChoice": {
                "selections": {"path": "/form/operation"},
                "options": [{"label": {"literalString": label}, "value": key} for key, label in _OPERATIONS.items()],
                "maxAllowedSelections": 1,
            }
        },
        "submit-label": text({"literalString": _SUBMIT}),
        "submit-button": {
            "Button": {
                "child": "submit-label",
                "primary": True,
                "action": {
                    "name": ACTION,
                    "context": [{"key": key, "value": {"path": f"/form/{key}"}} for key in ("operation", "a", "b")],
                },
            }
        },
        "result-title": text({"literalString": _RESULT}),
        "result-value": text({"path": "/result/value"}, usageHint="h3"),
    }
    return [
        _data_v08(surface_id, "/form", {"a": "", "b": "", "operation": "add"}),
        _data_v08(surface_id, "/result", {"value": ""}),
        {
            "surfaceUpdate": {
                "surfaceId": surface_id,
                "components": [{"id": key, "component": component} for key, component in components.items()],
            }
        },
        {"beginRendering": {"surfaceId": surface_id, "root": "root"}},
    ]


def _data_v08(surface_id: str, path: str, values: dict[str, str]) -> Message:
    contents = [{"key": key, "valueString": value} for key, value in values.items()]
    return {"dataModelUpdate": {"surfaceId": surface_id, "path": path, "contents": contents}}


def _form_v09(surface_id: str) -> list[Message]:
    components: dict[str, dict[str, Any]] = {
        "root": {"component": "Column", "children": _CHILDREN},
        "title": {"component": "Text", "text": _TITLE, "variant": "h2"},
        "desc": {"component": "Text", "text": _DESCRIPTION},
        "field-a": {"component": "TextField", "label": "Operand A", "value": {"path": "/form/a"}, "variant": "number"},
        "field-b": {"component": "TextField", "label": "Operand B", "value": {"path": "/form/b"}, "variant": "number"},
        "operator-choice": {
            "component": "ChoicePicker",
            "label": "Operation",
            "variant": "mutuallyExclusive",
            "options": [{"label": label, "value": key} for key, label in _OPERATIONS.items()],
            "value": {"path": "/form/operation"},
        },
        "submit-label": {"component": "Text", "text": _SUBMIT},
        "submit-button": {
            "component": "Button",
            "child": "submit-label",
            "variant": "primary",
            "action": {
                "event": {"name": ACTION, "context": {key: {"path": f"/form/{key}"} for key in ("operation", "a", "b")}}
            },
        },
        "result-title": {"component": "Text", "text": _RESULT},
        "result-value": {"component": "Text", "text": {"path": "/result/value"}, "variant": "h3"},
    }
    blank = {"form": {"a": "", "b": "", "operation": ["add"]}, "result": {"value": ""}}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("createSurface", {"catalogId": BASIC_CATALOG}),
        ("updateComponents", {"components": [{"id": key, **component} for key, component in components.items()]}),
        ("updateDataModel", {"value": blank}),
    ]
    return [{"version": "v0.9.1", key: {"surfaceId": surface_id, **body}} for key, body in bodies]
