"""The pool of isolation `container`: finds an engine and starts containers with the first job, and rests in between.

    async with ContainerPool(ContainerSettings(…)) as pool:
        outcome = await pool.run(Job("import numpy", isolation=Isolation.CONTAINER), host_calls)

After `idle_seconds` without a job or a session every container is ended; the next job starts them again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ..confine import Level
from ..host.pool import Pool, PoolSettings
from ..host.pools import Forwards, JobRunner
from ..job import HostCalls, Isolation, Job, Outcome, Rebuild, TraceRecorder
from ..wire.zygote_config import ZygoteConfig
from . import engine, image
from .container_workers import Containers, ContainerSetup
from .engine import Engine
from .image import ContainerImage

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What the operator allows in containers.

    `folder` is where images and the engine's state are kept, `wanted` the operator's engine, as `engine.find` takes it.
    """

    pool: PoolSettings
    image: ContainerImage
    folder: Path
    wanted: str | None = None
    idle_seconds: float = 600.0


class ContainerPool(Forwards):
    """Runs jobs in containers, each in one that holds no other; the same as `Pool` to its user."""

    def __init__(self, settings: ContainerSettings) -> None:
        self._settings = settings
        self._engine: Engine | None = None
        self._starting = asyncio.Lock()
        self._busy = 0
        self._rest: asyncio.TimerHandle | None = None
        self._resting: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._rest is not None:
            self._rest.cancel()
        await asyncio.gather(*self._resting)
        await self._end()

    async def ready(self) -> None:
        """Wait until a job could start at once. Raises `ContainerMissing` when none ever can."""
        async with self._used() as pool:
            await pool.ready()

    async def run(
        self, job: Job, host_calls: HostCalls, recorder: TraceRecorder | None = None, rebuild: Rebuild | None = None
    ) -> Outcome:
        """Run one job in a container and report it; as `Pool.run`.

        Also raises `ContainerMissing` when no container can be had: then nothing of the code ran.
        """
        async with self._used() as pool:
            return await pool.run(job, host_calls, recorder, rebuild)

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[JobRunner]:
        self._busy += 1
        if self._rest is not None:
            self._rest.cancel()
        try:
            async with self._starting:
                if self._runner is None:
                    self._runner = await self._started()
            yield self._runner
        finally:
            self._busy -= 1
            if not self._busy:
                self._rest = asyncio.get_running_loop().call_later(self._settings.idle_seconds, self._stop_when_idle)

    async def _started(self) -> Pool:
        settings = self._settings
        code = await asyncio.to_thread(image.code, settings.folder)
        if self._engine is None:  # it is found once
            state, cpus = settings.folder / "engine", settings.pool.cpus is not None
            self._engine = await engine.find(settings.wanted, settings.image, code, state, cpus=cpus)
            _LOG.info("Containers run with %s.", self._engine.title)
        found = self._engine

        def launch(config: ZygoteConfig) -> Containers:
            # They do not concern what is outside; the container itself separates the files.
            inside = replace(config, workspace=None, required=Level.LIMITS)
            if found.cpus_held:
                inside = replace(inside, cpus=None)
            return Containers(
                ContainerSetup(
                    found,
                    settings.image,
                    code,
                    None if settings.pool.workspace is None else Path(settings.pool.workspace),
                    inside,
                    processes=settings.pool.maximum.pids_max,
                    cpus=config.cpus if found.cpus_held else None,
                )
            )

        pool = Pool(replace(settings.pool, isolation=Isolation.CONTAINER), launch)
        return await pool.__aenter__()

    def _stop_when_idle(self) -> None:
        if self._busy:
            return
        if self.stats().sessions:
            self._rest = asyncio.get_running_loop().call_later(self._settings.idle_seconds, self._stop_when_idle)
            return
        task = asyncio.create_task(self._end())
        self._resting.add(task)
        task.add_done_callback(self._resting.discard)

    async def _end(self) -> None:
        async with self._starting:
            if self._busy:
                return
            pool, self._runner = self._runner, None
            if pool is not None:
                await pool.__aexit__(None, None, None)
