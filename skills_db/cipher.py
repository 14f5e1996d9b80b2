"""What seals a value, imported whole and by one thread, when something is first sealed or opened; see `sql`."""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["AESGCM", "InvalidTag"]
