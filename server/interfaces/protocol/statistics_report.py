"""What `get_execution_stats` answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NotRequired, cast

import anyio.to_thread
from typing_extensions import TypedDict

from ....sandbox.host.pool import PoolStats
from ....sandbox.host.repl_sessions import SessionState
from ....sandbox.job import Isolation, SessionVariable
from ....sandbox.levels import LayerFinding, Level, Probe
from ....skills_db.errors import SkillsDbError
from ...app import App
from ...base.errors import HostWorkBusy
from ...base.host_work import Kind, in_thread
from ...base.stats.run_stats import Process, Runs, processes_now
from ...governance.caller import Caller
from ...governance.shares.shares import SharesReport
from ...use_cases.runs.ledger import CHARS_PER_TOKEN
from ...use_cases.upstream_tools.registry_report import RegistryReport

DATABASE_SECONDS = 5.0
"""How long the database may take to count; after that, everything else is reported."""


class LimitsReport(TypedDict):
    """The operator's limits: what a call gets when it does not ask, and the most it may ask for."""

    timeout_seconds: float
    max_timeout_seconds: float
    memory_mb: int
    max_memory_mb: int
    pids_max: int
    cpus: float | None
    output_max_chars: int
    tool_calls_max: int
    workers_max: int
    queue_max: int
    queue_seconds: float
    sessions_max: int
    session_idle_seconds: float
    runs_kept: int


class OneIsolation(TypedDict):
    """One isolation that was used: the layers that its newest worker had really switched on, and its workers now."""

    layers: list[str]
    level: str
    spares: NotRequired[int]
    running: NotRequired[int]
    sessions: NotRequired[int]


class IsolationReport(TypedDict):
    """What keeps code apart from the machine; `layers` and `level` are those of the isolation that `auto` begins with.

    `available` may be asked for; `missing` are allowed but cannot be had, each with the reason; `used` have run code.
    """

    available: list[str]
    missing: dict[str, str]
    layers: list[str]
    level: str
    required_level: str
    used: dict[str, OneIsolation]


class PoolReport(TypedDict):
    """Workers now, and how many workers and zygotes were made since the start.

    `running` ones compute, `resting` ones wait for something or for a turn to go on, `waiting` runs have not begun.
    """

    spares: int
    running: int
    resting: int
    waiting: int
    sessions: int
    workers_made: int
    zygotes_made: int


class EventLoopReport(TypedDict):
    """How often one thing held the event loop for 100 ms or more, so that nothing was answered, and for how long."""

    held: int
    held_ms_total: float
    held_ms_max: float


class HeldReport(TypedDict):
    """A variable that a session holds: its class, about how many bytes it takes, and how large it is in words."""

    name: str
    kind: str
    bytes: int
    extent: NotRequired[str]


class SessionHolds(TypedDict):
    """A session of the caller: the memory that it may have, and its largest variables after its last call."""

    name: str
    isolation: str
    calls: int
    idle_seconds: float | None
    memory_mb: int
    held: list[HeldReport]


class WorkspaceReport(TypedDict):
    """How full the workspace is, in bytes and in files and folders together."""

    used_bytes: int
    quota_bytes: int
    entries: int


class VaultCounts(TypedDict):
    """How many values stand behind tokens, in how many scopes, and of which types.

    `problem` says why nothing could be counted, where that is so.
    """

    values: int
    scopes: int
    types: dict[str, int]
    problem: NotRequired[str]


class SkillsReport(TypedDict):
    """How many skills there are, how many versions of them, and how often they ran, since they were first saved.

    `recorded_runs` counts by status the records that are kept of runs of code and skills, other servers' included.
    `problem` says why nothing could be counted, where that is so.
    """

    skills: int
    versions: int
    runs: int
    recorded_runs: dict[str, int]
    problem: NotRequired[str]


class TokensReport(TypedDict):
    """Tokens that the model wrote and read for the caller's last runs, and those that direct calls would have taken."""

    runs: int
    written: int
    read: int
    calls_directly: int
    definitions_directly: int


class ServersReport(TypedDict):
    """The servers on the same database, this one too: how many, and what is not the same on all of them.

    `listening` says whether this one hears of changes at once, and `gaps` how often it lost the connection for that.
    """

    count: int
    differing: dict[str, int]
    listening: bool
    gaps: int


class Statistics(TypedDict):
    """The limits, the protection, and what has happened since the server started.

    What tells of other tenants is shown to none of them: workers, the process, and the event loop.
    """

    limits: LimitsReport
    isolation: IsolationReport
    runs: Runs
    shares: SharesReport
    sessions: list[SessionHolds]
    pool: NotRequired[PoolReport]
    server: NotRequired[Process]
    workers: NotRequired[Process]
    event_loop: NotRequired[EventLoopReport]
    servers: NotRequired[ServersReport]
    workspace: WorkspaceReport
    vault: VaultCounts
    skills: SkillsReport
    tokens: NotRequired[TokensReport]
    registry: RegistryReport
    uptime_seconds: float


async def statistics_of(app: App, caller: Caller, *, of_machine: bool = True) -> Statistics:
    """Look at everything now, and at what the caller has used and is shown.

    Without `of_machine` it is what this app has, and nothing that others share.
    """
    pools = app.pools.stats()
    usage = await in_thread(Kind.FILES, app.workspace.usage)
    vault, skills, tokens = await asyncio.gather(_vault(app), _skills(app), _tokens(app, caller))
    statistics = Statistics(
        limits=cast("LimitsReport", {name: getattr(app.settings, name) for name in LimitsReport.__annotations__}),
        isolation=_isolation(app, pools, of_machine=of_machine),
        runs=app.executor.stats.summary(),
        shares=app.executor.shares.report(caller.scope),
        sessions=[_session(isolation, each) for isolation, each in app.pools.sessions_of(caller.scope)],
        workspace=WorkspaceReport(used_bytes=usage.used_bytes, quota_bytes=usage.quota_bytes, entries=usage.entries),
        vault=vault,
        skills=skills,
        registry=await app.registry.statistics(caller.identity),
        uptime_seconds=round(app.executor.stats.uptime_seconds(), 3),
    )
    if tokens is not None:
        statistics["tokens"] = tokens
    if of_machine:
        server, workers = await anyio.to_thread.run_sync(processes_now)
        statistics["pool"] = _pool(pools)
        statistics["server"], statistics["workers"] = server, workers
        if app.notices.is_shared:
            statistics["servers"] = ServersReport(
                count=app.readiness.count,
                differing=dict(app.readiness.differing),
                listening=app.notices.is_listening,
                gaps=app.notices.gaps,
            )
        statistics["event_loop"] = EventLoopReport(
            held=app.loop_stats.held,
            held_ms_total=round(app.loop_stats.held_ms_total, 3),
            held_ms_max=round(app.loop_stats.held_ms_max, 3),
        )
    return statistics


def _isolation(app: App, pools: Mapping[Isolation, PoolStats], *, of_machine: bool) -> IsolationReport:
    default = pools[app.pools.default]
    return IsolationReport(
        available=[isolation.value for isolation in app.pools.offered],
        missing={isolation.value: reason for isolation, reason in app.executor.offer.missing.items()},
        layers=list(default.layers),
        level=level_of(default.layers).value,
        required_level=app.settings.required_level.value,
        used={isolation.value: _one(pool, of_machine=of_machine) for isolation, pool in pools.items() if pool.workers},
    )


def _one(pool: PoolStats, *, of_machine: bool) -> OneIsolation:
    report = OneIsolation(layers=list(pool.layers), level=level_of(pool.layers).value)
    if of_machine:
        report |= {"spares": pool.spares, "running": pool.running, "sessions": pool.sessions}
    return report


def _session(isolation: Isolation, session: SessionState) -> SessionHolds:
    return SessionHolds(
        name=session.name,
        isolation=isolation.value,
        calls=session.calls,
        idle_seconds=session.idle_seconds,
        memory_mb=session.memory_mb,
        held=[_held(each) for each in session.held],
    )


def _held(held: SessionVariable) -> HeldReport:
    report = HeldReport(name=held.name, kind=held.kind, bytes=held.bytes)
    if held.extent:
        report["extent"] = held.extent
    return report


def _pool(pools: Mapping[Isolation, PoolStats]) -> PoolReport:
    names = {"workers_made": "workers", "zygotes_made": "zygotes"}
    counts = {
        name: sum(getattr(pool, names.get(name, name)) for pool in pools.values())
        for name in PoolReport.__annotations__
    }
    return cast("PoolReport", counts)


async def _vault(app: App) -> VaultCounts:
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            vault = await app.privacy.counts()
    except (SkillsDbError, HostWorkBusy, TimeoutError) as error:
        return VaultCounts(values=0, scopes=0, types={}, problem=_problem(error))
    return VaultCounts(values=vault.values, scopes=vault.scopes, types=dict(vault.types))


async def _skills(app: App) -> SkillsReport:
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            counts, recorded = await app.skills.service.ask(
                lambda store: (store.counts(), app.skills.service.run_store().count_by_status())
            )
    except (SkillsDbError, HostWorkBusy, TimeoutError) as error:
        return SkillsReport(skills=0, versions=0, runs=0, recorded_runs={}, problem=_problem(error))
    return SkillsReport(skills=counts.skills, versions=counts.versions, runs=counts.runs, recorded_runs=recorded)


async def _tokens(app: App, caller: Caller) -> TokensReport | None:
    service = app.skills.service
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            use = await service.ask(lambda _store: service.run_store().use_of(caller.scope))
    except (SkillsDbError, HostWorkBusy, TimeoutError):
        return None  # `skills` says why
    written, read, called, defined = (chars // CHARS_PER_TOKEN for chars in use[2:])
    return TokensReport(runs=use.runs, written=written, read=read, calls_directly=called, definitions_directly=defined)


def _problem(error: Exception) -> str:
    return str(error) or (
        f"The database did not answer within {DATABASE_SECONDS:g} seconds, so nothing was counted. Ask again in a "
        "moment."
    )


def level_of(layers: Iterable[str]) -> Level:
    """Return the level that these active layers amount to."""
    return Probe(tuple(LayerFinding(layer, available=True, detail="active") for layer in layers)).level
