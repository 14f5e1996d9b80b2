"""Asks an issuer for tokens, by the four grants that sealab uses, has it revoke them, and signs requests with them.

A security boundary: tokens, codes and secrets go to the issuer's endpoints and nowhere else, access tokens to the
server's own address too, and no error holds one. A server that refuses a token gets no second chance. Redirects are
not followed, answers are bounded, and `reach` judges where requests go. The rules are those of RFC 6749 (sections
4.1.3, 5 and 6), RFC 7009, RFC 8693 and RFC 8707.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote, urlsplit

import httpx2
from mcp.client.auth.utils import extract_scope_from_www_auth
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import BaseModel, Field, ValidationError
from typing_extensions import override

from ..configuration import ServerConfig, TokenExchange
from ..errors import SignInFailed, SignInNeeded
from ..http_bodies import BodyTooLarge, bounded_body
from .reach import NEAREST, AddressReach, JudgedTransport, reach_of_server

ANSWER_BYTES_MAX = 256 * 1024
_SECONDS = 20.0
_SUBJECT_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name of RFC 8693
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ERROR_CODE = re.compile(r"[a-z_]{1,60}")
_OVER = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""Errors after which the same request never succeeds: the sign-in is over."""
_LIFETIME_UNKNOWN_SECONDS = 300.0
_EARLY_SECONDS = 10.0
"""So long before a token ends it is renewed: the request that carries it still takes its way."""


class Registered(BaseModel):
    """This client as the issuer of a server knows it."""

    url: str
    client: OAuthClientInformationFull = Field(repr=False)
    metadata: OAuthMetadata
    resource: str | None = None
    reach: AddressReach | None = None
    """How near the server was when its user signed in; None where that was not noted."""

    async def nearest(self) -> AddressReach:
        """Return how near the issuer's endpoints may be."""
        return await reach_of_server(self.url) if self.reach is None else self.reach


class Pending(Registered):
    """What it takes to end a sign-in that was begun; it is kept as a secret."""

    verifier: str = Field(repr=False)
    redirect_uri: str
    scope: str | None = None


class Granted(Registered):
    """What a sign-in gave, and what it takes to renew and revoke it; `expires_at` is in seconds since the epoch."""

    tokens: OAuthToken = Field(repr=False)
    expires_at: float | None = None

    @property
    def is_over_soon(self) -> bool:
        """Whether the access token has ended, or does in a moment."""
        return self.expires_at is not None and time.time() >= self.expires_at - _EARLY_SECONDS


@asynccontextmanager
async def issuer_client() -> AsyncIterator[httpx2.AsyncClient]:
    """Give the HTTP client for issuers: bounded in time and reach, and without redirects."""
    async with httpx2.AsyncClient(transport=JudgedTransport(), timeout=_SECONDS, follow_redirects=False) as client:
        yield client


async def sent(client: httpx2.AsyncClient, request: httpx2.Request, nearest: AddressReach | None) -> httpx2.Response:
    """Send a request no nearer than `nearest` and return its answer whole; None is for an address of the operator's.

    Raises `SignInFailed` where there is no answer, one too large, or a place that may not be reached.
    """
    where = request.url.host
    request.extensions = {**request.extensions, NEAREST: nearest}
    try:
        response = await client.send(request, stream=True)
        try:
            body = await bounded_body(response.aiter_bytes(), ANSWER_BYTES_MAX)
        finally:
            await response.aclose()
    except BodyTooLarge:
        raise SignInFailed(f"The issuer at {where} answered too much. Tell its operator.") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise SignInFailed(
            f"The issuer at {where} cannot be reached ({type(error).__name__}). Try again in a moment."
        ) from None
    headers = {name: value for name, value in response.headers.items() if name in {"content-type", "www-authenticate"}}
    whole = httpx2.Response(
        response.status_code, headers=headers, content=body, request=request, extensions=response.extensions
    )
    whole.next_request = response.next_request  # which is for the caller to judge
    return whole


def require_safe(url: str, beside: str) -> None:
    """Raise `SignInFailed` for an address to which no secret may go in the clear.

    That is one without TLS, unless `beside`, the address the operator gave, has none either.
    """
    scheme = urlsplit(url).scheme
    if scheme == "https" or (scheme == "http" and urlsplit(beside).scheme == "http"):
        return
    raise SignInFailed("The issuer names an address without https. Tell its operator.")


async def code_redeemed(client: httpx2.AsyncClient, pending: Pending, code: str) -> Granted:
    """Redeem an authorization code (RFC 6749, 4.1.3; RFC 7636, 4.5)."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": pending.redirect_uri,
        "code_verifier": pending.verifier,
    }
    return await _granted(client, pending, form, OAuthToken(access_token="", scope=pending.scope))


async def renewed(client: httpx2.AsyncClient, granted: Granted) -> Granted:
    """Renew a sign-in (RFC 6749, section 6).

    Raises `SignInNeeded` where it is over, and `SignInFailed` where that cannot be determined now.
    """
    if not granted.tokens.refresh_token:
        raise SignInNeeded("The sign-in is over, and cannot be renewed. Sign in again.")
    form = {"grant_type": "refresh_token", "refresh_token": granted.tokens.refresh_token}
    return await _granted(client, granted, form, granted.tokens)


async def _granted(
    client: httpx2.AsyncClient, registered: Registered, form: dict[str, str], before: OAuthToken
) -> Granted:
    if registered.resource is not None:
        form["resource"] = registered.resource
    endpoint, credentials = str(registered.metadata.token_endpoint), _credentials(registered.client)
    tokens = await _tokens(client, _request(endpoint, form, credentials, registered.url), await registered.nearest())
    tokens.scope = tokens.scope or before.scope
    tokens.refresh_token = tokens.refresh_token or before.refresh_token
    expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
    kept = {name: getattr(registered, name) for name in Registered.model_fields}
    return Granted(**kept, tokens=tokens, expires_at=expires_at)


async def exchanged(client: httpx2.AsyncClient, exchange: TokenExchange, token: str) -> tuple[str, float]:
    """Exchange a caller's token at the endpoint that the operator configured; return the new one, and when it ends.

    The caller's token goes to that endpoint alone (RFC 8693, section 2.1). Raises `SignInFailed`, `SignInNeeded`.
    """
    form = {
        "grant_type": _EXCHANGE,
        "subject_token": token,
        "subject_token_type": _SUBJECT_TOKEN,
        "requested_token_type": _SUBJECT_TOKEN,
        "audience": exchange.audience,
    }
    if exchange.scope:
        form["scope"] = exchange.scope
    method = "client_secret_basic" if exchange.client_secret else "none"
    credentials = (exchange.client_id, exchange.client_secret, method)
    request = _request(exchange.token_endpoint, form, credentials, exchange.token_endpoint)
    tokens = await _tokens(client, request, None)
    if tokens.access_token == token:
        raise SignInFailed("The issuer gave the caller's own token back, which is never passed on. Tell its operator.")
    lasts = _LIFETIME_UNKNOWN_SECONDS if tokens.expires_in is None else float(tokens.expires_in)
    return tokens.access_token, time.time() + max(0.0, lasts - _EARLY_SECONDS)


async def revoked(client: httpx2.AsyncClient, granted: Granted) -> bool:
    """Revoke what a sign-in gave (RFC 7009); return whether its issuer has the endpoint and did it."""
    endpoint = granted.metadata.revocation_endpoint
    if endpoint is None:
        return False
    done = True
    for kind in ("refresh_token", "access_token"):
        token: str | None = getattr(granted.tokens, kind)
        if not token:
            continue
        form = {"token": token, "token_type_hint": kind}
        try:
            request = _request(str(endpoint), form, _credentials(granted.client), granted.url)
            response = await sent(client, request, await granted.nearest())
        except SignInFailed:
            done = False
            continue
        done = done and response.status_code == httpx2.codes.OK
    return done


async def _tokens(client: httpx2.AsyncClient, request: httpx2.Request, nearest: AddressReach | None) -> OAuthToken:
    response = await sent(client, request, nearest)
    where = request.url.host
    if response.status_code not in {httpx2.codes.OK, httpx2.codes.CREATED}:
        code = error_code(response.content)
        if code in _OVER:
            raise SignInNeeded(f"The issuer at {where} takes the sign-in no longer ({code}). Sign in again.")
        said = code or f"HTTP status {response.status_code}"
        raise SignInFailed(f"The issuer at {where} gave no token ({said}). Try again, or tell its operator.")
    try:
        tokens = OAuthToken.model_validate_json(response.content)
    except ValidationError:
        raise SignInFailed(f"The issuer at {where} answered what is no token. Tell its operator.") from None
    if not tokens.access_token.isascii() or not tokens.access_token.isprintable() or " " in tokens.access_token:
        raise SignInFailed(f"The issuer at {where} gave a token that cannot be sent. Tell its operator.")
    return tokens


def _credentials(client: OAuthClientInformationFull) -> tuple[str, str, str]:
    """Return id, secret and method of a client; one that the issuer says nothing of is the default (RFC 7591, 2)."""
    usual = "client_secret_basic" if client.client_secret else "none"
    return client.client_id, client.client_secret or "", client.token_endpoint_auth_method or usual


def _request(endpoint: str, form: Mapping[str, str], credentials: tuple[str, str, str], beside: str) -> httpx2.Request:
    """Return a request that says which client sends it (RFC 6749, section 2.3.1)."""
    require_safe(endpoint, beside)
    client_id, secret, method = credentials
    data, headers = dict(form), {"accept": "application/json"}
    if method == "client_secret_basic" and secret:
        basic = httpx2.BasicAuth(quote(client_id, safe=""), quote(secret, safe=""))
        signed = next(basic.auth_flow(httpx2.Request("POST", endpoint)))
        headers["authorization"] = signed.headers["authorization"]
    elif client_id:
        data["client_id"] = client_id
        if method == "client_secret_post" and secret:
            data["client_secret"] = secret
    return httpx2.Request("POST", endpoint, data=data, headers=headers)


def error_code(body: bytes) -> str:
    """Return the error code of an answer (RFC 6749, section 5.2); of what else an issuer says nothing is shown."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    code = answer.get("error") if isinstance(answer, dict) else None
    return code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""


Token = Callable[[], Awaitable[str]]
"""Gives the access token of now.

Raises `SignInNeeded` where there is none, and `httpx2.ConnectError` where that is unknown.
"""


class SignedRequests(httpx2.Auth):
    """Signs with what `token` gives, for each request anew; `refused` is said where the server does not take it."""

    def __init__(self, config: ServerConfig, token: Token, refused: str | None = None) -> None:
        self._name = config.name
        self._refused = refused or f"The server {config.name!r} does not take the sign-in. Sign in again."
        self._origin = _origin(httpx2.URL(config.url))
        self._token = token

    @override
    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield the request with its token. Raises `SignInNeeded` where the server refuses it."""
        if _origin(request.url) != self._origin:
            raise SignInNeeded(f"The server {self._name!r} sends to another address, which gets no token.")
        request.headers["authorization"] = f"Bearer {await self._token()}"
        response = yield request
        challenge = response.headers.get("www-authenticate", "")
        if response.status_code == httpx2.codes.UNAUTHORIZED or (
            response.status_code == httpx2.codes.FORBIDDEN and "insufficient_scope" in challenge
        ):
            raise SignInNeeded(self._refused, scope=extract_scope_from_www_auth(response))


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
