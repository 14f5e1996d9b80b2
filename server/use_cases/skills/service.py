"""The stored skills as the server holds them: reached from its event loop, and with a record of each run.

Records are written by a thread of their own, after the reply, many at once, when no run has ended for a moment: opening
the database costs a second of the processor, which is better spent when nobody waits for it. They never delay a run,
and a record that cannot be written is only logged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ....skills_db.errors import SkillNotFound
from ...base.database import HomeDatabase
from ...base.host_work import Kind, in_thread
from ...base.write_behind import WriteBehind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....skills_db.runs import RunRecord, RunStore
    from ....skills_db.skills import SkillStore
    from ....skills_db.tenants.used import Use

T = TypeVar("T")
_PAUSE_SECONDS = 1.0
_PENDING_SECONDS_MAX = 30.0
"""How long a record may wait for a moment without runs."""


@dataclass(frozen=True, slots=True)
class _EndedRun:
    """A run that ended, and the version of a skill that it used; `ended` in seconds since the epoch."""

    run_id: str
    owner: str
    skill: str | None
    version: int | None
    ended: float
    duration_ms: float
    status: str
    isolation: str
    use: Use | None


_USED_MAX = 100
"""Skills that one uses, looked through for one that needs full Python; what is beyond says so when it is used."""


class SkillService:
    """The store of skills below one home, and the records of what ran.

    `keeps_plain_runs` says whether runs that use no skill are recorded too, as a server does; a command that runs one
    program does not open a database for it. The store keeps `bytes_max` at most. `shelf` has the skills that this store
    may read beside its own: of those, the ones that are tagged `SHARED`.
    """

    def __init__(
        self,
        database: HomeDatabase,
        *,
        keeps_plain_runs: bool = True,
        bytes_max: int | None = None,
        shelf: SkillService | None = None,
    ) -> None:
        self._bytes_max = bytes_max
        self._database = database
        self._keeps_plain_runs = keeps_plain_runs
        self._shelf = shelf
        self._store: SkillStore | None = None
        self._runs: RunStore | None = None
        self._changes_notified = 0
        self.watchers: list[Callable[[], None]] = []
        """What is called in the event loop when skills have changed; their owners append to this."""
        self._ended: WriteBehind[_EndedRun] = WriteBehind(
            "records of runs",
            self._write,
            quiet_seconds=_PAUSE_SECONDS,
            wait_seconds_max=_PENDING_SECONDS_MAX,
        )

    async def ask(self, question: Callable[[SkillStore], T]) -> T:
        """Ask the store something, in a thread. Raises `SkillsDbError`."""
        answer = await in_thread(Kind.DATABASE, partial(self._asked, question))
        if self._store is not None and self._store.changes != self._changes_notified:
            self._changes_notified = self._store.changes
            self.have_changed()
        return answer

    async def wider_among(self, names: Collection[str]) -> frozenset[str]:
        """Return those of the named skills that the dialect refuses, or that use one that it refuses.

        Raises `SkillsDbError`.
        """
        return await self.ask(lambda store: frozenset(name for name in names if _is_wider(store, name)))

    def have_changed(self) -> None:
        """Notify the watchers that skills have changed, or may have; returns at once."""
        for watcher in list(self.watchers):
            watcher()

    async def how_ended(self, run_id: str) -> str | None:
        """Return how a run ended; None where it was not recorded. Raises `SkillsDbError`."""
        return await in_thread(Kind.DATABASE, partial(self._how_ended, run_id))

    async def most_used(self, owner: str, limit: int) -> Sequence[str]:
        """Return the skills that ran most often for a scope, then those that ran most for all. Raises as `ask`."""
        return await in_thread(Kind.DATABASE, lambda: self.run_store().most_used(owner, limit))

    async def recent_runs(self, limit: int) -> Sequence[RunRecord]:
        """Return the last records of runs of skills, newest first. Raises as `ask`."""
        return await in_thread(Kind.DATABASE, partial(self._recent_runs, limit))

    @property
    def has_database(self) -> bool:
        """Whether there can be any skill: a database server, or a file, or others' skills."""
        return self._shelf is not None or self._database.is_there

    def store(self) -> SkillStore:
        """Return the store; call it from a thread."""
        if self._store is None:
            if self._shelf is None:
                from ....skills_db.skills import SkillStore

                self._store = SkillStore(self._database(), bytes_max=self._bytes_max)
            else:
                from ....skills_db.tenants.shelf import ShelvedSkills

                self._store = ShelvedSkills(self._database(), self._shelf.store(), bytes_max=self._bytes_max)
        return self._store

    @property
    def publishes(self) -> bool:
        """Whether others read the skills of this store that are tagged as shared."""
        return self._shelf is None

    def run_store(self) -> RunStore:
        """Return the records; call it from a thread."""
        if self._runs is None:
            from ....skills_db.runs import RunStore

            self._runs = RunStore(self._database())
        return self._runs

    def note(
        self,
        run_id: str,
        *,
        owner: str,
        duration_ms: float,
        status: str,
        isolation: str,
        skills: Mapping[str, int],
        use: Use | None = None,
    ) -> None:
        """Record a run that has just ended, for whom, with these versions of skills, and its use; returns at once."""
        used: Iterable[tuple[str, str | None, int | None]]
        if skills:
            used = [(f"{run_id}/{name}", name, version) for name, version in skills.items()]
        elif self._keeps_plain_runs:
            used = [(run_id, None, None)]
        else:
            return
        now = time.time()
        self._ended.add(
            *(
                _EndedRun(own_id, owner, name, version, now, duration_ms, status, isolation, None if number else use)
                for number, (own_id, name, version) in enumerate(used)
            ),
            idly=not self._keeps_plain_runs,
        )

    def close(self) -> None:
        """Write what waits and end. Blocks."""
        # A server that recorded nothing but plain runs, and is ending, has no use for opening a database.
        of_skills = any(each.skill is not None for each in self._ended.waiting())
        self._ended.close(writes=bool(self._store or self._runs or of_skills))

    def _write(self, ended: list[_EndedRun]) -> None:
        from ....skills_db.runs import RunRecord

        self.run_store().record(
            *(
                RunRecord(
                    run_id=each.run_id,
                    started_at=datetime.fromtimestamp(each.ended, UTC) - timedelta(milliseconds=each.duration_ms),
                    duration_ms=each.duration_ms,
                    status=each.status,
                    isolation=each.isolation,
                    kind="code" if each.skill is None else "skill",
                    skill=each.skill,
                    version=each.version,
                    owner=each.owner,
                    **_chars_of(each.use),
                )
                for each in ended
            )
        )

    def _how_ended(self, run_id: str) -> str | None:
        self._ended.flush()
        return self.run_store().status_of(run_id)

    def _recent_runs(self, limit: int) -> Sequence[RunRecord]:
        self._ended.flush()
        return [run for run in self.run_store().recent(limit) if run.skill is not None]

    def _asked(self, question: Callable[[SkillStore], T]) -> T:
        self._ended.flush()
        return question(self.store())


def _is_wider(store: SkillStore, name: str) -> bool:
    waiting, seen = [name], {name}
    while waiting and len(seen) <= _USED_MAX:
        try:
            draft = store.load(waiting.pop()).draft
        except SkillNotFound:
            continue
        if draft.extra.get("wider"):
            return True
        waiting += [used for used in draft.skills if used not in seen]
        seen.update(draft.skills)
    return False


def _chars_of(use: Use | None) -> dict[str, int]:
    fields = {} if use is None else use._asdict()
    return {name: count for name, count in fields.items() if name.startswith("chars_")}
