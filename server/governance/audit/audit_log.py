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
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from ....skills_db.audit.chain import AuditEvent
from ....skills_db.errors import AuditDamaged, CommitUnknown, SkillsDbError, VaultKeyWrong
from ...base.database import Opening
from ...base.errors import KNOWN_ERRORS, AuditUnwritten
from ...base.write_behind import WriteBehind

if TYPE_CHECKING:
    from ....skills_db.audit.audit_store import AuditStore
    from ....skills_db.engine import Database

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
"""How long the database must have failed before those who wait for it get an error."""
TROUBLE_SECONDS = 10.0
"""After how long the server says that it is not ready."""
RETRY_SECONDS = 1.0
GAP = "audit.gap"
"""The event of lines that were lost."""
_LOG = logging.getLogger(__name__)


class AuditLog:
    """The one writer of a process; safe to use from several threads and event loops."""

    def __init__(self, store: Callable[[], AuditStore]) -> None:
        """Make it; `store` is asked for when there is something to write, and may block."""
        self._store = store
        self._lost = 0
        self._is_unheard = False
        """Whether the last commit may have come about."""
        self._behind: WriteBehind[AuditEvent] = WriteBehind(
            "lines of the audit log",
            self._write,
            quiet_seconds=QUIET_SECONDS,
            wait_seconds_max=WAIT_SECONDS_MAX,
            much=LINES_AT_ONCE,
            at_once=LINES_AT_ONCE,
            waiting_max=2 * LINES_MAX,
            passing=(Exception,),
            retry_seconds=RETRY_SECONDS,
            tells=_is_final,
        )

    def note(self, event: AuditEvent, *, idly: bool = False) -> None:
        """Queue a line for writing; returns at once. One that is added `idly` waits for another to be written with."""
        if len(self._behind) >= LINES_MAX:
            self._lost += 1
            if self._lost == 1:
                _LOG.error("Lines of the audit log are being lost: %d wait, and none can be written.", LINES_MAX)
            return
        self._behind.add(event, idly=idly)

    async def stored(self) -> None:
        """Wait until all that was added is written and survives a crash of the machine. Raises `AuditUnwritten`."""
        await self._wait()

    async def room(self) -> None:
        """Wait while very many lines wait to be written, unless the database fails."""
        if len(self._behind) <= ROOM_LINES or self._behind.fails_since is not None:
            return
        with suppress(AuditUnwritten):  # then the lines wait, and are not the caller's to wait for
            await self._wait(but=ROOM_LINES)

    async def _wait(self, *, but: int = 0) -> None:
        try:
            await self._behind.stored(but=but)
        except Exception as error:
            why = str(error) if isinstance(error, SkillsDbError) else "The server's log says why."
            raise AuditUnwritten(f"The audit log cannot be written. {why}") from error

    def flush(self) -> None:
        """Write what waits. Blocks. Raises `AuditUnwritten`."""
        with ThreadPoolExecutor(1) as thread:  # where the caller may have a loop of its own
            thread.submit(lambda: asyncio.run(self.stored())).result()

    @property
    def has_written(self) -> bool:
        """Whether it has written any line."""
        return self._behind.written > 0

    def trouble(self) -> str | None:
        """Return what to say where the database could not be written for a while, else None."""
        since, error = self._behind.fails_since, self._behind.error
        if since is None or error is None or time.monotonic() - since < TROUBLE_SECONDS:
            return None
        why = str(error) if isinstance(error, KNOWN_ERRORS) else f"{type(error).__name__}: {error}"
        return f"The audit log cannot be written. {why}"

    def close(self) -> None:
        """Write what waits, unless it was all added idly, and end. Blocks."""
        self._behind.close()

    def _write(self, events: list[AuditEvent]) -> None:
        store = self._store()
        if not (self._is_unheard and store.holds()):
            self._is_unheard = False
            try:
                store.add(events)
            except CommitUnknown:
                self._is_unheard = True
                raise
        self._is_unheard = False
        if self._lost:
            lost, self._lost = self._lost, 0
            self._behind.add(AuditEvent(event=GAP, at_us=now_us(), outcome="lost", details={"lines": lost}))


def _is_final(error: BaseException, seconds: float) -> bool:
    """Return whether those who wait get the error, after writing has failed for so many seconds."""
    return isinstance(error, AuditDamaged | VaultKeyWrong) or seconds >= GIVE_UP_SECONDS


def audit_store(database: Callable[[], Database], key: Callable[[], bytes]) -> Opening[AuditStore]:
    """Return what opens the audit log of a database under the vault's master key, once. Both may block."""

    def opened() -> AuditStore:
        from ....skills_db.audit.audit_store import AuditStore

        return AuditStore(database(), key())

    return Opening(opened)


def now_us() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000
