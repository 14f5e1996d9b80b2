"""SQLAlchemy and SQLModel, imported whole and by one thread.

Both are imported when a thread first needs the database, and several may at once. Importing SQLModel changes what
SQLAlchemy's own functions do, step by step; a call in between fails. So every other module of this folder
gets them from here: Python lets one thread import this module, and the others wait until it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import BigInteger, DateTime, Dialect, Text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.types import TypeDecorator, TypeEngine
from sqlmodel import Field, Session, SQLModel, col, select
from sqlmodel.sql.expression import SelectOfScalar

__all__ = [
    "BATCH",
    "ArgumentError",
    "BigInteger",
    "ConnectionPoolEntry",
    "DBAPIConnection",
    "DBAPIError",
    "DateTime",
    "Dialect",
    "Field",
    "IntegrityError",
    "InvalidatePoolError",
    "PoolTimeout",
    "SQLAlchemyError",
    "SQLModel",
    "SelectOfScalar",
    "Session",
    "Text",
    "TypeDecorator",
    "TypeEngine",
    "batches",
    "col",
    "sa",
    "select",
    "with_list",
]

BATCH = 400
"""Values in one statement: below the least number of parameters that SQLite was ever built with."""
_T = TypeVar("_T")


def batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    """Give items in lists that one statement can name."""
    rest = iter(items)
    while some := list(islice(rest, BATCH)):
        yield some


def with_list(statement: str, name: str) -> sa.TextClause:
    """Return a statement whose parameter `name` is a list."""
    return sa.text(statement).bindparams(sa.bindparam(name, expanding=True))
