"""One pool for each isolation that is offered, each started when the first job asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Protocol, Self

from ..errors import LimitRefused, SessionRefused
from ..job import HostCalls, Isolation, Job, Outcome, Rebuild, Recorder
from .pool import PoolStats
from .repl_sessions import SessionState, shown


class JobRunner(Protocol):
    """What runs jobs at one isolation, as `Pool` does: entered once, left at the end, perhaps by another task."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None: ...

    async def ready(self) -> None:
        """Wait until a job could start at once. Raises `SandboxError` when none ever can."""

    async def run(
        self, job: Job, host_calls: HostCalls, recorder: Recorder | None = None, rebuild: Rebuild | None = None
    ) -> Outcome:
        """Run one job and report it; as `Pool.run`."""
        ...

    def has_session(self, name: str) -> bool:
        """Return whether a session of that name is alive here."""
        ...

    async def end_session(self, name: str) -> bool:
        """End a session; return whether there was one."""
        ...

    def close_session(self, name: str) -> bool:
        """End a session once it is idle; return whether there was one."""
        ...

    def sessions_of(self, caller: str) -> list[SessionState]:
        """Return the sessions that a caller began."""
        ...

    def stats(self) -> PoolStats:
        """Count what there is now."""
        ...


class Pools:
    """Hands each job to the pool of its isolation. A session belongs to the isolation that it began in.

    `makers` says, for each isolation offered, how its pool is made; the first one is the default and starts with the
    context, the others with their first job. `is_there` says whether one of the others can be had now.
    """

    def __init__(
        self,
        makers: Mapping[Isolation, Callable[[], JobRunner]],
        is_there: Callable[[Isolation], bool] = lambda _isolation: True,
    ) -> None:
        self._makers = makers
        self._is_there = is_there
        self._alive: dict[Isolation, JobRunner] = {}
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self.default = next(iter(makers))

    async def __aenter__(self) -> Self:
        await self.runner(self.default)
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all that was started: for pools that were never entered, and start with their first job."""
        await self._stack.aclose()

    @property
    def offered(self) -> tuple[Isolation, ...]:
        """The isolations that a job may ask for, the default first."""
        return tuple(each for each in self._makers if self._is_there(each))

    async def ready(self, isolation: Isolation | None = None) -> None:
        """Wait until a job could start at once there. Raises `SandboxError` when none ever can."""
        await (await self.runner(isolation or self.default)).ready()

    async def run(
        self, job: Job, host_calls: HostCalls, recorder: Recorder | None = None, rebuild: Rebuild | None = None
    ) -> Outcome:
        """Run one job at its isolation; as `Pool.run`.

        Raises `LimitRefused` for an isolation that is not offered, `SessionRefused` for a session of another one.
        """
        if job.session is not None:
            home = self.home_of(job.session)
            if home not in (None, job.isolation):
                raise SessionRefused(
                    f"The session {shown(job.session)!r} runs at the isolation {home}, and cannot go on at "
                    f"{job.isolation}. Leave isolation out, or use another session."
                )
        return await (await self.runner(job.isolation)).run(job, host_calls, recorder, rebuild)

    def home_of(self, session: str) -> Isolation | None:
        """Return the isolation of a session, or None where there is no such session."""
        return next((isolation for isolation, runner in self._alive.items() if runner.has_session(session)), None)

    async def end_session(self, name: str) -> bool:
        """End a session; return whether there was one."""
        home = self.home_of(name)
        return home is not None and await self._alive[home].end_session(name)

    def close_session(self, name: str) -> bool:
        """End a session once no call is at work in it; return whether there was one."""
        home = self.home_of(name)
        return home is not None and self._alive[home].close_session(name)

    def sessions_of(self, caller: str) -> list[tuple[Isolation, SessionState]]:
        """Return the sessions that a caller began, each with its isolation."""
        return [(isolation, each) for isolation, runner in self._alive.items() for each in runner.sessions_of(caller)]

    def stats(self) -> Mapping[Isolation, PoolStats]:
        """Count what there is now in each pool that has started."""
        return {isolation: runner.stats() for isolation, runner in self._alive.items()}

    async def runner(self, isolation: Isolation) -> JobRunner:
        """Return what runs the jobs of an isolation, started. Raises `LimitRefused` for one that is not offered."""
        maker = self._makers.get(isolation)
        if maker is None or (isolation not in self._alive and not self._is_there(isolation)):
            raise LimitRefused(f"The isolation {isolation} is not offered here. Ask for {' or '.join(self.offered)}.")
        if isolation not in self._alive:
            async with self._starting:
                if isolation not in self._alive:
                    self._alive[isolation] = await self._stack.enter_async_context(maker())
        return self._alive[isolation]
