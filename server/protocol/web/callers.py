"""Whom a bound counts an HTTP request for: its credentials, else the address that it comes from.

Not a security boundary: `scopes` decides what a caller may read.
"""

from __future__ import annotations

import hashlib

from starlette.types import Scope


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the first header of that name, which is in lower case."""
    return next((value for key, value in scope["headers"] if key == name), None)


def caller_of(scope: Scope) -> str:
    """Return who sends a request."""
    if credentials := header(scope, b"authorization"):
        return hashlib.sha256(credentials).hexdigest()
    client = scope.get("client")
    return "" if client is None else str(client[0])
