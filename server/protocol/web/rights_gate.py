"""Security boundary: a message of MCP that needs a right which its sender lacks is answered 403, with the scope.

The body is read as the SDK reads it: by `json` for a version of the protocol without sessions, by pydantic before. The
last of duplicate keys counts in both. Whatever the SDK would take for a request or a response is judged, and all
messages of a list, though the SDK takes none. What cannot be read is none to the SDK either. Nothing depends on this
gate alone: tools and methods judge for themselves what reaches them (`RightsOfMessages`, `StrictTool`), and sessions
whose it is (`McpSessions`); it is here because only an HTTP answer can tell an OAuth client which scope to ask for
(RFC 6750, 3.1; MCP 2025-11-25, Scope Challenge Handling).
"""

from __future__ import annotations

import json
from collections import deque

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import TypeAdapter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...audit.trail import UNAUDITED, AuditTrail, DenialReason
from ...identity import ALL_RIGHTS, Right, identity_in
from ...rights import missing, needed_by, needed_to_answer
from .access_lines import AccessLines
from .callers import header
from .challenges import MetadataUrl, challenge
from .error_responses import refusal

_VERSION = b"mcp-protocol-version"
_ANYTHING: TypeAdapter[object] = TypeAdapter(object)


class RightsGate:
    """An ASGI app before the SDK's, behind one that gives each body whole; with `metadata` it is OAuth's."""

    def __init__(self, app: ASGIApp, metadata: MetadataUrl | None = None, audit: AuditTrail = UNAUDITED) -> None:
        self._app = app
        self._lines = AccessLines(audit)
        self._metadata = metadata

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        identity = identity_in(scope) if scope["type"] == "http" else None
        if identity is None or identity.rights == ALL_RIGHTS or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        messages: deque[Message] = deque()
        body = bytearray()
        more = True
        while more:
            message = await receive()
            messages.append(message)
            body += message.get("body", b"")
            more = message["type"] == "http.request" and message.get("more_body", False)
        lacks = list(missing(identity, needed_in(bytes(body), header(scope, _VERSION))))
        if lacks:
            text = f"This needs the scope {' '.join(lacks)}, which the token does not have. Use one that was given it."
            said = challenge(scope, error="insufficient_scope", rights=lacks, metadata=self._metadata)
            answer = await self._lines.denied(
                scope,
                refusal(403, text, challenge=said),
                status=403,
                reason=DenialReason.SCOPE,
                identity=identity,
                lacks=" ".join(lacks),
            )
            await answer(scope, receive, send)
            return

        async def received() -> Message:
            return messages.popleft() if messages else await receive()

        await self._app(scope, received, send)


def needed_in(body: bytes, version: bytes | None) -> tuple[Right, ...]:
    """Return the rights that the messages of a body need, which is sent with that header of a version, each once."""
    try:
        if version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS:
            read = json.loads(body)
        else:
            read = _ANYTHING.validate_json(body)
    except (ValueError, RecursionError):
        return ()
    messages = read if isinstance(read, list) else [read]
    needed = [
        right
        for message in messages
        if isinstance(message, dict)
        for right in (
            *needed_by(message.get("method"), message.get("params")),
            *needed_to_answer(message.get("result")),
        )
    ]
    return tuple(dict.fromkeys(needed))
