"""What a run in a container costs, beside what a user would pick instead: starting a container for each run.

Usage: python tests/benchmarks/container.py [RUNS]    (needs podman)
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from sealab.sandbox.container import engine, image
from sealab.sandbox.container.pool import ContainerPool, ContainerSettings
from sealab.sandbox.pool import Pool, PoolSettings
from sealab.sandbox.run import Isolation, Job, Json

PAUSE_SECONDS = 0.05
"""Between runs, as between the calls of one agent: time for the next spare."""


async def no_calls(_name: str, _arguments: Mapping[str, Json]) -> Json:
    return None


async def timed(action: Callable[[], Awaitable[object]], runs: int, pause: float) -> list[float]:
    """Milliseconds of each of `runs` calls."""
    taken = []
    for _run in range(runs):
        began = time.perf_counter()
        await action()
        taken.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(pause)
    return taken


def show(name: str, taken: list[float]) -> None:
    ordered = sorted(taken)
    print(f"{name:<44}{statistics.median(ordered):>9.2f}{ordered[int(len(ordered) * 0.95)]:>9.2f}")


async def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "container"
        built = image.build(folder)
        settings = ContainerSettings(PoolSettings(spares=1), built, folder)
        print(f"{'milliseconds':<44}{'p50':>9}{'p95':>9}")
        async with Pool(PoolSettings()) as restricted:
            await restricted.ready()
            show("restricted", await timed(lambda: restricted.run(Job("1 + 1"), no_calls), runs, PAUSE_SECONDS))
        async with ContainerPool(settings) as pool:
            job = Job("1 + 1", isolation=Isolation.CONTAINER)
            began = time.perf_counter()
            await pool.run(job, no_calls)
            first = (time.perf_counter() - began) * 1000
            await asyncio.sleep(2)
            show("container, warm, with pauses", await timed(lambda: pool.run(job, no_calls), runs, PAUSE_SECONDS))
            show("container, warm, one after the other", await timed(lambda: pool.run(job, no_calls), runs, 0))
            kept = Job("1 + 1", isolation=Isolation.CONTAINER, session="bench")
            show("container, in a session", await timed(lambda: pool.run(kept, no_calls), runs, PAUSE_SECONDS))
        show("container, the first run of all", [first])
        found = await engine.find(None, built, image.code(folder), folder / "engine")

        async def alone() -> None:
            command = found.run(
                built,
                image.code(folder),
                name=engine.new_name(),
                memory_mb=500,
                processes=64,
                command=[built.python, "-I", "-c", "print(1 + 1)"],
            )
            process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL, cwd=found.cwd())
            await process.wait()

        show("a container of its own for each run", await timed(alone, min(runs, 5), 0))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
