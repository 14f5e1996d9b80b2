"""A server for a team: principals with tokens of their own, and what each of them gets to see."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..command_line import Ended, sealab
from ..conftest import http_server

_VERSION = "2026-07-28"


@dataclass(frozen=True)
class Reply:
    """An HTTP answer: its status, and the JSON-RPC message in it, if there is one."""

    status: int
    text: str

    @property
    def message(self) -> dict[str, Any]:
        data = [line.removeprefix("data: ") for line in self.text.splitlines() if line.startswith("data: {")]
        return dict(json.loads(data[-1] if data else self.text))

    @property
    def failed(self) -> bool:
        return self.status != 200 or "error" in self.message or bool(self.message["result"].get("isError"))

    @property
    def structured(self) -> dict[str, Any]:
        return dict(self.message["result"]["structuredContent"])

    @property
    def said(self) -> str:
        """The text that a model reads, or that of the error."""
        if self.status != 200:
            return self.text
        if "error" in self.message:
            return str(self.message["error"]["message"])
        return "".join(part.get("text", "") for part in self.message["result"]["content"])


@dataclass(frozen=True)
class Member:
    """Somebody who calls a server; without a token it is somebody unknown."""

    url: str
    token: str | None

    def request(
        self, method: str, params: Mapping[str, Any], name: str | None = None, extensions: Mapping[str, Any] = {}
    ) -> Reply:
        meta = {
            "io.modelcontextprotocol/protocolVersion": _VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "team", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"extensions": dict(extensions)},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {"MCP-Protocol-Version": _VERSION, "Mcp-Method": method}
        if name is not None:
            headers["Mcp-Name"] = name
        return self.http("POST", "/mcp", json.dumps(body), headers)

    def call(self, tool: str, /, **arguments: Any) -> Reply:
        return self.request("tools/call", {"name": tool, "arguments": arguments}, tool)

    def run(self, code: str, **arguments: Any) -> Any:
        """The result of code, which must not fail."""
        reply = self.call("execute_code", code=code, **arguments)
        assert not reply.failed, reply.said
        return reply.structured.get("result")

    def http(self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] = {}) -> Reply:
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=50)
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        if self.token is not None:
            given["Authorization"] = f"Bearer {self.token}"
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        reply = Reply(answer.status, answer.read().decode())
        connection.close()
        return reply


def command(home: Path, *arguments: str, **env: str) -> Ended:
    """Run a command of sealab in a home."""
    return sealab(*arguments[:2], "--home", str(home), *arguments[2:], **env)


def told(home: Path, *arguments: str, **env: str) -> dict[str, Any]:
    """What a command says with `--json`; it must not fail."""
    return dict(command(home, *arguments, "--json", **env).told)


def token(home: Path, tenant: str, principal: str, *scopes: str, **env: str) -> str:
    """A new token."""
    given = [each for scope in scopes for each in ("--scope", scope)]
    return str(told(home, "tokens", "create", principal, "--tenant", tenant, *given, **env)["token"])


@contextmanager
def team_server(home: Path, **env: str) -> Iterator[str]:
    """Run a server that asks for tokens, and give its URL."""
    with http_server(home, SEALAB_AUTH="tokens", **env) as url:
        yield url
