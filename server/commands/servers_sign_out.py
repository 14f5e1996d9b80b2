"""`sealab servers sign-out`: forgets a sign-in to an upstream server, and has its issuer revoke what it gave."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ..errors import Exit, UsageError
from ..home import Home
from ..identity import DEFAULT_TENANT, LOCAL_IDENTITY
from .terminal import Here, Output, print_error

if TYPE_CHECKING:
    from ...tools_registry.authorizing.owners import Owner
    from ...tools_registry.configuration import ServerConfig
    from ..audit.trail import AuditTrail
    from ..settings import Settings
    from ..sign_ins.operators_sign_ins import OperatorsSignIns
    from ..sign_ins.sign_ins import SignIns


@dataclass(frozen=True, slots=True)
class OwnedSignIns:
    """The sign-ins of a home, and whose of those a command is about: a principal's, or the local user's."""

    sign_ins: SignIns
    who: str | None
    audit: AuditTrail
    operators: OperatorsSignIns | None = None
    """The operator's own sign-ins, where servers share them; else they are files of the home."""

    @property
    def principal(self) -> str:
        """Whom the audit names."""
        return LOCAL_IDENTITY.principal if self.who is None else self.who

    def owner(self, server: ServerConfig) -> Owner:
        """Return the owner of the sign-in to a server that is not called with the operator's. Raises `UsageError`."""
        from ...tools_registry.configuration import SignInOf
        from ..caller import LOCAL, Caller
        from ..scopes import of_principal

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
    from ..database import database_of
    from ..privacy.of_home import operators_key, privacy_of
    from ..sign_ins.operators_sign_ins import operators_sign_ins
    from ..sign_ins.sign_ins import SignIns
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
            operators_own = operators_sign_ins(
                SignIns(operators_database, key, audit=audit), operators, operators_database
            )
            sign_ins = SignIns(database, privacy.key, tenant=home.tenant, audit=own)
            yield OwnedSignIns(sign_ins, who, own, operators_own)
    finally:
        privacy.close()
        database.close()
        operators_database.close()


def home_of_owner(here: Here, tenant: str | None) -> Home:
    """Return the home of a tenant, else the operator's. Raises `UsageError`."""
    from ..tenants.commanding import home_of_tenant

    return here.home if tenant is None else home_of_tenant(here.settings, here.home, tenant)


def sign_out(here: Here, name: str, *, who: str | None = None, tenant: str | None = None) -> Output:
    """Forget a sign-in to a server, and have its issuer revoke it.

    name: the server
    who PRINCIPAL: whose sign-in, of a server that is called with those of its callers: a principal's (default: the
        local user's)
    tenant: of which tenant's sign-ins (default: default)
    """
    from ...tools_registry.configuration import SignInOf, read

    server = read(here.home.servers_file, os.environ).server(name)
    if server.sign_in is SignInOf.OPERATOR:
        if who is not None or tenant is not None:
            raise UsageError(
                f"The server {name!r} is called with the operator's sign-in. Leave --who and --tenant out to end that."
            )
        removed, revoked = _operator_signed_out(server, here.home, here.settings)
    else:
        with opened_sign_ins(home_of_owner(here, tenant), here.settings, who) as owned:
            signing_out = owned.sign_ins.sign_out(server, owned.owner(server), principal=owned.principal)
            removed, revoked = asyncio.run(signing_out)
    also = "its issuer revoked it" if revoked else "its issuer could not be told, or has no such endpoint"
    nobody = f"Nobody is signed in to {name} so. Name the principal with --who, the tenant with --tenant."
    return Output(
        {"name": name, "signed_out": removed, "revoked": revoked},
        f"Signed out of {name}: {also}." if removed else partial(print_error, nobody),
        Exit.OK if removed else Exit.FAILED,
    )


def _operator_signed_out(server: ServerConfig, home: Home, settings: Settings) -> tuple[bool, bool]:
    from ...tools_registry.upstream.sign_in import signed_out
    from ...tools_registry.upstream.upstreams import SIGN_INS
    from ..audit.trail import AuditKind
    from ..database import database_of

    if database_of(settings.database_url, home).is_server:
        with opened_sign_ins(home, settings, None) as owned:
            assert owned.operators is not None
            return asyncio.run(owned.operators.sign_out(server))
    removed, revoked = asyncio.run(signed_out(server, home.operators_registry / SIGN_INS))
    if removed:
        with opened_sign_ins(home, settings, None) as owned:
            details = {"server": server.name, "sign_in": server.sign_in.value, "revoked": revoked}
            owned.audit.acted(AuditKind.UPSTREAM_SIGNED_OUT, LOCAL_IDENTITY, details=details)
    return removed, revoked
