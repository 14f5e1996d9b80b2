"""Signs a user in to a server by OAuth 2.1, and keeps what that gave.

Only `sealab servers test` lets a user sign in: it shows an address, and a listener on the loopback address waits for
the browser to come back (RFC 8252, section 7.3). Calls use what is kept and renew it; where that fails they say that a
user has to sign in again. A sign-in is kept with the URL it was made for and never sent to another.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Never
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, BaseModel, ValidationError
from typing_extensions import override

from ..authorizing.token_endpoint import Granted, issuer_client, revoked
from ..configuration import ServerConfig, Transport
from ..errors import SignInNeeded
from ..files import write_whole
from ..names import test_of

Show = Callable[[str], Awaitable[None]]
"""Shows a user the address to open."""

Answer = Callable[[], Awaitable[AuthorizationCodeResult]]
"""Waits for the browser to come back with the code."""

_PATH = "/callback"


class _Kept(BaseModel):
    """What a sign-in gave; `expires_at` is in seconds since the epoch."""

    url: str
    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None


class KeptSignIn:
    """The file of one server's sign-in, readable by its owner alone; the SDK's token storage."""

    def __init__(self, folder: Path, config: ServerConfig) -> None:
        self._file = folder / f"{quote(config.name, safe='')}.json"
        self._url = config.url
        self._kept = _Kept(url=config.url)
        self.provider: OAuthClientProvider | None = None

    def load(self) -> bool:
        """Read the file; say whether it holds a sign-in for this very URL."""
        try:
            kept = _Kept.model_validate_json(self._file.read_bytes())
        except (FileNotFoundError, ValidationError):
            return False
        if kept.url != self._url or kept.tokens is None:
            return False
        self._kept = kept
        return True

    def give_to(self, provider: OAuthClientProvider) -> None:
        """Give the SDK what its storage has no place for: when the token ends, and where it is renewed."""
        self.provider = provider
        provider.context.token_expiry_time = self._kept.expires_at
        provider.context.oauth_metadata = self._kept.metadata

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, if there are some."""
        return self._kept.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens, with what is needed to renew them."""
        self._kept.tokens = tokens
        self._kept.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        if self.provider is not None:
            self._kept.metadata = self.provider.context.oauth_metadata
        await asyncio.to_thread(self._save)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return how this client is registered, if it is."""
        return self._kept.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Remember how this client is registered; it is written with the tokens."""
        self._kept.client = client_info

    def granted(self) -> Granted | None:
        """Return what the sign-in gave, as it can be revoked; None where its issuer is not known."""
        kept = self._kept
        if kept.tokens is None or kept.client is None or kept.metadata is None:
            return None
        return Granted(url=kept.url, tokens=kept.tokens, client=kept.client, metadata=kept.metadata)

    def forget(self) -> None:
        """Remove the file. Blocks."""
        self._file.unlink(missing_ok=True)

    def _save(self) -> None:
        write_whole(self._file, self._kept.model_dump_json(exclude_none=True))


def can_sign_in(config: ServerConfig) -> bool:
    """Say whether a user could sign in to a server: one over HTTP that has no Authorization header of its own."""
    return config.type in {Transport.HTTP, Transport.SSE} and not any(
        name.lower() == "authorization" for name in config.headers
    )


def kept_sign_in(config: ServerConfig, folder: Path) -> httpx2.Auth | None:
    """Return what signs requests by the sign-in that is kept for a server, or None where there is none."""
    kept = KeptSignIn(folder, config)
    if not can_sign_in(config) or not kept.load():
        return None

    async def refuse(*_: object) -> Never:
        raise SignInNeeded(
            f"The sign-in to the server {config.name!r} is over. Run {test_of(config.name)} in a terminal."
        )

    return _KeptOnly(provider(config, kept, f"http://127.0.0.1{_PATH}", refuse, refuse), refuse)


async def signed_out(config: ServerConfig, folder: Path) -> tuple[bool, bool]:
    """Forget the sign-in that is kept for a server; return whether there was one, and whether it was revoked."""
    kept = KeptSignIn(folder, config)
    if not kept.load():
        return False, False
    granted = kept.granted()
    await asyncio.to_thread(kept.forget)
    if granted is None:
        return True, False
    async with issuer_client() as client:
        return True, await revoked(client, granted)


class _KeptOnly(httpx2.Auth):
    """Signs with what is kept and renews it; where a server refuses that, nothing is fetched from where it says."""

    def __init__(self, flow: httpx2.Auth, refuse: Callable[[], Awaitable[Never]]) -> None:
        self._auth = flow
        self._refuse = refuse

    @override
    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield the requests of the SDK's flow, up to where it would begin a new sign-in."""
        async with aclosing(self._auth.async_auth_flow(request)) as flow:
            with suppress(StopAsyncIteration):
                asked = await anext(flow)
                while True:
                    response = yield asked
                    if asked is request and _is_refusal(response):
                        await self._refuse()
                    asked = await flow.asend(response)


def _is_refusal(response: httpx2.Response) -> bool:
    lacks_scope = "insufficient_scope" in response.headers.get("www-authenticate", "")
    return response.status_code == httpx2.codes.UNAUTHORIZED or (
        response.status_code == httpx2.codes.FORBIDDEN and lacks_scope
    )


@asynccontextmanager
async def signing_in(config: ServerConfig, folder: Path, show: Show, wait_seconds: float) -> AsyncIterator[httpx2.Auth]:
    """Give what signs requests and lets the user sign in when the server asks for it; `show` gets the address."""
    async with coming_back(config, wait_seconds) as (redirect_uri, answered):
        yield provider(config, KeptSignIn(folder, config), redirect_uri, show, answered)


@asynccontextmanager
async def coming_back(config: ServerConfig, wait_seconds: float) -> AsyncIterator[tuple[str, Answer]]:
    """Listen on this machine for a browser that comes back from an issuer; give where, and what waits for it."""
    came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def answered() -> AuthorizationCodeResult:
        try:
            return await asyncio.wait_for(asyncio.shield(came), wait_seconds)
        except TimeoutError:
            raise SignInNeeded(
                f"Nobody signed in to the server {config.name!r} within {wait_seconds:g} seconds. "
                f"Run {test_of(config.name)} again."
            ) from None

    listener = await asyncio.start_server(lambda reader, writer: _come_back(reader, writer, came), "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}{_PATH}", answered


def provider(
    config: ServerConfig,
    kept: KeptSignIn,
    redirect_uri: str,
    show: Show,
    answered: Answer,
    *,
    client_metadata_url: str | None = None,
) -> OAuthClientProvider:
    """Return the SDK's flow over what is kept; `client_metadata_url` names the client where servers accept that."""
    made = OAuthClientProvider(
        server_url=config.url,
        client_metadata=OAuthClientMetadata(client_name="sealab", redirect_uris=[AnyUrl(redirect_uri)]),
        storage=kept,
        redirect_handler=show,
        callback_handler=answered,
        client_metadata_url=client_metadata_url,
    )
    kept.give_to(made)
    return made


async def _come_back(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, came: asyncio.Future[AuthorizationCodeResult]
) -> None:
    """Answer one request of the browser; the first that brings a code, or a refusal, ends the wait."""
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        target = urlsplit(head.split(b" ", 2)[1].decode("ascii"))
        asked = {name: values[0] for name, values in parse_qs(target.query).items()}
        status, text = "404 Not Found", "There is nothing here."
        if target.path == _PATH and "code" in asked:
            status, text = "200 OK", "You are signed in. You can close this page."
            if not came.done():
                came.set_result(AuthorizationCodeResult.model_validate(asked))
        elif target.path == _PATH and "error" in asked:
            status, text = "200 OK", "The sign-in was refused. You can close this page."
            if not came.done():
                came.set_exception(SignInNeeded(f"The sign-in was refused: {json.dumps(asked['error'])}. Try again."))
        body = text.encode()
        writer.write(
            f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n".encode()
            + body
        )
        await writer.drain()
    except (TimeoutError, OSError, ValueError, IndexError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # the request was not a browser's with an answer
    finally:
        writer.close()
