"""Tells clients how to authenticate: `WWW-Authenticate` (RFC 6750, 3) and protected resource metadata (RFC 9728)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ....base.identity import Right
from ....governance.access.names import DEFAULT_RIGHTS

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_METHODS = ("GET", "HEAD")
_KEPT_SECONDS = 3600


class ResourceMetadata:
    """What clients learn, and at which paths.

    `mcp_url` is where MCP is served. The resource, for which clients ask the issuer for a token (RFC 8707), is the
    audience of tokens where that is a URL, else `mcp_url`. The metadata is at the well-known path with the resource's
    path behind it (RFC 9728, 3.1), with that of MCP, where clients look that were not challenged, and with none.
    """

    def __init__(self, mcp_url: str, audience: str, issuer: str) -> None:
        resource = audience if audience.startswith(("https://", "http://")) else mcp_url
        parts = urlsplit(resource)
        path = parts.path.removesuffix("/")
        self.url = f"{parts.scheme}://{parts.netloc}{_WELL_KNOWN}{path}"
        """Where clients find it, as a challenge says (RFC 9728, 5.1)."""
        self.paths = frozenset({_WELL_KNOWN, _WELL_KNOWN + path, _WELL_KNOWN + urlsplit(mcp_url).path})
        self.content = {
            "resource": resource,
            "authorization_servers": [issuer],
            # What a client asks for at first; more it asks for upon a challenge (MCP 2025-11-25, Scope Selection).
            "scopes_supported": [right.value for right in Right if right in DEFAULT_RIGHTS],
            "bearer_methods_supported": ["header"],
            "resource_name": "sealab",
        }


class MetadataPages:
    """An ASGI app before another: it serves the metadata to everybody, without a token."""

    def __init__(self, app: ASGIApp, metadata: ResourceMetadata) -> None:
        self._app = app
        self._paths = metadata.paths
        self._body = json.dumps(metadata.content)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"] not in self._paths:
            await self._app(scope, receive, send)
        elif scope["method"] not in _METHODS:
            await Response(status_code=405, headers={"Allow": ", ".join(_METHODS)})(scope, receive, send)
        else:
            headers = {"Cache-Control": f"max-age={_KEPT_SECONDS}"}
            await Response(self._body, headers=headers, media_type="application/json")(scope, receive, send)


def challenge(*, error: str | None = None, rights: Iterable[Right] = (), metadata_url: str | None = None) -> str:
    """Return the header; `error` is a code of RFC 6750, 3.1, and `rights` are the scopes that the request needs."""
    said = ['realm="sealab"']
    if error is not None:
        said.append(f'error="{error}"')
    if needed := " ".join(rights):
        said.append(f'scope="{needed}"')
    if metadata_url is not None:
        said.append(f'resource_metadata="{metadata_url}"')
    return f"Bearer {', '.join(said)}"
