"""What it costs a run of full Python to write files, beside the same run that writes none, in turns on one server.

    .venv/bin/python -m tests.benchmarks.written_files

Each file is new, so all of its bytes come home to the workspace. The figures of plain Python are those of the writing
alone, in this process.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from ..server.conftest import Caller, in_this_process

ROUNDS = {"nothing": 30, "one file of 1 KB": 30, "100 files of 1 KB": 15, "one file of 100 MB": 5}
WRITES = {
    "nothing": "files, data = 0, b''",
    "one file of 1 KB": "files, data = 1, bytes(1000)",
    "100 files of 1 KB": "files, data = 100, bytes(1000)",
    "one file of 100 MB": "files, data = 1, bytes(100_000_000)",
}
WRITE = """
for number in range(files):
    with open(f"{place}{number}", "wb") as file:
        file.write(data)
"""
ENV = {
    "SEALAB_ALLOWED_ISOLATION": "restricted,process",
    "SEALAB_WORKERS_SPARE": "2",
    "SEALAB_WORKSPACE_QUOTA_MB": "1000",
}


async def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        async with in_this_process(home, ENV) as caller:
            plain: dict[str, list[float]] = {what: [] for what in ROUNDS}
            confined: dict[str, list[float]] = {what: [] for what in ROUNDS}
            await run(caller, "1")
            for turn in range(max(ROUNDS.values())):
                for what in (each for each in ROUNDS if turn < ROUNDS[each]):
                    code = f"{WRITES[what]}\nplace = 'f'\n{WRITE}"
                    confined[what].append(await run(caller, code))
                    plain[what].append(_plain(f"{WRITES[what]}\nplace = {str(home / 'plain-')!r}\n{WRITE}"))
                    _clear(home)
    least = statistics.median(confined["nothing"])
    sys.stdout.write("| a run writes | ms | times a run that writes nothing | plain Python alone, ms |\n")
    sys.stdout.write("| --- | ---: | ---: | ---: |\n")
    for what in ROUNDS:
        ms = statistics.median(confined[what])
        sys.stdout.write(f"| {what} | {ms:.1f} | {ms / least:.2f} | {statistics.median(plain[what]):.1f} |\n")


async def run(caller: Caller, code: str) -> float:
    """Run code in full Python and return how long its caller waited, in milliseconds."""
    await asyncio.sleep(0.3)  # until there is a spare
    began = time.perf_counter()
    report = await caller.run(code, isolation="process")
    assert report["success"], report
    return 1000 * (time.perf_counter() - began)


def _clear(home: Path) -> None:
    for each in (*(home / "workspace").glob("f*"), *home.glob("plain-*")):
        each.unlink()


def _plain(code: str) -> float:
    began = time.perf_counter()
    exec(code, {})
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    asyncio.run(main())
