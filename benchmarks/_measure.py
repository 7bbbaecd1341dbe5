"""Measuring in pairs: what is compared runs in turn, so that a machine that drifts drifts for both.

Times are CPU seconds of the process that does the work. A ratio is the median over the rounds of that within a round.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One line of a report."""

    name: str
    value: float
    unit: str
    goal: str = ""

    def __str__(self) -> str:
        return f"  {self.name:<58} {self.value:>8.2f} {self.unit:<10} {self.goal}"


def cpu(run: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    before = time.process_time()
    run()
    return time.process_time() - before


def ratio(a: Callable[[], object], b: Callable[[], object], rounds: int = 9) -> float:
    """Return how often b's time goes into a's."""
    a(), b()
    return statistics.median(cpu(a) / cpu(b) for _ in range(rounds))


def least(run: Callable[[], object], rounds: int = 7) -> float:
    """Return the least CPU seconds of a call: what it costs when nothing disturbs it."""
    run()
    return min(cpu(run) for _ in range(rounds))


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}")


def machine() -> str:
    """Say what this ran on."""
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return f"{platform.python_implementation()} {platform.python_version()}, {model}"
