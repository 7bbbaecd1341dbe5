"""All of them: ``python -m benchmarks``, or some: ``python -m benchmarks codec scan``."""

from __future__ import annotations

import sys
from importlib import import_module

_ALL = ("codec", "scan", "stages", "endpoint", "idle", "live")


def main() -> None:
    """Run the benchmarks that were named, else all."""
    for name in sys.argv[1:] or _ALL:
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
