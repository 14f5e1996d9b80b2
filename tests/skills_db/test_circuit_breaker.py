"""A PostgreSQL server that does not answer: everybody is told in bounded time, and nothing is done twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sealab.skills_db import circuit_breaker as silence_module
from sealab.skills_db import postgresql
from sealab.skills_db.circuit_breaker import Silence
from sealab.skills_db.content import SkillDraft
from sealab.skills_db.engine import Database
from sealab.skills_db.errors import CommitUnknown, DatabaseUnavailable, DatabaseUnreachable
from sealab.skills_db.skills import SkillStore

from ..waiting import wait_until
from .conftest import Place
from .link import Link, linked
from .postgres import Cluster


@pytest.fixture
def link_and_place(
    cluster: Cluster, postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Link, Place]]:
    monkeypatch.setattr(postgresql, "CONNECT_SECONDS", 2)  # the least that the driver takes
    monkeypatch.setattr(postgresql, "PING_SECONDS", 0.5)
    monkeypatch.setattr(postgresql, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(silence_module, "QUICK_SECONDS", 0.4)
    with linked(cluster, postgres_place) as (link, place):
        yield link, place


def saved(store: SkillStore, name: str) -> int:
    return store.save(SkillDraft(name=name, code="pass")).version


def test_a_server_that_falls_silent_is_told_and_used_again_when_it_speaks(link_and_place: tuple[Link, Place]):
    link, place = link_and_place
    with place.open() as database:
        store = SkillStore(database)
        assert saved(store, "a") == 1
        link.cut()
        for ask in (store.list, lambda: saved(store, "b"), store.counts):
            with pytest.raises(DatabaseUnreachable, match=r"answer.*, so nothing was changed\. Try again"):
                ask()
        link.mend()
        wait_until(lambda: answers(store))
        assert saved(store, "b") == 1
        assert store.names() == ("a", "b")


def revision_in(database: Database) -> object:
    with database.read() as session:
        return session.exec_driver_sql("SELECT number FROM sealab_revision").scalar_one()


def answers(store: SkillStore) -> bool:
    try:
        store.counts()
    except DatabaseUnavailable:
        return False
    return True


def test_a_server_that_lets_nobody_in_is_told(link_and_place: tuple[Link, Place]):
    link, place = link_and_place
    link.cut()
    with pytest.raises(DatabaseUnreachable, match="does not answer"):
        place.open()
    link.mend()
    place.open().close()


def test_a_server_that_falls_silent_within_a_change_has_not_made_it(link_and_place: tuple[Link, Place]):
    link, place = link_and_place

    def cut_off(database: Database) -> None:
        with database.transaction() as session:
            session.exec_driver_sql("UPDATE sealab_revision SET number = 77")
            link.cut()
            session.exec_driver_sql("UPDATE sealab_revision SET number = 78")

    with place.open() as database:
        store = SkillStore(database)
        with pytest.raises(DatabaseUnreachable, match="nothing was changed"):
            cut_off(database)
        link.mend()
        wait_until(lambda: answers(store))
        assert revision_in(database) == 0


def test_a_change_whose_commit_is_not_answered_is_told_to_be_unknown_and_made_once(link_and_place: tuple[Link, Place]):
    link, place = link_and_place

    def fall_silent(database: Database) -> None:
        with database.transaction() as session:
            session.exec_driver_sql("UPDATE sealab_revision SET number = number + 1")
            link.mute()

    with place.open() as database:
        store = SkillStore(database)
        with pytest.raises(CommitUnknown, match=r"not known whether it was\. Look whether it is there"):
            fall_silent(database)
        link.mend()
        wait_until(lambda: answers(store))
        assert revision_in(database) == 1


def test_of_many_that_ask_a_silent_server_few_wait_and_all_are_told(link_and_place: tuple[Link, Place]):
    link, place = link_and_place
    with place.open() as database, ThreadPoolExecutor(4) as threads:
        store = SkillStore(database)
        store.counts()
        link.cut()
        before = link.connections
        asked = [threads.submit(store.counts) for _ in range(200)]
        for each in asked:
            assert isinstance(each.exception(), DatabaseUnreachable)
        assert link.connections - before < 20
        link.mend()
        wait_until(lambda: answers(store))


def test_a_statement_that_takes_too_long_is_ended_by_the_server(
    link_and_place: tuple[Link, Place], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(postgresql, "STATEMENT_SECONDS", 0.2)
    _link, place = link_and_place
    with place.open() as database:
        with pytest.raises(DatabaseUnavailable, match="took too long"), database.read() as session:
            session.exec_driver_sql("SELECT pg_sleep(30)")
        assert SkillStore(database).counts().skills == 0


def test_while_one_asks_a_silent_server_and_just_after_the_others_are_refused_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(silence_module, "QUICK_SECONDS", 0)
    silence = Silence("The database")
    with pytest.raises(DatabaseUnreachable), silence.tried():
        raise DatabaseUnreachable("It does not answer.")
    with pytest.raises(DatabaseUnreachable, match=r"has not answered for \d+ seconds"), silence.tried():
        pytest.fail("it was asked")
    monkeypatch.setattr(silence_module, "REST_SECONDS", 0)
    asking, done = threading.Event(), threading.Event()

    def ask() -> None:
        with silence.tried(), silence.tried():  # within its own question a thread may ask again
            asking.set()
            done.wait(20)

    with ThreadPoolExecutor(1) as other:
        asked = other.submit(ask)
        assert asking.wait(20)
        with pytest.raises(DatabaseUnreachable, match=r"has not answered for \d+ seconds"), silence.tried():
            pytest.fail("it was asked")
        done.set()
        asked.result()
    with silence.tried(), ThreadPoolExecutor(1) as other:
        other.submit(lambda: silence.tried().__enter__()).result()
