"""Writes the lines of the audit log in a thread of its own: what many calls have, in one commit that all of them share.

A line is never given up because the database is slow or another program writes: it waits, and is tried again until it
is written. Who must know a line written waits for the next commit (`stored`), with all others that wait; that fails
only once the database could not be written for `GIVE_UP_SECONDS`, or the log itself was changed from outside. Where so
many lines wait that they take much memory, callers wait for room. Only when the database fails on and on are lines
beyond `LINES_MAX` lost: that is logged, and the log itself says how many once it can be written again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from ...skills_db.audit.chain import AuditEvent
from ...skills_db.errors import AuditDamaged, CommitUnknown, SkillsDbError, VaultKeyWrong
from ..database import Opening
from ..errors import KNOWN_ERRORS, AuditUnwritten
from ..write_behind import let_go_on

if TYPE_CHECKING:
    from ...skills_db.audit.audit_store import AuditStore
    from ...skills_db.engine import Database

QUIET_SECONDS = 1.0
"""How long no line must have been added before what nobody waits for is written: to open the database takes a second of
the processor, which is better spent when nobody waits for it."""
WAIT_SECONDS_MAX = 5.0
"""How long a line waits at most for such a moment."""
LINES_AT_ONCE = 1000
"""Lines of one commit: another program waits for its turn no longer than these take."""
ROOM_LINES = 50_000
"""Lines that wait, from which on callers wait too."""
LINES_MAX = 100_000
"""Lines that wait at most for a database that cannot be written."""
GIVE_UP_SECONDS = 10.0
"""How long the database must have failed before those are told who wait for it."""
TROUBLE_SECONDS = 10.0
"""After how long the server says that it is not ready."""
RETRY_SECONDS = 1.0
_WARN_EVERY_SECONDS = 60.0
GAP = "audit.gap"
"""The event of lines that were lost."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiter:
    """One who waits until so many lines were written."""

    lines: int
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Failing:
    """Since when the database cannot be written, and why."""

    since: float
    error: BaseException

    def is_final(self, now: float) -> bool:
        """Return whether those who wait are told."""
        return isinstance(self.error, AuditDamaged | VaultKeyWrong) or now - self.since >= GIVE_UP_SECONDS


class AuditLog:
    """The one writer of a process; safe to use from several threads and event loops."""

    def __init__(self, store: Callable[[], AuditStore]) -> None:
        """Make it; `store` is asked for when there is something to write, and may block."""
        self._store = store
        self._changed = threading.Condition()
        self._waiting: deque[AuditEvent] = deque()
        self._waiters: list[_Waiter] = []
        self._added = self._written = self._lost = 0
        self._first: float | None = None
        """When the first of the lines came that are to be written soon."""
        self._last = 0.0
        self._retry_at = 0.0
        self._warned_at = 0.0
        self._failing: _Failing | None = None
        self._unheard = 0
        """Of the last commit, which may have come about, the lines."""
        self._ends = False
        self._thread: threading.Thread | None = None

    def note(self, event: AuditEvent, *, idly: bool = False) -> None:
        """Have a line written soon; returns at once. One that is added `idly` waits for another to be written with."""
        now = time.monotonic()
        with self._changed:
            if len(self._waiting) >= LINES_MAX:
                self._lose(1)
                return
            self._waiting.append(event)
            self._added += 1
            if idly:
                return
            self._last = now
            if self._first is None:
                self._first = now
                self._wake()
            elif len(self._waiting) == LINES_AT_ONCE:
                self._changed.notify()

    async def stored(self) -> None:
        """Wait until all that was added is written and survives a crash of the machine. Raises `AuditUnwritten`."""
        await self._wait_for(self._added)

    async def room(self) -> None:
        """Wait while very many lines wait to be written, unless the database fails."""
        if len(self._waiting) <= ROOM_LINES or self._failing is not None:
            return
        with suppress(AuditUnwritten):  # then the lines wait, and are not the caller's to wait for
            await self._wait_for(self._added - ROOM_LINES)

    def flush(self) -> None:
        """Write what waits. Blocks. Raises `AuditUnwritten`."""
        with ThreadPoolExecutor(1) as thread:  # where the caller may have a loop of its own
            thread.submit(lambda: asyncio.run(self.stored())).result()

    @property
    def has_written(self) -> bool:
        """Whether it has written any line."""
        return self._written > 0

    def trouble(self) -> str | None:
        """Return what to say where the database could not be written for a while, else None."""
        failing = self._failing
        if failing is None or time.monotonic() - failing.since < TROUBLE_SECONDS:
            return None
        return f"The audit log cannot be written. {_told(failing.error)}"

    def close(self) -> None:
        """Write what waits, unless it was all added idly, and end. Blocks."""
        with self._changed:
            self._ends = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    async def _wait_for(self, lines: int) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._changed:
            if self._written >= lines:
                return
            self._waiters.append(_Waiter(lines, loop, future))
            self._wake()
        await future

    def _wake(self) -> None:
        """Have the thread look what there is to do; it starts with the first line."""
        if self._thread is None and not self._ends:
            self._thread = threading.Thread(target=self._work, name="sealab-audit", daemon=True)
            self._thread.start()
        else:
            self._changed.notify()

    def _lose(self, count: int) -> None:
        self._lost += count
        if self._lost == count:
            _LOG.error("Lines of the audit log are being lost: %d wait already, and none can be written.", LINES_MAX)

    def _work(self) -> None:
        while True:
            with self._changed:
                while (seconds := self._seconds_until_due()) > 0:
                    self._changed.wait(None if seconds == float("inf") else seconds)
                if self._ends and (self._first is None or not self._waiting) and not self._waiters:
                    return
                events = list(islice(self._waiting, self._unheard or LINES_AT_ONCE))
            began = time.monotonic()
            error = self._tried(events)
            with self._changed:
                if error is None:
                    self._note_written(len(events))
                else:
                    self._note_failure(error, began)
                told = self._done_waiting()
            let_go_on([(each.loop, each.future) for each in told], _refusal(error))
            if error is not None and self._ends:
                _LOG.error("%d lines of the audit log are lost: %s", len(self._waiting), _told(error))
                return
            del events, told, error  # else they live on until there is more to write

    def _seconds_until_due(self) -> float:
        """Return how long nothing is to be written; 0 where something is."""
        now = time.monotonic()
        if self._ends:
            return 0.0
        if self._waiters or len(self._waiting) >= LINES_AT_ONCE:
            return max(self._retry_at - now, 0.0)
        if self._first is None:
            return float("inf")
        return max(max(min(self._last + QUIET_SECONDS, self._first + WAIT_SECONDS_MAX), self._retry_at) - now, 0.0)

    def _tried(self, events: Sequence[AuditEvent]) -> BaseException | None:
        try:
            store = self._store()
            if self._unheard and store.holds():
                return None
            self._unheard = 0
            if events:
                store.add(events)
        except CommitUnknown as error:
            self._unheard = len(events)
            return error
        except Exception as error:  # noqa: BLE001 - told to all who wait, and logged
            return error
        return None

    def _note_written(self, count: int) -> None:
        for _ in range(count):
            self._waiting.popleft()
        self._written += count
        if self._failing is not None:
            _LOG.warning("The audit log can be written again.")
        self._failing, self._unheard, self._retry_at = None, 0, 0.0
        if self._lost:
            lost, self._lost = self._lost, 0
            self._waiting.append(AuditEvent(event=GAP, at_us=now_us(), outcome="lost", details={"lines": lost}))
            self._added += 1
        self._first = time.monotonic() if self._waiting else None

    def _note_failure(self, error: BaseException, began: float) -> None:
        now = time.monotonic()
        is_new = self._failing is None
        self._failing = _Failing(began if self._failing is None else self._failing.since, error)
        self._retry_at = now + RETRY_SECONDS
        if is_new or now - self._warned_at >= _WARN_EVERY_SECONDS:
            self._warned_at = now
            _LOG.error("The audit log cannot be written, %d lines wait: %s", len(self._waiting), _told(error))

    def _done_waiting(self) -> list[_Waiter]:
        """Return those who wait no longer: what they wait for is written, or all, where it cannot be."""
        failing = self._failing
        gives_up = failing is not None and (self._ends or failing.is_final(time.monotonic()))
        done = [each for each in self._waiters if gives_up or each.lines <= self._written]
        self._waiters = [each for each in self._waiters if not gives_up and each.lines > self._written]
        return done


def audit_store(database: Callable[[], Database], key: Callable[[], bytes]) -> Opening[AuditStore]:
    """Return what opens the audit log of a database under the vault's master key, once. Both may block."""

    def opened() -> AuditStore:
        from ...skills_db.audit.audit_store import AuditStore

        return AuditStore(database(), key())

    return Opening(opened)


def now_us() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def _told(error: BaseException) -> str:
    """Return what callers and the log are told of a failure."""
    return str(error) if isinstance(error, KNOWN_ERRORS) else f"{type(error).__name__}: {error}"


def _refusal(error: BaseException | None) -> AuditUnwritten | None:
    """Return what those are told that wait for lines, if these could not be written."""
    if error is None:
        return None
    why = str(error) if isinstance(error, SkillsDbError) else "The server's log says why."
    return AuditUnwritten(f"The audit log cannot be written. {why}")
