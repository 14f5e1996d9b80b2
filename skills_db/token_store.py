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
from .models import TokenRow
from .sql import Session, col, sa, select

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
        row = TokenRow(
            token_id=f"tok_{secrets.token_hex(8)}",
            name=name,
            tenant=tenant,
            principal=principal,
            scopes=" ".join(scopes),
            mark=digest[:MARK_CHARS],
            digest=digest,
            created=now,
            expires=expires,
        )
        with self._database.transaction() as session:
            session.add(row)
            session.flush()
            return _told(row)

    def find(self, digest: str) -> StoredToken | None:
        """Return the token of a digest, whether or not it still counts."""
        return self.find_all([digest]).get(digest)

    def find_all(self, digests: Sequence[str]) -> dict[str, StoredToken]:
        """Return the tokens of those of some digests that have one, whether or not they still count, by one query."""
        by_mark: dict[str, list[TokenRow]] = {}
        with self._database.read() as session:
            marks = {digest[:MARK_CHARS] for digest in digests}
            for row in session.exec(select(TokenRow).where(col(TokenRow.mark).in_(marks))).all():
                by_mark.setdefault(row.mark, []).append(row)
            found = {}
            for digest in digests:
                rows = by_mark.get(digest[:MARK_CHARS], [])
                for row in rows:
                    if hmac.compare_digest(row.digest, digest):
                        found[digest] = _told(row)
                if not rows:
                    hmac.compare_digest(_NO_DIGEST, digest)
            return found

    def note_use(self, token_id: str, now: float) -> None:
        """Note that a token was used, unless that was noted `USED_SECONDS` ago or later."""
        stale = (col(TokenRow.used).is_(None)) | (col(TokenRow.used) <= now - USED_SECONDS)
        with self._database.transaction(durable=False) as session:
            session.connection().execute(
                sa.update(TokenRow).where(col(TokenRow.token_id) == token_id, stale).values(used=now)
            )

    def listed(self, tenant: str | None = None) -> tuple[StoredToken, ...]:
        """Return all tokens, or those of a tenant, in the order in which they were made."""
        wanted = select(TokenRow).order_by(col(TokenRow.id))
        if tenant is not None:
            wanted = wanted.where(TokenRow.tenant == tenant)
        with self._database.read() as session:
            return tuple(map(_told, session.exec(wanted).all()))

    def named(self, id_or_name: str, now: float) -> tuple[StoredToken, ...]:
        """Return the token of an id, else those of a name that count at a moment."""
        with self._database.read() as session:
            by_id = session.exec(select(TokenRow).where(TokenRow.token_id == id_or_name)).first()
            if by_id is not None:
                return (_told(by_id),)
            rows = session.exec(select(TokenRow).where(TokenRow.name == id_or_name).order_by(col(TokenRow.id))).all()
            return tuple(told for told in map(_told, rows) if told.is_valid(now))

    def revoke(self, token_id: str, now: float) -> bool:
        """Have a token count no more, from the moment this returns; False where there is none, or it is revoked."""
        with self._database.transaction() as session:
            return _changed(
                session,
                sa.update(TokenRow)
                .where(col(TokenRow.token_id) == token_id, col(TokenRow.revoked).is_(None))
                .values(revoked=now),
            )

    def revoke_tenant(self, tenant: str, now: float) -> int:
        """Have every token of a tenant count no more; return how many did."""
        with self._database.transaction() as session:
            changed = session.connection().execute(
                sa.update(TokenRow)
                .where(col(TokenRow.tenant) == tenant, col(TokenRow.revoked).is_(None))
                .values(revoked=now)
            )
            return changed.rowcount


def _changed(session: Session, change: sa.Update) -> bool:
    return session.connection().execute(change).rowcount > 0


def _told(row: TokenRow) -> StoredToken:
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
