"""Erases journals and background runs, so that nothing of them is left but that they were erased.

A journal with a part taken out could not be run again: so it goes whole. Its row stays, with the status `erased`, its
times and its place in its session. A request for the run is refused with that reason, and a session that needs the
program ends instead of being rebuilt without it.

A process may be at work on the run. The number of its next piece is taken, so the database refuses what it writes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..errors import JournalDamaged
from ..leases import NOBODYS
from ..sql import Connection, Row, insert, sa
from ..tables import BACKGROUND, JOURNAL, PIECE
from .background_store import opened
from .records import ERASED, FORMAT

if TYPE_CHECKING:
    from ..engine import Database
    from .sealing import JournalKeys

_HEADER, _PIECE, _END = "header", "piece", "end"
_PARTS = ("request", "progress", "report", "question", "answer")
_ENDED = "ended"


def erase(database: Database, keys: JournalKeys, run_ids: Iterable[str]) -> None:
    """Erase the journals of these runs."""
    for run_id in run_ids:
        while not _erase(database, keys, run_id):
            pass  # its process wrote one more piece


def _erase(database: Database, keys: JournalKeys, run_id: str) -> bool:
    next_number = sa.select(sa.func.coalesce(sa.func.max(PIECE.c.number) + 1, 0)).where(PIECE.c.run_id == run_id)
    with database.transaction() as connection:
        owner = connection.execute(sa.select(JOURNAL.c.owner).where(JOURNAL.c.run_id == run_id)).scalar()
        if owner is None:
            return True
        number = connection.execute(next_number).scalar_one()
        if not take_place(connection, run_id, number, keys.sealed(owner, run_id, _PIECE, number, b"")):
            return False
        connection.execute(sa.delete(PIECE).where(PIECE.c.run_id == run_id, PIECE.c.number < number))
        header = keys.sealed(owner, run_id, _HEADER, 0, _json({"scope": "", "session": None}) + b"\n{}")
        end = keys.sealed(owner, run_id, _END, number + 1, _json({"tools": {}, "incomplete": None, "status": ERASED}))
        erased = {
            "format": FORMAT,
            "status": ERASED,
            "ended": sa.func.coalesce(JOURNAL.c.ended, time.time()),
            "pieces": number + 1,
            "bytes": len(header) + len(end),
            "sealed_header": header,
            "sealed_end": end,
        }
        connection.execute(sa.update(JOURNAL).where(JOURNAL.c.run_id == run_id).values({**erased, **NOBODYS}))
    return True


def take_place(connection: Connection, run_id: str, number: int, sealed: bytes) -> bool:
    """Write the piece of that number of a run, unless it is there; return whether it was written."""
    piece = {"run_id": run_id, "number": number, "sealed": sealed}
    return connection.execute(insert(PIECE).on_conflict_do_nothing(), piece).rowcount == 1


def background_runs_that_hold(
    database: Database, keys: JournalKeys, holds: Callable[[object], bool], owner: str | None
) -> Sequence[str]:
    """Return the background runs of an owner, or of all, of which any part `holds` something or cannot be read."""
    whose = () if owner is None else (BACKGROUND.c.owner == owner,)
    with database.read() as connection:
        rows = connection.execute(sa.select(BACKGROUND).where(*whose).order_by(BACKGROUND.c.id)).all()
    return [row.run_id for row in rows if _holds(keys, row, holds)]


def _holds(keys: JournalKeys, row: Row, holds: Callable[[object], bool]) -> bool:
    parts = ((part, getattr(row, f"sealed_{part}")) for part in _PARTS)
    try:
        return any(holds(opened(keys, row.owner, row.run_id, part, sealed)) for part, sealed in parts if sealed)
    except JournalDamaged:
        return True


def erase_background(
    database: Database, run_ids: Iterable[str], *, unended: Iterable[str] = (), owner: str | None = None
) -> None:
    """Erase these background runs, of others those that are `unended`, and all of an owner.

    One that waits never begins; one that is under way ends, since its lease is gone.
    """
    sealed = {f"sealed_{part}": None for part in (*_PARTS, "answers")}
    erase = sa.update(BACKGROUND).values(sealed | {**NOBODYS, "status": _ENDED, "changed": time.time()})
    with database.transaction() as connection:
        for run_id in run_ids:
            connection.execute(erase.where(BACKGROUND.c.run_id == run_id))
        for run_id in unended:
            connection.execute(erase.where(BACKGROUND.c.run_id == run_id, BACKGROUND.c.status != _ENDED))
        if owner is not None:
            connection.execute(erase.where(BACKGROUND.c.owner == owner))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
