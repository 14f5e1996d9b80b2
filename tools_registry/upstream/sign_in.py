"""Signs a user in to a server by OAuth 2.1, and keeps what that gave.

Only `sealab servers test` lets a user sign in: it shows an address, and a listener on the loopback address waits for
the browser to come back (RFC 8252, section 7.3). Calls use what is kept, see `kept_sign_ins`; where that ends they say
that a user has to sign in again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from ..authorizing.kept_sign_ins import KeptSignIn, kept_requests
from ..authorizing.sign_in_storage import SignInStorage
from ..authorizing.token_endpoint import issuer_client, revoked
from ..configuration import ServerConfig, Transport
from ..errors import SignInNeeded
from ..names import test_of

Show = Callable[[str], Awaitable[None]]
"""Shows a user the address to open."""

Answer = Callable[[], Awaitable[AuthorizationCodeResult]]
"""Waits for the browser to come back with the code."""

_PATH = "/callback"


def can_sign_in(config: ServerConfig) -> bool:
    """Say whether a user could sign in to a server: one over HTTP that has no Authorization header of its own."""
    return config.type in {Transport.HTTP, Transport.SSE} and not any(
        name.lower() == "authorization" for name in config.headers
    )


def kept_sign_in(config: ServerConfig, folder: Path) -> httpx2.Auth | None:
    """Return what signs requests by the sign-in that is kept for a server, or None where there is none. Blocks."""
    return kept_requests(config, folder) if can_sign_in(config) else None


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


@asynccontextmanager
async def signing_in(
    config: ServerConfig, kept: Path | SignInStorage, show: Show, wait_seconds: float
) -> AsyncIterator[httpx2.Auth]:
    """Give what signs requests and lets the user sign in when the server asks for it; `show` gets the address.

    `kept` is the folder of files where that is kept, or where else.
    """
    storage = KeptSignIn(kept, config) if isinstance(kept, Path) else kept
    async with coming_back(config, wait_seconds) as (redirect_uri, answered):
        yield provider(config, storage, redirect_uri, show, answered)


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
    kept: SignInStorage,
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
