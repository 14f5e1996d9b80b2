"""Signs a person in at the issuer of tokens by a browser: the authorization code grant with PKCE (RFC 6749, RFC 7636).

A security boundary. The token is asked for with the server's own client and for this server alone (RFC 8707). What it
stands for is judged as that of any other token.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from urllib.parse import quote_plus, urlencode

from ...base.identity import Right
from .issuer import Issuer
from .issuer_link import IssuerLink
from .verifier import VerifierUnavailable


@dataclass(frozen=True, slots=True)
class CodeGrant:
    """The grant at one issuer; `user` is this server's id and secret there. Belongs to one event loop."""

    link: IssuerLink
    issuer: Issuer
    name: str
    audience: str
    user: tuple[str, str]

    async def url(self, callback: str, state: str, verifier: str) -> str:
        """Return where a browser signs in, which then comes to `callback`. Raises `VerifierUnavailable`."""
        address = (await self.issuer.facts()).metadata.authorization_url
        if address is None:
            raise VerifierUnavailable("The issuer names no authorization endpoint. Sign in with a token.")
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self.user[0],
            "redirect_uri": callback,
            "scope": " ".join(Right),
            "resource": self.audience,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    async def token(self, callback: str, code: str, verifier: str) -> str | None:
        """Return the access token for a code, None where the issuer gives none. Raises `VerifierUnavailable`."""
        metadata = (await self.issuer.facts()).metadata
        if metadata.token_url is None:
            raise VerifierUnavailable("The issuer names no token endpoint. Sign in with a token.")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": verifier,
            "resource": self.audience,
        }
        client_id, secret = self.user
        basic: tuple[str, str] | None = quote_plus(client_id), quote_plus(secret)
        if metadata.posts_secret:
            form, basic = form | {"client_id": client_id, "client_secret": secret}, None
        answer = await self.link.post(metadata.token_url, form, basic)
        if answer.is_refusal and not answer.is_about_the_form:
            raise VerifierUnavailable(
                "The token endpoint of the issuer refuses this server. Check OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET."
            )
        token = answer.content.get("access_token")
        return token if not answer.is_refusal and isinstance(token, str) else None
