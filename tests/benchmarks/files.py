"""What files cost in restricted code, over stdio: streamed, many, beside `read_file`, to the quota, and two at once.

    python tests/benchmarks/files.py

A megabyte is read in turns through `open`, through `read_file` and by CPython in a process that runs already. The goal
is twice the time of `read_file`. The other rows say whether they held.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

LARGE_BYTES = 500_000_000
LINE = "y" * 99 + "\n"
SMALL = 10_000
QUOTA_MB = 600
ROUNDS = 30
GOAL = 2.0
STREAMED = "lines = 0\nwith open('large.txt') as file:\n    for line in file: lines += 1\nresult = lines"
MANY = f"""
import os
os.makedirs("many")
for number in range({SMALL}):
    with open(f"many/{{number}}", "w") as file: file.write(str(number))
result = sum(int(open(f"many/{{name}}").read()) for name in os.listdir("many"))
"""
FILLED = """
try:
    with open("filled", "w") as file:
        for _ in range(10_000): file.write("z" * 100_000)
    result = "no quota"
except OSError as error: result = f"{type(error).__name__}: {error}"
"""
APPENDED = "with open('shared', 'a') as file:\n    for _ in range(2000): file.write({!r} * 9 + '\\n'); file.flush()"
READ = "import time\nbegan = time.perf_counter()\nfor _ in range({}): text = {}\nresult = (time.perf_counter() - began) / {} * 1000"
WAYS = {"open(…).read()": "open('one.txt').read()", "read_file(…)": "read_file('one.txt')"}


async def result(client: Client, code: str, **options: object) -> Any:
    """Return the result of code; ends the program with the report where it fails."""
    report = (await client.call_tool("execute_code", {"code": code, **options})).structured_content or {}
    return report["result"] if report.get("success") else sys.exit(str(report))


async def timed(client: Client, code: str, **options: object) -> tuple[Any, float]:
    """Return the result of code and the seconds that it took."""
    began = time.perf_counter()
    return await result(client, code, **options), time.perf_counter() - began


def prepare(workspace: Path) -> None:
    """Write the large file and the one of a megabyte."""
    workspace.mkdir()
    with (workspace / "large.txt").open("w") as file:
        file.writelines(LINE * 10_000 for _ in range(LARGE_BYTES // len(LINE) // 10_000))
    (workspace / "one.txt").write_text(LINE * (1_000_000 // len(LINE)))


def used_mb(workspace: Path) -> float:
    """Return how many MB the files of the workspace have."""
    return sum(path.stat().st_size for path in workspace.rglob("*") if path.is_file()) / 1e6


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        workspace = Path(home, "workspace")
        prepare(workspace)
        server = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "sealab.server", "serve", "--home", home],
            env={"SEALAB_WORKSPACE_QUOTA_MB": str(QUOTA_MB), "SEALAB_MAX_TIMEOUT_SECONDS": "300"},
        )
        async with Client(server, mode="legacy") as client:
            lines, seconds = await timed(client, STREAMED, memory_mb=64, timeout_seconds=300)
            began = time.perf_counter()
            with (workspace / "large.txt").open() as file:
                here = sum(1 for _ in file)
            print(
                f"500 MB line by line in 64 MB: {lines:,} of {here:,} lines, {seconds:.1f} s; CPython {time.perf_counter() - began:.1f} s"
            )
            total, seconds = await timed(client, MANY, timeout_seconds=300)
            held = total == sum(range(SMALL))
            print(
                f"10,000 small files written, listed and read: {seconds:.1f} s, {'all there' if held else 'NOT all there'}"
            )
            one: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(ROUNDS):  # in turns, since the machine may be busier at one time than at another
                for way, call in WAYS.items():
                    one[way].append(await result(client, READ.format(5, call, 5)))
            medians = {way: statistics.median(times) for way, times in one.items()}
            ratio = medians["open(…).read()"] / medians["read_file(…)"]
            told = ", ".join(f"{way} {median:.2f} ms" for way, median in medians.items())
            print(f"1 MB: {told}: {ratio:.2f}, goal {GOAL:.0f}")
            await asyncio.gather(*(result(client, APPENDED.format(each)) for each in "ab"))
            text = (workspace / "shared").read_text().split()
            whole = sorted(text) == ["a" * 9] * 2000 + ["b" * 9] * 2000
            print(
                f"two runs append 2,000 lines each to one file: {'all whole' if whole else f'NOT whole ({len(text)} lines)'}"
            )
            said = await result(client, FILLED, timeout_seconds=300)
            print(
                f"quota of {QUOTA_MB} MB in the middle of a write: {said!r}; {used_mb(workspace):.0f} MB in the workspace"
            )


if __name__ == "__main__":
    asyncio.run(main())
