"""Security boundary: the operator's sign-ins, each in a file of its own, and the tokens by which calls use them.

A sign-in is kept with the URL it was made for and never sent to another. Its file is read for each request, so that
what one process renewed, made anew or ended counts for all at once, and for all tenants of a server. One of them
renews it at a time, under a lock on a file beside it: issuers that rotate refresh tokens (RFC 9700, section 4.14.2)
take an old one for stolen. A renewal goes on where its caller is cancelled.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx2
from pydantic import ValidationError
from typing_extensions import override

from ..configuration import ServerConfig
from ..errors import SignInFailed, SignInNeeded
from ..files import write_whole
from ..names import test_of
from .sign_in_storage import SignInStorage, WhatIsKept
from .signed_requests import SignedRequests
from .token_endpoint import Granted, issuer_client, renewed, revoked

RENEWED_WITHIN_SECONDS = 75.0
"""How long a request waits until another process, or another tenant's call, has renewed the sign-in."""
_TAKEN_WITHIN_SECONDS = 10.0
"""How long a thread waits for the lock of a file that is taken over: less, since others may want the thread."""
_LOOK_SECONDS = 0.1


class KeptSignIn(SignInStorage):
    """The file of one server's sign-in, readable by its owner alone; the SDK's token storage."""

    def __init__(self, folder: Path, config: ServerConfig) -> None:
        super().__init__(config.url)
        self._file = folder / f"{quote(config.name, safe='')}.json"

    def load(self) -> bool:
        """Read the file; say whether it holds a sign-in for this very URL."""
        try:
            kept = WhatIsKept.model_validate_json(self._file.read_bytes())
        except (FileNotFoundError, ValidationError):
            return False
        if kept.url != self._kept.url or kept.tokens is None:
            return False
        self._kept = kept
        return True

    async def token(self) -> str | None:
        """Return the access token that is in the file now, None where it has ended, or does in a moment.

        Raises `SignInNeeded` where there is no sign-in for this URL.
        """
        if not await asyncio.to_thread(self.load) or self._kept.tokens is None:
            raise SignInNeeded("It was ended.")
        ends = self._kept.expires_at
        granted = self.granted()
        is_over_soon = granted.is_over_soon if granted is not None else ends is not None and time.time() >= ends
        return None if is_over_soon else self._kept.tokens.access_token

    async def renew(self) -> str:
        """Have the sign-in renewed, unless another has meanwhile, and return its token.

        Raises `SignInNeeded` where it is over, and `SignInFailed` where that cannot be told now.
        """
        async with self._alone():
            if (token := await self.token()) is not None:
                return token
            granted = self.granted()
            if granted is None:
                raise SignInNeeded("It cannot be renewed.")
            async with issuer_client() as client:
                fresh = await renewed(client, granted)
                if not await asyncio.to_thread(self._is_as_before, granted):
                    await revoked(client, fresh)  # signed out meanwhile
                    raise SignInNeeded("It was ended.")
            self._kept.tokens, self._kept.expires_at = fresh.tokens, fresh.expires_at
            await asyncio.to_thread(self._save)
            return fresh.tokens.access_token

    def forget(self) -> None:
        """Remove the file. Blocks."""
        self._file.unlink(missing_ok=True)

    @contextmanager
    def taken_over(self) -> Iterator[Granted | None]:
        """Give what the file holds, to be kept elsewhere; the file is removed when the block ends well. Blocks.

        None where there is nothing for this URL, or what can be neither renewed nor revoked: that stays.
        Raises `SignInFailed` where another process renews it for too long.
        """
        if not self.load():
            yield None
            return
        lock = self._lock_file()
        try:
            deadline = time.monotonic() + _TAKEN_WITHIN_SECONDS
            while not _locks(lock):
                _refuse_after(deadline)
                time.sleep(_LOOK_SECONDS)
            granted = self.granted() if self.load() else None
            yield granted
            if granted is not None:
                self.forget()
        finally:
            os.close(lock)

    @override
    async def _keep(self) -> None:
        async with self._alone():
            await asyncio.to_thread(self._save)

    def _is_as_before(self, granted: Granted) -> bool:
        return self.load() and self._kept.tokens == granted.tokens

    def _save(self) -> None:
        write_whole(self._file, self._kept.model_dump_json(exclude_none=True))

    def _lock_file(self) -> int:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Be the only one, of all processes, to change the file. Raises `SignInFailed` where that takes too long."""
        lock = self._lock_file()
        try:
            deadline = time.monotonic() + RENEWED_WITHIN_SECONDS
            while not _locks(lock):
                _refuse_after(deadline)
                await asyncio.sleep(_LOOK_SECONDS)
            yield
        finally:
            os.close(lock)


class _KeptTokens:
    """Gives the token of a server's kept sign-in, for each request as it is then."""

    def __init__(self, config: ServerConfig, folder: Path, over: str) -> None:
        self._config = config
        self._folder = folder
        self._over = over
        self._renewing: asyncio.Task[str] | None = None

    async def now(self) -> str:
        """Return the token. Raises `SignInNeeded` where it is over, `httpx2.ConnectError` where that cannot be told."""
        try:
            token = await KeptSignIn(self._folder, self._config).token()
            if token is not None:
                return token
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(KeptSignIn(self._folder, self._config).renew())
                self._renewing.add_done_callback(lambda done: done.cancelled() or done.exception())
            return await asyncio.shield(self._renewing)
        except SignInNeeded:
            raise SignInNeeded(self._over) from None
        except (SignInFailed, OSError) as error:
            raise httpx2.ConnectError(f"the sign-in cannot be used now. {error}") from None


def kept_requests(config: ServerConfig, folder: Path) -> httpx2.Auth | None:
    """Return what signs requests by the sign-in that is kept for a server, or None where there is none. Blocks."""
    if not KeptSignIn(folder, config).load():
        return None
    over = is_over(config)
    return SignedRequests(config, _KeptTokens(config, folder, over).now, over)


def is_over(config: ServerConfig) -> str:
    """Return what a call says whose sign-in of the operator is over."""
    return f"The sign-in to the server {config.name!r} is over. Run {test_of(config.name)} in a terminal."


def _refuse_after(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise SignInFailed("The sign-in is not renewed in time. Try again in a moment.")


def _locks(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
