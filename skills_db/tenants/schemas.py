"""The schemas of tenants on a PostgreSQL server: one each, so that no query of one can meet a row of another.

A security boundary: each connection of a tenant has its schema alone in its `search_path`, and no statement of this
folder names a schema. On SQLite each tenant has a file of its own.
"""

from __future__ import annotations

import hashlib

from ..sql import sa

_PREFIX = "sealab_t_"
_NAME_BYTES_MAX = 63
"""What PostgreSQL keeps of a name; the rest it drops, so that two long names could become one."""
_HASH_CHARS = 32
_LOCK = 0x5EA1AB09
"""A number that no other program is likely to take as its advisory lock."""


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


def drop(engine: sa.Engine, schema: str) -> bool:
    """Remove a schema with all that it holds; return whether there was one."""
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if not _is_there(connection, schema):
            return False
        connection.exec_driver_sql(f"DROP SCHEMA {quoted(schema)} CASCADE")
        return True


def _is_there(connection: sa.Connection, schema: str) -> bool:
    found = connection.execute(sa.text("SELECT 1 FROM pg_namespace WHERE nspname = :name"), {"name": schema})
    return found.first() is not None
