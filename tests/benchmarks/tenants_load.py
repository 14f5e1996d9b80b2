"""Many clients of many tenants at once, one tenant of them hostile by load: what the others notice, and what is left.

    python -m tests.benchmarks.tenants_load [--clients 400] [--tenants 20] [--seconds 20] [--calls 20000] [--only CELL]…

A real server over HTTP under `AUTH=tokens`, with its defaults, and clients with a token each, in processes of their own.
Machines differ and are busy, so goals are ratios. Exits 1 for a wrong answer, never for a figure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from sealab.server.access.token_text import digest_of, new_token
from sealab.server.database import HomeDatabase
from sealab.server.home import Home
from sealab.server.identity import Right
from sealab.skills_db.tokens import TokenStore
from tests.benchmarks.load import Cells, Clients, Table, at, run_cells, server, told
from tests.benchmarks.load_client import LEGACY, MODERN, Load, Told

_OPEN_AT_ONCE = 20
_SETTLING_SECONDS = 20.0
_LIFE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How many clients of how many tenants; `seconds` of each measurement, `calls` before it is looked what is left."""

    clients: int
    tenants: int
    seconds: float
    calls: int


@dataclass(frozen=True, slots=True)
class State:
    """What a server holds: its resident memory, descriptors, threads, and the processes below it."""

    rss_bytes: int
    descriptors: int
    threads: int
    processes: int

    @staticmethod
    def of(process: psutil.Process) -> State:
        """Look at it now."""
        return State(
            process.memory_info().rss,
            process.num_fds(),
            process.num_threads(),
            len(process.children(recursive=True)),
        )

    def __str__(self) -> str:
        return (
            f"{self.rss_bytes / 1e6:.1f} MB, {self.descriptors} descriptors, {self.threads} threads, "
            f"{self.processes} processes"
        )


@dataclass(frozen=True, slots=True)
class Served:
    """A server, and the tokens of each of its tenants."""

    url: str
    process: psutil.Process
    tokens: Mapping[str, list[str]]

    @property
    def hostile(self) -> list[str]:
        """The tokens of the tenant that is hostile."""
        return self.tokens["tenant-0"]

    @property
    def others(self) -> list[str]:
        """The tokens of all others, those of each tenant next to those of the next."""
        rows = zip(*(tokens for tenant, tokens in self.tokens.items() if tenant != "tenant-0"), strict=True)
        return [token for row in rows for token in row]


@contextmanager
def tenants(scale: Scale, *, warm_clients: int | None = None) -> Iterator[Served]:
    """Run a server under `AUTH=tokens` with a token for each client; of each tenant so many, or all, have called."""
    tokens: dict[str, list[str]] = {}
    settings = {"AUTH": "tokens", "TENANTS_OPEN_MAX": str(scale.tenants + 1)}
    with server(lambda home: tokens.update(tokens_in(home, scale)), **settings) as running:
        served = Served(running.url, running.process, tokens)
        every = [token for some in tokens.values() for token in some[:warm_clients]]
        # Opens each tenant, and has each token known: what the first calls build is not what is measured.
        told(Load(served.url, len(every), 1, era=LEGACY, tokens=every, open_at_once=20, ends_sessions=True))
        yield served


def tokens_in(folder: Path, scale: Scale) -> dict[str, list[str]]:
    """Prepare a home, and put tokens for all clients into its database; return those of each tenant."""
    Home(folder).prepare()
    database = HomeDatabase(None, folder)
    store, now = TokenStore(database()), time.time()
    made: dict[str, list[str]] = {}
    for tenant in (f"tenant-{number}" for number in range(scale.tenants)):
        for number in range(scale.clients // scale.tenants):
            token, name = new_token(), f"client-{number}"
            store.put(
                digest_of(token),
                name=name,
                tenant=tenant,
                principal=name,
                scopes=[Right.RUN.value],
                now=now,
                expires=now + _LIFE_SECONDS,
            )
            made.setdefault(tenant, []).append(token)
    database.close()
    return made


@contextmanager
def hostile(served: Served) -> Iterator[None]:
    """Have the hostile tenant send everything that costs, meanwhile; then print what it was answered."""
    command = [sys.executable, "-m", "tests.benchmarks.tenants_hostile"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"url": served.url, "tokens": served.hostile}) + "\n")
        process.stdin.flush()
        time.sleep(3)  # until all of it is on its way
        try:
            yield
        finally:
            process.stdin.write("end\n")
            process.stdin.flush()
            answers = json.loads(process.stdout.readline() or "{}")
    print(f"      the hostile tenant: {', '.join(f'{count} {kind}' for kind, count in sorted(answers.items()))}")


def load_of(served: Served, era: str, **more: Any) -> Load:
    """Return what the clients of the other tenants do."""
    tokens = served.others
    return Load(served.url, len(tokens), era=era, tokens=tokens, open_at_once=_OPEN_AT_ONCE, **more)


def row(table: Table, what: str, found: Told, alone: Told | None = None) -> None:
    """Print throughput and latencies, beside those without the hostile tenant."""
    p50, p99 = (at(found.latencies_ms, share) for share in (0.5, 0.99))
    figure = f"{len(found.latencies_ms) / found.seconds:.0f} calls/s, p50 {p50:.0f} ms, p99 {p99:.0f} ms"
    if alone is None:
        table.row(what, figure, of=[found])
        return
    ratio = at(found.latencies_ms, 0.99) / at(alone.latencies_ms, 0.99)
    table.row(what, f"{figure} ({ratio:.1f} of the p99 alone)", "p99 ≤ 3 of alone", met=ratio <= 3, of=[found])


def beside(table: Table, scale: Scale) -> None:
    """The others alone, then beside the hostile tenant, then alone again."""
    with tenants(scale) as served:
        for era in (MODERN, LEGACY):
            load = load_of(served, era, seconds=scale.seconds, ends_sessions=True)
            alone = told(load)
            row(table, f"{load.clients} clients, {era}", alone)
            clients = Clients(load)
            with hostile(served):
                clients.go()
                found = clients.told()
            row(table, f"the same, {era}, and the hostile tenant", found, alone)
        quiet(served)
        row(table, f"the same alone again, {MODERN}", told(load_of(served, MODERN, seconds=scale.seconds)))


def memory(table: Table, scale: Scale) -> None:
    """What a client costs: connected, with a session in the older era, after one call."""
    for era in (MODERN, LEGACY):
        with tenants(scale, warm_clients=1) as served:
            before = quiet(served)
            clients = Clients(load_of(served, era, calls=1, pause_seconds=20))
            clients.go()
            time.sleep(15)
            grown = (State.of(served.process).rss_bytes - before.rss_bytes) / len(served.others) / 1000
            table.row(f"memory of a client, {era}", f"{grown:.0f} kB", of=[clients.told()])


def left(table: Table, scale: Scale) -> None:
    """What is left after so many calls of all clients: a quarter of them first, which build what is kept anyway."""
    with tenants(scale) as served:
        each = max(1, scale.calls // len(served.others) // 4)
        states = []
        for number in range(4):
            era = (MODERN, LEGACY)[number % 2]
            found = told(load_of(served, era, calls=each, ends_sessions=True))
            states.append(quiet(served))
            table.row(f"after {len(served.others) * each * (number + 1)} calls, {era}", str(states[-1]), of=[found])
        first, last = states[0], states[-1]
        grown = (last.rss_bytes - first.rss_bytes) / (3 * each * len(served.others)) / 1000
        same = (last.descriptors, last.processes) <= (first.descriptors, first.processes)
        table.row("left of each call since the first quarter", f"{grown:.3f} kB", "no descriptor or process", met=same)


def quiet(served: Served) -> State:
    """Return what a server holds once it holds no more connections and workers than it did a moment ago."""
    ends = time.monotonic() + _SETTLING_SECONDS
    before = State.of(served.process)
    while True:
        time.sleep(6)  # idle connections are closed after five seconds
        now = State.of(served.process)
        if time.monotonic() > ends or (now.descriptors, now.processes) == (before.descriptors, before.processes):
            return now
        before = now


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a server of many tenants under load.")
    parser.add_argument("--clients", type=int, default=400)
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--only", action="append", help="beside, memory or left; may be repeated")
    chosen = parser.parse_args()
    scale = Scale(chosen.clients, chosen.tenants, chosen.seconds, chosen.calls)
    cells: Cells = {
        "beside": ("Clients of many tenants, and one that is hostile", partial(beside, scale=scale)),
        "memory": ("What a client costs", partial(memory, scale=scale)),
        "left": ("What is left", partial(left, scale=scale)),
    }
    print(scale)
    run_cells(cells, chosen.only)


if __name__ == "__main__":
    main()
