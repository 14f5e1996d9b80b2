"""What full Python costs a server before anybody uses it, and how soon it answers: with its packages and without.

    python -m tests.benchmarks.data_work.spares PYTHON [ROUNDS]

PYTHON is an interpreter with the packages of `sealab[data]`. Memory is the proportional share (PSS, proc(5)), so that
what spares share by copy-on-write counts once; of the spares the mean. Times are of calls over stdio, each in a fresh
worker: the very first after the start, the median of ROUNDS (20) that each find a spare, and the median of as many
without a pause, where calls wait for spares to be made.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from mcp import Client

from .served import serving

CALLS = {
    "6 * 7": "6 * 7",
    "pandas, a group-by": "import pandas as pd\npd.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]}).groupby('a').b.sum()",
    "numpy, a matrix": "import numpy as np\nfloat(np.linalg.norm(np.eye(50)))",
    "matplotlib, a figure": "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()",
    "polars, a group-by": "import polars as pl\npl.DataFrame({'a': [1, 1, 2]}).group_by('a').len().height",
    "duckdb, a query": "import duckdb\nduckdb.sql('select 6 * 7').fetchall()[0][0]",
}
PANDAS_MS_MAX = 30
SPARE_MB_MAX = 60
_PAUSE_SECONDS = 0.4
"""Between two calls: a spare is made in less, and a model takes longer."""
_SETTLED_SECONDS = 20
_MB = 1 << 20


@dataclass
class Cost:
    """What a server costs: seconds to the first list of tools, memory in MB, milliseconds of calls."""

    start_ms: float = 0.0
    server_mb: float = 0.0
    zygote_mb: float = 0.0
    spare_mb: float = 0.0
    spares: int = 0
    first_ms: dict[str, float] = field(default_factory=dict)
    spare_ms: dict[str, float] = field(default_factory=dict)
    busy_ms: dict[str, float] = field(default_factory=dict)


async def cost(python: str | None, rounds: int) -> Cost:
    """Measure a server of its own; without `python`, one that has no packages of full Python."""
    with tempfile.TemporaryDirectory() as home:
        found = Cost()
        began = time.perf_counter()
        async with Client(serving(home, python), read_timeout_seconds=300) as client:
            await client.list_tools()
            found.start_ms = (time.perf_counter() - began) * 1000
            isolation = "restricted" if python is None else "process"
            calls = {name: code for name, code in CALLS.items() if python is not None or name == "6 * 7"}
            for name, code in calls.items():
                found.first_ms[name] = await _call(client, code, isolation)
                found.spare_ms[name] = await _median(client, code, isolation, rounds, _PAUSE_SECONDS)
                found.busy_ms[name] = await _median(client, code, isolation, rounds, 0)
            await _settled()
            _weigh(found, python or sys.executable)
        return found


async def _median(client: Client, code: str, isolation: str, rounds: int, pause: float) -> float:
    took = []
    for _ in range(rounds):
        await asyncio.sleep(pause)
        took.append(await _call(client, code, isolation))
    return statistics.median(took)


async def _call(client: Client, code: str, isolation: str) -> float:
    began = time.perf_counter()
    answer = await client.call_tool("execute_code", {"code": code, "isolation": isolation})
    took = (time.perf_counter() - began) * 1000
    assert answer.structured_content is not None
    assert answer.structured_content["success"], answer.structured_content
    return took


async def _settled() -> None:
    """Wait until the spares that the last call used up are there again."""
    before = -1
    for _ in range(_SETTLED_SECONDS):
        await asyncio.sleep(1)
        now = len(psutil.Process().children(recursive=True))
        if now == before:
            return
        before = now


def _weigh(found: Cost, python: str) -> None:
    """Add up the memory of the processes below the server that run `python`: zygotes have children, spares none."""
    (server,) = (each for each in psutil.Process().children() if "sealab.server" in each.cmdline())
    found.server_mb = _pss(server)
    own = [each for each in server.children(recursive=True) if each.cmdline() and each.cmdline()[0] == python]
    spares = [each for each in own if not each.children()]
    found.zygote_mb = sum(_pss(each) for each in own if each not in spares)
    found.spares = len(spares)
    found.spare_mb = statistics.mean(_pss(each) for each in spares) if spares else 0.0


def _pss(process: psutil.Process) -> float:
    for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / _MB
    return 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", type=os.path.abspath)
    parser.add_argument("rounds", type=int, nargs="?", default=20)
    chosen = parser.parse_args()
    without, having = (asyncio.run(cost(each, chosen.rounds)) for each in (None, chosen.python))
    print("| | without | with full Python and its packages |")
    print("| --- | --- | --- |")
    print(f"| start to the first tools/list, ms | {without.start_ms:.0f} | {having.start_ms:.0f} |")
    print(f"| the server, MB | {without.server_mb:.0f} | {having.server_mb:.0f} |")
    print(f"| zygotes together, MB | {without.zygote_mb:.0f} | {having.zygote_mb:.0f} |")
    print(
        f"| a spare, MB (of how many) | {without.spare_mb:.1f} ({without.spares}) | {having.spare_mb:.1f} ({having.spares}) |"
    )
    for name in CALLS:
        cells = [
            f"{each.first_ms[name]:.0f}, {each.spare_ms[name]:.1f}, {each.busy_ms[name]:.1f}"
            if name in each.first_ms
            else "-"
            for each in (without, having)
        ]
        print(f"| {name}: first, from a spare, without a pause, ms | {cells[0]} | {cells[1]} |")
    print(f"pandas from a spare: {having.spare_ms['pandas, a group-by']:.1f} ms (at most {PANDAS_MS_MAX})")
    print(f"a spare: {having.spare_mb:.1f} MB (at most {SPARE_MB_MAX})")
    missed = having.spare_ms["pandas, a group-by"] > PANDAS_MS_MAX or having.spare_mb > SPARE_MB_MAX
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
