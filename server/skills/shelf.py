"""The stored skills as the server holds them: reached from its event loop, and with a record of each run.

Records are written by a thread of their own, after the reply, many at once. They never delay a run, and a record that
cannot be written is only logged.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

from ..database import HomeDatabase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...skills_db.runs import RunStore
    from ...skills_db.skills import SkillStore

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_PENDING_MAX = 10_000
_PAUSE_SECONDS = 1.0


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
        self._pending: deque[tuple[str, str | None, int | None, float, float, str, str]] = deque(maxlen=_PENDING_MAX)
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    async def ask(self, question: Callable[[SkillStore], T]) -> T:
        """Ask the store something, in a thread. Raises `SkillsDbError`."""
        return await anyio.to_thread.run_sync(partial(self._asked, question))

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
        ended = time.time()
        if skills:
            for name, version in skills.items():
                self._pending.append((f"{run_id}/{name}", name, version, ended, duration_ms, status, isolation))
        elif self._keeps_plain_runs:
            self._pending.append((run_id, None, None, ended, duration_ms, status, isolation))
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
                except Exception as error:  # noqa: BLE001 - a record is worth no failed call
                    _LOG.warning("%d runs could not be recorded: %s", len(pending), error)

    def close(self) -> None:
        """Write what is pending and end the thread."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        # A server that recorded nothing but plain runs, and is ending, has no use for opening a database.
        if self._store or self._runs or any(entry[1] is not None for entry in self._pending):
            self.flush()

    def _work(self) -> None:
        while not self._wake.wait(_PAUSE_SECONDS):
            if self._pending:
                self.flush()

    def _write(self, pending: list[tuple[str, str | None, int | None, float, float, str, str]]) -> None:
        from ...skills_db.runs import RunRecord  # noqa: PLC0415 - as above

        self.run_store().record(
            *(
                RunRecord(
                    run_id=run_id,
                    started_at=datetime.fromtimestamp(ended, UTC) - timedelta(milliseconds=duration_ms),
                    duration_ms=duration_ms,
                    status=status,
                    isolation=isolation,
                    kind="code" if skill is None else "skill",
                    skill=skill,
                    version=version,
                )
                for run_id, skill, version, ended, duration_ms, status, isolation in pending
            )
        )

    def _asked(self, question: Callable[[SkillStore], T]) -> T:
        if self._pending or self._writing.locked():  # what is being written counts too: flushing waits for it
            self.flush()
        return question(self.store())
