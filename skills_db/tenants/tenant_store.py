"""The list of tenants, in the operator's database: which there are, and which may be served.

Every call blocks: make it from a thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from ..engine import Database
from ..sql import sa


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
        with self._database.read() as session:
            found = session.execute(_ONE, {"id": tenant}).mappings().one_or_none()
        if found is None:
            with self._database.transaction() as session:
                session.execute(_ADD, {"id": tenant, "now": time.time(), "status": TenantStatus.ACTIVE.value})
                found = session.execute(_ONE, {"id": tenant}).mappings().one()
        return _tenant(found)

    def find(self, tenant: str) -> Tenant | None:
        """Return a tenant, None where there has never been one of that id."""
        with self._database.read() as session:
            found = session.execute(_ONE, {"id": tenant}).mappings().one_or_none()
        return None if found is None else _tenant(found)

    def all(self) -> tuple[Tenant, ...]:
        """Return all tenants by id, deleted ones too."""
        with self._database.read() as session:
            return tuple(map(_tenant, session.execute(_ALL).mappings()))

    def unserved(self, among: Collection[str]) -> frozenset[str]:
        """Return which of some tenants may not be served now."""
        if not among:
            return frozenset()
        with self._database.read() as session:
            found = session.execute(_UNSERVED, {"ids": list(among), "active": TenantStatus.ACTIVE.value})
            return frozenset(found.scalars())

    def set_status(self, tenant: str, status: TenantStatus, proof: Mapping[str, object] | None = None) -> None:
        """Change whether a tenant is served; a `proof` that is given takes the place of the one before."""
        told = {
            "id": tenant,
            "now": time.time(),
            "status": status.value,
            "proof": None if proof is None else _json(proof),
        }
        with self._database.transaction() as session:
            session.execute(_SET, told)


def _json(proof: Mapping[str, object]) -> str:
    return json.dumps(proof, sort_keys=True)


def _tenant(row: sa.RowMapping) -> Tenant:
    proof = row["proof"]
    return Tenant(
        cast("str", row["id"]),
        cast("float", row["created"]),
        TenantStatus(row["status"]),
        cast("float", row["changed"]),
        None if proof is None else json.loads(proof),
    )


_COLUMNS = "id, created, status, changed, proof"
_ONE = sa.text(f"SELECT {_COLUMNS} FROM sealab_tenant WHERE id = :id")  # noqa: S608 - no value is in it
_ALL = sa.text(f"SELECT {_COLUMNS} FROM sealab_tenant ORDER BY id")  # noqa: S608 - as above
_ADD = sa.text(
    "INSERT INTO sealab_tenant (id, created, status, changed) VALUES (:id, :now, :status, :now) ON CONFLICT DO NOTHING"
)
_UNSERVED = sa.text("SELECT id FROM sealab_tenant WHERE id IN :ids AND status <> :active").bindparams(
    sa.bindparam("ids", expanding=True)
)
_SET = sa.text(
    "UPDATE sealab_tenant SET status = :status, changed = :now, proof = coalesce(:proof, proof) WHERE id = :id"
)
