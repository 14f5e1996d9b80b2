"""The journals of one server: begins one for each run, and reads those that are kept."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ....sandbox.job import Job, Start
from ....skills_db.journal.records import RunBegin
from ...base.database import Opening
from ...base.host_work import Kind, in_thread
from ...base.identity import LOCAL_IDENTITY, Identity
from ...base.lru import Lru
from ...base.settings import Settings
from ...governance.scopes import is_brief
from .recording import RunJournal, RunRecording, encoded, header_of, size_of
from .writer import LEASE_SECONDS, JournalWriter, WrittenRun

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ....skills_db.journal.background_store import BackgroundStore
    from ....skills_db.journal.journal_store import JournalStore
    from ....skills_db.journal.records import SessionPrograms, StoredJournal

SECONDS_PER_DAY = 86_400.0
BRIEF_DAYS = 1.0
"""How long journals of callers live at most that are known by a connection alone."""
_SESSIONS_KNOWN = 10_000
_UNKNOWN = "unknown"
"""The run before a program of which that is not known any more: such a session cannot be rebuilt."""
_WITHOUT_END = 100 * 366 * SECONDS_PER_DAY


@dataclass(frozen=True, slots=True)
class BegunRun:
    """A run that is about to begin; `session` is what its caller calls the session of the job."""

    run_id: str
    job: Job
    scope: str
    session: str | None = None
    dry_run: bool = False
    is_patient: bool = False
    """Whether it waits for a database that cannot be written."""
    identity: Identity = LOCAL_IDENTITY


class Journal:
    """Where the runs of one server are journaled. Nothing is opened before something has to be written or read."""

    def __init__(
        self, settings: Settings, database: Callable[[], Database], key: Callable[[], bytes], *, keeps: bool = True
    ) -> None:
        """Make it; `key` returns the vault's master key and may block. Without `keeps` no run is journaled."""
        self._settings = settings
        self._database = database
        self._key = key
        self._keeps = keeps
        self._store = Opening(self._open)
        self._process = secrets.token_hex(8)
        self._writer = JournalWriter(self.store, self._process, self._cancel)
        self._cancellable: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = {}
        self._last: Lru[str, str] = Lru(_SESSIONS_KNOWN)
        """The run that each session is at, by what the sandbox calls the session."""
        self._background = Opening(self._open_background)
        self._open_runs: WeakValueDictionary[str, RunJournal] = WeakValueDictionary()

    def begin(self, run: BegunRun) -> RunRecording:
        """Begin the journal of a run."""
        if not self._keeps:
            return RunRecording()
        begin_bytes = len(run.job.code) + size_of(run.job.context_vars)
        begin = partial(self._begun, run, time.time())
        written = WrittenRun(run.run_id, run.scope)
        journal = RunJournal(
            self._writer,
            written,
            begin,
            partial(self._placed, run),
            begin_bytes=begin_bytes,
            is_patient=run.is_patient,
            waits=run.job.waits,
        )
        return self._opened(journal, run.run_id)

    def resume(self, run_id: str, scope: str | None) -> StoredJournal:
        """Take up a run of a scope, or of any, that was cut; return what is recorded of it. Blocks.

        Raises `RunNotCut` where it has ended or a process is at work on it, and what reading its journal raises.
        """
        return self.store().take_over(run_id, self._process, LEASE_SECONDS, scope=scope)

    def going_on(self, record: StoredJournal, run: BegunRun) -> RunJournal:
        """Return the journal in which a run goes on that was taken up."""
        written = WrittenRun(run.run_id, run.scope, pieces=record.pieces)
        self._writer.has(written)
        placed = partial(self._placed, run)
        journal = RunJournal(self._writer, written, None, placed, is_patient=run.is_patient, waits=run.job.waits)
        return self._opened(journal, run.run_id)

    def leave_open(self, run_id: str) -> None:
        """Leave open the journal of a run that is about to be broken off: another process goes on with it."""
        journal = self._open_runs.get(run_id)
        if journal is not None:
            journal.leave_open()

    @contextmanager
    def cancellable(self, run_id: str, until: asyncio.Timeout) -> Iterator[None]:
        """Let `until` expire as soon as the end of the run is requested."""
        self._cancellable[run_id] = asyncio.get_running_loop(), until
        try:
            yield
        finally:
            self._cancellable.pop(run_id, None)

    def _cancel(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            loop, until = self._cancellable.get(run_id, (None, None))
            if loop is not None and until is not None:
                loop.call_soon_threadsafe(self._expire, run_id, until)

    def _expire(self, run_id: str, until: asyncio.Timeout) -> None:
        if self._cancellable.pop(run_id, None) is not None:
            until.reschedule(asyncio.get_running_loop().time())

    async def settled(self, run_id: str) -> None:
        """Let a run that is about to be broken off begin no further call, and wait for the calls at work."""
        journal = self._open_runs.get(run_id)
        if journal is not None:
            await journal.settled()

    async def release(self, run_id: str) -> None:
        """Let another process go on at once with a run that was left open. Raises `SkillsDbError`."""
        if self._keeps:
            await self.stored()
            await in_thread(Kind.DATABASE, lambda: self.store().release(run_id, self._process), charged=False)

    @property
    def keeps(self) -> bool:
        """Whether runs are journaled."""
        return self._keeps

    def store(self) -> JournalStore:
        """Return the store. Blocks. Raises what opening it raises."""
        return self._store()

    def background(self) -> BackgroundStore:
        """Return the store of background runs. Blocks. Raises what opening it raises."""
        return self._background()

    @property
    def background_is_open(self) -> bool:
        """Whether the store of background runs was opened."""
        return self._background.made is not None

    def session(self, scope: str, name: str) -> SessionPrograms:
        """Return what a session consists of that has no worker. Blocks. Raises what reading the database raises."""
        return self.store().session(scope, name)

    def rebuilt(self, session: str, run_id: str) -> None:
        """Take that a session, as the sandbox calls it, is rebuilt up to this run."""
        self._last[session] = run_id

    async def close_session(self, scope: str, name: str) -> bool:
        """End a session for good, so that it is not rebuilt; return whether it could have been.

        Raises `SkillsDbError`.
        """
        if not self._keeps:
            return False
        await self.stored(durable=True)
        return await in_thread(Kind.DATABASE, lambda: self.store().close_session(scope, name), charged=False)

    async def stored(self, *, durable: bool = False) -> None:
        """Wait until all that was recorded so far is written. Raises `SkillsDbError`."""
        await self._writer.stored(durable=durable)

    def close(self) -> None:
        """Write what waits. Blocks."""
        self._writer.close()

    def _opened(self, journal: RunJournal, run_id: str) -> RunJournal:
        self._open_runs[run_id] = journal
        return journal

    def _placed(self, run: BegunRun, program: int) -> str | None:
        """Note that a run is the last of its session; return the one before it, None of the first."""
        session = run.job.session
        if session is None:
            return None
        before = self._last.get(session, _UNKNOWN) if program else None
        self._last[session] = run.run_id
        return before

    def _begun(
        self, run: BegunRun, began: float, start: Start | None, program: int | None, after: str | None
    ) -> RunBegin:
        job = run.job
        return RunBegin(
            run_id=run.run_id,
            scope=run.scope,
            isolation=job.isolation.value,
            began=began,
            expires=began + self.life_of(run.scope),
            timeout_seconds=job.limits.timeout_seconds,
            memory_mb=job.limits.memory_mb,
            header=encoded(header_of(job, start, run.identity, dry_run=run.dry_run)),
            session=run.session,
            number=None if run.session is None else program,
            after=after,
            leased_by=self._process,
            leased_until=began + LEASE_SECONDS,
        )

    def life_of(self, scope: str) -> float:
        """Return how many seconds the journals of a scope are kept."""
        days = self._settings.journal_days
        life = _WITHOUT_END if days is None else days * SECONDS_PER_DAY
        return min(life, BRIEF_DAYS * SECONDS_PER_DAY) if is_brief(scope) else life

    def _open(self) -> JournalStore:
        from ....skills_db.journal.journal_store import JournalStore

        return JournalStore(self._database(), self._key(), quota_bytes=self._settings.journal_quota_mb * 1_000_000)

    def _open_background(self) -> BackgroundStore:
        from ....skills_db.journal.background_store import BackgroundStore

        self.store()  # it compares the key with the one that was used before
        return BackgroundStore(self._database(), self._key(), process=self._process)
