"""What the audit log gets to know of who is not let in over HTTP; never a token."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Scope

from ....base.errors import AuditUnwritten
from ....base.identity import Identity
from ....governance.access.guesses import block_of
from ....governance.audit.trail import AuditTrail, DenialReason
from .callers import address_of
from .error_responses import refusal

_RETRY_SECONDS = 2


async def denied(
    audit: AuditTrail,
    scope: Scope,
    answer: Response,
    *,
    reason: DenialReason,
    identity: Identity | None = None,
    lacks: str = "",
) -> Response:
    """Note that a request is not let in, and return the answer to it: 503 where a required line cannot be kept."""
    address = block_of(address_of(scope))
    audit.denied(identity, status=answer.status_code, reason=reason, lacks=lacks, address=address)
    try:
        await audit.kept()
    except AuditUnwritten as error:
        return unkept(error)
    return answer


def unkept(error: AuditUnwritten) -> Response:
    """Return the answer to a request whose line cannot be kept."""
    return refusal(503, str(error), retry_after=_RETRY_SECONDS)
