"""Signs the requests of a connection with the token of its owner, as it is at that moment.

A security boundary: the token goes to the server's own address. A server that refuses it gets no second chance here,
and nothing is fetched from where it says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

import httpx2
from typing_extensions import override

from ..configuration import ServerConfig
from ..errors import SignInNeeded

Token = Callable[[], Awaitable[str]]
"""Gives the access token of now.

Raises `SignInNeeded` where there is none, and `httpx2.ConnectError` where that cannot be told.
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
            raise SignInNeeded(self._refused)


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
