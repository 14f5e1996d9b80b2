"""Finds where an issuer has its keys and says whether a token is active, by its own metadata.

OAuth 2.0 Authorization Server Metadata (RFC 8414) and OpenID Connect Discovery 1.0.

A security boundary: the metadata must be that of the issuer which the operator named, letter for letter (RFC 8414, 3.3,
and 6.2 for what else happens), and its endpoints must be secure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ..secure_urls import fault_of_url, names_this_machine
from .issuer_link import IssuerLink
from .verifier import VerifierUnavailable


@dataclass(frozen=True, slots=True)
class IssuerMetadata:
    """What of an issuer's metadata is used. `posts_secret` says that it takes a client's secret in the form alone."""

    keys_url: str | None
    introspection_url: str | None
    posts_secret: bool


async def discover(link: IssuerLink, issuer: str) -> IssuerMetadata:
    """Fetch the metadata of an issuer. Raises `VerifierUnavailable`, also where it is of another issuer."""
    others: list[object] = []
    for url in _places(issuer):
        found = await link.get(url)
        if found is None:
            continue
        if found.get("issuer") == issuer:
            return _read(found, issuer)
        others.append(found.get("issuer"))
    if others:
        raise VerifierUnavailable(
            f"The metadata at {issuer} is of the issuer {str(others[0])[:200]!r}, not of {issuer!r}. "
            "Set OAUTH_ISSUER to the one that stands in the tokens, with or without a slash at its end."
        )
    raise VerifierUnavailable(f"There is no metadata of the issuer {issuer}. Check OAUTH_ISSUER.")


def _places(issuer: str) -> tuple[str, ...]:
    """Return where metadata may be: RFC 8414, 3.1 and 5, and the older place of OpenID Connect Discovery 1.0, 4."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.removesuffix("/")
    places = (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )
    return tuple(dict.fromkeys(places))


def _read(found: Mapping[str, Any], issuer: str) -> IssuerMetadata:
    methods = found.get("introspection_endpoint_auth_methods_supported")
    methods = methods if isinstance(methods, list) else found.get("token_endpoint_auth_methods_supported")
    posts = isinstance(methods, list) and "client_secret_basic" not in methods and "client_secret_post" in methods
    return IssuerMetadata(
        _endpoint(found, "jwks_uri", issuer), _endpoint(found, "introspection_endpoint", issuer), posts
    )


def _endpoint(found: Mapping[str, Any], name: str, issuer: str) -> str | None:
    """Return an endpoint of the metadata, None where it names none. Raises `VerifierUnavailable` for an insecure one.

    One on this machine is taken from an issuer on this machine only: the issuer must not have the server send requests
    to what listens beside it.
    """
    url = found.get(name)
    if url is None:
        return None
    fault = fault_of_url(str(url), query=True, loopback=names_this_machine(issuer))
    if fault is not None:
        raise VerifierUnavailable(f"The {name} of the issuer {issuer} cannot be used. It would have to be {fault}.")
    return str(url)
