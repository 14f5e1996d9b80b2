"""Where other servers of the same sealab reach this one, and nobody else: one path, and a seal on each request.

A security boundary: what comes through here counts as authenticated by the server that sends it, with the identity that
stands in it. So it needs a seal (`replicas.seals`), which is judged before anything of the body is read, and which the
whole body has to match. The identity is judged again by all that follows: its rights, its tenant, the policy.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....base.identity import BEARER, IDENTITY, identity_from
from ....governance.rights import REPLICA_PATH as PATH
from ....use_cases.replicas.seals import (
    ANSWER_HEADER,
    ERA_HEADER,
    HEADER,
    EraPassed,
    OpenedSeal,
    SealRefused,
    WrongReceiver,
    answer_mark,
)
from ..web.admission import BODY_BYTES_MAX, giving, whole
from ..web.callers import header
from ..web.error_responses import refusal
from .forwarding import FORWARDED, MCP

if TYPE_CHECKING:
    from ....use_cases.replicas.replicas import Replicas
    from .peer_calls import PeerCalls

HEAD_BYTES_MAX = 2 * BODY_BYTES_MAX
"""What stands before the body of a request, which holds a whole program where one is to run here."""
_LOG = logging.getLogger(__name__)
_LOG_SECONDS = 60.0


class Door:
    """An ASGI app before all others: it gives what other servers send on to `inner`, and what they ask to `calls`."""

    def __init__(self, app: ASGIApp, inner: ASGIApp, calls: PeerCalls, replicas: Replicas, mcp_path: str) -> None:
        self._app = app
        self._inner = inner
        self._calls = calls
        self._replicas = replicas
        self._mcp_path = mcp_path
        self._warned = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        seal_text = (header(scope, HEADER.encode()) or b"").decode("latin-1")
        try:
            seal = self._replicas.seals.opened(
                seal_text,
                now=self._replicas.membership.now(),
                method=scope["method"],
                path=PATH,
            )
        except EraPassed as error:  # its sender makes it anew
            again = refusal(409, f"The seal of the request is to be made anew. {error}")
            again.headers[ERA_HEADER] = self._replicas.seals.era
            await again(scope, receive, send)
            return
        except SealRefused as error:
            status = 421 if isinstance(error, WrongReceiver) else 403
            self._warn(error)
            await refusal(status, f"The seal of the request cannot be taken. {error}")(scope, receive, send)
            return
        send = self._marked(seal_text, send)
        read = await _read(receive, seal)
        if read is None:
            await refusal(403, "The request is not the one that was sealed, or too large.")(scope, receive, send)
            return
        head, body = read
        if head.get("kind") == MCP:
            await self._inner(self._as_sent(scope, head), giving(body, receive), send)
        else:
            await self._calls(head, scope, receive, send)

    def _marked(self, seal: str, send: Send) -> Send:
        """Return what sends an answer with the mark of a server that has the key."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                mark = answer_mark(self._replicas.keys.seal, seal, message["status"])
                headers = [*message.get("headers", []), (ANSWER_HEADER.encode(), mark.encode())]
                message = {**message, "headers": headers}
            await send(message)

        return sent

    def _warn(self, error: SealRefused) -> None:
        """Log a refusal, of many one now and then: whoever reaches the port can have requests refused."""
        now = time.monotonic()
        if now - self._warned >= _LOG_SECONDS:
            self._warned = now
            _LOG.warning("Requests are refused that come as if from another server of this sealab: %s", error)

    def _as_sent(self, scope: Scope, head: Mapping[str, Any]) -> Scope:
        """Return the request as the other server got it, with whom that has authenticated."""
        client, identity = head["client"], identity_from(head["identity"])
        sent: Scope = {
            **scope,
            "path": self._mcp_path,
            "raw_path": self._mcp_path.encode(),
            "query_string": b"",
            "scheme": head["scheme"],
            "client": None if client is None else tuple(client),
            "headers": [(key.encode("latin-1"), value.encode("latin-1")) for key, value in head["headers"]],
            FORWARDED: True,
        }
        if identity is not None:
            sent[IDENTITY] = identity
            if bearer := self._replicas.keys.opened_bearer(head["bearer"]):
                sent[BEARER] = bearer
        return sent


async def _read(receive: Receive, seal: OpenedSeal) -> tuple[Mapping[str, Any], bytes] | None:
    """Return the head and the body of a request; None where they are not what was sealed."""
    content = await whole(receive, HEAD_BYTES_MAX + BODY_BYTES_MAX)
    if content is None or not seal.covers(content):
        return None
    head, _, body = content.partition(b"\n")
    try:
        found = json.loads(head)
    except (ValueError, RecursionError):
        return None
    return (found, body) if isinstance(found, dict) else None
