"""Every table, declared once: statements, rows and the DDL of both databases follow from these (SQLAlchemy Core).

Core and not SQLModel, whose classes would cost a start 0.13 s of the processor and 14 MB more (it brings the ORM).
Moments of skills and runs are datetimes, all others seconds since 1970 unless a name says otherwise. Flags are 0 or 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from .content import json_text
from .sql import Dialect, TypeDecorator, sa

TABLES = sa.MetaData()
CHANNEL = "sealab_notice"
"""Where notices are sent (PostgreSQL, NOTIFY). They carry names and versions, never what is stored."""


class UtcTime(TypeDecorator[datetime]):
    """A moment, given and taken with its time zone and kept in UTC to the microsecond."""

    impl = sa.DateTime(timezone=True)
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


class JsonText(TypeDecorator[object]):
    """JSON kept as ASCII text: ints of any size, NUL and lone surrogates come back exactly, on every database."""

    impl = sa.Text()
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str:
        """Write the value; `None` is JSON's null."""
        del dialect
        return json_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        """Read the value."""
        del dialect
        return None if value is None else json.loads(value)


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(f"sealab_{name}", TABLES, *parts, implicit_returning=False)


def _identity() -> sa.Column[int]:
    """Return a primary key that counts by itself."""
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(), primary_key=True)


def _one() -> sa.Column[int]:
    """Return the primary key of a table of one row."""
    return sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True, autoincrement=False)


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True)


def _text(*names: str, null: bool = False, unique: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text, nullable=null, unique=unique or None) for name in names]


def _whole(*names: str, null: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger, nullable=null) for name in names]


def _counts(*names: str) -> list[sa.Column[Any]]:
    """Return columns that came after their table, and are 0 in older rows."""
    return [sa.Column(name, sa.BigInteger, nullable=False, server_default="0") for name in names]


def _flag(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _seconds(*names: str, null: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Double, nullable=null) for name in names]


def _bytes(*names: str, null: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.LargeBinary, nullable=null) for name in names]


def _moment(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, UtcTime, nullable=null)


def _json(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, JsonText, nullable=False) for name in names]


def _leased() -> list[sa.Column[Any]]:
    """Return the columns of a `Lease`."""
    return [*_text("leased_by"), *_seconds("leased_until")]


def _index(name: str, *columns: str) -> sa.Index:
    return sa.Index(f"sealab_{name}", *columns)


MIGRATION = _table("migration", _key("name"), _moment("applied_at"), *_text("program"))
MIGRATION_RULE = _table("migration_rule", _key("name"), *_text("needs"))

# Skills and the runs of them.
REVISION = _table("revision", _one(), *_whole("number", "purged"))
"""Counts the changes to skills, so that an index can be seen to be stale.

`purged` is the number of the last change that removed rows, which therefore leave no trace of their own.
"""
SKILL = _table(
    "skill",
    _identity(),
    *_text("name", unique=True),
    *_whole("last_version"),
    *_whole("live_version", null=True),
    *_whole("revision"),
    sa.Column("runs", sa.BigInteger, nullable=False, default=0, server_default="0"),
    _moment("last_run", null=True),
    *_seconds("archived", null=True),
    _index("skill_by_revision", "revision"),
)
"""A name with its versions. `last_version` is the highest number given, `live_version` the highest not deleted.

`archived` is since when it is in no list and no search, which a new version ends.
`revision` is the number of the last change to its versions. `runs` and `last_run` outlive the run records.
"""
VERSION = _table(
    "skill_version",
    _identity(),
    sa.Column("skill_id", sa.BigInteger, sa.ForeignKey(SKILL.c.id), nullable=False),
    sa.Column("number", sa.Integer, sa.CheckConstraint("number >= 1"), nullable=False),
    *_text("content_hash", "kind", "code", "signature", "description", "tests"),
    *_json("parameters", "tags", "modules", "tools", "skills", "recordings", "extra"),
    _moment("created_at"),
    _moment("deleted_at", null=True),
    *_whole("size"),
    sa.UniqueConstraint("skill_id", "number"),
    _index("skill_version_by_size", "size"),  # their sum is read from the index alone, without the rows
)
"""One version of a skill. Once stored nothing in it changes but `deleted_at`, its tombstone."""
RUN = _table(
    "run",
    _identity(),
    *_text("run_id", unique=True),
    _moment("started_at"),
    *_seconds("duration_ms"),
    *_text("status", "isolation", "kind"),
    *_text("skill", null=True),
    *_whole("version", null=True),
    *_text("owner", null=True),
    *_counts("chars_written", "chars_read", "chars_called", "chars_defined"),
    _index("run_by_skill", "skill"),
)
"""That something ran: when, how long, how it ended, and for which scope. No arguments, no results, no output.

The characters are those of `tenants.used.Use`; of a run that used several skills, the record of one has them.
"""

# The vault of personal data.
VAULT = _table("vault", _one(), *_text("key_mark", null=True), *_whole("purges"), *_text("wrapped", null=True))
VAULT_VALUE = _table(
    "vault_value",
    _identity(),
    *_text("scope", "token", "type", "form", "lookup"),
    *_bytes("sealed"),
    *_seconds("expires", null=True),
    sa.UniqueConstraint("scope", "token"),
    sa.UniqueConstraint("scope", "lookup"),
    _index("vault_value_by_scope", "scope", "id"),
    _index("vault_value_by_expires", "expires"),
)
VAULT_AUDIT = _table(
    "vault_audit",
    _identity(),
    *_seconds("made_at"),
    *_text("scope", "action", "destination", "type"),
    *_whole("count_of"),
    *_text("run"),
    _index("vault_audit_by_run", "run"),
)
VAULT_LINK = _table(
    "vault_link",
    _identity(),
    *_text("scope", "record", "token"),
    sa.UniqueConstraint("scope", "record", "token"),
    _index("vault_link_by_token", "scope", "token"),
)
VAULT_TOTAL = _table("vault_total", _key("scope"), *_whole("values_of", "bytes_of", "purges"))
"""What a scope has: counting ten million values takes ten seconds."""

# Journals of runs, and runs in the background.
JOURNAL = _table(
    "journal_run",
    _identity(),
    *_text("run_id", unique=True),
    *_text("owner"),
    *_whole("format"),
    *_text("session", null=True),
    *_whole("number_of", null=True),
    *_text("after", null=True),
    _flag("closed"),
    *_text("isolation", "status"),
    *_seconds("began"),
    *_seconds("ended", null=True),
    *_seconds("expires", "timeout_seconds"),
    *_whole("memory_mb"),
    _flag("cancels"),
    *_leased(),
    *_whole("pieces", "bytes"),
    *_bytes("sealed_header"),
    *_bytes("sealed_end", null=True),
    _index("journal_run_by_owner", "owner", "id"),
    _index("journal_run_by_session", "session", "id"),
    _index("journal_run_by_expires", "expires"),
    _index("journal_run_by_lease", "status", "leased_until"),
)
PIECE = _table(
    "journal_piece",
    sa.Column("run_id", sa.Text, sa.ForeignKey(JOURNAL.c.run_id), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    *_bytes("sealed"),
)
BACKGROUND = _table(
    "background_run",
    _identity(),
    *_text("run_id", unique=True),
    *_text("owner", "status"),
    *_seconds("queued", "changed", "expires"),
    *_whole("begins"),
    _flag("cancels"),
    *_leased(),
    *_whole("questions"),
    *_bytes("sealed_request", "sealed_progress", "sealed_report", null=True),
    *_bytes("sealed_question", "sealed_answer", "sealed_answers", null=True),
    _index("background_run_by_status", "status", "leased_until"),
    _index("background_run_by_owner", "owner", "status"),
)
SCHEDULE = _table(
    "schedule",
    _key("name"),
    *_text("owner"),
    *_seconds("next_time", "fired", null=True),
    *_text("last_run", null=True),
    *_whole("judged", "failures", "attempt"),
    *_text("outcome", "reason"),
    *_bytes("sealed"),
)
"""What runs at set times. Without a `next_time` it is paused, for the `reason`, which else says of the last time.

A time is fired by the transaction that both queues the run and moves `next_time` on from it, so once and no less.
"""

SENT_CALL = _table("sent_call", _key("owner"), _key("mark"), *_text("asked", "run_id"), *_seconds("sent", "expires"))
"""The calls that were sent with an idempotency key: a digest of it, what tells what was asked for, and the run.

`sent` is when the process of the call was last heard of; as late as `expires` once the run has begun.
"""

# Who may call, and what was done.
TOKEN = _table(
    "token",
    _identity(),
    *_text("token_id", unique=True),
    *_text("name", "tenant", "principal", "scopes", "mark"),
    *_text("digest", unique=True),
    *_seconds("created"),
    *_seconds("expires", "revoked", "used", null=True),
    _index("token_by_mark", "mark"),
    _index("token_by_tenant", "tenant", "id"),
)
"""A bearer token that this server gave out: whom it stands for, and a digest of it; the token itself is not kept.

`mark` is the beginning of the digest, by which it is looked up.
"""
TENANT = _table("tenant", _key("id"), *_seconds("created", "changed"), *_text("status"), *_text("proof", null=True))
AUDIT_LINE = _table(
    "audit_line",
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    *_whole("at_us"),
    *_text("tenant", "principal", "credential", "event", "run", "tool", "decision", "rule"),
    *_whole("bytes_in", "bytes_out"),
    *_text("outcome", "details", "previous", "hash"),
    _index("audit_line_by_run", "run"),
    _index("audit_line_by_time", "at_us"),
)
AUDIT_HEAD = _table(
    "audit_head", _one(), *_whole("number", "before_number"), *_text("hash", "before_hash", "key_mark", "seal")
)
LIMIT = _table("own_limit", _key("tenant"), _key("principal"), _key("name"), *_seconds("most", "changed"))
"""A bound that the operator gave one tenant, or one principal of it, in place of the setting of that name.

The principal is empty where it is the tenant's.
"""
CPU_DAY = _table(
    "cpu_day",
    _key("day"),
    _key("tenant"),
    _key("principal"),
    *_seconds("seconds"),
    *_counts("runs", "chars_written", "chars_read", "chars_called", "chars_defined"),
)
"""What a principal used on a day: see `tenants.used.Use`."""

# Sign-ins to upstream servers.
SIGN_IN = _table(
    "sign_in",
    _key("owner"),
    *_text("person"),
    *_whole("version"),
    *_seconds("changed"),
    *_leased(),
    *_bytes("sealed"),
    _index("sign_in_by_person", "person"),
)
SIGN_IN_FLOW = _table(
    "sign_in_flow",
    _key("link"),
    *_text("owner", "person"),
    *_seconds("asked", "expires"),
    *_text("outcome"),
    *_text("browser", null=True),
    *_text("state", null=True, unique=True),
    *_bytes("sealed_request"),
    *_bytes("sealed_secrets", null=True),
    _index("sign_in_flow_by_owner", "owner", "asked"),
    _index("sign_in_flow_by_expires", "expires"),
)

# What servers on one database share.
REPLICA = _table(
    "replica",
    _key("id"),
    *_whole("term"),
    *_text("address", "mark", "version"),
    *_seconds("started", "heartbeat", "leased_until"),
    _flag("leaving"),
)
SESSION_LEASE = _table(
    "session_lease",
    _key("name"),
    *_text("replica"),
    *_whole("term", "epoch"),
    *_seconds("taken"),
    _index("session_lease_by_taken", "taken"),
)
DOCUMENT = _table("document", _key("name"), *_whole("version"), *_bytes("content"))
DOCUMENT_REVISION = _table("document_revision", _one(), *_whole("number"))
PART = _table(
    "part",
    _key("resource"),
    _key("holder"),
    *_whole("granted", "wanted"),
    *_seconds("until_time"),
    _index("part_by_until", "until_time"),
)
SETUP = _table("setup", _key("holder"), *_text("setup"), *_seconds("seen"))
HISTORY = _table("history", _key("history"), *_seconds("since"))

# The files of a workspace whose contents are in an object store. Paths sort by their bytes; moments are nanoseconds.
WORKSPACE_COUNT = _table(
    "workspace_count",
    _one(),
    *_text("store"),
    *_whole("size", "entries"),
    *_seconds("taking_in_until", "sweeping_until"),
)
WORKSPACE_FILE = _table(
    "workspace_file",
    sa.Column("path", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), primary_key=True),
    *_whole("size", "modified"),
    *_text("blob", null=True),
    _index("workspace_file_by_blob", "blob"),
)

FIRST_ROWS: tuple[tuple[sa.Table, Mapping[str, object]], ...] = (
    (REVISION, {"number": 0, "purged": 0}),
    (VAULT, {"purges": 0}),
    (AUDIT_HEAD, {"number": 0, "hash": "", "before_number": 0, "before_hash": "", "key_mark": "", "seal": ""}),
    (DOCUMENT_REVISION, {"number": 0}),
    (WORKSPACE_COUNT, {"store": "", "size": 0, "entries": 0, "taking_in_until": 0, "sweeping_until": 0}),
)
"""What the tables of one row begin with; its `id` is 1."""

# ruff: noqa: S608 - what is put into these statements is a constant
_REFUSED = "lines of the audit log are not changed; sealab audit trim removes old ones"
TRIGGERS: Mapping[str, tuple[str, ...]] = {
    "sqlite": (
        f"""CREATE TRIGGER sealab_audit_line_kept BEFORE UPDATE ON sealab_audit_line
            BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END""",
        f"""CREATE TRIGGER sealab_audit_line_stays BEFORE DELETE ON sealab_audit_line
            WHEN OLD.number > (SELECT before_number FROM sealab_audit_head)
            BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END""",
        f"""CREATE TRIGGER sealab_audit_head_stays BEFORE DELETE ON sealab_audit_head
            BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END""",
    ),
    "postgresql": (
        f"""CREATE FUNCTION sealab_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION '{_REFUSED}' USING ERRCODE = 'insufficient_privilege';
            END $$""",
        f"""CREATE FUNCTION sealab_audit_refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE
                gone BIGINT;
            BEGIN
                EXECUTE 'SELECT before_number FROM ' || quote_ident(TG_TABLE_SCHEMA) || '.sealab_audit_head'
                    INTO gone;
                IF gone IS NULL OR OLD.number > gone THEN
                    RAISE EXCEPTION '{_REFUSED}' USING ERRCODE = 'insufficient_privilege';
                END IF;
                RETURN OLD;
            END $$""",
        """CREATE TRIGGER sealab_audit_line_kept BEFORE UPDATE ON sealab_audit_line
            FOR EACH ROW EXECUTE FUNCTION sealab_audit_refuse()""",
        """CREATE TRIGGER sealab_audit_line_stays BEFORE DELETE ON sealab_audit_line
            FOR EACH ROW EXECUTE FUNCTION sealab_audit_refuse_delete()""",
        """CREATE TRIGGER sealab_audit_line_whole BEFORE TRUNCATE ON sealab_audit_line
            FOR EACH STATEMENT EXECUTE FUNCTION sealab_audit_refuse()""",
        """CREATE TRIGGER sealab_audit_head_stays BEFORE DELETE OR TRUNCATE ON sealab_audit_head
            FOR EACH STATEMENT EXECUTE FUNCTION sealab_audit_refuse()""",
        f"""CREATE FUNCTION sealab_notice() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM pg_notify('{CHANNEL}', json_build_object(
                    'schema', TG_TABLE_SCHEMA, 'kind', TG_ARGV[0], 'version', NEW.number)::text);
                RETURN NULL;
            END $$""",
        """CREATE TRIGGER sealab_document_notice AFTER UPDATE ON sealab_document_revision
            FOR EACH ROW WHEN (NEW.number <> OLD.number) EXECUTE FUNCTION sealab_notice('documents')""",
        """CREATE TRIGGER sealab_skill_notice AFTER UPDATE ON sealab_revision
            FOR EACH ROW WHEN (NEW.number <> OLD.number) EXECUTE FUNCTION sealab_notice('skills')""",
    ),
}
"""What SQLAlchemy cannot declare: no line of the audit log is changed, and servers hear of changes of others.

Those of the audit log are against mistakes: who owns the database can drop them. What shows that such a one changed a
line is the chain (`audit.chain`). A line may be removed only once the sealed head says that the log begins after it.
A notice is sent with the commit of the change, and only then, whichever version of sealab made the change.
"""
