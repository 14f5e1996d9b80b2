"""What the audit log gets to know of who is let in over HTTP and who is not; never a token."""

from __future__ import annotations

from starlette.types import ASGIApp, Scope

from ...access.guesses import block_of
from ...audit.trail import AuditTrail, DenialReason
from ...errors import AuditUnwritten
from ...identity import Identity
from ...lru import Lru
from .error_responses import refusal

REMEMBERED_MAX = 10_000
"""Credentials whose sign-in was noted and is not noted again; of more, those used longest ago are forgotten."""
_RETRY_SECONDS = 2


class AccessLines:
    """Notes sign-ins and denials. Belongs to one event loop."""

    def __init__(self, audit: AuditTrail) -> None:
        self._audit = audit
        self._remembered: Lru[bytes, None] = Lru(REMEMBERED_MAX)
        self._unkept: set[bytes] = set()
        """Of these the credentials whose line may not be written yet."""

    async def signed_in(self, mark: bytes, identity: Identity, method: str) -> None:
        """Note that a credential was accepted, unless that was noted before; `mark` is a digest of it.

        Raises `AuditUnwritten` where the line is required and cannot be kept.
        """
        if mark in self._remembered:
            self._remembered.used(mark)
            if mark not in self._unkept:
                return
        else:
            self._audit.signed_in(identity, method)
            self._remembered[mark] = None
            self._unkept.add(mark)
        try:
            await self._audit.kept()
        except BaseException:
            self._remembered.pop(mark, None)
            raise
        finally:
            self._unkept.discard(mark)

    async def denied(
        self,
        scope: Scope,
        answer: ASGIApp,
        *,
        status: int,
        reason: DenialReason,
        identity: Identity | None = None,
        lacks: str = "",
    ) -> ASGIApp:
        """Note that a request is not let in, and return the answer to it: 503 where a required line cannot be kept."""
        self._audit.denied(identity, status=status, reason=reason, lacks=lacks, address=block_of(address_of(scope)))
        try:
            await self._audit.kept()
        except AuditUnwritten as error:
            return unkept(error)
        return answer


def unkept(error: AuditUnwritten) -> ASGIApp:
    """Return the answer to a request whose line cannot be kept."""
    return refusal(503, str(error), retry_after=_RETRY_SECONDS)


def address_of(scope: Scope) -> str:
    """Return the address that a request came from; empty where none is known."""
    client = scope.get("client")
    return "" if client is None else str(client[0])
