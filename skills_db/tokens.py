"""Security boundary: the bearer tokens that this server gave out, each as a digest and whom it stands for.

A digest is SHA-256 of a token of 256 random bits. No slow hash is needed: those are for what people think up, of which
few are likely; of these all are, and nobody tries 2^255 of them (NIST SP 800-63B, 5.1.2.2, look-up secrets of 112 bits
and more).

A token is looked up by the beginning of its digest, and the rest is compared in constant time, with a digest of nothing
where there is none: neither how a look-up goes nor how long it takes depends on how close a guess came.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from .engine import Database
from .sql import Row, sa
from .tables import TOKEN

MARK_CHARS = 16
_NO_DIGEST = "0" * 64
USED_SECONDS = 300.0
"""When a token was last used is kept this coarsely: a write for each request would cost more than all the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """A token as it is stored. Moments are in seconds since 1970; one without `expires` never does."""

    id: str
    name: str
    tenant: str
    principal: str
    scopes: tuple[str, ...]
    created: float
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None

    def is_valid(self, now: float) -> bool:
        """Return whether it counts at a moment."""
        return self.revoked is None and (self.expires is None or now < self.expires)


class TokenStore:
    """The tokens of one database. Everything blocks, and raises what the database raises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self,
        digest: str,
        *,
        name: str,
        tenant: str,
        principal: str,
        scopes: Sequence[str],
        now: float,
        expires: float | None,
    ) -> StoredToken:
        """Store a token by its digest, 64 hexadecimal digits."""
        row = {
            "token_id": f"tok_{secrets.token_hex(8)}",
            "name": name,
            "tenant": tenant,
            "principal": principal,
            "scopes": " ".join(scopes),
            "mark": digest[:MARK_CHARS],
            "digest": digest,
            "created": now,
            "expires": expires,
        }
        with self._database.transaction() as connection:
            return _stored_token(connection.execute(TOKEN.insert().returning(TOKEN), row).one())

    def find(self, digest: str) -> StoredToken | None:
        """Return the token of a digest, whether or not it still counts."""
        return self.find_all([digest]).get(digest)

    def find_all(self, digests: Sequence[str]) -> dict[str, StoredToken]:
        """Return the tokens of those of some digests that have one, whether or not they still count, by one query."""
        by_mark: dict[str, list[Row]] = {}
        marks = {digest[:MARK_CHARS] for digest in digests}
        with self._database.read() as connection:
            for row in connection.execute(sa.select(TOKEN).where(TOKEN.c.mark.in_(marks))):
                by_mark.setdefault(row.mark, []).append(row)
        found = {}
        for digest in digests:
            rows = by_mark.get(digest[:MARK_CHARS], [])
            for row in rows:
                if hmac.compare_digest(row.digest, digest):
                    found[digest] = _stored_token(row)
            if not rows:
                hmac.compare_digest(_NO_DIGEST, digest)
        return found

    def note_use(self, token_id: str, now: float) -> None:
        """Note that a token was used, unless that was noted `USED_SECONDS` ago or later."""
        stale = TOKEN.c.used.is_(None) | (TOKEN.c.used <= now - USED_SECONDS)
        with self._database.transaction(durable=False) as connection:
            connection.execute(sa.update(TOKEN).where(TOKEN.c.token_id == token_id, stale).values(used=now))

    def listed(self, tenant: str | None = None) -> tuple[StoredToken, ...]:
        """Return all tokens, or those of a tenant, in the order in which they were made."""
        return self._those(*(() if tenant is None else (TOKEN.c.tenant == tenant,)))

    def named(self, id_or_name: str, now: float) -> tuple[StoredToken, ...]:
        """Return the token of an id, else those of a name that count at a moment."""
        return self._those(TOKEN.c.token_id == id_or_name) or tuple(
            each for each in self._those(TOKEN.c.name == id_or_name) if each.is_valid(now)
        )

    def revoke(self, token_id: str, now: float) -> bool:
        """Revoke a token, from the moment this returns; False where there is none, or it is revoked."""
        return self._revoke(TOKEN.c.token_id == token_id, now) > 0

    def revoke_tenant(self, tenant: str, now: float) -> int:
        """Revoke every token of a tenant; return how many did count."""
        return self._revoke(TOKEN.c.tenant == tenant, now)

    def _those(self, *which: sa.ColumnElement[bool]) -> tuple[StoredToken, ...]:
        with self._database.read() as connection:
            return tuple(map(_stored_token, connection.execute(sa.select(TOKEN).where(*which).order_by(TOKEN.c.id))))

    def _revoke(self, which: sa.ColumnElement[bool], now: float) -> int:
        with self._database.transaction() as connection:
            revoked = sa.update(TOKEN).where(which, TOKEN.c.revoked.is_(None)).values(revoked=now)
            return connection.execute(revoked).rowcount


def _stored_token(row: Row) -> StoredToken:
    return StoredToken(
        id=row.token_id,
        name=row.name,
        tenant=row.tenant,
        principal=row.principal,
        scopes=tuple(row.scopes.split()),
        created=row.created,
        expires=row.expires,
        revoked=row.revoked,
        used=row.used,
    )
