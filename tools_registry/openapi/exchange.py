"""Security boundary: one request to a service and its answer, of bounded size, which never leaves the service's origin.

A redirect elsewhere is not followed: the request carries the operator's headers, and where it leads the service says.
"""

from __future__ import annotations

from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import urljoin, urlsplit

import httpx2

from ..http_bodies import BodyTooLarge, bounded_body
from ..upstream.mcp_http_client import NOT_SENT
from ..upstream.message_faults import HttpFault, MessageFault

ADDRESS_CHARS_MAX = 2_000
"""A longer address that a service or a document names is refused; so is one that is not ASCII: joining one normalizes
its host, in quadratic time."""

_REDIRECTS_MAX = 5
_READS = frozenset({"GET", "HEAD"})


class ExchangeFailed(Exception):
    """No answer came that can be taken; `fault` says what happened, and whether the request can have been seen."""

    def __init__(self, fault: MessageFault, detail: str) -> None:
        super().__init__(detail)
        self.fault = HttpFault(fault, 0, detail)


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """What a service answered. `location` is where a redirect that was not followed leads."""

    status: int
    reason: str
    headers: httpx2.Headers
    body: bytes
    location: str = ""

    @property
    def media_type(self) -> str:
        """The type of the body in lowercase, without parameters; empty where none is given."""
        return str(self.headers.get("content-type", "")).partition(";")[0].strip().lower()


def without_cookies(client: httpx2.AsyncClient) -> None:
    """Keep a client from storing cookies: calls of several callers go through it."""
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))


def origin(address: str) -> tuple[str, str] | None:
    """Return scheme and authority of an HTTP address without a user, or None for anything else."""
    if len(address) > ADDRESS_CHARS_MAX or not address.isascii():
        return None
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        return None
    usual = 443 if parts.scheme == "https" else 80
    return parts.scheme, f"{parts.hostname}:{usual if port is None else port}"


async def exchanged(client: httpx2.AsyncClient, request: httpx2.Request, bytes_max: int) -> ServiceResponse:
    """Send a request and read its answer; a read follows redirects within its origin. Raises `ExchangeFailed`."""
    # What is packed would be bounded before it is unpacked.
    request.headers["accept-encoding"] = "identity"
    for _ in range(_REDIRECTS_MAX):
        answer = await _exchanged_once(client, request, bytes_max)
        if not answer.location:
            return answer
        here, there = str(request.url), _joined(str(request.url), answer.location)
        if request.method not in _READS or there is None or origin(there) != origin(here):
            return answer
        request = client.build_request(request.method, there, headers=request.headers)
    raise ExchangeFailed(MessageFault.BAD_ANSWER, f"more than {_REDIRECTS_MAX} redirects")


async def _exchanged_once(client: httpx2.AsyncClient, request: httpx2.Request, bytes_max: int) -> ServiceResponse:
    try:
        response = await client.send(request, stream=True)
    except NOT_SENT as error:
        raise ExchangeFailed(MessageFault.NOT_SENT, _described(error)) from None
    except httpx2.TransportError as error:
        raise ExchangeFailed(MessageFault.CUT_OFF, _described(error)) from None
    try:
        body = await bounded_body(response.aiter_bytes(), bytes_max)
    except BodyTooLarge as error:
        raise ExchangeFailed(MessageFault.TOO_LARGE, str(error)) from None
    except httpx2.TransportError as error:
        raise ExchangeFailed(MessageFault.CUT_OFF, f"the answer broke off: {_described(error)}") from None
    except httpx2.DecodingError as error:
        raise ExchangeFailed(MessageFault.BAD_ANSWER, _described(error)) from None
    finally:
        await response.aclose()
    location = str(response.headers.get("location", "")) if response.has_redirect_location else ""
    return ServiceResponse(response.status_code, response.reason_phrase, response.headers, body, location)


def _joined(here: str, named: str) -> str | None:
    if len(named) > ADDRESS_CHARS_MAX or not named.isascii():
        return None
    try:
        return urljoin(here, named)
    except ValueError:
        return None


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__
