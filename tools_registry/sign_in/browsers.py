"""Waits on the loopback address for the browser of a user who signs in at a terminal (RFC 8252, section 7.3)."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.shared.auth import AuthorizationCodeResult

from ..configuration import ServerConfig
from ..errors import SignInNeeded
from ..names import test_of

Show = Callable[[str], Awaitable[None]]
"""Shows a user the address to open."""

_PATH = "/callback"


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
