"""Security boundary: the verifier of the tokens that this server gave out, `AUTH=tokens`.

What was found is trusted for `TRUSTED_SECONDS`, so a token that another program revokes ends within that time. A text
that is not a token is refused before anything is looked up; what is looked up in vain is not kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ....skills_db.errors import SkillsDbError
from ...base.errors import HostWorkBusy
from ...base.host_work import Kind, in_thread
from ...base.identity import Identity
from ...base.lru import Lru
from .names import known_rights
from .token_text import digest_of, is_token
from .verifier import VerifierUnavailable

if TYPE_CHECKING:
    from ....skills_db.tokens import StoredToken, TokenStore
    from ...base.database import HomeDatabase

_LOG = logging.getLogger(__name__)
TRUSTED_SECONDS = 1.0
"""How long a token counts after it was looked up, before it is looked up again."""
KEPT_MAX = 10_000
"""Tokens of which is kept what was found."""
_AT_ONCE = 200
"""Tokens that are looked up in one query."""


class OwnTokens:
    """Finds whom the tokens of a database stand for. For one event loop."""

    def __init__(self, database: HomeDatabase) -> None:
        self._database = database
        self._store: TokenStore | None = None
        self._found: Lru[str, tuple[StoredToken, float]] = Lru(KEPT_MAX)
        """By digest: a token, and when it was found (by the loop's clock)."""
        self._looking: dict[str, asyncio.Task[Mapping[str, StoredToken]]] = {}
        """By digest: what looks it up, with others."""
        self._wanted: list[str] = []
        """What `_next` looks up, which has not begun."""
        self._next: asyncio.Task[Mapping[str, StoredToken]]
        self._turn = asyncio.Lock()
        self._noting: set[asyncio.Task[None]] = set()

    async def identity_of(self, token: str) -> Identity | None:
        """Return the identity of a valid token, None for any other. Raises `VerifierUnavailable`."""
        if not is_token(token):
            return None
        digest = digest_of(token)
        known, at = self._found.get(digest, (None, 0.0))
        stored = known if known is not None and _now() - at < TRUSTED_SECONDS else await self._asked(digest)
        if stored is None or not stored.is_valid(time.time()):
            self._found.pop(digest, None)
            return None
        return Identity(stored.tenant, stored.principal, known_rights(stored.scopes), stored.id)

    async def _asked(self, digest: str) -> StoredToken | None:
        """Look a token up, once for all requests that wait for it."""
        looking = self._looking.get(digest)
        if looking is None:
            if not self._wanted or len(self._wanted) >= _AT_ONCE:
                self._wanted = []
                self._next = asyncio.create_task(self._look(self._wanted))
                # Those that wait for it raise its failure; there may be none left.
                self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._wanted.append(digest)
            looking = self._looking[digest] = self._next
        try:
            return (await asyncio.shield(looking)).get(digest)
        except (SkillsDbError, HostWorkBusy) as error:
            raise VerifierUnavailable(
                "Whether the token is valid cannot be told now, since the database does not answer. Try again in a "
                "moment."
            ) from error

    async def _look(self, digests: list[str]) -> Mapping[str, StoredToken]:
        """Look up in one query what has come to be wanted until the query before has ended."""
        try:
            async with self._turn:
                if self._wanted is digests:
                    self._wanted = []
                at = _now()
                found = await in_thread(Kind.DATABASE, lambda: self._opened().find_all(digests), charged=False)
        finally:
            for digest in digests:
                del self._looking[digest]
        now = time.time()
        for digest, stored in found.items():
            if stored.is_valid(now):
                self._found[digest] = (stored, at)
                self._note_use(stored)
        return found

    async def close(self) -> None:
        """Wait until the uses of tokens are noted."""
        await asyncio.gather(*self._noting, return_exceptions=True)

    def _opened(self) -> TokenStore:
        if self._store is None:
            from ....skills_db.tokens import TokenStore

            self._store = TokenStore(self._database())
        return self._store

    def _note_use(self, stored: StoredToken) -> None:
        """Record the use of a token; no request waits for it."""
        from ....skills_db.tokens import USED_SECONDS

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
