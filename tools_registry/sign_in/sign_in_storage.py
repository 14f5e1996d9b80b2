"""What the SDK's flow of a sign-in asks for and tells, and where it is kept: the SDK's token storage."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyHttpUrl, BaseModel
from typing_extensions import override

from ..configuration import ServerConfig
from ..errors import SignInFailed
from .reach import Reach, reach_of_answer, reach_of_server
from .token_endpoint import Granted


class WhatIsKept(BaseModel):
    """What a sign-in gave; `expires_at` is in seconds since the epoch."""

    url: str
    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None
    reach: Reach | None = None


class SignInStorage(ABC):
    """One server's sign-in while the SDK makes it; `_keep` says where it stays."""

    def __init__(self, url: str) -> None:
        self._kept = WhatIsKept(url=url)
        self.provider: OAuthClientProvider | None = None

    @abstractmethod
    async def _keep(self) -> None:
        """Keep what is there now."""

    def give_to(self, provider: OAuthClientProvider) -> None:
        """Give the SDK what its storage has no place for: when the token ends, and where it is renewed."""
        self.provider = provider
        provider.context.token_expiry_time = self._kept.expires_at
        provider.context.oauth_metadata = self._kept.metadata

    async def nearest(self, answer: httpx2.Response | None) -> Reach:
        """Return how near the issuer may be: as near as the server that gave an answer, or did at the sign-in."""
        if answer is not None:
            self._kept.reach = reach_of_answer(answer)
        return await reach_of_server(self._kept.url) if self._kept.reach is None else self._kept.reach

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, if there are some."""
        return self._kept.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens, with what is needed to renew them."""
        self._kept.tokens = tokens
        self._kept.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        if self.provider is not None:
            self._kept.metadata = self.provider.context.oauth_metadata
        await self._keep()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return how this client is registered, if it is."""
        return self._kept.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Remember how this client is registered; it is kept with the tokens.

        A client with a secret of whose method the issuer says nothing has the default one (RFC 7591, section 2), which
        the SDK leaves out.
        """
        if client_info.client_secret and client_info.token_endpoint_auth_method is None:
            client_info.token_endpoint_auth_method = "client_secret_basic"  # noqa: S105 - a name
        self._kept.client = client_info

    def granted(self) -> Granted | None:
        """Return what the sign-in gave, as it can be renewed and revoked; None where its client is not known.

        An issuer without metadata has its endpoints where MCP's specification of 2025-03-26 puts them ("Fallbacks for
        Servers without Metadata Discovery").
        """
        kept = self._kept
        if kept.tokens is None or kept.client is None:
            return None
        parts = urlsplit(kept.url)
        issuer = f"{parts.scheme}://{parts.netloc}"
        metadata = kept.metadata or OAuthMetadata(
            issuer=AnyHttpUrl(issuer),
            authorization_endpoint=AnyHttpUrl(f"{issuer}/authorize"),
            token_endpoint=AnyHttpUrl(f"{issuer}/token"),
        )
        return Granted(
            url=kept.url,
            tokens=kept.tokens,
            expires_at=kept.expires_at,
            client=kept.client,
            metadata=metadata,
            reach=kept.reach,
        )


class GivenSignIn(SignInStorage):
    """Hands a sign-in to `keep` as soon as the issuer has given it; nothing of it is on a disk before."""

    def __init__(self, config: ServerConfig, keep: Callable[[Granted], Awaitable[None]]) -> None:
        super().__init__(config.url)
        self._hand_over = keep

    @override
    async def _keep(self) -> None:
        granted = self.granted()
        if granted is None:
            raise SignInFailed("The issuer gave a token and registered no client. Tell its operator.")
        await self._hand_over(granted)
