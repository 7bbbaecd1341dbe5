"""No legal stream, however odd, makes an older client give up: random ones, from seeds, the same ones each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from agui_pipeline.translators import AnyEvent, Translator, decode_event, encode_sse, run_input
from agui_pipeline.translators._guard import GuardTranslator
from agui_pipeline.translators.agui_versions import Downgrade
from tests.e2e.harness import serve
from tests.e2e.old_clients.endpoint import ignore, sent
from tests.e2e.old_clients.harness import VERSIONS, drive, install
from tests.streams import make_stream, seeded

INPUT: Final = run_input(thread_id="e2e-thread", run_id="e2e-run")
FEW: Final = range(40)
ODD: Final = (*range(40, 60), 2036, 3086, 4126)
"""Some more; of the last, the newest clients gave up once, since they remember of which subagent an id was."""
MANY: Final = range(1000, 1600)


def through(translator: Translator, events: Sequence[Any]) -> list[AnyEvent]:
    out = [new for event in events for new in translator.feed(event)]
    return [*out, *translator.flush()]


def legal(seed: int) -> list[AnyEvent]:
    stream = [decode_event(event) for event in make_stream(seeded(seed), longest=30, malformed=False)]
    return through(GuardTranslator(INPUT.thread_id, INPUT.run_id, "1.0", ignore), stream)


def refused(client: str, seeds: Sequence[int], level: str | None = None) -> list[tuple[int, str]]:
    """Return the seeds whose streams a client gives up on, through its own level or an older one, and why."""
    bodies: dict[str, bytes] = {}
    for seed in seeds:
        events = legal(seed)
        events = through(Downgrade(f"ag-ui/{level or client}", INPUT, ignore), events)
        bodies[f"/{seed}"] = b"".join(map(encode_sse, events))
    with serve(sent(bodies)) as base:
        shown = drive(client, [(base + path, {}) for path in bodies])
    return [(seed, one.error) for seed, one in zip(seeds, shown, strict=True) if one.error]


@pytest.mark.parametrize("client", VERSIONS)
def test_no_legal_stream_makes_a_client_give_up(client: str) -> None:
    install()
    assert refused(client, FEW) == []


@pytest.mark.parametrize("level", ["0.0.30", "0.0.40", "0.0.43"])
@pytest.mark.parametrize("client", VERSIONS[-2:])
def test_nor_does_an_older_level_make_a_newer_client_give_up(client: str, level: str) -> None:
    install()
    assert refused(client, ODD, level) == []


@pytest.mark.slow
@pytest.mark.parametrize("client", VERSIONS)
def test_no_legal_stream_of_many_makes_a_client_give_up(client: str) -> None:
    install()
    assert refused(client, MANY) == []
