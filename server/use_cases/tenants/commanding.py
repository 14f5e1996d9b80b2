"""Which home a command works in that names a tenant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....skills_db.tenants.tenant_store import Tenant, TenantStatus
from ...base.errors import TenantRefused
from ...base.home import Home
from ...base.identity import DEFAULT_TENANT
from ...base.settings import Settings
from ...governance.access.names import tenant_name
from .contents import has_database, operators_database
from .deleting import known_tenant
from .locks import TenantLock

if TYPE_CHECKING:
    from ....skills_db.engine import Database

_held: list[TenantLock] = []
"""Locks of this process, which keep its tenant from being removed until it ends."""


def home_of_tenant(settings: Settings, home: Home, name: str) -> Home:
    """Return the home of a tenant for a command, and keep it from being removed while this process runs. Blocks.

    Raises `UsageError` where there is no such tenant, and `TenantRefused` for one that is removed.
    """
    tenant = tenant_name(name)
    if tenant == DEFAULT_TENANT:
        return home
    own = home.of_tenant(tenant)
    with operators_database(settings, home) as operators:
        known_tenant(operators, tenant)
        _held.append(TenantLock(own).serve())
        status = known_tenant(operators, tenant).status
    if status in {TenantStatus.DELETING, TenantStatus.DELETED}:
        raise TenantRefused(f"The tenant {tenant} is {status}. `sealab tenants list` shows those that there are.")
    return own


def homes_in_use(settings: Settings, home: Home, operators: Database, tenants: Iterable[Tenant]) -> Iterator[Home]:
    """Give the homes of those tenants that have a database, each kept from being removed until the next. Blocks."""
    for each in tenants:
        own = home.of_tenant(each.id)
        if each.id == DEFAULT_TENANT or not has_database(settings, own, operators):
            continue
        try:
            with TenantLock(own).serve():
                yield own
        except TenantRefused:  # it is being removed
            continue
