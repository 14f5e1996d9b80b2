"""`sealab servers sign-out`: forgets a sign-in to an upstream server, and has its issuer revoke what it gave."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import Exit, UsageError
from ...home import Home
from ..group import Parser
from ..terminal import print_error

if TYPE_CHECKING:
    from ....tools_registry.authorizing.owners import Owner
    from ....tools_registry.configuration import ServerConfig
    from ...settings import Settings
    from ...sign_ins.sign_ins import SignIns

WHO = "whose sign-in, of a server that is called with those of its callers: a principal's (default: the local user's)"


@dataclass(frozen=True, slots=True)
class OwnedSignIns:
    """The sign-ins of a home, and whose of those a command is about: a principal's, or the local user's."""

    sign_ins: SignIns
    who: str | None

    def owner(self, server: ServerConfig) -> Owner:
        """Return the owner of the sign-in to a server that is not called with the operator's. Raises `UsageError`."""
        from ....tools_registry.configuration import SignInOf
        from ...caller import LOCAL, Caller
        from ...scopes import of_principal

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
        return self.sign_ins.owner(server, LOCAL if self.who is None else Caller(of_principal(self.who)))


@contextmanager
def opened_sign_ins(home: Home, settings: Settings, who: str | None) -> Iterator[OwnedSignIns]:
    """Open the sign-ins of a home for a command."""
    from ...database import HomeDatabase
    from ...privacy.privacy import Privacy
    from ...sign_ins.sign_ins import SignIns

    home.prepare()
    database = HomeDatabase(settings.database_url, home.root)
    privacy = Privacy(settings, home.root, database)
    try:
        yield OwnedSignIns(SignIns(database, privacy.key), who)
    finally:
        privacy.close()
        database.close()


def add_options(parser: Parser) -> None:
    """Give the parser of the command its options."""
    parser.add_argument("name", metavar="NAME", help="the server")
    parser.add_argument("--who", metavar="PRINCIPAL", help=WHO)


def run(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    """Forget the sign-in and print what became of it; fail where there was none."""
    from ....tools_registry.configuration import SignInOf, read

    server = read(home.servers_file, os.environ).server(chosen.name)
    if server.sign_in is SignInOf.OPERATOR:
        if chosen.who is not None:
            raise UsageError(
                f"The server {chosen.name!r} is called with the operator's sign-in. Leave --who out to end that."
            )
        removed, revoked = asyncio.run(_operator_signed_out(server, home))
    else:
        with opened_sign_ins(home, settings, chosen.who) as owned:
            removed, revoked = asyncio.run(owned.sign_ins.sign_out(server, owned.owner(server)))
    if chosen.json:
        print(json.dumps({"name": chosen.name, "signed_out": removed, "revoked": revoked}))
    elif not removed:
        print_error(f"Nobody is signed in to {chosen.name} so. Name the principal with --who.")
    else:
        also = "its issuer revoked it" if revoked else "its issuer could not be told, or has no such endpoint"
        print(f"Signed out of {chosen.name}: {also}.")
    return Exit.OK if removed else Exit.FAILED


async def _operator_signed_out(server: ServerConfig, home: Home) -> tuple[bool, bool]:
    from ....tools_registry.upstream.sign_in import signed_out
    from ....tools_registry.upstream.upstreams import SIGN_INS

    return await signed_out(server, home.registry / SIGN_INS)
