"""Servers that share one database: which are alive, and which of them holds which session, by leases.

All times are those of the database's clock, so hosts whose clocks differ do not disagree. A server is alive while its
lease lasts. Whoever takes a session from a server whose lease has run out removes that server's row first, in the same
transaction and under its lock: a renewal that is on its way either comes before, and the session stays, or finds no row
and fails (Gray and Cheriton 1989, "Leases"). A server that comes back after that has a new `term`, and holds nothing of
what it held before.

After a standby was promoted, rows that were written last may be missing (`histories`). Sessions are then given to
nobody for as long as a lease lasts. Within that time who holds some notices, and enters them again (`keep`).

PostgreSQL alone: a file is not shared by servers. Every call blocks: make it from a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from ..engine import Database
from ..postgresql import CLOCK
from ..shared_state.histories import AGE, PRESENT, UNTOLD, Histories
from ..sql import Session, sa

NOBODY = ""
"""The holder of a session that was let go."""
FORGOTTEN_SECONDS = 86_400.0
"""How long it is known of a session that a server had it which is gone."""


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A server as the database knows it; `heartbeat` in seconds since 1970 by the database's clock.

    `mark` shows who wrote the address, see `server.replicas.replica_keys`.
    """

    id: str
    term: int
    address: str
    mark: str
    version: str
    heartbeat: float
    is_leaving: bool
    is_alive: bool


@dataclass(frozen=True, slots=True)
class Beat:
    """What a server learns by renewing its lease: whether it still had it, the time, and who else there is.

    Where the `history` of the database is another one since, what was stored last may be missing. It `is_settled` once
    whoever had a lease before has noticed, or has it no more.
    """

    kept: bool
    now: float
    replicas: tuple[ReplicaRow, ...]
    history: str = UNTOLD
    is_settled: bool = True


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a session; `was_lost` says that what it was is in no server's memory any more."""

    replica: str
    term: int
    epoch: int
    was_lost: bool = False


class ReplicaStore:
    """The rows of servers and sessions in one database; any number of stores, threads and programs may share them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._histories = Histories(database)

    def join(self, replica: str, term: int, address: str, mark: str, version: str, *, seconds: float) -> None:
        """Enter a server with a lease of so many seconds; a `term` is never used again once it was lost."""
        given = {
            "id": replica,
            "term": term,
            "address": address,
            "mark": mark,
            "version": version,
            "seconds": seconds,
        }
        self._histories.note()
        with self._database.transaction() as session:
            session.execute(_JOIN, given)

    def beat(self, replica: str, term: int, *, seconds: float, is_leaving: bool) -> Beat:
        """Renew the lease of a server, unless another has taken something from it, and return who there is."""
        given = {"id": replica, "term": term, "seconds": seconds, "leaving": int(is_leaving)}
        renew = _RENEW if self._histories.are_told() else _RENEW_UNTOLD
        with self._database.transaction() as session:
            now, history, age = session.execute(renew, given).one_or_none() or (None, UNTOLD, seconds)
            is_settled = self._histories.settled(session, seconds) if age is None else age >= seconds
            rows = session.execute(_ALL).mappings().all()
            kept = now is not None
            now = session.execute(_NOW).scalar_one() if now is None else now
        self._database.set_clock(float(now))
        return Beat(kept, float(now), tuple(map(_replica, rows)), history, is_settled)

    def all(self) -> tuple[ReplicaRow, ...]:
        """Return the servers that there are, dead ones too."""
        with self._database.read() as session:
            return tuple(map(_replica, session.execute(_ALL).mappings()))

    def remove_dead(self, *, grace_seconds: float) -> None:
        """Remove servers whose lease ran out so long ago, and what is known of sessions that nobody has for long."""
        with self._database.transaction() as session:
            session.execute(_REMOVE_DEAD, {"grace": grace_seconds})
        with self._database.transaction() as session:
            session.execute(_FORGET, {"seconds": FORGOTTEN_SECONDS})

    def leave(self, replica: str) -> None:
        """Remove a server. What it held is anybody's at once."""
        with self._database.transaction() as session:
            session.execute(_LEAVE, {"id": replica})

    def take(self, name: str, replica: str, term: int, *, settle_seconds: float = 0) -> Holder:
        """Return who holds a session: another server that is alive, else the one that asks, from now on.

        Each time that it is taken has an epoch of its own, so that to `let_go` of an earlier one does nothing. While
        the history of the database is younger than `settle_seconds` nobody takes one: it is another's or `NOBODY`'s.
        """
        given = {"name": name, "replica": replica, "term": term}
        self._histories.are_told()
        while True:
            with self._database.transaction() as session:
                if not self._histories.settled(session, settle_seconds):
                    found = session.execute(_HELD, {"name": name}).mappings().one_or_none()
                    return _holder(found) if found is not None and found["replica"] != replica else Holder(NOBODY, 0, 0)
                if (epoch := session.execute(_BEGIN, given).scalar_one_or_none()) is not None:
                    return Holder(replica, term, cast("int", epoch))
                found = session.execute(_HELD, {"name": name}).mappings().one_or_none()
                if found is None:  # it was closed just now
                    continue
                holder = _holder(found)
                if (holder.replica, holder.term) != (replica, term) and _is_alive(session, holder):
                    return holder
                epoch = session.execute(_TAKE_OVER, given).scalar_one()
                return Holder(replica, term, cast("int", epoch), was_lost=True)

    def keep(
        self, held: Mapping[str, int], replica: str, term: int, *, may_be_forgotten: bool = False
    ) -> frozenset[str]:
        """Enter sessions again of which there is no row, and return those that others have; `held` has their epochs.

        Where it `may_be_forgotten` who was given them last, the row of an earlier holder gives way too: for a server
        whose lease has lasted since before the promotion, so that none could be given yet.
        """
        with self._database.read() as session:
            known = session.execute(_KNOWN, {"names": list(held), "replica": replica, "term": term}).all()
        lacking = held.keys() - {str(name) for name, epoch in known if epoch == held[str(name)]}
        if not lacking:
            return frozenset()
        with self._database.transaction() as session:
            return frozenset(
                name
                for name in sorted(lacking)
                if session.execute(
                    _ENTER_AGAIN,
                    {
                        "name": name,
                        "replica": replica,
                        "term": term,
                        "epoch": held[name],
                        "forgotten": int(may_be_forgotten),
                    },
                ).first()
                is None
            )

    def let_go(self, held: Iterable[tuple[str, int]], replica: str) -> None:
        """Let go of sessions, each with its epoch, that have ended by themselves or are to go on elsewhere."""
        with self._database.transaction() as session:
            for name, epoch in held:
                session.execute(_LET_GO, {"name": name, "epoch": epoch, "replica": replica})


def _is_alive(session: Session, holder: Holder) -> bool:
    """Return whether a server is alive; of one that is not, the row is gone when this returns."""
    given = {"id": holder.replica, "term": holder.term}
    session.execute(_REMOVE, given)
    return session.execute(_IS_THERE, given).first() is not None


def _holder(found: sa.RowMapping) -> Holder:
    return Holder(str(found["replica"]), cast("int", found["term"]), cast("int", found["epoch"]))


def _replica(row: sa.RowMapping) -> ReplicaRow:
    return ReplicaRow(
        str(row["id"]),
        cast("int", row["term"]),
        str(row["address"]),
        str(row["mark"]),
        str(row["version"]),
        float(cast("float", row["heartbeat"])),
        bool(row["leaving"]),
        bool(row["alive"]),
    )


_NOW = sa.text(f"SELECT {CLOCK}")
_JOIN = sa.text(
    "INSERT INTO sealab_replica (id, term, address, mark, version, started, heartbeat, leased_until, leaving) "  # noqa: S608 - no value is in it
    f"VALUES (:id, :term, :address, :mark, :version, {CLOCK}, {CLOCK}, {CLOCK} + :seconds, 0) "
    f"ON CONFLICT (id) DO UPDATE SET term = :term, heartbeat = {CLOCK}, leased_until = {CLOCK} + :seconds"
)
_RENEWING = (
    f"UPDATE sealab_replica SET heartbeat = {CLOCK}, leased_until = {CLOCK} + :seconds, leaving = :leaving "  # noqa: S608 - as above
    "WHERE id = :id AND term = :term RETURNING heartbeat"
)
_RENEW = sa.text(f"{_RENEWING}, {PRESENT}, {AGE}")
_RENEW_UNTOLD = sa.text(f"{_RENEWING}, '{UNTOLD}', :seconds")
_ALL = sa.text(
    f"SELECT id, term, address, mark, version, heartbeat, leaving, leased_until > {CLOCK} AS alive "  # noqa: S608 - as above
    "FROM sealab_replica ORDER BY started, id"
)
_REMOVE_DEAD = sa.text(f"DELETE FROM sealab_replica WHERE leased_until + :grace < {CLOCK}")  # noqa: S608 - as above
_FORGET = sa.text(
    "DELETE FROM sealab_session_lease "  # noqa: S608 - as above
    f"WHERE taken < (SELECT {CLOCK} - :seconds) AND NOT EXISTS (SELECT 1 FROM sealab_replica "
    "WHERE sealab_replica.id = sealab_session_lease.replica AND sealab_replica.term = sealab_session_lease.term)"
)
_LEAVE = sa.text("DELETE FROM sealab_replica WHERE id = :id")
_BEGIN = sa.text(
    "INSERT INTO sealab_session_lease (name, replica, term, epoch, taken) "  # noqa: S608 - as above
    f"VALUES (:name, :replica, :term, 1, {CLOCK}) ON CONFLICT (name) DO NOTHING RETURNING epoch"
)
_HELD = sa.text("SELECT replica, term, epoch FROM sealab_session_lease WHERE name = :name FOR UPDATE")
_REMOVE = sa.text(f"DELETE FROM sealab_replica WHERE id = :id AND term = :term AND leased_until < {CLOCK}")  # noqa: S608 - as above
_IS_THERE = sa.text("SELECT 1 FROM sealab_replica WHERE id = :id AND term = :term FOR SHARE")
_TAKE_OVER = sa.text(
    "UPDATE sealab_session_lease SET replica = :replica, term = :term, epoch = epoch + 1, "  # noqa: S608 - as above
    f"taken = {CLOCK} WHERE name = :name RETURNING epoch"
)
_KNOWN = sa.text(
    "SELECT name, epoch FROM sealab_session_lease WHERE replica = :replica AND term = :term AND name IN :names"
).bindparams(sa.bindparam("names", expanding=True))
_ENTER_AGAIN = sa.text(
    "INSERT INTO sealab_session_lease (name, replica, term, epoch, taken) "  # noqa: S608 - as above
    f"VALUES (:name, :replica, :term, :epoch, {CLOCK}) ON CONFLICT (name) DO UPDATE SET replica = excluded.replica, "
    "term = excluded.term, epoch = excluded.epoch, taken = excluded.taken "
    "WHERE :forgotten = 1 AND sealab_session_lease.epoch < excluded.epoch RETURNING name"
)
_LET_GO = sa.text(
    "UPDATE sealab_session_lease SET replica = '' WHERE name = :name AND epoch = :epoch AND replica = :replica"
)
