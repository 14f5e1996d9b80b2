"""Begins and ends a user's sign-in to a server: the authorization code grant of OAuth 2.1, with PKCE.

A security boundary. The issuer is found as MCP's specification says (RFC 9728, RFC 8414), a client is registered there
(RFC 7591), the token is asked for this server alone (RFC 8707), and the issuer that answers must be the one that was
asked (RFC 9207). `state` and who may come back with it are the caller's matter. No error holds a secret.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlencode, urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_client_registration_request,
    create_oauth_metadata_request,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    handle_registration_response,
    issuers_match,
    union_scopes,
    validate_authorization_response_iss,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import AnyUrl

from ..configuration import ServerConfig
from ..errors import SignInFailed
from .reach import AddressReach, reach_of_answer, require_reachable
from .token_endpoint import Granted, Pending, code_redeemed, require_safe, sent

Method = Literal["none", "client_secret_basic", "client_secret_post"]
"""How a client says who it is at the token endpoint (RFC 7591, section 2)."""
_USABLE = frozenset({None, "none", "client_secret_post", "client_secret_basic"})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class BegunSignIn:
    """A sign-in that was begun: where its user goes, and what is needed when they come back."""

    address: str = field(repr=False)
    pending: Pending


async def begin(
    client: httpx2.AsyncClient, config: ServerConfig, redirect_uri: str, state: str, *, scope: str | None = None
) -> BegunSignIn:
    """Find a server's issuer, register there, and return where the user signs in; `state` is a secret.

    `scope` is what the server asked for beside what it asks for at first. Raises `SignInFailed`.
    """
    try:
        return await _begin(client, config, redirect_uri, state, scope)
    except OAuthFlowError as error:  # whose text may hold the whole answer of an issuer
        said = "registers no client, or answered" if isinstance(error, OAuthRegistrationError) else "answered"
        what = f"Signing in to the server {config.name!r} cannot begin: its issuer {said} what cannot be used."
        takes = 'If it takes a key instead, give it one in "headers" in mcp.json.'
        names = ", ".join(sorted(config.headers))
        refused = f"It does not accept its headers either ({names}). Correct them in mcp.json."
        raise SignInFailed(f"{what} {takes}", for_operator=f"{what} {refused if names else takes}") from None


async def _begin(
    client: httpx2.AsyncClient, config: ServerConfig, redirect_uri: str, state: str, more: str | None
) -> BegunSignIn:
    challenge = await _challenge(client, config)
    nearest = reach_of_answer(challenge)
    resource, described = await _resource(client, config, challenge, nearest)
    metadata = await _metadata(client, config, described, nearest)
    asked = union_scopes(extract_scope_from_www_auth(challenge), more)
    scope = get_client_metadata_scopes(asked, described, metadata, ["authorization_code", "refresh_token"])
    registered = await _registered(client, config, metadata, redirect_uri, scope, nearest=nearest)
    verifier = secrets.token_urlsafe(64)
    challenged = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    query = {
        "response_type": "code",
        "client_id": registered.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenged,
        "code_challenge_method": "S256",
        "resource": resource,
    }
    if scope:
        query["scope"] = scope
        if "offline_access" in scope.split():
            query["prompt"] = "consent"  # OpenID Connect Core 1.0, section 11
    endpoint = str(metadata.authorization_endpoint)
    await require_reachable(endpoint, nearest)
    joint = "&" if urlsplit(endpoint).query else "?"
    pending = Pending(
        url=config.url,
        verifier=verifier,
        redirect_uri=redirect_uri,
        client=registered,
        metadata=metadata,
        resource=resource,
        scope=scope,
        reach=nearest,
    )
    return BegunSignIn(f"{endpoint}{joint}{urlencode(query)}", pending)


async def finish(client: httpx2.AsyncClient, pending: Pending, code: str, iss: str | None) -> Granted:
    """Redeem what the user came back with, whose `state` was judged before. Raises `SignInFailed`, `SignInNeeded`."""
    try:
        validate_authorization_response_iss(iss, pending.metadata)
    except OAuthFlowError:
        raise SignInFailed(
            "The answer to the sign-in does not come from the issuer that was asked (RFC 9207). Do not sign in again "
            "before the operator has looked at the server."
        ) from None
    return await code_redeemed(client, pending, code)


async def _challenge(client: httpx2.AsyncClient, config: ServerConfig) -> httpx2.Response:
    """Ask the server without a token, and return what it answers: it may say where its metadata is."""
    headers = {**config.headers, "accept": "application/json, text/event-stream"}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    return await sent(client, httpx2.Request("POST", config.url, json=ping, headers=headers), None)


async def _resource(
    client: httpx2.AsyncClient, config: ServerConfig, challenge: httpx2.Response, nearest: AddressReach
) -> tuple[str, ProtectedResourceMetadata | None]:
    """Return the server as a token's audience, and what it says of itself, if it does (RFC 9728)."""
    own = resource_url_from_server_url(config.url)
    named = extract_resource_metadata_from_www_auth(challenge)
    for url in build_protected_resource_metadata_discovery_urls(named, config.url):
        require_safe(url, config.url)
        answer = await sent(client, create_oauth_metadata_request(url), nearest)
        described = await handle_protected_resource_response(answer)
        if described is None:
            continue
        resource = str(described.resource)
        if not check_resource_allowed(requested_resource=own, configured_resource=resource):
            raise SignInFailed(
                f"The server {config.name!r} says that it is another ({resource[:200]}). Correct its url in mcp.json."
            )
        return resource, described
    return own, None


async def _metadata(
    client: httpx2.AsyncClient, config: ServerConfig, described: ProtectedResourceMetadata | None, nearest: AddressReach
) -> OAuthMetadata:
    """Return the metadata of the server's issuer, which must be the issuer's own (RFC 8414, section 3.3)."""
    issuer = str(described.authorization_servers[0]) if described and described.authorization_servers else None
    parts = urlsplit(config.url)
    expected = issuer or f"{parts.scheme}://{parts.netloc}"
    is_silent = described is None
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, config.url):
        require_safe(url, config.url)
        answer = await sent(client, create_oauth_metadata_request(url), nearest)
        is_silent = is_silent and answer.status_code == httpx2.codes.NOT_FOUND
        goes_on, found = await handle_auth_metadata_response(answer)
        if not goes_on:
            break
        if found is None:
            continue
        if not issuers_match(str(found.issuer), expected):
            raise SignInFailed(f"The issuer of the server {config.name!r} calls itself another. Tell its operator.")
        if found.code_challenge_methods_supported is not None and "S256" not in found.code_challenge_methods_supported:
            raise SignInFailed(f"The issuer of the server {config.name!r} has no PKCE. Tell its operator.")
        _require_safe_endpoints(found, config.url)
        return found
    if not is_silent:
        raise SignInFailed(f"The server {config.name!r} does not say where its users sign in. Tell its operator.")
    # MCP's specification of 2025-03-26, "Fallbacks for Servers without Metadata Discovery".
    paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "registration_endpoint": "register"}
    return OAuthMetadata.model_validate(
        {"issuer": expected} | {name: f"{expected}/{path}" for name, path in paths.items()}
    )


def _require_safe_endpoints(metadata: OAuthMetadata, beside: str) -> None:
    """Raise `SignInFailed` where an issuer names an endpoint that is not safe, be it one that is never asked."""
    for name, address in metadata:
        if address is not None and name.endswith("_endpoint"):
            require_safe(str(address), beside)


async def _registered(
    client: httpx2.AsyncClient,
    config: ServerConfig,
    metadata: OAuthMetadata,
    redirect_uri: str,
    scope: str | None,
    *,
    nearest: AddressReach,
) -> OAuthClientInformationFull:
    """Register a client for this sign-in (RFC 7591)."""
    if metadata.registration_endpoint is None:
        raise SignInFailed(
            f"The issuer of the server {config.name!r} registers no clients, so nobody can sign in by a link. "
            'Give the server a key in "headers", or have its issuer register clients (RFC 7591).'
        )
    wanted = OAuthClientMetadata(
        client_name="sealab",
        redirect_uris=[AnyUrl(redirect_uri)],
        scope=scope,
        token_endpoint_auth_method=_wanted_method(metadata),
        application_type="native" if urlsplit(redirect_uri).hostname in _LOOPBACK else "web",
    )
    response = await sent(client, create_client_registration_request(metadata, wanted, config.url), nearest)
    registered = await handle_registration_response(response)
    method = registered.token_endpoint_auth_method
    if method not in _USABLE or (method not in {None, "none"} and not registered.client_secret):
        raise SignInFailed(
            f"The issuer of the server {config.name!r} registered a client that cannot be used. Tell its operator."
        )
    return registered


def _wanted_method(metadata: OAuthMetadata) -> Method | None:
    supported = metadata.token_endpoint_auth_methods_supported
    wanted: tuple[Method, ...] = ("none", "client_secret_basic", "client_secret_post")
    return next((each for each in wanted if supported is not None and each in supported), None)
