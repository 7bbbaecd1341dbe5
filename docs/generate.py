"""Writes the parts of the docs that are in the code: ``python docs/generate.py``; with ``--check`` only says so.

A file holds generated parts between two comment lines, ``<!-- generated: name -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from agui_pipeline.translators import agui_versions, lifecycle
from agui_pipeline.translators._diagnostics import QUIET
from agui_pipeline.translators.superagent import _tables as superagent

DOCS = Path(__file__).parent
_HOMES = (
    "translators._encode",
    "translators._sse",
    "translators._input",
    "translators._client_view",
    "translators._pass_through",
    "translators._strip",
    "translators._throttle",
    "translators.a2ui",
    "translators._guard",
    "translators._trust",
    "translators._upgrade",
    "translators.agui_versions",
    "translators.superagent",
    "middleware.actions",
    "middleware.planner",
    "adapters._asgi_app",
    "adapters._superagent_sessions",
    "adapters._http_dialects",
    "adapters._langgraph_events",
    "adapters._http_exchange",
    "adapters._http_request",
    "adapters._http_stream",
)
_PART = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def diagnostics() -> str:
    """Return the table of all diagnostic codes."""
    rows = {code: text for home in _HOMES for code, text in _codes(home).items()}
    lines = [
        f"| `{code}` | {'INFO' if code in QUIET else 'WARNING'} | {text.replace('|', chr(92) + '|')} |"
        for code, text in sorted(rows.items())
    ]
    return "\n".join(["| code | logged at | what it says |", "| --- | --- | --- |", *lines])


def _codes(home: str) -> dict[str, str]:
    return dict(import_module(f"agui_pipeline.{home}").DIAGNOSTICS)


def rules() -> str:
    """Return the rules of a legal stream, as the guard's table has them."""
    lines = [f"| `{code}` | {text.replace('|', chr(92) + '|')} |" for code, text in lifecycle.RULES.items()]
    return "\n".join(["| rule | what a client holds against a stream |", "| --- | --- |", *lines])


_PARTS: dict[str, Callable[[], str]] = {
    "diagnostics": diagnostics,
    "rules": rules,
    "levels": agui_versions.markdown,
    "states": lifecycle.markdown,
    "superagent-events": superagent.events,
    "superagent-frames": superagent.frames,
}


def main() -> int:
    """Write the generated parts; with ``--check``, say whether they are current."""
    check = "--check" in sys.argv[1:]
    stale = []
    for path in sorted(DOCS.glob("*.md")):
        old = path.read_text(encoding="utf-8")
        new = _PART.sub(lambda part: f"{part[1]}{_PARTS[part[2]]()}\n{part[3]}", old)
        if new != old:
            stale.append(path.name)
            if not check:
                path.write_text(new, encoding="utf-8")
    print(("stale: " if check else "written: ") + (", ".join(stale) or "nothing"))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
