"""The keys that an issuer signs tokens with (JSON Web Key Set, RFC 7517), and which of them fit a token.

A security boundary: an algorithm is taken only with a key that is of its type, so that no token chooses how it is
verified (RFC 8725, 3.1 and 3.2).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from jwt.algorithms import AllowedPublicKeys

_LOG = logging.getLogger(__name__)

ALGORITHMS: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
        "ES256": ("EC", "P-256"),
        "ES384": ("EC", "P-384"),
        "ES512": ("EC", "P-521"),
        "EdDSA": ("OKP", "Ed25519"),
    }
)
"""The algorithms that are taken (RFC 7518, 3.1, RFC 8037, 3.1), each with the type and the curve of its keys."""
KEYS_MAX = 100
_ALIKE_MAX = 4
"""How many keys are tried for one token, where several have its id or it has none."""
_MEMBER_CHARS_MAX = 1500
_RSA_BITS = range(2048, 8193)


@dataclass(frozen=True, slots=True)
class _Key:
    id: str | None
    algorithm: str | None
    kind: tuple[str, str | None]
    public: AllowedPublicKeys


class SigningKeys:
    """The usable keys of a key set; each is public, and for signatures."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Read a key set. What cannot be used is left out: a set may hold keys of kinds to come (RFC 7517, 5)."""
        listed = document.get("keys")
        entries = listed if isinstance(listed, list) else []
        if len(entries) > KEYS_MAX:
            _LOG.warning("Of the %d keys of the issuer the first %d are used.", len(entries), KEYS_MAX)
        found = [_usable(entry) for entry in entries[:KEYS_MAX]]
        self._keys = [key for key in found if key is not None]

    def __len__(self) -> int:
        return len(self._keys)

    def fitting(self, key_id: str | None, algorithm: str) -> Sequence[AllowedPublicKeys]:
        """Return the keys that may have signed a token with this `kid` and `alg`."""
        kind = ALGORITHMS.get(algorithm)
        found = [
            key.public
            for key in self._keys
            if key.kind == kind and key.algorithm in {None, algorithm} and key_id in {None, key.id}
        ]
        return found[:_ALIKE_MAX]


def _usable(entry: object) -> _Key | None:
    from .jose import ECAlgorithm, InvalidKeyError, OKPAlgorithm, RSAAlgorithm

    forms: Mapping[object, type[RSAAlgorithm | ECAlgorithm | OKPAlgorithm]]
    forms = {"RSA": RSAAlgorithm, "EC": ECAlgorithm, "OKP": OKPAlgorithm}
    if not isinstance(entry, dict) or not _is_for_signatures(entry):
        return None
    members = {name: entry.get(name) for name in ("kty", "crv", "n", "e", "x", "y") if name in entry}
    if not all(isinstance(value, str) and len(value) <= _MEMBER_CHARS_MAX for value in members.values()):
        return None
    kind = next((each for each in ALGORITHMS.values() if each == _kind(members)), None)
    if kind is None:
        return None
    try:
        public = forms[kind[0]].from_jwk(members)
    except (InvalidKeyError, ValueError, TypeError, OverflowError):
        return None
    if kind[0] == "RSA" and cast("RSAPublicKey", public).key_size not in _RSA_BITS:
        return None
    return _Key(entry.get("kid"), entry.get("alg"), kind, cast("AllowedPublicKeys", public))


def _kind(members: Mapping[str, Any]) -> tuple[object, object]:
    return members["kty"], None if members["kty"] == "RSA" else members.get("crv")


def _is_for_signatures(entry: Mapping[str, Any]) -> bool:
    """Return whether a key may verify signatures (RFC 7517, 4.2 and 4.3). One with its private half is no secret."""
    operations = entry.get("key_ops")
    return (
        isinstance(entry.get("kty"), str)
        and entry.get("use", "sig") == "sig"
        and (operations is None or (isinstance(operations, list) and "verify" in operations))
        and isinstance(entry.get("kid", ""), str)
        and isinstance(entry.get("alg", ""), str)
        and not entry.keys() & {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}
    )
