"""Sends a request to an ASGI app, as a server does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Scope


@dataclass
class Answered:
    """What an app answered."""

    status: int
    headers: dict[str, str]
    body: bytes


async def asked_of(
    app: ASGIApp, *headers: tuple[str, str], parts: Iterable[bytes] = (b"",), method: str = "POST", **more: Any
) -> Answered:
    """Send a request whose body comes in parts; `more` is what stands in its scope beside what is usual."""
    scope: Scope = {
        "type": "http",
        "method": method,
        "scheme": "http",
        "path": "/mcp",
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        **more,
    }
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting[-1]["more_body"] = False
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent))


class Passed:
    """An app that answers 200, and keeps what came to it: the scopes, and all bodies as one."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.body = b""

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        more = True
        while more:
            message = await receive()
            self.body += message.get("body", b"")
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
