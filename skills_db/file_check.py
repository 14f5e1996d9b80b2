"""Looks for damage in a database file: a half-written or half-overwritten one takes changes and loses them."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from .errors import DatabaseDamaged

CHECK_SECONDS = 2.0
"""How long the start looks: half a gigabyte of skills on an ordinary disk. `sealab doctor` looks at all of it."""
CHECK_BYTES = 256 * 1024 * 1024
"""What is larger is not looked through at the start: SQLite looks at the clock only between tables."""
_STEPS = 10_000
"""Of SQLite's virtual machine, between looks at the clock."""
_LOG = logging.getLogger(__name__)


def refuse_damage(file: Path, place: str) -> None:
    """Raise `DatabaseDamaged` where the file is found damaged within `CHECK_SECONDS`; `place` names it."""
    is_small = not file.exists() or file.stat().st_size <= CHECK_BYTES
    found = damage_of(file, CHECK_SECONDS) if is_small else None
    if found:
        raise damaged(place, found)
    if found is None:
        _LOG.info("%s is too large to be looked through at each start. `sealab doctor` looks at all of it.", place)


def damage_of(file: Path, seconds: float | None = None) -> str | None:
    """Return the first damage that `PRAGMA quick_check` finds, "" where there is none, None where time was too short.

    A file that cannot be read is not judged here: opening it raises the reason.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        with closing(sqlite3.connect(file.absolute().as_uri() + "?mode=rw", uri=True)) as connection:
            if deadline is not None:
                connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            # https://www.sqlite.org/pragma.html#pragma_quick_check
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return str(error)
            case sqlite3.SQLITE_INTERRUPT:
                return None
            case _:
                return ""
    return "" if found == "ok" else " ".join(str(found).split())


def damaged(place: str, found: str) -> DatabaseDamaged:
    """Return the error that says so."""
    return DatabaseDamaged(
        f"{place} is damaged or not a database, and was left as it is. Move it and the files beside it (-wal, -shm) "
        f"away, start sealab again, and restore a backup with `sealab skills restore`. SQLite says: {found}."
    )
