"""Who sends an HTTP request, as bounds count and as MCP sessions know it.

What a caller may read, `scopes` decides.
"""

from __future__ import annotations

import hashlib

from starlette.types import Scope

from .....sandbox.job import Owner
from ....base.identity import identity_in


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the first header of that name, which is in lower case."""
    return next((value for key, value in scope["headers"] if key == name), None)


def credentials_of(scope: Scope) -> str:
    """Return a mark of whom a request's credentials stand for; empty where there are none.

    With an identity it is that, since a principal's next token stands for the same one.
    """
    if (identity := identity_in(scope)) is not None:
        return f"{identity.tenant}/{identity.principal}"
    credentials = header(scope, b"authorization")
    return hashlib.sha256(credentials).hexdigest() if credentials else ""


def caller_of(scope: Scope) -> str:
    """Return whom a bound counts a request for: its credentials, else the address that it comes from."""
    return credentials_of(scope) or address_of(scope)


def address_of(scope: Scope) -> str:
    """Return the address that a request came from; empty where none is known."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


def owner_of(scope: Scope) -> Owner:
    """Return whose turn a request takes: a principal of its tenant, else a caller of the only tenant there is."""
    if (identity := identity_in(scope)) is not None:
        return Owner(identity.tenant, identity.principal)
    return Owner(caller=caller_of(scope))
