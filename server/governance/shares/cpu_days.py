"""What is used today, by tenant and principal: counted in memory, kept in the operator's database.

What was used is written a moment later, and what other processes wrote is read with that. So no run waits for the
database but the first of a process, and two processes know of each other's use after `REFRESH_SECONDS` at most.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from ....skills_db.errors import SkillsDbError
from ....skills_db.tenants.used import DAYS_KEPT, DayOf, Use
from ...base.errors import HostWorkBusy
from ...base.host_work import Kind, in_thread
from ...base.write_behind import WriteBehind

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ....skills_db.tenants.tenant_store import CpuDayStore

REFRESH_SECONDS = 5.0
"""How old what is known of other processes may be when a run begins."""
_WRITE_SECONDS = 1.0
_DAY_SECONDS = 86_400
_LOG = logging.getLogger(__name__)


class CpuDays:
    """Safe to use from several threads, `refreshed` from one event loop. `wall` gives seconds since 1970."""

    def __init__(self, database: Callable[[], Database], wall: Callable[[], float] = time.time) -> None:
        self._database = database
        self._wall = wall
        self._changing = threading.Lock()
        self._stored: Mapping[DayOf, float] = {}
        self._unwritten: Counter[DayOf] = Counter()
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None
        self._dropped_before = ""
        self._writer: WriteBehind[tuple[DayOf, Use]] = WriteBehind(
            "What runs used", self._write, wait_seconds_max=_WRITE_SECONDS, merge=_merged
        )

    def today(self) -> str:
        """Return the day, of UTC."""
        return _day(self._days())

    def seconds_left_today(self) -> int:
        """Return how long it is until the next day begins."""
        return _DAY_SECONDS - int(self._wall()) % _DAY_SECONDS

    async def refreshed(self) -> None:
        """Wait until what is stored is known, and have it read anew where that is long ago.

        Raises what reading it raises, as long as it was never read.
        """
        if self._read_at is None:
            await in_thread(Kind.DATABASE, self._read, charged=False)
        elif time.monotonic() - self._read_at > REFRESH_SECONDS and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._read_again())

    def add(self, tenant: str, principal: str, seconds: float) -> None:
        """Count CPU seconds that were used; returns at once."""
        self.note(tenant, principal, Use(seconds))

    def note(self, tenant: str, principal: str, use: Use) -> None:
        """Count what was used; returns at once."""
        key = DayOf(tenant, principal, self.today())
        with self._changing:
            self._unwritten[key] += use.seconds  # type: ignore[assignment]  # a counter of seconds
        self._writer.add((key, use))

    def used_by(self, tenant: str, principal: str) -> float:
        """Return what a principal used today."""
        key = (tenant, principal, self.today())
        with self._changing:
            return self._stored.get(key, 0.0) + self._unwritten.get(key, 0.0)  # type: ignore[call-overload,no-any-return]  # equal to a `DayOf`

    def used_by_tenant(self, tenant: str) -> float:
        """Return what all principals of a tenant used today."""
        today = self.today()
        with self._changing:
            return sum(
                seconds
                for known in (self._stored, self._unwritten)
                for key, seconds in known.items()
                if key.tenant == tenant and key.day == today
            )

    def close(self) -> None:
        """Write what waits. Blocks."""
        self._writer.close()

    async def _read_again(self) -> None:
        try:
            await in_thread(Kind.DATABASE, self._read, charged=False)
        except (SkillsDbError, HostWorkBusy) as error:
            _LOG.warning("The CPU seconds that other processes used are not known now: %s", error)

    def _read(self) -> None:
        stored = self._store().of_day(self.today())
        with self._changing:
            self._stored = stored
            self._read_at = time.monotonic()

    def _write(self, used: list[tuple[DayOf, Use]]) -> None:
        store = self._store()
        uses = dict(used)
        store.add(uses)
        stored = store.of_day(self.today())
        with self._changing:
            self._stored = stored
            self._read_at = time.monotonic()
            for key, each in uses.items():
                self._unwritten[key] -= each.seconds  # type: ignore[assignment]  # as above
                if self._unwritten[key] <= _ROUNDING:
                    del self._unwritten[key]
        if self._dropped_before != self.today():
            store.drop_before(_day(self._days() - DAYS_KEPT + 1))
            self._dropped_before = self.today()

    def _days(self) -> int:
        return int(self._wall() // _DAY_SECONDS)

    def _store(self) -> CpuDayStore:
        from ....skills_db.tenants.tenant_store import CpuDayStore

        return CpuDayStore(self._database())


_ROUNDING = 1e-9


@lru_cache(maxsize=4)
def _day(days: int) -> str:
    """Return the day, so many after the first of 1970."""
    return datetime.fromtimestamp(days * _DAY_SECONDS, UTC).strftime("%Y-%m-%d")


def _merged(used: list[tuple[DayOf, Use]]) -> list[tuple[DayOf, Use]]:
    sums: dict[DayOf, Use] = {}
    for key, use in used:
        sums[key] = sums[key].plus(use) if key in sums else use
    return list(sums.items())
