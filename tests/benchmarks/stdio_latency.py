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

FRESH = "execute_code, fresh process"
SPAWNED = "spawn python -I -S -c pass"
GOAL = 0.5
TURNS = 5
WARM_UPS = 5


async def timed(rounds: int, call: Callable[[], Awaitable[Any]]) -> list[float]:
    """Return the milliseconds of each round, after a few that do not count."""
    times = []
    for number in range(rounds + WARM_UPS):
        began = time.perf_counter()
        await call()
        if number >= WARM_UPS:
            times.append((time.perf_counter() - began) * 1000)
    return times


async def spawn() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)  # noqa: ASYNC221 - nothing else runs


async def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as home:
        server = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "sealab.server", "serve", "--home", home]
        )
        async with Client(server, mode="legacy") as client:
            calls: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
                ("ping (the SDK alone)", client.send_ping),
                (FRESH, lambda: client.call_tool("execute_code", {"code": "1 + 1"})),
                ("execute_code, session", lambda: client.call_tool("execute_code", {"code": "1 + 1", "session": "s"})),
                (SPAWNED, spawn),
            ]
            times: dict[str, list[float]] = {name: [] for name, _call in calls}
            # In turns, since the machine may be busier at one time than at another.
            for _ in range(TURNS):
                for name, call in calls:
                    times[name] += await timed(max(rounds // TURNS, 1), call)
            reports = [
                (await client.call_tool("execute_code", {"code": "1 + 1"})).structured_content for _ in range(50)
            ]
            times["execution_time_ms as reported"] = [each["execution_time_ms"] for each in reports if each]
    spawned = statistics.median(times[SPAWNED])
    print(f"{'':<36}{'p50 ms':>10}{'p95 ms':>10}{'of the spawn':>14}")
    for name, each in times.items():
        p50, p95 = statistics.median(each), statistics.quantiles(each, n=20)[18]
        goal = f"   goal {GOAL:.2f}" if name == FRESH else ""
        print(f"{name:<36}{p50:>10.2f}{p95:>10.2f}{p50 / spawned:>14.2f}{goal}")


if __name__ == "__main__":
    asyncio.run(main())
