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

from ..engine import Database
from ..sql import Session, sa

CLAIM_SECONDS = 900
"""How long a claim counts whose server says nothing more: longer than any write may take."""
WAIT_SECONDS = 20.0
"""How long a name is waited for that another server holds."""
_PAUSE_SECONDS = 0.02
_NOW = {
    "sqlite": "CAST(strftime('%s', 'now') AS BIGINT)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)",
}
_USED = """SELECT c.bytes + coalesce((SELECT sum(bytes) FROM sealab_workspace_claim), 0),
    c.entries + coalesce((SELECT sum(entries) FROM sealab_workspace_claim), 0), c.version, c.listed
    FROM sealab_workspace_count c WHERE c.id = 1"""


class WorkspaceCounts:
    """The count of the one workspace of a database, which `opening` opens. Raises what the database raises."""

    def __init__(self, opening: Callable[[], Database]) -> None:
        self._opening = opening

    def used(self) -> tuple[int, int, int, bool]:
        """Return bytes and entries with what is claimed, the version of the count, and whether it was ever listed."""
        with self._opening().read() as session:
            found = session.connection().execute(sa.text(_USED)).one()
            return int(found[0]), int(found[1]), int(found[2]), bool(found[3])

    def claim(self, more_bytes: int, more_entries: int, *, bytes_max: int, entries_max: int) -> int | None:
        """Claim room, and return the claim; None where there is not so much, of what is more than nothing."""
        with self._opening().transaction(durable=False) as session:
            connection = session.connection()
            now = _NOW[connection.dialect.name]
            _lock(session)
            connection.execute(
                sa.text(f"DELETE FROM sealab_workspace_claim WHERE made_at < {now} - {CLAIM_SECONDS}")  # noqa: S608 - constants
            )
            used = connection.execute(sa.text(_USED)).one()
            if (more_bytes > 0 and int(used[0]) + more_bytes > bytes_max) or (
                more_entries > 0 and int(used[1]) + more_entries > entries_max
            ):
                return None
            made = connection.execute(
                sa.text(
                    "INSERT INTO sealab_workspace_claim (bytes, entries, made_at) "  # noqa: S608 - constants
                    f"VALUES (:bytes, :entries, {now}) RETURNING id"
                ),
                {"bytes": max(0, more_bytes), "entries": max(0, more_entries)},
            )
            return int(made.scalar_one())

    def finish(self, claim: int | None, more_bytes: int, more_entries: int) -> None:
        """End a claim, if there was one, and count what was really done, which may be less than nothing."""
        with self._opening().transaction(durable=False) as session:
            connection = session.connection()
            _lock(session)
            if claim is not None:
                connection.execute(sa.text("DELETE FROM sealab_workspace_claim WHERE id = :id"), {"id": claim})
            connection.execute(
                sa.text("UPDATE sealab_workspace_count SET bytes = bytes + :bytes, entries = entries + :entries"),
                {"bytes": more_bytes, "entries": more_entries},
            )

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
                with self._opening().transaction(durable=False) as session:
                    session.connection().execute(
                        sa.text("DELETE FROM sealab_workspace_lock WHERE name = :name AND owner = :owner"),
                        {"name": name, "owner": owner},
                    )

    def _hold(self, name: str, owner: str, seconds: int) -> bool:
        with self._opening().transaction(durable=False) as session:
            connection = session.connection()
            now = _NOW[connection.dialect.name]
            held = connection.execute(
                sa.text(
                    "INSERT INTO sealab_workspace_lock (name, owner, until) "  # noqa: S608 - constants
                    f"VALUES (:name, :owner, {now} + :seconds) ON CONFLICT (name) DO UPDATE SET "
                    f"owner = excluded.owner, until = excluded.until WHERE sealab_workspace_lock.until < {now}"
                ),
                {"name": name, "owner": owner, "seconds": seconds},
            )
            return bool(held.rowcount)

    def recounted(self, version: int, used_bytes: int, entries: int) -> bool:
        """Take what a listing found, unless something was claimed or counted since `version`; return whether it did."""
        with self._opening().transaction(durable=False) as session:
            changed = session.connection().execute(
                sa.text(
                    "UPDATE sealab_workspace_count SET bytes = :bytes, entries = :entries, listed = 1 "
                    "WHERE version = :version AND NOT EXISTS (SELECT 1 FROM sealab_workspace_claim)"
                ),
                {"bytes": used_bytes, "entries": entries, "version": version},
            )
            return bool(changed.rowcount)


def _lock(session: Session) -> None:
    """Hold the count against every other server until the transaction ends."""
    session.connection().execute(sa.text("UPDATE sealab_workspace_count SET version = version + 1 WHERE id = 1"))
