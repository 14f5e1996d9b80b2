"""What follows from the vault's master key: names of scopes, tokens, look-ups, and what seals a value.

This is a security boundary. All keys are derived from the master key with HMAC-SHA256, each for one purpose:

    scope    stands for the scope's name: whose token this is
    token    ten letters of Crockford's base 32: HMAC of type, counter, form and value under a key of the scope; the
             counter goes up when another value has that token already; of another form of a value, the first six are
             those of the value's own token
    lookup   HMAC of form and value under another key of the scope: shows that a value is known, whatever its type
    apart    both of these again, under keys that a random salt is part of: for tokens that must not show whether their
             value is the one of another token
    sealed   12 bytes of nonce, then AES-256-GCM of the value, with scope, type, token and form as associated data, so
             that no row can stand in for another
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from .vault_entries import Value

if TYPE_CHECKING:
    from .cipher import AESGCM

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TOKEN_CHARS = 10
AKIN_CHARS = 6
"""Letters that the tokens of the forms of one value have in common."""
KEY_BYTES = 32
NONCE_BYTES = 12
_HASH_BYTES = 16
_SCOPES_MAX = 10_000
_NONCES_AT_ONCE = 32
_BLOCK_BYTES = 64
"""What SHA-256 takes at once, to which HMAC fills its key up (RFC 2104)."""
_PAIRS = tuple(a + b for b in ALPHABET for a in ALPHABET)
_PAIR_BITS, _PAIR_MASK = 10, 1023


def tenants_key(master: bytes, tenant: str) -> bytes:
    """Return the master key of a tenant, derived from the operator's with its id (NIST SP 800-108).

    It shows nothing about the operator's, nor about another tenant's.
    """
    return hmac.digest(master, f"sealab tenant|{tenant}".encode(), hashlib.sha256)


class SealBroken(Exception):
    """A sealed value was changed, or belongs to another row."""


class Seal:
    """Encrypts under one key: 12 bytes of nonce, then AES-256-GCM, bound to where the data stands."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sealed(self, data: bytes, bound: str) -> bytes:
        """Encrypt data."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self.cipher.encrypt(nonce, data, bound.encode())

    def opened(self, sealed: bytes, bound: str) -> bytes:
        """Decrypt what was sealed with that bound. Raises `SealBroken`."""
        from .cipher import InvalidTag

        try:
            return self.cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound.encode())
        except (InvalidTag, ValueError):
            raise SealBroken from None

    @cached_property
    def cipher(self) -> AESGCM:
        """The cipher."""
        from .cipher import AESGCM

        return AESGCM(self._key)


class VaultKeys:
    """All that is derived from one master key."""

    def __init__(self, master: bytes) -> None:
        self._master = master
        self._seal = Seal(_derived(master, "values", ""))
        self._of_scope = lru_cache(_SCOPES_MAX)(self._derive)

    @property
    def mark(self) -> str:
        """What distinguishes this master key from others, and shows nothing else about it."""
        return hmac.digest(self._master, b"sealab vault check", hashlib.sha256).hex()

    def of_scope(self, scope: str) -> ScopeKeys:
        """Return the keys of a scope."""
        return self._of_scope(scope)

    def _derive(self, scope: str) -> ScopeKeys:
        return self.named(_derived(self._master, "scope name", scope).hex()[: 2 * _HASH_BYTES])

    def named(self, name: str) -> ScopeKeys:
        """Return the keys of the scope that is called `name` in the database."""
        return ScopeKeys(name, _derived(self._master, "tokens", name), _derived(self._master, "lookups", name))

    def sealed(self, keys: ScopeKeys, value: Value, token: str) -> bytes:
        """Encrypt a value for the row with that token."""
        return self._seal.sealed(_bytes(value.text), _bound(keys.name, value, token))

    def opened(self, keys: ScopeKeys, empty: Value, token: str, sealed: bytes) -> Value:
        """Decrypt what was sealed for the row with that token; `empty` has type and form. Raises `SealBroken`."""
        text = self._seal.opened(sealed, _bound(keys.name, empty, token)).decode("utf-8", "surrogatepass")
        return Value(empty.type, text, empty.form)

    def sealed_many(
        self, keys: ScopeKeys, values: Iterable[tuple[str, str]], form: str, tokens: Iterable[str]
    ) -> list[bytes]:
        """Encrypt values, given as type and text, for the rows with those tokens; what `sealed` does for one."""
        encrypt = self._seal.cipher.encrypt
        name = keys.name
        made: list[bytes] = []
        random = b""
        for (kind, text), token in zip(values, tokens, strict=True):
            if not random:
                random = os.urandom(NONCE_BYTES * _NONCES_AT_ONCE)
            nonce, random = random[:NONCE_BYTES], random[NONCE_BYTES:]
            bound = f"{name}|{kind}|{token}|{form}".encode()
            made.append(nonce + encrypt(nonce, text.encode("utf-8", "surrogatepass"), bound))
        return made

    def spend(self, keys: ScopeKeys, token: str) -> None:
        """Do for an unknown token the work of opening one, so that the time does not show which tokens exist."""
        nonce = bytes(NONCE_BYTES)
        hidden = self._seal.cipher.encrypt(os.urandom(NONCE_BYTES), token.encode("utf-8", "surrogatepass"), None)
        hmac.compare_digest(hidden, nonce + keys.tokens)


@dataclass(frozen=True, slots=True)
class ScopeKeys:
    """What is derived from the master key for one scope; `name` stands for the scope in the database."""

    name: str
    tokens: bytes
    lookups: bytes

    def apart(self, salt: bytes) -> ScopeKeys:
        """Return keys for tokens of the same scope that cannot be compared with its others, nor with other salts'."""
        tokens, lookups = (_derived(key, "apart", salt.hex()) for key in (self.tokens, self.lookups))
        return ScopeKeys(self.name, tokens, lookups)

    def token(self, value: Value, counter: int) -> str:
        """Return the token that a value gets when `counter` others were taken."""
        message = f"{value.type}\0{counter}\0{value.form}\0".encode() + _bytes(value.text)
        number = int.from_bytes(hmac.digest(self.tokens, message, hashlib.sha256), "big")
        own = "".join(ALPHABET[number >> 5 * place & 31] for place in range(TOKEN_CHARS))
        return value.akin[:AKIN_CHARS] + own[len(value.akin[:AKIN_CHARS]) :]

    def lookup(self, value: Value) -> str:
        """Return the hash by which a value is found again, whatever its type."""
        message = f"{value.form}\0".encode() + _bytes(value.text)
        return hmac.digest(self.lookups, message, hashlib.sha256)[:_HASH_BYTES].hex()

    def lookups_of(self, form: str, texts: Iterable[str]) -> list[str]:
        """Return the hash of each value; what `lookup` does for one."""
        start = f"{form}\0".encode()
        digest = _hmac(self.lookups)
        return [digest(start + text.encode("utf-8", "surrogatepass"))[:_HASH_BYTES].hex() for text in texts]

    def tokens_of(self, values: Iterable[tuple[str, str]], form: str) -> list[str]:
        """Return the token of each value, given as type and text, of which no other has its token."""
        digest = _hmac(self.tokens)
        starts: dict[str, bytes] = {}
        made: list[str] = []
        for kind, text in values:
            start = starts.get(kind)
            if start is None:
                start = starts[kind] = f"{kind}\0{0}\0{form}\0".encode()
            number = int.from_bytes(digest(start + text.encode("utf-8", "surrogatepass"))[-7:], "big")
            made.append(
                _PAIRS[number & _PAIR_MASK]
                + _PAIRS[number >> _PAIR_BITS & _PAIR_MASK]
                + _PAIRS[number >> 2 * _PAIR_BITS & _PAIR_MASK]
                + _PAIRS[number >> 3 * _PAIR_BITS & _PAIR_MASK]
                + _PAIRS[number >> 4 * _PAIR_BITS & _PAIR_MASK]
            )
        return made


def _hmac(key: bytes) -> Callable[[bytes], bytes]:
    """Return what computes HMAC-SHA256 under a key; the key's own blocks are hashed once (RFC 2104)."""
    block = key.ljust(_BLOCK_BYTES, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block)).copy
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block)).copy

    def digest(message: bytes) -> bytes:
        within = inner()
        within.update(message)
        around = outer()
        around.update(within.digest())
        return around.digest()

    return digest


def _derived(key: bytes, purpose: str, what: str) -> bytes:
    """Derive a key: HMAC as a pseudo-random function, with the purpose as its label (NIST SP 800-108)."""
    return hmac.digest(key, f"sealab vault|{purpose}|".encode() + _bytes(what), hashlib.sha256)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _bound(scope: str, value: Value, token: str) -> str:
    return f"{scope}|{value.type}|{token}|{value.form}"
