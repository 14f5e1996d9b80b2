"""Whose a request's tokens and runs are.

A security boundary: two callers that must not read each other's tokens or runs must get two scopes. Over the standard
streams there is one caller, whoever started the process: the scope is the home's, as for the command line. Over HTTP a
caller is told by the credentials that it sends, else by its MCP session; callers that send neither cannot be told
apart, and share one scope that is not the home's.

What callers with credentials of their own call a session is theirs too. Others name the same sessions: who has nothing
but a connection may come back over another one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from .caller import LOCAL

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_CREDENTIALS = "http credentials "


def scope_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """Return the scope of a request."""
    headers = getattr(ctx.request, "headers", None)
    if headers is None:
        return LOCAL.scope
    if credentials := headers.get("authorization"):
        return f"{_CREDENTIALS}{hashlib.sha256(credentials.encode()).hexdigest()}"
    if session := headers.get("mcp-session-id"):
        return f"http session {session}"
    return "http"


def session_of(scope: str, name: str) -> str:
    """Return what the sandbox calls the session that the callers of a scope call `name`."""
    owner = scope.removeprefix(_CREDENTIALS)
    return name if owner == scope else f"{owner}/{name}"
