"""Notices that a PostgreSQL database goes on without what it had stored last: a standby was promoted that lacked it.

Leases are lost so as well. Who holds one may go on, since nobody was given it before; who was given one afterwards must
not begin before the former holder has noticed, or its time is up. So leases are given only once a history is `SETTLED`:
each database notes when it was first seen on which.

A history is the identifier of the database cluster and its timeline (PostgreSQL manual, "Continuous Archiving and
Point-in-Time Recovery", "Timelines"): promotion begins a new one. Where the functions that tell them may not be called,
or the database is a file, there is but one history, and nothing is noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DatabaseUnavailable
from ..postgresql import CLOCK
from ..sql import Connection, DBAPIError, insert, sa
from ..tables import HISTORY

if TYPE_CHECKING:
    from ..engine import Database

_IN_RECOVERY = "55000"
_NEVER = frozenset({"0A", "42"})
"""Classes of SQLSTATE: the function is not supported, may not be called, or is not there."""
UNKNOWN = ""
"""The history of a database that does not report it."""


class Histories:
    """The histories of one database. Any number of them, threads and programs may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_known: bool | None = False if database.is_file else None

    def note(self) -> None:
        """Register the present history; the first one that a database has is settled from its beginning."""
        if self.are_known():
            with self._database.transaction(durable=False) as connection:
                self.settled(connection, 0)

    def settled(self, connection: Connection, seconds: float) -> bool:
        """Return within a transaction, before which `are_known` was asked, whether a history began so long ago."""
        if self._is_known is False:
            return True
        history, age = connection.execute(sa.select(PRESENT, AGE)).one()
        if age is None:
            since = sa.case((sa.exists().select_from(HISTORY), CLOCK), else_=0)
            connection.execute(insert(HISTORY).values(history=history, since=since).on_conflict_do_nothing())
            age = connection.execute(sa.select(AGE)).scalar_one()
        return float(age) >= seconds

    def are_known(self) -> bool:
        """Return whether the database reports its history. Raises `DatabaseUnavailable`, also for a standby."""
        if self._is_known is None:
            with self._database.read() as connection:
                self._is_known = self._reports(connection)
        return self._is_known

    def _reports(self, connection: Connection) -> bool:
        try:
            connection.execute(sa.select(PRESENT)).scalar_one()
        except DBAPIError as error:
            state = str(getattr(error.orig, "sqlstate", None))
            if state == _IN_RECOVERY:  # it will tell once it is promoted, which is when it matters
                raise DatabaseUnavailable(
                    f"{self._database.place} is a standby that is not promoted yet. Try again in a moment, or name "
                    "the primary in DATABASE_URL."
                ) from None
            if state[:2] in _NEVER:
                return False
            raise
        return True


PRESENT = sa.literal_column(
    "(SELECT system_identifier || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system())",
    sa.Text,
)
"""The present history in SQL, of a database of which `Histories.are_known` holds."""
AGE = sa.select(CLOCK - HISTORY.c.since).where(HISTORY.c.history == PRESENT).scalar_subquery()
"""For how many seconds it is the present one; NULL where nobody has noted it."""
