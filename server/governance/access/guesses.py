"""How often an address may send tokens that are not valid: so often, then no faster than they are forgotten.

Guessing a token of 256 bits is hopeless at any rate; what this bounds is the work that guesses make, for the database
and for an issuer, and the noise in logs. Each address has its own count, so none uses up another's.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

GUESSES_MAX = 30
"""Tokens that are not valid which an address may send at once."""
GUESS_SECONDS = 2.0
"""How long it takes until one of these is forgotten."""
ADDRESSES_MAX = 10_000
"""Addresses that are counted; of more, those are forgotten that sent none for longest."""
_V6_PREFIX = 64


@dataclass(slots=True)
class _Count:
    """What one address sent: `guesses` as of `at`, tokens that are `judged` now, and those that wait to be."""

    guesses: float
    at: float
    judged: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Guesses:
    """Counts tokens that turned out not to be valid, by the address that they came from.

    Of one address at most as many are judged at once as it may still guess; the others wait until these are judged, so
    that many valid tokens at once are none too many. Belongs to one event loop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: OrderedDict[str, _Count] = OrderedDict()

    async def turn(self, address: str) -> int:
        """Wait until a token of the address may be judged, and return 0; `judged` must follow.

        Return after how many whole seconds it may send one again where it has sent too many that are not valid.
        """
        block = block_of(address)
        while True:
            count = self._counts.setdefault(block, _Count(0.0, self._clock()))
            self._counts.move_to_end(block)
            now = self._now(count)
            if now > GUESSES_MAX - 1:
                _wake_next(count)  # which gets the same answer
                return math.ceil((now - (GUESSES_MAX - 1)) * GUESS_SECONDS)
            if now + count.judged < GUESSES_MAX:
                count.judged += 1
                self._forget()
                return 0
            waiting = asyncio.get_running_loop().create_future()
            count.waiting.append(waiting)
            try:
                await waiting
            except asyncio.CancelledError:
                if waiting.done() and not waiting.cancelled():
                    _wake_next(count)  # whose turn this one does not take
                raise

    def judged(self, address: str, *, is_guess: bool) -> None:
        """Take that a token that had its turn was judged: it is a guess where it is not valid."""
        block = block_of(address)
        count = self._counts[block]
        count.judged -= 1
        if is_guess:
            count.guesses, count.at = self._now(count) + 1, self._clock()
        _wake_next(count)
        if not (count.judged or count.waiting or self._now(count)):
            del self._counts[block]

    def _now(self, count: _Count) -> float:
        return max(0.0, count.guesses - (self._clock() - count.at) / GUESS_SECONDS)

    def _forget(self) -> None:
        """Drop the address that sent none for longest, if there are too many; those with tokens at work stay."""
        if len(self._counts) > ADDRESSES_MAX:
            idle = next((block for block, count in self._counts.items() if not (count.judged or count.waiting)), None)
            if idle is not None:
                del self._counts[idle]


def _wake_next(count: _Count) -> None:
    while count.waiting:
        waiting = count.waiting.popleft()
        if not waiting.done():
            waiting.set_result(None)
            return


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
