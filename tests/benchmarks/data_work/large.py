"""A CSV file of 1 GB and a Parquet file of 200 MB within `memory_mb=2000`, beside plain CPython without a limit.

    python -m tests.benchmarks.data_work.large PYTHON [CSV_MB] [PARQUET_MB]

PYTHON is an interpreter with the packages of `sealab[data]`. Both sides read the same files, and their answers are
compared. sealab's time is that of one call of `execute_code` over stdio, with the files that it wrote brought home; plain
CPython's is that of a process, start and imports included. The last program cannot be done within the limit: its error
must name the peak, the line and what would need less.

Needs 5 times CSV_MB on the disk of temporary files. Ends with 1 where an answer differs, or where a limit is not told so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import Client

from .served import serving

MEMORY_MB = 2000
_SECONDS_MAX = 900
_MAKE = """
import sys
import numpy as np, polars as pl
csv_mb, parquet_mb = map(int, sys.argv[1:])
made = np.random.default_rng(7)

def rows(count, start):
    return pl.DataFrame({
        "order": np.arange(start, start + count),
        "city": made.choice(["Oslo", "Lima", "Cairo", "Quito", "Perth", "Turin"], count),
        "price": made.integers(0, 10_000_000, count) / 100,
        "quantity": made.integers(1, 100, count),
        "key": made.integers(0, 1 << 40, count),
    })

start = 0
with open("orders.csv", "wb") as file:
    while file.tell() < csv_mb * 1_000_000:
        rows(1_000_000, start).write_csv(file, include_header=start == 0)
        start += 1_000_000
rows(parquet_mb * 1_000_000 // 12, 0).write_parquet("orders.parquet")
"""
_BY_CITY = (
    "select city, count(*), sum(quantity), cast(round(sum(price)) as bigint) from '{file}' group by city order by city"
)
PROGRAMS = {
    "polars, CSV, a group-by": """
import polars as pl
found = pl.scan_csv("orders.csv").group_by("city").agg(pl.len(), pl.col("quantity").sum(), pl.col("price").max())
found.sort("city").collect(engine="streaming").rows()
""",
    "duckdb, CSV, a group-by": f"import duckdb\nduckdb.sql({_BY_CITY.format(file='orders.csv')!r}).fetchall()",
    "polars, Parquet, a group-by": """
import polars as pl
found = pl.scan_parquet("orders.parquet").group_by("quantity").agg(pl.len(), pl.col("price").max()).sort("quantity")
found.collect(engine="streaming").rows()
""",
    "duckdb, Parquet, a group-by": (
        f"import duckdb\nduckdb.sql({_BY_CITY.format(file='orders.parquet')!r}).fetchall()"
    ),
    "polars, CSV to Parquet": """
import polars as pl
pl.scan_csv("orders.csv").sink_parquet("copied.parquet")
pl.scan_parquet("copied.parquet").select(pl.len()).collect().item()
""",
    "duckdb, CSV sorted to Parquet": """
import duckdb
duckdb.sql("copy (select * from 'orders.csv' order by key) to 'sorted.parquet'")
duckdb.sql("select count(*), min(key), max(key) from 'sorted.parquet'").fetchall()
""",
    "polars, CSV sorted to Parquet": """
import polars as pl
pl.scan_csv("orders.csv").sort("key").sink_parquet("sorted.parquet")
pl.scan_parquet("sorted.parquet").select(pl.len(), pl.col("key").min(), max=pl.col("key").max()).collect().rows()
""",
    "pandas, Parquet, a group-by": """
import pandas as pd
pd.read_parquet("orders.parquet").groupby("city").price.max().to_dict()
""",
}
TOO_LARGE = "import pandas as pd\nframe = pd.read_csv('orders.csv')\nwider = pd.concat([frame] * 4)\nlen(wider)"


def make_files(python: str, workspace: Path, csv_mb: int, parquet_mb: int) -> None:
    """Write the two files, and say how large they are."""
    workspace.mkdir(parents=True)
    subprocess.run([python, "-c", _MAKE, str(csv_mb), str(parquet_mb)], cwd=workspace, check=True)
    print(", ".join(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB" for path in sorted(workspace.iterdir())))


async def measure(python: str, workspace: Path, quota_mb: int) -> bool:
    """Run each program on both sides, and say what each took; True where all holds."""
    holds = True
    print("| program | plain CPython: s | its peak, MB | sealab: s | ratio | answers |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    settings = {"WORKSPACE_QUOTA_MB": str(quota_mb), "MAX_TIMEOUT_SECONDS": str(_SECONDS_MAX)}
    async with Client(serving(workspace.parent, python, **settings), read_timeout_seconds=_SECONDS_MAX) as client:
        await _call(client, "import polars, duckdb, pandas")  # what a zygote imports once
        for name, code in PROGRAMS.items():
            plain_seconds, peak, expected = await asyncio.to_thread(_plain, python, code, workspace)
            began = time.perf_counter()
            report = await _call(client, code)
            took = time.perf_counter() - began
            same = report.get("result") == expected
            holds = holds and same
            told = "the same" if same else f"{report.get('error', report.get('result'))}, not {expected}"[:500]
            ratio = took / plain_seconds
            print(f"| {name} | {plain_seconds:.2f} | {peak:.0f} | {took:.2f} | {ratio:.2f} | {told} |")
        error = (await _call(client, TOO_LARGE)).get("error", {})
        print(f"four copies of it in pandas: {json.dumps(error)}")
        text = f"{error.get('message', '')} {error.get('hint', '')}"
    return holds and error.get("line") in {2, 3} and "MB" in text and "polars" in text


async def _call(client: Client, code: str) -> dict[str, Any]:
    asked = {"code": code, "isolation": "process", "memory_mb": MEMORY_MB, "timeout_seconds": _SECONDS_MAX}
    answer = await client.call_tool("execute_code", asked)
    assert answer.structured_content is not None
    return answer.structured_content


def _plain(python: str, code: str, folder: Path) -> tuple[float, float, Any]:
    """Return seconds, the peak of its memory in MB, and the last value as JSON has it."""
    *before, last = code.strip().splitlines()
    program = "\n".join(["import json, resource", *before, f"print(json.dumps({last}))", _PEAK])
    began = time.perf_counter()
    ended = subprocess.run([python, "-c", program], cwd=folder, check=True, capture_output=True, text=True)
    took = time.perf_counter() - began
    answer, peak = ended.stdout.splitlines()[-2:]
    return took, int(peak) * 1024 / 1e6, json.loads(answer)


_PEAK = "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", type=os.path.abspath)
    parser.add_argument("csv_mb", type=int, nargs="?", default=1000)
    parser.add_argument("parquet_mb", type=int, nargs="?", default=200)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "home", "workspace")
        make_files(chosen.python, workspace, chosen.csv_mb, chosen.parquet_mb)
        return 0 if asyncio.run(measure(chosen.python, workspace, 5 * chosen.csv_mb)) else 1


if __name__ == "__main__":
    sys.exit(main())
