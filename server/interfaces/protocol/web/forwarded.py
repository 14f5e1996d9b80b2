"""Security boundary: whose word counts on where a request comes from: that of the proxies the operator named, alone.

From one of these, `X-Forwarded-For`, `-Proto` and `-Host`, or `Forwarded` (RFC 7239), tell the client's address, the
scheme and the host that it used. Of the addresses the last one counts that is no proxy of ours, of all else what stands
last: whatever a client put in front of it is its own word. From all others these headers are taken out. A request that
has both kinds is refused: a proxy sets one of them, and the other is the client's.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from ..address import Network
from .error_responses import refusal

_FOR, _PROTO, _HOST, _ALL = b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"forwarded"
_NAMES = frozenset({_FOR, _PROTO, _HOST, _ALL, b"x-forwarded-port", b"x-forwarded-prefix", b"x-real-ip"})
_HOPS_MAX = 32
_PAIR = re.compile(r'\s*([A-Za-z]+)=(?:"([^"\\]*)"|([^\s;,"]*))\s*')
_V4_WITH_PORT = re.compile(r"([0-9.]+):[0-9]{1,5}")
_V6_IN_BRACKETS = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?")
_HOST_CHARS = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")
_BAD = (
    "The headers with which a proxy says where a request comes from contradict each other or cannot be read. Have it "
    "set one of X-Forwarded-For and Forwarded, and remove what clients send."
)


class Forwarded:
    """An ASGI app before another, which gets each request as its client sent it to the proxy.

    With `only_through_proxies` a request that came by none of them, and not from this machine, is refused: it would be
    in clear.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[Network], *, only_through_proxies: bool) -> None:
        self._app = app
        self._proxies = tuple(proxies)
        self._only = only_through_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        client = scope.get("client")
        peer = _address("" if client is None else str(client[0]))
        given = [(key, value) for key, value in scope["headers"] if key in _NAMES]
        inner: Scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in _NAMES]}
        if peer is None or not self._is_proxy(peer):
            if self._only and (peer is None or not peer.is_loopback):
                text = "This server is reached through its proxy alone, which has TLS. Send the request there."
                return await refusal(403, text)(scope, receive, send)
            return await self._app(inner, receive, send)
        forwarded = _forwarded(given)
        if forwarded is None:
            return await refusal(400, _BAD)(scope, receive, send)
        addresses, proto, host = forwarded
        for address in reversed(addresses):
            inner["client"] = (str(address), 0)
            if not self._is_proxy(address):
                break
        if proto is not None:
            inner["scheme"] = proto
        if host is not None:
            kept = [pair for pair in inner["headers"] if pair[0] != b"host"]
            inner["headers"] = [*kept, (b"host", host.encode("ascii"))]
        return await self._app(inner, receive, send)

    def _is_proxy(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        return any(address.version == network.version and address in network for network in self._proxies)


_Forwarded = tuple[list[ipaddress.IPv4Address | ipaddress.IPv6Address], str | None, str | None]


def _forwarded(headers: Sequence[tuple[bytes, bytes]]) -> _Forwarded | None:
    """Return the addresses that a request came by, the client's first, its scheme and its host; None for nonsense."""
    found: dict[bytes, list[str]] = {name: [] for name in (_FOR, _PROTO, _HOST, _ALL)}
    for key, value in headers:
        if key in found:
            found[key] += value.decode("latin-1").split(",")
    if found[_ALL]:
        if found[_FOR] or found[_PROTO] or found[_HOST]:
            return None
        return _of_rfc7239(found[_ALL])
    if max(map(len, found.values())) > _HOPS_MAX:
        return None
    return _checked(found[_FOR], found[_PROTO], found[_HOST])


def _of_rfc7239(elements: Sequence[str]) -> _Forwarded | None:
    if len(elements) > _HOPS_MAX:
        return None
    hops: list[str] = []
    last: dict[str, str] = {}
    for element in elements:
        last = {}
        for part in element.split(";"):
            pair = _PAIR.fullmatch(part)
            if pair is None or pair[1].lower() in last:
                return None
            last[pair[1].lower()] = pair[2] if pair[2] is not None else pair[3]
        hops += [last["for"]] if "for" in last else []
    return _checked(hops, [last["proto"]] if "proto" in last else [], [last["host"]] if "host" in last else [])


def _checked(hops: Sequence[str], proto: Sequence[str], host: Sequence[str]) -> _Forwarded | None:
    addresses = [_address(hop.strip()) for hop in hops]
    schemes, hosts = [each.strip().lower() for each in proto], [each.strip() for each in host]
    if any(scheme not in {"http", "https"} for scheme in schemes):
        return None
    if any(_HOST_CHARS.fullmatch(each) is None for each in hosts):
        return None
    known = [address for address in addresses if address is not None]
    if len(known) < len(addresses):
        return None
    return known, schemes[-1] if schemes else None, hosts[-1] if hosts else None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    found = _V4_WITH_PORT.fullmatch(text) or _V6_IN_BRACKETS.fullmatch(text)
    try:
        address = ipaddress.ip_address((found[1] if found else text).partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
