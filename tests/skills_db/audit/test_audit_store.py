"""The audit log: no line of it can be changed, removed, moved or put in without its check saying so."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from sealab.skills_db.audit.audit_store import AuditStore, LineFilter
from sealab.skills_db.audit.chain import TEXT_CHARS_MAX, AuditEvent, Head
from sealab.skills_db.engine import Database, open_database
from sealab.skills_db.errors import AuditDamaged, DatabaseUnavailable, VaultKeyWrong

from ..conftest import Place

KEY = bytes(range(32))
LINES = 12
TRIGGERS = ("sealab_audit_line_kept", "sealab_audit_line_stays", "sealab_audit_head_stays")
TEXT_COLUMNS = ("tenant", "principal", "credential", "event", "run", "tool", "decision", "rule", "outcome", "details")
NUMBER_COLUMNS = ("at_us", "bytes_in", "bytes_out")
ADDER = """
import sys
from pathlib import Path
from sealab.skills_db.audit.audit_store import AuditStore
from sealab.skills_db.audit.chain import AuditEvent
from sealab.skills_db.engine import open_database
url, home, who, batches, lines = sys.argv[1:]
with open_database(url or None, Path(home)) as database:
    store = AuditStore(database, bytes(range(32)))
    print("ready", flush=True)
    for batch in range(int(batches)):
        store.add([
            AuditEvent(event="run.ended", at_us=batch, principal=who, run=f"{batch}.{line}") for line in range(int(lines))
        ])
        print(batch, flush=True)
"""


def event(number: int, **more: object) -> AuditEvent:
    return AuditEvent(event="run.ended", at_us=1_000_000 * number, principal=f"p{number % 3}", run=f"r{number}", **more)


@pytest.fixture
def log(database: Database) -> AuditStore:
    return AuditStore(database, KEY)


def test_lines_come_back_as_they_were_written_and_their_chain_holds(log: AuditStore):
    given = [
        event(1, tool="crm.send", decision="allowed", rule="approve=never", bytes_in=1, bytes_out=2**62, outcome="ok"),
        event(2, tenant="ünïcode 名前", credential="a\nb", details={"EMAIL": 3, "ok": True, "ms": 0.25}),
    ]
    head = log.add(given)
    assert [line.event for line in log.lines(LineFilter())] == given
    assert [line.number for line in log.lines(LineFilter())] == [1, 2]
    verdict = log.verify()
    assert (verdict.why, verdict.lines, verdict.head) == (None, 2, head)
    assert log.verify(head.hash).why is None
    assert "no line has the hash" in str(log.verify("0" * 64).why)


def test_a_text_that_no_database_holds_is_kept_as_an_escape_and_a_long_one_says_that_it_is_cut(log: AuditStore):
    log.add([event(1, tool="a\0b\ud800", rule="x" * 5000)])
    (line,) = log.lines(LineFilter())
    assert line.event.tool == "a\\x00b\\ud800"
    assert line.event.rule == "x" * TEXT_CHARS_MAX + "… (5000 characters)"
    assert log.verify().why is None


def test_lines_are_found_by_what_they_are_about_the_newest_of_them_in_their_order(log: AuditStore):
    log.add([event(number, tenant="a" if number % 2 else "b") for number in range(1, 31)])

    def numbers(**wanted: object) -> list[int]:
        return [line.number for line in log.lines(LineFilter(**wanted))]

    assert numbers(limit=3) == [28, 29, 30]
    assert numbers(principal="p1", limit=2) == [25, 28]
    assert numbers(tenant="a", since_us=20_000_000) == [21, 23, 25, 27, 29]
    assert numbers(until_us=3_000_000) == [1, 2]
    assert numbers(run="r7") == [7]
    assert numbers(event="nothing") == []


def test_a_log_of_several_pages_is_read_and_checked_whole(log: AuditStore):
    for start in range(1, 2600, 650):
        log.add([event(number) for number in range(start, start + 650)])
    assert [line.number for line in log.lines(LineFilter(limit=2500))] == list(range(101, 2601))
    assert log.verify().lines == 2600


def test_another_key_adds_nothing(database: Database, log: AuditStore):
    log.add([event(1)])
    with pytest.raises(VaultKeyWrong):
        AuditStore(database, bytes(32))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sealab_audit_line SET outcome = 'ok'",
        "DELETE FROM sealab_audit_line WHERE number = 2",
        "DELETE FROM sealab_audit_head",
    ],
)
def test_the_database_refuses_to_change_or_remove_a_line(database: Database, log: AuditStore, statement: str):
    log.add([event(1), event(2)])
    with pytest.raises((DBAPIError, DatabaseUnavailable)), database.transaction() as session:
        session.execute(sa.text(statement))
    assert log.verify().lines == 2


def test_postgresql_refuses_to_empty_the_log(postgres_place: Place):
    with postgres_place.open() as database:
        log = AuditStore(database, KEY)
        log.add([event(1)])
        for table in ("sealab_audit_line", "sealab_audit_head"):
            with pytest.raises(DatabaseUnavailable), database.transaction() as session:
                session.execute(sa.text(f"TRUNCATE {table}"))
        assert log.verify().lines == 1


def test_a_head_that_somebody_changed_takes_no_more_lines(database: Database, log: AuditStore):
    log.add([event(1), event(2)])
    with database.transaction() as session:
        session.execute(sa.text("UPDATE sealab_audit_head SET number = 1"))
    with pytest.raises(AuditDamaged):
        log.add([event(3)])
    assert log.verify().why == "the head was changed by somebody who has not the key"


def test_a_log_that_was_put_back_under_a_running_server_takes_no_more_lines(database: Database, log: AuditStore):
    log.add([event(1)])
    with database.read() as session:
        before = dict(session.execute(sa.text("SELECT * FROM sealab_audit_head")).mappings().one())
    head = log.add([event(2)])
    with database.transaction() as session:
        session.execute(
            sa.text("UPDATE sealab_audit_head SET number = :number, hash = :hash, seal = :seal"),
            {name: before[name] for name in ("number", "hash", "seal")},
        )
    with pytest.raises(AuditDamaged):
        log.add([event(3)])
    assert log.verify(head.hash).why is not None


def test_what_was_trimmed_leaves_a_chain_that_holds_and_a_line_that_says_so(log: AuditStore):
    log.add([event(number) for number in range(1, 11)])
    assert log.trim(5_000_000, AuditEvent(event="audit.trimmed", at_us=11_000_000)) == 4
    assert [line.number for line in log.lines(LineFilter())] == [*range(5, 12)]
    verdict = log.verify()
    assert (verdict.why, verdict.lines, verdict.head.before_number) == (None, 7, 4)
    assert log.trim(5_000_000, AuditEvent(event="audit.trimmed", at_us=12_000_000)) == 0
    assert log.trim(99_000_000, AuditEvent(event="audit.trimmed", at_us=13_000_000)) == 7
    assert log.verify().why is None


@pytest.fixture(scope="module")
def written() -> Iterator[tuple[Path, Head]]:
    """A log in a file, whose triggers somebody dropped who can write to it, and its head."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with open_database(None, home) as database:
            log = AuditStore(database, KEY)
            head = log.add([event(number, details={"n": number}) for number in range(1, LINES + 1)])
            with database.transaction() as session:
                for trigger in TRIGGERS:
                    session.execute(sa.text(f"DROP TRIGGER {trigger}"))
        yield home / "sealab.db", head


def found_wrong(written: tuple[Path, Head], *statements: tuple[str, tuple[object, ...]]) -> int | None:
    """Return the number of the first line that the check finds wrong after the statements."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(written[0], folder)
        with sqlite3.connect(Path(folder) / "sealab.db", isolation_level=None) as connection:
            for statement, values in statements:
                connection.execute(statement, values)
        connection.close()
        with open_database(None, Path(folder)) as database:
            return AuditStore(database, KEY).verify(written[1].hash).bad_number


@pytest.mark.parametrize("column", [*TEXT_COLUMNS, *NUMBER_COLUMNS, "hash", "previous"])
@settings(max_examples=3, deadline=None)
@given(
    number=st.integers(1, LINES),
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    add=st.integers(1, 1 << 40),
)
def test_each_edit_is_found_where_it_is(written: tuple[Path, Head], number: int, column: str, text: str, add: int):
    change = f"{column} + ?" if column in NUMBER_COLUMNS else f"{column} || ? || 'x'"
    value: object = add if column in NUMBER_COLUMNS else text
    edited = f"UPDATE sealab_audit_line SET {column} = {change} WHERE number = ?"
    assert found_wrong(written, (edited, (value, number))) == number


@settings(max_examples=20, deadline=None)
@given(first=st.integers(1, LINES), count=st.integers(1, LINES))
def test_each_removal_is_found_in_the_middle_and_at_the_end(written: tuple[Path, Head], first: int, count: int):
    gone = ("DELETE FROM sealab_audit_line WHERE number >= ? AND number < ?", (first, first + count))
    assert found_wrong(written, gone) == first


@settings(max_examples=20, deadline=None)
@given(first=st.integers(1, LINES), count=st.integers(1, LINES))
def test_lines_that_were_removed_and_the_others_numbered_anew_are_found(
    written: tuple[Path, Head], first: int, count: int
):
    last = min(first + count, LINES + 1)
    gone = ("DELETE FROM sealab_audit_line WHERE number >= ? AND number < ?", (first, last))
    anew = ("UPDATE sealab_audit_line SET number = number - ? WHERE number >= ?", (last - first, last))
    newest = "COALESCE((SELECT hash FROM sealab_audit_line ORDER BY number DESC LIMIT 1), '')"
    hashed = (f"UPDATE sealab_audit_head SET number = ?, hash = {newest}", (LINES - (last - first),))
    assert found_wrong(written, gone, anew) is not None
    assert found_wrong(written, gone, anew, hashed) is not None


@settings(max_examples=20, deadline=None)
@given(pair=st.lists(st.integers(1, LINES), min_size=2, max_size=2, unique=True))
def test_two_lines_that_changed_places_are_found(written: tuple[Path, Head], pair: list[int]):
    one, other = sorted(pair)
    move = "UPDATE sealab_audit_line SET number = ? WHERE number = ?"
    assert found_wrong(written, (move, (-1, one)), (move, (one, other)), (move, (other, -1))) == one


@settings(max_examples=20, deadline=None)
@given(copied=st.integers(1, LINES), number=st.one_of(st.integers(-3, 0), st.integers(LINES + 1, LINES + 4)))
def test_a_line_that_was_put_in_is_found(written: tuple[Path, Head], copied: int, number: int):
    names = ", ".join((*TEXT_COLUMNS, *NUMBER_COLUMNS, "previous", "hash"))
    put_in = (
        f"INSERT INTO sealab_audit_line (number, {names}) SELECT ?, {names} FROM sealab_audit_line WHERE number = ?"
    )
    assert found_wrong(written, (put_in, (number, copied))) is not None


@pytest.mark.parametrize("number", [2, LINES - 1])
def test_a_line_of_another_log_under_the_same_key_is_found_in_its_place(
    written: tuple[Path, Head], number: int, tmp_path: Path
):
    with open_database(None, tmp_path) as database:
        other = AuditStore(database, KEY)
        other.add([event(each, outcome="ok") for each in range(1, LINES + 1)])
        put = [line.hash for line in other.lines(LineFilter())][number - 1]
    replaced = ("UPDATE sealab_audit_line SET outcome = 'ok', details = '', hash = ? WHERE number = ?", (put, number))
    followed = ("UPDATE sealab_audit_line SET previous = ? WHERE number = ?", (put, number + 1))
    assert found_wrong(written, replaced, followed) == number


def test_two_programs_that_write_a_thousand_lines_each_leave_one_chain_without_a_gap(place: Place):
    with place.open() as database:
        AuditStore(database, KEY)
        adders = [
            subprocess.Popen(
                [sys.executable, "-c", ADDER, place.url or "", str(place.home), who, "100", "10"],
                stdout=subprocess.DEVNULL,
            )
            for who in ("a", "b")
        ]
        assert [adder.wait(150) for adder in adders] == [0, 0]
        log = AuditStore(database, KEY)
        assert (log.verify().why, log.verify().lines) == (None, 2000)
        for who in ("a", "b"):
            runs = [line.event.run for line in log.lines(LineFilter(principal=who, limit=2000))]
            assert runs == [f"{batch}.{line}" for batch in range(100) for line in range(10)]


def test_a_program_that_is_killed_while_it_writes_leaves_whole_additions_alone(place: Place):
    with place.open() as database:
        AuditStore(database, KEY)
        with subprocess.Popen(
            [sys.executable, "-c", ADDER, place.url or "", str(place.home), "a", "100000", "7"],
            stdout=subprocess.PIPE,
            text=True,
        ) as adder:
            assert adder.stdout is not None
            said = [adder.stdout.readline() for _ in range(12)]
            adder.kill()
            adder.wait(30)
            last = int((said + adder.stdout.read().split("\n")[:-1])[-1])
        log = AuditStore(database, KEY)
        verdict = log.verify()
        assert verdict.why is None
        assert verdict.lines % 7 == 0
        assert verdict.lines >= 7 * (last + 1)
        log.add([event(1)])
        assert log.verify().why is None
