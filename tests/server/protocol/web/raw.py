"""A client that writes HTTP itself, so that a server can be treated as no library would."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlsplit

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_IDS = count(7)
METADATA = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; `message` is the last JSON-RPC message in it."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def session(self) -> str:
        return self.headers["mcp-session-id"]

    @property
    def message(self) -> dict[str, Any]:
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            data = [line.removeprefix(b"data: ") for line in self.body.splitlines() if line.startswith(b"data: {")]
            return dict(json.loads(data[-1]))
        return dict(json.loads(self.body))


def connected(url: str) -> http.client.HTTPConnection:
    where = urlsplit(url)
    assert where.hostname is not None
    return http.client.HTTPConnection(where.hostname, where.port, timeout=30)


def plugged(url: str) -> socket.socket:
    """A connection over which nothing has been sent."""
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), timeout=30)


def read(connection: http.client.HTTPConnection) -> Answer:
    """Read the answer and close the connection."""
    try:
        answer = connection.getresponse()
        return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def post(url: str, message: object = INITIALIZE, **headers: str) -> Answer:
    return read(begun(url, message, **headers))


def begun(url: str, message: object, **headers: str) -> http.client.HTTPConnection:
    """Send a request and do not wait for its answer."""
    connection = connected(url)
    given = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("POST", "/mcp", json.dumps(message), given)
    return connection


def opened(url: str, **headers: str) -> str:
    """Open a session and return its id."""
    answer = post(url, INITIALIZE, **headers)
    assert answer.status == 200, answer
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(url, initialized, mcp_session_id=answer.session, **headers).status == 202
    return answer.session


def call(code: str, **more: object) -> dict[str, Any]:
    arguments = {"code": code, "timeout_seconds": 60, **more}
    return {
        "jsonrpc": "2.0",
        "id": next(_IDS),
        "method": "tools/call",
        "params": {"name": "execute_code", "arguments": arguments, "_meta": METADATA},
    }


MODERN = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "execute_code"}


def run(url: str, code: str, **headers: str) -> Answer:
    """Run code as a client of the newer protocol does."""
    return post(url, call(code), **MODERN, **headers)


def get(url: str, path: str) -> Answer:
    return asked(url, "GET", path)


def asked(url: str, method: str, path: str = "/mcp", **headers: str) -> Answer:
    connection = connected(url)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return read(connection)
