"""Sends an HTTP request on to the server that has what it names, and its answer back, as both come.

Two things are in the memory of one server alone: an MCP session of 2025, and a call of 2026 that waits for its user.
What names neither goes on here, as does everything that has been sent on once: there is one hop, never two.

A security boundary: the id of an MCP session counts only with the signature of a server of this sealab; see
`mcp_sessions` for whose it is. Here the caller has been authenticated, and goes along with what is sent.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from mcp.types import INTERNAL_ERROR
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....base.identity import BEARER, identity_in, identity_json
from ....use_cases.replicas.peer_link import PeerLost, PeerRefused, PeerUnreached
from ....use_cases.replicas.seals import ANSWER_HEADER, ERA_HEADER, HEADER
from ..web.admission import left
from ..web.callers import header
from ..web.error_responses import refusal
from .request_states import replica_in

if TYPE_CHECKING:
    from .....skills_db.replicas import ReplicaRow
    from ....use_cases.replicas.peer_link import PeerAnswer
    from ....use_cases.replicas.replicas import Replicas

FORWARDED = "sealab.forwarded"
"""The key in the ASGI scope of a request that another server has sent on."""
MCP = "mcp"
"""The kind of what is sent on."""
_SESSION = b"mcp-session-id"
_VERSION = b"mcp-protocol-version"
_NOT_SENT = frozenset(
    {b"connection", b"transfer-encoding", b"date", b"server", b"keep-alive", b"content-length"}
    | {each.encode() for each in (HEADER, ERA_HEADER, ANSWER_HEADER)}
)
_NOT_FOUND = "Session not found. Initialize a new one."
_LOST = (
    "The server that had this call at work went away before it answered. What the call had done by then may stand, "
    "calls of other tools included: look before you make it again."
)


class Forwarding:
    """An ASGI app before the tenants' own, behind authentication and one that gives each body whole."""

    def __init__(self, app: ASGIApp, replicas: Replicas) -> None:
        self._app = app
        self._replicas = replicas

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request here, or have another server do it."""
        session_id = header(scope, _SESSION)
        version = header(scope, _VERSION)
        if version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._modern(scope, receive, send, session_id)
        elif session_id is None:
            await self._app(scope, receive, self._named(send))
        else:
            await self._in_session(scope, receive, send, session_id)

    async def _in_session(self, scope: Scope, receive: Receive, send: Send, session_id: bytes) -> None:
        opened = self._replicas.keys.opened_mcp_id(session_id.decode("latin-1"))
        if opened is None:
            await refusal(404, _NOT_FOUND)(scope, receive, send)
        elif opened[0] == self._replicas.membership.id:
            await self._app(_with_session(scope, opened[1]), receive, self._named(send))
        elif scope.get(FORWARDED) or (peer := await self._peer(opened[0], is_signed=True)) is None:
            await refusal(404, _NOT_FOUND)(scope, receive, send)
        else:
            await self._forwarded(peer, scope, receive, send, gone=404)

    async def _modern(self, scope: Scope, receive: Receive, send: Send, session_id: bytes | None) -> None:
        if session_id is not None:  # which the protocol has not; an id of an own session would still count
            opened = self._replicas.keys.opened_mcp_id(session_id.decode("latin-1"))
            is_own = opened is not None and opened[0] == self._replicas.membership.id
            scope = _with_session(scope, opened[1] if opened is not None and is_own else None)
        if scope["method"] != "POST" or scope.get(FORWARDED):
            await self._app(scope, receive, send)
            return
        message = await receive()
        replica = replica_in(message.get("body", b"")) if not message.get("more_body", False) else None
        given = [message]

        async def received() -> Message:
            return given.pop() if given else await receive()

        if (
            replica is None
            or replica == self._replicas.membership.id
            or (peer := await self._peer(replica, is_signed=False)) is None
        ):
            await self._app(scope, received, send)  # of one whose server is gone it is said here
        else:
            await self._forwarded(peer, scope, received, send, gone=503)

    async def _peer(self, replica: str, *, is_signed: bool) -> ReplicaRow | None:
        """Return a server that is alive; one that has just joined is looked for in the database.

        A name that is not signed may be made up, and is not looked for each time.
        """
        membership = self._replicas.membership
        if (peer := membership.other(replica)) is None and not membership.knows_dead(replica):
            await membership.look_soon(at_once=is_signed)
            peer = membership.other(replica)
        return peer

    def _named(self, send: Send) -> Send:
        """Return what sends an answer with the id of its session as clients know it."""
        replicas = self._replicas

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    (key, replicas.keys.mcp_id(replicas.membership.id, value.decode("latin-1")).encode())
                    if key.lower() == _SESSION
                    else (key, value)
                    for key, value in message.get("headers", [])
                ]
            await send(message)

        return sent

    async def _forwarded(self, peer: ReplicaRow, scope: Scope, receive: Receive, send: Send, *, gone: int) -> None:
        body = b""
        if scope["method"] == "POST":
            message = await receive()
            body = message.get("body", b"")
        answer = _PassedOn(send, body if scope["method"] == "POST" else None)
        working = asyncio.create_task(self._exchanged(peer, scope, body, answer))
        leaving = asyncio.create_task(left(receive))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        except PeerUnreached as error:
            seconds = round(self._replicas.membership.lease_seconds)
            text = (
                "The server that has this session or call cannot be reached now, so nothing of it was done. Try again."
            )
            is_gone = isinstance(error, PeerRefused) and gone == 404  # noqa: PLR2004 - the status
            unreached = refusal(404, _NOT_FOUND) if is_gone else refusal(503, text, retry_after=seconds)
            await unreached(scope, receive, send)
        except PeerLost:
            await answer.lost(scope, receive)
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)

    async def _exchanged(self, peer: ReplicaRow, scope: Scope, body: bytes, answer: _PassedOn) -> None:
        identity = identity_in(scope)
        head = {
            "kind": MCP,
            "headers": [[key.decode("latin-1"), value.decode("latin-1")] for key, value in scope["headers"]],
            "client": scope.get("client"),
            "scheme": scope["scheme"],
            "identity": None if identity is None else identity_json(identity),
            "bearer": self._replicas.keys.sealed_bearer(scope.get(BEARER, "")),
        }
        await self._replicas.link.reach(peer)
        async with self._replicas.link.sent(peer, scope["method"], head, body) as answered:
            await answer.pass_on(answered)


class _PassedOn:
    """The answer to a client, as far as it has come."""

    def __init__(self, send: Send, body: bytes | None) -> None:
        self._send = send
        self._body = body
        self._started = False
        self._streams = False

    async def pass_on(self, answered: PeerAnswer) -> None:
        """Send what comes from another server. Raises `PeerLost`."""
        headers = [(key.lower(), value) for key, value in answered.headers if key.lower() not in _NOT_SENT]
        self._streams = any(key == b"content-type" and value.startswith(b"text/event-stream") for key, value in headers)
        self._started = True
        await self._send({"type": "http.response.start", "status": answered.status, "headers": headers})
        async for piece in answered.body:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def lost(self, scope: Scope, receive: Receive) -> None:
        """Send that the other server went away: as an answer, or as the last message of a stream that has begun."""
        if not self._started:
            await refusal(502, _LOST)(scope, receive, self._send)
            return
        last = b""
        if self._streams and (call := _id_in(self._body)) is not None:
            said = {"jsonrpc": "2.0", "id": call, "error": {"code": INTERNAL_ERROR, "message": _LOST}}
            last = f"event: message\r\ndata: {json.dumps(said)}\r\n\r\n".encode()
        await self._send({"type": "http.response.body", "body": last, "more_body": False})


def _id_in(body: bytes | None) -> object:
    try:
        read = json.loads(body or b"")
    except (ValueError, RecursionError):
        return None
    found = read.get("id") if isinstance(read, dict) else None
    return found if isinstance(found, str | int) else None


def _with_session(scope: Scope, name: str | None) -> Scope:
    """Return a request with another id of its session, or without one."""
    headers = [(key, value) for key, value in scope["headers"] if key != _SESSION]
    if name is not None:
        headers.append((_SESSION, name.encode("latin-1")))
    return {**scope, "headers": headers}
