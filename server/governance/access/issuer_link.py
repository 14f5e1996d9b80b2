"""Requests to the issuer of tokens: bounded in size and time, and never redirected.

A security boundary: its metadata, its keys and its word on tokens decide who is let in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....tools_registry.http_bodies import BodyTooLarge, bounded_body
from .verifier import VerifierUnavailable

SECONDS_MAX = 5.0
BYTES_MAX = 256_000
_CONNECTIONS_MAX = 64
_TRY_AGAIN = frozenset({408, 425, 429})
_OK = 200
_BAD_REQUEST = 400
_CLIENT_FAULTS = range(400, 500)
_ABOUT_THE_CLIENT = frozenset({"invalid_client", "unauthorized_client"})


@dataclass(frozen=True, slots=True)
class IssuerAnswer:
    """An answer of the issuer: its JSON object, which a refusal (status 400 to 499) may lack."""

    status: int
    content: Mapping[str, Any]

    @property
    def is_refusal(self) -> bool:
        """Return whether the issuer refuses the request."""
        return self.status != _OK

    @property
    def is_about_the_form(self) -> bool:
        """Return whether it refuses what the form holds, and not who sent it (RFC 6749, 5.2)."""
        return self.status == _BAD_REQUEST and self.content.get("error") not in _ABOUT_THE_CLIENT


class IssuerLink:
    """The HTTP client for one issuer. Belongs to one event loop."""

    def __init__(self, seconds: float = SECONDS_MAX) -> None:
        """Set how long an answer may take, whole."""
        import httpx2  # before the loop runs: it takes a tenth of a second

        self._seconds = seconds
        self._failures = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
        self._client = httpx2.AsyncClient(
            follow_redirects=False,
            timeout=seconds,
            limits=httpx2.Limits(max_connections=_CONNECTIONS_MAX, keepalive_expiry=30),
            # What is packed would be bounded before it is unpacked.
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )

    async def get(self, url: str) -> Mapping[str, Any] | None:
        """Return the JSON object at a URL, None where there is none. Raises `VerifierUnavailable`."""
        answer = await self._asked("GET", url, auth=None)
        return None if answer.is_refusal else answer.content

    async def post(self, url: str, form: Mapping[str, str], user: tuple[str, str] | None = None) -> IssuerAnswer:
        """Send a form. Raises `VerifierUnavailable` where it is neither answered by a JSON object nor refused.

        `user` is a name and a password for HTTP Basic authentication.
        """
        return await self._asked("POST", url, data=form, auth=user)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def _asked(self, method: str, url: str, **options: Any) -> IssuerAnswer:
        try:
            async with asyncio.timeout(self._seconds), self._client.stream(method, url, **options) as response:
                status = response.status_code
                is_refused = status in _CLIENT_FAULTS and status not in _TRY_AGAIN
                if status != _OK and not is_refused:
                    redirects = ", a redirect, which is not followed" if response.has_redirect_location else ""
                    raise _unavailable(url, f"answers with the status {status}{redirects}")
                if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
                    raise _unavailable(url, "answers with a packed text, which was not asked for")
                body = await bounded_body(response.aiter_raw(), BYTES_MAX)
        except BodyTooLarge:
            raise _unavailable(url, f"answers with more than {BYTES_MAX:,} bytes") from None
        except TimeoutError:
            raise _unavailable(url, f"does not answer within {self._seconds:g} seconds") from None
        except self._failures as error:
            raise _unavailable(url, f"does not answer ({type(error).__name__})") from error
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) and not is_refused:
            raise _unavailable(url, "answers with something that is not a JSON object")
        return IssuerAnswer(status, found if isinstance(found, dict) else {})


def _unavailable(url: str, what: str) -> VerifierUnavailable:
    return VerifierUnavailable(f"The issuer of tokens {what} at {url.partition('?')[0]}. Try again in a moment.")
