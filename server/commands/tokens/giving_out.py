"""`sealab tokens`: gives out, lists and revokes the tokens that `AUTH=tokens` asks for."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...access.names import DEFAULT_SCOPE, principal_name, rights_of, tenant_name
from ...access.token_text import digest_of, new_token
from ...errors import Exit, UsageError
from ...identity import DEFAULT_TENANT, Right
from ..audit.telling import tell
from ..group import Begin, Make, Options, commands_of
from ..terminal import moment, print_error

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ....skills_db.token_store import StoredToken, TokenStore
    from ...home import Home
    from ...settings import Settings
    from ...tenants.sign_outs import SignedOut

_NEVER = "never"
_EXPIRES = "90d"
_LIFE = re.compile(r"([1-9][0-9]{0,5})([mhdw])")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


@dataclass(frozen=True, slots=True)
class _Operators:
    """The operator's home of a command, and its open database."""

    home: Home
    settings: Settings
    database: Database

    @property
    def store(self) -> TokenStore:
        from ....skills_db.token_store import TokenStore

        return TokenStore(self.database)


_Run = Callable[[argparse.Namespace, _Operators], int]


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> None:
    """Give the parser of `sealab tokens` its commands; `options` adds those that all commands have."""

    def start(run: _Run, chosen: argparse.Namespace) -> int:
        from ...tenants.contents import operators_database

        home, settings = begin(chosen)
        with operators_database(settings, home) as database:
            return run(chosen, _Operators(home, settings, database))

    command: Make[_Run] = commands_of(parser, options, start)
    create = command("create", _create, "make a token and print it, this once")
    create.add_argument("name", metavar="NAME", help="what lists call it, such as ci or ada@laptop")
    create.add_argument(
        "--scope",
        metavar="SCOPE",
        action="append",
        help=f"what it may do: {', '.join(Right)}; {DEFAULT_SCOPE} (all but run:process, approve and admin) stands for "
        "those of a token that is given none. Repeat it, or part several by commas",
    )
    create.add_argument(
        "--expires", metavar="TIME", default=_EXPIRES, help=f"how long it counts: 30m, 12h, {_EXPIRES}, 8w or {_NEVER}"
    )
    create.add_argument("--tenant", metavar="TENANT", default=DEFAULT_TENANT, help="the tenant that it belongs to")
    create.add_argument(
        "--principal", metavar="PRINCIPAL", help="whom it stands for, whose sessions and runs it reaches; else NAME"
    )
    command("list", _list, "list all tokens, without the tokens themselves").add_argument(
        "--tenant", metavar="TENANT", help="those of one tenant"
    )
    revoke = command("revoke", _revoke, "have a token count no more, within a second in a running server")
    revoke.add_argument("token", metavar="ID", help="the id of `sealab tokens list`, or a name that only one token has")


def _create(chosen: argparse.Namespace, opened: _Operators) -> int:
    name, tenant = principal_name(chosen.name), tenant_name(chosen.tenant)
    principal = name if chosen.principal is None else principal_name(chosen.principal)
    asked = [part.strip() for scope in chosen.scope or [DEFAULT_SCOPE] for part in scope.split(",")]
    rights = rights_of(asked)
    now = time.time()
    token = new_token()
    made = opened.store.put(
        digest_of(token),
        name=name,
        tenant=tenant,
        principal=principal,
        scopes=[right.value for right in Right if right in rights],
        now=now,
        expires=_end_of(chosen.expires, now),
    )
    tell(chosen, token=made.id, of=made.principal, scopes=" ".join(made.scopes))
    if chosen.json:
        print(json.dumps({"token": token, **_told(made)}))
        return Exit.OK
    print(token, flush=True)
    until = "never expires" if made.expires is None else f"expires at {moment(made.expires)}"
    print(
        f"Token {made.id} of {made.principal} in tenant {made.tenant}: it {until}, and may {' '.join(made.scopes)}. It "
        "is not kept and not shown again.",
        file=sys.stderr,
    )
    return Exit.OK


def _list(chosen: argparse.Namespace, opened: _Operators) -> int:
    told = [_told(each) for each in opened.store.listed(None if chosen.tenant is None else tenant_name(chosen.tenant))]
    if chosen.json:
        print(json.dumps({"count": len(told), "tokens": told}))
        return Exit.OK
    if not told:
        print("There is no token.")
    for each in told:
        used = f"last used {each['last_used']}" if each["last_used"] else "not used"
        print(each["id"], each["name"], f"{each['tenant']}/{each['principal']}", each["state"], used, sep="  ")
        print(f"    {' '.join(each['scopes'])}")  # type: ignore[arg-type]  # they are a list of texts
    return Exit.OK


def _revoke(chosen: argparse.Namespace, opened: _Operators) -> int:
    store, now = opened.store, time.time()
    found = store.named(chosen.token, now)
    if not found:
        raise UsageError(f"There is no token {chosen.token}. `sealab tokens list` shows those that there are.")
    if len(found) > 1:
        ids = ", ".join(each.id for each in found)
        raise UsageError(f"Several tokens are called {chosen.token}. Give the id of one: {ids}.")
    token = found[0]
    revoked = store.revoke(token.id, now)
    tell(chosen, token=token.id, of=token.principal, tenant=token.tenant, was_revoked=not revoked)
    if not chosen.json:
        print(f"{'Revoked' if revoked else 'It was revoked before'}: {token.id}, {token.name}.", flush=True)
    ended = _signed_out(opened, token, now)
    if chosen.json:
        sign_ins = {"ended": ended.sign_ins, "revoked": ended.revoked}
        print(json.dumps({"id": token.id, "revoked": True, "was_revoked": not revoked, "sign_ins": sign_ins}))
    elif ended.sign_ins:
        print(f"Sign-ins of {token.principal} to upstream servers that were ended: {ended.sign_ins}.")
    if ended.not_revoked:
        print_error(
            f"Of these, {ended.not_revoked} were not revoked by their issuers, which could not be reached, have no "
            "endpoint for it, or refused. Revoke them there."
        )
    return Exit.OK


def _signed_out(opened: _Operators, token: StoredToken, now: float) -> SignedOut:
    """End the sign-ins of a token's principal where it has no other token that counts."""
    from ...tenants.sign_outs import SignedOut, principal_signed_out
    from ..audit.opened import trail_beside

    others = opened.store.listed(token.tenant)
    if any(each.principal == token.principal and each.is_valid(now) for each in others):
        return SignedOut()
    home = opened.home.of_tenant(token.tenant)
    with trail_beside(opened.home, opened.settings, lambda: opened.database) as audit:
        return principal_signed_out(
            opened.settings, home, opened.database, token.principal, replace(audit, tenant=token.tenant)
        )


def _end_of(text: str, now: float) -> float | None:
    if text == _NEVER:
        return None
    life = _LIFE.fullmatch(text)
    if life is None:
        raise UsageError(f"{text} is no time. Give one such as 30m, 12h, 90d or 8w, or {_NEVER}.")
    return now + int(life[1]) * _SECONDS[life[2]]


def _told(token: StoredToken) -> dict[str, object]:
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
