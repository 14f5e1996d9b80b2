"""Security boundary: encrypts what journals hold, bound to where it stands.

The key is derived from the vault's master key with HMAC-SHA256. What is sealed is 12 bytes of nonce, then AES-256-GCM,
with format, owner, run, part and position as associated data: so nothing can stand in for another run's, another
owner's or another position's. The end is bound to the number of pieces, so that none can be cut from an ended journal.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import cached_property

from ..vault_keys import Seal, VaultKeys
from .records import FORMAT

_NAME_CHARS = 32


class JournalKeys:
    """All that journals need of one master key."""

    def __init__(self, master: bytes) -> None:
        self._master = master
        self._vault = VaultKeys(master)

    @property
    def mark(self) -> str:
        """What distinguishes the master key from others: the vault's own mark."""
        return self._vault.mark

    def owner(self, scope: str) -> str:
        """Return what the database calls a scope: the same name that the vault has for it."""
        return self._vault.of_scope(scope).name

    def session(self, scope: str, name: str) -> str:
        """Return what the database calls a session."""
        return hmac.digest(self._derived("sessions"), f"{scope}\0{name}".encode(), hashlib.sha256).hex()[:_NAME_CHARS]

    def approval_mark(self, said: bytes) -> bytes:
        """Return what shows that a link to a question says what was put into it here."""
        return hmac.digest(self._derived("approval links"), said, hashlib.sha256)

    def sealed(self, owner: str, run_id: str, part: str, position: int, data: bytes) -> bytes:
        """Encrypt data for that part of that run."""
        return self._seal.sealed(data, _bound(owner, run_id, part, position))

    def opened(self, owner: str, run_id: str, part: str, position: int, sealed: bytes) -> bytes:
        """Decrypt what was sealed for that part of that run. Raises `SealBroken`."""
        return self._seal.opened(sealed, _bound(owner, run_id, part, position))

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self._master, f"sealab journal|{purpose}".encode(), hashlib.sha256)

    @cached_property
    def _seal(self) -> Seal:
        return Seal(self._derived("content"))


def _bound(owner: str, run_id: str, part: str, position: int) -> str:
    return f"{FORMAT}|{owner}|{run_id}|{part}|{position}"
