"""Which tenant the link of a question belongs to, found out before anything of that tenant is opened.

A security boundary: a link is judged by its signature alone, under the key of the tenant that it names. What names a
tenant that there is, and what names none, is refused alike and takes as long.
"""

from __future__ import annotations

from ...skills_db.journal.approval_links import judged
from ...skills_db.journal.sealing import JournalKeys
from ...skills_db.vault_keys import tenants_key
from ..access.names import tenant_name
from ..app import App
from ..errors import RequestRefused
from ..host_work import Kind, in_thread
from ..identity import DEFAULT_TENANT


async def tenant_of_link(operators: App, path: str) -> tuple[str, str] | None:
    """Return the tenant and the token of a link, `token` or `tenant/token`; None where it was not signed for that.

    Raises what reading the operator's key raises.
    """
    if (named := named_tenant(path)) is None:
        return None
    tenant, token = named
    if tenant == DEFAULT_TENANT:
        return DEFAULT_TENANT, token  # its own store judges the token

    def is_signed() -> bool:
        return judged(JournalKeys(tenants_key(operators.privacy.key(), tenant)), token) is not None

    return (tenant, token) if await in_thread(Kind.DATABASE, is_signed, charged=False) else None


def named_tenant(path: str) -> tuple[str, str] | None:
    """Return the tenant that a path names, and what stands last in it; None for what names none as a link does."""
    tenant, slash, last = path.rpartition("/")
    if not slash:
        return DEFAULT_TENANT, last
    try:
        tenant_name(tenant)
    except RequestRefused:
        return None
    return None if tenant == DEFAULT_TENANT else (tenant, last)
