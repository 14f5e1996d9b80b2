"""Keeps what runs at set times: which skill with which arguments, for whom, when next, and what became of it last.

A security boundary: what is to run, with its arguments and whose it is, stands in the database as ciphertext alone.

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ScheduleMoved
from ..sql import Connection, Row, insert, sa
from ..tables import SCHEDULE
from ..vault_keys import SealBroken
from .sealing import JournalKeys

if TYPE_CHECKING:
    from ..engine import Database

_PART = "schedule"


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """One schedule. `definition` is what it was added with, None where that was changed or is damaged.

    Times are in seconds since 1970. Without `next_time` it is paused. `last_run` is judged once that run has ended;
    `failures` were the last runs in a row, `attempt` counts the retries of the last time.
    """

    name: str
    owner: str
    definition: Mapping[str, object] | None
    next_time: float | None
    fired: float | None
    last_run: str | None
    judged: bool
    failures: int
    attempt: int
    outcome: str
    reason: str


class ScheduleStore:
    """The schedules of one database under one master key."""

    def __init__(self, database: Database, keys: JournalKeys) -> None:
        self._database = database
        self._keys = keys

    def put(
        self,
        name: str,
        scope: str,
        definition: Mapping[str, object],
        next_time: float,
        *,
        before: StoredSchedule | None,
        most: int,
        most_of_owner: int,
    ) -> int:
        """Store a schedule, in the place of the one that was there `before`.

        Returns 0, or where there are `most` others, or `most_of_owner` of its owner, that number. Raises
        `ScheduleMoved` where there is another than `before`, or one where there was none.
        """
        owner = self._keys.owner(scope)
        row = {
            "owner": owner,
            "next_time": next_time,
            "sealed": self._keys.sealed(owner, name, _PART, 0, json.dumps(definition).encode("ascii")),
            **_RESTED,
        }
        others = sa.select(sa.func.count()).where(_COLUMNS.name != name)
        first = {"name": name, **row, "fired": None, "last_run": None, "judged": 1, "outcome": ""}
        put: sa.Insert | sa.Update = sa.update(SCHEDULE).where(_COLUMNS.name == name).values(row)
        if before is None:
            put = insert(SCHEDULE).values(first).on_conflict_do_nothing()
        with self._database.transaction() as connection:
            self._require(connection, name, before)
            for bound, counted in ((most, others), (most_of_owner, others.where(_COLUMNS.owner == owner))):
                if connection.execute(counted).scalar_one() >= bound:
                    return bound
            if not connection.execute(put).rowcount:
                raise _moved()
        return 0

    def all(self) -> list[StoredSchedule]:
        """Return all of them by name."""
        return self._those()

    def due(self, now: float) -> list[StoredSchedule]:
        """Return those whose time has come, or whose last run is not judged."""
        return self._those((_COLUMNS.next_time <= now) | (_COLUMNS.judged == 0))

    def named(self, name: str) -> StoredSchedule | None:
        """Return the one of a name."""
        return next(iter(self._those(_COLUMNS.name == name)), None)

    def is_of(self, schedule: StoredSchedule, scope: str) -> bool:
        """Return whether a schedule is a scope's."""
        return schedule.owner == self._keys.owner(scope)

    def firing(self, schedule: StoredSchedule, run_id: str, **values: object) -> Callable[[Connection], None]:
        """Return what notes a run of a schedule in the transaction that queues the run.

        It raises `ScheduleMoved`, so that nothing is queued, where the schedule has changed since it was read.
        """
        fired = {**values, "last_run": run_id, "judged": 0, "fired": self._database.now(), "outcome": ""}

        def note(connection: Connection) -> None:
            if not connection.execute(self._unchanged(schedule).values(fired)).rowcount:
                raise _moved()

        return note

    def change(self, schedule: StoredSchedule, **values: object) -> bool:
        """Change a schedule, unless it has changed since it was read; return whether it was changed here."""
        with self._database.transaction() as connection:
            return connection.execute(self._unchanged(schedule).values(values)).rowcount > 0

    def remove(self, schedule: StoredSchedule) -> bool:
        """Remove a schedule; return whether it was there. Raises `ScheduleMoved` where there is another of its name."""
        with self._database.transaction() as connection:
            if self._require(connection, schedule.name, schedule, None):
                connection.execute(sa.delete(SCHEDULE).where(_COLUMNS.name == schedule.name))
                return True
        return False

    def _require(self, connection: Connection, name: str, *expected: StoredSchedule | None) -> bool:
        """Return whether there is one of a name. Raises `ScheduleMoved` where it says what none of those says."""
        row = connection.execute(sa.select(SCHEDULE).where(_COLUMNS.name == name).with_for_update()).one_or_none()
        found = None if row is None else self._schedule(row)
        if (found and (found.owner, found.definition)) not in [
            each and (each.owner, each.definition) for each in expected
        ]:
            raise _moved()
        return found is not None

    def forget(self, holds: Callable[[object], bool] | None, owner: str | None) -> None:
        """Remove those of an owner, or of all, which `holds` says hold something or that cannot be read."""
        for each in self._those(*(() if owner is None else (_COLUMNS.owner == owner,))):
            if holds is None or each.definition is None or holds(each.definition):
                self.remove(each)

    def _those(self, *which: sa.ColumnElement[bool]) -> list[StoredSchedule]:
        with self._database.read() as connection:
            return list(
                map(self._schedule, connection.execute(sa.select(SCHEDULE).where(*which).order_by(_COLUMNS.name)))
            )

    def _schedule(self, row: Row) -> StoredSchedule:
        parts = row._asdict()
        try:
            definition = json.loads(self._keys.opened(row.owner, row.name, _PART, 0, parts.pop("sealed")))
        except SealBroken:
            definition = None
        return StoredSchedule(**parts | {"definition": definition, "judged": bool(row.judged)})

    def _unchanged(self, schedule: StoredSchedule) -> sa.Update:
        """Return the change of a schedule under the condition that it is as it was read."""
        values = {name: getattr(schedule, name) for name in ("next_time", "last_run", "failures", "attempt")}
        same = (_COLUMNS[name].is_not_distinct_from(value) for name, value in values.items())
        return sa.update(SCHEDULE).where(
            _COLUMNS.name == schedule.name,
            _COLUMNS.owner == schedule.owner,
            _COLUMNS.judged == int(schedule.judged),
            *same,
        )


def _moved() -> ScheduleMoved:
    return ScheduleMoved("The schedule was changed at this moment. Look at it again.")


def any_due(connection: Connection, now: float) -> bool:
    """Return whether the time of a schedule has come."""
    return connection.execute(sa.select(1).where(_COLUMNS.next_time <= now).limit(1)).first() is not None


_COLUMNS = SCHEDULE.c
_RESTED: Mapping[str, object] = {"failures": 0, "attempt": 0, "reason": ""}
"""What a schedule is like that has just been added, or that its owner has go on."""
