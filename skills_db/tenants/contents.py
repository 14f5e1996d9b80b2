"""What the database of a tenant holds, in numbers, and the removal of what the operator's database has of a tenant.

Every call blocks: make it from a thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..engine import Database
from ..sql import sa

_KEPT = frozenset({"sealab_audit", "sealab_audit_line", "sealab_audit_head", "sealab_tenant"})
"""Tables of the operator that keep what they say of a tenant: that it was there, and what was done."""


@dataclass(frozen=True, slots=True)
class Contents:
    """How many there are of each: skills and all their versions, records and journals of runs, and so on."""

    skills: int = 0
    skill_versions: int = 0
    runs: int = 0
    journals: int = 0
    background_runs: int = 0
    vault_values: int = 0


def contents_of(database: Database) -> Contents:
    """Count what the database of a tenant holds."""
    with database.read() as session:

        def count(what: str) -> int:
            return int(session.execute(sa.text(f"SELECT count(*) FROM {what}")).scalar_one())  # noqa: S608 - named below

        return Contents(
            skills=count("sealab_skill WHERE live_version IS NOT NULL"),
            skill_versions=count("sealab_skill_version"),
            runs=count("sealab_run"),
            journals=count("sealab_journal_run"),
            background_runs=count("sealab_background_run WHERE status <> 'ended'"),
            vault_values=count("sealab_vault_value"),
        )


def tokens_of_tenant(operators: Database, tenant: str, now: float) -> int:
    """Count the tokens of a tenant that are valid at a time in seconds since 1970."""
    with operators.read() as session:
        return int(session.execute(_TOKENS, {"tenant": tenant, "now": now}).scalar_one())


def forget_tenant(operators: Database, tenant: str) -> dict[str, int]:
    """Remove what tables of the operator have of a tenant, and return how many rows of which; not the audit's."""
    removed: dict[str, int] = {}
    with operators.transaction() as session:
        connection = session.connection()
        inspector = sa.inspect(connection)
        for table in sorted(inspector.get_table_names()):
            if not table.startswith("sealab_") or table in _KEPT:
                continue
            if any(column["name"] == "tenant" for column in inspector.get_columns(table)):
                rows = connection.execute(sa.text(f"DELETE FROM {table} WHERE tenant = :tenant"), {"tenant": tenant})  # noqa: S608 - a name of this schema
                removed[table.removeprefix("sealab_")] = rows.rowcount
    return removed


_TOKENS = sa.text(
    "SELECT count(*) FROM sealab_token "
    "WHERE tenant = :tenant AND revoked IS NULL AND (expires IS NULL OR expires > :now)"
)
