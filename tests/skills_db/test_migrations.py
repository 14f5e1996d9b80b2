"""The steps that bring the tables up to date: once each, whole or not at all, never backwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from sealab.skills_db import migrations
from sealab.skills_db.content import SkillDraft
from sealab.skills_db.engine import Database, open_database
from sealab.skills_db.errors import DatabaseNewer, DatabaseOlder
from sealab.skills_db.journal.background_store import BackgroundStore
from sealab.skills_db.migrations import MIGRATIONS, Migration
from sealab.skills_db.runs import RunRecord, RunStore
from sealab.skills_db.skills import SkillStore
from sealab.skills_db.tables import TABLES

from .conftest import Place

LATER = Migration("9998_notes", ("CREATE TABLE sealab_note (id INTEGER PRIMARY KEY)",))
BROKEN = Migration("9999_broken", ("CREATE TABLE sealab_half (id INTEGER)", "CREATE TABLE sealab_note (id INTEGER)"))
CONTRACTING = Migration("9999_no_notes", ("DROP TABLE sealab_note",), needs=LATER.name)


def applied(database: Database) -> list[str]:
    with database.read() as session:
        rows = session.execute(sa.text("SELECT name FROM sealab_migration ORDER BY name"))
        return list(rows.scalars())


def tables(database: Database) -> set[str]:
    with database.read() as session:
        return set(sa.inspect(session).get_table_names())


def test_an_empty_database_gets_every_step_and_a_full_one_none(place: Place):
    with place.open() as database:
        assert applied(database) == [step.name for step in MIGRATIONS]
        assert migrations.apply(database.durable) == ()


def test_the_steps_are_numbered_in_their_order():
    numbers = [int(step.name[:4]) for step in MIGRATIONS]
    assert numbers == sorted(set(numbers))


def test_an_empty_database_has_the_tables_that_are_declared(place: Place):
    with place.open() as database:
        assert tables(database) == set(TABLES.tables)


def test_an_older_database_gets_only_what_it_lacks_and_keeps_what_it_has(place: Place):
    with place.open() as database:
        SkillStore(database).save(SkillDraft(name="a", code="pass"))
        assert migrations.apply(database.durable, (*MIGRATIONS, LATER)) == (LATER.name,)
        assert "sealab_note" in tables(database)
        assert SkillStore(database).load("a").version == 1


def test_a_database_that_was_made_before_there_were_schedules_and_keys_of_calls_gets_them(place: Place):
    with place.open() as database:
        with database.transaction() as session:
            session.exec_driver_sql("DROP TABLE sealab_schedule")
            session.exec_driver_sql("DROP TABLE sealab_sent_call")
            session.exec_driver_sql("DELETE FROM sealab_migration WHERE name > '0001_z'")
        assert migrations.apply(database.durable) == ("0002_schedules", "0003_sent_calls")
        background = BackgroundStore(database, bytes(32), process="p")
        assert [background.first_sent("ada", "key", "asked", run, 9).run_id for run in ("one", "two")] == ["one", "one"]
        store = background.schedules
        assert store.put("daily", "ada", {"skill": "a"}, 5.0, most=1)
        (stored,) = store.due(6.0)
        assert (stored.told, stored.next_time, stored.judged) == ({"skill": "a"}, 5.0, True)
        assert not store.put("other", "ada", {}, 5.0, most=1)


def test_a_step_that_fails_leaves_nothing_of_itself_or_of_those_before_it(place: Place):
    with place.open() as database:
        before = applied(database)
        with pytest.raises(DBAPIError):
            migrations.apply(database.durable, (*MIGRATIONS, LATER, BROKEN))
        assert applied(database) == before
        assert not {"sealab_note", "sealab_half"} & tables(database)
        assert migrations.apply(database.durable, (*MIGRATIONS, LATER)) == (LATER.name,)


def test_a_newer_database_is_refused_with_the_version_that_made_it(place: Place, monkeypatch: pytest.MonkeyPatch):
    with place.open() as database:
        SkillStore(database).save(SkillDraft(name="a", code="pass"))
        with monkeypatch.context() as newer:
            newer.setattr(migrations, "_program", lambda: "9.9.9")
            migrations.apply(database.durable, (*MIGRATIONS, LATER, CONTRACTING))
        before = tables(database), applied(database)
        with pytest.raises(
            DatabaseNewer,
            match=r"changed by sealab 9\.9\.9 \(step 9999_no_notes\), which is newer than this one, .*\. Use",
        ):
            place.open()
        assert (tables(database), applied(database)) == before


def test_a_database_of_before_the_first_release_is_refused_and_kept_as_it_was(place: Place):
    with place.open() as database:
        with database.transaction() as session:
            session.exec_driver_sql("DELETE FROM sealab_migration WHERE name > '0001_z'")
            session.exec_driver_sql("UPDATE sealab_migration SET name = '0016_histories'")
        before = tables(database), applied(database)
        with pytest.raises(DatabaseOlder, match=r"before the first release .*\(step 0016_histories\).*\. Name another"):
            place.open()
        assert (tables(database), applied(database)) == before


def test_a_program_goes_on_with_steps_that_only_expand_and_with_what_they_need(place: Place):
    """A server of the version before opens the database, as for a new tenant, while the later version serves."""
    with place.open() as database:
        migrations.apply(database.durable, (*MIGRATIONS, LATER))
        with place.open() as of_before:
            SkillStore(of_before).save(SkillDraft(name="a", code="pass"))
            RunStore(of_before).record(
                RunRecord(
                    run_id="r",
                    started_at=datetime.now(UTC),
                    duration_ms=1,
                    status="ok",
                    isolation="restricted",
                    skill="a",
                    version=1,
                )
            )
        assert SkillStore(database).load("a").runs == 1
        assert migrations.apply(database.durable, (*MIGRATIONS, LATER, CONTRACTING)) == (CONTRACTING.name,)
        assert migrations.missing_steps(database.durable, (*MIGRATIONS, LATER)) == ()
        with pytest.raises(DatabaseNewer):
            migrations.missing_steps(database.durable, MIGRATIONS)


def test_a_contracting_step_names_an_earlier_one_of_the_list():
    names = [step.name for step in MIGRATIONS]
    assert all(step.needs is None or step.needs in names[: names.index(step.name)] for step in MIGRATIONS)


def test_a_step_that_removes_or_renames_says_what_programs_must_know():
    """What takes something away from the version before breaks it while it still serves."""
    for step in MIGRATIONS:
        text = " ".join(step.statements).upper()
        takes_away = re.search(r"\b(DROP (TABLE|COLUMN)|RENAME|SET NOT NULL|ALTER COLUMN)\b", text)
        assert step.needs is not None or takes_away is None, step.name


def test_a_user_without_the_right_to_change_tables_is_told_which_step_is_missing(postgres_place: Place):
    with postgres_place.open() as database:
        with database.migrating.begin() as connection:
            connection.exec_driver_sql("CREATE ROLE reader NOLOGIN")
            connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        try:
            with database.migrating.connect() as connection:
                connection.exec_driver_sql("SET SESSION ROLE reader")
                connection.commit()
                with pytest.raises(DatabaseOlder, match=r"lacks 9998_notes, and its user may not change tables"):
                    migrations.apply(_SameConnection(connection), (*MIGRATIONS, LATER))  # type: ignore[arg-type]
                connection.exec_driver_sql("RESET ROLE")
                connection.commit()
        finally:
            with database.migrating.begin() as connection:
                connection.exec_driver_sql("DROP OWNED BY reader")
                connection.exec_driver_sql("DROP ROLE reader")


class _SameConnection:
    """An engine whose connections are all the one given, so that its role holds."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self.dialect = connection.dialect

    def execution_options(self, **_options: object) -> _SameConnection:
        return self

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        yield self._connection
        self._connection.rollback()

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        with self._connection.begin():
            yield self._connection


def test_programs_that_open_an_empty_database_at_once_make_the_tables_once(place: Place):
    def use(number: int) -> int:
        with open_database(place.url, place.home) as database:
            return SkillStore(database).save(SkillDraft(name="a", code=str(number))).version

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(use, range(8))) == list(range(1, 9))
    with place.open() as database:
        assert applied(database) == [step.name for step in MIGRATIONS]
