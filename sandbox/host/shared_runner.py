"""One tenant's part in a pool that all tenants share.

A security boundary: names of sessions and callers mean something within one tenant alone. What the pool calls them has
the tenant and a character in front that no name of a tenant has, so a name of another tenant cannot be said.

Only a pool that shows its workers no folder may be shared: each worker is used once, or by one session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from ..job import HostCalls, Job, Outcome, Rebuild, Recorder
from .pool import PoolStats
from .pools import JobRunner
from .repl_sessions import SessionState

_BETWEEN = "\0"


class SharedRunner:
    """Runs the jobs of a tenant in a pool of others; `pool` returns that once it has started."""

    def __init__(self, tenant: str, pool: Callable[[], Awaitable[JobRunner]]) -> None:
        self._tenant = tenant
        self._pool = pool
        self._runner: JobRunner | None = None
        self._sessions: set[str] = set()
        self._running = 0
        self._done = 0

    async def __aenter__(self) -> Self:
        self._runner = await self._pool()
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        for name in self._alive():
            await self._shared.end_session(name)

    async def ready(self) -> None:
        """Wait until a job could start at once. Raises `SandboxError` when none ever can."""
        await self._shared.ready()

    async def run(
        self, job: Job, host_calls: HostCalls, recorder: Recorder | None = None, rebuild: Rebuild | None = None
    ) -> Outcome:
        """Run one job and report it; as `Pool.run`."""
        session = None if job.session is None else self._named(job.session)
        if session is not None:
            self._sessions.add(session)
        job = replace(job, tenant=self._tenant, caller=self._named(job.caller), session=session)
        self._running += 1
        try:
            return await self._shared.run(job, host_calls, recorder, rebuild)
        finally:
            self._running -= 1
            self._done += 1

    def has_session(self, name: str) -> bool:
        """Return whether the tenant has a session of that name here."""
        return self._shared.has_session(self._named(name))

    async def end_session(self, name: str) -> bool:
        """End a session; return whether there was one."""
        return await self._shared.end_session(self._named(name))

    def close_session(self, name: str) -> bool:
        """End a session once it is idle; return whether there was one."""
        return self._shared.close_session(self._named(name))

    def sessions_of(self, caller: str) -> list[SessionState]:
        """Return the sessions that a caller of the tenant began."""
        return self._shared.sessions_of(self._named(caller))

    def stats(self) -> PoolStats:
        """Count what the tenant has there; of others it shows nothing."""
        shared = self._shared.stats()
        return PoolStats(
            spares=0,
            running=self._running,
            waiting=0,
            sessions=len(self._alive()),
            workers=self._done + self._running,
            zygotes=0,
            layers=shared.layers,
            read_only=shared.read_only,
        )

    @property
    def _shared(self) -> JobRunner:
        if self._runner is None:
            raise RuntimeError("A shared runner is entered before it runs anything.")
        return self._runner

    def _named(self, name: str) -> str:
        return f"{self._tenant}{_BETWEEN}{name}"

    def _alive(self) -> list[str]:
        self._sessions = {name for name in self._sessions if self._shared.has_session(name)}
        return list(self._sessions)
