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
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from typing_extensions import TypedDict

from ....sandbox.errors import Busy
from ....sandbox.host.cpu_meter import metered
from ....sandbox.job import Owner
from .limits import OwnLimits
from .rates import WINDOW_SECONDS, Rates
from .session_seats import SessionBound, SessionPools, SessionSeats
from .shared_bounds import PartLacking, Parts

if TYPE_CHECKING:
    from ....skills_db.tenants.uses import Use
    from ...base.host_work import Account
    from ...base.settings import Settings
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
class _Bound:
    """A bound that is set: its name for servers that share it, whose it is, how much, and the setting."""

    name: str
    whose: str
    most: float
    setting: str


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
        limits: OwnLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cpu_days = cpu_days
        self.parts = Parts(None) if parts is None else parts
        self._session_seats = SessionSeats(self.parts)
        self._settings = settings
        self._tenant = tenant
        self.limits = OwnLimits(settings) if limits is None else limits
        self._counts = _Counts(Rates(0, 0, clock), Counter())

    @property
    def _keeps_cpu(self) -> bool:
        return self.limits.bounds_cpu(self._tenant)

    def owner(self, caller: str) -> Owner:
        """Return whose turn the work for a caller takes."""
        return Owner(self._tenant, caller)

    async def admit(self, caller: str) -> None:
        """Count one run that is about to begin or to be queued. Raises `Busy`, or what reading the database raises."""
        await self.limits.refreshed()
        if self._keeps_cpu:
            await self.cpu_days.refreshed()
            self._refuse_spent(caller)
        rates = self._counts.rates
        rates.caller_max, rates.tenant_max = (
            int(self._most(f"{whose}_runs_per_minute", caller)) for whose in ("caller", "tenant")
        )
        rates.take(caller)
        if self.parts.is_shared:
            try:
                await self._take_of_minute(caller)
            except BaseException:
                rates.take_back(caller)
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
            if self._keeps_cpu or self.limits.is_of_server:
                self.cpu_days.add(self._tenant, caller, use.ms / 1000 + account.spent_seconds)

    def note(self, caller: str, use: Use) -> None:
        """Keep what a run of a caller used beside CPU seconds, in a server; a command keeps nothing."""
        if self.limits.is_of_server:
            self.cpu_days.note(self._tenant, caller, use)

    def close(self) -> None:
        """Count no more which sessions are alive."""
        self._session_seats.close()

    def report(self, caller: str) -> SharesReport:
        """Return what that caller and its tenant use and may use."""
        counts = self._counts
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
            limits=cast(
                "ShareLimitsReport", {name: self._most(name, caller) for name in ShareLimitsReport.__annotations__}
            ),
        )

    def session(self, caller: str, session: str | None, pools: SessionPools) -> AbstractAsyncContextManager[None]:
        """Have a place for the session of a call over all servers, where that is bounded. Raises `SessionRefused`."""
        if session is None or not self.parts.is_shared:
            return nullcontext()
        bounds = [
            SessionBound(each.name, int(each.most), each.setting) for each in self._bounds("sessions_max", caller)
        ]
        return self._session_seats.place(caller, session, pools, bounds) if bounds else nullcontext()

    async def _take_of_minute(self, caller: str) -> None:
        """Take one begin of the minute, over all servers. Raises `Busy`."""
        with ExitStack() as taken:
            for bound in self._bounds("runs_per_minute", caller):
                try:
                    await self.parts.take(
                        bound.name,
                        int(bound.most),
                        caller=caller,
                        wait_seconds=_SPARED_SECONDS,
                        held_seconds=_MINUTE_HELD_SECONDS,
                    )
                except PartLacking:
                    raise Busy(
                        f"This {bound.whose} has begun {bound.most} runs within a minute on all servers together, as "
                        f"many as one may ({bound.setting}).",
                        max(1, math.ceil(self._counts.rates.next_free_seconds(caller))),
                        limit=bound.setting,
                    ) from None
                taken.callback(self.parts.give_back, bound.name)
            asyncio.get_running_loop().call_later(WINDOW_SECONDS, taken.pop_all().close)

    @asynccontextmanager
    async def _place(self, caller: str) -> AsyncIterator[None]:
        """Wait for a place among the runs at once over all servers, and keep it. Raises `Busy`."""
        seconds = self._settings.queue_seconds
        with ExitStack() as places:
            for bound in self._bounds("runs_max", caller):
                try:
                    await self.parts.take(bound.name, int(bound.most), caller=caller, wait_seconds=seconds)
                except PartLacking:
                    raise Busy(
                        f"{bound.most} runs are at work on all servers together, as many as may be at once "
                        f"({bound.setting}), and none has ended for {seconds:g} seconds (QUEUE_SECONDS).",
                        _RETRY_SECONDS,
                        limit=bound.setting,
                    ) from None
                places.callback(self.parts.give_back, bound.name)
            yield

    def _most(self, name: str, caller: str) -> float:
        return self.limits.most(name, self.owner(caller))

    def _bounds(self, kind: str, caller: str) -> Iterator[_Bound]:
        """Give the bounds of a kind that are set for a caller and for the tenant."""
        for whose, of in (("caller", caller), ("tenant", "")):
            setting = f"{whose}_{kind}"
            if most := self._most(setting, caller):
                name = json.dumps([kind, self._tenant, of], ensure_ascii=False)
                yield _Bound(name, whose, most, setting.upper())

    def _refuse_spent(self, caller: str) -> None:
        """Raise `Busy` where the caller or the tenant has used its CPU seconds of today; a run at work goes on."""
        days = self.cpu_days
        for bound in self._bounds("cpu_seconds_per_day", caller):
            is_own = bound.whose == "caller"
            used = days.used_by(self._tenant, caller) if is_own else days.used_by_tenant(self._tenant)
            if used >= bound.most:
                raise Busy(
                    f"This {bound.whose} has used its {bound.most:.15g} CPU seconds of {days.today()}, UTC "
                    f"({bound.setting}).",
                    days.seconds_left_today(),
                    limit=bound.setting,
                )
