"""Opening and losing a database: addresses, permissions, damage, full disks, servers that are not there."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from sealab.skills_db import DATABASE_FILE, engine, file_check, postgresql
from sealab.skills_db.content import SkillDraft
from sealab.skills_db.engine import Database, open_database
from sealab.skills_db.errors import CommitUnknown, DatabaseDamaged, DatabaseUnavailable, SkillsDbError
from sealab.skills_db.skills import SkillStore, next_revision

from .conftest import Place
from .postgres import throwaway_cluster

PASSWORD = "hunter2-is-secret"


def draft(name: str, code: str = "pass") -> SkillDraft:
    return SkillDraft(name=name, code=code)


def execute(database: Database, *statements: str, then: BaseException | None = None) -> None:
    """Run statements in one transaction, and fail at its end if told to."""
    with database.transaction() as session:
        for statement in statements:
            session.exec_driver_sql(statement)
        if then is not None:
            raise then


def use_all_of(place: Place) -> None:
    """Open a database, read every skill, and save a large one."""
    with place.open() as database:
        store = SkillStore(database)
        for name in store.names():
            store.load(name)
        store.save(draft("new", "#" * 50_000))


def told(error: BaseException) -> str:
    """All that an error says, with what caused it, as --debug would show it."""
    import traceback

    return "".join(traceback.format_exception(error))


def test_the_file_lies_in_the_home_readable_by_its_owner_alone(file_place: Place):
    old = os.umask(0)
    try:
        with file_place.open() as database:
            SkillStore(database).save(draft("a"))
            files = sorted(file_place.home.iterdir())
            assert [each.name for each in files] == [DATABASE_FILE, f"{DATABASE_FILE}-shm", f"{DATABASE_FILE}-wal"]
            assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    finally:
        os.umask(old)
    assert [each.name for each in file_place.home.iterdir()] == [DATABASE_FILE]


def test_every_commit_of_a_file_reaches_the_disk_unless_it_need_not(file_place: Place):
    with file_place.open() as database:
        with database.read() as session:
            assert session.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        for durable, level in ((True, 2), (False, 1), (True, 2)):
            with database.transaction(durable=durable) as session:
                assert session.exec_driver_sql("PRAGMA synchronous").scalar() == level
                assert session.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_every_commit_on_a_server_reaches_its_disk_even_where_the_server_would_not_care(cluster, postgres_place: Place):
    cluster.set_for(postgres_place.url, "synchronous_commit = off")
    with postgres_place.open() as database:
        for durable, level in ((True, "on"), (False, "off"), (True, "on")):
            with database.transaction(durable=durable) as session:
                assert session.exec_driver_sql("SHOW synchronous_commit").scalar() == level


def test_what_a_failed_block_did_is_undone(place: Place):
    with place.open() as database:
        store = SkillStore(database)
        store.save(draft("kept"))
        with pytest.raises(ZeroDivisionError):
            execute(database, "DELETE FROM sealab_skill_version", then=ZeroDivisionError())
        assert store.load("kept").version == 1
        with pytest.raises(IntegrityError):
            execute(database, "INSERT INTO sealab_skill (name, last_version, revision) VALUES ('kept', 1, 1)")
        assert store.save(draft("kept", "2")).version == 2


def test_a_block_that_reads_sees_one_moment(place: Place):
    with place.open() as database:
        store = SkillStore(database)
        store.save(draft("a"))
        count = sa.text("SELECT count(*) FROM sealab_skill")
        with database.read() as session:
            assert session.execute(count).scalar() == 1
            with ThreadPoolExecutor(1) as other:
                other.submit(store.save, draft("b")).result()
            assert session.execute(count).scalar() == 1
        with database.read() as session:
            assert session.execute(count).scalar() == 2


def test_many_threads_read_and_write_at_once(place: Place):
    with place.open() as database:
        store = SkillStore(database)

        def work(number: int) -> int:
            store.save(draft(f"s{number}"))
            return len(store.list(limit=1).skills) + store.load(f"s{number}").version

        with ThreadPoolExecutor(24) as threads:
            assert all(result >= 2 for result in threads.map(work, range(48)))
        assert store.list().total == 48


def test_what_follows_one_by_one_uses_one_connection_and_fills_one_small_cache(file_place: Place):
    with file_place.open() as database:
        with ExitStack() as at_once:
            several = [at_once.enter_context(database.read()) for _ in range(4)]
            assert len({_driver(session) for session in several}) == 4
        used = set()
        for _ in range(8):
            with database.read() as session:
                used.add(_driver(session))
                size = session.exec_driver_sql("PRAGMA cache_size").scalar_one()
                assert size == -engine.CACHE_KB
        assert len(used) == 1


def _driver(connection: sa.Connection) -> int:
    return id(connection.connection.driver_connection)


def test_closing_twice_is_allowed_and_a_closed_file_can_be_opened_again(place: Place):
    database = place.open()
    SkillStore(database).save(draft("a"))
    database.close()
    database.close()
    with place.open() as again:
        assert SkillStore(again).load("a").version == 1


def test_what_a_thread_still_uses_at_the_end_is_closed_when_it_has_done(place: Place):
    database = place.open()
    with database.read() as session:
        used = session.connection.driver_connection
        database.close()
        assert session.exec_driver_sql("SELECT 1").scalar() == 1
    assert used is not None
    with pytest.raises((sqlite3.ProgrammingError, psycopg.OperationalError), match="closed"):
        used.cursor().execute("SELECT 1")


def test_a_connection_that_could_not_be_set_up_is_closed(postgres_place: Place, monkeypatch: pytest.MonkeyPatch):
    made = []

    def fail(_schema: str | None, connection: psycopg.Connection) -> None:
        made.append(connection)
        raise psycopg.OperationalError("the server went away")

    monkeypatch.setattr(postgresql, "_set_up", fail)
    with pytest.raises(DatabaseUnavailable):
        postgres_place.open()
    assert [each.closed for each in made] == [True]


@pytest.mark.parametrize(
    "url",
    [
        "mysql://user:{password}@host/name",
        "not an address {password}",
        "postgresql+asyncpg2:/{password}",
        "postgresql://user:{password}@host:notaport/name",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:{password}?mode=memory",
        "",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_being_shown(tmp_path: Path, url: str):
    with pytest.raises(DatabaseUnavailable, match=r"^DATABASE_URL is not the address .*\. Give one like ") as caught:
        open_database(url.format(password=PASSWORD), tmp_path)
    assert PASSWORD not in told(caught.value)


def test_an_address_may_name_a_file(tmp_path: Path):
    with open_database(f"sqlite:///{tmp_path}/other.sqlite", tmp_path / "home") as database:
        SkillStore(database).save(draft("a"))
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as connection:
        assert connection.execute("SELECT name FROM sealab_skill").fetchall() == [("a",)]


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_usual_form_of_a_server_address_works(postgres_place: Place, scheme: str):
    with open_database(postgres_place.url.replace("postgresql", scheme, 1), postgres_place.home) as database:
        assert not database.is_file
        assert SkillStore(database).save(draft("a")).version == 1
    assert list(postgres_place.home.iterdir()) == []


def test_a_server_that_is_not_there_is_told_in_two_sentences_without_the_password(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with pytest.raises(DatabaseUnavailable) as caught:
        open_database(f"postgresql://user:{PASSWORD}@127.0.0.1:{port}/skills", tmp_path)
    assert str(caught.value) == (
        "The PostgreSQL database skills on 127.0.0.1 cannot be reached. "
        "Check DATABASE_URL, and that the server runs and lets this machine in."
    )
    assert PASSWORD not in told(caught.value)


def test_a_wrong_password_and_a_missing_database_are_told_without_the_password(postgres_place: Place):
    right = re.search(":([^:@]+)@", postgres_place.url)[1]
    for url in (postgres_place.url.replace(right, PASSWORD), postgres_place.url.replace("/test_", "/absent_")):
        with pytest.raises(DatabaseUnavailable, match="Check DATABASE_URL") as caught:
            open_database(url, postgres_place.home)
        assert PASSWORD not in told(caught.value)
        assert right not in told(caught.value)


def test_without_the_driver_the_extra_is_named(tmp_path: Path):
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pathlib import Path\n"
        "from sealab.skills_db.engine import open_database\n"
        "from sealab.skills_db.errors import DatabaseUnavailable\n"
        "try: open_database('postgresql://u:p@h/d', Path('.'))\n"
        "except DatabaseUnavailable as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.endswith("Install sealab with its extra: pip install 'sealab[postgres]'.\n")


@pytest.mark.parametrize(
    "content",
    [b"this is no database" * 100, b"\0" * 8192, b"SQLite format 3\0" + b"\xff" * 5000],
    ids=["text", "zeros", "header"],
)
def test_a_file_that_is_no_database_is_named_and_left_as_it_is(file_place: Place, content: bytes):
    file = file_place.home / DATABASE_FILE
    file.write_bytes(content)
    with pytest.raises(
        DatabaseDamaged, match=rf"^The database file {file} is damaged or not a database, and was left as it is\. Move"
    ):
        file_place.open()
    assert file.read_bytes() == content


def test_a_file_that_lost_its_second_half_is_named_and_left_as_it_is(file_place: Place):
    file = file_place.home / DATABASE_FILE
    with file_place.open() as database:
        store = SkillStore(database)
        for number in range(20):
            store.save(draft(f"s{number}", "#" * 5000))
    half = file.read_bytes()[: file.stat().st_size // 2]
    file.write_bytes(half)
    with pytest.raises(DatabaseDamaged, match=re.escape(str(file))):
        use_all_of(file_place)
    assert file.read_bytes() == half


def test_pages_that_were_overwritten_are_noticed_when_they_are_read_and_nothing_is_saved_over_them(file_place: Place):
    file = file_place.home / DATABASE_FILE
    with file_place.open() as database:
        store = SkillStore(database)
        for number in range(20):
            store.save(draft(f"s{number}", "#" * 5000))
    content = bytearray(file.read_bytes())
    content[4096:-4096] = os.urandom(len(content) - 8192)
    file.write_bytes(content)
    with pytest.raises(DatabaseDamaged, match=re.escape(str(file))):
        use_all_of(file_place)


def test_a_folder_in_the_place_of_the_file_and_a_missing_home_are_told(file_place: Place):
    (file_place.home / DATABASE_FILE).mkdir()
    with pytest.raises(DatabaseUnavailable, match=r"sealab\.db cannot be opened: Is a directory\. Correct"):
        file_place.open()
    with pytest.raises(DatabaseUnavailable, match=r"cannot be opened: No such file or directory\. Correct"):
        open_database(None, file_place.home / "missing")


def test_a_file_that_was_replaced_while_it_is_open_takes_no_more_saves(file_place: Place):
    """They would go to a file that nobody can reach any more."""
    file = file_place.home / DATABASE_FILE
    with file_place.open() as database:
        store = SkillStore(database)
        store.save(draft("a"))
        file.rename(file.with_suffix(".away"))
        for use in (lambda: store.save(draft("b")), store.list):
            with pytest.raises(DatabaseUnavailable, match=r"has been removed or replaced since it was opened\. Put"):
                use()
        file.with_suffix(".away").rename(file)
        assert store.save(draft("b")).version == 1


WRITER_ON_A_SMALL_DISK = """
import sys
from pathlib import Path
from sealab.skills_db.content import SkillDraft
from sealab.skills_db.engine import open_database
from sealab.skills_db.errors import DatabaseUnavailable
from sealab.skills_db.skills import SkillStore, next_revision
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open_database(None, Path(sys.argv[1])) as database:
    store = SkillStore(database)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
    saved = 0
    try:
        while True:
            store.save(SkillDraft(name="a", code=f"#{saved}" * 10_000))
            saved += 1
    except DatabaseUnavailable as error:
        print(saved, error)
"""


def test_when_files_cannot_grow_the_save_fails_clearly_and_all_before_it_are_kept(file_place: Place):
    """A limit on the size of files stands in for a full disk: the same writes fail."""
    command = [sys.executable, "-c", WRITER_ON_A_SMALL_DISK, str(file_place.home)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    saved, _, message = done.stdout.partition(" ")
    assert int(saved) > 2
    assert re.match(r"The database file .* (cannot grow: the disk is full|cannot be read or written)\. ", message)
    with file_place.open() as database:
        store = SkillStore(database)
        assert [each.version for each in store.versions("a")] == list(range(1, int(saved) + 1))
        assert store.load("a").draft.code == f"#{int(saved) - 1}" * 10_000
        assert store.save(draft("b")).version == 1


def test_a_file_that_was_half_overwritten_takes_no_change(file_place: Place):
    with file_place.open() as database:
        for number in range(40):
            SkillStore(database).save(draft(f"skill_{number}", f"#{number}" * 2000))
    file = file_place.home / DATABASE_FILE
    content = file.read_bytes()
    damaged = content[: len(content) // 2] + os.urandom(len(content) - len(content) // 2)
    file.write_bytes(damaged)
    for _ in range(2):
        with pytest.raises(DatabaseDamaged, match="was left as it is"):
            file_place.open()
        assert file.read_bytes() == damaged
    file.write_bytes(content)
    use_all_of(file_place)


def test_a_file_is_looked_through_for_no_longer_than_said(file_place: Place, monkeypatch: pytest.MonkeyPatch):
    file_place.open().close()
    file = file_place.home / DATABASE_FILE
    monkeypatch.setattr(file_check, "_STEPS", 1)
    assert file_check.damage_of(file) == ""
    assert file_check.damage_of(file, 60) == ""
    assert file_check.damage_of(file, -1) is None
    monkeypatch.setattr(file_check, "CHECK_SECONDS", -1)
    use_all_of(file_place)


def test_a_large_file_is_left_to_the_doctor(
    file_place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    file_place.open().close()
    monkeypatch.setattr(file_check, "CHECK_BYTES", 0)
    with caplog.at_level("INFO"):
        use_all_of(file_place)
    assert "too large to be looked through at each start" in caplog.text


def test_a_database_that_may_only_be_read_is_told_and_not_changed(file_place: Place):
    with file_place.open() as database:
        SkillStore(database).save(draft("a"))
        with pytest.raises(DatabaseUnavailable, match=r"sealab\.db cannot be written\. Correct its permissions"):
            execute(database, "PRAGMA query_only=ON", "DELETE FROM sealab_skill_version")
        assert SkillStore(database).load("a").version == 1


def test_a_file_that_another_program_holds_is_told_after_a_while(file_place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.2)
    with file_place.open() as database:
        holder = sqlite3.connect(file_place.home / DATABASE_FILE, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        store = SkillStore(database)
        with pytest.raises(DatabaseUnavailable, match=r"is held by another program\. Wait until that has ended"):
            store.save(draft("a"))
        assert store.list().total == 0
        holder.execute("ROLLBACK")
        holder.close()
        assert store.save(draft("a")).version == 1


OTHER_PROGRAM = """\
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT count(*) FROM sealab_skill").fetchone()[0])
connection.close()
"""


def test_to_open_a_file_again_leaves_the_locks_of_the_one_that_is_open(file_place: Place):
    """Without its locks another program that ends takes itself for the last one, and removes what is not yet copied."""
    command = [sys.executable, "-c", OTHER_PROGRAM, str(file_place.home / DATABASE_FILE)]

    def seen_by_another_program() -> int:
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    with file_place.open() as database:
        store = SkillStore(database)
        store.save(draft("a"))
        engine._make_private(file_place.home / DATABASE_FILE)
        assert seen_by_another_program() == 1
        store.save(draft("b"))
        assert seen_by_another_program() == 2


def test_a_thread_that_waits_too_long_for_another_is_told(file_place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.2)
    with file_place.open() as database:
        holding, done = threading.Event(), threading.Event()

        def hold() -> None:
            with database.transaction():
                holding.set()
                done.wait(20)

        with ThreadPoolExecutor(1) as other:
            held = other.submit(hold)
            holding.wait(20)
            with pytest.raises(DatabaseUnavailable, match="has been busy with another change"):
                SkillStore(database).save(draft("a"))
            done.set()
            held.result()
        assert SkillStore(database).save(draft("a")).version == 1


def test_a_change_that_waits_too_long_for_another_program_is_told(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
):
    with postgres_place.open() as database, postgres_place.open() as other:
        monkeypatch.setattr(engine, "BUSY_SECONDS", 0.2)
        with other.transaction() as session:
            next_revision(session)
            with pytest.raises(DatabaseUnavailable, match=r"is held by another program\. Wait until that has ended"):
                SkillStore(database).save(draft("a"))
        assert SkillStore(database).save(draft("a")).version == 1


def test_a_program_that_was_cut_off_within_a_change_holds_up_the_others_only_for_a_while(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
):
    def stand_still(database: Database) -> int:
        with database.transaction() as session:
            next_revision(session)
            with postgres_place.open() as other:
                monkeypatch.setattr(engine, "BUSY_SECONDS", 30)
                return SkillStore(other).save(draft("a")).version

    with postgres_place.open() as database:
        monkeypatch.setattr(engine, "BUSY_SECONDS", 0.2)
        with pytest.raises((DatabaseUnavailable, CommitUnknown)):
            stand_still(database)
        assert SkillStore(database).load("a").version == 1


def test_a_server_that_is_started_again_is_used_again(tmp_path: Path, cluster):
    del cluster  # where there is none this test is skipped as well
    with throwaway_cluster(durable=False) as mortal, open_database(mortal.create("skills"), tmp_path) as database:
        store = SkillStore(database)
        store.save(draft("a"))
        mortal.stop(signal.SIGKILL)
        for use in (lambda: store.save(draft("b")), store.list):
            with pytest.raises(DatabaseUnavailable, match="The PostgreSQL database skills on "):
                use()
        mortal.start()
        assert store.load("a").version == 1
        assert store.save(draft("a", "2")).version == 2


def test_a_connection_that_is_lost_during_the_commit_leaves_the_outcome_open(postgres_place: Place):
    def lose_the_connection(database: Database, other: Database) -> None:
        with database.transaction() as session:
            connection = session
            connection.exec_driver_sql("DELETE FROM sealab_run")
            backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            execute(other, f"SELECT pg_terminate_backend({backend}, 5000)")

    with postgres_place.open() as database, postgres_place.open() as other:
        with pytest.raises(CommitUnknown, match=r"so it is not known whether it was\. Look whether it is there"):
            lose_the_connection(database, other)
        assert SkillStore(database).list().total == 0


def test_a_user_who_may_not_write_is_told(postgres_place: Place):
    with postgres_place.open() as database:
        SkillStore(database).save(draft("a"))
        execute(
            database,
            "DROP ROLE IF EXISTS reader",
            f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
        )
    theirs = re.sub("//sealab:[^@]*@", f"//reader:{PASSWORD}@", postgres_place.url)
    with open_database(theirs, postgres_place.home) as database:
        with pytest.raises(DatabaseUnavailable, match=r"does not let this user write\. Grant"):
            SkillStore(database).save(draft("b"))
        assert SkillStore(database).list().total == 1
    with postgres_place.open() as database:
        execute(database, "DROP OWNED BY reader", "DROP ROLE reader")


def test_every_error_has_a_code_of_its_own_and_stands_in_the_tree_of_the_docstring():
    from sealab.skills_db import errors

    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, SkillsDbError)]
    assert len({each.code for each in found}) == len(found)
    for each in found:
        assert each.__name__ in errors.__doc__
