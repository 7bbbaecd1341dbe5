"""The official @ag-ui/client 1.0.0 accepts whatever the guard lets out, and refuses what the verifier refuses.

Random streams, from seeds: the same ones each time. ``AGUI_FUZZ=10`` looks at ten times as many, and other ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agui_pipeline.adapters.testing import ScriptedAgent
from agui_pipeline.middleware import Pipeline
from agui_pipeline.middleware.guard import GuardMiddleware
from agui_pipeline.translators import AnyEvent, decode_event, encode_event, encode_sse
from agui_pipeline.translators._input import run_input
from agui_pipeline.translators._verifier import problems_of
from tests.e2e.harness import HERE, serve
from tests.event_samples import SAMPLES, stream_of, variants
from tests.streams import Wire, make_stream, mutated, seeded

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

FUZZ = int(os.environ.get("AGUI_FUZZ", "1"))
GUARDED = 2000 * FUZZ
UNGUARDED = 1500 * FUZZ
VALUES: Sequence[Any] = (None, 5, {})
"""What is put into each field of each event. (All of `tests.event_samples.VALUES` with a higher ``AGUI_FUZZ``.)"""


@pytest.fixture(scope="module", autouse=True)
def _client(oracle: Callable[..., Any]) -> None:
    """The client is installed, or the tests are skipped."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.CRITICAL + 1, "agui_pipeline"):
        yield


def body_of(events: Sequence[Wire | AnyEvent]) -> bytes:
    return b"".join(encode_sse(decode_event(item) if isinstance(item, dict) else item) for item in events)


def judge(streams: Sequence[Sequence[Wire | AnyEvent]]) -> list[str | None]:
    """Let the client run each stream, over HTTP; return why it refused it, None where it did not."""
    bodies = [body_of(stream) for stream in streams]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        # Else a client that was busy for long may take up a connection that the server is just closing.
        headers = [(b"content-type", b"text/event-stream"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bodies[int(scope["path"].rpartition("/")[2])]})

    with serve(app) as base:
        command = ["node", str(HERE / "guard_fuzz.mjs"), f"{base}/stream", str(len(bodies))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 + len(bodies) / 10, check=False)
    lines = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda line: line["index"])
    assert [line["index"] for line in lines] == list(range(len(bodies))), f"{done.stderr}\n{lines[:1]}"
    return [None if line["accepted"] else line["error"] for line in lines]


async def guarded(events: Sequence[Wire], raises: Exception | None) -> list[AnyEvent]:
    """Return what a pipeline with nothing but a guard makes of a source."""
    agent = ScriptedAgent(events, raises=raises)
    given = run_input(thread_id="t", run_id="r", protocol_version="1.0")
    out: list[AnyEvent] = []
    with contextlib.suppress(ValueError):  # raised after a terminal event
        async for event in Pipeline(agent, GuardMiddleware(on_diagnostic=lambda _: None))(given):
            out.append(event)  # noqa: PERF401 - what came before an exception counts
    return out


async def all_guarded(streams: Sequence[Sequence[Wire]]) -> list[list[AnyEvent]]:
    return [await guarded(stream, ValueError("x") if place % 2 else None) for place, stream in enumerate(streams)]


def random_streams(count: int, *, malformed: bool = True) -> list[list[Wire]]:
    first = 0 if FUZZ == 1 else 1_000_000
    return [make_stream(seeded(first + place), malformed=malformed) for place in range(count)]


def test_the_client_accepts_whatever_comes_out_of_the_guard() -> None:
    streams = random_streams(GUARDED)
    refused = [item for item in zip(streams, judge(asyncio.run(all_guarded(streams))), strict=True) if item[1]]
    assert refused == []


DEFERRED = {"guard.chunk-end", "guard.result-id"}
"""Rules that speak of the cause, where the client gives up later, and only if the stream goes on so far."""


def deferred(code: str, event_type: str | None) -> bool:
    """Whether the client notices a problem at the end of the run only. An end in RUN_ERROR it does not look at."""
    return code in DEFERRED or (code == "guard.already-open" and str(event_type).startswith("THINKING_"))


def test_the_verifier_and_the_client_agree() -> None:
    legal = asyncio.run(all_guarded(random_streams(UNGUARDED, malformed=False)))
    streams: list[list[Wire]] = []
    for place, events in enumerate(legal):
        choose = seeded(place)
        wire = [json.loads(encode_event(event)) for event in events]
        streams.append(make_stream(choose, longest=8) if place % 3 == 0 else mutated(wire, choose))
    verdicts: Counter[tuple[str, bool]] = Counter()
    disagree = []
    for stream, error in zip(streams, judge(streams), strict=True):
        problems = problems_of(stream, complete=False)
        first = problems[0].diagnostic if problems else None
        verdicts[first.code if first else "legal", error is None] += 1
        if bool(problems) != (error is not None) and not (first and deferred(first.code, first.event_type)):
            disagree.append((stream, first, error))
    assert disagree == []
    assert verdicts["legal", True] > UNGUARDED / 10
    assert len(verdicts) > 10, "hardly any rule was looked at"


def test_the_verifier_and_the_client_agree_about_every_field() -> None:
    cases = [
        (path, value, stream_of(before, changed))
        for before, sample in SAMPLES
        for path, value, changed in (variants(sample, VALUES) if FUZZ == 1 else variants(sample))
    ]
    verdicts = judge([stream for _, _, stream in cases])
    disagree = [
        (stream[-2]["type"], path, value, error)
        for (path, value, stream), error in zip(cases, verdicts, strict=True)
        if bool(problems_of(stream, complete=False)) != (error is not None)
    ]
    assert disagree == []
