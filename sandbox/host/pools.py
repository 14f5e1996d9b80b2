"""One pool for each isolation that is offered, each started when the first job asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import Protocol, Self

from ..errors import LimitRefused, SessionRefused
from ..job import HostCalls, Isolation, Job, Outcome, Rebuild, TraceRecorder
from .pool import PoolStats
from .repl_sessions import SessionState, shown


class JobRunner(AbstractAsyncContextManager["JobRunner", None], Protocol):
    """What runs jobs at one isolation, as `Pool` does: entered once, left at the end, perhaps by another task."""

    async def ready(self) -> None:
        """Wait until a job could start at once. Raises `SandboxError` when none ever can."""

    async def run(
        self, job: Job, host_calls: HostCalls, recorder: TraceRecorder | None = None, rebuild: Rebuild | None = None
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


class Forwards:
    """Runs jobs in another runner, of which it is a user among others, or which may not be there yet."""

    _runner: JobRunner | None = None

    @property
    def _there(self) -> JobRunner:
        if self._runner is None:
            raise RuntimeError("It is entered before it runs anything.")
        return self._runner

    def _named(self, name: str) -> str:
        """Return what the other calls a session or a caller of this name."""
        return name

    async def ready(self) -> None:
        """Wait until a job could start at once. Raises `SandboxError` when none ever can."""
        await self._there.ready()

    def has_session(self, name: str) -> bool:
        """Return whether a session of that name is alive here."""
        return self._runner is not None and self._runner.has_session(self._named(name))

    async def end_session(self, name: str) -> bool:
        """End a session; return whether there was one."""
        return self._runner is not None and await self._runner.end_session(self._named(name))

    def close_session(self, name: str) -> bool:
        """End a session once it is idle; return whether there was one."""
        return self._runner is not None and self._runner.close_session(self._named(name))

    def sessions_of(self, caller: str) -> list[SessionState]:
        """Return the sessions that a caller began."""
        return [] if self._runner is None else self._runner.sessions_of(self._named(caller))

    def stats(self) -> PoolStats:
        """Count what there is now."""
        return PoolStats() if self._runner is None else self._runner.stats()


class SharedRunner(Forwards):
    """One tenant's part in a pool that all tenants share; `pool` returns that once it has started.

    A security boundary: names of sessions and callers mean something within one tenant alone. What the pool calls them
    has the tenant and a character in front that no name of a tenant has, so a name of another cannot be said. Only a
    pool that shows its workers no folder may be shared: each worker is used once, or by one session.
    """

    def __init__(self, tenant: str, pool: Callable[[], Awaitable[JobRunner]]) -> None:
        self._tenant = tenant
        self._pool = pool
        self._sessions: set[str] = set()
        self._running = 0
        self._done = 0

    async def __aenter__(self) -> Self:
        self._runner = await self._pool()
        return self

    async def __aexit__(self, *_: object) -> None:
        for name in self._alive():
            await self._there.end_session(name)

    async def run(
        self, job: Job, host_calls: HostCalls, recorder: TraceRecorder | None = None, rebuild: Rebuild | None = None
    ) -> Outcome:
        """Run one job and report it; as `Pool.run`."""
        session = None if job.session is None else self._named(job.session)
        if session is not None:
            self._sessions.add(session)
        job = replace(job, tenant=self._tenant, caller=self._named(job.caller), session=session)
        self._running += 1
        try:
            return await self._there.run(job, host_calls, recorder, rebuild)
        finally:
            self._running -= 1
            self._done += 1

    def stats(self) -> PoolStats:
        """Count what the tenant has there; of others it shows nothing."""
        shared = self._there.stats()
        return PoolStats(
            running=self._running,
            sessions=len(self._alive()),
            workers=self._done + self._running,
            layers=shared.layers,
            read_only=shared.read_only,
        )

    def _named(self, name: str) -> str:
        return f"{self._tenant}\0{name}"

    def _alive(self) -> list[str]:
        self._sessions = {name for name in self._sessions if self._there.has_session(name)}
        return list(self._sessions)


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

    async def __aexit__(self, *_: object) -> None:
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
        self, job: Job, host_calls: HostCalls, recorder: TraceRecorder | None = None, rebuild: Rebuild | None = None
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
