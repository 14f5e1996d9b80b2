"""The tables as SQLModel classes, and column types that mean the same on SQLite and on PostgreSQL.

`migrations` makes the tables; a test compares the two.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import ClassVar

from .content import json_text
from .sql import BigInteger, DateTime, Dialect, Field, SQLModel, Text, TypeDecorator, TypeEngine


class UtcTime(TypeDecorator[datetime]):
    """A moment, given and taken with its time zone and kept in UTC to the microsecond."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Turn any zone into UTC; SQLite then keeps it without the zone."""
        if value is None:
            return None
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the moment its zone back."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class ByteOrdered(TypeDecorator[str]):
    """Text that is compared by its bytes, whatever the language of the database (PostgreSQL documentation, 23.2)."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        """Name the collation where there are others; SQLite's own is this."""
        return dialect.type_descriptor(Text(collation="C" if dialect.name == "postgresql" else None))


class JsonText(TypeDecorator[object]):
    """JSON kept as ASCII text: ints of any size, NUL and lone surrogates come back exactly, on every database."""

    impl = Text()
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str:
        """Write the value; `None` is JSON's null."""
        del dialect
        return json_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        """Read the value."""
        del dialect
        return None if value is None else json.loads(value)


class RevisionRow(SQLModel, table=True):
    """One row that counts the changes to skills, so that an index can be seen to be stale.

    `purged` is the number of the last change that removed rows, which therefore leave no trace of their own.
    """

    __tablename__: ClassVar[str] = "sealab_revision"
    id: int = Field(default=1, primary_key=True)
    number: int = Field(sa_type=BigInteger)
    purged: int = Field(sa_type=BigInteger)


class SkillRow(SQLModel, table=True):
    """A name with its versions. `last_version` is the highest number given, `live_version` the highest not deleted.

    `revision` is the number of the last change to its versions. `runs` and `last_run` outlive the run records.
    """

    __tablename__: ClassVar[str] = "sealab_skill"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(sa_type=Text, unique=True)
    last_version: int
    live_version: int | None = None
    revision: int = Field(sa_type=BigInteger)
    runs: int = Field(default=0, sa_type=BigInteger)
    last_run: datetime | None = Field(default=None, sa_type=UtcTime)


class VersionRow(SQLModel, table=True):
    """One version of a skill. Once stored nothing in it changes but `deleted_at`, its tombstone."""

    __tablename__: ClassVar[str] = "sealab_skill_version"
    id: int | None = Field(default=None, primary_key=True)
    skill_id: int = Field(foreign_key="sealab_skill.id", sa_type=BigInteger)
    number: int
    content_hash: str = Field(sa_type=Text)
    kind: str = Field(sa_type=Text)
    code: str = Field(sa_type=Text)
    signature: str = Field(sa_type=Text)
    parameters: object = Field(sa_type=JsonText)
    description: str = Field(sa_type=Text)
    tags: object = Field(sa_type=JsonText)
    tests: str = Field(sa_type=Text)
    modules: object = Field(sa_type=JsonText)
    tools: object = Field(sa_type=JsonText)
    skills: object = Field(sa_type=JsonText)
    recordings: object = Field(sa_type=JsonText)
    extra: object = Field(sa_type=JsonText)
    created_at: datetime = Field(sa_type=UtcTime)
    deleted_at: datetime | None = Field(default=None, sa_type=UtcTime)
    size: int = Field(default=0, sa_type=BigInteger)


class RunRow(SQLModel, table=True):
    """That something ran: when, how long, how it ended. No arguments, no results, no output."""

    __tablename__: ClassVar[str] = "sealab_run"
    id: int | None = Field(default=None, primary_key=True)
    run_id: str = Field(sa_type=Text, unique=True)
    started_at: datetime = Field(sa_type=UtcTime)
    duration_ms: float
    status: str = Field(sa_type=Text)
    isolation: str = Field(sa_type=Text)
    kind: str = Field(sa_type=Text)
    skill: str | None = Field(default=None, sa_type=Text)
    version: int | None = None


class TokenRow(SQLModel, table=True):
    """A bearer token that this server gave out: whom it stands for, and a digest of it; the token itself is not kept.

    Moments are in seconds since 1970. `mark` is the beginning of the digest, by which it is looked up.
    """

    __tablename__: ClassVar[str] = "sealab_token"
    id: int | None = Field(default=None, primary_key=True)
    token_id: str = Field(sa_type=Text, unique=True)
    name: str = Field(sa_type=Text)
    tenant: str = Field(sa_type=Text)
    principal: str = Field(sa_type=Text)
    scopes: str = Field(sa_type=Text)
    mark: str = Field(sa_type=Text)
    digest: str = Field(sa_type=Text, unique=True)
    created: float
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None


class WorkspaceFileRow(SQLModel, table=True):
    """A file of a workspace in an object store, with the key of its content, or a folder, which has none.

    `size` is in bytes, `modified` in nanoseconds since 1970.
    """

    __tablename__: ClassVar[str] = "sealab_workspace_file"
    path: str = Field(primary_key=True, sa_type=ByteOrdered)
    size: int = Field(sa_type=BigInteger)
    modified: int = Field(sa_type=BigInteger)
    blob: str | None = Field(default=None, sa_type=Text, index=True)


class WorkspaceCountRow(SQLModel, table=True):
    """One row: what all files hold together. Whoever changes a file locks it.

    `store` is what the keys of contents begin with that belong to this database. The last two are moments, in seconds
    since 1970, until which one server does a work that others leave to it.
    """

    __tablename__: ClassVar[str] = "sealab_workspace_count"
    id: int = Field(default=1, primary_key=True)
    store: str = Field(sa_type=Text)
    size: int = Field(sa_type=BigInteger)
    entries: int = Field(sa_type=BigInteger)
    taking_in_until: float
    sweeping_until: float
