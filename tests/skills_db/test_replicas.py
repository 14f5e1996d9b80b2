"""Who has a session: one server at a time, and the next one only once the lease of the last has run out."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sealab.skills_db.engine import Database
from sealab.skills_db.errors import DatabaseUnavailable
from sealab.skills_db.replicas import NOBODY, ReplicaStore
from sealab.skills_db.shared_state.histories import Histories
from sealab.skills_db.sql import sa

from .conftest import Place

A, B, C = "a" * 16, "b" * 16, "c" * 16
LONG = 1000.0


@pytest.fixture
def shared(postgres_place: Place) -> Iterator[Database]:
    with postgres_place.open() as opened:
        yield opened


@pytest.fixture
def store(shared: Database) -> ReplicaStore:
    made = ReplicaStore(shared)
    for each in (A, B, C):
        made.join(each, 1, f"http://{each}", "mark", "1", seconds=LONG)
    return made


def end_lease(database: Database, replica: str) -> None:
    with database.transaction() as session:
        session.execute(sa.text("UPDATE sealab_replica SET leased_until = 0 WHERE id = :id"), {"id": replica})


def test_a_session_is_its_first_takers_for_as_long_as_that_is_alive(store: ReplicaStore) -> None:
    taken = store.take("s", A, 1)
    assert (taken.replica, taken.was_lost) == (A, False)
    assert [store.take("s", each, 1).replica for each in (B, C)] == [A, A]
    assert store.take("other", B, 1).replica == B


def test_of_all_who_take_over_at_once_one_does(store: ReplicaStore, shared: Database) -> None:
    store.take("s", A, 1)
    end_lease(shared, A)
    with ThreadPoolExecutor(8) as threads:
        holders = list(threads.map(lambda each: store.take("s", each, 1), [B, C] * 8))
    assert len({each.replica for each in holders}) == 1
    assert holders[0].replica in {B, C}
    assert any(each.was_lost for each in holders)


def test_a_lease_that_ran_out_is_renewed_late_only_where_nothing_was_taken(
    store: ReplicaStore, shared: Database
) -> None:
    store.take("s", A, 1)
    end_lease(shared, A)
    assert store.beat(A, 1, seconds=LONG, is_leaving=False).kept
    assert store.take("s", B, 1).replica == A
    end_lease(shared, A)
    assert store.take("s", B, 1).replica == B
    assert not store.beat(A, 1, seconds=LONG, is_leaving=False).kept
    store.join(A, 2, "http://a", "mark", "1", seconds=LONG)
    assert store.take("s", A, 2).replica == B


def test_what_an_earlier_term_had_is_not_had_by_the_next(store: ReplicaStore, shared: Database) -> None:
    store.take("s", A, 1)
    store.take("t", A, 1)
    end_lease(shared, A)
    store.take("s", B, 1)
    store.join(A, 2, "http://a", "mark", "1", seconds=LONG)
    again = store.take("t", C, 1)
    assert (again.replica, again.was_lost) == (C, True)


def test_to_let_go_of_an_earlier_time_does_nothing(store: ReplicaStore) -> None:
    first = store.take("s", A, 1)
    second = store.take("s", A, 1)
    assert second.epoch > first.epoch
    store.let_go([("s", first.epoch)], A)
    assert store.take("s", B, 1).replica == A
    store.let_go([("s", store.take("s", A, 1).epoch)], A)
    assert store.take("s", B, 1).replica == B


def test_the_dead_are_told_and_removed_and_who_leaves_has_nothing(store: ReplicaStore, shared: Database) -> None:
    store.take("s", A, 1)
    end_lease(shared, C)
    seen = {each.id: each.is_alive for each in store.beat(A, 1, seconds=LONG, is_leaving=True).replicas}
    assert seen == {A: True, B: True, C: False}
    assert {each.id: each.is_leaving for each in store.all()}[A]
    store.remove_dead(grace_seconds=LONG)
    assert {each.id for each in store.all()} == {A, B}
    store.leave(A)
    assert store.take("s", B, 1).replica == B


def promote(database: Database) -> None:
    """Begin a history that is not settled, as a promoted standby does; what it lacks the test removes."""
    with database.transaction() as session:
        session.execute(sa.text("UPDATE sealab_history SET since = extract(epoch FROM clock_timestamp())"))


def forget_lease(database: Database, name: str) -> None:
    with database.transaction() as session:
        session.execute(sa.text("DELETE FROM sealab_session_lease WHERE name = :name"), {"name": name})


def test_after_a_promotion_no_session_is_given_to_anybody_until_its_holder_had_time_to_notice(
    store: ReplicaStore, shared: Database
) -> None:
    first = store.take("s", A, 1, settle_seconds=LONG)
    assert first.replica == A
    promote(shared)
    forget_lease(shared, "s")
    assert [store.take("s", each, 1, settle_seconds=LONG).replica for each in (A, B)] == [NOBODY, NOBODY]
    assert store.keep({"s": first.epoch}, A, 1, may_be_forgotten=True) == frozenset()
    assert store.take("s", B, 1, settle_seconds=LONG).replica == A
    assert store.take("s", B, 1, settle_seconds=0).replica == A


def test_who_was_given_a_session_last_enters_it_again_over_the_row_of_an_earlier_holder(
    store: ReplicaStore, shared: Database
) -> None:
    first = store.take("s", A, 1)
    store.let_go([("s", first.epoch)], A)
    later = store.take("s", B, 1)
    with shared.transaction() as session:
        given = {"epoch": first.epoch, "replica": A}
        session.execute(sa.text("UPDATE sealab_session_lease SET epoch = :epoch, replica = :replica"), given)
    assert store.keep({"s": later.epoch}, B, 1) == {"s"}, "it is not known that the database has forgotten anything"
    assert store.keep({"s": later.epoch}, B, 1, may_be_forgotten=True) == frozenset()
    assert store.take("s", A, 1).replica == B


def test_a_session_that_was_given_to_another_is_not_entered_again(store: ReplicaStore, shared: Database) -> None:
    first = store.take("s", A, 1)
    forget_lease(shared, "s")
    assert store.take("s", B, 1).replica == B
    for forgotten in (False, True):
        assert store.keep({"s": first.epoch}, A, 1, may_be_forgotten=forgotten) == {"s"}


def test_the_first_history_of_a_database_is_settled_and_each_later_one_once_it_has_lasted(shared: Database) -> None:
    histories = Histories(shared)
    assert histories.are_known()
    histories.note()
    with shared.transaction() as session:
        assert histories.settled(session, LONG)
        session.execute(sa.text("UPDATE sealab_history SET history = 'a former one'"))
    with shared.transaction() as session:
        assert not histories.settled(session, LONG)
        assert histories.settled(session, 0)


@pytest.mark.parametrize(("state", "then"), [("55000", None), ("42501", False), ("0A000", False)])
def test_a_history_that_may_not_be_told_counts_as_none_and_one_that_cannot_be_told_yet_is_asked_for_again(
    shared: Database, postgres_place: Place, state: str, then: bool | None
) -> None:
    with shared.transaction() as session:  # as a standby says it that is not promoted yet, or a server that forbids it
        session.execute(
            sa.text(
                "CREATE FUNCTION public.pg_current_wal_lsn() RETURNS pg_lsn LANGUAGE plpgsql AS $$ BEGIN "
                f"RAISE EXCEPTION 'not here' USING ERRCODE = '{state}'; END $$"
            )
        )
        name = session.execute(sa.text("SELECT current_database()")).scalar_one()
        session.execute(sa.text(f'ALTER DATABASE "{name}" SET search_path = public, pg_catalog'))
    with postgres_place.open() as database:
        histories = Histories(database)
        if then is None:
            with pytest.raises(DatabaseUnavailable, match="standby"):
                histories.are_known()
        else:
            assert histories.are_known() is then
        with shared.transaction() as session:
            session.execute(sa.text("DROP FUNCTION public.pg_current_wal_lsn()"))
        assert histories.are_known() is (then is None)
