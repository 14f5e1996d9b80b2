"""The stored skills as the server holds them: reached from its event loop, and with a record of each run.

Records are written by a thread of their own, after the reply, many at once, when no run has ended for a moment: opening
the database costs a second of the processor, which is better spent when nobody waits for it. They never delay a run,
and a record that cannot be written is only logged.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ...skills_db.errors import DatabaseUnreachable
from ..database import HomeDatabase
from ..host_work import Kind, in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...skills_db.runs import RunStore
    from ...skills_db.skills import SkillStore

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_PENDING_MAX = 10_000
_PAUSE_SECONDS = 1.0
_PENDING_SECONDS_MAX = 30.0
"""How long a record may wait for a moment without runs."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """A run that ended, and the version of a skill that it used.

    `ended` in seconds since the epoch, and `noted` by the monotonic clock, which nobody sets back.
    """

    run_id: str
    skill: str | None
    version: int | None
    ended: float
    noted: float
    duration_ms: float
    status: str
    isolation: str


class SkillShelf:
    """The store of skills below one home, and the records of what ran.

    `keeps_plain_runs` says whether runs that use no skill are recorded too, as a server does; a command that runs one
    program does not open a database for it.
    """

    def __init__(self, database: HomeDatabase, *, keeps_plain_runs: bool = True) -> None:
        self._database = database
        self._keeps_plain_runs = keeps_plain_runs
        self._store: SkillStore | None = None
        self._runs: RunStore | None = None
        self._pending: deque[_Ended] = deque(maxlen=_PENDING_MAX)
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._unwritten = False
        self._closing = False
        self._thread: threading.Thread | None = None

    async def ask(self, question: Callable[[SkillStore], T]) -> T:
        """Ask the store something, in a thread. Raises `SkillsDbError`."""
        return await in_thread(Kind.DATABASE, partial(self._asked, question))

    def store(self) -> SkillStore:
        """Return the store; call it from a thread."""
        if self._store is None:
            from ...skills_db.skills import SkillStore  # noqa: PLC0415 - SQLAlchemy takes half a second to import

            self._store = SkillStore(self._database())
        return self._store

    def run_store(self) -> RunStore:
        """Return the records; call it from a thread."""
        if self._runs is None:
            from ...skills_db.runs import RunStore  # noqa: PLC0415 - as above

            self._runs = RunStore(self._database())
        return self._runs

    def note(self, run_id: str, *, duration_ms: float, status: str, isolation: str, skills: Mapping[str, int]) -> None:
        """Record a run that has just ended, and that it used these versions of skills; returns at once."""
        ended = partial(
            _Ended,
            ended=time.time(),
            noted=time.monotonic(),
            duration_ms=duration_ms,
            status=status,
            isolation=isolation,
        )
        if skills:
            self._pending.extend(ended(f"{run_id}/{name}", name, version) for name, version in skills.items())
        elif self._keeps_plain_runs:
            self._pending.append(ended(run_id, None, None))
        else:
            return
        if self._keeps_plain_runs and self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._work, name="run records", daemon=True)
            self._thread.start()

    def flush(self) -> None:
        """Write what is pending; call it from a thread."""
        with self._writing:
            while self._pending:
                pending = [self._pending.popleft() for _ in range(len(self._pending))]
                try:
                    self._write(pending)
                except DatabaseUnreachable as error:
                    self._pending.extendleft(reversed(pending))  # nothing of them was written: it is tried again
                    if not self._unwritten:
                        _LOG.warning("%d runs could not be recorded yet: %s", len(pending), error)
                    self._unwritten = True
                    return
                except Exception as error:  # noqa: BLE001 - a record is worth no failed call
                    _LOG.warning("%d runs could not be recorded: %s", len(pending), error)
                else:
                    self._unwritten = False

    def close(self) -> None:
        """Write what is pending and end the thread."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        # A server that recorded nothing but plain runs, and is ending, has no use for opening a database.
        if self._store or self._runs or any(each.skill is not None for each in self._pending):
            self.flush()

    def _work(self) -> None:
        while not self._wake.wait(_PAUSE_SECONDS):
            with suppress(IndexError):  # somebody else may write them meanwhile
                now = time.monotonic()
                first, last = self._pending[0].noted, self._pending[-1].noted
                if now - last >= _PAUSE_SECONDS or now - first >= _PENDING_SECONDS_MAX:
                    self.flush()

    def _write(self, pending: list[_Ended]) -> None:
        from ...skills_db.runs import RunRecord  # noqa: PLC0415 - as above

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
                )
                for each in pending
            )
        )

    def _asked(self, question: Callable[[SkillStore], T]) -> T:
        if self._pending or self._writing.locked():  # what is being written counts too: flushing waits for it
            self.flush()
        return question(self.store())
