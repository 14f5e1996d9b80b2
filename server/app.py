"""The composition root: makes the parts, wires them, and ends them together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ..sandbox.pool import Pool, PoolSettings
from ..sandbox.run import Limits
from ..workspace.archive import RunArchive
from ..workspace.store import Workspace
from .home import Home
from .settings import Settings
from .stats import RunStats


@dataclass(frozen=True, slots=True)
class App:
    """One running sealab: what the tools and the command line work with."""

    settings: Settings
    workspace: Workspace
    archive: RunArchive
    pool: Pool
    stats: RunStats = field(default_factory=RunStats)


@asynccontextmanager
async def running(settings: Settings, home: Home) -> AsyncIterator[App]:
    """Make the home and the parts, with workers starting in the background; on the way out no process is left.

    Raises `HomeError` where the home cannot be made, and `LevelMissing` where the machine protects too little.
    """
    home.prepare()
    with Workspace(home.workspace, quota_bytes=settings.workspace_quota_mb * 1_000_000) as workspace:
        archive = RunArchive(workspace, kept=settings.runs_kept)
        async with Pool(_pool_settings(settings)) as pool:
            yield App(settings, workspace, archive, pool)


def _pool_settings(settings: Settings) -> PoolSettings:
    return PoolSettings(
        spares=settings.workers_spare,
        workers_max=settings.workers_max,
        sessions_max=settings.sessions_max,
        session_idle_seconds=settings.session_idle_seconds,
        maximum=Limits(
            timeout_seconds=settings.max_timeout_seconds,
            memory_mb=settings.max_memory_mb,
            pids_max=settings.pids_max,
        ),
        required_level=settings.required_level,
    )
