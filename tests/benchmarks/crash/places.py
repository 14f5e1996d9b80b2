"""Where things are killed: a home with its database, and a server with an upstream server that is started again."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from mcp import Client

from tests.chaos.served import Served
from tests.server.conftest import SEALAB
from tests.skills_db.postgres import Cluster, throwaway_cluster

UPSTREAM = """
import os, random, sys, time
from mcp.server import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer('counter', log_level='ERROR')
lines = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(n: int) -> str:
    'Look.'
    return f'saw {n}'

@server.tool(annotations=ToolAnnotations(read_only_hint=False))
def add(run: int, n: int) -> str:
    'Add.'
    os.write(lines, f'{run} {n}\\n'.encode())
    time.sleep(random.uniform(0, 0.02))
    return f'added {run} {n}'

server.run()
"""
CALL_SECONDS = 60
LONGEST_SECONDS = 900
"""How long the last run may take to end after the last kill."""


@dataclass(frozen=True)
class Place:
    """A database that writers are killed on; `cluster` is its server, if it has one."""

    kind: str
    home: Path
    url: str | None
    cluster: Cluster | None


@contextmanager
def place_of(kind: str) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="sealab-crash-") as folder:
        (home := Path(folder) / "home").mkdir()
        if kind == "sqlite":
            yield Place(kind, home, None, None)
            return
        with throwaway_cluster() as cluster:
            yield Place(kind, home, cluster.create("crash"), cluster)


def upstream_in(home: Path) -> Path:
    """Configure the upstream server of a home; return the file that has a line of each write."""
    program, lines = home / "counter.py", home / "lines"
    program.write_text(UPSTREAM)
    command = {"command": sys.executable, "args": [str(program), str(lines)], "approve": "never"}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"counter": command}}))
    return lines


def served_at(place: Place) -> Served:
    """Start a server over HTTP, to be started anew whenever it was killed."""
    served = Served(place.home, place.url, SEALAB, SEALAB_VAULT_KEYRING="false", SEALAB_DRAIN_SECONDS="1")
    served.start()
    return served


def killed_and_started(served: Served) -> None:
    """Kill a server by SIGKILL, and have it be there again."""
    served.process.kill()
    served.process.wait()
    served.start()


async def called(served: Served, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool until there is an answer. What was asked and not answered may have been done."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while True:
        with suppress(Exception):
            async with asyncio.timeout(CALL_SECONDS), Client(served.url, read_timeout_seconds=CALL_SECONDS) as client:
                answer = await client.call_tool(tool, arguments)
            if isinstance(answer.structured_content, dict) and "run_id" in answer.structured_content:
                return answer.structured_content
        if time.monotonic() > deadline:
            raise SystemExit(f"{tool} was not answered for {LONGEST_SECONDS} s.")
        await asyncio.sleep(0.3)


def is_upstream(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return any("counter.py" in part for part in process.cmdline())
    return False


def written_twice(lines: Path) -> Iterator[str]:
    """Give the writes that the upstream server did more than once."""
    for line, count in Counter(lines.read_text().splitlines()).items():
        if count > 1:
            yield f"the write {line!r} was done {count} times"
