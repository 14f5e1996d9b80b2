"""What the database of a tenant holds, in numbers, and the removal of what the operator's database has of a tenant.

Every call blocks: make it from a thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..engine import Database
from ..sql import sa
from ..tables import AUDIT_LINE, BACKGROUND, CPU_DAY, JOURNAL, LIMIT, RUN, SKILL, TABLES, TOKEN, VAULT_VALUE, VERSION


@dataclass(frozen=True, slots=True)
class TenantCounts:
    """How many there are of each: skills and all their versions, records and journals of runs, and so on."""

    skills: int = 0
    skill_versions: int = 0
    runs: int = 0
    journals: int = 0
    background_runs: int = 0
    vault_values: int = 0


def contents_of(database: Database) -> TenantCounts:
    """Count what the database of a tenant holds."""
    with database.read() as connection:

        def count(table: sa.Table, *which: sa.ColumnElement[bool]) -> int:
            return int(connection.execute(sa.select(sa.func.count()).select_from(table).where(*which)).scalar_one())

        return TenantCounts(
            skills=count(SKILL, SKILL.c.live_version.is_not(None)),
            skill_versions=count(VERSION),
            runs=count(RUN),
            journals=count(JOURNAL),
            background_runs=count(BACKGROUND, BACKGROUND.c.status != "ended"),
            vault_values=count(VAULT_VALUE),
        )


def tokens_of_tenant(operators: Database, tenant: str, now: float) -> int:
    """Count the tokens of a tenant that are valid at a time in seconds since 1970."""
    valid = TOKEN.c.revoked.is_(None) & (TOKEN.c.expires.is_(None) | (TOKEN.c.expires > now))
    with operators.read() as connection:
        wanted = sa.select(sa.func.count()).where(TOKEN.c.tenant == tenant, valid)
        return int(connection.execute(wanted).scalar_one())


def forget_principal(
    operators: Database, tenant: str, principal: str, scope: str, now: float, *, erases: bool
) -> dict[str, int]:
    """Count what tables of the operator have of a principal: tokens that count, limits of its own, days of use.

    Where it `erases` the tokens are revoked at the time `now`, and the rest is removed. `scope` is what use is kept by.
    """
    mine = TOKEN.c.tenant == tenant, TOKEN.c.principal == principal, TOKEN.c.revoked.is_(None)
    rows: dict[str, tuple[sa.Table, tuple[sa.ColumnElement[bool], ...]]] = {
        "tokens": (TOKEN, mine),
        "limits": (LIMIT, (LIMIT.c.tenant == tenant, LIMIT.c.principal == principal)),
        "days": (CPU_DAY, (CPU_DAY.c.tenant == tenant, CPU_DAY.c.principal == scope)),
    }
    with operators.transaction() as connection:
        counted = {
            name: int(connection.execute(sa.select(sa.func.count()).select_from(table).where(*which)).scalar_one())
            for name, (table, which) in rows.items()
        }
        for table, which in rows.values() if erases else ():
            connection.execute(
                sa.update(table).where(*which).values(revoked=now) if table is TOKEN else sa.delete(table).where(*which)
            )
    return counted


def forget_tenant(operators: Database, tenant: str) -> dict[str, int]:
    """Remove what tables of the operator have of a tenant, and return how many rows of which; not the audit's."""
    with operators.transaction() as connection:
        return {
            table.name.removeprefix("sealab_"): connection.execute(
                sa.delete(table).where(table.c.tenant == tenant)
            ).rowcount
            for table in TABLES.sorted_tables
            if "tenant" in table.c and table is not AUDIT_LINE  # which keeps what was done
        }
