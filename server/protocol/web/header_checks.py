"""Which names of this machine a request may be sent to, and which pages may send one.

A security boundary: a web page whose name has come to stand for 127.0.0.1 (DNS rebinding) sends that name as `Host`,
and its own as `Origin`. Each is judged whole, and a second header of either is refused: what else reads the first, or
takes what stands behind an `@` for the host, would see another name than was judged here.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from .error_responses import refusal

_MISDIRECTED = 421
_FORBIDDEN = 403


class NamedHosts:
    """An ASGI app before another, for requests whose `Host` is one of `names` and whose `Origin`, if any, at `port`."""

    def __init__(self, app: ASGIApp, names: Collection[str], port: int) -> None:
        self._app = app
        self._host = re.compile(f"(?:{'|'.join(map(re.escape, names))})(?::[0-9]{{1,5}})?".encode())
        self._origins = frozenset(f"http://{name}:{port}".encode() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            hosts = [value for key, value in scope["headers"] if key == b"host"]
            origins = [value for key, value in scope["headers"] if key == b"origin"]
            if len(hosts) != 1 or not self._host.fullmatch(hosts[0]):
                text = "The Host of the request is not this server's. Send it to the address that it listens on."
                return await refusal(_MISDIRECTED, text)(scope, receive, send)
            if len(origins) > 1 or not self._origins.issuperset(origins):
                text = "The Origin of the request is another's. Call the server from a program, not from a web page."
                return await refusal(_FORBIDDEN, text)(scope, receive, send)
        return await self._app(scope, receive, send)
