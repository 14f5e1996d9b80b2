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
from ..leases import NOBODYS, Lease, taken
from ..sql import insert, sa
from ..tables import SIGN_IN, SIGN_IN_FLOW
from ..vault_keys import SealBroken
from .sign_in_flows import SignInFlows
from .sign_in_keys import SignInKeys, StoredTokens

if TYPE_CHECKING:
    from ..engine import Database

_TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class StoredSignIn:
    """What a sign-in gave; `version` counts how often it was replaced or renewed. `tokens` are left out of logs."""

    version: int
    tokens: StoredTokens

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
        with self._database.read() as connection:
            row = connection.execute(sa.select(SIGN_IN).where(_KEPT.owner == owner)).one_or_none()
        return None if row is None else StoredSignIn(row.version, self._opened(owner, row.sealed, server))

    def put(self, person: str, server: str, tokens: StoredTokens) -> None:
        """Keep what a sign-in gave, in the place of an earlier one. Once it returns, it survives a crash."""
        row = self._row(person, server, tokens)
        values = {name: row[name] for name in ("changed", "sealed", *NOBODYS)} | {"version": _KEPT.version + 1}
        put = insert(SIGN_IN).values(row).on_conflict_do_update(index_elements=["owner"], set_=values)
        with self._database.transaction() as connection:
            connection.execute(put)

    def _row(self, person: str, server: str, tokens: StoredTokens) -> dict[str, object]:
        owner = self.keys.owner(person, server)
        return {
            **NOBODYS,
            "owner": owner,
            "person": self.keys.person(person),
            "version": 1,
            "changed": time.time(),
            "sealed": self.keys.sealed(owner, _TOKENS, tokens),
        }

    def lease(self, person: str, server: str, version: int, process: str, seconds: float) -> bool:
        """Take the right to renew that version; False where another has it, or the version is gone."""
        now = time.time()
        free = sa.update(SIGN_IN).where(*self._is_version(person, server, version), _LEASE.is_free(now))
        with self._database.transaction() as connection:
            return connection.execute(free.values(taken(process, now + seconds))).rowcount > 0

    def renew(self, person: str, server: str, version: int, process: str, tokens: StoredTokens) -> bool:
        """Keep what a renewal gave; False where the sign-in was revoked or replaced meanwhile: then nothing is kept."""
        values = self._row(person, server, tokens) | {"version": version + 1}
        held = sa.update(SIGN_IN).where(*self._is_version(person, server, version), _LEASE.is_of(process))
        with self._database.transaction() as connection:
            return connection.execute(held.values(values)).rowcount > 0

    def release(self, person: str, server: str, version: int, process: str) -> None:
        """Give the right to renew back."""
        held = sa.update(SIGN_IN).where(*self._is_version(person, server, version), _LEASE.is_of(process))
        with self._database.transaction() as connection:
            connection.execute(held.values(NOBODYS))

    def _is_version(self, person: str, server: str, version: int | None) -> tuple[sa.ColumnElement[bool], ...]:
        own = _KEPT.owner == self.keys.owner(person, server)
        return (own,) if version is None else (own, _KEPT.version == version)

    def remove(self, person: str, server: str, version: int | None = None) -> bool:
        """Forget a sign-in, or that version of it, and what is under way; return whether there was one."""
        with self._database.transaction() as connection:
            removed = connection.execute(sa.delete(SIGN_IN).where(*self._is_version(person, server, version)))
            if version is None:
                own = SIGN_IN_FLOW.c.owner == self.keys.owner(person, server)
                connection.execute(sa.delete(SIGN_IN_FLOW).where(own))
        return removed.rowcount > 0

    def remove_all(self, person: str | None = None) -> tuple[int, tuple[StoredTokens, ...]]:
        """Forget every sign-in of a person, or of all, and those under way.

        Return how many there were, and what those gave that can be read, so that it can be revoked.
        """
        ended, flows = sa.delete(SIGN_IN), sa.delete(SIGN_IN_FLOW)
        if person is not None:
            own = self.keys.person(person)
            ended, flows = ended.where(_KEPT.person == own), flows.where(SIGN_IN_FLOW.c.person == own)
        with self._database.transaction() as connection:
            rows = connection.execute(ended.returning(_KEPT.owner, _KEPT.sealed)).all()
            connection.execute(flows)
        readable: list[StoredTokens] = []
        for row in rows:
            with suppress(SealBroken):
                readable.append(self.keys.opened(row.owner, _TOKENS, row.sealed))
        return len(rows), tuple(readable)

    def _opened(self, owner: str, sealed: bytes, server: str) -> StoredTokens:
        try:
            return self.keys.opened(owner, _TOKENS, sealed)
        except SealBroken:
            raise SignInUnreadable(
                f"The sign-in to the server {server!r} cannot be read with this vault key, or was changed. "
                "Sign out of the server, and sign in again."
            ) from None


def sign_ins_of(database: Database) -> int:
    """Count the sign-ins of a database."""
    with database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(SIGN_IN)).scalar_one())


_KEPT = SIGN_IN.c
_LEASE = Lease(SIGN_IN)
