"""The queue of background runs: who gets which run, what a lease keeps, and what the database holds, on both kinds."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from sealab.skills_db.engine import Database
from sealab.skills_db.errors import JournalErased, JournalNotFound
from sealab.skills_db.journal.background_store import BackgroundStore
from sealab.skills_db.journal.journal_store import JournalStore
from sealab.skills_db.journal.waiting_runs import any_wait
from sealab.skills_db.sql import sa

from ..conftest import Place

KEY = bytes(range(32))
ALICE, BOB = "http credentials alice", "http credentials bob"
SECRET = "anna@example.org"
LONG = 600.0


@pytest.fixture
def store(database: Database) -> BackgroundStore:
    return BackgroundStore(database, KEY, process="one")


@pytest.fixture
def other(database: Database) -> BackgroundStore:
    return BackgroundStore(database, KEY, process="two")


def put(store: BackgroundStore, run_id: str, scope: str = ALICE, *, most: int = 100, code: str = "1") -> bool:
    return store.put(run_id, scope, {"code": code, "scope": scope}, expires=time.time() + LONG, most=most)


def claimed(store: BackgroundStore, *, seconds: float = LONG, most: int = 100) -> str | None:
    found = store.claim(seconds, most=most)
    return None if found is None else found.run_id


def test_runs_are_taken_in_turn_and_of_the_caller_with_the_fewest_first(store: BackgroundStore) -> None:
    for run_id in ("a1", "a2", "a3"):
        put(store, run_id)
    put(store, "b1", BOB)
    assert [claimed(store) for _ in range(5)] == ["a1", "b1", "a2", "a3", None]


def test_a_caller_gets_no_more_at_once_than_its_share(store: BackgroundStore) -> None:
    for run_id in ("a1", "a2", "b1"):
        put(store, run_id, BOB if run_id == "b1" else ALICE)
    assert [claimed(store, most=1) for _ in range(3)] == ["a1", "b1", None]
    found = store.state("a1")
    store.finish("a1", found.owner, {})
    assert claimed(store, most=1) == "a2"


def test_more_than_a_caller_may_have_waiting_are_not_taken_in(store: BackgroundStore) -> None:
    assert put(store, "a1", most=1)
    assert not put(store, "a2", most=1)
    assert put(store, "b1", BOB, most=1)


def test_of_many_that_ask_at_once_each_run_is_given_to_one(store: BackgroundStore, other: BackgroundStore) -> None:
    for number in range(20):
        put(store, f"run{number}")
    taken: list[str] = []
    with ThreadPoolExecutor(4) as threads:
        while store.has_work():
            taken += [run for run in threads.map(claimed, [store, other] * 4) if run is not None]
    assert sorted(taken) == sorted(f"run{number}" for number in range(20))


def test_a_run_whose_lease_is_over_goes_to_the_next_and_is_lost_to_the_first(
    store: BackgroundStore, other: BackgroundStore
) -> None:
    put(store, "a1")
    first = store.claim(-1.0, most=100)
    assert first is not None
    assert not first.was_cut
    second = other.claim(LONG, most=100)
    assert second is not None
    assert second.was_cut
    assert second.request == {"code": "1", "scope": ALICE}
    assert store.renew("a1", first.owner, None, LONG) == "lost"
    assert not store.finish("a1", first.owner, {"report": "of the first"})
    assert other.finish("a1", second.owner, {"report": "of the second"})
    assert store.state("a1").report == {"report": "of the second"}


def test_a_run_that_a_promoted_standby_does_not_know_to_be_taken_stays_with_who_has_it(postgres_place: Place) -> None:
    with postgres_place.open() as database:
        first, second = (BackgroundStore(database, b"k" * 32, process=name) for name in ("first", "second"))
        first.drop_expired()
        put(first, "1")
        put(first, "2")
        owners = {}
        for _ in range(2):
            taken = first.claim(LONG, most=100)
            assert taken is not None
            owners[taken.run_id] = taken.owner
        with database.transaction() as session:
            lost = "UPDATE sealab_background_run SET status = 'queued', begins = 0, leased_by = '', leased_until = 0"
            session.execute(sa.text(lost))
            session.execute(sa.text("UPDATE sealab_history SET since = extract(epoch FROM clock_timestamp())"))
        assert second.claim(LONG, most=100) is None
        assert second.renew("1", owners["1"], None, LONG) == "lost"
        assert first.renew("1", owners["1"], None, LONG) == "kept"
        assert first.finish("2", owners["2"], {"status": "ok"})
        with database.transaction() as session:
            session.execute(sa.text("UPDATE sealab_history SET since = 0"))
        assert second.claim(LONG, most=100) is None, "both are known to be the first's again"


def test_a_run_that_another_took_once_the_promotion_was_long_ago_is_lost(postgres_place: Place) -> None:
    with postgres_place.open() as database:
        first, second = (BackgroundStore(database, b"k" * 32, process=name) for name in ("first", "second"))
        first.drop_expired()
        put(first, "1")
        taken = first.claim(LONG, most=100)
        assert taken is not None
        with database.transaction() as session:
            lost = "UPDATE sealab_background_run SET status = 'queued', begins = 0, leased_by = '', leased_until = 0"
            session.execute(sa.text(lost))
        assert second.claim(LONG, most=100) is not None
        assert first.renew("1", taken.owner, None, LONG) == "lost"
        assert not first.finish("1", taken.owner, {"status": "ok"})


def test_a_run_that_is_released_is_taken_at_once_and_counts_as_begun(
    store: BackgroundStore, other: BackgroundStore
) -> None:
    put(store, "a1")
    assert claimed(store) == "a1"
    assert claimed(other) is None
    store.release("a1", began=True)
    again = other.claim(LONG, most=100)
    assert again is not None
    assert again.was_cut


def test_a_renewal_keeps_progress_and_says_that_the_run_is_to_be_cancelled(store: BackgroundStore) -> None:
    put(store, "a1")
    found = store.claim(LONG, most=100)
    assert found is not None
    assert store.renew("a1", found.owner, {"fraction": 0.5}, LONG) == "kept"
    assert store.renew("a1", found.owner, None, LONG) == "kept"
    assert store.state("a1").progress == {"fraction": 0.5}
    store.cancel("a1", {"report": "cancelled"}, scope=ALICE)
    assert store.renew("a1", found.owner, None, LONG) == "cancels"


def test_a_run_that_waits_ends_when_it_is_cancelled_and_its_program_is_removed(
    store: BackgroundStore, database: Database
) -> None:
    put(store, "a1")
    store.cancel("a1", {"report": "cancelled"})
    assert store.state("a1").report == {"report": "cancelled"}
    assert claimed(store) is None
    with database.read() as session:
        assert session.execute(sa.text("SELECT sealed_request FROM sealab_background_run")).scalar_one() is None


def test_nobody_else_sees_a_run_or_cancels_it(store: BackgroundStore) -> None:
    put(store, "a1")
    with pytest.raises(JournalNotFound):
        store.state("a1", scope=BOB)
    with pytest.raises(JournalNotFound):
        store.cancel("a1", {}, scope=BOB)
    assert store.state("a1", scope=ALICE).status == "queued"


def test_the_database_holds_no_program_progress_or_report_in_clear(store: BackgroundStore, database: Database) -> None:
    put(store, "a1", code=SECRET)
    put(store, "a2", code=SECRET)
    found = store.claim(LONG, most=100)
    assert found is not None
    store.renew("a1", found.owner, {"message": SECRET}, LONG)
    store.cancel("a2", {"report": SECRET})
    with database.read() as session:
        for row in session.execute(sa.text("SELECT * FROM sealab_background_run")):
            assert not any(SECRET.encode() in bytes(each) for each in row if isinstance(each, bytes | memoryview))
            assert not any(SECRET in each or "alice" in each for each in row if isinstance(each, str))


def test_a_program_that_was_changed_in_the_database_is_not_run(store: BackgroundStore, database: Database) -> None:
    put(store, "a1")
    put(store, "a2")
    with database.transaction() as session:
        swapped = "UPDATE sealab_background_run SET sealed_request = (SELECT sealed_request FROM sealab_background_run WHERE run_id = 'a2') WHERE run_id = 'a1'"
        session.execute(sa.text(swapped))
    found = store.claim(LONG, most=100)
    assert found is not None
    assert (found.run_id, found.request) == ("a1", None)


def test_to_forget_a_person_removes_the_runs_that_speak_of_them(store: BackgroundStore, database: Database) -> None:
    journals = JournalStore(database, KEY, quota_bytes=10_000_000)
    put(store, "a1", code=f"mail('{SECRET}')")
    put(store, "a2")
    assert journals.forget(lambda text: SECRET in text, erases=False) == ["a1"]
    assert journals.forget(lambda text: SECRET in text) == ["a1"]
    with pytest.raises(JournalErased, match=r"the run a1 was erased by `sealab pii forget`"):
        store.state("a1")
    assert store.state("a2").status == "queued"
    assert claimed(store) == "a2"
    assert claimed(store) is None


@pytest.mark.parametrize("part", ["progress", "question", "answer", "report"])
def test_a_person_is_found_in_every_part_of_a_run_and_whoever_has_the_run_loses_it(
    store: BackgroundStore, database: Database, part: str
) -> None:
    journals = JournalStore(database, KEY, quota_bytes=10_000_000)
    put(store, "a1")
    found = store.claim(LONG, most=100)
    assert found is not None
    if part == "progress":
        store.renew("a1", found.owner, {"message": SECRET}, LONG)
    elif part == "report":
        store.finish("a1", found.owner, {"report": {"result": SECRET}})
    else:
        store.park("a1", found.owner, {"question": SECRET if part == "question" else "?", "choices": []})
        if part == "answer":
            store.answer("a1", 1, {"choice": SECRET})
    assert journals.forget(lambda text: SECRET in text) == ["a1"]
    assert store.renew("a1", found.owner, None, LONG) == "lost"
    assert not store.finish("a1", found.owner, {})
    assert store.waiting(most=10) == []
    assert not store.has_work()


def test_a_report_that_has_outlived_its_time_is_removed(store: BackgroundStore) -> None:
    put(store, "a1")
    store.put("a2", ALICE, {}, expires=time.time() - 1, most=100)
    assert claimed(store) == "a1"
    assert claimed(store) == "a2"
    store.finish("a2", store.listed(most=1)[0].owner, {})
    store.drop_expired()
    assert [each.run_id for each in store.listed(most=10)] == ["a1"]


def waits(store: BackgroundStore, run_id: str) -> int:
    """Let a run wait for the answer to a question; return the number of that."""
    if run_id not in [each.run_id for each in store.listed(most=100)]:
        put(store, run_id)
    assert claimed(store) == run_id
    assert store.park(run_id, store.state(run_id).owner, {"question": "May it?"})
    return store.state(run_id).questions


def test_each_question_has_the_one_answer_that_came_first(store: BackgroundStore) -> None:
    for number, (first, second) in enumerate([("this call", None), (None, "this call")], 1):
        assert waits(store, "a1") == number
        assert not store.answer("a1", number + 1, {"choice": first})
        assert store.answer("a1", number, {"choice": first})
        assert not store.answer("a1", number, {"choice": second})
        assert not store.answer("a1", number - 1, {"choice": second})
    answers = store.state("a1").answers
    assert [(each.number, each.choice) for each in answers] == [(1, "this call"), (2, None)]
    assert all(time.time() - 60 < each.at <= time.time() for each in answers)


def test_a_question_whose_time_is_over_is_not_answered(store: BackgroundStore, database: Database) -> None:
    number = waits(store, "a1")
    before = store.state("a1")
    with database.transaction() as session:
        session.execute(sa.text("UPDATE sealab_background_run SET expires = 1"))
    # It was looked up before: the statement itself must not store an answer any more.
    store.state = lambda *_run, **_scope: before  # type: ignore[method-assign]
    assert not store.answer("a1", number, {"choice": "this call"})


ANSWERS = """
import sys
from pathlib import Path
from sealab.skills_db.engine import open_database
from sealab.skills_db.journal.background_store import BackgroundStore
url, home, name, runs = sys.argv[1:]
store = BackgroundStore(open_database(url or None, Path(home)), bytes(range(32)), process=name)
print("ready", flush=True)
for _ in range(int(runs)):
    run_id = sys.stdin.readline().strip()
    print(int(store.answer(run_id, 1, {"choice": name})), flush=True)
"""


def test_of_processes_that_answer_at_once_one_is_taken(place: Place, store: BackgroundStore) -> None:
    runs = [f"run{number}" for number in range(20)]
    for run_id in runs:
        assert waits(store, run_id) == 1
    command = [sys.executable, "-c", ANSWERS, place.url or "", str(place.home)]
    with ExitStack() as ending:
        processes = [
            ending.enter_context(
                subprocess.Popen(
                    [*command, name, str(len(runs))],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    bufsize=1,
                )
            )
            for name in ("one", "two", "three")
        ]
        for each in processes:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for run_id in runs:
            for each in processes:
                assert each.stdin is not None
                each.stdin.write(f"{run_id}\n")
            taken = {
                each.args[-2]: each.stdout.readline()  # type: ignore[union-attr,index]  # it is a pipe, and a list
                for each in processes
            }
            assert sorted(taken.values()) == ["0\n", "0\n", "1\n"]
            (answer,) = store.state(run_id).answers
            assert taken[answer.choice] == "1\n"


KILLED = """
import sys, time
from pathlib import Path
from sealab.skills_db.engine import open_database
from sealab.skills_db.journal.background_store import BackgroundStore
store = BackgroundStore(open_database(None, Path(sys.argv[1])), bytes(range(32)), process="killed")
store.put("a1", "scope", {"code": "1"}, expires=time.time() + 600, most=10)
store.put("a2", "scope", {"code": "2"}, expires=time.time() + 600, most=10)
store.claim(0.0, most=10)
print("ready", flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_had_queued_and_begun_is_there_for_the_next(file_place: Place) -> None:
    command = [sys.executable, "-c", KILLED, str(file_place.home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
    assert any_wait(file_place.home / "sealab.db")
    with file_place.open() as database:
        store = BackgroundStore(database, KEY, process="next")
        taken = [store.claim(LONG, most=10), store.claim(LONG, most=10)]
        assert [(each.run_id, each.was_cut) for each in taken if each is not None] == [("a1", True), ("a2", False)]
        for each in taken:
            assert each is not None
            store.finish(each.run_id, each.owner, {})
    assert not any_wait(file_place.home / "sealab.db")
