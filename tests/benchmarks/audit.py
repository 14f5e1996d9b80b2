"""What the audit log adds to `1+1`: servers with and without it, asked in turns, over stdio and over HTTP.

    python -m tests.benchmarks.audit [CALLS]

Prints a table and asserts nothing. The goal is 0.1 ms for `on`; `required` waits for the disk before each run.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from mcp import Client

from tests.server.conftest import http_process, stdio

MODES = ("off", "on", "required")
WARM = 20
GOAL_MS = 0.1


async def measured(transport: str, calls: int) -> dict[str, list[float]]:
    """Return the milliseconds of each call, by mode."""
    took: dict[str, list[float]] = {mode: [] for mode in MODES}
    async with AsyncExitStack() as open_:
        clients = {}
        for mode in MODES:
            home = Path(open_.enter_context(tempfile.TemporaryDirectory()))
            env = {"SEALAB_AUDIT": mode}
            target = open_.enter_context(http_process(home, **env)).url if transport == "http" else stdio(home, **env)
            clients[mode] = await open_.enter_async_context(Client(target, read_timeout_seconds=60))
        for number in range(WARM + calls):
            for mode in MODES[number % 3 :] + MODES[: number % 3]:
                began = time.perf_counter()
                await clients[mode].call_tool("execute_code", {"code": "1+1"})
                if number >= WARM:
                    took[mode].append((time.perf_counter() - began) * 1000)
    return took


async def main(calls: int) -> None:
    """Measure both transports and print the table."""
    print(f"`1+1`, {calls} calls of each in turns; the goal for `on` is {GOAL_MS} ms more than `off`")
    print(f"{'':8}{'AUDIT':10}{'p50 ms':>9}{'p95 ms':>9}{'more than off, median of pairs':>32}")
    for transport in ("stdio", "http"):
        took = await measured(transport, calls)
        for mode in MODES:
            pairs = [one - off for one, off in zip(took[mode], took["off"], strict=True)]
            p95 = statistics.quantiles(took[mode], n=20)[18]
            more = statistics.median(pairs)
            print(f"{transport:8}{mode:10}{statistics.median(took[mode]):9.2f}{p95:9.2f}{more:32.3f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
