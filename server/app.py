"""The composition root: makes the parts, wires them, and ends them together."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from ..sandbox.host.pools import JobRunner, Pools, SharedRunner
from ..sandbox.host.scheduler import OwnBound
from ..sandbox.job import Isolation
from ..skills_db import DATABASE_FILE
from ..workspace.store import Workspace
from .base.database import HomeDatabase, database_of
from .base.home import Home
from .base.host_work import ended_within, settled
from .base.notices.notices import Changed, Notices
from .base.notices.readiness import Readiness, ServerSetup
from .base.settings import AuditMode, Settings, Switch, background_settings
from .base.startup.process_setup import LoopErrors
from .base.stats.watchdog import LoopStats
from .base.storage.opening import archive_of, definitions_of, open_workspace, watch_definitions, watch_store
from .base.storage.whole_workspace import with_whole_workspace
from .governance.access.standing import standing_in
from .governance.audit.audit_log import AuditLog, audit_store
from .governance.audit.trail import UNAUDITED, AuditTrail
from .governance.policy.access import NO_POLICY, Decider
from .governance.policy.policy_file import PolicyFile, path_of, policy_of
from .governance.shares.cpu_days import CpuDays
from .governance.shares.limits import OwnLimits
from .governance.shares.shared_bounds import Parts
from .governance.shares.shares import Shares
from .governance.sign_ins.sign_ins import SignIns
from .privacy.of_home import operators_key, privacy_of
from .privacy.privacy import Privacy
from .use_cases.host_functions import file_calls
from .use_cases.host_functions.broker import Handler, handlers_of
from .use_cases.host_functions.discovery_calls import DiscoveryCalls
from .use_cases.host_functions.privacy_calls import PrivacyCalls
from .use_cases.host_functions.registry_calls import RegistryCalls
from .use_cases.host_functions.run_calls import RunCalls
from .use_cases.host_functions.skill_calls import SkillCalls
from .use_cases.host_functions.workspace_calls import WorkspaceCalls
from .use_cases.journal.journal import Journal
from .use_cases.runs.archive import RunKeeper
from .use_cases.runs.background.background import Background
from .use_cases.runs.background.background_work import BackgroundWork
from .use_cases.runs.executor import Executor
from .use_cases.runs.isolations import Offer, offer
from .use_cases.skills.duplicates import SkillHints
from .use_cases.skills.schedules import Schedules
from .use_cases.skills.search import SkillIndex
from .use_cases.skills.service import SkillService
from .use_cases.skills.use_cases import SkillContext
from .use_cases.upstream_tools.registry import Registry
from .use_cases.upstream_tools.registry_state import state_of

if TYPE_CHECKING:
    from ..skills_db.audit.audit_store import AuditStore
    from .use_cases.replicas.replicas import Replicas, TenantPlaces

CLOSING_SECONDS = 2.0
"""How long the end of the process waits for each: work that was begun, records of runs, lines of the audit."""
AUDIT_CLOSING_SECONDS = 8.0
"""The same for the audit log, of which an orderly end must lose nothing on a busy machine."""
_LOG = logging.getLogger(__name__)
_SWITCH_SECONDS = 0.001
"""How long a thread that computes may hold the interpreter while the event loop waits for it: each of the many system
calls of a run lets it go. Python's own 5 ms add up to a tenth of a second."""

_COLLECTIONS = 100
"""Garbage collections of the younger objects before one of the oldest. Requests that wait are old soon, hundreds of
objects each, and no garbage: with Python's own 10, 400 at once stop the event loop again and again to look at them."""


@dataclass(frozen=True, slots=True)
class App:
    """One running sealab: what the tools and the command line work with."""

    settings: Settings
    home: Home
    workspace: Workspace
    pools: Pools
    privacy: Privacy
    database: HomeDatabase
    registry: Registry
    executor: Executor
    skills: SkillContext
    journal: Journal
    background: Background
    sign_ins: SignIns
    notices: Notices
    readiness: Readiness
    schedules: Schedules
    audit: AuditTrail = UNAUDITED
    replicas: Replicas | None = None
    """The other servers that are one sealab with this one; None where it is alone."""
    loop_stats: LoopStats = field(default_factory=LoopStats)


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the tenants of one server have in common, in the operator's database. It ends with the operator's app."""

    policy: Decider
    audit: AuditTrail
    cpu_days: CpuDays
    limits: OwnLimits
    notices: Notices
    readiness: Readiness
    parts: Parts
    operators: HomeDatabase | None = None
    """The operator's database, where that is not the home's own."""
    shelf: SkillService | None = None
    is_others: bool = False
    operators_sign_ins: SignIns | None = None
    """The operator's own sign-ins, where this home is a tenant's."""
    replicas: Replicas | None = None


@asynccontextmanager
async def running(
    settings: Settings, home: Home, *, serves: bool = False, policy: Decider | None = None, listens: bool = False
) -> AsyncIterator[App]:
    """Make the home and the parts, with workers starting in the background; on the way out no process is left.

    `serves` says that this is a server, which records every run, and no command that runs one program. The home may be
    a tenant's: it then has workers of its own. `policy` is what decides in place of POLICY, where it is opened already
    and watched by whoever opened it. A server that `listens` may be one of several, by REPLICA_ADDRESS.
    Raises `HomeError` where the home cannot be made, `SettingsError` where nothing that is allowed can run code or the
    policy cannot be used, and `LevelMissing` where the machine protects too little.
    """
    _prepare_process()
    home.prepare()
    own_policy = await asyncio.to_thread(policy_of, settings, home) if policy is None else None
    database = database_of(settings.database_url, home)
    operators_root = home.operators or home.root
    operators = database if home.operators is None else database_of(settings.database_url, Home(operators_root))
    limits = OwnLimits(settings, operators if serves else None)
    offered = offer(settings, home, limits.of_home(home.tenant))
    decider = policy or own_policy or NO_POLICY
    store = audit_store(operators, operators_key(settings, operators_root, operators))
    audit = _audit(settings, home, store, serves=serves)
    privacy = privacy_of(settings, home, database, policy=decider, on_types=audit.of_privacy, operators=operators)
    notices = Notices(settings.database_url if serves and operators.is_server else None)
    setup = ServerSetup(settings, home.servers_file, path_of(settings, home))
    readiness = Readiness(operators if notices.is_shared else None, setup.now)
    parts = Parts(operators if notices.is_shared else None)
    background = _own_background_pools(settings, home)
    async with AsyncExitStack() as stack:
        stack.callback(operators.close)
        replicas = None
        if listens and settings.replica_address is not None:
            own_key = operators_key(settings, operators_root, operators)
            replicas = await stack.enter_async_context(_among_replicas(settings.replica_address, operators, own_key))
        shared = _Shared(
            decider,
            audit,
            CpuDays(operators),
            limits,
            notices,
            readiness,
            parts,
            operators,
            operators_sign_ins=_beside_tenant(settings, home, operators),
            replicas=replicas,
        )
        composed = _composed(
            settings, home, offered, background, database=database, privacy=privacy, serves=serves, shared=shared
        )
        app = await stack.enter_async_context(composed)
        if isinstance(own_policy, PolicyFile):
            watching = asyncio.create_task(own_policy.watch())
            stack.callback(watching.cancel)
        if notices.is_shared:
            stack.push_async_callback(_closed, "That this server has ended", readiness.leave)
            for lasting in (notices.listen(), readiness.watch()):
                stack.callback(asyncio.create_task(lasting).cancel)
        yield app


def _beside_tenant(settings: Settings, home: Home, operators: HomeDatabase) -> SignIns | None:
    """Return the operator's own sign-ins for a tenant's home without the operator's app; None for the operator's."""
    if home.operators is None:
        return None
    return SignIns(operators, operators_key(settings, home.operators_root, operators))


@asynccontextmanager
async def _among_replicas(
    address: str, database: HomeDatabase, own_key: Callable[[], bytes]
) -> AsyncIterator[Replicas]:
    """Make this server one of several. Raises `VaultKeyError`, `VaultKeyWrong`."""
    from .use_cases.replicas.replicas import Replicas

    key = await asyncio.to_thread(own_key)
    replicas = Replicas(database, key, address=address, version=version("sealab"))
    async with replicas.serving():
        yield replicas


@asynccontextmanager
async def running_tenant(operators: App, home: Home) -> AsyncIterator[App]:
    """Make the parts of a tenant beside those of the operator, whose workers of `restricted` it shares.

    Full Python sees a workspace, so what runs it is the tenant's own, and starts with the first run that asks for it.
    Nothing else of a tenant is anybody else's. Raises as `running`.
    """
    settings = operators.settings
    home.prepare()
    own_bound = operators.executor.shares.limits.of_home(home.tenant)
    offered = _shared_offer(settings, home, operators.pools.runner, operators.executor.offer, own_bound)

    def background(workspace: Workspace) -> tuple[Pools, Offer]:
        background_pools = operators.background.executor().pools
        own = background_settings(settings)
        shared = _shared_offer(own, home, background_pools.runner, operators.background.executor().offer)
        return Pools(with_whole_workspace(shared.makers, workspace), shared.is_there), shared

    executor = operators.executor
    shared = _Shared(
        executor.policy,
        replace(executor.audit, tenant=home.tenant),
        executor.shares.cpu_days,
        executor.shares.limits,
        operators.notices,
        operators.readiness,
        executor.shares.parts,
        operators.database,
        operators.skills.service,
        is_others=True,
        operators_sign_ins=operators.sign_ins,
        replicas=operators.replicas,
    )
    database = database_of(settings.database_url, home)
    privacy = privacy_of(
        settings,
        home,
        database,
        policy=shared.policy,
        on_types=shared.audit.of_privacy,
        operators=operators.database,
        key=operators.privacy.key,
        detectors=operators.privacy.detectors,
    )
    composed = _composed(
        settings, home, offered, background, database=database, privacy=privacy, serves=True, shared=shared
    )
    async with composed as app:
        yield app


def _shared_offer(
    settings: Settings,
    home: Home,
    runner: Callable[[Isolation], Awaitable[JobRunner]],
    operators: Offer,
    own_bound: OwnBound | None = None,
) -> Offer:
    """Return what a tenant is offered: what the operator is, with shared workers where they see no folder."""
    found = offer(settings, home, own_bound)
    makers = {isolation: maker for isolation, maker in found.makers.items() if isolation in operators.makers}
    if Isolation.RESTRICTED in makers:
        makers[Isolation.RESTRICTED] = lambda: SharedRunner(home.tenant, partial(runner, Isolation.RESTRICTED))
    return replace(found, makers=makers)


@asynccontextmanager
async def _composed(
    settings: Settings,
    home: Home,
    offered: Offer,
    background_pools: Callable[[Workspace], tuple[Pools, Offer]],
    *,
    database: HomeDatabase,
    privacy: Privacy,
    serves: bool,
    shared: _Shared,
) -> AsyncIterator[App]:
    """Make and wire the parts of one home. `background_pools` makes what background runs run in, at the first."""
    definitions = definitions_of(settings, home)
    if definitions is not None:
        await asyncio.to_thread(definitions.bring_if_answered)
    with await asyncio.to_thread(open_workspace, settings, home, database) as workspace:
        archive = RunKeeper(archive_of(workspace, kept=settings.runs_kept))
        journal = Journal(settings, database, privacy.key, keeps=serves and settings.journal is Switch.ON)
        service = SkillService(
            database, keeps_plain_runs=serves, bytes_max=settings.skills_quota_mb * 1_000_000, shelf=shared.shelf
        )
        sign_ins = SignIns(
            database, privacy.key, audit=shared.audit, tenant=home.tenant, operators=shared.operators_sign_ins
        )
        state = state_of(home, database, shared.operators or database)
        registry = Registry(
            home,
            discovers=settings.discover,
            policy=shared.policy,
            sign_ins=sign_ins,
            state=state,
            parts=shared.parts,
        )
        index = SkillIndex(service)
        registry.extra_documents = index
        host_functions = _host_functions(workspace, privacy, registry)
        try:
            async with Pools(with_whole_workspace(offered.makers, workspace), offered.is_there) as pools:
                places = None if shared.replicas is None else _places_of(shared.replicas, home)
                host_functions.update(handlers_of(RunCalls(pools, journal, places)))
                executor = Executor(
                    settings,
                    pools,
                    offered,
                    host_functions,
                    privacy,
                    archive,
                    service,
                    journal,
                    Shares(settings, shared.cpu_days, home.tenant, parts=shared.parts, limits=shared.limits),
                    policy=shared.policy,
                    audit=shared.audit,
                    workspace=workspace,
                    places=places,
                    hints=SkillHints(index.known),
                    wider_skills=service.wider_among,
                )
                skills = SkillContext(executor, service, index, registry, workspace)
                host_functions.update(handlers_of(SkillCalls(skills)))  # saving a skill runs code
                async with (
                    _background(executor, home, partial(background_pools, workspace)) as background,
                    AsyncExitStack() as ending,
                ):
                    standing = standing_in(settings, shared.operators or database)
                    schedules = Schedules(skills, background, standing)
                    background.work.fire = schedules.fire
                    app = App(
                        settings,
                        home,
                        workspace,
                        pools,
                        privacy,
                        database,
                        registry,
                        executor,
                        skills,
                        journal,
                        background,
                        sign_ins,
                        shared.notices,
                        shared.readiness,
                        schedules,
                        shared.audit,
                        shared.replicas,
                    )
                    _hear(ending, home, shared, service, registry)
                    lasting = [privacy.keep_purged(), background.work.serve(), watch_store(workspace)] if serves else []
                    if definitions is not None and serves:
                        lasting.append(watch_definitions(definitions))
                    tasks = [asyncio.create_task(each) for each in lasting]
                    try:
                        yield app
                    finally:
                        for task in tasks:
                            task.cancel()
                        executor.shares.close()
        finally:
            await _close(database, privacy, service, registry, journal=journal, archive=archive, shared=shared)


def _hear(ending: AsyncExitStack, home: Home, shared: _Shared, service: SkillService, registry: Registry) -> None:
    """Notify the parts of a home of what others change in its database and the operator's, until the stack ends."""

    def hear(changed: Changed) -> None:
        if changed is not Changed.DOCUMENTS:
            service.have_changed()
        registry.notice_change()

    if shared.shelf is not None:
        shared.shelf.watchers.append(service.have_changed)
        ending.callback(shared.shelf.watchers.remove, service.have_changed)
    if shared.notices.is_shared:
        for tenant in {None, None if home.operators is None else home.tenant}:
            ending.enter_context(shared.notices.heard(tenant, hear))


def _places_of(replicas: Replicas, home: Home) -> TenantPlaces:
    from .use_cases.replicas.replicas import TenantPlaces

    return TenantPlaces(replicas, home.tenant)


def _audit(settings: Settings, home: Home, store: Callable[[], AuditStore], *, serves: bool) -> AuditTrail:
    """Return what notes the events of a home; those of a command only where that is required."""
    if settings.audit is AuditMode.OFF or not (serves or settings.audit is AuditMode.REQUIRED):
        return UNAUDITED
    return AuditTrail(AuditLog(store), home.tenant, is_required=settings.audit is AuditMode.REQUIRED)


def _own_background_pools(settings: Settings, home: Home) -> Callable[[Workspace], tuple[Pools, Offer]]:
    def made(workspace: Workspace) -> tuple[Pools, Offer]:
        offered = offer(background_settings(settings), home)
        return Pools(with_whole_workspace(offered.makers, workspace), offered.is_there), offered

    return made


@asynccontextmanager
async def _background(
    executor: Executor, home: Home, pools_of_its_own: Callable[[], tuple[Pools, Offer]]
) -> AsyncIterator[Background]:
    """Make what takes background runs, with pools of their own that start with the first; at the end they are left."""
    settings = background_settings(executor.settings)
    made: list[Executor] = []

    def own_executor() -> Executor:
        if not made:
            pools, offered = pools_of_its_own()
            made.append(replace(executor, settings=settings, pools=pools, offer=offered, takes_queued=True))
        return made[0]

    file = None if settings.database_url else home.root / DATABASE_FILE
    work = BackgroundWork(own_executor, executor.journal, runs_max=settings.background_runs_max, database_file=file)
    place = "" if home.operators is None else f"{home.tenant}/"
    try:
        yield Background(own_executor, executor.journal, work, settings.background_queue_max, executor.audit, place)
    finally:
        await work.aclose()
        await executor.cancelled.aclose()
        for each in made:
            await each.pools.aclose()


def _prepare_process() -> None:
    asyncio.get_running_loop().set_exception_handler(LoopErrors())
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*gc.get_threshold()[:2], _COLLECTIONS)


def _host_functions(workspace: Workspace, privacy: Privacy, registry: Registry) -> dict[str, Handler]:
    """Return what code can call and needs neither workers nor skills."""
    files = WorkspaceCalls(workspace)
    return handlers_of(
        files,
        PrivacyCalls(privacy, workspace),
        DiscoveryCalls(registry, privacy.filters),
        RegistryCalls(registry, privacy, files.save),
    ) | file_calls.handlers(workspace)


async def _close(
    database: HomeDatabase,
    privacy: Privacy,
    service: SkillService,
    registry: Registry,
    *,
    journal: Journal,
    archive: RunKeeper,
    shared: _Shared,
) -> None:
    own_audit = UNAUDITED if shared.is_others else shared.audit
    async with AsyncExitStack() as ending:  # each ends whatever the others raise, the last one named first
        ending.callback(database.close)
        if not shared.is_others:
            ending.push_async_callback(shared.parts.close)  # after every run, which has some of them
        audited = _Beside("The lines of the audit log", own_audit.close)
        ending.push_async_callback(audited.end)
        ending.push_async_callback(_closed, "The lines of the privacy audit", privacy.close)
        ending.push_async_callback(_closed, "The journals of the last runs", journal.close)
        if not shared.is_others:
            ending.push_async_callback(_closed, "The CPU seconds of the last runs", shared.cpu_days.close)
        ending.push_async_callback(_closed, "The records of the last runs", service.close)
        ending.callback(audited.begin)
        ending.push_async_callback(settled, CLOSING_SECONDS)
        ending.push_async_callback(registry.close)
        ending.push_async_callback(archive.aclose)


class _Beside:
    """Closes something while other things are closed, since it may take longer than each of them."""

    def __init__(self, what: str, close: Callable[[], None]) -> None:
        self._closed = partial(_closed, what, close, AUDIT_CLOSING_SECONDS)
        self._closing: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._closing = asyncio.create_task(self._closed())

    async def end(self) -> None:
        if self._closing is not None:
            await self._closing


async def _closed(what: str, close: Callable[[], None], seconds: float = CLOSING_SECONDS) -> None:
    """Write what no caller waits for, unless the database does not answer."""
    if not await ended_within(seconds, close):
        _LOG.warning("%s could not be written: the database did not answer in time.", what)
