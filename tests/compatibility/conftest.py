"""What the tests of every earlier system share: upstream servers, and a home that names them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..server.command_line import Ended, sealab
from ..server.conftest import Caller, shared_readers, shared_zygotes
from ..waiting import wait_until
from ..zygotes import lent_zygotes

__all__ = ["lent_zygotes", "shared_readers", "shared_zygotes"]

ECHOING = Path(__file__).parents[1] / "data" / "echoing_upstream.py"
FULL_PYTHON = {"SEALAB_ALLOWED_ISOLATION": "restricted,process", "SEALAB_MAX_MEMORY_MB": "2000"}


def echoing(**more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(ECHOING)], **more}


@contextmanager
def listening(kind: str, folder: Path) -> Iterator[str]:
    """Run the echoing server over HTTP (`sse` or `http`), and give its URL."""
    file = folder / f"{kind}.port"
    with subprocess.Popen([sys.executable, str(ECHOING), kind, str(file)]) as process:
        try:
            wait_until(lambda: file.exists() or process.poll() is not None)
            yield f"http://127.0.0.1:{file.read_text()}/{'sse' if kind == 'sse' else 'mcp'}"
        finally:
            process.kill()


def done(home: Path, *arguments: str, stdin: str = "", **env: str) -> str:
    """Run a command that must succeed, and return what it printed."""
    ended: Ended = sealab(*arguments, "--home", str(home), stdin=stdin, **env)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


async def result(caller: Caller, code: str, **arguments: Any) -> Any:
    """Run code that must succeed, and return its result."""
    report = await caller.run(code, **arguments)
    assert report["success"], report
    return report["result"]


def read(text: str) -> Any:
    return json.loads(text)
