"""The demo as one types it: what it prints, what it does when its port is taken, how it ends. No Node, no browser."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_where_to_go_and_ends_quietly(taken_port: int, tmp_path: Path, signal_number: signal.Signals) -> None:
    command = [sys.executable, str(ROOT / "examples/calculator/server.py"), "--port", str(taken_port), "--pause", "0.2"]
    with subprocess.Popen(  # from a foreign folder, as a script
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline() for _ in range(5)]
            found = re.fullmatch(rf"Port {taken_port} is taken; using (\d+)\.\n", lines[0])
            assert found, lines
            base = f"http://127.0.0.1:{found[1]}"
            assert f"Open {base}/ in a browser" in lines[1]
            assert f"curl -N {base}/a2ui " in lines[3]
            assert httpx.get(base + "/", follow_redirects=True).status_code == 200
            body = {"messages": [{"role": "user", "content": "a calculator"}]}
            with httpx.stream("POST", base + "/a2ui", json=body) as response:  # a run is in progress when the end comes
                stream = response.iter_bytes()  # kept: the response would be closed with it
                assert next(stream)
                process.send_signal(signal_number)
                process.wait(timeout=10)
        except BaseException:
            process.kill()
            raise
        rest, errors = process.communicate(timeout=10)
    assert rest.strip() == ""
    assert errors == ""
    assert process.returncode == (0 if signal_number == signal.SIGINT else -signal.SIGTERM)
