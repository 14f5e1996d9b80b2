"""Tells clients where to get a token: protected resource metadata (RFC 9728), and the challenge that points to it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..identity import Right

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_METHODS = ("GET", "HEAD")
_KEPT_SECONDS = 3600


class ResourceMetadata:
    """An ASGI app before another: it serves the metadata to everybody, without a token.

    `resource` is the URL of MCP as clients know it, which they also ask the issuer for (RFC 8707). The metadata is at
    the well-known path with that URL's path behind it (RFC 9728, 3.1), and without it, where older clients look.
    """

    def __init__(self, app: ASGIApp, resource: str, issuer: str) -> None:
        self._app = app
        parts = urlsplit(resource)
        path = parts.path.removesuffix("/")
        self._paths = frozenset({_WELL_KNOWN, _WELL_KNOWN + path})
        self.url = f"{parts.scheme}://{parts.netloc}{_WELL_KNOWN}{path}"
        """Where clients find it."""
        self._body = json.dumps(
            {
                "resource": resource,
                "authorization_servers": [issuer],
                "scopes_supported": [right.value for right in Right],
                "bearer_methods_supported": ["header"],
                "resource_name": "sealab",
            }
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
        elif scope["method"] not in _METHODS:
            await Response(status_code=405, headers={"Allow": ", ".join(_METHODS)})(scope, receive, send)
        else:
            headers = {"Cache-Control": f"max-age={_KEPT_SECONDS}"}
            await Response(self._body, headers=headers, media_type="application/json")(scope, receive, send)


def challenge(metadata_url: str | None = None, *, error: str | None = None, scopes: Iterable[str] = ()) -> str:
    """Return the value of `WWW-Authenticate` (RFC 6750, 3; RFC 9728, 5.1).

    `error` is `invalid_token`, `insufficient_scope` or `invalid_request`, and None where no token was sent. `scopes`
    are those that the request needs.
    """
    wanted = " ".join(sorted(scopes))
    given = {"error": error, "scope": wanted or None, "resource_metadata": metadata_url}
    said = ", ".join(f'{name}="{value}"' for name, value in given.items() if value is not None)
    return f"Bearer {said}" if said else "Bearer"
