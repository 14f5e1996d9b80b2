"""Security boundary: the verifier of the tokens that this server gave out, `AUTH=tokens`.

What was found is trusted for `TRUSTED_SECONDS`, so a token that another program revokes ends within that time. A text
that is not a token is refused before anything is looked up; what is looked up in vain is not kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...skills_db.errors import SkillsDbError
from ..errors import HostWorkBusy
from ..host_work import Kind, in_thread
from ..identity import Identity
from .names import known_rights
from .token_text import digest_of, is_token
from .verifier import VerifierUnavailable

if TYPE_CHECKING:
    from ...skills_db.token_store import StoredToken, TokenStore
    from ..database import HomeDatabase

_LOG = logging.getLogger(__name__)
TRUSTED_SECONDS = 1.0
"""How long a token counts after it was looked up, before it is looked up again."""
KEPT_MAX = 10_000
"""Tokens of which is kept what was found."""
_AT_ONCE = 200
"""Tokens that are looked up in one query."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A token that was found, and when (by the loop's clock)."""

    token: StoredToken
    at: float


class OwnTokens:
    """Tells whom the tokens of a database stand for. For one event loop."""

    def __init__(self, database: HomeDatabase) -> None:
        self._database = database
        self._store: TokenStore | None = None
        self._found: OrderedDict[str, _Found] = OrderedDict()
        self._asking: dict[str, asyncio.Future[StoredToken | None]] = {}
        self._wanted: list[str] = []
        self._looking: asyncio.Task[None] | None = None
        self._noting: set[asyncio.Task[None]] = set()

    async def identity_of(self, token: str) -> Identity | None:
        """Return the identity of a valid token, None for any other. Raises `VerifierUnavailable`."""
        if not is_token(token):
            return None
        digest = digest_of(token)
        found = self._found.get(digest)
        stored = found.token if found is not None and _now() - found.at < TRUSTED_SECONDS else await self._asked(digest)
        if stored is None or not stored.is_valid(time.time()):
            self._found.pop(digest, None)
            return None
        return Identity(stored.tenant, stored.principal, known_rights(stored.scopes), stored.id)

    async def _asked(self, digest: str) -> StoredToken | None:
        """Look a token up, once for all requests that wait for it."""
        asking = self._asking.get(digest)
        if asking is None:
            asking = self._asking[digest] = asyncio.get_running_loop().create_future()
            asking.add_done_callback(partial(self._answered, digest))
            self._wanted.append(digest)
            if self._looking is None:
                self._looking = asyncio.create_task(self._look())
        try:
            return await asyncio.shield(asking)
        except (SkillsDbError, HostWorkBusy) as error:
            raise VerifierUnavailable(
                "Whether the token is valid cannot be told now, since the database does not answer. Try again in a "
                "moment."
            ) from error

    async def _look(self) -> None:
        """Look up what is wanted, and then what has come to be wanted meanwhile, so many tokens in one query."""
        try:
            while self._wanted:
                digests, self._wanted = self._wanted[:_AT_ONCE], self._wanted[_AT_ONCE:]
                try:
                    found = await self._looked_up(digests)
                except Exception as error:  # noqa: BLE001 - those that wait for it raise it
                    for digest in digests:
                        self._asking[digest].set_exception(error)
                else:
                    for digest in digests:
                        self._asking[digest].set_result(found.get(digest))
        finally:
            self._looking = None
            for asking in [*self._asking.values()]:
                asking.cancel()  # nothing, unless this was cancelled

    async def _looked_up(self, digests: Sequence[str]) -> Mapping[str, StoredToken]:
        at = _now()
        found = await in_thread(Kind.DATABASE, lambda: self._opened().find_all(digests), charged=False)
        now = time.time()
        for digest, stored in found.items():
            if stored.is_valid(now):
                self._found[digest] = _Found(stored, at)
                self._found.move_to_end(digest)
                self._note_use(stored)
        while len(self._found) > KEPT_MAX:
            self._found.popitem(last=False)
        return found

    def _answered(self, digest: str, asked: asyncio.Future[StoredToken | None]) -> None:
        del self._asking[digest]
        if not asked.cancelled():
            asked.exception()  # those that wait for it raise it; there may be none left

    async def close(self) -> None:
        """Wait until the uses of tokens are noted."""
        await asyncio.gather(*self._noting, return_exceptions=True)

    def _opened(self) -> TokenStore:
        if self._store is None:
            from ...skills_db.token_store import TokenStore

            self._store = TokenStore(self._database())
        return self._store

    def _note_use(self, stored: StoredToken) -> None:
        """Have the use of a token noted, which no request waits for."""
        from ...skills_db.token_store import USED_SECONDS

        now = time.time()
        if stored.used is not None and now - stored.used < USED_SECONDS:
            return
        task = asyncio.create_task(_noted(lambda: self._opened().note_use(stored.id, now)))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)


async def _noted(note: Callable[[], None]) -> None:
    try:
        await in_thread(Kind.DATABASE, note, charged=False)
    except (SkillsDbError, HostWorkBusy) as error:
        _LOG.warning("When a token was last used could not be noted: %s", error)


def _now() -> float:
    return asyncio.get_running_loop().time()
