"""Whose a request's tokens and runs are.

A security boundary: two callers that must not read each other's tokens or runs must get two scopes. Over the standard
streams there is one caller, who started the process: the scope is the home's, as for the command line. Over HTTP a
caller is known by its identity where the server authenticates, else by the credentials that it sends, else by its MCP
session; callers that send neither cannot be distinguished, and share one scope that is not the home's.

A scope of a session alone ends with it, since it cannot be named again: what the vault keeps for it is brief.

What callers with credentials of their own call a session is theirs too. Others name the same sessions: who has nothing
but a connection may come back over another one.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from ...sandbox.job import Owner
from ..base.errors import RequestRefused
from ..base.identity import BEARER, DEFAULT_TENANT, LOCAL_IDENTITY, Identity, identity_from, identity_in
from .caller import LOCAL, Caller

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_CREDENTIALS = "http credentials "
_PRINCIPAL = "principal "
_SESSION = "http session "
_MARK_CHARS = 16
_SESSION_NAME = re.compile(r"[\w.-]{1,64}")


def caller_of(ctx: ServerRequestContext[Any, Any]) -> Caller:
    """Return who sends a request, who cannot be asked yet."""
    if ctx.request is None:  # it came over the standard streams
        return LOCAL
    identity = _identity_of(ctx)
    bearer = getattr(ctx.request, "scope", {}).get(BEARER, "") if identity is not None else ""
    return Caller(scope_of(ctx), identity=identity or LOCAL_IDENTITY, origin=_origin_of(ctx), bearer=bearer)


def _origin_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """Return the address to which a request was sent; `NamedHosts` has judged it. Empty where it came over no HTTP."""
    headers, url = getattr(ctx.request, "headers", None), getattr(ctx.request, "url", None)
    return "" if headers is None or url is None else f"{url.scheme}://{headers['host']}"


def scope_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """Return the scope of a request."""
    headers = getattr(ctx.request, "headers", None)
    if headers is None:
        return LOCAL.scope
    if (identity := _identity_of(ctx)) is not None:
        return of_principal(identity.principal)
    if credentials := headers.get("authorization"):
        return f"{_CREDENTIALS}{hashlib.sha256(credentials.encode()).hexdigest()}"
    if session := headers.get("mcp-session-id"):
        return f"{_SESSION}{session}"
    return "http"


def owner_of(ctx: ServerRequestContext[Any, Any]) -> Owner:
    """Return whose turn work for a request takes."""
    identity = _identity_of(ctx)
    return Owner("" if identity is None else identity.tenant, scope_of(ctx))


def kept_identity(stored: object, scope: str) -> Identity:
    """Return whose a run is that was kept with its scope; one that goes on has the rights that it began with.

    A run of which no identity can be read has no rights.
    """
    return identity_from(stored) or Identity(DEFAULT_TENANT, scope.removeprefix(_PRINCIPAL), frozenset())


def _identity_of(ctx: ServerRequestContext[Any, Any]) -> Identity | None:
    return identity_in(getattr(ctx.request, "scope", {}))


def tokens_of(scope: str) -> str:
    """Return the scope whose tokens the callers of a scope have.

    All principals of a tenant have the same, which its vault keeps apart from those of others by a key of its own.
    """
    return LOCAL.scope if scope.startswith(_PRINCIPAL) else scope


def is_principal(scope: str) -> bool:
    """Return whether a scope is that of a caller whom the server has authenticated."""
    return scope.startswith(_PRINCIPAL)


def connection_of(ctx: ServerRequestContext[Any, Any]) -> str | None:
    """Return what marks the connection of a request among those of the process; None where a request has none."""
    headers = getattr(ctx.request, "headers", None)
    return "" if headers is None else headers.get("mcp-session-id")


def principal_of(scope: str) -> str:
    """Return the principal that a scope names, for the audit; of credentials and sessions a mark that opens nothing."""
    if scope == LOCAL.scope:
        return LOCAL_IDENTITY.principal
    if scope.startswith(_PRINCIPAL):
        return scope.removeprefix(_PRINCIPAL)
    for start, kind in ((_CREDENTIALS, "credentials"), (_SESSION, "session")):
        if scope.startswith(start):
            return f"{kind}:{hashlib.sha256(scope.encode()).hexdigest()[:_MARK_CHARS]}"
    return scope


def is_brief(scope: str) -> bool:
    """Return whether a scope is that of one MCP session, and ends with it."""
    return scope.startswith(_SESSION)


def is_one_user(scope: str) -> bool:
    """Return whether a scope is that of one user alone, and of the same one tomorrow."""
    return scope == LOCAL.scope or scope.startswith((_CREDENTIALS, _PRINCIPAL))


def of_principal(principal: str) -> str:
    """Return the scope of a principal, whichever of its tokens it sends."""
    return f"{_PRINCIPAL}{principal}"


def of_mcp_session(session: str) -> str:
    """Return the scope of callers that are known by an MCP session alone."""
    return f"{_SESSION}{session}"


def mcp_session_of(scope: str) -> str:
    """Return the MCP session that a scope stands for which `is_brief`."""
    return scope.removeprefix(_SESSION)


def session_of(scope: str, name: str) -> str:
    """Return what the sandbox calls the session that the callers of a scope call `name`. Raises `RequestRefused`.

    A name has no `/`, so none that a caller gives stands for a session of other credentials.
    """
    if not _SESSION_NAME.fullmatch(name):
        raise RequestRefused(
            "The session's name cannot be used. Give 1 to 64 letters, digits, dots, dashes or underscores."
        )
    if "\0" in scope:  # which parts tenants from what theirs is
        raise RequestRefused("The principal's name cannot be used, since it has a NUL character. Use another token.")
    owner = scope.removeprefix(_CREDENTIALS).removeprefix(_PRINCIPAL)
    return name if owner == scope else f"{owner}/{name}"
