"""How often an address may send tokens that are not valid: so often, then no faster than they are forgotten.

Guessing a token of 256 bits is hopeless at any rate; what this bounds is the work that guesses make, for the database
and for an issuer, and the noise in logs. Each address has its own count, so none uses up another's.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

GUESSES_MAX = 30
"""Tokens that are not valid which an address may send at once."""
GUESS_SECONDS = 2.0
"""How long it takes until one of these is forgotten."""
ADDRESSES_MAX = 10_000
"""Addresses that are counted; of more, those are forgotten that sent none for longest."""
_V6_PREFIX = 64


@dataclass(slots=True)
class _Count:
    guesses: float
    at: float


class Guesses:
    """Counts tokens that turned out not to be valid, by the address that they came from."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: OrderedDict[str, _Count] = OrderedDict()

    def wait_seconds(self, address: str) -> int:
        """Return after how many whole seconds the address may send a token again; 0 for at once."""
        count = self._counts.get(block_of(address))
        if count is None:
            return 0
        over = self._now(count) - (GUESSES_MAX - 1)
        return max(0, math.ceil(over * GUESS_SECONDS))

    def begin(self, address: str) -> None:
        """Count a token as a guess until it turns out to be valid: those that are judged at once count too."""
        block = block_of(address)
        count = self._counts.setdefault(block, _Count(0.0, self._clock()))
        count.guesses, count.at = self._now(count) + 1, self._clock()
        self._counts.move_to_end(block)
        if len(self._counts) > ADDRESSES_MAX:
            self._counts.popitem(last=False)

    def was_none(self, address: str) -> None:
        """Take back a count: the token is valid, or could not be judged."""
        block = block_of(address)
        count = self._counts.get(block)
        if count is not None:
            count.guesses, count.at = max(0.0, self._now(count) - 1), self._clock()
            if not count.guesses:
                del self._counts[block]

    def _now(self, count: _Count) -> float:
        return max(0.0, count.guesses - (self._clock() - count.at) / GUESS_SECONDS)


def block_of(address: str) -> str:
    """Return what of an address is counted: of IPv6 the network of a site (RFC 6177), which one machine can have."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip), _V6_PREFIX), strict=False))
