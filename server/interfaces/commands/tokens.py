"""`sealab tokens`: gives out, lists and revokes the tokens that `AUTH=tokens` asks for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....skills_db.tokens import TokenStore
from ...base.errors import UsageError
from ...base.identity import DEFAULT_TENANT, Right
from ...governance.access.names import DEFAULT_SCOPE, principal_name, rights_of, tenant_name
from ...governance.access.token_text import digest_of, new_token
from .command import AuditedAs, Group
from .opened import opened_operators, trail_beside
from .terminal import Here, Output, moment, print_error, span_of

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ....skills_db.tokens import StoredToken
    from ...use_cases.tenants.sign_outs import SignedOut

_NEVER = "never"


tokens = Group(opens=opened_operators)


@tokens.command(audit=AuditedAs("token.created"))
def create(
    here: Here,
    database: Database,
    name: str,
    *,
    scope: Sequence[str] = (),
    expires: str = "90d",
    tenant: str = DEFAULT_TENANT,
    principal: str | None = None,
) -> Output:
    """Make a token and print it, this once.

    name: what lists call it, such as ci or ada@laptop
    scope: what it may do: run, run:process, run:container, skills:read, skills:write, tools:read, tools:write, files,
        privacy:restore, approve, admin; default (all but run:process, approve and admin) stands for those of a token
        that is given none. Repeat it, or part several by commas
    expires TIME: how long it counts: 30m, 12h, 90d, 8w or never
    tenant: the tenant that it belongs to
    principal: whom it stands for, whose sessions and runs it reaches; else NAME
    """
    name, tenant = principal_name(name), tenant_name(tenant)
    rights = rights_of([part.strip() for each in scope or [DEFAULT_SCOPE] for part in each.split(",")])
    now, token = time.time(), new_token()
    made = TokenStore(database).put(
        digest_of(token),
        name=name,
        tenant=tenant,
        principal=name if principal is None else principal_name(principal),
        scopes=[right.value for right in Right if right in rights],
        now=now,
        expires=_end_of(expires, now),
    )
    here.audit_details |= {"token": made.id, "of": made.principal, "scopes": " ".join(made.scopes)}
    until = "never expires" if made.expires is None else f"expires at {moment(made.expires)}"

    def shown() -> None:
        print(token, flush=True)
        print_error(
            f"Token {made.id} of {made.principal} in tenant {made.tenant}: it {until}, and may "
            f"{' '.join(made.scopes)}. It is not kept and not shown again."
        )

    return Output({"token": token, **token_json(made)}, shown)


@tokens.command()
def list_(_here: Here, database: Database, *, tenant: str | None = None) -> Output:
    """List all tokens, without the tokens themselves.

    tenant: those of one tenant
    """
    stored = TokenStore(database).listed(None if tenant is None else tenant_name(tenant))
    listed = [token_json(each) for each in stored]

    def shown() -> None:
        for token, each in zip(stored, listed, strict=True):
            used = f"last used {each['last_used']}" if each["last_used"] else "not used"
            print(token.id, token.name, f"{token.tenant}/{token.principal}", each["state"], used, sep="  ")
            print(f"    {' '.join(token.scopes)}")

    return Output({"count": len(listed), "tokens": listed}, shown if listed else "There is no token.")


@tokens.command(audit=AuditedAs("token.revoked"))
def revoke(here: Here, database: Database, token: str) -> Output:
    """Revoke a token, within a second in a running server.

    token ID: the id of `sealab tokens list`, or a name that only one token has
    """
    store, now = TokenStore(database), time.time()
    found = store.named(token, now)
    if not found:
        raise UsageError(f"There is no token {token}. `sealab tokens list` shows those that there are.")
    if len(found) > 1:
        ids = ", ".join(each.id for each in found)
        raise UsageError(f"Several tokens are called {token}. Give the id of one: {ids}.")
    [stored] = found
    revoked = store.revoke(stored.id, now)
    here.audit_details |= {
        "token": stored.id,
        "of": stored.principal,
        "tenant": stored.tenant,
        "was_revoked": not revoked,
    }
    if not here.json:
        print(f"{'Revoked' if revoked else 'It was revoked before'}: {stored.id}, {stored.name}.", flush=True)
    ended = _signed_out(here, database, stored, now)
    if ended.not_revoked:
        print_error(
            f"Of these, {ended.not_revoked} were not revoked by their issuers, which could not be reached, have no "
            "endpoint for it, or refused. Revoke them there."
        )
    sign_ins = {"ended": ended.sign_ins, "revoked": ended.revoked}
    return Output(
        {"id": stored.id, "revoked": True, "was_revoked": not revoked, "sign_ins": sign_ins},
        f"Sign-ins of {stored.principal} to upstream servers that were ended: {ended.sign_ins}."
        if ended.sign_ins
        else (),
    )


def _signed_out(here: Here, database: Database, token: StoredToken, now: float) -> SignedOut:
    """End the sign-ins of a token's principal where it has no other token that counts."""
    from ...use_cases.tenants.sign_outs import SignedOut, principal_signed_out

    others = TokenStore(database).listed(token.tenant)
    if any(each.principal == token.principal and each.is_valid(now) for each in others):
        return SignedOut()
    with trail_beside(here.home, here.settings, lambda: database) as audit:
        own = replace(audit, tenant=token.tenant)
        home = here.home.of_tenant(token.tenant)
        return principal_signed_out(here.settings, home, database, token.principal, own)


def _end_of(text: str, now: float) -> float | None:
    if text == _NEVER:
        return None
    life = span_of(text)
    if not life:
        raise UsageError(f"{text} is no time. Give one such as 30m, 12h, 90d or 8w, or {_NEVER}.")
    return now + life.total_seconds()


def token_json(token: StoredToken) -> dict[str, object]:
    """Return a token as JSON, without the token itself."""
    return {
        "id": token.id,
        "name": token.name,
        "tenant": token.tenant,
        "principal": token.principal,
        "scopes": list(token.scopes),
        "state": _state(token),
        "created": moment(token.created),
        "expires": None if token.expires is None else moment(token.expires),
        "revoked": None if token.revoked is None else moment(token.revoked),
        "last_used": None if token.used is None else moment(token.used),
    }


def _state(token: StoredToken) -> str:
    if token.revoked is not None:
        return "revoked"
    return "valid" if token.is_valid(time.time()) else "expired"
