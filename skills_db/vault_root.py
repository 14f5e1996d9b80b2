"""The key from which all others of a home are derived, sealed in its database under the key that is kept outside.

A security boundary: the database alone, or the key alone, opens nothing. The key outside can be replaced by another one
while servers run (key wrapping, NIST SP 800-57 part 1, 5.3): they go on with what they opened. For a moment both open
it, so that a crash between the database and the place of the key loses nothing.

A vault that was made before keys were wrapped has none sealed: its key outside is that from which the others are
derived, and stays what opens its copies.

Every call blocks: make it from a thread.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from collections.abc import Sequence

from .engine import Database
from .errors import VaultKeyWrong
from .sql import sa
from .tables import AUDIT_HEAD, VAULT
from .vault_keys import KEY_BYTES, Seal, SealBroken, VaultKeys

_BOUND = "vault root"
_KEPT = sa.select(VAULT.c.key_mark, VAULT.c.wrapped)


def root_of(database: Database, key: bytes) -> bytes:
    """Return what the key outside opens, made where nothing was derived from a key yet. Raises `VaultKeyWrong`."""
    with database.read() as connection:
        row = connection.execute(_KEPT).one()
        is_used = row.key_mark is not None or bool(connection.execute(sa.select(AUDIT_HEAD.c.key_mark)).scalar_one())
    if row.wrapped is None:
        if is_used:
            return key
        made = os.urandom(KEY_BYTES)
        values = {"wrapped": _wrapped(made, [key]), "key_mark": VaultKeys(made).mark}
        with database.transaction() as connection:
            unmade = VAULT.c.wrapped.is_(None) & VAULT.c.key_mark.is_(None)
            connection.execute(sa.update(VAULT).where(unmade).values(values))
        return root_of(database, key)
    for sealed in json.loads(row.wrapped):
        try:
            return _seal(key).opened(base64.b64decode(sealed), _BOUND)
        except SealBroken:
            continue
    raise VaultKeyWrong(
        "The vault was made with another key, or was given one by `sealab vault rotate`, so its values cannot be read. "
        "Give the key that it has now (VAULT_KEY, the keyring, or the key file beside the database)."
    )


def is_wrapped(database: Database) -> bool:
    """Return whether the key outside can be replaced by one that its copies do not open."""
    with database.read() as connection:
        return connection.execute(_KEPT).one().wrapped is not None


def wrap(database: Database, root: bytes, keys: Sequence[bytes]) -> None:
    """Let these keys open the root from now on, and no others."""
    with database.transaction() as connection:
        if database.is_file:
            connection.exec_driver_sql("PRAGMA secure_delete = ON")  # the page that is left keeps no old one
        connection.execute(sa.update(VAULT).values(wrapped=_wrapped(root, keys), key_mark=VaultKeys(root).mark))
    if database.is_file:
        with database.read() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _wrapped(root: bytes, keys: Sequence[bytes]) -> str:
    return json.dumps([base64.b64encode(_seal(key).sealed(root, _BOUND)).decode() for key in keys])


def _seal(key: bytes) -> Seal:
    return Seal(hmac.digest(key, b"sealab vault|root|", hashlib.sha256))
