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

from .engine import Database
from .postgresql import CLOCK
from .shared_state.histories import AGE, PRESENT, UNKNOWN, Histories
from .sql import Connection, Row, insert, sa
from .tables import REPLICA, SESSION_LEASE

NOBODY = ""
"""The holder of a session that was let go."""
FORGOTTEN_SECONDS = 86_400.0
"""How long it is known of a session that a server had it which is gone."""


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A server as the database knows it; `heartbeat` in seconds since 1970 by the database's clock.

    `mark` shows who wrote the address, see `server.use_cases.replicas.replica_keys`.
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
    history: str = UNKNOWN
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
        self._histories.note()
        alive = {"term": term, "heartbeat": CLOCK, "leased_until": CLOCK + seconds}
        row = {"id": replica, "address": address, "mark": mark, "version": version, "started": CLOCK, "leaving": 0}
        joined = insert(REPLICA).values({**row, **alive}).on_conflict_do_update(index_elements=["id"], set_=alive)
        with self._database.transaction() as connection:
            connection.execute(joined)

    def beat(self, replica: str, term: int, *, seconds: float, is_leaving: bool) -> Beat:
        """Renew the lease of a server, unless another has taken something from it, and return who there is."""
        values = {"heartbeat": CLOCK, "leased_until": CLOCK + seconds, "leaving": int(is_leaving)}
        learnt = (PRESENT, AGE) if self._histories.are_known() else (sa.literal(UNKNOWN), sa.literal(seconds))
        renewed = sa.update(REPLICA).where(*_is_term(replica, term)).values(values)
        with self._database.transaction() as connection:
            found = connection.execute(renewed.returning(_REPLICA.heartbeat, *learnt)).one_or_none()
            now, history, age = found or (None, UNKNOWN, seconds)
            is_settled = self._histories.settled(connection, seconds) if age is None else age >= seconds
            rows = connection.execute(_ALL).all()
            kept = now is not None
            now = connection.execute(sa.select(CLOCK)).scalar_one() if now is None else now
        self._database.set_clock(now)
        return Beat(kept, now, tuple(map(_replica, rows)), history, is_settled)

    def all(self) -> tuple[ReplicaRow, ...]:
        """Return the servers that there are, dead ones too."""
        with self._database.read() as connection:
            return tuple(map(_replica, connection.execute(_ALL)))

    def remove_dead(self, *, grace_seconds: float) -> None:
        """Remove servers whose lease ran out so long ago, and what is known of sessions that nobody has for long."""
        with self._database.transaction() as connection:
            connection.execute(sa.delete(REPLICA).where(_REPLICA.leased_until + grace_seconds < CLOCK))
        of_replica = sa.exists().where(_REPLICA.id == _SESSION.replica, _REPLICA.term == _SESSION.term)
        since = sa.select(CLOCK - FORGOTTEN_SECONDS).scalar_subquery()
        with self._database.transaction() as connection:
            connection.execute(sa.delete(SESSION_LEASE).where(_SESSION.taken < since, ~of_replica))

    def leave(self, replica: str) -> None:
        """Remove a server. What it held is anybody's at once."""
        with self._database.transaction() as connection:
            connection.execute(sa.delete(REPLICA).where(_REPLICA.id == replica))

    def take(self, name: str, replica: str, term: int, *, settle_seconds: float = 0) -> Holder:
        """Return who holds a session: another server that is alive, else the one that asks, from now on.

        Each time that it is taken has an epoch of its own, so that to `let_go` of an earlier one does nothing. While
        the history of the database is younger than `settle_seconds` nobody takes one: it is another's or `NOBODY`'s.
        """
        mine = {"replica": replica, "term": term, "taken": CLOCK}
        begun = insert(SESSION_LEASE).values(name=name, epoch=1, **mine).on_conflict_do_nothing()
        held = sa.select(SESSION_LEASE).where(_SESSION.name == name).with_for_update()
        taken = sa.update(SESSION_LEASE).where(_SESSION.name == name).values(epoch=_SESSION.epoch + 1, **mine)
        self._histories.are_known()
        while True:
            with self._database.transaction() as connection:
                if not self._histories.settled(connection, settle_seconds):
                    found = connection.execute(held).one_or_none()
                    return _holder(found) if found is not None and found.replica != replica else Holder(NOBODY, 0, 0)
                if connection.execute(begun).rowcount:
                    return Holder(replica, term, 1)
                found = connection.execute(held).one_or_none()
                if found is None:  # it was closed just now
                    continue
                holder = _holder(found)
                if (holder.replica, holder.term) != (replica, term) and _is_alive(connection, holder):
                    return holder
                epoch = connection.execute(taken.returning(_SESSION.epoch)).scalar_one()
                return Holder(replica, term, epoch, was_lost=True)

    def keep(
        self, held: Mapping[str, int], replica: str, term: int, *, may_be_forgotten: bool = False
    ) -> frozenset[str]:
        """Enter sessions again of which there is no row, and return those that others have; `held` has their epochs.

        Where it `may_be_forgotten` who was given them last, the row of an earlier holder gives way too: for a server
        whose lease has lasted since before the promotion, so that none could be given yet.
        """
        own = (_SESSION.replica == replica, _SESSION.term == term, _SESSION.name.in_(held))
        with self._database.read() as connection:
            known = connection.execute(sa.select(_SESSION.name, _SESSION.epoch).where(*own)).all()
        lacking = held.keys() - {name for name, epoch in known if epoch == held[name]}
        if not lacking:
            return frozenset()
        with self._database.transaction() as connection:
            return frozenset(
                name
                for name in sorted(lacking)
                if not _enter_again(
                    connection, name, Holder(replica, term, held[name]), may_be_forgotten=may_be_forgotten
                )
            )

    def let_go(self, held: Iterable[tuple[str, int]], replica: str) -> None:
        """Let go of sessions, each with its epoch, that have ended by themselves or are to go on elsewhere."""
        with self._database.transaction() as connection:
            for name, epoch in held:
                own = (_SESSION.name == name, _SESSION.epoch == epoch, _SESSION.replica == replica)
                connection.execute(sa.update(SESSION_LEASE).where(*own).values(replica=NOBODY))


def _enter_again(connection: Connection, name: str, holder: Holder, *, may_be_forgotten: bool) -> bool:
    values = {"replica": holder.replica, "term": holder.term, "epoch": holder.epoch, "taken": CLOCK}
    entered = insert(SESSION_LEASE).values(name=name, **values)
    if may_be_forgotten:
        entered = entered.on_conflict_do_update(
            index_elements=["name"], set_=values, where=_SESSION.epoch < holder.epoch
        )
    else:
        entered = entered.on_conflict_do_nothing()
    return connection.execute(entered).rowcount > 0


def _is_alive(connection: Connection, holder: Holder) -> bool:
    """Return whether a server is alive; of one that is not, the row is gone when this returns."""
    own = _is_term(holder.replica, holder.term)
    connection.execute(sa.delete(REPLICA).where(*own, _REPLICA.leased_until < CLOCK))
    return connection.execute(sa.select(1).where(*own).with_for_update(read=True)).first() is not None


def _is_term(replica: str, term: int) -> tuple[sa.ColumnElement[bool], ...]:
    return _REPLICA.id == replica, _REPLICA.term == term


def _holder(found: Row) -> Holder:
    return Holder(found.replica, found.term, found.epoch)


def _replica(row: Row) -> ReplicaRow:
    return ReplicaRow(
        row.id,
        row.term,
        row.address,
        row.mark,
        row.version,
        row.heartbeat,
        bool(row.leaving),
        row.is_alive,
    )


_REPLICA, _SESSION = REPLICA.c, SESSION_LEASE.c
_ALL = sa.select(REPLICA, (_REPLICA.leased_until > CLOCK).label("is_alive")).order_by(_REPLICA.started, _REPLICA.id)
