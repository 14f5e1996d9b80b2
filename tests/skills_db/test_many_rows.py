"""Many rows in few statements: all of them, in their order, on both kinds of database."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from sealab.skills_db.engine import Database
from sealab.skills_db.sql import insert_both, insert_many
from sealab.skills_db.tables import DOCUMENT

FIRST = sa.Table(
    "many_first", sa.MetaData(), sa.Column("name", sa.Text, primary_key=True), sa.Column("total", sa.Integer)
)
SECOND = sa.Table(
    "many_second",
    FIRST.metadata,
    sa.Column("name", sa.Text, sa.ForeignKey(FIRST.c.name)),
    sa.Column("version", sa.Integer),
)


@pytest.mark.parametrize("count", [0, 1, 151])
def test_all_rows_are_there_by_one_statement(database: Database, count: int) -> None:
    rows = [{"name": f"n{at:03}", "version": at, "content": bytes([at % 256])} for at in range(count)]
    statements: list[str] = []
    with database.transaction() as connection:
        connection.execute(sa.select(DOCUMENT))  # which begins the transaction
        sa.event.listen(connection, "before_cursor_execute", lambda *told: statements.append(told[2]))
        insert_many(connection, DOCUMENT, rows)
        assert len(statements) == min(count, 1)
        found = connection.execute(sa.select(DOCUMENT).order_by(DOCUMENT.c.name)).mappings().all()
    assert list(map(dict, found)) == rows


@pytest.mark.parametrize("count", [0, 1, 64])
def test_rows_of_two_tables_are_there_by_the_statements_of_one(database: Database, count: int) -> None:
    with database.transaction() as connection:
        FIRST.metadata.create_all(connection)
        statements: list[str] = []
        sa.event.listen(connection, "before_cursor_execute", lambda *told: statements.append(told[2]))
        rows = [{"name": f"n{at:03}", "total": None, "version": at} for at in range(count)]
        insert_both(connection, FIRST, SECOND, rows)
        assert len(statements) == min(count, 1) * (2 if database.is_file else 1)
        for table in (FIRST, SECOND):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() == count
