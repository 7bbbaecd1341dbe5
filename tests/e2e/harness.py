"""What the end-to-end tests stand on: a real server on loopback, the official JavaScript client, the tools they need.

Knows uvicorn, Node and pytest's skip. Does not know what any endpoint sends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import uvicorn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playwright.sync_api import Page
    from starlette.types import ASGIApp

HERE = Path(__file__).parent
REQUIRED = os.environ.get("AGUI_E2E") == "require"
HOW = (
    "to run it: AGUI_E2E=require python -m pytest tests/e2e (needs Node >= 18 with npm, Debian's chromium, playwright)"
)


def missing(what: str) -> NoReturn:
    """Skip for want of a tool, or fail where all tools were promised (``AGUI_E2E=require``)."""
    if REQUIRED:
        pytest.fail(f"{what} is missing, and AGUI_E2E=require says it must not be", pytrace=False)
    pytest.skip(f"{what} is missing; {HOW}")


def needs(module: str, package: str) -> None:
    """Skip a test module, before it imports a package that is not there, or fail where all were promised."""
    if REQUIRED:
        importlib.import_module(module)
    else:
        pytest.importorskip(module, reason=f"{package} is missing; {HOW}")


@contextlib.contextmanager
def serve(app: ASGIApp, *, ws: str = "none") -> Iterator[str]:
    """Run ``app`` in uvicorn, in a thread, on a free port of loopback; give its base address. Stopped at the end.

    ``ws`` is uvicorn's: which implementation of WebSockets, if any.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", ws=ws, lifespan="off", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="e2e-server")
    thread.start()  # the socket listens already: a request that comes early waits
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
    assert not thread.is_alive(), "the server did not stop"


def faults_in(page: Page, base: str) -> list[str]:
    """Watch a page from now on: its exceptions, errors, warnings, and what it fetches from elsewhere than `base`."""
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"exception: {error}"))
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("request", lambda request: None if request.url.startswith((base, "data:")) else faults.append(request.url))
    return faults


@dataclass(frozen=True)
class OracleResult:
    """What the official client made of one run.

    Attributes:
        code: 0 accepted, 1 refused, 3 RUN_ERROR, 4 no terminal event, 6 timeout.
        events: The events that it delivered, after enforcement and chunk expansion.
        warnings: What it stripped, dropped, converted or could not apply, in its words.
        error: Why it refused; None if it did not.
        messages: The conversation that it ended with.
        state: The state that it ended with.
    """

    code: int
    events: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]
    error: str | None
    messages: tuple[dict[str, Any], ...]
    state: Any

    @property
    def types(self) -> list[str]:
        """The types of the events, in order."""
        return [event["type"] for event in self.events]

    @property
    def text(self) -> str:
        """The assistant's text, joined."""
        return "".join(event["delta"] for event in self.events if event["type"] == "TEXT_MESSAGE_CONTENT")

    @property
    def a2ui(self) -> list[Any]:
        """The A2UI messages that came: RAW and CUSTOM carry one each, of ACTIVITY the last snapshots count."""
        found: list[Any] = []
        snapshots: dict[str, list[Any]] = {}
        for event in self.events:
            if event["type"] == "RAW" and str(event.get("source", "")).startswith("a2ui/"):
                found.append(event["event"])
            elif event["type"] == "CUSTOM" and event["name"] == "a2ui":
                found.append(event["value"])
            elif event["type"] == "ACTIVITY_SNAPSHOT" and event["activityType"] == "a2ui-surface":
                snapshots[event["messageId"]] = event["content"]["a2ui_operations"]
        return found + [operation for operations in snapshots.values() for operation in operations]


def run_oracle(
    url: str, body: Mapping[str, Any] | None = None, *, timeout: float = 20, headers: Mapping[str, str] | None = None
) -> OracleResult:
    """Let the official client run the endpoint at ``url`` once.

    Args:
        url: The address of an AG-UI POST endpoint.
        body: Fields of the RunAgentInput; what is absent is filled in, a message that says hello among it.
        timeout: Seconds after which the run is aborted.
        headers: Further request headers.
    """
    command = ["node", str(HERE / "oracle.mjs"), url, "--timeout", str(timeout)]
    for name, value in (headers or {}).items():
        command += ["--header", f"{name}: {value}"]
    done = subprocess.run(
        command, input=json.dumps(body or {}), capture_output=True, text=True, timeout=timeout + 15, check=False
    )
    lines = [json.loads(line) for line in done.stdout.split("\n") if line]  # a delta may hold U+2028
    assert lines, f"the oracle said nothing (exit {done.returncode}): {done.stderr}"
    final = lines[-1] if lines[-1]["kind"] == "final" else {}
    return OracleResult(
        code=done.returncode,
        events=tuple(line["event"] for line in lines if line["kind"] == "event"),
        warnings=tuple(line["text"] for line in lines if line["kind"] == "warning"),
        error=next((line["text"] for line in lines if line["kind"] == "error"), None),
        messages=tuple(final.get("messages", ())),
        state=final.get("state"),
    )


def install_client() -> None:
    """See to it that Node and the packages of package.json, in their exact versions, are there."""
    if shutil.which("node") is None:
        missing("Node")
    wanted: dict[str, str] = json.loads((HERE / "package.json").read_text())["dependencies"]
    if all(_installed_version(name) == version for name, version in wanted.items()):
        return
    if not REQUIRED:  # an ordinary test run fetches nothing
        missing("the official client (tests/e2e/node_modules)")
    npm = shutil.which("npm") or missing("npm")
    done = subprocess.run(
        [npm, "install", "--no-package-lock", "--no-audit", "--no-fund"],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"npm install failed in {HERE.name}:\n{done.stdout}{done.stderr}", pytrace=False)


def _installed_version(name: str) -> str | None:
    manifest = HERE / "node_modules" / name / "package.json"
    return json.loads(manifest.read_text())["version"] if manifest.is_file() else None
