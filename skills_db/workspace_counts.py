"""Counts what a workspace in an object store holds, for all servers that write to it.

The row of the count is locked by whoever claims or counts, so no two servers are given the same room (PostgreSQL
documentation, 13.3.2, "Row-Level Locks"; SQLite has one writer at a time). Moments are the database's own. Everything
here blocks: call it from a thread.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .engine import Database
from .leases import Lease, taken
from .sql import Connection, insert, sa
from .tables import WORKSPACE_CLAIM, WORKSPACE_COUNT, WORKSPACE_LOCK

CLAIM_SECONDS = 900
"""How long a claim counts whose server says nothing more: longer than any write may take."""
WAIT_SECONDS = 20.0
"""How long a name is waited for that another server holds."""
_PAUSE_SECONDS = 0.02


class WorkspaceCounts:
    """The count of the one workspace of a database, which `opening` opens. Raises what the database raises."""

    def __init__(self, opening: Callable[[], Database]) -> None:
        self._opening = opening

    def used(self) -> tuple[int, int, int, bool]:
        """Return bytes and entries with what is claimed, the version of the count, and whether it was ever listed."""
        with self._opening().read() as connection:
            return _used(connection)

    def claim(self, more_bytes: int, more_entries: int, *, bytes_max: int, entries_max: int) -> int | None:
        """Claim room, and return the claim; None where there is not so much, of what is more than nothing."""
        database = self._opening()
        with database.transaction(durable=False) as connection:
            now = int(database.now())
            _lock(connection)
            connection.execute(sa.delete(WORKSPACE_CLAIM).where(_CLAIM.made_at < now - CLAIM_SECONDS))
            used_bytes, entries, _, _ = _used(connection)
            if (more_bytes > 0 and used_bytes + more_bytes > bytes_max) or (
                more_entries > 0 and entries + more_entries > entries_max
            ):
                return None
            row = {"bytes": max(0, more_bytes), "entries": max(0, more_entries), "made_at": now}
            return int(connection.execute(WORKSPACE_CLAIM.insert().returning(_CLAIM.id), row).scalar_one())

    def finish(self, claim: int | None, more_bytes: int, more_entries: int) -> None:
        """End a claim, if there was one, and count what was really done, which may be less than nothing."""
        counted = {"bytes": _COUNT.bytes + more_bytes, "entries": _COUNT.entries + more_entries}
        with self._opening().transaction(durable=False) as connection:
            _lock(connection)
            if claim is not None:
                connection.execute(sa.delete(WORKSPACE_CLAIM).where(_CLAIM.id == claim))
            connection.execute(sa.update(WORKSPACE_COUNT).values(counted))

    @contextmanager
    def named(self, name: str, seconds: int) -> Iterator[bool]:
        """Hold a name against every other server, for as long as it may take; give whether it was had in time.

        For stores that do not keep the conditions of a write. A server that died holds it for those seconds.
        """
        owner = secrets.token_hex(16)
        deadline = time.monotonic() + WAIT_SECONDS
        has = self._hold(name, owner, seconds)
        while not has and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
            has = self._hold(name, owner, seconds)
        try:
            yield has
        finally:
            if has:
                own = (WORKSPACE_LOCK.c.name == name, _LEASE.is_of(owner))
                with self._opening().transaction(durable=False) as connection:
                    connection.execute(sa.delete(WORKSPACE_LOCK).where(*own))

    def _hold(self, name: str, owner: str, seconds: int) -> bool:
        database = self._opening()
        with database.transaction(durable=False) as connection:
            now = database.now()
            values = taken(owner, now + seconds)
            held = insert(WORKSPACE_LOCK).values(name=name, **values)
            held = held.on_conflict_do_update(index_elements=["name"], set_=values, where=_LEASE.is_free(now))
            return connection.execute(held).rowcount > 0

    def recounted(self, version: int, used_bytes: int, entries: int) -> bool:
        """Take what a listing found, unless something was claimed or counted since `version`; return whether it did."""
        same = sa.update(WORKSPACE_COUNT).where(_COUNT.version == version, ~sa.exists().select_from(WORKSPACE_CLAIM))
        with self._opening().transaction(durable=False) as connection:
            counted = same.values(bytes=used_bytes, entries=entries, listed=1)
            return connection.execute(counted).rowcount > 0


_COUNT, _CLAIM = WORKSPACE_COUNT.c, WORKSPACE_CLAIM.c
_LEASE = Lease(WORKSPACE_LOCK)


def _lock(connection: Connection) -> None:
    """Hold the count against every other server until the transaction ends."""
    connection.execute(sa.update(WORKSPACE_COUNT).values(version=_COUNT.version + 1))


def _used(connection: Connection) -> tuple[int, int, int, bool]:
    claimed = (
        sa.select(sa.func.coalesce(sa.func.sum(each), 0)).scalar_subquery() for each in (_CLAIM.bytes, _CLAIM.entries)
    )
    columns = (_COUNT.bytes + next(claimed), _COUNT.entries + next(claimed), _COUNT.version, _COUNT.listed)
    used_bytes, entries, version, listed = connection.execute(sa.select(*columns)).one()
    return int(used_bytes), int(entries), version, bool(listed)
