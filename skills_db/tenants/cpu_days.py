"""CPU seconds that each principal of each tenant used on a day of UTC; several processes add to the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..content import storable
from ..engine import Database
from ..sql import insert, sa
from ..tables import CPU_DAY

DAYS_KEPT = 35
"""How many days are kept, today included."""


class DayOf(NamedTuple):
    """Whose use it is, of which day (`YYYY-MM-DD`)."""

    tenant: str
    principal: str
    day: str


class CpuDayStore:
    """The table of CPU days. Everything blocks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, used: Mapping[DayOf, float]) -> None:
        """Add seconds to what is stored, all at once. Raises `DatabaseUnavailable`.

        They survive a crash of the program; a crash of the machine may take the last ones along.
        """
        rows = [
            {**key._asdict(), "seconds": seconds}
            for key, seconds in sorted(used.items())  # in one order: two processes then never wait for each other
            if storable(key.tenant) and storable(key.principal)
        ]
        if rows:
            added = insert(CPU_DAY)
            seconds = {"seconds": CPU_DAY.c.seconds + added.excluded.seconds}
            added = added.on_conflict_do_update(index_elements=["day", "tenant", "principal"], set_=seconds)
            with self._database.transaction(durable=False) as connection:
                connection.execute(added, rows)

    def of_day(self, day: str) -> dict[DayOf, float]:
        """Return what all used on a day."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(CPU_DAY).where(CPU_DAY.c.day == day))
            return {DayOf(row.tenant, row.principal, day): row.seconds for row in rows}

    def drop_before(self, day: str) -> None:
        """Drop what is older."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(sa.delete(CPU_DAY).where(CPU_DAY.c.day < day))
