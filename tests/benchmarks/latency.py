"""How long one execution takes: the engine beside what a user would pick instead.

    python tests/benchmarks/latency.py [RUNS]

Prints a table and asserts nothing: the figures are this machine's. What counts are the ratios, each between things that
took turns, to a spawned `python -I -S -c pass` (the goal of 1.5 ms on a machine that spawns it in 7). What calls of a
server and eight clients at once cost is measured by `make gate`.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Job, Limits

SPAWN = ["-I", "-S", "-c", "pass"]
GOAL_FROM_A_SPARE = 1.5 / 7
ROUNDS = 7
JOB = Job("1 + 1", limits=Limits(timeout_seconds=10, memory_mb=100))


async def no_calls(name, arguments):
    raise AssertionError(name)


def show(what: str, times: list[float], spawn: float | None = None, goal: float | None = None) -> None:
    """Print one row; `spawn` is what a spawned interpreter took meanwhile."""
    ordered = sorted(times)
    p50, p95 = statistics.median(ordered), ordered[int(len(ordered) * 0.95)]
    ratio = "" if spawn is None else f"{p50 / spawn:8.2f} of the spawn"
    wanted = "" if goal is None else f", goal {goal:.2f}"
    print(f"{what:<48} {p50 * 1000:8.2f} {p95 * 1000:8.2f}{ratio}{wanted}")


def timed(runs: int, once: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    return times


def spawned(runs: int, arguments: list[str]) -> list[float]:
    return timed(runs, lambda: subprocess.run([sys.executable, *arguments], check=True))


async def engine(runs: int) -> None:
    async with Pool(PoolSettings(spares=2)) as pool:

        async def once() -> float:
            began = time.perf_counter()
            await pool.run(JOB, no_calls)
            return time.perf_counter() - began

        await pool.ready()
        rested, hurried, spawns = [], [], []
        for _ in range(ROUNDS):
            spawns += spawned(5, SPAWN)
            for _ in range(max(runs // ROUNDS, 1)):
                while pool.stats().spares < 2:  # noqa: ASYNC110 - a benchmark waits for what has no event
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.005)
                rested.append(await once())
            hurried += [await once() for _ in range(max(runs // ROUNDS, 1))]
        spawn = statistics.median(spawns)
        show("python -I -S -c pass, spawned", spawns, spawn)
        show("sealab engine, from a spare", rested, spawn, GOAL_FROM_A_SPARE)
        show("sealab engine, one call after another", hurried, spawn)
        print(f"  layers: {' '.join(pool.stats().layers)}")


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
    print(f"{'milliseconds to the result of 1 + 1':<48} {'p50':>8} {'p95':>8}")
    asyncio.run(engine(runs))
    restricted = ["-I", "-c", "import RestrictedPython"]
    show("python that imports RestrictedPython, spawned", spawned(max(runs // 5, 10), restricted))
    monty(runs)


if __name__ == "__main__":
    main()
