"""SQLAlchemy, imported whole and by one thread, and what its users here share.

It is imported when a thread first needs the database, and several may at once. Python makes a thread wait for a module
that another is importing, but not for its package. So every other module of this folder gets it from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Dialect
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.dml import OnConflictClause
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.types import TypeDecorator

__all__ = [
    "ArgumentError",
    "Connection",
    "ConnectionPoolEntry",
    "DBAPIConnection",
    "DBAPIError",
    "Dialect",
    "IntegrityError",
    "InvalidatePoolError",
    "PoolTimeout",
    "Row",
    "SQLAlchemyError",
    "TypeDecorator",
    "batches",
    "insert",
    "insert_both",
    "insert_many",
    "rows_of",
    "sa",
]

OnConflictClause.constraint_target = None  # type: ignore[attr-defined]  # PostgreSQL asks whether there is a name of one
"""One `insert` is for both: the statement of PostgreSQL would cost each user of SQLite 3 MB and 30 ms."""
Row: TypeAlias = "sa.Row[*tuple[Any, ...]]"
_BATCH = 400
"""Values in one statement: below the least number of parameters that SQLite was ever built with."""
_T = TypeVar("_T")


def batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    """Give items in lists that one statement can name."""
    rest = iter(items)
    while some := list(islice(rest, _BATCH)):
        yield some


def insert_many(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows, which all have the same columns, in one statement."""
    insert_both(connection, table, None, rows)


def insert_both(
    connection: Connection, first: sa.Table, second: sa.Table | None, rows: Sequence[Mapping[str, object]]
) -> None:
    """Insert each row into both tables, of each what it has columns for; the second's rows may refer to the first's."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name != "postgresql":  # where a statement costs no message
        for table in (first,) if second is None else (first, second):
            connection.execute(sa.insert(table), [_of_table(table, row) for row in rows])
        return
    connection.execute(_insert_all(first, second, names), {name: [row[name] for row in rows] for name in names})


def _of_table(table: sa.Table, row: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name in table.c}


@lru_cache(maxsize=64)
def _insert_all(first: sa.Table, second: sa.Table | None, names: tuple[str, ...]) -> sa.Insert:
    """Return the statement for any number of rows, each column of which is an array."""
    statement = sa.insert(first).from_select(*rows_of(first, names))
    if second is None:
        return statement
    # Foreign keys are checked when the whole statement has ended (manual, "WITH Queries" and "CREATE TRIGGER").
    return sa.insert(second).from_select(*rows_of(second, names)).add_cte(statement.cte("first"))


def rows_of(table: sa.Table, names: Iterable[str]) -> tuple[list[str], sa.Select[*tuple[Any, ...]]]:
    """Return the columns of a table among some names, and what selects the rows of arrays of these (PostgreSQL)."""
    columns = [table.c[name] for name in names if name in table.c]
    arrays = (sa.func.unnest(sa.bindparam(each.name, type_=sa.ARRAY(each.type))).label(each.name) for each in columns)
    return [each.name for each in columns], sa.select(*arrays)
