"""Many rows in few statements: all of them, in their order, on both kinds of database."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from sealab.skills_db.engine import Database
from sealab.skills_db.postgresql import insert_many

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
