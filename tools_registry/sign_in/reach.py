"""Security boundary: which machines an upstream server may have requests sent to by naming their addresses.

What a server says of its issuer is fetched, and secrets are posted there (server-side request forgery, CWE-918; RFC
9728, section 7.7). So an address that it names is public, or no nearer to this machine than the server itself is: one
on the loopback address may name that, one in a private network another there. Addresses of a link (RFC 3927, where
clouds keep their metadata), multicast and reserved ones are nobody's. Names are resolved here, once for each
connection, which then goes to an address that was judged: what a name stands for a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from contextlib import suppress
from enum import IntEnum
from urllib.request import getproxies, proxy_bypass

import httpx2
from typing_extensions import override

from ..errors import SignInFailed

NEAREST = "sealab.nearest"
"""The extension of a request that says how near its address may lead; None for one that the operator gave."""
_FOUND = "sealab.found"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_RESOLVE_SECONDS = 10.0


class AddressReach(IntEnum):
    """How near to this machine an address leads."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2


def reach_of(address: str) -> AddressReach | None:
    """Return how near an IP address leads; None for one that nobody may name."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        low = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None  # RFC 6052
        ip = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or low or ip
    if ip.is_loopback or ip.is_unspecified:
        return AddressReach.LOOPBACK
    if ip.is_link_local or ip.is_multicast or ip.is_reserved:
        return None
    return AddressReach.PUBLIC if ip.is_global else AddressReach.PRIVATE


async def reach_of_server(url: str) -> AddressReach:
    """Return how near a server of the operator's is, by the farthest of its addresses."""
    try:
        found = [reach_of(each) for each in await _resolved(httpx2.URL(url))]
    except httpx2.ConnectError:
        return AddressReach.PUBLIC
    return min((each for each in found if each is not None), default=AddressReach.PUBLIC)


def reach_of_answer(response: httpx2.Response) -> AddressReach:
    """Return how near the server is that gave an answer, by the address of the connection.

    Behind a proxy that is not known, so the server counts as public.
    """
    if (found := response.extensions.get(_FOUND)) is not None:
        return AddressReach(found)
    stream = response.extensions.get("network_stream")
    peer = None if stream is None or _proxy_for(response.request.url) else stream.get_extra_info("server_addr")
    return (reach_of(str(peer[0])) or AddressReach.PUBLIC) if peer else AddressReach.PUBLIC


async def judged(url: httpx2.URL, nearest: AddressReach | None) -> list[str]:
    """Return the addresses that a URL's host stands for and that may be reached. Raises `SignInFailed` without one."""
    found = await _resolved(url)
    if nearest is None:
        return found
    near = {each: reach_of(each) for each in found}
    allowed = [each for each, reach in near.items() if reach is not None and reach <= nearest]
    if not allowed:
        raise SignInFailed(
            "The server names an address for its sign-in that is not public, and is not where the server is. "
            "Tell its operator.",
            for_operator=f"The server says that {url.host} belongs to its sign-in, which is {found[0]} and nearer to "
            "this machine than the server. Correct its metadata, or its url in mcp.json.",
        )
    return allowed


async def require_reachable(url: str, nearest: AddressReach) -> None:
    """Raise `SignInFailed` for an address to which no user may be sent; a name unknown here is for their browser."""
    with suppress(httpx2.ConnectError):
        await judged(httpx2.URL(url), nearest)


class JudgedTransport(httpx2.AsyncBaseTransport):
    """Sends each request to an address that was judged by its extension `NEAREST`, without which it sends none.

    Connections are used once: they are made to addresses, and the next request to one may be for another name.
    """

    def __init__(self) -> None:
        self._limits = httpx2.Limits(max_keepalive_connections=0)
        self._direct = httpx2.AsyncHTTPTransport(limits=self._limits)
        self._proxied: dict[str, httpx2.AsyncHTTPTransport] = {}

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises `SignInFailed` where its address may not be reached, and as httpx2 does."""
        nearest: AddressReach | None = request.extensions[NEAREST]
        if (proxy := _proxy_for(request.url)) is not None:
            with suppress(httpx2.ConnectError):  # names that only the proxy knows are for the proxy to judge
                await judged(request.url, nearest)
            transport = self._proxied.setdefault(proxy, httpx2.AsyncHTTPTransport(limits=self._limits, proxy=proxy))
            return await transport.handle_async_request(request)
        *first, last = await judged(request.url, nearest)
        for address in first:
            try:
                return await self._sent_to(address, request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._sent_to(last, request)

    async def _sent_to(self, address: str, request: httpx2.Request) -> httpx2.Response:
        there = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.host},
        )
        response = await self._direct.handle_async_request(there)
        response.extensions[_FOUND] = reach_of(address)
        return response

    @override
    async def aclose(self) -> None:
        """Close all connections."""
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()


async def _resolved(url: httpx2.URL) -> list[str]:
    """Return the addresses of a URL's host, in the order in which they are tried. Raises `httpx2.ConnectError`."""
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpx2.ConnectError(f"the name of its host cannot be resolved ({type(error).__name__})") from None
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def _proxy_for(url: httpx2.URL) -> str | None:
    """Return the proxy that the environment names for a URL."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return None if not proxy or proxy_bypass(url.host) else proxy
