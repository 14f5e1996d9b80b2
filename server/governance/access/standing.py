"""Security boundary: what somebody may do now who asked for something earlier, judged anew each time it is done.

Own tokens are looked up. An issuer of OAuth tells nothing of a person without their token: what they asked for counts
for `ISSUERS_DAYS` after they last said so.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ...base.database import HomeDatabase
from ...base.errors import RightMissing
from ...base.host_work import Kind, in_thread
from ...base.identity import Identity
from ...base.settings import Auth, Settings
from ..caller import LOCAL
from .names import known_rights

ISSUERS_DAYS = 30
_OWN = "tok_"
Standing = Callable[[Identity, str, float], Awaitable[Identity]]
"""Returns an identity of a scope with the rights that it has now; when it last said so, in seconds since 1970.

Raises `RightMissing`, and what the database raises.
"""


def standing_in(settings: Settings, operators: HomeDatabase) -> Standing:
    """Return what judges those whose tokens the operator's database has."""

    async def standing(identity: Identity, scope: str, said: float) -> Identity:
        credential = identity.credential
        if credential.startswith(_OWN):
            from ....skills_db.tokens import TokenStore

            now = time.time()
            found = await in_thread(
                Kind.DATABASE, lambda: TokenStore(operators()).named(credential, now), charged=False
            )
            if not found or not found[0].is_valid(now):
                how = "expired" if found and found[0].revoked is None else "was revoked"
                raise RightMissing(f"The token {credential} of {identity.principal} {how}. Add it again with another.")
            return replace(identity, rights=known_rights(found[0].scopes))
        if credential and time.time() - said > ISSUERS_DAYS * 86_400:
            raise RightMissing(
                f"{identity.principal} has not said for {ISSUERS_DAYS} days that it shall go on. Add it again."
            )
        if not credential and settings.auth is not Auth.OFF and scope != LOCAL.scope:
            raise RightMissing(
                "It was added by a caller without a token, which AUTH asks for now. Add it again with one."
            )
        return identity

    return standing
