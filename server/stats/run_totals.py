"""Counts of the runs of this process, of all tenants together: what the page of metrics shows.

They only grow while the process lives, also when a tenant is closed, whose own counts end with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the histogram of durations; beyond the last there is one without a bound."""


@dataclass(slots=True)
class RunTotals:
    """Runs by status and by duration, and calls of tools by outcome, since this process started.

    `by_bucket[i]` counts the runs that took at most `BUCKETS_SECONDS[i]` and longer than the bound before it; the last
    one counts those beyond all bounds.
    """

    by_status: Counter[str] = field(default_factory=Counter)
    by_bucket: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    tool_calls_ok: int = 0
    tool_calls_failed: int = 0

    def count(self, status: str, seconds: float | None, cpu_ms: float) -> None:
        """Count a run that has ended. `seconds` is None for one that did not begin or was called off."""
        self.by_status[status] += 1
        self.cpu_seconds += cpu_ms / 1000
        if seconds is not None:
            self.by_bucket[bisect_left(BUCKETS_SECONDS, seconds)] += 1
            self.seconds += seconds

    def count_tool_calls(self, ok: int, failed: int) -> None:
        """Count the calls of tools that a run made."""
        self.tool_calls_ok += ok
        self.tool_calls_failed += failed


TOTALS = RunTotals()
"""Those of this process."""
