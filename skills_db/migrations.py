"""The steps that bring a database's tables up to date: numbered, forward only, each applied once.

A step that has been released never changes; what comes later is a step of its own at the end. All missing steps are
applied in one transaction under a lock, so that programs may start at the same moment and a crash leaves nothing
half-made. The table `sealab_migration` lists which were applied, and by which version of sealab.

Servers of two versions share a database while the later one takes over. So a step *expands*: it adds tables, indexes,
and columns that may be left out, and the version before goes on to work. What is to go is removed by a step of a later
release, which *contracts*: it names in `needs` the expanding step that a program must know to work without it. A
program goes on with a database that has steps it does not know, unless one of them needs a step that it does not know
either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from .audit import schema as audit
from .errors import DatabaseNewer, DatabaseOlder
from .models import UtcTime
from .shared_state import shared_tables as shared_state
from .sql import DBAPIError, sa

_LOCK = 0x5EA1AB01
"""A number that no other program is likely to take as its advisory lock."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: SQL that both SQLite and PostgreSQL understand.

    `{identity}` stands for the type of a primary key that counts by itself, `{time}` for a moment, `{bytes}` for
    binary data, `{float}` for a number of 64 bits, `{bytewise}` for text that sorts by its bytes. `only` has what comes
    after it on one kind of database alone, as it stands. A step that contracts says in `needs` which earlier step
    programs must know that go on to work after it.
    """

    name: str
    statements: tuple[str, ...]
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: str | None = None


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "0001_tables",
        (
            # Skills and the runs of them.
            """CREATE TABLE sealab_revision (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                number BIGINT NOT NULL,
                purged BIGINT NOT NULL
            )""",
            "INSERT INTO sealab_revision (id, number, purged) VALUES (1, 0, 0)",
            """CREATE TABLE sealab_skill (
                id {identity},
                name TEXT NOT NULL UNIQUE,
                last_version INTEGER NOT NULL,
                live_version INTEGER,
                revision BIGINT NOT NULL,
                runs BIGINT NOT NULL DEFAULT 0,
                last_run {time}
            )""",
            "CREATE INDEX sealab_skill_by_revision ON sealab_skill (revision)",
            """CREATE TABLE sealab_skill_version (
                id {identity},
                skill_id BIGINT NOT NULL REFERENCES sealab_skill (id),
                number INTEGER NOT NULL CHECK (number >= 1),
                content_hash TEXT NOT NULL,
                kind TEXT NOT NULL,
                code TEXT NOT NULL,
                signature TEXT NOT NULL,
                parameters TEXT NOT NULL,
                description TEXT NOT NULL,
                tags TEXT NOT NULL,
                tests TEXT NOT NULL,
                modules TEXT NOT NULL,
                tools TEXT NOT NULL,
                skills TEXT NOT NULL,
                recordings TEXT NOT NULL,
                extra TEXT NOT NULL,
                created_at {time} NOT NULL,
                deleted_at {time},
                size BIGINT NOT NULL,
                UNIQUE (skill_id, number)
            )""",
            # Their sum is read from the index alone, without the rows.
            "CREATE INDEX sealab_skill_version_by_size ON sealab_skill_version (size)",
            """CREATE TABLE sealab_run (
                id {identity},
                run_id TEXT NOT NULL UNIQUE,
                started_at {time} NOT NULL,
                duration_ms {float} NOT NULL,
                status TEXT NOT NULL,
                isolation TEXT NOT NULL,
                kind TEXT NOT NULL,
                skill TEXT,
                version INTEGER
            )""",
            "CREATE INDEX sealab_run_by_skill ON sealab_run (skill)",
            # The vault of personal data.
            """CREATE TABLE sealab_vault (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                key_mark TEXT,
                purges BIGINT NOT NULL
            )""",
            "INSERT INTO sealab_vault (id, key_mark, purges) VALUES (1, NULL, 0)",
            """CREATE TABLE sealab_vault_value (
                id {identity},
                scope TEXT NOT NULL,
                token TEXT NOT NULL,
                type TEXT NOT NULL,
                form TEXT NOT NULL,
                lookup TEXT NOT NULL,
                sealed {bytes} NOT NULL,
                expires {float},
                UNIQUE (scope, token),
                UNIQUE (scope, lookup)
            )""",
            "CREATE INDEX sealab_vault_value_by_scope ON sealab_vault_value (scope, id)",
            "CREATE INDEX sealab_vault_value_by_expires ON sealab_vault_value (expires)",
            """CREATE TABLE sealab_vault_audit (
                id {identity},
                made_at {float} NOT NULL,
                scope TEXT NOT NULL,
                action TEXT NOT NULL,
                destination TEXT NOT NULL,
                type TEXT NOT NULL,
                count_of BIGINT NOT NULL,
                run TEXT NOT NULL
            )""",
            "CREATE INDEX sealab_vault_audit_by_run ON sealab_vault_audit (run)",
            """CREATE TABLE sealab_vault_link (
                id {identity},
                scope TEXT NOT NULL,
                record TEXT NOT NULL,
                token TEXT NOT NULL,
                UNIQUE (scope, record, token)
            )""",
            "CREATE INDEX sealab_vault_link_by_token ON sealab_vault_link (scope, token)",
            # Counting ten million values takes ten seconds.
            """CREATE TABLE sealab_vault_total (
                scope TEXT PRIMARY KEY,
                values_of BIGINT NOT NULL,
                bytes_of BIGINT NOT NULL,
                purges BIGINT NOT NULL
            )""",
            # Journals of runs.
            """CREATE TABLE sealab_journal_run (
                id {identity},
                run_id TEXT NOT NULL UNIQUE,
                owner TEXT NOT NULL,
                format INTEGER NOT NULL,
                session TEXT,
                number_of BIGINT,
                after TEXT,
                closed INTEGER NOT NULL,
                isolation TEXT NOT NULL,
                status TEXT NOT NULL,
                began {float} NOT NULL,
                ended {float},
                expires {float} NOT NULL,
                timeout_seconds {float} NOT NULL,
                memory_mb BIGINT NOT NULL,
                leased_by TEXT NOT NULL,
                leased_until {float} NOT NULL,
                pieces BIGINT NOT NULL,
                bytes BIGINT NOT NULL,
                sealed_header {bytes} NOT NULL,
                sealed_end {bytes}
            )""",
            "CREATE INDEX sealab_journal_run_by_owner ON sealab_journal_run (owner, id)",
            "CREATE INDEX sealab_journal_run_by_session ON sealab_journal_run (session, id)",
            "CREATE INDEX sealab_journal_run_by_expires ON sealab_journal_run (expires)",
            "CREATE INDEX sealab_journal_run_by_lease ON sealab_journal_run (status, leased_until)",
            """CREATE TABLE sealab_journal_piece (
                run_id TEXT NOT NULL REFERENCES sealab_journal_run (run_id),
                number BIGINT NOT NULL,
                sealed {bytes} NOT NULL,
                PRIMARY KEY (run_id, number)
            )""",
            # Runs in the background.
            """CREATE TABLE sealab_background_run (
                id {identity},
                run_id TEXT NOT NULL UNIQUE,
                owner TEXT NOT NULL,
                status TEXT NOT NULL,
                queued {float} NOT NULL,
                changed {float} NOT NULL,
                expires {float} NOT NULL,
                begins INTEGER NOT NULL,
                cancels INTEGER NOT NULL,
                leased_by TEXT NOT NULL,
                leased_until {float} NOT NULL,
                sealed_request {bytes},
                sealed_progress {bytes},
                sealed_report {bytes},
                questions INTEGER NOT NULL,
                sealed_question {bytes},
                sealed_answer {bytes},
                sealed_answers {bytes}
            )""",
            "CREATE INDEX sealab_background_run_by_status ON sealab_background_run (status, leased_until)",
            "CREATE INDEX sealab_background_run_by_owner ON sealab_background_run (owner, status)",
            # Who may call.
            """CREATE TABLE sealab_token (
                id {identity},
                token_id TEXT NOT NULL UNIQUE,
                name TEXT NOT NULL,
                tenant TEXT NOT NULL,
                principal TEXT NOT NULL,
                scopes TEXT NOT NULL,
                mark TEXT NOT NULL,
                digest TEXT NOT NULL UNIQUE,
                created {float} NOT NULL,
                expires {float},
                revoked {float},
                used {float}
            )""",
            "CREATE INDEX sealab_token_by_mark ON sealab_token (mark)",
            "CREATE INDEX sealab_token_by_tenant ON sealab_token (tenant, id)",
            """CREATE TABLE sealab_tenant (
                id TEXT PRIMARY KEY,
                created {float} NOT NULL,
                status TEXT NOT NULL,
                changed {float} NOT NULL,
                proof TEXT
            )""",
            # The audit log, and what its callers have used.
            *audit.TABLES,
            """CREATE TABLE sealab_cpu_day (
                day TEXT NOT NULL,
                tenant TEXT NOT NULL,
                principal TEXT NOT NULL,
                seconds {float} NOT NULL,
                PRIMARY KEY (day, tenant, principal)
            )""",
            # Sign-ins to upstream servers.
            """CREATE TABLE sealab_sign_in (
                owner TEXT PRIMARY KEY,
                person TEXT NOT NULL,
                version BIGINT NOT NULL,
                changed {float} NOT NULL,
                leased_by TEXT NOT NULL,
                leased_until {float} NOT NULL,
                sealed {bytes} NOT NULL
            )""",
            "CREATE INDEX sealab_sign_in_by_person ON sealab_sign_in (person)",
            """CREATE TABLE sealab_sign_in_flow (
                link TEXT PRIMARY KEY,
                owner TEXT NOT NULL,
                person TEXT NOT NULL,
                asked {float} NOT NULL,
                expires {float} NOT NULL,
                outcome TEXT NOT NULL,
                browser TEXT,
                state TEXT UNIQUE,
                sealed_request {bytes} NOT NULL,
                sealed_secrets {bytes}
            )""",
            "CREATE INDEX sealab_sign_in_flow_by_owner ON sealab_sign_in_flow (owner, asked)",
            "CREATE INDEX sealab_sign_in_flow_by_expires ON sealab_sign_in_flow (expires)",
            # Servers on one database.
            """CREATE TABLE sealab_replica (
                id TEXT PRIMARY KEY,
                term BIGINT NOT NULL,
                address TEXT NOT NULL,
                mark TEXT NOT NULL,
                version TEXT NOT NULL,
                started {float} NOT NULL,
                heartbeat {float} NOT NULL,
                leased_until {float} NOT NULL,
                leaving INTEGER NOT NULL
            )""",
            """CREATE TABLE sealab_session_lease (
                name TEXT PRIMARY KEY,
                replica TEXT NOT NULL,
                term BIGINT NOT NULL,
                epoch BIGINT NOT NULL,
                taken {float} NOT NULL
            )""",
            "CREATE INDEX sealab_session_lease_by_taken ON sealab_session_lease (taken)",
            *shared_state.TABLES,
            """CREATE TABLE sealab_workspace_count (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                store TEXT NOT NULL,
                size BIGINT NOT NULL,
                entries BIGINT NOT NULL,
                taking_in_until {float} NOT NULL,
                sweeping_until {float} NOT NULL
            )""",
            "INSERT INTO sealab_workspace_count VALUES (1, '', 0, 0, 0, 0)",
            """CREATE TABLE sealab_workspace_file (
                path {bytewise} PRIMARY KEY,
                size BIGINT NOT NULL,
                modified BIGINT NOT NULL,
                blob TEXT
            )""",
            "CREATE INDEX sealab_workspace_file_by_blob ON sealab_workspace_file (blob)",
            """CREATE TABLE sealab_history (
                history TEXT PRIMARY KEY,
                since {float} NOT NULL
            )""",
        ),
        only={
            "sqlite": audit.TRIGGERS["sqlite"],
            "postgresql": (*audit.TRIGGERS["postgresql"], *shared_state.TRIGGERS["postgresql"]),
        },
    ),
)

_WORDS = {
    "sqlite": {
        "identity": "INTEGER PRIMARY KEY",
        "time": "TIMESTAMP",
        "bytes": "BLOB",
        "float": "REAL",
        "bytewise": "TEXT",
    },
    "postgresql": {
        "identity": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
        "time": "TIMESTAMP WITH TIME ZONE",
        "bytes": "BYTEA",
        "float": "DOUBLE PRECISION",
        "bytewise": 'TEXT COLLATE "C"',
    },
}
_TABLES = (
    """CREATE TABLE IF NOT EXISTS sealab_migration (
    name TEXT PRIMARY KEY,
    applied_at {time} NOT NULL,
    program TEXT NOT NULL
)""",
    """CREATE TABLE IF NOT EXISTS sealab_migration_rule (
    name TEXT PRIMARY KEY,
    needs TEXT NOT NULL
)""",
)
_MAY_NOT = "42501"
"""The SQLSTATE of a role that lacks a right."""


def apply(engine: sa.Engine, steps: tuple[Migration, ...] = MIGRATIONS) -> tuple[str, ...]:
    """Apply the steps that the database lacks and return their names.

    Raises `DatabaseNewer` when it has one that is not among `steps` and that these cannot work with, and
    `DatabaseOlder` when it has steps but not the first of these, or lacks one and its role may not change tables; then
    nothing is changed.
    """
    missing = missing_steps(engine, steps)
    if not missing:
        return ()
    try:
        return _applied_under_lock(engine, steps)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _MAY_NOT:
            raise
        raise DatabaseOlder(
            f"The database lacks {', '.join(missing)}, and its user may not change tables. Start sealab "
            f"{_program()} once with a DATABASE_URL whose user may."
        ) from error


def missing_steps(engine: sa.Engine, steps: tuple[Migration, ...] = MIGRATIONS) -> tuple[str, ...]:
    """Return the names of the steps that the database lacks. Raises `DatabaseNewer`, `DatabaseOlder` as `apply`."""
    with engine.execution_options(sealab="read").connect() as connection:
        applied = _applied(connection)
        _refuse_unknown(connection, applied, steps)
    return tuple(step.name for step in steps if step.name not in applied)


def _applied_under_lock(engine: sa.Engine, steps: tuple[Migration, ...]) -> tuple[str, ...]:
    words = _WORDS[engine.dialect.name]
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        for table in _TABLES:
            connection.exec_driver_sql(table.format_map(words))
        applied = _applied(connection)
        _refuse_unknown(connection, applied, steps)
        missing = [step for step in steps if step.name not in applied]
        for step in missing:
            _apply_one(connection, step, words)
    return tuple(step.name for step in missing)


def _apply_one(connection: sa.Connection, step: Migration, words: Mapping[str, str]) -> None:
    for statement in step.statements:
        connection.exec_driver_sql(statement.format_map(words))
    for statement in step.only.get(connection.dialect.name, ()):
        connection.exec_driver_sql(statement)
    connection.execute(
        sa.text("INSERT INTO sealab_migration VALUES (:name, :at, :program)").bindparams(
            sa.bindparam("name", step.name),
            sa.bindparam("at", datetime.now(UTC), UtcTime),
            sa.bindparam("program", _program()),
        )
    )
    if step.needs is not None:
        rule = sa.text("INSERT INTO sealab_migration_rule VALUES (:name, :needs)")
        connection.execute(rule, {"name": step.name, "needs": step.needs})


def _applied(connection: sa.Connection) -> dict[str, str]:
    """Return the program that applied each step."""
    if not sa.inspect(connection).has_table("sealab_migration"):
        return {}
    rows = connection.exec_driver_sql("SELECT name, program FROM sealab_migration")
    return {name: program for name, program in rows}  # noqa: C416 - dict() of rows is not typed


def _refuse_unknown(connection: sa.Connection, applied: dict[str, str], steps: tuple[Migration, ...]) -> None:
    if applied and steps[0].name not in applied:
        raise DatabaseOlder(
            f"The database was made before the first release of sealab (step {max(applied)}), and is not read any "
            "more. Name another one by DATABASE_URL, or move the file away. `sealab skills backup` of the program that "
            "made it and `sealab skills restore` of this one carry skills over."
        )
    known = {step.name for step in steps}
    unknown = sorted(set(applied) - known)
    if not unknown:
        return
    lacking: dict[str, str] = {}
    if sa.inspect(connection).has_table("sealab_migration_rule"):
        rows = connection.exec_driver_sql("SELECT name, needs FROM sealab_migration_rule")
        lacking = {name: needs for name, needs in rows if name in unknown and needs not in known}
        if not lacking:
            return
    step = max(lacking or unknown)
    raise DatabaseNewer(
        f"The database was changed by sealab {applied[step]} (step {step}), which is newer than this one, "
        f"{_program()}. Use that version or a later one."
    )


def _program() -> str:
    from importlib.metadata import version

    return version("sealab")
