"""How long a client waits for its first `tools/list`, beside what a bare interpreter and the SDK alone take.

python tests/benchmarks/start.py [ROUNDS]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import psutil

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}).encode() + b"\n"
SDK = "from mcp.server import MCPServer; MCPServer('bare').run()"


def answered(command: list[str]) -> tuple[float, float]:
    """Start a stdio server and ask it for its tools; return the seconds until the answer, and those of CPU time."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(LIST)
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        took = time.perf_counter() - began
        spent = psutil.Process(server.pid).cpu_times()
        assert "tools" in answer["result"], answer
        server.stdin.close()
        server.wait(10)
    return took, spent.user + spent.system


def spawned(command: list[str]) -> tuple[float, float]:
    """Run a command; return the seconds that it took, and those of CPU time."""
    before = os.times()
    began = time.perf_counter()
    subprocess.run(command, check=True)
    took = time.perf_counter() - began
    after = os.times()
    return took, after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as home:
        sealab = [sys.executable, "-P", "-m", "sealab.server", "serve", "--home", home]
        rows: list[tuple[str, Callable[[], tuple[float, float]]]] = [
            ("python -I -S -c pass", lambda: spawned([sys.executable, "-I", "-S", "-c", "pass"])),
            ("import mcp.server", lambda: spawned([sys.executable, "-c", "import mcp.server"])),
            ("bare SDK server, first tools/list", lambda: answered([sys.executable, "-c", SDK])),
            ("sealab, first tools/list", lambda: answered(sealab)),
        ]
        for _name, measure in rows:
            measure()
        # Round by round, so that whatever else the machine does falls on all of them.
        times = [[measure() for _name, measure in rows] for _ in range(rounds)]
        print(f"{'':<36}{'p50 ms':>10}{'min ms':>10}{'CPU min ms':>12}")
        for (name, _measure), measured in zip(rows, zip(*times, strict=True), strict=True):
            took, spent = ([seconds * 1000 for seconds in each] for each in zip(*measured, strict=True))
            print(f"{name:<36}{statistics.median(took):>10.0f}{min(took):>10.0f}{min(spent):>12.0f}")


if __name__ == "__main__":
    main()
