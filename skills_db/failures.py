"""Maps the errors of the database drivers to those of this folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import DatabaseDamaged, DatabaseUnavailable, DatabaseUnreachable, SkillsDbError
from .sql import DBAPIError, PoolTimeout, SQLAlchemyError

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_ADVICE = {
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "Free some space and try again; nothing was changed."),
    sqlite3.SQLITE_READONLY: ("cannot be written", "Correct its permissions and those of its folder."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Correct its permissions and those of its folder."),
    sqlite3.SQLITE_PERM: ("cannot be used", "Correct its permissions and those of its folder."),
    sqlite3.SQLITE_BUSY: ("is held by another program", "Wait until that has ended and try again."),
    sqlite3.SQLITE_LOCKED: ("is held by another change", "Try again."),
    sqlite3.SQLITE_IOERR: ("cannot be read or written", "Check the disk; nothing was changed."),
}


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise this folder's errors for those of the drivers; `place` names the database and starts the sentence.

    A broken constraint is not the database's trouble but a caller's mistake, and passes as it is.
    """
    try:
        yield
    except PoolTimeout as error:
        raise DatabaseUnavailable(f"{place} has too many requests at once. Try again later.") from error
    except DBAPIError as error:
        known = _known(place, error)
        if known is None:
            raise
        raise known from error


def connection_lost(error: SQLAlchemyError) -> bool:
    """Return whether the server went away rather than said no."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def _known(place: str, error: DBAPIError) -> SkillsDbError | None:
    original = error.orig
    if isinstance(original, sqlite3.Error):
        # The lowest byte is the error, the others say in which operation.
        code = getattr(original, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGED:
            return DatabaseDamaged(
                f"{place} is damaged or not a database, and was left as it is. Move it and the files beside it "
                "(-wal, -shm) away, start sealab again, and restore a backup with `sealab skills restore`."
            )
        if code in _ADVICE:
            what, advice = _ADVICE[code]
            return DatabaseUnavailable(f"{place} {what}. {advice}")
        return None
    return _known_of_server(place, error)


def _known_of_server(place: str, error: DBAPIError) -> SkillsDbError | None:
    state = getattr(error.orig, "sqlstate", None)
    if type(error.orig).__name__ == "ConnectionTimeout":  # of psycopg, which need not be installed
        return DatabaseUnreachable(
            f"{place} does not answer, so nothing was changed. Try again in a moment, or check that the server runs "
            "and can be reached."
        )
    if error.connection_invalidated or state is None:
        return DatabaseUnreachable(
            f"{place} cannot be reached. Check DATABASE_URL, and that the server runs and lets this machine in."
        )
    if state == "57014":  # query canceled, by the statement time-out
        return DatabaseUnavailable(f"{place} took too long, so nothing was changed. Try again later, or ask for less.")
    if state == "55P03":  # lock not available
        return DatabaseUnavailable(f"{place} is held by another program. Wait until that has ended and try again.")
    family = state[:2]
    if family in {"08", "57"}:  # connection exception, operator intervention
        return DatabaseUnavailable(f"{place} has ended the connection. Check that the server runs, and try again.")
    if family == "53":  # insufficient resources
        return DatabaseUnavailable(f"{place} is out of disk, memory or connections. Free some and try again.")
    if family == "40":  # rolled back for a deadlock or a serialization failure
        return DatabaseUnavailable(f"{place} undid the change because of another one. Try again.")
    if family == "XX":
        return DatabaseDamaged(f"{place} reports damaged data. Restore the server from its backup.")
    if state in {"25006", "42501"}:
        return DatabaseUnavailable(f"{place} does not let this user write. Grant the user its rights, or name another.")
    return None
