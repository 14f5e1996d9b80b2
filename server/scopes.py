"""Whose vault a request's tokens belong to.

A security boundary: two callers that must not read each other's tokens must get two scopes. Over the standard streams
there is one caller, whoever started the process: the scope is the home's, as for the command line. Over HTTP a caller
is told by the credentials that it sends, else by its MCP session; callers that send neither cannot be told apart, and
share one scope that is not the home's.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from .caller import LOCAL

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext


def scope_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """Return the scope of a request."""
    headers = getattr(ctx.request, "headers", None)
    if headers is None:
        return LOCAL.scope
    if credentials := headers.get("authorization"):
        return f"http credentials {hashlib.sha256(credentials.encode()).hexdigest()}"
    if session := headers.get("mcp-session-id"):
        return f"http session {session}"
    return "http"
