"""Which home a command works in that names a tenant."""

from __future__ import annotations

from ...skills_db.tenants.tenant_store import TenantStatus
from ..access.names import tenant_name
from ..errors import TenantRefused
from ..home import Home
from ..identity import DEFAULT_TENANT
from ..settings import Settings
from .contents import operators_database
from .deleting import known_tenant
from .locks import TenantLock

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
