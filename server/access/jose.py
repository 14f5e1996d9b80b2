"""PyJWT, imported whole after the part of cryptography that another thread may be importing; see `skills_db.cipher`."""

from __future__ import annotations

from ...skills_db import cipher  # noqa: F401 - it is imported before PyJWT names submodules of cryptography

# isort: split
from jwt.algorithms import AllowedPublicKeys, ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.api_jws import PyJWS
from jwt.exceptions import InvalidKeyError, PyJWTError

__all__ = [
    "AllowedPublicKeys",
    "ECAlgorithm",
    "InvalidKeyError",
    "OKPAlgorithm",
    "PyJWS",
    "PyJWTError",
    "RSAAlgorithm",
]
