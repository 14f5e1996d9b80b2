"""What a call cannot take less than on this machine, beside what it takes.

    python -m tests.benchmarks.floors [ROUNDS]

A worker is a fork, confined by the layers, that ends: so the floors of a call are such a fork that does nothing, once
of an interpreter alone and once of one with the heap of a zygote, and a call of a tool of a server of the SDK alone. All
take turns. Prints a table and asserts nothing. Processor times are of all processes, wall times those that a client
waits; memory is what a spare worker shares with nobody, where this user may see it (proc(5), smaps_rollup).
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.benchmarks.gate.figures import CALLS, SEALAB, SPAWN, YARDSTICKS, calls, settle
from tests.benchmarks.gate.processor_time import own_seconds
from tests.benchmarks.gate.servers import Server, to_the_end

WORDS = """
    river mountain copper window garden pencil bottle carpet tunnel violin ladder mirror candle basket
""".split()  # noqa: SIM905 - a table of words
ROUNDS = 10
PAUSE_SECONDS = 0.02
FORKS = """
import gc, os, sys
from sealab.sandbox.worker import huge_pages, immortal
if sys.argv[1] == "zygote":
    huge_pages.reserve()
from sealab.sandbox import confine
probe = confine.probe()
if sys.argv[1] == "zygote":
    from sealab.sandbox.job import Isolation
    from sealab.sandbox.worker import runner
    dialect = runner.dialect_of(Isolation.RESTRICTED)
    dialect.prepare(())
    runner.warm(dialect)
heap = huge_pages.HeapMap()
plan = confine.prepare(probe)
immortal.immortalize()
gc.freeze()
huge_pages.fill_pools()
heap.collapse()
print(*plan.layers, flush=True)
while os.read(0, 1):
    pid = confine.fork(plan)
    if pid == 0:
        confine.enter(plan, keep_fds=())
        os._exit(0)
    _pid, status, used = os.wait4(pid, 0)
    assert status == 0
    os.write(1, f"{used.ru_utime + used.ru_stime}\\n".encode())
"""

Sample = tuple[float, float]
"""Processor and wall milliseconds of one."""


class Forks:
    """A process that forks confined workers which do nothing."""

    def __init__(self, heap: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS, heap], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.layers = self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def once(self) -> Sample:
        """Measure some forks, one after another."""
        assert self._process.stdin is not None
        before, began, spent = own_seconds(self._process.pid), time.perf_counter(), 0.0
        for _ in range(CALLS):
            self._process.stdin.write("1")
            self._process.stdin.flush()
            spent += float(self._said())
        wall = time.perf_counter() - began
        return (own_seconds(self._process.pid) - before + spent) / CALLS * 1000, wall / CALLS * 1000

    def end(self) -> None:
        """Let it end."""
        self._process.communicate()


def spawned() -> Sample:
    """Measure a spawned interpreter."""
    wall, spent = to_the_end(SPAWN, dict(os.environ))
    return spent * 1000, wall * 1000


def called(server: Server, **arguments: str) -> Sample:
    """Measure calls, one after another."""
    spent, _own, walls = calls(server, **arguments)
    return spent, statistics.median(walls)


def saved(server: Server, word: str) -> Sample:
    """Measure saving a skill that is like no other, with a test, to the answer."""
    code = f"def {word}({word}s: int) -> int:\n    return 2 * {word}s\n"
    before, began = server.family.rest(), time.perf_counter()
    server.call("save_skill", name=word, code=code, description=f"{word}s.", tests=f"assert {word}(1) == 2")
    wall = time.perf_counter() - began
    return (server.family.rest() - before) * 1000, wall * 1000


def private_memory(server: Server) -> list[float]:
    """Return the MB that each process below a zygote shares with nobody: of those, spares alone are there at rest."""
    found = []
    for process in psutil.Process(server.process.pid).children(recursive=True):
        rollup = Path(f"/proc/{process.pid}/smaps_rollup")
        if process.ppid() == server.process.pid or not os.access(rollup, os.R_OK):
            continue
        found.append(sum(map(int, re.findall(r"^Private_\w+: +(\d+) kB", rollup.read_text(), re.MULTILINE))) / 1024)
    return found


def main() -> None:
    rounds = min(int(sys.argv[1]), len(WORDS) - 1) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SEALAB_")}
        sdk = Server([sys.executable, YARDSTICKS, "stdio"], environment)
        server = Server([*SEALAB, "serve", "--home", folder], environment)
        for each in (sdk, server):
            stack.callback(each.end)
            each.open()
        bare, zygote = Forks("bare"), Forks("zygote")
        stack.callback(bare.end)
        stack.callback(zygote.end)
        server.call("execute_code", code="1 + 1")
        settle([server])
        own: list[float] = []
        words = iter(WORDS)
        saved(server, next(words))  # the first one imports what only it needs

        def run() -> Sample:
            spent, share, walls = calls(server, code="1 + 1")
            own.append(share)
            return spent, statistics.median(walls)

        measured: dict[str, Callable[[], Sample]] = {
            "python -I -S -c pass, spawned": spawned,
            "a fork in the same layers, of an interpreter alone": bare.once,
            "a fork in the same layers, with a zygote's heap": zygote.once,
            "a call of a tool of the SDK alone, stdio": lambda: called(sdk, code="1 + 1"),
            "execute_code of 1 + 1, stdio": run,
            "the same in a session": lambda: called(server, code="1 + 1", session="floor"),
            "save_skill with a test, stdio": lambda: saved(server, next(words)),
        }
        samples: dict[str, list[Sample]] = {name: [] for name in measured}
        for _ in range(rounds):
            for name, measure in measured.items():
                samples[name].append(measure())
                time.sleep(PAUSE_SECONDS)
        time.sleep(1)
        memory = private_memory(server)
    spawn = statistics.median(wall for _spent, wall in samples["python -I -S -c pass, spawned"])
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, layers {bare.layers}")
    print(f"{'median of one':<54}{'CPU ms':>8}{'wall ms':>9}{'of the spawn':>14}")
    for name, each in samples.items():
        spent, wall = (statistics.median(column) for column in zip(*each, strict=True))
        print(f"{name:<54}{spent:8.2f}{wall:9.2f}{wall / spawn:14.2f}")
    print(f"{'of execute_code, the process of the server itself':<54}{statistics.median(own):8.2f}")
    if memory:
        print(f"private memory of a spare worker: {statistics.median(memory):.1f} MB")


if __name__ == "__main__":
    main()
