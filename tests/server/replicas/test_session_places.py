"""Which server has a session, within one server: what it lets go of ends, and nothing else does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from sealab.server.use_cases.replicas.membership import LeaseTimes, Membership
from sealab.server.use_cases.replicas.replica_errors import SessionElsewhere
from sealab.server.use_cases.replicas.replica_keys import ReplicaKeys
from sealab.server.use_cases.replicas.session_places import HeldSession, SessionPlaces
from sealab.skills_db.engine import Database
from sealab.skills_db.errors import DatabaseUnavailable
from sealab.skills_db.replicas import Beat, Holder, ReplicaStore
from sealab.skills_db.sql import sa

from ...waiting import until

KEYS = ReplicaKeys(b"k" * 32)
OTHER = "b" * 16


class Watched(ReplicaStore):
    """A store that says how many take a session at once; the first fails, and waits for `go` before."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.go = threading.Event()
        self.takes = self.at_once = self.at_once_max = 0
        self._counting = threading.Lock()

    def take(self, *given: Any, **named: Any) -> Holder:
        with self._counting:
            self.takes += 1
            number = self.takes
            self.at_once += 1
            self.at_once_max = max(self.at_once, self.at_once_max)
        try:
            if number == 1:
                self.go.wait(30)
                raise DatabaseUnavailable("It was away.")
            return super().take(*given, **named)
        finally:
            with self._counting:
                self.at_once -= 1


@dataclass
class Server:
    """A server's part in it, and the sessions that it ended."""

    store: ReplicaStore
    membership: Membership
    places: SessionPlaces
    ended: list[str] = field(default_factory=list)

    async def place(self, session: str, end: Callable[[], object] = lambda: None) -> HeldSession:
        async def ends() -> None:
            self.ended.append(session)
            end()

        held = await self.places.place("default", session, ends, lambda: True)
        assert isinstance(held, HeldSession)
        return held


@pytest.fixture
async def server(shared: Database, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    store = getattr(request, "param", ReplicaStore)(shared)
    made: list[Server] = []

    async def lost() -> None:
        await made[0].places.lost()

    async def checked(is_new_history: bool) -> None:
        if made:
            await made[0].places.check(may_be_forgotten=is_new_history)

    membership = Membership(lambda: store, KEYS, "http://127.0.0.1:1", version="1", lost=lost, held=checked)
    made.append(Server(store, membership, SessionPlaces(membership, KEYS)))
    await membership.start()
    yield made[0]
    await membership.leave()


async def test_every_lost_session_ends_though_one_of_them_cannot_be_ended(server: Server) -> None:
    def fails() -> None:
        raise RuntimeError("It cannot be ended.")

    held = await server.place("one", fails)
    await server.place("two")
    await server.places.lost()
    assert server.ended == ["one", "two"]

    async def here() -> object:
        raise AssertionError("It ran in a session that was lost.")

    with pytest.raises(SessionElsewhere, match="nothing of this call ran"):
        await server.places.run(held, here)  # type: ignore[arg-type]


async def test_a_call_that_begins_while_others_are_let_go_keeps_its_session(server: Server) -> None:
    begun: list[HeldSession] = []

    async def call() -> None:
        begun.append(await server.place("two"))
        begun[0].users += 1

    async def ends() -> None:
        server.ended.append("one")
        await call()

    await server.places.place("default", "one", ends, lambda: True)
    held = await server.place("two")
    await server.places.leave()
    assert server.ended == ["one"]
    assert begun == [held]


@pytest.mark.parametrize("server", [Watched], indirect=True)
async def test_one_call_at_a_time_takes_a_session_also_where_an_earlier_one_could_not(server: Server) -> None:
    store = server.store
    assert isinstance(store, Watched)
    first, second = (asyncio.create_task(server.place("s")) for _ in range(2))
    await until(lambda: store.takes == 1)
    store.go.set()
    with pytest.raises(DatabaseUnavailable):
        await first
    assert await server.place("s") is await second
    assert (store.takes, store.at_once_max) == (2, 1)


async def test_a_lease_is_renewed_on_after_whatever_went_wrong(shared: Database) -> None:
    store, lost = ReplicaStore(shared), asyncio.Event()

    async def fails() -> None:
        lost.set()
        raise RuntimeError("The sessions could not be ended.")

    times = LeaseTimes(beat_seconds=0.05)
    membership = Membership(lambda: store, KEYS, "http://127.0.0.1:1", version="1", lost=fails, times=times)
    await membership.start()
    try:
        await asyncio.to_thread(store.leave, membership.id)
        await lost.wait()
        assert await membership.valid(30)
        assert membership.term == 2
    finally:
        await membership.leave()


async def test_a_lease_is_renewed_while_what_is_over_takes_long_to_be_removed(shared: Database) -> None:
    began, go, removed = threading.Event(), threading.Event(), threading.Event()

    class Slow(ReplicaStore):
        beats = 0

        def beat(self, *given: Any, **named: Any) -> Beat:
            self.beats += 1
            return super().beat(*given, **named)

        def remove_dead(self, *, grace_seconds: float) -> None:
            began.set()
            go.wait(30)
            super().remove_dead(grace_seconds=grace_seconds)
            removed.set()

    store = Slow(shared)
    membership = Membership(
        lambda: store, KEYS, "http://127.0.0.1:1", version="1", lost=_nothing_lost, times=LeaseTimes(beat_seconds=0.05)
    )
    try:
        await membership.start()
        await until(began.is_set)
        beats = store.beats
        await until(lambda: store.beats > beats + 2)
    finally:
        go.set()
        await until(removed.is_set)
        await membership.leave()


async def _nothing_lost() -> None:
    raise AssertionError("The lease was never lost.")


class Promoted(ReplicaStore):
    """A store that tells another history of its database once it is told to."""

    history = "first"
    is_settled = True
    beats = 0

    def beat(self, *given: Any, **named: Any) -> Beat:
        self.beats += 1
        return replace(super().beat(*given, **named), history=self.history, is_settled=self.is_settled)


@pytest.mark.parametrize("server", [Promoted], indirect=True)
async def test_a_server_whose_lease_lasts_keeps_its_sessions_though_the_database_has_lost_them(
    server: Server, shared: Database
) -> None:
    store = server.store
    assert isinstance(store, Promoted)
    held = await server.place("s")
    with shared.transaction() as session:
        session.execute(sa.text("DELETE FROM sealab_session_lease"))
    store.history = "second"
    await until(lambda: server.membership.history == "second")
    assert await server.place("s") is held
    assert server.ended == []
    await asyncio.to_thread(store.join, OTHER, 1, "http://127.0.0.1:2", "", "1", seconds=1000)
    assert (await asyncio.to_thread(store.take, held.name, OTHER, 1)).replica == server.membership.id


@pytest.mark.parametrize("server", [Promoted], indirect=True)
async def test_a_server_whose_lease_had_run_out_waits_for_those_that_took_what_the_database_has_forgotten(
    server: Server,
) -> None:
    store, membership = server.store, server.membership
    assert isinstance(store, Promoted)
    taken, kept = await server.place("s"), await server.place("other")

    def given_to_another() -> None:
        store.let_go([(taken.name, taken.epoch)], membership.id)
        store.join(OTHER, 1, "http://127.0.0.1:2", marked("http://127.0.0.1:2"), "1", seconds=1000)
        assert store.take(taken.name, OTHER, 1).replica == OTHER

    store.history, store.is_settled = "second", False
    membership._valid_until = float("-inf")  # as after some seconds without a database
    beats = store.beats
    await until(lambda: store.beats > beats + 2)
    assert not membership.is_valid
    assert server.ended == []
    await asyncio.to_thread(given_to_another)
    store.is_settled = True
    assert await membership.valid(30)
    assert server.ended == ["s"]
    assert await server.place("other") is kept


async def test_a_session_that_the_database_gave_to_another_server_ends_here(server: Server) -> None:
    store = server.store
    held, kept = await server.place("s"), await server.place("other")

    def given_away() -> None:
        store.let_go([(held.name, held.epoch)], server.membership.id)
        store.join(OTHER, 1, "http://127.0.0.1:2", marked("http://127.0.0.1:2"), "1", seconds=1000)
        assert store.take(held.name, OTHER, 1).replica == OTHER

    await asyncio.to_thread(given_away)
    await until(lambda: server.ended == ["s"])
    assert held.is_lost
    assert await server.place("other") is kept


async def test_a_server_that_was_entered_without_the_key_is_none(server: Server) -> None:
    store, address = server.store, "http://127.0.0.1:2"
    for mark, is_there in (
        ("", False),
        ("é", False),
        (KEYS.address_mark("c" * 16, address), False),
        (marked(address), True),
    ):
        await asyncio.to_thread(lambda mark=mark: store.join(OTHER, 1, address, mark, "1", seconds=1000))
        await server.membership.look()
        assert (server.membership.other(OTHER) is not None) == is_there
        await asyncio.to_thread(store.leave, OTHER)


def marked(address: str) -> str:
    return KEYS.address_mark(OTHER, address)
