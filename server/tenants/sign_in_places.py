"""Which tenant the link of a sign-in belongs to, found out before anything of that tenant is opened.

A security boundary: the secret of a link, and the state that a browser comes back with, have a mark under the key of
the tenant that the path names. What names a tenant that there is, and what names none, is refused alike.
"""

from __future__ import annotations

from ...skills_db.sign_ins.sign_in_keys import SignInKeys
from ...skills_db.vault_keys import tenants_key
from ..app import App
from ..host_work import Kind, in_thread
from ..identity import DEFAULT_TENANT
from ..sign_ins.signing_in import CALLBACK
from .question_places import named_tenant


async def tenant_of_sign_in(operators: App, path: str, state: str) -> tuple[str, str] | None:
    """Return the tenant and the last part of a path, `secret` or `tenant/secret`; None where it was not given out.

    Where `CALLBACK` stands in the place of the secret, it is `state` that was. Raises what reading the operator's key
    raises.
    """
    if (named := named_tenant(path)) is None:
        return None
    tenant, last = named
    kind, secret = ("state", state) if last == CALLBACK else ("link", last)

    def is_own() -> bool:
        operators_key = operators.privacy.key()
        key = operators_key if tenant == DEFAULT_TENANT else tenants_key(operators_key, tenant)
        return SignInKeys(key).is_own(kind, secret)

    return named if await in_thread(Kind.DATABASE, is_own, charged=False) else None
