"""How long one execution takes: the engine beside what a user would pick instead, and eight clients at once.

    python tests/benchmarks/latency.py [RUNS]

Prints a table and asserts nothing: the figures are this machine's.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from sealab.sandbox import confine, worker
from sealab.sandbox.pool import Pool, PoolSettings
from sealab.sandbox.run import Job, Limits

CLIENTS = 8
JOB = Job("1 + 1", limits=Limits(timeout_seconds=10, memory_mb=100))


async def no_calls(name, arguments):
    raise AssertionError(name)


def show(what: str, times: list[float]) -> None:
    ordered = sorted(times)
    p50, p95 = statistics.median(ordered), ordered[int(len(ordered) * 0.95)]
    print(f"{what:<58} {p50 * 1000:8.2f} {p95 * 1000:8.2f}")


def timed(runs: int, once: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    return times


def bare_rate(forks: int) -> float:
    """Fork, confine and end processes that do nothing else; give forks a second.

    The forking process holds what a zygote holds, and lets as many run at once as there are clients. It is a process
    of its own, since a zygote cannot go back.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            worker.warm()
            plan = confine.prepare(confine.probe())
            gc.collect()
            gc.freeze()
            began = time.perf_counter()
            alive = 0
            for _ in range(forks):
                if alive == CLIENTS:
                    os.wait()
                    alive -= 1
                if confine.fork(plan) == 0:
                    confine.enter(plan, keep_fds={writing})
                    os._exit(0)
                alive += 1
            for _ in range(alive):
                os.wait()
            os.write(writing, str(forks / (time.perf_counter() - began)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        rate = float(answer.read())
    os.waitpid(pid, 0)
    return rate


async def engine(runs: int) -> float:
    """Print the engine's latency, and give the rate of `CLIENTS` clients in runs a second."""
    async with Pool(PoolSettings(spares=2)) as pool:
        await pool.ready()
        rested, hurried = [], []
        for _ in range(runs):
            while pool.stats().spares < 2:  # noqa: ASYNC110 - a benchmark waits for what has no event
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.002)
            began = time.perf_counter()
            await pool.run(JOB, no_calls)
            rested.append(time.perf_counter() - began)
        show("sealab engine, from a spare", rested)
        for _ in range(runs):
            began = time.perf_counter()
            await pool.run(JOB, no_calls)
            hurried.append(time.perf_counter() - began)
        show("sealab engine, one call after another", hurried)
        print(f"  layers: {' '.join(pool.layers())}")

        async def client() -> None:
            for _ in range(runs // 2):
                await pool.run(JOB, no_calls)

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        return CLIENTS * (runs // 2) / (time.perf_counter() - began)


def monty(runs: int) -> None:
    try:
        import pydantic_monty
    except ImportError:
        print("pydantic-monty is not installed")
        return

    def once() -> None:
        with pool.checkout() as session:
            session.feed_run("1 + 1")

    with pydantic_monty.Monty() as pool:
        show("pydantic-monty, checked out of its pool", timed(runs, once))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    # First, while this process still has one thread and little memory.
    bare = bare_rate(runs * 4)
    print(f"{'milliseconds to the result of 1 + 1':<58} {'p50':>8} {'p95':>8}")
    rate = asyncio.run(engine(runs))
    few = max(runs // 5, 10)
    for what, arguments in (
        ("python -I -S -c pass, spawned", ["-I", "-S", "-c", "pass"]),
        ("python that imports RestrictedPython, spawned", ["-I", "-c", "import RestrictedPython"]),
    ):
        show(what, timed(few, lambda: subprocess.run([sys.executable, *arguments], check=True)))  # noqa: B023
    monty(runs)
    print(f"\n{CLIENTS} clients at once: {rate:.0f} runs/s; bare confined forks: {bare:.0f}/s; ratio {rate / bare:.2f}")


if __name__ == "__main__":
    main()
