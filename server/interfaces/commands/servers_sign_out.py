"""`sealab servers sign-out`: forgets a sign-in to an upstream server, and has its issuer revoke what it gave."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ....tools_registry.configuration import SignInOf, read
from ....tools_registry.sign_in.owners import OPERATOR
from ...base.database import database_of
from ...base.errors import Exit, UsageError
from ...base.home import Home
from ...base.identity import DEFAULT_TENANT, LOCAL_IDENTITY
from .terminal import Here, Output, print_error

if TYPE_CHECKING:
    from ....tools_registry.configuration import ServerConfig
    from ....tools_registry.sign_in.owners import SignInOwner
    from ...base.settings import Settings
    from ...governance.audit.trail import AuditTrail
    from ...governance.sign_ins.sign_ins import SignIns


@dataclass(frozen=True, slots=True)
class OwnedSignIns:
    """The sign-ins of a home, and whose of those a command is about: a principal's, or the local user's."""

    sign_ins: SignIns
    who: str | None
    audit: AuditTrail

    @property
    def principal(self) -> str:
        """Whom the audit names."""
        return LOCAL_IDENTITY.principal if self.who is None else self.who

    def owner(self, server: ServerConfig) -> SignInOwner:
        """Return the owner of the sign-in to a server that is not called with the operator's. Raises `UsageError`."""
        from ...governance.caller import LOCAL, Caller
        from ...governance.scopes import of_principal

        if server.token_exchange is not None:
            raise UsageError(
                f"The server {server.name!r} is called with what the caller's own token is exchanged for, so there is "
                "no sign-in. Revoke the caller's token."
            )
        if self.who is not None and server.sign_in is not SignInOf.CALLER:
            raise UsageError(
                f"The server {server.name!r} is not called with sign-ins of its callers, which --who is for. "
                "Leave it out."
            )
        if self.who is None and self.audit.tenant != DEFAULT_TENANT and server.sign_in is SignInOf.CALLER:
            raise UsageError(
                f"The server {server.name!r} is called with sign-ins of its callers, and no tenant but default has the "
                "local user. Name the principal with --who."
            )
        return self.sign_ins.owner(server, LOCAL if self.who is None else Caller(of_principal(self.who)))


@contextmanager
def opened_sign_ins(home: Home, settings: Settings, who: str | None) -> Iterator[OwnedSignIns]:
    """Open the sign-ins of a home, which may be a tenant's, for a command."""
    from ...governance.sign_ins.sign_ins import SignIns
    from ...privacy.of_home import operators_key, privacy_of
    from .opened import trail_beside

    home.prepare()
    operators = Home(home.operators_root)
    operators_database = database_of(settings.database_url, operators)
    database = operators_database if home.operators is None else database_of(settings.database_url, home)
    privacy = privacy_of(settings, home, database, operators=operators_database)
    try:
        with trail_beside(operators, settings, operators_database) as audit:
            own = replace(audit, tenant=home.tenant)
            key = operators_key(settings, operators.root, operators_database)
            operators_own = SignIns(operators_database, key, audit=audit)
            sign_ins = SignIns(database, privacy.key, tenant=home.tenant, audit=own, operators=operators_own)
            yield OwnedSignIns(sign_ins, who, own)
    finally:
        privacy.close()
        database.close()
        operators_database.close()


def home_of_owner(here: Here, tenant: str | None) -> Home:
    """Return the home of a tenant, else the operator's. Raises `UsageError`."""
    from ...use_cases.tenants.commanding import home_of_tenant

    return here.home if tenant is None else home_of_tenant(here.settings, here.home, tenant)


def sign_out(here: Here, name: str, *, who: str | None = None, tenant: str | None = None) -> Output:
    """Forget a sign-in to a server, and have its issuer revoke it.

    name: the server
    who PRINCIPAL: whose sign-in, of a server that is called with those of its callers: a principal's (default: the
        local user's)
    tenant: of which tenant's sign-ins (default: default)
    """
    server = read(here.home.servers_file, os.environ).server(name)
    is_operators = server.sign_in is SignInOf.OPERATOR
    if is_operators and (who is not None or tenant is not None):
        raise UsageError(
            f"The server {name!r} is called with the operator's sign-in. Leave --who and --tenant out to end that."
        )
    with opened_sign_ins(home_of_owner(here, tenant), here.settings, who) as owned:
        owner = OPERATOR if is_operators else owned.owner(server)
        removed, revoked = asyncio.run(owned.sign_ins.sign_out(server, owner, principal=owned.principal))
    also = "its issuer revoked it" if revoked else "its issuer could not be told, or has no such endpoint"
    nobody = f"Nobody is signed in to {name} so. Name the principal with --who, the tenant with --tenant."
    return Output(
        {"name": name, "signed_out": removed, "revoked": revoked},
        f"Signed out of {name}: {also}." if removed else partial(print_error, nobody),
        Exit.OK if removed else Exit.FAILED,
    )
