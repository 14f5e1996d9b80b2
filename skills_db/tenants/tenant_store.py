"""The list of tenants, in the operator's database: which there are, and which may be served.

Every call blocks: make it from a thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..engine import Database
from ..sql import Row, insert, sa
from ..tables import TENANT


class TenantStatus(StrEnum):
    """Whether a tenant is served. What is `deleting` is being removed, or will be by who tries again."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETING = "deleting"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant; `created` and `changed` in seconds since 1970. `proof` says what was removed of a deleted one."""

    id: str
    created: float
    status: TenantStatus
    changed: float
    proof: Mapping[str, object] | None = None


class TenantStore:
    """The tenants of one installation. Any number of stores, threads and programs may share one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self, tenant: str) -> Tenant:
        """Return a tenant, which is made where there has never been one of that id.

        A deleted one stays deleted: a token that still names it must not bring it back.
        """
        found = self.find(tenant)
        if found is None:
            row = {"id": tenant, "created": time.time(), "changed": time.time(), "status": TenantStatus.ACTIVE.value}
            with self._database.transaction() as connection:
                connection.execute(insert(TENANT).on_conflict_do_nothing(), row)
                found = _tenant(connection.execute(sa.select(TENANT).where(TENANT.c.id == tenant)).one())
        return found

    def find(self, tenant: str) -> Tenant | None:
        """Return a tenant, None where there has never been one of that id."""
        with self._database.read() as connection:
            found = connection.execute(sa.select(TENANT).where(TENANT.c.id == tenant)).one_or_none()
        return None if found is None else _tenant(found)

    def all(self) -> tuple[Tenant, ...]:
        """Return all tenants by id, deleted ones too."""
        with self._database.read() as connection:
            return tuple(map(_tenant, connection.execute(sa.select(TENANT).order_by(TENANT.c.id))))

    def unserved(self, among: Collection[str]) -> frozenset[str]:
        """Return which of some tenants may not be served now."""
        if not among:
            return frozenset()
        unserved = sa.select(TENANT.c.id).where(TENANT.c.id.in_(among), TENANT.c.status != TenantStatus.ACTIVE.value)
        with self._database.read() as connection:
            return frozenset(connection.execute(unserved).scalars())

    def set_status(self, tenant: str, status: TenantStatus, proof: Mapping[str, object] | None = None) -> None:
        """Change whether a tenant is served; a `proof` that is given takes the place of the one before."""
        values = {"status": status.value, "changed": time.time()}
        if proof is not None:
            values["proof"] = json.dumps(proof, sort_keys=True)
        with self._database.transaction() as connection:
            connection.execute(sa.update(TENANT).where(TENANT.c.id == tenant).values(values))


def _tenant(row: Row) -> Tenant:
    proof = None if row.proof is None else json.loads(row.proof)
    return Tenant(row.id, row.created, TenantStatus(row.status), row.changed, proof)
