"""Many rows in few statements: all of them, in their order, on both kinds of database."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from sealab.skills_db.engine import Database
from sealab.skills_db.postgresql import insert_both, insert_many

INSERT = sa.text("INSERT INTO sealab_document (name, version, content) VALUES (:name, :version, :content)")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 151])
def test_all_rows_are_there(database: Database, count: int) -> None:
    rows = [{"name": f"n{at:03}", "version": at, "content": bytes([at % 256])} for at in range(count)]
    statements: list[str] = []
    with database.transaction() as session:
        connection = session.connection()
        sa.event.listen(connection, "before_cursor_execute", lambda *told: statements.append(told[2]))
        insert_many(connection, INSERT, rows)
        if database.is_file:
            assert len(statements) <= 1
        else:
            assert len(statements) == {0: 0, 1: 1, 2: 1, 3: 2, 64: 1, 151: 6}[count]
        found = session.execute(sa.text("SELECT name, version, content FROM sealab_document ORDER BY name")).all()
    assert [(name, version, bytes(content)) for name, version, content in found] == [
        (row["name"], row["version"], row["content"]) for row in rows
    ]


def test_what_follows_the_values_holds_for_all_rows(database: Database) -> None:
    rows = [{"name": name, "version": 1, "content": b""} for name in "aabba"]
    with database.transaction() as session:
        insert_many(session.connection(), sa.text(f"{INSERT.text} ON CONFLICT (name) DO NOTHING"), rows)
        found = session.execute(sa.text("SELECT name FROM sealab_document ORDER BY name"))
        assert list(found.scalars()) == ["a", "b"]


@pytest.mark.parametrize("count", [0, 1, 3, 64])
def test_rows_of_two_tables_are_there_by_the_statements_of_one(database: Database, count: int) -> None:
    run = sa.text("INSERT INTO many_first (name, total) VALUES (:name, :version)")
    with database.transaction() as session:
        connection = session.connection()
        for table in ("many_first (name TEXT PRIMARY KEY, total INTEGER)",
                      "many_second (name TEXT REFERENCES many_first (name), version INTEGER)"):  # fmt: skip
            connection.execute(sa.text(f"CREATE TABLE {table}"))
        statements: list[str] = []
        sa.event.listen(connection, "before_cursor_execute", lambda *told: statements.append(told[2]))
        part = sa.text("INSERT INTO many_second (name, version) VALUES (:name, :version)")
        insert_both(connection, run, part, [{"name": f"n{at:03}", "version": at} for at in range(count)])
        assert len(statements) == ({0: 0, 1: 2, 3: 2, 64: 2} if database.is_file else {0: 0, 1: 1, 3: 2, 64: 1})[count]
        for table in ("many_first", "many_second"):
            assert session.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one() == count
