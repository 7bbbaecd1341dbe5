"""What a stream that says nothing costs: resident memory of 1,000 open ones, wrapped against bare."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks._measure import Row, heading, machine
from benchmarks._server import serving

_STREAMS = 1000


def _size(chain: str) -> float:
    with serving() as server:
        server.post(f"/{chain}/burst/100")
        before = server.rss()
        with ExitStack() as stack:
            for _ in range(_STREAMS):
                connection = stack.enter_context(server.open(f"/{chain}/1000/1"))
                connection.recv(4096)
            return (server.rss() - before) / _STREAMS / 1024


def main() -> None:
    """Print kB a stream."""
    heading(f"{_STREAMS} idle streams, kB each ({machine()})")
    bare = _size("bare")
    print(Row("bare", bare, "kB"))
    for chain in ("empty", "throttle", "a2ui-throttle"):
        print(Row(f"{chain}, above bare", _size(chain) - bare, "kB", "goal 24"))


if __name__ == "__main__":
    main()
