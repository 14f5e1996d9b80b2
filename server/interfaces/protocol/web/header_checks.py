"""Which names of this machine a request may be sent to, and which pages may send one.

A security boundary: a web page whose name has come to stand for 127.0.0.1 (DNS rebinding) sends that name as `Host`,
and its own as `Origin`. Each is judged whole, and a second header of either is refused: what else reads the first, or
takes what stands behind an `@` for the host, would see another name than was judged here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from .error_responses import refusal

_MISDIRECTED = 421
_FORBIDDEN = 403
_PORTS = {"http": 80, "https": 443}


def _hosts_of(url: str) -> list[str]:
    """Return what `Host` is for an address: the default port may be left out, or named (RFC 9110, 4.2.3)."""
    parts = urlsplit(url)
    default = _PORTS[parts.scheme]
    host = parts.netloc.rpartition(":")[0] if parts.port is not None else parts.netloc
    return [host, f"{host}:{default}"] if parts.port in (None, default) else [parts.netloc]


def origin_of(url: str) -> str:
    """Return the origin of pages at an address, as browsers send it: without the default port (RFC 6454, 6.1)."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{_hosts_of(url)[0]}"


class NamedHosts:
    """An ASGI app before another, for requests whose `Host` is one of `names` and whose `Origin`, if any, at `port`.

    With a `public_url` its host and port count too, it is an origin, and what is sent there has its scheme: a proxy
    need not say it.
    """

    def __init__(
        self, app: ASGIApp, names: Collection[str], port: int, *, scheme: str = "http", public_url: str | None = None
    ) -> None:
        self._app = app
        hosts = [f"(?:{'|'.join(map(re.escape, names))})(?::[0-9]{{1,5}})?"]
        origins = {f"{scheme}://{name}:{port}" for name in names}
        if public_url is not None:
            hosts += [re.escape(each) for each in _hosts_of(public_url)]
            origins.add(origin_of(public_url))
        self._host = re.compile("|".join(hosts).encode(), re.IGNORECASE)
        self._public_scheme = None if public_url is None else urlsplit(public_url).scheme
        self._public = re.compile("|".join(hosts[1:]).encode(), re.IGNORECASE)
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        hosts = [value for key, value in scope["headers"] if key == b"host"]
        origins = [value for key, value in scope["headers"] if key == b"origin"]
        if len(hosts) != 1 or not self._host.fullmatch(hosts[0]):
            text = (
                "The Host of the request is not this server's. Send it to the address that it listens on; for "
                "another, such as a proxy's, its operator sets PUBLIC_URL."
            )
            return await refusal(_MISDIRECTED, text)(scope, receive, send)
        if len(origins) > 1 or not self._origins.issuperset(origins):
            text = "The Origin of the request is another's. Call the server from a program, not from a web page."
            return await refusal(_FORBIDDEN, text)(scope, receive, send)
        if self._public_scheme is not None and self._public.fullmatch(hosts[0]):
            scope = {**scope, "scheme": self._public_scheme}
        return await self._app(scope, receive, send)
