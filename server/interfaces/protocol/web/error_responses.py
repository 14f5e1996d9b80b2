"""What is answered in place of MCP where something is too much, too slow, or no longer there."""

from __future__ import annotations

import json

from mcp.types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CLIENT_FAULT_MAX = 499


def refusal(status: int, message: str, *, retry_after: int | None = None, challenge: str | None = None) -> Response:
    """Return an HTTP error whose body is a JSON-RPC error, which clients show; `challenge` says how to authenticate."""
    code = INVALID_REQUEST if status <= _CLIENT_FAULT_MAX else INTERNAL_ERROR
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if challenge is not None:
        headers["WWW-Authenticate"] = challenge
    return Response(json.dumps(body), status_code=status, headers=headers, media_type="application/json")


class Answering:
    """The answer to a request, which may have to be ended by others than whoever gives it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_started = False
        self.is_complete = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        self._is_started = True
        self.is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def end(self, instead: ASGIApp, scope: Scope, receive: Receive) -> None:
        """End the answer as it stands; where nothing of it was sent, `instead` answers."""
        if not self._is_started:
            await instead(scope, receive, self._send)
        elif not self.is_complete:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
