"""What PRIVACY=auto, in fast mode, adds to an `execute_code` over stdio that answers with one small record.

    python tests/benchmarks/privacy_latency.py [ROUNDS]

Two servers, with the filter and without, are asked in turns: for a record with the same address each time, and for one
that the vault does not know yet. The target is 5 ms more.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack

from mcp import Client, StdioServerParameters

WARM_UPS = 10
GOAL_MS = 5.0
RECORD = 'result = {{"customer_name": "Ana Sørli", "email": "{}@corp.example", "total": 3}}'
_Times = dict[tuple[str, str], list[float]]


async def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    times: _Times = {(mode, kind): [] for kind in ("the same value", "a new value") for mode in ("off", "auto")}
    async with AsyncExitStack() as stack:
        clients = {}
        for mode in ("off", "auto"):
            home = stack.enter_context(tempfile.TemporaryDirectory())
            server = StdioServerParameters(
                command=sys.executable,
                args=["-P", "-m", "sealab.server", "serve", "--home", home],
                env={**os.environ, "SEALAB_PRIVACY": mode, "SEALAB_PRIVACY_MODE": "fast"},
            )
            clients[mode] = await stack.enter_async_context(Client(server, mode="legacy"))
        for number in range(rounds + WARM_UPS):
            for (mode, kind), measured in times.items():
                name = "ana" if kind == "the same value" else f"ana{number}"
                began = time.perf_counter()
                answer = await clients[mode].call_tool("execute_code", {"code": RECORD.format(name)})
                took = time.perf_counter() - began
                if (f"{name}@corp.example" in str(answer)) is not (mode == "off"):
                    raise SystemExit(f"PRIVACY={mode} answered {answer}")
                if number >= WARM_UPS:
                    measured.append(1000 * took)
    print(f"{'':<18}{'off':>20}{'auto':>20}{'added at the median':>22}{'goal':>8}   (fastest / p50 / p95 ms)")
    for kind in ("the same value", "a new value"):
        off, auto = (times[mode, kind] for mode in ("off", "auto"))
        added = statistics.median(auto) - statistics.median(off)
        print(f"{kind:<18}{_told(off):>20}{_told(auto):>20}{added:>22.2f}{GOAL_MS:>8.1f}")


def _told(times: list[float]) -> str:
    return f"{min(times):.1f} / {statistics.median(times):.1f} / {statistics.quantiles(times, n=20)[18]:.1f}"


if __name__ == "__main__":
    asyncio.run(main())
