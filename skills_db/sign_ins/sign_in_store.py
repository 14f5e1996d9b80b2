"""Keeps what sign-ins to upstream servers gave, and has one process at a time renew each.

This is a security boundary: tokens and registrations of clients stand in the database as ciphertext alone
(`sign_in_keys`). A sign-in is found by whose it is and by its server, and never listed for others.

Issuers that rotate refresh tokens (RFC 9700, section 4.14.2) take an old one for stolen. So whoever renews a sign-in
holds a lease, and what it was given is stored only in the place of the version that it renewed.

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import SignInUnreadable
from ..sql import sa
from ..vault_keys import SealBroken
from .sign_in_flows import SignInFlows
from .sign_in_keys import SignInKeys, Told

if TYPE_CHECKING:
    from ..engine import Database

_TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class StoredSignIn:
    """What a sign-in gave; `version` counts how often it was replaced or renewed. `told` is left out of logs."""

    version: int
    told: Told

    def __repr__(self) -> str:
        return f"StoredSignIn(version={self.version})"


class SignInStore:
    """The sign-ins of one database under one master key. A person is any text that stands for one."""

    def __init__(self, database: Database, key: bytes) -> None:
        self._database = database
        self.keys = SignInKeys(key)
        self.flows = SignInFlows(database, self.keys)
        """Those that are under way."""

    def get(self, person: str, server: str) -> StoredSignIn | None:
        """Return what a person has for a server. Raises `SignInUnreadable`."""
        owner = self.keys.owner(person, server)
        with self._database.read() as session:
            row = session.execute(_GET, {"owner": owner}).one_or_none()
        return None if row is None else StoredSignIn(row.version, self._opened(owner, row.sealed, server))

    def put(self, person: str, server: str, told: Told) -> None:
        """Keep what a sign-in gave, in the place of an earlier one. Once it returns, it survives a crash."""
        owner = self.keys.owner(person, server)
        row = {
            "owner": owner,
            "person": self.keys.person(person),
            "now": time.time(),
            "sealed": self.keys.sealed(owner, _TOKENS, told),
        }
        with self._database.transaction() as session:
            session.execute(_PUT, row)

    def lease(self, person: str, server: str, version: int, process: str, seconds: float) -> bool:
        """Take the right to renew that version; False where another has it, or the version is gone."""
        now = time.time()
        asked = {"owner": self.keys.owner(person, server), "version": version, "process": process, "now": now}
        with self._database.transaction() as session:
            return session.execute(_LEASE, asked | {"until": now + seconds}).one_or_none() is not None

    def renew(self, person: str, server: str, version: int, process: str, told: Told) -> bool:
        """Keep what a renewal gave; False where the sign-in was revoked or replaced meanwhile: then nothing is kept."""
        owner = self.keys.owner(person, server)
        row = {
            "owner": owner,
            "version": version,
            "process": process,
            "now": time.time(),
            "sealed": self.keys.sealed(owner, _TOKENS, told),
        }
        with self._database.transaction() as session:
            return session.execute(_RENEW, row).one_or_none() is not None

    def release(self, person: str, server: str, version: int, process: str) -> None:
        """Give the right to renew back."""
        asked = {"owner": self.keys.owner(person, server), "version": version, "process": process}
        with self._database.transaction() as session:
            session.execute(_RELEASE, asked)

    def remove(self, person: str, server: str, version: int | None = None) -> bool:
        """Forget a sign-in, or that version of it, and what is under way; return whether there was one."""
        asked = {"owner": self.keys.owner(person, server), "version": version}
        with self._database.transaction() as session:
            removed = session.execute(_REMOVE, asked).one_or_none() is not None
            if version is None:
                session.execute(_REMOVE_FLOWS, asked)
            return removed

    def remove_all(self, person: str | None = None) -> tuple[int, tuple[Told, ...]]:
        """Forget every sign-in of a person, or of all, and those under way.

        Return how many there were, and what those gave that can be read, so that it can be revoked.
        """
        asked = {"person": None if person is None else self.keys.person(person)}
        with self._database.transaction() as session:
            rows = session.execute(_REMOVE_ALL, asked).all()
            session.execute(_REMOVE_ALL_FLOWS, asked)
        readable: list[Told] = []
        for row in rows:
            with suppress(SealBroken):
                readable.append(self.keys.opened(row.owner, _TOKENS, row.sealed))
        return len(rows), tuple(readable)

    def _opened(self, owner: str, sealed: object, server: str) -> Told:
        try:
            return self.keys.opened(owner, _TOKENS, sealed)
        except SealBroken:
            raise SignInUnreadable(
                f"The sign-in to the server {server!r} cannot be read with this vault key, or was changed. "
                "Sign out of the server, and sign in again."
            ) from None


def sign_ins_of(database: Database) -> int:
    """Count the sign-ins of a database."""
    with database.read() as session:
        return int(session.execute(_COUNT).scalar_one())


_COUNT = sa.text("SELECT count(*) FROM sealab_sign_in")
_GET = sa.text("SELECT version, sealed FROM sealab_sign_in WHERE owner = :owner")
_PUT = sa.text(
    "INSERT INTO sealab_sign_in (owner, person, version, changed, leased_by, leased_until, sealed) "
    "VALUES (:owner, :person, 1, :now, '', 0, :sealed) ON CONFLICT (owner) DO UPDATE SET "
    "version = sealab_sign_in.version + 1, changed = excluded.changed, leased_by = '', leased_until = 0, "
    "sealed = excluded.sealed"
)
_LEASE = sa.text(
    "UPDATE sealab_sign_in SET leased_by = :process, leased_until = :until "
    "WHERE owner = :owner AND version = :version AND leased_until < :now RETURNING version"
)
_RENEW = sa.text(
    "UPDATE sealab_sign_in SET version = version + 1, changed = :now, leased_by = '', leased_until = 0, "
    "sealed = :sealed WHERE owner = :owner AND version = :version AND leased_by = :process RETURNING version"
)
_RELEASE = sa.text(
    "UPDATE sealab_sign_in SET leased_by = '', leased_until = 0 "
    "WHERE owner = :owner AND version = :version AND leased_by = :process"
)
_REMOVE = sa.text(
    "DELETE FROM sealab_sign_in WHERE owner = :owner AND version = coalesce(:version, version) RETURNING version"
)
_REMOVE_FLOWS = sa.text("DELETE FROM sealab_sign_in_flow WHERE owner = :owner")
_REMOVE_ALL = sa.text("DELETE FROM sealab_sign_in WHERE person = coalesce(:person, person) RETURNING owner, sealed")
_REMOVE_ALL_FLOWS = sa.text("DELETE FROM sealab_sign_in_flow WHERE person = coalesce(:person, person)")
