"""The page of metrics, `/metrics`: counts of what this process does, for a monitoring system. Off with METRICS=off.

A security boundary: who sends no token is shown numbers alone, and under `AUTH` only from a private address and through
no proxy: no names of tenants, servers, tools, callers or skills, and nothing that came from a client. Names of tenants,
servers and tools are for a token with the scope `admin`; where nobody is authenticated, for what is sent to this
machine by its own name, and by no web page.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from ipaddress import ip_address
from itertools import accumulate
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .....sandbox.host.pool import PoolStats
from .....sandbox.job import Isolation, Json
from .....tools_registry.errors import RegistryError
from ....app import App
from ....base.identity import Right, identity_in
from ....base.stats.run_stats import BUCKETS_SECONDS, NAMES_MAX, TOTALS, Durations
from ...tenants import Tenants
from ..web.error_responses import refusal
from ..web.tenant_apps import ServedApp

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_OWN_HOST = re.compile(rb"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
_BY_PROXIES = frozenset((b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"))
_BY_OTHERS = _BY_PROXIES | {b"origin", b"referer"}
_Value = TypeVar("_Value")
_UPSTREAMS = "sealab_upstream_servers"


def gauge(name: str, meaning: str, value: float) -> str:
    """Write a value that may rise and fall."""
    return _metric(name, meaning, "gauge", [(name, {}, value)])


def counter(name: str, meaning: str, value: float) -> str:
    """Write a value that only rises while the process lives. Its name ends in `_total`."""
    return _metric(name, meaning, "counter", [(name, {}, value)])


def counters(name: str, meaning: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]) -> str:
    """Write several such values, by those of their labels."""
    return _metric(name, meaning, "counter", _samples(name, labels, values))


def _samples(
    name: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]
) -> list[tuple[str, Mapping[str, str], float]]:
    return [(name, dict(zip(labels, key, strict=True)), value) for key, value in values.items()]


def information(name: str, meaning: str, labels: Mapping[str, str]) -> str:
    """Write labels that say what this process is. Their value is 1."""
    return _metric(name, meaning, "gauge", [(name, labels, 1)])


def histograms(name: str, meaning: str, labels: Sequence[str], values: Mapping[tuple[str, ...], Durations]) -> str:
    """Write distributions, by the values of their labels."""
    samples: list[tuple[str, Mapping[str, str], float]] = []
    bounds = (*map(_number, BUCKETS_SECONDS), "+Inf")
    for key, each in values.items():
        given = dict(zip(labels, key, strict=True))
        samples += [
            (f"{name}_bucket", {**given, "le": bound}, count)
            for bound, count in zip(bounds, accumulate(each.by_bucket), strict=True)
        ]
        samples += [(f"{name}_sum", given, each.seconds), (f"{name}_count", given, sum(each.by_bucket))]
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
    """An ASGI app before another: it answers `GET /metrics` and passes everything else on.

    `authenticated` makes an app that asks for a token out of one that gets the identity; None authenticates nobody.
    """

    def __init__(
        self, app: ASGIApp, tenants: Tenants[ServedApp], authenticated: Callable[[ASGIApp], ASGIApp] | None = None
    ) -> None:
        self._app = app
        self._tenants = tenants
        self._version = version("sealab")
        self._authenticated = None if authenticated is None else authenticated(self._for_identity)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"] != METRICS_PATH:
            await self._app(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await Response(status_code=405, headers={"Allow": "GET, HEAD"})(scope, receive, send)
        elif self._authenticated is not None and any(key == b"authorization" for key, _ in scope["headers"]):
            await self._authenticated({**scope, "path": "/"}, receive, send)
        elif self._authenticated is not None and not _is_near(scope):
            text = (
                "Metrics are for the network that the server is in. Ask from there, or with a token of the scope admin."
            )
            await refusal(403, text)(scope, receive, send)
        else:
            named = self._authenticated is None and _is_local(scope)
            await (await self._answer(named=named))(scope, receive, send)

    async def _for_identity(self, scope: Scope, receive: Receive, send: Send) -> None:
        identity = identity_in(scope)
        if identity is not None and identity.may(Right.ADMIN):
            await (await self._answer(named=True))(scope, receive, send)
        else:
            text = "Names of tenants and tools are shown for the scope admin alone. Send a token with that, or none."
            await refusal(403, text)(scope, receive, send)

    async def _answer(self, *, named: bool) -> Response:
        """Return all metrics, as they are now, with or without names."""
        apps = [self._tenants.own.app, *self._tenants.open_apps]
        upstreams = {(name, str(each["state"])): 1.0 for name, each in (await _standing(apps[0])).items()}
        help_text = "Upstream servers of the operator, by how they stand."
        labels, values = _without_names(("server", "state"), upstreams, operator.add, named=named)
        states = _metric(_UPSTREAMS, help_text, "gauge", _samples(_UPSTREAMS, labels, values))
        return Response("".join((*self._metrics(apps, named=named), states)), media_type=CONTENT_TYPE)

    def _metrics(self, apps: list[App], *, named: bool) -> Iterator[str]:
        operators = apps[0]
        yield information("sealab_build_info", "The version of this server.", {"version": self._version})
        yield gauge("sealab_tenants_open", "Tenants that are open, besides the operator's own.", len(apps) - 1)
        yield from _of_pools([operators.pools.stats(), *(_own(app.pools.stats()) for app in apps[1:])])
        background = sum(app.background.work.active_count for app in apps)
        yield gauge("sealab_background_runs_running", "Background runs that this process is at work on.", background)
        yield gauge("sealab_mcp_sessions", "MCP sessions over HTTP that have not ended.", self._mcp_sessions())
        yield from _of_runs(named=named)
        loop = operators.loop_stats
        held = loop.held_ms_total / 1000
        yield counter("sealab_event_loop_held_total", "How often the event loop was held for 0.1 s or more.", loop.held)
        yield counter("sealab_event_loop_held_seconds_total", "For how long the event loop was held so.", held)

    def _mcp_sessions(self) -> int:
        return sum(len(served.sessions.alive()) for served in (self._tenants.own, *self._tenants.open_served))


async def _standing(app: App) -> Mapping[str, Mapping[str, Json]]:
    """Return how the upstream servers stand; none where their configuration cannot be read."""
    try:
        return await app.registry.standing()
    except RegistryError:
        return {}


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


def _of_runs(*, named: bool) -> Iterator[str]:
    yield _counted("sealab_runs_total", "Runs that have ended.", ("tenant", "isolation", "outcome"), TOTALS.runs, named)
    yield histograms(
        "sealab_run_duration_seconds",
        "How long runs took, calls of tools included.",
        *_without_names(("tenant", "isolation"), TOTALS.durations, _added, named=named),
    )
    cpu = "CPU seconds of runs that have ended."
    yield _counted("sealab_run_cpu_seconds_total", cpu, ("tenant", "isolation"), TOTALS.cpu_seconds, named)
    labels = ("tenant", "server", "tool", "outcome")
    yield _counted(
        "sealab_tool_calls_total", "Calls of tools by runs that have ended.", labels, TOTALS.tool_calls, named
    )
    yield histograms(
        "sealab_tool_call_duration_seconds",
        "How long calls of tools took.",
        *_without_names(("server",), TOTALS.tool_durations, _added, named=named),
    )

    tokens = (
        "Tokens that the model wrote and read, and would have by its own calls: called and defined; 4 characters each."
    )
    yield _counted("sealab_tokens_total", tokens, ("tenant", "kind"), TOTALS.tokens, named)


def _counted(name: str, meaning: str, labels: Sequence[str], values: Mapping[Any, float], named: bool) -> str:
    return counters(name, meaning, *_without_names(labels, values, operator.add, named=named))


def _without_names(
    labels: Sequence[str], values: Mapping[Any, _Value], add: Callable[[_Value, _Value], _Value], *, named: bool
) -> tuple[Sequence[str], Mapping[tuple[str, ...], _Value]]:
    """Return labels and values as they are, or without the labels that name somebody, their values added up."""
    if named:
        return labels, values
    places = [place for place, label in enumerate(labels) if label not in NAMES_MAX]
    sums: dict[tuple[str, ...], _Value] = {}
    for key, value in values.items():
        kept = tuple(key[place] for place in places)
        sums[kept] = add(sums[kept], value) if kept in sums else value
    return [labels[place] for place in places], sums


def _added(one: Durations, other: Durations) -> Durations:
    return Durations([*map(operator.add, one.by_bucket, other.by_bucket)], one.seconds + other.seconds)


def _is_near(scope: Scope) -> bool:
    """Return whether a request comes from a private address (RFC 1918, RFC 4193) itself, through no proxy."""
    client = scope.get("client")
    try:
        is_private = client is not None and ip_address(client[0]).is_private
    except ValueError:
        return False
    return is_private and not {key for key, _ in scope["headers"]} & _BY_PROXIES


def _is_local(scope: Scope) -> bool:
    """Return whether a request was sent to this machine by its own name, by no web page, and through no proxy."""
    headers = dict(scope["headers"])
    return _OWN_HOST.fullmatch(headers.get(b"host", b"")) is not None and not headers.keys() & _BY_OTHERS
