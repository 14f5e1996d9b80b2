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
from collections.abc import Iterable
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


async def cost(python: str | None, rounds: int) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return memory and start of a server of its own, and for each call its first time and two medians in ms.

    Without `python` it is a server that has no packages of full Python.
    """
    isolation = "restricted" if python is None else "process"
    took: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as home:
        began = time.perf_counter()
        async with Client(serving(home, python), read_timeout_seconds=300) as client:
            await client.list_tools()
            start_ms = (time.perf_counter() - began) * 1000
            for name, code in CALLS.items():
                if python is None and name != "6 * 7":
                    continue
                took[name] = [await _call(client, code, isolation)]
                for pause in (_PAUSE_SECONDS, 0):
                    again = []
                    for _ in range(rounds):
                        await asyncio.sleep(pause)
                        again.append(await _call(client, code, isolation))
                    took[name].append(statistics.median(again))
            await _settled()
            return {"start to the first tools/list, ms": start_ms, **_memory(python or sys.executable)}, took


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


def _memory(python: str) -> dict[str, float]:
    """Add up the memory of the processes below the server that run `python`: zygotes have children, spares none."""
    (server,) = (each for each in psutil.Process().children() if "sealab.server" in each.cmdline())
    own = [each for each in server.children(recursive=True) if each.cmdline() and each.cmdline()[0] == python]
    spares = [each for each in own if not each.children()]
    return {
        "the server, MB": _pss([server]),
        "zygotes together, MB": _pss(each for each in own if each not in spares),
        "spares": len(spares),
        "a spare, MB": _pss(spares) / max(len(spares), 1),
    }


def _pss(processes: Iterable[psutil.Process]) -> float:
    lines = (line for each in processes for line in Path(f"/proc/{each.pid}/smaps_rollup").read_text().splitlines())
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")) / _MB


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", type=os.path.abspath)
    parser.add_argument("rounds", type=int, nargs="?", default=20)
    chosen = parser.parse_args()
    (without, own_times), (having, times) = (asyncio.run(cost(each, chosen.rounds)) for each in (None, chosen.python))
    print("| | without | with full Python and its packages |")
    print("| --- | --- | --- |")
    for name in having:
        print(f"| {name} | {without[name]:.1f} | {having[name]:.1f} |")
    for name in CALLS:
        cells = (", ".join(f"{ms:.1f}" for ms in each.get(name, ())) or "-" for each in (own_times, times))
        print(f"| {name}: first, from a spare, without a pause, ms | {' | '.join(cells)} |")
    pandas_ms, spare_mb = times["pandas, a group-by"][1], having["a spare, MB"]
    print(f"pandas from a spare: {pandas_ms:.1f} ms (at most {PANDAS_MS_MAX})")
    print(f"a spare: {spare_mb:.1f} MB (at most {SPARE_MB_MAX})")
    return 1 if pandas_ms > PANDAS_MS_MAX or spare_mb > SPARE_MB_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
