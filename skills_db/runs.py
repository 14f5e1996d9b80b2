"""Records of what ran: when, for how long, and how it ended. Never a value: no arguments, results or output."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from itertools import groupby

from .content import storable
from .engine import Database
from .sql import insert, sa
from .tables import RUN, SKILL
from .tenants.used import Use

RUNS_KEPT = 10_000
_TRIM_EVERY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run. `kind` says what ran (`code`, `skill`, `test`); `skill` and `version` which skill, if one.

    `owner` is the scope for which it ran, the characters are those of `Use`.
    """

    run_id: str
    started_at: datetime
    duration_ms: float
    status: str
    isolation: str
    kind: str = "code"
    skill: str | None = None
    version: int | None = None
    owner: str | None = None
    chars_written: int = 0
    chars_read: int = 0
    chars_called: int = 0
    chars_defined: int = 0


RUN_COLUMNS = [RUN.c[each.name] for each in fields(RunRecord)]


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
        if not runs:
            return
        new = insert(RUN).on_conflict_do_nothing().returning(RUN.c.run_id)
        with self._database.transaction(durable=False) as connection:
            # In one order everywhere: two programs that count the same skills then never wait for each other.
            by_id = {run.run_id: run for run in sorted(runs, key=lambda run: (run.skill or "", run.started_at))}
            there = set(connection.execute(new, [asdict(run) for run in by_id.values()]).scalars())
            of_skills = [run for run in by_id.values() if run.skill is not None and run.run_id in there]
            for skill, counted in groupby(of_skills, lambda run: run.skill):
                started = [run.started_at for run in counted]
                values = {"runs": SKILL.c.runs + len(started), "last_run": max(started)}
                connection.execute(sa.update(SKILL).where(SKILL.c.name == skill).values(values))
        self._until_trim -= len(runs)
        if self._until_trim < 0:
            self._until_trim = _TRIM_EVERY
            self.trim()

    def recent(self, limit: int = 50, *, skill: str | None = None) -> tuple[RunRecord, ...]:
        """Return the last records, newest first; only those of a skill, if one is given."""
        if skill is not None and not storable(skill):
            return ()
        wanted = sa.select(*RUN_COLUMNS).order_by(RUN.c.id.desc()).limit(limit)
        if skill is not None:
            wanted = wanted.where(RUN.c.skill == skill)
        with self._database.read() as connection:
            return tuple(RunRecord(**row._asdict()) for row in connection.execute(wanted))

    def status_of(self, run_id: str) -> str | None:
        """Return how a run ended; None where there is no record of it."""
        if not storable(run_id):
            return None
        with self._database.read() as connection:
            found: str | None = connection.execute(sa.select(RUN.c.status).where(_of_run(run_id)).limit(1)).scalar()
            return found

    def uses(self, *, since: datetime | None = None, run_id: str = "") -> dict[str, Use]:
        """Return what the model wrote and read for runs, by their names: since a time, or for the one of a name."""
        chars = [RUN.c[name] for name in Use._fields if name in RUN.c]
        wanted = sa.select(RUN.c.run_id, *chars).where(RUN.c.chars_read > 0)
        if since is not None:
            wanted = wanted.where(RUN.c.started_at >= since)
        if run_id:
            wanted = wanted.where(_of_run(run_id))
        with self._database.read() as connection:
            return {row[0].partition("/")[0]: Use(0.0, 1, *row[1:]) for row in connection.execute(wanted)}

    def use_of(self, owner: str) -> Use:
        """Return what the model wrote and read for the runs of a scope of which records are kept."""
        sums = (sa.func.coalesce(sa.func.sum(RUN.c[name]), 0) for name in Use._fields if name in RUN.c)
        ran = sa.func.count().filter(RUN.c.chars_read > 0)
        with self._database.read() as connection:
            row = connection.execute(sa.select(ran, *sums).where(RUN.c.owner == owner)).one()
        return Use(0.0, *map(int, row))

    def most_used(self, owner: str, limit: int) -> tuple[str, ...]:
        """Return the skills that ran most often for a scope, by the records kept, then those that ran most for all."""
        if not storable(owner):
            return ()
        times = sa.func.count().desc()
        own = sa.select(RUN.c.skill).where(RUN.c.owner == owner, RUN.c.skill.is_not(None)).group_by(RUN.c.skill)
        of_all = sa.select(SKILL.c.name).where(SKILL.c.runs > 0).order_by(SKILL.c.runs.desc(), SKILL.c.name)
        with self._database.read() as connection:
            wanted = (own.order_by(times, RUN.c.skill), of_all)
            found = [name for each in wanted for name in connection.execute(each.limit(limit)).scalars()]
        return tuple(dict.fromkeys(found))[:limit]

    def count_by_status(self) -> dict[str, int]:
        """Return how many of the records kept ended in which way."""
        counted = sa.select(RUN.c.status, sa.func.count()).group_by(RUN.c.status)
        with self._database.read() as connection:
            return {status: count for status, count in connection.execute(counted)}  # noqa: C416 - rows are not typed

    def trim(self) -> int:
        """Drop the oldest records beyond the number to keep, and return how many."""
        first_kept = sa.select(RUN.c.id).order_by(RUN.c.id.desc()).offset(self._kept - 1).limit(1)
        with self._database.transaction(durable=False) as connection:
            return connection.execute(sa.delete(RUN).where(RUN.c.id < first_kept.scalar_subquery())).rowcount


def _of_run(run_id: str) -> sa.ColumnElement[bool]:
    return (RUN.c.run_id == run_id) | RUN.c.run_id.startswith(f"{run_id}/", autoescape=True)
