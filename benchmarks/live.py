"""Many live streams on one worker for ten seconds: server CPU, and how late a token reaches its client.

Every token carries the time at which the agent made it (the machine's monotonic clock, the same in both processes); the
client takes the difference when it has read it. The rate is one that the bare endpoint sustains.
"""

from __future__ import annotations

import re
import selectors
import statistics
import time
from contextlib import ExitStack

from benchmarks._measure import Row, heading, machine
from benchmarks._server import serving

_STREAMS = 150
_INTERVAL = 0.05
_SECONDS = 10
_STAMP = re.compile(rb"@(\d+\.\d+) ")


def _run(chain: str) -> tuple[float, list[float]]:
    """Return the server's CPU seconds, and the delay of every token in milliseconds, sorted."""
    delays: list[float] = []
    with serving() as server, ExitStack() as stack, selectors.DefaultSelector() as selector:
        before = server.cpu()
        for _ in range(_STREAMS):
            connection = stack.enter_context(server.open(f"/{chain}/{_INTERVAL}/{int(_SECONDS / _INTERVAL)}"))
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ, bytearray())
        while selector.get_map():
            for key, _ in selector.select(5):
                data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                now = time.monotonic()
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                key.data.extend(data)
                end = 0
                for match in _STAMP.finditer(key.data):
                    delays.append((now - float(match[1])) * 1000)
                    end = match.end()
                del key.data[:end]
        return server.cpu() - before, sorted(delays)


def main() -> None:
    """Print CPU and delays."""
    rate = _STREAMS / _INTERVAL
    heading(f"{_STREAMS} live streams, {rate:.0f} tokens a second in all, {_SECONDS} s, one worker ({machine()})")
    bare, base = _run("bare")
    results = {"bare": (bare, base)} | {chain: _run(chain) for chain in ("untouched", "throttle")}
    for chain, (used, delays) in results.items():
        print(Row(f"{chain}: server CPU of one core", used / _SECONDS * 100, "%"))
        print(Row(f"{chain}: server CPU against bare", used / bare, "x"))
        for name, place in (("p50", 0.5), ("p99", 0.99)):
            delay = delays[int(len(delays) * place)]
            print(
                Row(f"{chain}: delay {name}", delay, "ms", f"{delay - base[int(len(base) * place)]:+.2f} against bare")
            )
        print(Row(f"{chain}: tokens that arrived", len(delays), "", f"mean delay {statistics.mean(delays):.2f} ms"))


if __name__ == "__main__":
    main()
