"""Erases journals and background runs, so that nothing of them is left but that they were erased.

A journal with a part taken out could not be run again: so it goes whole. Its row stays, with the status `erased`, its
times and its place in its session. Whoever asks for the run is so told why there is nothing, and a session that needs
the program ends instead of being rebuilt without it.

A process may be at work on the run. The number of its next piece is taken, so the database refuses what it writes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..errors import JournalDamaged
from ..sql import sa
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
    with database.transaction() as session:
        row = session.execute(_ROW, {"run": run_id}).mappings().one_or_none()
        if row is None:
            return True
        owner, number = cast("str", row["owner"]), cast("int", row["number"])
        place = {"run": run_id, "number": number, "piece": keys.sealed(owner, run_id, _PIECE, number, b"")}
        if cast("sa.CursorResult[Any]", session.execute(_TAKE_PLACE, place)).rowcount != 1:
            return False
        session.execute(_DROP_BEFORE, {"run": run_id, "number": number})
        header = keys.sealed(owner, run_id, _HEADER, 0, _json({"scope": "", "session": None}) + b"\n{}")
        end = _json({"tools": {}, "incomplete": None, "status": ERASED})
        sealed_end = keys.sealed(owner, run_id, _END, number + 1, end)
        told = {"run": run_id, "now": time.time(), "pieces": number + 1, "header": header, "end": sealed_end}
        session.execute(_ERASE, told | {"format": FORMAT, "status": ERASED, "bytes": len(header) + len(sealed_end)})
    return True


def background_runs_that_hold(
    database: Database, keys: JournalKeys, holds: Callable[[object], bool], owner: str | None
) -> Sequence[str]:
    """Return the background runs of an owner, or of all, of which any part `holds` something or cannot be read."""
    with database.read() as session:
        rows = session.execute(_OF_OWNER, {"owner": owner}).mappings().all()
    return [cast("str", row["run_id"]) for row in rows if _holds(keys, row, holds)]


def _holds(keys: JournalKeys, row: Mapping[Any, Any], holds: Callable[[object], bool]) -> bool:
    parts = [(part, row[f"sealed_{part}"]) for part in _PARTS if row[f"sealed_{part}"] is not None]
    try:
        return any(holds(opened(keys, row["owner"], row["run_id"], *each)) for each in parts)
    except JournalDamaged:
        return True


def erase_background(
    database: Database, run_ids: Iterable[str], *, unended: Iterable[str] = (), owner: str | None = None
) -> None:
    """Erase these background runs, of others those that are `unended`, and all of an owner.

    One that waits never begins; one that is under way ends, since its lease is gone.
    """
    with database.transaction() as session:
        for run_id in run_ids:
            session.execute(_ERASE_BACKGROUND, {"run": run_id, "now": time.time(), "status": _ENDED})
        for run_id in unended:
            session.execute(_ERASE_UNENDED, {"run": run_id, "now": time.time(), "status": _ENDED})
        if owner is not None:
            session.execute(_ERASE_OF_OWNER, {"owner": owner, "now": time.time(), "status": _ENDED})


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


_ROW = sa.text(
    "SELECT owner, (SELECT coalesce(max(number) + 1, 0) FROM sealab_journal_piece WHERE run_id = :run) AS number "
    "FROM sealab_journal_run WHERE run_id = :run"
)
_TAKE_PLACE = sa.text(
    "INSERT INTO sealab_journal_piece (run_id, number, sealed) VALUES (:run, :number, :piece) ON CONFLICT DO NOTHING"
)
_DROP_BEFORE = sa.text("DELETE FROM sealab_journal_piece WHERE run_id = :run AND number < :number")
_ERASE = sa.text(
    "UPDATE sealab_journal_run SET format = :format, status = :status, ended = coalesce(ended, :now), leased_by = '', "
    "leased_until = 0, pieces = :pieces, bytes = :bytes, sealed_header = :header, sealed_end = :end "
    "WHERE run_id = :run"
)
_OF_OWNER = sa.text(
    "SELECT run_id, owner, sealed_request, sealed_progress, sealed_report, sealed_question, sealed_answer "
    "FROM sealab_background_run WHERE owner = coalesce(:owner, owner) ORDER BY id"
)
_EMPTY = (
    "UPDATE sealab_background_run SET status = :status, changed = :now, leased_by = '', leased_until = 0, "
    "sealed_request = NULL, sealed_progress = NULL, sealed_report = NULL, sealed_question = NULL, "
    "sealed_answer = NULL, sealed_answers = NULL "
)
_ERASE_BACKGROUND = sa.text(f"{_EMPTY} WHERE run_id = :run")
_ERASE_UNENDED = sa.text(f"{_EMPTY} WHERE run_id = :run AND status <> :status")
_ERASE_OF_OWNER = sa.text(f"{_EMPTY} WHERE owner = :owner")
