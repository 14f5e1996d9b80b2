"""CPU seconds that each principal of each tenant used on a day of UTC; several processes add to the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..content import storable
from ..engine import Database
from ..sql import sa

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
        statement = sa.text(
            """INSERT INTO sealab_cpu_day (tenant, principal, day, seconds)
                VALUES (:tenant, :principal, :day, :seconds)
                ON CONFLICT (day, tenant, principal)
                DO UPDATE SET seconds = sealab_cpu_day.seconds + excluded.seconds"""
        )
        rows = [
            {**key._asdict(), "seconds": seconds}
            for key, seconds in sorted(used.items())  # in one order: two processes then never wait for each other
            if storable(key.tenant) and storable(key.principal)
        ]
        if rows:
            with self._database.transaction(durable=False) as session:
                session.connection().execute(statement, rows)

    def of_day(self, day: str) -> dict[DayOf, float]:
        """Return what all used on a day."""
        statement = sa.text("SELECT tenant, principal, seconds FROM sealab_cpu_day WHERE day = :day")
        with self._database.read() as session:
            rows = session.connection().execute(statement, {"day": day})
            return {DayOf(tenant, principal, day): float(seconds) for tenant, principal, seconds in rows}

    def drop_before(self, day: str) -> None:
        """Drop what is older."""
        with self._database.transaction(durable=False) as session:
            session.connection().execute(sa.text("DELETE FROM sealab_cpu_day WHERE day < :day"), {"day": day})
