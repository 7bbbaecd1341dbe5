"""One endpoint with all runs, bare and behind every level, and what clients show of them.

Knows which path means which. Does not know what any client should show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agui_pipeline.adapters.starlette import AGUIMiddleware
from agui_pipeline.middleware import TranslatorMiddleware
from agui_pipeline.middleware.legacy import LegacyDowngradeMiddleware
from agui_pipeline.translators import Diagnostic
from agui_pipeline.translators.agui_versions import RULES, Downgrade
from tests.e2e.harness import serve
from tests.e2e.old_clients.harness import VERSIONS, Shown, drive
from tests.e2e.old_clients.runs import RUNS

if TYPE_CHECKING:
    from ag_ui.core import RunAgentInput
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

BARE: Final = "bare"
"""The level that is none."""
REFERENCE: Final = "reference"
"""Likewise; of a run that 1.0.0 does not take, what says the same."""
NEWEST: Final = VERSIONS[-1]

_NUMBERS: Final = {name: str(number) for number, name in enumerate(RUNS)}
_RULES: Final = {rule.name: str(number) for number, rule in enumerate(RULES)} | {"": ""}


class Case(NamedTuple):
    """One run at one client.

    Attributes:
        run: A key of `RUNS`.
        client: One of `VERSIONS`.
        level: The version whose level it comes through, `BARE` or `REFERENCE`.
        without: A rule that the level leaves out; empty for none.
    """

    run: str
    client: str
    level: str = BARE
    without: str = ""

    @property
    def path(self) -> str:
        """Where the endpoint has it."""
        return f"/{self.level}/{_RULES[self.without]}/{_NUMBERS[self.run]}"


def key(version: str) -> tuple[int, ...]:
    """Return what versions are ordered by."""
    return tuple(map(int, version.split(".")))


def ignore(_diagnostic: Diagnostic) -> None:
    """Let a diagnostic go: what is lost is in a table."""


class _Ablated(TranslatorMiddleware):
    """A level without one of its rules."""

    def __init__(self, level: str, without: str) -> None:
        super().__init__(on_diagnostic=ignore)
        self._level = level
        self._without = [without]

    def translator(self, input: RunAgentInput) -> Downgrade:
        return Downgrade(self._level, input, ignore, without=self._without)


def _chain(request: Request, _body: object) -> list[Any]:
    _, level, rule, _ = request.url.path.split("/")
    if level in (BARE, REFERENCE):
        return []
    if rule:
        return [_Ablated(f"ag-ui/{level}", RULES[int(rule)].name)]
    # Forced: the newest client says which version it is, and would be left alone.
    return [LegacyDowngradeMiddleware(f"ag-ui/{level}", force=True, on_diagnostic=ignore)]


def sent(bodies: Mapping[str, bytes]) -> ASGIApp:
    """Return an app that sends the stream that a path has."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        # Closed: a client that was busy for long may take up a connection that the server is just closing.
        headers = [(b"content-type", b"text/event-stream"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bodies[scope["path"]]})

    return app


def _body(case: Case) -> bytes:
    run = RUNS[case.run]
    return run.reference() if case.level == REFERENCE else run.body()


def show(cases: Iterable[Case]) -> dict[Case, Shown]:
    """Let each case's client run it; one process a version."""
    of: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        of[case.client].append(case)
    app = sent({case.path: _body(case) for found in of.values() for case in found})
    with serve(AGUIMiddleware(app, middleware=_chain)) as base, ThreadPoolExecutor(2) as pool:

        def shown(client: str) -> Collection[tuple[Case, Shown]]:
            urls = [(base + case.path, RUNS[case.run].input) for case in of[client]]
            return list(zip(of[client], drive(client, urls), strict=True))

        return {case: seen for found in pool.map(shown, of) for case, seen in found}
