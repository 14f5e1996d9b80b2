"""The seal of a request between servers: it shows who sent it to whom and when, and that nothing of it was changed.

A security boundary: whoever can make a seal can act as any caller. A seal is HMAC-SHA256 (RFC 2104), under a key that
follows from the vault's, of its version, the sender, the one that it is for, the time, a nonce, the method and the path
of the request and the SHA-256 of its body. Whose the request is and the headers of the client stand in that body.
The time is the database's, as each server keeps it, so that a wrong clock of a host does no harm.

A seal counts once, whatever the clock of the database does. Its nonce is remembered while it is fresh. Once one was
forgotten, nothing counts that was sealed at its time or before. Only where that clock went back can a fresh seal be so
old: then the server that checks begins a new era, in which no seal of a former one counts, and says which it is.

An answer has a mark: the HMAC of its status and of the seal that it answers. It shows that a server with the key
answered, not another process that has taken over the address of a lost server.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import deque
from dataclasses import dataclass, field

HEADER = "sealab-replica"
ERA_HEADER = "sealab-replica-era"
ANSWER_HEADER = "sealab-replica-answer"
FIRST_ERA = "0" * 16
FRESH_SECONDS = 30.0
"""How old a seal may be, or how far ahead."""
NONCES_MAX = 200_000
"""Nonces of fresh seals that are remembered; where there are more, no further request is taken."""
_VERSION = "1"
_SEAL = re.compile(
    r"1 ([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9]{1,12}\.[0-9]{3}) "
    r"([0-9a-f]{32}) ([0-9a-f]{64}) ([0-9a-f]{64})"
)


class SealRefused(Exception):
    """A seal is missing, was not made by a server of this sealab, is not for this one, too old, or was used before."""


class WrongReceiver(SealRefused):
    """A seal is right, but for another server: this one has the address of that."""


class EraPassed(SealRefused):
    """A seal is right but for its era: whoever has the key may make it anew for the present one."""


@dataclass(frozen=True, slots=True)
class OpenedSeal:
    """What a seal says that has been found right."""

    sender: str
    body_sha256: str

    def covers(self, body: bytes) -> bool:
        """Return whether a body is the one that was sealed."""
        return hmac.compare_digest(hashlib.sha256(body).hexdigest(), self.body_sha256)


def sealed(
    key: bytes, *, sender: str, to: str, now: float, method: str, path: str, body: bytes, era: str = FIRST_ERA
) -> str:
    """Return the seal of a request; `now` in seconds by the database's clock, `era` as the one it is for said it."""
    digest = hashlib.sha256(body).hexdigest()
    said = f"{_VERSION} {sender} {to} {era} {now:.3f} {secrets.token_hex(16)} {digest}"
    return f"{said} {_mac(key, said, method, path)}"


@dataclass(slots=True)
class SealCheck:
    """Judges the seals of requests to one server, and remembers the nonces of those that are fresh."""

    key: bytes
    replica: str
    era: str = FIRST_ERA
    _nonces: set[str] = field(default_factory=set)
    _ages: deque[tuple[float, str]] = field(default_factory=deque)
    _floor: float = float("-inf")
    """The latest time of a seal whose nonce was forgotten."""

    def opened(self, seal: str, *, now: float | None, method: str, path: str) -> OpenedSeal:
        """Return what a seal says. Raises `SealRefused`, in kinds; `now` is None where the time is not known yet."""
        found = _SEAL.fullmatch(seal)
        if found is None:
            raise SealRefused("It is none.")
        sender, to, era, at, nonce, digest, mac = found.groups()
        if not hmac.compare_digest(mac, _mac(self.key, seal.rpartition(" ")[0], method, path)):
            raise SealRefused("It was made with another key, or for another request.")
        if to != self.replica:
            raise WrongReceiver("It is for another server.")
        if now is None or abs(now - float(at)) > FRESH_SECONDS:
            raise SealRefused("It is too old.")
        if era != self.era:
            raise EraPassed("It is for a former era.")
        self._forget(now)
        if float(at) <= self._floor:
            self._begin_era()
            raise EraPassed("The clock of the database went back since others were taken.")
        if nonce in self._nonces or len(self._nonces) >= NONCES_MAX:
            raise SealRefused("It was used before.")
        self._nonces.add(nonce)
        self._ages.append((float(at), nonce))
        return OpenedSeal(sender, digest)

    def _forget(self, now: float) -> None:
        """Forget nonces whose seals are too old, in the order in which they came, and take none of their time again."""
        while self._ages and now - self._ages[0][0] > 2 * FRESH_SECONDS:
            at, nonce = self._ages.popleft()
            self._nonces.discard(nonce)
            self._floor = max(self._floor, at)

    def _begin_era(self) -> None:
        self.era = secrets.token_hex(8)
        self._nonces.clear()
        self._ages.clear()
        self._floor = float("-inf")


def answer_mark(key: bytes, seal: str, status: int) -> str:
    """Return the mark of an answer of this status to a request with this seal."""
    return hmac.new(key, f"answer {status} {seal}".encode(), hashlib.sha256).hexdigest()


def _mac(key: bytes, said: str, method: str, path: str) -> str:
    return hmac.new(key, f"{said} {method} {path}".encode(), hashlib.sha256).hexdigest()
