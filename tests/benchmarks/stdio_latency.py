"""How long one trivial `execute_code` takes over stdio, beside the SDK's own round trip and a spawned interpreter.

    python tests/benchmarks/stdio_latency.py [ROUNDS]

`ping` is the SDK's round trip without any work. The target is half of the spawn.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client, StdioServerParameters


async def timed(rounds: int, call: Callable[[], Awaitable[Any]]) -> list[float]:
    """Return the milliseconds of each round, after a few that do not count."""
    times = []
    for number in range(rounds + 10):
        began = time.perf_counter()
        await call()
        if number >= 10:
            times.append((time.perf_counter() - began) * 1000)
    return times


async def spawn() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)  # noqa: ASYNC221 - nothing else runs


async def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rows: list[tuple[str, list[float]]] = []
    with tempfile.TemporaryDirectory() as home:
        server = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "sealab.server", "serve", "--home", home]
        )
        async with Client(server, mode="legacy") as client:
            calls: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
                ("ping (the SDK alone)", client.send_ping),
                ("execute_code, fresh process", lambda: client.call_tool("execute_code", {"code": "1 + 1"})),
                ("execute_code, session", lambda: client.call_tool("execute_code", {"code": "1 + 1", "session": "s"})),
                ("spawn python -I -S -c pass", spawn),
            ]
            for name, call in calls:
                rows.append((name, await timed(rounds, call)))
            reports = [
                (await client.call_tool("execute_code", {"code": "1 + 1"})).structured_content for _ in range(50)
            ]
            rows.append(("execution_time_ms as reported", [each["execution_time_ms"] for each in reports if each]))
    print(f"{'':<36}{'p50 ms':>10}{'p95 ms':>10}")
    for name, times in rows:
        print(f"{name:<36}{statistics.median(times):>10.2f}{statistics.quantiles(times, n=20)[18]:>10.2f}")


if __name__ == "__main__":
    asyncio.run(main())
