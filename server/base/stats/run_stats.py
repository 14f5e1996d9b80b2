"""What this server has done so far and what it uses now."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import TypedDict

from ....sandbox.job import Outcome, Status

if TYPE_CHECKING:
    import psutil

BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the histogram of durations; beyond the last there is one without a bound."""


NAMES_MAX = {"tenant": 50, "server": 50, "tool": 500}
"""Names that each label has at most; what comes after them is counted as `OTHER`."""
OTHER = "other"


@dataclass(slots=True)
class Durations:
    """How long things took. `by_bucket[i]` counts those of at most `BUCKETS_SECONDS[i]` and more than the bound before.

    The last one counts those beyond all bounds.
    """

    by_bucket: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.by_bucket[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        self.seconds += seconds


class EndedCall(NamedTuple):
    """One call of a tool that has ended: whose tool it was (empty for one that was not found), and how it went."""

    server: str
    tool: str
    ok: bool
    seconds: float


@dataclass(slots=True)
class RunTotals:
    """Runs and calls of tools by what the labels of `/metrics` say of them, since this process started."""

    runs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By tenant, isolation and outcome."""
    durations: defaultdict[tuple[str, str], Durations] = field(default_factory=lambda: defaultdict(Durations))
    """By tenant and isolation."""
    cpu_seconds: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """By tenant and isolation."""
    tool_calls: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """By tenant, server, tool and outcome."""
    tool_durations: defaultdict[tuple[str], Durations] = field(default_factory=lambda: defaultdict(Durations))
    """By server."""
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By tenant and kind: written and read through sealab, called and defined without it."""
    _names: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def count(self, tenant: str, isolation: str, outcome: str, seconds: float | None, cpu_ms: float) -> None:
        """Count a run that has ended. `seconds` is None for one that did not begin or was called off."""
        tenant = self._bounded("tenant", tenant)
        self.runs[tenant, isolation, outcome] += 1
        self.cpu_seconds[tenant, isolation] += cpu_ms / 1000
        if seconds is not None:
            self.durations[tenant, isolation].add(seconds)

    def count_tool_calls(self, tenant: str, calls: Iterable[EndedCall]) -> None:
        """Count the calls of tools that a run made."""
        tenant = self._bounded("tenant", tenant)
        for call in calls:
            server = self._bounded("server", call.server)
            tool = self._bounded("tool", call.tool) if server != OTHER else OTHER
            self.tool_calls[tenant, server, tool, "ok" if call.ok else "failed"] += 1
            self.tool_durations[server,].add(call.seconds)

    def count_tokens(self, tenant: str, tokens: Mapping[str, int]) -> None:
        """Count tokens of a run by their kind."""
        tenant = self._bounded("tenant", tenant)
        for kind, count in tokens.items():
            self.tokens[tenant, kind] += count

    def _bounded(self, label: str, name: str) -> str:
        known = self._names[label]
        if name not in known and len(known) >= NAMES_MAX[label]:
            return OTHER
        known.add(name)
        return name


TOTALS = RunTotals()
"""Those of this process."""


KEPT_DURATIONS = 10_000


class Latency(TypedDict):
    """How long runs took, in milliseconds, over the last `KEPT_DURATIONS` of them; null before the first."""

    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


class Runs(TypedDict):
    """How many runs ended, in all and by status, since the server started."""

    total: int
    by_status: dict[str, int]
    latency_ms: Latency
    cpu_ms_total: float


class Process(TypedDict):
    """One group of processes now: resident memory in MB (10^6 bytes), processor time in seconds."""

    processes: int
    memory_mb: float
    cpu_seconds: float


@dataclass(slots=True)
class RunStats:
    """Counts runs as they end."""

    started: float = field(default_factory=time.monotonic)
    by_status: Counter[str] = field(default_factory=Counter)
    cpu_ms: float = 0.0
    durations_ms: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_DURATIONS))

    def count(self, outcome: Outcome, tenant: str, tool_calls: Iterable[EndedCall] = ()) -> None:
        """Count one run of a tenant that ended with an outcome, and the calls of tools that it made."""
        self.by_status[outcome.status.value] += 1
        began = outcome.status is not Status.BUSY
        if began:
            self.durations_ms.append(outcome.duration_ms)
        self.cpu_ms += outcome.cpu_ms or 0.0
        seconds = outcome.duration_ms / 1000 if began else None
        TOTALS.count(tenant, outcome.isolation.value, outcome.status.value, seconds, outcome.cpu_ms or 0.0)
        TOTALS.count_tool_calls(tenant, tool_calls)

    def count_cancelled(self, tenant: str, isolation: str) -> None:
        """Count one run of a tenant that its caller called off."""
        self.by_status[Status.CANCELLED.value] += 1
        TOTALS.count(tenant, isolation, Status.CANCELLED.value, None, 0.0)

    def uptime_seconds(self) -> float:
        """Return how long this server has been up."""
        return time.monotonic() - self.started

    def summary(self) -> Runs:
        """Return the counts and percentiles."""
        ordered = sorted(self.durations_ms)
        return Runs(
            total=self.by_status.total(),
            by_status={status.value: self.by_status[status.value] for status in Status},
            latency_ms=Latency(
                p50=percentile(ordered, 0.50),
                p95=percentile(ordered, 0.95),
                p99=percentile(ordered, 0.99),
                max=ordered[-1] if ordered else None,
            ),
            cpu_ms_total=round(self.cpu_ms, 3),
        )


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the nearest-rank percentile of sorted values: the least value that `share` of them do not exceed."""
    if not ordered:
        return None
    rank = max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)
    return ordered[min(rank, len(ordered) - 1)]


def processes_now() -> tuple[Process, Process]:
    """Return what the server itself uses, and what its children (zygote, spares, runs, sessions) use together."""
    import psutil

    server = psutil.Process(os.getpid())
    return _used_by([server]), _used_by(server.children(recursive=True))


def _used_by(processes: Sequence[psutil.Process]) -> Process:
    import psutil

    memory = cpu = 0.0
    count = 0
    for process in processes:
        try:
            times = process.cpu_times()
            memory += process.memory_info().rss
            cpu += times.user + times.system
            count += 1
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it ended while being counted, or has left this user behind
    return Process(processes=count, memory_mb=round(memory / 1e6, 3), cpu_seconds=round(cpu, 3))
