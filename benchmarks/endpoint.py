"""Server CPU time an event: the wrapped endpoint against the bare one, over a real uvicorn."""

from __future__ import annotations

import statistics

from benchmarks._measure import Row, heading, machine
from benchmarks._server import Server, serving

_GOALS = {
    ("burst", "untouched"): "goal 0.75",
    ("burst", "throttle"): "goal 0.70",
    ("burst", "a2ui-throttle"): "goal 0.85",
    ("paced", "untouched"): "goal 1.45",
    ("paced", "throttle"): "goal 0.95",
    ("paced", "a2ui-throttle"): "goal 1.15",
}
_CHAINS = ("bare", "empty", "untouched", "throttle", "a2ui-throttle")
_COUNT = 4000
_ROUNDS = 9


def _cost(server: Server, chain: str, pace: str) -> float:
    before = server.cpu()
    server.post(f"/{chain}/{pace}/{_COUNT}")
    return (server.cpu() - before) / _COUNT * 1e6


def main() -> None:
    """Print the ratios."""
    heading(f"a wrapped endpoint against the bare one, server CPU an event ({machine()})")
    with serving() as server:
        for pace in ("burst", "paced"):
            rounds = [{chain: _cost(server, chain, pace) for chain in _CHAINS} for _ in range(_ROUNDS + 1)][1:]
            print(Row(f"{pace}: bare", statistics.median(one["bare"] for one in rounds), "µs"))
            for chain in _CHAINS[1:]:
                against = statistics.median(one[chain] / one["bare"] for one in rounds)
                print(Row(f"{pace}: {chain} / bare", against, "x", _GOALS.get((pace, chain), "")))


if __name__ == "__main__":
    main()
