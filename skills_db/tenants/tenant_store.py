"""The list of tenants, in the operator's database: which there are, which may be served, and what they used.

Every call blocks: make it from a thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ..content import storable
from ..engine import Database
from ..sql import Row, insert, sa
from ..tables import CPU_DAY, LIMIT, TENANT
from .uses import DayOf, Use


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


class LimitOf(NamedTuple):
    """Whose limit it is, and the setting in whose place it stands; the principal is empty where it is the tenant's."""

    tenant: str
    principal: str
    name: str


class SetLimit(NamedTuple):
    """A limit, and when it was set, in seconds since 1970."""

    most: float
    changed: float


class LimitStore:
    """The limits that tenants and principals have by themselves."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[LimitOf, SetLimit]:
        """Return all of them."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(LIMIT).order_by(LIMIT.c.tenant, LIMIT.c.principal, LIMIT.c.name))
            return {LimitOf(row.tenant, row.principal, row.name): SetLimit(row.most, row.changed) for row in rows}

    def put(self, limit: LimitOf, most: float | None) -> None:
        """Set a limit in place of an earlier one; None removes it."""
        with self._database.transaction() as connection:
            of = (getattr(LIMIT.c, name) == value for name, value in limit._asdict().items())
            connection.execute(sa.delete(LIMIT).where(*of))
            if most is not None:
                connection.execute(insert(LIMIT), {**limit._asdict(), "most": most, "changed": time.time()})


DAYS_KEPT = 35
"""How many days are kept, today included."""


class CpuDayStore:
    """What each principal of a tenant used on a day of UTC; several processes add to the same rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, used: Mapping[DayOf, Use]) -> None:
        """Add to what is stored, all at once. Raises `DatabaseUnavailable`.

        They survive a crash of the program; a crash of the machine may take the last ones along.
        """
        rows = [
            {**key._asdict(), **use._asdict()}
            for key, use in sorted(used.items())  # in one order: two processes then never wait for each other
            if storable(key.tenant) and storable(key.principal)
        ]
        if rows:
            added = insert(CPU_DAY)
            sums = {name: CPU_DAY.c[name] + added.excluded[name] for name in Use._fields}
            added = added.on_conflict_do_update(index_elements=["day", "tenant", "principal"], set_=sums)
            with self._database.transaction(durable=False) as connection:
                connection.execute(added, rows)

    def of_day(self, day: str) -> dict[DayOf, float]:
        """Return the seconds that all used on a day."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(CPU_DAY).where(CPU_DAY.c.day == day))
            return {DayOf(row.tenant, row.principal, day): row.seconds for row in rows}

    def since(self, day: str) -> dict[DayOf, Use]:
        """Return what all used on that day and those after it."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(CPU_DAY).where(CPU_DAY.c.day >= day).order_by(CPU_DAY.c.day))
            return {
                DayOf(row.tenant, row.principal, row.day): Use(*(getattr(row, name) for name in Use._fields))
                for row in rows
            }

    def drop_before(self, day: str) -> None:
        """Drop what is older."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(sa.delete(CPU_DAY).where(CPU_DAY.c.day < day))
