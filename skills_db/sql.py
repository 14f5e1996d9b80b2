"""SQLAlchemy and SQLModel, imported whole and by one thread.

Both are imported when a thread first needs the database, and several may at once. Importing SQLModel changes what
SQLAlchemy's own functions do, step by step; a call in between fails. So every other module of this folder
gets them from here: Python lets one thread import this module, and the others wait until it has.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import BigInteger, DateTime, Dialect, Text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, Session, SQLModel, col, select
from sqlmodel.sql.expression import SelectOfScalar

__all__ = [
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
    "col",
    "sa",
    "select",
]
