"""Many runs, and what they leave behind: processes, descriptors, memory.

    python tests/benchmarks/soak.py [RUNS_ONE_BY_ONE] [RUNS_OF_EIGHT_CLIENTS]

Prints the counts at the start, in between and at the end; exits 1 if a process or a descriptor is left.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time

import psutil

from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Job, Limits, Status

CLIENTS = 8


async def no_calls(name, arguments):
    raise AssertionError(name)


def count(pool: Pool | None, what: str) -> tuple[int, int]:
    gc.collect()
    me = psutil.Process()
    children = len(me.children(recursive=True))
    descriptors = len(os.listdir("/proc/self/fd"))
    zygote = 0.0
    if pool is not None:
        zygote = psutil.Process(pool._zygotes.newest.pid).memory_info().rss / 1e6
    print(
        f"{what:<34} processes {children:3}  descriptors {descriptors:3}  "
        f"memory {me.memory_info().rss / 1e6:6.1f} MB  zygote {zygote:6.1f} MB",
        flush=True,
    )
    return children, descriptors


async def soak(one_by_one: int, at_once: int) -> int:
    before = count(None, "before")
    failed = 0

    async def once(pool: Pool, number: int) -> None:
        nonlocal failed
        job = Job(f"print({number})\n{number} + 1", limits=Limits(timeout_seconds=30, memory_mb=100))
        outcome = await pool.run(job, no_calls)
        failed += outcome.status is not Status.OK or outcome.result != number + 1 or outcome.output != f"{number}\n"

    async with Pool(PoolSettings()) as pool:
        await pool.ready()
        began = time.perf_counter()
        for number in range(one_by_one):
            await once(pool, number)
            if number % max(one_by_one // 5, 1) == 0:
                count(pool, f"after {number + 1} one by one")
        print(f"{one_by_one / (time.perf_counter() - began):.0f} runs/s")
        began = time.perf_counter()
        numbers = iter(range(at_once))

        async def client() -> None:
            for number in numbers:
                await once(pool, number)

        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        print(f"{at_once / (time.perf_counter() - began):.0f} runs/s from {CLIENTS} clients")
        await asyncio.sleep(0.5)
        count(pool, "with the pool at rest")
    after = count(None, "after the pool was closed")
    print(f"wrong reports: {failed}")
    return int(failed > 0 or after > before)


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:]] or [5000, 1000]
    sys.exit(asyncio.run(soak(*sizes)))
