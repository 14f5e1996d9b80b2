"""What is known of the issuer of tokens: its keys and endpoints, fetched when needed and kept for a bounded time.

They are found by its own metadata (RFC 8414, OpenID Connect Discovery 1.0). A flood of tokens with unknown keys makes
one fetch in `RETRY_SECONDS`, all who wait share it, and where it fails what was known is used for `KEPT_SECONDS` at
most.

A security boundary: the metadata must be that of the issuer which the operator named, letter for letter (RFC 8414, 3.3,
and 6.2 for what else happens), and its endpoints must be secure.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ...base.secure_urls import fault_of_url, names_this_machine
from .issuer_link import IssuerLink
from .signed_tokens import SigningKeys
from .verifier import VerifierUnavailable

_LOG = logging.getLogger(__name__)

FRESH_SECONDS = 600.0
"""How long keys and metadata are used before they are fetched again; a key that was withdrawn is taken so long."""
KEPT_SECONDS = 3600.0
"""How long they are used where they cannot be fetched again."""
RETRY_SECONDS = 5.0
"""The time between two fetches, whatever tokens come."""
_RENEWAL_WAIT_SECONDS = 1.0
"""How long a request waits for newer keys while those at hand may still be used."""
_FETCH_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class IssuerMetadata:
    """What of an issuer's metadata is used. `posts_secret` says that it takes a client's secret in the form alone."""

    keys_url: str | None
    introspection_url: str | None
    posts_secret: bool
    authorization_url: str | None = None
    token_url: str | None = None


@dataclass(frozen=True, slots=True)
class IssuerFacts:
    """What the issuer said, all at one time."""

    metadata: IssuerMetadata
    keys: SigningKeys
    fetched: float


class Issuer:
    """One issuer. Belongs to one event loop; `clock` gives seconds and never goes back."""

    def __init__(self, link: IssuerLink, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._link = link
        self._issuer = issuer
        self._clock = clock
        self._facts: IssuerFacts | None = None
        self._tried = float("-inf")
        self._failure: str | None = None
        self._renewal: asyncio.Task[None] | None = None
        self.fetches = 0
        """How often it was asked."""

    async def facts(self) -> IssuerFacts:
        """Return what is known, fetched first where nothing is or it is old. Raises `VerifierUnavailable`."""
        facts = self._facts
        age = math.inf if facts is None else self._clock() - facts.fetched
        if age >= FRESH_SECONDS:
            await self._renewed(_RENEWAL_WAIT_SECONDS if age < KEPT_SECONDS else None)
        return self._known()

    async def newer_facts(self, than: IssuerFacts) -> IssuerFacts:
        """Return what is known once more than `than` was asked for. Raises `VerifierUnavailable` where that fails.

        Returns facts as old as `than` where these are younger than `RETRY_SECONDS`.
        """
        if self._facts is than:  # else somebody else asked meanwhile
            await self._renewed(None)
            if self._failure is not None:
                raise VerifierUnavailable(self._failure)
        return self._known()

    async def close(self) -> None:
        """End the fetch under way."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})

    def _known(self) -> IssuerFacts:
        facts = self._facts
        if facts is None or self._clock() - facts.fetched >= KEPT_SECONDS:
            raise VerifierUnavailable(
                self._failure or "The issuer of tokens has not answered yet. Try again in a moment."
            )
        return facts

    async def _renewed(self, seconds: float | None) -> None:
        """Wait so long at most for a fetch, begun unless one is under way, or the last is too recent for another."""
        if self._renewal is None or self._renewal.done():
            if self._clock() - self._tried < RETRY_SECONDS:
                return
            self._tried = self._clock()
            self._renewal = asyncio.create_task(self._fetch())
        await asyncio.wait({self._renewal}, timeout=seconds)

    async def _fetch(self) -> None:
        self.fetches += 1
        failure: str | None = None
        try:
            async with asyncio.timeout(_FETCH_SECONDS_MAX):
                self._facts = await self._fetched()
        except VerifierUnavailable as error:
            failure = str(error)
        except TimeoutError:
            failure = f"The issuer {self._issuer} answers too slowly. Try again in a moment."
        except Exception as error:  # noqa: BLE001 - nobody awaits the task: those who wait must get to know
            _LOG.exception("What the issuer of tokens answers cannot be read.")
            failure = f"What the issuer {self._issuer} answers cannot be read: {error}."
        if failure is not None and failure != self._failure:
            _LOG.warning("%s", failure)
        self._failure = failure
        self._tried = self._clock()

    async def _fetched(self) -> IssuerFacts:
        metadata = await _discovered(self._link, self._issuer)
        document = {} if metadata.keys_url is None else await self._link.get(metadata.keys_url)
        if document is None or not isinstance(document.get("keys", []), list):
            raise VerifierUnavailable(
                f"The issuer {self._issuer} has no key set at its jwks_uri. Try again in a moment."
            )
        return IssuerFacts(metadata, SigningKeys(document), self._clock())


async def _discovered(link: IssuerLink, issuer: str) -> IssuerMetadata:
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
    pages: dict[str, str | None] = dict.fromkeys(("authorization", "token"))
    for name in pages:
        with suppress(VerifierUnavailable):  # of a sign-in by a browser alone, which says that there is none
            pages[name] = _endpoint(found, f"{name}_endpoint", issuer)
    return IssuerMetadata(
        _endpoint(found, "jwks_uri", issuer),
        _endpoint(found, "introspection_endpoint", issuer),
        posts,
        pages["authorization"],
        pages["token"],
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
