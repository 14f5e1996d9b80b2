"""The right of one process to a row for a time, which it keeps by renewing it and gives back when it is done.

A process that dies leaves its leases to whoever asks once their time is up (Gray and Cheriton 1989, "Leases"). Taking
one is a single statement with a condition, so that of two processes one succeeds; it is the same on SQLite and on
PostgreSQL (READ COMMITTED re-checks the condition once the other has committed). Times are those of `Database.now`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .sql import sa

NOBODYS: Mapping[str, object] = {"leased_by": "", "leased_until": 0.0}
"""The values of a row that anybody may take."""


class Lease:
    """The conditions on rows of a table with the columns `leased_by` and `leased_until`."""

    def __init__(self, table: sa.FromClause) -> None:
        self._table = table

    def is_free(self, now: float) -> sa.ColumnElement[bool]:
        """Return the condition that nobody has a row."""
        return self._table.c.leased_until < now

    def is_of(self, process: str) -> sa.ColumnElement[bool]:
        """Return the condition that a process took a row last, and nobody since."""
        return self._table.c.leased_by == process


def taken(process: str, until: float) -> dict[str, object]:
    """Return the values of a row that a process takes."""
    return {"leased_by": process, "leased_until": until}
