"""The page of metrics, `/metrics`: counts of what this process does, for a monitoring system. On with METRICS=on.

A security boundary: whoever reaches the port reads it without a token, as `/healthz`. So it shows numbers alone, of
all tenants together: no names of tenants, callers, tools or skills, and nothing that came from a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import accumulate

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .....sandbox.host.pool import PoolStats
from .....sandbox.job import Isolation, Status
from ....app import App
from ....base.stats.run_stats import BUCKETS_SECONDS, TOTALS
from ...tenants import Tenants
from ..web.tenant_apps import ServedApp

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def gauge(name: str, meaning: str, value: float) -> str:
    """Write a value that may rise and fall."""
    return _metric(name, meaning, "gauge", [(name, {}, value)])


def counter(name: str, meaning: str, value: float) -> str:
    """Write a value that only rises while the process lives. Its name ends in `_total`."""
    return _metric(name, meaning, "counter", [(name, {}, value)])


def counters(name: str, meaning: str, label: str, values: Mapping[str, float]) -> str:
    """Write several such values, one for each value of a label."""
    return _metric(name, meaning, "counter", [(name, {label: key}, value) for key, value in values.items()])


def information(name: str, meaning: str, labels: Mapping[str, str]) -> str:
    """Write labels that say what this process is. Their value is 1."""
    return _metric(name, meaning, "gauge", [(name, labels, 1)])


def histogram(name: str, meaning: str, bounds: Sequence[float], counts: Sequence[int], total: float) -> str:
    """Write a distribution: `counts` has one more than `bounds`, for what lies beyond the last; `total` is the sum."""
    samples: list[tuple[str, Mapping[str, str], float]] = [
        (f"{name}_bucket", {"le": bound}, count)
        for bound, count in zip((*map(_number, bounds), "+Inf"), accumulate(counts), strict=True)
    ]
    samples += [(f"{name}_sum", {}, total), (f"{name}_count", {}, sum(counts))]
    return _metric(name, meaning, "histogram", samples)


def _metric(name: str, meaning: str, kind: str, samples: Iterable[tuple[str, Mapping[str, str], float]]) -> str:
    lines = [f"# HELP {name} {_escaped(meaning)}", f"# TYPE {name} {kind}"]
    for sample, labels, value in samples:
        given = ",".join(f'{key}="{_escaped(text, quotes=True)}"' for key, text in labels.items())
        lines.append(f"{sample}{{{given}}} {_number(value)}" if given else f"{sample} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


METRICS_PATH = "/metrics"


class MetricsPage:
    """An ASGI app before another: it answers `GET /metrics` and passes everything else on."""

    def __init__(self, app: ASGIApp, tenants: Tenants[ServedApp]) -> None:
        self._app = app
        self._tenants = tenants
        self._version = version("sealab")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"] != METRICS_PATH:
            await self._app(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await Response(status_code=405, headers={"Allow": "GET, HEAD"})(scope, receive, send)
        else:
            await Response(self.text(), media_type=CONTENT_TYPE)(scope, receive, send)

    def text(self) -> str:
        """Return all metrics, as they are now."""
        apps = [self._tenants.own.app, *self._tenants.open_apps]
        return "".join(self._metrics(apps))

    def _metrics(self, apps: list[App]) -> Iterator[str]:
        operators = apps[0]
        yield information("sealab_build_info", "The version of this server.", {"version": self._version})
        yield gauge("sealab_tenants_open", "Tenants that are open, besides the operator's own.", len(apps) - 1)
        yield from _of_pools([operators.pools.stats(), *(_own(app.pools.stats()) for app in apps[1:])])
        background = sum(app.background.work.active_count for app in apps)
        yield gauge("sealab_background_runs_running", "Background runs that this process is at work on.", background)
        yield gauge("sealab_mcp_sessions", "MCP sessions over HTTP that have not ended.", self._mcp_sessions())
        yield from _of_runs()
        loop = operators.loop_stats
        held = loop.held_ms_total / 1000
        yield counter("sealab_event_loop_held_total", "How often the event loop was held for 0.1 s or more.", loop.held)
        yield counter("sealab_event_loop_held_seconds_total", "For how long the event loop was held so.", held)

    def _mcp_sessions(self) -> int:
        return sum(len(served.sessions.alive()) for served in (self._tenants.own, *self._tenants.open_served))


def _own(stats: Mapping[Isolation, PoolStats]) -> Mapping[Isolation, PoolStats]:
    """Return the pools that a tenant has to itself: workers of `restricted` are the operator's, and counted there."""
    return {isolation: pool for isolation, pool in stats.items() if isolation is not Isolation.RESTRICTED}


def _of_pools(every: list[Mapping[Isolation, PoolStats]]) -> Iterator[str]:
    pools = [pool for stats in every for pool in stats.values()]
    yield gauge("sealab_runs_waiting", "Runs that wait to begin.", sum(pool.waiting for pool in pools))
    yield gauge("sealab_runs_running", "Runs that compute.", sum(pool.running for pool in pools))
    yield gauge(
        "sealab_runs_resting", "Runs that wait for a tool, a user, a sleep or a turn.", sum(p.resting for p in pools)
    )
    yield gauge("sealab_workers_spare", "Workers made ahead.", sum(pool.spares for pool in pools))
    yield gauge("sealab_sessions", "Sessions of code that hold a worker.", sum(pool.sessions for pool in pools))


def _of_runs() -> Iterator[str]:
    yield counters(
        "sealab_runs_total",
        "Runs that have ended, by status.",
        "status",
        {status.value: TOTALS.by_status[status.value] for status in Status},
    )
    yield histogram(
        "sealab_run_duration_seconds",
        "How long runs took, calls of tools included.",
        BUCKETS_SECONDS,
        TOTALS.by_bucket,
        TOTALS.seconds,
    )
    yield counter("sealab_run_cpu_seconds_total", "CPU seconds of runs that have ended.", TOTALS.cpu_seconds)
    yield counters(
        "sealab_tool_calls_total",
        "Calls of tools by runs that have ended.",
        "outcome",
        {"ok": TOTALS.tool_calls_ok, "failed": TOTALS.tool_calls_failed},
    )
