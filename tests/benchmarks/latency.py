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
ROUNDS = 7
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


class BareForks:
    """Forks, confines and ends processes that do nothing else, from a process that holds what a zygote holds.

    It lets as many run at once as there are clients, and is a process of its own, since a zygote cannot go back.
    """

    def __init__(self) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._commands)
            os.close(self._answers)
            try:
                worker.warm()
                plan = confine.prepare(confine.probe())
                gc.collect()
                gc.freeze()
                while command := os.read(commands, 16):
                    seconds = self._fork(plan, int(command), answers)
                    os.write(answers, str(seconds).encode())
            finally:
                os._exit(0)
        os.close(commands)
        os.close(answers)

    def rate(self, forks: int) -> float:
        """Give forks a second."""
        os.write(self._commands, str(forks).encode())
        return forks / float(os.read(self._answers, 64))

    def end(self) -> None:
        os.close(self._commands)
        os.waitpid(self._pid, 0)
        os.close(self._answers)

    @staticmethod
    def _fork(plan: confine.Plan, forks: int, kept: int) -> float:
        began = time.perf_counter()
        for number in range(forks):
            if number >= CLIENTS:
                os.wait()
            if confine.fork(plan) == 0:
                confine.enter(plan, keep_fds={kept})
                os._exit(0)
        for _ in range(min(forks, CLIENTS)):
            os.wait()
        return time.perf_counter() - began


async def engine(runs: int, bare: BareForks) -> None:
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
            for _ in range(each):
                await pool.run(JOB, no_calls)

        # In turns, since the machine may be busier at one time than at another.
        each = max(runs // 20, 2)
        rates, ratios = [], []
        for _ in range(ROUNDS):
            alone = bare.rate(CLIENTS * each)
            began = time.perf_counter()
            await asyncio.gather(*(client() for _ in range(CLIENTS)))
            rates.append(CLIENTS * each / (time.perf_counter() - began))
            ratios.append(rates[-1] / alone)
        rate, ratio = statistics.median(rates), statistics.median(ratios)
        print(f"  {CLIENTS} clients at once: {rate:.0f} runs/s, {ratio:.2f} of the rate of bare confined forks")


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
    # Before this process has threads and much memory.
    bare = BareForks()
    print(f"{'milliseconds to the result of 1 + 1':<58} {'p50':>8} {'p95':>8}")
    asyncio.run(engine(runs, bare))
    bare.end()
    few = max(runs // 5, 10)
    for what, arguments in (
        ("python -I -S -c pass, spawned", ["-I", "-S", "-c", "pass"]),
        ("python that imports RestrictedPython, spawned", ["-I", "-c", "import RestrictedPython"]),
    ):
        show(what, timed(few, lambda: subprocess.run([sys.executable, *arguments], check=True)))  # noqa: B023
    monty(runs)


if __name__ == "__main__":
    main()
