"""The schemas of tenants on a PostgreSQL server: one each, so that no query of one can meet a row of another.

A security boundary: each connection of a tenant has its schema alone in its `search_path`, and no statement of this
folder names a schema. On SQLite each tenant has a file of its own.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..sql import sa

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPICursor

_PREFIX = "sealab_t_"
_NAME_BYTES_MAX = 63
"""What PostgreSQL keeps of a name; the rest it drops, so that two long names could become one."""
_HASH_CHARS = 32
_LOCK = 0x5EA1AB09
"""A number that no other program is likely to take as its advisory lock."""


_LOCK_NOT_AVAILABLE = "55P03"
"""What PostgreSQL calls it that a lock was not had in time (its manual, appendix A)."""


class SchemaInUse(Exception):
    """Connections to a schema that is to be removed are still open."""


def _lock_of(schema: str) -> int:
    """Return the number of the advisory lock that connections to a schema share: 64 bits with a sign."""
    return int.from_bytes(hashlib.sha256(f"sealab schema {schema}".encode()).digest()[:8], signed=True)


def schema_of(tenant: str) -> str:
    """Return the name of a tenant's schema: another one for each id, which holds no underscore."""
    name = f"{_PREFIX}{tenant}"
    if len(name.encode()) <= _NAME_BYTES_MAX:
        return name
    digest = hashlib.sha256(tenant.encode()).hexdigest()[:_HASH_CHARS]
    return f"{name[: _NAME_BYTES_MAX - _HASH_CHARS - 1]}_{digest}"


def quoted(schema: str) -> str:
    """Return the name as it stands in SQL."""
    return '"' + schema.replace('"', '""') + '"'


def is_there(engine: sa.Engine, schema: str) -> bool:
    """Return whether there is a schema of that name."""
    with engine.connect() as connection:
        return _is_there(connection, schema)


def make(engine: sa.Engine, schema: str) -> None:
    """Make a schema, unless it is there. The role needs no right to make one that is."""
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if not _is_there(connection, schema):
            connection.exec_driver_sql(f"CREATE SCHEMA {quoted(schema)}")


def use(cursor: DBAPICursor, schema: str) -> bool:
    """Use a schema on a connection, which is not removed while it lasts; return whether it may.

    It may not while the schema is being removed. The lock is the session's, and shared with all others of the schema.
    """
    cursor.execute(f"SET SESSION search_path = {quoted(schema)}")
    cursor.execute(f"SELECT pg_try_advisory_lock_shared({_lock_of(schema)})")
    row = cursor.fetchone()
    return row is not None and row[0] is True


def drop(engine: sa.Engine, schema: str, *, wait_seconds: float) -> bool:
    """Remove a schema with all that it holds, once no connection of any machine uses it; return whether there was one.

    Raises `SchemaInUse` where one does for longer.
    """
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{wait_seconds}s'")
        try:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_lock_of(schema)})")
        except sa.exc.OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            raise SchemaInUse from None
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if not _is_there(connection, schema):
            return False
        connection.exec_driver_sql(f"DROP SCHEMA {quoted(schema)} CASCADE")
        return True


def _is_there(connection: sa.Connection, schema: str) -> bool:
    return sa.inspect(connection).has_schema(schema)
