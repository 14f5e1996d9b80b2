"""What one more replica adds, what a run costs PostgreSQL, and what many agents see: figures of this machine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from tests.benchmarks.load import at, told
from tests.benchmarks.load_client import MODERN, Load

from .agents import AGENT_SECONDS, Agents
from .checks import Wrong
from .harness import Running, cluster
from .report import LeftOutError, Report

PROCESSORS = 0.5
"""What each replica has: so that three of them leave something for nginx, PostgreSQL and the clients."""
REPLICAS = (1, 2, 3)
SECONDS = 10.0
COMPUTES, WAITS = 24, 120
"""Clients of each kind, whatever the number of replicas."""
COMPUTING = "sum(i * i for i in range(100_000))\n{n} + 1"
WAITING = "import asyncio\nawait asyncio.sleep(1)\n{n} + 1"
RUNS, IDLE_SECONDS = 300, 10.0
STORED = {
    "1 + 1": "{n} + 1",
    "a file written": "write_file('cost.txt', '{n}')\n{n} + 1",
    "a file read": "read_file('cost.txt')\n{n} + 1",
}
STORED_RUNS = 40
STATEMENTS_GOAL = 3.0
_TRANSACTIONS = ("BEGIN", "COMMIT", "ROLLBACK")
Figure = Callable[[Report, argparse.Namespace], str]


def throughput(report: Report, chosen: argparse.Namespace) -> str:
    """Runs that compute and runs that wait, a second, with one, two and three replicas of equal shares."""
    found: dict[str, dict[int, float]] = {"computing": {}, "waiting": {}}
    for replicas in REPLICAS:
        with cluster(replicas, store=chosen.store, isolated=not chosen.loopback, processors=PROCESSORS) as running:
            tokens = running.tokens([f"load-{number}" for number in range(WAITS)])
            told(Load(running.balancer.url, COMPUTES, 3, era=MODERN, tokens=tokens))
            for kind, code, clients in (("computing", COMPUTING, COMPUTES), ("waiting", WAITING, WAITS)):
                load = Load(running.balancer.url, clients, None, SECONDS, code=code, era=MODERN, tokens=tokens)
                before = _used(running)
                seen = told(load)
                cpu_ms = (_used(running) - before) / max(len(seen.latencies_ms), 1) * 1000
                found[kind][replicas] = len(seen.latencies_ms) / seen.seconds
                p50, p99 = (at(seen.latencies_ms, share) for share in (0.5, 0.99))
                report.line(
                    f"{kind}, {replicas} × {PROCESSORS:g} processors",
                    None,
                    f"{found[kind][replicas]:.1f} runs/s of {clients} clients, p50 {p50:.0f} ms, p99 {p99:.0f} ms, "
                    f"{cpu_ms:.0f} ms of CPU of the replicas each, "
                    f"{sum(seen.refused.values())} refused, {seen.wrong} wrong {seen.shown[:1]}",
                )
    return "; ".join(
        f"{kind}: " + ", ".join(f"{rate / rates[1]:.2f} × with {count}" for count, rate in rates.items())
        for kind, rates in found.items()
    )


def _used(running: Running) -> float:
    return sum(each.used_seconds() for each in running.shares.values())


class Costs(NamedTuple):
    """What PostgreSQL was asked: statements, those that only mark out transactions, bytes, WAL bytes."""

    statements: int
    transactions: int
    received: int
    sent: int
    wal: int
    most: list[tuple[int, str]]

    def minus(self, other: Costs) -> Costs:
        """Return what was added since."""
        return Costs(*(mine - its for mine, its in zip(self[:5], other[:5], strict=True)), self.most)


def _costs(running: Running, connection: psycopg.Connection) -> Costs:
    begins = "(upper(split_part(query, ' ', 1)) = ANY(%(kinds)s) OR query LIKE 'SELECT set_config(%%')"
    mine = "query NOT LIKE '%%pg_stat_statements%%' AND query NOT LIKE '%%pg_current_wal%%'"
    of_database = "dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
    row = connection.execute(
        f"SELECT coalesce(sum(calls) FILTER (WHERE NOT {begins}), 0), coalesce(sum(calls) FILTER (WHERE {begins}), 0)"
        f" FROM pg_stat_statements WHERE {mine} AND {of_database}",
        {"kinds": list(_TRANSACTIONS)},
    ).fetchone()
    assert row is not None
    most = connection.execute(
        f"SELECT sum(calls)::int, left(regexp_replace(query, '\\s+', ' ', 'g'), 90) AS text FROM pg_stat_statements"
        f" WHERE {mine} AND NOT {begins} AND {of_database} GROUP BY text ORDER BY 1 DESC LIMIT 8",
        {"kinds": list(_TRANSACTIONS)},
    ).fetchall()
    wal = connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    assert wal is not None
    received, sent = running.isolated.sent_bytes("database") if running.network.isolated else (0, 0)
    return Costs(int(row[0]), int(row[1]), received, sent, int(wal[0]), most)


def database(report: Report, chosen: argparse.Namespace) -> str:
    """What a replica costs PostgreSQL: idle, and for a run without calls."""
    with cluster(store=chosen.store, isolated=not chosen.loopback) as running, running.connect() as connection:
        connection.execute("CREATE EXTENSION pg_stat_statements")
        tokens = running.tokens([f"load-{number}" for number in range(4)])
        told(Load(running.balancer.url, 4, 30, era=MODERN, tokens=tokens))
        time.sleep(15)  # until what follows the first calls is written down
        connection.execute("SELECT pg_stat_statements_reset()")
        before = _costs(running, connection)
        time.sleep(IDLE_SECONDS)
        idle = _costs(running, connection).minus(before)
        count = len(running.names)
        report.line(
            "idle, of each replica",
            None,
            f"{idle.statements / count / IDLE_SECONDS:.1f} statements/s, "
            f"{idle.transactions / count / IDLE_SECONDS:.1f} of BEGIN, COMMIT and settings/s, "
            f"{(idle.received + idle.sent) / count / IDLE_SECONDS:.0f} bytes/s, "
            f"{idle.wal / count / IDLE_SECONDS:.0f} bytes of WAL/s",
        )
        report.line("the most frequent of them", None, _shown(idle, IDLE_SECONDS * count))
        connection.execute("SELECT pg_stat_statements_reset()")
        before, began = _costs(running, connection), time.monotonic()
        seen = told(Load(running.balancer.url, 4, RUNS // 4, era=MODERN, tokens=tokens))
        time.sleep(6)  # what is written behind the answers
        took = time.monotonic() - began
        ran = _costs(running, connection).minus(before)
        runs = len(seen.latencies_ms)
        share = took / IDLE_SECONDS
        statements = (ran.statements - idle.statements * share) / runs
        report.line(
            "a run without calls",
            None,
            f"{statements:.2f} statements ({ran.statements / runs:.2f} with the idle ones), "
            f"{(ran.transactions - idle.transactions * share) / runs:.2f} of BEGIN, COMMIT and settings, "
            f"{(ran.received - idle.received * share) / runs:.0f} bytes to and "
            f"{(ran.sent - idle.sent * share) / runs:.0f} from PostgreSQL, {(ran.wal - idle.wal * share) / runs:.0f} of WAL",
        )
        report.line("the most frequent of them", None, _shown(ran, runs))
        rows = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'cluster' AND pid <> pg_backend_pid()"
        ).fetchone()
        assert rows is not None
        report.line("connections of each replica", None, f"{rows[0] / count:.1f} after {runs} runs of 4 clients")
        if statements > STATEMENTS_GOAL:
            raise Wrong(f"{statements:.2f} statements a run, of {STATEMENTS_GOAL:g} at most")
        return f"{statements:.2f} statements a run, of {STATEMENTS_GOAL:g} at most"


def store(report: Report, chosen: argparse.Namespace) -> str:
    """What a run costs the object store, in requests."""
    with cluster(store=chosen.store, isolated=not chosen.loopback) as running:
        if running.store is None:
            raise LeftOutError("the replicas keep files in a folder (--store none)")
        tokens = running.tokens(["load-1"])
        told(Load(running.balancer.url, 1, 12, code=STORED["a file written"], era=MODERN, tokens=tokens))
        said, before = [], running.store.is_told("count")
        time.sleep(IDLE_SECONDS)
        idle = (running.store.is_told("count") - before) / IDLE_SECONDS
        for what, code in STORED.items():
            before, began = running.store.is_told("count"), time.monotonic()
            seen = told(Load(running.balancer.url, 1, STORED_RUNS, code=code, era=MODERN, tokens=tokens))
            asked = running.store.is_told("count") - before - idle * (time.monotonic() - began)
            p50 = at(seen.latencies_ms, 0.5)
            said.append(f"{what}: {asked / STORED_RUNS:.1f} requests, p50 {p50:.0f} ms")
        return f"idle {idle:.2f} requests/s of three replicas; " + "; ".join(said)


def _shown(costs: Costs, by: float) -> str:
    return "; ".join(f"{calls / by:.2f} × {text}" for calls, text in costs.most[:6])


def agents(report: Report, chosen: argparse.Namespace) -> str:
    """Many agents: most think, some call in bursts."""
    count = chosen.agents
    with cluster(store=chosen.store, isolated=not chosen.loopback) as running:
        quiet = {name: each.rss_bytes() for name, each in running.replicas.items()}
        used = sum(each.cpu_seconds() for each in running.replicas.values())
        simulated = Agents(running, count, chosen.slower)
        simulated.run()
        used = sum(each.cpu_seconds() for each in running.replicas.values()) - used
        loaded = {name: each.rss_bytes() for name, each in running.replicas.items()}
        grown = sum(loaded.values()) - sum(quiet.values())
        with running.connect() as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = 'cluster'").fetchone()
        for kind, line in simulated.lines():
            report.line(f"agents: {kind}", None, line)
        report.line(
            "agents: processors", None, f"{used / max(simulated.calls, 1) * 1000:.0f} ms a call, of all replicas"
        )
        report.line(
            "agents: memory",
            None,
            f"{sum(quiet.values()) / 1e6:.0f} MB before, {sum(loaded.values()) / 1e6:.0f} MB after, of all replicas and "
            f"their workers: {grown / count / 1000:.0f} kB an agent; {row[0] if row else 0} connections to PostgreSQL",
        )
        if simulated.wrong:
            raise Wrong(f"{len(simulated.wrong)} wrong answers: {simulated.wrong[:3]}")
        return f"{count} agents for {AGENT_SECONDS:g} s, with thoughts {chosen.slower:g} times as long as stated"


FIGURES: dict[str, Figure] = {
    "throughput by replicas": throughput,
    "the cost to PostgreSQL": database,
    "the cost to the store": store,
    "agents": agents,
}
