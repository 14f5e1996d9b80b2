"""Addresses of devices: IPv4, IPv6, MAC."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from ..findings import Finding, PiiType

_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = re.compile(rf"(?<![\w.-])(?:{_BYTE}\.){{3}}{_BYTE}(?!\w|\.\w|-\w)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{6,39}(?:(?:\.\d{1,3}){3})?(?![\w:])")
_MAC = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])")
_VERSION = re.compile(r"(?i)(?:\bv|ver|version|release|build|==|>=|~=|\^|@)[ =:\"]{0,3}\Z")
_LOGIN_AT = re.compile(r"(?:\b(?:ssh|scp|sftp|rsync|mosh)\b[^\n]{0,60}|://[^\s/]{1,60})@\Z")
# Nobody's own: any, loopback, masks, public resolvers.
_NOBODYS = frozenset(
    (
        "0.0.0.0",  # noqa: S104 - compared only
        "127.0.0.1",
        "255.255.255.255",
        "255.255.255.0",
        "255.255.0.0",
        "8.8.8.8",
        "8.8.4.4",
        "1.1.1.1",
    )
)
_FEWEST_HEXTETS = 3
_FEWEST_DOTS, _FEWEST_COLONS, _MAC_MARKS = 3, 2, 5


def devices(text: str) -> Iterator[Finding]:
    """Yield addresses of devices."""
    for match in _IPV4.finditer(text) if text.count(".") >= _FEWEST_DOTS else ():
        if match[0] not in _NOBODYS and not _is_version(text, match.start()):
            yield Finding(*match.span(), PiiType.IP, 0.9)
    for match in _IPV6.finditer(text) if text.count(":") >= _FEWEST_COLONS else ():
        if _is_ipv6(match[0]):
            yield Finding(*match.span(), PiiType.IP, 0.9)
    for match in _MAC.finditer(text) if max(text.count(":"), text.count("-")) >= _MAC_MARKS else ():
        if match[0].lower() not in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"):
            yield Finding(*match.span(), PiiType.MAC, 0.9)


def _is_version(text: str, at: int) -> bool:
    """Return whether what stands before makes it a version: `v1.2.3.4`, `pkg@1.2.3.4`, but not `ssh me@1.2.3.4`."""
    return _VERSION.search(text, max(0, at - 12), at) is not None and not _LOGIN_AT.search(text, max(0, at - 90), at)


def _is_ipv6(text: str) -> bool:
    if text.count(":") < 2 or (not any(c in "abcdefABCDEF" for c in text) and "::" not in text and text.count(":") < 7):
        return False
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not address.is_loopback and sum(map(bool, text.split(":"))) >= _FEWEST_HEXTETS - ("::" in text)
