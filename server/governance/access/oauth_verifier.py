"""Finds whom an access token of an OAuth 2.1 issuer stands for: a JWT by the issuer's keys, any other by introspection.

A security boundary. A token counts only if it was made by the issuer that the operator named, for this server
(RFC 8707), is valid now, and names a principal and, where tenants are distinguished, a tenant.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from ...base.errors import SettingsError
from ...base.identity import Identity
from ...base.lru import Lru
from ...base.settings import Settings
from .claims import ClaimRules, TokenUnfit, is_plain
from .code_grant import CodeGrant
from .introspection import Introspection
from .issuer import Issuer, IssuerFacts
from .issuer_link import IssuerLink
from .signed_tokens import TokenHeader, claims_of, header_of

_LOG = logging.getLogger(__name__)

TOKEN_CHARS_MAX = 16_384
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What a bearer token consists of (RFC 6750, 2.1)."""
_VERIFIED_MAX = 1000
"""Tokens whose signature need not be verified again until the keys are fetched again; their claims are, each time."""


class OAuthVerifier:
    """A `Verifier` of the tokens of one issuer. Belongs to one event loop; close it when done.

    `now` is the time of the day in seconds, `monotonic` a clock that never goes back.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read what the operator says of tokens. Raises `SettingsError`; the issuer is asked when a token comes."""
        if settings.oauth_issuer is None or settings.oauth_audience is None:
            raise SettingsError("AUTH is oauth without an issuer. Set OAUTH_ISSUER and OAUTH_AUDIENCE.")
        self._now = now
        self._rules = ClaimRules(settings.oauth_issuer, settings.oauth_audience, settings.oauth_tenant_claim)
        self._link = IssuerLink()
        self._issuer = Issuer(self._link, settings.oauth_issuer, monotonic)
        self._verified: Lru[bytes, tuple[IssuerFacts, Mapping[str, Any]]] = Lru(_VERIFIED_MAX)
        self._introspection: Introspection | None = None
        self.code_grant: CodeGrant | None = None
        """What signs people in by their browsers, where the server has a client of its own at the issuer."""
        if settings.oauth_client_id is not None and settings.oauth_client_secret is not None:
            user = settings.oauth_client_id, settings.oauth_client_secret
            self.code_grant = CodeGrant(self._link, self._issuer, settings.oauth_issuer, settings.oauth_audience, user)
            self._introspection = Introspection(
                self._link,
                self._issuer,
                self._rules,
                user=user,
                url=settings.oauth_introspection_url,
                now=now,
                monotonic=monotonic,
            )

    @property
    def fetches(self) -> int:
        """How often the issuer was asked for its metadata and keys."""
        return self._issuer.fetches

    async def identity_of(self, token: str) -> Identity | None:
        """Return the identity of a valid token, None for any other. Raises `VerifierUnavailable`."""
        if len(token) > TOKEN_CHARS_MAX or not token.isascii():  # before anything is decoded
            return None
        try:
            header = header_of(token)
            if header is not None:
                return self._identity(token, await self._claims(token, header))
        except TokenUnfit as reason:
            _LOG.info("A token was refused: %s.", reason)
            return None
        if self._introspection is None or not _BEARER.fullmatch(token):
            return None
        return await self._introspection.identity_of(token)

    async def close(self) -> None:
        """End what is asked of the issuer, and its connections."""
        if self._introspection is not None:
            await self._introspection.close()
        await self._issuer.close()
        await self._link.close()

    async def _claims(self, token: str, header: TokenHeader) -> Mapping[str, Any]:
        """Return the claims of a token that a key of the issuer verifies.

        Where none has its id, the issuer may have begun to sign with a new one, so it is asked again.
        """
        facts = await self._issuer.facts()
        mark = hashlib.sha256(token.encode()).digest()
        by, claims = self._verified.used(mark) or (None, None)
        if by is facts and claims is not None:
            return claims
        keys = facts.keys.fitting(header)
        if not keys:
            facts = await self._issuer.newer_facts(facts)
            keys = facts.keys.fitting(header)
        if not keys:
            raise TokenUnfit("the issuer has no key that it could be signed with")
        for key in keys:
            claims = claims_of(token, header, key)
            if claims is not None:
                self._verified[mark] = (facts, claims)
                return claims
        raise TokenUnfit("its signature is not the issuer's")

    def _identity(self, token: str, claims: Mapping[str, Any]) -> Identity:
        name = claims.get("jti")
        credential = str(name) if is_plain(name) else hashlib.sha256(token.encode()).hexdigest()[:16]
        return self._rules.identity(claims, self._now(), signed=True, credential=credential)
