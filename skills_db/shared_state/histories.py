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
from ..sql import DBAPIError, Session, sa

if TYPE_CHECKING:
    from ..engine import Database

_IN_RECOVERY = "55000"
_NEVER = frozenset({"0A", "42"})
"""Classes of SQLSTATE: the function is not supported, may not be called, or is not there."""
UNTOLD = ""
"""The history of a database that does not tell it."""


class Histories:
    """The histories of one database. Any number of them, threads and programs may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_told: bool | None = False if database.is_file else None

    def note(self) -> None:
        """Have the present history known; the first one that a database has is settled from its beginning."""
        if self.are_told():
            with self._database.transaction(durable=False) as session:
                self.settled(session, 0)

    def settled(self, session: Session, seconds: float) -> bool:
        """Return within a transaction, before which `are_told` was asked, whether a history began so long ago."""
        if self._is_told is False:
            return True
        history, age = session.execute(_AGE).one()
        if age is None:
            session.execute(_NOTE, {"history": history})
            age = session.execute(_AGE).one()[1]
        return float(age) >= seconds

    def are_told(self) -> bool:
        """Return whether the database tells its history. Raises `DatabaseUnavailable`, also for a standby."""
        if self._is_told is None:
            with self._database.read() as session:
                self._is_told = self._tell(session)
        return self._is_told

    def _tell(self, session: Session) -> bool:
        try:
            session.execute(_CURRENT).scalar_one()
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


PRESENT = "(SELECT system_identifier || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system())"
"""The present history in SQL, of a database of which `Histories.are_told` holds."""
AGE = f"(SELECT {CLOCK} - since FROM sealab_history WHERE history = {PRESENT})"  # noqa: S608 - no value is in it
"""For how many seconds it is the present one; NULL where nobody has noted it."""
_CURRENT = sa.text(f"SELECT {PRESENT}")
_AGE = sa.text(
    f"SELECT present.history, {CLOCK} - since FROM (SELECT {PRESENT} AS history) AS present "  # noqa: S608 - no value is in it
    "LEFT JOIN sealab_history ON sealab_history.history = present.history"
)
_NOTE = sa.text(
    "INSERT INTO sealab_history (history, since) SELECT :history, "  # noqa: S608 - as above
    f"CASE WHEN EXISTS (SELECT 1 FROM sealab_history) THEN {CLOCK} ELSE 0 END ON CONFLICT (history) DO NOTHING"
)
