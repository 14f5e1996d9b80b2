"""Starts the upstream servers of the tests, and makes configurations that name them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sealab.tools_registry import configuration
from sealab.tools_registry.configuration import Configuration

from ..waiting import wait_until

SERVERS = Path(__file__).parent.parent / "data" / "upstreams"
FULL = {"command": sys.executable, "args": [str(SERVERS / "full.py")]}


def wire(starts: Path, *flags: str, **more: object) -> dict[str, object]:
    """Return an entry for the server written by hand, which leaves a line in `starts` whenever it starts."""
    return {"command": sys.executable, "args": [str(SERVERS / "wire.py"), str(starts), *flags], **more}


def configured(folder: Path, servers: dict[str, object]) -> Configuration:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    read = configuration.read(file, os.environ)
    assert not read.problems
    return read


@contextmanager
def listening(kind: str, folder: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the full server over HTTP (`sse` or `http`), on a free port unless one is given; give its URL."""
    file = folder / f"{kind}.port"
    file.unlink(missing_ok=True)
    server = subprocess.Popen([sys.executable, str(SERVERS / "full.py"), kind, str(port), str(file)])
    try:
        wait_until(lambda: file.exists() or server.poll() is not None)
        assert server.poll() is None, "the server ended before it listened"
        yield f"http://127.0.0.1:{file.read_text()}/{'sse' if kind == 'sse' else 'mcp'}", server
    finally:
        server.kill()
        server.wait()
