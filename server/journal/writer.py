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

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...skills_db.errors import CommitUnknown, DatabaseUnavailable, JournalErased, SkillsDbError
from ..errors import KNOWN_ERRORS
from ..write_behind import let_go_on

if TYPE_CHECKING:
    from ...skills_db.journal.journal_store import JournalStore
    from ...skills_db.journal.records import Record, RunBegin, RunChange, RunEnd

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
PURGE_SECONDS = 600.0
"""How often journals that have outlived their time are removed."""
PASSING = (DatabaseUnavailable, CommitUnknown)
"""What ends by itself, or by what an operator does: it is tried again."""
_LOG = logging.getLogger(__name__)

_Waiter = tuple[bool, asyncio.AbstractEventLoop, "asyncio.Future[None]"]


@dataclass(slots=True, eq=False)
class WrittenRun:
    """How far the journal of one run is written. `lost` says why it has a gap, if it has one."""

    run_id: str
    scope: str
    pieces: int = 0
    waiting_bytes: int = 0
    lost: str | None = None


@dataclass(slots=True)
class _Added:
    """What waits of one run; begin, records and end are made where they are written, since they may be large."""

    begin: Callable[[], RunBegin] | None = None
    records: list[Callable[[], Record | None]] = field(default_factory=list)
    end: Callable[[], RunEnd] | None = None
    bytes: int = 0

    def goes_on(self, later: _Added) -> None:
        """Take what came later of the same run."""
        self.begin, self.end = self.begin or later.begin, later.end or self.end
        self.records += later.records
        self.bytes += later.bytes


@dataclass(frozen=True, slots=True)
class _Unheard:
    """A commit of which it is not known whether it came about."""

    added: dict[WrittenRun, _Added]
    changes: Sequence[RunChange]


class JournalWriter:
    """Writes the journals of one server, which is the `process`; `add` and `stored` are for its event loop."""

    def __init__(self, store: Callable[[], JournalStore], process: str) -> None:
        self._store = store
        self._process = process
        self._open: set[WrittenRun] = set()
        """The runs that have begun and not ended, as the database has them."""
        self._renewed = 0.0
        self._changed = threading.Condition()
        self._added: dict[WrittenRun, _Added] = {}
        self._waiters: list[_Waiter] = []
        self._unheard: _Unheard | None = None
        self._bytes = 0
        self._first = self._last = 0.0
        self._retry_at = 0.0
        self._ends = False
        self._hurries = False
        self._is_silent = False
        self._purged = 0.0
        self._thread: threading.Thread | None = None

    def add(
        self,
        run: WrittenRun,
        *,
        begin: Callable[[], RunBegin] | None = None,
        record: Callable[[], Record | None] | None = None,
        end: Callable[[], RunEnd] | None = None,
        count: int = 0,
    ) -> None:
        """Have something of a run written soon; `count` are its bytes. Returns at once.

        A record is made where it is written; then it may be None.
        """
        now = time.monotonic()
        with self._changed:
            added = self._added.setdefault(run, _Added())
            added.begin = begin or added.begin
            added.end = end or added.end
            if record is not None:
                added.records.append(record)
            added.bytes += count
            run.waiting_bytes += count
            if not self._bytes and len(self._added) == 1:
                self._first = now
            self._last = now
            self._bytes += count
            if self._thread is None and not self._ends:
                self._thread = threading.Thread(target=self._work, name="sealab-journal", daemon=True)
                self._thread.start()
            elif self._bytes >= WRITE_BYTES or len(self._added) == 1:
                self._changed.notify()

    def hurry(self) -> None:
        """Have what was added written at once; returns before it is."""
        with self._changed:
            self._hurries = True
            self._changed.notify()

    async def stored(self, *, durable: bool) -> None:
        """Wait until all that was added is written, with `durable` so that it survives a crash of the machine.

        Raises `SkillsDbError` where it could not be written.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._changed:
            if self._thread is None:
                return  # nothing was ever added
            self._waiters.append((durable, loop, future))
            self._changed.notify()
        await future

    def close(self) -> None:
        """Write what waits and end. Blocks."""
        with self._changed:
            self._ends = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (seconds := self._seconds_until_due()) > 0:
                    self._changed.wait(None if seconds == float("inf") else seconds)
                if self._ends and not self._added and not self._waiters:
                    return
                added, self._added = self._added, {}
                waiters, self._waiters = self._waiters, []
                taken, self._bytes = self._bytes, 0
                self._hurries = False
                ends = self._ends
            error = self._heard(added)
            if error is None:
                error = self._written(added, durable=any(durable for durable, _, _ in waiters))
            if isinstance(error, PASSING) and not ends:
                self._put_back(added, taken, error)
            let_go_on([(loop, future) for _, loop, future in waiters], error)
            self._renew()
            if error is None:
                self._is_silent = False
                self._purge()
            del added, waiters  # else they live on until there is more to write, with all that their runs refer to

    def _seconds_until_due(self) -> float:
        """Return how long nothing is to be written; 0 where something is."""
        if self._waiters or self._ends:
            return 0.0
        now = time.monotonic()
        renews = max(self._renewed + RENEW_SECONDS - now, 0.0) if self._open else float("inf")
        if not self._added and self._unheard is None:
            return renews
        at_once = self._hurries or self._bytes >= WRITE_BYTES
        due = now if at_once else min(self._last + QUIET_SECONDS, self._first + WAIT_SECONDS_MAX)
        return min(max(max(due, self._retry_at) - now, 0.0), renews)

    def _heard(self, added: dict[WrittenRun, _Added]) -> BaseException | None:
        """Find out whether a commit came about of which nothing was heard; if not, have its records written again."""
        unheard = self._unheard
        if unheard is None:
            return None
        try:
            is_written = self._store().is_written(unheard.changes)
        except Exception as error:  # noqa: BLE001 - told to all who wait
            return self._failed(added, error)
        self._unheard = None
        if is_written:
            self._note_written(unheard.added, unheard.changes)
        else:
            later = dict(added)
            added.clear()
            added |= unheard.added
            _go_on(added, later)
        return None

    def _written(self, added: dict[WrittenRun, _Added], *, durable: bool) -> BaseException | None:
        """Write what was added, all at once; return what went wrong."""
        if not added:
            return None
        try:
            store = self._store()
        except Exception as failure:  # noqa: BLE001 - told to all who wait, and logged
            return self._failed(added, failure)
        error = self._tried(store, added, durable=durable)
        if error is None or not _is_of_one(error):
            return self._failed(added, error)
        return self._written_one_by_one(store, added, durable=durable)

    def _written_one_by_one(
        self, store: JournalStore, added: dict[WrittenRun, _Added], *, durable: bool
    ) -> BaseException | None:
        """Write each run by itself, and return what went wrong with the database; what is left in `added` waits.

        What one run brings must not cost the others theirs: neither their records, nor those who wait for these.
        """
        first: BaseException | None = None
        for run, each in [*added.items()]:
            error = self._failed({run: each}, self._tried(store, {run: each}, durable=durable))
            if isinstance(error, DatabaseUnavailable):
                return error
            del added[run]
            if isinstance(error, CommitUnknown):
                return error
            if error is not None and not _is_of_one(error):
                first = first or error
        return first

    def _tried(self, store: JournalStore, added: dict[WrittenRun, _Added], *, durable: bool) -> BaseException | None:
        try:
            changes = [self._change(run, each) for run, each in added.items()]
            store.write(changes, {run.run_id: run.scope for run in added}, durable=durable)
        except CommitUnknown as error:
            self._unheard = _Unheard(dict(added), changes)
            added.clear()
            return error
        except Exception as error:  # noqa: BLE001 - as above
            return error
        self._note_written(added, changes)
        return None

    def _note_written(self, added: Mapping[WrittenRun, _Added], changes: Sequence[RunChange]) -> None:
        for run, change in zip(added, changes, strict=True):
            run.pieces += bool(change.piece)
            run.waiting_bytes -= added[run].bytes
            if change.end is not None:
                self._open.discard(run)
            elif change.begin is not None:
                self._keep(run)

    def has(self, run: WrittenRun) -> None:
        """Keep the lease of a run that this process took over."""
        with self._changed:
            self._keep(run)
            self._changed.notify()

    def _change(self, run: WrittenRun, added: _Added) -> RunChange:
        from ...skills_db.journal.records import RunChange, joined

        made = () if run.lost else (make() for make in added.records)
        return RunChange(
            run.run_id,
            run.pieces,
            None if added.begin is None else added.begin(),
            joined([each for each in made if each is not None]),
            None if added.end is None else added.end(),
            self._process,
        )

    def _failed(self, added: dict[WrittenRun, _Added], error: BaseException | None) -> BaseException | None:
        """Note the gap that a failure leaves, unless it is to be tried again."""
        if error is not None and not (isinstance(error, PASSING) and not self._ends):
            _LOG.warning("The journals of %d runs could not be written: %s", len(added), error)
            for run, each in added.items():
                run.lost = run.lost or told(error)
                run.waiting_bytes -= each.bytes
        return error

    def _put_back(self, added: dict[WrittenRun, _Added], taken: int, error: BaseException) -> None:
        """Have what was not written wait before what came since; if it is too much, it is lost."""
        if not self._is_silent:
            _LOG.warning("The journals of the runs under way wait to be written: %s", error)
        self._is_silent = True
        with self._changed:
            self._retry_at = time.monotonic() + QUIET_SECONDS
            if self._bytes + taken <= WAITING_BYTES_MAX:
                _go_on(added, self._added)
                self._added = added
                self._bytes += taken
                return
        _LOG.warning("The journals of %d runs are lost: the database cannot be written for too long.", len(added))
        for run, each in added.items():
            run.lost = run.lost or str(error)
            run.waiting_bytes -= each.bytes

    def let_go(self, run: WrittenRun) -> None:
        """Keep the lease of a run no longer."""
        with self._changed:
            self._open.discard(run)

    def _keep(self, run: WrittenRun) -> None:
        if not self._open:
            self._renewed = time.monotonic()
        self._open.add(run)

    def _renew(self) -> None:
        now = time.monotonic()
        if not self._open or now - self._renewed < RENEW_SECONDS:
            return
        self._renewed = now
        try:
            self._store().renew(self._process, LEASE_SECONDS)
        except SkillsDbError as error:
            _LOG.warning("The runs under way could not be kept: %s", error)

    def _purge(self) -> None:
        now = time.monotonic()
        if self._purged and now - self._purged < PURGE_SECONDS:
            return
        self._purged = now
        try:
            self._store().drop_expired()
        except SkillsDbError as error:
            _LOG.warning("Journals that have outlived their time could not be removed: %s", error)


def told(error: BaseException) -> str:
    """Return what code may be told of a failure."""
    return str(error) if isinstance(error, KNOWN_ERRORS) else "The server's log says why."


def _is_of_one(error: BaseException) -> bool:
    """Return whether a failure to write is that of one run, not of the database."""
    return isinstance(error, JournalErased) or not isinstance(error, SkillsDbError)


def _go_on(added: dict[WrittenRun, _Added], later: Mapping[WrittenRun, _Added]) -> None:
    """Put what came later behind what was added."""
    for run, each in later.items():
        added.setdefault(run, _Added()).goes_on(each)
