"""The composition root: makes the parts, wires them, and ends them together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ..sandbox.pools import Pools
from ..workspace.archive import RunArchive
from ..workspace.store import Workspace
from . import workspace_calls
from .broker import Handler
from .home import Home
from .isolations import Offer, offer
from .settings import Settings
from .stats import RunStats


@dataclass(frozen=True, slots=True)
class App:
    """One running sealab: what the tools and the command line work with."""

    settings: Settings
    workspace: Workspace
    archive: RunArchive
    pools: Pools
    offer: Offer
    host_functions: Mapping[str, Handler]
    stats: RunStats = field(default_factory=RunStats)


@asynccontextmanager
async def running(settings: Settings, home: Home) -> AsyncIterator[App]:
    """Make the home and the parts, with workers starting in the background; on the way out no process is left.

    Raises `HomeError` where the home cannot be made, `SettingsError` where nothing that is allowed can run code, and
    `LevelMissing` where the machine protects too little.
    """
    home.prepare()
    with Workspace(home.workspace, quota_bytes=settings.workspace_quota_mb * 1_000_000) as workspace:
        archive = RunArchive(workspace, kept=settings.runs_kept)
        offered = offer(settings, home)
        async with Pools(offered.makers) as pools:
            yield App(settings, workspace, archive, pools, offered, host_functions=workspace_calls.handlers(workspace))
