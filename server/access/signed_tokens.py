"""Reads JSON Web Tokens: their header, and their claims once a key of the issuer verifies them (RFC 7515, RFC 7519).

A security boundary. PyJWT does the cryptography; what a header may say is decided here: an algorithm from a list of
asymmetric ones and the id of a key. A key or the address of one (`jwk`, `jku`, `x5c`, `x5u`) is never used (RFC 8725,
3.5 and 3.10), and an extension that must be understood (`crit`) refuses the token.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .claims import TokenUnfit, is_plain
from .signing_keys import ALGORITHMS

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

_PARTS = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_HEADER_CHARS_MAX = 4096
_TYPES = frozenset({"at+jwt", "jwt"})
"""RFC 9068, 2.1, and what issuers say that are older; their ID tokens are told apart by audience and claims."""


@dataclass(frozen=True, slots=True)
class TokenHeader:
    """The header of a signed token: not verified, and only used to choose a key."""

    algorithm: str
    key_id: str | None


def header_of(token: str) -> TokenHeader | None:
    """Return the header of a JWT, None for a token that is not one. Raises `TokenUnfit` for one that is not taken."""
    first = token.partition(".")[0]
    if not _PARTS.fullmatch(token) or len(first) > _HEADER_CHARS_MAX:
        return None
    header = _object(_decoded(first))
    if header is None or "alg" not in header:
        return None
    algorithm, kind, key_id = header["alg"], header.get("typ"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
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
    from .jose import PyJWS, PyJWTError

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
