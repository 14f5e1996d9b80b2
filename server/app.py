"""The composition root: makes the parts, wires them, and ends them together."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from ..sandbox.host.pools import Pools
from ..skills_db import DATABASE_FILE
from ..workspace.archive import RunArchive
from ..workspace.store import Workspace
from .database import HomeDatabase
from .home import Home
from .host_functions import (
    file_calls,
    privacy_calls,
    registry_calls,
    resource_calls,
    run_calls,
    skill_calls,
    workspace_calls,
)
from .host_functions.broker import Handler
from .host_work import ended_within, settled
from .journal.journal import Journal
from .privacy.privacy import Privacy
from .runs.archive import RunKeeper
from .runs.background.background import Background
from .runs.background.background_work import BackgroundWork
from .runs.executor import Executor
from .runs.isolations import offer
from .settings import Settings, Switch, background_settings
from .sign_ins.sign_ins import SignIns
from .skills.context import SkillContext
from .skills.search import SkillIndex
from .skills.service import SkillService
from .startup.process_setup import LoopErrors
from .stats.watchdog import LoopStats
from .upstream_tools.registry import Registry

CLOSING_SECONDS = 2.0
"""How long the end of the process waits for each: work that was begun, records of runs, lines of the audit."""
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
    loop_stats: LoopStats = field(default_factory=LoopStats)


@asynccontextmanager
async def running(settings: Settings, home: Home, *, serves: bool = False) -> AsyncIterator[App]:
    """Make the home and the parts, with workers starting in the background; on the way out no process is left.

    `serves` says that this is a server, which records every run, and no command that runs one program.
    Raises `HomeError` where the home cannot be made, `SettingsError` where nothing that is allowed can run code, and
    `LevelMissing` where the machine protects too little.
    """
    home.prepare()
    _prepare_process()
    with Workspace(home.workspace, quota_bytes=settings.workspace_quota_mb * 1_000_000) as workspace:
        archive = RunKeeper(RunArchive(workspace, kept=settings.runs_kept))
        offered = offer(settings, home)
        database = HomeDatabase(settings.database_url, home.root)
        privacy = Privacy(settings, home.root, database)
        journal = Journal(settings, database, privacy.key, keeps=serves and settings.journal is Switch.ON)
        service = SkillService(database, keeps_plain_runs=serves)
        sign_ins = SignIns(database, privacy.key)
        registry = Registry(home, discovers=settings.discover, sign_ins=sign_ins)
        index = SkillIndex(service)
        registry.extra_documents.append(index)
        registry.refreshers.append(index.refresh)
        host_functions = _host_functions(workspace, privacy, registry)
        try:
            async with Pools(offered.makers) as pools:
                host_functions.update(run_calls.handlers(pools, journal))
                executor = Executor(settings, pools, offered, host_functions, privacy, archive, service, journal)
                skills = SkillContext(executor, service, index, registry, workspace)
                host_functions.update(skill_calls.handlers(skills))  # saving a skill runs code
                async with _background(executor, home) as background:
                    app = App(
                        settings,
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
                    )
                    lasting = [privacy.keep_purged(), background.work.serve()] if serves else []
                    tasks = [asyncio.create_task(each) for each in lasting]
                    try:
                        yield app
                    finally:
                        for task in tasks:
                            task.cancel()
        finally:
            await _close(database, privacy, service, registry, journal=journal, archive=archive)


@asynccontextmanager
async def _background(executor: Executor, home: Home) -> AsyncIterator[Background]:
    """Make what takes background runs, with pools of their own that start with the first; at the end they are left."""
    settings = background_settings(executor.settings)
    made: list[Executor] = []

    def own_executor() -> Executor:
        if not made:
            offered = offer(settings, home)
            made.append(replace(executor, settings=settings, pools=Pools(offered.makers), offer=offered))
        return made[0]

    file = None if settings.database_url else home.root / DATABASE_FILE
    work = BackgroundWork(own_executor, executor.journal, runs_max=settings.background_runs_max, database_file=file)
    try:
        yield Background(own_executor, executor.journal, work, settings.background_queue_max)
    finally:
        await work.aclose()
        for each in made:
            await each.pools.aclose()


def _prepare_process() -> None:
    asyncio.get_running_loop().set_exception_handler(LoopErrors())
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*gc.get_threshold()[:2], _COLLECTIONS)


def _host_functions(workspace: Workspace, privacy: Privacy, registry: Registry) -> dict[str, Handler]:
    """Return what code can call and needs neither workers nor skills."""
    return {
        **workspace_calls.handlers(workspace),
        **file_calls.handlers(workspace),
        **privacy_calls.handlers(privacy, workspace),
        **registry_calls.handlers(registry, privacy),
        **resource_calls.handlers(registry, privacy),
    }


async def _close(
    database: HomeDatabase,
    privacy: Privacy,
    service: SkillService,
    registry: Registry,
    *,
    journal: Journal,
    archive: RunKeeper,
) -> None:
    async with AsyncExitStack() as ending:  # each ends whatever the others raise, the last one named first
        ending.callback(database.close)
        ending.push_async_callback(_closed, "The lines of the privacy audit", privacy.close)
        ending.push_async_callback(_closed, "The journals of the last runs", journal.close)
        ending.push_async_callback(_closed, "The records of the last runs", service.close)
        ending.push_async_callback(settled, CLOSING_SECONDS)
        ending.push_async_callback(registry.close)
        ending.push_async_callback(archive.aclose)


async def _closed(what: str, close: Callable[[], None]) -> None:
    """Write what no caller waits for, unless the database does not answer."""
    if not await ended_within(CLOSING_SECONDS, close):
        _LOG.warning("%s could not be written: the database did not answer in time.", what)
