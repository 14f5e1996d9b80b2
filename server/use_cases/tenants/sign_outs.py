"""Ends the sign-ins to upstream servers of those who may call no more, and has their issuers revoke them (RFC 7009)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ....skills_db.engine import Database
from ....skills_db.sign_ins.sign_in_keys import StoredTokens
from ....skills_db.sign_ins.sign_in_store import SignInStore, sign_ins_of
from ...base.errors import VaultKeyError
from ...base.home import Home
from ...base.identity import Identity
from ...base.settings import Settings
from ...governance.audit.trail import UNAUDITED, AuditKind, AuditTrail
from ...governance.scopes import of_principal
from ...governance.sign_ins.sign_ins import all_revoked, person_of
from ...privacy.of_home import privacy_of
from .contents import database_if_there


@dataclass(frozen=True, slots=True)
class SignedOut:
    """How many sign-ins were ended, and how many of them their issuers revoked."""

    sign_ins: int = 0
    revoked: int = 0

    @property
    def not_revoked(self) -> int:
        """How many issuers could not be reached, have no endpoint for it, or refused."""
        return self.sign_ins - self.revoked


def principal_signed_out(
    settings: Settings, home: Home, operators: Database, principal: str, audit: AuditTrail = UNAUDITED
) -> SignedOut:
    """End all sign-ins of a principal of the tenant whose home this is. Blocks.

    Raises `VaultKeyError` where there are sign-ins and they cannot be found for want of the key.
    """
    with database_if_there(settings, home, operators) as database:
        if database is None or not sign_ins_of(database):
            return SignedOut()
        store = _store(settings, home, database, operators)
        removed, given = store.remove_all(person_of(home.tenant, of_principal(principal)))
    ended = SignedOut(removed, _run_revoked(given))
    _note(audit, home, principal, ended)
    return ended


def tenant_signed_out(settings: Settings, home: Home, operators: Database, audit: AuditTrail = UNAUDITED) -> SignedOut:
    """End all sign-ins of a tenant that is removed. Blocks. Without its key they end too, and cannot be revoked."""
    with database_if_there(settings, home, operators) as database:
        if database is None or not (there := sign_ins_of(database)):
            return SignedOut()
        try:
            store = _store(settings, home, database, operators)
        except VaultKeyError:
            return SignedOut(there)
        removed, given = store.remove_all()
    ended = SignedOut(removed, _run_revoked(given))
    _note(audit, home, "", ended)
    return ended


def _store(settings: Settings, home: Home, database: Database, operators: Database) -> SignInStore:
    privacy = privacy_of(settings, home, lambda: database, operators=lambda: operators)
    try:
        return SignInStore(database, privacy.key())
    finally:
        privacy.close()


def _run_revoked(given: tuple[StoredTokens, ...]) -> int:
    """Ask the issuers in a loop of its own, whether or not one runs here."""
    if not given:
        return 0
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(lambda: asyncio.run(all_revoked(given))).result()


def _note(audit: AuditTrail, home: Home, principal: str, ended: SignedOut) -> None:
    if ended.sign_ins:
        audit.acted(
            AuditKind.UPSTREAM_SIGNED_OUT,
            Identity(home.tenant, principal, frozenset()),
            details={"sign_ins": ended.sign_ins, "revoked": ended.revoked},
        )
