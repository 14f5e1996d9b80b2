"""Records of what ran: when, for how long, and how it ended. Never a value: no arguments, results or output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from .content import storable
from .engine import Database
from .models import RunRow, SkillRow
from .sql import Session, col, sa, select

RUNS_KEPT = 10_000
_TRIM_EVERY = 100
_IDS_IN_QUERY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run. `kind` says what ran (`code`, `skill`, `test`); `skill` and `version` which skill, if one."""

    run_id: str
    started_at: datetime
    duration_ms: float
    status: str
    isolation: str
    kind: str = "code"
    skill: str | None = None
    version: int | None = None


class RunStore:
    """The last runs of all programs on one database, and how often each skill ran in all."""

    def __init__(self, database: Database, *, kept: int = RUNS_KEPT) -> None:
        self._database = database
        self._kept = kept
        self._until_trim = 0

    def record(self, *runs: RunRecord) -> None:
        """Keep records and count each for its skill, all at once; a run that is already recorded is left as it is.

        They survive a crash of the program; a crash of the machine may take the last ones along. From time to time the
        oldest records beyond the number to keep are dropped.
        """
        # In one order everywhere: two programs that count the same skills then never wait for each other.
        ordered = sorted(runs, key=lambda run: (run.skill or "", run.started_at))
        try:
            with self._database.transaction(durable=False) as session:
                _record(session, ordered)
        except sa.exc.IntegrityError:  # one of them is there, which is rare: to ask each time would cost a statement
            with self._database.transaction(durable=False) as session:
                _record(session, _new_of(session, ordered))
        self._until_trim -= len(runs)
        if self._until_trim < 0:
            self._until_trim = _TRIM_EVERY
            self.trim()

    def recent(self, limit: int = 50, *, skill: str | None = None) -> tuple[RunRecord, ...]:
        """Return the last records, newest first; only those of a skill, if one is given."""
        if skill is not None and not storable(skill):
            return ()
        wanted = select(RunRow).order_by(col(RunRow.id).desc()).limit(limit)
        if skill is not None:
            wanted = wanted.where(RunRow.skill == skill)
        with self._database.read() as session:
            return tuple(
                RunRecord(
                    run_id=row.run_id,
                    started_at=row.started_at,
                    duration_ms=row.duration_ms,
                    status=row.status,
                    isolation=row.isolation,
                    kind=row.kind,
                    skill=row.skill,
                    version=row.version,
                )
                for row in session.exec(wanted)
            )

    def status_of(self, run_id: str) -> str | None:
        """Return how a run ended; None where there is no record of it."""
        if not storable(run_id):
            return None
        own = (col(RunRow.run_id) == run_id) | col(RunRow.run_id).startswith(f"{run_id}/", autoescape=True)
        with self._database.read() as session:
            return session.exec(select(RunRow.status).where(own).limit(1)).first()

    def count_by_status(self) -> dict[str, int]:
        """Return how many of the records kept ended in which way."""
        with self._database.read() as session:
            return dict(session.exec(select(RunRow.status, sa.func.count()).group_by(RunRow.status)).all())

    def trim(self) -> int:
        """Drop the oldest records beyond the number to keep, and return how many."""
        with self._database.transaction(durable=False) as session:
            first_kept = session.exec(
                select(RunRow.id).order_by(col(RunRow.id).desc()).offset(self._kept - 1).limit(1)
            ).first()
            if first_kept is None:
                return 0
            return session.exec(sa.delete(RunRow).where(col(RunRow.id) < first_kept)).rowcount


def _new_of(session: Session, runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Return those that are not recorded yet."""
    there: set[str] = set()
    for at in range(0, len(runs), _IDS_IN_QUERY):
        some = [run.run_id for run in runs[at : at + _IDS_IN_QUERY]]
        there.update(session.exec(select(RunRow.run_id).where(col(RunRow.run_id).in_(some))))
    return [run for run in runs if run.run_id not in there]


def _record(session: Session, runs: Sequence[RunRecord]) -> None:
    """Record runs, none of which may be there. Raises `sqlalchemy.exc.IntegrityError` where one is."""
    new: dict[str, RunRecord] = {}
    for run in runs:
        new.setdefault(run.run_id, run)
    session.add_all(
        RunRow(
            run_id=run.run_id,
            started_at=run.started_at,
            duration_ms=run.duration_ms,
            status=run.status,
            isolation=run.isolation,
            kind=run.kind,
            skill=run.skill,
            version=run.version,
        )
        for run in new.values()
    )
    session.flush()
    for skill, counted in groupby((run for run in new.values() if run.skill is not None), lambda run: run.skill):
        of_skill = list(counted)
        last = max(run.started_at for run in of_skill)
        session.exec(
            sa.update(SkillRow)
            .where(col(SkillRow.name) == skill)
            .values(runs=col(SkillRow.runs) + len(of_skill), last_run=last)
        )
