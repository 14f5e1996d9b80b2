"""Reads JSON Web Tokens: their header, and their claims once a key of the issuer verifies them (RFC 7515, 7517, 7519).

A security boundary. PyJWT does the cryptography; what a header may say is decided here: an algorithm from a list of
asymmetric ones and the id of a key, which has to be of the algorithm's type: no token chooses how it is verified. A key
or the address of one (`jwk`, `jku`, `x5c`, `x5u`) is never used (RFC 8725, 3.1, 3.5 and 3.10), and an extension that
must be understood (`crit`) refuses the token.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ....skills_db import cipher  # noqa: F401 - before PyJWT names submodules of cryptography, see there

# isort: split
from jwt import PyJWK, PyJWS, PyJWTError

from .claims import TokenUnfit, is_plain

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

_LOG = logging.getLogger(__name__)

_ALGORITHMS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The algorithms that are taken (RFC 7518, 3.1, RFC 8037, 3.1), each with the type of its keys."""
KEYS_MAX = 100
_ALIKE_MAX = 4
"""How many keys are tried for one token, where several have its id or it has none."""
_MEMBER_CHARS_MAX = 1500
_RSA_BITS = range(2048, 8193)
_PARTS = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_HEADER_CHARS_MAX = 4096
_TYPES = frozenset({"at+jwt", "jwt"})
"""RFC 9068, 2.1, and what issuers say that are older; their ID tokens are recognized by audience and claims."""


@dataclass(frozen=True, slots=True)
class TokenHeader:
    """The header of a signed token: not verified, and only used to choose a key."""

    algorithm: str
    key_id: str | None


class SigningKeys:
    """The usable keys of a key set; each is public, and for signatures."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Read a key set. What cannot be used is left out: a set may hold keys of kinds to come (RFC 7517, 5)."""
        listed = document.get("keys")
        entries = listed if isinstance(listed, list) else []
        if len(entries) > KEYS_MAX:
            _LOG.warning("Of the %d keys of the issuer the first %d are used.", len(entries), KEYS_MAX)
        found = [(entry, _key_of(entry)) for entry in entries[:KEYS_MAX]]
        self._keys = [(entry.get("alg"), key) for entry, key in found if key is not None]

    def fitting(self, header: TokenHeader) -> Sequence[AllowedPublicKeys]:
        """Return the keys that may have signed a token with this header."""
        found = [
            cast("AllowedPublicKeys", key.key)
            for algorithm, key in self._keys
            if key.key_type == _ALGORITHMS[header.algorithm]
            and algorithm in {None, header.algorithm}
            and header.key_id in {None, key.key_id}
        ]
        return found[:_ALIKE_MAX]


def _key_of(entry: object) -> PyJWK | None:
    """Return a key that may verify signatures (RFC 7517, 4.2 and 4.3). One with its private half is no secret."""
    if not isinstance(entry, dict) or entry.keys() & {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}:
        return None
    operations = entry.get("key_ops", ["verify"])
    texts = [entry[name] for name in ("kty", "crv", "n", "e", "x", "y", "kid", "alg") if name in entry]
    if (
        entry.get("use", "sig") != "sig"
        or not (isinstance(operations, list) and "verify" in operations)
        or not all(isinstance(text, str) and len(text) <= _MEMBER_CHARS_MAX for text in texts)
    ):
        return None
    try:
        key = PyJWK(entry)
    except (PyJWTError, ValueError, TypeError, OverflowError):
        return None
    is_odd = key.key_type == "RSA" and key.key.key_size not in _RSA_BITS
    return None if is_odd or key.algorithm_name not in _ALGORITHMS else key


def header_of(token: str) -> TokenHeader | None:
    """Return the header of a JWT, None for a token that is not one. Raises `TokenUnfit` for one that is not taken."""
    first = token.partition(".")[0]
    if not _PARTS.fullmatch(token) or len(first) > _HEADER_CHARS_MAX:
        return None
    header = _object(_decoded(first))
    if header is None or "alg" not in header:
        return None
    algorithm, kind, key_id = header["alg"], header.get("typ"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
        raise TokenUnfit("its algorithm is not among those that are taken")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise TokenUnfit("its typ is neither at+jwt nor JWT")
    if "crit" in header or "b64" in header:
        raise TokenUnfit("it has an extension that must be understood (crit)")
    if key_id is not None and not is_plain(key_id):
        raise TokenUnfit("its kid is not a printable text")
    return TokenHeader(algorithm, key_id)


def claims_of(token: str, header: TokenHeader, key: AllowedPublicKeys) -> Mapping[str, Any] | None:
    """Return the claims of a token that a key verifies, None where it does not. Raises `TokenUnfit` for no claims."""
    try:
        payload = PyJWS(algorithms=[header.algorithm]).decode(token, key, algorithms=[header.algorithm])
    except (PyJWTError, ValueError, TypeError):
        return None
    claims = _object(payload)
    if claims is None:
        raise TokenUnfit("what it says is not a JSON object, or has a member twice")
    return claims


def _decoded(part: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        return b""


def _object(text: bytes) -> dict[str, Any] | None:
    """Return a JSON object whose members are each there once (RFC 8725, 2.4, of what two readers take differently)."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is there twice")
    return found
