"""Whether background runs wait in a database file: to open the database for that would cost a start half a second."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_MAY_BEGIN = "SELECT 1 FROM sealab_background_run WHERE status IN ('queued', 'running') AND leased_until < ? LIMIT 1"


def any_may_begin(file: Path, now: float) -> bool:
    """Return whether a background run in the file is nobody's, and waits for no answer, or one is due. Blocks."""
    return _any(file, _MAY_BEGIN, (now,)) or any_due(file, now)


def any_wait(file: Path) -> bool:
    """Return whether a background run in the file has not ended; False where there is no such file or table. Blocks."""
    return _any(file, "SELECT 1 FROM sealab_background_run WHERE status <> 'ended' LIMIT 1", ())


def any_due(file: Path, now: float, *, judges: bool = False) -> bool:
    """Return whether the time of a schedule in the file has come, or with `judges`, its last run is to be. Blocks."""
    return _any(file, "SELECT 1 FROM sealab_schedule WHERE next_time <= ? OR judged < ? LIMIT 1", (now, float(judges)))


def _any(file: Path, query: str, values: tuple[float, ...]) -> bool:
    if not file.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute(query, values).fetchone()
    except sqlite3.Error:
        return False
    return found is not None
