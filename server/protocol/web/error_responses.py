"""What is answered in place of MCP where something is too much, too slow, or no longer there."""

from __future__ import annotations

import json

from mcp.types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.responses import Response

_CLIENT_FAULT_MAX = 499


def refusal(status: int, message: str, *, retry_after: int | None = None, challenge: str | None = None) -> Response:
    """Return an HTTP error whose body is a JSON-RPC error, which clients show; `challenge` says how to authenticate."""
    code = INVALID_REQUEST if status <= _CLIENT_FAULT_MAX else INTERNAL_ERROR
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if challenge is not None:
        headers["WWW-Authenticate"] = challenge
    return Response(json.dumps(body), status_code=status, headers=headers, media_type="application/json")
