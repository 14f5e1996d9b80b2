"""Security boundary: names and encrypts what is kept of sign-ins, bound to whose they are and to which server.

All keys are derived from the vault's master key with HMAC-SHA256, each for one purpose. Whose a sign-in is stands in
the database as a keyed hash. What is sealed is 12 bytes of nonce, then AES-256-GCM, with the format, that hash and the
part as associated data: so nothing can stand in for what another person, or another server, was given.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from functools import cached_property
from typing import cast

from ..vault_keys import Seal

_FORMAT = 1
_MARK_CHARS = 32
SECRET_CHARS_MAX = 100
StoredTokens = Mapping[str, object]


class SignInKeys:
    """All that sign-ins need of one master key."""

    def __init__(self, master: bytes) -> None:
        self._master = master

    def person(self, person: str) -> str:
        """Return what the database calls whoever signed in."""
        return self._hash("persons", person)

    def owner(self, person: str, server: str) -> str:
        """Return what the database calls the sign-in of a person to a server."""
        return self._hash("owners", json.dumps([person, server]))

    def secret(self, kind: str, secret: str) -> str:
        """Return what the database keeps of a random secret that a browser sends: enough to know it again."""
        return self._hash(f"{kind} secrets", secret)

    def new_secret(self, kind: str) -> str:
        """Return a random secret of 256 bits that `is_own` knows: URL-safe base64, a dot, and hexadecimal digits."""
        said = secrets.token_urlsafe(32)
        return f"{said}.{self._mark(kind, said)}"

    def is_own(self, kind: str, secret: str) -> bool:
        """Return whether a secret was made with these keys, which nobody who sends it could guess; nothing is read."""
        said, _, mark = secret.partition(".")
        if len(secret) > SECRET_CHARS_MAX or not secret.isascii():
            return False
        return hmac.compare_digest(self._mark(kind, said), mark)

    def _mark(self, kind: str, said: str) -> str:
        return self._hash(f"{kind} marks", said)[:_MARK_CHARS]

    def sealed(self, owner: str, part: str, tokens: StoredTokens) -> bytes:
        """Encrypt a part of what is kept for an owner."""
        return self._seal.sealed(json.dumps(tokens).encode(), _bound(owner, part))

    def opened(self, owner: str, part: str, sealed: bytes) -> StoredTokens:
        """Decrypt what was sealed as that part for that owner. Raises `SealBroken`."""
        return cast("StoredTokens", json.loads(self._seal.opened(sealed, _bound(owner, part))))

    def _hash(self, purpose: str, what: str) -> str:
        return hmac.digest(self._derived(purpose), what.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self._master, f"sealab sign-ins|{purpose}".encode(), hashlib.sha256)

    @cached_property
    def _seal(self) -> Seal:
        return Seal(self._derived("content"))


def _bound(owner: str, part: str) -> str:
    return f"{_FORMAT}|{owner}|{part}"
