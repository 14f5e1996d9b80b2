"""Which URLs keys may be fetched from and secrets sent to: HTTPS ones, and HTTP ones that do not leave this machine.

A security boundary: what is fetched from the issuer of tokens decides who is let in.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

_CHARS_MAX = 500
_PLAIN = re.compile(r"""[!-~]+""")
_MISREAD = frozenset('\\"<>^`{|}')
"""Characters that RFC 3986 does not have in a URL, and that readers of URLs take differently."""


def fault_of_url(url: str, *, query: bool = False, loopback: bool = True) -> str | None:
    """Return what would have to be there instead of a URL that is not secure, None for one that is.

    `query` lets it have a query, `loopback` lets it name this machine, by HTTP too. A user and a fragment it never has.
    """
    wanted = "a URL with https and no user or fragment" if query else "a URL with https and no user, query or fragment"
    wanted += ", or an http one of this machine" if loopback else ", which is not of this machine"
    parts = _parts(url)
    if parts is None or parts.hostname is None or "@" in parts.netloc or "#" in url or ("?" in url and not query):
        return wanted
    here = is_loopback(parts.hostname)
    if here:
        return None if loopback and parts.scheme in {"http", "https"} else wanted
    return None if parts.scheme == "https" else wanted


def names_this_machine(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    parts = _parts(url)
    return parts is not None and parts.hostname is not None and is_loopback(parts.hostname)


def is_loopback(host: str) -> bool:
    """Return whether a host, without brackets, is a loopback address (RFC 1122, RFC 4291) or `localhost` (RFC 6761)."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or address.is_unspecified or (mapped is not None and mapped.is_loopback)


def _parts(url: str) -> SplitResult | None:
    if len(url) > _CHARS_MAX or not _PLAIN.fullmatch(url) or _MISREAD & set(url):
        return None
    try:
        parts = urlsplit(url)
        _port = parts.port
    except ValueError:
        return None
    return parts if parts.hostname and not parts.netloc.endswith(":") else None
