"""A real server over HTTP, with its defaults, under load: each figure beside its goal, with the count of wrong answers.

    python -m tests.benchmarks.load [--only NAME]…

The clients are in processes of their own (`load_client`). Machines differ and are busy: `spawn` says what a spawned
`python -I -S -c pass` took meanwhile, and goals are ratios where they can be. Exits 1 for a wrong answer, never for a
figure: those are this machine's. What one call costs is measured by `make gate`, and what another caller waits while a
run does its worst by `make fuzz-host`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import psutil

from tests.benchmarks.load_client import ANY_REPORT, ANY_RESULT, LEGACY, MODERN, READY, Load, Told
from tests.server.conftest import SEALAB

FOLDER = Path(__file__).parent
START_SECONDS = 120.0
STOP_SECONDS = 40.0
POLITE_PAUSE_SECONDS = 0.02
MANY = 400
LONG_SLEEP_SECONDS = 20
AGENTS = 1_100
DESCRIPTORS = 1_024
LONG = "import time\nends = time.monotonic() + 2\nwhile time.monotonic() < ends: pass\n{n} + 1"
"""Two seconds of computing."""
SLEEP = """
import asyncio, time
began = time.time()
await {wait}
[began, time.time()]
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    url: str
    process: psutil.Process
    log: Path

    def family(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]

    def zygote(self) -> psutil.Process:
        return next(
            each for each in self.process.children() if "sealab.sandbox.worker.zygote" in " ".join(each.cmdline())
        )


@contextmanager
def server(*, descriptors: int | None = None) -> Iterator[Server]:
    """Run a server with its defaults and an upstream server, in a home of its own."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("SEALAB_")}
    limited = [] if descriptors is None else ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        upstream = {"command": sys.executable, "args": [str(FOLDER / "slow_upstream.py")]}
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"slow": upstream}}))
        log = home / "stderr.txt"
        command = [*limited, *SEALAB, "serve", "--http", "127.0.0.1:0", "--home", folder]
        with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr, env=env) as process:
            try:
                url = said_by(log)
                told(Load(url, calls=20))  # what the first calls build is not what is measured
                yield Server(url, psutil.Process(process.pid), log)
            finally:
                process.terminate()
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    print(f"  the server had not ended {STOP_SECONDS:g} s after SIGTERM, and was killed", flush=True)
                    process.kill()


def said_by(log: Path) -> str:
    """Wait for the address that a server says that it listens at."""
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        for line in log.read_text().splitlines():
            if "http://" in line:
                return line.split()[-1]
        time.sleep(0.05)
    raise AssertionError(f"the server did not say where it listens, but: {log.read_text()}")


class Clients:
    """A process of clients, which begin at `go`."""

    def __init__(self, load: Load) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.load_client"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps(asdict(load)))
        assert self._read() == READY

    def go(self) -> None:
        """Begin."""
        self._say("go")

    def told(self) -> Told:
        """Wait until they have ended, and return what came of it."""
        found = Told(**json.loads(self._read()))
        self._process.communicate()
        return found

    def end(self) -> None:
        """End them, whatever they wait for."""
        self._process.kill()
        self._process.communicate()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def told(load: Load) -> Told:
    """Let clients do what they are to, and return what came of it."""
    clients = Clients(load)
    clients.go()
    return clients.told()


def at(values: Sequence[float], share: float) -> float:
    """Return a percentile; infinite where there is nothing."""
    return sorted(values)[min(len(values) - 1, math.ceil(len(values) * share))] if values else math.inf


def spawned_ms() -> tuple[float, float]:
    """Return how long it takes to spawn an interpreter that does nothing, and its CPU time."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    after, took = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    return took * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


class Table:
    """Prints the figures as they come, and keeps count of wrong answers."""

    def __init__(self) -> None:
        self.wrong = 0

    def title(self, cell: str) -> None:
        wall, cpu = map(statistics.median, zip(*(spawned_ms() for _ in range(15)), strict=True))
        load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
        print(f"\n{cell}   (spawn {wall:.1f} ms, {cpu:.1f} of CPU; load average {load})", flush=True)

    def row(self, what: str, figure: str, goal: str = "", *, met: bool | None = None, of: Sequence[Told] = ()) -> None:
        """Print a row; `of` is what the clients told, whose wrong answers and refusals are counted."""
        wrong = sum(each.wrong for each in of)
        refused: Counter[str] = sum((Counter(each.refused) for each in of), Counter())
        self.wrong += wrong
        verdict = "" if met is None else "met" if met else "MISSED"
        counted = f"wrong {wrong}" if of else ""
        refusals = "".join(f", {count} {kind}" for kind, count in refused.items())
        print(f"  {what:<44}{figure:<66}{goal:<24}{verdict:<8}{counted}{refusals}", flush=True)
        for shown in [each for one in of for each in one.shown][:3]:
            print(f"      {shown}", flush=True)


def cpu_seconds(process: psutil.Process) -> tuple[float, float]:
    """Return the CPU time of a process, and of its children that have ended."""
    times = process.cpu_times()
    return times.user + times.system, times.children_user + times.children_system


class Used:
    """The CPU time that a server, its zygote and the workers used since this was made."""

    def __init__(self, served: Server) -> None:
        self._server, self._zygote = served.process, served.zygote()
        self._before = self._now()

    def _now(self) -> tuple[float, float, float]:
        own, ended = cpu_seconds(self._zygote)
        return cpu_seconds(self._server)[0], own, ended

    def each(self, calls: int) -> str:
        """Return what each of so many calls used, in words: of the server, the zygote and the workers."""
        parts = [
            (after - before) * 1000 / max(calls, 1) for before, after in zip(self._before, self._now(), strict=True)
        ]
        return f"CPU {sum(parts):.2f} ms ({' + '.join(f'{each:.2f}' for each in parts)})"


def many(table: Table) -> None:
    """Many clients that make trivial calls."""
    for clients in (128, MANY):
        for era in (MODERN, LEGACY):
            with server() as served:
                running = Clients(Load(served.url, clients=clients, seconds=8, era=era, own_callers=era == LEGACY))
                used = Used(served)
                running.go()
                found = running.told()
                rate = len(found.latencies_ms) / found.seconds
                p99, most = at(found.latencies_ms, 0.99), 3 * clients / rate * 1000
                table.row(
                    f"{clients} clients, {era}",
                    f"{rate:.0f} calls/s, p99 {p99:.0f} ms, {used.each(len(found.latencies_ms))}, "
                    f"client {found.cpu_seconds * 1000 / max(len(found.latencies_ms), 1):.2f}",
                    f"≥ 350, p99 ≤ {most:.0f} ms",
                    met=rate >= 350 and p99 <= most,
                    of=[found],
                )


def memory_mb(served: Server) -> tuple[float, int]:
    """Return the memory of a server and all below it, shared pages counted once, and how many processes those are."""
    total, count = 0, 0
    for process in served.family():
        try:
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        count += 1
    return total / 1000, count


def overlapping(times: Sequence[Sequence[float]]) -> int:
    """Return how many of the intervals there were at once, at most."""
    changes = sorted([(began, 1) for began, _ended in times] + [(ended, -1) for _began, ended in times])
    now = most = 0
    for _time, change in changes:
        now += change
        most = max(most, now)
    return most


def sleeping(table: Table) -> None:
    """Many clients that each wait, in code and in a tool."""
    for where, wait in (("code", "asyncio.sleep({})"), ("a tool", "tools.slow.wait(seconds={})")):
        with server() as served:
            load = Load(served.url, MANY, 1, expected=ANY_RESULT, own_callers=True)
            told(replace(load, clients=1, code=SLEEP.format(wait=wait.format(0.01))))
            before, _count = memory_mb(served)
            found = told(replace(load, code=SLEEP.format(wait=wait.format(1))))
            figure = f"{overlapping(found.results)} at once, the last after {found.seconds:.1f} s"
            table.row(f"{MANY} clients that sleep 1 s in {where}", figure, of=[found])
            clients = Clients(
                replace(
                    load, code=SLEEP.format(wait=wait.format(LONG_SLEEP_SECONDS)), arguments={"timeout_seconds": 60}
                )
            )
            clients.go()
            ends = time.monotonic() + LONG_SLEEP_SECONDS * 0.9
            while len(served.zygote().children()) < MANY and time.monotonic() < ends:
                time.sleep(0.5)
            time.sleep(0.5)
            used, processes = memory_mb(served)
            found = clients.told()
            at_once = overlapping(found.results)
            table.row(
                f"{MANY} clients that sleep {LONG_SLEEP_SECONDS} s in {where}",
                f"{at_once} at once, {used:.0f} MB in {processes} processes ({before:.0f} before), {found.seconds:.1f} s",
                f"{MANY} in ≤ 1,500 MB",
                met=at_once == MANY and used <= 1500,
                of=[found],
            )


def delays(polite: Told, usual: Told) -> str:
    """Return in words what was added to the calls of a polite client."""
    p50, p95, worst = (at(polite.latencies_ms, share) - at(usual.latencies_ms, 0.5) for share in (0.5, 0.95, 1))
    return f"{p50:+.0f} p50, {p95:+.0f} p95, {worst:+.0f} ms worst of {len(polite.latencies_ms)}"


def beside(polite: Load, others: Load) -> Told:
    """Return what a polite client is told while others are at it."""
    loud, quiet = Clients(others), Clients(polite)
    loud.go()
    time.sleep(0.2)
    quiet.go()
    found = quiet.told()
    loud.end()
    return found


def polite(table: Table) -> None:
    """A client that makes one call after another, beside one that made very many at once, as two callers."""
    for name, code in (("trivial", "1"), ("2 s of computing", LONG)):
        with server() as served:
            one = Load(served.url, seconds=6, era=LEGACY, pause_seconds=POLITE_PAUSE_SECONDS)
            usual = told(one)
            busy = Load(served.url, MANY, seconds=60, code=code, expected=ANY_REPORT, era=LEGACY)
            found = beside(one, busy)
            figure = delays(found, usual)
            p95 = at(found.latencies_ms, 0.95) - at(usual.latencies_ms, 0.5)
            what_beside = f"a polite client beside {MANY} × {name}"
            table.row(what_beside, figure, "p95 ≤ +100 ms", met=p95 <= 100, of=[usual, found])


def agents(table: Table) -> None:
    """More agents than the server has descriptors for."""
    with server(descriptors=DESCRIPTORS) as served:
        found = told(Load(served.url, AGENTS, 1, connects_ahead=False, answer_seconds=60))
        answered, said = len(found.latencies_ms), served.log.stat().st_size / 1e6
        after = told(Load(served.url, calls=20))
        table.row(
            f"{AGENTS} agents, {DESCRIPTORS} descriptors",
            f"{answered} answered in {found.seconds:.1f} s, log {said:.2f} MB; after it {len(after.latencies_ms)} of 20",
            "all, or refused",
            met=answered + sum(found.refused.values()) == AGENTS and len(after.latencies_ms) == 20,
            of=[found, after],
        )


CELLS: dict[str, tuple[str, Callable[[Table], None]]] = {
    "many": ("Many clients, trivial calls", many),
    "sleeping": ("Clients that wait", sleeping),
    "polite": ("A polite client beside a busy one", polite),
    "agents": ("Too few descriptors", agents),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a server under load.")
    parser.add_argument("--only", action="append", choices=CELLS, help="one part of the table; may be repeated")
    chosen = parser.parse_args().only or list(CELLS)
    versions = ", ".join(f"{name} {version(name)}" for name in ("sealab", "mcp", "uvicorn", "pydantic"))
    print(f"Python {platform.python_version()}, {versions}; {os.cpu_count()} processors, Linux {platform.release()}")
    table = Table()
    began = time.monotonic()
    for name in chosen:
        title, cell = CELLS[name]
        table.title(f"{title} [{name}]")
        cell(table)
    print(f"\n{table.wrong} wrong answers; {time.monotonic() - began:.0f} s")
    sys.exit(table.wrong > 0)


if __name__ == "__main__":
    main()
