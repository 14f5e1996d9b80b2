"""How long a client waits for its first `tools/list`, beside what a bare interpreter and the SDK alone take.

python tests/benchmarks/start.py [ROUNDS]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}).encode() + b"\n"
SDK = "from mcp.server import MCPServer; MCPServer('bare').run()"


def answered(command: list[str]) -> float:
    """Start a stdio server, ask it for its tools, and return the seconds until the answer."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(LIST)
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        took = time.perf_counter() - began
        assert "tools" in answer["result"], answer
        server.stdin.close()
        server.wait(10)
    return took


def spawned(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as home:
        sealab = [sys.executable, "-P", "-m", "sealab.server", "serve", "--home", home]
        rows: list[tuple[str, Callable[[], float]]] = [
            ("python -I -S -c pass", lambda: spawned([sys.executable, "-I", "-S", "-c", "pass"])),
            ("import mcp.server", lambda: spawned([sys.executable, "-c", "import mcp.server"])),
            ("bare SDK server, first tools/list", lambda: answered([sys.executable, "-c", SDK])),
            ("sealab, first tools/list", lambda: answered(sealab)),
        ]
        print(f"{'':<36}{'p50 ms':>10}{'max ms':>10}")
        for name, measure in rows:
            measure()
            times = [measure() * 1000 for _ in range(rounds)]
            print(f"{name:<36}{statistics.median(times):>10.0f}{max(times):>10.0f}")


if __name__ == "__main__":
    main()
