"""The steps that bring a database's tables up to date: numbered, forward only, each applied once.

An empty database gets the tables as they are declared (`tables`), and counts as having every step. What a later release
declares beside them is brought to other databases by a step of its own at the end; one that has been released never
changes. All missing steps are applied in one transaction under a lock, so that programs may start at the same moment
and a crash leaves nothing half-made. The table `sealab_migration` lists which were applied, by which version of sealab.

Servers of two versions share a database while the later one takes over. So a step *expands*: it adds tables, indexes,
and columns that may be left out, and the version before goes on to work. What is to go is removed by a step of a later
release, which *contracts*: it names in `needs` the expanding step that a program must know to work without it. A
program goes on with a database that has steps it does not know, unless one of them needs a step that it does not know
either.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from .errors import DatabaseNewer, DatabaseOlder
from .sql import Connection, DBAPIError, sa
from .tables import FIRST_ROWS, MIGRATION, MIGRATION_RULE, TABLES, TRIGGERS

_LOCK = 0x5EA1AB01
"""A number that no other program is likely to take as its advisory lock."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: SQL that both SQLite and PostgreSQL understand.

    A step that contracts says in `needs` which earlier step programs must know that go on to work after it.
    """

    name: str
    statements: tuple[str, ...]
    needs: str | None = None


MIGRATIONS: tuple[Migration, ...] = (
    Migration("0001_tables", ()),
    Migration(
        "0044_use_of_runs",
        tuple(
            f"ALTER TABLE sealab_run ADD COLUMN chars_{name} BIGINT NOT NULL DEFAULT 0"
            for name in ("written", "read", "called", "defined")
        ),
    ),
)
_LISTS = (MIGRATION, MIGRATION_RULE)
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
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        TABLES.create_all(connection, _LISTS)
        applied = _applied(connection)
        _refuse_unknown(connection, applied, steps)
        if not applied:
            _make_tables(connection)
        missing = [step for step in steps if step.name not in applied]
        for step in missing:
            for statement in step.statements if applied else ():
                connection.exec_driver_sql(statement)
            row = {"name": step.name, "applied_at": datetime.now(UTC), "program": _program()}
            connection.execute(MIGRATION.insert(), row)
            if step.needs is not None:
                connection.execute(MIGRATION_RULE.insert(), {"name": step.name, "needs": step.needs})
    return tuple(step.name for step in missing)


def _make_tables(connection: Connection) -> None:
    TABLES.create_all(connection, [each for each in TABLES.sorted_tables if each not in _LISTS], checkfirst=False)
    for table, row in FIRST_ROWS:
        connection.execute(table.insert(), {"id": 1, **row})
    for trigger in TRIGGERS[connection.dialect.name]:
        connection.exec_driver_sql(trigger)


def _applied(connection: Connection) -> dict[str, str]:
    """Return the program that applied each step."""
    if not sa.inspect(connection).has_table(MIGRATION.name):
        return {}
    return {row.name: row.program for row in connection.execute(sa.select(MIGRATION))}


def _refuse_unknown(connection: Connection, applied: dict[str, str], steps: tuple[Migration, ...]) -> None:
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
    rules = connection.execute(sa.select(MIGRATION_RULE))
    lacking = [row.name for row in rules if row.name in unknown and row.needs not in known]
    if not lacking:
        return
    step = max(lacking)
    raise DatabaseNewer(
        f"The database was changed by sealab {applied[step]} (step {step}), which is newer than this one, "
        f"{_program()}. Use that version or a later one."
    )


def _program() -> str:
    from importlib.metadata import version

    return version("sealab")
