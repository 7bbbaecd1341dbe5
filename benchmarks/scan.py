"""One A2UI record in 4-character deltas: flat in its size, and cheap."""

from __future__ import annotations

import json
from functools import partial

from agui_pipeline.translators._line_scanner import LineScanner
from agui_pipeline.translators._scanner import JSONScanner
from benchmarks._measure import Row, heading, least, machine

_SIZES = {"10 kB": 10_000, "100 kB": 100_000, "1 MB": 1_000_000}


def main() -> None:
    """Print the cost of a delta for each size and framing."""
    heading(f"scanning, µs a delta of 4 characters ({machine()})")
    for framing, goal in (("lines", 0.8), ("objects", 1.5)):
        costs = {}
        for name, size in _SIZES.items():
            text = _record(size)
            deltas = [text[i : i + 4] for i in range(0, len(text), 4)]
            costs[name] = least(partial(_scan, framing, deltas), rounds=5) / len(deltas) * 1e6
            print(Row(f"{framing}: one record of {name}", costs[name], "µs", f"goal {goal}"))
        print(Row(f"{framing}: 1 MB against 10 kB", costs["1 MB"] / costs["10 kB"], "x", "goal 1.3"))


def _record(size: int) -> str:
    component = {"id": "c-1", "component": {"Text": {"text": {"literalString": "some words, and a number: 42"}}}}
    count = size // len(json.dumps(component)) + 1
    return json.dumps({"surfaceUpdate": {"surfaceId": "s", "components": [component] * count}}) + "\n"


def _scan(framing: str, deltas: list[str]) -> None:
    scanner = JSONScanner(4_000_000, 50) if framing == "objects" else LineScanner(4_000_000)
    records = 0
    for delta in deltas:
        records += sum(item.kind == "record" for item in scanner.feed(delta))
    assert records == 1


if __name__ == "__main__":
    main()
