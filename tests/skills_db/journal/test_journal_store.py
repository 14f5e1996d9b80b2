"""Journals are kept whole and encrypted, and nothing of one can be swapped, cut or read with another key unnoticed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.skills_db.engine import Database
from sealab.skills_db.errors import (
    DatabaseUnreachable,
    JournalDamaged,
    JournalErased,
    JournalNewer,
    JournalNotFound,
    RunNotCut,
    VaultKeyWrong,
)
from sealab.skills_db.journal.background_store import BackgroundStore
from sealab.skills_db.journal.journal_store import DAMAGED, NEWER, JournalStore
from sealab.skills_db.journal.records import (
    CUT,
    ERASED,
    RUNNING,
    Record,
    RecordKind,
    RunBegin,
    RunChange,
    RunEnd,
    SessionPrograms,
    joined,
    parted,
)
from sealab.skills_db.sql import sa
from sealab.skills_db.vault import Vault

from ..conftest import Place
from ..postgres import INSTALL, find_binaries, throwaway_cluster

KEY = bytes(range(32))
ALICE, BOB = "http credentials alice", "http credentials bob"
SECRET = "anna@example.org"


@pytest.fixture
def journals(database: Database) -> JournalStore:
    return JournalStore(database, KEY, quota_bytes=10_000_000)


def begin(run_id: str, scope: str = ALICE, *, code: str = "1 + 1", seconds: float = 60.0) -> RunBegin:
    now = time.time()
    header = json.dumps({"code": code}).encode()
    lives = now + seconds
    return RunBegin(
        run_id, scope, "restricted", now, lives, 30.0, 500, header, session="s", number=2, leased_until=lives
    )


def outcome(number: int, answer: object) -> Record:
    return Record(RecordKind.OUTCOME, json.dumps({"n": number, "name": "call_tool", "answer": answer}).encode())


def write(
    journals: JournalStore, run_id: str, answers: Iterable[object], scope: str = ALICE, *, ends: bool = True
) -> None:
    """Write a run with a piece for each answer, and its end."""
    scopes = {run_id: scope}
    journals.write([RunChange(run_id, 0, begin=begin(run_id, scope))], scopes, durable=False)
    number = 0
    for answer in answers:
        piece = joined([outcome(number, answer)])
        journals.write([RunChange(run_id, number, piece=piece)], scopes, durable=True)
        number += 1
    if ends:
        end = RunEnd("ok", time.time(), "restricted", {"crm.send": {"done": number}})
        journals.write([RunChange(run_id, number, end=end)], scopes, durable=False)


def rows(database: Database, statement: str, **values: object) -> list[sa.Row[tuple[object, ...]]]:
    with database.transaction() as session:
        found = session.execute(sa.text(statement), values)
        return list(found.all()) if found.returns_rows else []


def test_a_journal_comes_back_whole(journals: JournalStore) -> None:
    write(journals, "run1", [{"a": 1}, SECRET, "x" * 2_000_000])
    found = journals.journal("run1")
    assert (found.scope, found.header["code"], found.run.session, found.run.number) == (ALICE, "1 + 1", "s", 2)
    assert (found.run.status, found.run.tools) == ("ok", {"crm.send": {"done": 3}})
    assert [each.value["answer"] for each in found.records] == [{"a": 1}, SECRET, "x" * 2_000_000]
    assert found.run.bytes > 2_000_000


def test_one_commit_takes_begin_pieces_and_ends_of_many_runs(journals: JournalStore) -> None:
    names = [f"run{number}" for number in range(20)]
    changes = [
        RunChange(name, 0, begin(name), joined([outcome(0, name)]), RunEnd("ok", time.time(), "restricted"))
        for name in names
    ]
    journals.write(changes, dict.fromkeys(names, ALICE), durable=True)
    assert [run.run_id for run in journals.runs()] == names[::-1]
    assert journals.journal("run7").records[0].value["answer"] == "run7"


def test_no_value_stands_in_the_database_in_clear(journals: JournalStore, database: Database) -> None:
    write(journals, "run1", [SECRET])
    stored = rows(database, "SELECT sealed_header, sealed_end FROM sealab_journal_run")
    stored += rows(database, "SELECT sealed FROM sealab_journal_piece")
    everything = b"".join(bytes(each) for row in stored for each in row)  # type: ignore[call-overload]  # of bytes alone
    for known in (SECRET, "1 + 1", "crm.send", "alice"):
        assert known.encode() not in everything
    assert not any("alice" in str(row) for row in rows(database, "SELECT owner, session FROM sealab_journal_run"))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sealab_journal_piece SET number = -1 WHERE number = 0",
        "DELETE FROM sealab_journal_piece WHERE number = 1",
        "DELETE FROM sealab_journal_piece WHERE number = 2",
        (
            "UPDATE sealab_journal_piece SET sealed = (SELECT sealed FROM sealab_journal_piece WHERE run_id = 'run2' "
            "AND number = 0) WHERE run_id = 'run1' AND number = 0"
        ),
        (
            "UPDATE sealab_journal_piece SET sealed = (SELECT sealed FROM sealab_journal_piece WHERE run_id = 'run1' "
            "AND number = 1) WHERE run_id = 'run1' AND number = 0"
        ),
        (
            "UPDATE sealab_journal_run SET sealed_header = (SELECT sealed_header FROM sealab_journal_run "
            "WHERE run_id = 'run2') WHERE run_id = 'run1'"
        ),
        "UPDATE sealab_journal_run SET owner = 'somebody'",
        "UPDATE sealab_journal_run SET status = 'error'",
        "UPDATE sealab_journal_run SET sealed_end = NULL",
        "UPDATE sealab_journal_run SET pieces = 2",
    ],
)
def test_what_is_swapped_cut_or_changed_is_refused(journals: JournalStore, database: Database, change: str) -> None:
    write(journals, "run1", ["a", "b", "c"])
    write(journals, "run2", ["d", "e", "f"], BOB)
    rows(database, change)
    with pytest.raises(JournalDamaged, match=r"^The journal of the run run1 was changed or is damaged: .*\. It cannot"):
        journals.journal("run1")


def test_pieces_cannot_be_cut_off_an_ended_journal_with_its_count(journals: JournalStore, database: Database) -> None:
    write(journals, "run1", ["a", "b"])
    rows(database, "DELETE FROM sealab_journal_piece WHERE number = 1")
    rows(database, "UPDATE sealab_journal_run SET pieces = 1")
    with pytest.raises(JournalDamaged, match="its end 1 does not open"):
        journals.journal("run1")


def test_a_damaged_and_a_newer_journal_hide_no_others_in_a_list(journals: JournalStore, database: Database) -> None:
    for name in ("run1", "run2", "run3"):
        write(journals, name, [name])
    rows(database, "UPDATE sealab_journal_run SET status = 'error' WHERE run_id = 'run1'")
    rows(database, "UPDATE sealab_journal_run SET format = 2 WHERE run_id = 'run2'")
    assert [(run.run_id, run.status) for run in journals.runs()] == [("run3", "ok"), ("run2", NEWER), ("run1", DAMAGED)]
    with pytest.raises(JournalNewer, match="written by a newer version of sealab"):
        journals.journal("run2")


def test_a_wrong_key_is_refused_before_anything_is_read_or_written(journals: JournalStore, database: Database) -> None:
    write(journals, "run1", ["a"])
    with pytest.raises(VaultKeyWrong, match="written with another key"):
        JournalStore(database, bytes(32), quota_bytes=1)
    with pytest.raises(VaultKeyWrong):
        Vault(database, bytes(32))
    Vault(database, KEY)


def test_a_journal_of_another_owner_is_not_found(journals: JournalStore) -> None:
    write(journals, "run1", ["a"])
    assert journals.journal("run1", scope=ALICE).scope == ALICE
    for run_id, scope in (("run1", BOB), ("run9", ALICE)):
        with pytest.raises(JournalNotFound):
            journals.journal(run_id, scope=scope)
    assert [run.run_id for run in journals.runs(scope=BOB)] == []


def test_a_list_is_of_a_status_a_tool_and_a_time(journals: JournalStore) -> None:
    write(journals, "run1", ["a"])
    write(journals, "run2", [], ends=False)
    assert [run.run_id for run in journals.runs(status="ok")] == ["run1"]
    assert [run.run_id for run in journals.runs(status=RUNNING)] == ["run2"]
    assert [run.run_id for run in journals.runs(tool="crm.send")] == ["run1"]
    assert journals.runs(tool="crm.read") == []
    assert journals.runs(since=time.time() + 1) == []


def test_the_programs_of_a_session_are_those_since_it_began(journals: JournalStore) -> None:
    before = {"old": None, "old2": "old", "a": None, "b": "a", "c": "b", "d": "c", "alone": "gone"}
    for name, after in before.items():
        journals.write([RunChange(name, 0, replace(begin(name), after=after))], {name: ALICE}, durable=False)
    journals.write([RunChange("alone2", 0, replace(begin("alone2"), session=None))], {"alone2": ALICE}, durable=False)
    assert journals.session_until("c") == ["a", "b", "c"]
    assert journals.session_until("a") == ["a"]
    assert journals.session_until("alone2") == ["alone2"]
    with pytest.raises(JournalDamaged, match="an earlier program of its session is not kept any more"):
        journals.session_until("alone")
    with pytest.raises(JournalNotFound):
        journals.session_until("none")


def programs(journals: JournalStore, *told: tuple[str, str | None, str]) -> None:
    """Write programs of the session, each with its name, the one before it, and how it ended."""
    for name, after, status in told:
        end = RunEnd(status, time.time(), "restricted")
        change = RunChange(name, 0, replace(begin(name), after=after), joined([outcome(0, name)]), end)
        journals.write([change], {name: ALICE}, durable=False)


def test_a_session_is_its_programs_but_those_that_it_did_not_outlive(journals: JournalStore) -> None:
    assert journals.session(ALICE, "s") == SessionPrograms()
    programs(journals, ("a", None, "ok"), ("b", "a", "error"), ("c", "b", "timeout"), ("d", "b", "memory"))
    journals.write([RunChange("cut", 0, replace(begin("cut"), after="b"))], {"cut": ALICE}, durable=False)
    assert journals.session(ALICE, "s") == SessionPrograms(("a", "b"))
    assert journals.session(BOB, "s") == SessionPrograms()
    assert journals.session(ALICE, "other") == SessionPrograms()
    programs(journals, ("e", "b", "ok"))
    assert journals.session(ALICE, "s") == SessionPrograms(("a", "b", "e"))
    journals.forget(lambda text: text == "b")
    assert journals.session(ALICE, "s").gap is not None
    programs(journals, ("f", None, "ok"))
    assert journals.session(ALICE, "s") == SessionPrograms(("f",))
    assert journals.close_session(ALICE, "s")
    programs(journals, ("g", "f", "ok"))
    assert journals.session(ALICE, "s") == SessionPrograms()
    assert not journals.close_session(ALICE, "s")


def test_what_a_process_writes_of_a_run_that_another_took_over_is_refused(journals: JournalStore) -> None:
    cut = replace(begin("run"), leased_by="first", leased_until=time.time() - 1)
    journals.write([RunChange("run", 0, cut, joined([outcome(1, "a")]), process="first")], {"run": ALICE}, durable=True)
    taken = journals.take_over("run", "second", 60)
    assert [record.kind for record in taken.records] == [RecordKind.OUTCOME, RecordKind.RESUMED]
    late = RunChange("run", 1, piece=joined([outcome(2, "late")]), process="first")
    with pytest.raises(Exception, match=r"(?i)unique"):
        journals.write([late], {"run": ALICE}, durable=True)
    end = RunEnd("cancelled", time.time(), "restricted")
    journals.write([RunChange("run", 1, end=end, process="first")], {"run": ALICE}, durable=True)
    assert journals.journal("run").run.status == RUNNING
    with pytest.raises(RunNotCut):
        journals.take_over("run", "third", 60)
    journals.renew("second", -60)
    assert journals.take_over("run", "third", 60).pieces == 3


def test_a_run_without_an_end_runs_as_long_as_its_lease_and_was_cut_afterwards(journals: JournalStore) -> None:
    for name, until in (("runs", time.time() + 60), ("cut", time.time() - 1)):
        journals.write([RunChange(name, 0, replace(begin(name), leased_until=until))], {name: ALICE}, durable=False)
    assert [(run.run_id, run.status) for run in journals.runs()] == [("cut", CUT), ("runs", RUNNING)]


def test_what_has_outlived_its_time_is_neither_read_nor_kept(journals: JournalStore, database: Database) -> None:
    journals.write(
        [RunChange("old", 0, begin("old", seconds=-1), joined([outcome(0, 1)]))], {"old": ALICE}, durable=True
    )
    write(journals, "new", [1])
    with pytest.raises(JournalNotFound):
        journals.journal("old")
    assert journals.drop_expired() == 1
    assert rows(database, "SELECT DISTINCT run_id FROM sealab_journal_piece") == [("new",)]


def test_the_oldest_ended_journals_of_an_owner_go_when_its_quota_is_used_up(database: Database) -> None:
    journals = JournalStore(database, KEY, quota_bytes=250_000)
    write(journals, "bobs", ["x" * 80_000], BOB)
    write(journals, "live", ["x" * 80_000], ends=False)
    for number in range(6):
        write(journals, f"run{number}", ["x" * 80_000])
    kept = [run.run_id for run in journals.runs()]
    assert kept == ["run5", "run4", "live", "bobs"]
    assert journals.used_bytes(ALICE) <= 250_000


def test_every_journal_that_holds_a_person_is_forgotten_and_no_other(journals: JournalStore) -> None:
    write(journals, "run1", [{"to": [{SECRET: 1}]}])
    write(journals, "run2", ["nobody"])
    write(journals, "run3", [[SECRET]], BOB)
    assert journals.forget(lambda text: SECRET in text, erases=False) == ["run1", "run3"]
    assert journals.forget(lambda text: SECRET in text, scope=BOB) == ["run3"]
    assert journals.forget(lambda text: SECRET in text) == ["run1"]
    told = [(run.run_id, run.status, run.tools) for run in journals.runs()]
    assert told == [("run3", ERASED, {}), ("run2", "ok", {"crm.send": {"done": 1}}), ("run1", ERASED, {})]
    assert journals.forget(lambda text: SECRET in text) == []
    assert journals.forget_scope(journals.owner_of(ALICE)) == 1
    assert {run.status for run in journals.runs()} == {ERASED}


def test_of_a_journal_that_was_erased_nothing_is_left_and_whoever_asks_for_it_is_told(
    journals: JournalStore, database: Database
) -> None:
    write(journals, "ended", [SECRET, SECRET])
    write(journals, "runs", [SECRET], ends=False)
    write(journals, "named", ["x"])
    named = replace(begin("insession"), session=f"for {SECRET}")
    journals.write([RunChange("insession", 0, named)], {"insession": ALICE}, durable=True)
    assert journals.forget(lambda text: SECRET in text) == ["ended", "runs", "insession"]
    for run_id in ("ended", "runs", "insession"):
        with pytest.raises(JournalErased, match=f"the run {run_id} was erased by `sealab pii forget`"):
            journals.journal(run_id)
        with pytest.raises(JournalErased):
            journals.take_over(run_id, "second", 60)
        (held,) = rows(database, f"SELECT count(*) FROM sealab_journal_piece WHERE run_id = '{run_id}'")
        assert held == (1,)  # the place of the next piece
    late = RunChange("runs", 1, piece=joined([outcome(2, SECRET)]))
    with pytest.raises(JournalErased):
        journals.write([late], {"runs": ALICE}, durable=True)
    assert journals.used_bytes(ALICE) < 2_000


def test_a_session_of_which_a_program_was_erased_is_not_rebuilt_without_it(journals: JournalStore) -> None:
    programs(journals, ("a", None, "ok"), ("b", "a", "ok"))
    journals.forget(lambda text: text == "b")
    assert "was erased by `sealab pii forget`" in str(journals.session(ALICE, "s").gap)
    programs(journals, ("c", "b", "ok"))
    assert "was erased by `sealab pii forget`" in str(journals.session(ALICE, "s").gap)
    assert journals.session_until("c") == ["a", "b", "c"]


def test_a_journal_that_has_outlived_its_time_is_kept_while_its_run_is_under_way(journals: JournalStore) -> None:
    for name, leased in (("runs", 60.0), ("cut", -1.0)):
        late = replace(begin(name, seconds=-1), leased_until=time.time() + leased, leased_by="here")
        journals.write([RunChange(name, 0, late)], {name: ALICE}, durable=True)
    assert journals.drop_expired() == 1
    assert journals.journal("runs").run.status == RUNNING
    journals.write([RunChange("runs", 0, piece=joined([outcome(1, "late")]))], {"runs": ALICE}, durable=True)
    end = RunEnd("ok", time.time(), "restricted")
    journals.write([RunChange("runs", 1, end=end, process="here")], {"runs": ALICE}, durable=True)
    assert journals.drop_expired() == 1


def test_background_runs_count_in_the_quota_and_go_with_their_journals(database: Database) -> None:
    journals = JournalStore(database, KEY, quota_bytes=250_000)
    queue = BackgroundStore(database, KEY, process="here")
    later = time.time() + 60
    queue.put("waits", ALICE, {"code": "x" * 30_000}, expires=later, most=10)
    for number in range(4):
        queue.put(f"run{number}", ALICE, {"code": "1"}, expires=later, most=10)
    for _ in range(5):
        claimed = queue.claim(60.0, most=100)
        assert claimed is not None
        if claimed.run_id != "waits":
            write(journals, claimed.run_id, ["x" * 20_000])
            queue.finish(claimed.run_id, claimed.owner, {"report": "x" * 60_000})
    write(journals, "last", ["x" * 30_000])
    assert journals.used_bytes(ALICE) <= 250_000
    assert [run.run_id for run in journals.runs()] == ["last", "run3", "run2"]
    assert {each.run_id for each in queue.listed(most=10)} == {"waits", "run2", "run3"}
    assert queue.state("waits").status == "running"


def test_a_write_that_fails_leaves_nothing_of_any_run(journals: JournalStore) -> None:
    write(journals, "run1", ["a"])
    fails = RunChange("run1", 0, piece=joined([outcome(0, "again")]))
    with pytest.raises(sa.exc.IntegrityError):
        journals.write([RunChange("run2", 0, begin("run2")), fails], {"run1": ALICE, "run2": ALICE}, durable=True)
    assert [run.run_id for run in journals.runs()] == ["run1"]


WRITER_ON_A_SMALL_DISK = """
import pathlib, resource, signal, sys, time
from sealab.skills_db.engine import open_database
from sealab.skills_db.errors import DatabaseUnavailable
from sealab.skills_db.journal.background_store import BackgroundStore
from sealab.skills_db.journal.journal_store import JournalStore
from sealab.skills_db.journal.records import Record, RecordKind, RunBegin, RunChange, joined
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open_database(None, pathlib.Path(sys.argv[1])) as database:
    journals = JournalStore(database, bytes(range(32)), quota_bytes=1 << 40)
    begin = RunBegin("run1", "home", "restricted", time.time(), time.time() + 600, 30.0, 500, b"{}")
    journals.write([RunChange("run1", 0, begin)], {"run1": "home"}, durable=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    written = 0
    try:
        while True:
            piece = joined([Record(RecordKind.TRACE, b"x" * 50_000)])
            journals.write([RunChange("run1", written, piece=piece)], {"run1": "home"}, durable=True)
            written += 1
    except DatabaseUnavailable as error:
        print(written, error)
"""


def test_on_a_full_disk_a_write_fails_clearly_and_all_before_it_are_kept(file_place: Place) -> None:
    """A limit on the size of files stands in for a full disk: the same writes fail."""
    command = [sys.executable, "-c", WRITER_ON_A_SMALL_DISK, str(file_place.home)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    written, _, message = done.stdout.partition(" ")
    assert int(written) > 2
    assert re.match(r"The database file .* (cannot grow: the disk is full|cannot be read or written)\. ", message)
    with file_place.open() as database:
        journal = JournalStore(database, KEY, quota_bytes=1 << 40).journal("run1")
        assert journal.trace == b"x" * 50_000 * int(written)


def test_what_a_server_of_a_database_acknowledged_survives_its_crash_though_nobody_asked_for_that(
    tmp_path: Path,
) -> None:
    """A piece that is lost while its process lives on would be a gap between those before it and those after."""
    if find_binaries() is None:
        pytest.skip(f"there is no PostgreSQL on this machine. {INSTALL}")
    with throwaway_cluster() as cluster, Place(cluster.create("crash"), tmp_path).open() as database:
        journals = JournalStore(database, KEY, quota_bytes=10_000_000)
        journals.write([RunChange("run1", 0, begin("run1"))], {"run1": ALICE}, durable=True)
        for number in range(3):
            piece = joined([outcome(number, "told")])
            journals.write([RunChange("run1", number, piece=piece)], {"run1": ALICE}, durable=False)
        cluster.stop(signal.SIGKILL)
        cluster.start()
        piece = joined([outcome(3, "told")])
        journals.write([RunChange("run1", 3, piece=piece)], {"run1": ALICE}, durable=True)
        assert [each.value["n"] for each in journals.journal("run1").records] == [0, 1, 2, 3]


def test_a_write_that_was_stored_does_not_fail_since_its_bytes_cannot_be_counted(
    journals: JournalStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent() -> None:
        raise DatabaseUnreachable("It does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(database, "read", silent)
        write(journals, "run1", ["a"])
    assert journals.journal("run1").run.status == "ok"


def test_it_can_be_found_out_whether_a_commit_came_about(journals: JournalStore) -> None:
    started = RunChange("run1", 0, begin("run1"), process="here")
    first = RunChange("run1", 0, piece=joined([outcome(1, "a")]), process="here")
    ends = RunChange("run1", 1, end=RunEnd("ok", time.time(), "restricted"), process="here")
    of_another = replace(first, process="there")
    for change in (started, first, ends):
        assert not journals.is_written([change])
        leased = None if change.begin is None else replace(change.begin, leased_by="here")
        journals.write([replace(change, begin=leased)], {"run1": ALICE}, durable=True)
        assert journals.is_written([change])
    assert not journals.is_written([of_another])


RECORDS = st.lists(st.builds(Record, st.sampled_from(RecordKind), st.binary(max_size=50)), max_size=8)


@given(RECORDS)
def test_records_of_a_piece_come_back_as_they_were(records: list[Record]) -> None:
    assert list(parted(joined(records))) == records


@given(RECORDS.filter(bool), st.data())
def test_a_piece_that_is_cut_in_a_record_is_refused(records: list[Record], data: st.DataObject) -> None:
    piece = joined(records)
    ends = {len(joined(records[:count])) for count in range(len(records) + 1)}
    at = data.draw(st.integers(0, len(piece)).filter(lambda at: at not in ends))
    with pytest.raises(ValueError, match="a record is cut"):
        list(parted(piece[:at]))
