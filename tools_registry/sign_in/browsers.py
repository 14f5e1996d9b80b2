"""Signs a user in to a server by OAuth 2.1, and keeps what that gave.

Only `sealab servers test` lets a user sign in: it shows an address, and a listener on the loopback address waits for
the browser to come back (RFC 8252, section 7.3). Calls use what is kept, see `kept_sign_ins`; where that ends they say
that a user has to sign in again.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl
from typing_extensions import override

from ..configuration import ServerConfig, Transport
from ..errors import SignInNeeded
from ..names import test_of
from .kept_sign_ins import KeptSignIn, kept_requests
from .reach import require_reachable
from .sign_in_storage import SignInStorage
from .token_endpoint import issuer_client, require_safe, revoked, sent

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
    async with coming_back(config, show, wait_seconds) as browsers:
        yield provider(config, storage, browsers.redirect_uri, browsers.show, browsers.answered)


@asynccontextmanager
async def coming_back(config: ServerConfig, show: Show, wait_seconds: float) -> AsyncIterator[ReturningBrowsers]:
    """Listen on this machine for browsers that come back from an issuer, to whose address `show` sends them."""
    browsers = ReturningBrowsers(config, show, wait_seconds)
    listener = await asyncio.start_server(browsers.come_back, "127.0.0.1", 0)
    async with listener:
        browsers.redirect_uri = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{_PATH}"
        yield browsers


class ReturningBrowsers:
    """Waits for the browser of one flow after another; an answer counts for the flow whose `state` it brings.

    What brings another `state`, or none, ends no wait (RFC 9700, section 4.7): any page may open the address.
    """

    redirect_uri = ""

    def __init__(self, config: ServerConfig, show: Show, wait_seconds: float) -> None:
        self._name = config.name
        self._show = show
        self._wait_seconds = wait_seconds
        self._state = ""
        self._came: asyncio.Future[AuthorizationCodeResult] | None = None

    async def show(self, address: str) -> None:
        """Begin a flow: send a browser to the issuer's address, whose `state` it has to bring back."""
        self._state = httpx2.URL(address).params.get("state", "")
        self._came = asyncio.get_running_loop().create_future()
        self._came.add_done_callback(lambda came: came.cancelled() or came.exception())
        await self._show(address)

    async def answered(self) -> AuthorizationCodeResult:
        """Return what the browser of the flow came back with. Raises `SignInNeeded`."""
        assert self._came is not None
        try:
            return await asyncio.wait_for(asyncio.shield(self._came), self._wait_seconds)
        except TimeoutError:
            raise SignInNeeded(
                f"Nobody signed in to the server {self._name!r} within {self._wait_seconds:g} seconds. "
                f"Run {test_of(self._name)} again."
            ) from None

    async def come_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser; the first of a flow that brings a code, or a refusal, ends the wait."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            target = urlsplit(head.split(b" ", 2)[1].decode("ascii"))
            asked = {name: values[0] for name, values in parse_qs(target.query).items()}
            status, text = "404 Not Found", "There is nothing here."
            if target.path == _PATH:
                status, text = self._taken(asked)
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

    def _taken(self, asked: dict[str, str]) -> tuple[str, str]:
        """Take what a browser brings; return the status and the text that it is shown."""
        came = self._came
        is_own = (
            came is not None
            and bool(self._state)
            and secrets.compare_digest(asked.get("state", "").encode(), self._state.encode())
        )
        if came is None or not is_own:
            return "400 Bad Request", "This is not the answer to this sign-in. Open the address that is shown last."
        if "code" in asked:
            if not came.done():
                came.set_result(AuthorizationCodeResult.model_validate(asked))
            return "200 OK", "You are signed in. You can close this page."
        if "error" in asked:
            if not came.done():
                came.set_exception(SignInNeeded(f"The sign-in was refused: {json.dumps(asked['error'])}. Try again."))
            return "200 OK", "The sign-in was refused. You can close this page."
        return "404 Not Found", "There is nothing here."


class _EndingWithItsFailure(OAuthClientProvider):
    """The SDK's flow, of which nothing goes on once it failed; what it asks of issuers goes through `reach`.

    A client whose first request fails so sends another, since the server may speak an older protocol. That would have
    the user sign in once more, or be signed with what could not be kept.
    """

    _failure: Exception | None = None

    def __init__(self, kept: SignInStorage, **options: Any) -> None:
        super().__init__(storage=kept, **options)
        self._kept = kept

    @override
    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield what the flow sends. Raises what it failed with, also for later requests."""
        if self._failure is not None:
            raise self._failure
        flow = super().async_auth_flow(request)
        try:
            outgoing, answer = await anext(flow), None
            while True:
                if outgoing is request:
                    response = answer = yield outgoing
                else:
                    require_safe(str(outgoing.url), self.context.server_url)
                    async with issuer_client() as client:
                        response = await sent(client, outgoing, await self._kept.nearest(answer))
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except Exception as error:
            self._failure = error
            raise
        finally:
            await flow.aclose()


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

    async def judged_show(address: str) -> None:
        require_safe(address, config.url)
        await require_reachable(address, await kept.nearest(None))
        await show(address)

    made = _EndingWithItsFailure(
        kept,
        server_url=config.url,
        client_metadata=OAuthClientMetadata(client_name="sealab", redirect_uris=[AnyUrl(redirect_uri)]),
        redirect_handler=judged_show,
        callback_handler=answered,
        client_metadata_url=client_metadata_url,
    )
    kept.give_to(made)
    return made
