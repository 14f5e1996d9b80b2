"""The shares of one tenant: what each caller, and all of them together, may use, and what they have used.

Turns to compute, places for sessions and memory are shared in the sandbox, fairly between tenants and then between the
callers of each. Here is what is bounded beyond that: runs a minute, and CPU seconds a day. A run past a bound has the
status `busy`, and says whose bound it is and when to come back. Where several servers share a database, runs a minute,
runs at once and sessions are bounded over all of them (`shared_bounds.py`).
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from ...sandbox.errors import Busy
from ...sandbox.host.cpu_meter import metered
from ...sandbox.job import Owner
from .rates import WINDOW_SECONDS, Rates
from .session_seats import SessionBound, SessionPools, SessionSeats
from .shared_bounds import PartLacking, Parts

if TYPE_CHECKING:
    from ..host_work import Account
    from ..settings import Settings
    from .cpu_days import CpuDays

_SPARED_SECONDS = 1.5
"""How long a begin waits until another server gives back what it has to spare."""
_MINUTE_HELD_SECONDS = 75.0
"""Begins of a server that has died count for others until they are older than a minute."""
_RETRY_SECONDS = 5


class Used(TypedDict):
    """Runs at work or waiting to begin, begun within a minute, and CPU seconds of today where these are kept."""

    runs: int
    runs_last_minute: int
    cpu_seconds_today: float | None


class ShareLimitsReport(TypedDict):
    """What a caller, and what its tenant, may have; 0 is no bound of its own."""

    caller_runs_max: int
    tenant_runs_max: int
    caller_runs_per_minute: int
    tenant_runs_per_minute: int
    caller_cpu_seconds_per_day: float
    tenant_cpu_seconds_per_day: float
    caller_sessions_max: int
    tenant_sessions_max: int


class SharesReport(TypedDict):
    """What the caller who asks has used, what its tenant has used, and what they may use."""

    caller: Used
    tenant: Used
    limits: ShareLimitsReport


@dataclass(frozen=True, slots=True)
class _Counts:
    """What a tenant's runs are counted by, foreground and background together."""

    rates: Rates
    running: Counter[str]


class Shares:
    """The shares of the callers of one tenant; a caller is its scope. Belongs to one event loop.

    `cpu_days` is that of all tenants, and so are the `parts` of bounds that servers share.
    """

    def __init__(
        self,
        settings: Settings,
        cpu_days: CpuDays,
        tenant: str,
        *,
        parts: Parts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cpu_days = cpu_days
        self.parts = Parts(None) if parts is None else parts
        self._session_seats = SessionSeats(self.parts)
        self._settings = settings
        self._tenant = tenant
        rates = Rates(settings.caller_runs_per_minute, settings.tenant_runs_per_minute, clock)
        self._counts = _Counts(rates, Counter())
        self._keeps_cpu = bool(settings.caller_cpu_seconds_per_day or settings.tenant_cpu_seconds_per_day)

    def owner(self, caller: str) -> Owner:
        """Return whose turn the work for a caller takes."""
        return Owner(self._tenant, caller)

    async def admit(self, caller: str) -> None:
        """Count one run that is about to begin or to be queued. Raises `Busy`, or what reading the database raises."""
        if self._keeps_cpu:
            await self.cpu_days.refreshed()
            self._refuse_spent(caller)
        self._counts.rates.take(caller)
        if self.parts.is_shared:
            try:
                await self._take_of_minute(caller)
            except BaseException:
                self._counts.rates.take_back(caller)
                raise

    @asynccontextmanager
    async def run(self, caller: str, account: Account, *, was_queued: bool = False) -> AsyncIterator[None]:
        """Admit one run, and charge what its workers and the host computed for it, whatever came of it.

        One that `was_queued` was admitted then. Raises as `admit`; then nothing ran.
        """
        if not was_queued:
            await self.admit(caller)
        self._counts.running[caller] += 1
        try:
            with metered() as use:
                if was_queued or not self.parts.is_shared:
                    yield
                else:
                    async with self._place(caller):
                        yield
        finally:
            self._counts.running[caller] -= 1
            if not self._counts.running[caller]:
                del self._counts.running[caller]
            if self._keeps_cpu:
                self.cpu_days.add(self._tenant, caller, use.ms / 1000 + account.spent_seconds)

    def close(self) -> None:
        """Count no more which sessions are alive."""
        self._session_seats.close()

    def report(self, caller: str) -> SharesReport:
        """Return what that caller and its tenant use and may use."""
        settings, counts = self._settings, self._counts
        spent = self.cpu_days.used_by(self._tenant, caller) if self._keeps_cpu else None
        of_tenant = self.cpu_days.used_by_tenant(self._tenant) if self._keeps_cpu else None
        return SharesReport(
            caller=Used(
                runs=counts.running[caller],
                runs_last_minute=counts.rates.of(caller),
                cpu_seconds_today=None if spent is None else round(spent, 3),
            ),
            tenant=Used(
                runs=counts.running.total(),
                runs_last_minute=counts.rates.of_tenant(),
                cpu_seconds_today=None if of_tenant is None else round(of_tenant, 3),
            ),
            limits=ShareLimitsReport(
                caller_runs_max=settings.caller_runs_max,
                tenant_runs_max=settings.tenant_runs_max,
                caller_runs_per_minute=settings.caller_runs_per_minute,
                tenant_runs_per_minute=settings.tenant_runs_per_minute,
                caller_cpu_seconds_per_day=settings.caller_cpu_seconds_per_day,
                tenant_cpu_seconds_per_day=settings.tenant_cpu_seconds_per_day,
                caller_sessions_max=settings.caller_sessions_max,
                tenant_sessions_max=settings.tenant_sessions_max,
            ),
        )

    def session(self, caller: str, session: str | None, pools: SessionPools) -> AbstractAsyncContextManager[None]:
        """Have a place for the session of a call over all servers, where that is bounded. Raises `SessionRefused`."""
        if session is None or not self.parts.is_shared:
            return nullcontext()
        settings = self._settings
        bounds = [
            SessionBound(self._named("sessions", of), most, setting)
            for of, most, setting in (
                (caller, settings.caller_sessions_max, "CALLER_SESSIONS_MAX"),
                ("", settings.tenant_sessions_max, "TENANT_SESSIONS_MAX"),
            )
            if most
        ]
        return self._session_seats.place(caller, session, pools, bounds) if bounds else nullcontext()

    async def _take_of_minute(self, caller: str) -> None:
        """Take one begin of the minute, over all servers. Raises `Busy`."""
        settings, taken = self._settings, []
        bounds = (
            ("caller", caller, settings.caller_runs_per_minute, "CALLER_RUNS_PER_MINUTE"),
            ("tenant", "", settings.tenant_runs_per_minute, "TENANT_RUNS_PER_MINUTE"),
        )
        try:
            for whose, of, most, setting in bounds:
                if most:
                    name = self._named("minute", of)
                    try:
                        await self.parts.take(
                            name, most, caller=caller, wait_seconds=_SPARED_SECONDS, held_seconds=_MINUTE_HELD_SECONDS
                        )
                    except PartLacking:
                        raise Busy(
                            f"This {whose} has begun {most} runs within a minute on all servers together, as many as "
                            f"one may ({setting}).",
                            max(1, math.ceil(self._counts.rates.next_free_seconds(caller))),
                            limit=setting,
                        ) from None
                    taken.append(name)
        except BaseException:
            for name in taken:
                self.parts.give_back(name)
            raise
        for name in taken:
            asyncio.get_running_loop().call_later(WINDOW_SECONDS, self.parts.give_back, name)

    @asynccontextmanager
    async def _place(self, caller: str) -> AsyncIterator[None]:
        """Wait for a place among the runs at once over all servers, and keep it. Raises `Busy`."""
        settings = self._settings
        bounds = (
            (caller, settings.caller_runs_max, "CALLER_RUNS_MAX"),
            ("", settings.tenant_runs_max, "TENANT_RUNS_MAX"),
        )
        async with AsyncExitStack() as places:
            for of, most, setting in bounds:
                if most:
                    name = self._named("runs", of)
                    try:
                        await self.parts.take(name, most, caller=caller, wait_seconds=settings.queue_seconds)
                    except PartLacking:
                        raise Busy(
                            f"{most} runs are at work on all servers together, as many as may be at once ({setting}), "
                            f"and none has ended for {settings.queue_seconds:g} seconds (QUEUE_SECONDS).",
                            _RETRY_SECONDS,
                            limit=setting,
                        ) from None
                    places.callback(self.parts.give_back, name)
            yield

    def _named(self, kind: str, caller: str) -> str:
        """Return the name of a bound of this tenant, or of one of its callers."""
        return json.dumps([kind, self._tenant, caller], ensure_ascii=False)

    def _refuse_spent(self, caller: str) -> None:
        """Raise `Busy` where the caller or the tenant has used its CPU seconds of today; a run at work goes on."""
        most = self._settings.caller_cpu_seconds_per_day
        if most and self.cpu_days.used_by(self._tenant, caller) >= most:
            raise self._spent("caller", most, "CALLER_CPU_SECONDS_PER_DAY")
        most = self._settings.tenant_cpu_seconds_per_day
        if most and self.cpu_days.used_by_tenant(self._tenant) >= most:
            raise self._spent("tenant", most, "TENANT_CPU_SECONDS_PER_DAY")

    def _spent(self, whose: str, most: float, name: str) -> Busy:
        return Busy(
            f"This {whose} has used its {most:.15g} CPU seconds of {self.cpu_days.today()}, UTC ({name}).",
            self.cpu_days.seconds_left_today(),
            limit=name,
        )
