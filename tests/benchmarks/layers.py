"""What each layer of confinement adds to a worker, and what a machine makes of it with eight in flight.

    python tests/benchmarks/layers.py [rounds]

A worker is timed from the zygote's clone(2) until it has entered all its layers and said so. The plans take turns, so
that a busy machine slows all of them alike; CPU is what the worker itself used of one core until then.
"""

from __future__ import annotations

import asyncio  # noqa: F401 - as warm as a real zygote, roughly
import gc
import json  # noqa: F401 - see above
import os
import re  # noqa: F401 - see above
import resource
import statistics
import sys
import time
from dataclasses import replace

from sealab.sandbox import confine
from sealab.sandbox.confine import confine_worker
from sealab.sandbox.job import Isolation
from sealab.sandbox.worker import runner
from sealab.sandbox.worker.dialect_choice import dialect_of

ROUNDS = 100
AT_ONCE = 8
BURST = 160


def plans() -> dict[str, confine.Plan | None]:
    """One layer more in each; None is a fork that confines nothing."""
    isolation = Isolation(os.environ.get("ISOLATION", "restricted"))
    dialect = dialect_of(isolation)
    dialect.prepare(())
    runner.warm(dialect)
    everything = confine.prepare(confine.probe(), isolation=isolation)
    without_namespaces = replace(everything, namespaced=False, scratch_bytes=0, own_init=False)
    return {
        "bare fork": None,
        "+ process": replace(without_namespaces, filter=None, landlock_abi=0),
        "+ landlock": replace(without_namespaces, filter=None),
        "+ seccomp": without_namespaces,
        "+ namespaces, root": everything,
    }


def start(plan: confine.Plan | None, told: int) -> int:
    pid = os.fork() if plan is None else confine.fork(plan)
    if pid == 0:
        try:
            if plan is not None:
                confine_worker.enter(plan, keep_fds={told})
            usage = resource.getrusage(resource.RUSAGE_SELF)
            os.write(told, f"{(usage.ru_utime + usage.ru_stime) * 1000}".encode())
        finally:
            os._exit(0)
    return pid


def one(plan: confine.Plan | None) -> tuple[float, float, float]:
    """Milliseconds until it is ready, of its CPU until then, and until it is gone."""
    reading, writing = os.pipe()
    began = time.perf_counter()
    pid = start(plan, writing)
    os.close(writing)
    cpu = float(os.read(reading, 100))
    ready = time.perf_counter()
    os.waitpid(pid, 0)
    gone = time.perf_counter()
    os.close(reading)
    return (ready - began) * 1000, cpu, (gone - began) * 1000


def burst(plan: confine.Plan | None) -> float:
    """Workers per second, each ended as soon as it is confined, with AT_ONCE of them alive."""
    reading, writing = os.pipe()
    began = time.perf_counter()
    for number in range(BURST + AT_ONCE):
        if number < BURST:
            start(plan, writing)
        if number >= AT_ONCE:
            os.wait()
    seconds = time.perf_counter() - began
    os.close(reading)
    os.close(writing)
    return BURST / seconds


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    tried = plans()
    gc.collect()
    gc.freeze()
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in tried}
    rates: dict[str, list[float]] = {name: [] for name in tried}
    for number in range(rounds):
        for name, plan in tried.items():
            times[name].append(one(plan))
            if number % max(rounds // 4, 1) == 0:
                rates[name].append(burst(plan))
    print(f"{'':22}{'ready, ms':>20}{'its CPU':>10}{'gone, ms':>10}{f'{AT_ONCE} at once':>14}")
    print(f"{'':22}{'p50':>10}{'p95':>10}{'p50':>10}{'p50':>10}{'per second':>14}")
    for name, samples in times.items():
        ready, cpu, gone = (sorted(column) for column in zip(*samples, strict=True))
        middle, late = len(ready) // 2, int(len(ready) * 0.95)
        numbers = f"{ready[middle]:10.2f}{ready[late]:10.2f}{cpu[middle]:10.2f}{gone[middle]:10.2f}"
        print(f"{name:22}{numbers}{statistics.median(rates[name]):14.0f}")


if __name__ == "__main__":
    main()
