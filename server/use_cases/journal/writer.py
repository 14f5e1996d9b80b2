"""Writes journals to the database in a thread of its own: what many runs have, in one commit that all of them share.

Whoever must know something written waits for the next commit (`stored`), with all others that wait. Everything else is
written when no run has added anything for a moment, or there is much: opening the database costs a second of the
processor, which is better spent when nobody waits for it.

What could not be written since the database cannot be reached, or its disk is full, waits and is tried again, up to
`WAITING_BYTES_MAX`. Where the connection was lost during a commit, it is first asked whether that came about. Any other
failure leaves a gap in the journals concerned: they take no more records, their end says so, and they are never
replayed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from ....skills_db.errors import CommitUnknown, DatabaseUnavailable, JournalErased, SkillsDbError
from ....skills_db.journal.records import RunChange, joined
from ...base.errors import KNOWN_ERRORS
from ...base.write_behind import WriteBehind

if TYPE_CHECKING:
    from ....skills_db.journal.journal_store import JournalStore
    from ....skills_db.journal.records import Record, RunBegin, RunEnd

QUIET_SECONDS = 1.0
"""How long nothing must have been added before what nobody waits for is written."""
WAIT_SECONDS_MAX = 30.0
"""How long it waits at most for such a moment."""
WRITE_BYTES = 4 * 1024 * 1024
"""How much is written at once without such a moment."""
WAITING_BYTES_MAX = 64 * 1024 * 1024
"""How much may wait for a database that cannot be written."""
LEASE_SECONDS = 60.0
"""How long after the last word of its process a run counts as cut."""
RENEW_SECONDS = 20.0
"""How often a process says that it has its runs."""
CANCEL_SECONDS = 4.0
"""How often a process looks which of its runs are to end."""
PURGE_SECONDS = 600.0
"""How often journals that have outlived their time are removed."""
PASSING = (DatabaseUnavailable, CommitUnknown)
"""What ends by itself, or by what an operator does: it is tried again."""
_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class WrittenRun:
    """How far the journal of one run is written. `lost` says why it has a gap, if it has one."""

    run_id: str
    scope: str
    pieces: int = 0
    waiting_bytes: int = 0
    lost: str | None = None


@dataclass(slots=True, eq=False)
class _Added:
    """What waits of one run; begin, records and end are made where they are written, since they may be large."""

    run: WrittenRun
    begin: Callable[[], RunBegin] | None = None
    records: list[Callable[[], Record | None]] = field(default_factory=list)
    end: Callable[[], RunEnd] | None = None
    bytes: int = 0


class JournalWriter:
    """Writes the journals of one server, which is the `process`; `add` and `stored` are for its event loop."""

    def __init__(
        self,
        store: Callable[[], JournalStore],
        process: str,
        cancel: Callable[[Sequence[str]], object] = lambda _run_ids: None,
    ) -> None:
        """Make it; `cancel` is called in its thread with the runs that are to end."""
        self._store = store
        self._cancel = cancel
        self._process = process
        self._changing = threading.Lock()
        self._open: set[WrittenRun] = set()
        """The runs that have begun and not ended, as the database has them."""
        self._renewed = self._looked = 0.0
        self._purge_at: float | None = None
        self._unheard: Sequence[RunChange] = ()
        """The last commit, of which it is not known whether it came about."""
        self._behind: WriteBehind[_Added] = WriteBehind(
            "journals of runs under way",
            self._write,
            quiet_seconds=QUIET_SECONDS,
            wait_seconds_max=WAIT_SECONDS_MAX,
            merge=_by_run,
            passing=PASSING,
            size=lambda added: added.bytes,
            much=WRITE_BYTES,
            waiting_max=WAITING_BYTES_MAX,
            retry_seconds=QUIET_SECONDS,
            lost=self._lose,
            beside=self._keep_up,
        )

    def add(
        self,
        run: WrittenRun,
        *,
        begin: Callable[[], RunBegin] | None = None,
        record: Callable[[], Record | None] | None = None,
        end: Callable[[], RunEnd] | None = None,
        count: int = 0,
    ) -> None:
        """Queue a record of a run for writing; `count` is its size in bytes. Returns at once.

        A record is made where it is written; then it may be None.
        """
        with self._changing:
            run.waiting_bytes += count
        self._behind.add(_Added(run, begin, [] if record is None else [record], end, count))

    def hurry(self) -> None:
        """Start writing what was added; returns before it is written."""
        self._behind.hurry()

    async def stored(self, *, durable: bool) -> None:
        """Wait until all that was added is written, with `durable` so that it survives a crash of the machine.

        Raises `SkillsDbError` where it could not be written.
        """
        await self._behind.stored(durable=durable)

    def close(self) -> None:
        """Write what waits and end. Blocks."""
        self._behind.close()

    def has(self, run: WrittenRun) -> None:
        """Keep the lease of a run that this process took over."""
        self._keep(run)
        self._behind.wake()

    def let_go(self, run: WrittenRun) -> None:
        """Keep the lease of a run no longer."""
        with self._changing:
            self._open.discard(run)

    def _write(self, added: list[_Added]) -> None:
        """Write what was added, all at once, else each run by itself.

        What one run brings must not cost the others theirs: neither their records, nor those who wait for these.
        """
        store = self._store()
        self._hear(store, added)
        error = self._tried(store, added) if added else None
        if error is None:
            return
        if not _is_of_one(error):
            raise error
        first: BaseException | None = None
        for each in [*added]:
            error = self._tried(store, [each])
            if isinstance(error, PASSING):
                raise error
            added.remove(each)
            if error is not None:
                _LOG.warning("The journal of the run %s could not be written: %s", each.run.run_id, error)
                self._lose([each], error)
                first = first or (None if _is_of_one(error) else error)
        if first is not None:
            raise first

    def _hear(self, store: JournalStore, added: list[_Added]) -> None:
        """Find out whether a commit came about of which nothing was heard; if so, its records are not written again."""
        if self._unheard and store.is_written(self._unheard):
            count = len(self._unheard)
            self._note_written(added[:count], self._unheard)
            del added[:count]
        self._unheard = ()

    def _tried(self, store: JournalStore, added: Sequence[_Added]) -> BaseException | None:
        try:
            changes = [self._change(each) for each in added]
            scopes = {each.run.run_id: each.run.scope for each in added}
            store.write(changes, scopes, durable=self._behind.is_durable)
        except CommitUnknown as error:
            self._unheard = changes
            return error
        except Exception as error:  # noqa: BLE001 - passed to all who wait, and logged
            return error
        self._note_written(added, changes)
        return None

    def _note_written(self, added: Sequence[_Added], changes: Sequence[RunChange]) -> None:
        for each, change in zip(added, changes, strict=True):
            each.run.pieces += bool(change.piece)
            with self._changing:
                each.run.waiting_bytes -= each.bytes
            if change.end is not None:
                self.let_go(each.run)
            elif change.begin is not None:
                self._keep(each.run)
        self._purge_at = self._purge_at or 0.0

    def _change(self, added: _Added) -> RunChange:
        made = () if added.run.lost else (make() for make in added.records)
        return RunChange(
            added.run.run_id,
            added.run.pieces,
            None if added.begin is None else added.begin(),
            joined([each for each in made if each is not None]),
            None if added.end is None else added.end(),
            self._process,
        )

    def _lose(self, added: Sequence[_Added], error: BaseException | None) -> None:
        """Note the gap that a failure leaves in journals."""
        self._unheard = ()
        for each in added:
            each.run.lost = each.run.lost or (
                "Too much waits for the database." if error is None else failure_text(error)
            )
            with self._changing:
                each.run.waiting_bytes -= each.bytes

    def _keep(self, run: WrittenRun) -> None:
        with self._changing:
            if not self._open:
                self._renewed = self._looked = time.monotonic()
            self._open.add(run)

    def _keep_up(self) -> float:
        """Keep the leases of the runs under way, drop journals from time to time, and return when to do so again."""
        now = time.monotonic()
        if self._purge_at is not None and now >= self._purge_at:
            self._purge_at = now + PURGE_SECONDS
            self._ask(
                "Journals that have outlived their time could not be removed: %s", lambda store: store.drop_expired()
            )
        if not self._open:
            return inf
        if now - self._renewed >= RENEW_SECONDS:
            self._renewed = now
            self._ask(
                "The runs under way could not be kept: %s", lambda store: store.renew(self._process, LEASE_SECONDS)
            )
        if now - self._looked >= CANCEL_SECONDS:
            self._looked = now
            self._ask(
                "It cannot be looked which runs are to end: %s",
                lambda store: self._cancel(store.cancelled(self._process)),
            )
        return max(min(self._renewed + RENEW_SECONDS, self._looked + CANCEL_SECONDS) - now, 0.0)

    def _ask(self, failure: str, question: Callable[[JournalStore], object]) -> None:
        try:
            question(self._store())
        except SkillsDbError as error:
            _LOG.warning(failure, error)


def failure_text(error: BaseException) -> str:
    """Return what code may read of a failure."""
    return str(error) if isinstance(error, KNOWN_ERRORS) else "The server's log says why."


def _is_of_one(error: BaseException) -> bool:
    """Return whether a failure to write is that of one run, not of the database."""
    return isinstance(error, JournalErased) or not isinstance(error, SkillsDbError)


def _by_run(added: list[_Added]) -> list[_Added]:
    """Bring together what waits of the same run."""
    runs: dict[WrittenRun, _Added] = {}
    for each in added:
        run = runs.setdefault(each.run, _Added(each.run))
        run.begin, run.end = run.begin or each.begin, each.end or run.end
        run.records += each.records
        run.bytes += each.bytes
    return list(runs.values())
